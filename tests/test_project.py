"The project's files agree with each other, and its release"
import ast, contextlib, fastai.vision.all, fastai_mlmetrics, importlib, io, pydoc, runpy, shutil
from helpers import *
import setuptools # whose distutils comes next
from distutils.core import run_setup

WINGS = 'core','metrics','thresholds','diagnosis','reports','learner','data' # From the ground up
ROOMS = [f'{wing}.{o.stem[3:]}' for wing in WINGS for o in sorted((ROOT/'nbs'/wing).glob('[0-9]*.ipynb'))] + ['demo']

def test_the_description_is_the_same_everywhere(checkout):
    text = run_setup('setup.py', stop_after='init').metadata.description
    for o in ('README.md','CITATION.cff'): assert text in (ROOT/o).read_text(), o

@pytest.mark.dev
def test_readme_is_rendered_from_the_index():
    pytest.importorskip('nbdev')
    files = runpy.run_path(ROOT/'tools'/'readme.py')['render']()
    for name,content in files.items():
        assert (ROOT/name).read_bytes()==content, f'{name} is stale: python tools/readme.py'
    assert {o.name for o in (ROOT/'README_files').glob('*')}=={Path(o).name for o in files if '/' in o}

SIGNATURES = runpy.run_path(ROOT/'tools'/'signatures.py')
PUBLIC,functions = SIGNATURES['PUBLIC'],SIGNATURES['functions']

def test_all_is_what_modules_export():
    ours = {}
    exec('from fastai_mlmetrics.all import *', ours)
    assert {o for o in ours if o[:2]!='__'}=={*PUBLIC}
    rooms = [importlib.import_module(f'fastai_mlmetrics.{o}') for o in ROOMS]
    exported = {k: getattr(room, k) for room in rooms for k in room.__all__}
    assert len(exported)==sum(len(room.__all__) for room in rooms)
    assert PUBLIC=={k: o for k,o in exported.items() if k in PUBLIC}

def test_after_fastai_comes_ours():
    "The names that are deliberately fastai's own"
    assert all(globals()[k] is o for k,o in PUBLIC.items())
    assert {k for k in PUBLIC if hasattr(fastai.vision.all, k)}=={
        'FBetaMulti','F1ScoreMulti','PrecisionMulti','RecallMulti','JaccardMulti','HammingLossMulti','APScoreMulti',
        'RocAucMulti','MatthewsCorrCoefMulti','BrierScoreMulti','accuracy_multi','BCEWithLogitsLossFlat'}

def absolute(node, room):
    "The module that an import within this package is from, such as 'core.inputs'"
    if not node.level: return node.module.removeprefix('fastai_mlmetrics').lstrip('.')
    above = room.split('.')[:-node.level]
    return '.'.join([*above, *filter(None, [node.module])])

def test_a_module_imports_from_those_before_it_and_nothing_private():
    for i,room in enumerate(ROOMS):
        nodes = [*ast.walk(ast.parse((ROOT/'fastai_mlmetrics'/f"{room.replace('.', '/')}.py").read_text()))]
        for o in nodes:
            if not (isinstance(o, ast.ImportFrom) and (o.level or o.module.startswith('fastai_mlmetrics'))): continue
            module,names = absolute(o, room),{a.name for a in o.names}
            assert {module} <= {*ROOMS[:i]} or {f'{module}.{k}' for k in names} <= {*ROOMS[:i]}, (room, module, names)
            assert not any(k=='*' or k[0]=='_' for k in names), (room, names)
        attributes = [o for o in nodes if isinstance(o, ast.Attribute) and re.match('_[a-z]', o.attr)]
        own = {o.name for o in nodes if isinstance(o, ast.FunctionDef)} | {
            o.attr for o in attributes if getattr(o.value, 'id', '') in ('self','cls')}
        assert {o.attr for o in attributes} <= own, room

