"Metrics without a threshold, compared with scikit-learn and torchmetrics on the same scores"
import gc, itertools, sklearn.metrics as skm, torchmetrics.functional.classification as tm
from fractions import Fraction
from helpers import *
from reference import *
from fastai_mlmetrics.metrics import curves, ranking
from fastai_mlmetrics.metrics.curves import bin_place

AVERAGES = 'micro','macro','weighted','samples',None
KINDS = [np.float64, np.int64, torch.float32, torch.float16, torch.bfloat16, torch.uint8, 'strided', TensorBase]

@st.composite
def ranked(draw, min_labels=2, max_labels=6, max_samples=12):
    "Scores with many ties, which are exact in every type, and targets, N x C"
    shape = draw(st.integers(1, max_samples)),draw(st.integers(min_labels, max_labels))
    top = draw(st.sampled_from([0, 1, 3, 100]))
    scores = draw(arrays(np.int64, shape, elements=st.integers(0, top)))
    return scores,draw(arrays(np.int64, shape, elements=st.integers(0, 1)))

def weights(n): return st.none() | arrays(float, n, elements=st.floats(0.125, 4))

def as_input(s, kind):
    "Scores in the same order, as `kind`"
    if isinstance(kind, type) and kind is not TensorBase: return s.astype(kind)
    t = torch.from_numpy(s)
    if kind is torch.uint8: return t.to(kind)
    if isinstance(kind, torch.dtype): return (t-50.).to(kind)
    return torch.stack([t]*2, -1).float()[...,0] if kind=='strided' else TensorBase(-1./(1+t).double())

def ap(y, s, w=None): return skm.average_precision_score(y, s, sample_weight=w) if y.any() else np.nan

def reference(f, y, s, average, keep=None, weight=None, zero_division=0.):
    "The average of a binary metric `f` over rows or columns, on the sample-label pairs to `keep`"
    keep = np.ones(y.shape, bool) if keep is None else keep
    w = np.broadcast_to((np.ones(len(y)) if weight is None else weight)[:,None], y.shape)
    def one(y, s, keep, w):
        if not keep.any(): return np.nan
        value = f(y[keep], s[keep], w[keep])
        return zero_division if np.isnan(value) else value
    if average=='micro': return one(y, s, keep, w)
    if average=='samples': rows = zip(y, s, keep, np.ones(y.shape))
    else: rows = zip(y.T, s.T, keep.T, w.T)
    values = np.array([one(*o) for o in rows])
    if average is None: return values
    means = dict(samples=w[:,0], macro=np.ones(len(values)), weighted=(y*keep*w).sum(0))[average]
    ok = ~np.isnan(values)
    if not ok.any(): return np.nan
    return np.average(values[ok], weights=means[ok] if means[ok].sum() else None)

CURVES = {APScoreMulti: ap, RocAucMulti: auc, partial(RocAucMulti, max_fpr=0.3): partial(auc, max_fpr=0.3)}
def named(o):
    return ''.join(getattr(o, 'func', o).__name__ + str(getattr(o, 'keywords', ''))) if callable(o) else str(o)

@pytest.mark.parametrize('cls', CURVES, ids=named)
@given(ranked(), st.sampled_from([0., 1., np.nan]), st.sampled_from(KINDS), st.integers(1, 12), st.data())
def test_values_are_scikit_learn_s(cls, ranked, zero_division, kind, bs, data):
    s,y = ranked
    labels = data.draw(st.none() | st.lists(st.integers(0, s.shape[1]-1), min_size=1, unique=True))
    weight = data.draw(weights(len(s)))
    keep = data.draw(st.none() | arrays(bool, s.shape))
    targs = y if keep is None else np.where(keep, y, -1)
    preds = as_input(s, kind)
    cut = slice(None) if labels is None else labels
    for average in AVERAGES:
        m = cls(average=average, labels=labels, zero_division=zero_division, sample_weight=weight, ignore_index=-1)
        for i in range(0, len(s), bs): m.accum_values(preds[i:i+bs], targs[i:i+bs])
        kept = None if keep is None else keep[:,cut]
        ref = reference(CURVES[cls], y[:,cut], s[:,cut], average, kept, weight, zero_division)
        with warnings_as('ignore'):
            same(m.value, ref, 1e-9, average)
            same(m(preds, targs), ref, 1e-9, average)

