"compare_models: differences and their intervals"
from scipy import stats
from helpers import *
from fastai_mlmetrics.core.predictions import Predictions
from six_labels import SCORES, TARGS
from fastai_mlmetrics.metrics.intervals import Estimate, interval_table, simultaneous_level
from fastai_mlmetrics.reports.accuracy import measure
from fastai_mlmetrics.reports.comparison import _subtract, ModelComparison

INDEPENDENT = ('Samples are taken as independent: if some share a patient or a video, pass '
               '`groups=`, its ID for each sample.')

def limits(t): return t[['low','high']].dropna()

def test_differences_are_those_of_reports():
    models,y = two_models()
    t = compare_models(models, y, sigmoid=True)
    assert list(t)==['a','b','difference','low','high']
    reports = {k: accuracy_report(o, y, sigmoid=True) for k,o in models.items()}
    for k,r in reports.items(): pd.testing.assert_series_equal(t[k], r.value, check_names=False)
    assert (t.difference==t.b-t.a).all() and [*t.index]==[*reports['a'].index]
    assert t.low.notna().all()
    within = limits(t)
    assert (within.low<t.difference[within.index]).all() and (t.difference[within.index]<within.high).all()
    # Narrower than what two intervals leave open
    a,b = reports.values()
    assert (t.high-t.low < (a.high-a.low)+(b.high-b.low))[within.index].all()

def test_models_may_be_compared_at_other_frequencies():
    models,y = two_models()
    args = dict(sigmoid=True, frequencies={0: 0.001, 7: 0.02})
    t = compare_models(models, y, **args)
    for name,preds in models.items():
        np.testing.assert_allclose(t[name], accuracy_report(preds, y, ci=None, **args).value[t.index], atol=1e-9)
    assert (t.low<t.difference)[t.difference.notna()].all() and t.difference.isna().any()

@pytest.mark.parametrize('n', [100,2000])
def test_intervals_are_those_of_a_paired_t_test(n):
    "Of means over samples"
    models,y = two_models(n)
    t = compare_models(models, y, sigmoid=True, thresh=[0.5]*8) # Not compared at other thresholds
    right = {k: ((o>0)==y.bool()).all(1).double().numpy() for k,o in models.items()}
    per_sample = JaccardMulti(average='samples').values
    def jaccard(p, y): return per_sample(*((a & b).sum(1).double() for a in (p, ~p) for b in (y, ~y)))
    overlap = {k: jaccard(o>0, y.bool()).numpy() for k,o in models.items()}
    reports = [measure(Predictions.of(o, y, sigmoid=True), 0.95) for o in models.values()]
    level = simultaneous_level(_subtract(reports[1], reports[0]).values(), 0.95)
    assert 0.98<level<1-0.05/12
    for row,x in (('subset_accuracy',right), ('jaccard_samples',overlap)):
        expected = stats.ttest_rel(x['b'], x['a']).confidence_interval(level)
        # Degrees of freedom are fewer where few samples differ
        np.testing.assert_allclose(t.loc[row,['low','high']].astype(float), expected, atol=0.4/n)

@pytest.mark.slow
def test_intervals_are_those_of_a_bootstrap():
    models,y = two_models(400)
    a,b = (measure(Predictions.of(o, y, sigmoid=True), 0.95) for o in models.values())
    t = interval_table(_subtract(b, a), 0.95) # Of single rows
    rng,rows = np.random.default_rng(0),['f1_micro','f1_samples','f1_macro','f1_weighted']
    draws = []
    for _ in range(300):
        i = rng.integers(0, 400, 400)
        draws.append([F1ScoreMulti(average=row[3:])(models['b'][i], y[i])
                      - F1ScoreMulti(average=row[3:])(models['a'][i], y[i]) for row in rows])
    expected = np.quantile(draws, [0.025,0.975], axis=0).T
    np.testing.assert_allclose(t.loc[rows,['low','high']].astype(float), expected, atol=0.012)

def test_the_same_model_twice_has_no_difference():
    (a,_),y = two_models()[0].values(),two_models()[1]
    t = compare_models(dict(a=a, b=a.clone()), y, sigmoid=True)
    assert (t.difference==0).all() and (limits(t)==0).all(axis=None)
    assert t.reading=='b and a have the same scores.\n'+INDEPENDENT

