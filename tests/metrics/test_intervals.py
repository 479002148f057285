"What a score would be on other samples"
from scipy import stats
from helpers import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.intervals import (
    Estimate, estimate, in_average, interval_table, macro_rankings, mean_of_runs, numbers_by_label,
    simultaneous_level)

def of(without, value=0.5, **kw): return Estimate(value, torch.tensor(without, dtype=torch.float64), **kw)

def wilson(share, n, t):
    "As scipy has it, of whole numbers"
    ci = stats.binomtest(round(share*n), n).proportion_ci(2*stats.norm.cdf(t)-1, 'wilson')
    return [ci.low,ci.high]

@pytest.mark.parametrize('deviations,free', [
    (np.linspace(-1, 1, 40), 39), # Even deviations: the formula gives more than n-1
    (np.r_[np.ones(4), -np.ones(4), np.zeros(32)], None), # Between: the formula
    (np.r_[1, np.zeros(39)], 5), # One sample makes the variance: at least 5
    (np.r_[1, np.zeros(3)], 3)]) # At most n-1, if that is less than 5
def test_a_difference_has_satterthwaite_s_degrees_of_freedom(deviations, free):
    n = len(deviations)
    without = 0.5+1e-4*deviations
    centred = without-without.mean()
    s2,s4 = (centred**2).sum(),(centred**4).sum()
    formula = 2*s2**2/(s4-s2**2/n)
    if free is None:
        free = formula
        assert 5<free<n-1
    elif free==5: assert formula<5
    elif n==40: assert formula>n-1
    half = stats.t.ppf(0.975, free)*((n-1)/n*s2)**0.5
    value = without.mean()
    same(of(without, value, is_difference=True).limits(0.95), [value-half, value+half], 1e-10)

def test_a_score_has_the_limits_of_as_many_observations():
    "Of a share with the same variance"
    n = 41
    without = 0.5 + 1e-2*np.linspace(-1, 1, n)
    e = of(without)
    n_equal = 0.25/e.error**2
    t = stats.t.ppf(0.975, n-1)
    middle = 0.5
    half = t/(1+t**2/n_equal)*math.sqrt(0.25/n_equal + t**2/(4*n_equal**2))
    same(e.limits(0.95), [middle-half, middle+half], 1e-10)

@pytest.mark.parametrize('value', [0.,1.])
@pytest.mark.parametrize('n_max', [math.inf,7])
def test_without_variation_the_number_of_samples_is_all_that_is_known(value, n_max):
    n = 30
    limits = of([value]*n, value, n_max=n_max).limits(0.95)
    same(limits, wilson(value, int(min(n, n_max)), stats.t.ppf(0.975, n-1)), 1e-9)

def test_positives_bound_the_observations():
    "The number of samples says nothing of a rare label"
    without = 0.9 + 1e-6*np.linspace(-1, 1, 1000)
    low,high = of(without, 0.9, n_max=10).limits(0.95)
    same([low, high], wilson(0.9, 10, stats.t.ppf(0.975, 999)), 1e-9)

def test_models_without_a_difference():
    same(of([0.]*30, 0., is_difference=True).limits(0.95), [0, 0])
    for sign in (1,-1): # One of them is always right: as sure as a share of 1 in as many samples
        limits = of([float(sign)]*30, float(sign), is_difference=True).limits(0.95)
        expected = [sign*o for o in wilson(1., 30, stats.t.ppf(0.975, 29))]
        same(limits, sorted(expected), 1e-9)

@pytest.mark.parametrize('value', [0.,1.])
def test_rounding_moves_no_limit_beyond_the_value(value):
    for n in range(2, 200): assert of([value]*n, value).limits(0.95)[int(value)]==value

