"Counts at every threshold"
import sklearn.metrics as skm
from helpers import *
from fastai_mlmetrics.metrics.curves import (
    add_to_histogram, bin_curve, bin_edges, bin_index, bin_place, label_curve, MAX_BINS, row_curves,
    score_bins, sort_curve)

@pytest.mark.parametrize('probs', [True, False])
@pytest.mark.parametrize('bins', [2, 7, 64, 1024, MAX_BINS])
@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_a_score_is_above_exactly_the_edges_below_it(dtype, bins, probs):
    "Also next to each edge, and at the ends; what is no score has some bin"
    edges = bin_edges(bins, probs).astype(dtype)
    assert (np.diff(edges)<0).all()
    near = [np.nextafter(edges, dtype(o)) for o in (-math.inf, math.inf)]
    u = np.random.default_rng(0).random(20000)
    p = np.concatenate([edges, *near, u, 10**(-12*u), 1-10**(-8*u), [0.,1.,0.5]]).clip(0, 1)
    if not probs: p = np.concatenate([edges, *near, 10**(18*u-9), -10**(18*u-9), [0.,math.inf,-math.inf]])
    p = p.astype(dtype)
    at = score_bins(torch.from_numpy(p)[:,None], bins, probs)[:,0].numpy()
    expected = (len(edges)-1-np.searchsorted(edges[::-1], p)).clip(0, len(edges)-2)
    np.testing.assert_array_equal(at, expected)
    wrong = score_bins(torch.tensor([[math.nan,-3.,7.,math.inf,-math.inf]]), bins)
    assert ((wrong>=0) & (wrong<len(bin_edges(bins))-1)).all()

@pytest.mark.parametrize('bins', [2, 1024, 1310, MAX_BINS])
def test_edges_have_three_digits(bins):
    for p in bin_edges(bins)[1:-1]: assert min(abs(float(f'{o:.3g}')-o) for o in (p, 1-p))<1e-15
    for x in bin_edges(bins, False)[1:-1]: assert float(f'{x:.3g}')==x
    assert 0.5 in bin_edges(bins) and 0 in bin_edges(bins, False)

# Brute force: predict all scores from each threshold on, and count

def brute_force(s, y, w, threshs):
    "`tp`, `fp`, `fn` and `tn` of one row, if scores of at least each threshold are predicted"
    rows = []
    for t in threshs:
        p = s>=t
        rows.append([(w*(p & (y==1))).sum(), (w*(p & (y==0))).sum(), (w*(~p & (y==1))).sum(), (w*(~p & (y==0))).sum()])
    return np.array(rows, dtype=float).T

def cells_of(curve, row): return np.stack([o[row].numpy() for o in curve.cells])

def thresholds_of(s):
    "Infinity, and for each score from the highest down the end of the last tie that is complete"
    s = np.sort(s)[::-1]
    res,done = [math.inf],math.inf
    for i,x in enumerate(s):
        if i==len(s)-1 or s[i+1]!=x: done = x
        res.append(done)
    return res

@st.composite
def rows_of_scores(draw):
    "Scores with ties, targets and weights, R x N; rows without any positive, and with nothing else, are common"
    shape = draw(st.integers(1, 4)),draw(st.integers(1, 12))
    scores = draw(arrays(np.float32, shape, elements=st.integers(-3, 3).map(float)))
    y = draw(arrays(np.int64, shape, elements=st.integers(0, 1), fill=st.just(0)))
    if draw(st.booleans()): y[0] = draw(st.integers(0, 1))
    return scores,y,draw(arrays(np.float64, shape, elements=st.integers(0, 3).map(float)))

@given(rows_of_scores())
def test_sorted_scores_count_what_each_threshold_predicts(data):
    s,y,w = data
    for weight in (None, w):
        c = sort_curve(*(None if o is None else torch.from_numpy(o) for o in (s, y, weight)))
        for i in range(len(s)):
            of_row = np.ones(s.shape[1]) if weight is None else w[i]
            same(cells_of(c, i), brute_force(s[i], y[i], of_row, thresholds_of(s[i])))
            same(c.score[i], [math.inf, *np.sort(s[i])[::-1]])
            same([c.true[i], c.false[i]], [(of_row*y[i]).sum(), (of_row*(1-y[i])).sum()])

