"""Check the rules of CONTRIBUTING.md on the project's own files: `python tools/lint.py [RULE ...]`

Prints each violation with its file and line, and exits with 1 if there are any. Needs Python alone. A RULE is one of
the functions in `RULES`; without any, all are checked."""
import ast, json, re, sys
from configparser import ConfigParser
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NBS,PACKAGE = ROOT/'nbs',ROOT/'fastai_mlmetrics'

@cache
def text_of(path): return path.read_text(encoding='utf-8')

CONTRIBUTING = text_of(ROOT/'CONTRIBUTING.md')
# The order in which wings may import each other stands in one place, the table of CONTRIBUTING.md
TABLE = re.findall(r'(?m)^\| (?:\*\*)?`nbs/(\w+)/`', CONTRIBUTING)
NOT_WINGS = 'howto','reference','tutorials'
WINGS = [wing for wing in TABLE if wing not in NOT_WINGS] # From the ground up
ROOMS = [f'{wing}.{o.stem[3:]}' for wing in WINGS for o in sorted((NBS/wing).glob('[0-9]*.ipynb'))] + ['demo']
NOTEBOOKS = sorted(NBS.glob('**/[!.]*.ipynb'))
PAGES = [o for o in NOTEBOOKS if o.parent.name in NOT_WINGS or o.stem=='index']
TESTS = sorted((ROOT/'tests').rglob('*.py'))

def path_of(room): return PACKAGE/f"{room.replace('.', '/')}.py"

@cache
def tree_of(path): return ast.parse(text_of(path))

@cache
def cells_of(notebook): return json.loads(text_of(notebook))['cells']

def source_of(notebook, kind):
    return '\n'.join(''.join(o['source']) for o in cells_of(notebook) if o['cell_type']==kind)

def line_of(path, part):
    "The number of the first line of a file that contains `part`; in a notebook, as JSON writes it"
    if path.suffix=='.ipynb': part = json.dumps(part, ensure_ascii=False)[1:-1]
    return text_of(path).partition(part)[0].count('\n')+1

# Modules

ROOM_LINES = 300
FUNCTION_LINES = 45

def imported_module(node, room):
    "The module that an import within this package is from, such as 'core.inputs'"
    if not node.level: return node.module.removeprefix('fastai_mlmetrics').lstrip('.')
    above = room.split('.')[:-node.level]
    return '.'.join([*above, *filter(None, [node.module])])

def broken_imports(room, tree):
    "What is imported from this package although `room` may not: rooms below it, private names, whole modules"
    above = {*ROOMS[:ROOMS.index(room)]}
    for o in ast.walk(tree):
        if isinstance(o, ast.Import):
            for a in o.names:
                if a.name.startswith('fastai_mlmetrics.'): yield o.lineno,a.name
        elif isinstance(o, ast.ImportFrom) and (o.level or o.module.startswith('fastai_mlmetrics')):
            module = imported_module(o, room)
            for a in o.names:
                is_above = module in above or f'{module}.{a.name}' in above
                if not is_above or a.name=='*' or a.name[0]=='_': yield o.lineno,f'{module}.{a.name}'

def imports():
    "A room imports by name, from rooms above it in the table, and nothing private"
    for room in ROOMS:
        for line,name in broken_imports(room, tree_of(path_of(room))): yield path_of(room),line,name

def private_attributes():
    "Private attributes are used in their own room alone"
    for path in map(path_of, ROOMS):
        nodes = [*ast.walk(tree_of(path))]
        attributes = [o for o in nodes if isinstance(o, ast.Attribute) and re.match('_[a-z]', o.attr)]
        own = {o.name for o in nodes if isinstance(o, ast.FunctionDef)}
        own |= {o.attr for o in attributes if getattr(o.value, 'id', '') in ('self','cls')}
        own |= {'_orig_before_fit'} # Where fastcore's `patch` keeps a method
        for o in attributes:
            if o.attr not in own: yield path,o.lineno,o.attr

