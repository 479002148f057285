"Searches from arrays and from batches, and their table"
import itertools, pickle, sklearn.metrics as skm
from copy import deepcopy
from helpers import *
from fastai_mlmetrics.reports.comparison import ModelComparison
from brute_force import *
from fastai_mlmetrics.core.predictions import Predictions
from six_labels import LOGITS, NAMES, SCORES, TARGS

def test_logits_need_no_sigmoid():
    logits,targs = simulate(300)
    a = best_thresholds(logits, targs, average='micro')
    b = best_thresholds(logits, targs, average='micro', sigmoid=True)
    assert a.score==b.score and a.thresh==pytest.approx(math.log(b.thresh/(1-b.thresh)), abs=0.02)

@pytest.mark.parametrize('kw', [dict(), dict(bins=64)], ids=str)
@pytest.mark.parametrize('name,value', [
    ('min_positives','3'), ('min_positives',-1), ('min_positives',2.5), ('seed',None), ('seed',-1), ('seed',0.5)])
def test_numbers_that_are_none_are_named(name, value, kw):
    with pytest.raises(ValueError, match=f'{name}={value!r} should be a whole number, 0 or more'):
        best_thresholds(torch.rand(20, 3), torch.eye(20)[:,:3], **{name: value}, **kw)

def test_no_true_target_is_told():
    with pytest.warns(UserWarning, match='no target is true, so no threshold is better than another'):
        best_thresholds(torch.rand(30, 2), torch.zeros(30, 2))
    y = torch.zeros(30, 2)
    y[0] = 1
    with pytest.warns(UserWarning, match='no target is true'):
        best_thresholds(torch.rand(30, 2), torch.where(y==1, -1., 0.), ignore_index=-1)
    with warnings_as('error'): best_thresholds(torch.rand(30, 2), y)

def test_mistakes_are_named():
    s,y = torch.rand(20,3),torch.ones(20,3)
    for args,kw,match in (
            ((s.long(),y), {}, r'preds are binary \(torch.int64\)'),
            ((s[:0],y[:0]), {}, 'there are no samples'),
            ((s*math.nan,y), {}, 'NaN'),
            ((s,y*2), {}, '0 or 1'),
            ((s,y,'f3'), {}, "metric='f3': use metric='fbeta', beta=3"),
            *(((s,y), dict(cv=o), f'cv={o}') for o in (-1,0,1,2.5)),
            ((s,y), dict(vocab=['a','b']), '2 names.*3 labels'),
            ((s,y[:,:2]), {}, 'shape')):
        with pytest.raises(ValueError, match=match), warnings_as('ignore'): best_thresholds(*args, **kw)

def test_what_is_found_can_be_passed_as_it_is():
    logits,targs = simulate(200, 4, density=0.4)
    scores = logits.sigmoid()
    for per_label in (False,True):
        found = best_thresholds(scores, targs, average='macro', per_label=per_label)
        a,b = (accuracy_report(scores, targs, thresh=o, ci=None) for o in (found, found.thresh))
        assert a.equals(b)
        assert F1ScoreMulti(found, sigmoid=False)(scores, targs)==found.score

def saturated(skill=2, c=3, seed=0):
    "Logits around 40, whose sigmoids are all 1 in float32, and targets"
    r = np.random.default_rng(seed)
    y = r.integers(0, 2, (400,c))
    return (40+r.normal(size=y.shape)+skill*y).astype(np.float32),y

COARSE = 'no threshold on probabilities separates them'

def f1_by_rank(logits, y):
    "The highest micro F1 of all thresholds"
    order = np.argsort(-logits, None)
    return (2*y.ravel()[order].cumsum()/(np.arange(y.size)+1+y.sum())).max()

@pytest.mark.parametrize('bins', [None, 1024])
def test_saturated_logits_are_told_and_the_cure_finds_their_threshold(bins):
    logits,targs = saturated()
    with pytest.warns(UserWarning, match=COARSE) as caught:
        found = best_thresholds(logits, targs, sigmoid=True, bins=bins)
    assert found.score==pytest.approx(2*targs.sum()/(targs.size+targs.sum())) # of predicting everything
    text, = (str(o.message) for o in caught)
    n = targs.sum()
    limit = 12 if bins else 14
    assert text.startswith(f'{targs.size-n} negatives and {n} positives have logits of about {limit} or more')
    cure = re.search(r'best_thresholds\(.*?\)', text)[0]
    with pytest.warns(UserWarning, match='pass them to metrics with sigmoid=False') as caught: found = eval(cure)
    assert len(caught)==1 and 'sigmoid=True' not in str(caught[0].message) # which would lead back
    assert found.score>0.85 and found.score==pytest.approx(f1_by_rank(logits, targs))
    assert F1ScoreMulti(found, sigmoid=False, average='micro')(logits, targs)==pytest.approx(found.score)

