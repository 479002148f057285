"MultiLabelInterpretation: its tables, its Learner's predictions, and that its module has all of it"
import json
import sklearn.metrics as skm
from helpers import *

def test_the_report_has_scikit_learn_s_values():
    interp,p,y,s = arrays_of(skill=4)
    r = interp.report(averages=False).sort_index()
    for col,f in (('precision',skm.precision_score), ('recall',skm.recall_score), ('f1',skm.f1_score)):
        np.testing.assert_allclose(r[col], f(y, p, average=None, zero_division=0), atol=1e-12)
    np.testing.assert_allclose(r.ap, skm.average_precision_score(y, s, average=None), atol=1e-6)
    test_eq(r.support.tolist(), y.sum(0))
    test_eq(r.predicted.tolist(), p.sum(0))
    for col in r: assert interp.report(col)[col].iloc[:20].is_monotonic_increasing, col
    assert interp.report('label').index[:20].tolist()==[*range(20)]
    vocab,thresh = list('abcdefghijklmnopqrst'),np.linspace(0.1, 0.9, 20)
    r = MultiLabelInterpretation.from_preds(s, y, vocab=vocab, thresh=thresh).report()
    assert r.loc['t','thresh']==0.9 and r.loc['a','predicted']==(s[:,0]>0.1).sum()
    assert math.isnan(r.loc['macro avg','thresh']) and 'thresh=0.1 to 0.9' in r.attrs['about']
    with pytest.raises(ValueError, match="sort='zz' is not a column.*support, predicted.*f1"): interp.report(sort='zz')

AVERAGES = ('micro','macro','weighted','samples')

@pytest.mark.parametrize('c,absent', [(20,False), (3,True), (80,False)])
def test_averages_are_scikit_learn_s(c, absent):
    "As by scikit-learn, also with labels without positives and samples without labels"
    logits,targs = simulate(300, c, skill=4)
    if absent: targs[:,1] = 0
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True)
    p,y,s = interp.predicted.int().numpy(),targs.int().numpy(),interp.preds.numpy()
    r = interp.report()
    assert [*r.index[c:]]==[f'{a} avg' for a in AVERAGES]
    with warnings_as('ignore'):
        expected = skm.classification_report(y, p, output_dict=True, zero_division=0)
        for a in AVERAGES:
            row = r.loc[f'{a} avg']
            found = row[['precision','recall','f1','support']].astype(float)
            np.testing.assert_allclose(found, [*expected[f'{a} avg'].values()], atol=1e-7)
            np.testing.assert_allclose(row.ap, skm.average_precision_score(y, s, average=a), atol=1e-6)
            assert row.predicted==p.sum() and row.thresh==0.5
            if not absent and a!='samples':
                np.testing.assert_allclose(row.roc_auc, skm.roc_auc_score(y, s, average=a), atol=1e-6)
    assert math.isnan(r.loc['samples avg','ece']) and r.loc['micro avg','ece']<1

def test_the_report_fits_into_a_terminal():
    r = arrays_of()[0].report()
    assert 'is lowest for ' in repr(r)
    assert max(map(len, repr(r).splitlines()))<=80

def test_the_printed_report_has_the_same_averages(capsys):
    for c in (1,20):
        interp,p,y,s = arrays_of(200, c, density=0.2)
        interp.print_classification_report()
        printed = capsys.readouterr().out
        for a in AVERAGES if c>1 else AVERAGES[:3]: # for one label, scikit-learn prints no samples average
            numbers = re.search(rf'{a} avg +([\d.]+) +([\d.]+) +([\d.]+) +(\d+)', printed).groups()
            row = interp.report().loc[f'{a} avg', ['precision','recall','f1','support']]
            np.testing.assert_allclose([float(o) for o in numbers], row.astype(float), atol=0.0051)

def test_accuracy_report_is_that_of_arrays():
    _,_,y,s = arrays_of(300)
    for kw in (dict(thresh=0.2, min_labels=1), dict(thresh=np.linspace(0.1, 0.9, 20))):
        interp = MultiLabelInterpretation.from_preds(s, y, **kw)
        r = interp.accuracy_report(ci=None)
        assert r.value['f1_samples']==pytest.approx(interp.report().loc['samples avg','f1'])
        assert r.value['f1_macro']==pytest.approx(interp.report().loc['macro avg','f1'])
        pd.testing.assert_frame_equal(r, accuracy_report(s, y, ci=None, **kw))

