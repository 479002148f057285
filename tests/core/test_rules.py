"The threshold rule: scores to binary predictions, thresholds by name, limits"
import fastai_mlmetrics.metrics.formulas, pickle, sklearn.metrics as skm
from helpers import *
from fastai_mlmetrics.core.rules import as_thresh, BELOW_ALL, complete_thresh, useless_thresh
from six_labels import LOGITS, NAMES, SCORES, TARGS, assert_alike, interpretation, record, report

def test_a_series_of_thresholds_is_its_values():
    test_eq(F1ScoreMulti(pd.Series([0.2,0.3,0.9], index=['best','thresh','dog'])).thresh, (0.2,0.3,0.9))

def test_thresholds_go_by_name_in_each_function():
    p,y = (pd.DataFrame(o.numpy(), columns=NAMES) for o in (SCORES, TARGS))
    t = pd.Series([0.1,0.2,0.3,0.4,0.5,0.6], index=NAMES)
    found = best_thresholds(p[p.columns[::-1]], y, average='macro')
    assert found.names==NAMES[::-1]
    plain = best_thresholds(SCORES, TARGS, average='macro')
    of_names = t,t.to_dict(),t.sample(frac=1, random_state=0),[*t],pd.Series([*t])
    ways = [(o, tuple(t)) for o in of_names] + [(found, found.thresh[::-1]), (plain, plain.thresh)]
    for by_name,at in ways:
        for f in (report, record, interpretation): assert_alike(f(p, y, thresh=by_name), f(p, y, thresh=at))
        learn = make_learner(LOGITS, TARGS, vocab=NAMES)
        learn.set_thresh(by_name)
        assert learn.loss_func.thresh==at
    with pytest.raises(ValueError, match="thresh is for the labels .*'z'"):
        accuracy_report(p, y, thresh=t.rename(dict(a='z')))

@pytest.mark.slow
def test_rules_of_another_process_are_not_mixed_up():
    theirs = in_process(F1ScoreMulti, 0.9)
    others = [F1ScoreMulti(t) for t in np.linspace(0.01, 0.99, 50)]
    assert theirs.rule==ThresholdRule(0.9) and all(theirs.rule!=o.rule or o.rule.thresh==0.9 for o in others)

def test_thresholds_by_name_are_put_in_order_once():
    rule,vocab = ThresholdRule(dict(a=0.1, b=0.2, c=0.3)),['c','a','b']
    once,_ = rule.for_labels(3, vocab)
    assert once.thresh==once.for_labels(3, vocab)[0].thresh==once.for_labels(3)[0].thresh==(0.3,0.1,0.2)

@given(binary_pairs(), st.integers(1, 3))
def test_min_labels_adds_the_highest_scores(pair, k):
    p,y = pair
    scores = torch.rand(p.shape)*0.4 + 0.6*torch.tensor(p)
    d = binarize(scores, 0.5, False, min_labels=k)
    assert (d.sum(1)==torch.tensor(p).sum(1).clamp(min=min(k, p.shape[1]))).all()
    assert (d | ~torch.tensor(p).bool()).all()
    for s,row in zip(scores, d):
        if (~row).any() and row.any(): assert s[row].min() > s[~row].max()
    same(EmptyRate(0.5, False, min_labels=1)(scores, y), 0)

def test_min_labels_counts_what_is_predicted_already():
    "With a threshold per label, a label that is predicted need not have the highest score"
    scores = tensor([[.9,.6,.1], [.9,.4,.1]])
    for k,expected in ((1, [[0,1,0], [1,0,0]]), (2, [[1,1,0], [1,1,0]])):
        test_eq(binarize(scores, (.95,.5,.5), False, min_labels=k).int().tolist(), expected)

TWO_ROWS,TWO_TARGS = tensor([[-.1,-.1,-.1],[.1,.1,.1]]),tensor([[0,0,0],[0,1,1]])