@given(ranked())
def test_averages_are_scikit_learn_s(ranked):
    "All averages by scikit-learn itself"
    s,y = ranked
    with warnings_as('ignore'):
        for average in AVERAGES:
            same(APScoreMulti(average=average)(s, y), skm.average_precision_score(y, s, average=average), 1e-9)
            ref = skm.roc_auc_score(y, s, average=average)
            if not np.isnan(ref).any() and y.any(): same(RocAucMulti(average=average)(s, y), ref, 1e-9)

def test_values_are_torchmetrics_s():
    torch.manual_seed(0)
    s = torch.rand(300,7).round(decimals=2)
    y = (torch.rand(300,7)<torch.linspace(0.02, 0.9, 7)).long()
    for average in ('micro','macro','weighted',None):
        kw = dict(average=average or 'none')
        same(APScoreMulti(average=average)(s, y), tm.multilabel_average_precision(s, y, 7, **kw), 1e-6)
        same(RocAucMulti(average=average)(s, y), tm.multilabel_auroc(s, y, 7, **kw), 1e-6)
    s,y = torch.rand(300,7),(torch.rand(300,7)<0.3).long() # no ties: torchmetrics treats them differently
    same(LRAP()(s, y), tm.multilabel_ranking_average_precision(s, y, 7), 1e-6)
    same(CoverageError()(s, y), tm.multilabel_coverage_error(s, y, 7), 1e-5)
    same(LabelRankingLoss()(s, y), tm.multilabel_ranking_loss(s, y, 7), 1e-6)

def sk(f, single):
    "The metric `f` of one sample; of a single label, which scikit-learn refuses, it is that of `single`"
    def of_sample(y, s):
        if len(y)==1: return single(y, s)
        return f(np.stack([y, 1-y]), np.stack([s, s]), sample_weight=[1,0])
    return of_sample

LABELS = {
    LRAP:             sk(skm.label_ranking_average_precision_score, single=lambda y,s: 1.),
    CoverageError:    sk(skm.coverage_error, single=lambda y,s: y.sum()),
    LabelRankingLoss: sk(skm.label_ranking_loss, single=lambda y,s: 0.)}

@pytest.mark.parametrize('cls', LABELS, ids=named)
@given(ranked(), st.sampled_from(KINDS), st.integers(1, 12), st.data())
def test_label_ranking_is_scikit_learn_s(cls, ranked, kind, bs, data):
    s,y = ranked
    weight = data.draw(weights(len(s)))
    keep = data.draw(arrays(bool, s.shape))
    preds = as_input(s, kind)
    with warnings_as('ignore'):
        m = cls(sample_weight=weight)
        for i in range(0, len(s), bs): m.accum_values(preds[i:i+bs], y[i:i+bs])
        same(m.value, np.average([LABELS[cls](*o) for o in zip(y, s)], weights=weight), 1e-9)
        values = [LABELS[cls](a[k], b[k]) for a,b,k in zip(y, s, keep) if k.any()]
        same(cls(ignore_index=-1)(preds, np.where(keep, y, -1)), np.mean(values) if values else np.nan, 1e-9)

@pytest.mark.parametrize('k', [1,2,3])
@given(ranked(3, 4, 4))
def test_at_k_is_the_mean_over_all_orders_of_ties(k, ranked):
    s,y = ranked
    def hits(y, s):
        orders = [o for o in itertools.permutations(range(len(y))) if (np.diff(s[list(o)])<=0).all()]
        return np.mean([y[list(o[:k])].sum() for o in orders])
    each = np.array([hits(*o) for o in zip(y, s)])
    same(PrecisionAtK(k)(s, y), (each/k).mean(), 1e-9)
    true = y.sum(1)
    same(RecallAtK(k)(s, y), np.where(true>0, each/np.maximum(true, 1), 0).mean(), 1e-9)
    some = true>0
    if some.any(): same(RecallAtK(k, zero_division=math.nan)(s, y), (each[some]/true[some]).mean(), 1e-9)
    if k==1: same(OneError()(s, y), (1-each).mean(), 1e-9)

def test_lrap_is_the_average_precision_of_samples():
    logits,targs = simulate(200, 7, density=0.3)
    same(LRAP(zero_division=0.)(logits, targs), APScoreMulti(average='samples')(logits, targs))

