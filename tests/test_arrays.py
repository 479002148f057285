"Functions of arrays: all kinds of tables, arguments that mean the same everywhere, and an error for each mistake"
import scipy.sparse
from hypothesis import given, settings
from conftest import *
from fastai_mlmetrics.verdicts import describe

LOGITS,TARGS = simulate(300, 6, density=0.3, bias=-2)
SCORES = LOGITS.sigmoid()
def report(*a, **kw): return accuracy_report(*a, ci=None, **kw).drop(columns=['low','high']).values.tolist()
def record(*a, **kw):
    r = judge(*a, **kw)
    return [r[k] for k in ('accuracy','f1_micro','missed_rate','suggested_f1','never_predicted')]
def interpretation(*a, **kw):
    return MultiLabelInterpretation.from_preds(*a, **kw).report('label', averages=False).values.tolist()
def thresholds(*a, thresh=None, **kw):
    return [best_thresholds(*a, average=o, **kw) for o in ('micro','macro','samples')]
def metric(*a, sigmoid=False, **kw):
    return [F1ScoreMulti(sigmoid=sigmoid, average=o, **kw)(*a) for o in ('macro','samples')]

FUNCTIONS = dict(report=report, judge=record, interpretation=interpretation, thresholds=thresholds, metric=metric)
every_function = pytest.mark.parametrize('f', FUNCTIONS.values(), ids=FUNCTIONS)

def rounded(o):
    "`o` with all floats, also nested ones, rounded to nine digits"
    if isinstance(o, float): return round(o, 9)
    if hasattr(o, '_fields'): return type(o)(*map(rounded, o))
    return [*map(rounded, o)] if isinstance(o, (list,tuple)) else o

def same(a, b): assert str(rounded(a))==str(rounded(b))

KINDS = dict(
    array=lambda x: x.numpy(),
    reversed=lambda x: x.numpy()[::-1,::-1].copy()[::-1,::-1],
    fortran=lambda x: np.asfortranarray(x.numpy()),
    objects=lambda x: x.numpy().astype(object),
    lists=lambda x: x.tolist(),
    frame=lambda x: pd.DataFrame(x.numpy()),
    sparse=lambda x: scipy.sparse.csr_matrix(x.numpy()),
    doubles=lambda x: x.numpy().astype(np.float64),
    subclass=TensorBase,
    tracked=lambda x: x.clone().requires_grad_(),
    strided=lambda x: x.t().contiguous().t(),
    lists_of_rows=lambda x: list(x.numpy()))

@every_function
@pytest.mark.parametrize('kind', KINDS)
def test_every_kind_of_table(f, kind):
    expected = f(SCORES, TARGS)
    scores,y = KINDS[kind](SCORES),KINDS[kind](TARGS)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for preds,targs in ((scores, y), (scores, TARGS), (SCORES, y)):
            found = f(preds, targs)
            if kind in ('doubles','lists','objects'):
                np.testing.assert_allclose(np.array(flat(found)), np.array(flat(expected)), atol=1e-6)
            else: same(found, expected)

def flat(o):
    "All numbers in nested lists"
    if isinstance(o, (list,tuple)): return sum(map(flat, o), [])
    return [o] if isinstance(o, (int,float)) else []

@every_function
def test_frames_are_matched_by_column(f):
    names = list('abcdef')
    preds,targs = (pd.DataFrame(o.numpy(), columns=names) for o in (SCORES,TARGS))
    expected = f(SCORES, TARGS) if f is not interpretation else f(SCORES, TARGS, vocab=names)
    same(f(preds, targs[names[::-1]]), expected)
    with pytest.raises(ValueError, match="columns.*'f', 'x'"): f(preds, targs.rename(columns=dict(f='x')))
    with pytest.raises(ValueError, match='columns'): f(preds, targs[names[:5]])
    with pytest.raises(ValueError, match='index in another order'): f(preds, targs.sample(frac=1, random_state=0))
    other = targs.set_index(np.arange(300)+1000) # a default index only numbers rows: they are matched by position
    same(f(preds, other), f(preds, targs))

