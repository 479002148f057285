"Threshold search, compared with brute force over all distinct binary predictions"
import io, sklearn.metrics as skm
from hypothesis import given, settings
from conftest import *
from fastai_mlmetrics import page, report
from fastai_mlmetrics.messages import progress
from fastai_mlmetrics.decisions import as_thresh
from fastai_mlmetrics.curves import bin_edges, bin_index
from fastai_mlmetrics.thresholds import draw_folds, folded_table, Objective, ScoreTable, ThreshFinder

CLASSES = dict(f1=F1ScoreMulti, jaccard=JaccardMulti, accuracy=AccuracyMulti, balanced_accuracy=BalancedAccuracyMulti,
               matthews=MatthewsCorrCoefMulti)

@st.composite
def scored(draw, max_samples=9, max_labels=3):
    "Scores with many ties, 0 and 1 among them, and targets"
    shape = draw(st.integers(1, max_samples)),draw(st.integers(2, max_labels))
    values = np.array([0,1e-6,0.1,0.3,0.5,np.nextafter(np.float32(0.5), np.float32(1)),0.9,1], np.float32)
    scores = draw(arrays(np.float32, shape, elements=st.sampled_from(values.tolist())))
    return scores,draw(arrays(np.int64, shape, elements=st.integers(0, 1)))

def every_thresh(scores):
    "Thresholds in [0, 1] for all distinct predictions, without those between scores that differ in their last digits"
    s = np.unique(scores)
    apart = [float(a) for a,b in zip(s, s[1:]) if b-a>2**-20*b]
    return sorted({0., *apart, 1.} | {float(o)/2 for o in s[:1]})

def best_of(values):
    "The maximum, without NaN"
    values = [o for o in values if not np.isnan(o)]
    return max(values) if values else np.nan

def above(scores, thresh): return (np.asarray(scores)>np.float32(thresh)).astype(int)

@pytest.mark.parametrize('metric,average', [
    (m,a) for m,cls in CLASSES.items() for a in ('micro','macro','weighted','samples') if a in cls.averages])
@settings(max_examples=60)
@given(scored())
def test_one_threshold(metric, average, scored):
    scores,y = scored
    res = best_thresholds(scores, y, metric, average, per_label=False, cv=None)
    m = CLASSES[metric](average=average)
    brute = best_of([m(above(scores, t), y) for t in every_thresh(scores)])
    assert res.score==pytest.approx(brute, abs=1e-9) and isinstance(res.thresh, float)
    assert m(above(scores, res.thresh), y)==res.score
    assert CLASSES[metric](thresh=res.thresh, sigmoid=False, average=average)(scores, y)==res.score

@pytest.mark.parametrize('metric', CLASSES)
@settings(max_examples=60)
@given(scored())
def test_one_per_label(metric, scored):
    scores,y = scored
    res = best_thresholds(scores, y, metric, 'macro', min_positives=0, cv=None)
    m = CLASSES[metric](average=None)
    brute = np.nanmax([m(above(scores, t), y) for t in every_thresh(scores)], 0)
    found = m((scores>np.array(res.thresh, dtype=np.float32)).astype(int), y)
    for i,why in enumerate(res.fallback):
        if not why: assert found[i]==pytest.approx(brute[i], abs=1e-9)
        else:
            assert why=='predicts too often'
            assert res.thresh[i]==best_thresholds(scores, y, metric, 'macro', per_label=False, cv=None).thresh

@settings(max_examples=60)
@given(scored())
def test_as_many_as_true(scored):
    scores,y = scored
    t = best_thresholds(scores, y, 'cardinality', per_label=False, cv=None).thresh
    def off(thresh): return abs(int(above(scores, thresh).sum())-y.sum())
    assert off(t)==min(off(o) for o in every_thresh(scores))

@pytest.mark.parametrize('least', [0.3, 0.8, 1.])
@settings(max_examples=60)
@given(scored())
def test_precision_at_recall_and_the_reverse(least, scored):
    scores,y = scored
    ds = [above(scores, t) for t in every_thresh(scores)]
    for metric,other,f,g in (('precision','at_recall',PrecisionMulti,RecallMulti),
                             ('recall','at_precision',RecallMulti,PrecisionMulti)):
        for average in ('micro','macro'):
            brute = [f(average=average)(d, y) for d in ds if g(average=average)(d, y)>=least-1e-12]
            def found(): return best_thresholds(scores, y, metric, average, per_label=False, **{other:least})
            if brute: assert found().score==pytest.approx(max(brute), abs=1e-9)
            else:
                with pytest.raises(ValueError, match='no threshold reaches'): found()

def test_against_curves_of_sklearn():
    logits,targs = simulate(2000, 5, density=0.2, bias=-3)
    scores = logits.sigmoid().numpy()
    res = best_thresholds(logits, targs, average='macro', sigmoid=True, min_positives=0, cv=None)
    for i,t in enumerate(res.thresh):
        p,r,_ = skm.precision_recall_curve(targs[:,i], scores[:,i])
        f1 = skm.f1_score(targs[:,i], scores[:,i]>np.float32(t))
        assert f1==pytest.approx((2*p*r/np.maximum(p+r, 1e-9)).max(), abs=1e-9)

def test_logits_without_sigmoid():
    logits,targs = simulate(300)
    a = best_thresholds(logits, targs, average='micro')
    b = best_thresholds(logits, targs, average='micro', sigmoid=True)
    assert a.score==b.score and a.thresh==pytest.approx(math.log(b.thresh/(1-b.thresh)), abs=0.02)

@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
def test_kinds_of_scores(dtype):
    logits,targs = simulate(300)
    preds = logits.sigmoid().to(dtype)
    for average in ('micro','macro'):
        res = best_thresholds(preds, targs, average=average)
        assert F1ScoreMulti(res.thresh, sigmoid=False, average=average)(preds, targs)==res.score

def test_no_threshold_between_last_digits():
    a = np.float32(0.1)
    b = np.nextafter(a, np.float32(1))
    for x,between in ((b,False), (np.float32(0.1001),True)):
        t = best_thresholds(np.array([[x],[a]]), np.array([[1],[0]]), average='micro').thresh
        assert (a<=np.float32(t)<x)==between
    margins = np.array([[5+1e-6],[5]], np.float32) # no sigmoid rounds them
    t = best_thresholds(margins, np.array([[1],[0]]), average='micro').thresh
    assert 5<=np.float32(t)<np.float32(5+1e-6)

def test_infinite_scores():
    "Log-odds of probabilities that were rounded to 0 and 1"
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.filterwarnings('ignore', 'scores from .* are not probabilities')
        for scores in ([math.inf,1.,-2.,-math.inf], [math.inf,math.inf,1.,-math.inf], [3.,2.,1.,-math.inf]):
            preds = torch.tensor(scores)[:,None]
            for n in (1, 2, 3):
                y = (preds>preds.sort(descending=True, dim=0).values[n]).long()
                if not y.any(): continue
                for average in ('micro','macro','samples'):
                    res = best_thresholds(preds, y, average=average, per_label=False, zero_division=1., cv=None)
                    assert res.score==1 and torch.equal((preds>res.thresh).long(), y)

@pytest.mark.parametrize('metric,average', [
    ('f1','micro'),
    ('f1','macro'),
    ('f1','samples'),
    ('cardinality','micro'),
    ('balanced_accuracy','weighted'),
    (HammingLossMulti,'macro')])
@settings(max_examples=40)
@given(st.data())
def test_ignored_elements_are_as_if_not_there(metric, average, data):
    scores,y = data.draw(scored())
    valid = data.draw(arrays(bool, y.shape))
    missing = np.where(valid, y, -1)
    kw = dict(metric=metric, average=average, per_label=False, cv=None)
    def found(): return best_thresholds(scores, missing, ignore_index=-1, **kw)
    if not valid.any():
        with pytest.raises(ValueError, match='counts'): found()
        return
    res = found()
    cls = {'f1':F1ScoreMulti,'balanced_accuracy':BalancedAccuracyMulti}.get(metric, metric)
    def score(t):
        if metric=='cardinality': return -abs(((scores>np.float32(t)) & valid).sum()-y[valid].sum())
        sign = -1 if cls is HammingLossMulti else 1
        return sign*cls(average=average, ignore_index=-1)(above(scores, t), missing)
    assert score(res.thresh)==pytest.approx(best_of([score(t) for t in every_thresh(scores)]), abs=1e-9)
    for s in (scores, np.where(valid, scores, np.float32(np.nan))):
        nan = best_thresholds(s, np.where(valid, y, np.nan), ignore_index=np.nan, **kw)
        assert nan.thresh==res.thresh

