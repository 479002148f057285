"accuracy_report: its rows, baselines and intervals, and what it says"
import sklearn.metrics as skm
from scipy import stats
from helpers import *
from reference import *
from six_labels import SCORES, TARGS
from fastai_mlmetrics.core.messages import said
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.intervals import in_average, interval_table, numbers_by_label
from fastai_mlmetrics.reports.accuracy import measure, row_metrics

ROW_NAMES = ['accuracy_multi','accuracy_weighted','balanced_accuracy','subset_accuracy','jaccard_samples',
             'f1_micro','f1_macro','f1_weighted','f1_samples','ap_macro','roc_auc_macro','lrap']

@pytest.mark.slow
@given(binary_pairs(), st.data())
def test_lift_is_finite(arrays_, data):
    p,y = (o.astype(float) for o in arrays_)
    y[data.draw(arrays(bool, y.shape))] = -1
    if (y<0).all(): return
    with warnings_as('ignore'): r = accuracy_report(p, y, ignore_index=-1, ci=None)
    assert not np.isinf(r.lift).any()

@given(binary_pairs(min_labels=1), st.sampled_from([0., 0.3, 1., math.nan]), st.booleans(), st.data())
def test_the_columns_of_a_report_are_in_order(arrays_, zero_division, scored, data):
    "No value exceeds the ceiling, and where the baseline reaches it there is no lift"
    p,y = arrays_
    y = np.where(data.draw(arrays(bool, y.shape)), y, data.draw(st.sampled_from([y, 1, -1])))
    if (y<0).all(): return
    if scored: p = (p+np.random.default_rng(0).random(p.shape))/2
    with warnings_as('ignore'): r = accuracy_report(p, y, ignore_index=-1, zero_division=zero_division)
    assert not any((r[a]>r[b]).any() for a,b in (('low','value'), ('value','high'), ('value','ceiling')))
    assert not any((r[o]>r.ceiling+1e-12).any() for o in ('baseline','constant'))
    assert r.lift[np.isclose(r.baseline, r.ceiling)].isna().all() and not (r.lift>1).any()

def test_nothing_to_gain_is_no_lift():
    for n,c in ((4,1), (7,3), (50,30)):
        y = torch.ones(n, c)
        r = accuracy_report(torch.rand(n, c), y, ci=None)
        assert (r.baseline==r.ceiling)[['ap_macro','lrap']].all() and r.lift[['ap_macro','lrap']].isna().all()
        y[:,::2] = 0
        assert math.isnan(accuracy_report(torch.rand(n, c), y, ci=None).lift['ap_macro'])
        assert accuracy_report(torch.rand(n, c), 0*y, zero_division=0.3, ci=None).lift.isna().all()

def test_an_interval_does_not_end_at_the_ceiling_of_these_samples():
    "How many samples have a label varies, too: the interval is that of their share"
    y = TARGS*(torch.arange(300)%4==0)[:,None] # three of four samples have no label
    r = accuracy_report(y.long(), y)
    for row in ('f1_samples','jaccard_samples'):
        o = r.loc[row]
        share = stats.binomtest(round(o.value*300), 300).proportion_ci(0.95, 'wilson')
        assert o.value==o.ceiling<0.3 and (o.low,o.high)==pytest.approx([share.low,share.high], abs=1e-3)
    assert 'f1_samples (see `ceiling`).' in r.reading

def test_how_different_models_have_to_be_is_not_said():
    "It depends on the mistakes that they share"
    text = accuracy_report(SCORES, TARGS).reading
    assert 'differ' not in text and text.endswith('pass `groups=`, its ID for each sample.')

def test_a_list_in_a_sentence_ends_with_and():
    y = TARGS*(torch.arange(300)%4==0)[:,None]
    r = accuracy_report(y.long(), y)
    assert 'no model can reach 1 in jaccard_samples and f1_samples (see `ceiling`).' in r.reading
    absent = accuracy_report(SCORES, TARGS*(torch.arange(6)>0)).reading
    assert 'No interval for balanced_accuracy, macro F1, ap_macro and roc_auc_macro: at least one label' in absent