def test_swapped_models_negate():
    models,y = two_models()
    t,u = (compare_models({k: models[k] for k in o}, y, sigmoid=True) for o in ('ab','ba'))
    pd.testing.assert_series_equal(t.difference, -u.difference)
    pd.testing.assert_series_equal(t.low, -u.high, check_names=False)
    assert 'b is better than a in micro F1 by' in t.reading
    assert 'a is worse than b in micro F1 by' in u.reading

def test_a_constant_difference_has_an_interval():
    "One model is always right, the other one never"
    y = two_models(100)[1].long()
    r = compare_models(dict(a=1-y, b=y), y).loc['subset_accuracy']
    assert r.difference==r.high==1 and 0.9<r.low<1

@pytest.mark.slow
@given(st.integers(1,12), st.integers(1,4), st.integers(0,2**20), st.booleans(), st.sampled_from([0.,1.,math.nan]))
def test_a_difference_is_within_its_interval(n, c, seed, scored, zero_division):
    rng = np.random.default_rng(seed)
    models = {k: rng.random((n,c)).round(1) if scored else rng.integers(0, 2, (n,c)) for k in ('a','b')}
    y = rng.integers(-1, 2, (n,c))
    y[0,0] = 1
    with warnings_as('ignore'):
        t = compare_models(models, y, ignore_index=-1, zero_division=zero_division)
        reports = [accuracy_report(o, y, ignore_index=-1, zero_division=zero_division).value for o in models.values()]
    pd.testing.assert_series_equal(t.difference, reports[1]-reports[0], check_names=False)
    o = t.dropna()
    assert ((-1<=o.low) & (o.low<=o.difference) & (o.difference<=o.high) & (o.high<=1)).all()
    assert t.reading and repr(t)

def test_ignored_targets_count_nowhere():
    models,y = two_models()
    more = {k: torch.cat([o, torch.randn(50, 8)]) for k,o in models.items()}
    missing = torch.cat([y, torch.full((50,8), math.nan)])
    t,u = compare_models(models, y, sigmoid=True),compare_models(more, missing, sigmoid=True, ignore_index=math.nan)
    pd.testing.assert_frame_equal(t, u)

def test_each_model_may_have_its_threshold():
    models,y = two_models()
    by_label = np.linspace(0.2, 0.6, 8)
    thresh = dict(a=0.3, b=by_label)
    t = compare_models(models, y, sigmoid=True, thresh=thresh)
    for k,o in models.items():
        r = accuracy_report(o, y, sigmoid=True, thresh=thresh[k])
        pd.testing.assert_series_equal(t[k], r.value, check_names=False)
    probs = {k: o.sigmoid() for k,o in models.items()}
    best = {k: best_thresholds(o, y, average=a) for (k,o),a in zip(probs.items(), ('micro','macro'))}
    of_best = compare_models(probs, y, thresh=best)
    assert of_best.b['f1_macro']==accuracy_report(probs['b'], y, thresh=best['b']).value['f1_macro']

def test_the_thresholds_in_use_are_named():
    models,y = two_models()
    def last(models=models, **kw):
        about = compare_models(models, y, **kw).attrs['about']
        return about[about.index('Predicted'):]
    assert last(sigmoid=True)=='Predicted: a at thresh=0.5; b at thresh=0.5.'
    assert last(sigmoid=True, thresh=dict(a=0.3, b=[0.2]*7+[0.6]))==\
        'Predicted: a at thresh=0.3; b at thresh=0.2 to 0.6 by label.'
    assert last(sigmoid=True, max_labels=1).startswith('Predicted: a at thresh=0.5, max_labels=1; b ')
    binary = {k: (o>0).int() for k,o in models.items()}
    assert last(binary)=='Predicted: a as binary predictions; b as binary predictions.'
    assert last(dict(a=models['a'].sigmoid(), b=binary['b']))=='Predicted: a at thresh=0.5; b as binary predictions.'

