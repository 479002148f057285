"Rows of a report, and their values without each sample"
from helpers import *
from six_labels import SCORES, TARGS
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.reports import jackknife
from fastai_mlmetrics.reports.jackknife import (measure, rank_labels, rank_samples, _macro_rankings,
                                                row_metrics)
from fastai_mlmetrics.metrics.intervals import in_average, numbers_by_label

Y = tensor([[1,0,0], [1,1,0], [0,1,0], [0,0,0], [1,0,0]])
P = tensor([[.9,.1,.2], [.8,.3,.7], [.6,.6,.1], [.2,.9,.4], [.3,.2,.3]])

def known(**kwargs): return Predictions.of(P, Y.where(tensor([[1,1,1], [1,0,0], [1,1,1], [1,1,1], [0,0,0]])>0, -1),
                                           ignore_index=-1, **kwargs)

def test_rankings_are_of_the_targets_that_count():
    targs = TARGS.masked_fill(TARGS.roll(1)>0, -1)
    p = Predictions.of(SCORES, targs, ignore_index=-1)
    ap,auc = rank_labels([APScoreMulti(), RocAucMulti()], p)
    for values,cls in ((ap, APScoreMulti), (auc, RocAucMulti)):
        same(values, cls(average=None, ignore_index=-1)(SCORES, targs))
    lraps, = rank_samples([LRAP()], p)
    assert len(lraps)==p.sample_counts.shape[1] and lraps.nanmean().item()==LRAP(ignore_index=-1)(SCORES, targs)

def test_rankings_without_each_sample_are_those_of_the_others():
    "As the metrics compute them of the other samples"
    rng = np.random.default_rng(0)
    for trial in range(40):
        n,c,ties = rng.integers(2, 12),rng.integers(1, 4),trial%2
        preds = torch.from_numpy(rng.random((n,c)).round(1 if ties else 6))
        y = torch.from_numpy(rng.integers(-(trial%3==0), 2, (n,c))).float()
        zero_division = (0.,1.,math.nan)[trial%4%3]
        y[0,0] = 1
        p = Predictions.of(preds, y, ignore_index=-1, zero_division=zero_division)
        metrics = APScoreMulti(zero_division=zero_division, ignore_index=-1),RocAucMulti(ignore_index=-1)
        for m,row in zip(metrics, _macro_rankings(p, jackknife=True)[1]):
            for row_i,i in enumerate((y>=0).any(1).nonzero().flatten().tolist()):
                others = torch.arange(n)!=i
                with warnings_as('ignore'): expected = m(preds[others], y[others])
                np.testing.assert_allclose(row[row_i], expected, atol=1e-12)

def test_labels_are_counted_in_samples_and_in_groups(monkeypatch):
    "A label that is true in some sample of a group is true in the group"
    assert numbers_by_label(known()).tolist()==[[2,1,0], [3,2,0], [2,2,3]]
    assert numbers_by_label(Predictions.of(P, Y)).tolist()==[[3,2,0], [3,2,1], [2,3,5]]
    groups = np.array([5,5,3,3,1])
    for block in (2**16,6): # All in one, and two samples each
        monkeypatch.setattr('fastai_mlmetrics.core.predictions._BLOCK', block)
        assert numbers_by_label(Predictions.of(P, Y, groups=groups)).tolist()==[[2,2,0], [2,1,1], [1,3,3]]
        of_known = numbers_by_label(known(groups=groups))
        assert of_known.tolist()==[[1,1,0], [2,1,0], [1,2,2]] and of_known.dtype==torch.float64

@pytest.mark.parametrize('n,expected', [([2.,4.], 16/3), ([1.,1.], 2), ([3.,0.], 3), ([0.,0.], math.inf)])
def test_a_mean_over_labels_has_as_many_observations(n, expected):
    "As in the mean's variance; labels without any are left out"
    assert in_average(tensor(n))==pytest.approx(expected)

def test_a_weighted_mean_has_as_many_observations():
    assert in_average(tensor([2.,4.]), tensor([1.,3.]))==pytest.approx(16/(1/2+9/4))