def test_columns_are_the_vocab():
    preds,targs = (pd.DataFrame(o.numpy(), columns=list('abcdef')) for o in (SCORES,TARGS))
    for p,t in ((preds,targs), (preds,TARGS), (SCORES,targs)):
        assert list(MultiLabelInterpretation.from_preds(p, t).vocab)==list('abcdef')
        assert judge(SCORES*0, targs).never_predicted==list('abcdef')
    assert 'predicting ' in accuracy_report(preds, targs, ci=None).reading
    interp = MultiLabelInterpretation.from_preds(preds, targs, vocab=dict(enumerate('uvwxyz')))
    assert list(interp.vocab)==list('uvwxyz')

@every_function
def test_what_is_no_table_of_numbers(f):
    for bad in (['cat dog','cat']*150, [['cat','dog'],['cat']]*150, np.array([['a']*6]*300),
                np.array([[None,'x']*3]*300, object)):
        with pytest.raises(ValueError, match='one-hot'): f(SCORES, bad)

@pytest.mark.parametrize('name', ['report','judge','interpretation'])
def test_logits_by_mistake(name):
    f = FUNCTIONS[name]
    with pytest.raises(ValueError, match='sigmoid=True.*thresh=0'): f(LOGITS, TARGS)
    with pytest.raises(ValueError, match='sigmoid=True'): f(LOGITS, TARGS, thresh=[0.5]*6)
    same(f(LOGITS, TARGS, sigmoid=True)[0], f(SCORES, TARGS)[0])
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        f(LOGITS, TARGS, thresh=0.) # margins are accepted

@pytest.mark.parametrize('f', [accuracy_report, judge, MultiLabelInterpretation.from_preds])
def test_the_way_of_somebody_with_logits(f):
    "Each error names a remedy, which leads to the intended binary predictions"
    shifted = LOGITS+1 # the best threshold is between 0 and 1
    with pytest.warns(UserWarning, match='not probabilities'): t = best_thresholds(shifted, TARGS).thresh
    assert 0<t<1
    def accuracy(preds, **kw):
        r = f(preds, TARGS, **kw)
        if hasattr(r, 'predicted'): return (r.predicted==TARGS.bool()).double().mean()
        return r.accuracy if 'accuracy' in r else r.value.iloc[0]
    def expected(logits, thresh): return (binarize(logits, thresh, False)==TARGS).double().mean().item()
    meant = expected(shifted, t)
    with pytest.raises(ValueError, match=f'thresh={t:.3g} is read as.*pass thresh=0.*preds-thresh'):
        f(shifted, TARGS, thresh=t)
    assert accuracy(shifted-t, thresh=0.)==pytest.approx(meant)
    found = best_thresholds(shifted, TARGS, per_label=False, sigmoid=True)
    assert accuracy(shifted, thresh=found, sigmoid=True)==pytest.approx(meant)
    with pytest.warns(UserWarning, match='not probabilities.*sigmoid=True'): found = best_thresholds(LOGITS, TARGS)
    with pytest.raises(ValueError, match='pass sigmoid=False'): f(LOGITS, TARGS, thresh=found, sigmoid=True)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for t in (found, (-1.3,0.3,-1.,0.4,-2.,0.)):
            assert accuracy(LOGITS, thresh=t)==pytest.approx(expected(LOGITS, t))

@pytest.mark.parametrize('f', (judge, accuracy_report, best_thresholds, MultiLabelInterpretation.from_preds))
def test_probabilities_by_mistake(f):
    logits,targs = simulate(60)
    with pytest.warns(UserWarning, match='seem to be probabilities already: pass sigmoid=False'):
        f(logits.sigmoid(), targs, sigmoid=True)

@pytest.mark.parametrize('f', (judge, accuracy_report, MultiLabelInterpretation.from_preds))
def test_percentages(f):
    with pytest.raises(ValueError, match='percentages, divide them by 100'): f(100*SCORES, TARGS)
    with pytest.raises(ValueError) as e: f(LOGITS, TARGS)
    assert 'percentages' not in str(e.value)
    with pytest.warns(UserWarning, match='percentages.* by 100'): F1ScoreMulti(sigmoid=False)(100*SCORES, TARGS)

