"""Time and memory compared with other libraries, in one run on the same data

`python -m benchmarks [--save] [NAME ...]`"""
import multiprocessing, platform, subprocess, sys, time, warnings
from statistics import median
import fastai, fastai_mlmetrics, sklearn, fastai.metrics as fm, sklearn.metrics as skm
from fastai.vision.all import *
from fastai_mlmetrics.all import *
from fastai_mlmetrics.metrics import *
from fastai_mlmetrics.ranking import *
from fastai_mlmetrics.thresholds import ThreshFinder
from fastai_mlmetrics.demo import get_learner
from torchmetrics import MetricCollection
from torchmetrics.classification import MultilabelAccuracy, MultilabelF1Score
from torchmetrics.functional.classification import multilabel_auroc, multilabel_average_precision

SIZES = (5_000,20,64,12),(40_000,80,256,8),(100_000,600,512,4)

def data(n, c, density=0.05):
    "Logits of a model of some skill, and targets"
    g = torch.Generator().manual_seed(0)
    targs = (torch.rand(n, c, generator=g)<density).float()
    return torch.randn(n, c, generator=g) + 3*targs - 3,targs

def timed(repeats, slow=(), **fs):
    """Median seconds of each of `fs`, which take turns, after a round that is not counted

    Those that are `slow` run in every fourth round only."""
    times = {k: [] for k in fs}
    for i in range(-1, repeats):
        for k in [k for k in fs if i%4==0 or k not in slow]:
            start = time.perf_counter()
            fs[k]()
            if i>=0: times[k].append(time.perf_counter()-start)
    return {k: median(v) for k,v in times.items()}

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
    return [AvgMetric(fm.accuracy_multi), *(fm.F1ScoreMulti(average=a) for a in AVERAGES),
            fm.PrecisionMulti(average='samples'), fm.RecallMulti(average='samples')]

def of_torchmetrics(c, validate_args):
    "Without samples averages, which torchmetrics lacks"
    kw = dict(num_labels=c, validate_args=validate_args)
    f1s = {a: MultilabelF1Score(average=a, **kw) for a in ('macro','micro','weighted')}
    m = MetricCollection({'accuracy': MultilabelAccuracy(average='micro', **kw), **f1s})
    def run(batches):
        m.reset()
        for p,y in batches: m.update(p, y.int())
        return m.compute()
    return run

def of_sklearn(preds, targs):
    d,y = (preds>0).numpy(),targs.numpy()
    for a in AVERAGES: skm.f1_score(y, d, average=a, zero_division=0)
    for f in (skm.precision_score, skm.recall_score): f(y, d, average='samples', zero_division=0)
    return (d==y).mean()

def size(n, c, bs): return {'samples x labels, batch': f'{n:,} x {c}, {bs}'}

def metrics():
    """Accuracy, F1 in four averages, precision and recall over samples; ours with `zeros_accuracy` and `empty_rate`
    besides; torchmetrics' without the averages over samples, as it comes (it checks its input, as ours do) and
    unchecked, with `validate_args=False`"""
    for n,c,bs,repeats in SIZES:
        preds,targs = data(n, c)
        run = Batches(preds, targs, bs)
        ours,theirs = multilabel_metrics(full=True),of_fastai()
        torchs,unchecked = of_torchmetrics(c, True),of_torchmetrics(c, False)
        t = timed(
            repeats, ('fastai','sklearn'),
            ours=lambda: run.run(ours), fastai=lambda: run.run(theirs),
            torchmetrics=lambda: torchs(run.batches), unchecked=lambda: unchecked(run.batches),
            read=lambda: [p.sum()+y.sum() for p,y in run.batches], sklearn=lambda: of_sklearn(preds, targs))
        yield {**size(n, c, bs), 'ours, s': t['ours'], 'fastai / ours': t['fastai']/t['ours'],
               'torchmetrics / ours': t['torchmetrics']/t['ours'], 'unchecked / ours': t['unchecked']/t['ours'],
               'scikit-learn / ours': t['sklearn']/t['ours'], 'ours / reading': t['ours']/t['read']}