@given(st.integers(0, 2**20))
def test_repeated_samples_are_one_group(seed):
    "The interval is that of the samples before they were repeated"
    rng = np.random.default_rng(seed)
    preds,targs = rng.random((40,4)),rng.random((40,4))<0.3
    targs[0] = True
    copies = np.arange(40).repeat(3)
    for average in ('micro','macro','weighted','samples'):
        m = F1ScoreMulti(average=average)
        once = estimate(m, Predictions.of(preds, targs))
        often = estimate(m, Predictions.of(preds[copies], targs[copies], groups=copies))
        assert often.value==pytest.approx(once.value)
        # To first order, as each of the copies is left out alone
        assert often.error==pytest.approx(once.error, rel=0.12, abs=1e-3)

def test_groups_are_left_out_as_a_whole():
    "Compared with scores that are computed again without each group"
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 60, 900)
    preds,targs = rng.random((900,5)),rng.random((900,5))<0.3
    def score(rows): return skm.f1_score(targs[rows], preds[rows]>0.5, average='micro')
    without = np.array([score(groups!=i) for i in range(60)])
    expected = math.sqrt(59/60*((without-without.mean())**2).sum())
    e = estimate(F1ScoreMulti(average='micro'), Predictions.of(preds, targs, groups=groups))
    assert e.error==pytest.approx(expected, rel=0.03) and len(e.changes)==60

def test_ignored_samples_are_in_no_group():
    rng = np.random.default_rng(0)
    preds,targs = rng.random((60,3)),(rng.random((60,3))<0.4).astype(float)
    groups = rng.integers(0, 20, 60)
    targs[::4] = np.nan
    some = ~np.isnan(targs[:,0])
    a = estimate(F1ScoreMulti(), Predictions.of(preds, targs, groups=groups, ignore_index=np.nan))
    b = estimate(F1ScoreMulti(), Predictions.of(preds[some], targs[some], groups=groups[some]))
    assert a.error==b.error and a.limits(0.95)==b.limits(0.95)

@pytest.mark.parametrize('groups,match', [
    ([1]*59, 'groups has 59 values, but there are 60 samples'), (['a']*60, "of one group, 'a'"),
    ([*range(59), math.nan], 'has 1 missing values of 60'), ([None]+['a','b','c']*20, 'groups has 61 values'),
    ('patient', 'groups has 1 values, but there are 60 samples')])
def test_groups_that_are_none(groups, match):
    rng = np.random.default_rng(0)
    preds,targs = rng.random((60,3)),rng.random((60,3))<0.4
    for f in (accuracy_report, judge, best_thresholds, MultiLabelInterpretation.from_preds):
        with pytest.raises(ValueError, match=match): f(preds, targs, groups=groups)
    with pytest.raises(ValueError, match=match): compare_models(dict(a=preds, b=preds), targs, groups=groups)

@pytest.mark.parametrize('kind', [list, np.array, pd.Series, torch.tensor, lambda o: [f'p{i}' for i in o]])
def test_groups_of_any_kind(kind):
    rng = np.random.default_rng(0)
    preds,targs,groups = rng.random((60,3)),rng.random((60,3))<0.4,[*range(20)]*3
    same(accuracy_report(preds, targs, groups=kind(groups)).low.astype(float),
         accuracy_report(preds, targs, groups=groups).low.astype(float))

def test_items_with_several_samples_may_be_groups():
    "Pixels of an image"
    rng = np.random.default_rng(0)
    preds,targs = rng.random((12,5,5,3)),rng.random((12,5,5,3))<0.4
    by_image = accuracy_report(preds, targs, groups=range(12))
    by_pixel = accuracy_report(preds, targs, groups=np.arange(12).repeat(25))
    assert by_image.equals(by_pixel) and 'The 12 groups are taken as independent.' in by_image.reading
    few = accuracy_report(preds[:9], targs[:9], groups=range(9)).reading
    assert ('The 9 groups are taken as independent. With fewer than 10 groups, intervals and held-out scores are '
            'rough.') in few
    assert 'Samples are taken as independent: if some share' in accuracy_report(preds, targs).reading

