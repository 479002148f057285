"Fixtures of all tests"
from helpers import *

def pytest_pycollect_makeitem(obj):
    "Skip functions of fastai that are named like tests, which star imports bring"
    if (getattr(obj, '__module__', None) or '').startswith(('fastai.','fastcore.')): return []

@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    "A terminal of 80 columns, and no figure is left open"
    monkeypatch.setenv('COLUMNS', '80')
    yield
    plt.close('all')

@pytest.fixture(scope='session')
def digits_dls(tmp_path_factory):
    return multilabel_dls(multidigits(tmp_path_factory.mktemp('digits')/'set', n=300, size=32))
