"The project's files agree with each other, and its notebooks run; the release"
import ast, fastai.vision.all, fastai_mlmetrics, fastai_mlmetrics.all, importlib, json, nbdev.test, pydoc, runpy, shutil
from configparser import ConfigParser
from nbdev.config import get_config
from conftest import *
import setuptools # whose distutils comes next
from distutils.core import run_setup

MODULES,TUTORIALS,REFERENCE = (sorted((ROOT/'nbs').glob(o)) for o in
                               ('*.ipynb','tutorials/*.ipynb','reference/*.ipynb'))
NOTEBOOKS = MODULES+TUTORIALS+REFERENCE

@pytest.mark.parametrize('notebook', NOTEBOOKS, ids=lambda o: o.stem)
def test_notebook(notebook, monkeypatch):
    monkeypatch.chdir(ROOT)
    patched = [(Learner, 'thresh_find set_thresh accuracy_report evaluate export_plain'), (Recorder, 'plot_metrics')]
    for cls,names in patched: # by notebooks
        for k in names.split(): monkeypatch.setattr(cls, k, getattr(cls, k))
    passed,_ = nbdev.test.test_nb(notebook, skip_flags=get_config().tst_flags.split())
    assert passed, f'{notebook.name} failed: see above'

def test_one_version():
    cfg = ConfigParser()
    cfg.read(ROOT/'settings.ini')
    assert cfg['DEFAULT']['version']==fastai_mlmetrics.__version__

def test_one_description():
    cfg = ConfigParser(interpolation=None)
    cfg.read(ROOT/'settings.ini')
    text = cfg['DEFAULT']['description']
    for o in ('README.md','CITATION.cff'): assert text in (ROOT/o).read_text(), o

def test_readme_is_rendered_from_the_index():
    files = runpy.run_path(ROOT/'tools'/'readme.py')['render']()
    for name,content in files.items():
        assert (ROOT/name).read_bytes()==content, f'{name} is stale: python tools/readme.py'
    assert {o.name for o in (ROOT/'README_files').glob('*')}=={Path(o).name for o in files if '/' in o}

def test_after_fastai_comes_ours():
    for name in NAMES: assert globals()[name].__module__.startswith('fastai_mlmetrics.')
    assert F1ScoreMulti.__module__=='fastai_mlmetrics.metrics'

NAMES = """AccuracyMulti PrecisionMulti RecallMulti F1ScoreMulti CF1 FBetaMulti JaccardMulti SpecificityMulti
BalancedAccuracyMulti HammingLossMulti MatthewsCorrCoefMulti SubsetAccuracy EmptyRate LabelCardinality ZerosAccuracy
AccuracyLift BrierScoreMulti APScoreMulti RocAucMulti LRAP CoverageError LabelRankingLoss OneError PrecisionAtK
RecallAtK ExpectedCalibrationError accuracy_multi subset_accuracy empty_rate zeros_accuracy categorical_accuracy
multilabel_metrics paper_metrics accuracy_report compare_models judge best_thresholds ThreshFinder ZeroLabelsCallback
ZeroLabelsWarning ZeroLabelsError MultiLabelInterpretation label_stats pos_weight imbalance_measures plot_cooccurrence
StratifiedMultiLabelSplitter stratified_split stratified_folds BCEWithLogitsLossFlat AsymmetricLossFlat
SigmoidFocalLossFlat multidigits multilabel_dls""".split()
FASTAI = {'FBetaMulti','F1ScoreMulti','PrecisionMulti','RecallMulti','JaccardMulti','HammingLossMulti',
          'MatthewsCorrCoefMulti','BrierScoreMulti','APScoreMulti','RocAucMulti','accuracy_multi',
          'BCEWithLogitsLossFlat'}

def test_the_public_names():
    ours = {}
    exec('from fastai_mlmetrics.all import *', ours)
    names = {o for o in ours if o[:2]!='__'}
    assert names=={*NAMES} and {o for o in names if hasattr(fastai.vision.all, o)}==FASTAI