def test_ignored_elements_per_label_and_in_folds():
    logits,targs = simulate(600, 4, density=0.3)
    more = torch.cat([logits, torch.randn(200, 4)])
    noise = torch.cat([targs, torch.full((200,4), math.nan)])
    kw = dict(average='macro', sigmoid=True)
    few = best_thresholds(logits, targs, cv=None, **kw)
    all_ = best_thresholds(more, noise, cv=None, ignore_index=math.nan, **kw)
    p,q = (binarize(logits, o.thresh) for o in (few, all_))
    test_eq(p, q)
    assert few.score==all_.score
    res = best_thresholds(more, noise, cv=4, ignore_index=math.nan, **kw)
    assert abs(res.held_out-res.score)<0.05 and res.score==pytest.approx(few.score, abs=0.02)

# Exact, or close to it

def ranked(n, c, seed=0):
    "Scores of a model with some skill, all of them distinct and far apart in float32, and targets"
    logits,y = simulate(n, c, density=0.5, skill=1., bias=0., seed=seed)
    rank = logits.flatten().argsort().argsort()
    return ((rank+1)/(n*c+1)).reshape(n, c),y

def at_every_score(m, scores, y):
    "A metric if the k highest of N x C distinct scores are predicted, for k from 0 to NC; by cumulative sums"
    order = np.argsort(-scores.numpy().ravel())
    sample,label = np.divmod(order, y.shape[1])
    group = {'micro':0*label, 'macro':label, 'weighted':label, 'samples':sample}[m.average]
    def passed(x): return torch.from_numpy(np.vstack([0*x[:1], x.cumsum(0)]))
    of_group = group[:,None]==np.arange(group.max()+1)
    true = y.numpy().ravel()[order,None]==1
    tp,fp = passed(1.*(of_group & true)),passed(1.*(of_group & ~true))
    values = m.values(tp, fp, tp[-1]-tp, fp[-1]-fp)
    weight = tp[-1] if m.average=='weighted' else torch.ones(values.shape[1]).double()
    return (values@weight/weight.sum()).numpy()

@pytest.mark.parametrize('metric', CLASSES)
def test_a_global_threshold_is_exact_in_micro(metric):
    scores,y = ranked(1000, 5)
    assert len(scores.unique())==5000 and y.sum()>2048
    res = best_thresholds(scores, y, metric)
    m = CLASSES[metric](average='micro')
    brute = at_every_score(m, scores, y)
    assert res.score==pytest.approx(brute.max(), abs=1e-12)==m(above(scores, res.thresh), y)
    k = np.flatnonzero(brute.round(12)==brute.max().round(12))[0] # the highest of the best
    assert above(scores, res.thresh).sum()==k

@pytest.mark.parametrize('average', ['macro','weighted','samples'])
@pytest.mark.parametrize('metric', ['f1','jaccard'])
def test_a_global_threshold_is_close_in_other_averages(metric, average):
    "It is searched at 2,048 of the true scores, and at all of them if there are no more"
    m = CLASSES[metric](average=average)
    for n,exact in ((1000,False), (600,True)):
        scores,y = ranked(n, 6)
        assert len(scores.unique())==6*n and (y.sum()<=2048)==exact
        res = best_thresholds(scores, y, metric, average, per_label=False)
        best = at_every_score(m, scores, y).max()
        assert best-(1e-12 if exact else 0.001)<=res.score<=best+1e-12
        assert res.score==m(above(scores, res.thresh), y)

@pytest.mark.parametrize('metric,average', [
    ('f1','micro'),
    ('f1','macro'),
    ('f1','samples'),
    ('jaccard','weighted'),
    ('accuracy','micro'),
    ('balanced_accuracy','macro'),
    (SpecificityMulti,'macro'),
    ('cardinality','micro')])
@settings(max_examples=60)
@given(scored(), st.randoms(use_true_random=False))
def test_of_equally_good_thresholds_the_highest(metric, average, scored, random):
    "In whatever order the samples are"
    scores,y = scored
    kw = dict(metric=metric, average=average, per_label=False, cv=None)
    res = best_thresholds(scores, y, **kw)
    def score(t):
        if metric=='cardinality': return -abs(int(above(scores, t).sum())-int(y.sum()))
        return CLASSES.get(metric, metric)(average=average)(above(scores, t), y)
    each = {t: score(t) for t in every_thresh(scores)}
    highest = max(t for t,v in each.items() if v>=max(each.values())-1e-9)
    np.testing.assert_array_equal(above(scores, res.thresh), above(scores, highest))
    order = random.sample(range(len(y)), len(y))
    assert best_thresholds(scores[order], y[order], **kw).thresh==res.thresh

@pytest.mark.parametrize('metric', ['f1','accuracy'])
@settings(max_examples=60)
@given(scored(), st.randoms(use_true_random=False))
def test_a_label_s_own_threshold_is_the_highest_of_the_best(metric, scored, random):
    scores,y = scored
    kw = dict(metric=metric, average='macro', min_positives=0, cv=None)
    res = best_thresholds(scores, y, **kw)
    m = CLASSES[metric](average=None)
    each = {t: m(above(scores, t), y) for t in every_thresh(scores)}
    for i in (i for i,why in enumerate(res.fallback) if not why):
        best = max(v[i] for v in each.values())
        highest = max(t for t,v in each.items() if v[i]>=best-1e-9)
        np.testing.assert_array_equal(above(scores[:,i], res.thresh[i]), above(scores[:,i], highest))
    order = random.sample(range(len(y)), len(y))
    again = best_thresholds(scores[order], y[order], **kw)
    assert (again.thresh,again.fallback)==(res.thresh,res.fallback)

@pytest.mark.parametrize('average,seed', [('macro',1350), ('macro',2234), ('weighted',2601)])
def test_the_order_of_labels_does_not_matter(average, seed):
    "Equal averages are rounded differently if labels are added in another order, as in these cases"
    rng = np.random.default_rng(seed)
    n,c = rng.integers(4, 10),rng.integers(3, 6)
    scores,y = (rng.permutation(n*c).reshape(n, c)+1)/(n*c+1.),(rng.random((n, c))<0.4).astype(int)
    def found(order):
        return best_thresholds(scores[:,order], y[:,order], average=average, per_label=False, cv=None).thresh
    assert len({found([*o]) for o in itertools.permutations(range(c))})==1

# Held-out scores

def folds_of(n, cv=5, seed=42): return (torch.randperm(n, generator=torch.Generator().manual_seed(seed))%cv).numpy()

def best_cut(scores, y):
    "The highest score from which predictions have the best F1, by scikit-learn; infinite if none has any"
    if not y.any(): return np.inf
    p,r,cuts = skm.precision_recall_curve(y, scores)
    f1 = (2*p*r/np.maximum(p+r, 1e-9))[:-1].round(9)
    return cuts[f1==f1.max()].max()

def test_held_out_scores_by_hand():
    "With a global threshold and with one per label, from scikit-learn's curves of the other folds alone"
    gen = torch.Generator().manual_seed(3)
    y = (torch.rand(300, 6, generator=gen)<tensor([0.4,0.3,0.3,0.2,0.1,0.1])).float()
    shift = tensor([1.,0.,0.,-0.2,-2.,0.])
    scores = (torch.randn(300, 6, generator=gen) + 2*y + shift - 1).sigmoid()
    fold,s,t = folds_of(300),scores.numpy(),y.numpy()==1
    one,own = np.zeros((2,300,6), bool)
    for j in range(5):
        here,others = fold==j,fold!=j
        one[here] = s[here]>=best_cut(s[others].ravel(), t[others].ravel())
        own[here] = s[here]>=[best_cut(*o) for o in zip(s[others].T, t[others].T)]
    res = best_thresholds(scores, y)
    assert res.held_out==pytest.approx(skm.f1_score(t, one, average='micro'), abs=1e-12)
    each = best_thresholds(scores, y, average='micro', per_label=True)
    def better(some): return np.greater(*(skm.f1_score(t[some], o[some], average=None) for o in (own, one)))
    assert [not o for o in each.fallback]==better(fold>=0).tolist() and {*each.fallback}=={'','no better held out'}
    chosen = one.copy()
    for j in range(5): # the other folds choose for the samples of a fold
        chosen[fold==j] = np.where(better(fold!=j), own[fold==j], one[fold==j])
    assert each.held_out==pytest.approx(skm.f1_score(t, chosen, average='micro'), abs=1e-12)
    np.testing.assert_allclose(each.table.held_out[2:], skm.f1_score(t, chosen, average=None), atol=1e-12)
    test_eq(each.table.held_out['global'], res.held_out)
    for i,why in enumerate(each.fallback):
        cut = best_cut(s.ravel(), t.ravel()) if why else best_cut(s[:,i], t[:,i])
        np.testing.assert_array_equal(s[:,i]>np.float32(each.thresh[i]), s[:,i]>=cut)

