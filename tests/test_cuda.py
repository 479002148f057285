"""Metrics, callback and losses never wait for a GPU in a batch, and mix no devices

torch's fake tensors need no GPU: an operation that would wait for one raises an error."""
from helpers import *
sys.path.insert(0, str(ROOT))
from benchmarks.gpu import fake_gpu
from fastai_mlmetrics.metrics.streaming import MicroMetric
from fastai_mlmetrics.metrics.ranking import CurveMetric, LabelRanking
from fastai_mlmetrics.diagnosis.validation import ValidationStats

if NO_FAKE_GPU: pytest.skip(NO_FAKE_GPU, allow_module_level=True)

CLASSES = [o for o in (globals()[k] for k in dir()) if isinstance(o, type) and issubclass(o, StreamMetric)
           and o not in (StreamMetric,CountsMetric,MicroMetric,SampleMetric,CurveMetric,LabelRanking)]
N,C = 9,4
FIRST = {FBetaMulti: dict(beta=2), PrecisionAtK: dict(k=2), RecallAtK: dict(k=2)} # Arguments without a default
WEIGHT,EACH = dict(sample_weight=np.ones(3*N)),dict(thresh=[0.1,0.2,0.3,0.4])
OPTIONS = [
    {}, dict(sigmoid=False, thresh=0.), EACH, dict(labels=[0,2]), WEIGHT, dict(ignore_index=-1),
    dict(ignore_index=math.nan), dict(min_labels=1), dict(max_labels=2), dict(min_labels=2, max_labels=2),
    dict(bins=64), dict(voc=2007), dict(max_fpr=0.5), dict(per_label=True), dict(cv=None),
    {**EACH, **WEIGHT, **dict(labels=[3,1], ignore_index=-1, min_labels=1, max_labels=2, bins=64)}]
FLOATS = torch.float32,torch.float16,torch.bfloat16,torch.float64
WHOLE = torch.bool,torch.uint8,torch.int32,torch.int64
DTYPES = [(p,FLOATS[0]) for p in FLOATS+WHOLE] + [(FLOATS[0],y) for y in FLOATS[1:]+WHOLE]

def numbers(dtype):
    return torch.randn(N, C, device='cuda', dtype=dtype) if dtype.is_floating_point else (
        torch.randint(2, (N,C), device='cuda').to(dtype))

class Loop:
    "A Learner's batch loop"
    def __init__(self, *ms): self.ms,self.iter,self.dls,self.learn = ms,-1,SimpleNamespace(vocab=[*'abcd']),self
    def batch(self, preds=torch.float32, targs=torch.float32):
        self.iter += 1
        self.pred,self.yb = numbers(preds),(numbers(targs),)
        for m in self.ms: m.accumulate(self)

def count(m, *dtypes):
    "Count three batches, of which two are joined"
    loop = Loop(m)
    for _ in range(2): loop.batch(*dtypes)
    m.count_batches()
    loop.batch(*dtypes)
    m.count_batches()
    assert m.total is not None

def read_once(m, gpu):
    gpu.reading = True
    m.read()
    n = gpu.reads
    m.read()
    assert 0<n<=6 and gpu.reads==n # Exact rankings read several tensors

def of_class(cls, options, every=False):
    "A metric for each of `options` that it has, in each average if `every`, else in its default"
    own = inspect.signature(cls).parameters
    for o in options:
        kw = {**FIRST.get(cls, {}), **{k: v for k,v in o.items() if k in own}}
        if o and not kw: continue
        yield cls(**kw)
        if not every or 'average' not in own: continue
        for average in cls.averages:
            if average=='samples': kw = {k: v for k,v in kw.items() if k!='bins'}
            yield cls(**{**kw, 'average': average})