def test_a_comparison_is_paired_by_group():
    "Copies make no difference clearer"
    rng = np.random.default_rng(0)
    targs = rng.random((80,4))<0.4
    models = {k: np.clip(targs*0.3+rng.random((80,4))*0.8, 0, 1) for k in 'ab'}
    copies = np.arange(80).repeat(5)
    once = compare_models(models, targs)
    often = compare_models({k: o[copies] for k,o in models.items()}, targs[copies], groups=copies)
    rows = ['f1_micro','f1_macro','ap_macro','roc_auc_macro','lrap','subset_accuracy']
    width,expected = ((o.high-o.low)[rows] for o in (often, once))
    np.testing.assert_allclose(width, expected, rtol=0.15)

@pytest.mark.parametrize('bins', [None,1024])
def test_folds_never_divide_a_group(bins):
    rng = np.random.default_rng(0)
    groups = np.sort(rng.integers(0, 30, 400))
    preds,targs = rng.random((400,3)),rng.random((400,3))<0.4
    from fastai_mlmetrics.thresholds.finding import score_table
    if bins is None:
        fold = score_table(Predictions.of(preds, targs, groups=groups), 5).fold
    else:
        finder = ThreshFinder(bins=bins, sigmoid=False)
        seen = []
        folds = finder.folds
        finder.folds = lambda batch: seen.append(folds(batch)) or seen[-1]
        finder.deal(torch.from_numpy(groups))
        for o in (slice(0, 150),slice(150, 400)): finder.update(preds[o], targs[o])
        fold = torch.cat(seen)
    by_group = pd.Series(fold.numpy()).groupby(groups).nunique()
    assert (by_group==1).all() and fold.unique().numel()==5

def test_held_out_scores_are_those_of_new_groups():
    "Thresholds per label learn the groups that they were tuned on"
    def draw(seed, n_groups, size=40):
        rng = np.random.default_rng(seed)
        shift,rate = rng.normal(size=(2,n_groups,6)).repeat(size, 1)
        targs = rate+rng.normal(size=rate.shape)>1
        scores = 1/(1+np.exp(-(1.5*targs+2*shift+rng.normal(size=shift.shape)-2)))
        return scores,targs,np.arange(n_groups).repeat(size)
    new,truth,_ = draw(99, 1000)
    optimism = []
    for seed in range(12):
        scores,targs,groups = draw(seed, 10)
        for g in (None, groups):
            found = best_thresholds(scores, targs, per_label=True, groups=g)
            fresh = F1ScoreMulti(found.thresh, sigmoid=False, average='micro')(new, truth)
            optimism.append(found.held_out-fresh)
    independent,by_group = np.reshape(optimism, (-1,2)).mean(0)
    assert independent>0.05 and abs(by_group)<0.035

def test_a_label_that_is_absent_leaves_its_averages_without_an_interval():
    rng = np.random.default_rng(0)
    preds,targs = rng.random((60,3)),rng.random((60,3))<0.4
    targs[:,1] = False
    r = accuracy_report(preds, targs)
    macro = ['balanced_accuracy','f1_macro','ap_macro','roc_auc_macro']
    assert [*r.index[r.low.isna()]]==macro
    why = 'No interval for balanced_accuracy, macro F1, ap_macro and roc_auc_macro: at least one label has no positives'
    assert r.reading.count('No interval')==1 and why in r.reading
    report = MultiLabelInterpretation.from_preds(preds, targs).report()
    assert [*report.index[report.low.isna()]][-1:]==['macro avg'] and report.low['weighted avg']>0
    compared = compare_models(dict(a=preds, b=preds**2), targs)
    assert [*compared.index[compared.low.isna()]]==macro and compared.reading.count(why)==1

