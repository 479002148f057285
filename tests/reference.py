"scikit-learn's metrics, with its averages, as references"
import sklearn.metrics as skm
from functools import lru_cache
from helpers import *

def sk(f, **fixed): return lambda y,p,w,zd: f(y, p, sample_weight=w, zero_division=zd, **fixed)

def plain(f): return lambda y,p,w,zd: f(y, p, sample_weight=w)

def _jaccard(y, p, w, zd):  return skm.jaccard_score(y, p, sample_weight=w) if (y|p).any() else zd

def _matthews(y, p, w, zd): return skm.matthews_corrcoef(y, p, sample_weight=w) if y.any() and not y.all() else zd

BINARY = {
    PrecisionMulti:           sk(skm.precision_score),
    RecallMulti:              sk(skm.recall_score),
    F1ScoreMulti:             sk(skm.f1_score),
    partial(FBetaMulti, 2):   sk(skm.fbeta_score, beta=2),
    partial(FBetaMulti, 0.3): sk(skm.fbeta_score, beta=0.3),
    partial(FBetaMulti, 0):   sk(skm.fbeta_score, beta=0),
    JaccardMulti:             _jaccard,
    SpecificityMulti:         lambda y,p,w,zd: skm.recall_score(1-y, 1-p, sample_weight=w, zero_division=zd),
    AccuracyMulti:            plain(skm.accuracy_score),
    HammingLossMulti:         plain(skm.hamming_loss),
    ZerosAccuracy:            lambda y,p,w,zd: skm.accuracy_score(y, 0*p, sample_weight=w),
    BrierScoreMulti:          plain(skm.mean_squared_error),
    BalancedAccuracyMulti:    plain(skm.balanced_accuracy_score),
    MatthewsCorrCoefMulti:    _matthews,
    SubsetAccuracy:           lambda y,p,w,zd: float((y==p).all()),
    EmptyRate:                lambda y,p,w,zd: float(not p.any()),
    LabelCardinality:         lambda y,p,w,zd: p.sum()}

DIRECT = {
    PrecisionMulti: skm.precision_score,
    RecallMulti:    skm.recall_score,
    F1ScoreMulti:   skm.f1_score,
    **{o: partial(skm.fbeta_score, beta=o.args[0]) for o in BINARY if isinstance(o, partial)}}

@lru_cache(10**5)
def binary(cls, zero_division, *ypw): return BINARY[cls](*map(np.array, ypw), zero_division)

def reference(cls, y, p, average, keep=None, labels=None, sample_weight=None, zero_division=0.):
    "scikit-learn's metric on the sample-label pairs to `keep`, with scikit-learn's averages"
    if keep is None and cls in DIRECT:
        return DIRECT[cls](y, p, average=average, labels=labels, sample_weight=sample_weight,
                           zero_division=zero_division)
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    keep = np.ones(y.shape, bool) if keep is None else keep
    parts = [y, p, keep, np.broadcast_to(weight[:,None], y.shape)]
    if labels is not None: parts = [o[:,labels] for o in parts]
    def f(y, p, keep, w):
        if not keep.any(): return np.nan
        return binary(cls, zero_division, *(tuple(o[keep].tolist()) for o in (y, p, w))) # cached: most rows recur
    if average=='micro': return f(*parts)
    values = np.array([f(*o) for o in zip(*(o if average=='samples' else o.T for o in parts))])
    if average is None: return values
    support = (parts[0]*parts[2]*parts[3]).sum(0)
    means = dict(samples=weight, macro=np.ones(len(values)), weighted=support)[average]
    defined = ~np.isnan(values)
    if not defined.any(): return np.nan
    return np.average(values[defined], weights=means[defined] if means[defined].sum() else None)

def averages(cls): return getattr(cls, 'func', cls).averages
