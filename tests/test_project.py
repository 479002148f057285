"The project's files agree with each other, and its release"
import ast, contextlib, fastai.vision.all, fastai_mlmetrics, importlib, io, pydoc, runpy, shutil
from configparser import ConfigParser
from helpers import *
import setuptools # whose distutils comes next
from distutils.core import run_setup

# The order in which wings may import each other stands in one place, the table of CONTRIBUTING.md
TABLE = re.findall(r'(?m)^\| (?:\*\*)?`(?:nbs/(\w+)/|(\d\d_\w+\.ipynb))`', (ROOT/'CONTRIBUTING.md').read_text())
NOT_WINGS = 'howto','reference','tutorials'
WINGS = [wing for wing,_ in TABLE if wing and wing not in NOT_WINGS] # From the ground up
ROOMS = [f'{wing}.{o.stem[3:]}' for wing in WINGS for o in sorted((ROOT/'nbs'/wing).glob('[0-9]*.ipynb'))] + ['demo']
SOURCES = {o: (ROOT/'fastai_mlmetrics'/f"{o.replace('.', '/')}.py").read_text() for o in ROOMS}
LINES_OF_A_ROOM = 300
LINES_OF_A_FUNCTION = 45

def test_what_is_to_be_changed_for_an_addition_exists(checkout):
    section = (ROOT/'CONTRIBUTING.md').read_text().split('## To add something')[1].split('\n## ')[0]
    for name in re.findall('`([^` ]+)`', section):
        if '/' in name: assert (ROOT/name).exists(), name
        elif name.endswith('.ipynb'): assert [*(ROOT/'nbs').rglob(name)], name
        elif name.isidentifier(): assert any(re.search(rf'\b{name}\b', o) for o in SOURCES.values()), name

def test_the_description_is_the_same_everywhere(checkout):
    text = run_setup('setup.py', stop_after='init').metadata.description
    for o in ('README.md','CITATION.cff'): assert text in (ROOT/o).read_text(), o

@pytest.mark.dev
def test_readme_is_rendered_from_the_index():
    pytest.importorskip('nbdev')
    files = runpy.run_path(ROOT/'tools'/'readme.py')['render']()
    for name,text in files.items():
        assert (ROOT/name).read_text()==text, f'{name} is stale: python tools/readme.py'

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

def broken_imports(room, source):
    "What `source` imports from this package although `room` may not: rooms below it, and private or unnamed things"
    above = {*ROOMS[:ROOMS.index(room)]}
    for o in ast.walk(ast.parse(source)):
        if isinstance(o, ast.Import): # Everything is imported by name
            yield from (a.name for a in o.names if a.name.startswith('fastai_mlmetrics.'))
        if not (isinstance(o, ast.ImportFrom) and (o.level or o.module.startswith('fastai_mlmetrics'))): continue
        module = absolute(o, room)
        for a in o.names:
            if not {module, f'{module}.{a.name}'} & above or a.name=='*' or a.name[0]=='_': yield f'{module}.{a.name}'

@pytest.mark.parametrize('room', ROOMS)
def test_a_room_imports_from_those_above_it_and_nothing_private(room):
    "So there are no circles either"
    assert not [*broken_imports(room, SOURCES[room])]

@pytest.mark.parametrize('line,found', [
    ('from ..thresholds.search import draw_folds', 'thresholds.search.draw_folds'), # a wing below
    ('from ..thresholds import search as _', 'thresholds.search'),
    ('from .ranking import LRAP', 'metrics.ranking.LRAP'), # a room below
    ('from .formulas import CF1', 'metrics.formulas.CF1'), # the room itself
    ('from ..core.rules import _private', 'core.rules._private'),
    ('from ..core.rules import *', 'core.rules.*'),
    ('from .. import demo', '.demo'),
    ('from fastai_mlmetrics.all import judge', 'all.judge'),
    ('import fastai_mlmetrics.core.rules', 'fastai_mlmetrics.core.rules'),
    ('def f():\n    from ..data.digits import multidigits', 'data.digits.multidigits')])
def test_an_import_against_the_rule_is_found(line, found):
    source = f'from ..core.rules import binarize\nfrom .streaming import CountsMetric\nimport fastai\n{line}'
    assert [*broken_imports('metrics.formulas', source)]==[found]

@pytest.mark.parametrize('room', ROOMS)
def test_private_attributes_are_used_in_their_own_room_alone(room):
    nodes = [*ast.walk(ast.parse(SOURCES[room]))]
    attributes = [o for o in nodes if isinstance(o, ast.Attribute) and re.match('_[a-z]', o.attr)]
    own = {o.name for o in nodes if isinstance(o, ast.FunctionDef)} | {
        o.attr for o in attributes if getattr(o.value, 'id', '') in ('self','cls')}
    assert {o.attr for o in attributes} <= own

