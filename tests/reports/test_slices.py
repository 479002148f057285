"compare_slices: scores of each slice, differences from all other samples, and the labels that differ"
import pickle, time
from scipy import stats
from helpers import *
from fastai.tabular.all import Categorify, Normalize, tabular_learner, TabularDataLoaders
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.intervals import estimate
from fastai_mlmetrics.reports.slices import _compare, _correlation, _fisher, _measure_of, _n_tests

def sliced(n=300, c=6, n_slices=4, seed=0, skill=2.):
    "Scores, targets, and slices of unequal sizes"
    rng = np.random.default_rng(seed)
    y = (rng.random((n, c))<np.linspace(0.1, 0.5, c)).astype(int)
    s = 1/(1+np.exp(1-skill*y-rng.normal(size=y.shape)))
    weights = np.arange(1, n_slices+1)
    return s,y,rng.choice(n_slices, n, p=weights/weights.sum())

@pytest.mark.parametrize('metric,score', [
    ('f1_micro', lambda y, s: skm.f1_score(y, s>0.5, average='micro')),
    ('f1_macro', lambda y, s: skm.f1_score(y, s>0.5, average='macro')),
    ('f1_samples', lambda y, s: skm.f1_score(y, s>0.5, average='samples', zero_division=0)),
    ('accuracy_multi', lambda y, s: skm.accuracy_score(y.ravel(), s.ravel()>0.5)),
    ('ap_macro', lambda y, s: skm.average_precision_score(y, s, average='macro')),
    ('lrap', lambda y, s: skm.label_ranking_average_precision_score(y, s)),
    (FBetaMulti(2, average='weighted'), lambda y, s: skm.fbeta_score(y, s>0.5, beta=2, average='weighted')),
    (RecallMulti, lambda y, s: skm.recall_score(y, s>0.5, average='macro'))])
def test_scores_are_scikit_learn_s(metric, score):
    s,y,by = sliced()
    t = compare_slices(s, y, by, metric=metric)
    for i in range(4):
        inside,outside = (score(y[rows], s[rows]) for rows in (by==i, by!=i))
        np.testing.assert_allclose(t.loc[i,['value','difference']].astype(float), [inside, inside-outside], atol=1e-6)
        assert t.samples[i]==(by==i).sum() and t.positives[i]==y[by==i].sum()
    assert ((t.low<t.value) & (t.value<t.high))[t.low.notna()].all()

def leave_one_out(metric, p, rows):
    "The value of the samples in `rows` without each of them"
    where = rows.nonzero().flatten()
    return torch.tensor([estimate(metric, p.at((torch.arange(len(rows))!=i) & rows)).value for i in where],
                        dtype=torch.float64)

@pytest.mark.parametrize('average', ['micro','macro','samples'])
def test_the_jackknife_is_that_of_brute_force(average):
    s,y,by = sliced(80, 4, 2)
    metric,p,rows = F1ScoreMulti(average=average),Predictions.of(s, y),torch.tensor(by==0)
    difference = _compare(p, rows, partial(estimate, metric))
    expected = torch.zeros(80, dtype=torch.float64)
    for sign,part in ((1,rows), (-1,~rows)):
        values = leave_one_out(metric, p, part)
        expected[part] = sign*(values.mean()-values)
    np.testing.assert_allclose(difference.changes, expected, atol=1e-12)

def test_the_covariance_of_groups_is_that_of_a_bootstrap():
    "Patients with samples in both slices, whose scores rise and fall together"
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(120), 6)
    easy = 2*rng.normal(size=(120, 1))[patient]
    y = (rng.random((720, 4))<0.3).astype(int)
    s = 1/(1+np.exp(1-2*y-(2*y-1)*easy-rng.normal(size=y.shape)))
    by = np.tile(np.arange(6)%2, 120)
    def width(**kw): return compare_slices(s, y, by, **kw).eval('difference_high-difference_low')[0]
    draws = []
    for _ in range(400):
        rows = (6*rng.integers(0, 120, 120)[:,None]+np.arange(6)).ravel()
        draws.append(np.subtract(*(skm.f1_score(y[o], s[o]>0.5, average='micro') for o in (
            rows[by[rows]==0], rows[by[rows]==1]))))
    assert abs(width(groups=patient)/(2*1.96*np.std(draws))-1)<0.12
    # Alone, each score varies more than the difference
    apart = compare_slices(s, y, by, groups=patient).eval('high-low')
    assert width(groups=patient)<0.8*np.hypot(*apart)

