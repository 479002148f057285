"Metrics and averages, compared with scikit-learn, torchmetrics and fastai on the same predictions"
import pickle, threading, weakref
from functools import lru_cache
import fastai.metrics as fm, sklearn.metrics as skm
from scipy import stats
import torchmetrics.classification as tmc, torchmetrics.functional.classification as tm
from hypothesis import given, settings
from conftest import *
from fastai_mlmetrics.messages import single_threaded
from fastai_mlmetrics.counts import Batch, LARGE
from fastai_mlmetrics.records import ValidationStats

AVERAGES = 'micro','macro','weighted','samples',None

def same(a, b, eps=1e-12, of=''): np.testing.assert_allclose(a, b, atol=eps, rtol=0, equal_nan=True, err_msg=str(of))

def sk(f, **fixed): return lambda y,p,w,zd: f(y, p, sample_weight=w, zero_division=zd, **fixed)
def plain(f): return lambda y,p,w,zd: f(y, p, sample_weight=w)
def _jaccard(y, p, w, zd):  return skm.jaccard_score(y, p, sample_weight=w) if (y|p).any() else zd
def _matthews(y, p, w, zd): return skm.matthews_corrcoef(y, p, sample_weight=w) if y.any() and not y.all() else zd

# Each metric of a single label with sample weights
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

# Metrics that scikit-learn averages itself
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

def weights(n): return st.none() | arrays(float, n, elements=st.floats(0.125, 4))

def averages(cls): return getattr(cls, 'func', cls).averages
def named(cls): return getattr(cls, 'func', cls).__name__ + ''.join(map(str, getattr(cls, 'args', ())))
every_class = pytest.mark.parametrize('cls', BINARY, ids=named)

KINDS = [np.int64, bool, np.uint8, torch.float32, torch.float64, torch.float16, torch.bfloat16, 'strided', TensorBase]

def as_input(p, kind):
    "Binary predictions as `kind`: the same values, or logits"
    if kind in KINDS[:3]: return p.astype(kind)
    logits = torch.from_numpy(6.*p-3)*100 # with sigmoids of 0 and 1
    if kind=='strided': return torch.stack([logits]*2, -1).float()[...,0]
    return TensorBase(logits) if kind is TensorBase else logits.to(kind)

@every_class
@settings(max_examples=100)
@given(binary_pairs(), st.sampled_from([0., 1., np.nan]), st.sampled_from(KINDS), st.integers(1, 12), st.data())
def test_as_sklearn(cls, pair, zero_division, kind, bs, data):
    p,y = pair
    labels = data.draw(st.none() | st.lists(st.integers(0, p.shape[1]-1), min_size=1, unique=True))
    weight = data.draw(weights(len(p)))
    kw = dict(labels=labels, zero_division=zero_division, sample_weight=weight)
    preds = as_input(p, kind)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for average in averages(cls):
            m,ref = cls(average=average, **kw),reference(cls, y, p, average, **kw)
            for i in range(0, len(p), bs): m.accum_values(preds[i:i+bs], y[i:i+bs])
            same(m.value, ref, of=average)
            same(m(preds, y), ref, of=average)

@given(binary_pairs())
def test_lift(pair):
    p,y = pair
    acc,zeros = (p==y).mean(),(y==0).mean()
    same(AccuracyLift()(p, y), (acc-zeros)/(1-zeros) if zeros<1 else np.nan)
    of_labels = [(a-z)/(1-z) if z<1 else np.nan for a,z in zip((p==y).mean(0), (y==0).mean(0))]
    same(AccuracyLift(average=None)(p, y), of_labels)
    if p.sum()==y.sum()>0: same(AccuracyLift()(p, y), 2*skm.f1_score(y, p, average='micro')-1)

@given(binary_pairs(), st.data())
def test_accuracies_agree(pair, data):
    p,y = pair
    weight = data.draw(weights(len(p)))
    micro,macro,samples = (AccuracyMulti(average=a, sample_weight=weight)(p, y) for a in ('micro','macro','samples'))
    same(micro, macro)
    same(micro, samples)

@pytest.mark.parametrize('cls', [cls for cls in BINARY if 'macro' in averages(cls)], ids=named)
@settings(max_examples=40)
@given(binary_pairs(1, 1), st.sampled_from([0., 1.]))
def test_single_label_is_binary(cls, pair, zero_division):
    p,y = pair
    ref = BINARY[cls](y[:,0], p[:,0], None, zero_division)
    for average in ('micro','macro','weighted'):
        same(cls(average=average, zero_division=zero_division)(p[:,0], y), ref, of=average)

@every_class
@settings(max_examples=50)
@given(binary_pairs(), st.sampled_from([-1,np.nan]), st.data())
def test_ignored_elements_count_nowhere(cls, pair, ignore, data):
    p,y = pair
    keep = data.draw(arrays(bool, p.shape))
    weight = data.draw(weights(len(p)))
    targs = np.where(keep, y, np.array(ignore, float))
    for average in averages(cls):
        m = cls(average=average, ignore_index=ignore, sample_weight=weight)
        same(m(p, targs), reference(cls, y, p, average, keep, sample_weight=weight), of=average)

SCORES = arrays(np.float32, (7,3), elements=st.floats(0, 1, width=32))

@given(SCORES, arrays(np.int64, (7,3), elements=st.integers(0, 1)))
def test_brier_score(scores, y):
    scores = scores.astype(float)
    same(BrierScoreMulti(sigmoid=False)(scores, y), skm.mean_squared_error(y, scores))
    of_labels = [skm.brier_score_loss(a, b, pos_label=1) for a,b in zip(y.T, scores.T)]
    same(BrierScoreMulti(sigmoid=False, average=None)(scores, y), of_labels)
    ignored = (scores>0.5) & (y==1)
    expected = ((scores-y)**2)[~ignored].mean() if not ignored.all() else np.nan
    same(BrierScoreMulti(sigmoid=False, ignore_index=-1)(scores, np.where(ignored, -1, y)), expected)

# torchmetrics also has strict thresholds and `ignore_index`, but no samples average
TORCHMETRICS = {
    PrecisionMulti:         tm.multilabel_precision,
    RecallMulti:            tm.multilabel_recall,
    F1ScoreMulti:           tm.multilabel_f1_score,
    partial(FBetaMulti, 2): lambda *a, **k: tm.multilabel_fbeta_score(a[0], a[1], 2., *a[2:], **k),
    JaccardMulti:           tm.multilabel_jaccard_index,
    SpecificityMulti:       tm.multilabel_specificity,
    AccuracyMulti:          tm.multilabel_accuracy,
    HammingLossMulti:       tm.multilabel_hamming_distance}

@pytest.mark.parametrize('ignore', [None, -1])
@pytest.mark.parametrize('thresh', [0.5, 0.2])
def test_as_torchmetrics(thresh, ignore):
    torch.manual_seed(0)
    p = torch.rand(200,7).round(decimals=1)
    y = (torch.rand(200,7)<torch.linspace(0.02, 0.9, 7)).long()
    if ignore: y[torch.rand(200,7)<0.2] = ignore
    kw = dict(threshold=thresh, ignore_index=ignore)
    def ours(cls, **kwargs): return cls(thresh=thresh, sigmoid=False, ignore_index=ignore, **kwargs)(p, y)
    for cls,f in TORCHMETRICS.items():
        for average in ('micro','macro','weighted',None):
            same(ours(cls, average=average), f(p, y, 7, average=average, **kw), eps=1e-6)
    same(ours(MatthewsCorrCoefMulti, average='micro'), tm.multilabel_matthews_corrcoef(p, y, 7, **kw), eps=1e-6)
    if not ignore: same(ours(SubsetAccuracy), tm.multilabel_exact_match(p, y, 7, threshold=thresh), eps=1e-6)

@given(binary_pairs(), st.integers(1, 3))
def test_min_labels(pair, k):
    p,y = pair
    scores = torch.rand(p.shape)*0.4 + 0.6*torch.tensor(p)
    d = binarize(scores, 0.5, False, min_labels=k)
    assert (d.sum(1)==torch.tensor(p).sum(1).clamp(min=min(k, p.shape[1]))).all()
    assert (d | ~torch.tensor(p).bool()).all()
    for s,row in zip(scores, d):
        if (~row).any() and row.any(): assert s[row].min() > s[~row].max()
    same(EmptyRate(0.5, False, min_labels=1)(scores, y), 0)

# Known answers

LOGITS,TARGS = tensor([[-.1,-.1,-.1],[.1,.1,.1]]),tensor([[0,0,0],[0,1,1]])

def test_thresholds_on_logits():
    same(accuracy_multi(LOGITS, TARGS), 5/6, 1e-7)
    same(accuracy_multi(LOGITS, TARGS, thresh=0., sigmoid=False), 5/6, 1e-7)
    with pytest.warns(UserWarning, match='seem to be logits.*sigmoid=True'):
        same(accuracy_multi(LOGITS, TARGS, sigmoid=False), 4/6, 1e-7)
    assert F1ScoreMulti(thresh=0., sigmoid=False, average='micro')(LOGITS, TARGS)==0.8

