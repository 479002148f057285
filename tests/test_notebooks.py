"Every notebook runs, its lines fit on a page, and its outputs are small and hold no path of a machine"
import json
from helpers import *

NOTEBOOKS = {str(o.relative_to(ROOT/'nbs')): o for o in sorted((ROOT/'nbs').glob('**/[!.]*.ipynb'))}
each_notebook = pytest.mark.parametrize('notebook', NOTEBOOKS.values(), ids=NOTEBOOKS)

def runs(notebook):
    from nbdev.config import get_config
    from nbdev.test import test_nb
    os.chdir(ROOT)
    return test_nb(notebook, skip_flags=get_config().tst_flags.split())[0]

@pytest.mark.slow
@each_notebook
def test_a_notebook_runs(notebook):
    "In a process of its own: notebooks patch classes, and accelerate and Lightning keep state"
    pytest.importorskip('nbdev')
    assert in_process(runs, notebook), f'{notebook.name} failed: see above'

@each_notebook
def test_lines_of_code_fit_on_a_page(notebook):
    for cell in json.loads(notebook.read_text())['cells']:
        if cell['cell_type']=='code':
            for line in ''.join(cell['source']).splitlines(): assert len(line)<=103, line

@each_notebook
def test_outputs_are_small_and_of_no_machine(notebook):
    "And those of Jupyter, without the progress bars of a terminal"
    text = notebook.read_text()
    outputs = json.dumps([o.get('outputs') for o in json.loads(text)['cells']]).replace(r'\\', '')
    assert len(text)<500_000 and r'\r' not in outputs
    assert not re.search(r'site-packages|/tmp/|/home/', outputs) and str(ROOT) not in outputs

PAGES = {k: o for k,o in NOTEBOOKS.items()
         if k.partition('/')[0] in ('howto','reference','tutorials','index.ipynb')}
each_page = pytest.mark.parametrize('page', PAGES.values(), ids=PAGES)

# Numbers that no output can show: versions, levels and rules, and what others have measured
ELSEWHERE = {'index': '3.10 4.7 0.07 0.17 1.6', '02_forum_thread': '0.96', '03_whose_accuracy': '1.6 0.76 0.62',
             '10_monitor_trackers': '0.5', '05_production': '2.6', '02_ranking': '0.5',
             '09_messages': '0.5 1%', '08_terms': '0.8 80% 95%'}

def prose(page):
    "The text of `page`, without code and addresses"
    text = '\n'.join(''.join(o['source']) for o in json.loads(page.read_text())['cells'] if o['cell_type']=='markdown')
    return re.sub(r'```.*?```|`[^`]*`|(?<=\])\([^)]*\)', ' ', text, flags=re.S)

def shown(page):
    "The numbers in code and outputs of `page` and of modules that it links to; a percentage also as a share"
    modules = re.findall(r'\]\((?:nbs|\.\.)/((?!howto|reference|tutorials)\w+/\d\d_\w+\.ipynb)', page.read_text())
    cells = [o for p in (page, *(ROOT/'nbs'/o for o in modules)) for o in json.loads(p.read_text())['cells']]
    cells = [o for o in cells if o['cell_type']=='code']
    for o in cells:
        for output in o['outputs']: output.get('data', {}).pop('image/png', None)
    text = ' '.join(''.join(o['source'])+json.dumps(o['outputs']) for o in cells)
    return np.array([float(o) for o in re.findall(r'(?<![\w.])\d*\.?\d+', text)] +
                    [int(o)/100 for o in re.findall(r'(\d+)%', text)])

@each_page
def test_numbers_in_prose_are_those_of_the_outputs(page):
    "Rounded as the prose has them; a percentage may be a share in the output"
    text,numbers = prose(page),shown(page)
    quoted = [(o, float(o), len(o.partition('.')[2])) for o in re.findall(r'(?<![\w.])\d*\.\d+(?![\w.]*\d)', text)]
    quoted += [(f'{o}%', int(o)/100, 2) for o in re.findall(r'(?<![\w.,])(\d+) ?%(?! interval)', text)]
    missing = [quote for quote,value,digits in quoted if not (abs(numbers-value)<=0.5*10**-digits+1e-9).any()]
    assert not {*missing} - {*ELSEWHERE.get(page.stem, '').split()}

@each_page
def test_links_to_files_lead_somewhere(page):
    text = '\n'.join(''.join(o['source']) for o in json.loads(page.read_text())['cells'] if o['cell_type']=='markdown')
    folder = ROOT if page.stem=='index' else page.parent # the README lies there
    for link in re.findall(r'\]\(([^)#:]+)[^):]*\)', text): assert (folder/link).exists(), link

def test_the_first_two_pages_take_a_quarter_of_an_hour():
    "At 200 words a minute, beside the code"
    readme = (ROOT/'README.md').read_text()
    assert len(readme.split())<=700
    assert len(prose(PAGES['index.ipynb']).split())+len(prose(PAGES['tutorials/01_trust.ipynb']).split())<1800
