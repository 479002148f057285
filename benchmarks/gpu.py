"What metrics cost on a GPU: whether they wait for it in each batch, which can be told without one, and their time"
import contextlib, time
from statistics import median
from fastai.basics import *
from torch._subclasses.fake_tensor import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode)
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten

class Waits(Exception): "An operation would wait for the GPU"

class Transfers(TorchDispatchMode):
    """Watches what goes between the host and a fake GPU

    Raises `Waits` where the host would wait: for a number, or for a copy to or from memory that is not pinned. While
    `reading`, it counts them instead, and each number is 1."""
    def __init__(self):
        super().__init__()
        self.pinned,self.reading,self.reads = [],False,0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name,kwargs = func.__name__.partition('.')[0],kwargs or {}
        if name=='is_pinned': return False
        if name=='_pin_memory':
            self.pinned.append(args[0].detach())
            return self.pinned[-1]
        tensors = [o for o in tree_flatten((args, kwargs))[0] if isinstance(o, Tensor)]
        to = torch.device(kwargs.get('device', 'cpu')).type
        if tensors and to=='cpu' and not any(isinstance(o, FakeTensor) for o in tensors):
            with _disable_current_modes(): return func(*args, **kwargs) # Numbers that were read
        if name=='_local_scalar_dense':
            if args[0].device.type=='cuda': self.wait("a number")
            return 1
        res = func(*args, **kwargs)
        if name not in ('_to_copy','copy_'): return res
        source = args[name=='copy_']
        between = source.device.type,res.device.type
        is_pinned = any(o is source for o in self.pinned)
        if between==('cpu','cuda') and not is_pinned: self.wait(f"{source.shape} from the host")
        if between!=('cuda','cpu'): return res
        self.wait(f"{source.shape} to the host")
        with _disable_current_modes(): return torch.ones(res.shape, dtype=res.dtype)

    def wait(self, what):
        if not self.reading: raise Waits(what)
        self.reads += 1

@contextlib.contextmanager
def fake_gpu():
    """Lets tensors on 'cuda' have no numbers and need no GPU, and yields their `Transfers`

    An operation that needs a number, or tensors of two devices, raises an error."""
    with FakeTensorMode(allow_non_fake_inputs=True), Transfers() as transfers: yield transfers

N,C = 512,80
ERRORS = Waits,DataDependentOutputException,DynamicOutputShapeException

def batches(n):
    for _ in range(n): yield torch.randn(N, C, device='cuda'),torch.randint(2, (N,C), device='cuda').float()

def in_loop(make):
    "A function of a batch that adds it to a metric of fastai's kind"
    m,learn = make(),SimpleNamespace(iter=0, to_detach=to_detach)
    m.reset()
    def update(preds, targs):
        learn.iter += 1
        learn.pred,learn.y,learn.yb = preds,targs,(targs,)
        m.accumulate(learn)
        if hasattr(m, 'count_batches'): m.count_batches() # Ours are counted a few together
    return update

def of_torchmetrics(make, validate_args=True):
    m = make(validate_args=validate_args)
    def update(preds, targs):
        if m.device!=preds.device: m.to(preds.device)
        m.update(preds, targs.int())
    return update

def waits(update):
    "Whether a function of a batch waits for the GPU in each batch"
    update = update()
    with fake_gpu() as gpu:
        try:
            for i,o in enumerate(batches(3)):
                gpu.reading = i<2
                update(*o)
        except ERRORS: return True
    return False

def per_batch(updates, n=50):
    "Milliseconds for a batch in all of `updates` on the real GPU, median of five rounds"
    data,times = list(batches(n)),[]
    for _ in range(6):
        made = [o() for o in updates]
        torch.cuda.synchronize()
        start = time.perf_counter()
        for o in data:
            for update in made: update(*o)
        torch.cuda.synchronize()
        times.append(1000*(time.perf_counter()-start)/n)
    return median(times[1:])

def makers(module, names):
    "Functions without arguments that make metrics of `module`"
    least = dict.fromkeys(['min_recall','min_precision','min_specificity','min_sensitivity'], 0.5)
    usual = dict(beta=2., k=3, num_labels=C, **least)
    for f in map(partial(getattr, module), names):
        needed = {k for k,p in inspect.signature(f).parameters.items() if p.default is p.empty}
        yield partial(f, **{k: v for k,v in usual.items() if k in needed})

def gpu(most=None):
    """Waiting for a GPU

    Number of metric classes that wait for the GPU in each batch (512 x 80, default settings), found with torch's fake
    tensors, which need no GPU. *Unchecked* is `validate_args=False`."""
    import fastai.metrics as fm, fastai_mlmetrics.all as ours, torchmetrics.classification as tm
    names = [k for k,o in vars(ours).items() if isinstance(o, type) and issubclass(o, AccumMetric)]
    peers = [k for k in vars(tm) if k.startswith('Multilabel')]
    lists = {'ours': [partial(in_loop, o) for o in makers(ours, names)],
             "fastai's": [partial(in_loop, o) for o in makers(fm, [k for k in names if hasattr(fm, k)])],
             "torchmetrics'": [partial(of_torchmetrics, o) for o in makers(tm, peers)],
             "torchmetrics', unchecked": [partial(of_torchmetrics, o, False) for o in makers(tm, peers)]}
    for name,updates in lists.items():
        updates = updates[:most]
        row = {'metrics': name, 'classes': len(updates), 'wait in each batch': sum(map(waits, updates))}
        yield row | ({'GPU, ms per batch': per_batch(updates)} if torch.cuda.is_available() else {})

def on_a_gpu():
    """On a GPU

    Measured on another machine, by `python -m benchmarks gpu`: one NVIDIA H100, Python 3.12, torch 2.11. All other
    numbers of this page are of the machine named above. Milliseconds to add a batch of 512 x 80 to all classes of a
    row, median of five rounds of 50 batches. fastai's classes only store the predictions; they compute after the last
    batch, which is not in the time. With torch 2.11, five of torchmetrics' unchecked classes wait; the table above
    is for the version of torch at the top of this page."""
    yield {'metrics': 'ours', 'classes': 27, 'ms per batch': 4.7, 'wait in each batch': 0}
    yield {'metrics': "fastai's, which store", 'classes': 10, 'ms per batch': 1.2, 'wait in each batch': 10}
    yield {'metrics': "torchmetrics'", 'classes': 26, 'ms per batch': 230., 'wait in each batch': 26}
    yield {'metrics': "torchmetrics', unchecked", 'classes': 26, 'ms per batch': 210., 'wait in each batch': 5}