def test_binary_predictions_have_no_ranking():
    for p in (SCORES>0.5, (SCORES>0.5).int()):
        assert list(accuracy_report(p, TARGS).index)==ROW_NAMES[:-3]
    assert list(accuracy_report(SCORES, TARGS).index)==ROW_NAMES

def test_the_reading_has_numbers_in_words():
    "Counts have thousands separators, labels without names are 'label 0', and few samples are not 0 %"
    y = torch.zeros(5000, 3)
    y[:,0] = y[:9,1] = y[9:,2] = 1
    y[4988:] = 0
    scores = torch.full_like(y, 0.4)
    text = accuracy_report(scores, y, ci=0.999).reading
    limited = '12 of 5,000 samples have no label (scored as 0), so no model can reach 1 in jaccard_samples '
    for part in ('(99.9% interval', limited):
        assert part in text
    r = accuracy_report(scores[4000:4989], y[4000:4989], ci=None)
    assert '1 of 989 samples has no label and 1 of 3 labels never occurs (scored as 0), so no model can' in r.reading
    for vocab,constant in ((['0'], 'label 0'), ([30], 'label 30'), (['cat'], 'cat'), ([('a',1)], '(a, 1)')):
        about = accuracy_report(scores[:,:1], y[:,:1], vocab=vocab, ci=None).attrs['about']
        assert f'the same labels for every sample, here {constant}, ' in about

def test_the_reading_is_about_the_rows_that_are_shown():
    r = accuracy_report(SCORES, TARGS)
    o = r.loc['f1_micro']
    micro = (f'Micro F1 is {o.value:.3f} (95% interval {o.low:.3f} to {o.high:.3f}); the same labels for '
             f'every sample score {o.constant:.3f}.')
    acc = r.loc['accuracy_multi']
    independent = (' Samples are taken as independent: if some share a patient or a video, pass `groups=`, its '
                   'ID for each sample.')
    assert r.loc[['f1_micro']].reading==micro+independent and r.reading.startswith(f'{micro} accuracy_multi is ')
    assert f' predicting no label at all scores {acc.baseline:.3f}. ' in r.loc[['accuracy_multi','lrap']].reading
    assert f'; a random order scores {r.baseline["lrap"]:.3f}.' in r.loc[['lrap']].reading
    # F1 over samples, and what concerns it alone, only where it is shown
    assert 'f1_samples' not in r.loc[['f1_micro','f1_macro']].reading and 'no label' not in r.loc[['f1_micro']].reading
    assert r.loc[['f1_samples']].reading.startswith('f1_samples is ') and r.head(0).reading.strip()==independent.strip()
    assert micro in r.round(2).reading and 'Micro' not in repr(r[['value']].T)

def test_independence_is_said_once_per_process():
    first,second = (accuracy_report(SCORES, TARGS).reading for _ in range(2))
    assert 'independent' in first and 'independent' not in second and first.startswith(second)
    said.clear()
    without = accuracy_report(SCORES, TARGS, ci=None)
    assert 'independent' not in without.reading and 'independent' in accuracy_report(SCORES, TARGS).reading

@pytest.mark.parametrize('n,right', [(32,16), (150,3), (400,399), (1000,500)])
def test_the_interval_of_a_share_is_wilson_s(n, right):
    "With Student's quantile"
    p,t = np.zeros((n,3)),np.zeros((n,3), int)
    p[:right,0],t[:,0] = 0.9,1
    row = accuracy_report(p, t).loc['subset_accuracy']
    x = (np.arange(n)<right)-right/n
    s2,s4 = (x**2).sum(),(x**4).sum()
    free = min(max(2*s2**2/(s4-s2**2/n), 5), n-1) if s4-s2**2/n>1e-9 else n-1 # Satterthwaite's
    level = 2*stats.norm.cdf(stats.t.ppf(.975, free))-1
    share = stats.binomtest(right, n).proportion_ci(level, 'wilson')
    assert (row.low,row.high)==pytest.approx([share.low,share.high], abs=2/n**1.5)

