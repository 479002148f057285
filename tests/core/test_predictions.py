"Arguments of functions of arrays mean the same everywhere, and mistakes are named"
from helpers import *
from six_labels import LOGITS, SCORES, TARGS, FUNCTIONS, every_function, assert_alike
from six_labels import interpretation, metric, record, report, thresholds
from fastai_mlmetrics.core.predictions import effective_number, Predictions, takes_predictions

@pytest.mark.parametrize('name', ['report','judge','interpretation'])
def test_logits_by_mistake_are_an_error(name):
    f = FUNCTIONS[name]
    with pytest.raises(ValueError, match='sigmoid=True.*thresh=0'): f(LOGITS, TARGS)
    with pytest.raises(ValueError, match='sigmoid=True'): f(LOGITS, TARGS, thresh=[0.5]*6)
    assert_alike(f(LOGITS, TARGS, sigmoid=True)[0], f(SCORES, TARGS)[0])
    with warnings_as('error'):
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
    says = 'threshold is for probabilities.*decision_function, thresh=0.*subtract their threshold, and pass thresh=0'
    with pytest.raises(ValueError, match=says):
        f(shifted, TARGS, thresh=t)
    assert accuracy(shifted-t, thresh=0.)==pytest.approx(meant)
    found = best_thresholds(shifted, TARGS, per_label=False, sigmoid=True)
    assert accuracy(shifted, thresh=found, sigmoid=True)==pytest.approx(meant)
    with pytest.warns(UserWarning, match='not probabilities.*sigmoid=True'): found = best_thresholds(LOGITS, TARGS)
    with pytest.raises(ValueError, match='pass sigmoid=False'): f(LOGITS, TARGS, thresh=found, sigmoid=True)
    with warnings_as('error'):
        for t in (found, (-1.3,0.3,-1.,0.4,-2.,0.)):
            assert accuracy(LOGITS, thresh=t)==pytest.approx(expected(LOGITS, t))

@pytest.mark.parametrize('f', (judge, accuracy_report, best_thresholds, MultiLabelInterpretation.from_preds))
def test_probabilities_with_a_sigmoid_are_told(f):
    logits,targs = simulate(60)
    with pytest.warns(UserWarning, match='seem to be probabilities already: pass sigmoid=False'):
        f(logits.sigmoid(), targs, sigmoid=True)

@pytest.mark.parametrize('f', (judge, accuracy_report, MultiLabelInterpretation.from_preds))
def test_percentages_are_named(f):
    with pytest.raises(ValueError, match='percentages, divide them by 100'): f(100*SCORES, TARGS)
    with pytest.raises(ValueError) as e: f(LOGITS, TARGS)
    assert 'percentages' not in str(e.value)
    with pytest.warns(UserWarning, match='percentages.* by 100'): F1ScoreMulti(sigmoid=False)(100*SCORES, TARGS)

@pytest.mark.parametrize('f', (judge, accuracy_report, MultiLabelInterpretation.from_preds))
def test_a_threshold_that_decides_nothing_is_an_error(f):
    logits,targs = simulate(60)
    for thresh in (2, -0.5, [0.5]*19+[1.5]):
        unused = r'is (above|below) every probability, so .*: all predictions lie'
        with pytest.raises(ValueError, match=unused): f(logits.sigmoid(), targs, thresh=thresh)
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
        assert_alike(scores(found), scores(f(SCORES, TARGS)))
    with pytest.raises(ValueError, match='must be 0 or 1.*ignore_index'): f(noise, targs)
    if f is thresholds: return
    for kw in (dict(thresh=0.2), dict(thresh=[0.1,0.2,0.3,0.4,0.5,0.6]), dict(min_labels=1),
               dict(thresh=0.9, min_labels=2)):
        d = binarize(SCORES, kw.get('thresh', 0.5), False, kw.get('min_labels', 0))
        if f is metric: assert_alike(f(SCORES, TARGS, **kw), f(d, TARGS))
    d = binarize(SCORES, 0.9, False, 1)
    kw = dict(thresh=0.9, min_labels=1)
    if f is report: assert_alike(f(SCORES, TARGS, **kw)[:9], f(d, TARGS)[:9]) # the next rows are rankings
    if f is record: assert_alike(f(SCORES, TARGS, **kw)[:3], f(d, TARGS)[:3])
    if f is interpretation: test_eq(MultiLabelInterpretation.from_preds(SCORES, TARGS, **kw).predicted, d)