def test_thresholds_by_label_are_for_all_models():
    "A dict whose keys are labels is for all models"
    models,y = two_models()
    names = [f'label {i}' for i in range(8)]
    by_label = dict(zip(names[::-1], np.linspace(0.2, 0.6, 8)))
    t = compare_models(models, y, sigmoid=True, vocab=names, thresh=by_label)
    r = accuracy_report(models['b'], y, sigmoid=True, vocab=names, thresh=by_label)
    pd.testing.assert_series_equal(t.b, r.value, check_names=False)

def test_more_models_are_compared_with_the_first():
    models,y = two_models()
    t = compare_models(dict(**models, c=models['b']+1), y, sigmoid=True)
    assert list(t)==['a','b','c','difference','low','high'] and [*t.index.levels[0]]==['b','c']
    two = compare_models(models, y, sigmoid=True)
    pd.testing.assert_frame_equal(t.loc['b'][['a','b','difference']], two[['a','b','difference']])
    wider = (t.loc['b'].high-t.loc['b'].low)/(two.high-two.low) # More intervals hold at once
    assert ((1<wider) & (wider<1.15)).all()
    assert t.reading.startswith('b is better than a') and '\nc is ' in t.reading
    assert isinstance(t, ModelComparison) and 'b is better' in t._repr_html_()

def test_scores_are_compared_with_binary_predictions():
    models,y = two_models()
    t = compare_models(dict(a=models['a'].sigmoid(), b=(models['b']>0).int()), y)
    assert 'lrap' not in t.index and t.difference.notna().all()

def test_plot_is_in_the_order_of_the_table():
    models,y = two_models()
    for t in (compare_models(models, y, sigmoid=True), compare_models(models, y, sigmoid=True, ci=None),
              compare_models(dict(**models, c=models['a']), y, sigmoid=True)):
        ax = plt.subplots()[1]
        t.plot(ax)
        rows = [*dict.fromkeys(t.index.get_level_values(-1))]
        assert [o.get_text() for o in ax.get_yticklabels()]==rows and ax.get_ylim()[0]>ax.get_ylim()[1]
        assert min(o.get_fontsize() for o in ax.get_yticklabels())>=8
        plt.close(ax.figure)
    t = compare_models({'$a$':models['a'], '$b':models['b']}, y, sigmoid=True)
    t.plot()
    plt.gcf().canvas.draw()

def test_without_intervals_no_difference_is_called_chance():
    models,y = two_models()
    assert compare_models(models, y, sigmoid=True, ci=None).reading==(
        'Without intervals (ci=None), it is unknown which differences may be chance.')

def test_mistakes_in_a_comparison_are_named():
    models,y = two_models()
    def fails(match, *args, error=ValueError, **kw):
        with pytest.raises(error, match=match): compare_models(*args, sigmoid=True, **kw)
    fails('dict of two models or more', models['a'], y)
    fails('dict of two models or more', dict(a=models['a']), y)
    fails(r"model 'b': predictions have the shape \(199, 8\)", dict(a=models['a'], b=models['b'][1:]), y)
    fails('ci=95', models, y, ci=95)
    fails(r"\['low'\] are columns", dict(a=models['a'], low=models['b']), y)
    fails(r"has \['a', 'c'\]: pass one threshold for each of", models, y, thresh=dict(a=0.5, c=0.5))
    models['b'] = models['b'].clone()
    models['b'][0,0] = math.nan
    with pytest.warns(UserWarning, match='NaN in 1 sample'): t = compare_models(models, y, sigmoid=True)
    assert t.b.isna().all() and t.a.notna().all() and limits(t).empty
    assert t.reading=='b and a cannot be compared: some predictions are NaN.'

def test_thresholds_go_with_the_columns_of_the_first_table():
    "However the tables of the other models are sorted"
    models,y = two_models()
    names = [f'label{i}' for i in range(y.shape[1])]
    one,other = (pd.DataFrame(o.sigmoid().numpy(), columns=names) for o in models.values())
    targs = pd.DataFrame(y.int().numpy(), columns=names)
    thresh = tuple(np.linspace(0.2, 0.7, len(names)))
    expected = compare_models(dict(a=one, b=other), targs, thresh=thresh)
    pd.testing.assert_frame_equal(compare_models(dict(a=one, b=other[names[::-1]]), targs, thresh=thresh), expected)
    weighed = compare_models(dict(a=one, b=other), targs, frequencies={'label0': 0.01})
    assert 'Scores are weighted to a frequency of 0.01 of label0' in weighed.reading

