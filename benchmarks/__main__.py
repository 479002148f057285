"""Time and memory compared with other libraries, in one run on the same data

`python -m benchmarks` runs the sections of `results.md`, and `--save` writes them there.
`python -m benchmarks NAME ...` runs the named sections, and `all` also those that `results.md` leaves out."""
import inspect, platform, subprocess, sys, time, warnings
from dataclasses import dataclass
import fastai, sklearn, fastai.metrics as fm, sklearn.metrics as skm
from fastai.vision.all import *
from benchmarks.gpu import gpu, on_a_gpu
from fastai_mlmetrics.all import *
from fastai_mlmetrics.metrics.formulas import *
from fastai_mlmetrics.metrics.streaming import *
from fastai_mlmetrics.metrics.ranking import *
from fastai_mlmetrics.demo import get_learner, multidigits, multilabel_dls
from torchmetrics import MetricCollection
from torchmetrics.classification import MultilabelAccuracy, MultilabelF1Score
from torchmetrics.functional.classification import multilabel_auroc, multilabel_average_precision

# --- what is measured, and how

def data(n, c, density=0.05):
    "Logits of a model of some skill, and targets"
    g = torch.Generator().manual_seed(0)
    targs = (torch.rand(n, c, generator=g)<density).float()
    return torch.randn(n, c, generator=g) + 3*targs - 3,targs

def seconds(repeats, slow=(), **fs):
    """Seconds of each round of each of `fs`, which take turns, after a round that is not counted

    Those that are `slow` run once, without a round before."""
    times = {k: [] for k in fs}
    for i in range(-1, repeats):
        for k in [k for k in fs if i==0 or k not in slow]:
            start = time.perf_counter()
            fs[k]()
            if i>=0: times[k].append(time.perf_counter()-start)
    return {k: np.array(v) for k,v in times.items()}

def medians(*args, **fs): return {k: float(np.median(v)) for k,v in seconds(*args, **fs).items()}

@dataclass
class Difference:
    "Median of paired differences with a 95% interval, which is printed only if it excludes 0"
    median:float
    low:float
    high:float
    @classmethod
    def of(cls, a, b):
        d = np.sort(a-b)
        k = int(max(0, np.floor(len(d)/2-0.98*len(d)**0.5))) # order statistics: no distribution is assumed
        return cls(float(np.median(d)), d[k], d[-1-k])
    @property
    def bound(self): return self.high if self.high>0 else self.high-self.low
    def __str__(self): return short(self.median) if self.low>0 else f'below {short(self.bound)}'

def short(x): return f'{float(f"{x:.2g}"):,g}'
def size(n, c): return f'{n:,} x {c:,}'

class Batches:
    "The attributes of a Learner that metrics read in its validation loop, without a model"
    training,to_detach,metrics = False,staticmethod(to_detach),L()
    def __init__(self, preds, targs, bs):
        self.batches = list(zip(preds.split(bs), targs.split(bs)))
        self.dl,self.dls = None,SimpleNamespace()
    def run(self, metrics):
        for m in metrics: m.reset()
        for self.iter,(self.pred,self.y) in enumerate(self.batches):
            self.yb = (self.y,)
            for m in metrics: m.accumulate(self)
        return [m.value for m in metrics]

AVERAGES = 'macro','micro','samples','weighted'

def of_fastai():
    "Accuracy, F1 in four averages, precision and recall over samples, all from fastai"
    return [AvgMetric(fm.accuracy_multi), *(fm.F1ScoreMulti(average=a) for a in AVERAGES),
            fm.PrecisionMulti(average='samples'), fm.RecallMulti(average='samples')]

def of_torchmetrics(c, validate_args):
    "Accuracy and F1 in three averages, from torchmetrics, which has no averages over samples"
    kw = dict(num_labels=c, validate_args=validate_args)
    f1s = {a: MultilabelF1Score(average=a, **kw) for a in ('macro','micro','weighted')}
    m = MetricCollection({'accuracy': MultilabelAccuracy(average='micro', **kw), **f1s})
    def run(batches):
        m.reset()
        for p,y in batches: m.update(p, y.int())
        return m.compute()
    return run