def test_thresholds_on_logits_take_no_sigmoid():
    same(accuracy_multi(TWO_ROWS, TWO_TARGS), 5/6, 1e-7)
    same(accuracy_multi(TWO_ROWS, TWO_TARGS, thresh=0., sigmoid=False), 5/6, 1e-7)
    with pytest.warns(UserWarning, match='seem to be logits.*sigmoid=True'):
        same(accuracy_multi(TWO_ROWS, TWO_TARGS, sigmoid=False), 4/6, 1e-7)
    assert F1ScoreMulti(thresh=0., sigmoid=False, average='micro')(TWO_ROWS, TWO_TARGS)==0.8

def test_half_is_not_predicted():
    scores = tensor([[0.5,0.5+1e-6],[0.,1.]])
    assert binarize(scores, sigmoid=False).tolist()==[[False,True],[False,True]]
    logits = torch.randn(10_000)*10
    assert torch.equal(binarize(logits), binarize(logits, 0., False))

def test_thresholds_per_label_may_be_of_any_type():
    logits,targs = simulate(200, 3)
    t = [0.1,0.5,0.9]
    p = (logits.sigmoid()>tensor(t)).numpy()
    ref = skm.f1_score(targs, p, average='macro')
    for thresh in (t, tuple(t), tensor(t), np.array(t)): same(F1ScoreMulti(thresh)(logits, targs), ref)

@given(st.floats(0, 1, width=32), st.sampled_from([torch.float32, torch.float64]), st.integers(0, 10**6))
def test_a_threshold_is_compared_with_torchs_sigmoid(thresh, dtype, seed):
    x = torch.from_numpy(np.random.default_rng(seed).normal(0, 8, 200)).to(dtype)
    assert torch.equal(binarize(x, thresh), x.sigmoid()>thresh)
    on_a_score = x.sigmoid()[0].item()
    assert torch.equal(binarize(x, on_a_score), x.sigmoid()>on_a_score)

def test_decisions_are_those_of_torch():
    x = torch.randn(200_000)*5
    for t in (0., 0.01, 0.2, 0.5, 0.777, 0.99, 1.):
        assert torch.equal(binarize(x, t), x.sigmoid()>t)
    for dtype in (torch.float16, torch.bfloat16):
        half = x.to(dtype)
        assert torch.equal(binarize(half, 0.2), binarize(half.float(), 0.2))

def test_more_min_labels_than_labels_are_an_error():
    with pytest.raises(ValueError, match='min_labels=9 is more than the 3 labels'):
        F1ScoreMulti(min_labels=9)(*simulate(60, 3))

def test_thresholds_of_another_length_are_an_error():
    with pytest.raises(ValueError, match='thresh has 2 values.*3 labels'):
        F1ScoreMulti([0.1,0.2])(torch.randn(4,3), torch.zeros(4,3))

def test_thousands_of_thresholds_are_told_apart():
    "Thresholds leave nothing in memory"
    logits,targs = simulate(20)
    thresholds = np.linspace(0.1, 0.9, 200)
    metrics = [F1ScoreMulti([t]*20, average='micro', name=str(t)) for t in thresholds]
    learn = make_learner(logits, targs, metrics)
    v = values(learn)
    for t in (0.1, 0.9): same(v[str(t)], F1ScoreMulti(t, average='micro')(logits, targs))
    rules = [o.rule for o in learn.metrics]
    test_eq(len({*rules}), 200)
    test_eq(ThresholdRule(rules[0].thresh), rules[0])
    test_ne(ThresholdRule(rules[1].thresh), rules[0])