def test_lines_fit_on_a_page():
    files = {103: (ROOT/'fastai_mlmetrics'/f'{o}.py' for o in ('all','__main__')),
             120: (o for folder in ('tests','tools','benchmarks') for o in (ROOT/folder).rglob('*.py'))}
    for width,paths in files.items():
        for path in paths:
            for line in path.read_text().splitlines(): assert len(line)<=width, (path.name, line)

def test_every_argument_is_documented():
    from fastcore.docments import docments
    for name,o in PUBLIC.items():
        f = o.__init__ if isinstance(o, type) else o
        if not (inspect.isfunction(f) and f.__module__.startswith('fastai_mlmetrics')): continue
        docs = docments(f, full=True)
        missing = [k for k,v in docs.items() if k not in ('self','return','kwargs') and not v.docment]
        assert not missing, f'{name}: {missing}'
        assert re.match(r'.+(\n\n|$)', o.__doc__), name # A line, which lists of names show

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
        assert re.search(r'\n\nArguments:(\n  \w+: .+)+$', o.__doc__) and o.__doc__.count('Arguments:')==1, name
        told = re.findall(r'(?m)^  (\w+): ', o.__doc__.partition('Arguments:')[2])
        assert told==[k for k in (*inspect.signature(o).parameters, 'returns') if k in told], name

ROOMS_WITH_EXAMPLES = 'formulas','losses','lists','imbalance','splitting','digits'

def test_examples_in_docstrings_run(tmp_path, monkeypatch):
    monkeypatch.setenv('FASTAI_HOME', str(tmp_path))
    logits,targs = simulate(60, density=0.3)
    space = dict(globals(), logits=logits, targs=targs, names=[f'label {i}' for i in range(targs.shape[1])])
    for name,o in PUBLIC.items():
        if o.__module__.rpartition('.')[2] not in ROOMS_WITH_EXAMPLES: continue
        code = example(o)
        assert name in code, name
        with contextlib.redirect_stdout(io.StringIO()): exec(code, space)

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
    assert all('://' in o or o[0]=='#' for o in links(m.long_description))

def test_links_of_the_readme_on_an_index(checkout):
    urls = 'git_url = https://host.example/o/n/\ndoc_host = https://o.example/n\n'
    with open('settings.ini', 'a') as f: f.write(urls)
    m = run_setup('setup.py', stop_after='init').metadata
    assert m.project_urls=={'Source': 'https://host.example/o/n', 'Documentation': 'https://o.example/n'}
    found = links(m.long_description)
    images = {f'https://host.example/o/n/raw/HEAD/README_files/{o.name}' for o in (ROOT/'README_files').iterdir()}
    assert images <= {*found} and all('://' in o or o[0]=='#' for o in found)

def test_code_keeps_its_brackets(checkout):
    code = '```python\nmetrics[0](preds)\n```\n'
    (checkout/'README.md').write_text(f'{code}[page](a.md), [part](#part), [other](https://x.y)\n')
    text = run_setup('setup.py', stop_after='init').metadata.long_description
    assert text==f'{code}page, [part](#part), [other](https://x.y)\n'

def test_the_version_is_the_same_everywhere(checkout):
    version = run_setup('setup.py', stop_after='init').metadata.version
    assert version==fastai_mlmetrics.__version__
    assert re.search(rf'^version: {re.escape(version)}$', (ROOT/'CITATION.cff').read_text(), re.M)
    assert re.search(rf'^## {re.escape(version)}\b', (ROOT/'CHANGELOG.md').read_text(), re.M)

def test_classifiers_name_the_pythons_that_are_tested(checkout):
    names = run_setup('setup.py', stop_after='init').metadata.classifiers
    versions = {o.split()[-1] for o in names if re.search(r':: 3\.\d+$', o)}
    workflow = (ROOT/'.github'/'workflows'/'test.yaml').read_text()
    assert versions=={*re.findall(r'"(3\.\d+)"', re.search(r'python: \[.*\]', workflow)[0])}
