"Every notebook runs"
from helpers import *

NOTEBOOKS = {str(o.relative_to(ROOT/'nbs')): o for o in sorted((ROOT/'nbs').glob('**/[!.]*.ipynb'))}

def runs(notebook):
    from nbdev.config import get_config
    from nbdev.test import test_nb
    os.chdir(ROOT)
    return test_nb(notebook, skip_flags=get_config().tst_flags.split())[0]

@pytest.mark.slow
@pytest.mark.parametrize('notebook', NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_a_notebook_runs(notebook):
    "In a process of its own: notebooks patch classes, and accelerate and Lightning keep state"
    pytest.importorskip('nbdev')
    assert in_process(runs, notebook), f'{notebook.name} failed: see above'
