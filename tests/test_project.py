"What the package exports, what its help shows, and its metadata"
import contextlib, fastai.vision.all, fastai_mlmetrics.all, io, pydoc, runpy, shutil, subprocess
from helpers import *

SIGNATURES = runpy.run_path(ROOT/'tools'/'signatures.py')
PUBLIC,functions = SIGNATURES['PUBLIC'],SIGNATURES['functions']

def test_names_of_all_are_exported_by_their_modules():
    for name,o in PUBLIC.items(): assert name in sys.modules[o.__module__].__all__, name
    assert len(PUBLIC)>50

def test_help_of_all_lists_its_names():
    text = pydoc.render_doc(fastai_mlmetrics.all, renderer=pydoc.plaintext)
    assert not [o for o in PUBLIC if not re.search(rf'(?m)^    (class )?{o}\b', text)]

def test_after_fastai_comes_ours():
    "The names that are deliberately fastai's own"
    assert all(globals()[k] is o for k,o in PUBLIC.items())
    assert {k for k in PUBLIC if hasattr(fastai.vision.all, k)}=={
        'FBetaMulti','F1ScoreMulti','PrecisionMulti','RecallMulti','JaccardMulti','HammingLossMulti','APScoreMulti',
        'RocAucMulti','MatthewsCorrCoefMulti','BrierScoreMulti','accuracy_multi','BCEWithLogitsLossFlat'}

@pytest.mark.slow
def test_totals_do_not_drift_over_many_batches(monkeypatch):
    "A short run of `python -m benchmarks soak`, which takes 100,000 batches"
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.__main__ import soak
    rows = list(soak(1000)) # several times the number of batches that wait before they are added
    assert rows[-1]['batches']==1000 and rows[-1]['metrics']>80
    assert all(o['whole counts equal'] and o['largest relative drift']<1e-13 for o in rows)

def test_help_names_every_argument():
    found = {k: o for k,o in functions().items() if '.' not in k or 'Arguments:' in o.__doc__}
    assert {'F1ScoreMulti','best_thresholds','Learner.thresh_find','Learner.evaluate','Recorder.plot_metrics',
            'ZeroLabelsCallback.report','MultiLabelInterpretation.from_preds','ThreshFinder.update'} <= {*found}
    for name,o in found.items():
        text = pydoc.render_doc(o, renderer=pydoc.plaintext)
        missing = [k for k in inspect.signature(o).parameters
                   if k not in ('self','kwargs') and not re.search(rf'(?m)^[ |]*{k}: .*\w', text)]
        assert not missing, f'{name}: {missing}'
        assert re.match(r'.+\n\n', o.__doc__), name # A line, which lists of names show
        assert re.search(r'\n\nArguments:(\n  \w+: .+)+$', o.__doc__) and o.__doc__.count('Arguments:')==1, name
        told = re.findall(r'(?m)^  (\w+): ', o.__doc__.partition('Arguments:')[2])
        assert told==[k for k in (*inspect.signature(o).parameters, 'returns') if k in told], name

ROOMS_WITH_EXAMPLES = 'formulas','losses','lists','imbalance','splitting','digits','ranking'
# In the order of their names; methods that several classes share are one
EXAMPLES = {o: name for name,o in sorted(functions().items(), reverse=True) if '\n\n    ' in inspect.getdoc(o)}