def test_three_accuracies():
    logits,targs = simulate(250)
    p = logits>0
    same(accuracy_multi(logits, targs), (p==targs).float().mean(), 1e-6)
    same(subset_accuracy(logits, targs), (p==targs).all(1).float().mean(), 1e-6)
    same(categorical_accuracy(logits, targs), (logits.argmax(1)==targs.argmax(1)).float().mean(), 1e-6)
    same(empty_rate(logits, targs), (~p.any(1)).float().mean(), 1e-6)
    same(zeros_accuracy(logits, targs), 1-targs.mean(), 1e-6)

def test_three_by_three():
    y,p = tensor([[1,0,1],[0,1,0],[1,1,1]]),tensor([[1,0,1],[0,0,1],[1,1,0]])
    same(F1ScoreMulti(average='micro')(p, y), 8/11)
    same(AccuracyMulti(average=None)(p, y), [1,2/3,1/3])
    for average in ('micro','macro','weighted'): same(AccuracyMulti(average=average)(p, y), 2/3)

def test_streaming():
    m = SubsetAccuracy()
    m.accum_values(tensor([[0,1,0],[1,0,1]]), tensor([[0,1,0],[1,0,1]]))
    assert m.value==m.value==1 and m.counts.tolist()==[2,2]
    m.accum_values(tensor([[1,0,0],[0,1,0]]), tensor([[0,1,0],[0,1,0]]))
    assert m.value==m.value==0.75 and m.counts.tolist()==[3,4]
    m.reset()
    assert m.value is None
    m.accum_values(tensor([[1,0,0]]), tensor([[0,1,0]]))
    assert m.value==0

def test_half_is_not_predicted():
    scores = tensor([[0.5,0.5+1e-6],[0.,1.]])
    assert binarize(scores, sigmoid=False).tolist()==[[False,True],[False,True]]
    logits = torch.randn(10_000)*10
    assert torch.equal(binarize(logits), binarize(logits, 0., False))

def test_forum_numbers():
    targs = torch.zeros(2000, 20)
    targs[torch.arange(2000), torch.arange(2000)%20] = 1
    targs[:1100, 0] = 1
    zeros = torch.zeros_like(targs)
    same(accuracy_multi(zeros, targs, thresh=0.5, sigmoid=False), 1-targs.mean(), 1e-6)
    assert F1ScoreMulti()(zeros.long(), targs)==0

def test_perfect_on_mostly_unlabelled():
    y = torch.zeros(100, 6, dtype=torch.long)
    y[:5,0] = 1
    same(F1ScoreMulti(average='samples')(y, y), 0.05)
    same(F1ScoreMulti(average='samples', zero_division=math.nan)(y, y), 1)
    same(F1ScoreMulti()(y, y), 1/6)

@pytest.mark.parametrize('n,c', [(10,20), (500,80), (1500,200), (3000,200)])
@pytest.mark.parametrize('ignore', [None, -1])
def test_batches_of_any_size_are_counted_alike(n, c, ignore):
    "Each size of batch is counted in another way"
    logits,targs = simulate(n, c)
    if ignore: targs[torch.rand(n, c, generator=torch.Generator().manual_seed(0))<0.2] = ignore
    p,y,valid = (logits>0).numpy(),(targs==1).numpy(),(targs!=-1).numpy()
    cells = [o&valid for o in (p&y, p&~y, ~p&y, ~p&~y)]
    expected = [o.sum(0) for o in cells]
    m = F1ScoreMulti(average=None, ignore_index=ignore)
    f1 = [2*tp/(2*tp+fp+fn) if tp+fp+fn else 0 for tp,fp,fn,_ in zip(*expected)]
    same(m(logits, targs), f1)
    test_eq(m.counts, tensor(np.array(expected)))
    f1 = [2*tp/(2*tp+fp+fn) if tp+fp+fn else 0 for tp,fp,fn,_ in zip(*(o.sum(1) for o in cells))]
    same(F1ScoreMulti(average='samples', ignore_index=ignore)(logits, targs), np.mean(f1))
    weight = np.arange(n)%3+1.
    m = F1ScoreMulti(average='samples', ignore_index=ignore, sample_weight=weight)
    same(m(logits, targs), np.average(f1, weights=weight))

METRIC = st.integers(0, 4)
CALLS = st.lists(st.tuples(st.sampled_from(['take','read','reset','call','add']), METRIC), max_size=2)
# Size of a batch, whether it is in a buffer of the one before, calls, metrics that skip it, more calls
BATCH = st.tuples(st.integers(0, 12), st.booleans(), CALLS, st.sets(METRIC, max_size=2), CALLS)

@settings(deadline=None, max_examples=150)
@given(st.booleans(), st.lists(BATCH, min_size=1, max_size=12))
def test_metrics_that_are_out_of_step(numbered, batches):
    "A metric counts its own batches, whatever other metrics accumulate, compute or reset, also if memory is reused"
    weight = torch.arange(2000)%5+1.
    metrics = [RecallMulti(average=None), F1ScoreMulti(average='samples'), PrecisionMulti(average='micro'),
               F1ScoreMulti(thresh=0.7), LabelCardinality(sample_weight=weight)]
    taken = [[] for _ in metrics]
    buffer,g = torch.empty(12, 3),torch.Generator().manual_seed(0)
    def check(m, own):
        p,y = map(torch.cat, zip(*own)) if own else (torch.empty(0, 3),)*2
        if not len(p): return
        d = m.rule.binarize(p)
        if m.rule.weight is not None: same(m.counts, [weight[:len(p)]@d.sum(1), weight[:len(p)].sum()])
        elif m.average=='samples': same(m.value, deepcopy(m)(p, y))
        else: test_eq(m.counts, torch.stack([d*y, d*(1-y), (1-d)*y, (1-d)*(1-y)]).sum(1))
    with pytest.MonkeyPatch.context() as patch:
        for name,room in (('SMALL','counts'), ('SMALL','metrics')): patch.setattr(f'fastai_mlmetrics.{room}.{name}', 18)
        patch.setattr('fastai_mlmetrics.counts.LARGE', 60)
        for i,(n,reuse,before,skip,after) in enumerate(batches):
            pred,targ = torch.randn(n, 3, generator=g),(torch.rand(n, 3, generator=g)<0.5).float()
            learn = SimpleNamespace(pred=buffer[:n].copy_(pred) if reuse else pred, yb=(targ,))
            if numbered: learn.iter = i
            for op,k in [*before, *(('take',k) for k in range(5) if k not in skip), *after]:
                m,own = metrics[k],taken[k]
                if op=='take': m.accumulate(learn)
                elif op=='add': m.accum_values(pred, targ)
                elif op=='read': check(m, own)
                else:
                    m.reset() if op=='reset' or m.rule.weight is not None or not len(pred) else m(pred, targ)
                    own.clear()
                if op in ('take','add') or op=='call' and m.rule.weight is None: own.append((pred, targ))
        for m,own in zip(metrics, taken): check(m, own)

def test_threads_of_counting():
    "torch uses several threads for large batches only; no value depends on the number of threads"
    n,found = torch.get_num_threads(),[]
    try:
        for threads in (1,3):
            torch.set_num_threads(threads)
            for size in (100,1000,4000):
                logits,targs = simulate(size, 80)
                used = Batch(logits, targs).cached(lambda o: torch.get_num_threads())
                test_eq(used, threads if size*80>=LARGE else 1)
                found.append([m(logits, targs) for m in multilabel_metrics(full=True)])
            assert torch.get_num_threads()==threads
    finally: torch.set_num_threads(n)
    test_eq(found[:3], found[3:])

def test_learners_in_threads_of_their_own():
    "No Learner's batch is counted by another's metrics"
    metrics,every = [],sys.getswitchinterval()
    def count(shape):
        learn,m = SimpleNamespace(pred=None, yb=None, iter=0),AccuracyMulti()
        metrics.append(m)
        for learn.iter in range(200):
            learn.pred,learn.yb = torch.zeros(shape),(torch.ones(shape),)
            m.accumulate(learn)
    sys.setswitchinterval(1e-5)
    try:
        shapes = [(1700,20)]*2 + [(64,20)]*2
        threads = [threading.Thread(target=count, args=[shape]) for shape in shapes]
        for t in threads: t.start()
        for t in threads: t.join()
    finally: sys.setswitchinterval(every)
    test_eq(sorted(m.counts.sum().item() for m in metrics), [200*64*20]*2 + [200*1700*20]*2)