def test_thresholds_are_matched_to_labels_by_name():
    "A dict, a Series and a result of best_thresholds are matched to the labels by name, in any order"
    logits,targs = simulate(300, 3, bias=-1)
    names,t = list('abc'),(0.2, 0.4, 0.6)
    df,y = (pd.DataFrame(o.numpy(), columns=names) for o in (logits, targs))
    expected = F1ScoreMulti(t, average=None)(logits, targs)
    for thresh in (dict(c=0.6, a=0.2, b=0.4), pd.Series([0.6, 0.2, 0.4], list('cab'))):
        m = F1ScoreMulti(thresh, average=None)
        same(m(df, y), expected)
        same(pickle.loads(pickle.dumps(m))(df, y), expected)
        learn = make_learner(logits, targs, m, vocab=names)
        with learn.no_logging(): same(learn.validate()[1], expected)
        for one in ('micro','samples'):
            same(F1ScoreMulti(thresh, average=one)(df, y), F1ScoreMulti(t, average=one)(logits, targs))
    for of_numbers in (dict(enumerate(t)), {str(i): o for i,o in enumerate(t)}):
        same(F1ScoreMulti(of_numbers, average=None)(logits, targs), expected)
    with pytest.raises(ValueError, match='labels have no names here.*vocab='):
        F1ScoreMulti(dict(c=0.6, a=0.2, b=0.4))(logits, targs)
    scores = logits.sigmoid()
    with pytest.raises(ValueError, match='labels have no names here.*vocab='):
        judge(scores, targs, thresh=dict(zip(names, t)))
    assert judge(scores, targs, thresh=dict(zip(names, t)), vocab=names).thresh==t
    many = {f'label {i}': 0.5 for i in range(500)}
    with pytest.raises(ValueError, match='thresh is for the labels') as e:
        F1ScoreMulti(many)(*(pd.DataFrame(np.eye(500)).add_prefix('l') for _ in range(2)))
    assert len(str(e.value))<200
    with pytest.raises(ValueError, match='thresh is for the labels'): F1ScoreMulti(dict(a=0.2, b=0.4, d=0.6))(df, y)
    with pytest.raises(ValueError, match='labels have no names here.*vocab='): judge(scores, targs, thresh=dict(a=0.2))

@pytest.mark.parametrize('thresh,message', [
    (dict(b=0.4), r"thresh lacks \['a', 'c'\]: pass a number for each label"),
    (dict(a=0.2, b=0.4, c=0.6, d=0.5), r"thresh is for the labels \['d'\], which are not here$"),
    (dict(a=0.2, d=0.4), r"thresh is for the labels \['d'\], which are not here$"),
    (pd.Series([0.2, 0.3, 0.4, 0.5], list('abcc')), "thresh has more than one number for a label$")])
def test_what_is_wrong_with_names(thresh, message):
    df,y = (pd.DataFrame(o.numpy(), columns=list('abc')) for o in simulate(20, 3))
    with pytest.raises(ValueError, match=message) as e: F1ScoreMulti(thresh)(df, y)
    assert '[]' not in str(e.value)

def test_some_names_take_the_others_from_the_present_thresholds():
    assert complete_thresh(dict(b=0.4), 0.5, list('abc'))==dict(a=0.5, b=0.4, c=0.5)
    assert complete_thresh(pd.Series(dict(c=0.4)), (0.1,0.2,0.3), list('abc'))==dict(a=0.1, b=0.2, c=0.4)
    assert complete_thresh({0: 0.4}, 0.5, [0,1])=={0: 0.4, 1: 0.5}
    for unchanged in (0.3, [0.1,0.2], dict(a=0.1, d=0.2), dict(a=0.1, b=0.2, c=0.3)):
        assert complete_thresh(unchanged, 0.5, list('abc')) is unchanged
    assert complete_thresh(dict(a=0.1), 0.5, None)==dict(a=0.1)

THRESHOLDS = st.lists(st.sampled_from((0.1,0.3,0.5,0.7)), min_size=7, max_size=7)