# Of modules, for who writes metrics of their own, or looks at what is returned
EXTENSIONS = '''StreamMetric CountsMetric MicroMetric SampleMetric CurveMetric LabelRanking AsymmetricLoss Table
AccuracyReport ModelComparison LabelReport SuggestedThresholds digit_labels digit_table get_data
small_convnet get_learner'''.split()

def test_all_is_the_api():
    rooms = (importlib.import_module(f'fastai_mlmetrics.{m.stem[3:]}') for m in MODULES if m.stem!='index')
    names = [o for room in rooms for o in room.__all__]
    assert sorted(names)==sorted(NAMES+EXTENSIONS)

def code_of(notebook):
    cells = json.loads(notebook.read_text())['cells']
    return [''.join(c['source']) for c in cells if c['cell_type']=='code']

def test_arrows_run_downwards_and_no_private_name_crosses():
    seen = []
    for notebook in MODULES:
        if notebook.stem=='index': continue
        exported = '\n'.join(o for o in code_of(notebook) if '#| export' in o)
        imports = [o for o in ast.walk(ast.parse(exported)) if isinstance(o, ast.ImportFrom)]
        for o in imports:
            room,names = (o.module or '').removeprefix('fastai_mlmetrics').lstrip('.'),[a.name for a in o.names]
            if not (o.module or '').startswith('fastai_mlmetrics'): continue
            assert room in seen or {*names} <= {*seen}, notebook.stem
            assert not any(a=='*' or a[0]=='_' for a in names), (notebook.stem, room, names)
        seen.append(notebook.stem.split('_', 1)[1])
    for name in seen:
        code = (ROOT/'fastai_mlmetrics'/f'{name}.py').read_text()
        own = {*re.findall(r'def (_\w+)', code), *re.findall(r'(?:self|cls)\.(_\w+)', code)}
        assert {*re.findall(r'\.(_[a-z]\w*)', code)} <= own, name

@pytest.mark.parametrize('notebook', NOTEBOOKS, ids=lambda o: o.stem)
def test_a_page_shows_lines_whole(notebook):
    for cell in code_of(notebook):
        for line in cell.splitlines(): assert len(line)<=103, line

def test_lines_of_files_by_hand():
    files = {103: (ROOT/'fastai_mlmetrics'/f'{o}.py' for o in ('all','__main__')),
             120: (o for folder in ('tests','tools','benchmarks') for o in (ROOT/folder).glob('*.py'))}
    for width,paths in files.items():
        for path in paths:
            for line in path.read_text().splitlines(): assert len(line)<=width, (path.name, line)

@pytest.mark.parametrize('notebook', TUTORIALS+REFERENCE, ids=lambda o: o.stem)
def test_outputs_of_a_tutorial(notebook):
    "Outputs are small and those of Jupyter, without the progress bars of a terminal"
    text = notebook.read_text()
    assert len(text)<500_000 and '\\r' not in text

@pytest.mark.parametrize('notebook', sorted((ROOT/'nbs').rglob('*.ipynb')), ids=lambda o: o.stem)
def test_outputs_hold_no_path_of_a_machine(notebook):
    text = json.dumps([o.get('outputs') for o in json.loads(notebook.read_text())['cells']])
    assert not re.search(r'site-packages|/tmp/|/home/', text) and str(ROOT) not in text

def public():
    "All public functions of this package, and its classes with their methods"
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
        assert re.match(r'.+(\n\n|$)', o.__doc__), name # A line, which lists of names show

def test_many_batches(monkeypatch):
    "A short run of `python -m benchmarks soak`, which takes 100,000 batches"
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.__main__ import soak
    rows = list(soak(1000)) # several times the number of batches that wait before they are added
    assert rows[-1]['batches']==1000 and rows[-1]['metrics']>80
    assert all(o['whole counts equal'] and o['largest relative drift']<1e-13 for o in rows)