@pytest.mark.parametrize('every', [False, pytest.param(True, marks=pytest.mark.slow)], ids=['default','every average'])
@pytest.mark.parametrize('cls', CLASSES, ids=lambda o: o.__name__)
def test_metrics_count_without_waiting_and_are_read_once(cls, every):
    of_one,of_all = (OPTIONS[1:-1],[OPTIONS[0],OPTIONS[-1]]) if every else ([],OPTIONS[:1])
    for m in [*of_class(cls, of_one), *of_class(cls, of_all, every)]:
        with fake_gpu() as gpu:
            count(m)
            read_once(m, gpu)

@pytest.mark.slow
@pytest.mark.parametrize('cls', CLASSES, ids=lambda o: o.__name__)
def test_metrics_count_numbers_of_any_type_without_waiting(cls):
    for dtypes in DTYPES:
        m, = of_class(cls, [{}])
        with fake_gpu(): count(m, *dtypes)

@pytest.mark.parametrize('kw', [{}, dict(sigmoid=False), EACH, dict(ignore_index=-1), dict(min_labels=1, max_labels=2)])
def test_the_callback_counts_without_waiting_and_reads_once(kw):
    stats = ValidationStats(**kw)
    with fake_gpu() as gpu:
        loop = Loop(*stats.metrics)
        for _ in range(3): loop.batch()
        for m in stats.metrics: m.count_batches()
        gpu.reading = True
        assert stats.fields() is not None
        n = gpu.reads
        stats.fields()
        assert 0<n<=7 and gpu.reads==n # Of three metrics

@pytest.mark.parametrize('thresh', [0.3, EACH['thresh']])
@pytest.mark.parametrize('limits', [{}, dict(min_labels=1), dict(max_labels=2), dict(min_labels=2, max_labels=2)])
def test_binary_predictions_are_made_without_waiting(thresh, limits):
    with fake_gpu():
        for dtype in FLOATS+WHOLE:
            res = binarize(numbers(dtype), thresh, **limits)
            assert res.device.type=='cuda' and res.dtype==torch.bool

@pytest.mark.parametrize('loss', [BCEWithLogitsLossFlat, AsymmetricLossFlat, SigmoidFocalLossFlat])
@pytest.mark.parametrize('thresh', [0.3, EACH['thresh']])
@pytest.mark.parametrize('missing', [None, -1, math.nan])
def test_losses_neither_wait_nor_mix_devices(loss, thresh, missing, monkeypatch):
    monkeypatch.setattr('fastai.losses.TensorBase', noop) # A fake tensor has a class already
    f = loss(thresh=thresh, ignore_index=missing)
    with fake_gpu():
        for dtype in (torch.float32,torch.float16):
            preds = numbers(dtype)
            assert f(preds, numbers(torch.float32)).device.type=='cuda'
            assert f.decodes(f.activation(preds)).dtype==torch.bool

class Batches(list):
    "A loader of fake batches"
    device,n = torch.device('cuda'),3*N

@pytest.mark.slow
def test_evaluate_reads_once(monkeypatch):
    "A validation waits as often with all metrics and the callback as without them, but for one read at its end"
    monkeypatch.setattr('fastai.losses.TensorBase', noop)
    monkeypatch.setattr('fastai_mlmetrics.metrics.streaming._MANY', 1) # Each batch is counted alone
    class Free(Module):
        def forward(self, x): return x
        def parameters(self, recurse=True): yield torch.zeros(1, device='cuda') # A fake one cannot be registered
    def waits(n, metrics, cbs):
        with fake_gpu() as gpu:
            gpu.reading = True # fastai reads the loss of each batch
            batches = Batches((numbers(torch.float32), numbers(torch.float32)) for _ in range(n))
            learn = Learner(DataLoaders(batches, batches), Free(), loss_func=BCEWithLogitsLossFlat(), metrics=metrics,
                            cbs=cbs)
            with learn.no_bar(), learn.no_logging(): learn.evaluate(dl=batches)
            return gpu.reads
    def more(*args): return waits(8, *args)-waits(4, *args)
    every = L(o for cls in CLASSES if cls!=ThreshFinder for o in of_class(cls, [{}]))
    assert more(every, ZeroLabelsCallback())==more([], [])