@pytest.mark.parametrize('metric,average', [
    ('f1','micro'), ('f1','macro'), ('f1','samples'), ('accuracy','weighted'), ('balanced_accuracy','micro')])
@settings(max_examples=60)
@given(scored(max_samples=20), st.integers(2, 4), st.data())
def test_targets_of_a_fold_do_not_matter_to_its_own_predictions(metric, average, scored, cv, data):
    scores,y = scored
    objective = Objective(metric, average, False)
    def held_out(y):
        table,_ = folded_table(scores, y, cv=cv)
        return table.fold.numpy(),objective.tune(table)['global'].held_out(table)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore') # no target may be true
        fold,p = held_out(y)
        if p is None: return
        here = fold==data.draw(st.integers(0, fold.max()))
        other = np.where(here[:,None], data.draw(arrays(np.int64, y.shape, elements=st.integers(0, 1))), y)
        np.testing.assert_array_equal(held_out(other)[1][here], p[here])

def test_a_label_that_is_annotated_in_a_single_fold():
    "Without that fold it has no threshold of its own, so it gets the global one"
    logits,targs = simulate(400, 3, density=0.4, skill=2.)
    scores,y = (logits+tensor([3.,0.,0.])).sigmoid(),targs.clone()
    fold = folds_of(400)
    y[fold!=0,0] = math.nan
    res = best_thresholds(scores, y, average='macro', ignore_index=math.nan)
    one = best_thresholds(scores, y, average='macro', ignore_index=math.nan, per_label=False)
    assert res.fallback[0]=='no better held out' and res.thresh[0]==one.thresh
    here = fold==0
    rest = best_thresholds(scores[~here], y[~here], average='macro', ignore_index=math.nan, per_label=False, cv=None)
    cut = scores[~here][(y[~here]==1) & (scores[~here]>rest.thresh)].min()
    f1 = skm.f1_score(y[here,0], scores[here,0]>=cut)
    assert res.table.held_out.iloc[2]==pytest.approx(f1, abs=1e-12) and res.held_out is not None
    alone = best_thresholds(scores, y, average='macro', ignore_index=math.nan, cv=None)
    assert not alone.fallback[0] and alone.thresh[0]>one.thresh

@pytest.mark.parametrize('average', ['micro','macro','weighted','samples'])
def test_a_single_sample_that_counts(average):
    "No other sample is left to tune a threshold on"
    logits,targs = simulate(30, 4)
    scores,y = logits.sigmoid(),torch.full_like(targs, math.nan)
    y[7] = tensor([1.,0.,1.,0.])
    for per_label in (True, False):
        res = best_thresholds(scores, y, average=average, per_label=per_label, ignore_index=math.nan)
        alone = best_thresholds(scores[7:8], y[7:8], average=average, per_label=per_label)
        assert res.held_out is None is alone.held_out and res.score==alone.score
        assert torch.equal(binarize(scores[7], res.thresh, False), binarize(scores[7], alone.thresh, False))
    y[8] = tensor([0.,1.,math.nan,0.])
    two = best_thresholds(scores, y, average=average, ignore_index=math.nan)
    assert two.held_out is not None and 'in 2 folds' in two.table.reading

@pytest.mark.parametrize('per_label', [True, False])
def test_undefined_without_a_fold(per_label):
    "Without its only positive, F1 is 0/0 at each candidate, and zero_division=nan leaves that out"
    scores = torch.linspace(0.1, 0.9, 20)[:,None]*tensor([1.,0.5])
    y = torch.zeros(20, 2)
    y[-1,0] = 1
    kw = dict(average='macro', per_label=per_label, zero_division=math.nan, min_positives=0)
    res = best_thresholds(scores, y, **kw)
    test_eq(res.thresh, best_thresholds(scores, y, cv=None, **kw).thresh)
    assert res.score==1 and res.held_out is None

# Metrics with their own arguments

def own_metrics():
    class Cost(CountsMetric):
        "Costs of errors; lower is better"
        averages,default_average,is_loss = ('micro','macro','samples',None),'micro',True
        def __init__(self, missed=1., **kwargs):
            self.missed = missed
            super().__init__(**kwargs)
        def formula(self, tp, fp, fn, tn): return (self.missed*fn+fp)/(tp+fp+fn+tn)
    return Cost

@pytest.mark.parametrize('make', [
    partial(F1ScoreMulti, average='micro', zero_division=1.),
    partial(F1ScoreMulti, average='samples', zero_division=1.),
    partial(F1ScoreMulti, average='samples', zero_division=math.nan),
    partial(JaccardMulti, average='macro', zero_division=1.),
    partial(FBetaMulti, 2, average='micro'),
    partial(FBetaMulti, 0.5, average='samples', zero_division=1.),
    partial(FBetaMulti, 3, average='weighted'),
    partial(HammingLossMulti, average='macro'),
    partial(own_metrics(), 4., average='micro'),
    partial(own_metrics(), 0.2, average='macro')], ids=lambda o: repr(o()))
def test_an_instance_keeps_its_arguments(make):
    logits,y = simulate(60, 4, density=0.2, skill=1.5)
    y[:,3] = 0 # never true
    scores,m = logits.sigmoid(),make(thresh=0.9, sigmoid=False)
    before = m(scores, y)
    res = best_thresholds(scores, y, m, per_label=False)
    def value(t): return make(thresh=t, sigmoid=False)(scores, y)
    best = (min if m.is_loss else max)(map(value, every_thresh(scores)))
    assert res.score==value(res.thresh)==pytest.approx(best, abs=1e-12)
    assert f'score: {type(m).__name__} ({m.average})' in one_line(res.table.reading)
    each = best_thresholds(scores, y, m)
    assert isinstance(each.thresh, tuple)==(m.average in ('macro','weighted')) and each.score==value(each.thresh)
    assert (m.value,m.thresh,m.seen)==(before,0.9,60) # neither its total nor its threshold is changed

def test_arguments_of_an_instance_differ_from_the_defaults():
    "Each of them moves the score or the threshold"
    logits,y = simulate(200, 4, density=0.2, skill=1.5)
    scores = logits.sigmoid()
    def found(metric, **kw): return best_thresholds(scores, y, metric, per_label=False, cv=None, **kw)
    f1 = found('f1', average='samples')
    assert found(F1ScoreMulti(average='samples'))==f1
    lenient = found(F1ScoreMulti(average='samples', zero_division=1.))
    assert lenient==found('f1', average='samples', zero_division=1.) and lenient.score>f1.score+0.1
    assert found(F1ScoreMulti(average='samples'), zero_division=1.)==lenient # the argument of the search wins
    beta2 = found(FBetaMulti(2, average='samples'))
    assert beta2==found('fbeta', average='samples', beta=2)!=f1
    low,middle,high = (found(FBetaMulti(o, average='micro')).thresh for o in (2, 1, 0.5))
    assert low<middle==found('f1').thresh<high
    assert found(F1ScoreMulti(average='micro'), average='samples')==found('f1', average='micro')
    Cost = own_metrics()
    assert found(Cost(4.)).thresh<found(Cost(1.)).thresh<found(Cost(0.2)).thresh
    for name,cls,kw in (('precision',PrecisionMulti,dict(at_recall=0.7)),
                        ('recall',RecallMulti,dict(at_precision=0.4))):
        assert found(cls(average='micro'), **kw)==found(name, **kw)

def test_an_instance_in_a_learner():
    logits,targs = simulate(200, 4, density=0.3, skill=1.5)
    m = FBetaMulti(2, average='samples', zero_division=1.)
    learn = make_learner(logits, targs, [m])
    before = values(learn)
    found = learn.thresh_find(metric=m, show_plot=False)
    expected = best_thresholds(logits.sigmoid(), targs, m)
    assert found.best==expected.thresh and found.table.score['best']==expected.score
    assert found.table.score['now']==before[m.name] and values(learn)==before
    learn.set_thresh(found)
    assert values(learn)[m.name]==expected.score