def test_rows_that_are_read_most_are_named_first():
    from fastai_mlmetrics.reports.comparison import _rows_in_words
    rows = ['lrap','subset_accuracy','accuracy_multi','f1_macro','f1_micro']
    table = pd.DataFrame(dict(difference=0.2, low=0.1, high=0.3), index=rows)
    limits = 'by 0.200 (0.100 to 0.300)'
    assert _rows_in_words(table)==f'micro F1 {limits}, macro F1 {limits}, accuracy_multi {limits} and 2 more'
    assert _rows_in_words(table.iloc[:2])==f'lrap {limits} and subset_accuracy {limits}'

def test_the_reading_of_a_comparison_is_about_the_rows_that_are_shown():
    models,y = two_models()
    t = compare_models(models, y, sigmoid=True)
    o = t.loc['f1_micro']
    only = f'b is better than a in micro F1 by {o.difference:.3f} ({o.low:.3f} to {o.high:.3f}).'
    at_one = ('All models use the same threshold, which may favour one of them in F1: tune one for each, on samples '
              "that are not compared here, and pass `thresh` as a dict, `{'a': thresh_a, 'b': thresh_b}`.")
    assert t.loc[['f1_micro']].reading==f'{only}\n{at_one} {INDEPENDENT}' and only in repr(t.loc[['f1_micro']])
    tuned = compare_models(models, y, sigmoid=True, thresh=dict(a=0.3, b=0.4))
    assert all(at_one not in o for o in (t.loc[['ap_macro']].reading, tuned.reading))
    assert t[['a','b']].reading=='' and repr(t.T) and repr(t[['difference','low','high']])
    again = compare_models(dict(**models, c=models['a']), y, sigmoid=True)
    assert again.loc[['c']].reading=='c and a have the same scores.' and repr(again.loc['b'])

def test_a_comparison_has_three_decimals():
    "Also of a difference of a single mistake, which other tables show in three digits"
    rng = np.random.default_rng(0)
    y = rng.random((1000,8))<0.3
    probs = np.clip(y*0.5+rng.random(y.shape)*0.6, 0, 1)
    one_more = probs.copy()
    one_more[tuple(np.argwhere(y & (probs>0.5))[0])] = 0.1
    t = compare_models(dict(a=probs, b=one_more), y)
    assert t.difference['accuracy_multi']==pytest.approx(-1/8000)
    shown = t.to_string(float_format=t.formatted)
    for text in (shown, repr(t).partition('\n\n')[0], t._repr_html_().partition('<p')[0]):
        numbers = re.findall(r'-?\d\.\d+', text)
        assert len(numbers)>=5*len(t)-10 and all(re.fullmatch(r'-?\d\.\d{3}', o) for o in numbers)
        assert '-0.000' not in text
    assert '-0.000125' in repr(accuracy_report(probs, y)[:1].assign(lift=-1/8000))

def test_the_reading_goes_by_the_intervals_of_the_table():
    "Which hold at once, and are wider than a single row's"
    models,y = two_models(120, gain=0.2)
    t = compare_models(models, y, sigmoid=True)
    a,b = (measure(Predictions.of(o, y, sigmoid=True), 0.95) for o in models.values())
    alone = interval_table(_subtract(b, a), 0.95)
    rows = (t.high-t.low)/(alone.high-alone.low)
    assert ((1.15<rows) & (rows<1.7)).all()
    for row,word in {'f1_micro': 'micro F1', 'f1_macro': 'macro F1', 'accuracy_multi': 'accuracy_multi'}.items():
        assert (t.low[row]>0)==(f'{word} by ' in t.reading)
    assert 'four of five' not in t.reading and 'by chance' not in t.reading

@pytest.mark.slow
def test_equal_models_are_called_different_in_few_draws():
    "In any row or sentence"
    def claims(seed):
        models,y = two_models(300, gain=0., seed=seed)
        r = compare_models(models, y, sigmoid=True)
        return bool(re.search(' (better|worse) ', r.reading)),((r.low>0) | (r.high<0)).any()
    said,shown = np.mean([claims(seed) for seed in range(150)], 0)
    assert shown<=said<=0.09