@pytest.mark.parametrize('bins', [None, 1024])
def test_saturated_logits_of_a_learner(bins):
    logits,targs = saturated()
    learn = make_learner(torch.from_numpy(logits), torch.from_numpy(targs).float())
    with pytest.warns(UserWarning, match=COARSE) as caught: learn.thresh_find(show_plot=False, bins=bins)
    text, = (str(o.message) for o in caught if COARSE in str(o.message))
    with warnings_as('ignore'): found = eval(re.search(r'best_thresholds\(.*False\)', text.partition(' Pass it')[0])[0])
    assert found.score==pytest.approx(f1_by_rank(logits, targs))
    with recording(learn) as caught: # probabilities of a model that ends with a sigmoid have no logits
        learn.model = Sigmoid()
        learn.loss_func = BCELossFlat()
        learn.thresh_find(show_plot=False, bins=bins)
    assert not any(COARSE in str(o.message) for o in caught)

def test_saturation_in_float64_begins_later():
    logits,targs = saturated()
    with warnings_as('error'): best_thresholds(logits.astype(float)-20, targs, sigmoid=True)
    with pytest.warns(UserWarning, match='logits of about 34 or more'):
        best_thresholds(logits.astype(float), targs, sigmoid=True)

def test_saturation_that_no_threshold_could_divide_is_not_told():
    logits,targs = saturated()
    separated = np.where(targs==1, logits, -logits)
    few = np.where(np.arange(400)[:,None]<20, logits, logits-40)
    for o in (separated, -separated, few):
        for bins in (None, 1024):
            with warnings_as('error'): best_thresholds(o, targs, sigmoid=True, bins=bins)

def test_saturation_is_told_once_by_a_metric():
    logits,targs = saturated()
    learn = make_learner(torch.from_numpy(logits), torch.from_numpy(targs).float(), ThreshFinder())
    with recording(learn) as caught: learn.fit(2, 0.)
    assert sum(COARSE in str(o.message) for o in caught)==1

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

@pytest.mark.parametrize('average', ['micro','macro'])
def test_a_stream_is_as_whole_arrays(average):
    logits,targs = simulate(700, 5, density=0.3, skill=2.)
    targs[torch.rand(700, 5, generator=torch.Generator().manual_seed(1))<0.2] = math.nan
    kw = dict(average=average, sigmoid=True, ignore_index=math.nan, bins=256)
    whole = best_thresholds(logits, targs, **kw)
    for bs in (50, 699):
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