@pytest.mark.parametrize('average', ['micro','samples'])
def test_per_label_thresholds_beside_an_instance(average):
    "`thresh_find` tunes them for the macro average, whatever the average of the metric, as its reading says"
    logits,targs = simulate(300, 4, density=0.3, skill=1.5)
    targs[15:,3] = 0 # too few positives, so the label gets the global threshold
    learn = make_learner(logits, targs)
    by_name = learn.thresh_find(average=average, show_plot=False)
    found = learn.thresh_find(metric=F1ScoreMulti(average=average), show_plot=False)
    assert 'global threshold for the macro average' in found.table.reading
    one = best_thresholds(logits.sigmoid(), targs, average='macro', per_label=False)
    assert found.best==by_name.best!=one.thresh and found.per_label[3]==by_name.per_label[3]==one.thresh
    test_eq(found.per_label, by_name.per_label)

@pytest.mark.parametrize('metric,match', [
    *((o, f'{cls.__name__} has no best threshold') for cls in (EmptyRate,LabelCardinality,ZerosAccuracy)
      for o in (cls, cls())),
    *((o, 'needs at_recall= beside it') for o in ('precision', PrecisionMulti, PrecisionMulti(average='micro'))),
    *((o, 'needs at_precision= beside it') for o in ('recall', RecallMulti, RecallMulti(average='micro'))),
    *((o, 'should be one of f1, fbeta, ') for o in ('f2', CF1, CF1(), APScoreMulti, APScoreMulti(), CountsMetric,
                                                    accuracy_multi, None, 1)),
    (F1ScoreMulti(average=None), 'no single number with average=None'),
    *((F1ScoreMulti(**kw), 'for all labels, without limits and weights') for kw in (
        dict(labels=[0]), dict(min_labels=1), dict(max_labels=2), dict(sample_weight=[1.]*100)))])
def test_metrics_without_a_best_threshold_are_refused(metric, match):
    logits,targs = simulate(100, 4, density=0.3)
    with pytest.raises(ValueError, match=match): best_thresholds(logits.sigmoid(), targs, metric)
    with pytest.raises(ValueError, match=match): make_learner(logits, targs).thresh_find(metric=metric, show_plot=False)

@pytest.mark.parametrize('metric,kw,match', [
    ('f1', dict(at_recall=0.5), "at_recall= goes with metric='precision', not with 'f1'"),
    ('precision', dict(at_recall=0.5, at_precision=0.5), "at_precision= goes with metric='recall'"),
    (F1ScoreMulti(), dict(at_precision=0.5), "at_precision= goes with metric='recall'"),
    (FBetaMulti(2), dict(beta=3), "beta=3 is for metric='fbeta' alone"),
    (F1ScoreMulti, dict(beta=3), "beta=3 is for metric='fbeta' alone"),
    ('recall', dict(at_precision=0), 'above 0 and at most 1'),
    ('f1', dict(per_label=True, average='binary'), 'no single number')], ids=str)
def test_arguments_that_do_not_go_with_a_metric(metric, kw, match):
    logits,targs = simulate(100, 4, density=0.3)
    with pytest.raises(ValueError, match=match): best_thresholds(logits.sigmoid(), targs, metric, **kw)

# One threshold per label, or the global one

def test_few_positives_and_uninformative_labels():
    gen = torch.Generator().manual_seed(0)
    y = torch.zeros(2000, 4)
    y[:15,0] = y[:60,1] = y[:400,2] = y[:400,3] = 1
    scores = (torch.randn(2000, 4, generator=gen) + tensor([3.,3.,3.,0.])*y + tensor([-3.,-3.,0.,-2.])).sigmoid()
    res = best_thresholds(scores, y, average='macro', cv=4)
    hasty = best_thresholds(scores, y, average='macro', min_positives=0, cv=None)
    one = best_thresholds(scores, y, average='macro', per_label=False).thresh
    test_eq(res.fallback[:1], ('few positives',))
    assert res.thresh[0]==one
    assert (res.fallback[1],res.thresh[1]) in (('',hasty.thresh[1]), ('no better held out',one))
    assert res.fallback[2]=='' and res.thresh[2]==hasty.thresh[2]!=one
    assert res.fallback[3]==hasty.fallback[3]=='predicts too often' # predicting it for every sample scores best
    assert res.thresh[3]==hasty.thresh[3]==one
    assert 0<res.held_out<=res.score+0.02

@pytest.mark.parametrize('cv', [5, None])
def test_how_many_positives_are_few(cv):
    "A label with 20 positives may get its own threshold, one with 19 does not"
    y = torch.zeros(400, 5)
    y[:40,:3] = y[:20,3] = y[:19,4] = 1
    noise = torch.rand(400, 5, generator=torch.Generator().manual_seed(0))
    scores = tensor([0.9,0.9,0.9,0.1,0.1])*(0.3+0.6*y+0.1*noise)
    res = best_thresholds(scores, y, average='macro', cv=cv)
    one = best_thresholds(scores, y, average='macro', per_label=False)
    test_eq(res.fallback[3:], ('','few positives'))
    assert res.thresh[3]<0.1<0.5<res.thresh[4]==one.thresh
    test_eq(best_thresholds(scores, y, average='macro', cv=cv, min_positives=19).fallback[3:], ('',''))

def test_own_thresholds_are_worth_it_where_labels_differ():
    gen = torch.Generator()
    y = (torch.rand(3000, 3, generator=gen.manual_seed(0))<0.2).float()
    scores = (torch.randn(3000, 3, generator=gen.manual_seed(1)) + 3*y + tensor([-1.,-4.,-7.])).sigmoid()
    res = best_thresholds(scores, y, average='macro', cv=5)
    one = best_thresholds(scores, y, average='macro', per_label=False, cv=5)
    assert not any(res.fallback) and res.held_out>one.held_out+0.1 and abs(res.held_out-res.score)<0.02

def test_a_label_whose_scores_have_another_scale():
    "The global threshold predicts nothing; the label's own threshold also scores well on other samples"
    def draw(n, seed):
        gen = torch.Generator().manual_seed(seed)
        y = torch.rand(n, 4, generator=gen)<tensor([0.3,0.3,0.3,0.06])
        return tensor([0.5,0.5,0.5,0.08]) * (0.4 + 0.6*y + 0.25*torch.rand(n, 4, generator=gen)),y
    scores,y = draw(1000, 0)
    res = best_thresholds(scores, y, average='macro')
    one = best_thresholds(scores, y, average='macro', per_label=False)
    assert 20<=y[:,3].sum()<100 and res.fallback[3]=='' and 0.05<res.thresh[3]<0.08<one.thresh
    assert F1ScoreMulti(one.thresh, sigmoid=False, average=None)(*draw(1000, 1))[3]==0
    assert F1ScoreMulti(res.thresh, sigmoid=False, average=None)(*draw(1000, 1))[3]>0.99

def test_labels_that_are_alike_share_a_threshold():
    "Most thresholds of their own are no better on held-out samples; without a cross-validation all labels get one"
    own = []
    for seed in range(5):
        logits,y = simulate(600, 8, density=0.3, seed=seed)
        scores = logits.sigmoid()
        res = best_thresholds(scores, y, average='macro')
        assert {*res.fallback}<={'','no better held out'}
        own += [not o for o in res.fallback]
        one = best_thresholds(scores, y, average='macro', per_label=False).thresh
        each = best_thresholds(scores, y, average='macro', cv=None)
        assert not any(each.fallback) and each.held_out is None
        assert res.thresh==tuple(one if why else t for why,t in zip(res.fallback, each.thresh))
    assert sum(own)<len(own)/2

def test_no_target_is_true():
    with pytest.warns(UserWarning, match='no target is true, so no threshold is better than another'):
        best_thresholds(torch.rand(30, 2), torch.zeros(30, 2))
    y = torch.zeros(30, 2)
    y[0] = 1
    with pytest.warns(UserWarning, match='no target is true'):
        best_thresholds(torch.rand(30, 2), torch.where(y==1, -1., 0.), ignore_index=-1)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        best_thresholds(torch.rand(30, 2), y)

