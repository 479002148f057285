"The site and the release: their contents, and errors that must fail the build"
import re, runpy, shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace
import pytest
import setuptools # whose distutils comes next
from distutils.core import run_setup

ROOT = Path(__file__).parent.parent
docs = SimpleNamespace(**runpy.run_path(str(ROOT/'tools'/'docs.py')))

# --- the site

def cell(source, kind='code', **directives):
    return SimpleNamespace(cell_type=kind, source=source, outputs=[], directives_=directives)

SOURCE = '''
class Counter:
    "Counts"
    def __init__(self,
        n:int=3, # How many | at most
        *,
        names=None, # What they are called
        f=len # What counts them
    ): pass
    @classmethod
    def of(cls,
        items, # What to count
        **kwargs # Of `Counter`
    ): "Made of `items`"
    def _private(self): pass

def total(
    *args # Numbers
)->float: # Their sum
    "Adds up"

def _helper(): pass
'''

@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path/'made_up.py').write_text(SOURCE) # comments are read from the file
    monkeypatch.syspath_prepend(tmp_path)
    res = ModuleType('fastai_mlmetrics.made_up')
    exec(compile(SOURCE, tmp_path/'made_up.py', 'exec'), vars(res))
    return res

def test_what_is_defined():
    assert [*docs.defined(cell(SOURCE))]==['Counter','Counter.of','total']
    assert [*docs.defined(cell('@patch(as_prop=True)\ndef best(self:Learner): pass'))]==['Learner.best']

def test_documented(module):
    text = docs.documented(module, 'Counter')
    assert '{py:class} Counter(n=3, *, names=None, f=len)\n:module: fastai_mlmetrics.made_up\n\nCounts\n' in text
    for row in (r'| `n` | `int` | How many \| at most |', '| `names` |  | What they are called |'): assert row in text
    text = docs.documented(module, 'Counter.of')
    assert '{py:method} Counter.of(items, **kwargs)' in text and ':classmethod:' in text and 'Of `Counter`' in text
    text = docs.documented(module, 'total')
    assert '{py:function} total(*args)' in text and '| **returns** | `float` | Their sum |' in text

def test_page(module):
    text = '# made up, of `total`\n\nSee `total` and `total()`, not `other`, [`total`](x.md).'
    cells = [cell(text, 'markdown'), cell('from x import *', export=''), cell(SOURCE, export=''),
             cell('def inside(): pass', exporti=''), cell('1+1', echo='false'), cell('2+2', slow='')]
    first,*shown,source,inside,quiet,slow = docs.page(cells, {'total': 'm.total'}, module)['cells']
    link = '{py:obj}`total <m.total>`'
    assert first['source']==f'# made up, of `total`\n\nSee {link} and {link}, not `other`, [`total`](x.md).'
    assert len(shown)==3 and source['metadata']['tags']==inside['metadata']['tags']==['hide-input']
    assert quiet['metadata']['tags']==['remove-input'] and slow['metadata']['tags']==[] and slow['source']=='2+2'

def test_every_notebook_is_a_page_without_its_directives():
    notebooks = {*(ROOT/'nbs').glob('*.ipynb'), *(ROOT/'nbs').glob('[!.]*/[!_.]*.ipynb')}
    assert {*docs.HOWTO, *docs.TUTORIALS, *docs.REFERENCE, ROOT/'nbs'/'index.ipynb'}==notebooks
    for notebook in (*docs.HOWTO, *docs.TUTORIALS, *docs.REFERENCE):
        cells = docs.read(notebook)
        assert re.match(r'# \w', cells[0].source), notebook
        assert not any('hide' in c.directives_ or c.source.startswith('#|') for c in cells)

def test_broken_links(tmp_path):
    (tmp_path/'a.html').write_text('<p id="here"></p><a href="#here">1</a><a href="b%20c.html#x">2</a>'
                                   '<a href="https://no.where">3</a><img src="data:,">')
    (tmp_path/'b c.html').write_text('<p id="x"></p><a href="a.html#there"></a><img src="gone.png">'
                                     '<a href="gone.html">2</a>')
    assert {*docs.broken_links(tmp_path)}=={'b c.html: a.html#there', 'b c.html: gone.png', 'b c.html: gone.html'}

def test_no_folder_of_others_is_emptied(tmp_path):
    (tmp_path/'mine').touch()
    with pytest.raises(SystemExit, match='holds something else'): docs.build(tmp_path)
    assert (tmp_path/'mine').exists()

# --- the release

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
