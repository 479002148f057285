"Threshold search, compared with brute force over all distinct binary predictions"
import itertools, pickle, sklearn.metrics as skm
from copy import deepcopy
from helpers import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.curves import bin_edges
from fastai_mlmetrics.thresholds.search import draw_folds, ScoreTable
from fastai_mlmetrics.thresholds.tuning import Objective
from fastai_mlmetrics.thresholds.finding import plot_thresh_curve, score_table
from fastai_mlmetrics.reports.comparison import ModelComparison
from six_labels import LOGITS, NAMES, SCORES, TARGS

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
@given(scored())
def test_a_global_threshold_is_the_best_of_all(metric, average, scored):
    scores,y = scored
    res = best_thresholds(scores, y, metric, average, per_label=False, cv=None)
    m = CLASSES[metric](average=average)
    brute = best_of([m(above(scores, t), y) for t in every_thresh(scores)])
    assert res.score==pytest.approx(brute, abs=1e-9) and isinstance(res.thresh, float)
    assert m(above(scores, res.thresh), y)==res.score
    assert CLASSES[metric](thresh=res.thresh, sigmoid=False, average=average)(scores, y)==res.score

@pytest.mark.parametrize('metric', CLASSES)
@given(scored())
def test_thresholds_per_label_are_the_best_of_all(metric, scored):
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

ratios = pytest.mark.parametrize('m', [cls(*beta, average='micro') for cls,*beta in (
    (F1ScoreMulti,), (FBetaMulti,2), (FBetaMulti,0.5), (JaccardMulti,), (AccuracyMulti,), (HammingLossMulti,))],
    ids=repr)

def best_combination(m, scores, y, each):
    "The best of a micro average over all combinations of thresholds of three labels; of ties the highest thresholds"
    passed = scores[...,None]>np.float32(each)
    tp,fp = (tensor((passed & (y==o)[...,None]).sum(0)).double() for o in (1,0))
    tp,fp = (o[0][:,None,None]+o[1][:,None]+o[2] for o in (tp,fp))
    values = m.values(tp, fp, (y==1).sum()-tp, (y==0).sum()-fp)*(-1 if m.is_loss else 1)
    at = (values>=values.max()-1e-9).nonzero()
    return abs(values.max().item()),np.array(each)[at].max(0)

@ratios
@given(st.integers(0, 2**32-1))
def test_thresholds_per_label_are_the_best_together(m, seed):
    "Of all combinations, with ties, ignored targets, and labels without positives"
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, rng.integers(3, 9), (10, 3)).astype(np.float32)/10
    y = (rng.random((10, 3))<rng.choice([0,0.2,0.5], 3)).astype(int)
    y[rng.random((10, 3))<rng.choice([0,0.3])] = -1
    y[0,0] = 1
    res = best_thresholds(scores, y, m, per_label=True, ignore_index=-1, cv=None)
    best,thresh = best_combination(m, scores, y, [1., *(np.unique(scores)-0.05)])
    assert res.score==pytest.approx(best, abs=1e-12)
    np.testing.assert_array_equal((scores>np.float32(res.thresh))[y>=0], (scores>np.float32(thresh))[y>=0])

@ratios
def test_thresholds_per_label_in_bins_are_the_best_together(m):
    "Of all combinations of their edges, for all samples and without each fold"
    rng = np.random.default_rng(0)
    y = (rng.random((60, 3))<[0.5,0.3,0.1]).astype(int)
    scores = torch.from_numpy(4*rng.normal(size=(60, 3)) + 5*y - [0,4,8]).sigmoid().float().numpy()
    edges = bin_edges(24)[:-1].numpy()
    res = best_thresholds(scores, y, m, per_label=True, bins=24, cv=3)
    best,thresh = best_combination(m, scores, y, edges)
    assert res.score==pytest.approx(best, abs=1e-12)
    np.testing.assert_array_equal(scores>np.float32(res.thresh), scores>thresh)
    fold = draw_folds(0, 60, cv=3).numpy()
    thresh = np.stack([best_combination(m, scores[fold!=j], y[fold!=j], edges)[1] for j in range(3)])
    assert res.held_out==pytest.approx(m((scores>thresh[fold]).astype(int), y), abs=1e-12)

