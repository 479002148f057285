"What several test modules use"
import os, warnings
# Before any import of numpy or torch: tests run in parallel processes, whose threads would slow each other down
os.environ.setdefault('OMP_NUM_THREADS', '1')
warnings.filterwarnings('ignore', category=FutureWarning) # of torch, for a function that torchvision calls
import matplotlib
matplotlib.use('agg')
import sklearn.metrics as skm
import ast, concurrent.futures, contextlib, gc, inspect, json, multiprocessing, numpy as np, pytest, sys, textwrap
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from fastai.vision.all import *
from fastai_mlmetrics.all import *
from fastai_mlmetrics.core.rules import binarize, ThresholdRule
from fastai_mlmetrics.core.counts import Batch
from fastai_mlmetrics.data.digits import keep_items, multidigits, multilabel_dls
from fastai_mlmetrics.metrics.streaming import CountsMetric, StreamMetric
from fastai_mlmetrics.metrics.streaming import SampleMetric

ROOT,CPU = Path(__file__).parent.parent,torch.device('cpu')
# Why tests with fake CUDA tensors are skipped; '': they are not
NO_FAKE_GPU = "fake tensors before torch 2.6 need a GPU's driver" if (
    tuple(map(int, torch.__version__.split('.')[:2]))<(2,6)) else ''

# fastai's loaders of images and texts start as many processes as there are CPUs in each epoch, unless told otherwise
defaults.cpus = 0

# Processes that tests start are forked from a clean process that has done the slow imports once.
# That process has not imported this package, because some tests run without it.
START = 'forkserver' if 'forkserver' in multiprocessing.get_all_start_methods() else 'spawn'
multiprocessing.set_forkserver_preload(['fastai.vision.all','fastai.distributed','hypothesis.extra.numpy','pytest'])

# A parameter that only `.ci/run` tries
slow = partial(pytest.param, marks=pytest.mark.slow)

def in_process(f, *args):
    "The result of `f` in a process of its own"
    context = multiprocessing.get_context(START)
    with concurrent.futures.ProcessPoolExecutor(1, context) as ex: return ex.submit(f, *args).result()

def run_notebook(notebook):
    "The notebook's variables after all its cells, and the value of each cell by the heading above it"
    space,values,heading = {},{},''
    for cell in json.loads(notebook.read_text())['cells']:
        source = ''.join(cell['source'])
        if cell['cell_type']=='markdown':
            heading = re.findall(r'(?m)^#+ (.+)', source)[-1] if re.search('(?m)^#+ ', source) else heading
            continue
        *body,last = ast.parse(source).body
        if not isinstance(last, ast.Expr): body,last = [*body, last],None
        exec(compile(ast.Module(body, []), notebook.name, 'exec'), space)
        if last: values.setdefault(heading, []).append(eval(ast.unparse(last), space))
    return space,values

@st.composite
def binary_pairs(draw, min_labels=2, max_labels=6, max_samples=12):
    "Binary predictions and targets, N x C; all-zero columns and rows are common"
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
    "A custom loss function without fastai's attributes, which ignores NaN targets"
    def forward(self, p, y):
        known = ~y.isnan()
        return F.binary_cross_entropy_with_logits(p[known], y[known])

class MaskedFlat(BCEWithLogitsLossFlat):
    "The same as a subclass of fastai's loss"
    def __call__(self, p, y, **kwargs):
        known = ~y.isnan()
        return super().__call__(p[known][None], y[known][None], **kwargs)

def make_learner(logits, targs, metrics=None, model=None, bs=64, vocab=None, **kwargs):
    "A Learner whose model outputs `logits` for the samples with `targs`"
    ds = TensorPairs(logits, targs)
    dls = DataLoaders(DataLoader(ds, bs=bs, shuffle=True), DataLoader(ds, bs=bs), device=torch.device('cpu'))
    if vocab is not None: dls.vocab = vocab
    kwargs = {'loss_func': BCEWithLogitsLossFlat(), **kwargs}
    return Learner(dls, model or Same(), metrics=metrics, **kwargs).remove_cb(ProgressCallback)

def simulate(n=400, c=20, density=0.0775, skill=3., bias=-4., seed=0):
    "Logits of a model with some skill, and targets with a share `density` of positives"
    g = torch.Generator().manual_seed(seed)
    targs = (torch.rand(n, c, generator=g)<density).float()
    return torch.randn(n, c, generator=g) + skill*targs + bias, targs