ROWS = {
    'accuracy_multi': (AccuracyMulti, 'micro'),
    'accuracy_weighted':    (AccuracyMulti, 'weighted'),
    'balanced_accuracy':    (BalancedAccuracyMulti, 'macro'),
    'subset_accuracy':      (SubsetAccuracy, 'samples'),
    'jaccard_samples':     (JaccardMulti, 'samples'),
    **{f'f1_{a}': (F1ScoreMulti,a) for a in ('micro','macro','weighted','samples')}}

@given(binary_pairs(max_labels=3), st.sampled_from([0., 1., np.nan]), st.data())
def test_rows_are_metrics_of_predictions_zeros_and_constants(pair, zero_division, data):
    p,y = pair
    keep = data.draw(st.none() | arrays(bool, p.shape))
    if keep is not None: keep[0,0] = True
    targs = y if keep is None else np.where(keep, y, -1)
    report = accuracy_report(p, targs, ci=None, zero_division=zero_division, ignore_index=-1)
    valid = np.ones_like(y, bool) if keep is None else keep
    frequency = np.where(valid.any(0), (y*valid).sum(0)/np.maximum(valid.sum(0), 1), 0)
    order = np.argsort(-frequency, kind='stable')
    c = p.shape[1]
    constants = [np.broadcast_to(np.isin(range(c), order[:k]), p.shape).astype(int) for k in range(c+1)]
    with warnings_as('ignore'):
        f1s = [F1ScoreMulti(average='micro', ignore_index=-1)(o, targs) for o in constants]
        constant = constants[int(np.argmax(np.round(f1s, 12)))]
        for row,(cls,average) in ROWS.items():
            def ref(p): return reference(cls, y, p, average, keep, zero_division=zero_division)
            r = report.loc[row]
            same([r.value, r.baseline, r.ceiling, r.constant], [ref(p), ref(np.zeros_like(p)), ref(y), ref(constant)])

@pytest.mark.slow
def test_intervals_are_jackknife_intervals():
    logits,targs = simulate(250)
    r = accuracy_report(logits, targs, sigmoid=True)
    assert ((r.low<r.value) & (r.value<r.high)).all()
    p = r.value['subset_accuracy']
    normal = p + np.array([-1.96,1.96])*(p*(1-p)/250)**0.5
    same(r.loc['subset_accuracy',['low','high']].astype(float), normal, 0.008)
    # By hand: scikit-learn's values without each sample
    d,y = (logits>0).numpy().astype(int),targs.numpy().astype(int)
    for row,average in (('f1_samples','samples'), ('f1_macro','macro'), ('f1_micro','micro')):
        without = np.array([
            skm.f1_score(np.delete(y, i, 0), np.delete(d, i, 0), average=average, zero_division=0)
            for i in range(250)])
        se = (249/250*((without-without.mean())**2).sum())**0.5
        low,high = r.loc[row,['low','high']].astype(float)
        assert 1.9*se<(high-low)/2<2.7*se
    wide = accuracy_report(logits, targs, sigmoid=True, ci=0.99)
    assert (wide.high-wide.low>r.high-r.low)[wide.low.notna()].all()
    assert wide.equals(accuracy_report(logits, targs, sigmoid=True, ci=0.99))

