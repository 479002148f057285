"Tables of thresholds and reports in a terminal of 80 columns and in a notebook, and errors for mistakes"
import pickle, sklearn.metrics as skm
from copy import deepcopy
from hypothesis import given, settings
from fastai.data.all import CategoryMap
from conftest import *
from fastai_mlmetrics.inputs import as_vocab, label_vocab
from fastai_mlmetrics.tables import Table
from fastai_mlmetrics.thresholds import plot_thresh_curve

NAMES = list('abcdef')
LOGITS,TARGS = simulate(400, 6, density=0.3, bias=-2)
SCORES = LOGITS.sigmoid()

@pytest.fixture(autouse=True)
def terminal(monkeypatch): monkeypatch.setenv('COLUMNS', '80')

def lines(o): return repr(o).split('\n')
def f1(y, p, average='macro'): return skm.f1_score(y, p, average=average, zero_division=0)

def test_a_small_number_keeps_its_digits():
    shown = repr(Table(dict(x=[0.00040016,0.0005,0.25,-5e-18,-0.0001])))
    assert all(o in shown for o in ('0.0004\n','0.001\n','0.250\n',' 0.000\n','-0.0001'))

# Thresholds

def test_the_table_of_thresholds():
    res = best_thresholds(SCORES, TARGS, average='macro', vocab=NAMES)
    t,y = res.table,TARGS.numpy()
    assert list(t.index)==['global','per label',*NAMES]
    assert list(t.columns)==['threshold','support','score','held_out','fallback']
    test_eq(tuple(t.threshold[2:]), res.thresh)
    test_eq(tuple(t.fallback[2:]), res.fallback)
    test_eq(t.support.tolist(), [y.sum()]*2 + y.sum(0).tolist())
    p = (SCORES>tensor(res.thresh)).numpy()
    np.testing.assert_allclose(t.score[2:], f1(y, p, None))
    np.testing.assert_allclose(t.score['per label'], f1(y, p))
    one = best_thresholds(SCORES, TARGS, average='macro', per_label=False)
    test_eq(t.loc['global', ['threshold','score','held_out']].tolist(), [one.thresh, one.score, one.held_out])
    test_eq([res.score, res.held_out], t.loc['per label', ['score','held_out']].tolist())
    assert list(one.table.index)==['global'] and len(one.table.columns)==4

@pytest.mark.parametrize('kw', [
    dict(), dict(average='macro'), dict(average='samples'), dict(average='weighted'),
    dict(average='micro', per_label=True), dict(average='macro', cv=3, seed=1)], ids=str)
def test_held_out_is_on_samples_that_were_not_seen(kw):
    "Each fold is predicted with the thresholds of the others, right below the lowest positive that they predict"
    res = best_thresholds(SCORES, TARGS, **kw)
    cv,seed,average = kw.get('cv', 5),kw.get('seed', 42),kw.get('average', 'micro')
    fold = torch.randperm(400, generator=torch.Generator().manual_seed(seed))%cv
    def held_out(per_label):
        p = torch.zeros(400,6).bool()
        for j in range(cv):
            s,y = SCORES[fold!=j],TARGS[fold!=j]
            thresh = tensor(best_thresholds(s, y, **{**kw, 'cv':None, 'per_label':per_label}).thresh)
            passed = s.masked_fill((y==0) | (s<=thresh), math.inf)
            p[fold==j] = SCORES[fold==j]>=(passed.amin(0) if per_label else passed.min())
        return p
    p = held_out(False)
    if isinstance(res.thresh, tuple):
        own = held_out(True)
        def better(some): return tensor(f1(TARGS[some], own[some], None)>f1(TARGS[some], p[some], None))
        assert [not o for o in res.fallback]==better(fold>=0).tolist() and better(fold>=0).any()
        # The other folds choose for the samples of a fold
        p = torch.where(torch.stack([better(fold!=j) for j in range(cv)])[fold], own, p)
        np.testing.assert_allclose(res.table.held_out[2:], f1(TARGS, p, None))
    assert res.held_out==pytest.approx(f1(TARGS, p, average), abs=1e-12)