def one_line(o):
    "The text of `o`, such as a wrapped message, on one line; of the callback's, with code in backticks"
    return ' '.join((o.args[0] if isinstance(o, ZeroLabelsWarning) else str(o)).split())

def example(o):
    "The code of the docstring of `o`: the last indented paragraph before the arguments"
    paragraphs = inspect.cleandoc(o.__doc__).partition('\n\nArguments:')[0].split('\n\n')
    code = [text for text in paragraphs if text.startswith('    ')]
    assert code, o
    return textwrap.dedent(code[-1])

def run_example(o, scope):
    "Run the example of the docstring of `o`; a comment that is a value is what its line returns, rounded"
    lines = example(o).splitlines()
    for node in ast.parse('\n'.join(lines)).body:
        source = '\n'.join(lines[node.lineno-1:node.end_lineno])
        if not isinstance(node, ast.Expr): exec(source, scope)
        else:
            value = eval(source, scope)
            try: shown = ast.literal_eval(source.rpartition(' # ')[2])
            except (SyntaxError,ValueError): continue # No value is shown
            if 'str' in np.asarray(shown).dtype.name: assert value==shown
            else: np.testing.assert_allclose(value, shown, atol=6e-4)

def values(learn):
    "The values of the metrics in a validation, by name"
    with learn.no_logging(): row = learn.validate()
    return dict(zip(learn.metrics.attrgot('name'), row[1:]))

@contextlib.contextmanager
def warnings_as(action, category=Warning):
    "Let all warnings of `category` be an 'error', or 'ignore' them"
    with warnings.catch_warnings():
        warnings.simplefilter(action, category)
        yield

@contextlib.contextmanager
def recording(learn):
    "Record all warnings, without the Learner's log"
    with warnings.catch_warnings(record=True) as caught, learn.no_logging():
        warnings.simplefilter('always')
        yield caught

def trained(logits, targs, n_epoch=1, model=None, **kwargs):
    "A Learner with the callback after `n_epoch` epochs at a learning rate of 0, and the callback's warnings"
    learn = make_learner(logits, targs, multilabel_metrics(), model, bs=100, cbs=ZeroLabelsCallback(**kwargs))
    with recording(learn) as caught: learn.fit(n_epoch, 0.)
    return learn,[w for w in caught if issubclass(w.category, ZeroLabelsWarning)]

COLLAPSED = simulate(bias=-9)
GOOD = simulate(skill=8)

class Falling(Callback):
    "Sets the validation loss of each epoch"
    order = 51
    def __init__(self, losses): self.losses = losses
    def after_validate(self): self.recorder.loss.total,self.recorder.loss.count = self.losses[self.epoch],1

def pitfall_texts(learn, n=1):
    "The callback's warnings of pitfalls in `n` fits"
    with recording(learn) as caught:
        for _ in range(n): learn.fit(1, 0.)
    return [one_line(w.message) for w in caught if 'may mislead' in str(w.message)]

class Sigmoid(Same):
    def forward(self, x): return super().forward(x).sigmoid()

def judged(**kwargs): return judge(*COLLAPSED, sigmoid=True, **kwargs)

def all_metrics():
    "Metrics of all kinds"
    return multilabel_metrics(ranking=True) + [
        APScoreMulti(bins=64, name='binned'), ExpectedCalibrationError(), BrierScoreMulti(),
        AccuracyMulti(average='macro')]

def full_learner(bs=16, **kwargs):
    "A Learner with metrics of all kinds and the callback"
    return make_learner(*simulate(100, bias=-2.), all_metrics(), cbs=ZeroLabelsCallback(), bs=bs, **kwargs)

def same(a, b, eps=1e-12, of=''): np.testing.assert_allclose(a, b, atol=eps, rtol=0, equal_nan=True, err_msg=str(of))

def close(a, b): np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)

def peak_of(f, *args):
    "Memory in MB that a call needs at its peak"
    def peak(): return int(re.search(r'VmHWM:\s*(\d+)', Path('/proc/self/status').read_text())[1])/1024
    try: Path('/proc/self/clear_refs').write_text('5') # Linux resets the peak
    except OSError: pytest.skip('needs Linux')
    before = peak()
    f(*args)
    return peak()-before

def lines(o): return repr(o).split('\n')

def auc(y, s, w=None, max_fpr=None):
    w = np.ones(len(y)) if w is None else w
    y,s,w = y[w>0],s[w>0],w[w>0]
    return skm.roc_auc_score(y, s, sample_weight=w, max_fpr=max_fpr) if len(set(y))==2 else np.nan