def uncounted_lines(tree):
    "The lines of docstrings, documented arguments and texts of three lines and more"
    nodes = [*ast.walk(tree)]
    documented = [o for o in nodes if isinstance(o, (ast.Module,ast.ClassDef,ast.FunctionDef))]
    parts = [o.body[0] for o in documented if ast.get_docstring(o) is not None]
    texts = [o for o in nodes if isinstance(getattr(o, 'value', None), str) or isinstance(o, ast.JoinedStr)]
    parts += [o for o in texts if o.end_lineno-o.lineno>1]
    ranges = [range(o.lineno, o.end_lineno+1) for o in parts]
    ranges += [range(o.lineno+1, o.body[0].lineno) for o in nodes if isinstance(o, ast.FunctionDef)]
    return {line for lines in ranges for line in lines}

def sizes():
    "A room has at most 300 lines of code, a function 45"
    for path in map(path_of, ROOMS):
        code = {i for i,o in enumerate(text_of(path).splitlines(), 1) if o.strip() and o.lstrip()[0]!='#'}
        n = len(code-uncounted_lines(tree_of(path)))
        if n>ROOM_LINES: yield path,1,f'{n} lines of code, at most {ROOM_LINES}'
        for o in ast.walk(tree_of(path)):
            if isinstance(o, ast.FunctionDef) and o.end_lineno-o.lineno>=FUNCTION_LINES:
                yield path,o.lineno,f'`{o.name}` has {o.end_lineno-o.lineno+1} lines, at most {FUNCTION_LINES}'

def patches():
    "A class of this package is patched in its own room, so it is whole once that is imported"
    rooms = {o.name: room for room in ROOMS for o in tree_of(path_of(room)).body if isinstance(o, ast.ClassDef)}
    for room in ROOMS:
        for o in tree_of(path_of(room)).body:
            patched = ''
            if isinstance(o, ast.FunctionDef) and any(ast.unparse(d).startswith('patch') for d in o.decorator_list):
                patched = ast.unparse(o.args.args[0].annotation)
            elif isinstance(o, ast.Assign): patched = ast.unparse(o.targets[0]).partition('.')[0] # `Class.name = ...`
            if rooms.get(patched, room)!=room: yield path_of(room),o.lineno,f'{patched} is of {rooms[patched]}'

def layout():
    "The table of CONTRIBUTING.md names each folder, and the package has a module for each notebook, and no more"
    table = ROOT/'CONTRIBUTING.md'
    folders = {o.parent.name for o in NOTEBOOKS}-{'nbs'}
    for o in folders ^ {*WINGS, *NOT_WINGS}: yield table,line_of(table, f'nbs/{o}/'),f'nbs/{o}'
    modules = {f'{o.parent.name}.{o.stem}' for o in PACKAGE.glob('*/[!_]*.py')}
    for o in modules ^ {*ROOMS}-{'demo'}: yield path_of(o),1,'a module without a notebook, or the other way round'
    top = {o.stem for o in PACKAGE.iterdir()}-{'__pycache__'}
    for o in top - {*WINGS, 'all','demo','__main__','__init__','_modidx'}: yield PACKAGE/o,1,'at the top of the package'

# Texts

def widths():
    "A line of code has at most 103 columns in notebooks and modules, of tests and tools 120"
    for notebook in NOTEBOOKS:
        for line in source_of(notebook, 'code').split('\n'):
            if len(line)>103: yield notebook,line_of(notebook, line),f'{len(line)} columns, at most 103'
    files = [(PACKAGE/f'{o}.py', 103) for o in ('all','__main__','__init__')]
    files += [(o, 120) for folder in ('tests','tools','benchmarks') for o in (ROOT/folder).rglob('*.py')]
    for path,width in files:
        for i,line in enumerate(text_of(path).split('\n'), 1):
            if len(line)>width: yield path,i,f'{len(line)} columns, at most {width}'

def outputs():
    "Saved outputs are small, without paths of a machine, and those of Jupyter, not a terminal's progress bars"
    for notebook in NOTEBOOKS:
        if len(text_of(notebook))>=500_000: yield notebook,1,'500 kB or more'
        text = json.dumps([o.get('outputs') for o in cells_of(notebook)]).replace(r'\\', '')
        for o in re.findall(r'site-packages|/tmp/|/home/|\\r|'+re.escape(str(ROOT)), text):
            yield notebook,line_of(notebook, o),f'{o} in an output'

# Numbers that no output can show: versions, levels and rules, and what others have measured
ELSEWHERE = {'index': '3.10 95%', '02_fastbook': '0.76 0.98',
             '10_monitor_trackers': '0.5',
             '30_predicts_nothing': '0.5 0.95', '05_production': '2.6', '01_metrics': '0.5 0.8 80%',
             '04_callback': '0.5 1% 0.15', '06_terms': '0.5 95%'}