def test_scores_are_ranked_as_they_are():
    "The float32 sigmoids of these logits are all 1"
    s,y = tensor([[30.],[31.],[32.],[-0.],[0.]]),tensor([[0],[1],[1],[1],[0]])
    assert RocAucMulti()(s, y)==RocAucMulti(sigmoid=False)(s, y)==skm.roc_auc_score(y, s)
    tiny = torch.tensor([[1e-40],[0.],[-1e-40],[math.inf],[-math.inf]])
    same(RocAucMulti()(tiny, y), skm.roc_auc_score(y, [2,1,0,3,-1]))
    close = torch.tensor([[1.],[1+1e-15],[1-1e-15],[2.],[0.]], dtype=torch.float64)
    same(RocAucMulti()(close, y), skm.roc_auc_score(y, close))

# Bins

@pytest.mark.parametrize('average', ['micro','macro','weighted',None], ids=str)
@pytest.mark.parametrize('cls', CURVES, ids=named)
@given(st.integers(0, 999), st.sampled_from([2,5,64,1024]), st.sampled_from([1e-3,1,5]), st.booleans())
def test_elements_of_a_bin_are_tied(cls, average, seed, bins, scale, weighted):
    rng = np.random.default_rng(seed)
    y = (rng.random((60,4)) < [0.5,0.1,0.02,0.]).astype(int)
    s = (scale*(rng.normal(size=y.shape)+y)).astype(np.float32)
    kw = dict(average=average, sample_weight=rng.uniform(0.1, 3, 60) if weighted else None)
    tied = -bin_place(tensor(s), bins).floor()
    same(cls(bins=bins, **kw)(s, y), cls(**kw)(tied, y), 1e-9)

def test_bins_of_the_scores_lose_nothing():
    s = torch.arange(-8., 8)[:,None].repeat(5, 3)
    y = (torch.rand(s.shape)<0.3).long()
    for kw in (dict(bins=48), dict(bins=48, sample_weight=np.linspace(0.1, 2, 80)), dict(bins=48, average='micro')):
        for cls in (RocAucMulti, APScoreMulti):
            same(cls(**kw)(s, y), cls(**{**kw, 'bins':None})(s, y), 1e-9)

def test_bins_of_probabilities_are_those_of_logits():
    logits,targs = simulate(400)
    binned = APScoreMulti(bins=4096)(logits, targs)
    same(binned, APScoreMulti(bins=4096, sigmoid=False)(logits.double().sigmoid(), targs), 2e-3)
    same(binned, APScoreMulti()(logits, targs), 5e-3)
    with pytest.raises(ValueError, match='is for probabilities.*sigmoid=True'):
        APScoreMulti(bins=64, sigmoid=False)(logits, targs)
    with pytest.warns(UserWarning, match='probabilities already'): APScoreMulti(bins=64)(logits.sigmoid(), targs)

# What is stored

@pytest.fixture
def sorts(monkeypatch):
    "The shapes of all score arrays that were sorted"
    shapes = []
    def counting(f):
        def counted(scores, *args):
            shapes.append(tuple(scores.shape))
            return f(scores, *args)
        return counted
    for room,name in ((curves,'label_curve'), (curves,'sort_curve'), (ranking,'sort_curve')):
        monkeypatch.setattr(room, name, counting(getattr(room, name)))
    return shapes

def test_all_metrics_share_one_copy_and_one_sort(sorts):
    logits,targs = simulate(50)
    metrics = [APScoreMulti(), RocAucMulti(), RocAucMulti(max_fpr=0.1, name='partial'), APScoreMulti(average=None),
               APScoreMulti(average='micro'), RocAucMulti(average='micro'), F1ScoreMulti()]
    learn = in_learner(logits, targs, *metrics)
    assert sorts==[(20,50), (1000,)]
    kept = {id(k) for m in learn.metrics[:6] for k in m.total}
    assert len(kept)==1 and sum(k.scores.nbytes+k.y.nbytes for k in learn.metrics[0].total)==50*20*5
    [m.value for m in learn.metrics]
    assert len(sorts)==2
    learn.metrics[0].accum_values(logits[:5], targs[:5])
    assert learn.metrics[0].value==APScoreMulti()(torch.cat([logits, logits[:5]]), torch.cat([targs, targs[:5]]))
    assert learn.metrics[1].value==RocAucMulti()(logits, targs)

def test_samples_are_sorted_once_and_nothing_is_kept(sorts):
    logits,targs = simulate(50)
    metrics = [LRAP(), CoverageError(), LabelRankingLoss(), OneError(), PrecisionAtK(3), RecallAtK(3),
               APScoreMulti(average='samples'), ExpectedCalibrationError()]
    learn = in_learner(logits, targs, *metrics)
    assert sorts==[(50,20)]
    for m in learn.metrics: assert m.total.numel()<=3*20*15