def test_threads_that_overlap():
    "A thread that starts while another one counts has torch's number of threads, then and later"
    n,both,found = torch.get_num_threads(),threading.Barrier(2),[]
    torch.set_num_threads(3)
    def run(f):
        t = threading.Thread(target=f)
        t.start()
        return t
    def first_in():
        single_threaded(lambda: (both.wait(), both.wait()))
        found.append(torch.get_num_threads())
    def second_in():
        both.wait()
        found.append(torch.get_num_threads())
        test_eq(single_threaded(torch.get_num_threads), 1)
        both.wait()
        found.append(torch.get_num_threads())
    try:
        for t in [run(first_in), run(second_in)]: t.join()
        test_eq(found, [3,3,3])
    finally: torch.set_num_threads(n)

def test_twenty_million_elements():
    m = RecallMulti(average='micro')
    ones = torch.ones(2_500_000, 1, dtype=torch.bool)
    for _ in range(8): m.accum_values(ones, ones)
    assert m.counts.flatten().tolist()==[20_000_000,0,0,0] and m.value==1
    halves = (torch.arange(200_000)%2)[:,None]
    same([MatthewsCorrCoefMulti()(halves, halves), MatthewsCorrCoefMulti()(1-halves, halves)], [1,-1])
    many = torch.ones(2**24+3, 1, dtype=torch.bool)
    assert RecallMulti(average=None)(many, many)==[1]

@pytest.mark.parametrize('kind', [
    torch.float16, torch.bfloat16, torch.float64, torch.bool, torch.int64, torch.uint8,
    TensorImage, 'strided', 'numpy'])
def test_kinds_of_input(kind):
    logits,targs = simulate(64)
    if isinstance(kind, torch.dtype) and not kind.is_floating_point: preds,targs = (logits>0).to(kind),targs.to(kind)
    elif isinstance(kind, torch.dtype): preds = logits.to(kind)
    elif kind=='strided': preds,targs = logits.t().contiguous().t(),targs.t().contiguous().t()
    elif kind=='numpy': preds,targs = logits.numpy(),targs.numpy()
    else: preds,targs = kind(logits),kind(targs)
    wide = torch.as_tensor(preds).as_subclass(Tensor)
    p = wide.float().sigmoid()>0.5 if wide.is_floating_point() else wide.bool()
    ref = skm.f1_score(np.asarray(targs), p.numpy(), average='samples', zero_division=0)
    same(F1ScoreMulti(average='samples')(preds, targs), ref)

@pytest.mark.parametrize('n,c', [(1,1), (1,1000), (3,1000), (65,20)])
def test_odd_sizes(n, c):
    logits,targs = simulate(n, c)
    learn = make_learner(logits, targs, multilabel_metrics(), bs=16)
    for name,value in values(learn).items(): assert math.isfinite(value), name

def test_more_axes_are_samples():
    logits,targs = simulate(60)
    for a in AVERAGES:
        m = F1ScoreMulti(average=a)
        same(m(logits.view(3,20,20), targs.view(3,20,20)), F1ScoreMulti(average=a)(logits, targs))

def test_one_threshold_per_label():
    logits,targs = simulate(200, 3)
    t = [0.1,0.5,0.9]
    p = (logits.sigmoid()>tensor(t)).numpy()
    ref = skm.f1_score(targs, p, average='macro')
    for thresh in (t, tuple(t), tensor(t), np.array(t)): same(F1ScoreMulti(thresh)(logits, targs), ref)

@given(st.floats(0, 1, width=32), st.sampled_from([torch.float32, torch.float64]), st.integers(0, 10**6))
def test_a_threshold_is_compared_with_torchs_sigmoid(thresh, dtype, seed):
    x = torch.from_numpy(np.random.default_rng(seed).normal(0, 8, 200)).to(dtype)
    assert torch.equal(binarize(x, thresh), x.sigmoid()>thresh)
    on_a_score = x.sigmoid()[0].item()
    assert torch.equal(binarize(x, on_a_score), x.sigmoid()>on_a_score)

def test_decisions_are_those_of_torch():
    x = torch.randn(200_000)*5
    for t in (0., 0.01, 0.2, 0.5, 0.777, 0.99, 1.):
        assert torch.equal(binarize(x, t), x.sigmoid()>t)
    for dtype in (torch.float16, torch.bfloat16):
        half = x.to(dtype)
        assert torch.equal(binarize(half, 0.2), binarize(half.float(), 0.2))

def test_batches_of_many_kinds():
    logits,targs = simulate(60, 5)
    m = F1ScoreMulti()
    m.accum_values(logits[:20], targs[:20])
    m.accum_values(logits[20:40].double(), targs[20:40].bool())
    m.accum_values(logits[40:]>0, targs[40:].long())
    assert m.value==F1ScoreMulti()(logits, targs) and m.seen==60
    with pytest.raises(ValueError, match='predictions have 4 labels, but before they had 5'):
        m.accum_values(logits[:,:4], targs[:,:4])

# In a Learner

# fastai's metrics, and their arguments before `thresh`
OF_FASTAI = {
    'PrecisionMulti': (), 'RecallMulti': (), 'F1ScoreMulti': (), 'FBetaMulti': (0.5,), 'JaccardMulti': (),
    'HammingLossMulti': (), 'MatthewsCorrCoefMulti': (), 'BrierScoreMulti': ()}
RANKING = 'APScoreMulti','RocAucMulti'
OF_SEGMENTATION = {'DiceMulti', 'JaccardCoeffMulti'}
OURS = sys.modules['fastai_mlmetrics.all']

def test_all_of_fastai():
    assert {o for o in fm.__all__ if o.endswith('Multi')} == {*OF_FASTAI, *RANKING, *OF_SEGMENTATION}

@pytest.mark.parametrize('name', [*OF_FASTAI, *RANKING])
def test_signatures_of_fastai(name):
    theirs,ours = (inspect.signature(getattr(o, name)).parameters for o in (fm, OURS))
    first_ = list(ours.items())[:len(theirs)]
    assert [(k, p.default) for k,p in theirs.items()]==[(k, p.default) for k,p in first_]
    assert all(p.kind==p.KEYWORD_ONLY for p in list(ours.values())[len(theirs):])
    assert issubclass(globals()[name], AccumMetric)
    test_eq(*(getattr(o, name)(*OF_FASTAI.get(name, ())).name for o in (OURS, fm)))

def run(logits, targs, metrics, **kwargs):
    learn = make_learner(logits, targs, metrics, **kwargs)
    values(learn)
    return [m.value for m in learn.metrics]

@pytest.mark.parametrize('name', [o for o in OF_FASTAI if o not in ('MatthewsCorrCoefMulti','BrierScoreMulti')])
def test_values_of_fastai(name):
    logits,targs = simulate(130, skill=4)
    weight,labels = np.random.default_rng(0).uniform(0.5, 2, 130),[1,4]
    calls = [((0.2,), {}), ((), dict(thresh=0.7)), ((0.2, True), dict(sample_weight=weight))]
    if name!='HammingLossMulti': # fastai's ignores `labels`
        calls += [((0.2, True, labels), {}), ((0.2, True, None, 1, 'samples', weight), {})]
        calls += [((), dict(thresh=0.2, average=a)) for a in ('micro','macro','weighted','samples')]
    ours,theirs = ([getattr(o, name)(*OF_FASTAI[name], *a, **k) for a,k in calls] for o in (OURS, fm))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        same(run(logits, targs, ours), run(logits, targs, theirs), eps=1e-9)
        probs = logits.sigmoid()
        ours,theirs = ([getattr(o, name)(*OF_FASTAI[name], 0.3, False)] for o in (OURS, fm))
        kw = dict(loss_func=BCELossFlat())
        same(run(probs, targs, ours, **kw), run(probs, targs, theirs, **kw), eps=1e-9)

def test_what_fastai_cannot():
    logits,targs = simulate(50)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for o in (fm.MatthewsCorrCoefMulti(), fm.F1ScoreMulti(thresh=0., sigmoid=False)):
            with pytest.raises(ValueError): run(logits, targs, [o])
    y,p = targs.long().numpy(),(logits>0).long().numpy()
    metrics = [MatthewsCorrCoefMulti(), MatthewsCorrCoefMulti(average='micro'),
               F1ScoreMulti(thresh=0., sigmoid=False)]
    same(run(logits, targs, metrics), [
        np.mean([skm.matthews_corrcoef(a, b) for a,b in zip(y.T, p.T)]),
        skm.matthews_corrcoef(y.ravel(), p.ravel()),
        skm.f1_score(y, p, average='macro')])
    same(run(logits, targs, [BrierScoreMulti()]), [((logits.sigmoid()-targs)**2).double().mean()], 1e-7)
    labels = [1,4]
    same(run(logits, targs, [HammingLossMulti(labels=labels)]), [skm.hamming_loss(y[:,labels], p[:,labels])])

def test_class_not_called():
    logits,targs = simulate(40)
    learn = make_learner(logits, targs, [F1ScoreMulti, SubsetAccuracy, accuracy_multi])
    assert values(learn).keys()=={'f1_score','subset_accuracy','accuracy_multi'}