def prose(page):
    "The text of a page, without code and addresses"
    return re.sub(r'```.*?```|`[^`]*`|(?<=\])\([^)]*\)', ' ', source_of(page, 'markdown'), flags=re.S)

@cache
def numbers(notebook):
    "The numbers in code and outputs; a percentage also as a share"
    cells = [o for o in cells_of(notebook) if o['cell_type']=='code']
    shown = [{k: v for k,v in output.get('data', output).items() if k!='image/png'}
             for o in cells for output in o['outputs']]
    text = source_of(notebook, 'code')+json.dumps(shown)
    found = {float(o) for o in re.findall(r'(?<![\w.])\d*\.?\d+', text)}
    return found | {int(o)/100 for o in re.findall(r'(\d+)%', text)}

def quoted_numbers():
    "A number in the prose is, rounded, one of the outputs of the page or of a module that it links to"
    for page in PAGES:
        modules = re.findall(r'\]\((?:nbs|\.\.)/((?!howto|reference|tutorials)\w+/\d\d_\w+\.ipynb)', text_of(page))
        shown = numbers(page).union(*(numbers(NBS/o) for o in modules))
        decimals = re.findall(r'(?<![\w.])\d*\.\d+(?![\w.]*\d)', prose(page))
        quotes = [(o, float(o), len(o.partition('.')[2])) for o in decimals]
        quotes += [(f'{o}%', int(o)/100, 2) for o in re.findall(r'(?<![\w.,])(\d+) ?%(?! interval)', prose(page))]
        for quote,value,digits in quotes:
            is_shown = any(abs(o-value)<=0.5*10**-digits+1e-9 for o in shown)
            if not is_shown and quote not in ELSEWHERE.get(page.stem, '').split():
                yield page,line_of(page, quote),f'{quote} is in no output'

def links():
    "Links to files lead somewhere"
    for page in PAGES:
        folder = ROOT if page.stem=='index' else page.parent # The README lies there
        for link in re.findall(r'\]\(([^)#:]+)[^):]*\)', source_of(page, 'markdown')):
            if not (folder/link).exists(): yield page,line_of(page, link),link

def lengths():
    "A how-to page has a title, a summary and under 600 words; README and first tutorial take a quarter of an hour"
    for page in (NBS/'howto').glob('*.ipynb'):
        text = source_of(page, 'markdown')
        if not re.match(r'# .+\n\n> .+', text): yield page,1,'no title, or no summary'
        n = len(re.findall(r"\w[\w.'-]*", text))
        if n>=600: yield page,1,f'{n} words'
        if len(text_of(page))>=80_000: yield page,1,'80 kB or more'
    first = NBS/'index.ipynb',NBS/'tutorials'/'01_start.ipynb'
    n = sum(len(prose(o).split()) for o in first)
    if n>=1800: yield first[1],1,f'{n} words with those of the README'
    readme = ROOT/'README.md'
    n = len(text_of(readme).split())
    if n>700: yield readme,1,f'{n} words'

def assigned(path, name):
    "The constant that a module assigns to `name`"
    nodes = [o for o in tree_of(path).body if isinstance(o, ast.Assign) and ast.unparse(o.targets[0])==name]
    return ast.literal_eval(nodes[0].value)

def listed_pages():
    "`TASKS` lists each how-to page once; the index entries in `TERMS` are of pages"
    path = ROOT/'tools'/'docs.py'
    listed = ' '.join(assigned(path, 'TASKS').values()).split()
    for o in (NBS/'howto').glob('*.ipynb'):
        if listed.count(o.stem[:2])!=1: yield path,line_of(path, 'TASKS = '),f'{o.name} is not listed once'
    known = [str(o.relative_to(NBS).with_suffix('')) for o in PAGES]
    known += [str(o.relative_to(ROOT).with_suffix('')) for o in (*ROOT.glob('*.md'), *ROOT.glob('benchmarks/*.md'))]
    for o in assigned(path, 'TERMS'):
        if o.partition('#')[0] not in known: yield path,line_of(path, f"'{o}'"),f'there is no page {o}'