@given(binary_pairs())
def test_confusions_are_counted_pair_by_pair(pair):
    p,y = pair
    interp = MultiLabelInterpretation.from_preds(p.astype(np.float32), y)
    def n_confused(i, j): return int(((y[:,i]==1) & (p[:,i]==0) & (y[:,j]==0) & (p[:,j]==1)).sum())
    labels = range(p.shape[1])
    expected = {(i,j): n for i in labels for j in labels if (n:=n_confused(i, j))}
    test_eq(interp.confusion_matrix(), skm.multilabel_confusion_matrix(y, p))
    df = interp.most_confused(k=None)
    assert {(r.missed,r.predicted): r.samples for r in df.itertuples()}==expected
    assert df.samples.is_monotonic_decreasing
    assert sorted(interp.empty().index)==list(np.flatnonzero(p.sum(1)==0))

def test_mistakes_are_named():
    logits,targs = simulate(50)
    with pytest.raises(ValueError, match='pass sigmoid=True'): MultiLabelInterpretation.from_preds(logits, targs)
    make = partial(MultiLabelInterpretation.from_preds, sigmoid=True)
    with pytest.raises(ValueError, match='there are no samples'): make(logits[:0], targs[:0])
    with pytest.raises(ValueError, match='3 names.*20 labels'): make(logits, targs, vocab=['a','b','c'])
    with pytest.raises(ValueError, match='0 or 1'): make(logits, targs*2)
    named = make(logits, targs, vocab=[f'red_{i}' for i in range(20)])
    for f in (named.plot_thresholds, named.show, lambda o: named.plot_roc([o]),
              lambda o: named.plot_confusion_matrices(labels=['red_1',o])):
        with pytest.raises(ValueError, match="'red3' is not in the vocab: did you mean 'red_3'"): f('red3')
        with pytest.raises(ValueError, match="'zebra' is not in the vocab: it has red_0, red_1.* and 1. more"):
            f('zebra')
        with pytest.raises(ValueError, match="20 is not in the vocab"): f(20)
    with pytest.raises(ValueError, match="kind='wrong' should be 'missed'.*or 'false'"): named.show('red_3', 'wrong')
    with pytest.raises(ValueError, match='has no inputs to show'): named[[0]]
    with pytest.raises(ValueError, match='NaN in all samples'): make(logits*math.nan, targs)

# Of Learners

def test_a_loss_without_activation():
    logits,targs = simulate(100)
    learn = make_learner(logits, targs, loss_func=nn.BCEWithLogitsLoss())
    learn.dls.valid.n_inp = 1
    np.testing.assert_allclose(MultiLabelInterpretation.from_learner(learn).preds, logits.sigmoid(), atol=1e-6)

def test_steps_of_three_axes_are_rows():
    "Several steps per item: each step is a row with its own loss, predictions and targets"
    logits,targs = (o.view(40,5,4) for o in simulate(200, 4, density=0.3))
    learn = make_learner(logits, targs)
    interp = MultiLabelInterpretation.from_learner(learn)
    assert len(interp.losses)==len(interp.preds)==len(interp.true)==200
    losses,idxs = interp.top_losses(3)
    assert (idxs<200).all() and len(interp.empty())==(~(logits>0).any(-1)).sum()
    assert interp.report(averages=False).support.sum()==targs.sum()==interp.report().support.iloc[-1]

def test_missing_truths_and_margins():
    logits,targs = simulate(200, 4, density=0.3)
    more = torch.cat([logits, torch.randn(50, 4)])
    missing = torch.cat([targs, torch.full((50,4), math.nan)])
    a = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True)
    b = MultiLabelInterpretation.from_preds(more, missing, sigmoid=True, ignore_index=math.nan)
    pd.testing.assert_frame_equal(a.report(), b.report())
    pd.testing.assert_frame_equal(a.empty(), b.empty())
    pd.testing.assert_frame_equal(a.most_confused(), b.most_confused())
    def title(f, *args):
        f(*args)
        return plt.gca().get_title()
    assert title(b.plot_calibration)==title(a.plot_calibration)
    assert title(b.plot_thresholds, 1)==title(a.plot_thresholds, 1)
    pd.testing.assert_series_equal(a.accuracy_report().value, b.accuracy_report().value)
    test_eq(a.confusion_matrix(), b.confusion_matrix())
    a.plot_roc()
    b.plot_roc()
    # Margins
    c = MultiLabelInterpretation.from_preds(logits, targs, thresh=0.)
    test_eq(c.predicted, a.predicted)
    test_close(c.losses, a.losses, 1e-5)
    same = [o for o in a.report() if o not in ('thresh','ece')]
    pd.testing.assert_frame_equal(a.report('label')[same], c.report('label')[same])
    c.plot_thresholds(0)
    with pytest.raises(ValueError, match='probabilities'): c.plot_calibration()