def test_the_table_of_contributing_names_every_notebook():
    named,wing = [],None
    for folder,notebook in TABLE:
        wing = folder or wing
        if notebook: named.append(f'{wing}/{notebook}')
    assert named==[str(o.relative_to(ROOT/'nbs')) for wing in WINGS for o in sorted((ROOT/'nbs'/wing).glob('*.ipynb'))]
    folders = {o.name for o in (ROOT/'nbs').iterdir() if o.is_dir() and [*o.glob('*.ipynb')]}
    assert {*WINGS, *NOT_WINGS}==folders and len({*WINGS})==len(WINGS)

def test_each_room_has_a_name_of_its_own_wing():
    packages = {o.parent.name for o in (ROOT/'fastai_mlmetrics').glob('*/__init__.py')}
    assert packages=={*WINGS}
    assert {o for o in ROOMS if o.rpartition('.')[2] in WINGS}=={'learner.thresholds'} # of another wing
    modules = {f'{o.parent.name}.{o.stem}' for o in (ROOT/'fastai_mlmetrics').glob('*/[!_]*.py')}
    assert modules=={*ROOMS}-{'demo'}

def test_few_things_are_at_the_top_of_the_package():
    top = {o.stem for o in (ROOT/'fastai_mlmetrics').iterdir() if o.name!='__pycache__'}
    assert top=={*WINGS, 'all','demo','__main__','__init__','_modidx'} and len(top)<=12

def docstring_lines(tree):
    kinds = ast.Module,ast.ClassDef,ast.FunctionDef
    first = (o.body[0] for o in ast.walk(tree) if isinstance(o, kinds) and ast.get_docstring(o) is not None)
    return {i for o in first for i in range(o.lineno, o.end_lineno+1)}

def argument_lines(tree):
    functions = [o for o in ast.walk(tree) if isinstance(o, ast.FunctionDef)]
    return {i for o in functions for i in range(o.lineno+1, o.body[0].lineno)}

def long_texts(tree):
    nodes = [*ast.walk(tree)]
    texts = [o for o in nodes if isinstance(o, ast.Constant) and isinstance(o.value, str)]
    texts += [o for o in nodes if isinstance(o, ast.JoinedStr)] # Before Python 3.12, its constants span all of it
    return {i for o in texts if o.end_lineno-o.lineno>1 for i in range(o.lineno, o.end_lineno+1)}

@pytest.mark.parametrize('room', ROOMS)
def test_rooms_and_functions_are_short(room):
    "A room without comments, docstrings, documented arguments and long texts; a function with all of them"
    tree = ast.parse(SOURCES[room])
    lines = {i for i,o in enumerate(SOURCES[room].splitlines(), 1) if o.strip() and o.lstrip()[0]!='#'}
    code = lines - docstring_lines(tree) - argument_lines(tree) - long_texts(tree)
    assert len(code)<=LINES_OF_A_ROOM
    lengths = {o.name: o.end_lineno-o.lineno+1 for o in ast.walk(tree) if isinstance(o, ast.FunctionDef)}
    assert not {k: n for k,n in lengths.items() if n>LINES_OF_A_FUNCTION}

TREES = {room: ast.parse(source) for room,source in SOURCES.items()}
CLASSES = {o.name: room for room,tree in TREES.items() for o in tree.body if isinstance(o, ast.ClassDef)}

def test_classes_of_this_package_are_patched_where_they_are_defined():
    "So a class is whole once its module is imported"
    elsewhere = set()
    for room,tree in TREES.items():
        for f in tree.body:
            if not isinstance(f, ast.FunctionDef): continue
            if not any(ast.unparse(o).startswith('patch') for o in f.decorator_list): continue
            cls = ast.unparse(f.args.args[0].annotation)
            if CLASSES.get(cls, room)!=room: elsewhere.add(f'{room}: {cls}.{f.name}')
        # without `patch`: `Class.name = ...`
        names = (ast.unparse(o.targets[0]) for o in tree.body if isinstance(o, ast.Assign))
        elsewhere |= {f'{room}: {o}' for o in names if CLASSES.get(o.partition('.')[0], room)!=room}
    assert not elsewhere

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

ROOMS_WITH_EXAMPLES = 'formulas','losses','lists','imbalance','splitting','digits','ranking'
# In the order of their names; methods that several classes share are one
EXAMPLES = {o: name for name,o in sorted(functions().items(), reverse=True) if '\n\n    ' in inspect.getdoc(o)}

