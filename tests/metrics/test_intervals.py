"What a score would be on other samples"
from scipy import stats
from helpers import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.intervals import Estimate, estimate

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
    same(of(without, is_difference=True).limits(0.95), [0.5-half, 0.5+half], 1e-10)

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
    ('patient', r"a name: pass a value per sample, such as df\['patient'\]")])
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
    assert 'Samples are taken as independent: if some are alike' in accuracy_report(preds, targs).reading

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
        for o in (slice(0, 150),slice(150, 400)): finder.update(preds[o], targs[o], groups=groups[o])
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
    assert [*r.index[r.low.isna()]]==['f1_macro','ap_macro']
    assert "No interval for 'f1_macro', 'ap_macro': at least one label has no positives" in r.reading
    assert 'No interval' not in accuracy_report(preds[:1], targs[:1]).reading # Of one sample, nothing has one

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
    for unknown in (of(wide, math.nan),of(wide, n_max=0)): assert all(map(math.isnan, unknown.limits(0.95)))

def test_a_spread_of_rounding_errors_is_none():
    for spread,counts in ((1e-12,False), (1e-6,True)):
        without = 0.5+spread*np.linspace(-1, 1, 30)
        assert (of(without).limits(0.95)!=of(np.full(30, 0.5)).limits(0.95))==counts
