"Objectives, tuned thresholds and held-out outcomes, compared with brute force"
import itertools, sklearn.metrics as skm
from helpers import *
from brute_force import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.curves import bin_edges
from fastai_mlmetrics.thresholds.search import draw_folds, ScoreTable
from fastai_mlmetrics.thresholds.tuning import gain, Objective
from fastai_mlmetrics.thresholds.finding import score_table
from six_labels import SCORES, TARGS

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
    edges = bin_edges(24)[:-1].astype(np.float32)
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

@given(scored(), st.sampled_from([0.3,0.8,1.]))
def test_precision_at_recall_and_the_reverse(scored, least):
    scores,y = scored
    ds = [above(scores, t) for t in every_thresh(scores)]
    for metric,other,f,g in (('precision','at_recall',PrecisionMulti,RecallMulti),
                             ('recall','at_precision',RecallMulti,PrecisionMulti)):
        for average in ('micro','macro'):
            brute = [f(average=average)(d, y) for d in ds if g(average=average)(d, y)>=least-1e-12]
            def found(): return best_thresholds(scores, y, metric, average, per_label=False, **{other:least})
            if brute: assert found().score==pytest.approx(max(brute), abs=1e-9)
            else:
                with pytest.raises(ValueError, match='no global threshold keeps'): found()

@pytest.mark.parametrize('metric,average', [
    ('f1','micro'), ('f1','samples'), ('jaccard','weighted'), ('accuracy','samples'), ('balanced_accuracy','macro'),
    ('matthews','micro'), (SpecificityMulti,'macro')])
@given(scored(), st.randoms(use_true_random=False))
def test_a_global_threshold_is_the_highest_of_the_best(metric, average, scored, random):
    "In whatever order the samples are"
    scores,y = scored
    kw = dict(metric=metric, average=average, per_label=False, cv=None)
    res = best_thresholds(scores, y, **kw)
    cls = CLASSES.get(metric, metric)
    m = cls(average=average)
    each = {t: m(above(scores, t), y) for t in every_thresh(scores)}
    highest = max(t for t,v in each.items() if v>=best_of(each.values())-1e-9)
    np.testing.assert_array_equal(above(scores, res.thresh), above(scores, highest))
    assert res.score==m(above(scores, res.thresh), y)==cls(res, sigmoid=False, average=average)(scores, y)
    order = random.sample(range(len(y)), len(y))
    assert best_thresholds(scores[order], y[order], **kw).thresh==res.thresh

@pytest.mark.parametrize('metric', CLASSES)
@given(scored(), st.randoms(use_true_random=False))
def test_a_label_s_own_threshold_is_the_highest_of_the_best(metric, scored, random):
    scores,y = scored
    kw = dict(metric=metric, average='macro', min_positives=0, cv=None)
    res = best_thresholds(scores, y, **kw)
    m = CLASSES[metric](average=None)
    each = {t: m(above(scores, t), y) for t in every_thresh(scores)}
    for i,best in enumerate(np.max([*each.values()], 0)):
        highest = max(t for t,v in each.items() if v[i]>=best-1e-9)
        np.testing.assert_array_equal(above(scores[:,i], res.thresh[i]), above(scores[:,i], highest))
    order = random.sample(range(len(y)), len(y))
    again = best_thresholds(scores[order], y[order], **kw)
    assert (again.thresh,again.fallback)==(res.thresh,res.fallback)==(res.thresh,('',)*y.shape[1])

@pytest.mark.parametrize('average,seed', [('macro',1350), ('macro',2234), ('weighted',2601)])
def test_the_order_of_labels_does_not_matter(average, seed):
    "Equal averages are rounded differently if labels are added in another order, as in these cases"
    rng = np.random.default_rng(seed)
    n,c = rng.integers(4, 10),rng.integers(3, 6)
    scores,y = (rng.permutation(n*c).reshape(n, c)+1)/(n*c+1.),(rng.random((n, c))<0.4).astype(int)
    def found(order):
        return best_thresholds(scores[:,order], y[:,order], average=average, per_label=False, cv=None).thresh
    assert len({found([*o]) for o in itertools.permutations(range(c))})==1