@pytest.mark.parametrize('scores,y', [
    (torch.full((30,2), 0.3), torch.eye(2).repeat(15,1)),
    (torch.rand(30,2), torch.zeros(30,2)),
    (torch.rand(30,2), torch.ones(30,2)),
    (torch.rand(1,3), tensor([[1.,0.,0.]])),
    (torch.rand(30), (torch.arange(30)%2).float()),
    (torch.zeros(5,2), torch.ones(5,2))])
def test_odd_data(scores, y):
    for average in ('micro','macro','weighted','samples'):
        for per_label in (True, False):
            res = best_thresholds(scores, y, average=average, per_label=per_label)
            assert all(0<=t<=1 for t in L(res.thresh)) and res.score>=0

def test_what_is_refused():
    s,y = torch.rand(20,3),torch.ones(20,3)
    for args,kw,match in (
            ((s.long(),y), {}, 'binary predictions already'),
            ((s[:0],y[:0]), {}, 'not a single sample'),
            ((s*math.nan,y), {}, 'NaN'),
            ((s,y*2), {}, '0 or 1'),
            ((s,y,'f3'), {}, "metric='f3' should be one of f1, "),
            *(((s,y), dict(cv=o), f'cv={o}') for o in (-1,0,1,2.5)),
            ((s,y), dict(vocab=['a','b']), '2 names.*3 labels'),
            ((s,y,'precision'), {}, 'at_recall='),
            ((s,y,'recall'), {}, 'at_precision='),
            ((s,y,'f1','binary'), {}, "no single number with average='binary'"),
            ((s,y[:,:2]), {}, 'shape')):
        with pytest.raises(ValueError, match=match), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            best_thresholds(*args, **kw)

def test_a_class_for_a_metric():
    logits,targs = simulate(300)
    assert best_thresholds(logits, targs, SpecificityMulti, 'micro', sigmoid=True).score==1
    fbeta = best_thresholds(logits, targs, 'fbeta', 'micro', sigmoid=True, beta=2)
    brute = [FBetaMulti(2, thresh=t, average='micro')(logits, targs) for t in np.unique(logits.sigmoid())]
    assert fbeta.score==best_of(brute)

def test_the_curve_is_the_metric():
    "Of all samples, and without each fold"
    logits,targs = simulate(40, 4)
    data,_ = folded_table(logits.sigmoid(), targs, cv=3)
    thresh = data.candidates()
    for average in ('micro','macro','weighted','samples'):
        for zd in (0., 1., math.nan):
            m = F1ScoreMulti(average=average, zero_division=zd)
            v = data.averaged(m, thresh)
            assert v.shape==(4,len(thresh))
            for values,kept in zip(v, (data.fold>=0, *(data.fold!=j for j in range(3)))):
                expected = [m(above(data.scores[kept], t), targs[kept]) for t in thresh]
                np.testing.assert_allclose(values, expected, atol=1e-12)

# In a Learner

def test_find_and_set(tmp_path):
    logits,targs = simulate(bias=-6)
    m = [*multilabel_metrics(),
         F1ScoreMulti(0., sigmoid=False, average='micro', name='on_logits'),
         F1ScoreMulti(average='micro', min_labels=0, labels=[1,2], name='two')]
    vocab = [f'l{i}' for i in range(20)]
    learn = make_learner(logits, targs, m, cbs=ZeroLabelsCallback(), vocab=vocab, path=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        found = learn.thresh_find()
        ax = plt.gca()
        labels = [o.get_label().split(':')[0] for o in ax.lines[1:]]
        assert labels==['predicting nothing','best','cardinality','now']
        plt.close()
        x,curve = ax.lines[0].get_data()
        best = best_thresholds(logits, targs, sigmoid=True)
        assert found.best==best.thresh
        assert best.score==pytest.approx(float(max(curve)), abs=1e-12) # the curve's peak is marked as the best
        assert x[curve.argmax()]==pytest.approx(found.best, rel=1e-4)
        assert found.per_label==best_thresholds(logits, targs, average='macro', sigmoid=True).thresh
        assert (logits.sigmoid()>found.cardinality).sum()==targs.sum()
        learn.thresh_find(dl=learn.dls.train, show_plot=False)
        for thresh,min_labels in ((found.best,0), (found.per_label,0), (0.3,1)):
            learn.set_thresh(thresh, min_labels)
            v = values(learn)
            d = binarize(logits, thresh, min_labels=min_labels)
            for name in ('f1_samples','f1_macro'):
                f1 = skm.f1_score(targs, d, average=name[3:], zero_division=0)
                assert v[name]==pytest.approx(f1, abs=1e-12)
            assert v['on_logits']==pytest.approx(v['f1_micro'], abs=1e-3)
            assert v['two']==pytest.approx(skm.f1_score(targs[:,1:3], d[:,1:3], average='micro'))
            r = learn.zero_labels.records[-1]
            assert r.pred_per_sample==pytest.approx(d.sum().item()/400) and not r.pitfalls
            assert torch.equal(learn.get_preds(with_decoded=True)[2], d)
            learn.export('l.pkl')
            with learn.no_bar(): again = load_learner(tmp_path/'l.pkl')
            again.dls = learn.dls
            test_eq(values(again), v)
            assert torch.equal(again.get_preds(with_decoded=True)[2], d)

def test_other_learners_keep_their_thresholds():
    "All DataLoaders have the same object as `MultiCategorize.loss_func`, and Learners may share a list of metrics"
    loss,metrics = BCEWithLogitsLossFlat(),multilabel_metrics()
    a,b = (make_learner(*simulate(40), metrics, loss_func=loss) for _ in range(2))
    before = values(b)
    a.set_thresh(0.9, min_labels=2)
    assert {m.thresh for m in a.metrics}=={0.9} and {m.thresh for m in b.metrics}=={0.5}
    assert values(b)==before!=values(a)
    assert b.loss_func.thresh==loss.thresh==0.5 and not hasattr(loss, 'min_labels')
    assert a.loss_func.thresh==0.9
    assert torch.equal(b.get_preds(with_decoded=True)[2], simulate(40)[0]>0)

def test_metrics_with_a_threshold_of_their_own_keep_it():
    logits,targs = simulate(100, bias=-3)
    class Named:
        "A loss that decodes logits, but is not fastai's"
        thresh = 0.5
        def __call__(self, p, y): return F.binary_cross_entropy_with_logits(p, y)
        def decodes(self, x): return x>self.thresh
        def activation(self, x): return x.sigmoid()
    for loss in (BCEWithLogitsLossFlat(), Named()):
        metrics = [F1ScoreMulti(),
                   F1ScoreMulti(0., sigmoid=False, name='on_logits'),
                   F1ScoreMulti(0.7, name='high'),
                   F1ScoreMulti([0.2]*20, name='low')]
        learn = make_learner(logits, targs, metrics, loss_func=loss)
        told = 'high, low: custom thresholds, not changed by `set_thresh`'
        with pytest.warns(UserWarning, match=told): learn.set_thresh(0.2)
        v = values(learn)
        assert v['f1_score']==F1ScoreMulti(0.2)(logits, targs)
        assert v['on_logits']==pytest.approx(v['f1_score'], abs=1e-6)
        assert v['high']==F1ScoreMulti(0.7)(logits, targs)

def test_report_of_a_learner():
    logits,targs = simulate(200, bias=-3)
    for loss in (BCEWithLogitsLossFlat(), nn.BCEWithLogitsLoss()):
        learn = make_learner(logits, targs, multilabel_metrics(), loss_func=loss)
        if isinstance(loss, BCEWithLogitsLossFlat): learn.set_thresh(0.15, min_labels=1)
        r = learn.accuracy_report(ci=None)
        v = values(learn)
        assert r.value['F1, samples']==pytest.approx(v['f1_samples'], abs=1e-12)
        assert r.value['accuracy, elementwise']==pytest.approx(v['accuracy_multi'], abs=1e-12)
        f1 = learn.accuracy_report(thresh=0.3, min_labels=0, ci=None).value['F1, micro']
        assert f1==pytest.approx(F1ScoreMulti(0.3, average='micro')(logits, targs), abs=1e-12)

def test_nothing_is_changed_by_a_bad_argument():
    learn = make_learner(*simulate(40), multilabel_metrics())
    loss = learn.loss_func
    for args in ((0.3,-1), (0.3,1.5), (2.,), ([0.3,0.4],)):
        if args[0]==[0.3,0.4]: learn.dls.vocab = list('abcdefghijklmnopqrst')
        with pytest.raises(ValueError): learn.set_thresh(*args)
    assert learn.loss_func is loss and vars(loss).get('decodes') is None
    assert all(m.thresh==0.5 for m in learn.metrics)
    learn.set_thresh(0.3, 1.)
    assert learn.get_preds(with_decoded=True)[2].any(1).all()

@pytest.mark.parametrize('mean', [-12, 0, 14])
def test_decoded_is_what_was_counted(mean):
    "Saturated models, thresholds equal to a score, and tuned thresholds, whose score the metrics reproduce"
    logits,targs = simulate(2000, 7, density=0.3, skill=1., bias=mean)
    scores = logits.sigmoid()
    def check(learn, *args):
        learn.set_thresh(*args)
        v = values(learn)
        preds,_,decoded = learn.get_preds(with_decoded=True)
        for name,average in (('f1_micro','micro'), ('f1_macro','macro')):
            f1 = skm.f1_score(targs, decoded, average=average, zero_division=0)
            assert v[name]==pytest.approx(f1, abs=1e-12)
        assert (preds-scores).abs().max()<=1.2e-7
        return v
    on_logits = F1ScoreMulti(0., sigmoid=False, average='micro', name='on_logits')
    learn = make_learner(logits, targs, [*multilabel_metrics(), on_logits], bs=500)
    for s in scores.flatten()[::1000].tolist(): # thresholds that are scores
        v = check(learn, s)
        assert v['on_logits']==v['f1_micro']
    for average in ('micro','macro','samples'):
        best = best_thresholds(*learn.get_preds(), average=average)
        v = check(learn, best.thresh)
        assert v[f'f1_{average}']==pytest.approx(best.score, abs=1e-12)

def test_set_in_an_image_learner(digits_dls):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, loss_func=BCEWithLogitsLossFlat(),
                           metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.remove_cb(ProgressCallback)
    item = digits_dls.valid_ds.items.iloc[0]
    for thresh,n in ((0.,20), (1.,0)):
        learn.set_thresh(thresh)
        assert len(learn.predict(item)[0])==n
    learn.set_thresh(1., min_labels=2)
    assert len(learn.predict(item)[0])==2
    learn.show_results(max_n=2)
    plt.close('all')

def test_what_cannot_be_set():
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, loss_func=nn.BCEWithLogitsLoss())
    with pytest.raises(ValueError, match='BCEWithLogitsLoss.*does not decode.*BCEWithLogitsLossFlat'):
        learn.set_thresh(0.2)
    learn = make_learner(logits, targs, vocab=list('abcdefghijklmnopqrst'))
    with pytest.raises(ValueError, match='2 values.*20 labels'): learn.set_thresh([0.1,0.2])
    with pytest.raises(ValueError, match='thresh=3'): learn.set_thresh(3)

