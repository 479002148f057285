"""Builds the site of README, tutorials, how-to pages and reference: `python tools/docs.py [FOLDER]` (build/site)

Made of the notebooks as they were saved; nothing in them is run. A heading `### NAME` of the reference, and a cell that
exports names, is followed by their documentation from the package. Any warning fails the build, and so does a link
within the site that leads nowhere."""
import argparse, ast, inspect, json, re, shutil, sys, tempfile
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit
from bs4 import BeautifulSoup
from fastcore.docments import docments
from nbdev.process import NBProcessor
from nbdev.processors import clean_magics, hide_line, rm_header_dash, strip_ansi
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT/'nbs'
HOWTO,TUTORIALS,REFERENCE,MODULES = (sorted(NBS.glob(f'{o}*.ipynb')) for o in
                                     ('howto/[!_.]','tutorials/[!_.]','reference/[!_.]','[0-9]'))
PAGES = [ROOT/'CONTRIBUTING.md', *sorted(ROOT.glob('benchmarks/*.md')), ROOT/'CHANGELOG.md']
FILES = [*PAGES, *ROOT.glob('benchmarks/*.png'), *NBS.glob('images/*.png')]
EXPLAIN = '01_forum_thread','03_whose_accuracy'

# The kinds of pages, each with a page that lists them: file -> title, what for, pages
KINDS = dict(
    start=('Start', 'Train, read the message, tune, test.',
           [o for o in TUTORIALS if o.stem not in EXPLAIN]),
    howto=('How to', 'One task per page, with code to copy.', HOWTO),
    reference=('Reference', 'Each name, column and message.', REFERENCE),
    explanations=('Explanations', 'Why accuracy misleads, and what the numbers mean.',
                  [o for o in TUTORIALS if o.stem in EXPLAIN]),
    making=('How it is made', 'For contributors: the notebooks that the package is generated from, with the '
            'source folded, and benchmarks.', [*MODULES, *PAGES]))

config = ConfigParser(interpolation=None)
config.read(ROOT/'settings.ini', encoding='utf-8')
settings = config['DEFAULT']

def read(notebook):
    "The notebook's cells after nbdev's processing, each with its directives"
    nb = NBProcessor(notebook, procs=[hide_line, strip_ansi, clean_magics, rm_header_dash], process=True).nb
    return [o for o in nb.cells if o.source.strip() and not {'hide','default_exp'} & {*o.directives_}]

def defined(cell):
    "The public functions, classes and class methods of an exported cell; `Learner.thresh_find` where it is patched in"
    for o in ast.parse(cell.source).body:
        if isinstance(o, ast.Assign) and ast.unparse(o.value).startswith('_function_of('): yield o.targets[0].id
        if not isinstance(o, (ast.FunctionDef,ast.ClassDef)) or o.name[0]=='_': continue
        patch = any(ast.unparse(d).startswith('patch') for d in o.decorator_list)
        yield f'{ast.unparse(o.args.args[0].annotation)}.{o.name}' if patch else o.name
        for m in o.body if isinstance(o, ast.ClassDef) else ():
            if 'classmethod' in map(ast.unparse, getattr(m, 'decorator_list', [])): yield f'{o.name}.{m.name}'

def signature(docs):
    "The arguments that `docs` documents, with their defaults"
    star = {inspect.Parameter.VAR_POSITIONAL: '*', inspect.Parameter.VAR_KEYWORD: '**'}
    res = []
    for k,v in docs.items():
        if v.kind is v.kind.KEYWORD_ONLY and not any(o[0]=='*' for o in res): res.append('*')
        value = getattr(v.default, '__name__', type(v.default).__name__) if callable(v.default) else repr(v.default)
        res.append(star.get(v.kind, '')+k + ('' if v.default is inspect._empty else f'={value}'))
    return f"({', '.join(res)})"

def table(docs, returns):
    "The arguments in a table, and what is returned"
    def kind(o): # a default of None says nothing
        if o in (inspect._empty, None, type(None)): return ''
        return f"`{o.__name__ if isinstance(o, type) else str(o).replace('typing.', '')}`"
    rows = [(f'`{k}`', v) for k,v in docs.items()] + [('**returns**', o) for o in returns if o.docment]
    def text(o): return re.sub(r'\s+', ' ', o or '').replace('|', r'\|')
    cells = [map(text, (name, kind(v.anno), v.docment)) for name,v in rows]
    return ['| | Type | |', '|---|---|---|', *(f"| {' | '.join(o)} |" for o in cells)] if cells else []