def folds_of(n, cv=5, seed=42): return draw_folds(0, n, cv=cv, seed=seed).numpy()

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
    class LabelByLabel(F1ScoreMulti):
        def formula(self, tp, fp, fn, tn): return 2*tp/(2*tp+fp+fn) # Not known to be a ratio of sums
    each = best_thresholds(scores, y, LabelByLabel, 'micro', per_label=True)
    assert each.held_out==pytest.approx(skm.f1_score(t, own, average='micro'), abs=1e-12)
    np.testing.assert_allclose(each.table.held_out[2:], skm.f1_score(t, own, average=None), atol=1e-12)
    test_eq(each.table.held_out['best'], res.held_out)
    for i,thresh in enumerate(each.thresh):
        np.testing.assert_array_equal(s[:,i]>np.float32(thresh), s[:,i]>=best_cut(s[:,i], t[:,i]))

@pytest.mark.parametrize('metric,average,per_label', [
    ('f1','samples',False), ('balanced_accuracy','weighted',False), ('f1','macro',True), ('accuracy','micro',True)])
@given(scored(max_samples=20), st.integers(2, 4), st.data())
def test_targets_of_a_fold_do_not_matter_to_its_own_predictions(metric, average, per_label, scored, cv, data):
    scores,y = scored
    objective = Objective(metric, average, per_label, min_positives=2)
    def held_out(y):
        table = score_table(Predictions.of(scores, y), cv)
        *_,tuned = objective.tune(table)
        thresh = tuned.thresh[1:1+table.n_folds]
        return table.fold.numpy(),None if np.isnan(thresh).any() or not len(thresh) else table.predictions(thresh).preds
    with warnings_as('ignore'): # no target may be true
        fold,p = held_out(y)
        if p is None: return
        here = fold==data.draw(st.integers(0, fold.max()))
        other = np.where(here[:,None], data.draw(arrays(np.int64, y.shape, elements=st.integers(0, 1))), y)
        np.testing.assert_array_equal(held_out(other)[1][here], p[here])

def test_a_label_that_is_annotated_in_a_single_fold():
    "Without that fold it has few positives, so it gets the global threshold"
    logits,targs = simulate(400, 3, density=0.4, skill=2.)
    scores,y = (logits+tensor([3.,0.,0.])).sigmoid(),targs.clone()
    here = folds_of(400)==0
    y[~here,0] = math.nan
    kw = dict(average='macro', ignore_index=math.nan)
    res = best_thresholds(scores, y, **kw)
    rest = best_thresholds(scores[~here], y[~here], per_label=False, cv=None, **kw)
    assert res.fallback==('','','') and res.thresh[0]==best_thresholds(scores[:,:1], y[:,:1], **kw).thresh[0]
    f1 = skm.f1_score(y[here,0], scores[here,0]>rest.thresh)
    assert res.table.held_out.iloc[2]==pytest.approx(f1, abs=1e-12) and res.held_out is not None

@pytest.mark.parametrize('average', ['micro','macro','samples'])
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
    assert two.held_out is not None and not np.isnan(two.table.held_out['best'])

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
    partial(F1ScoreMulti, average='samples', zero_division=1.),
    partial(F1ScoreMulti, average='samples', zero_division=math.nan),
    partial(FBetaMulti, 3, average='weighted'),
    partial(HammingLossMulti, average='macro'),
    partial(own_metrics(), 4., average='micro')], ids=lambda o: repr(o()))
def test_an_instance_keeps_its_arguments(make):
    logits,y = simulate(60, 4, density=0.2, skill=1.5)
    y[:,3] = 0 # never true
    scores,m = logits.sigmoid(),make(thresh=0.9, sigmoid=False)
    before = m(scores, y)
    res = best_thresholds(scores, y, m, per_label=False)
    def value(t): return make(thresh=t, sigmoid=False)(scores, y)
    best = (min if m.is_loss else max)(map(value, every_thresh(scores)))
    assert res.score==value(res.thresh)==pytest.approx(best, abs=1e-12)
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