@pytest.mark.slow
def test_intervals_cover():
    """Coverage for rare labels in few samples: a percentile bootstrap covered the true balanced accuracy
    in half of the simulations, and macro F1 in fewer"""
    freq = torch.linspace(0.03, 0.4, 12)
    gen = torch.Generator().manual_seed(0)
    def draw(n):
        y = (torch.rand(n, 12, generator=gen)<freq).float()
        return torch.randn(n, 12, generator=gen) + 3*y - 2,y
    truth = accuracy_report(*draw(200000), sigmoid=True, ci=None).value
    rows = ['accuracy_multi','balanced_accuracy','subset_accuracy',
            'f1_micro','f1_macro','f1_weighted','f1_samples']
    reports = [accuracy_report(*draw(100), sigmoid=True) for _ in range(100)]
    hits = [((r.low<=truth) & (truth<=r.high)).where(r.low.notna()) for r in reports] # Without an interval: nan
    assert (pd.DataFrame(hits)[rows].astype(float).mean()>=0.88).all()

def test_intervals_stay_between_0_and_1():
    y = simulate(60)[1].long()
    r = accuracy_report(y, y)
    below_1 = ['f1_samples','jaccard_samples','f1_macro','balanced_accuracy']
    assert r.high.drop(below_1).dropna().eq(1).all()
    assert 0.9<r.low['subset_accuracy']<1 # all samples are correct
    r = accuracy_report(1-y, y)
    assert r.low['subset_accuracy']==0<r.high['subset_accuracy']<0.1
    r = accuracy_report(y[:2], y[:2])
    assert r.low.dropna().between(0, 1).all() and (r.low<=r.high).where(r.low.notna(), True).all()

def test_perfection_on_mostly_unlabelled_data_has_a_low_ceiling():
    y = torch.zeros(100, 6, dtype=torch.long)
    y[:5,0] = 1
    r = accuracy_report(y, y)
    same(r.loc[['f1_samples','f1_macro'], ['value','ceiling']], [[0.05]*2, [1/6]*2])
    assert '95 of 100 samples have no label' in r.reading
    same(accuracy_report(y, y, zero_division=math.nan).value['f1_samples'], 1)

def test_the_reading_names_the_constant_that_is_scored():
    y = torch.zeros(11, 130, dtype=torch.long)
    y[:6,9] = y[6:,:4] = 1
    for i in range(6): y[i,10+20*i:30+20*i] = 1
    r = accuracy_report(y, y, ci=None)
    names = [int(o) for o in r.attrs['about'].split(' here labels ')[1].split(', `ceiling`')[0].split(', ')]
    p = torch.zeros_like(y)
    p[:,names] = 1
    same(F1ScoreMulti(average='samples')(p, y), r.constant['f1_samples'])

def test_ignored_elements_count_nowhere():
    y = tensor([[1,0,math.nan]]*10 + [[math.nan]*3]*10)
    r = accuracy_report((y==1).long(), y, ignore_index=math.nan)
    assert 'accuracy_multi is 1.000 (95% interval 0.661 to 1.000)' in r.reading # Of 10 samples
    assert 'balanced_accuracy (at' not in r.reading
    assert ' 1 of 2 labels never occurs (scored as 0), so no model' in r.reading
    with pytest.raises(ValueError, match='all targets are ignored'):
        accuracy_report(y, y*math.nan, ignore_index=math.nan)

@pytest.mark.parametrize('n,c', [(1,3), (2,1), (30,1), (3,200)])
def test_odd_sizes_have_values(n, c):
    logits,targs = simulate(n, c)
    r = accuracy_report(logits.half(), TensorCategory(targs), sigmoid=True, vocab=range(c))
    assert r.value.drop('roc_auc_macro').notna().all() and r.reading

def test_mistakes_are_named():
    logits,targs = simulate(50)
    with pytest.raises(ValueError, match='there are no samples'):
        accuracy_report(logits[:0], targs[:0], sigmoid=True)
    with pytest.raises(ValueError, match='19 names.*20 labels'):
        accuracy_report(logits, targs, sigmoid=True, vocab=range(19))
    with pytest.raises(ValueError, match='must be 0 or 1'): accuracy_report(logits, targs*2, sigmoid=True)
    logits[3,4] = math.nan
    with pytest.warns(UserWarning, match='NaN in 1 sample,'): r = accuracy_report(logits, targs, sigmoid=True)
    assert r.value.isna().all() and r.baseline.notna().all() and 'NaN' in r.reading

