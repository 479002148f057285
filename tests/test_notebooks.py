"Every notebook runs, its lines fit on a page, and its outputs are small and hold no path of a machine"
import json
from conftest import *

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