def twenty():
    "Twenty metrics in mixed averages, and with three thresholds"
    every = [PrecisionMulti, RecallMulti, F1ScoreMulti, partial(FBetaMulti, 2), JaccardMulti, SpecificityMulti]
    return L(*(cls(average=a) for cls in every for a in ('micro','macro')),
             AccuracyMulti(), HammingLossMulti(), BalancedAccuracyMulti(), MatthewsCorrCoefMulti(),
             F1ScoreMulti(average='samples'), SubsetAccuracy(), EmptyRate(), LabelCardinality())

def many():
    "More metrics, and more thresholds, beside the nine of `multilabel_metrics(full=True)`"
    for n,c,bs,repeats in SIZES[:2]:
        run,nine = Batches(*data(n, c), bs),multilabel_metrics(full=True)
        three = nine + multilabel_metrics(thresh=0.2, full=True) + multilabel_metrics(thresh=0.7, full=True)
        lists = dict(nine=nine, twenty=twenty(), three=three)
        t = timed(repeats, **{k: partial(run.run, o) for k,o in lists.items()})
        yield {**size(n, c, bs), 'nine, s': t['nine'], 'twenty / nine': t['twenty']/t['nine'],
               'nine at three thresholds / nine': t['three']/t['nine']}

def ranking():
    """Mean average precision and AUC, exact; and in 1,024 bins. Of 600 labels the peers, which take one after the
    other, are given 60, and ten times their time is compared"""
    for n,c,bs,repeats in SIZES:
        preds,targs = data(n, c)
        run,k = Batches(preds, targs, bs),min(c, 60)
        y,p = targs[:,:k].numpy(),preds[:,:k].numpy()
        few = preds[:,:k].contiguous(),targs[:,:k].int()
        t = timed(
            repeats//2, ('sklearn','torchmetrics'),
            ours=lambda: run.run(L(APScoreMulti(), RocAucMulti())),
            bins=lambda: run.run(L(APScoreMulti(bins=1024), RocAucMulti(bins=1024))),
            sklearn=lambda: (skm.average_precision_score(y, p), skm.roc_auc_score(y, p)),
            torchmetrics=lambda: [f(*few, k, validate_args=False)
                                  for f in (multilabel_average_precision, multilabel_auroc)])
        for o in ('sklearn','torchmetrics'): t[o] *= c/k
        yield {**size(n, c, bs), 'exact, s': t['ours'], 'in bins, s': t['bins'],
               'scikit-learn / exact': t['sklearn']/t['ours'], 'torchmetrics / exact': t['torchmetrics']/t['ours']}

def arrays():
    "Mean average precision and AUC of 100,000 x 60, as whole arrays and in batches of 512, on one thread and on all"
    preds,targs = data(100_000, 60)
    run = Batches(preds, targs, 512)
    y,p = targs.numpy(),preds.numpy()
    every = torch.get_num_threads()
    for threads in dict.fromkeys((1, every)):
        torch.set_num_threads(threads)
        t = timed(8, ('sklearn',), exact=lambda: (APScoreMulti()(preds, targs), RocAucMulti()(preds, targs)),
                  batches=lambda: run.run(L(APScoreMulti(), RocAucMulti())),
                  bins=lambda: (APScoreMulti(bins=1024)(preds, targs), RocAucMulti(bins=1024)(preds, targs)),
                  sklearn=lambda: (skm.average_precision_score(y, p), skm.roc_auc_score(y, p)))
        yield {'threads': threads, 'arrays, s': t['exact'], 'arrays in bins, s': t['bins'], 'batches, s': t['batches'],
               'scikit-learn / arrays': t['sklearn']/t['exact'], 'scikit-learn / batches': t['sklearn']/t['batches']}
    torch.set_num_threads(every)

def labels():
    "LRAP, coverage error and label ranking loss"
    for n,c,bs,repeats in SIZES[:2]:
        preds,targs = data(n, c)
        run,k = Batches(preds, targs, bs),min(n, 5_000)
        y,p = targs[:k].numpy(),preds[:k].numpy()
        fs = skm.label_ranking_average_precision_score,skm.coverage_error,skm.label_ranking_loss
        t = timed(repeats, ('sklearn',), ours=lambda: run.run(L(LRAP(), CoverageError(), LabelRankingLoss())),
                  sklearn=lambda: [f(y, p) for f in fs])
        yield {**size(n, c, bs), 'ours, s': t['ours'],
               'scikit-learn (of 5,000, scaled) / ours': t['sklearn']*n/k/t['ours']}