def test_the_interval_is_newcombe_s():
    "Statistics in Medicine 17 (1998), p. 873-890: of 56 of 70 and 48 of 80"
    y = np.ones((150, 1), int)
    right = np.r_[np.arange(70)<56, np.arange(80)<48][:,None]
    t = compare_slices(right, y, np.arange(150)<70, metric='accuracy_multi')
    np.testing.assert_allclose(t.loc[True,['difference','difference_low','difference_high']].astype(float),
                               [0.2, 0.0524, 0.3339], atol=0.003) # From Student's t, wider by 1%
    assert t.result.tolist()==['lower','higher']
    np.testing.assert_allclose(t.difference[True], -t.difference[False])

def test_copies_with_groups_say_what_one_of_each_says():
    s,y,by = sliced(2000)
    s[by==1,3] *= 0.4
    once = compare_slices(s, y, by)
    copies = np.repeat(np.arange(2000), 3)
    often = compare_slices(s[copies], y[copies], by[copies], groups=copies)
    columns = ['value','low','high','difference','difference_low','difference_high']
    np.testing.assert_allclose(often[columns], once[columns], atol=2e-3)
    assert len(once.labels)>1 and often.labels.index.equals(once.labels.index)
    np.testing.assert_allclose(often.labels.p_value, once.labels.p_value, rtol=1e-6)
    # Of less than 10 groups, nothing is known of a label
    y[by==1,3] = np.arange((by==1).sum())<9
    few = compare_slices(s[copies], y[copies], by[copies], groups=copies).labels.query("metric=='recall'")
    assert (1,3) not in few.index and (1,3) in compare_slices(s, y, by).labels.query("metric=='recall'").index

def test_shares_are_compared_by_fisher_s_exact_test():
    rng = np.random.default_rng(0)
    n,other_n = rng.integers(1, 30, (2, 50))
    k,other_k = rng.integers(0, n+1),rng.integers(0, other_n+1)
    p,lowest = _fisher(k/n, n, other_k/other_n, other_n)
    def exact(k, other_k, n, other_n):
        tables = [[k,n-k],[other_k,other_n-other_k]]
        return min(1, 2*min(stats.fisher_exact(tables, o)[1] for o in ('less','greater')))
    for i,o in enumerate(zip(k, other_k, n, other_n)):
        assert abs(p[i]-exact(*o))<1e-9
        total = k[i]+other_k[i]
        possible = range(max(0, total-other_n[i]), min(n[i], total)+1)
        assert abs(lowest[i]-min(exact(a, total-a, n[i], other_n[i]) for a in possible))<1e-9

def test_only_tests_that_can_be_significant_are_corrected_for():
    assert _n_tests(np.array([1e-9]*3+[0.5]*100), 0.05)==3
    # The lowest number K such that at most K tests can reach 0.05 / K
    for lowest,k in (([0.02]*5, 3), ([0.009]*5, 5), ([0.012,0.012,0.3,0.4], 2), ([0.2]*4, 1)):
        assert _n_tests(np.array(lowest), 0.05)==k

def test_the_intraclass_correlation():
    rng = np.random.default_rng(0)
    for true in (0, 0.5, 1):
        alike = rng.random((400, 1, 3))<true
        values = np.where(alike, rng.random((400, 1, 3)), rng.random((400, 5, 3)))<0.3
        errors = torch.tensor(values-values.mean((0,1)))
        size = torch.full((400, 1, 3), 5.).double()
        found = _correlation(size, errors.sum(1, keepdim=True), (errors**2).sum((0,1))[None], 1)
        assert (found-true).abs().max()<0.08