def test_no_two_columns_of_one_name():
    every = [(cls, a) for cls in {getattr(o, 'func', o) for o in BINARY} for a in averages(cls)]
    names = [(cls(2, average=a) if cls is FBetaMulti else cls(average=a)).name for cls,a in every]
    assert len(set(names))==len(names)
    logits,targs = simulate(40)
    learn = make_learner(logits, targs, [F1ScoreMulti(0.2), F1ScoreMulti(), AccuracyMulti()])
    with pytest.warns(UserWarning, match="several metrics are named 'f1_score'") as caught: values(learn)
    assert len(caught)==1
    names = multilabel_metrics(full=True).attrgot('name')
    test_eq(names, ('accuracy_multi zeros_accuracy empty_rate f1_macro f1_micro f1_samples '
                    'f1_weighted precision_samples recall_samples').split())

def test_labels_by_name():
    logits,targs = simulate(60, 3)
    expected = F1ScoreMulti(labels=[2,0])(logits, targs)
    for vocab in (L('cat','dog','eel'), [L('the','a'), L('cat','dog','eel')]):
        learn = make_learner(logits, targs, F1ScoreMulti(labels=['eel','cat']), vocab=vocab)
        assert values(learn)['f1_score']==expected
    learn = make_learner(logits, targs, F1ScoreMulti(labels=['cow']), vocab=L('cat','dog','eel'))
    with pytest.raises(ValueError, match="'cow' is neither a name nor"): values(learn)
    with pytest.raises(ValueError, match='names are known only of'): F1ScoreMulti(labels=['cat'])(logits, targs)
    with pytest.raises(ValueError, match='label 3 is neither a name nor an index of the 3'):
        F1ScoreMulti(labels=[3])(logits, targs)

# Bad input

def test_bad_arguments():
    with pytest.raises(ValueError, match="average='makro'.*'micro', 'macro', 'weighted', 'samples', None"):
        F1ScoreMulti(average='makro')
    with pytest.raises(ValueError, match="SubsetAccuracy has no average='macro'.*'samples'"):
        SubsetAccuracy(average='macro')
    with pytest.raises(ValueError, match='thresh=-1.*sigmoid=False'): F1ScoreMulti(thresh=-1)
    for w in ([0,0], [1,-1], [1,math.nan], [[1],[2]], [[1,2],[3,4]]):
        with pytest.raises(ValueError, match='one number per sample'): F1ScoreMulti(sample_weight=w)
    for kw,match in (
            (dict(min_labels=-1), 'min_labels=-1'), (dict(ignore_index='-1'), "ignore_index='-1' should be a number"),
            (dict(min_labels=1.5), 'whole number'),
            (dict(min_labels=True), 'whole number'),
            (dict(zero_division='warn'), "'warn' should be a number"),
            (dict(zero_division=None), 'should be a number'),
            (dict(labels=[]), 'nothing to score'),
            (dict(thresh=None), 'thresh=None should be'),
            (dict(thresh=['a']), 'should be a number')):
        with pytest.raises(ValueError, match=match): F1ScoreMulti(**kw)
    for labels in ([True,False], [1.5], tensor([True,False])):
        with pytest.raises(ValueError, match='neither a name nor an index'):
            F1ScoreMulti(labels=labels)(torch.zeros(3,2), torch.zeros(3,2))
    with pytest.raises(ValueError, match='shape'): F1ScoreMulti()(torch.zeros(3,0), torch.zeros(3,0))
    with pytest.warns(UserWarning, match='pos_label=0'): F1ScoreMulti(pos_label=0)

@pytest.mark.parametrize('p,y,match', [
    ((3,2), (2,3), r'\(3, 2\).*\(2, 3\)'),
    ((3,2), (3,), r'\(3, 2\).*\(3,\)'),
    ((4,), (3,), r'\(4,\).*\(3,\)')])
def test_shapes_that_differ(p, y, match):
    for f in (F1ScoreMulti(), accuracy_multi, categorical_accuracy):
        with pytest.raises(ValueError, match=match): f(torch.zeros(p), torch.zeros(y))

def test_frames_lists_and_label_arrays():
    logits,targs = simulate(30, 4)
    ref = F1ScoreMulti(labels=[1,2])(logits, targs)
    for labels in (np.array([1,2]), tensor([1,2]), pd.Series([1,2]), range(1,3), L(1,2)):
        assert F1ScoreMulti(labels=labels)(pd.DataFrame(logits.numpy()), targs.tolist())==ref

def test_column_and_vector():
    p,y = torch.randn(30),(torch.rand(30)<0.5).float()
    for a,b in ((p[:,None],y), (p,y[:,None]), (p[:,None],y[:,None])):
        assert F1ScoreMulti()(a, b)==F1ScoreMulti()(p, y)

def test_more_labels_than_there_are():
    with pytest.raises(ValueError, match='min_labels=9 is more than the 3 labels'):
        F1ScoreMulti(min_labels=9)(*simulate(60, 3))

def test_thresholds_of_another_length():
    with pytest.raises(ValueError, match='thresh has 2 values.*3 labels'):
        F1ScoreMulti([0.1,0.2])(torch.randn(4,3), torch.zeros(4,3))

@pytest.mark.parametrize('bad', [2., 0.5, -1., math.nan])
def test_targets_other_than_0_and_1(bad):
    logits,targs = simulate(50)
    targs[17,3] = bad
    with pytest.raises(ValueError, match=f'one is {bad:.3g}'): F1ScoreMulti()(logits, targs)
    with pytest.raises(ValueError, match=f'one is {bad:.3g}'): values(make_learner(logits, targs, F1ScoreMulti()))

def test_soft_targets_while_training():
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=MixUp())
    learn.recorder.train_metrics = True
    with pytest.warns(UserWarning, match='targets must be 0 or 1') as caught, learn.no_logging(): learn.fit(1, 0.)
    assert len(caught)==1
    row = learn.recorder.values[-1]
    assert np.isnan(row[1:7]).all() and np.isfinite(row[8:]).all()

def test_nan_predictions():
    logits,targs = simulate(50)
    logits[[3,9],5] = math.nan
    learn = make_learner(logits, targs, multilabel_metrics())
    with pytest.warns(UserWarning, match='NaN in 2 samples') as caught: v = values(learn)
    assert len(caught)==1 and all(map(math.isnan, v.values()))
    assert not math.isnan(F1ScoreMulti(ignore_index=-1)(logits, torch.where(logits.isnan(), -1, targs)))

@pytest.mark.parametrize('loss,message', [
    (BCELossFlat, 'probabilities already: pass sigmoid=False'),
    (BCEWithLogitsLossFlat, 'BCEWithLogitsLoss. takes one itself: let the model end without it'),
    (nn.BCEWithLogitsLoss, 'BCEWithLogitsLoss. takes one itself: let the model end without it')])
def test_probabilities_taken_for_logits(loss, message):
    logits,targs = simulate(50)
    learn = make_learner(logits.sigmoid(), targs, multilabel_metrics(), loss_func=loss())
    with pytest.warns(UserWarning, match=message) as caught: values(learn)
    assert len(caught)==1

def test_integers_are_decisions():
    with pytest.raises(ValueError, match='one is 7'): F1ScoreMulti()(tensor([[0,7]]), tensor([[0,1]]))

def test_good_input_says_nothing(recwarn):
    logits,targs = simulate(50)
    values(make_learner(logits, targs, multilabel_metrics()))
    values(make_learner(logits.sigmoid(), targs, multilabel_metrics(sigmoid=False)))
    values(make_learner(logits, targs, multilabel_metrics(thresh=0., sigmoid=False)))
    assert not [w for w in recwarn if issubclass(w.category, UserWarning) and 'fastai_mlmetrics' in w.filename]

def test_sample_weights_need_an_order():
    logits,targs = simulate(50)
    for n in (49,51):
        learn = make_learner(logits, targs, F1ScoreMulti(sample_weight=np.ones(n)))
        with pytest.raises(ValueError, match=f'{n} values.*50 samples'): values(learn)
    learn = make_learner(logits, targs, F1ScoreMulti(sample_weight=np.ones(50)))
    with pytest.raises(ValueError, match='shuffled'), learn.no_logging(): learn.validate(0)

# What metrics need of a Learner

class Bare(Learner):
    "As in the notebooks of fastai"
    def __init__(self): self.pred,self.xb,self.yb = None,None,None

class Weakless:
    "Has no weak references"
    __slots__ = 'pred','yb','iter'

@pytest.mark.parametrize('make', [
    Bare,
    SimpleNamespace,
    Weakless,
    partial(SimpleNamespace, dl=None, training=True, metrics=None)])
def test_anything_with_predictions_and_targets_will_do(make):
    logits,targs = simulate(60)
    learn = make()
    metrics = L(multilabel_metrics(full=True, ranking=True)) + [BrierScoreMulti(), ExpectedCalibrationError()]
    for i,(learn.pred,y) in enumerate(zip(logits.split(16), targs.split(16))):
        learn.yb = y,
        if make is Weakless: learn.iter = i
        for m in metrics: m.accumulate(learn)
    for m in metrics: same(m.value, deepcopy(m)(logits, targs), 1e-9)