def test_most_observations_by_row():
    "There is no interval if nothing is known of a label; one whose targets are all ignored is none"
    def n_max(p): return {row: o.n_max for row,o in measure(p, 0.95).estimates.items() if o.n_max<math.inf}
    macro = 'ap_macro','balanced_accuracy','f1_macro','roc_auc_macro'
    for p in (Predictions.of(P, Y),known()): assert [row for row,n in sorted(n_max(p).items()) if not n]==[*macro]
    p = Predictions.of(P, Y.where(tensor(1,1,0)>0, -1), ignore_index=-1)
    true,predicted,false = numbers_by_label(p)
    of_pairs = 3*in_average(1/(1/true+1/false)) # Pairs of a positive and a negative
    assert n_max(p)==pytest.approx(dict(
        ap_macro=in_average(true), f1_macro=in_average(true+predicted), balanced_accuracy=of_pairs,
        roc_auc_macro=of_pairs, f1_micro=(true+predicted).sum().item(), f1_weighted=in_average(true+predicted, true)))
    limits = measure(known(), 0.95).intervals(0.95)
    assert limits.loc[[*macro]].isna().all(axis=None) and limits.notna().all(1).sum()==8

@pytest.mark.parametrize('zero_division', [0.,1.,0.3,math.nan])
def test_rows_are_those_of_metrics(zero_division):
    p = known(zero_division=zero_division)
    values = measure(p, None).values
    for row,m in row_metrics(p).items():
        assert row.rpartition('_')[2] in ('accuracy','multi',m.average)
        m = type(m)(sigmoid=False, average=m.average, zero_division=zero_division, ignore_index=-1)
        same(values[row], m(p.preds, p.targs), of=row)
    for row,m in dict(ap_macro=APScoreMulti(ignore_index=-1, zero_division=zero_division),
                      roc_auc_macro=RocAucMulti(ignore_index=-1), lrap=LRAP(ignore_index=-1)).items():
        same(values[row], m(p.preds, p.targs), of=row)

def test_estimates_know_the_groups_of_samples_that_count():
    groups = np.array([5,5,3,3,1])
    p = known(groups=groups)
    for o in measure(p, 0.95).estimates.values(): assert o.groups.tolist()==[0,0,1,1] and len(o.without)==4
    for o in measure(known(), 0.95).estimates.values(): assert o.groups is None

def test_values_without_a_sample_are_quiet():
    "0/0 without the only positive, or without the only sample of a label, is no warning"
    with warnings_as('error'):
        for p in (known(), Predictions.of(P[:2], Y[:2]), Predictions.of(P[:1], Y[:1])): measure(p, 0.95)

@pytest.mark.parametrize('ci', [0, 1, 1., -0.5, 95])
def test_a_confidence_level_lies_between_0_and_1(ci):
    with pytest.raises(ValueError, match=f'ci={ci} should be between 0 and 1'): measure(known(), ci)

@pytest.mark.parametrize('n,has_intervals', [(1,False), (2,True)])
def test_intervals_need_two_samples(n, has_intervals):
    assert (measure(Predictions.of(P[:n], Y[:n]), 0.95).estimates is not None)==has_intervals
    assert measure(Predictions.of(P[:n], Y[:n]), None).estimates is None

def test_nan_predictions_have_no_value():
    p = Predictions.of(P.masked_fill(P>0.8, math.nan), Y)
    with pytest.warns(UserWarning, match='NaN in 2 samples'): measured = measure(p, 0.95)
    assert measured.values.isna().all() and measured.estimates is None
    assert [*measured.values.index]==[*measure(known(), None).values.index]

def test_measured_rows_are_subtracted():
    scored,binary = (measure(Predictions.of(o, TARGS), 0.95) for o in (SCORES, SCORES>0.3))
    difference = binary.minus(scored)
    assert [*difference.values.index]==[*difference.estimates]==[*scored.values.index[:-3]]==[*binary.values.index]
    row = 'f1_macro'
    same(difference.estimates[row].without, binary.estimates[row].without-scored.estimates[row].without)
    without_intervals = measure(Predictions.of(SCORES, TARGS), None)
    assert without_intervals.estimates is None and binary.minus(without_intervals).estimates is None
    assert without_intervals.minus(binary).estimates is None
    assert [*scored.minus(binary).values.index]==[*binary.values.index]
    assert without_intervals.intervals(0.95).isna().all(axis=None)

def test_without_intervals_nothing_is_computed_again(monkeypatch):
    monkeypatch.setattr(jackknife, '_label_without', None)
    monkeypatch.setattr(jackknife, 'scores_without', None)
    measure(known(), None)