def test_a_label_with_one_positive_is_as_good_as_absent():
    "Without it, it is absent: its average precision would be shifted up"
    rng = np.random.default_rng(0)
    preds,targs = rng.random((60,3)),rng.random((60,3))<0.4
    targs[:,1] = np.arange(60)==7
    macro = ['balanced_accuracy','f1_macro','ap_macro','roc_auc_macro']
    r = accuracy_report(preds, targs)
    assert [*r.index[r.low.isna()]]==macro and 'or only in a single sample or group' in r.reading
    assert MultiLabelInterpretation.from_preds(preds, targs).report().low.isna()[[1,'macro avg']].all()
    targs[9,1] = True
    assert accuracy_report(preds, targs).low.notna().all()
    assert accuracy_report(preds, targs, groups=np.arange(60)//3).low.notna().all()
    targs[9,1],targs[8,1] = False,True # Of one group
    r = accuracy_report(preds, targs, groups=np.arange(60)//3)
    assert [*r.index[r.low.isna()]]==macro

@pytest.mark.parametrize('groups', [None, [0]*30+[1]*30])
def test_nothing_is_known_of_the_spread_of_a_single_sample_or_group(groups):
    rng = np.random.default_rng(0)
    preds,targs = rng.random((60,3)),(rng.random((60,3))<0.4).astype(float)
    targs[1 if groups is None else 30:] = np.nan
    kw = dict(ignore_index=np.nan, groups=groups)
    with warnings_as('error'):
        r = accuracy_report(preds, targs, **kw)
        compared = compare_models(dict(a=preds, b=preds**2), targs, **kw)
    assert r.low.isna().all() and 'No intervals: only one sample or group has known' in r.reading
    assert compared.low.isna().all() and 'No intervals: only one ' in compared.reading
    assert 'better' not in compared.reading and 'chance' not in compared.reading

def test_an_average_over_samples_of_which_one_counts_has_no_interval():
    "All others have neither true nor predicted labels, which are left out"
    targs = np.zeros((380,3), int)
    targs[0] = 1
    r = accuracy_report(targs, targs, zero_division=np.nan)
    assert r.low[['f1_samples','jaccard_samples','f1_micro']].isna().all() and r.low.notna()['accuracy_multi']
    assert re.search('No interval for jaccard_samples, .*: it depends on a single sample or group.', r.reading)
    targs[1] = 1 # Now two samples count, not 380
    assert 0.1<accuracy_report(targs, targs, zero_division=np.nan).low['f1_samples']<0.4

@pytest.mark.parametrize('zero_division', [0.,math.nan])
def test_scores_without_each_sample_are_those_of_the_others(zero_division):
    "Also of ignored targets, and of a label that only one sample has"
    from fastai_mlmetrics.metrics.intervals import scores_without
    rng = np.random.default_rng(0)
    preds,targs = rng.random((25,4)),(rng.random((25,4))<0.4).astype(int)
    targs[:,3] = np.arange(25)==7
    targs[np.arange(25),np.arange(25)%3] = np.where(rng.random(25)<0.4, -1, targs[np.arange(25),np.arange(25)%3])
    metrics = {(cls.__name__,average): cls(average=average, sigmoid=False, ignore_index=-1, zero_division=zero_division)
               for cls in (F1ScoreMulti,SpecificityMulti,PrecisionMulti)
               for average in ('macro','weighted','micro','samples')}
    found = scores_without(metrics, Predictions.of(preds, targs, ignore_index=-1))
    assert found.keys()==metrics.keys()
    for name,m in metrics.items():
        expected = [m(np.delete(preds, i, 0), np.delete(targs, i, 0)) for i in range(25)]
        same(found[name], expected, 1e-12, name)
        same(estimate(m, Predictions.of(preds, targs, ignore_index=-1)).value, m(preds, targs), 1e-12, name)

def test_a_group_contributes_what_the_value_changes_without_it():
    "Groups of unequal sizes, of a mean"
    x = np.random.default_rng(0).random(12)
    groups = np.array([0]*6+[1]*3+[2]*2+[3])
    e = of((x.sum()-x)/11, x.mean(), groups=torch.from_numpy(groups))
    same(e.changes, [x.mean()-x[groups!=g].mean() for g in range(4)], 1e-12)
    assert e.minus(of(np.full(12, 0.5), 0.5)).groups is e.groups

@pytest.mark.parametrize('is_difference,lowest', [(False,0),(True,-1)])
def test_limits_stay_in_range_and_around_the_value(is_difference, lowest):
    wide = 0.3*np.linspace(-1, 1, 40)
    for value in (lowest+0.01,0.99):
        low,high = of(value+wide, value, is_difference=is_difference).limits(0.95)
        assert lowest<=low<=value<=high<=1 and (low==lowest or high==1 or not is_difference)
    for unknown in (of(wide, math.nan),of(wide, n_max=0),of([0.5]),of([*wide,math.nan])):
        assert all(map(math.isnan, unknown.limits(0.95)))

def test_a_spread_of_rounding_errors_is_none():
    for spread,counts in ((1e-12,False), (1e-6,True)):
        without = 0.5+spread*np.linspace(-1, 1, 30)
        assert (of(without).limits(0.95)!=of(np.full(30, 0.5)).limits(0.95))==counts

@pytest.mark.parametrize('of_groups', [False,True])
def test_an_interval_is_shifted_by_the_bias(of_groups):
    "The square of a mean is too high on average, by its variance"
    rng = np.random.default_rng(0)
    x = rng.random(40)
    means = (x.sum()-x)/39
    plain = of(means**2, x.mean()**2, is_difference=True)
    assert plain.bias==pytest.approx(x.var(ddof=1)/40, rel=0.1)
    e = plain
    if of_groups: # Copies: as many groups have the bias and the limits of as many samples
        copies = np.arange(40).repeat(3)
        x = x[copies]
        e = of(((x.sum()-x)/119)**2, x.mean()**2, is_difference=True, groups=torch.from_numpy(copies))
        assert e.bias==pytest.approx(plain.bias, rel=0.1)
    low,high = e.limits(0.95)
    half = stats.t.ppf(0.975, 39)*e.error
    same([low, high], [e.value-half-1.5*e.bias, e.value+half-e.bias], 1e-9)

def test_differences_of_unbounded_scores_are_not_cut_off():
    without = 2000+np.linspace(-5, 5, 50)
    class Cost(CountsMetric):
        def formula(self, tp, fp, fn, tn): return 100*fn+fp
    rng = np.random.default_rng(0)
    preds,targs = rng.random((60,3)),rng.random((60,3))<0.4
    a,b = (estimate(Cost(average='samples'), Predictions.of(o, targs)) for o in (preds, preds/9))
    change = b.minus(a)
    low,high = change.limits(0.95)
    assert change.value>20 and 1<low<change.value<high
    low,high = b.limits(0.95)
    assert not b.bounded and 70<low<b.value<high
    constant = of(np.full(50, 2000.), 2000., is_difference=True, bounded=False)
    assert all(map(math.isnan, constant.limits(0.95))) and 'same without each sample' in constant.why_unknown

def test_micro_weighted_and_macro_scores_of_few_positives_are_alike():
    "Five positives found among 1,000 samples are five, however they are averaged"
    rng = np.random.default_rng(0)
    p,y = rng.random((1000,1))*0.5,np.zeros((1000,1), int)
    y[:5],p[:5] = 1,p[:5]+0.5
    r = accuracy_report(p, y)
    assert (r.value[['f1_micro','f1_macro','f1_weighted','roc_auc_macro','ap_macro']]==1).all()
    same(r.low[['f1_micro','f1_weighted']], [r.low['f1_macro']]*2, 1e-9)
    expected = wilson(1., 10, stats.t.ppf(0.975, 999))[0] # Positives and predictions
    assert r.low['f1_macro']==pytest.approx(expected, abs=1e-3) and r.low['ap_macro']<0.6
    assert 0.75<r.low['roc_auc_macro']<0.82 and r.low['accuracy_multi']>0.99
    # The same in a list of metrics, and by patient
    for average in ('micro','macro','weighted'):
        e = estimate(F1ScoreMulti(average=average), Predictions.of(p, y))
        assert e.limits(0.95)[0]==pytest.approx(r.low[f'f1_{average}'], abs=1e-9)
    by_group = accuracy_report(p, y, groups=np.r_[1, 0, 0, 0, np.arange(996)])
    assert (by_group.low[['f1_micro','f1_macro','f1_weighted']]<0.6).all() # Two groups have positives

def test_the_next_error_may_be_larger_than_one():
    "LRAP of 100 samples, of which one is slightly wrong"
    x = np.ones(100)
    x[0] = 0.98
    low,high = of((x.sum()-x)/99, x.mean()).limits(0.95)
    same([low, high], [*_limits_of_share(x.mean(), 100, 5)], 1e-3)
    x[:40] = 0.98 # Of many errors, the size is known
    low,high = of((x.sum()-x)/99, x.mean()).limits(0.95)
    assert high-low<0.006

def _limits_of_share(share, n, free):
    t = stats.t.ppf(0.975, free)
    middle,half = share+t**2/(2*n),t*math.sqrt(share*(1-share)/n + t**2/(4*n**2))
    return (middle-half)/(1+t**2/n),(middle+half)/(1+t**2/n)

def test_all_intervals_hold_at_once():
    "As in simulations of correlated means, between one interval and Bonferroni's"
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6,6))*[[1]]*5+np.array([3,0,0,0,0,0])
    draws = rng.normal(size=(4000,40,6))@root.T
    means,errors = draws.mean(1),draws.std(1, ddof=1)/40**0.5
    x = torch.from_numpy(draws[0])
    estimates = [of((x[:,i].sum()-x[:,i])/39, x[:,i].mean().item(), is_difference=True) for i in range(6)]
    level = simultaneous_level(estimates, 0.95)
    assert 0.95<level<1-0.05/6
    t = stats.t.ppf((1+level)/2, 39)
    assert (np.abs(means)<t*errors).all(1).mean()==pytest.approx(0.95, abs=0.015)
    # One interval alone, copies of it, and estimates that do not vary need no more
    constant = of([0.2]*40, 0.2, is_difference=True)
    assert simultaneous_level(estimates[:1], 0.95)==simultaneous_level([estimates[0],constant], 0.95)==0.95
    assert simultaneous_level(estimates[:1]*5, 0.95)==pytest.approx(0.95, abs=0.005)
    assert simultaneous_level([], None) is None