def module_of(o): return getattr(o, 'fget', o).__module__ # A property has none itself
def doc_of(o): return (inspect.getdoc(o) or '').partition('\n\nArguments:')[0] # These have a table
def summary_of(o): return doc_of(o).partition('\n\n')[0]

def documented(o, name, *options):
    "A signature, the docstring and a table of the arguments, as a directive of Sphinx"
    is_class,is_prop,is_cls_method = isinstance(o, type),isinstance(o, property),inspect.ismethod(o)
    f = o.__init__ if is_class else o.fget if is_prop else o.__func__ if is_cls_method else o
    ours = getattr(f, '__module__', '').startswith(settings['lib_name'])
    docs = {k: v for k,v in docments(f, full=True, args_kwargs=True).items() if k not in ('self','cls')} if ours else {}
    returns = [docs.pop('return')] if 'return' in docs else []
    kind = 'class' if is_class else 'property' if is_prop else 'method' if '.' in name else 'function'
    return '\n'.join([f"````{{py:{kind}}} {name}{'' if is_prop else signature(docs)}", f':module: {module_of(o)}',
                      *[':classmethod:']*is_cls_method, *options, '', doc_of(o), '', *table(docs, returns), '````'])

def linked(text, names):
    "`text` with the public names in it linked to where they are documented"
    parts = re.split(r'(?ms)(^```.*?^```|\[[^\]]*\]\([^)]*\)|^#.*?$)', text)
    link = lambda m: f'{{py:obj}}`{m[1]} <{names[m[1]]}>`' if m[1] in names else m[0]
    return ''.join(o if i%2 else re.sub(r'(?<!`)`([\w.]+)(?:\(\))?`(?!`)', link, o) for i,o in enumerate(parts))

def subject(cell):
    "The name that a cell of the reference documents; None: it documents none"
    found = re.match(r'### ([\w.]+)$', cell.source, re.M) if cell.cell_type=='markdown' else None
    return found and found[1]

def page(cells, names, objects, elsewhere=None):
    "The notebook that MyST-NB reads; `elsewhere`: names that another page documents; None: all are documented here"
    res = []
    def add(kind, source, outputs=(), tags=()):
        extra = dict(outputs=list(outputs), execution_count=None) if kind=='code' else {}
        res.append(dict(cell_type=kind, source=source, metadata=dict(tags=list(tags)), **extra))
    for c in cells:
        if elsewhere is None and (name:=subject(c)):
            heading,_,text = c.source.partition('\n\n')
            doc = documented(objects[name], name, ':no-contents-entry:')
            add('markdown', f'{heading}\n\n{doc}\n\n{linked(text, names)}')
        elif c.cell_type=='markdown': add('markdown', linked(c.source, names))
        elif {'export','exporti'} & {*c.directives_}:
            if all(isinstance(o, (ast.Import,ast.ImportFrom)) for o in ast.parse(c.source).body): continue
            if 'export' in c.directives_: # Not of internals, which are `exporti`
                for name in defined(c):
                    link = f'{{py:obj}}`{name} <{names.get(name)}>`: {summary_of(objects[name])}'
                    add('markdown', link if name in elsewhere else documented(objects[name], name))
            add('code', c.source, c.outputs, ['hide-input'])
        else: add('code', c.source, c.outputs, ['remove-input'] if c.directives_.get('echo')=='false' else [])
    kernel = dict(name='python3', display_name='Python 3', language='python')
    return dict(cells=res, metadata=dict(kernelspec=kernel), nbformat=4, nbformat_minor=4)

def toctree(files, *options):
    return '\n'.join(['```{toctree}', ':hidden:', *options, '', *map(str, files), '```'])

def contents(kind, cells, names, objects):
    "The page that lists the pages of a kind; for the reference also all names, by task"
    title,text,files = KINDS[kind]
    pages,tables = [],[]
    for o in files:
        first = cells[o][0].source if o in cells else o.read_text(encoding='utf-8')
        link = f'[{re.match("# (.*)", first)[1]}]({o.relative_to(ROOT)})'
        summary = re.search(r'^> (.*)', first, re.M)
        pages.append(f'- {link}' + (f': {summary[1]}' if summary else ''))
        rows = [f'| {{py:obj}}`{n} <{names[n]}>` | {summary_of(objects[n])} |'
                for n in filter(None, map(subject, cells.get(o, ())))] if kind=='reference' else []
        if rows: tables += [f'## {link}', '\n'.join(['| name | |', '|---|---|', *rows])]
    index = ['All names by task; {ref}`by letter <genindex>`.'] if tables else []
    tree = toctree([o.relative_to(ROOT).with_suffix('') for o in files], ':titlesonly:')
    return '\n\n'.join([f'# {title}', text, '\n'.join(pages), *index, *tables, tree])