def of_sklearn(preds, targs):
    "Accuracy, F1 in four averages, precision and recall over samples, all from scikit-learn"
    d,y = (preds>0).numpy(),targs.numpy()
    for a in AVERAGES: skm.f1_score(y, d, average=a, zero_division=0)
    for f in (skm.precision_score, skm.recall_score): f(y, d, average='samples', zero_division=0)
    return (d==y).mean()

# --- the sections of results.md

SIZES = (5_000,20,64,12),(40_000,80,256,8),(100_000,600,512,4)

def metrics(sizes=SIZES):
    """Metrics of a validation

    Seconds to add all batches and compute the values, without a Learner. Ours are the nine metrics of
    `multilabel_metrics(full=True)`. fastai and scikit-learn have seven of these. torchmetrics has four, because it has
    no averages over samples. In the last column, torchmetrics does not check its input (`validate_args=False`); our
    metrics always do."""
    for n,c,bs,repeats in sizes:
        preds,targs = data(n, c)
        run = Batches(preds, targs, bs)
        ours,theirs = multilabel_metrics(full=True),of_fastai()
        checked,unchecked = of_torchmetrics(c, True),of_torchmetrics(c, False)
        t = medians(
            repeats, ('fastai','sklearn'),
            ours=lambda: run.run(ours), fastai=lambda: run.run(theirs), sklearn=lambda: of_sklearn(preds, targs),
            checked=lambda: checked(run.batches), unchecked=lambda: unchecked(run.batches))
        yield {'samples x labels': size(n, c), 'batch': bs, 'ours': t['ours'], 'fastai': t['fastai'],
               'scikit-learn': t['sklearn'], 'torchmetrics': t['checked'], 'torchmetrics, unchecked': t['unchecked']}

THRESHOLDS = {'global, micro F1': {}, 'per label, jointly for micro F1': dict(average='micro', per_label=True),
              'global, macro F1': dict(average='macro', per_label=False), 'per label, macro F1': dict(average='macro')}

def thresholds(sizes=((100_000,80), (50_000,500)), repeats=2):
    """Thresholds

    Seconds of `best_thresholds` with the held-out scores, from all scores and from histograms of 1,024 bins. The last
    row of each size is a loop over the labels with scikit-learn's `precision_recall_curve`: the best F1 of each label,
    without a held-out score. fastai, scikit-learn and torchmetrics have no joint search of per-label thresholds for
    micro F1."""
    for n,c in sizes:
        preds,targs = data(n, c)
        scores = preds.sigmoid_()
        def loop():
            for p,y in zip(scores.T.numpy(), targs.T.numpy()):
                precision,recall,t = skm.precision_recall_curve(y, p)
                t[(2*precision*recall/np.maximum(precision+recall, 1e-9))[:-1].argmax()]
        ways = {(k,bins): partial(best_thresholds, scores, targs, bins=bins, **kw)
                for k,kw in THRESHOLDS.items() for bins in (None,1024)}
        t = medians(repeats, loop=loop, **{str(k): f for k,f in ways.items()})
        for k in THRESHOLDS:
            yield {'samples x labels': size(n, c), 'thresholds': k, 'from all scores': t[str((k,None))],
                   'in bins': t[str((k,1024))]}
        yield {'samples x labels': size(n, c), 'thresholds': "scikit-learn's loop", 'from all scores': t['loop'],
               'in bins': ''}

class Free(Module):
    "A model that costs nothing"
    def __init__(self): self.w = nn.Parameter(torch.zeros(1))
    def forward(self, x): return x

def free(n=40_000, c=80, bs=256):
    "A Learner whose model costs nothing"
    preds,targs = data(n, c)
    batches = list(zip(preds.split(bs), targs.split(bs)))
    dls = DataLoaders(*[DataLoader(batches, bs=None, device=torch.device('cpu')) for _ in range(2)])
    return Learner(dls, Free(), loss_func=BCEWithLogitsLossFlat())