@pytest.mark.parametrize('f', (judge, accuracy_report, MultiLabelInterpretation.from_preds))
def test_a_threshold_that_decides_nothing(f):
    logits,targs = simulate(60)
    for thresh in (2, -0.5, [0.5]*19+[1.5]):
        with pytest.raises(ValueError, match='can never decide anything'): f(logits.sigmoid(), targs, thresh=thresh)
    f(logits, targs, thresh=-0.5) # margins have thresholds below 0

@pytest.mark.parametrize('preds,targs,hint', [
    ([np.full((30, 2), 0.5)]*4, torch.zeros(30, 4), r'np\.stack\(\[p\[:,1\] for p in preds\], axis=1\)'),
    (torch.rand(30, 4), torch.zeros(30), 'class indices')])
def test_shapes_that_tell_what_is_meant(preds, targs, hint):
    with pytest.raises(ValueError, match=hint): judge(preds, targs)

@every_function
def test_arguments_mean_the_same(f):
    targs = torch.cat([TARGS, torch.full((50,6), -1.)])
    noise = torch.cat([SCORES, torch.rand(50, 6, generator=torch.Generator().manual_seed(0))])
    def scores(o):
        "Scores of thresholds, which may lie elsewhere between the same two scores"
        return [r.score for r in o] if f is thresholds else o
    for missing in (-1, math.nan):
        found = f(noise, targs.masked_fill(targs<0, missing), ignore_index=missing)
        same(scores(found), scores(f(SCORES, TARGS)))
    with pytest.raises(ValueError, match='must be 0 or 1.*ignore_index'): f(noise, targs)
    if f is thresholds: return
    for kw in (dict(thresh=0.2), dict(thresh=[0.1,0.2,0.3,0.4,0.5,0.6]), dict(min_labels=1),
               dict(thresh=0.9, min_labels=2)):
        d = binarize(SCORES, kw.get('thresh', 0.5), False, kw.get('min_labels', 0))
        if f is metric: same(f(SCORES, TARGS, **kw), f(d, TARGS))
    d = binarize(SCORES, 0.9, False, 1)
    kw = dict(thresh=0.9, min_labels=1)
    if f is report: same(f(SCORES, TARGS, **kw)[:6], f(d, TARGS)[:6]) # the next row is argmax
    if f is record: same(f(SCORES, TARGS, **kw)[:3], f(d, TARGS)[:3])
    if f is interpretation: test_eq(MultiLabelInterpretation.from_preds(SCORES, TARGS, **kw).predicted, d)

def test_keywords_in_one_order():
    order = ['thresh','sigmoid','vocab','min_labels','ignore_index','zero_division']
    for f in (accuracy_report, judge, best_thresholds, MultiLabelInterpretation.from_preds):
        params = inspect.signature(f).parameters
        names = [k for k,p in params.items() if p.kind is p.KEYWORD_ONLY and k in order]
        assert names==[k for k in order if k in names]
        assert 'sigmoid' in names and params['sigmoid'].default is False

@pytest.mark.parametrize('dtype', [torch.float64, torch.float16])
def test_default_type_is_someone_elses(dtype):
    expected = {k: f(SCORES, TARGS) for k,f in FUNCTIONS.items()}
    intervals = accuracy_report(SCORES, TARGS)
    try:
        torch.set_default_dtype(dtype)
        for k,f in FUNCTIONS.items(): same(f(SCORES, TARGS), expected[k])
        assert intervals.equals(accuracy_report(SCORES, TARGS))
        assert pos_weight(TARGS).dtype==torch.float32
    finally: torch.set_default_dtype(torch.float32)

def test_default_device_is_someone_elses():
    expected = {k: f(SCORES, TARGS) for k,f in FUNCTIONS.items()}
    with torch.device('meta'):
        for k,f in FUNCTIONS.items():
            same(f(SCORES, TARGS), expected[k])
            same(f(SCORES.numpy(), TARGS), expected[k])
        accuracy_report(SCORES, TARGS)
        best_thresholds(SCORES, TARGS, cv=3, min_positives=0)
        label_stats(TARGS, TARGS)
        pos_weight(TARGS)