def test_nothing_is_confused(capsys):
    interp = MultiLabelInterpretation.from_preds(torch.zeros(30, 4), torch.eye(4)[torch.arange(30)%4])
    words = 'No pair of a missed and a wrongly predicted label is in 1 sample or more.'
    assert interp.most_confused().reading==words
    plt.close('all')
    interp.plot_label_confusion()
    assert capsys.readouterr().out.strip()==words and not plt.get_fignums()

def test_ignored_samples_are_in_no_count():
    logits,targs = simulate(80, 5, density=0.3, skill=6)
    more,missing = (torch.cat([o, torch.full((40,5), v)]) for o,v in ((logits,-9.), (targs,math.nan)))
    few = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True)
    all_ = MultiLabelInterpretation.from_preds(more, missing, sigmoid=True, ignore_index=math.nan)
    pd.testing.assert_frame_equal(few.empty(), all_.empty())
    a,b = few.plot_top_losses(200),all_.plot_top_losses(200)
    pd.testing.assert_frame_equal(a, b)
    assert len(few.empty()) and few.empty().reading==all_.empty().reading and a.reading==b.reading
    def legend(interp):
        interp.plot_cardinality()
        return plt.gca().get_legend_handles_labels()[1]
    legends = [legend(o) for o in (few,all_)]
    plt.close('all')
    assert legends[0]==legends[1]

def test_decisions_are_not_decided_again():
    scores = torch.rand(50, 4, generator=torch.Generator().manual_seed(0))
    targs = torch.eye(4)[torch.arange(50)%4]
    for kw in (dict(min_labels=2), dict(max_labels=1), dict(thresh=0.9)):
        interp = MultiLabelInterpretation.from_preds(scores>0.7, targs, **kw)
        assert torch.equal(interp.predicted, scores>0.7)
        a,b = interp.accuracy_report(),accuracy_report(scores>0.7, targs, **kw)
        pd.testing.assert_frame_equal(a, b)
        assert interp.report()[['ap','roc_auc','ece']].isna().all(None) # they rank scores

@pytest.mark.parametrize('loss', [
    Masked(), lambda p, y: Masked()(p, y), MaskedFlat()], ids=['module','function','flat'])
def test_a_loss_without_a_loss_per_sample(loss):
    logits,targs = simulate(64, 5, density=0.3)
    targs[::7,2] = math.nan
    learn = make_learner(logits, targs, F1ScoreMulti(ignore_index=math.nan), loss_func=loss)
    interp = MultiLabelInterpretation.from_learner(learn)
    other = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, ignore_index=math.nan)
    test_close(interp.losses, other.losses)
    test_eq(interp.report(), other.report())
    assert interp.plot_top_losses(3).reading=='highest losses: 3 of 64 samples, at thresh=0.5.'

def test_an_activation_of_ones_own():
    learn = make_learner(*simulate(64, 5), loss_func=nn.BCEWithLogitsLoss())
    ours = MultiLabelInterpretation.from_learner(learn, act=torch.sigmoid)
    assert torch.equal(ours.preds, MultiLabelInterpretation.from_learner(learn).preds)
    with pytest.raises(ValueError, match='act should return probabilities'):
        MultiLabelInterpretation.from_learner(learn, act=noop)

def test_decisions_have_no_sigmoid():
    scores = torch.rand(50, 4, generator=torch.Generator().manual_seed(0))
    targs = torch.eye(4)[torch.arange(50)%4]
    a,b = (MultiLabelInterpretation.from_preds(scores>0.7, targs, sigmoid=o) for o in (True,False))
    test_eq(a.preds, b.preds)
    test_eq(a.losses, b.losses)