def digits(): return multilabel_dls(multidigits())
LEARNERS = {
    'none: predictions of 40,000 x 80': free,
    'of the demo, on the digits': lambda: get_learner(digits()),
    'resnet18, on the digits': lambda: vision_learner(digits(), resnet18, pretrained=False,
                                                      loss_func=BCEWithLogitsLossFlat())}

def validation(learners=LEARNERS, repeats=15):
    """Validation with the callback

    Milliseconds of `learn.validate()` without metrics, and the time that is added by our nine metrics, by
    `ZeroLabelsCallback` in addition to these, and by fastai's seven metrics instead. Each value is the median of the
    differences within 15 rounds. So times of the same metrics differ from the first table, which measures them without
    a Learner, and fastai's and scikit-learn's only once. *Below 99*: too small to measure; it is less than 99 ms, with
    95% confidence."""
    for name,learner in learners.items():
        learn = learner()
        learn.remove_cbs(learn.cbs.filter(lambda o: isinstance(o, (ProgressCallback, ZeroLabelsCallback))))
        def validate(metrics, cbs=None):
            learn.metrics = metrics
            with learn.no_logging(): learn.validate(cbs=cbs)
        ours,theirs = multilabel_metrics(full=True),of_fastai()
        t = {k: 1000*v for k,v in seconds(
            repeats, none=lambda: validate([]), ours=lambda: validate(ours), fastai=lambda: validate(theirs),
            callback=lambda: validate(ours, ZeroLabelsCallback())).items()}
        def adds(a, b): return Difference.of(t[a], t[b])
        yield {'model': name, 'validation': float(np.median(t['none'])), 'metrics': adds('ours','none'),
               'callback': adds('callback','ours'), "fastai's metrics": adds('fastai','none')}

def _megabytes(what): return int(re.search(what+r':\s*(\d+) kB', Path('/proc/self/status').read_text())[1])/1024
def peak(): return _megabytes('VmHWM')
def resident(): return _megabytes('VmRSS')

def measured(f):
    "Seconds of `f()`, and megabytes by which the peak of memory grows meanwhile"
    Path('/proc/self/clear_refs').write_text('5') # Linux resets the peak
    before,start = peak(),time.perf_counter()
    f()
    return time.perf_counter()-start,peak()-before