def functions():
    "The public functions and classes, and their methods, also those that fastai's classes gain: name -> object"
    classes = {k: o for k,o in public() if isinstance(o, type)} | dict(Learner=Learner, Recorder=Recorder)
    methods = {f'{name}.{k}': m for name,cls in classes.items() for k,m in inspect.getmembers(cls, inspect.isroutine)
               if k[0]!='_' and m.__doc__}
    ours = lambda o: (getattr(o, '__module__', None) or '').startswith('fastai_mlmetrics')
    return {k: o for k,o in {**dict(public()), **methods}.items() if ours(o)}

def test_help_names_every_argument():
    found = {k: o for k,o in functions().items() if '.' not in k or 'Arguments:' in o.__doc__}
    assert {'F1ScoreMulti','best_thresholds','Learner.thresh_find','Learner.evaluate','Recorder.plot_metrics',
            'ZeroLabelsCallback.report','MultiLabelInterpretation.from_preds','ThreshFinder.update'} <= {*found}
    for name,o in found.items():
        text = pydoc.render_doc(o, renderer=pydoc.plaintext)
        missing = [k for k in inspect.signature(o).parameters
                   if k not in ('self','kwargs') and not re.search(rf'(?m)^[ |]*{k}: .*\w', text)]
        assert not missing, f'{name}: {missing}'
        assert re.search(r'\n\nArguments:(\n  \w+: .+)+$', o.__doc__) and o.__doc__.count('Arguments:')==1, name

@pytest.fixture
def checkout(tmp_path, monkeypatch):
    for o in ('setup.py','settings.ini','README.md','LICENSE'): shutil.copy(ROOT/o, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path

def links(text): return re.findall(r'\]\(([^)]*)\)', re.sub(r'(?ms)^```.*?^```', '', text))

def test_no_link_points_nowhere(checkout):
    "While the project has no address"
    m = run_setup('setup.py', stop_after='init').metadata
    assert not m.project_urls and '![' not in m.long_description
    assert all('://' in o for o in links(m.long_description))

def test_links_of_the_readme_on_an_index(checkout):
    urls = 'git_url = https://host.example/o/n/\ndoc_host = https://o.example/n\n'
    with open('settings.ini', 'a') as f: f.write(urls)
    m = run_setup('setup.py', stop_after='init').metadata
    assert m.project_urls=={'Source': 'https://host.example/o/n', 'Documentation': 'https://o.example/n'}
    found = links(m.long_description)
    images = {f'https://host.example/o/n/raw/HEAD/README_files/{o.name}' for o in (ROOT/'README_files').iterdir()}
    assert images <= {*found} and all('://' in o for o in found)

def test_code_keeps_its_brackets(checkout):
    code = '```python\nmetrics[0](preds)\n```\n'
    (checkout/'README.md').write_text(f'{code}[page](a.md), [part](#part), [other](https://x.y)\n')
    text = run_setup('setup.py', stop_after='init').metadata.long_description
    assert text==f'{code}page, [part](#part), [other](https://x.y)\n'

def test_one_version_everywhere(checkout):
    version = run_setup('setup.py', stop_after='init').metadata.version
    assert re.search(rf'^version: {re.escape(version)}$', (ROOT/'CITATION.cff').read_text(), re.M)
    assert re.search(rf'^## {re.escape(version)}\b', (ROOT/'CHANGELOG.md').read_text(), re.M)

def test_classifiers_name_the_pythons_that_are_tested(checkout):
    names = run_setup('setup.py', stop_after='init').metadata.classifiers
    versions = {o.split()[-1] for o in names if re.search(r':: 3\.\d+$', o)}
    workflow = (ROOT/'.github'/'workflows'/'test.yaml').read_text()
    assert versions=={*re.findall(r'"(3\.\d+)"', re.search(r'python: \[.*\]', workflow)[0])}
