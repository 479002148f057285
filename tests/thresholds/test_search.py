"Candidate thresholds, and tables of counts at them, compared with brute force"
import itertools, sklearn.metrics as skm
from helpers import *
from brute_force import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.curves import bin_edges
from fastai_mlmetrics.thresholds.search import _groups, BinnedTable, candidates, draw_folds, ScoreTable
from fastai_mlmetrics.thresholds.finding import score_table

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

EPS = np.finfo(np.float32).eps

def f1_within_a_group(scores, y):
    """The highest micro F1 of all thresholds between distinct scores, and the least that a search has to find

    A threshold may have to move up by the width of a group, which loses at most the positives up to there."""
    distinct,index = np.unique(scores, return_inverse=True)
    n,n_true = (np.bincount(index.ravel(), o.ravel()) for o in (np.ones(y.shape), y))
    def passed(x): return x[::-1].cumsum()[::-1]
    predicted,tp = passed(n),passed(n_true)
    beyond = np.searchsorted(distinct, distinct.astype(float)*(1+9*EPS), 'right')
    lost = tp-np.append(tp, 0)[beyond]
    def f1(tp, predicted): return (2*tp/(predicted+y.sum())).max()
    return f1(tp, predicted),f1(tp-lost, predicted-lost)

@pytest.mark.slow
@pytest.mark.parametrize('low,width,close', [(0.3,1e-4,1e-3), (0.999,1e-3,1e-3), (1e-6,1e-9,1e-3), (0.2,1e-5,1e-2)])
def test_dense_scores_of_masks(low, width, close):
    "400 masks with a narrow range of scores, in which each score has neighbours in its last digits"
    r = np.random.default_rng(0)
    y = (r.random((400,16,16,3))<0.25).astype(int)
    skilled = 1/(1+np.exp(-(r.normal(size=y.shape)+1.5*y)))
    scores = (low+width*skilled).astype(np.float32)
    best,least = f1_within_a_group(scores, y)
    res = best_thresholds(scores, y)
    assert max(least, best-close)<=res.score<=best+1e-12
    test_eq(F1ScoreMulti(res.thresh, sigmoid=False, average='micro')(above(scores, res.thresh), y), res.score)
    for average in ('macro','samples'): # at 2,048 of the true scores
        res = best_thresholds(scores, y, average=average, per_label=False)
        grid = np.quantile(scores, np.linspace(0, 1, 50)).astype(np.float32)
        m = F1ScoreMulti(average=average)
        assert res.score>max(m(above(scores, t), y) for t in grid)-close
        assert res.score==pytest.approx(m(above(scores, res.thresh), y), abs=1e-12)

@st.composite
def dense_scores(draw):
    "Neighbours in float32 and wide gaps, and targets"
    start = np.float32(draw(st.sampled_from([1e-30,0.01,0.3,0.4999999,0.6])))
    steps = draw(st.lists(st.sampled_from([0,1,1,2,5,9,20,1000]), min_size=1, max_size=60))
    # Positive floats are as far apart as the integers of their bits
    scores = (start.view(np.int32)+np.cumsum(steps, dtype=np.int32)).view(np.float32)
    return scores,draw(arrays(np.int64, len(scores), elements=st.integers(0, 1)))

@given(dense_scores())
def test_groups_are_not_wider_than_the_tolerance(dense):
    scores,y = dense
    starts = _groups(scores, True)
    ends = np.append(starts[1:], len(scores))
    first,last = (scores[o].astype(float) for o in (starts, ends-1))
    assert starts[0]==0 and (last-first<=8.01*EPS*last).all()
    # Scores within eight units in the last place, with a wide gap on both sides, are not divided
    units = scores.view(np.int32)
    wide = np.flatnonzero(np.diff(units)>8)+1
    for chain in np.split(np.arange(len(scores)), wide):
        assert chain[0] in starts
        if units[chain[-1]]-units[chain[0]]<8: assert not np.isin(chain[1:], starts).any()

@given(dense_scores())
def test_a_group_hides_no_more_than_its_width(dense):
    scores,y = dense
    if not y.any(): return
    best,least = f1_within_a_group(scores, y)
    res = best_thresholds(scores[:,None], y[:,None], cv=None)
    assert least-1e-12<=res.score<=best+1e-12

@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_scores_of_zero_are_one_group(dtype):
    scores = np.array([0,0,0,1e-40,0.5,0.5,1,1], dtype)
    with warnings_as('error'): test_eq(_groups(scores, True).tolist(), [0,3,4,6])
    test_eq(_groups(scores*0, True).tolist(), [0])

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
    ('balanced_accuracy','weighted'),
    (HammingLossMulti,'macro'),
    ('f1','samples')])