@pytest.mark.parametrize('metric,kw,match', [
    *((o, {}, f'{cls.__name__} has no best threshold') for cls in (EmptyRate,LabelCardinality,ZerosAccuracy)
      for o in (cls, cls())),
    *((o, {}, 'also needs at_recall=') for o in ('precision', PrecisionMulti(average='micro'))),
    *((o, {}, 'also needs at_precision=') for o in ('recall', RecallMulti)),
    *((o, {}, 'should be one of f1, fbeta, .*such as JaccardMulti, or an instance such as') for o in (
        ['f1'], APScoreMulti, CountsMetric, None)),
    *((o, {}, "metric=.*CF1.*: did you mean 'f1'") for o in (CF1, CF1())),
    (accuracy_multi, {}, "did you mean 'accuracy'"),
    (F1ScoreMulti(average=None), {}, 'no single number with average=None'),
    *((F1ScoreMulti(**kw), {}, 'for all labels, without limits and weights') for kw in (
        dict(labels=[0]), dict(min_labels=1), dict(max_labels=2), dict(sample_weight=[1.]*100))),
    ('recall', dict(at_recall=0.5), 'also needs at_precision='),
    *((o, dict(beta=3), "beta=3 is for metric='fbeta' alone") for o in (FBetaMulti(2), F1ScoreMulti)),
    *(('recall', dict(at_precision=o), 'above 0 and at most 1') for o in (0, 50)),
    ('recall', dict(at_precision=1), r'no global threshold keeps a precision of at least 1 \(micro average\): the '
                                     'highest precision on these samples is 0'),
    ('precision', dict(average='samples', at_recall=0.99), 'zero_division=nan leaves them out'),
    (AccuracyLift, dict(average='macro'), "no single number with average='macro': use one of 'micro'"),
    ('f1', dict(average=None), "use one of 'micro', 'macro', 'weighted', 'samples'$")], 
    ids=lambda o: re.sub(' at 0x.*>', '', str(o)))
def test_what_cannot_be_tuned(metric, kw, match):
    logits,targs = simulate(100, 4, density=0.3)
    logits[0],targs[0] = 9,0
    with pytest.raises(ValueError, match=match): best_thresholds(logits.sigmoid(), targs, metric, **kw)

@pytest.mark.parametrize('average', ['micro','macro','samples'])
def test_where_a_metric_is_undefined_is_told(average):
    "Without a positive, F1 is 0 where anything is predicted, and 0/0 elsewhere"
    scores,y = torch.rand(20, 3),torch.zeros(20, 3)
    m = F1ScoreMulti(0.01, sigmoid=False, average=average, zero_division=math.nan)
    assert m(scores, y)==0
    undefined = r'is undefined \(0/0\) at every threshold'
    with pytest.raises(ValueError, match=undefined):
        with warnings_as('ignore'): best_thresholds(scores, y, average=average, per_label=False, zero_division=math.nan)

@pytest.mark.parametrize('kw', [dict(), dict(cv=None), dict(bins=1024)], ids=str)
def test_how_many_positives_are_few(kw):
    "A label with 5 positives gets its own threshold, one with 4 does not, and each is told"
    y = torch.zeros(400, 5)
    y[:40,:3] = y[:5,3] = y[:4,4] = 1
    noise = torch.rand(400, 5, generator=torch.Generator().manual_seed(0))
    scores = tensor([0.9,0.9,0.9,0.1,0.1])*(0.3+0.6*y+0.1*noise)
    def found(**more): return best_thresholds(scores, y, average='macro', **kw, **more)
    res = found()
    assert res.fallback==('','','','','few positives') and [*res.table.fallback[2:]]==[*res.fallback]
    assert res.thresh[3]<0.1<0.5<res.thresh[4]==found(per_label=False).thresh
    assert found(min_positives=4).fallback==('',)*5 and found(min_positives=6).fallback[3:]==('few positives',)*2