@pytest.mark.parametrize('right', [True, False])
def test_ignored_samples_do_not_narrow_an_interval(right):
    logits,targs = simulate(30, 6, density=0.3)
    if right: logits = 8*targs-4
    more,missing = (torch.cat([o, torch.full((60,6), v)]) for o,v in ((logits,9.), (targs,-1.)))
    few = accuracy_report(logits, targs, sigmoid=True)
    said.clear()
    all_ = accuracy_report(more, missing, sigmoid=True, ignore_index=-1)
    pd.testing.assert_frame_equal(few, all_)
    assert few.reading==all_.reading

RANKING = skm.average_precision_score,skm.roc_auc_score,skm.label_ranking_average_precision_score

@pytest.mark.slow
def test_rankings_have_random_and_constant_baselines():
    logits,targs = simulate(200, 5, density=0.3)
    r = accuracy_report(logits, targs, sigmoid=True)
    y,s = targs.double().numpy(),logits.double().numpy()
    same(r.value[-3:], [f(y, s) for f in RANKING], 1e-9)
    rng,n = np.random.default_rng(0),60
    random = np.mean([[f(y, s) for f in RANKING] for s in rng.random((n,*y.shape))], 0)
    same(r.baseline[-3:], random, 0.01)
    by_frequency = skm.label_ranking_average_precision_score(y, np.tile(y.mean(0), (200,1)))
    same(r.constant[-3:], [y.mean(), 0.5, by_frequency], 1e-9)
    same(r.ceiling[-3:], 1)
    assert r.value['ap_macro']>r.baseline['ap_macro']
    each = [skm.label_ranking_average_precision_score([a], [b]) for a,b in zip(y, s)]
    bootstrap = [rng.choice(each, 200).mean() for _ in range(2000)]
    same(r.loc['lrap',['low','high']].astype(float), np.quantile(bootstrap, [0.025,0.975]), 0.01)
    assert 'ap_macro' not in accuracy_report(logits>0, targs).index

def test_rankings_of_absent_labels_have_a_ceiling():
    logits,targs = simulate(30, 4)
    targs[:,0],targs[:5],targs[5:9,1] = 0,0,math.nan
    r = accuracy_report(logits, targs, sigmoid=True, ignore_index=math.nan)
    same(r.value['ap_macro'], APScoreMulti(ignore_index=math.nan)(logits, targs))
    same(r.value['lrap'], LRAP(ignore_index=math.nan)(logits, targs))
    assert r.ceiling['ap_macro']==0.75 and 'no model can reach 1 in ap_macro' in r.loc[['ap_macro']].reading
    assert 0<r.baseline['ap_macro']<0.5<r.baseline['lrap']<1

@pytest.mark.slow
@pytest.mark.parametrize('ignored', [False,True])
@pytest.mark.parametrize('sizes', [(1200,5), (70,300)])
def test_blocks_do_not_change_a_report(monkeypatch, ignored, sizes):
    from fastai_mlmetrics.core import predictions
    models,y = two_models(*sizes)
    if ignored:
        y[torch.rand(*sizes, generator=torch.Generator().manual_seed(1))<0.1] = -1
        y[5:40] = -1
    whole = accuracy_report(models['a'], y, sigmoid=True, ignore_index=-1)
    monkeypatch.setattr(predictions, '_BLOCK', 300)
    pd.testing.assert_frame_equal(accuracy_report(models['a'], y, sigmoid=True, ignore_index=-1), whole, rtol=1e-9)