@pytest.mark.parametrize('bins', [None,256])
def test_a_global_threshold_is_no_better_than_one_per_label(bins):
    "On the samples that both are tuned on; for the average over samples they are those of the micro average"
    for seed in range(5):
        logits,y = simulate(300, 8, density=0.2, skill=1., seed=seed)
        one,each = (best_thresholds(logits.sigmoid(), y, per_label=o, bins=bins) for o in (False,True))
        assert each.score>=one.score and each.fallback==('',)*8 and 'fallback' not in each.table
        assert each.score==F1ScoreMulti(each, sigmoid=False, average='micro')(logits.sigmoid(), y)
        if bins is None:
            of_samples = best_thresholds(logits.sigmoid(), y, average='samples', per_label=True)
            assert of_samples.thresh==each.thresh
            m = F1ScoreMulti(each, sigmoid=False, average='samples')
            assert of_samples.score==pytest.approx(m(logits.sigmoid(), y), abs=1e-12)

@given(scored())
def test_cardinality_predicts_as_many_as_are_true(scored):
    scores,y = scored
    t = best_thresholds(scores, y, 'cardinality', per_label=False, cv=None).thresh
    def off(thresh): return abs(int(above(scores, thresh).sum())-y.sum())
    assert off(t)==min(off(o) for o in every_thresh(scores))

@pytest.mark.parametrize('least', [0.3, 0.8, 1.])
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

def test_scores_are_those_of_scikit_learn_s_curves():
    logits,targs = simulate(2000, 5, density=0.2, bias=-3)
    scores = logits.sigmoid().numpy()
    res = best_thresholds(logits, targs, average='macro', sigmoid=True, min_positives=0, cv=None)
    for i,t in enumerate(res.thresh):
        p,r,_ = skm.precision_recall_curve(targs[:,i], scores[:,i])
        f1 = skm.f1_score(targs[:,i], scores[:,i]>np.float32(t))
        assert f1==pytest.approx((2*p*r/np.maximum(p+r, 1e-9)).max(), abs=1e-9)

def test_logits_need_no_sigmoid():
    logits,targs = simulate(300)
    a = best_thresholds(logits, targs, average='micro')
    b = best_thresholds(logits, targs, average='micro', sigmoid=True)
    assert a.score==b.score and a.thresh==pytest.approx(math.log(b.thresh/(1-b.thresh)), abs=0.02)

@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
def test_scores_may_be_of_any_precision(dtype):
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

def test_infinite_scores_are_ranked():
    "Log-odds of probabilities that were rounded to 0 and 1"
    with warnings_as('error'):
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
    def by_fold(folds):
        "Predict each of some folds with the thresholds of the others of them: a global one, and one per label"
        one,own = np.zeros((2,300,6), bool)
        for j in folds:
            here,others = fold==j,(fold!=j) & np.isin(fold, folds)
            one[here] = s[here]>=best_cut(s[others].ravel(), t[others].ravel())
            own[here] = s[here]>=[best_cut(*o) for o in zip(s[others].T, t[others].T)]
        return one,own
    one,own = by_fold(range(5))
    res = best_thresholds(scores, y)
    assert res.held_out==pytest.approx(skm.f1_score(t, one, average='micro'), abs=1e-12)
    class LabelByLabel(F1ScoreMulti):
        def formula(self, tp, fp, fn, tn): return 2*tp/(2*tp+fp+fn) # Not known to be a ratio of sums
    each = best_thresholds(scores, y, LabelByLabel, 'micro', per_label=True, min_positives=0)
    def better(folds):
        some = np.isin(fold, folds)
        return np.less(*(skm.f1_score(t[some], o[some], average=None) for o in by_fold(folds)))
    assert [not o for o in each.fallback]==better(range(5)).tolist() and {*each.fallback}=={'','no better held out'}
    chosen = one.copy()
    for j in range(5): # the other folds choose for the samples of a fold, which they have not seen
        chosen[fold==j] = np.where(better([i for i in range(5) if i!=j]), own[fold==j], one[fold==j])
    assert each.held_out==pytest.approx(skm.f1_score(t, chosen, average='micro'), abs=1e-12)
    np.testing.assert_allclose(each.table.held_out[2:], skm.f1_score(t, chosen, average=None), atol=1e-12)
    test_eq(each.table.held_out['global'], res.held_out)
    for i,why in enumerate(each.fallback):
        cut = best_cut(s.ravel(), t.ravel()) if why else best_cut(s[:,i], t[:,i])
        np.testing.assert_array_equal(s[:,i]>np.float32(each.thresh[i]), s[:,i]>=cut)