def test_held_out_is_less_biased():
    "Of random scores, thresholds tuned and scored on the same samples are optimistically biased"
    g = torch.Generator().manual_seed(0)
    y,s = (torch.rand(150, 30, generator=g)<0.05).long(),torch.rand(150, 30, generator=g)
    res = best_thresholds(s, y, average='macro', min_positives=0)
    assert any(not o for o in res.fallback) and res.score>1.2*res.held_out
    for text in (one_line(res), res._repr_html_()):
        assert 'optimistically biased' in text and 'cross-validated in 5 folds' in text

def test_results_are_tuples_still():
    res = best_thresholds(SCORES, TARGS, average='macro', vocab=NAMES)
    thresh,score,held_out,fallback = res
    assert thresh==res.thresh and res._fields==('thresh','score','held_out','fallback')
    assert res==best_thresholds(SCORES, TARGS, average='macro')
    for copied in (deepcopy(res), pickle.loads(pickle.dumps(res))): assert copied==res and repr(copied)==repr(res)
    other = res._replace(score=0.)
    assert repr(other).startswith('BestThresholds(thresh=') and other._repr_html_() is None

def test_no_held_out_score():
    unreached = best_thresholds(SCORES[:20], torch.eye(20)[:,:6], 'precision', 'macro', at_recall=1.)
    for average in ('micro','macro'):
        none,single = best_thresholds(SCORES, TARGS, average=average, cv=None),best_thresholds(SCORES[:1], TARGS[:1])
        for res in (none, single, unreached):
            assert res.held_out is None and res.table.held_out.isna().all() and 'held_out:' not in repr(res)
        few = best_thresholds(SCORES[:3], TARGS[:3], average=average) # fewer samples than folds
        assert few.held_out is not None and 'in 3 folds' in one_line(few)

def test_thresholds_of_missing_labels():
    missing = TARGS.clone()
    missing[::3] = math.nan
    known = ~missing[:,0].isnan()
    for average in ('micro','macro'):
        a = best_thresholds(SCORES, missing, average=average, ignore_index=math.nan)
        b = best_thresholds(SCORES[known], missing[known], average=average)
        test_eq(a.table.support, b.table.support)
        np.testing.assert_allclose(a.table.score, b.table.score)
        np.testing.assert_allclose(a.table.held_out, b.table.held_out) # only samples that count are in folds

@pytest.mark.parametrize('c', [1, 6, 80, 1000])
def test_thresholds_are_whole_in_a_terminal(c):
    g = torch.Generator().manual_seed(0)
    y = (torch.rand(60, c, generator=g)<0.4).float()
    scores = (y+torch.randn(60, c, generator=g)).sigmoid()
    res = best_thresholds(scores, y, average='macro', vocab=[f'a label {i}' for i in range(c)], cv=2)
    assert max(map(len, lines(res)))<=80 and len(lines(res))<100 and '\\' not in repr(res)
    shown = '\n'.join(lines(res)[:5])
    assert 'global' in shown and 'per label' in shown and 'a label 0' in shown
    assert not re.search(r'\d\.\d{4}', repr(res)+res._repr_html_())

def test_names_are_shown_as_they_are():
    vocab = ['<script>alert(1)</script>','$x$','_','b','B','']
    html = best_thresholds(SCORES, TARGS, average='macro', vocab=vocab).table._repr_html_()
    assert '<script>' not in html and '$x$' in html

@pytest.mark.parametrize('vocab', [
    NAMES,
    tuple(NAMES),
    np.array(NAMES),
    pd.Index(NAMES),
    dict(enumerate(NAMES)),
    {str(i): o for i,o in enumerate(NAMES)},
    CategoryMap(NAMES),
    (['the','cat'], NAMES),
    L(['xxunk','the'], CategoryMap(NAMES)),
    [['the'], np.array(NAMES)]], ids=lambda o: type(o).__name__)
def test_every_kind_of_vocab(vocab):
    "The vocab of texts has two parts; the last one is that of the labels"
    test_eq(as_vocab(vocab), NAMES)
    test_eq(label_vocab(SimpleNamespace(vocab=vocab)), NAMES)
    test_eq(list(best_thresholds(SCORES, TARGS, average='macro', vocab=vocab, cv=None).table.index[2:]), NAMES)
    assert re.search('predicting [a-f]', accuracy_report(SCORES, TARGS, vocab=vocab, ci=None).reading)
    assert judge(SCORES*0, TARGS, vocab=vocab).never_predicted==NAMES
    test_eq(list(MultiLabelInterpretation.from_preds(SCORES, TARGS, vocab=vocab).vocab), NAMES)