def test_the_better_baseline_is_named():
    "Predicting nothing is not the best constant if a label is true in more than half of the samples"
    logits,targs = simulate(400, 6, density=0.2)
    def row(targs, preds=logits):
        r = accuracy_report(preds, targs, sigmoid=True, ci=None)
        return r.loc['accuracy_multi'],r.reading
    acc,text = row(targs)
    assert acc.constant<=acc.baseline and f'; predicting no label at all scores {acc.baseline:.3f}.' in text
    targs[:,0] = (torch.arange(400)%10>0).float()
    logits[:,0] = 4*targs[:,0]-2
    acc,text = row(targs)
    assert acc.constant==max(((targs.mean(0)>0.5).float()==targs).double().mean().item(), acc.baseline)
    assert f'accuracy_multi is {acc.value:.3f}; the same labels for every sample score {acc.constant:.3f}.' in text

def test_saturated_logits_are_ranked_by_the_logits():
    "Their sigmoids are all 1"
    _,y = two_models()
    logits = 30 + y + torch.rand(y.shape, generator=torch.Generator().manual_seed(0))/2
    r = accuracy_report(logits, y, sigmoid=True)
    assert r.value['lrap']==LRAP()(logits, y)==1

@pytest.mark.slow
def test_a_report_makes_no_copy():
    "Nor float64 tables of the arrays' size"
    p,y = torch.rand(8000, 600),(torch.rand(8000, 600)<0.02).float()
    accuracy_report(p[:1000], y[:1000])
    assert peak_of(accuracy_report, p, y) < 8*p.numel()/2**20

def test_a_report_names_its_threshold():
    r = accuracy_report(SCORES, TARGS, thresh=0.1534, min_labels=1)
    assert lines(r)[0].startswith('thresh=0.153 ') and lines(r)[1].startswith('min_labels=1')
    assert 'thresh=0.153' in r._repr_html_() and 'min_labels=1' in r._repr_html_()
    assert 'thresh=0.153' in repr(r[['value']].head(2))
    r = accuracy_report(SCORES, TARGS, thresh=[0.1,0.2,0.3,0.4,0.5,0.612])
    assert lines(r)[0].startswith('thresh=0.1 to 0.612 ') and 'min_labels' not in repr(r)
    of_binary = accuracy_report(SCORES>0.5, TARGS)
    assert 'thresh' not in repr(of_binary).replace('threshold', '') # binary predictions have none

@pytest.mark.parametrize('kw', [dict(), dict(thresh=0.1534, min_labels=1), dict(thresh=[0.03123]*5+[0.6123])])
def test_a_report_is_whole_in_a_terminal(kw):
    r = accuracy_report(SCORES, TARGS, **kw)
    assert max(map(len, lines(r)))<=80 and '\\' not in repr(r)
    assert not re.search(r'\d\.\d{4}', repr(r).replace('0.0312', ''))
    assert len(lines(r))<30

def test_a_report_of_many_labels_is_short():
    y = torch.ones(10, 1000)
    r = accuracy_report(y, y, vocab=[f'label {i}' for i in range(1000)], ci=None)
    assert 'label 5 and 994 more' in r.attrs['about'] and len(r.reading)<600

def test_the_baseline_by_kind_of_row():
    r = accuracy_report(SCORES, TARGS, ci=None)
    assert list(r.columns)==['value','low','high','baseline','constant','ceiling','lift']
    assert r.baseline['accuracy_multi']==pytest.approx(1-TARGS.mean().item())
    assert r.baseline['f1_samples']==0 and r.baseline['roc_auc_macro']==0.5
    random = [np.random.default_rng(i).random(TARGS.shape) for i in range(200)]
    aps = [skm.average_precision_score(TARGS, o, average='macro') for o in random]
    assert r.baseline['ap_macro']==pytest.approx(np.mean(aps), abs=0.005)
    assert 'predicting no label at all scores' in r.reading and 'the same labels for every sample score' in r.reading

Y = tensor([[1,0,0], [1,1,0], [0,1,0], [0,0,0], [1,0,0]])
P = tensor([[.9,.1,.2], [.8,.3,.7], [.6,.6,.1], [.2,.9,.4], [.3,.2,.3]])

def known(**kwargs): return Predictions.of(P, Y.where(tensor([[1,1,1], [1,0,0], [1,1,1], [1,1,1], [0,0,0]])>0, -1),
                                           ignore_index=-1, **kwargs)