def test_mistakes_with_bins_are_named():
    logits,y = simulate(100, 4, density=0.3)
    p = logits.sigmoid()
    for f,match in (
            (lambda: best_thresholds(p, y, average='samples', bins=64), "no average over samples: leave bins out"),
            (lambda: make_learner(logits, y).thresh_find(average='samples', bins=64), "no average over samples"),
            (lambda: best_thresholds(logits, y, bins=64), 'pass sigmoid=True'),
            (lambda: best_thresholds(p*math.nan, y, bins=64), 'NaN'),
            (lambda: best_thresholds(y.long(), y, bins=64), 'preds are binary. Thresholds'),
            (lambda: best_thresholds(p, 2*y, bins=64), '0 or 1'),
            (lambda: best_thresholds(p[:0], y[:0], bins=64), 'there are no samples'),
            (lambda: best_thresholds(p, y*0-1, bins=64, ignore_index=-1), 'there are no samples'),
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
    names = dict(globals(), logits=logits, targs=targs, probs=logits.sigmoid(), probs_a=logits.sigmoid(),
                 probs_b=(logits+torch.randn(200, 5)).sigmoid(),
                 others=(logits+torch.randn(200, 5)).sigmoid(), runs_of_a=[logits.sigmoid()]*2,
                 runs_of_b=[logits.sigmoid()]*2)
    code = example(names[name])
    assert name in code or name=='ModelComparison'
    exec(code, names)
    plt.close('all')

def test_the_table_has_the_numbers_of_the_result():
    res = best_thresholds(SCORES, TARGS, average='macro', vocab=NAMES)
    t,y = res.table,TARGS.numpy()
    assert list(t.index)==['best','per_label',*NAMES]
    assert list(t.columns)==['threshold','held_out','score','range','support'] and res.fallback==('',)*6
    test_eq(tuple(t.threshold[2:]), res.thresh)
    test_eq(t.support.tolist(), [y.sum()]*2 + y.sum(0).tolist())
    p = (SCORES>tensor(res.thresh)).numpy()
    np.testing.assert_allclose(t.score[2:], f1(y, p, None))
    np.testing.assert_allclose(t.score['per_label'], f1(y, p))
    one = best_thresholds(SCORES, TARGS, average='macro', per_label=False)
    test_eq(t.loc['best', ['threshold','score','held_out']].tolist(), [one.thresh, one.score, one.held_out])
    test_eq([res.score, res.held_out], t.loc['per_label', ['score','held_out']].tolist())
    assert list(one.table.index)==['best'] and len(one.table.columns)==5

def test_results_are_tuples_still():
    res = best_thresholds(SCORES, TARGS, average='macro', vocab=NAMES)
    thresh,score,held_out,fallback = res
    assert thresh==res.thresh and res._fields==('thresh','score','held_out','fallback')
    assert res==best_thresholds(SCORES, TARGS, average='macro')
    for copied in (deepcopy(res), pickle.loads(pickle.dumps(res))): assert copied==res and repr(copied)==repr(res)
    other = res._replace(score=0.)
    assert repr(other).startswith('BestThresholds(thresh=') and other._repr_html_() is None

def test_thresholds_per_label_have_the_name_that_thresh_find_gives_them():
    res = best_thresholds(SCORES, TARGS, average='macro')
    assert res.per_label is res.thresh
    with pytest.raises(AttributeError, match='this is one threshold for all labels, `thresh`: .* pass per_label=True'):
        best_thresholds(SCORES, TARGS).per_label

def test_without_folds_there_is_no_held_out_score():
    for average in ('micro','macro'):
        none,single = best_thresholds(SCORES, TARGS, average=average, cv=None),best_thresholds(SCORES[:1], TARGS[:1])
        for res in (none, single):
            assert res.held_out is None and res.table.held_out.isna().all() and (res.table.range=='').all()
        few = best_thresholds(SCORES[:3], TARGS[:3], average=average) # fewer samples than folds
        assert few.held_out is not None and few.table.held_out.notna().all()

def test_missing_labels_change_no_threshold():
    missing = TARGS.clone()
    missing[::3] = math.nan
    known = ~missing[:,0].isnan()
    for average in ('micro','macro'):
        a = best_thresholds(SCORES, missing, average=average, ignore_index=math.nan)
        b = best_thresholds(SCORES[known], missing[known], average=average)
        test_eq(a.table.support, b.table.support)
        np.testing.assert_allclose(a.table.score, b.table.score)
        assert abs(a.held_out-b.held_out)<0.02 # Folds are drawn by the numbers of all samples

@pytest.mark.parametrize('c', [1, 6, 300])
def test_thresholds_are_whole_in_a_terminal(c):
    g = torch.Generator().manual_seed(0)
    y = (torch.rand(60, c, generator=g)<0.4).float()
    scores = (y+torch.randn(60, c, generator=g)).sigmoid()
    res = best_thresholds(scores, y, average='macro', vocab=[f'a label {i}' for i in range(c)], cv=2)
    assert max(map(len, lines(res)))<=80 and len(lines(res))<100 and '\\' not in repr(res)
    shown = '\n'.join(lines(res)[:5])
    assert 'best' in shown and 'per_label' in shown and 'a label 0' in shown
    assert not re.search(r'\d\.\d{4}', repr(res)+res._repr_html_())

def test_names_are_shown_as_they_are():
    vocab = ['<script>alert(1)</script>','$x$','_','b','B','']
    html = best_thresholds(SCORES, TARGS, average='macro', vocab=vocab).table._repr_html_()
    assert '<script>' not in html and '$x$' in html

def test_what_is_expected_comes_with_the_result():
    "And with a copy of it"
    for kw,says in ((dict(), 'micro F1 {} is expected on new samples'),
                    (dict(average='macro'), 'macro F1 {} is expected on new samples'), (dict(cv=None), '')):
        res = best_thresholds(SCORES, TARGS, **kw)
        if res.held_out is None: assert res.expects==f'micro F1 is {res.score:.3f} on the samples used for tuning'
        else: assert res.expects.startswith(says.format(f'{res.held_out:.3f}'))
        assert pickle.loads(pickle.dumps(res)).expects==res.expects

def test_the_best_threshold_is_the_one_that_the_record_suggests():
    "Up to the bins of the record, unless it predicts more than twice as many labels as are true"
    kinds = dict(skill=2., bias=-2), dict(skill=1., bias=-4), dict(skill=0., bias=-2)
    for kw,seed in itertools.product(kinds, range(2)):
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

@pytest.mark.parametrize('bins', [None, 200])
@pytest.mark.parametrize('kw', [dict(per_label=True), dict(), dict(average='macro'),
                                dict(average='macro', at_recall={'e': 0.9}), dict(metric='jaccard')])
def test_thresholds_of_chosen_labels(kw, bins):
    "As of the arrays' columns; with names, and in the order asked for"
    logits,targs = simulate(300, 6, density=0.2, skill=2.)
    scores,vocab = logits.sigmoid(),[*'abcdef']
    for labels,cols in ((['e','b'], [4,1]), ([1], [1]), (['f'], [5])):
        if 'at_recall' in kw and 'e' not in labels: continue
        found = best_thresholds(scores, targs, vocab=vocab, labels=labels, bins=bins, **kw)
        names = [vocab[i] for i in cols]
        expected = best_thresholds(scores[:,cols], targs[:,cols], vocab=names, bins=bins, **kw)
        assert found==expected and found.table.equals(expected.table) and [*found.names]==names
    with pytest.raises(ValueError, match="'g'"): best_thresholds(scores, targs, vocab=vocab, labels=['g'])

def test_more_bins_than_edges_of_three_digits_are_refused():
    with pytest.raises(ValueError, match='bins=4097 should be at most 4096'): ThreshFinder(bins=4097)
    assert ThreshFinder(bins=4096).bins==4096

# Other label frequencies

HERE,THERE = np.array([0.3,0.2,0.4,0.1]),np.array([0.01,0.03,0.1,0.1])

def draw(n, frequencies, seed=0):
    "Scores whose distribution among the positives, and among the negatives, of a label is the same everywhere"
    rng = np.random.default_rng(seed)
    y = rng.random((n,4))<frequencies
    return (1/(1+np.exp(-rng.normal(size=y.shape)-2*y+1.5))).astype(np.float32),y

@pytest.mark.parametrize('metric', ['f1','matthews','accuracy'])
def test_a_frequency_counts_as_copies_of_the_negatives(metric):
    "Of one label; and of two labels whose frequencies change alike, in the micro average"
    rng = np.random.default_rng(0)
    y = np.stack([rng.permutation(np.arange(80)<40) for _ in range(2)], 1)
    scores = (rng.random((80,2))+y/2).astype(np.float32)/2
    for cols in ([0], [0,1]):
        s,t = scores[:,cols],y[:,cols]
        # Three more rows with the negatives alone, so that one sample in five has the label
        copies = np.tile(s, (4,1)),np.concatenate([t, *[np.where(t, np.nan, 0)]*3])
        kw = dict(metric=metric, cv=None)
        found = best_thresholds(s, t, frequencies=[0.2]*len(cols), **kw)
        expected = best_thresholds(*copies, ignore_index=np.nan, **kw)
        assert found.thresh==expected.thresh and found.score==pytest.approx(expected.score, abs=1e-12)
        assert found.score!=best_thresholds(s, t, **kw).score

@pytest.mark.parametrize('average,per_label', [
    ('micro',False), ('micro',True), ('macro',True), ('macro',False), ('weighted',True)])
def test_at_frequencies_is_as_on_data_that_have_them(average, per_label):
    "Score, held-out score and thresholds of an enriched set, and of samples drawn at the frequencies"
    kw = dict(average=average, per_label=per_label)
    enriched,there,new = draw(8000, HERE),draw(60_000, THERE, 1),draw(60_000, THERE, 2)
    found,own = best_thresholds(*enriched, frequencies=THERE, **kw),best_thresholds(*there, **kw)
    plain = best_thresholds(*enriched, **kw)
    def fresh(o): return F1ScoreMulti(o, sigmoid=False, average=average)(*new)
    assert found.score==pytest.approx(own.score, abs=0.02) and abs(plain.score-own.score)>0.1
    assert found.held_out==pytest.approx(fresh(found), abs=0.02) and fresh(found)>fresh(own)-0.01
    assert fresh(found)>fresh(plain)+0.05
    np.testing.assert_allclose(found.thresh, own.thresh, atol=0.08)
    if average!='micro' and per_label: np.testing.assert_allclose(found.table.score, own.table.score, atol=0.08)

def test_frequencies_of_some_labels_in_bins_and_in_a_learner():
    "By name, or by number; the other labels keep theirs"
    logits,targs = simulate(2000, 4, density=0.3, skill=2.)
    some = dict(b=0.02, d=0.6)
    learn = make_learner(logits, targs, vocab=[*'abcd'])
    scores = learn.get_preds()[0]
    for kw in ({}, dict(average='macro'), dict(per_label=True)):
        found = best_thresholds(scores, targs, vocab=[*'abcd'], frequencies=some, **kw)
        assert found==best_thresholds(scores, targs, frequencies={1: 0.02, 3: 0.6}, **kw)
        of_all = best_thresholds(scores, targs, frequencies=[0.3,0.02,0.3,0.6], **kw)
        assert found.score==pytest.approx(of_all.score, abs=0.02)
        binned = best_thresholds(scores, targs, vocab=[*'abcd'], frequencies=some, bins=1024, **kw)
        np.testing.assert_allclose([binned.score, binned.held_out], [found.score, found.held_out], atol=0.01)
        table = learn.thresh_find(show_plot=False, frequencies=some, **kw).table
        row = 'per_label' if kw else 'best'
        assert table.held_out[row]==pytest.approx(found.held_out)
        assert 'on new samples with these frequencies' in table.reading
        p = Predictions.of(scores, targs).at_frequencies({1: 0.02, 3: 0.6})
        m = F1ScoreMulti(average=kw.get('average', 'micro'))
        assert table.score['now']==pytest.approx(m.averaged(p.counts).item())
        in_bins = learn.thresh_find(show_plot=False, frequencies=some, bins=1024, **kw).table
        assert in_bins.score['now']==pytest.approx(table.score['now'])

def test_a_required_precision_is_that_at_the_frequency():
    enriched,there = draw(8000, HERE),draw(100_000, THERE, 1)
    kw = dict(average='macro', at_precision={0: 0.5})
    for frequencies,kept in ((THERE, True), (None, False)):
        t = best_thresholds(*enriched, frequencies=frequencies, **kw).thresh[0]
        precision = skm.precision_score(there[1][:,0], there[0][:,0]>t)
        assert (precision>0.42)==kept

@pytest.mark.parametrize('kw,match', [
    (dict(average='samples'), "frequencies= weighs the counts of labels, which average='samples' does not use"),
    (dict(at_precision={0: 0.5}, confidence=0.9), 'at_precision= with confidence= is tested on samples as they are'),
    (dict(frequencies={'a': 0.1}), "label 'a' is not known"),
    (dict(frequencies={0: 10}), "10 for 0 should be above 0")], ids=str)
def test_what_is_unknown_at_other_frequencies(kw, match):
    s,y = draw(200, HERE)
    learn = make_learner(torch.from_numpy(s).logit(), torch.from_numpy(y).float())
    for f in (partial(best_thresholds, s, y), partial(learn.thresh_find, show_plot=False)):
        with pytest.raises(ValueError, match=match): f(**dict(frequencies={0: 0.1}) | kw)

@pytest.mark.parametrize('scale', [0.02, 1e-3])
def test_scores_that_bins_hardly_separate_are_told(scale):
    rng = np.random.default_rng(0)
    targs = (rng.random((500, 4))<(0.3,0.2,0.1,0.05)).astype(int)
    probs = 1/(1+np.exp(3-2.5*targs-rng.normal(size=targs.shape)))
    with pytest.warns(UserWarning, match=r'the scores lie within \d+ bins?, so the thresholds are rough'):
        best_thresholds(0.5+(probs-0.5)*scale, targs, bins=1024)
    with warnings_as('error'): best_thresholds(probs, targs, bins=1024)