Y = tensor([[1,0,0], [1,1,0], [0,1,0], [0,0,0], [1,0,0]])
P = tensor([[.9,.1,.2], [.8,.3,.7], [.6,.6,.1], [.2,.9,.4], [.3,.2,.3]])

def known(**kwargs): return Predictions.of(P, Y.where(tensor([[1,1,1], [1,0,0], [1,1,1], [1,1,1], [0,0,0]])>0, -1),
                                           ignore_index=-1, **kwargs)

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
        for m,row in zip(metrics, macro_rankings(p, jackknife=True)[1]):
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

def test_a_table_of_estimates_has_their_limits():
    spread = of([0.4,0.5,0.6]*9)
    few = of([0.4,0.5,0.6]*9, n_max=0)
    rows = {'a': spread, 'b': few, 'c': Estimate(0.3), 'd': Estimate(math.nan)}
    t = interval_table(rows, 0.95)
    assert t.value.tolist()[:3]==[0.5,0.5,0.3] and [*t.loc['a',['low','high']]]==[*spread.limits(0.95)]
    assert t.loc[['b','c','d'],['low','high']].isna().all(axis=None) and [*t]==['value','low','high']
    assert spread.why_unknown=='' and few.why_unknown.startswith('at least one label has no positives here')

def test_without_a_jackknife_there_is_no_interval():
    alone = Estimate(0.3)
    for difference in (alone.minus(of([0.4,0.6])), of([0.4,0.6]).minus(alone)):
        assert abs(difference.value)==pytest.approx(0.2) and difference.without is None and difference.is_difference
        assert np.isnan(difference.limits(0.95)).all()
    assert simultaneous_level([alone, alone], None) is None