def test_a_label_that_fails_in_a_slice_is_found():
    s,y,by = sliced(1200, skill=4)
    site = pd.Series(by, name='site').map('site {}'.format)
    s[by==0,3] *= 0.4
    t = compare_slices(s, y, site, vocab=list('abcdef'))
    assert t.index.name=='site' and t.columns.name=='f1_micro'
    # To the other sites, site 0 is a part of the rest
    assert t.labels.index[0]==('site 0','d') and {*t.labels.index.get_level_values('label')}=={'d'}
    assert (t.labels.difference[1:].abs()<=abs(t.labels.difference.iloc[0])).all()
    row = t.labels[t.labels.metric=='recall'].iloc[0]
    inside,outside = (skm.recall_score(y[o,3], s[o,3]>0.5) for o in (by==0, by!=0))
    assert (row.value,row.elsewhere)==(pytest.approx(inside),pytest.approx(outside)) and row.difference<0
    f1 = t.labels.loc[('site 0','d')].set_index('metric').loc['f1']
    assert f1.value==pytest.approx(skm.f1_score(y[by==0,3], s[by==0,3]>0.5))
    text = t.reading
    assert (f' Recall of label d is {inside:.2f} in site 0, and {outside:.2f} elsewhere, the largest '
            'of 4 significant differences in 24 pairs of slice and label (see `.labels`). Samples are ') in text
    assert t.result['site 0']=='lower'
    assert text.startswith('Compared with all other samples, micro F1 is lower in site 0 by 0.')
    only = t.loc[['site 1']].reading
    assert 'site 0' not in only and 'the only significant difference in 6 pairs of slice' in only
    assert repr(t[['value']])
    assert t.labels.reading in text.replace(' (see `.labels`)', '')
    assert pickle.loads(pickle.dumps(t)).labels.equals(t.labels)
    assert t.head(1).labels is t.labels and len(t.copy().labels)==len(t.labels)

def test_equal_slices_do_not_differ():
    t = compare_slices(*sliced(1200))
    assert (t.result=='').all() and not len(t.labels)
    assert t.reading.startswith('No difference in micro F1 is significant. None of the 24 pairs of slice and label '
                                'differs from all other samples in recall, precision or F1. ')
    assert [*t.labels]==['metric','value','elsewhere','difference','p_value'] and t.labels.index.nlevels==2

# What samples are sliced by

def slices(by, n=200, **kw):
    s,y,_ = sliced(n)
    return compare_slices(s, y, by, **kw)

