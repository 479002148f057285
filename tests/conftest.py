"Fixtures of all tests"
# The process that starts the others reads this file too, so fastai is imported where a fixture needs it
import gc, pytest
from hypothesis import HealthCheck, settings

# `pytest` tries the same 10 inputs each time; `.ci/run` tries 40 others: `--hypothesis-profile random`
settings.register_profile('same', max_examples=10, derandomize=True, deadline=None,
                          suppress_health_check=list(HealthCheck))
settings.register_profile('random', settings.get_profile('same'), max_examples=40, derandomize=False, print_blob=True)
settings.load_profile('same')

def pytest_collection_modifyitems(items):
    "The site, which takes longest, comes first, so that no process waits for it in the end"
    items.sort(key=lambda o: not (o.path.stem=='test_site' and o.get_closest_marker('slow')))

def pytest_collection(): gc.disable() # What is imported stays

def pytest_collection_finish():
    gc.freeze()
    gc.enable()

def pytest_pycollect_makeitem(name, obj):
    "Skip names that star imports bring, also functions of fastai that are named like tests"
    if not name.startswith('test_') or obj.__module__.startswith(('fastai.','fastcore.')): return []

@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    "A terminal of 80 columns, nothing has been said, and no figure is left open"
    from matplotlib import pyplot as plt
    from fastai_mlmetrics.core.messages import said
    monkeypatch.setenv('COLUMNS', '80')
    said.clear()
    yield
    plt.close('all')

@pytest.fixture(scope='session')
def digits_dls(tmp_path_factory):
    from helpers import multilabel_dls, multidigits
    return multilabel_dls(multidigits(tmp_path_factory.mktemp('digits')/'set', n=300, size=32))