@given(distinct(), st.integers(1, 4), st.integers(0, 4), THRESHOLDS, st.booleans())
def test_limits_keep_the_highest_scores(data, most, least, each, one):
    scores,_ = data
    thresh = each[0] if one else each[:scores.shape[1]]
    if least>most:
        with pytest.raises(ValueError, match=f'max_labels={most} should be .* {least} or more'):
            ThresholdRule(min_labels=least, max_labels=most)
        return
    d = binarize(torch.from_numpy(scores), thresh, min_labels=least, max_labels=most).int().numpy()
    passed = 1/(1+np.exp(-scores.astype(float)))>thresh
    for got,s,ok in zip(d, scores, passed):
        order = np.argsort(-s)
        if least==most: wanted = order[:most]
        else:
            wanted = [i for i in order if ok[i]][:most]
            wanted += [i for i in order if i not in wanted][:max(0, least-len(wanted))]
        assert {*np.flatnonzero(got)}=={*wanted}

def test_limits_hold_for_ties_and_few_labels():
    tied = torch.zeros(4, 5)
    d = binarize(tied, 0.2, min_labels=2, max_labels=2)
    assert (d.sum(1)==2).all() and (d==d[0]).all()
    assert torch.equal(d, binarize(tied, 0.9, min_labels=2, max_labels=2))
    assert binarize(tied, 0.2, max_labels=9).all()
    assert binarize(tied, 0.2, min_labels=9, max_labels=9).all()
    assert not binarize(tied, 0.9, max_labels=3).any()
    low,high = torch.tensor([[-200.,-150.,-180.]]),torch.tensor([[20.,40.,30.]]) # with equal sigmoids
    for o in (low, high): assert binarize(o, min_labels=1, max_labels=1).tolist()==[(o==o.max()).tolist()[0]]
    assert binarize(torch.ones(2, 3).long(), max_labels=1).all() # binary predictions: no limits

@pytest.mark.parametrize('max_labels', [0, -1, 1.5, True, '3', math.nan, math.inf])
def test_max_labels_must_be_whole(max_labels):
    with pytest.raises(ValueError, match='max_labels=.* should be a whole number'):
        F1ScoreMulti(max_labels=max_labels)

def test_rules_with_limits_are_shared_and_copied():
    logits,targs = simulate(n=64, bias=-1.)
    a,b = ThresholdRule(min_labels=3, max_labels=3),ThresholdRule(max_labels=3)
    assert a!=b and a==pickle.loads(pickle.dumps(a)) and deepcopy(b).max_labels==3
    assert hash(a)==hash(ThresholdRule(min_labels=3, max_labels=np.int64(3)))
    m = F1ScoreMulti(min_labels=3, max_labels=3)
    assert repr(m)=='F1ScoreMulti(min_labels=3, max_labels=3)' and (m.min_labels,m.max_labels)==(3,3)
    calls,old = [],ThresholdRule.binarize
    def counted(self, *args):
        calls.append(self.limits)
        return old(self, *args)
    with pytest.MonkeyPatch.context() as mp:
        mp.setattr(ThresholdRule, 'binarize', counted)
        values(make_learner(logits, targs, paper_metrics(top_k=3), bs=64))
    assert sorted(calls)==['', 'min_labels=3, max_labels=3'] # each rule is applied once

def test_no_word_of_the_threshold_where_it_has_no_say():
    logits,targs = simulate()
    with warnings_as('error'): F1ScoreMulti(sigmoid=False, min_labels=3, max_labels=3)(logits, targs)
    with pytest.warns(UserWarning, match='seem to be logits'):
        F1ScoreMulti(sigmoid=False, max_labels=3)(logits, targs)

def test_a_threshold_in_words():
    many = dict(thresh=[0.15345,0.9,0.0312,0.5,0.5,0.5], min_labels=1)
    by_label = '0.0312 to 0.9 by label'
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS, **many)
    for r in (interp.report(), accuracy_report(SCORES, TARGS, **many)):
        assert f'Predicted at thresh={by_label}, min_labels=1.' in r.attrs['about']
    assert one_line(repr(judge(SCORES, TARGS, **many))).startswith(f'At threshold {by_label}, min_labels=1, ')