def test_decisions_are_told_as_decisions():
    "Without scores, neither a threshold nor the highest-scoring label is recommended"
    r = judge(torch.zeros(300,6).long(), TARGS)
    text = str(describe(r))
    assert r.verdict=='predicts nothing' and r.suggested_thresh is None
    assert 'binary predictions already' in text and 'min_labels' not in text and 'No threshold helps' not in text
    with pytest.raises(ValueError, match='binary predictions already'): best_thresholds(SCORES>0.5, TARGS)

ROWS = ['accuracy, elementwise','accuracy, macro','accuracy, weighted','accuracy, balanced','accuracy, subset',
        'accuracy, Jaccard','accuracy, argmax','F1, micro','F1, macro','F1, weighted','F1, samples','AP, macro',
        'ROC AUC, macro','LRAP']

def test_whole_scores_are_no_decisions():
    scores = (SCORES*100).int()
    for f in (judge, accuracy_report, MultiLabelInterpretation.from_preds):
        with pytest.raises(ValueError, match='integer predictions are binary, 0 or 1, but one is'): f(scores, TARGS)

@pytest.mark.parametrize('make,message', [
    (lambda: PrecisionAtK(math.nan), 'k=nan should be a whole number, 1 or more'),
    (lambda: RecallAtK(True), 'k=True'),
    (lambda: PrecisionAtK(None), 'k=None'),
    (lambda: APScoreMulti(bins=math.inf), 'bins=inf should be a whole number, 2 or more'),
    (lambda: ExpectedCalibrationError(2.5), 'n_bins=2.5'),
    (lambda: paper_metrics(top_k=3.5), 'top_k=3.5'),
    (lambda: F1ScoreMulti(min_labels=-1), 'min_labels=-1 should be a whole number, 0 or more'),
    (lambda: F1ScoreMulti(max_labels=0), 'max_labels=0 should be a whole number, 1 or more'),
    (lambda: F1ScoreMulti(min_labels=3, max_labels=2), 'max_labels=2 should be at least min_labels=3')])
def test_what_must_be_whole(make, message):
    with pytest.raises(ValueError, match=re.escape(message)): make()

def test_a_series_of_thresholds_is_its_values():
    test_eq(F1ScoreMulti(pd.Series([0.2,0.3,0.9], index=['best','thresh','dog'])).thresh, (0.2,0.3,0.9))

def test_names_of_every_kind():
    names = [('a',1),('b',2),3,'c',None,2.5]
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS, vocab=names)
    for o in (interp.report(averages=False), interp.most_missed(), label_stats(TARGS, vocab=names)):
        assert {*o.index}=={*names}

@given(binary_pairs(), st.data())
def test_a_constant_answer_is_not_below_the_baseline(arrays_, data):
    "Also if the first label is ignored in some samples"
    p,y = (o.astype(float) for o in arrays_)
    y[data.draw(arrays(bool, y.shape))] = -1
    if (y<0).all(): return
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        r = accuracy_report(p, y, ignore_index=-1, ci=None)
    assert (r.constant>=r.baseline-1e-12)['accuracy, argmax'] and not np.isinf(r.lift).any()

@settings(max_examples=150)
@given(binary_pairs(min_labels=1), st.sampled_from([0., 0.3, 1., math.nan]), st.booleans(), st.data())
def test_the_columns_of_a_report_are_in_order(arrays_, zero_division, scored, data):
    "No value or interval exceeds the ceiling, and where the baseline reaches it there is no lift"
    p,y = arrays_
    y = np.where(data.draw(arrays(bool, y.shape)), y, data.draw(st.sampled_from([y, 1, -1])))
    if (y<0).all(): return
    if scored: p = (p+np.random.default_rng(0).random(p.shape))/2
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        r = accuracy_report(p, y, ignore_index=-1, zero_division=zero_division)
    assert not any((r[a]>r[b]).any() for a,b in itertools.pairwise(('low','value','high','ceiling')))
    assert not any((r[o]>r.ceiling+1e-12).any() for o in ('baseline','constant'))
    assert r.lift[np.isclose(r.baseline, r.ceiling)].isna().all() and not (r.lift>1).any()

def test_nothing_to_gain_is_no_lift():
    for n,c in ((4,1), (7,3), (50,30)):
        y = torch.ones(n, c)
        r = accuracy_report(torch.rand(n, c), y, ci=None)
        assert (r.baseline==r.ceiling)[['AP, macro','LRAP']].all() and r.lift[['AP, macro','LRAP']].isna().all()
        y[:,::2] = 0
        assert math.isnan(accuracy_report(torch.rand(n, c), y, ci=None).lift['AP, macro'])
        assert accuracy_report(torch.rand(n, c), 0*y, zero_division=0.3, ci=None).lift.isna().all()