@given(rows_of_scores())
def test_a_long_row_has_a_step_before_and_after_each_tie_of_positives(data):
    for s,y in zip(*data[:2]):
        c = label_curve(s, y)
        threshs = [math.inf]
        for t in np.unique(s[y==1])[::-1]: threshs += [np.nextafter(t, np.float32(np.inf)), t]
        same(cells_of(c, 0), brute_force(s, y, np.ones(len(s)), [*threshs, -math.inf]))

@given(rows_of_scores())
def test_a_curve_has_a_metric_s_value_at_each_step(data):
    s,y,_ = data
    c = sort_curve(torch.from_numpy(s), torch.from_numpy(y))
    of_long_rows = [label_curve(*o) for o in zip(s, y)]
    for m in (PrecisionMulti(zero_division=0.25), RecallMulti(), F1ScoreMulti(), AccuracyMulti(), ZerosAccuracy()):
        for i in range(len(s)):
            expected = [float(m((s[i]>=t).astype(int)[:,None], y[i][:,None])) for t in thresholds_of(s[i])]
            same(c.values(m)[i], expected)
            assert of_long_rows[i].values(m).shape==of_long_rows[i].tp.shape

@given(rows_of_scores(), st.sampled_from([2, 5, 48]))
def test_bins_count_what_each_threshold_predicts(data, bins):
    "Samples are in rows here, and labels in columns, as `bin_index` takes them"
    s,y,w = (o.T for o in data)
    s_,y_ = (torch.from_numpy(o.copy()) for o in (s, y))
    place = bin_index(bin_place(s_, bins).long(), y_, bins)
    for weight in (None, w):
        zeros = torch.zeros(2, s.shape[1], bins, dtype=torch.double)
        c = bin_curve(add_to_histogram(zeros, place, None if weight is None else torch.from_numpy(weight.copy())))
        bin_of = (place % bins).numpy()
        for i in range(s.shape[1]):
            of_label = np.ones(len(s)) if weight is None else w[:,i]
            # A lower bin has higher scores
            expected = brute_force(-bin_of[:,i], y[:,i], of_label, [math.inf, *-np.arange(bins)])
            same(cells_of(c, i), expected)

def test_all_rows_have_the_curve_of_each_row():
    "Short rows and long ones, with weights, with masks, and without either"
    g = torch.Generator().manual_seed(0)
    for n in (40, 1200):
        s = torch.randint(0, 50, (3, n), generator=g).float()
        y = (torch.rand(3, n, generator=g)<tensor([[0.3],[0.],[1.]])).long()
        keep = torch.rand(3, n, generator=g)<0.7
        for weight in (None, keep, torch.rand(3, n, generator=g, dtype=torch.float64)):
            found = row_curves(s, y, weight)
            assert sum(len(c.tp) for c in found)==3
            for m in (APScoreMulti(zero_division=math.nan), RocAucMulti()):
                values = torch.cat([m.values(c) for c in found])
                for i in range(3):
                    expected = m.values(sort_curve(s[i:i+1], y[i:i+1], None if weight is None else weight[i:i+1]))
                    same(values[i], expected[0], 1e-9)

def test_long_masked_rows_are_searched_and_not_sorted_with_zero_weights():
    "What is masked is in no step, so a mask costs no more than its rows"
    g = torch.Generator().manual_seed(0)
    s,y = torch.rand(2, 1000, generator=g),(torch.rand(2, 1000, generator=g)<0.05).long()
    keep = torch.rand(2, 1000, generator=g)<0.5
    for c,*row in zip(row_curves(s, y, keep), s, y, keep):
        a,b,k = row
        same(cells_of(c, 0), cells_of(label_curve(a[k], b[k]), 0))
        assert c.tp.shape[1]==2*int(b[k].sum())+2
