"The project's files say the same, and its notebooks run"
import json, runpy
from configparser import ConfigParser
import fastai.vision.all, nbdev.test
from nbdev.config import get_config
import fastai_mlmetrics, fastai_mlmetrics.all
from conftest import *

ROOT = Path(__file__).parent.parent

MODULES,TUTORIALS = (sorted((ROOT/'nbs').glob(o)) for o in ('*.ipynb','tutorials/*.ipynb'))
NOTEBOOKS = MODULES+TUTORIALS

@pytest.mark.parametrize('notebook', NOTEBOOKS, ids=lambda o: o.stem)
def test_notebook(notebook, monkeypatch):
    monkeypatch.chdir(ROOT)
    for k in ('thresh_find','set_thresh'): monkeypatch.setattr(Learner, k, getattr(Learner, k)) # which a notebook patches anew
    passed,_ = nbdev.test.test_nb(notebook, skip_flags=get_config().tst_flags.split())
    assert passed, f'{notebook.name} failed: see above'

def test_one_version():
    cfg = ConfigParser()
    cfg.read(ROOT/'settings.ini')
    assert cfg['DEFAULT']['version']==fastai_mlmetrics.__version__

def test_readme_is_rendered_from_the_index():
    files = runpy.run_path(ROOT/'tools'/'readme.py')['render']()
    for name,content in files.items(): assert (ROOT/name).read_bytes()==content, f'{name} is stale: python tools/readme.py'
    assert {o.name for o in (ROOT/'README_files').glob('*')}=={Path(o).name for o in files if '/' in o}

def test_after_fastai_comes_ours():
    for name in NAMES: assert globals()[name].__module__.startswith('fastai_mlmetrics.')
    assert F1ScoreMulti.__module__=='fastai_mlmetrics.metrics'

NAMES = """AccuracyMulti PrecisionMulti RecallMulti F1ScoreMulti CF1 FBetaMulti JaccardMulti SpecificityMulti BalancedAccuracyMulti HammingLossMulti
MatthewsCorrCoefMulti SubsetAccuracy EmptyRate LabelCardinality ZerosAccuracy AccuracyLift BrierScoreMulti APScoreMulti RocAucMulti LRAP CoverageError
LabelRankingLoss OneError PrecisionAtK RecallAtK ExpectedCalibrationError accuracy_multi subset_accuracy empty_rate zeros_accuracy categorical_accuracy
multilabel_metrics paper_metrics accuracy_report judge best_thresholds ZeroLabelsCallback ZeroLabelsWarning ZeroLabelsError MultiLabelInterpretation label_stats pos_weight
imbalance_measures plot_cooccurrence StratifiedMultiLabelSplitter stratified_split stratified_folds AsymmetricLossFlat SigmoidFocalLossFlat
multidigits multilabel_dls""".split()
FASTAI = {'FBetaMulti','F1ScoreMulti','PrecisionMulti','RecallMulti','JaccardMulti','HammingLossMulti','MatthewsCorrCoefMulti','BrierScoreMulti','APScoreMulti','RocAucMulti','accuracy_multi'}

def test_the_public_names():
    ours = {}
    exec('from fastai_mlmetrics.all import *', ours)
    names = {o for o in ours if o[:2]!='__'}
    assert names=={*NAMES} and {o for o in names if hasattr(fastai.vision.all, o)}==FASTAI

def code_of(notebook): return [''.join(c['source']) for c in json.loads(notebook.read_text())['cells'] if c['cell_type']=='code']

def test_arrows_run_downwards_and_no_private_name_crosses():
    seen = []
    for notebook in MODULES:
        if notebook.stem=='index': continue
        exported = '\n'.join(o for o in code_of(notebook) if '#| export' in o)
        imports = re.findall(r'^from fastai_mlmetrics\.(\w+) import (.*)$', exported, re.M)
        assert {m for m,_ in imports} <= {*seen}, notebook.stem
        for module,names in imports: assert not re.search(r'\b_', names), (notebook.stem, module, names)
        seen.append(notebook.stem.split('_', 1)[1])
    for name in seen:
        code = (ROOT/'fastai_mlmetrics'/f'{name}.py').read_text()
        own = {*re.findall(r'def (_\w+)', code), *re.findall(r'(?:self|cls)\.(_\w+)', code)}
        assert {*re.findall(r'\.(_[a-z]\w*)', code)} <= own, name

@pytest.mark.parametrize('notebook', NOTEBOOKS, ids=lambda o: o.stem)
def test_a_page_shows_lines_whole(notebook):
    for cell in code_of(notebook):
        for line in cell.splitlines(): assert len(line)<=103, line

def test_lines_of_the_modules_by_hand():
    for name in ('all','__main__'):
        for line in (ROOT/'fastai_mlmetrics'/f'{name}.py').read_text().splitlines(): assert len(line)<=103, line

@pytest.mark.parametrize('notebook', TUTORIALS, ids=lambda o: o.stem)
def test_outputs_of_a_tutorial(notebook):
    "They are small, and those of Jupyter: without the progress bars of a terminal"
    text = notebook.read_text()
    assert len(text)<500_000 and '\\r' not in text

def public():
    "Everything public that is ours: functions, and classes with their methods"
    for name,o in vars(fastai_mlmetrics.all).items():
        if name[0]!='_' and getattr(o, '__module__', '').startswith('fastai_mlmetrics'): yield name,o

def test_every_argument_is_documented():
    from fastcore.docments import docments
    for name,o in public():
        f = o.__init__ if isinstance(o, type) else o
        if not (inspect.isfunction(f) and f.__module__.startswith('fastai_mlmetrics')): continue
        docs = docments(f, full=True)
        missing = [k for k,v in docs.items() if k not in ('self','return','kwargs') and not v.docment]
        assert not missing, f'{name}: {missing}'
        assert o.__doc__ and '\n' not in o.__doc__, name

def test_many_batches(monkeypatch):
    "A short run of what `python -m benchmarks soak` does with 100,000"
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.__main__ import soak
    rows = list(soak(1000)) # a few times what waits before it is added up
    assert rows[-1]['batches']==1000 and rows[-1]['metrics']>80
    assert all(o['whole counts equal'] and o['largest relative drift']<1e-13 for o in rows)