def test_keywords_have_one_order():
    order = ['thresh','sigmoid','vocab','min_labels','ignore_index','zero_division']
    for f in (accuracy_report, judge, best_thresholds, MultiLabelInterpretation.from_preds):
        params = inspect.signature(f).parameters
        names = [k for k,p in params.items() if p.kind is p.KEYWORD_ONLY and k in order]
        assert names==[k for k in order if k in names]
        assert 'sigmoid' in names and params['sigmoid'].default is False

def test_whole_scores_are_no_decisions():
    scores = (SCORES*100).int()
    for f in (judge, accuracy_report, MultiLabelInterpretation.from_preds):
        with pytest.raises(ValueError, match='integer predictions are binary, 0 or 1, but one is'): f(scores, TARGS)

@every_function
def test_nothing_that_counts_is_an_error(f):
    if f is metric: return
    with pytest.raises(ValueError, match='there are no samples'):
        f(SCORES, TARGS*math.nan, ignore_index=math.nan)
    with pytest.raises(ValueError, match='there are no samples'): f(SCORES[:0], TARGS[:0])

# The object itself

def six_predictions(**kwargs):
    return Predictions.of(SCORES, TARGS.masked_fill(TARGS.roll(1)>0, -1), ignore_index=-1, **kwargs)

def brute_counts(p, dim):
    "Count each pair that counts, by its definition"
    valid,predicted = p.targs!=-1,p.preds>p.rule.thresh
    true = p.targs==1
    cells = predicted & true, predicted & ~true, ~predicted & true, ~predicted & ~true
    return torch.stack([(o & valid).sum(dim).double() for o in cells])

def test_predictions_are_frozen():
    p = six_predictions()
    for name in ('rule','preds','vocab'):
        with pytest.raises(AttributeError): setattr(p, name, None)

@pytest.mark.parametrize('block', [2**16, 24])
def test_counts_of_one_walk_are_those_of_each_pair(block, monkeypatch):
    monkeypatch.setattr('fastai_mlmetrics.core.predictions._BLOCK', block)
    p = six_predictions(thresh=0.4)
    known = (p.targs!=-1).any(1)
    assert (len([*p.blocks()])>1)==(block==24)
    assert torch.equal(p.counts, brute_counts(p, 0)) and p._cells is p._cells
    assert torch.equal(p.sample_counts, brute_counts(p, 1)[:,known])
    assert torch.equal(p.by_sample(lambda b: b.counts[1]), p.sample_counts)

def test_a_copy_with_another_threshold_counts_again():
    p = six_predictions()
    before = p.counts.clone()
    other = p.replace(rule=p.rule.replace(thresh=0.2))
    assert torch.equal(other.counts, brute_counts(other, 0)) and not torch.equal(other.counts, before)
    assert torch.equal(p.counts, before) and p.rule.thresh==0.5

LABELS = ['b','d']

def chosen(f, preds=SCORES, cut=[1,3], **kw):
    "Results of `labels=`, and of the same function of arrays cut to these labels"
    kw_cut = dict(kw)
    if 'thresh' in kw: kw_cut['thresh'] = [kw['thresh'][i] for i in cut]
    return (f(preds, TARGS, vocab=[*'abcdef'], labels=LABELS, **kw),
            f(preds[:,cut], TARGS[:,cut], vocab=LABELS, **kw_cut))