@pytest.mark.parametrize('name', [slow(o) if o=='multilabel_dls' else o for o in EXAMPLES.values()])
def test_examples_in_docstrings_run_and_return_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.setenv('FASTAI_HOME', str(tmp_path))
    monkeypatch.chdir(tmp_path) # Some write a file
    logits,targs = simulate(60, 3, density=0.3)
    names = ['cat','dog','cancer']
    scope = dict(globals(), logits=logits, targs=targs, names=names, preds=logits.sigmoid(), probs=logits.sigmoid(),
                 others=(logits+1).sigmoid(), probs_a=logits.sigmoid(), probs_b=(logits+1).sigmoid(),
                 runs_of_a=[logits.sigmoid()]*3, runs_of_b=[(logits+1).sigmoid()]*3,
                 df=pd.DataFrame(targs.int().numpy(), columns=names).assign(
                     site=['north','south']*30, patient=range(60), labels='cat dog', text='a text'),
                 labels=names, train_targs=targs[:40], valid_targs=targs[40:], resnet18=None)
    scope['interp'] = MultiLabelInterpretation.from_preds(scope['probs'], targs, vocab=names)
    learn = scope['learn'] = make_learner(logits, targs, multilabel_metrics(), path=tmp_path, vocab=names,
                                          cbs=ZeroLabelsCallback())
    def vision_learner(dls, arch, loss_func=BCEWithLogitsLossFlat(), **kwargs):
        return Learner(dls, learn.model, loss_func, **kwargs)
    scope |= dict(dls=learn.dls, test_dl=learn.dls.valid, vision_learner=vision_learner)
    with warnings_as('ignore'), learn.no_logging(), contextlib.redirect_stdout(io.StringIO()):
        if 'learn' in example(functions()[name]): learn.fit(1, 0.)
        if name=='ZeroLabelsCallback': learn.remove_cbs(learn.cbs.filter(risinstance(ZeroLabelsCallback)))
        run_example(functions()[name], scope)
    plt.close('all')

def test_functions_that_users_call_first_have_an_example():
    for name,o in PUBLIC.items():
        if o.__module__.rpartition('.')[2] in ROOMS_WITH_EXAMPLES: assert name in example(o), name
    shown = [name for o,name in EXAMPLES.items() if re.search(r' # [\[(\d]', example(o))]
    assert {'F1ScoreMulti','accuracy_multi','APScoreMulti','best_thresholds','pos_weight'} <= {*shown}
    assert len(shown)>30

def test_a_wrong_value_in_a_docstring_is_found():
    def f(): ...
    for line,passes in (('1/3 # 0.333', True), ('1/3 # 0.3', False), ("'a' # 'b'", False), ('[1, 2] # [1, 2]', True),
                        ('1/3 # A third', True)):
        f.__doc__ = f'Text\n\nMore\n\n    {line}'
        with contextlib.nullcontext() if passes else pytest.raises(AssertionError): run_example(f, {})

@pytest.fixture
def metadata(tmp_path, monkeypatch):
    "What setup.py makes of the files, after some of them are replaced"
    def read(**files):
        import setuptools # whose distutils comes next
        from distutils.core import run_setup
        for o in ('setup.py','settings.ini','README.md','LICENSE'): shutil.copy(ROOT/o, tmp_path)
        monkeypatch.chdir(tmp_path)
        for o,text in files.items(): Path(o.replace('_', '.')).write_text(text)
        return run_setup('setup.py', stop_after='init')
    return read

def test_the_extra_dev_has_all_others(metadata):
    extras = metadata().extras_require
    assert {*extras}=={'test','docs','dev'} and {*extras['test'], *extras['docs']} < {*extras['dev']}

def links(text): return re.findall(r'\]\(([^)]*)\)', re.sub(r'(?ms)^```.*?^```', '', text))

def test_no_link_points_nowhere(metadata):
    "While the project has no address"
    m = metadata().metadata
    assert not m.project_urls and '![' not in m.long_description
    assert all('://' in o or o[0]=='#' for o in links(m.long_description))

def test_links_of_the_readme_on_an_index(metadata):
    urls = 'git_url = https://host.example/o/n/\ndoc_host = https://o.example/n\n'
    m = metadata(settings_ini=(ROOT/'settings.ini').read_text()+urls).metadata
    assert m.project_urls=={'Source': 'https://host.example/o/n', 'Documentation': 'https://o.example/n'}
    found = links(m.long_description)
    assert 'https://host.example/o/n/raw/HEAD/nbs/images/before_after.png' in found
    assert all('://' in o or o[0]=='#' for o in found)

def test_code_keeps_its_brackets(metadata):
    code = '```python\nmetrics[0](preds)\n```\n'
    text = metadata(README_md=f'{code}[page](a.md), [part](#part), [other](https://x.y)\n').metadata.long_description
    assert text==f'{code}page, [part](#part), [other](https://x.y)\n'