def test_set_after_a_new_loss():
    "Metrics that have followed `set_thresh` follow it again after the loss function was replaced"
    logits,targs = simulate(200, bias=-3)
    weight = torch.full((20,), 5.)
    metrics = [*multilabel_metrics(), F1ScoreMulti(0.7, name='own')]
    learn = make_learner(logits, targs, metrics, cbs=ZeroLabelsCallback())
    for before,after in ((0.2,0.6), ([0.2]*20,0.3), (0.3,[0.1]*20)):
        with pytest.warns(UserWarning, match='^own: custom thresholds'): learn.set_thresh(before)
        learn.loss_func = BCEWithLogitsLossFlat(pos_weight=weight)
        with pytest.warns(UserWarning, match='^own: custom thresholds'): learn.set_thresh(after)
        v,decoded = values(learn),learn.get_preds(with_decoded=True)[2]
        f1 = skm.f1_score(targs, decoded, average='micro')
        assert v['f1_micro']==pytest.approx(f1, abs=1e-12)==learn.accuracy_report(ci=None).value['F1, micro']
        assert v['own']==F1ScoreMulti(0.7)(logits, targs)
    learn = make_learner(logits, targs, multilabel_metrics(), loss_func=BCEWithLogitsLossFlat(thresh=0.2))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for thresh in (0.3, [0.2]*20, 0.5): learn.set_thresh(thresh)
        for found in (learn.thresh_find(show_plot=False), best_thresholds(*learn.get_preds(), average='macro')):
            learn.set_thresh(found)

def test_a_weighted_loss_without_a_vocab():
    weighted = BCEWithLogitsLossFlat(pos_weight=torch.full((20,), 5.))
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), loss_func=weighted)
    learn.set_thresh(0.3)
    assert learn.metrics[0].thresh==learn.loss_func.thresh==0.3

def test_a_loss_for_neither():
    learn = make_learner(*simulate(200, bias=-3), loss_func=MSELossFlat())
    for f in (learn.accuracy_report, learn.thresh_find, lambda: MultiLabelInterpretation.from_learner(learn)):
        with pytest.raises(ValueError, match=r'\(MSELoss\).*BCEWithLogitsLossFlat'): f()

def test_what_is_found_can_be_passed_as_it_is():
    logits,targs = simulate(200, 4, density=0.4)
    scores = logits.sigmoid()
    for per_label in (False,True):
        found = best_thresholds(scores, targs, average='macro', per_label=per_label)
        a,b = (accuracy_report(scores, targs, thresh=o, ci=None) for o in (found, found.thresh))
        assert a.equals(b)
        assert F1ScoreMulti(found, sigmoid=False)(scores, targs)==found.score

def test_metrics_by_class():
    p,y = torch.rand(300, 4),(torch.rand(300, 4)<0.3).float()
    for name,cls,kw in (('precision',PrecisionMulti,dict(at_recall=0.8)),
                        ('recall',RecallMulti,dict(at_precision=0.25))):
        by_name,by_class = (best_thresholds(p, y, m, 'micro', cv=None, **kw) for m in (name, cls))
        test_eq(by_class.thresh, by_name.thresh)
        test_eq(by_class.score, by_name.score)
        with pytest.raises(ValueError, match='beside it'): best_thresholds(p, y, cls, 'micro')
    with pytest.raises(ValueError, match='no single number with average=None'): best_thresholds(p, y, average=None)

@pytest.mark.parametrize('metric,required,kw', [
    ('precision', RecallMulti, dict(at_recall=0.9)),
    ('recall', PrecisionMulti, dict(at_precision=0.6))])
def test_what_is_required_holds_for_each_label(metric, required, kw):
    "Also for labels with few positives, which otherwise fall back to the global threshold"
    g = torch.Generator().manual_seed(0)
    y = (torch.rand(2000, 6, generator=g)<tensor([0.3,0.2,0.1,0.04,0.01,0.005])).float()
    p = (torch.randn(2000, 6, generator=g) + 4*y - 2).sigmoid()
    best = best_thresholds(p, y, metric, 'macro', **kw)
    reached = required(best.thresh, sigmoid=False, average=None)(p, y)
    assert (reached>=[*kw.values()][0]-1e-9).all() and not any(best.fallback)
    name = 'recall' if metric=='precision' else 'precision'
    column = best.table[name]
    assert np.allclose(column.iloc[2:], reached) and column['per label']==pytest.approx(reached.mean())
    assert f'{name}: on the samples' in best.table.reading

def test_what_is_required_is_shown_beside_each():
    logits,targs = simulate(300, 6, density=0.3)
    learn = make_learner(logits, targs)
    found = learn.thresh_find(metric='precision', average='micro', at_recall=0.8, show_plot=False)
    recall = found.table.recall
    expected = RecallMulti(found.cardinality, average='micro')(logits, targs)
    assert recall['best']>=0.8 and recall['cardinality']==pytest.approx(expected)
    assert 'where 0.8 was required' in found.table.reading

@pytest.mark.parametrize('kw,match', [
    (dict(metric='precision', average='samples', at_recall=0.99), 'zero_division=nan leaves them out'),
    (dict(metric='precision', at_recall=50), 'above 0 and at most 1'),
    (dict(metric=AccuracyLift, average='macro'),
     "AccuracyLift has no single number with average='macro': use one of 'micro'$"),
    (dict(average=None), "use one of 'micro', 'macro', 'weighted', 'samples'$")])
def test_what_a_search_refuses(kw, match):
    logits,targs = simulate(200, 6)
    with pytest.raises(ValueError, match=match): best_thresholds(logits.sigmoid(), targs, **kw)