def test_an_undefined_label_gets_the_global_threshold():
    "0/0 at each candidate"
    logits,y = simulate(100, 3, density=0.4)
    y[:,1] = 0
    kw = dict(average='macro', zero_division=math.nan, min_positives=0)
    res = best_thresholds(logits.sigmoid(), y, **kw)
    assert res.fallback==('','metric is undefined','')
    assert res.thresh[1]==best_thresholds(logits.sigmoid(), y, per_label=False, **kw).thresh

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
            assert all(-1e-8<t<=1 for t in L(res.thresh)) and res.score>=0

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
    assert 'does not keep' not in best.table.reading
    name = 'recall' if metric=='precision' else 'precision'
    column = best.table[name]
    assert np.allclose(column.iloc[2:], reached) and column['per_label']==pytest.approx(reached.mean())

def test_a_metric_may_exceed_1():
    class Profit(CountsMetric):
        def formula(self, tp, fp, fn, tn): return 5*tp-fp
    logits,y = simulate(100, 3, density=0.3)
    res = best_thresholds(logits.sigmoid(), y, Profit, 'macro')
    for i,t in enumerate(res.thresh):
        s,true = logits[:,i].sigmoid(),y[:,i]==1
        profits = [5*(true & (s>=o)).sum()-(~true & (s>=o)).sum() for o in s]
        assert 1<max(profits)==res.table.score.iloc[2+i]==5*(true & (s>t)).sum()-(~true & (s>t)).sum()

@pytest.mark.parametrize('kw', [
    dict(), dict(average='samples'), dict(average='micro', per_label=True), dict(average='macro', cv=3, seed=2),
    dict(average='macro', at_recall={4: 0.9})], ids=str)
def test_held_out_is_on_samples_that_were_not_seen(kw):
    "Each fold is predicted with the thresholds of the others, right below the lowest positive that they predict"
    res = best_thresholds(SCORES, TARGS, **kw)
    cv,seed,average = kw.get('cv', 5),kw.get('seed', 42),kw.get('average', 'micro')
    fold = draw_folds(0, 300, cv=cv, seed=seed)
    p = torch.zeros(300,6).bool()
    thresholds = []
    for j in range(cv):
        s,y = SCORES[fold!=j],TARGS[fold!=j]
        thresholds.append(best_thresholds(s, y, **kw | dict(cv=None)).thresh)
        passed = s.masked_fill((y==0) | (s<=tensor(thresholds[-1])), math.inf)
        p[fold==j] = SCORES[fold==j]>=(passed.amin(0) if isinstance(res.thresh, tuple) else passed.min())
    assert res.held_out==pytest.approx(f1(TARGS, p, average), abs=1e-12)
    if isinstance(res.thresh, tuple): np.testing.assert_allclose(res.table.held_out[2:], f1(TARGS, p, None))
    # The range of each threshold over the folds
    low,high = (f(np.array(thresholds).reshape(cv, -1), 0) for f in (np.min, np.max))
    ranges = [[*map(float, o.split(' to '))] for o in res.table.range if o]
    same([[o[0],o[-1]] for o in ranges][-len(low):], np.stack([low, high], -1), 0.02) # Gaps are wider without a fold

def test_held_out_is_less_biased():
    "Of random scores, thresholds tuned and scored on the same samples are optimistically biased"
    g = torch.Generator().manual_seed(0)
    y,s = (torch.rand(150, 30, generator=g)<0.05).long(),torch.rand(150, 30, generator=g)
    res = best_thresholds(s, y, average='macro', min_positives=0)
    assert res.score>1.2*res.held_out

@pytest.mark.slow
def test_own_thresholds_from_5_positives_on_are_no_worse_on_new_samples():
    "Than the global one, where labels are alike, and better where they are not"
    def f1_new(shift, n, seed):
        logits,y = simulate(n, 10, density=0.15, skill=2., seed=seed)
        new,targs = simulate(20_000, 10, density=0.15, skill=2., seed=-1-seed)
        shift = torch.linspace(-shift, shift, 10)
        return [F1ScoreMulti(best_thresholds((logits+shift).sigmoid(), y, average='macro', per_label=o, cv=None),
                             sigmoid=False)((new+shift).sigmoid(), targs) for o in (True,False)]
    for shift,n,least in ((0,50,-0.06), (0,300,-0.02), (1.5,50,0.), (1.5,300,0.05)):
        assert np.mean([np.subtract(*f1_new(shift, n, seed)) for seed in range(12)])>least