def test_predictions_with_a_gradient_count():
    logits,targs = simulate(40)
    learn = SimpleNamespace(pred=logits.requires_grad_()*1, yb=(targs,), iter=0)
    m,hist = F1ScoreMulti(),APScoreMulti()
    with torch.no_grad():
        for o in (m,hist): o.accumulate(learn)
    assert m.value==F1ScoreMulti()(logits, targs) and hist.value==APScoreMulti()(logits, targs)
    assert learn.pred.grad_fn is not None

# Sharing

@pytest.fixture
def counted(monkeypatch):
    "The batches that were thresholded"
    made = []
    class Counting(sys.modules['fastai_mlmetrics.counts'].Batch):
        @property
        def predicted(self):
            made.append(self)
            return super().predicted
    monkeypatch.setattr('fastai_mlmetrics.counts.Batch', Counting)
    return made

ALL = [cls(average=a) for cls in BINARY for a in averages(cls)] + [AccuracyLift()]

def test_no_batch_waits_for_values(monkeypatch):
    "Reading a value of a meta tensor raises, where a GPU would have to be waited for"
    class Learn: iter,dls = 0,SimpleNamespace(vocab=list('abcdef'))
    learn,watch = Learn(),ValidationStats()
    thresh,weight = [0.1*i for i in range(1,7)],np.ones(4*10+8*6000)
    options = [dict(thresh=thresh), dict(labels=['b','e']), dict(min_labels=1), dict(ignore_index=-1),
               dict(ignore_index=math.nan, average='samples'), dict(sample_weight=weight)]
    learn.metrics = metrics = L(deepcopy(ALL)) + [F1ScoreMulti(**kw) for kw in options]
    for m,i in zip(metrics, range(len(metrics))): m.name = str(i)
    monkeypatch.setattr('fastai_mlmetrics.metrics._MANY', 3)
    for learn.iter in range(12): # enough for small batches to be counted together, and for counts to be added
        n = 10 if learn.iter<4 else 6000
        learn.pred,learn.yb = torch.randn(n, 6, device='meta'),(torch.zeros(n, 6, device='meta'),)
        for m in metrics: m.accumulate(learn)
        watch.accumulate(learn)
    for m in metrics:
        with pytest.raises((NotImplementedError, RuntimeError), match='meta tensor'): m.value
    assert watch.hist.total.device.type=='meta'

def test_all_share_one_count_however_they_were_made(counted):
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, deepcopy(ALL))
    for m,i in zip(learn.metrics, range(len(ALL))): m.name = str(i)
    v = values(learn)
    assert len(counted)==1 # all batches together, because they are small
    for m,value in zip(learn.metrics, v.values()): same(value, deepcopy(m)(logits, targs))

@pytest.mark.parametrize('rule', [
    dict(thresh=0.2), dict(thresh=[0.5]*19+[0.4]), dict(thresh=0., sigmoid=False), dict(min_labels=1),
    dict(labels=[0,1]), dict(ignore_index=-1), dict(sample_weight=np.ones(50))], ids=str)
def test_another_rule_is_counted_apart(rule, counted):
    logits,targs = simulate(50)
    metrics = [F1ScoreMulti(), F1ScoreMulti(average='samples'),
               F1ScoreMulti(name='a', **rule), F1ScoreMulti(average='samples', name='b', **rule)]
    v = values(make_learner(logits, targs, metrics))
    assert len(counted)==2
    same(v['a'], F1ScoreMulti(**rule)(logits, targs))
    same(v['f1_score'], F1ScoreMulti()(logits, targs))

def test_each_batch_is_counted_once_per_rule(counted):
    logits,targs = simulate(50)
    metrics = multilabel_metrics() + [AccuracyMulti(), SubsetAccuracy()]
    learn = make_learner(logits, targs, metrics, cbs=ZeroLabelsCallback())
    values(learn)
    assert len(counted)==1
    values(learn)
    assert len(counted)==2
    learn.metrics += multilabel_metrics(thresh=0.2)
    values(learn)
    assert len(counted)==4

class OneBuffer(Module):
    "A model that writes all its outputs into the same memory, and returns the same tensor"
    def __init__(self): self.w,self.out = nn.Parameter(torch.zeros(1)),{}
    def forward(self, x):
        out = self.out.setdefault(len(x), torch.empty_like(x))
        out.copy_(x.detach())
        return out

@pytest.mark.parametrize('bs', [16, 64])
def test_reused_memory_is_not_taken_for_the_same_batch(bs):
    logits,targs = simulate(50)
    a = make_learner(logits, targs, multilabel_metrics(), OneBuffer(), bs=bs)
    first = values(a)
    assert first==values(make_learner(logits, targs, multilabel_metrics()))
    a.dls.loaders[1] = make_learner(logits.roll(1, 0), targs, bs=bs).dls.valid
    test_eq(values(a), values(make_learner(logits.roll(1, 0), targs, multilabel_metrics())))
    a.dls.loaders[1] = make_learner(logits, targs, bs=bs).dls.valid
    test_eq(values(a), first)

def test_reused_memory_of_large_batches():
    "The last block of a batch is small and not a copy: it must be counted at once"
    torch.manual_seed(0)
    batches = [(torch.randn(512, 1030), (torch.rand(512, 1030)<0.1).float()) for _ in range(2)]
    buffer,m = torch.empty(512, 1030),F1ScoreMulti()
    for i,(preds,targs) in enumerate(batches):
        m.accumulate(SimpleNamespace(pred=buffer.copy_(preds), yb=(targs,), iter=i))
    test_eq(m.value, F1ScoreMulti()(*map(torch.cat, zip(*batches))))

def test_one_buffer_and_one_target_tensor():
    "Only the reset between these validations shows that they differ"
    logits,targs = simulate(50)
    class Batches(list): device = torch.device('cpu')
    learn = make_learner(logits, targs, multilabel_metrics(), OneBuffer())
    for x in (logits, logits.roll(1, 0), logits):
        with learn.no_logging(): learn.validate(dl=Batches([(x, targs)]))
        found = dict(zip(learn.metrics.attrgot('name'), learn.final_record[1:]))
        test_eq(found, {m.name: deepcopy(m)(x, targs) for m in learn.metrics})

def test_metric_objects_in_two_learners_and_clones():
    (logits,targs),(other,others) = simulate(50),simulate(70, seed=1)
    metrics = multilabel_metrics()
    a,b = make_learner(logits, targs, metrics),make_learner(other, others, metrics)
    va,vb = values(a),values(b)
    assert va!=vb
    test_eq(values(a), va)
    test_eq(values(b), vb)
    test_eq(values(deepcopy(a)), va)
    with a.no_logging(): test_eq(dict(zip(va, a.validate(dl=b.dls.valid)[1:])), vb)
    test_eq(values(pickle.loads(pickle.dumps(a))), va)

def test_a_call_in_between_disturbs_no_sibling():
    logits,targs = simulate(50)
    a,b = F1ScoreMulti(),F1ScoreMulti(average='micro')
    class Between(Callback):
        order = 55
        def after_batch(self): between(logits[:3], targs[:3])
    between = F1ScoreMulti(average='samples')
    learn = make_learner(logits, targs, [a,b], cbs=Between())
    test_eq(values(learn), {
        'f1_score': F1ScoreMulti()(logits, targs),
        'f1_score_micro': F1ScoreMulti(average='micro')(logits, targs)})

def test_interrupted_validation_leaves_nothing():
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, multilabel_metrics())
    ref = values(learn)
    class Stop(Callback):
        def after_pred(self):
            if self.iter==2: raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), learn.no_logging(): learn.validate(cbs=Stop())
    test_eq(values(learn), ref)

def test_train_metrics_are_apart():
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, multilabel_metrics())
    ref = values(learn)
    learn.recorder.train_metrics = True
    with learn.no_logging(): learn.fit(1, 0.)
    row = learn.recorder.values[-1]
    test_close(row[1:7], list(ref.values()))
    test_close(row[8:], list(ref.values()))

def test_nothing_of_a_batch_is_kept():
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, multilabel_metrics())
    values(learn)
    gc.collect()
    counts = sys.modules['fastai_mlmetrics.counts']
    assert not [o for o in gc.get_objects() if isinstance(o, (counts.Batch,counts.LoopBatch))]
    stored = sum(o.numel() for m in learn.metrics for o in vars(m).values() if isinstance(o, Tensor))
    assert stored <= len(learn.metrics)*(4*20+6)
    assert not any(m._batches for m in learn.metrics)
    assert len(pickle.dumps(learn.metrics[3])) < 2000