def test_an_interval_ends_at_the_ceiling():
    y = TARGS*(torch.arange(300)%4==0)[:,None] # three of four samples have no label
    r = accuracy_report(y.long(), y).loc['F1, samples']
    assert r.low<r.value==r.high==r.ceiling<0.3

def test_decisions_have_no_highest_score():
    "An argmax of 0/1 predictions would be made by ties"
    for p in (SCORES>0.5, (SCORES>0.5).int()):
        assert list(accuracy_report(p, TARGS).index)==[*ROWS[:6], *ROWS[7:11]]
    assert list(accuracy_report(SCORES, TARGS).index)==ROWS

def test_numbers_in_words():
    "Counts have thousands separators, labels without names are 'label 0', and few samples are not 0 %"
    y = torch.zeros(5000, 3)
    y[:,0] = y[:9,1] = y[9:,2] = 1
    y[4988:] = 0
    scores = torch.full_like(y, 0.4)
    text = accuracy_report(scores, y, ci=0.999).reading
    for part in ('the 15,000 sample-label pairs (5,000 samples)', '(99.9% interval',
                 'predicting labels 0, 2 for every sample', ': 12 of 5,000 samples have no label, and 0/0'):
        assert part in text
    text = accuracy_report(scores[4000:4989], y[4000:4989], ci=None).reading
    assert ': 1 of 989 samples has no label, 1 of 3 labels never occurs, and 0/0' in text
    text = accuracy_report(scores[:1,:1], y[:1,:1], ci=None).reading
    assert 'the 1 sample-label pair (1 sample)' in text and 'predicting label 0 for every sample' in text
    for vocab,constant in ((['0'], 'label 0'), ([30], 'label 30'), (['cat'], 'cat'), ([('a',1)], '(a, 1)')):
        assert f'predicting {constant} for' in accuracy_report(scores[:,:1], y[:,:1], vocab=vocab, ci=None).reading

def test_labels_that_look_like_formulas():
    names = ['$a','$b$','c$_','d','$\\frac','f']
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS, vocab=names)
    for f in (interp.plot_confusion_matrices, interp.plot_label_confusion,
              *(partial(interp.plot_thresholds, o) for o in ('$b$','$\\frac'))):
        f()
        plt.gcf().canvas.draw()
    plt.close('all')

def test_pandas_and_foreign_numbers():
    y = pd.DataFrame(TARGS.numpy()).astype('Int64')
    y.iloc[:100,2] = pd.NA
    missing = TARGS.clone()
    missing[:100,2] = math.nan
    for f in FUNCTIONS.values():
        same(f(SCORES, y, ignore_index=math.nan), f(SCORES, missing, ignore_index=math.nan))
    same(metric(SCORES.numpy().astype('>f4'), TARGS.numpy().astype('>i8')), metric(SCORES, TARGS))
    assert F1ScoreMulti(zero_division=np.float32(1)).zero_division==1

@every_function
def test_nothing_that_counts(f):
    if f is metric: return
    with pytest.raises(ValueError, match='not a single sample'):
        f(SCORES, TARGS*math.nan, ignore_index=math.nan)
    with pytest.raises(ValueError, match='not a single sample'): f(SCORES[:0], TARGS[:0])

def test_what_no_vocab_is():
    for vocab,match in (({'a','b','c','d','e','f'}, 'set'),
                        ({0:'a',1:'b',2:'c',3:'d',4:'e',9:'z'}, '0 to 5'),
                        ({c:i for i,c in enumerate('abcdef')}, 'keys'),
                        (list('abc'), '3 names.*6 labels')):
        with pytest.raises(ValueError, match=match): judge(SCORES, TARGS, vocab=vocab)
    for thresh in (math.nan, True, '0.5', [[0.5]]):
        with pytest.raises(ValueError, match='thresh='): judge(SCORES, TARGS, thresh=thresh)
    with pytest.raises(ValueError, match="min_labels='1'"): judge(SCORES, TARGS, min_labels='1')