def test_a_metric_of_samples_alone_has_no_threshold_per_label():
    logits,targs = simulate(200, 6, density=0.4)
    learn = make_learner(logits, targs)
    for metric,average in ((SubsetAccuracy,'samples'), (AccuracyLift,'micro')):
        found = learn.thresh_find(metric=metric, average=average, show_plot=False)
        assert found.per_label is None and [*found.table.index]==['now','best','cardinality']
        assert found.best==best_thresholds(logits.sigmoid(), targs, metric, average).thresh

def test_thresh_find_names_what_it_lacks():
    learn = make_learner(*simulate(200, 6))
    for name in ('sigmoid','vocab','thresh'):
        with pytest.raises(TypeError, match=f'thresh_find has no argument {name}'): learn.thresh_find(**{name: None})

def test_names_of_thresholds_in_metrics():
    "A metric matches thresholds to the labels by name, if the names of the labels are known, else by position"
    names = list('abc')
    logits,targs = simulate(200, 3, density=0.3, bias=-1.)
    p,y = (pd.DataFrame(o.numpy(), columns=names) for o in (logits.sigmoid(), targs))
    by_name = pd.Series(dict(c=0.2, b=0.5, a=0.7))
    expected = accuracy_report(p, y, thresh=by_name).value['F1, macro']
    assert F1ScoreMulti([0.7,0.5,0.2], sigmoid=False)(p, y)==pytest.approx(expected)
    assert F1ScoreMulti(by_name[names], sigmoid=False)(p, y)==pytest.approx(expected)
    by_position = pd.Series([0.7,0.5,0.2])
    assert F1ScoreMulti(by_position, sigmoid=False)(p, y)==pytest.approx(expected) # an index of numbers is no names
    assert F1ScoreMulti(by_name, sigmoid=False)(p[names[::-1]], y)==pytest.approx(expected)
    found = best_thresholds(p[names[::-1]], y, average='macro')
    for thresh in (by_name, found):
        value = F1ScoreMulti(thresh, sigmoid=False)(p, y)
        assert value==F1ScoreMulti(as_thresh(thresh)[::-1], sigmoid=False)(p, y)
        learn = make_learner(logits, targs, [F1ScoreMulti(thresh)], cbs=ZeroLabelsCallback(thresh), vocab=names)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ZeroLabelsWarning)
            assert values(learn)['f1_score']==value
        micro = F1ScoreMulti(thresh, sigmoid=False, average='micro')(p, y)
        assert learn.zero_labels.records[-1].f1_micro==pytest.approx(micro)
        by_position = F1ScoreMulti(as_thresh(thresh), sigmoid=False)(p, y)
        assert F1ScoreMulti(thresh, sigmoid=False)(p.values, y.values)==by_position
        wrong = make_learner(logits, targs, [F1ScoreMulti(thresh)], vocab=list('abd'))
        with pytest.raises(ValueError, match="thresh is for the labels .*'d'"): values(wrong)
    assert F1ScoreMulti(by_name).rule!=F1ScoreMulti([0.2,0.5,0.7]).rule
    assert F1ScoreMulti(by_name).rule==F1ScoreMulti(by_name.copy()).rule