def test_help_says_what_the_package_is():
    doc = inspect.getdoc(fastai_mlmetrics)
    code = [o.strip() for o in doc.splitlines() if o.startswith('    ')]
    assert len(code)==2 and 'metrics=multilabel_metrics(), cbs=ZeroLabelsCallback()' in code[1]
    dls = make_learner(*simulate(40, 20)).dls
    space = dict(globals(), dls=dls, vision_learner=lambda dls,arch,**kwargs: Learner(
        dls, nn.Identity(), loss_func=BCEWithLogitsLossFlat(), **kwargs))
    exec('\n'.join(code), space)
    assert space['learn'].zero_labels and max(map(len, doc.splitlines()))<=100

PAGE = 'nbs/howto/23_which_metric.ipynb'
# Rule of tools/lint.py -> a file, a text in it that is replaced, by what, and what is said of it; '': at the end
BROKEN = [
    ('imports', 'fastai_mlmetrics/core/rules.py', '', 'from ..thresholds import search as _', 'thresholds.search'),
    ('imports', 'fastai_mlmetrics/core/rules.py', '', 'from .. import demo', 'demo'),
    ('imports', 'fastai_mlmetrics/core/rules.py', '', 'import fastai_mlmetrics.demo', 'fastai_mlmetrics.demo'),
    ('imports', 'fastai_mlmetrics/metrics/lists.py', '', 'from .lists import paper_metrics', 'lists.paper_metrics'),
    ('imports', 'fastai_mlmetrics/metrics/lists.py', '', 'from ..core.rules import *', 'core.rules.*'),
    ('imports', 'fastai_mlmetrics/metrics/lists.py', '', 'def f():\n    from ..core.rules import _x', 'core.rules._x'),
    ('private_attributes', 'fastai_mlmetrics/demo.py', '', 'get_data._x', '_x'),
    ('sizes', 'fastai_mlmetrics/demo.py', '', 'def f():'+45*'\n    1', '`f` has 46 lines'),
    ('sizes', 'fastai_mlmetrics/demo.py', '', 301*'1\n', 'lines of code'),
    ('patches', 'fastai_mlmetrics/demo.py', '', '@patch\ndef f(self:ZeroLabelsCallback): pass', 'is of diagnosis'),
    ('layout', 'CONTRIBUTING.md', '`nbs/demo.ipynb`', '`nbs/toys/`', 'nbs/toys'),
    ('widths', 'tools/matrix.py', '', 121*'#', '121 columns'),
    ('widths', PAGE, 'mlmetrics.all import *', 'mlmetrics.all import *'+70*' ', '104 columns'),
    ('outputs', PAGE, '"outputs": []', '"outputs": ["/tmp/x"]', '/tmp/'),
    ('quoted_numbers', PAGE, '> ', '> 17.341 ', '17.341'),
    ('links', PAGE, '> ', '> [x](gone.md) ', 'gone.md'),
    ('lengths', PAGE, '> ', '> '+400*'word ', 'words'),
    ('listed_pages', 'tools/docs.py', "'howto/04_loop_lightning_gpus'", "'howto/gone'", 'howto/gone'),
    ('additions', 'CONTRIBUTING.md', 'a row of `', 'a row of `GONE`, `', 'GONE'),
    ('test_imports', 'tests/test_faults.py', '', 'import nbdev', 'nbdev'),
    ('marks', 'tests/test_faults.py', '', 'def test_x(): pytest.importorskip("nbdev")', 'importorskip'),
    ('release', 'CITATION.cff', '\nversion: ', '\nversion: 9.', 'version: ')]

@pytest.mark.slow
def test_each_rule_on_files_finds_what_breaks_it(tmp_path):
    "In a copy of the files"
    shutil.copytree(ROOT, tmp_path/'copy', ignore=shutil.ignore_patterns('.git', 'build', '__pycache__'))
    for rule,name,old,new,says in BROKEN:
        path = tmp_path/'copy'/name
        text = path.read_text()
        path.write_text(text.replace(old, new, 1) if old else f'{text}\n{new}\n')
        lint = sys.executable,'tools/lint.py',rule
        done = subprocess.run(lint, cwd=tmp_path/'copy', capture_output=True, text=True)
        found = [o for o in done.stdout.splitlines() if o.startswith(f'{name}:') and says in o]
        assert found and done.returncode==1, (rule, new, done.stdout+done.stderr)
        path.write_text(text)