def test_thousands_of_thresholds():
    "Thresholds leave nothing in memory"
    logits,targs = simulate(20)
    thresholds = np.linspace(0.1, 0.9, 200)
    metrics = [F1ScoreMulti([t]*20, average='micro', name=str(t)) for t in thresholds]
    learn = make_learner(logits, targs, metrics)
    v = values(learn)
    for t in (0.1, 0.9): same(v[str(t)], F1ScoreMulti(t, average='micro')(logits, targs))
    rules = [o.rule for o in learn.metrics]
    test_eq(len({*rules}), 200)
    test_eq(ThresholdRule(rules[0].thresh), rules[0])
    test_ne(ThresholdRule(rules[1].thresh), rules[0])

def test_beta():
    p,y = tensor([[1,1,0],[0,1,1]]),tensor([[1,0,0],[0,1,0]])
    same(FBetaMulti(math.inf)(p, y), skm.fbeta_score(y, p, beta=np.inf, average='macro', zero_division=0))
    for beta in (-1, math.nan):
        with pytest.raises(ValueError, match='beta'): FBetaMulti(beta)

def test_a_brier_score_of_logits():
    logits,targs = simulate(20)
    with pytest.raises(ValueError, match='logits.*sigmoid=True'): BrierScoreMulti(sigmoid=False)(logits, targs)

def test_a_metric_of_ones_own():
    class HitRate(SampleMetric):
        "Share of the samples with at least one true positive"
        def formula(self, tp, fp, fn, tn): return tp>0
    logits,targs = simulate(50)
    expected = ((logits>0)&(targs>0)).any(1).float().mean()
    same(values(make_learner(logits, targs, HitRate))['hit_rate'], expected, 1e-7)

def test_monitoring_by_name(tmp_path):
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, F1ScoreMulti(), path=tmp_path)
    with learn.no_logging(): learn.fit(1, 0., cbs=SaveModelCallback(monitor='f1_score'))
    assert (tmp_path/'models/model.pth').exists()

@pytest.mark.parametrize('tracker', [SaveModelCallback, EarlyStoppingCallback, ReduceLROnPlateau])
def test_monitoring_a_name_that_is_no_column(tracker, tmp_path):
    "The error names the column that fastai's own metric would have had, and no batch was trained"
    learn = make_learner(*simulate(64), [F1ScoreMulti(average='samples'), AccuracyMulti()], path=tmp_path)
    for monitor,near in dict(f1_score="'f1_score_samples'", acuracy_multi="'accuracy_multi'").items():
        says = f"'{monitor}' is not a column.*did you mean {near}"
        with pytest.raises(ValueError, match=says), learn.no_logging():
            learn.fit(1, 0.1, cbs=tracker(monitor=monitor))
        assert learn.model.w.item()==0 and not learn.lock.locked()

# Arguments

@pytest.mark.parametrize('make,given,near', [
    (F1ScoreMulti, 'threshold', 'thresh'), (F1ScoreMulti, 'treshold', 'thresh'),
    (AccuracyMulti, 'min_label', 'min_labels'),
    (APScoreMulti, 'averages', 'average'), (multilabel_metrics, 'tresh', 'thresh'), (paper_metrics, 'topk', 'top_k')])
def test_a_misspelt_argument_is_named(make, given, near):
    says = f"{make.__name__} has no argument '{given}': did you mean '{near}'"
    with pytest.raises(TypeError, match=says): make(**{given: 0})

@pytest.mark.parametrize('cls,given', [
    *((o, 'thresh') for o in (APScoreMulti, RocAucMulti, LRAP, partial(PrecisionAtK, 1), ExpectedCalibrationError)),
    *((o, 'bins') for o in (F1ScoreMulti, LRAP, OneError, BrierScoreMulti)), (BrierScoreMulti, 'min_labels'),
    (ExpectedCalibrationError, 'zero_division'), (MatthewsCorrCoefMulti, 'pos_label'), (EmptyRate, 'beta')])
def test_an_argument_that_a_class_does_not_use_is_an_error(cls, given):
    with pytest.raises(TypeError, match=f"has no argument '{given}'"): cls(**{given: 0.5})

def test_arguments_of_ones_own_class():
    class Mine(F1ScoreMulti):
        def __init__(self, k=2, **kwargs):
            self.k = k
            super().__init__(average='micro', **kwargs)
    assert repr(Mine(3, thresh=0.2)).startswith('Mine(k=3') and Mine(thresh=0.2).thresh==0.2
    with pytest.raises(TypeError, match='treshold'): Mine(treshold=0.2)
    assert [*inspect.signature(StreamMetric).parameters]==[*inspect.signature(StreamMetric.__init__).parameters][1:]

def test_bins_without_a_histogram():
    with pytest.raises(ValueError, match='bins=64 .*ranking=True'): multilabel_metrics(bins=64)
    for cls in (APScoreMulti, RocAucMulti):
        with pytest.raises(ValueError, match="bins=64 .*average='samples'"): cls(average='samples', bins=64)
    with pytest.raises(ValueError, match='above_thresh=True .*top_k='): paper_metrics(above_thresh=True)

def test_thresholds_by_name():
    "A dict, a Series and a result of best_thresholds are matched to the labels by name, in any order"
    logits,targs = simulate(300, 3, bias=-1)
    names,t = list('abc'),(0.2, 0.4, 0.6)
    df,y = (pd.DataFrame(o.numpy(), columns=names) for o in (logits, targs))
    expected = F1ScoreMulti(t, average=None)(logits, targs)
    for thresh in (dict(c=0.6, a=0.2, b=0.4), pd.Series([0.6, 0.2, 0.4], list('cab'))):
        m = F1ScoreMulti(thresh, average=None)
        same(m(df, y), expected)
        same(pickle.loads(pickle.dumps(m))(df, y), expected)
        learn = make_learner(logits, targs, m, vocab=names)
        with learn.no_logging(): same(learn.validate()[1], expected)
        for one in ('micro','samples'):
            same(F1ScoreMulti(thresh, average=one)(df, y), F1ScoreMulti(t, average=one)(logits, targs))
    for of_numbers in (dict(enumerate(t)), {str(i): o for i,o in enumerate(t)}):
        same(F1ScoreMulti(of_numbers, average=None)(logits, targs), expected)
    with pytest.raises(ValueError, match='labels have no names here.*vocab='):
        F1ScoreMulti(dict(c=0.6, a=0.2, b=0.4))(logits, targs)
    scores = logits.sigmoid()
    with pytest.raises(ValueError, match='labels have no names here.*vocab='):
        judge(scores, targs, thresh=dict(zip(names, t)))
    assert judge(scores, targs, thresh=dict(zip(names, t)), vocab=names).thresh==t
    many = {f'label {i}': 0.5 for i in range(500)}
    with pytest.raises(ValueError, match='thresh is for the labels') as e:
        F1ScoreMulti(many)(*(pd.DataFrame(np.eye(500)).add_prefix('l') for _ in range(2)))
    assert len(str(e.value))<200
    with pytest.raises(ValueError, match='thresh is for the labels'): F1ScoreMulti(dict(a=0.2, b=0.4, d=0.6))(df, y)

# A loop of one's own

@settings(max_examples=40)
@given(pair=binary_pairs(max_samples=30), cut=st.integers(1, 29))
def test_update_and_compute(pair, cut):
    "torchmetrics' way of use gives its value"
    p,y = map(tensor, pair)
    for average in ('micro','macro'):
        ours,theirs = F1ScoreMulti(sigmoid=False, average=average),tmc.MultilabelF1Score(p.shape[1], average=average)
        for o in (ours, theirs):
            o.reset()
            for batch in zip(p.split(cut), y.split(cut)): o.update(*batch)
        same(ours.compute(), ours.value)
        if average=='micro': same(ours.compute(), theirs.compute().item(), 1e-6)
        same(ours.compute(), ours(p, y))

def test_nothing_accumulated():
    empty = torch.zeros(0,3)
    for m in (F1ScoreMulti(), SubsetAccuracy(), APScoreMulti(), BrierScoreMulti()):
        assert m.value is None and m.compute() is None
        m.update(empty, empty)
        assert m.value is None

# Bad input: the same error from functions and from metrics