def six_label_table(): return ScoreTable(Predictions.of(SCORES, TARGS), cv=5)

def test_what_is_tuned_has_a_name_and_a_value():
    shared,per_label = Objective('f1', 'macro').tune(six_label_table())
    assert (shared.name,per_label.name)==('best','per_label') and not (shared.in_use or per_label.in_use)
    assert not shared.per_label and isinstance(shared.value, float) and shared.fallback==()
    assert per_label.per_label and len(per_label.value)==6==len(per_label.fallback)

def test_an_outcome_uses_thresholds_tuned_without_its_fold():
    table = six_label_table()
    tuned = Objective().tune_global(table)
    fold = table.fold.numpy()
    p = SCORES.numpy()>tuned.thresh[1:][fold].astype(np.float32)
    y = TARGS.numpy()==1
    for j in range(5):
        here = fold==j
        tp,fp,fn,tn = tuned.held_out.by_fold[:,j].numpy()
        test_eq([tp, fp], [(p & y)[here].sum(0), (p & ~y)[here].sum(0)])
        test_eq([fn, tn], [(~p & y)[here].sum(0), (~p & ~y)[here].sum(0)])
    test_eq(tuned.held_out.cells, tuned.held_out.by_fold.sum(1))

@pytest.mark.parametrize('m', [F1ScoreMulti(average='micro'), HammingLossMulti(average='micro')], ids=repr)
def test_a_gain_has_an_interval_from_a_jackknife_over_samples(m):
    "1.5 times the variance of a difference between models, because thresholds of five folds vary too"
    shared,per_label = (o.held_out for o in Objective(per_label=True).tune(six_label_table()))
    change = gain(m, per_label, shared)
    sign = -1 if m.is_loss else 1
    assert change.value==pytest.approx(sign*(per_label.score(m)-shared.score(m)))
    apart = per_label.estimate(m).minus(shared.estimate(m))
    assert change.error==pytest.approx(math.sqrt(1.5)*apart.error)

@pytest.mark.parametrize('m', [F1ScoreMulti(average='micro'), HammingLossMulti(average='micro')], ids=repr)
def test_a_gain_in_histograms_has_an_interval_from_a_jackknife_over_folds(m):
    finder = ThreshFinder(sigmoid=False)
    finder.update(SCORES, TARGS)
    shared,per_label = (o.held_out for o in Objective(per_label=True).tune(finder.table))
    change = gain(m, per_label, shared)
    sign = -1 if m.is_loss else 1
    def difference(cells): return sign*(m.averaged(cells(per_label))-m.averaged(cells(shared))).item()
    d = np.array([difference(lambda o: torch.cat([o.by_fold[:,:i], o.by_fold[:,i+1:]], 1).sum(1)) for i in range(5)])
    error = math.sqrt(1.5*4/5*((d-d.mean())**2).sum()) # Folds share training samples
    assert change.value==pytest.approx(difference(lambda o: o.cells))
    assert change.error==pytest.approx(error)

@pytest.mark.parametrize('metric,says', [
    ('f2', "use metric='fbeta', beta=2$"), ('F0.5', "use metric='fbeta', beta=0.5$"), ('f2_score', 'beta=2$'),
    ('f1_score', "did you mean 'f1'"), ('F1', "did you mean 'f1'"), ('accuracy_multi', "did you mean 'accuracy'"),
    ('jacard', "did you mean 'jaccard'"), ('f_beta', "did you mean 'fbeta'"), ('F2Score', 'beta=2$'),
    ('mcc', "did you mean 'matthews'"), ('acc', "did you mean 'accuracy'")])
def test_a_metric_of_another_name_is_suggested(metric, says):
    with pytest.raises(ValueError, match=f'^metric={metric!r}: .*{says}'): Objective(metric)

def test_a_function_of_another_library_is_suggested():
    for f,name in ((skm.f1_score, 'f1'), (skm.matthews_corrcoef, 'matthews')):
        with pytest.raises(ValueError, match=f": did you mean '{name}'"): Objective(f)

def test_an_average_is_suggested():
    with pytest.raises(ValueError, match="use one of 'micro', .*: did you mean 'macro'"): Objective(average='macros')