THRESHOLDS = {'global, micro F1': {}, 'global, macro F1': dict(average='macro', per_label=False),
              'per label, macro F1': dict(average='macro')}

def thresholds():
    """The best thresholds for F1 with their held-out score, exact and in 1,024 bins; the peer is a loop over the labels
    with `precision_recall_curve`, without a held-out score"""
    for n,c in ((100_000,80), (50_000,500)):
        preds,targs = data(n, c)
        scores = preds.sigmoid_()
        def of_sklearn():
            for p,y in zip(scores.T.numpy(), targs.T.numpy()):
                precision,recall,t = skm.precision_recall_curve(y, p)
                t[(2*precision*recall/np.maximum(precision+recall, 1e-9))[:-1].argmax()]
        ways = {(k,bins): partial(best_thresholds, scores, targs, bins=bins, **kw)
                for k,kw in THRESHOLDS.items() for bins in (None,1024)}
        t = timed(2, sklearn=of_sklearn, **{str(k): f for k,f in ways.items()})
        for k in THRESHOLDS:
            exact,binned = (t[str((k,o))] for o in (None,1024))
            yield {'samples x labels': f'{n:,} x {c}', 'thresholds': k, 'exact, s': exact, 'in bins, s': binned,
                   "scikit-learn's loop / exact": t['sklearn']/exact,
                   "scikit-learn's loop / in bins": t['sklearn']/binned}