GIVEN,RIGHT = np.random.default_rng(0).random((8,3)).astype('float32'),np.eye(3, dtype=int)[np.arange(8)%3]
BAD_INPUT = {
    'swapped': (RIGHT.astype(float), GIVEN, 'are they swapped.*Predictions come first'),
    'swapped, whole numbers': (RIGHT, GIVEN, 'are they swapped'),
    'swapped logits': (RIGHT, 4*GIVEN-2, 'are they swapped'),
    'class indices': (GIVEN, np.arange(8)%3, r'\(8, 3\), but targets \(8,\).*class indices'),
    'class indices in a column': (GIVEN, (np.arange(8)%3)[:,None], r'\(8, 3\), but targets \(8, 1\).*class indices'),
    'a text column': (GIVEN, pd.DataFrame(RIGHT, columns=list('abc')).assign(path='x.jpg'),
                      "column 'path' has text, such as 'x.jpg'.*select the columns"),
    'numbers as text': (GIVEN, RIGHT.astype(str), "text, such as '1': convert numbers.*astype"),
    'numbers as text in lists': (GIVEN, RIGHT.astype(str).tolist(), "text, such as '1'"),
    'numbers as text in a table': (GIVEN, pd.DataFrame(RIGHT.astype(str)), "column 0 has text"),
    'numbers as objects': (GIVEN, RIGHT.astype(str).astype(object), "text, such as '1'"),
    'lists as text': (GIVEN, ["['a', 'b']"]*len(RIGHT), "literal_eval of each text$"),
    'names in one text': (GIVEN, ['a b', 'c', '', 'a', 'b', 'c', 'a', 'b'], r"such as 'a b'.*str\.get_dummies\(' '\)"),
    'lists of names': (GIVEN, [['a','b'], ['c'], [], ['a'], ['b'], ['c'], ['a'], ['b']], 'MultiLabelBinarizer'),
    'empty': (GIVEN[:0], RIGHT[:0], 'not a single sample'),
    'no labels': (GIVEN[:,:0], RIGHT[:,:0], 'there are no labels'),
    'nothing': (GIVEN, None, 'NoneType'),
    'class 2': (GIVEN, 2*RIGHT, 'targets must be 0 or 1, but one is 2')}
TAKERS = dict(metric=F1ScoreMulti(sigmoid=False), ranking=APScoreMulti(), bins=APScoreMulti(sigmoid=False, bins=64),
              function=partial(accuracy_multi, sigmoid=False), argmax=categorical_accuracy, report=accuracy_report,
              judge=judge, thresholds=best_thresholds, interpretation=MultiLabelInterpretation.from_preds)