DOORS = '\n'.join(['```{container} doors', *(f'- [**{title}**]({k}.md) {text}' for k,(title,text,_) in
                                           [*KINDS.items()][:4]), '```'])

def sources(folder):
    "Write what Sphinx reads, laid out as the repository is, so that relative links hold in both"
    cells = {o: read(o) for o in [NBS/'index.ipynb', *HOWTO, *TUTORIALS, *REFERENCE, *MODULES]}
    modules = {o: import_module(f"{settings['lib_name']}.{o.stem.split('_', 1)[1]}") for o in MODULES}
    scope = {k: v for module in modules.values() for k,v in vars(module).items()}
    documents = [name for o in REFERENCE for name in filter(None, map(subject, cells[o]))]
    objects = {name: eval(name, vars(modules[o])) for o in MODULES for c in cells[o] if 'export' in c.directives_
               for name in defined(c)}
    objects |= {name: eval(name, scope) for name in documents if name not in objects}
    names = {k: f'{module_of(o)}.{k}' for k,o in objects.items()}
    links = names | {k.replace('Learner.', 'learn.'): v for k,v in names.items()}
    for o,found in cells.items():
        dest = folder/('index.ipynb' if o.stem=='index' else o.relative_to(ROOT))
        dest.parent.mkdir(parents=True, exist_ok=True)
        nb = page(found, links, objects, documents if o in modules else None)
        if o.stem!='index': # the front page is one folder higher here
            for c in nb['cells']: c['source'] = re.sub(r'\]\(((\.\./)*index\.ipynb)', r'](../\1', c['source'])
        else:
            nb['cells'].insert(1, dict(cell_type='markdown', metadata={}, source=DOORS))
            nb['cells'].append(dict(cell_type='markdown', metadata={}, source=toctree(KINDS)))
        dest.write_text(json.dumps(nb), encoding='utf-8')
    for kind in KINDS: (folder/f'{kind}.md').write_text(contents(kind, cells, names, objects), encoding='utf-8')
    (folder/'_static').mkdir()
    shutil.copy(ROOT/'tools'/'docs.css', folder/'_static')
    for o in FILES:
        (folder/o.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(o, folder/o.relative_to(ROOT))

CONF = dict(
    project=settings['lib_name'], author=settings['author'], version=settings['version'],
    extensions=['myst_nb','sphinx_copybutton'], nb_execution_mode='off',
    nb_code_prompt_show='Source', nb_code_prompt_hide='Source',
    myst_heading_anchors=3, nitpicky=True, add_module_names=False, toc_object_entries_show_parents='hide',
    copybutton_selector='div.cell_input pre, div.highlight-sh pre, div.highlight-python pre',
    html_theme='furo', html_static_path=['_static'], html_css_files=['docs.css'],
    html_title=f"{settings['lib_name']} {settings['version']}", html_copy_source=False,
    html_show_sphinx=False, html_show_copyright=False,
    html_baseurl=settings.get('doc_host', ''))

def broken_links(site):
    "The links within the built `site` that lead nowhere"
    pages = {o: BeautifulSoup(o.read_text(encoding='utf-8'), 'html.parser') for o in site.rglob('*.html')}
    ids = {o: {t.get('id') for t in page.find_all(id=True)} for o,page in pages.items()}
    for file,page in pages.items():
        for tag in page.find_all(['a','img','link','script']):
            url = urlsplit(tag.get('href') or tag.get('src') or '')
            if url.scheme or url.netloc: continue
            dest = (file.parent/unquote(url.path)).resolve() if url.path else file
            if not dest.exists() or (url.fragment and dest in ids and unquote(url.fragment) not in ids[dest]):
                yield f'{file.relative_to(site)}: {url.geturl()}'

def build(site):
    "Build the site into the folder `site`; the number of problems"
    if site.exists():
        if not (site/'.buildinfo').exists(): sys.exit(f'{site} holds something else: give another folder')
        shutil.rmtree(site)
    with tempfile.TemporaryDirectory() as tmp:
        sources(src := Path(tmp).resolve()/'src')
        app = Sphinx(src, None, site, Path(tmp)/'doctrees', 'html', CONF, status=None, warningiserror=True)
        app.build()
    broken = sorted({*broken_links(site)})
    for o in broken: print(f'broken link in {o}', file=sys.stderr)
    return app.statuscode or len(broken)

if __name__=='__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('site', nargs='?', type=Path, default=ROOT/'build'/'site', help='the folder to build into')
    site = parser.parse_args().site.resolve()
    if build(site): sys.exit(1)
    print(f'{site}/index.html')