def additions():
    "What CONTRIBUTING.md says to change for an addition exists"
    path,sources = ROOT/'CONTRIBUTING.md','\n'.join(text_of(path_of(o)) for o in ROOMS)
    section = CONTRIBUTING.split('## To add something')[1].split('\n## ')[0]
    for name in re.findall('`([^` ]+)`', section):
        if '/' in name: exists = (ROOT/name).exists()
        elif name.endswith('.ipynb'): exists = any(o.name==name for o in NOTEBOOKS)
        else: exists = not name.isidentifier() or re.search(rf'\b{name}\b', sources)
        if not exists: yield path,line_of(path, f'`{name}`'),name

# Tests

# Packages that are imported by another name, or that come with fastai or torch
IMPORTED_AS = {'scikit-learn': 'sklearn', 'pillow': 'PIL', 'beautifulsoup4': 'bs4', 'ipython': 'IPython'}
WITH_OTHERS = 'torchvision','setuptools','fastai_mlmetrics','benchmarks','distutils'
NEED_MORE = 'tensorboard','wandb','comet' # modules of fastai

def settings():
    parser = ConfigParser(delimiters=['='], interpolation=None)
    parser.read(ROOT/'settings.ini', encoding='utf-8')
    return parser['DEFAULT']

def test_imports():
    "A test file imports at its top only what the extra `test` installs; a test that needs more skips itself"
    packages = (settings()['requirements']+' '+settings()['test_requirements']).split()
    names = [re.match(r'[\w-]+', o)[0] for o in packages]
    known = {IMPORTED_AS.get(o, o) for o in names} | {*WITH_OTHERS} | {*sys.stdlib_module_names}
    known |= {o.stem for o in TESTS if o.parent.name=='tests'}
    for path in TESTS:
        for o in tree_of(path).body:
            modules = [a.name for a in o.names] if isinstance(o, ast.Import) else []
            if isinstance(o, ast.ImportFrom): modules = [o.module]
            for name in modules:
                if name.partition('.')[0] not in known or name.rpartition('.')[2] in NEED_MORE: yield path,o.lineno,name

def is_skip(node): return any(isinstance(o, ast.Attribute) and o.attr=='importorskip' for o in ast.walk(node))

def marks():
    "A test that is skipped without a package is marked `dev` or `slow`, so the workflow runs it with all packages"
    for path in TESTS:
        body = tree_of(path).body
        if any(ast.unparse(o)=='pytestmark = pytest.mark.dev' for o in body): continue
        for o in filter(is_skip, body):
            if isinstance(o, ast.FunctionDef) and not o.name.startswith('test_'): continue # Whose caller is marked
            decorators = map(ast.unparse, getattr(o, 'decorator_list', ()))
            if not any(re.match(r'pytest\.mark\.(dev|slow)\b', d) for d in decorators):
                yield path,o.lineno,'`importorskip` without the mark `dev` or `slow`'

# Release

def release():
    "Version and description are those of settings.ini, the Pythons those that the workflow tests"
    version,description = settings()['version'],settings()['description']
    expected = [('fastai_mlmetrics/__init__.py', version), ('CITATION.cff', f'\nversion: {version}\n'),
                ('CHANGELOG.md', f'\n## {version}'), ('README.md', description), ('CITATION.cff', description)]
    for name,text in expected:
        if text not in text_of(ROOT/name): yield ROOT/name,1,f'{text.strip()!r} is missing'
    named = re.findall(r'Python :: (3\.\d+)', settings()['classifiers'])
    workflow = ROOT/'.github'/'workflows'/'test.yaml'
    tested = re.findall(r'"(3\.\d+)"', re.search(r'python: \[.*\]', text_of(workflow))[0])
    if named!=tested: yield workflow,line_of(workflow, 'python: ['),f'tests {tested}, settings.ini has {named}'

RULES = [imports, private_attributes, sizes, patches, layout, widths, outputs, quoted_numbers, links, lengths,
         listed_pages, additions, test_imports, marks, release]

if __name__=='__main__':
    n = 0
    for rule in RULES:
        if sys.argv[1:] and rule.__name__ not in sys.argv[1:]: continue
        for path,line,what in rule():
            print(f'{path.relative_to(ROOT)}:{line}: {what} ({rule.__doc__})')
            n += 1
    print(f'{n} violations')
    sys.exit(bool(n))