def test_a_report_tells_what_never_occurs():
    logits,targs = simulate(50, 4, density=0.3)
    targs[:,[1,3]] = 0
    def reading(names):
        p,y = logits[:,:len(names)],targs[:,:len(names)]
        return MultiLabelInterpretation.from_preds(p, y, sigmoid=True, vocab=names).report().reading
    assert ' No sample has these labels, so they cannot be judged: b, d.' in reading(list('abcd'))
    assert ' No sample has these labels, so they cannot be judged: b.' in reading(list('abc'))
    assert 'cannot be judged' not in reading(['a'])

def test_the_reading_of_a_report_is_about_the_rows_that_are_shown():
    interp,p,y,s = arrays_of()
    r = interp.report()
    first = r.index[0]
    o = r.loc[first]
    assert o.predicted==0 and f'is lowest for {first} ({o.f1:.3f}), ' in r.reading
    assert f'The model never predicts label {first}, which has {int(o.support)} positives.' in r.reading
    i = r.index[1]
    missed,wrong = int(((y==1) & (p==0))[:,i].sum()),int(((y==0) & (p==1))[:,i].sum())
    counts = f'Of label {i}, the model misses {missed} of {int(r.support[i])} positives, and gets {wrong} of '
    assert counts in r.iloc[1:].reading
    assert 'samples average' in r.reading and 'samples average' not in r.head(3).reading
    assert f'Of label {r.index[3]}, ' in r.iloc[3:4].reading and 'lowest' not in r.iloc[3:4].reading
    assert r[['f1']].reading=='' and repr(r.T)

def test_an_interpretation_says_what_it_holds():
    logits,targs = simulate(2000, 5, density=0.3)
    def text(n, c, **kw):
        return repr(MultiLabelInterpretation.from_preds(logits[:n,:c], targs[:n,:c], sigmoid=True, **kw))
    for kw,at in ((dict(), 'thresh=0.5'), (dict(min_labels=1), 'thresh=0.5, min_labels=1'),
                  (dict(thresh=[0.1,0.2,0.3,0.4,0.5]), 'thresh=0.1 to 0.5 by label'),
                  (dict(thresh=[0.2]*5), 'thresh=0.2')):
        interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, **kw)
        f1 = interp.report().f1
        start = f"MultiLabelInterpretation of 2,000 samples and 5 labels, at {at}: "
        assert repr(interp).startswith(
            f"{start}micro F1 is {f1['micro avg']:.3f}; the same labels for every sample score "
            f"{interp.judge().constant_f1:.3f}; macro F1 is {f1['macro avg']:.3f}"), repr(interp)
    assert text(2000, 5).endswith('. The model predicts no label for 75% of the samples that should get one.')
    assert text(2000, 5, thresh=0.05).endswith('. The model beats predicting the same labels for every sample.')
    assert text(1, 1).startswith('MultiLabelInterpretation of 1 sample and 1 label, at thresh=0.5: micro F1 ')
    assert text(30, 1).endswith('. The model cannot be judged, because fewer than 20 samples have a label.')
    binary = MultiLabelInterpretation.from_preds(logits>0, targs)
    assert repr(binary).startswith('MultiLabelInterpretation of 2,000 samples and 5 labels: micro F1 ')

def test_judge_is_that_of_arrays():
    logits,targs = simulate(300, 6, density=0.3, bias=-2)
    targs[::7,2] = math.nan
    preds,kw = logits.sigmoid(),dict(thresh=[0.2]*6, min_labels=1, ignore_index=math.nan, vocab=list('abcdef'))
    for p,of_binary in ((preds, {}), (preds>0.2, dict(thresh=0.5, min_labels=0))):
        ours = MultiLabelInterpretation.from_preds(p, targs, **kw).judge(max_empty=0.9)
        test_eq(str(ours), str(judge(p, targs, max_empty=0.9, **kw | of_binary)))

@pytest.mark.parametrize('f,names', [
    ('plot_confusion_matrices', ['k','ncols']),
    ('plot_label_confusion', ['k']),
    ('plot_precision_recall', ['k']),
    ('plot_roc', ['k']),
    ('plot_calibration', ['bins']),
    ('most_confused', ['k']),
    ('plot_top_losses', ['k']),
    (partial(MultiLabelInterpretation.show, label=0), ['max_n'])])