@pytest.mark.parametrize('kw', [
    {}, dict(thresh=[0.1,0.2,0.3,0.4,0.5,0.6]), dict(groups=np.arange(len(SCORES))//2)], ids=list)
def test_some_labels_are_those_of_cut_arrays(kw):
    a,b = chosen(accuracy_report, **kw)
    pd.testing.assert_frame_equal(a, b)
    assert a.reading.startswith(b.reading+' Only these labels are scored: b, d.')
    a,b = chosen(MultiLabelInterpretation.from_preds, **kw)
    pd.testing.assert_frame_equal(a.report(), b.report())
    test_eq(a.losses, b.losses)
    pd.testing.assert_frame_equal(a.mistakes(), b.mistakes())
    a,b = chosen(judge, **kw)
    assert a.labels==LABELS and b.labels is None and math.isnan(a.label_each_f1)
    differ = {k for k in a if repr(a[k])!=repr(b[k])}
    assert differ=={'labels','label_each_f1'}
    assert 'for the labels b, d.' in ' '.join(repr(a).split())

def test_models_are_compared_on_some_labels():
    def f(preds, targs, **kw): return compare_models(dict(first=preds, other=preds**2), targs, **kw)
    a,b = chosen(f)
    pd.testing.assert_frame_equal(a, b)
    assert 'Only these labels are scored: b, d.' in a.reading

@pytest.mark.parametrize('limits', [dict(min_labels=1), dict(max_labels=1), dict(min_labels=2, max_labels=2),
                                    dict(max_labels=1, thresh=[0.1,0.2,0.3,0.4,0.5,0.6])], ids=str)
@pytest.mark.parametrize('targs,ignored', [(TARGS,None), (TARGS.masked_fill(SCORES>0.6, -1),-1)], ids=['all','some'])
def test_limits_are_on_all_labels_as_in_metrics(limits, targs, ignored):
    kw = dict(labels=LABELS, vocab=[*'abcdef'], ignore_index=ignored, **limits)
    p = Predictions.of(SCORES, targs, **kw)
    d = binarize(SCORES, limits.get('thresh', 0.5), False, limits.get('min_labels', 0), limits.get('max_labels'))
    test_eq(p.predicted, d[:,[1,3]] & p.valid)
    test_eq(p.counts, torch.stack([(p.predicted==a) & (p.true==b) & p.valid
                                   for a,b in ((1,1),(1,0),(0,1),(0,0))]).sum(1).double())
    test_eq(p.counted().counts, p.counts)
    def of_metric(average):
        m = F1ScoreMulti(sigmoid=False, labels=[1,3], average=average, ignore_index=ignored, **limits)
        return m(SCORES, targs)
    r = judge(SCORES, targs, **kw)
    assert (r.f1_micro, r.f1_macro)==(of_metric('micro'), of_metric('macro'))
    row = accuracy_report(SCORES, targs, **kw).value
    for average in ('micro','macro','samples'): test_close(row[f'f1_{average}'], of_metric(average), eps=1e-9)
    # Suggested thresholds have no limits
    cut = judge(SCORES[:,[1,3]], targs[:,[1,3]], ignore_index=ignored)
    assert (r.suggested_thresh, r.suggested_f1)==(cut.suggested_thresh, cut.suggested_f1)

@pytest.mark.parametrize('f', (judge, accuracy_report, MultiLabelInterpretation.from_preds))
@pytest.mark.parametrize('labels,vocab,why', [
    (['cet'], ['cat','dog','cow','hen','fox','bee'], "'cet' is not in the vocab: did you mean 'cat'"),
    (['cat'], None, "label 'cat' is not known, because the labels have no names: use its index, or pass vocab="),
    ([6], None, 'label 6 is not in the vocab'),
    ([], None, 'leaves nothing to score'), (['a',0], [*'abcdef'], "labels has 'a' 2 times")])
def test_wrong_labels_are_named(f, labels, vocab, why):
    with pytest.raises(ValueError, match=why): f(SCORES, TARGS, labels=labels, vocab=vocab)
    if vocab: f(SCORES, TARGS, labels=vocab[3], vocab=vocab)

def test_each_label_has_a_threshold_whichever_are_scored():
    with pytest.raises(ValueError, match='2 values, but there are 6 labels: pass a number, or one per label'):
        accuracy_report(SCORES, TARGS, labels=[1,3], thresh=[0.2,0.3])
    table = pd.DataFrame(TARGS.numpy(), columns=[*'abcdef'])
    r = judge(SCORES, table, labels=['d','b'], thresh=dict(zip('fedcba', (0.6,0.5,0.4,0.3,0.2,0.1))))
    assert r.thresh==(0.4,0.2) and r.labels==['d','b']

def test_a_column_is_a_label():
    p = six_predictions()
    scores,true,valid = p.column(2)
    assert torch.equal(scores, p.preds[:,2]) and torch.equal(true, p.targs[:,2]==1)
    assert torch.equal(valid, p.targs[:,2]!=-1)

@pytest.mark.parametrize('n,rough', [(9,True), (10,False)])
def test_intervals_of_few_groups_are_rough(n, rough):
    "Groups of which no target counts are none"
    targs = TARGS.clone()
    groups = np.arange(len(targs))%(n+1)
    targs[groups==0] = -1
    p = Predictions.of(SCORES, targs, groups=groups, ignore_index=-1)
    assert p.n_independent==n and ('scores are rough' in p.sampling)==rough and f'The {n} groups' in p.sampling
    assert 'differ in size' not in p.sampling # By one sample at most
    p = p.counted()
    assert p.groups.unique().tolist()==[*range(n)] and len(p.groups)==len(p.preds)==(groups>0).sum()

def test_groups_of_unequal_sizes_count_as_fewer():
    "15 patients, of which one has most of the images"
    groups = np.r_[np.zeros(60, int), np.arange(1, 15).repeat(10)]
    p = Predictions.of(SCORES[:200], TARGS[:200], groups=groups)
    effective = 200**2/(60**2+14*10**2)
    assert effective_number(p.groups)==pytest.approx(effective) and round(effective)==8
    assert p.sampling==('The 15 groups are taken as independent. They differ in size, and count as 8 groups of equal '
                        'size. With fewer than 10 groups, intervals and held-out scores are rough.')
    equal = Predictions.of(SCORES[:200], TARGS[:200], groups=np.arange(15).repeat(14)[:200])
    assert equal.sampling=='The 15 groups are taken as independent.'

@pytest.mark.parametrize('n,told', [(9,False), (10,True)])
def test_a_few_scores_may_be_in_0_to_1_by_chance(n, told):
    scores,targs = torch.linspace(0.1, 0.9, n)[:,None],torch.ones(n, 1)
    with warnings_as('error') if not told else pytest.warns(UserWarning, match='probabilities already'):
        Predictions.of(scores, targs, sigmoid=True)
    with pytest.raises(ValueError, match='all predictions lie') if told else contextlib.nullcontext():
        Predictions.of(scores, targs, thresh=2.)

@pytest.mark.parametrize('low,high,percent', [(0,100,True), (-0.1,100,False), (0,100.1,False), (20,80,True)])
def test_scores_from_0_to_100_may_be_percentages(low, high, percent):
    scores = torch.linspace(low, high, 12).view(6, 2)
    with pytest.raises(ValueError, match='seem to be logits') as e: Predictions.of(scores, torch.ones(6, 2))
    assert ('divide them by 100' in str(e.value))==percent
    Predictions.of(scores, torch.ones(6, 2), sigmoid=True)
    Predictions.of(scores, torch.ones(6, 2), thresh=None)

@pytest.mark.parametrize('value', [-1.,7.,math.nan])
def test_predictions_of_ignored_targets_may_be_anything(value):
    targs = TARGS.masked_fill(TARGS.roll(1)>0, -1)
    p = Predictions.of(SCORES.masked_fill(targs==-1, value), targs, ignore_index=-1)
    assert torch.equal(p.counts, six_predictions().counts) and p.nan_warning is None

def test_names_of_columns_in_another_order_are_an_error():
    table = pd.DataFrame(TARGS.numpy(), columns=[*'abcdef'])
    with pytest.raises(ValueError, match='another order than the DataFrame'):
        Predictions.of(SCORES, table, vocab=[*'abcdfe'])
    assert [*Predictions.of(SCORES, table, vocab=[*'ABCDEF']).vocab]==[*'ABCDEF'] # Other names
    p = Predictions.of(SCORES, table, labels=['e','b'], thresh=dict(zip('fedcba', (0.6,0.5,0.4,0.3,0.2,0.1))))
    assert (p.columns,p.rule.thresh,[*p.vocab])==((4,1), (0.5,0.2), ['e','b'])
    assert torch.equal(p.targs, TARGS[:,[4,1]]) and p.which_labels=='Only these labels are scored: e, b.'
    limited = Predictions.of(SCORES, table, labels=['e','b'], max_labels=1)
    assert torch.equal(limited.predicted, binarize(SCORES, 0.5, False, 0, 1)[:,[4,1]].bool())

def test_predictions_of_ignored_targets_are_replaced_among_probabilities_only():
    targs = TARGS.masked_fill(TARGS.roll(1)>0, -1)
    wild = SCORES.masked_fill(targs==-1, 7.)
    p = Predictions.of(wild, targs, ignore_index=-1)
    assert p.preds[targs==-1].isnan().all() and torch.equal(p.preds[targs>=0], SCORES[targs>=0])
    for given,kw in ((LOGITS,dict(sigmoid=True)), (SCORES,{})):
        assert torch.equal(Predictions.of(given, targs, ignore_index=-1, **kw).preds, given)
    far = LOGITS.masked_fill(targs==-1, 999.)
    with pytest.raises(ValueError, match='seem to be logits') as e: Predictions.of(far, targs, ignore_index=-1)
    assert '999' not in str(e.value)
    with pytest.raises(ValueError, match=r'predictions like -?\d'):
        Predictions.of(LOGITS.masked_fill(TARGS>0, math.nan), TARGS)

@pytest.mark.parametrize('n,told', [(9,False), (10,True)])
def test_ignored_scores_and_those_of_later_samples_tell_no_scale(n, told):
    scores,targs = torch.linspace(0.1, 0.9, 30)[:,None],torch.ones(30, 1)
    targs[n:20] = -1
    with warnings_as('error') if not told else pytest.warns(UserWarning, match='probabilities already'):
        Predictions.of(scores, targs, sigmoid=True, ignore_index=-1)

def test_binary_predictions_have_no_rule_but_what_they_ignore():
    targs = TARGS.masked_fill(TARGS.roll(1)>0, -1)
    p = Predictions.of(SCORES>0.5, targs, thresh=0.3, sigmoid=True, max_labels=1, ignore_index=-1)
    assert (p.rule.thresh,p.rule.sigmoid,p.rule.limits)==(0.5,False,ThresholdRule().limits)
    assert torch.equal(p.counts, six_predictions().counts) and not p.scored
    assert p.scores.dtype==torch.float32 and set(p.scores.unique().tolist())=={0.,1.}

def test_defaults_and_names_of_samples():
    p = Predictions.of(SCORES, TARGS)
    assert (p.rule.thresh,p.rule.min_labels,p.rule.max_labels,p.zero_division,p.index)==(0.5,0,None,0.,None)
    names = [f's{i}' for i in range(len(SCORES))]
    table = pd.DataFrame(TARGS.numpy(), index=names)
    assert [*Predictions.of(SCORES, table).index]==names

def test_a_label_has_its_threshold():
    p = Predictions.of(SCORES, TARGS, vocab=[*'abcdef'], thresh=dict(zip('abcdef', (0.1,0.2,0.3,0.4,0.5,0.6))))
    assert [p.rule_of(i).thresh for i in (0,5)]==[0.1,0.6] and p.rule_of(5).names is None
    assert six_predictions(thresh=0.4).rule_of(3).thresh==0.4

def test_samples_that_count_are_kept_without_a_copy():
    p = six_predictions()
    assert p.counted().preds.data_ptr()==p.preds.data_ptr() # Each sample counts
    targs = TARGS.clone()
    targs[:7] = -1
    p = Predictions.of(SCORES, targs, ignore_index=-1, labels=[1,3], max_labels=1, groups=np.arange(len(SCORES))//2)
    few = p.counted()
    assert len(few.preds)==len(few.all_labels.preds)==len(SCORES)-7 and torch.equal(few.predicted, p.predicted[7:])
    assert few.all_labels.groups is None # They are those of `p`
    assert Predictions.of(SCORES, targs, ignore_index=-1).n_independent==len(SCORES)-7

def test_without_limits_the_rule_of_chosen_labels_decides():
    limited = Predictions.of(SCORES, TARGS, labels=[4,1], max_labels=1)
    free = limited.replace(rule=limited.rule.replace(max_labels=None, thresh=0.2))
    assert torch.equal(free.predicted, SCORES[:,[4,1]]>0.2)
    of_all = Predictions.of(SCORES, TARGS, max_labels=1)
    assert of_all.all_labels is None and torch.equal(of_all.predicted, binarize(SCORES, 0.5, False, 0, 1).bool())

@pytest.mark.parametrize('limits', [dict(max_labels=1), dict(min_labels=1), dict(min_labels=2, max_labels=2)], ids=str)
@pytest.mark.parametrize('first', [
    {}, dict(max_labels=3), dict(thresh=[0.1,0.2,0.3,0.4,0.5,0.6], min_labels=1)], ids=str)
def test_a_new_rule_has_its_threshold_and_limits_for_all_labels(first, limits):
    "One threshold is for all labels; of thresholds by label, those of other labels stay"
    p = Predictions.of(SCORES, TARGS, labels=[4,1], **first)
    of_others = first.get('thresh', [0.5]*6)
    for thresh in (0.3, (0.2,0.7)):
        new = p.replace(rule=p.rule.replace(thresh=thresh, **{**dict(min_labels=0, max_labels=None), **limits}))
        of_all = [*of_others[:1], 0.7, *of_others[2:4], 0.2, *of_others[5:]] if isinstance(thresh, tuple) else thresh
        expected = binarize(SCORES, of_all, False, **limits)[:,[4,1]].bool()
        test_eq(new.predicted, expected)
        test_eq(new.counts[:2].sum(0), expected.sum(0).double())

def test_a_block_knows_where_it_starts(monkeypatch):
    "Among the samples with a target that counts; blocks without one are left out"
    monkeypatch.setattr('fastai_mlmetrics.core.predictions._BLOCK', 24)
    targs = TARGS[:20].clone()
    targs[4:8] = targs[9] = -1
    blocks = [*Predictions.of(SCORES[:20], targs, ignore_index=-1).blocks()]
    assert [(b.start,b.n) for b in blocks]==[(0,4), (4,3), (7,4), (11,4)]
    monkeypatch.setattr('fastai_mlmetrics.core.predictions._BLOCK', 1) # Less than a sample
    assert len([*Predictions.of(SCORES[:5], TARGS[:5]).blocks()])==5

def test_an_ignored_target_is_not_true():
    targs = TARGS.masked_fill(TARGS.roll(1)>0, 7)
    p = Predictions.of(SCORES.half(), targs, ignore_index=7)
    scores,true,valid = p.column(2)
    assert scores.dtype==torch.float32 and torch.equal(true, targs[:,2]==1) and torch.equal(valid, targs[:,2]!=7)
    assert torch.equal(p.true, targs==1) and not (p.predicted & (targs==7)).any()

def test_keywords_of_predictions_come_first_and_stay_in_order():
    @takes_predictions(but=['labels'])
    def f(own, preds, *, later=1, thresh=0.3, **kwargs): pass
    names = [*inspect.signature(f).parameters]
    assert names[:3]==['own','preds','thresh'] and names[-1]=='later' and 'labels' not in names
    assert names[2:-1]==[o for o in inspect.signature(Predictions.of).parameters if o in names[2:-1]]

ROUNDED = {'1.0000001': (torch.float32, 1.0000001), '-1e-12': (torch.float64, -1e-12), '1.001': (torch.float16, 1.001)}

def rounded(name):
    "Probabilities of which one is a rounding outside of [0, 1], and the same ones inside"
    dtype,value = ROUNDED[name]
    p = SCORES.to(dtype).clone()
    p[5,2] = value
    assert p[5,2]<0 or p[5,2]>1
    return p,p.clamp(0, 1)

@pytest.mark.parametrize('name', ROUNDED)
@every_function
def test_probabilities_may_be_a_rounding_off(f, name):
    p,inside = rounded(name)
    with warnings_as('error'): assert_alike(f(p, TARGS), f(inside, TARGS))

@pytest.mark.parametrize('name', ROUNDED)
@pytest.mark.parametrize('make', [
    lambda: F1ScoreMulti(sigmoid=False), lambda: APScoreMulti(sigmoid=False, bins=64),
    lambda: RocAucMulti(sigmoid=False, bins=64), lambda: BrierScoreMulti(sigmoid=False),
    lambda: ExpectedCalibrationError(sigmoid=False)])
def test_metrics_take_what_rounding_makes_of_probabilities(make, name):
    p,inside = rounded(name)
    targs = TARGS.clone()
    targs[5,2] = float(p[5,2]>1) # The highest score is a true positive, the lowest a true negative
    with warnings_as('error'): assert make()(p, targs)==pytest.approx(make()(inside, targs), abs=1e-5)

@pytest.mark.parametrize('name', ROUNDED)
def test_searches_in_bins_take_what_rounding_makes_of_probabilities(name):
    p,inside = rounded(name)
    with warnings_as('error'):
        for kw in (dict(bins=1024), dict(average='macro')):
            assert best_thresholds(p, TARGS, **kw).thresh==best_thresholds(inside, TARGS, **kw).thresh
        def found(preds):
            finder = ThreshFinder('f1', 'macro', sigmoid=False)
            finder.update(preds, TARGS)
            return finder.compute().thresh
        assert found(p)==found(inside)

def test_a_refusal_shows_the_digits_that_matter():
    for value,shown in ((1.0031, '1.003'), (-0.0125, '-0.0125')):
        p = SCORES.clone()
        p[5,2] = value
        for f in (judge, accuracy_report, MultiLabelInterpretation.from_preds):
            with pytest.raises(ValueError, match=f' {shown}\\b.* seem to be logits|seem.* {shown}\\b'): f(p, TARGS)
        with pytest.raises(ValueError, match=f' {shown}\\b'): BrierScoreMulti(sigmoid=False)(p, TARGS)
    p,_ = rounded('1.0000001')
    with pytest.warns(UserWarning, match='already: pass sigmoid=False'): judge(p, TARGS, sigmoid=True)