def test_names_survive_a_copy():
    logits,targs = simulate(200, 3, density=0.3)
    p,y = (pd.DataFrame(o.numpy(), columns=list('abc')) for o in (logits.sigmoid(), targs))
    m = F1ScoreMulti(best_thresholds(p[list('cba')], y, average='macro'), sigmoid=False)
    for o in (m, copy(m), deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert o.rule==m.rule
        assert o(p, y)==o(p[list('cba')], y)==m(p, y)

def test_names_that_are_numbers_in_another_order():
    logits,targs = simulate(200, 4, density=0.3)
    p,y = logits.sigmoid().numpy(),targs.numpy()
    by_number,in_order = pd.Series([.9,.5,.3,.1], index=[3,2,1,0]),[.1,.3,.5,.9]
    assert accuracy_report(p, y, thresh=by_number).equals(accuracy_report(p, y, thresh=in_order))
    expected = AccuracyMulti(in_order, sigmoid=False)(p, y)
    for args in ((p, y), (pd.DataFrame(p), pd.DataFrame(y))):
        for thresh in (by_number, by_number.sort_index()): assert AccuracyMulti(thresh, sigmoid=False)(*args)==expected

def test_a_metric_above_1():
    "If labels are alike, for most of them no threshold is better than the global one"
    class Profit(CountsMetric):
        def formula(self, tp, fp, fn, tn): return 5*tp-fp
    own = []
    for seed in range(5):
        logits,y = simulate(600, 8, density=0.3, seed=seed)
        own += [not o for o in best_thresholds(logits.sigmoid(), y, Profit, 'macro').fallback]
    assert sum(own)<len(own)/2

def test_logits_without_sigmoid_are_told():
    "One warning names the scale, and both of its ways give metrics the score that was promised"
    logits,targs = simulate(600, 5, density=0.3, bias=-1)
    says = 'scores from -.* are not probabilities.*sigmoid=False.*sigmoid=True'
    with pytest.warns(UserWarning, match=says) as caught:
        found = best_thresholds(logits, targs)
    assert len(caught)==1
    assert F1ScoreMulti(found, sigmoid=False, average='micro')(logits, targs)==pytest.approx(found.score)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        found = best_thresholds(logits, targs, sigmoid=True)
        best_thresholds(logits.sigmoid(), targs)
    assert F1ScoreMulti(found, average='micro')(logits, targs)==pytest.approx(found.score)

# In bins

def kinds_of_scores(n=20_000, c=6):
    "Calibrated, saturated and tied scores, and targets"
    gen = torch.Generator().manual_seed(0)
    y = (torch.rand(n, c, generator=gen)<torch.linspace(0.02, 0.4, c)).float()
    logits = torch.randn(n, c, generator=gen) + 2*y - 2
    scores = logits.sigmoid()
    return dict(calibrated=scores, saturated=(12*logits+5).sigmoid(), tied=scores.round(decimals=2)),y

@pytest.mark.parametrize('kind', ['calibrated','saturated','tied'])
@pytest.mark.parametrize('metric', ['f1','jaccard','accuracy','matthews','cardinality'])
def test_bins_are_close_to_exact(kind, metric):
    scores,y = kinds_of_scores()
    for average in ('micro','macro','weighted'):
        if average not in {'matthews':['micro','macro'],'cardinality':['micro']}.get(metric, [average]): continue
        for per_label in (False, True):
            exact,binned = (best_thresholds(scores[kind], y, metric, average, per_label, bins=o) for o in (None, 1024))
            near = 0.01*y.sum() if metric=='cardinality' else 0.005
            assert abs(exact.score-binned.score)<near
            assert metric=='cardinality' or abs(exact.held_out-binned.held_out)<0.01
            if metric!='cardinality':
                m = CLASSES[metric](binned.thresh, sigmoid=False, average=average)
                assert m(scores[kind], y)==pytest.approx(binned.score, abs=1e-12) # the counts are exact

@settings(max_examples=60)
@given(scored(), st.sampled_from([2,16,64,1024]), st.sampled_from(['f1','accuracy']), st.booleans())
def test_bins_by_brute_force_over_their_edges(scored, bins, metric, per_label):
    scores,y = scored
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        res = best_thresholds(scores, y, metric, 'macro', per_label, bins=bins, cv=None, min_positives=0)
    m = CLASSES[metric](average=None)
    edges = bin_edges(bins)[:-1].numpy()
    each = np.array([m(above(scores, t), y) for t in edges])
    if not per_label: assert res.score==pytest.approx(each.mean(1).max(), abs=1e-12)
    for i,why in enumerate(res.fallback):
        if not why: assert res.table.score.iloc[2+i]==pytest.approx(each[:,i].max(), abs=1e-12)
    assert CLASSES[metric](res.thresh, sigmoid=False, average='macro')(scores, y)==pytest.approx(res.score, abs=1e-12)

@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@settings(max_examples=60)
@given(st.data(), st.sampled_from([2,7,64,1024,2**14]))
def test_a_score_is_beyond_exactly_the_edges_below_it(dtype, data, bins):
    edges = bin_edges(bins)[1:-1].numpy()
    near = np.concatenate([np.nextafter(edges.astype(dtype), o) for o in (dtype(0), dtype(2))] + [edges, [0.,1.,0.5]])
    p = torch.from_numpy(np.clip(data.draw(st.permutations(near.astype(dtype).tolist()[:500])), 0, 1).astype(dtype))
    p = torch.cat([p, torch.from_numpy(near.astype(dtype)).clip(0, 1)])[:,None]
    at = bin_index(p, torch.zeros_like(p), bins, sigmoid=False, exact=True)
    inner = (edges.astype(dtype)>=p.numpy()).sum(1)
    np.testing.assert_array_equal(at[:,0], inner)

@pytest.mark.parametrize('average', ['micro','macro'])
def test_a_stream_is_as_whole_arrays(average):
    logits,targs = simulate(700, 5, density=0.3, skill=2.)
    targs[torch.rand(700, 5, generator=torch.Generator().manual_seed(1))<0.2] = math.nan
    kw = dict(average=average, sigmoid=True, ignore_index=math.nan, bins=256)
    whole = best_thresholds(logits, targs, **kw)
    for bs in (1, 64, 699):
        finder = ThreshFinder(**kw)
        assert finder.compute() is None
        for p,y in zip(logits.split(bs), targs.split(bs)): finder.update(p, y)
        best = finder.compute()
        assert best==whole and repr(best)==repr(whole) and finder.value==whole.score
    noise = torch.where(targs.isnan(), 0, targs)
    expected = best_thresholds(logits, noise, **{**kw, 'ignore_index':None})
    assert expected.score!=whole.score
    m = F1ScoreMulti(whole.thresh, average=average, ignore_index=math.nan)
    assert m(logits, targs)==pytest.approx(whole.score, abs=1e-12)

def test_held_out_scores_in_bins_by_hand():
    logits,targs = simulate(500, 4, density=0.3, skill=1.)
    scores = logits.sigmoid()
    res = best_thresholds(scores, targs, bins=128)
    fold,p = draw_folds(0, 500).numpy(),np.zeros((500, 4), int)
    edges = bin_edges(128)[:-1].numpy()
    for j in range(5):
        rest = best_thresholds(scores[fold!=j], targs[fold!=j], bins=128, cv=None)
        p[fold==j] = above(scores[fold==j], rest.thresh)
    assert np.isin(np.float32(res.thresh), edges)
    assert res.held_out==pytest.approx(skm.f1_score(targs, p, average='micro'), abs=0.01)
    for n in (1, 7, 250): # folds do not depend on batches, nor on processes
        parts = [draw_folds(i, min(n, 500-i)) for i in range(0, 500, n)]
        np.testing.assert_array_equal(torch.cat(parts), fold)
    np.testing.assert_array_equal(draw_folds(1, 100, 3), fold[1::3][:100])

def test_labels_in_bins_fall_back():
    y = torch.zeros(400, 5)
    y[:40,:3] = y[:20,3] = y[:19,4] = 1
    noise = torch.rand(400, 5, generator=torch.Generator().manual_seed(0))
    scores = tensor([0.9,0.9,0.9,0.1,0.1])*(0.3+0.6*y+0.1*noise)
    res = best_thresholds(scores, y, average='macro', bins=1024)
    one = best_thresholds(scores, y, average='macro', bins=1024, per_label=False)
    test_eq(res.fallback[3:], ('','few positives'))
    assert res.thresh[3]<0.1<0.5<res.thresh[4]==one.thresh

def test_what_bins_refuse():
    logits,y = simulate(100, 4, density=0.3)
    p = logits.sigmoid()
    for f,match in (
            (lambda: best_thresholds(p, y, average='samples', bins=64), "no average over samples: leave bins out"),
            (lambda: make_learner(logits, y).thresh_find(average='samples', bins=64), "no average over samples"),
            (lambda: best_thresholds(logits, y, bins=64), 'pass sigmoid=True'),
            (lambda: best_thresholds(p*math.nan, y, bins=64), 'NaN'),
            (lambda: best_thresholds(y.long(), y, bins=64), 'binary predictions already'),
            (lambda: best_thresholds(p, 2*y, bins=64), '0 or 1'),
            (lambda: best_thresholds(p[:0], y[:0], bins=64), 'not a single sample'),
            (lambda: best_thresholds(p, y*0-1, bins=64, ignore_index=-1), 'not a single sample'),
            (lambda: ThreshFinder(bins=1), 'bins=1'),
            (lambda: ThreshFinder(cv=1), 'cv=1')):
        with warnings.catch_warnings(), pytest.raises(ValueError, match=match):
            warnings.simplefilter('ignore')
            f()

def test_a_learner_in_bins():
    logits,targs = simulate(500, 6, density=0.3, skill=2.)
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.fit(1)
    before = dict(vars(learn.recorder)),len(learn.zero_labels.records),learn.metrics,[*learn.cbs]
    found = learn.thresh_find(bins=1024)
    plt.close()
    kw = dict(sigmoid=True, bins=1024)
    assert found.best==best_thresholds(logits, targs, **kw).thresh
    assert found.cardinality==best_thresholds(logits, targs, 'cardinality', **kw).thresh
    assert found.per_label==best_thresholds(logits, targs, average='macro', **kw).thresh
    exact = learn.thresh_find(show_plot=False)
    assert found.table.score['now']==pytest.approx(exact.table.score['now'], abs=1e-12)
    assert found.table.score['best']==pytest.approx(exact.table.score['best'], abs=0.005)
    assert (len(learn.zero_labels.records),learn.metrics,[*learn.cbs])==before[1:]
    assert learn.recorder.values==before[0]['values']

class Interrupting(Callback):
    def after_pred(self): raise KeyboardInterrupt

def test_an_interrupt_leaves_everything_as_it_was(monkeypatch):
    learn = make_learner(*simulate(100), multilabel_metrics())
    learn.fit(1)
    state,metrics,cbs = learn.recorder.values,learn.metrics,[*learn.cbs]
    threads = torch.get_num_threads()
    def interrupted(f):
        with pytest.raises(KeyboardInterrupt): f()
        assert learn.recorder.values==state and [*learn.metrics]==[*metrics] and [*learn.cbs]==cbs
        assert torch.get_num_threads()==threads
    with learn.added_cbs(Interrupting()):
        cbs = [*learn.cbs]
        for bins in (None, 64): interrupted(lambda: learn.thresh_find(bins=bins, show_plot=False))
    cbs = [*learn.cbs]
    def stop(*args): raise KeyboardInterrupt
    monkeypatch.setattr(Objective, 'best', stop)
    for bins in (None, 64): interrupted(lambda: learn.thresh_find(bins=bins, show_plot=False))

class Terminal(io.StringIO):
    def isatty(self): return True

@pytest.mark.parametrize('out,wait,show,shown', [
    (Terminal,-1,True,True), (Terminal,5,True,False), (Terminal,-1,False,False), (io.StringIO,-1,True,False)])
def test_progress_is_shown_where_it_is_of_use(monkeypatch, out, wait, show, shown):
    monkeypatch.setattr(sys, 'stdout', out())
    assert [*progress([3,1,2], wait=wait, show=show)]==[*progress(iter([3,1,2]), 3, wait, show)]==[3,1,2]
    text = sys.stdout.getvalue()
    monkeypatch.undo()
    assert bool(text)==shown

def test_a_long_report_and_page_show_their_progress(monkeypatch, tmp_path):
    def at_once(items, total=None, wait=5): return progress(items, total, wait=-1)
    for module in (report,page): monkeypatch.setattr(module, 'progress', at_once)
    targs = torch.rand(40, 3)<0.5
    interp = MultiLabelInterpretation.from_preds(torch.rand(40, 3), targs)
    def shown(f):
        monkeypatch.setattr(sys, 'stdout', Terminal())
        f()
        return sys.stdout.getvalue()
    texts = [shown(lambda: accuracy_report(torch.rand(40, 3), targs)), shown(lambda: interp.to_html(tmp_path/'a.html'))]
    monkeypatch.undo()
    assert '/1 ' in texts[0] and f'/{len(page.SECTIONS)} ' in texts[1]
    assert all(o.rstrip(' ').endswith('\r') for o in texts) # The bar is removed

def test_later_loops_of_a_long_search_show_their_bar_at_once(monkeypatch):
    table = ScoreTable(torch.rand(9, 2), torch.rand(9, 2)<0.5)
    monkeypatch.setattr(sys, 'stdout', Terminal())
    [*table.each(range(3))]
    assert not sys.stdout.getvalue()
    table.begun -= 10
    [*table.each(range(3))]
    text = sys.stdout.getvalue()
    monkeypatch.undo()
    assert '3' in text