def stream_thresholds(n, c, bs=1000):
    "Seconds and megabytes of thresholds in bins for `n` samples, which are generated batch by batch"
    blocks,finder = [data(bs, c) for _ in range(3)],ThreshFinder(average='macro')
    finder.update(*blocks[0])
    finder.compute()
    finder.reset()
    Path('/proc/self/clear_refs').write_text('5')
    before,start = peak(),time.perf_counter()
    for i in range(n//bs): finder.update(*blocks[i%3])
    finder.compute()
    return time.perf_counter()-start,peak()-before

def thresholds_in_bins():
    """Time and growth of the peak memory of thresholds per label in 1,024 bins and 5 folds, in batches of 1,000, each
    in a process of its own (Linux only)"""
    for n,c in ((50_000,500), (200_000,500), (200_000,1000)):
        seconds,mb = streamed('thresholds', n, c)
        yield {'samples x labels': f'{n:,} x {c:,}', 's': seconds, 'MB': mb, 'MB of histograms': 16*c*1024*5/1e6}

class Free(Module):
    "A model that costs nothing"
    def __init__(self): self.w = nn.Parameter(torch.zeros(1))
    def forward(self, x): return x
def free():
    "A Learner whose model costs nothing, on 40,000 samples of 80 labels"
    preds,targs = data(40_000, 80)
    batches = list(zip(preds.split(256), targs.split(256)))
    dls = DataLoaders(*[DataLoader(batches, bs=None, device=torch.device('cpu')) for _ in range(2)])
    return Learner(dls, Free(), loss_func=BCEWithLogitsLossFlat())

def validator(learn):
    "A function that validates `learn` with the metrics and callbacks that it is given"
    learn.remove_cbs(learn.cbs.filter(lambda o: isinstance(o, (ProgressCallback, ZeroLabelsCallback))))
    def validate(metrics, cbs=None):
        learn.metrics = metrics
        with learn.no_logging(): learn.validate(cbs=cbs)
    return validate

def validation():
    """What metrics add to `learn.validate()`: with a model that costs nothing, and on the embedded data with a small
    and a larger one"""
    digits = multilabel_dls(multidigits())
    def resnet(): return vision_learner(digits, resnet18, pretrained=False, loss_func=BCEWithLogitsLossFlat())
    learners = {'no model, 40,000 x 80': free,
                'the demo\'s, on the digits': lambda: get_learner(digits),
                'resnet18, on the digits': resnet}
    for name,learner in learners.items():
        validate = validator(learner())
        ours,theirs = multilabel_metrics(full=True),of_fastai()
        t = timed(5, none=lambda: validate([]), ours=lambda: validate(ours), fastai=lambda: validate(theirs),
                  callback=lambda: validate(ours, ZeroLabelsCallback()))
        def adds(k): return 100*(t[k]/t['none']-1)
        yield {'model': name, 'without metrics, s': t['none'], 'ours adds, %': adds('ours'),
               'ours and the callback adds, %': adds('callback'), 'fastai adds, %': adds('fastai')}

def spin():
    while True: pass

def busy():
    """Seconds that metrics add to `learn.validate()` while the cores have other work: two processes that load the
    pictures, or one that never rests"""
    digits = multilabel_dls(multidigits(), num_workers=2)
    other = multiprocessing.Process(target=spin, daemon=True)
    learners = {'the digits, two processes loading': get_learner(digits),
                'no model, 40,000 x 80, another process busy': free()}
    for name,learn in learners.items():
        if 'another' in name: other.start()
        validate = validator(learn)
        lists = dict(none=[], ours=multilabel_metrics(full=True), fastai=of_fastai())
        t = timed(5, **{k: partial(validate, o) for k,o in lists.items()})
        yield {'validation': name, 'without metrics, s': t['none'], 'ours add, s': t['ours']-t['none'],
               'fastai adds, s': t['fastai']-t['none']}
    other.terminate()

def _megabytes(what): return int(re.search(what+r':\s*(\d+) kB', Path('/proc/self/status').read_text())[1])/1024
def peak(): return _megabytes('VmHWM')
def resident(): return _megabytes('VmRSS')

def stream(metrics, n, c, bs=1000):
    "Seconds and megabytes for `n` samples, which are generated batch by batch"
    blocks = [data(bs, c) for _ in range(3)]
    run = Batches(*blocks[0], bs)
    run.run(metrics())
    Path('/proc/self/clear_refs').write_text('5') # Linux resets the peak
    before,start = peak(),time.perf_counter()
    run.batches = ((o[0].clone(), o[1].clone()) for i in range(n//bs) for o in [blocks[i%3]])
    run.run(metrics())
    return time.perf_counter()-start,peak()-before

def stream_report(n, c):
    "Seconds and megabytes of one `accuracy_report`"
    preds,targs = data(n, c, 0.02)
    scores = preds.sigmoid_()
    accuracy_report(*(o[:40,:40] for o in (scores, targs)))
    Path('/proc/self/clear_refs').write_text('5')
    before,start = peak(),time.perf_counter()
    accuracy_report(scores, targs)
    return time.perf_counter()-start,peak()-before

STREAMED = dict(
    ours=partial(multilabel_metrics, full=True),
    fastai=of_fastai,
    exact=lambda: L(APScoreMulti(), RocAucMulti()),
    bins=lambda: L(APScoreMulti(bins=1024), RocAucMulti(bins=1024)))

def python(*args):
    "The output of a new Python"
    command = [sys.executable, '-W', 'ignore', *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

def streamed(*args): return map(float, python('-m', 'benchmarks', '--stream', *args).split())

def memory():
    "Time and growth of the peak memory while batches of 1,000 samples come, each in a process of its own (Linux only)"
    for name,n,c in (('ours',200_000,1000), ('fastai',20_000,1000), ('bins',200_000,1000), ('exact',20_000,1000)):
        seconds,mb = streamed(name, n, c)
        yield {'metrics': NAMES[name], 'samples x labels': f'{n:,} x {c:,}', 's': seconds, 'MB': mb}

def report():
    """Time and growth of the peak memory of `accuracy_report`, intervals included, each in a process of its own
    (Linux only)"""
    for n,c in ((20_000,1000), (20_000,2000), (100_000,600), (50,20_000)):
        seconds,mb = streamed('report', n, c)
        yield {'samples x labels': f'{n:,} x {c:,}', 's': seconds, 'MB': mb}

NAMES = dict(ours='multilabel_metrics(full=True)', fastai="fastai's seven", bins='AP and AUC in 1,024 bins',
             exact='AP and AUC, exact')

def draw_growth(df, file):
    "Time and memory over the number of samples"
    fig,axs = plt.subplots(1, 2, figsize=(9,3.6), layout='constrained')
    ylabels = {'s': 'seconds, in batches of 1,000', 'MB': 'MB of memory more, at the peak'}
    for ax,(column,ylabel) in zip(axs, ylabels.items()):
        for name,o in df.groupby('metrics', sort=False):
            ax.plot(o.samples, o[column].where(o[column]>0), 'o-', label=NAMES[name])
        ax.set(xscale='log', yscale='log', xlabel='samples in a validation, of 20 labels each', ylabel=ylabel)
        ax.grid(alpha=0.3)
    axs[0].set_title('Time', fontsize=10)
    axs[1].set_title('Memory', fontsize=10)
    fig.legend(*axs[0].get_legend_handles_labels(), loc='outside lower center', ncols=4, fontsize=9)
    fig.savefig(Path(__file__).parent/file, dpi=90)
    plt.close(fig)

def growth():
    "Time and peak memory over the number of samples, of 20 labels"
    for n in (1000, 30_000, 1_000_000):
        for name in ('ours','bins','exact','fastai'):
            if name=="fastai" and n>30_000: continue # takes minutes
            seconds,mb = streamed(name, n, 20)
            yield {'samples': n, 'metrics': name, 's': seconds, 'MB': mb}

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
    """100,000 batches of 64 x 20 through each class in each average: whether anything grows, slows down, or drifts
    from one pass times 1,000"""
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
    "Seconds to import, after fastai"
    code = ('import time; from fastai.vision.all import *; t = time.perf_counter(); '
            'import fastai_mlmetrics.all; print(time.perf_counter()-t)')
    yield {'fastai_mlmetrics.all': median(float(python('-c', code)) for _ in range(3))}

ALL = (metrics,many,ranking,arrays,labels,thresholds,thresholds_in_bins,report,validation,busy,memory,growth,soak,
       importing)

def markdown(table):
    "`table` in Markdown"
    def text(o): return f'{o:.3g}' if isinstance(o, float) else str(o)
    head,*rows = [[*map(text, row)] for row in (table.columns, *table.itertuples(index=False))]
    return '\n'.join(f"| {' | '.join(o)} |" for o in (head, ['---']*len(head), *rows))

def main(args):
    warnings.simplefilter('ignore')
    if args[:2]==['--stream','report']: return print(*stream_report(*map(int, args[2:])))
    if args[:2]==['--stream','thresholds']: return print(*stream_thresholds(*map(int, args[2:])))
    if args[:1]==['--stream']: return print(*stream(STREAMED[args[1]], *map(int, args[2:])))
    save = '--save' in args
    asked = [f for f in ALL if f.__name__ in args] or ALL
    page = [f'{cpu()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}, '
            f'numpy {np.__version__}, fastai {fastai.__version__}, scikit-learn {sklearn.__version__}. '
            'Medians, in one run; GPUs are not measured.']
    print(page[0], flush=True)
    for f in asked:
        table,doc = pd.DataFrame(f()),' '.join(f.__doc__.split())
        shown = table.to_string(index=False, float_format='{:.3g}'.format)
        print(f'\n{f.__name__}: {doc}\n{shown}', flush=True)
        page += [f'## {f.__name__}', doc+'.', markdown(table)]
        if save and f is growth:
            draw_growth(table, 'growth.png')
            page.append('![](growth.png)')
    if not save: return
    page = ['# Benchmarks', '`python -m benchmarks --save` wrote this page.', *page]
    (Path(__file__).parent/'results.md').write_text('\n\n'.join(page)+'\n')

def cpu():
    "The name of the processor, on Linux from `/proc/cpuinfo`"
    info = Path('/proc/cpuinfo')
    names = info.read_text().split('model name') if info.exists() else ()
    return names[1].splitlines()[0].strip('\t: ') if len(names)>1 else platform.processor() or platform.machine()

if __name__=='__main__': main(sys.argv[1:])