def stream(metrics, n, c, bs=1000):
    "`metrics()` of `n` samples, which are generated batch by batch"
    blocks = [data(bs, c) for _ in range(3)]
    run = Batches(*blocks[0], bs)
    run.run(metrics())
    run.batches = ((o[0].clone(), o[1].clone()) for i in range(n//bs) for o in [blocks[i%3]])
    return measured(lambda: run.run(metrics()))

def stream_thresholds(n, c, bs=1000):
    "Thresholds in bins of `n` samples, which are generated batch by batch"
    blocks,finder = [data(bs, c) for _ in range(3)],ThreshFinder(average='macro')
    def find(n):
        finder.reset()
        for i in range(n//bs): finder.update(*blocks[i%3])
        finder.compute()
    find(bs)
    return measured(lambda: find(n))

def whole_report(n, c):
    "One `accuracy_report` with its intervals"
    preds,targs = data(n, c, 0.02)
    scores = preds.sigmoid_()
    accuracy_report(*(o[:40,:40] for o in (scores, targs)))
    return measured(lambda: accuracy_report(scores, targs))

STREAMED = {
    'our nine metrics': partial(stream, partial(multilabel_metrics, full=True)),
    "fastai's seven metrics": partial(stream, of_fastai),
    'AP and AUC in 1,024 bins': partial(stream, lambda: L(APScoreMulti(bins=1024), RocAucMulti(bins=1024))),
    'AP and AUC, exact': partial(stream, lambda: L(APScoreMulti(), RocAucMulti())),
    'thresholds per label in 1,024 bins': stream_thresholds,
    '`accuracy_report`': whole_report}

def python(*args):
    "The output of a new Python"
    command = [sys.executable, '-W', 'ignore', *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

FEW,MANY = (20_000,1000),(200_000,1000)
def memory(rows=(*((o, *s) for o in [*STREAMED][:3:2] for s in (FEW,MANY)), *((o, *FEW) for o in [*STREAMED][1:4:2]),
                 ('thresholds per label in 1,024 bins', *MANY), ('`accuracy_report`', *FEW),
                 ('`accuracy_report`', 100_000, 600))):
    """Memory

    Seconds, and growth of the peak memory in MB after a small first run, each in a separate process, on Linux. The
    peak is higher than the memory [between
    batches](../nbs/howto/04_loop_lightning_gpus.ipynb#mixed-precision-and-memory).
    Samples come in batches of 1,000, which are not stored. `accuracy_report` takes one array, and its time includes
    the intervals."""
    for name,n,c in rows:
        s,mb = map(float, python('-m', 'benchmarks', '--stream', name, n, c).split())
        yield {'what': name, 'samples x labels': size(n, c), 's': s, 'MB': mb}

# --- what results.md leaves out

def ranking(sizes=SIZES):
    """Average precision and ROC AUC

    Seconds of macro AP and AUC, exact and in 1,024 bins. The peers are given at most 60 of the labels, which they take
    one after the other, and their time is scaled."""
    for n,c,bs,repeats in sizes:
        preds,targs = data(n, c)
        run,k = Batches(preds, targs, bs),min(c, 60)
        y,p = targs[:,:k].numpy(),preds[:,:k].numpy()
        few = preds[:,:k].contiguous(),targs[:,:k].int()
        t = medians(
            max(1, repeats//2), ('sklearn','torchmetrics'),
            ours=lambda: run.run(L(APScoreMulti(), RocAucMulti())),
            bins=lambda: run.run(L(APScoreMulti(bins=1024), RocAucMulti(bins=1024))),
            sklearn=lambda: (skm.average_precision_score(y, p), skm.roc_auc_score(y, p)),
            torchmetrics=lambda: [f(*few, k, validate_args=False)
                                  for f in (multilabel_average_precision, multilabel_auroc)])
        yield {'samples x labels': size(n, c), 'batch': bs, 'exact': t['ours'], 'in bins': t['bins'],
               'scikit-learn': t['sklearn']*c/k, 'torchmetrics': t['torchmetrics']*c/k}

def labels(sizes=SIZES[:2]):
    """LRAP, coverage error and label ranking loss

    Seconds; scikit-learn is given at most 5,000 of the samples, and its time is scaled."""
    for n,c,bs,repeats in sizes:
        preds,targs = data(n, c)
        run,k = Batches(preds, targs, bs),min(n, 5_000)
        y,p = targs[:k].numpy(),preds[:k].numpy()
        fs = skm.label_ranking_average_precision_score,skm.coverage_error,skm.label_ranking_loss
        t = medians(repeats, ('sklearn',), ours=lambda: run.run(L(LRAP(), CoverageError(), LabelRankingLoss())),
                    sklearn=lambda: [f(y, p) for f in fs])
        yield {'samples x labels': size(n, c), 'batch': bs, 'ours': t['ours'], 'scikit-learn': t['sklearn']*n/k}

def new_data(n=20_000, c=40, size_of_group=10):
    """What holds on new data

    Seconds without and with groups of ten samples, or a confidence of 0.9 that a required recall holds; medians of
    three runs."""
    preds,targs = data(n, c)
    scores,groups = preds.sigmoid_(),torch.arange(n)//size_of_group
    recall = dict(metric='precision', average='macro', at_recall=0.8)
    rows = {'accuracy_report, groups': (accuracy_report, {}, dict(groups=groups)),
            'best_thresholds, groups': (best_thresholds, {}, dict(groups=groups)),
            'best_thresholds, confidence': (best_thresholds, recall, recall|dict(confidence=0.9)),
            'best_thresholds, confidence and groups':
                (best_thresholds, recall, recall|dict(confidence=0.9, groups=groups))}
    for name,(f,without,with_it) in rows.items():
        t = medians(3, without=lambda: f(scores, targs, **without), with_it=lambda: f(scores, targs, **with_it))
        yield {'what': name, 'samples x labels': size(n, c), 'without': t['without'], 'with': t['with_it']}

def every():
    "Each class, in each average that keeps no scores"
    ranking = APScoreMulti,RocAucMulti
    bases = StreamMetric,CountsMetric,MicroMetric,SampleMetric,CurveMetric,LabelRanking,ThreshFinder
    classes = [o for o in globals().values() if isinstance(o, type) and issubclass(o, StreamMetric)]
    args = {FBetaMulti: (2,), PrecisionAtK: (3,), RecallAtK: (3,)}
    binned = [cls(average=a, bins=None if a=='samples' else 256, name=f'{cls.__name__}, {a}')
              for cls in ranking for a in cls.averages]
    counted = [cls(*args.get(cls, ()), average=a, name=f'{cls.__name__}, {a}')
               for cls in classes if cls not in bases+ranking for a in cls.averages]
    return L(counted+binned)

def total(m):
    "The accumulated counts or sums of a metric"
    m.count_batches()
    return m.total

def soak(n=100_000, distinct=100):
    """Many batches

    100,000 batches of 64 x 20 through each class in each average: whether anything grows, slows down, or drifts from
    one pass times 1,000."""
    preds,targs = data(64*distinct, 20)
    run,metrics = Batches(preds, targs, 64),every()
    run.run(metrics)
    once = {m.name: total(m) for m in metrics}
    for m in metrics: m.reset()
    start,at_first = time.perf_counter(),resident()
    for run.iter in range(n):
        run.pred,run.y = run.batches[run.iter%distinct]
        run.yb = run.y,
        for m in metrics: m.accumulate(run)
        if (run.iter+1)%(n//5)==0:
            times = (run.iter+1)//distinct
            of_counts = [m for m in metrics if isinstance(m, CountsMetric) and m.average!='samples']
            whole = all(torch.equal(total(m), times*once[m.name]) for m in of_counts)
            def drift(m): return ((total(m)/times-once[m.name]).abs()/once[m.name].abs().clamp(min=1)).max().item()
            yield {'batches': run.iter+1, 'metrics': len(metrics), 's': time.perf_counter()-start,
                   'growth, MB': resident()-at_first, 'whole counts equal': whole,
                   'largest relative drift': max(map(drift, metrics))}
            start = time.perf_counter()

def importing():
    """Import

    Seconds to import the package after fastai."""
    code = ('import time; from fastai.vision.all import *; t = time.perf_counter(); '
            'import fastai_mlmetrics.all; print(time.perf_counter()-t)')
    yield {'fastai_mlmetrics.all': float(np.median([float(python('-c', code)) for _ in range(3)]))}

# --- the page

PAGE = metrics,thresholds,validation,memory,gpu,on_a_gpu
ALL = *PAGE,ranking,labels,new_data,soak,importing

def summary(tables):
    "What training, thresholds and intervals cost, and what memory it takes: a sentence for each"
    m,t,v,mem = (tables[f.__name__] for f in PAGE[:4])
    m,free,resnet = m.iloc[min(1, len(m)-1)],v.iloc[0],v.iloc[-1]
    def added(difference): return str(difference).replace('below', 'less than')
    fastai_adds = added(free["fastai's metrics"])
    train = (f'You will hardly notice metrics and callback while you train: for {m["samples x labels"]} (samples x '
             f'labels), a validation takes {added(free.metrics)} ms longer with our nine metrics, and '
             f'{added(free.callback)} ms more with the callback. fastai\'s seven metrics take {fastai_adds} ms. '
             f'Beside a resnet18, which validates small images in {short(resnet.validation)} ms {accelerator()}, '
             f'metrics add {added(resnet.metrics)} ms, and the callback {added(resnet.callback)} ms.')
    n = t['samples x labels'].iloc[0]
    of = t[t['samples x labels']==n].set_index('thresholds')
    one,per = of.loc['global, micro F1'],of.loc['per label, jointly for micro F1']
    report = mem[mem.what=='`accuracy_report`'].iloc[-1]
    wait = (f'**Thresholds and intervals**: for {n}, thresholds with their held-out score take '
            f'{short(one["from all scores"])} s (global) or {short(per["from all scores"])} s (per label), '
            f'and {short(one["in bins"])} or {short(per["in bins"])} s in bins. `accuracy_report` with its intervals '
            f'takes {short(report.s)} s for {report["samples x labels"]}.')
    def row(what, i): return mem[mem.what==what].iloc[i]
    few,many = (row('our nine metrics', i) for i in (0,-1))
    exact,bins = row('AP and AUC, exact', -1),row('AP and AUC in 1,024 bins', -1)
    more = 'also' if short(few.MB)==short(many.MB) else f'{short(many.MB)} MB'
    need = (f'**Memory**: our nine metrics take {short(few.MB)} MB for {few["samples x labels"]}, {more} for '
            f'{MANY[0]//FEW[0]} times the samples; AP and AUC take {short(exact.MB)} MB for '
            f'{exact["samples x labels"]} if exact, and {short(bins.MB)} MB for {bins["samples x labels"]} in bins.')
    return [train, wait, need]

def markdown(table):
    "`table` in Markdown"
    def text(o):
        if not isinstance(o, float): return str(o)
        return short(o) if o>=0.01 else np.format_float_positional(o, 1, unique=False, fractional=False, trim='-')
    head,*rows = [[*map(text, row)] for row in (table.columns, *table.itertuples(index=False))]
    return '\n'.join(f"| {' | '.join(o)} |" for o in (head, ['---']*len(head), *rows))

def section(f, table):
    "The heading, the explanation and the table of a section"
    title,_,text = inspect.getdoc(f).partition('\n\n')
    return f"## {title}\n\n{text}\n\n{markdown(table)}"

def where():
    "The machine and the versions"
    return (f'{cpu()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, Python {platform.python_version()}, '
            f'torch {torch.__version__}, numpy {np.__version__}, fastai {fastai.__version__}, '
            f'scikit-learn {sklearn.__version__}. Numbers are of one run, {accelerator()}: medians, '
            'or for memory and slow libraries one measurement.')

def accelerator():
    "Whether there is a GPU, and its name"
    return f'with a GPU, {torch.cuda.get_device_name()}' if torch.cuda.is_available() else 'without a GPU'

def cpu():
    "The name of the processor, on Linux from `/proc/cpuinfo`"
    info = Path('/proc/cpuinfo')
    names = info.read_text().split('model name') if info.exists() else ()
    return names[1].splitlines()[0].strip('\t: ') if len(names)>1 else platform.processor() or platform.machine()

def write(tables, file):
    "Replace `file` by the page of `tables`"
    answer,*more = summary(tables)
    lines = ['# Benchmarks', answer, *(f'- {o}' for o in more), f'Measured on {where()}',
             *(section(f, tables[f.__name__]) for f in PAGE),
             '`python -m benchmarks --save` wrote this page; `python -m benchmarks all` measures more.']
    Path(file).write_text('\n\n'.join(lines)+'\n')

def main(args):
    warnings.simplefilter('ignore')
    warnings.simplefilter('ignore', ZeroLabelsWarning)
    if args[:1]==['--stream']: return print(*STREAMED[args[1]](*map(int, args[2:])))
    save,names = '--save' in args,[o for o in args if o!='--save']
    known = {f.__name__: f for f in ALL}
    if unknown := {*names}-{*known,'all'}: sys.exit(f'{unknown}: give any of {", ".join(known)}, or all')
    asked = ALL if 'all' in names else [known[o] for o in names] or PAGE
    if save and not {*PAGE}<={*asked}: sys.exit('--save writes the whole page: run it without names')
    print(where(), flush=True)
    tables = {}
    for f in asked:
        tables[f.__name__] = pd.DataFrame(f())
        print(f'\n{section(f, tables[f.__name__])}', flush=True)
    if {*PAGE}<={*asked}: print('', *summary(tables), sep='\n')
    if save: write(tables, Path(__file__).parent/'results.md')

if __name__=='__main__': main(sys.argv[1:])