def test_how_many_to_show_is_checked(f, names):
    interp,*_ = arrays_of(100, 5, density=0.3, bias=-1.5)
    f = getattr(interp, f) if isinstance(f, str) else partial(f, interp)
    for name,value in itertools.product(names, (0, -1, 2.5)):
        with pytest.raises(ValueError, match=f'^{name}={value} should be a whole number, 1 or more$'):
            f(**{name: value})
    assert not plt.get_fignums()

def test_the_most_confused_pairs_come_first():
    interp,*_ = arrays_of(2000, 20, density=0.3, bias=-1.5)
    every,some = interp.most_confused(k=None),interp.most_confused()
    assert len(every)>300 and not every.reading
    pd.testing.assert_frame_equal(some, every[:10])
    test_eq(some.reading, f'The first 10 of {len(every)} pairs; k=None lists all.')
    test_eq(interp.most_confused(2), interp.most_confused(min_val=2)) # fastai's only argument
    assert not interp.most_confused(every.samples.iloc[3]).reading

def test_names_that_are_tuples_look_the_same_everywhere():
    logits,targs = simulate(1500, 3, density=0.3, bias=-6)
    logits[:9,0],targs[:9] = 3,tensor([0.,1,1]) # (a, b) is predicted where the others are missed
    names = [('a','b'),('a','c'),('b','c')]
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=names)
    for o in (interp.empty(), interp.show(names[1]), interp.most_confused(), interp.report()):
        assert "'" not in repr(o) and '&#x27;' not in o._repr_html_() and '(a, c)' in repr(o)
    assert interp.show('(a, c)').reading.startswith('(a, c): missed in ')
    n = len(interp.empty())
    assert n>1000 and interp.empty().reading.endswith(f' for {n:,} of 1,500 samples.')
    interp.plot_label_confusion()
    assert {o.get_text() for o in plt.gca().get_xticklabels()} <= {'(a, b)','(a, c)','(b, c)'}

@pytest.mark.parametrize('make', [BCEWithLogitsLossFlat, AsymmetricLossFlat])
@pytest.mark.parametrize('shape', [(64,5), (16,4,5), (64,1)], ids=str)
def test_the_loss_of_a_sample_is_its_cross_entropy(make, shape):
    "Averaged over the sample's known targets, whatever the model was trained with"
    logits,targs = simulate(64, shape[-1], density=0.3)
    targs = targs.masked_fill(torch.arange(targs.numel()).view(targs.shape)%3==0, math.nan)
    targs[0] = math.nan
    learn = make_learner(logits.view(shape), targs.view(shape), F1ScoreMulti(ignore_index=math.nan),
                         loss_func=make(ignore_index=math.nan))
    losses = F.binary_cross_entropy_with_logits(logits, targs.nan_to_num(), reduction='none')
    expected = losses.where(~targs.isnan(), math.nan).nanmean(1)
    ours = MultiLabelInterpretation.from_learner(learn).losses
    torch.testing.assert_close(ours, expected, equal_nan=True, rtol=1e-4, atol=1e-5)

@pytest.mark.slow
def test_a_report_by_label_makes_no_large_tables():
    p,y = torch.rand(20_000, 300),(torch.rand(20_000, 300)<0.02).float()
    interp = MultiLabelInterpretation.from_preds(p, y)
    MultiLabelInterpretation.from_preds(p[:2000], y[:2000]).report()
    assert peak_of(interp.report) < 16*p.numel()/2**20
    assert peak_of(interp.most_confused) < 16*p.numel()/2**20

def test_confusions_of_thousands_of_labels_make_no_table_of_all_pairs():
    r = np.random.default_rng(0)
    y,p = (torch.zeros(1000, 6000) for _ in range(2))
    for o in (y, p): o[np.repeat(np.arange(1000), 3),r.integers(0, 6000, 3000)] = 1
    interp = MultiLabelInterpretation.from_preds(p, y)
    interp.predicted, interp.true # Are made once
    MultiLabelInterpretation.from_preds(p[:,:10], y[:,:10]).plot_label_confusion()
    all_pairs = 8*6000**2/2**20 # 275 MB
    assert peak_of(interp.most_confused) < all_pairs/5
    assert peak_of(interp.plot_label_confusion) < all_pairs/5