def test_rows_of_two_models_are_subtracted():
    "Those that both have"
    scored,binary = (measure(Predictions.of(o, TARGS), 0.95) for o in (SCORES, SCORES>0.3))
    differences = _subtract(binary, scored)
    assert [*differences]==[*scored][:-3]==[*binary]==[*_subtract(scored, binary)]
    row = 'f1_macro'
    same(differences[row].without, binary[row].without-scored[row].without)
    without_intervals = measure(Predictions.of(SCORES, TARGS), None)
    for rows in (_subtract(binary, without_intervals), _subtract(without_intervals, binary)):
        assert all(o.without is None for o in rows.values())
    assert interval_table(without_intervals, 0.95)[['low','high']].isna().all(axis=None)

# Several trainings

def trainings(skill, y, n_runs, seed, spread=0.3, shared=0.7):
    "Scores of trainings whose skill varies, with errors that all of them share"
    rng = np.random.default_rng(seed)
    errors = np.random.default_rng(99).normal(size=y.shape)
    def logits(): return shared*errors + 0.7*rng.normal(size=y.shape) + (skill+spread*rng.normal())*y - 1.3
    return [1/(1+np.exp(-logits())) for _ in range(n_runs)]

def test_trainings_are_averaged():
    "Values and spread are those of the reports of each training, and errors those of Welch's test"
    y = (np.random.default_rng(0).random((400,5))<0.3).astype(int)
    runs = dict(a=trainings(2, y, 3, 1), b=trainings(3, y, 4, 2))
    t = compare_models(runs, y)
    values = {k: pd.DataFrame([accuracy_report(p, y, ci=None).value for p in o]) for k,o in runs.items()}
    for k,o in values.items(): pd.testing.assert_series_equal(t[k], o.mean(), check_names=False)
    a,b = values.values()
    close(t.spread, (a.var()+b.var())**0.5)
    within = compare_models({k: o[:1]*2 for k,o in runs.items()}, y) # trainings that do not vary
    assert (within.spread==0).all() and (t.high-t.low>1.5*(within.high-within.low)).mean()>0.8
    one = compare_models({k: o[0] for k,o in runs.items()}, y)
    pd.testing.assert_frame_equal(within[one.columns][['a','b','difference']], one[['a','b','difference']])
    assert 'spread' not in one
    three = compare_models({**runs, 'c': runs['a']}, y)
    assert [*three.parts]==['b','c'] and 'spread' in three.parts['b']
    three.plot()

def test_a_list_of_runs_is_no_list_of_rows():
    y = (np.random.default_rng(0).random((60,4))<0.3).astype(int)
    models = {k: trainings(2, y, 2, i) for i,k in enumerate('ab')}
    rows = {k: o[0].tolist() for k,o in models.items()}
    assert compare_models(rows, y.tolist()).equals(compare_models({k: o[0] for k,o in models.items()}, y))
    tensors = {k: [*map(torch.tensor, o)] for k,o in models.items()}
    pd.testing.assert_frame_equal(compare_models(tensors, torch.tensor(y)), compare_models(models, y))
    with pytest.raises(ValueError, match="trainings: pass one of each model, or two or more"):
        compare_models(dict(models, b=models['b'][0]), y)

@pytest.mark.slow
def test_a_lucky_seed_is_no_better_model():
    "Of equal models, 40 of 50 single trainings differ significantly, and next to none of three each"
    def claims(n_runs, skill, seed):
        y = (np.random.default_rng(seed).random((800,6))<0.3).astype(int)
        models = dict(a=trainings(2, y, n_runs, 1000+seed), b=trainings(skill, y, n_runs, 2000+seed))
        r = compare_models({k: o if n_runs>1 else o[0] for k,o in models.items()}, y)
        return ((r.low>0) | (r.high<0)).any()
    assert np.mean([claims(1, 2, seed) for seed in range(20)])>0.5
    assert np.mean([claims(3, 2, seed) for seed in range(60)])<=0.1
    assert np.mean([claims(5, 3, seed) for seed in range(20)])>0.7