def test_most_observations_by_row():
    "There is no interval if nothing is known of a label; one whose targets are all ignored is none"
    def n_max(p): return {row: o.n_max for row,o in measure(p, 0.95).items() if o.n_max<math.inf}
    macro = 'ap_macro','balanced_accuracy','f1_macro','roc_auc_macro'
    for p in (Predictions.of(P, Y),known()): assert [row for row,n in sorted(n_max(p).items()) if not n]==[*macro]
    p = Predictions.of(P, Y.where(tensor(1,1,0)>0, -1), ignore_index=-1)
    true,predicted,false = numbers_by_label(p)
    of_pairs = 3*in_average(1/(1/true+1/false)) # Pairs of a positive and a negative
    assert n_max(p)==pytest.approx(dict(
        ap_macro=in_average(true), f1_macro=in_average(true+predicted), balanced_accuracy=of_pairs,
        roc_auc_macro=of_pairs, f1_micro=(true+predicted).sum().item(), f1_weighted=in_average(true+predicted, true)))
    limits = interval_table(measure(known(), 0.95), 0.95)[['low','high']]
    assert limits.loc[[*macro]].isna().all(axis=None) and limits.notna().all(1).sum()==8

@pytest.mark.parametrize('zero_division', [0.,1.,0.3,math.nan])
def test_rows_are_those_of_metrics(zero_division):
    p = known(zero_division=zero_division)
    values = interval_table(measure(p, None), None).value
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
    for o in measure(p, 0.95).values(): assert o.groups.tolist()==[0,0,1,1] and len(o.without)==4
    for o in measure(known(), 0.95).values(): assert o.groups is None

def test_values_without_a_sample_are_quiet():
    "0/0 without the only positive, or without the only sample of a label, is no warning"
    with warnings_as('error'):
        for p in (known(), Predictions.of(P[:2], Y[:2]), Predictions.of(P[:1], Y[:1])): measure(p, 0.95)

@pytest.mark.parametrize('ci', [0, 1, 1., -0.5, 95])
def test_a_confidence_level_lies_between_0_and_1(ci):
    with pytest.raises(ValueError, match=f'ci={ci} should be between 0 and 1'): measure(known(), ci)

@pytest.mark.parametrize('n,has_intervals', [(1,False), (2,True)])
def test_intervals_need_two_samples(n, has_intervals):
    p = Predictions.of(P[:n], Y[:n])
    limits = interval_table(measure(p, 0.95), 0.95)
    assert limits.low.notna().any()==has_intervals
    assert all(o.without is None for o in measure(p, None).values())
    reading = accuracy_report(P[:1], Y[:1]).reading
    assert 'No intervals: only one sample or group has known targets.' in reading

def test_nan_predictions_have_no_value():
    p = Predictions.of(P.masked_fill(P>0.8, math.nan), Y)
    with pytest.warns(UserWarning, match='NaN in 2 samples'): measured = measure(p, 0.95)
    assert all(math.isnan(o.value) and o.without is None for o in measured.values())
    assert [*measured]==[*measure(known(), None)]

def test_without_intervals_nothing_is_computed_again(monkeypatch):
    monkeypatch.setattr('fastai_mlmetrics.metrics.intervals._label_ranking', None)
    monkeypatch.setattr('fastai_mlmetrics.metrics.intervals.scores_without', None)
    measure(known(), None)

# Other label frequencies than here

def weights(y, frequencies):
    "A weight per pair: positives p'/p, negatives (1-p')/(1-p)"
    w = np.ones(y.shape)
    for i,f in frequencies.items(): w[:,i] = np.where(y[:,i], f/y[:,i].mean(), (1-f)/(1-y[:,i].mean()))
    return w