def test_exactly_two_labels_need_no_threshold():
    two,text = dict(min_labels=2, max_labels=2),'with min_labels=2, max_labels=2.'
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS, **two)
    r = interp.report()
    assert f'Predicted {text}' in r.attrs['about'] and r.thresh.isna().all()
    interp.plot_thresholds(0)
    assert plt.gca().get_legend_handles_labels()[1]==['precision','recall','f1']
    plt.close()
    r = accuracy_report(SCORES, TARGS, **two)
    assert f'Predicted {text}' in r.attrs['about'] and r.columns.name is None and 'thresh=' not in repr(r)
    assert one_line(repr(judge(SCORES, TARGS, **two))).startswith('With min_labels=2, max_labels=2, ')

def test_metrics_match_thresholds_by_name_where_names_are_known():
    "A metric matches thresholds to the labels by name, if the names of the labels are known, else by position"
    names = list('abc')
    logits,targs = simulate(200, 3, density=0.3, bias=-1.)
    p,y = (pd.DataFrame(o.numpy(), columns=names) for o in (logits.sigmoid(), targs))
    by_name = pd.Series(dict(c=0.2, b=0.5, a=0.7))
    expected = accuracy_report(p, y, thresh=by_name).value['f1_macro']
    assert F1ScoreMulti([0.7,0.5,0.2], sigmoid=False)(p, y)==pytest.approx(expected)
    assert F1ScoreMulti(by_name[names], sigmoid=False)(p, y)==pytest.approx(expected)
    by_position = pd.Series([0.7,0.5,0.2])
    assert F1ScoreMulti(by_position, sigmoid=False)(p, y)==pytest.approx(expected) # an index of numbers is no names
    assert F1ScoreMulti(by_name, sigmoid=False)(p[names[::-1]], y)==pytest.approx(expected)
    found = best_thresholds(p[names[::-1]], y, average='macro')
    for thresh in (by_name, found):
        value = F1ScoreMulti(thresh, sigmoid=False)(p, y)
        assert value==F1ScoreMulti(as_thresh(thresh)[::-1], sigmoid=False)(p, y)
        learn = make_learner(logits, targs, [F1ScoreMulti(thresh)], cbs=ZeroLabelsCallback(thresh), vocab=names)
        with warnings_as('ignore', ZeroLabelsWarning): assert values(learn)['f1_score']==value
        micro = F1ScoreMulti(thresh, sigmoid=False, average='micro')(p, y)
        assert learn.zero_labels.records[-1].f1_micro==pytest.approx(micro)
        by_position = F1ScoreMulti(as_thresh(thresh), sigmoid=False)(p, y)
        assert F1ScoreMulti(thresh, sigmoid=False)(p.values, y.values)==by_position
        wrong = make_learner(logits, targs, [F1ScoreMulti(thresh)], vocab=list('abd'))
        with pytest.raises(ValueError, match="thresh is for the labels .*'c'"): values(wrong)
    assert F1ScoreMulti(by_name).rule!=F1ScoreMulti([0.2,0.5,0.7]).rule
    assert F1ScoreMulti(by_name).rule==F1ScoreMulti(by_name.copy()).rule