@given(st.data())
def test_ignored_elements_are_as_if_not_there(metric, average, data):
    scores,y = data.draw(scored())
    valid = data.draw(arrays(bool, y.shape))
    missing = np.where(valid, y, -1)
    kw = dict(metric=metric, average=average, per_label=False, cv=None)
    def found(): return best_thresholds(scores, missing, ignore_index=-1, **kw)
    if not valid.any():
        with pytest.raises(ValueError, match='all targets are ignored'): found()
        return
    res = found()
    cls = {'f1':F1ScoreMulti,'balanced_accuracy':BalancedAccuracyMulti}.get(metric, metric)
    sign = -1 if cls is HammingLossMulti else 1
    def score(t): return sign*cls(average=average, ignore_index=-1)(above(scores, t), missing)
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

@pytest.mark.slow
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

def test_the_curve_is_the_metric():
    "Of all samples, and without each fold"
    logits,targs = simulate(40, 4)
    data = score_table(Predictions.of(logits.sigmoid(), targs), 3)
    thresh = data.candidates()
    some = slice(None, None, 5)
    for average,zd in (('micro',0.), ('macro',1.), ('weighted',math.nan), ('samples',math.nan)):
        m = F1ScoreMulti(average=average, zero_division=zd)
        v = data.averaged(m, thresh, data.fold_masks())
        assert v.shape==(4,len(thresh))
        for values,kept in zip(v, (data.fold>=0, *(data.fold!=j for j in range(3)))):
            expected = [m(above(data.scores[kept], t), targs[kept]) for t in thresh[some]]
            np.testing.assert_allclose(values[some], expected, atol=1e-12)

def kinds_of_scores(n=20_000, c=6):
    "Calibrated, saturated and tied scores, and targets"
    gen = torch.Generator().manual_seed(0)
    y = (torch.rand(n, c, generator=gen)<torch.linspace(0.02, 0.4, c)).float()
    logits = torch.randn(n, c, generator=gen) + 2*y - 2
    scores = logits.sigmoid()
    return dict(calibrated=scores, saturated=(12*logits+5).sigmoid(), tied=scores.round(decimals=2)),y

@pytest.mark.parametrize('kind', ['calibrated','saturated','tied'])
@pytest.mark.parametrize('metric', ['f1',*map(slow, ('jaccard','accuracy','matthews'))])
def test_bins_are_close_to_exact(kind, metric):
    scores,y = kinds_of_scores()
    for average,per_label in itertools.product(('micro','macro'), (False,True)):
        exact,binned = (best_thresholds(scores[kind], y, metric, average, per_label, bins=o) for o in (None, 1024))
        assert exact.table.support.equals(binned.table.support)
        assert abs(exact.score-binned.score)<0.005 and abs(exact.held_out-binned.held_out)<0.01
        m = CLASSES[metric](binned.thresh, sigmoid=False, average=average)
        assert m(scores[kind], y)==pytest.approx(binned.score, abs=1e-12) # the counts are exact

@given(scored(), st.sampled_from([2,16,64,1024]), st.sampled_from(['f1','accuracy']), st.booleans())
def test_bins_by_brute_force_over_their_edges(scored, bins, metric, per_label):
    scores,y = scored
    with warnings_as('ignore'):
        res = best_thresholds(scores, y, metric, 'macro', per_label, bins=bins, cv=None, min_positives=0)
    m = CLASSES[metric](average=None)
    edges = [*bin_edges(bins)[:-1], -1e-9]
    each = np.array([m(above(scores, t), y) for t in edges])
    if not per_label: assert res.score==pytest.approx(each.mean(1).max(), abs=1e-12)
    for i,why in enumerate(res.fallback):
        if not why: assert res.table.score.iloc[2+i]==pytest.approx(each[:,i].max(), abs=1e-12)
    assert CLASSES[metric](res.thresh, sigmoid=False, average='macro')(scores, y)==pytest.approx(res.score, abs=1e-12)

def test_held_out_scores_in_bins_by_hand():
    logits,targs = simulate(500, 4, density=0.3, skill=1.)
    scores = logits.sigmoid()
    res = best_thresholds(scores, targs, bins=128)
    fold,p = draw_folds(0, 500).numpy(),np.zeros((500, 4), int)
    edges = bin_edges(128)[:-1]
    for j in range(5):
        rest = best_thresholds(scores[fold!=j], targs[fold!=j], bins=128, cv=None)
        p[fold==j] = above(scores[fold==j], rest.thresh)
    assert res.thresh in edges
    assert res.held_out==pytest.approx(skm.f1_score(targs, p, average='micro'), abs=0.01)
    for n in (1, 7, 250): # folds do not depend on batches, nor on processes
        parts = [draw_folds(i, min(n, 500-i)) for i in range(0, 500, n)]
        np.testing.assert_array_equal(torch.cat(parts), fold)
    np.testing.assert_array_equal(draw_folds(1, 100, 3), fold[1::3][:100])