def test_scores_at_other_frequencies_are_weighed():
    y,s = TARGS.int().numpy(),SCORES.double().numpy()
    frequencies = {1: 0.01, 3: 0.2}
    w = weights(y, frequencies)
    r = accuracy_report(SCORES, TARGS, frequencies={'b': 0.01, 'd': 0.2}, vocab=list('abcdef'))
    plain = accuracy_report(SCORES, TARGS)
    flat = dict(sample_weight=w.ravel())
    same(r.value['f1_micro'], skm.f1_score(y.ravel(), s.ravel()>0.5, **flat))
    same(r.value['accuracy_multi'], skm.accuracy_score(y.ravel(), s.ravel()>0.5, **flat))
    def macro(f, s): return np.mean([f(y[:,i], s[:,i], sample_weight=w[:,i]) for i in range(6)])
    same(r.value['f1_macro'], macro(skm.f1_score, s>0.5))
    same(r.value['ap_macro'], macro(skm.average_precision_score, s), 1e-9)
    same(r.value['ap_macro'], accuracy_report(SCORES, TARGS, frequencies=frequencies, ci=None).value['ap_macro'], 1e-12)
    same(r.loc['roc_auc_macro'], plain.loc['roc_auc_macro'])
    # So are predicting nothing, and the same labels for every sample
    same(r.baseline['accuracy_multi'], ((1-y)*w).mean())
    order = (y*w).mean(0).argsort()[::-1]
    constants = [np.tile(np.isin(range(6), order[:k]), 300) for k in range(1, 7)]
    same(r.constant['f1_micro'], max(skm.f1_score(y.ravel(), o, **flat) for o in constants))
    assert (r.low<r.value)[r.value.notna()].all() and r.ceiling['f1_micro']==1
    one_each = accuracy_report(SCORES, TARGS, frequencies=[*TARGS.mean(0).tolist()])
    over_samples = ['subset_accuracy','jaccard_samples','f1_samples','lrap']
    same(one_each.value.drop(over_samples), plain.value.drop(over_samples), 1e-6)
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS)
    assert interp.accuracy_report(frequencies=frequencies).equals(r)

def test_rows_over_samples_have_no_value_at_other_frequencies():
    r = accuracy_report(SCORES, TARGS, frequencies={0: 0.01, 2: 0.02})
    over_samples = ['subset_accuracy','jaccard_samples','f1_samples','lrap']
    assert [*r.index[r.value.isna()]]==over_samples and r.loc[over_samples].isna().all(axis=None)
    assert r.reading.count('Averages over samples have no value')==1 and 'f1_samples' not in r.reading
    assert 'no value' in r.loc[['lrap']].reading and 'no value' not in r.loc[['f1_micro']].reading
    assert 'of 0.01 of label 0 and 0.02 of label 2; the other labels keep' in r.loc[['f1_micro']].reading
    of_binary = accuracy_report(SCORES>0.5, TARGS, frequencies={0: 0.01})
    assert [*of_binary.index]==ROW_NAMES[:-3] and of_binary.value['f1_micro']>0
    with pytest.raises(ValueError, match='should be above 0'): accuracy_report(SCORES, TARGS, frequencies={0: 5})

def test_without_a_false_positive_nobody_knows_how_many_there_are():
    "Each would count as many positives"
    y = (np.arange(400)%2)[:,None]
    perfect = accuracy_report(y, y, frequencies=[0.001])
    assert perfect.value['f1_micro']==1 and perfect.low['f1_micro']<0.4 and perfect.low['accuracy_multi']>0.98
    assert accuracy_report(y, y).low['f1_micro']>0.98

def test_scores_of_one_class_are_named():
    "As judge names them"
    with pytest.warns(UserWarning, match='scores of each sample sum to 1, as those of a softmax'):
        accuracy_report(torch.randn(60, 4).softmax(1), (torch.rand(60, 4)<0.3).float(), ci=None)
    with warnings_as('error'):
        accuracy_report(SCORES, TARGS, ci=None)
        accuracy_report(torch.ones(60, 1), torch.ones(60, 1), ci=None)