@pytest.mark.parametrize('names', [['d','b','a','c'], [10,9,100,-1]])
def test_a_report_is_sorted_by_names(names):
    logits,targs = simulate(50, 4, density=0.3)
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=names)
    test_eq([*interp.report('label', averages=False).index], sorted(names))

def test_a_report_is_sorted_by_names_of_several_types():
    logits,targs = simulate(50, 4, density=0.3)
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=['b',2,('a',1),None])
    test_eq([*interp.report('label', averages=False).index], [('a',1),2,None,'b'])
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=[10,9,100,-1])
    test_eq([*interp.report('label', averages=False).index], [-1,9,10,100])

def test_unknown_targets_are_told_from_absent_labels():
    logits,targs = simulate(60, 4, density=0.2)
    n = int((targs.sum(1)==0).sum())
    targs[targs.sum(1)==0] = tensor([0.,0,0,math.nan])
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, ignore_index=math.nan)
    assert f'{n} of 60 samples have no label known to be true' in interp.report().reading
    assert f'{n} of 60 samples have no label known to be true' in interp.accuracy_report().reading
    interp = MultiLabelInterpretation.from_preds(logits, targs.nan_to_num(), sigmoid=True)
    for r in (interp.report(), interp.accuracy_report()): assert f'{n} of 60 samples have no label' in r.reading

def methods(cls): return {k: m.__module__ for k,m in inspect.getmembers(cls, inspect.isfunction)}

@pytest.mark.slow
def test_the_class_is_whole_in_its_module(tmp_path):
    code = """
        import inspect, json, sys
        from fastai_mlmetrics.reports.interpret import MultiLabelInterpretation
        assert 'fastai_mlmetrics.all' not in sys.modules
        members = inspect.getmembers(MultiLabelInterpretation, inspect.isfunction)
        path.write_text(json.dumps({k: m.__module__ for k,m in members}))"""
    path = tmp_path/'members.json'
    in_process(exec, textwrap.dedent(code), dict(path=path)) # `exec`, because a function would import this file
    found = json.loads(path.read_text())
    test_eq(found, methods(MultiLabelInterpretation))
    for room,names in dict(plots=['plot_roc','plot_calibration','plot_confusion_matrix'],
                           samples=['mistakes','show','empty','items','__getitem__','show_results','plot_top_losses'],
                           page=['to_html'], labels=['report','most_confused'], interpret=['judge']).items():
        for name in names: test_eq(found[name], f'fastai_mlmetrics.reports.{room}')

def test_a_record_is_made_once(monkeypatch):
    from fastai_mlmetrics.reports import interpret
    calls = []
    def judge_of(*args, **kwargs):
        calls.append(kwargs)
        return original(*args, **kwargs)
    original = interpret.judge_of
    monkeypatch.setattr(interpret, 'judge_of', judge_of)
    interp,*_ = arrays_of(100)
    text = repr(interp)
    changed = interp.judge()
    changed.clear()
    assert repr(interp)==text and interp.judge().verdict is not None and len(calls)==1
    assert type(interp.judge()) is type(judge(interp.preds, interp.targs))
    interp.judge(max_empty=0.9)
    assert len(calls)==2 and calls[1]['max_empty']==0.9

def test_the_threshold_stands_beside_the_number_of_predictions():
    columns = [*MultiLabelInterpretation.from_preds(*simulate(50, 3, density=.3), sigmoid=True).report()]
    test_eq(columns[1:3], ['predicted','thresh'])

@pytest.mark.parametrize('call,match', [
    (lambda o: o.mistakes(k=5), "mistakes has no argument 'k', but has label, kind, max_n, groups"),
    (lambda o: o.report(sorted='f1'), "report has no argument 'sorted': did you mean 'sort'"),
    (lambda o: o.show(0, max=3), "show has no argument 'max': did you mean 'max_n'"),
    (lambda o: o.most_confused(min_vals=3), "did you mean 'min_val'")])
def test_an_unknown_argument_of_a_method_is_named(call, match):
    with pytest.raises(TypeError, match=match): call(arrays_of()[0])
    assert [*inspect.signature(MultiLabelInterpretation.mistakes).parameters][1:]==['label','kind','max_n','groups']