def in_learner(logits, targs, *metrics, **kwargs):
    learn = make_learner(logits, targs, L(metrics), **kwargs)
    with learn.no_logging(): learn.validate()
    return learn

class OneBuffer(Module):
    "A model that writes all its outputs into the same memory, and returns the same tensor"
    def __init__(self): self.w,self.out = nn.Parameter(torch.zeros(1)),{}
    def forward(self, x):
        out = self.out.setdefault(len(x), torch.empty_like(x))
        out.copy_(x.detach())
        return out

class Improves(Module):
    "Good scores that grow from epoch to epoch, and never exceed the threshold after the first one"
    def __init__(self): self.w,self.epoch = nn.Parameter(torch.zeros(1)),-1
    def train(self, mode=True):
        self.epoch += mode
        return super().train(mode)
    def forward(self, x):
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        return (noise*2 if self.epoch<1 else x*self.epoch/3-6) + 0*self.w

def clean(bs=16): return values(full_learner(bs))

def two_models(n=200, c=8, gain=0.5, seed=0):
    "Two models with errors in common, the second one better by `gain`, and targets"
    gen = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, c, generator=gen)<torch.linspace(0.03, 0.4, c)).float()
    both = torch.randn(n, c, generator=gen) + 3*y - 2
    a,b = (both + 0.7*torch.randn(n, c, generator=gen) + g*(2*y-1) for g in (0,gain))
    return dict(a=a, b=b),y

def arrays_of(n=300, c=20, **kw):
    "An interpretation, and as arrays its binary predictions, targets and scores"
    logits,targs = simulate(n, c, **kw)
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True)
    return interp,(logits>0).long().numpy(),targs.long().numpy(),logits.sigmoid().numpy()

@st.composite
def distinct(draw):
    "Logits without ties, in float32, and targets"
    n,c = draw(st.integers(1, 12)),draw(st.integers(3, 7))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    logits = rng.permutation(np.linspace(-6, 6, n*c+1)[1:]).reshape(n, c).astype(np.float32)
    return logits,draw(arrays(np.int64, (n,c), elements=st.integers(0, 1)))

class BagOfWords(Module):
    def __init__(self, n, c):
        self.bag = nn.EmbeddingBag(n, 16, mode='sum', padding_idx=1)
        self.out = nn.Linear(16, c)
    def forward(self, x): return self.out(self.bag(x.as_subclass(Tensor)))

def text_dls():
    rng = np.random.default_rng(0)
    words,fill = ['sun','rain','wind','snow','hail','fog'],['the','day','was','with','and','cold']
    rows = [[w for w in words if rng.random()<0.25] for _ in range(600)]
    texts = [' '.join(rng.permutation(r+list(rng.choice(fill, 6)))) for r in rows]
    df = pd.DataFrame(dict(text=texts, labels=[';'.join(r) for r in rows]))
    from fastai.text.all import TextBlock, BaseTokenizer
    block = DataBlock((TextBlock.from_df('text', tok=BaseTokenizer()), MultiCategoryBlock),
                      get_x=ColReader('text'), get_y=ColReader('labels', label_delim=';'),
                      splitter=RandomSplitter(seed=0))
    dls = block.dataloaders(df, bs=32, num_workers=0, device=torch.device('cpu'))
    keep_items(dls)
    return dls

NAMES = [f'l{i}' for i in range(20)]

def fitted(n_epoch=3, metrics=None, **kwargs):
    "A Learner after `n_epoch` epochs on 20 labels, `NAMES`"
    metrics = multilabel_metrics() if metrics is None else metrics
    learn = make_learner(*simulate(200, bias=-3), metrics, vocab=NAMES, **kwargs)
    with learn.no_logging(): learn.fit(n_epoch)
    return learn

def f1(y, p, average='macro'): return skm.f1_score(y, p, average=average, zero_division=0)

def follow(learn, text):
    "Run the code of an advice, line by line"
    with warnings_as('ignore'), learn.no_logging():
        for code in re.findall(r'`(learn\.[^`]*)`', text): exec(code, dict(globals(), learn=learn))
    plt.close('all')

def scales(n=2000):
    "Logits and targets of labels that rank well and differ in the scale of their scores"
    logits,targs = simulate(n, 10, density=0.2, skill=3.)
    return 2*(logits+2.5) + torch.linspace(-20, 4, 10), targs