def test_columns_are_the_vocab():
    def names(columns):
        targs = pd.DataFrame(TARGS.numpy(), columns=columns)
        return list(best_thresholds(SCORES, targs, average='macro', cv=None).table.index[2:])
    test_eq(names(NAMES), NAMES)
    columns = pd.MultiIndex.from_product([['x','y'], ['a','b','c']]) # names that are tuples are not parts of a vocab
    test_eq(names(columns), columns.tolist())

def test_what_vocab_is_refused():
    for vocab in (NAMES[:5], (['the','cat'], NAMES[:5])):
        for f in (best_thresholds, accuracy_report, judge):
            with pytest.raises(ValueError, match='5 names.*6 labels'): f(SCORES, TARGS, vocab=vocab)

def test_a_threshold_in_words():
    many = dict(thresh=[0.15345,0.9,0.0312,0.5,0.5,0.5], min_labels=1)
    by_label = '0.0312 to 0.9 by label'
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS, **many)
    assert f'Predicted at thresh={by_label}, min_labels=1.' in interp.report().reading
    assert f'at a threshold of {by_label}, min_labels=1.' in accuracy_report(SCORES, TARGS, **many).reading
    assert f'at threshold {by_label}' in one_line(repr(judge(SCORES, TARGS, **many)))

def test_two_for_each_sample_need_no_threshold():
    two,text = dict(min_labels=2, max_labels=2),'with min_labels=2, max_labels=2.'
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS, **two)
    r = interp.report()
    assert f'Predicted {text}' in r.reading and r.thresh.isna().all()
    interp.plot_thresholds(0)
    assert plt.gca().get_legend_handles_labels()[1]==['precision','recall','F1']
    plt.close()
    r = accuracy_report(SCORES, TARGS, **two)
    assert f'Predicted {text}' in r.reading and r.columns.name is None and 'thresh=' not in repr(r)
    assert text in one_line(repr(judge(SCORES, TARGS, **two)))

# The curve

def drawn(*args, **kwargs):
    "The axes after `plot_thresh_curve`"
    ax = plt.subplots()[1]
    assert plot_thresh_curve(*args, ax=ax, **kwargs) is None
    ax.figure.canvas.draw()
    plt.close(ax.figure)
    return ax

@settings(max_examples=40)
@given(st.integers(0, 1000), st.sampled_from([1, 3, 40, 3000]), st.sampled_from([-12, -4, 0]),
       st.sampled_from(['micro','macro','samples']))