@pytest.mark.parametrize('name', [*EXAMPLES.values()])
def test_examples_in_docstrings_run_and_return_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.setenv('FASTAI_HOME', str(tmp_path))
    logits,targs = simulate(60, 3, density=0.3)
    names = ['cat','dog','cancer']
    scope = dict(globals(), logits=logits, targs=targs, names=names, preds=logits.sigmoid(), probs=logits.sigmoid(),
                 others=(logits+1).sigmoid())
    scope['interp'] = MultiLabelInterpretation.from_preds(scope['probs'], targs, vocab=names)
    learn = scope['learn'] = make_learner(logits, targs, multilabel_metrics(), path=tmp_path, vocab=names,
                                          cbs=ZeroLabelsCallback())
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

@pytest.mark.parametrize('line,passes', [('1/3 # 0.333', True), ('1/3 # 0.3', False), ("'a' # 'b'", False),
                                         ('[1, 2] # [1, 2]', True), ('1/3 # A third', True)])
def test_a_wrong_value_in_a_docstring_is_found(line, passes):
    def f(): ...
    f.__doc__ = f'Text\n\nMore\n\n    {line}'
    with contextlib.nullcontext() if passes else pytest.raises(AssertionError): run_example(f, {})

def extras():
    config = ConfigParser(delimiters=['='], interpolation=None)
    config.read(ROOT/'settings.ini')
    names = 'requirements','test_requirements','dev_requirements'
    return [[re.match(r'[\w-]+', o)[0] for o in config['DEFAULT'][k].split()] for k in names]

TESTS = {str(o.relative_to(ROOT)): ast.parse(o.read_text()) for o in sorted((ROOT/'tests').rglob('*.py'))}

# Packages that are imported by another name, or that come with fastai or torch
IMPORTED_AS = {'scikit-learn': 'sklearn', 'pillow': 'PIL', 'beautifulsoup4': 'bs4', 'ipython': 'IPython'}
WITH_OTHERS = 'torchvision','setuptools'

@pytest.mark.parametrize('file', TESTS)
def test_tests_begin_with_what_the_extra_test_installs(file):
    "What a file imports at its top; a test that needs more skips itself"
    package,test,_ = extras()
    known = {IMPORTED_AS.get(o, o) for o in package+test} | {*WITH_OTHERS, 'fastai_mlmetrics','benchmarks','distutils'}
    known |= {*sys.stdlib_module_names} | {o.stem for o in (ROOT/'tests').glob('*.py')}
    top = [o for o in TESTS[file].body if isinstance(o, (ast.Import,ast.ImportFrom))]
    names = {a.name for o in top if isinstance(o, ast.Import) for a in o.names}
    names |= {o.module for o in top if isinstance(o, ast.ImportFrom)}
    needs = {o.rpartition('.')[2] for o in names} & {'distributed','tensorboard','wandb','comet'}
    assert {o.partition('.')[0] for o in names} <= known
    assert needs <= {'distributed'} # Modules of fastai that need packages; accelerate is in `test`

@pytest.mark.parametrize('file', TESTS)
def test_what_is_skipped_without_a_package_is_marked(file):
    "`.ci/run` and the workflow run what is marked `dev` or `slow`, with all packages"
    def marked(o): return any(k in ast.unparse(o) for k in ('pytest.mark.dev','pytest.mark.slow'))
    def skips(o): return 'pytest.'+'importorskip(' in ast.unparse(o)
    body = TESTS[file].body
    whole = any(isinstance(o, ast.Assign) and ast.unparse(o)=='pytestmark = pytest.mark.dev' for o in body)
    tests = [o for o in body if isinstance(o, ast.FunctionDef) and o.name.startswith('test_')]
    assert whole or not [o.name for o in tests if skips(o) and not any(map(marked, o.decorator_list))]
    assert whole or not [o for o in body if not isinstance(o, ast.FunctionDef) and skips(o)]

def test_the_extras_are_what_setup_reads(checkout):
    package,test,dev = extras()
    found = run_setup('setup.py', stop_after='init')
    def names(reqs): return [re.match(r'[\w-]+', o)[0] for o in reqs]
    assert names(found.install_requires)==package
    assert {k: names(o) for k,o in found.extras_require.items()}==dict(test=test, dev=test+dev)
    assert len(test)<=10 and not {*test} & {*dev}

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
    assert 'https://host.example/o/n/raw/HEAD/nbs/images/warning.png' in found
    assert all('://' in o or o[0]=='#' for o in found)

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

def test_help_says_what_the_package_is():
    doc = inspect.getdoc(fastai_mlmetrics)
    code = [o.strip() for o in doc.splitlines() if o.startswith('    ')]
    assert len(code)==2 and 'metrics=multilabel_metrics(), cbs=ZeroLabelsCallback()' in code[1]
    dls = make_learner(*simulate(40, 20)).dls
    space = dict(globals(), dls=dls, vision_learner=lambda dls,arch,**kwargs: Learner(
        dls, nn.Identity(), loss_func=BCEWithLogitsLossFlat(), **kwargs))
    exec('\n'.join(code), space)
    assert space['learn'].zero_labels and max(map(len, doc.splitlines()))<=100