def test_numbers_are_cut_into_quartiles():
    age = pd.Series(np.random.default_rng(0).permutation(200), name='age')
    t = slices(age)
    quartiles = ['(-0.001, 49.75]','(49.75, 99.5]','(99.5, 149.25]','(149.25, 199.0]']
    assert t.samples.tolist()==[50]*4 and [*t.index]==quartiles
    assert len(slices(age%10))==10 and len(slices(age%11))==4 # Few numbers are categories
    assert len(slices(pd.to_datetime(age, unit='D')))==4 and len(slices(age>150))==2
    assert len(slices((age//10).astype(str)))==20 # Texts are not cut

def test_missing_values_are_a_slice():
    by = pd.Series(['a','b',None,'a','b']*40)
    assert slices(by).samples.to_dict()=={'a': 80, 'b': 80, 'missing': 40}
    age = pd.Series(np.arange(200.)).where(np.arange(200)%4>0)
    assert [*slices(age).samples]==[38,37,37,38,50] and slices(age).index[-1]=='missing'
    assert slices(by.fillna('missing')).index[-1]=='missing'

@pytest.mark.parametrize('kind', [list, tuple, L, np.array, torch.tensor, pd.Series, pd.Categorical])
def test_values_of_any_kind(kind):
    t = slices(kind([0,1,1,2]*50))
    assert t.samples.to_dict()=={0: 50, 1: 100, 2: 50} and t.index.name=='slice'

def test_columns_are_crossed():
    df = pd.DataFrame(dict(site=['a','b']*100, age=np.arange(200)))
    t = slices(df)
    assert t.index.names==['site','age'] and len(t)==8 and t.labels.index.names==['site','age','label']
    assert {*t.index.get_level_values(0)}=={'a','b'} and (t.samples==25).all()
    only = slices(df[['site']])
    assert only.equals(slices(df.site)) and only.index.name=='site'
    t.plot()
    assert plt.gca().get_yticklabels()[0].get_text().startswith('(')
    plt.close()
    repr(t), t._repr_html_()

def test_values_are_matched_by_their_index():
    s,y,by = sliced(200)
    names = [f'img{i}' for i in range(200)]
    table = pd.DataFrame(y, index=names)
    site = pd.Series(by, index=names)
    expected = compare_slices(s, table, site)
    assert expected.value.tolist()==compare_slices(s, y, by).value.tolist()
    for preds,targs,other in ((s, table, site[::-1]), (pd.DataFrame(s), pd.DataFrame(y), pd.Series(by).sample(frac=1))):
        with pytest.raises(ValueError, match='by and the arrays have different indexes'):
            compare_slices(preds, targs, other)
    interp = MultiLabelInterpretation.from_preds(s, table)
    assert interp.compare_slices(site).equals(expected)
    with pytest.raises(ValueError, match='by and the predictions have'): interp.compare_slices(site[::-1])
    assert compare_slices(s, table, site.tolist()).value.equals(expected.value) # Without an index, by position

@pytest.mark.parametrize('by,match', [
    ('site', "by='site' is a name: pass a value per sample, such as df\\['site'\\]"),
    ([0,1]*50, 'by has 100 values, but there are 200 samples'),
    ([1]*200, 'by makes 1 slice, but should make 2 to 200'),
    ([*map(str, range(201))], 'by has 201 values'),
    ([0]*180+[*range(20)], 'by makes 1 slice, but should make 2 to 200: pass .* or numbers cut as you like')])
def test_bad_slices(by, match):
    with pytest.raises(ValueError, match=match): slices(by)

def test_too_many_slices():
    with pytest.raises(ValueError, match='by makes 300 slices, but should make 2 to 200'):
        slices([*map(str, range(300))], n=300)

def test_small_slices_have_no_interval():
    s,y,_ = sliced(200)
    by = np.r_[[0]*9, [1]*10, [2]*181]
    t = compare_slices(s, y, by)
    assert t.result.tolist()[0]=='too few' and t.loc[0,['low','high','difference_low','difference_high']].isna().all()
    assert t.loc[[1,2],['low','high','difference_low','difference_high']].notna().all(axis=None)
    assert 'Too few in 0: fewer than 10 independent samples.' in t.reading and not math.isnan(t.value[0])
    # Of groups, the effective number counts
    groups = np.r_[np.zeros(60), np.arange(1, 10), np.arange(10, 141)].astype(int)
    t = compare_slices(s, y, np.r_[[0]*69, [1]*131], groups=groups)
    assert (t.result=='too few').all() and 'No slice has enough samples to compare its micro F1.' in t.reading
    # A label without positives
    y[:,0] = np.arange(200)>=19
    t = compare_slices(s, y, np.r_[[0]*19, [1]*181], metric='f1_macro')
    assert t.result[0]=='too few' and 'Too few in 0 and 1: at least one label has no positives' in t.reading

def test_perfect_slices_differ_only_if_that_is_no_chance():
    "A score of 1 without any variance is uncertain, too"
    y = np.ones((1000, 1), int)
    right = np.arange(1000)%20>0
    for n,result in ((20,''), (400,'higher')):
        by = np.arange(1000)<n
        t = compare_slices((right | by)[:,None], y, by, metric='accuracy_multi')
        assert t.value[True]==1 and t.result[True]==result

# Arguments

def test_arguments_of_predictions():
    s,y,by = sliced()
    logits = np.log(s/(1-s))
    expected = compare_slices(s, y, by, thresh=0.3)
    assert compare_slices(logits, y, by, thresh=0.3, sigmoid=True).equals(expected)
    some = compare_slices(s, y, by, thresh=0.3, labels=['b','d'], vocab=list('abcdef'))
    assert some.value.tolist()==compare_slices(s[:,[1,3]], y[:,[1,3]], by, thresh=0.3).value.tolist()
    assert 'Only these labels are scored: b, d.' in some.reading
    for kw in (dict(max_labels=1), dict(min_labels=1), dict(labels=[0,2,3], max_labels=2),
               dict(labels=[1,4], min_labels=1)):
        t = compare_slices(s, y, by, **kw)
        for i in range(4):
            metric = F1ScoreMulti(average='micro', sigmoid=False, **kw)
            assert t.value[i]==pytest.approx(float(metric(torch.tensor(s[by==i]), torch.tensor(y[by==i]))))
    with pytest.raises(TypeError, match="compare_slices has no argument 'tresh': did you mean 'thresh'"):
        compare_slices(s, y, by, tresh=0.3)

def test_ignored_targets():
    s,y,by = sliced()
    holes = np.where(np.arange(y.size).reshape(y.shape)%7==0, np.nan, y)
    holes[by==3] = np.nan # A slice without known targets is no slice
    t = compare_slices(s, holes, by, ignore_index=math.nan, groups=np.arange(300)//2)
    assert [*t.index]==[0,1,2]
    for i in range(3):
        known = ~np.isnan(holes[by==i])
        assert t.value[i]==pytest.approx(skm.f1_score(y[by==i][known], s[by==i][known]>0.5))

def test_rows_of_an_item_are_in_its_slice():
    s,y,by = sliced(60)
    def items(x): return x.reshape(20, 3, 6)
    t = compare_slices(items(s), items(y), by[:20])
    assert t.equals(compare_slices(s, y, by[:20].repeat(3)))
    interp = MultiLabelInterpretation.from_preds(items(s), items(y))
    assert interp.compare_slices(by[:20].repeat(3)).equals(t)

def test_bad_arguments():
    s,y,by = sliced()
    for metric in (CF1(), F1ScoreMulti(average=None), 3, None):
        with pytest.raises(ValueError, match='metric=.* should be one of accuracy_multi.*lrap, or a metric with'):
            compare_slices(s, y, by, metric=metric)
    with pytest.raises(ValueError, match=r"metric='f1': did you mean 'f1_micro'\?$"):
        compare_slices(s, y, by, metric='f1')
    for ci in (0, 1, 95):
        with pytest.raises(ValueError, match=f'ci={ci} should be between 0 and 1'): compare_slices(s, y, by, ci=ci)
    with pytest.raises(ValueError, match='ap_macro needs scores'): compare_slices(s>0.5, y, by, metric='ap_macro')
    s[3] = np.nan
    with pytest.raises(ValueError, match='NaN'): compare_slices(s, y, by)

def test_the_level_is_that_of_the_intervals():
    s,y,by = sliced()
    wide,narrow = (compare_slices(s, y, by, ci=ci) for ci in (0.99, 0.8))
    for a,b in (('low','high'), ('difference_low','difference_high')):
        assert ((wide[b]-wide[a])>(narrow[b]-narrow[a])).all()

def test_differences_are_plotted_in_their_order():
    t = compare_slices(*sliced(600))
    ax = plt.subplots()[1]
    t.plot(ax=ax)
    assert [o.get_text() for o in ax.get_yticklabels()]==[*t.sort_values('difference').index.map(str)]
    assert ax.get_xlabel()=='f1_micro, minus that of all other samples'
    with warnings_as('error'): compare_slices(*sliced(20)).plot() # No slice has enough samples
    assert not plt.gca().get_yticklabels()
    plt.close()
    plt.close()

def test_columns_of_a_loader_s_items():
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=['u','v'])
    df['a'],df['b'] = (df.u>0).astype(int),(df.v>0.5).astype(int)
    df['site'],df['sex'] = ['x','y','z']*100,['f','m']*150
    dls = TabularDataLoaders.from_df(df, cont_names=['u','v'], y_names=['a','b'], bs=50,
                                     y_block=MultiCategoryBlock(encoded=True, vocab=['a','b']), valid_idx=range(120))
    learn = tabular_learner(dls, layers=[4])
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    interp = MultiLabelInterpretation.from_learner(learn)
    site = dls.valid.items.site
    expected = compare_slices(interp.preds, interp.targs, site.to_numpy(), vocab=['a','b'])
    found = interp.compare_slices(by='site')
    assert found.index.name=='site' and found.value.tolist()==expected.value.tolist() and len(found)==3
    assert interp.compare_slices(['site','sex'], metric='f1_macro').index.names==['site','sex']
    with pytest.raises(ValueError, match="by='sit' is no column of the items: did you mean 'site'"):
        interp.compare_slices('sit')

def test_columns_of_a_table_are_as_they_were_before_its_procs():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(u=rng.normal(size=300), age=rng.integers(18, 80, 300).astype(float),
                           plan=['free','pro','team']*100))
    df['a'],df['b'] = (df.u>0).astype(int),(df.u>0.5).astype(int)
    dls = TabularDataLoaders.from_df(df, procs=[Categorify,Normalize], cat_names=['plan'], cont_names=['u','age'],
                                     y_names=['a','b'], y_block=MultiCategoryBlock(encoded=True, vocab=['a','b']),
                                     valid_idx=range(150))
    interp = MultiLabelInterpretation.from_learner(tabular_learner(dls, layers=[4]))
    codes = dls.valid.items.plan.tolist()
    for column in ('plan','age'):
        expected = compare_slices(interp.preds, interp.targs, df[column][:150].to_numpy(), vocab=['a','b'])
        assert interp.compare_slices(column).value.tolist()==expected.value.tolist()
    assert [*interp.compare_slices('plan').index]==['free','pro','team']
    assert interp.compare_slices('age').index[0].startswith('(17')
    assert dls.valid.items.plan.tolist()==codes

def test_values_of_items_are_matched_or_refused():
    "By a Series in another order, and by the name of a column of `items`"
    s,y,by = sliced()
    items = pd.DataFrame(dict(site=by))
    interp = MultiLabelInterpretation.from_preds(pd.DataFrame(s), pd.DataFrame(y), items=items)
    expected = compare_slices(s, y, by)
    for given in ('site', items.site, by):
        pd.testing.assert_frame_equal(interp.compare_slices(given), expected, check_names=False)
    assert len(interp.mistakes(groups='site'))==len(interp.mistakes(groups=items.site))==4
    shuffled = items.site.sample(frac=1, random_state=0)
    for f in (interp.compare_slices, lambda o: interp.mistakes(groups=o)):
        with pytest.raises(ValueError, match='and the predictions have different indexes'): f(shuffled)

def test_arguments_of_a_metric_that_slices_do_not_have_are_refused():
    s,y,by = sliced()
    for kwargs in (dict(labels=[1]), dict(thresh=0.1), dict(min_labels=1)):
        with pytest.raises(ValueError, match='labels and thresholds are those of the predictions'):
            compare_slices(s, y, by, metric=RecallMulti(average='micro', **kwargs))

@pytest.mark.parametrize('cls', [RecallMulti,PrecisionMulti])
def test_without_positives_nothing_is_known_of_recall_and_precision(cls):
    s,y,by = sliced()
    y[by==0] = 0
    y[np.flatnonzero(by==1)] = 0
    two = np.flatnonzero(by==1)[:2],0 # Two positives, both found, and no false positive
    s[by==1] = 0.1
    y[two],s[two] = 1,0.9
    t = compare_slices(s, y, by, metric=cls(average='micro'))
    assert t.result[0]=='too few' and t.value[1]==1 and t.low[1]<0.4

def test_a_good_slice_may_be_higher_because_of_a_bad_one():
    s,y,by = sliced(900)
    s[by==2] *= 0.3
    said = compare_slices(s, y, by).reading
    assert re.search(r'is lower in 2 by .*, and higher in .*, perhaps only because these include 2\.', said)

def test_any_columns_can_be_selected():
    t = compare_slices(*sliced())
    for columns in (['value'], ['value','result'], ['difference','result'], ['samples','difference_low']):
        part = t[columns]
        assert part.reading=='' and repr(part) and part._repr_html_()

# What is said comes true; the notebook has more of it

@pytest.mark.slow
@pytest.mark.parametrize('n_slices,c', [(3,5), (12,10)])
def test_equal_slices_differ_in_few_draws(n_slices, c):
    tables = [compare_slices(*sliced(400, c, n_slices, seed)) for seed in range(150)]
    assert np.mean([(t.result.isin(['lower','higher'])).any() for t in tables])<0.09
    assert np.mean([len(t.labels)>0 for t in tables])<0.09

@pytest.mark.slow
@pytest.mark.parametrize('metric', ['f1_micro','f1_samples'])
def test_intervals_of_slices_that_differ_contain_the_truth(metric):
    "All differences at once in 95 % of draws, each score in 95 %"
    rng = np.random.default_rng(0)
    def draw(n):
        by = rng.choice(4, n, p=[0.1,0.2,0.3,0.4])
        y = (rng.random((n, 8))<np.linspace(0.05, 0.4, 8)).astype(int)
        return 1/(1+np.exp(rng.normal(size=y.shape)-np.array([1,2,2,4])[by][:,None]*(y-0.5))),y,by
    truth = compare_slices(*draw(300_000), metric=metric)
    tables = [compare_slices(*draw(300), metric=metric) for _ in range(150)]
    def covers(what, low, high): return [(t[low]<=truth[what]) & (truth[what]<=t[high]) for t in tables]
    assert 0.91<np.mean([o.all() for o in covers('difference', 'difference_low', 'difference_high')])<=1
    assert 0.92<np.mean(covers('value', 'low', 'high'))<0.98
    assert np.mean([t.result[0]=='lower' for t in tables])>0.9

def test_many_samples_take_a_second():
    s,y,by = sliced(40_000, 20, 10)
    start = time.process_time()
    compare_slices(s, y, by)
    assert time.process_time()-start<2

@pytest.mark.parametrize('sites', [[0], [1,2,3,4]])
def test_a_label_is_not_compared_where_it_does_not_occur(sites):
    "Where it has no positive, its precision and F1 are 0, however good the model is"
    rng = np.random.default_rng(0)
    by = rng.integers(0, 5, 2000)
    y = (rng.random((2000, 3))<0.2).astype(int)
    y[~np.isin(by, sites),0] = 0
    s = 1/(1+np.exp(1-2*y-rng.normal(size=y.shape)))
    assert 0 not in compare_slices(s, y, by).labels.index.get_level_values('label')
    if len(sites)==1: return
    s[by==1,0] *= 0.6 # It fails in one of the slices in which it occurs
    found = compare_slices(s, y, by).labels.reset_index().set_index(['slice','label','metric']).loc[(1,0)]
    others = by>1
    assert found.elsewhere['f1']==pytest.approx(skm.f1_score(y[others,0], s[others,0]>0.5))

@pytest.mark.parametrize('name', ['label', 'difference', 'metric'])
def test_slices_may_be_named_like_a_column_of_the_labels(name):
    rng = np.random.default_rng(0)
    by = pd.Series(np.arange(600)%2, name=name)
    y = (rng.random((600, 2))<0.3).astype(int)
    s = np.where(by.to_numpy()[:,None]==1, 1-y, y)*0.6+0.2 # All wrong in slice 1
    t = compare_slices(s, y, by)
    assert 'lower in 1' in repr(t)
    t.plot()
    plt.close('all')
    found = t.labels
    assert [*found.index.names]==[name, 'label'] and (found.difference.abs()==1).all() and len(found)==12