@pytest.mark.parametrize('f', TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize('preds,targs,says', BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input(preds, targs, says, f):
    with pytest.raises(ValueError, match=f'(?s){says}'): f(preds, targs)

@pytest.mark.parametrize('value', [2., -1., 7.])
def test_bad_targets_never_index(value):
    "A histogram raises the error that names the value; on CUDA an index out of range would end the process"
    logits,targs = simulate(600, 5)
    targs[-1,-1] = value
    says = f'targets must be 0 or 1, but one is {value:.0f}'
    with pytest.raises(ValueError, match=says): APScoreMulti(bins=64)(logits, targs)
    with pytest.raises(ValueError, match=says): judge(logits.repeat(100, 8), targs.repeat(100, 8), sigmoid=True)
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback())
    with pytest.raises(ValueError, match=says), learn.no_logging(): learn.validate()

def test_several_metrics_of_one_name():
    "One warning names all of them"
    learn = make_learner(*simulate(64), paper_metrics()+paper_metrics())
    with pytest.warns(UserWarning) as caught, learn.no_logging(): learn.validate()
    texts = [str(o.message) for o in caught if 'several metrics' in str(o.message)]
    assert len(texts)==1 and "'CP', 'CR', 'CF1'" in texts[0]

@pytest.mark.parametrize('f', [accuracy_report, judge, best_thresholds, MultiLabelInterpretation.from_preds])
def test_names_that_occur_twice(f):
    with pytest.raises(ValueError, match="vocab has 'a' 2 times"): f(GIVEN, RIGHT, vocab=['a','b','a'])

# accuracy_report

@pytest.mark.parametrize('n', [32, 150, 400, 1000])
def test_interval_of_a_share_of_a_half(n):
    "Half of the samples are right: Student's interval of a mean, whatever the rounding"
    p,t = np.zeros((n,3)),np.zeros((n,3), int)
    p[:n//2,0],t[:,0] = 0.9,1
    row = accuracy_report(p, t).loc['accuracy, subset']
    assert (row.high-row.low)/2==pytest.approx(stats.t.ppf(.975, n-1)*0.5/(n-1)**0.5, rel=1e-5)


ROWS = {
    'accuracy, elementwise': (AccuracyMulti, 'micro'),
    'accuracy, macro':       (AccuracyMulti, 'macro'),
    'accuracy, weighted':    (AccuracyMulti, 'weighted'),
    'accuracy, balanced':    (BalancedAccuracyMulti, 'macro'),
    'accuracy, subset':      (SubsetAccuracy, 'samples'),
    'accuracy, Jaccard':     (JaccardMulti, 'samples'),
    **{f'F1, {a}': (F1ScoreMulti,a) for a in ('micro','macro','weighted','samples')}}
# Rows for which the constant baseline is the best of all constants
ALWAYS_BEST = 'accuracy, elementwise','accuracy, macro','accuracy, weighted','accuracy, subset'

@settings(max_examples=30)
@given(binary_pairs(max_labels=4), st.sampled_from([0., 1., np.nan]), st.data())
def test_report(pair, zero_division, data):
    p,y = pair
    keep = data.draw(st.none() | arrays(bool, p.shape))
    if keep is not None: keep[0,0] = True
    targs = y if keep is None else np.where(keep, y, -1)
    report = accuracy_report(p, targs, ci=None, zero_division=zero_division, ignore_index=-1)
    label_sets = np.array(np.meshgrid(*[[0,1]]*p.shape[1])).reshape(p.shape[1], -1).T
    constants = [np.broadcast_to(o, p.shape) for o in label_sets]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for row,(cls,average) in ROWS.items():
            def ref(p): return reference(cls, y, p, average, keep, zero_division=zero_division)
            r = report.loc[row]
            same([r.value, r.baseline, r.ceiling], [ref(p), ref(np.zeros_like(p)), ref(y)])
            best = np.nanmax([*map(ref, constants), -1])
            assert not r.constant>best+1e-12
            exact = row in ALWAYS_BEST or row=='F1, micro' and zero_division==0
            if keep is None and exact: same(r.constant, best)

def test_report_by_argmax():
    logits,targs = simulate(250)
    r = accuracy_report(logits, targs, sigmoid=True, ci=None).loc['accuracy, argmax']
    first = targs.argmax(1)
    same(r.value, categorical_accuracy(logits, targs), 1e-7)
    is_first = [(first==i).float().mean() for i in range(20)]
    same([r.baseline, r.constant, r.ceiling], [is_first[0], max(is_first), 1], 1e-7)

def test_report_intervals():
    logits,targs = simulate(250)
    r = accuracy_report(logits, targs, sigmoid=True)
    assert ((r.low<r.value) & (r.value<r.high)).all()
    p = r.value['accuracy, subset']
    normal = p + np.array([-1.96,1.96])*(p*(1-p)/250)**0.5
    same(r.loc['accuracy, subset',['low','high']].astype(float), normal, 0.008)
    # By hand: scikit-learn's values without each sample
    d,y = (logits>0).numpy().astype(int),targs.numpy().astype(int)
    for row,average in (('F1, samples','samples'), ('F1, macro','macro'), ('F1, micro','micro')):
        without = np.array([
            skm.f1_score(np.delete(y, i, 0), np.delete(d, i, 0), average=average, zero_division=0)
            for i in range(250)])
        mid = 250*r.value[row] - 249*without.mean()
        se = (249/250*((without-without.mean())**2).sum())**0.5
        low,high = r.loc[row,['low','high']].astype(float)
        same((low+high)/2, mid, 1e-9)
        assert 1.96*se<(high-low)/2<2.7*se
    wide = accuracy_report(logits, targs, sigmoid=True, ci=0.99)
    assert (wide.high-wide.low>r.high-r.low)[wide.low.notna()].all()
    assert wide.equals(accuracy_report(logits, targs, sigmoid=True, ci=0.99))

def test_intervals_cover():
    """Coverage for rare labels in few samples: a percentile bootstrap covered the true balanced accuracy
    in half of the simulations, and macro F1 in fewer"""
    freq = torch.linspace(0.03, 0.4, 12)
    gen = torch.Generator().manual_seed(0)
    def draw(n):
        y = (torch.rand(n, 12, generator=gen)<freq).float()
        return torch.randn(n, 12, generator=gen) + 3*y - 2,y
    truth = accuracy_report(*draw(200000), sigmoid=True, ci=None).value
    rows = ['accuracy, elementwise','accuracy, balanced','accuracy, subset',
            'F1, micro','F1, macro','F1, weighted','F1, samples']
    reports = [accuracy_report(*draw(100), sigmoid=True) for _ in range(100)]
    hits = [(r.low<=truth) & (truth<=r.high) for r in reports]
    assert (pd.DataFrame(hits)[rows].mean()>=0.88).all()

def test_intervals_at_the_edge():
    y = simulate(60)[1].long()
    r = accuracy_report(y, y)
    below_1 = ['F1, samples','accuracy, Jaccard','F1, macro','accuracy, balanced']
    assert r.high.drop(below_1).dropna().eq(1).all()
    assert 0.9<r.low['accuracy, subset']<1 # all samples are correct
    r = accuracy_report(1-y, y)
    assert r.low['accuracy, subset']==0<r.high['accuracy, subset']<0.1
    r = accuracy_report(y[:2], y[:2])
    assert r.low.dropna().between(0, 1).all() and (r.low<=r.high).where(r.low.notna(), True).all()

def test_report_of_perfection_on_mostly_unlabelled():
    y = torch.zeros(100, 6, dtype=torch.long)
    y[:5,0] = 1
    r = accuracy_report(y, y)
    same(r.loc[['F1, samples','F1, macro'], ['value','ceiling']], [[0.05]*2, [1/6]*2])
    assert 'at most 0.050' in r.reading and '95 of 100 samples have no label' in r.reading
    same(accuracy_report(y, y, zero_division=math.nan).value['F1, samples'], 1)

def test_report_names_the_constant_that_it_scores():
    y = torch.zeros(11, 130, dtype=torch.long)
    y[:6,9] = y[6:,:4] = 1
    for i in range(6): y[i,10+20*i:30+20*i] = 1
    r = accuracy_report(y, y, ci=None)
    names = [int(o) for o in r.reading.split('; predicting labels ')[1].split(' for every')[0].split(', ')]
    p = torch.zeros_like(y)
    p[:,names] = 1
    same(F1ScoreMulti(average='samples')(p, y), r.constant['F1, samples'])

def test_report_with_ignored_elements():
    y = tensor([[1,0,math.nan]]*10 + [[math.nan]*3]*10)
    r = accuracy_report((y==1).long(), y, ignore_index=math.nan)
    assert 'Accuracy over the 20 sample-label pairs (10 samples) is 1.000' in r.reading
    assert '(95% interval 0.661 to 1.000)' in r.reading # Of 10 samples
    assert "'accuracy, balanced'" not in r.reading and ': 1 of 2 labels never occurs, and 0/0' in r.reading
    y = tensor([[math.nan,0,0]]*10 + [[math.nan,1,0]]*10)
    r = accuracy_report((y==1).float(), y, ignore_index=math.nan)
    same(r.loc['accuracy, argmax',['value','ceiling']].astype(float), [1,1])
    y = tensor([[math.nan,1,0]]*10 + [[math.nan,0,1]]*10)
    r = accuracy_report(torch.zeros(20,3), y, ignore_index=math.nan).loc['accuracy, argmax']
    same([r.value, r.baseline], [0.5,0.5])
    with pytest.raises(ValueError, match='single sample that counts'):
        accuracy_report(y, y*math.nan, ignore_index=math.nan)

@pytest.mark.parametrize('n,c', [(1,3), (2,1), (30,1), (3,200)])
def test_report_of_odd_sizes(n, c):
    logits,targs = simulate(n, c)
    r = accuracy_report(logits.half(), TensorCategory(targs), sigmoid=True, vocab=range(c))
    assert r.value.drop('ROC AUC, macro').notna().all() and r.reading

def test_report_says_what_is_wrong():
    logits,targs = simulate(50)
    with pytest.raises(ValueError, match='not a single sample'):
        accuracy_report(logits[:0], targs[:0], sigmoid=True)
    with pytest.raises(ValueError, match='19 names.*20 labels'):
        accuracy_report(logits, targs, sigmoid=True, vocab=range(19))
    with pytest.raises(ValueError, match='must be 0 or 1'): accuracy_report(logits, targs*2, sigmoid=True)
    logits[3,4] = math.nan
    with pytest.warns(UserWarning, match='NaN in 1 sample,'): r = accuracy_report(logits, targs, sigmoid=True)
    assert r.value.isna().all() and r.baseline.notna().all() and 'NaN' in r.reading

def test_nothing_of_nan():
    p,y = torch.rand(30, 4),torch.eye(4)[torch.arange(30)%4]
    p[3] = math.nan
    assert math.isnan(categorical_accuracy(p, y)) and not math.isnan(categorical_accuracy(p[4:], y[4:]))
    with pytest.warns(UserWarning, match='NaN'): assert math.isnan(ZerosAccuracy()(p, y))

def test_accuracy_of_zeros_asks_nothing_of_the_scores():
    y = torch.eye(4)
    with warnings.catch_warnings():
        warnings.simplefilter('error', UserWarning)
        for p in (torch.rand(4, 4), torch.randn(4, 4)):
            for sigmoid in (True,False): test_eq(zeros_accuracy(p, y, sigmoid=sigmoid), 0.75)

def test_large_batches_are_let_go():
    "A metric keeps only its last batch, until the next comes"
    metrics = [F1ScoreMulti(), LRAP(), APScoreMulti(), F1ScoreMulti(thresh=0.3)]
    learn,refs = SimpleNamespace(),[]
    for i in range(3):
        learn.pred,learn.yb = torch.randn(2000, 100),((torch.rand(2000, 100)<0.5).float(),)
        learn.iter = i
        refs.append(weakref.ref(learn.pred))
        for m in metrics[:4-i]: m.accumulate(learn) # from batch to batch, one metric less
    learn.pred = learn.yb = None
    test_eq([o() is not None for o in refs], [False,False,True])
    metrics[0].value
    test_eq([o() for o in refs], [None]*3)

def test_decisions_among_scores():
    "Binary predictions are not joined with scores, which would take them for scores"
    m,targs = F1ScoreMulti(0.8, average='micro'),tensor([[1,0]]*4)
    for i,pred in enumerate((targs.bool(), targs*10-5., targs)):
        m.accumulate(SimpleNamespace(pred=pred, yb=(targs,), iter=i))
    test_eq(m.value, 1)

def test_errors_in_the_batch_that_makes_them():
    targs = torch.ones(4, 3)
    learn = SimpleNamespace(pred=torch.randn(4, 3), yb=(targs,), iter=0)
    m = F1ScoreMulti()
    m.accumulate(learn)
    m.value
    learn.pred,learn.yb,learn.iter = torch.randn(4, 2),(targs[:,:2],),1
    with pytest.raises(ValueError, match="2 labels, but before they had 3"): m.accumulate(learn)
    learn.pred,learn.yb,learn.iter = torch.randn(4, 3),(targs,),2
    F1ScoreMulti(thresh=0.5).accumulate(learn)
    with pytest.raises(ValueError, match="1 values"): F1ScoreMulti(thresh=[0.5]).accumulate(learn)

@pytest.mark.parametrize('f', [multilabel_metrics, paper_metrics])
def test_a_list_of_metrics_has_its_own_averages(f):
    for kw in (dict(average='macro'), dict(name='mine'), dict(pos_label=1)):
        match = f"{f.__name__} has several metrics.* takes no {[*kw][0]}: use a class such as F1ScoreMulti"
        with pytest.raises(TypeError, match=match): f(**kw)

@pytest.mark.parametrize('right', [True, False])
def test_ignored_samples_do_not_narrow_an_interval(right):
    logits,targs = simulate(30, 6, density=0.3)
    if right: logits = 8*targs-4
    more,missing = (torch.cat([o, torch.full((60,6), v)]) for o,v in ((logits,9.), (targs,-1.)))
    few = accuracy_report(logits, targs, sigmoid=True)
    all_ = accuracy_report(more, missing, sigmoid=True, ignore_index=-1)
    pd.testing.assert_frame_equal(few, all_)
    assert few.reading==all_.reading

@pytest.mark.parametrize('turn', [Tensor.bool, Tensor.int])
def test_keras_accuracy_of_decisions(turn):
    logits,targs = simulate(50, 4, density=0.3)
    test_eq(categorical_accuracy(turn(logits>0), turn(targs)), categorical_accuracy((logits>0).float(), targs))

@pytest.mark.parametrize('off', ['0.9997','0.99999','2','-1','0.5'])
def test_a_target_that_is_nearly_right_is_named_in_full(off):
    logits,targs = simulate(50, 4, density=0.3)
    targs[0,0] = float(off)
    with pytest.raises(ValueError, match=f'but one is {off}[.:] '): F1ScoreMulti()(logits, targs)
    with pytest.raises(ValueError, match=f'but one is {off}[.:] '): label_stats(targs)

def test_labels_that_are_numbers():
    logits,targs = simulate(100, 4, density=0.3)
    metrics = [F1ScoreMulti(labels=[1]), F1ScoreMulti(labels=[10], name='ten')]
    learn = make_learner(logits, targs, metrics, vocab=L(1, 2, 10, 20))
    expected = [F1ScoreMulti(labels=[i])(logits, targs) for i in (0,2)]
    with learn.no_logging(): assert [*learn.validate()[1:]]==pytest.approx(expected)

def test_repr_shows_weights():
    m = F1ScoreMulti(sample_weight=[1,2])
    assert repr(m)=="F1ScoreMulti(sample_weight=tensor([1., 2.], dtype=torch.float64))"
    assert repr(F1ScoreMulti())=='F1ScoreMulti()'

def test_where_lower_is_better():
    losses = [BrierScoreMulti(), HammingLossMulti(), CoverageError(), LabelRankingLoss(), OneError(),
              ExpectedCalibrationError()]
    low = {EmptyRate, *map(type, losses)}
    for o in multilabel_metrics(full=True, ranking=True) + losses + [SubsetAccuracy()]:
        assert o.is_loss==(type(o) in low), o