@pytest.mark.parametrize('kind', [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_scores_are_kept_in_their_type(kind):
    logits,targs = simulate(40)
    m = APScoreMulti()
    m.accum_values(logits.to(kind), targs)
    assert all(k.scores.dtype==kind and k.y.dtype==torch.bool for k in m.total)
    same(m.value, skm.average_precision_score(targs, logits.to(kind).double()), 1e-9)

def test_bins_keep_no_scores():
    sizes = []
    for n in (100, 1000):
        learn = in_learner(*simulate(n), APScoreMulti(bins=64), RocAucMulti(bins=64))
        sizes.append(sum(o.nbytes for m in learn.metrics for o in vars(m).values() if isinstance(o, Tensor)))
    assert sizes[0]==sizes[1]<2.1*(2*20*64*8)

def test_reused_memory_is_copied():
    logits,targs = simulate(48)
    m, = in_learner(logits, targs, APScoreMulti(), model=OneBuffer()).metrics
    same(m.value, APScoreMulti()(logits, targs))

def test_pickles_hold_no_scores():
    logits,targs = simulate(500)
    learn = in_learner(logits, targs, APScoreMulti(), RocAucMulti(bins=4), LRAP())
    value = learn.metrics[0].value
    for m in learn.metrics: assert len(pickle.dumps(m))<2000
    again = pickle.loads(pickle.dumps(learn.metrics))
    assert all(m.value is None for m in again) and again[0](logits, targs)==value

OPTIONS = dict(), dict(bins=32), dict(ignore_index=-1), dict(labels=[1,3])
ALL = [*(cls(average=a, **kw) for cls in CURVES for a in AVERAGES for kw in OPTIONS
         if a!='samples' or 'bins' not in kw),
       LRAP(), CoverageError(), LabelRankingLoss(), OneError(), PrecisionAtK(2), RecallAtK(2),
       *(ExpectedCalibrationError(average=a) for a in ('micro','macro','weighted',None))]

def test_no_batch_waits_for_values(monkeypatch):
    class Learn: iter = 0
    learn,metrics = Learn(),deepcopy(ALL)
    monkeypatch.setattr('fastai_mlmetrics.metrics.streaming._MANY', 3)
    for learn.iter in range(10): # enough for stored batches to be added
        learn.pred,learn.yb = torch.randn(10, 6, device='meta'),(torch.zeros(10, 6, device='meta'),)
        for m in metrics: m.accumulate(learn)
    for m in metrics:
        with pytest.raises((NotImplementedError, RuntimeError), match='(?i)meta tensor'): m.value

# Compared with fastai's

@pytest.mark.parametrize('average', AVERAGES[:-1])
def test_values_are_fastai_s(average):
    import fastai.metrics as fm
    logits,targs = simulate(130, 6, density=0.3)
    targs[:,0],targs[:,1] = 1,0 # AUC by scikit-learn needs both classes in each sample
    if average!='samples': targs[::2,:2] = targs[::2,:2].flip(1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 130)
    calls = [(APScoreMulti, fm.APScoreMulti, (True, average), {}),
             (APScoreMulti, fm.APScoreMulti, (True, average, 1, weight), {}),
             (RocAucMulti, fm.RocAucMulti, (True, average), {}),
             (RocAucMulti, fm.RocAucMulti, (True, average, weight), dict(max_fpr=0.2))]
    for ours,theirs,args,kw in calls:
        a,b = in_learner(logits, targs, ours(*args, **kw), theirs(*args, **kw)).metrics
        same(a.value, b.value, 1e-6)
    assert (APScoreMulti().name,RocAucMulti().name)==(fm.APScoreMulti().name,fm.RocAucMulti().name)

# Undefined values and errors

def test_undefined_values_are_what_zero_division_says():
    s,y = tensor([[.1,.2,.3],[.3,.2,.1],[.2,.5,.4]]),tensor([[0,1,0],[0,1,1],[0,1,0]])
    same(RocAucMulti(average=None)(s, y), [math.nan,math.nan,0.])
    same([RocAucMulti()(s, y), RocAucMulti(average='weighted')(s, y), RocAucMulti(zero_division=0.5)(s, y)],
         [0.,0.,1/3])
    same(APScoreMulti(average=None)(s, y), [0.,1.,1/3])
    same(APScoreMulti(zero_division=math.nan)(s, y), 2/3)
    assert math.isnan(RocAucMulti()(s, 0*y)) and APScoreMulti()(s, 0*y)==0
    none,every = tensor([[0,0]]),tensor([[1,1]])
    for cls,a,b in ((LRAP,1,1), (CoverageError,0,2), (LabelRankingLoss,0,0), (OneError,1,0),
                    (partial(PrecisionAtK, 2),0,1), (partial(RecallAtK, 2),0,1)):
        assert (cls()(s[:1,:2], none),cls()(s[:1,:2], every))==(a,b)
    assert RocAucMulti()(s[:,0], y[:,1])!=RocAucMulti()(s[:,0], y[:,1]) # NaN
    assert APScoreMulti()(s[:,0], y[:,1])==1
    for m in ALL:
        m = deepcopy(m)
        m.update(torch.zeros(0,6), torch.zeros(0,6))
        assert m.compute() is None

def test_mistakes_are_named():
    logits,targs = simulate(30, 4)
    for f,match in (
            (lambda: APScoreMulti(average='mean'), "no average='mean'"),
            (lambda: LRAP(average='macro'), "no average='macro'"),
            (lambda: RocAucMulti(max_fpr=0), 'max_fpr=0'),
            (lambda: PrecisionAtK(0), 'k=0'),
            (lambda: PrecisionAtK(5)(logits, targs), 'k=5.*4 labels'),
            (lambda: APScoreMulti(bins=1), 'bins=1'),
            (lambda: APScoreMulti(bins=1.5), 'bins=1.5'),
            (lambda: ExpectedCalibrationError(0), 'n_bins=0'),
            (lambda: ExpectedCalibrationError(sigmoid=False)(logits, targs), 'is for probabilities'),
            (lambda: APScoreMulti()(logits, targs*2), 'must be 0 or 1'),
            (lambda: LRAP()(logits, targs[:3]), 'shape')):
        with pytest.raises(ValueError, match=match): f()
    with pytest.warns(UserWarning, match='pos_label=0'): APScoreMulti(pos_label=0)
    logits[3,2] = math.nan
    for m in (APScoreMulti(), APScoreMulti(bins=8), LRAP(), ExpectedCalibrationError()):
        with pytest.warns(UserWarning, match='NaN in 1 sample,'): assert math.isnan(m(logits, targs))
        assert not math.isnan(type(m)(ignore_index=-1)(logits, torch.where(logits.isnan(), -1, targs)))

def test_a_value_after_each_batch_keeps_the_curves_of_one_reading():
    "So memory grows with the scores, not with their square"
    def n_alive(): return sum(isinstance(o, curves.Curve) for o in gc.get_objects())
    gc.collect()
    before = n_alive()
    metrics = APScoreMulti(),RocAucMulti(),APScoreMulti(average='micro')
    for _ in range(9):
        for m in metrics: m.accum_values(torch.randn(20, 3), torch.ones(20, 3))
        for m in metrics: m.compute()
    gc.collect()
    assert n_alive()-before<=6

# Calibration

SCORES = arrays(np.float32, (20,3), elements=st.floats(0, 1, width=32))

@given(SCORES, arrays(np.int64, (20,3), elements=st.integers(0, 1)), st.integers(1, 20))
def test_calibration_error_is_torchmetrics_s(s, y, n):
    s = torch.from_numpy((s*0.98*n).astype(int)+0.37).float()/n # not at the edges, where bins may differ
    y = torch.from_numpy(y)
    ece = partial(ExpectedCalibrationError, n, sigmoid=False)
    same(ece()(s, y), tm.binary_calibration_error(s.flatten(), y.flatten(), n), 1e-6)
    each = [tm.binary_calibration_error(a, b, n).item() for a,b in zip(s.T, y.T)]
    same(ece(average=None)(s, y), each, 1e-6)
    same(ece(average='macro')(s, y), np.mean(each), 1e-6)
    if y.any(): same(ece(average='weighted')(s, y), np.average(each, weights=y.sum(0)), 1e-6)
    w = np.arange(20)%3+1
    repeated = [o.repeat_interleave(tensor(w), 0) for o in (s, y)]
    same(ece(sample_weight=w)(s, y), ece()(*repeated), 1e-9)

@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('n', [1,3,7,10,49])
def test_a_score_on_an_edge_is_in_the_bin_above(dtype, n):
    "In the type of the scores: 0.7 in float32 is a little less than in float64, and not below 7/10"
    s = torch.tensor([i/n for i in range(n+1)], dtype=dtype)[:,None]
    m = ExpectedCalibrationError(n, sigmoid=False)
    m(s, torch.zeros_like(s))
    test_eq(m.read()[0][2,0].tolist(), [1.]*(n-1)+[2.])

def test_scores_that_are_the_frequency_are_calibrated():
    "Scores that are the label's frequency are calibrated, but useless"
    y = (torch.rand(20_000, 3)<tensor([.5,.1,.02])).long()
    assert ExpectedCalibrationError(sigmoid=False)(y.double().mean(0).expand_as(y), y)<1e-9

def from_definition(y, s, voc):
    "Mean of the highest precision at any higher recall, at eleven recalls or at each true positive; in fractions"
    y,s = np.asarray(y),np.asarray(s)
    if not y.sum(): return 0
    def point(t):
        "Recall and precision of all scores from `t`"
        tp = int(y[s>=t].sum())
        return Fraction(tp, int(y.sum())),Fraction(tp, int((s>=t).sum()))
    points = [point(t) for t in np.unique(s)]
    def highest(recall): return max(p for r,p in points if r>=recall)
    if voc==2007: return float(sum(highest(Fraction(k, 10)) for k in range(11))/11)
    at = sorted({r for r,_ in points})
    return float(sum((r-before)*highest(r) for before,r in zip([0, *at], at)))

@given(st.data())
def test_interpolated_average_precision_is_the_definition(data):
    n,c = data.draw(st.integers(1, 25)),data.draw(st.integers(1, 4))
    y = data.draw(arrays(np.int64, (n,c), elements=st.integers(0, 1)))
    s = data.draw(arrays(np.float32, (n,c), elements=st.integers(-8, 8).map(float))) # with ties
    for voc in (2007,2010):
        each = [from_definition(*o, voc) for o in zip(y.T, s.T)]
        close(APScoreMulti(average=None, voc=voc)(s, y), each)
        close(APScoreMulti(voc=voc)(s, y), np.mean(each))
        close(APScoreMulti(voc=voc, average='micro')(s, y), from_definition(y.ravel(), s.ravel(), voc))
        close(APScoreMulti(voc=voc, average='samples')(s, y), np.mean([from_definition(*o, voc) for o in zip(y, s)]))
        times = data.draw(arrays(np.int64, n, elements=st.integers(0, 3)))
        if times.any(): # a sample with weight w counts w times
            repeated = [np.repeat(o, times, 0) for o in (s, y)]
            close(APScoreMulti(voc=voc, sample_weight=times)(s, y), APScoreMulti(voc=voc)(*repeated))
            close(APScoreMulti(voc=voc, sample_weight=times/7)(s, y), APScoreMulti(voc=voc)(*repeated))
        off = data.draw(arrays(np.bool_, (n,c)))
        marked = np.where(off, -1, y) # difficult objects
        close(APScoreMulti(average=None, voc=voc, ignore_index=-1)(s, marked)[~off.all(0)],
             [from_definition(a[~o], b[~o], voc) for a,b,o in zip(y.T, s.T, off.T) if not o.all()])
    assert (APScoreMulti(average=None, voc=2010)(s, y) >= APScoreMulti(average=None)(s, y)-1e-12).all()

def test_voc_is_named_and_checked():
    names = [APScoreMulti(voc=o).name for o in (None,2007,2010)]
    assert names==['average_precision_score','average_precision_score_voc2007','average_precision_score_voc2010']
    assert repr(APScoreMulti(voc=2007))=='APScoreMulti(voc=2007)'
    assert APScoreMulti(voc=2007)(*simulate())==paper_metrics(voc=2007)[0](*simulate())
    with pytest.raises(ValueError, match='voc=2012 should be'): APScoreMulti(voc=2012)
    with pytest.raises(ValueError, match='leave out bins'): APScoreMulti(voc=2007, bins=64)

def test_rankings_are_of_the_targets_that_count():
    from six_labels import SCORES, TARGS
    from fastai_mlmetrics.core.predictions import Predictions
    from fastai_mlmetrics.metrics.ranking import rank_labels, rank_samples
    targs = TARGS.masked_fill(TARGS.roll(1)>0, -1)
    p = Predictions.of(SCORES, targs, ignore_index=-1)
    ap,auc = rank_labels([APScoreMulti(), RocAucMulti()], p)
    for values,cls in ((ap, APScoreMulti), (auc, RocAucMulti)):
        same(values, cls(average=None, ignore_index=-1)(SCORES, targs))
    lraps, = rank_samples([LRAP()], p)
    assert len(lraps)==p.sample_counts.shape[1] and lraps.nanmean().item()==LRAP(ignore_index=-1)(SCORES, targs)