def test_the_drawn_peak_is_the_best(seed, n, bias, average):
    "Curves of more than 2,048 positives are drawn at 2,048 of them; in micro, the best threshold may lie between"
    logits,targs = simulate(n, 4, density=0.2, bias=bias, seed=seed)
    scores = logits.sigmoid()
    best = best_thresholds(logits, targs, average=average, per_label=False, sigmoid=True, cv=None)
    ax = drawn(F1ScoreMulti(average=average), scores, targs, {'best': best.thresh})
    x,v = ax.lines[0].get_data()
    exact,peak = average!='micro' or targs.sum()<=2048,max(0, *v)
    assert best.score-(1e-9 if exact else 2e-4)<=peak<=best.score+1e-9 and len(x)<=2*2048+1
    low,high = ax.get_xlim()
    assert low<best.thresh<high
    if best.score>0 and best.score in v and best.thresh>1e-7:
        assert min(abs(x[v==v.max()]/best.thresh-1))<1e-3
    some = slice(None, None, max(1, len(x)//400))
    for t,value in zip(x[some], v[some]):
        expected = F1ScoreMulti(float(t), sigmoid=False, average=average)(scores, targs)
        assert abs(expected-value)<1e-9 or min(t,1-t)<1e-6

def test_small_thresholds_are_legible():
    logits,targs = simulate(2000, 20, bias=-8)
    marks = {'best':0.004, 'cardinality':0.01, 'now':0.5}
    ax = drawn(F1ScoreMulti(average='micro'), logits.sigmoid(), targs, marks)
    at = ax.transAxes.inverted().transform(ax.transData.transform([(t, 0) for t in marks.values()]))[:,0]
    assert 0.02<at[0]<at[1]-0.05 and at[1]<at[2]-0.2 and at[2]<0.98
    assert len(ax.get_xticks())>=4 and any(t<0.1 for t in ax.get_xticks())

def test_curves_of_margins_and_missing_labels():
    ax = drawn(F1ScoreMulti(), LOGITS, TARGS, {'best':0.})
    assert ax.get_xscale()=='linear' and ax.get_xlim()[0]<-1
    valid = (torch.rand(400,6)<0.7)
    missing = TARGS.masked_fill(~valid, -1)
    best = best_thresholds(SCORES, missing, average='macro', per_label=False, ignore_index=-1)
    ax = drawn(F1ScoreMulti(ignore_index=-1), SCORES, missing, {'best':best.thresh}, valid=valid)
    assert max(ax.lines[0].get_ydata())==pytest.approx(best.score, abs=1e-9)

# Reports

def test_a_report_names_its_threshold():
    r = accuracy_report(SCORES, TARGS, thresh=0.1534, min_labels=1)
    assert lines(r)[0].startswith('thresh=0.153 ') and lines(r)[1].startswith('min_labels=1')
    assert 'threshold of 0.153, min_labels=1.' in r.reading
    assert 'thresh=0.153' in r._repr_html_() and 'min_labels=1' in r._repr_html_()
    assert 'thresh=0.153' in repr(r[['value']].head(2))
    r = accuracy_report(SCORES, TARGS, thresh=[0.1,0.2,0.3,0.4,0.5,0.612])
    assert lines(r)[0].startswith('thresh=0.1 to 0.612 ') and 'min_labels' not in repr(r)
    assert 'threshold of 0.1 to 0.612 by label.' in r.reading
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
    assert 'label 5 and 994 more for every sample' in r.reading and len(r.reading)<1200

def test_the_baseline_by_kind_of_row():
    r = accuracy_report(SCORES, TARGS, ci=None)
    assert list(r.columns)==['value','low','high','baseline','constant','ceiling','lift']
    assert r.baseline['accuracy, elementwise']==pytest.approx(1-TARGS.mean().item())
    assert r.baseline['F1, samples']==0 and r.baseline['ROC AUC, macro']==0.5
    random = [np.random.default_rng(i).random(TARGS.shape) for i in range(200)]
    aps = [skm.average_precision_score(TARGS, o, average='macro') for o in random]
    assert r.baseline['AP, macro']==pytest.approx(np.mean(aps), abs=0.005)
    assert 'baseline, predicting nothing' in r.reading and 'a random ranking scores' in r.reading

@pytest.mark.parametrize('m,text', [
    (F1ScoreMulti(0.2, average='samples'), "F1ScoreMulti(thresh=0.2, average='samples')"),
    (F1ScoreMulti(), 'F1ScoreMulti()'),
    (FBetaMulti(2), 'FBetaMulti(beta=2)'),
    (F1ScoreMulti([0.1,0.2], min_labels=1), 'F1ScoreMulti(thresh=(0.1, 0.2), min_labels=1)'),
    (APScoreMulti(average='micro', bins=64), "APScoreMulti(average='micro', bins=64)"),
    (PrecisionAtK(3), 'PrecisionAtK(k=3)'),
    (F1ScoreMulti(labels=['a']), "F1ScoreMulti(labels=('a',))"),
    (LRAP(sigmoid=False), 'LRAP(sigmoid=False)')])
def test_metrics_say_what_they_are(m, text):
    assert repr(m)==text
    assert repr(eval(text))==text and (m.thresh, m.average)==(eval(text).thresh, eval(text).average)

def test_a_fallback_is_explained():
    res = best_thresholds(SCORES, TARGS, average='macro', min_positives=10**6)
    assert {*res.fallback}=={'few positives'}
    assert res.table.reading.endswith('fallback: why a label gets the global threshold.')
    assert 'fallback' not in best_thresholds(SCORES, TARGS, average='macro', per_label=False).table.reading

def test_beta_is_for_fbeta():
    with pytest.raises(ValueError, match="beta=5 is for metric='fbeta' alone"):
        best_thresholds(SCORES, TARGS, beta=5)
