"Ours beside its peers, in one run on the same data: `python -m benchmarks [metrics] [thresholds]`"
import platform, sys, time, warnings
from statistics import median
import fastai, fastai.metrics as fm, sklearn.metrics as skm
from fastai.vision.all import *
from fastai_mlmetrics.all import *
from torchmetrics import MetricCollection
from torchmetrics.classification import MultilabelAccuracy, MultilabelF1Score

def data(n, c, density=0.05):
    "Logits of a model of some skill, and targets"
    g = torch.Generator().manual_seed(0)
    targs = (torch.rand(n, c, generator=g)<density).float()
    return torch.randn(n, c, generator=g) + 3*targs - 3,targs

def timed(f, repeats):
    "Median seconds of `f`, after one run that is not counted"
    f()
    return median(-time.perf_counter() + (f(), time.perf_counter())[1] for _ in range(repeats))

class Batches:
    "What a metric sees of a Learner in its validation loop, without a model"
    training,to_detach,metrics = False,staticmethod(to_detach),L()
    def __init__(self, preds, targs, bs): self.batches,self.dl,self.dls = list(zip(preds.split(bs), targs.split(bs))),None,SimpleNamespace()
    def run(self, metrics):
        for m in metrics: m.reset()
        for self.iter,(self.pred,self.y) in enumerate(self.batches):
            self.yb = (self.y,)
            for m in metrics: m.accumulate(self)
        return [m.value for m in metrics]

AVERAGES = 'macro','micro','samples','weighted'

def of_fastai(): return [AvgMetric(fm.accuracy_multi), *(fm.F1ScoreMulti(average=a) for a in AVERAGES),
                         fm.PrecisionMulti(average='samples'), fm.RecallMulti(average='samples')]

def of_torchmetrics(c):
    "Without the averages over samples, which it lacks"
    kw = dict(num_labels=c, validate_args=False)
    m = MetricCollection({'accuracy': MultilabelAccuracy(average='micro', **kw), **{a: MultilabelF1Score(average=a, **kw) for a in ('macro','micro','weighted')}})
    def run(batches):
        m.reset()
        for p,y in batches: m.update(p, y.int())
        return m.compute()
    return run

def of_sklearn(preds, targs):
    d,y = (preds>0).numpy(),targs.numpy()
    for a in AVERAGES: skm.f1_score(y, d, average=a, zero_division=0)
    skm.precision_score(y, d, average='samples', zero_division=0); skm.recall_score(y, d, average='samples', zero_division=0)
    return (d==y).mean()

def metrics():
    rows = []
    for n,c,bs,repeats in ((5_000,20,64,5), (40_000,80,256,3), (100_000,600,512,1)):
        preds,targs = data(n, c)
        run = Batches(preds, targs, bs)
        ours,theirs,torchs = multilabel_metrics(),of_fastai(),of_torchmetrics(c)
        t = dict(ours=timed(lambda: run.run(ours), 2*repeats+1), fastai=timed(lambda: run.run(theirs), repeats), torchmetrics=timed(lambda: torchs(run.batches), repeats),
                 sklearn=timed(lambda: of_sklearn(preds, targs), repeats), read=timed(lambda: [p.sum()+y.sum() for p,y in run.batches], 2*repeats+1))
        rows.append({'samples x labels, batch': f'{n:,} x {c}, {bs}', 'ours, s': t['ours'], 'fastai / ours': t['fastai']/t['ours'],
                     'torchmetrics / ours': t['torchmetrics']/t['ours'], 'scikit-learn / ours': t['sklearn']/t['ours'], 'ours / reading': t['ours']/t['read']})
    return rows

def thresholds():
    n,c = 100_000,80
    preds,targs = data(n, c)
    scores = preds.sigmoid()
    def of_sklearn():
        for p,y in zip(scores.T.numpy(), targs.T.numpy()):
            precision,recall,t = skm.precision_recall_curve(y, p)
            t[(2*precision*recall/np.maximum(precision+recall, 1e-9))[:-1].argmax()]
    t = timed(of_sklearn, 3)
    ways = {'one for all labels, micro F1': dict(average='micro'), 'one for all labels, macro F1': dict(per_label=False), 'and one per label': dict(folds=None), 'and checked on held-out folds': {}}
    return [{f'best thresholds, {n:,} x {c}': k, 'ours, s': (o:=timed(lambda: best_thresholds(scores, targs, **kw), 3)), "scikit-learn's loop, per label / ours": t/o} for k,kw in ways.items()]

if __name__=='__main__':
    warnings.simplefilter('ignore')
    print(f'{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}, fastai {fastai.__version__}')
    for name in sys.argv[1:] or ('metrics','thresholds'): print('\n'+pd.DataFrame(dict(metrics=metrics, thresholds=thresholds)[name]()).to_string(index=False, float_format=lambda o: f'{o:.3g}'))
