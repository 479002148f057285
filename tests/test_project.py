"The project's files say the same, and its notebooks run"
import runpy
from configparser import ConfigParser
import nbdev.test
import fastai_mlmetrics, fastai_mlmetrics.all
from conftest import *

ROOT = Path(__file__).parent.parent

@pytest.mark.parametrize('notebook', sorted((ROOT/'nbs').glob('*.ipynb')), ids=lambda o: o.stem)
def test_notebook(notebook, monkeypatch):
    monkeypatch.chdir(ROOT)
    for k in ('thresh_find','set_thresh'): monkeypatch.setattr(Learner, k, getattr(Learner, k)) # which a notebook patches anew
    passed,_ = nbdev.test.test_nb(notebook)
    assert passed, f'{notebook.name} failed: see above'

def test_one_version():
    cfg = ConfigParser()
    cfg.read(ROOT/'settings.ini')
    assert cfg['DEFAULT']['version']==fastai_mlmetrics.__version__

def test_readme_is_rendered_from_the_index():
    files = runpy.run_path(ROOT/'tools'/'readme.py')['render']()
    for name,content in files.items(): assert (ROOT/name).read_bytes()==content, f'{name} is stale: python tools/readme.py'
    assert {o.name for o in (ROOT/'README_files').glob('*')}=={Path(o).name for o in files if '/' in o}

def test_after_fastai_comes_ours():
    for name,o in vars(sys.modules['fastai_mlmetrics.metrics']).items():
        if name in sys.modules['fastai_mlmetrics.metrics'].__all__: assert globals()[name] is o
    assert F1ScoreMulti.__module__=='fastai_mlmetrics.metrics'

def public():
    "Everything public that is ours: functions, and classes with their methods"
    for name,o in vars(fastai_mlmetrics.all).items():
        if name[0]!='_' and getattr(o, '__module__', '').startswith('fastai_mlmetrics'): yield name,o

def test_every_argument_is_documented():
    from fastcore.docments import docments
    for name,o in public():
        f = o.__init__ if isinstance(o, type) else o
        if not (inspect.isfunction(f) and f.__module__.startswith('fastai_mlmetrics')): continue
        docs = docments(f, full=True)
        missing = [k for k,v in docs.items() if k not in ('self','return','kwargs') and not v.docment]
        assert not missing, f'{name}: {missing}'
        assert o.__doc__ and '\n' not in o.__doc__, name

def test_many_batches(monkeypatch):
    "A short run of what `python -m benchmarks soak` does with 100,000"
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.__main__ import soak
    rows = list(soak(2000))
    assert rows[-1]['batches']==2000 and rows[-1]['metrics']>80
    assert all(o['whole counts equal'] and o['largest relative drift']<1e-13 for o in rows)