def test_metrics_of_ones_own_in_plain_numbers():
    class Wrong(CountsMetric):
        def formula(self, tp, fp, fn, tn): return fp.numpy()
    assert Wrong(average="micro", sigmoid=False)(SCORES, TARGS)==((SCORES>0.5) & (TARGS==0)).sum()
    class Seen(StreamMetric):
        def from_batch(self, batch): return batch.inputs[1].sum()
        def from_total(self, total): return float(total)
    assert Seen()(SCORES, TARGS)==TARGS.sum()

# Names

def named(c=6): return list('abcdefgh')[:c]

def test_thresholds_go_by_name():
    p,y = (pd.DataFrame(o.numpy(), columns=named()) for o in (SCORES, TARGS))
    t = pd.Series([0.1,0.2,0.3,0.4,0.5,0.6], index=named())
    found = best_thresholds(p[p.columns[::-1]], y, average='macro')
    assert found.names==named()[::-1]
    plain = best_thresholds(SCORES, TARGS, average='macro')
    of_names = t,t.to_dict(),t.sample(frac=1, random_state=0),[*t],pd.Series([*t])
    ways = [(o, tuple(t)) for o in of_names] + [(found, found.thresh[::-1]), (plain, plain.thresh)]
    for by_name,at in ways:
        for f in (report, record, interpretation): same(f(p, y, thresh=by_name), f(p, y, thresh=at))
        learn = make_learner(LOGITS, TARGS, vocab=named())
        learn.set_thresh(by_name)
        assert learn.loss_func.thresh==at
    with pytest.raises(ValueError, match="thresh is for the labels .*'z'"):
        accuracy_report(p, y, thresh=t.rename(dict(a='z')))

def test_vocab_does_not_contradict_the_columns():
    p,y = (pd.DataFrame(o.numpy(), columns=named()) for o in (SCORES, TARGS))
    with pytest.raises(ValueError, match='another order than the DataFrame'): best_thresholds(p, y, vocab=named()[::-1])
    found = best_thresholds(p, y, average='macro', vocab=list('uvwxyz'))
    assert found.names==list('uvwxyz')

@pytest.mark.parametrize('kind', [pd.DataFrame, lambda o: pd.DataFrame(o)[0]])
def test_rows_go_together(kind):
    p,y = kind(SCORES.numpy()),kind(TARGS.numpy())
    m = F1ScoreMulti(sigmoid=False)
    assert m(p[100:], y[:200])==m(p[100:].to_numpy(), y[:200].to_numpy()) # rows have no names
    p.index = y.index = [f'row {i}' for i in range(300)]
    assert m(p, y)==m(p.reset_index(drop=True), y)
    with pytest.raises(ValueError, match='the same index in another order'): m(p, y[::-1])
    with pytest.raises(ValueError, match='different indexes'): m(p[1:], y[:-1])

# Mistakes in calls

def test_sigmoid_is_no_average():
    for make in (lambda: F1ScoreMulti(0.5, 'samples'),
                 lambda: APScoreMulti('micro'),
                 lambda: RocAucMulti('micro'),
                 lambda: multilabel_metrics(0.5, 'no'),
                 lambda: ZeroLabelsCallback(0.5, 'raise')):
        with pytest.raises(ValueError, match="sigmoid='.*' should be True or False"): make()

@pytest.mark.parametrize('dtype', [np.uint8, np.uint16, np.uint32, np.uint64])
@every_function
def test_unsigned_targets(f, dtype): same(f(SCORES, TARGS.numpy().astype(dtype)), f(SCORES, TARGS))

def test_messages_name_what_was_passed():
    for kw,match in (
            (dict(at_precision=0.6), "at_precision= goes with metric='recall', not with 'f1'"),
            (dict(metric='recall'), "metric='recall' needs at_precision= beside it"),
            (dict(metric=CF1), 'such as JaccardMulti, which is given its average= here')):
        with pytest.raises(ValueError, match=match): best_thresholds(SCORES, TARGS, **kw)
    hard = torch.tensor([[0.9],[0.8],[0.7],[0.6]]),torch.tensor([[0],[1],[1],[0]])
    unreached = r'no threshold reaches a precision \(micro\) of 0.9; the highest is 0.667'
    with pytest.raises(ValueError, match=unreached): best_thresholds(*hard, 'recall', 'micro', at_precision=0.9)