@given(scored())
def test_candidates_are_on_both_sides_of_each_true_score(scored):
    "And they descend, divide no group, and the first one predicts nothing"
    scores,y = scored
    order = np.argsort(scores, None)
    ranked = scores.ravel()[order]
    thresh,n_below = candidates(ranked, np.flatnonzero(y.ravel()[order]))
    test_eq(n_below, [(scores<=t).sum() for t in thresh])
    assert (np.diff(thresh)<0).all() and not (scores>thresh[0]).any()
    def n_above(values): return {int((scores>t).sum()) for t in values}
    every = every_thresh(scores)
    assert n_above(thresh)<=n_above(every)
    for s in np.unique(scores[y==1]):
        assert int((scores>max(t for t in every if np.float32(t)<s)).sum()) in n_above(thresh)

def test_masks_leave_out_each_fold():
    p = Predictions.of(torch.rand(40, 3), torch.rand(40, 3)<0.5)
    test_eq(ScoreTable(p, 3).fold_masks(), [[1,1,1], [0,1,1], [1,0,1], [1,1,0]])
    test_eq(ScoreTable(p).fold_masks(), [[1]])

@given(scored(max_samples=20), st.integers(2, 4))
def test_counts_by_fold_at_each_candidate(scored, cv):
    "And at any threshold per fold, for all labels or for each"
    scores,y = scored
    table = ScoreTable(Predictions.of(scores, y), cv)
    fold = table.fold.numpy()
    for i in range(table.c):
        row = table.row(i)
        for f,target in itertools.product(range(table.n_folds), (0, 1)):
            here = scores[(fold==f) & (y[:,i]==target),i]
            test_eq(row.above[f,target], [*((here>t).sum() for t in row.thresh), len(here)])
            assert table.total[f,target,i]==len(here)
    for shape in ((table.n_folds,1), (table.n_folds,table.c)):
        thresh = np.resize(np.array([0.3,0,0.5,-1e-9,1], np.float32), shape)
        predicted = scores>thresh[fold]
        for f,target in itertools.product(range(table.n_folds), (0, 1)):
            test_eq(table.count(thresh)[f,target], (predicted & (y==target))[fold==f].sum(0))

@pytest.mark.parametrize('c,cv', [(40,5), (300,5), (3,150)])
def test_many_labels_and_folds_are_counted(c, cv):
    logits,y = simulate(200, c)
    table = ScoreTable(Predictions.of(logits.sigmoid(), y), cv)
    above = (table.scores>0.3) & (y==1)
    test_eq(table.true, y.sum(0).numpy())
    test_eq(table.count(np.full((cv,1), 0.3, np.float32))[:,1].sum(0), above.sum(0).numpy())

def test_a_histogram_is_counted_at_its_edges():
    gen = torch.Generator().manual_seed(0)
    edges = bin_edges(16)
    hist = torch.randint(0, 4, (3, 2, 2, len(edges)-1), generator=gen)
    table = BinnedTable(hist, edges)
    edges = np.append(edges[:-1], -1e-9) # The last bin has all lower scores, also of exactly 0
    for i in range(2):
        row = table.row(i)
        for k,t in enumerate(row.thresh):
            n_bins = np.flatnonzero(edges==t).item()
            test_eq(row.above[...,k], hist[:,:,i,:n_bins].sum(-1).numpy())
        test_eq(row.above[...,-1], hist[:,:,i].sum(-1).numpy())
    thresh = edges[[[3,9],[8,4],[5,12]]] # Per fold and label
    expected = [[[hist[f,target,i,:k].sum() for i,k in enumerate(of_fold)] for target in (0,1)]
                for f,of_fold in enumerate(([3,9],[8,4],[5,12]))]
    test_eq(table.count(thresh), np.array(expected))

@pytest.mark.parametrize('scores', [[0.1,0.5,0.9], [0.,0.5,0.9], [0.,0.,1.], [-3.,0.,2.], [math.nan,0.,0.9]], ids=str)
def test_a_threshold_below_all_scores(scores):
    "Also of exactly 0, and beside an ignored target without a score"
    preds = torch.tensor(scores)[:,None]
    y = torch.where(preds.isnan(), -1, torch.tensor([1,1,0])[:,None])
    table = ScoreTable(Predictions.of(preds, y, thresh=None, ignore_index=-1))
    assert (preds[y>=0]>table.everything).all() and (table.everything==0)==(scores[0]==0.1)
    assert not table.probs or -1e-8<table.everything<=0