@pytest.mark.parametrize('metric,average,per_label', [
    ('f1','micro',False), ('f1','macro',False), ('f1','samples',False), ('accuracy','weighted',False),
    ('balanced_accuracy','micro',False), ('f1','macro',True), ('matthews','macro',True), ('accuracy','micro',True)])
@given(scored(max_samples=20), st.integers(2, 4), st.data())
def test_targets_of_a_fold_do_not_matter_to_its_own_predictions(metric, average, per_label, scored, cv, data):
    scores,y = scored
    objective = Objective(metric, average, per_label, min_positives=2)
    def held_out(y):
        table = score_table(Predictions.of(scores, y), cv)
        *_,tuned = objective.tune(table)
        thresh = tuned.thresh[1:1+table.n_folds]
        return table.fold.numpy(),None if np.isnan(thresh).any() or not len(thresh) else table.predict(thresh)
    with warnings_as('ignore'): # no target may be true
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
def test_a_single_sample_has_no_held_out_score(average):
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
def test_what_is_undefined_without_a_fold_has_no_held_out_score(per_label):
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
        averages,is_loss = ('micro','macro','samples',None),True
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

@pytest.mark.parametrize('metric,match', [
    *((o, f'{cls.__name__} has no best threshold') for cls in (EmptyRate,LabelCardinality,ZerosAccuracy)
      for o in (cls, cls())),
    *((o, 'needs at_recall= beside it') for o in ('precision', PrecisionMulti, PrecisionMulti(average='micro'))),
    *((o, 'needs at_precision= beside it') for o in ('recall', RecallMulti, RecallMulti(average='micro'))),
    *((o, 'should be one of f1, fbeta, ') for o in ('f2', ['f1'], CF1, CF1(), APScoreMulti, APScoreMulti(),
                                                    CountsMetric, accuracy_multi, None, 1)),
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

@pytest.mark.parametrize('kw', [dict(), dict(bins=64)], ids=str)
@pytest.mark.parametrize('name,value', [
    ('min_positives','3'), ('min_positives',-1), ('min_positives',2.5), ('seed',None), ('seed',-1), ('seed',0.5)])
def test_numbers_that_are_none_are_named(name, value, kw):
    with pytest.raises(ValueError, match=f'{name}={value!r} should be a whole number, 0 or more'):
        best_thresholds(torch.rand(20, 3), torch.eye(20)[:,:3], **{name: value}, **kw)

@pytest.mark.parametrize('average', ['micro','macro','samples'])
def test_where_a_metric_is_undefined_is_told(average):
    "Without a positive, F1 is 0 where anything is predicted, and 0/0 elsewhere"
    scores,y = torch.rand(20, 3),torch.zeros(20, 3)
    m = F1ScoreMulti(0.01, sigmoid=False, average=average, zero_division=math.nan)
    assert m(scores, y)==0
    undefined = 'is 0/0 at each threshold next to the score of a true target, and where nothing'
    with pytest.raises(ValueError, match=undefined):
        with warnings_as('ignore'): best_thresholds(scores, y, average=average, per_label=False, zero_division=math.nan)

# One threshold per label, or the global one

def test_labels_fall_back_for_a_reason():
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

@pytest.mark.parametrize('kw', [dict(), dict(cv=None), dict(bins=1024)], ids=str)
def test_how_many_positives_are_few(kw):
    "A label with 20 positives may get its own threshold, one with 19 does not"
    y = torch.zeros(400, 5)
    y[:40,:3] = y[:20,3] = y[:19,4] = 1
    noise = torch.rand(400, 5, generator=torch.Generator().manual_seed(0))
    scores = tensor([0.9,0.9,0.9,0.1,0.1])*(0.3+0.6*y+0.1*noise)
    def found(**more): return best_thresholds(scores, y, average='macro', **kw, **more)
    res = found()
    test_eq(res.fallback[3:], ('','few positives'))
    assert res.thresh[3]<0.1<0.5<res.thresh[4]==found(per_label=False).thresh
    test_eq(found(min_positives=19).fallback[3:], ('',''))

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

def test_no_true_target_is_told():
    with pytest.warns(UserWarning, match='no target is true, so no threshold is better than another'):
        best_thresholds(torch.rand(30, 2), torch.zeros(30, 2))
    y = torch.zeros(30, 2)
    y[0] = 1
    with pytest.warns(UserWarning, match='no target is true'):
        best_thresholds(torch.rand(30, 2), torch.where(y==1, -1., 0.), ignore_index=-1)
    with warnings_as('error'): best_thresholds(torch.rand(30, 2), y)

@pytest.mark.parametrize('scores,y', [
    (torch.full((30,2), 0.3), torch.eye(2).repeat(15,1)),
    (torch.rand(30,2), torch.zeros(30,2)),
    (torch.rand(30,2), torch.ones(30,2)),
    (torch.rand(1,3), tensor([[1.,0.,0.]])),
    (torch.rand(30), (torch.arange(30)%2).float()),
    (torch.zeros(5,2), torch.ones(5,2))])
def test_odd_data_have_a_threshold(scores, y):
    for average in ('micro','macro','weighted','samples'):
        for per_label in (True, False):
            res = best_thresholds(scores, y, average=average, per_label=per_label)
            assert all(0<=t<=1 for t in L(res.thresh)) and res.score>=0

def test_mistakes_are_named():
    s,y = torch.rand(20,3),torch.ones(20,3)
    for args,kw,match in (
            ((s.long(),y), {}, 'binary predictions already'),
            ((s[:0],y[:0]), {}, 'not a single sample'),
            ((s*math.nan,y), {}, 'NaN'),
            ((s,y*2), {}, '0 or 1'),
            ((s,y,'f3'), {}, "metric='f3' should be one of f1, "),
            *(((s,y), dict(cv=o), f'cv={o}') for o in (-1,0,1,2.5)),
            ((s,y), dict(vocab=['a','b']), '2 names.*3 labels'),
            ((s,y[:,:2]), {}, 'shape')):
        with pytest.raises(ValueError, match=match), warnings_as('ignore'): best_thresholds(*args, **kw)

def test_a_metric_may_be_a_class():
    logits,targs = simulate(300)
    assert best_thresholds(logits, targs, SpecificityMulti, 'micro', sigmoid=True).score==1
    fbeta = best_thresholds(logits, targs, 'fbeta', 'micro', sigmoid=True, beta=2)
    brute = [FBetaMulti(2, thresh=t, average='micro')(logits, targs) for t in np.unique(logits.sigmoid())]
    assert fbeta.score==best_of(brute)

def test_the_curve_is_the_metric():
    "Of all samples, and without each fold"
    logits,targs = simulate(40, 4)
    data = score_table(Predictions.of(logits.sigmoid(), targs), 3)
    thresh = data.candidates()
    for average in ('micro','macro','weighted','samples'):
        for zd in (0., 1., math.nan):
            m = F1ScoreMulti(average=average, zero_division=zd)
            v = data.averaged(m, thresh, data.fold_masks())
            assert v.shape==(4,len(thresh))
            for values,kept in zip(v, (data.fold>=0, *(data.fold!=j for j in range(3)))):
                expected = [m(above(data.scores[kept], t), targs[kept]) for t in thresh]
                np.testing.assert_allclose(values, expected, atol=1e-12)

# In a Learner

def test_what_is_found_can_be_passed_as_it_is():
    logits,targs = simulate(200, 4, density=0.4)
    scores = logits.sigmoid()
    for per_label in (False,True):
        found = best_thresholds(scores, targs, average='macro', per_label=per_label)
        a,b = (accuracy_report(scores, targs, thresh=o, ci=None) for o in (found, found.thresh))
        assert a.equals(b)
        assert F1ScoreMulti(found, sigmoid=False)(scores, targs)==found.score

def test_metrics_are_found_by_class_as_by_name():
    p,y = torch.rand(300, 4),(torch.rand(300, 4)<0.3).float()
    for name,cls,kw in (('precision',PrecisionMulti,dict(at_recall=0.8)),
                        ('recall',RecallMulti,dict(at_precision=0.25))):
        by_name,by_class = (best_thresholds(p, y, m, 'micro', cv=None, **kw) for m in (name, cls))
        test_eq(by_class.thresh, by_name.thresh)
        test_eq(by_class.score, by_name.score)
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

@pytest.mark.parametrize('kw,match', [
    (dict(metric='precision', average='samples', at_recall=0.99), 'zero_division=nan leaves them out'),
    (dict(metric='precision', at_recall=50), 'above 0 and at most 1'),
    (dict(metric=AccuracyLift, average='macro'),
     "AccuracyLift has no single number with average='macro': use one of 'micro'$"),
    (dict(average=None), "use one of 'micro', 'macro', 'weighted', 'samples'$")])
def test_a_search_says_what_it_cannot_do(kw, match):
    logits,targs = simulate(200, 6)
    with pytest.raises(ValueError, match=match): best_thresholds(logits.sigmoid(), targs, **kw)

def test_a_metric_may_exceed_1():
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
    with warnings_as('error'):
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
            assert exact.table.support.equals(binned.table.support)
            near = 0.01*y.sum() if metric=='cardinality' else 0.005
            assert abs(exact.score-binned.score)<near
            assert metric=='cardinality' or abs(exact.held_out-binned.held_out)<0.01
            if metric!='cardinality':
                m = CLASSES[metric](binned.thresh, sigmoid=False, average=average)
                assert m(scores[kind], y)==pytest.approx(binned.score, abs=1e-12) # the counts are exact

@given(scored(), st.sampled_from([2,16,64,1024]), st.sampled_from(['f1','accuracy']), st.booleans())
def test_bins_by_brute_force_over_their_edges(scored, bins, metric, per_label):
    scores,y = scored
    with warnings_as('ignore'):
        res = best_thresholds(scores, y, metric, 'macro', per_label, bins=bins, cv=None, min_positives=0)
    m = CLASSES[metric](average=None)
    edges = bin_edges(bins)[:-1].numpy()
    each = np.array([m(above(scores, t), y) for t in edges])
    if not per_label: assert res.score==pytest.approx(each.mean(1).max(), abs=1e-12)
    for i,why in enumerate(res.fallback):
        if not why: assert res.table.score.iloc[2+i]==pytest.approx(each[:,i].max(), abs=1e-12)
    assert CLASSES[metric](res.thresh, sigmoid=False, average='macro')(scores, y)==pytest.approx(res.score, abs=1e-12)

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

def test_mistakes_with_bins_are_named():
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
        with warnings_as('ignore'), pytest.raises(ValueError, match=match): f()

def test_a_finder_shows_what_it_does():
    for text,average in (
            ('ThreshFinder()','micro'), ("ThreshFinder(average='macro')",'macro'),
            ("ThreshFinder(metric=JaccardMulti(average='weighted'), average='weighted')",'weighted'),
            ("ThreshFinder(metric='precision', bins=64, cv=None, zero_division=1.0, at_recall=0.9)",'micro')):
        finder = eval(text)
        assert repr(finder)==text and finder.average==average and finder.name=='thresh_finder'
        assert repr(pickle.loads(pickle.dumps(finder)))==text
    with pytest.raises(TypeError, match="ThreshFinder has no argument 'at_recal': did you mean 'at_recall'"):
        ThreshFinder(at_recal=0.9)

@pytest.mark.parametrize('name', ['best_thresholds','ThreshFinder','compare_models','ModelComparison','APScoreMulti',
    'RocAucMulti','LRAP','CoverageError','LabelRankingLoss','PrecisionAtK','RecallAtK','OneError',
    'ExpectedCalibrationError'])
def test_examples_of_docstrings_run(name):
    logits,targs = simulate(200, 5, density=0.3)
    names = dict(globals(), logits=logits, targs=targs, probs=logits.sigmoid(),
                 others=(logits+torch.randn(200, 5)).sigmoid())
    code = example(names[name])
    assert name in code or name=='ModelComparison'
    exec(code, names)
    plt.close('all')

def test_what_is_not_reached_is_named():
    with pytest.raises(ValueError, match='such as JaccardMulti, which is given its average= here'):
        best_thresholds(SCORES, TARGS, metric=CF1)
    hard = torch.tensor([[0.9],[0.8],[0.7],[0.6]]),torch.tensor([[0],[1],[1],[0]])
    unreached = r'no threshold reaches a precision \(micro\) of 0.9; the highest is 0.667'
    with pytest.raises(ValueError, match=unreached): best_thresholds(*hard, 'recall', 'micro', at_precision=0.9)

def f1(y, p, average='macro'): return skm.f1_score(y, p, average=average, zero_division=0)

def test_the_table_has_the_numbers_of_the_result():
    res = best_thresholds(SCORES, TARGS, average='macro', vocab=NAMES)
    t,y = res.table,TARGS.numpy()
    assert list(t.index)==['global','per label',*NAMES]
    assert list(t.columns)==['threshold','support','score','held_out','fallback']
    test_eq(tuple(t.threshold[2:]), res.thresh)
    test_eq(tuple(t.fallback[2:]), res.fallback)
    test_eq(t.support.tolist(), [y.sum()]*2 + y.sum(0).tolist())
    p = (SCORES>tensor(res.thresh)).numpy()
    np.testing.assert_allclose(t.score[2:], f1(y, p, None))
    np.testing.assert_allclose(t.score['per label'], f1(y, p))
    one = best_thresholds(SCORES, TARGS, average='macro', per_label=False)
    test_eq(t.loc['global', ['threshold','score','held_out']].tolist(), [one.thresh, one.score, one.held_out])
    test_eq([res.score, res.held_out], t.loc['per label', ['score','held_out']].tolist())
    assert list(one.table.index)==['global'] and len(one.table.columns)==4

@pytest.mark.parametrize('kw', [
    dict(), dict(average='macro'), dict(average='samples'), dict(average='weighted'),
    dict(average='micro', per_label=True), dict(average='macro', cv=3, seed=1)], ids=str)
def test_held_out_is_on_samples_that_were_not_seen(kw):
    "Each fold is predicted with the thresholds of the others, right below the lowest positive that they predict"
    res = best_thresholds(SCORES, TARGS, **kw)
    cv,seed,average = kw.get('cv', 5),kw.get('seed', 42),kw.get('average', 'micro')
    fold = torch.randperm(300, generator=torch.Generator().manual_seed(seed))%cv
    def held_out(per_label, folds=range(cv)):
        p = torch.zeros(300,6).bool()
        for j in folds:
            some = (fold!=j) & torch.isin(fold, tensor(folds))
            s,y = SCORES[some],TARGS[some]
            thresh = tensor(best_thresholds(s, y, **{**kw, 'cv':None, 'per_label':per_label}).thresh)
            passed = s.masked_fill((y==0) | (s<=thresh), math.inf)
            p[fold==j] = SCORES[fold==j]>=(passed.amin(0) if per_label else passed.min())
        return p
    p = held_out(False)
    if kw==dict(average='micro', per_label=True): p = held_out(True) # No label gets the global threshold
    elif isinstance(res.thresh, tuple):
        def better(folds):
            some = torch.isin(fold, tensor(folds))
            return tensor(np.greater(*(f1(TARGS[some], held_out(o, folds)[some], None) for o in (True, False))))
        assert [not o for o in res.fallback]==better(range(cv)).tolist() and better(range(cv)).any()
        # The other folds choose for the samples of a fold, which they have not seen
        others = [better([i for i in range(cv) if i!=j]) for j in range(cv)]
        p = torch.where(torch.stack(others)[fold], held_out(True), p)
        np.testing.assert_allclose(res.table.held_out[2:], f1(TARGS, p, None))
    assert res.held_out==pytest.approx(f1(TARGS, p, average), abs=1e-12)

def test_held_out_is_less_biased():
    "Of random scores, thresholds tuned and scored on the same samples are optimistically biased"
    g = torch.Generator().manual_seed(0)
    y,s = (torch.rand(150, 30, generator=g)<0.05).long(),torch.rand(150, 30, generator=g)
    res = best_thresholds(s, y, average='macro', min_positives=0)
    assert any(not o for o in res.fallback) and res.score>1.2*res.held_out
    for text in (one_line(res), res._repr_html_()):
        assert 'optimistically biased' in text and 'cross-validated in 5 folds' in text

def test_results_are_tuples_still():
    res = best_thresholds(SCORES, TARGS, average='macro', vocab=NAMES)
    thresh,score,held_out,fallback = res
    assert thresh==res.thresh and res._fields==('thresh','score','held_out','fallback')
    assert res==best_thresholds(SCORES, TARGS, average='macro')
    for copied in (deepcopy(res), pickle.loads(pickle.dumps(res))): assert copied==res and repr(copied)==repr(res)
    other = res._replace(score=0.)
    assert repr(other).startswith('BestThresholds(thresh=') and other._repr_html_() is None

def test_without_folds_there_is_no_held_out_score():
    unreached = best_thresholds(SCORES[:20], torch.eye(20)[:,:6], 'precision', 'macro', at_recall=1.)
    for average in ('micro','macro'):
        none,single = best_thresholds(SCORES, TARGS, average=average, cv=None),best_thresholds(SCORES[:1], TARGS[:1])
        for res in (none, single, unreached):
            assert res.held_out is None and res.table.held_out.isna().all() and 'held_out:' not in repr(res)
        few = best_thresholds(SCORES[:3], TARGS[:3], average=average) # fewer samples than folds
        assert few.held_out is not None and 'in 3 folds' in one_line(few)

def test_missing_labels_change_no_threshold():
    missing = TARGS.clone()
    missing[::3] = math.nan
    known = ~missing[:,0].isnan()
    for average in ('micro','macro'):
        a = best_thresholds(SCORES, missing, average=average, ignore_index=math.nan)
        b = best_thresholds(SCORES[known], missing[known], average=average)
        test_eq(a.table.support, b.table.support)
        np.testing.assert_allclose(a.table.score, b.table.score)
        np.testing.assert_allclose(a.table.held_out, b.table.held_out) # only samples that count are in folds

@pytest.mark.parametrize('c', [1, 6, 80, 1000])
def test_thresholds_are_whole_in_a_terminal(c):
    g = torch.Generator().manual_seed(0)
    y = (torch.rand(60, c, generator=g)<0.4).float()
    scores = (y+torch.randn(60, c, generator=g)).sigmoid()
    res = best_thresholds(scores, y, average='macro', vocab=[f'a label {i}' for i in range(c)], cv=2)
    assert max(map(len, lines(res)))<=80 and len(lines(res))<100 and '\\' not in repr(res)
    shown = '\n'.join(lines(res)[:5])
    assert 'global' in shown and 'per label' in shown and 'a label 0' in shown
    assert not re.search(r'\d\.\d{4}', repr(res)+res._repr_html_())

def test_names_are_shown_as_they_are():
    vocab = ['<script>alert(1)</script>','$x$','_','b','B','']
    html = best_thresholds(SCORES, TARGS, average='macro', vocab=vocab).table._repr_html_()
    assert '<script>' not in html and '$x$' in html

def drawn(m, preds, targs, marks, **kwargs):
    "The axes after `plot_thresh_curve`"
    ax = plt.subplots()[1]
    table = ScoreTable(Predictions.of(preds, targs, thresh=None, **kwargs))
    assert plot_thresh_curve(m, table, marks, ax=ax) is None
    ax.figure.canvas.draw()
    plt.close(ax.figure)
    return ax

@given(st.integers(0, 1000), st.sampled_from([1, 3, 40, 3000]), st.sampled_from([-12, -4, 0]),
       st.sampled_from(['micro','macro','samples']))
def test_the_drawn_peak_is_the_best(seed, n, bias, average):
    "Curves of more than 2,048 positives are drawn at 2,048 of them; in micro, the best threshold may lie between"
    logits,targs = simulate(n, 4, density=0.2, bias=bias, seed=seed)
    scores = logits.sigmoid()
    best = best_thresholds(logits, targs, average=average, per_label=False, sigmoid=True, cv=None)
    ax = drawn(F1ScoreMulti(average=average), scores, targs, {'best': best.thresh})
    x,v = ax.lines[0].get_data()
    exact,peak = average!='micro' or targs.sum()<=2048,max(0, *v)
    assert best.score-(1e-9 if exact else 1/targs.sum())<=peak<=best.score+1e-9 and len(x)<=2*2048+1
    low,high = ax.get_xlim()
    assert low<best.thresh<high
    if best.score>0 and best.score in v and best.thresh>1e-7:
        assert min(abs(x[v==v.max()]/best.thresh-1))<1e-3
    some = slice(None, None, max(1, len(x)//300))
    for t,value in zip(x[some], v[some]):
        expected = F1ScoreMulti(float(t), sigmoid=False, average=average)(scores, targs)
        assert abs(expected-value)<1e-9 or min(t,1-t)<1e-6

def test_small_thresholds_are_legible():
    logits,targs = simulate(2000, 20, bias=-8)
    marks = {'best':0.004, 'cardinality':0.01, 'now':0.5}
    ax = drawn(F1ScoreMulti(average='micro'), logits.sigmoid(), targs, marks)
    at = ax.transAxes.inverted().transform(ax.transData.transform([(t, 0) for t in marks.values()]))[:,0]
    assert 0.02<at[0]<at[1]-0.05 and at[1]<at[2]-0.2 and at[2]<0.98
    assert len(ax.get_xticks())>=4 and any(t<0.1 for t in ax.get_xticks())

def test_curves_are_drawn_of_margins_and_missing_labels():
    ax = drawn(F1ScoreMulti(), LOGITS, TARGS, {'best':0.})
    assert ax.get_xscale()=='linear' and ax.get_xlim()[0]<-1
    valid = (torch.rand(300,6)<0.7)
    missing = TARGS.masked_fill(~valid, -1)
    best = best_thresholds(SCORES, missing, average='macro', per_label=False, ignore_index=-1)
    ax = drawn(F1ScoreMulti(ignore_index=-1), SCORES, missing, {'best':best.thresh}, ignore_index=-1)
    assert max(ax.lines[0].get_ydata())==pytest.approx(best.score, abs=1e-9)

def test_a_fallback_is_explained():
    res = best_thresholds(SCORES, TARGS, average='macro', min_positives=10**6)
    assert {*res.fallback}=={'few positives'}
    assert res.table.reading.endswith('fallback: why a label gets the global threshold.')
    assert 'fallback' not in best_thresholds(SCORES, TARGS, average='macro', per_label=False).table.reading

def test_the_best_threshold_is_the_one_that_the_record_suggests():
    "Up to the bins of the record, unless it predicts more than twice as many labels as are true"
    kinds = dict(skill=2., bias=-2), dict(skill=1., bias=-4), dict(skill=3., bias=0.), dict(skill=0., bias=-2)
    for kw,seed in itertools.product(kinds, range(3)):
        logits,y = simulate(500, 10, density=0.15, seed=seed, **kw)
        scores = logits.sigmoid()
        best,r = best_thresholds(scores, y),judge(scores, y)
        many = (scores>r.suggested_thresh).sum()/y.sum()
        if (scores>best.thresh).sum()<=2*y.sum():
            assert kw['skill']>0 and r.suggested_f1==pytest.approx(best.score, abs=0.003)
            learn = make_learner(logits, y)
            assert learn.thresh_find(show_plot=False).best==best.thresh
        else: assert kw['skill']==0 and many<=2 and r.suggested_f1<best.score
        assert r.suggested_f1==F1ScoreMulti(r.suggested_thresh, sigmoid=False, average='micro')(scores, y)