def test_names_survive_a_copy():
    logits,targs = simulate(200, 3, density=0.3)
    p,y = (pd.DataFrame(o.numpy(), columns=list('abc')) for o in (logits.sigmoid(), targs))
    m = F1ScoreMulti(best_thresholds(p[list('cba')], y, average='macro'), sigmoid=False)
    for o in (m, copy(m), deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert o.rule==m.rule
        assert o(p, y)==o(p[list('cba')], y)==m(p, y)

def test_numbers_as_names_may_be_in_another_order():
    logits,targs = simulate(200, 4, density=0.3)
    p,y = logits.sigmoid().numpy(),targs.numpy()
    by_number,in_order = pd.Series([.9,.5,.3,.1], index=[3,2,1,0]),[.1,.3,.5,.9]
    assert accuracy_report(p, y, thresh=by_number).equals(accuracy_report(p, y, thresh=in_order))
    expected = AccuracyMulti(in_order, sigmoid=False)(p, y)
    for args in ((p, y), (pd.DataFrame(p), pd.DataFrame(y))):
        for thresh in (by_number, by_number.sort_index()): assert AccuracyMulti(thresh, sigmoid=False)(*args)==expected

def test_a_replaced_threshold_brings_its_names():
    rule = ThresholdRule(thresh=dict(a=0.1, b=0.2, c=0.3))
    new = rule.replace(thresh=dict(c=0.6, a=0.4, b=0.5))
    assert new.names==('c','a','b') and new.for_labels(3, ['a','b','c'])[0].thresh==(0.4,0.5,0.6)
    plain = rule.replace(thresh=[0.4,0.5,0.6])
    assert plain.names is None and plain.for_labels(3, ['c','b','a'])[0].thresh==(0.4,0.5,0.6)
    assert plain.for_labels(3)[0].thresh==(0.4,0.5,0.6) # Without names of the labels
    assert rule.replace(max_labels=2).names==rule.names and rule.replace(max_labels=2).by_name

@pytest.mark.parametrize('value', [0, 1, 0., True])
def test_values_of_known_targets_are_not_ignored(value):
    scores,targs = torch.rand(300, 3),(torch.rand(300, 3)<0.3).float()
    for f in (lambda: F1ScoreMulti(ignore_index=value), lambda: judge(scores, targs, ignore_index=value),
              lambda: label_stats(targs, ignore_index=value), lambda: stratified_split(targs, ignore_index=value),
              lambda: BCEWithLogitsLossFlat(ignore_index=value)(scores, targs)):
        with pytest.raises(ValueError, match=f'ignore_index={value} .*known targets.*labels='): f()

def test_labels_twice_and_masks_are_refused():
    scores,targs = torch.rand(300, 3),(torch.rand(300, 3)<0.3).int()
    table = pd.DataFrame(targs.numpy(), columns=list('abc'))
    for labels in ([2,2], ['c','c'], ['c',2]):
        for f in (F1ScoreMulti(sigmoid=False, labels=labels), APScoreMulti(sigmoid=False, labels=labels),
                  partial(accuracy_report, labels=labels), partial(best_thresholds, labels=labels)):
            with pytest.raises(ValueError, match="labels has ('c'|2) 2 times"): f(scores, table)
    for mask in (np.array([True,False,True]), [True,False,True]):
        for f in (F1ScoreMulti(sigmoid=False, labels=mask), partial(judge, labels=mask)):
            with pytest.raises(ValueError, match=r'mask.*np\.flatnonzero\(labels\)'): f(scores, table)

@pytest.mark.parametrize('args,says', [
    (dict(labels=[]), r'labels=\[\] leaves nothing to score'),
    (dict(sigmoid=0.3), 'sigmoid=0.3 should be True or False'),
    (dict(thresh=1.5), 'thresh=1.5 is above every probability, so no label would ever be predicted'),
    (dict(thresh=[0.3,-0.5]), 'thresh=-0.5 is below every probability, so every label would always be predicted'),
    (dict(sample_weight=[0.,0.]), 'not all 0'), (dict(sample_weight=[1.,math.inf]), 'one finite number'),
    (dict(sample_weight=[2.,-1.]), '0 or more'), (dict(sample_weight=[[1.]]), 'one finite number per sample')])
def test_a_rule_names_a_wrong_argument(args, says):
    with pytest.raises(ValueError, match=says): ThresholdRule(**args)

def test_a_rule_takes_arguments_at_their_limits():
    assert ThresholdRule(1.).thresh==1 and ThresholdRule(0.).thresh==0
    close(ThresholdRule(sample_weight=[0.2,0.,0.3]).sample_weight, [0.2,0.,0.3]) # Their sum may be below 1
    rule = ThresholdRule(min_labels=3)
    assert rule.for_labels(3)==(rule,None)
    with pytest.raises(ValueError, match='min_labels=3 is more than the 2 labels'): rule.for_labels(2)

def test_labels_to_score_are_named_once():
    rule,columns = ThresholdRule(labels=['b',2]).for_labels(3, [*'abc'])
    assert columns==(1,2)
    for labels in ([2,2], ['c',2], [0,'a']):
        rule = ThresholdRule(labels=labels)
        with pytest.raises(ValueError, match='labels has .* 2 times'): rule.for_labels(3, [*'abc'])
    with pytest.raises(ValueError, match="label 'doog' is not in the vocab: did you mean 'dog'"):
        ThresholdRule(labels=['doog']).for_labels(2, ['cat','dog'])

def test_which_ranges_of_predictions_are_wrong():
    of_logits,of_probs = ThresholdRule(0.5),ThresholdRule(0.5, sigmoid=False)
    assert of_logits.range_found(0.1, 0.9, 10).kind=='probabilities' and of_logits.range_found(0.1, 0.9, 9) is None
    assert of_logits.range_found(-0.1, 0.9, 10) is None and of_logits.range_found(0.1, 1.1, 10) is None
    assert of_probs.range_found(0.1, 0.9, 10) is None and of_probs.range_found(-3, 4, 1).kind=='logits'
    for thresh,wrong in ((0., False), (1., False), ((0.,0.3), True), ((0.3,2.), False), ((-1.,0.3), False)):
        rule = ThresholdRule(thresh, sigmoid=False)
        assert (rule.range_found(-3, 4, 100) is not None)==wrong, thresh

@pytest.mark.parametrize('vocab', [[*'abc'], np.array([*'abc']), pd.Index([*'abc']), dict(enumerate('abc'))],
                         ids=lambda o: type(o).__name__)
def test_present_thresholds_complete_those_of_some_labels(vocab):
    assert complete_thresh(dict(b=0.1), 0.5, vocab)==dict(a=0.5, b=0.1, c=0.5)
    assert complete_thresh(dict(b=0.1), (0.2,0.3,0.4), vocab)==dict(a=0.2, b=0.1, c=0.4)
    assert complete_thresh(0.3, 0.5, vocab)==0.3

def test_weights_of_pandas_keep_their_index():
    y = pd.DataFrame(np.eye(3), index=[*'abc'])
    rule = ThresholdRule(sample_weight=pd.Series([1.,2.,3.], index=[*'abc']))
    rule.check_rows(0, y)
    with pytest.raises(ValueError, match='sample_weight and the arrays have different indexes'):
        rule.check_rows(0, y[::-1])

def test_suggestions_do_not_point_back():
    scores,targs = torch.rand(300, 3),(torch.rand(300, 3)<0.3).int()
    roads = pd.DataFrame(targs.numpy(), columns=['road','river','sea'])
    for f in (F1ScoreMulti, judge): # Tables show the number 2 as '2'
        by_text,by_number = (partial(f, labels=o) for o in (['2'],[2]))
        if f is judge: assert by_text(scores, targs)==by_number(scores, targs)
        else: assert by_text(sigmoid=False)(scores, targs)==by_number(sigmoid=False)(scores, targs)
    for thresh in ({'raod': 0.3}, {'raod': 0.3, 'river': 0.2, 'sea': 0.4}):
        for f in (F1ScoreMulti(thresh, sigmoid=False), partial(judge, thresh=thresh)):
            with pytest.raises(ValueError, match=r"\['raod'\], which are not here: did you mean 'road'\?$"):
                f(scores, roads)
        learn = make_learner(scores.logit(), targs.float(), vocab=[*roads.columns])
        with pytest.raises(ValueError, match=r"not here: did you mean 'road'\?$"): learn.set_thresh(thresh)

def test_partial_thresholds_by_number_are_named_as_by_name():
    scores,targs = torch.rand(300, 3),(torch.rand(300, 3)<0.3).int()
    for f in (F1ScoreMulti({0: 0.3}, sigmoid=False), partial(judge, thresh={0: 0.3}),
              partial(accuracy_report, thresh={0: 0.3})):
        with pytest.raises(ValueError, match=r'thresh lacks \[1, 2\]: pass a number for each label'): f(scores, targs)
    assert F1ScoreMulti({0: 0.3, 1: 0.2, 2: 0.4}, sigmoid=False)(scores, targs)==F1ScoreMulti(
        [0.3,0.2,0.4], sigmoid=False)(scores, targs)

# --- predictions of ignored targets are not ranked, also if they are NaN

LIMITS = dict(least=dict(min_labels=1), most=dict(max_labels=1), both=dict(min_labels=1, max_labels=2),
              two=dict(min_labels=2, max_labels=2))
WITH_LIMITS = [c for c in vars(fastai_mlmetrics.metrics.formulas).values() if isinstance(c, type)
               and issubclass(c, CountsMetric) and 'min_labels' in inspect.signature(c).parameters and c.func_name]

@pytest.fixture
def unknown():
    "Logits with NaN and with the lowest values where targets are ignored, and targets; each sample has others"
    logits,targs = simulate(120, 5, density=0.3)
    is_unknown = torch.arange(5)==torch.arange(120)[:,None]%4
    targs = targs.masked_fill(is_unknown, -1)
    return logits.masked_fill(is_unknown, math.nan),logits.masked_fill(is_unknown, -50.),targs

@pytest.mark.parametrize('limits', LIMITS.values(), ids=LIMITS)
def test_nan_of_an_ignored_target_is_never_among_the_top_labels(unknown, limits):
    logits,low,targs = unknown
    for cls in WITH_LIMITS:
        m = cls(*([2] if cls is FBetaMulti else []), thresh=0.05, ignore_index=-1, **limits)
        expected = m(low, targs)
        same(m(logits, targs), expected, of=cls)
        learn = make_learner(logits, targs, m)
        with learn.no_logging(), warnings_as('ignore', ZeroLabelsWarning): same(learn.validate()[1], expected, of=cls)

@pytest.mark.parametrize('limits', LIMITS.values(), ids=LIMITS)
def test_reports_and_records_do_not_rank_nan_of_ignored_targets(unknown, limits):
    logits,low,targs = unknown
    kw = dict(thresh=0.05, ignore_index=-1, **limits)
    for f in (report, record, interpretation):
        assert_alike(f(logits.sigmoid(), targs, **kw), f(low.sigmoid(), targs, **kw))
    # Ignored values outside of [0, 1] are left out of the range of probabilities
    outside = logits.sigmoid().nan_to_num(-1)
    assert_alike(report(outside, targs, **kw), report(low.sigmoid(), targs, **kw))
    records = []
    for preds in (logits, low):
        learn = make_learner(preds, targs, cbs=ZeroLabelsCallback(ignore_index=-1))
        learn.set_thresh(0.05, **limits)
        with learn.no_logging(), warnings_as('ignore'): learn.validate()
        records.append(dict(learn.zero_labels.records[-1].items()))
    assert len(records[0])>20
    for k in {*records[0]}-{'valid_loss','last_loss'}: test_eq(*(str(r[k]) for r in records))

def test_the_smallest_case_of_an_ignored_nan():
    preds,targs = tensor([[math.nan,-1,-2]]),tensor([[-1,1,0]])
    same(RecallMulti(average='micro', ignore_index=-1, min_labels=1)(preds, targs), 1)
    test_eq(binarize(preds, min_labels=1).tolist(), [[False,True,False]])
    for m in (PrecisionAtK(1, ignore_index=-1), OneError(ignore_index=-1), LRAP(ignore_index=-1)):
        same(m(preds, targs), 1-m.is_loss)
    # A NaN whose target counts makes the metric NaN, as without limits
    with pytest.warns(UserWarning, match='predictions are NaN in all samples'):
        assert math.isnan(RecallMulti(min_labels=1)(preds, tensor([[0,1,0]])))

def test_a_threshold_below_all_probabilities_is_of_use():
    assert useless_thresh(BELOW_ALL)=='' and 'below every probability' in useless_thresh(2*BELOW_ALL)
    assert binarize(torch.zeros(1, 2), BELOW_ALL, sigmoid=False).all()