@pytest.mark.parametrize('scale', [1e-4, 0.01, 1, 100, 1000])
def test_margins_of_any_size(scale):
    z = (LOGITS-1).double()
    r,expected = (judge(z*s, TARGS, thresh=0.) for s in (scale, 1))
    assert r.suggested_thresh==pytest.approx(scale*expected.suggested_thresh, rel=0.05)
    assert r.suggested_f1==pytest.approx(expected.suggested_f1, abs=0.02)
    assert r.ap_micro==pytest.approx(APScoreMulti(average='micro')(z, TARGS), abs=2e-3)
    assert abs(binarize(z*scale, r.suggested_thresh, sigmoid=False).sum()/TARGS.sum()-1)<0.05

def test_lists_of_what_scikit_learn_predicts():
    "For each label an array of both classes' probabilities, or of the only class's"
    both = [np.stack([1-p, p], axis=1) for p in SCORES.numpy().T]
    for args,match in (
            ((both, TARGS), 'np.stack([p[:,1] for p in preds], axis=1)'),
            (([*both[:5], both[5][:,:1]], TARGS), 'use the column of class 1 of each, and zeros where there is none'),
            ((both[0], TARGS[:,0]), 'For the probabilities of two classes, use preds[:,1]')):
        with pytest.raises(ValueError, match=re.escape(match)): accuracy_report(*args)
    same(accuracy_report(np.stack([p[:,1] for p in both], axis=1), TARGS), accuracy_report(SCORES, TARGS))

def test_tables_that_differ_name_only_what_differs():
    names,m = [f'l{i}' for i in range(40)],F1ScoreMulti(sigmoid=False)
    def frame(columns): return pd.DataFrame(np.random.default_rng(0).random((20,40)), columns=columns)
    a,b = frame(names),frame([*names[:-7], *'tuvwxyz'])
    differ = "these are not in both, or more than once: ['l33', 'l34', 'l35', 'l36', 'l37'] and 9 more"
    with pytest.raises(ValueError, match=re.escape(differ)): m(a, (b>0.5).astype(int))
    twice = a.set_axis(['l0', *names[:-1]], axis=1)
    with pytest.raises(ValueError, match=re.escape("more than once: ['l0']")): m(twice, twice>0.5)

def test_labels_by_the_names_of_columns():
    names,m = list('abcdef'),F1ScoreMulti(labels=['b','e'], sigmoid=False)
    p,y = (pd.DataFrame(o.numpy(), columns=names) for o in (SCORES, TARGS))
    expected = F1ScoreMulti(labels=[1,4], sigmoid=False)(SCORES, TARGS)
    for args in ((p, y), (p, y[names[::-1]]), (SCORES, y), (p, TARGS)): assert m(*args)==expected
    with pytest.raises(ValueError, match="label 'b' is neither .*: names are known only of DataFrames"):
        m(SCORES, TARGS)
    with pytest.raises(ValueError, match="label 'z' is neither a name nor an index of the 6 labels$"):
        F1ScoreMulti(labels=['z'])(p, y)

def test_lists_that_are_no_tables():
    "A list of batches and ragged lists are not taken for lists of probabilities from scikit-learn"
    for bad in ([SCORES[:64].numpy(), SCORES[64:74].numpy()], [[[.1,.2],[.3]], [[.1],[.2]]]):
        with pytest.raises(ValueError, match='a table of numbers is needed, with a row per sample'):
            AccuracyMulti(sigmoid=False)(bad, TARGS[:74])

def test_rows_of_the_same_names_in_another_kind_of_index():
    p,y = (pd.DataFrame(o.numpy()) for o in (SCORES, TARGS))
    m = AccuracyMulti(sigmoid=False)
    expected = m(p, y)
    for dtype in ('Int64','category'): assert m(p, y.set_axis(pd.Index(range(len(y)), dtype=dtype)))==expected
    with pytest.raises(ValueError, match='different indexes'): m(p[3:6], y[1:4])
    m(p[3:6].reset_index(drop=True), y[1:4])
