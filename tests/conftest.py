"What the tests share"
import os; os.environ.setdefault('OMP_NUM_THREADS', '1') # Tests run beside each other, and threads of several processes get in each other's way
import matplotlib; matplotlib.use('agg')
import warnings; warnings.filterwarnings('ignore', category=FutureWarning) # torch's, of a function that torchvision calls
import concurrent.futures, gc, inspect, multiprocessing, numpy as np, pytest, sys
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.extra.numpy import arrays
from fastai.vision.all import *
from fastai_mlmetrics.all import *
from fastai_mlmetrics.decisions import Rule, to_decisions
from fastai_mlmetrics.counts import Batch
from fastai_mlmetrics.metrics import StreamMetric, CountsMetric, SampleMetric

settings.register_profile('default', max_examples=320, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile('default')

# Processes that tests start are forked from a clean one, which has imported once what takes seconds; not this package, without which some run
START = 'forkserver' if 'forkserver' in multiprocessing.get_all_start_methods() else 'spawn'
multiprocessing.set_forkserver_preload(['fastai.vision.all','fastai.distributed','hypothesis.extra.numpy','pytest'])

def in_process(f, *args):
    "What `f` returns in a process of its own"
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context(START)) as ex: return ex.submit(f, *args).result()

def pytest_pycollect_makeitem(obj):
    "fastai's star import brings functions that are named like tests"
    if (getattr(obj, '__module__', None) or '').startswith(('fastai.','fastcore.')): return []

@st.composite
def decided(draw, min_labels=2, max_labels=6, max_samples=12):
    "Decisions and truths, N x C of 0/1; all-zero columns and rows are common"
    shape = draw(st.integers(1, max_samples)),draw(st.integers(min_labels, max_labels))
    return tuple(draw(arrays(np.int64, shape, elements=st.integers(0,1), fill=st.just(0))) for _ in range(2))

class TensorPairs:
    "A data set that can be exported with its Learner"
    def __init__(self, *ts): self.ts = ts
    def __len__(self): return len(self.ts[0])
    def __getitem__(self, i): return tuple(t[i] for t in self.ts)
    def new_empty(self): return TensorPairs(*(t[:0] for t in self.ts))

class Same(Module):
    "A model that returns its input, as if it were logits"
    def __init__(self): self.w = nn.Parameter(torch.zeros(1))
    def forward(self, x): return x + 0*self.w

class Masked(Module):
    "A loss as people write it: what is nan is left out, and there is one number"
    def forward(self, p, y):
        known = ~y.isnan()
        return F.binary_cross_entropy_with_logits(p[known], y[known])

class MaskedFlat(BCEWithLogitsLossFlat):
    "The same as one of fastai's"
    def __call__(self, p, y, **kwargs): return super().__call__(p[~y.isnan()][None], y[~y.isnan()][None], **kwargs)

def make_learner(logits, targs, metrics=None, model=None, bs=16, vocab=None, **kwargs):
    "A Learner whose model outputs `logits` for the samples with `targs`"
    ds = TensorPairs(logits, targs)
    dls = DataLoaders(DataLoader(ds, bs=bs, shuffle=True), DataLoader(ds, bs=bs), device=torch.device('cpu'))
    if vocab is not None: dls.vocab = vocab
    kwargs = {'loss_func': BCEWithLogitsLossFlat(), **kwargs}
    learn = Learner(dls, model or Same(), metrics=metrics, **kwargs)
    return learn.remove_cb(ProgressCallback) or learn

def simulate(n=400, c=20, density=0.0775, skill=3., bias=-4., seed=0):
    "Logits of a model of some skill, and targets of which a share `density` is true"
    g = torch.Generator().manual_seed(seed)
    targs = (torch.rand(n, c, generator=g)<density).float()
    return torch.randn(n, c, generator=g) + skill*targs + bias, targs

def values(learn):
    "The metrics of a validation, by name"
    with learn.no_logging(): row = learn.validate()
    return dict(zip(learn.metrics.attrgot('name'), row[1:]))

@pytest.fixture(scope='session')
def digits_dls(tmp_path_factory): return multilabel_dls(multidigits(tmp_path_factory.mktemp('digits')/'set', n=300, size=32))
