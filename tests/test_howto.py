"The how-to pages: their tables hold, and they are short"
import json, subprocess
from types import SimpleNamespace
import sklearn.metrics as skm
import fastai.metrics, fastai_mlmetrics.all
from conftest import *

PAGES = sorted((ROOT/'nbs'/'howto').glob('*.ipynb'))

def cells(notebook, kind):
    return [''.join(o['source']) for o in json.loads(notebook.read_text())['cells'] if o['cell_type']==kind]

def page(name): return next(o for o in PAGES if name in o.stem)

@pytest.mark.parametrize('notebook', PAGES, ids=lambda o: o.stem)
def test_a_page_is_short(notebook):
    text = '\n'.join(cells(notebook, 'markdown'))
    assert re.match(r'# .+\n\n> .+', text), 'a title and a summary'
    assert len(re.findall(r"\w[\w.'-]*", text))<400
    assert len(notebook.read_text())<60_000 # outputs are small

def rows_of(notebook):
    "The rows of the page's table, without the heading"
    text = '\n'.join(cells(notebook, 'markdown'))
    rows = [[c.strip().strip('`') for c in o.strip('|').split('|')] for o in re.findall(r'(?m)^\|.*\|$', text)]
    return rows[2:]

def value(m, preds, targs):
    "The value of a metric in the validation of a Learner"
    if not isinstance(m, Metric): return float(m(preds, targs))
    m.reset()
    m.accumulate(SimpleNamespace(pred=preds, y=targs, yb=(targs,), to_detach=to_detach))
    return float(m.value)

@pytest.fixture(scope='module')
def data():
    torch.manual_seed(0)
    y = (torch.rand(200, 5)<0.25).int()
    return torch.randn(200, 5) + 2*y - 1, y

def test_the_table_of_fastai_holds(data):
    rows = rows_of(page('from_fastai'))
    assert len(rows)>8
    for code,theirs,ours in rows:
        a,b = (eval(code, vars(o)) for o in (fastai.metrics, fastai_mlmetrics.all))
        assert value(a, *data)==pytest.approx(value(b, *data), abs=1e-6), code
        assert [getattr(o, 'name', getattr(o, '__name__', '')) for o in (a,b)]==[theirs,ours]

def test_the_table_of_torchmetrics_and_sklearn_holds(data):
    torchmetrics = pytest.importorskip('torchmetrics')
    z,y = data
    names = dict(z=z, y=y, s=z.sigmoid(), p=(z>0).int())
    arrays = {k: o.numpy() for k,o in names.items()} # of scikit-learn
    rows = rows_of(page('from_torchmetrics'))
    assert len(rows)>12
    for ours,theirs,sklearn in rows:
        expected = value(eval(ours, vars(fastai_mlmetrics.all)), z, y)
        if theirs:
            m = eval(theirs, vars(torchmetrics.classification))
            assert float(m(names['s'], y))==pytest.approx(expected, abs=1e-5), theirs
        if sklearn:
            o = eval(sklearn, vars(skm), names if 'float' in sklearn else arrays)
            assert float(o)==pytest.approx(expected, abs=1e-5), sklearn

TWO = '''
class Two(Model):
    def on_fit_end(self):
        logged = {k: float(v) for k,v in self.trainer.callback_metrics.items()}
        torch.save((logged, self.trainer.world_size, self.model(x[1000:]).detach(), y[1000:]),
                   f'{sys.argv[1]}/{self.trainer.global_rank}.pt')

trainer = lightning.Trainer(max_epochs=1, accelerator='cpu', devices=2, strategy='ddp_fork', logger=False,
                            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Two(), train, valid)
'''

@pytest.mark.slow
def test_lightning_logs_in_two_processes_the_values_of_one(tmp_path):
    "The page's module, on two processes: both log the value of one"
    pytest.importorskip('lightning')
    parts = [o for o in cells(page('lightning'), 'code') if re.match(r'import lightning|torch.manual_seed|class ', o)]
    assert len(parts)==3
    (tmp_path/'two.py').write_text('\n'.join(['import sys', *parts, TWO]))
    env = {k: v for k,v in os.environ.items() if not k.startswith('PYTEST')} | {'PYTHONWARNINGS': 'ignore'}
    subprocess.run([sys.executable, tmp_path/'two.py', tmp_path], env=env | {'PYTHONPATH': str(ROOT)},
                   check=True, timeout=240, capture_output=True)
    results = [torch.load(tmp_path/f'{i}.pt') for i in range(2)]
    for logged,n,preds,targs in results:
        assert n==2 and {*logged}=={m.name for m in multilabel_metrics(ranking=True)}
        for m in multilabel_metrics(ranking=True):
            assert logged[m.name]==pytest.approx(m(preds, targs), abs=1e-6), m.name