def test_a_difference_is_bounded_only_if_both_scores_are():
    a,b = of([0.4,0.6]),of([0.3,0.7], bounded=False)
    assert a.minus(a).bounded and not a.minus(b).bounded and not b.minus(a).bounded

@pytest.mark.parametrize('n_changed,nearly', [(2, True), (4, True), (6, False), (20, False)])
def test_a_score_is_nearly_constant_if_five_samples_at_most_change_it(n_changed, nearly):
    without = np.full(1000, 0.9995)
    without[:n_changed] += [0.001,-0.001]*(n_changed//2)
    assert of(without, value=0.9995)._nearly_constant(1000)==nearly
    assert not of(without, value=0.9)._nearly_constant(1000) # 100 of 1,000 observations

def test_two_intervals_hold_at_once_at_a_higher_level():
    gen = torch.Generator().manual_seed(0)
    independent = [of(0.5+torch.randn(2000, generator=gen).numpy()) for _ in range(2)]
    assert simultaneous_level(independent, 0.95)==pytest.approx(math.sqrt(0.95), abs=0.004)
    assert simultaneous_level(independent[:1], 0.95)==0.95
    assert simultaneous_level([independent[0]]*2, 0.95)==pytest.approx(0.95, abs=0.004)

def test_a_mean_of_trainings_has_the_fewest_observations_of_them():
    runs = [of([0.4,0.6,0.5], value=v, n_max=n) for v,n in ((0.4, 50), (0.6, 20), (0.5, 30))]
    mean = mean_of_runs(runs)
    assert mean.n_max==20 and mean.value==pytest.approx(0.5)
    variance,free = mean.trainings[0]
    assert free==2 and variance==pytest.approx(0.01/3)

@pytest.mark.parametrize('average', ['micro','macro','weighted'])
@pytest.mark.parametrize('ignored', [False,True])
def test_values_without_each_sample_at_other_frequencies(average, ignored):
    "By brute force: the frequencies are the same without the sample, so that the weights differ"
    logits,targs = simulate(40, 3, density=0.4, skill=1.)
    if ignored: targs[::7,1] = math.nan
    kw = dict(ignore_index=math.nan, thresh=0.04)
    p = Predictions.of(logits.sigmoid(), targs, **kw).at_frequencies({0: 0.05, 2: 0.7})
    m = F1ScoreMulti(average=average)
    assert estimate(m, p).value==m.averaged(p.counts).item()!=m.averaged(p.plain_counts).item()
    for i,value in enumerate(estimate(m, p).without.tolist()):
        others = torch.arange(40)!=i
        rest = Predictions.of(logits[others].sigmoid(), targs[others], **kw).at_frequencies({0: 0.05, 2: 0.7})
        assert value==pytest.approx(m.averaged(rest.counts).item(), abs=1e-12)

@pytest.mark.parametrize('ignored', [False,True])
def test_rankings_without_each_sample_at_other_frequencies(ignored):
    "Also of scores that are tied"
    logits,targs = simulate(40, 3, density=0.4, skill=1.)
    if ignored: targs[::7,1] = math.nan
    scores,kw = (10*logits.sigmoid()).round()/10,dict(ignore_index=math.nan)
    p = Predictions.of(scores, targs, **kw).at_frequencies({0: 0.05, 2: 0.7})
    value,without = macro_rankings(p, True)
    assert not torch.allclose(value, macro_rankings(p.replace(frequencies=None), False)[0])
    for i in range(40):
        others = torch.arange(40)!=i
        rest = Predictions.of(scores[others], targs[others], **kw).at_frequencies({0: 0.05, 2: 0.7})
        torch.testing.assert_close(without[:,i], macro_rankings(rest, False)[0], atol=1e-12, rtol=0)
