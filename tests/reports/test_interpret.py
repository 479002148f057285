"MultiLabelInterpretation: its tables and plots, and that it predicts only once"
import hypothesis
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
    assert math.isnan(r.loc['macro avg','thresh']) and 'thresh=0.1 to 0.9' in r.reading
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
    assert math.isnan(r.loc['samples avg','calibration_error']) and r.loc['micro avg','calibration_error']<1

def test_the_report_fits_into_a_terminal():
    r = arrays_of()[0].report()
    assert 'Predicted at thresh=0.5' in repr(r)
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
        assert r.value['F1, samples']==pytest.approx(interp.report().loc['samples avg','f1'])
        assert r.value['F1, macro']==pytest.approx(interp.report().loc['macro avg','f1'])
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
    assert interp.most_missed().missed.to_dict()=={i: n for i,n in enumerate(((y==1)&(p==0)).sum(0)) if n}
    assert sorted(interp.empty().index)==list(np.flatnonzero(p.sum(1)==0))

@pytest.mark.parametrize('c,density', [(1,0.3), (6,0.26), (20,0.0775), slow(80,0.035), slow(1000,0.02)])
def test_plots_show_the_numbers_of_the_tables(c, density):
    interp,p,y,s = arrays_of(200, c, density=density, skill=4, bias=-2.5)
    def drawn(f, *args, **kw):
        "The axes of a plot; it returns nothing, so a notebook shows no text"
        plt.close('all')
        assert f(*args, **kw) is None
        plt.gcf().canvas.draw()
        return plt.gcf().axes
    axs = drawn(interp.plot_confusion_matrices)
    shown = [ax for ax in axs if ax.images]
    assert len(shown)==min(12, c)
    f1 = skm.f1_score(y, p, average=None, zero_division=0) if c>1 else [skm.f1_score(y, p)]
    i = int(shown[0].get_title().removeprefix('label '))
    assert f1[i]==min(f1)
    expected = skm.confusion_matrix(y[:,i], p[:,i], labels=[0,1]).flatten()
    test_eq([int(t.get_text()) for t in shown[0].texts], expected)
    assert (f'12 of {c:,} labels' in plt.gcf().get_suptitle())==(c>12)
    ax, = drawn(interp.plot_confusion_matrices, labels=[c-1], normalize=True, figsize=(3,3))
    expected = skm.confusion_matrix(y[:,-1], p[:,-1], labels=[0,1], normalize='true').flatten()
    assert [t.get_text() for t in ax.texts]==[f'{o:.2f}' for o in expected]
    assert plt.gcf().get_size_inches().tolist()==[3,3]
    ax, = drawn(interp.plot_confusion_matrix, True, 'mine', 'Reds', 3, labels=c-1)
    assert ax.texts[0].get_text()==f'{expected[0]:.3f}'
    assert ax.images[0].get_cmap().name=='Reds' and plt.gcf().get_suptitle()=='mine'
    df = interp.most_confused(k=None)
    if len(df):
        ax, = drawn(interp.plot_label_confusion)
        shape = np.shape(ax.images[0].get_array())
        for n,names,label in zip(shape, (df.missed,df.predicted), (ax.get_ylabel(),ax.get_xlabel())):
            of = len({*names})
            assert n<=min(20, of) and (f', {n} of {of:,} labels' in label)==(n<of)
    else: assert c==1
    ax, = drawn(interp.plot_cardinality)
    heights = [[b.get_height() for b in bars] for bars in ax.containers]
    assert sum(heights[0])==sum(heights[1])==200 and len(heights[0])<=30
    ax, = drawn(interp.plot_calibration)
    counts = [int(o.get_text().replace(',', '')) for o in ax.child_axes[0].get_xticklabels()]
    assert sum(counts)==200*c
    for name,area in (('plot_precision_recall',skm.average_precision_score), ('plot_roc',skm.roc_auc_score)):
        ax, = drawn(getattr(interp, name))
        legend = ax.get_legend()
        lowest = sorted(area(y[:,j], s[:,j]) for j in range(c) if y[:,j].any())[:5]
        assert [float(o.get_text().split()[0]) for o in legend.get_texts()]==pytest.approx(lowest, abs=0.0051)
        has = y.any(0).sum()
        assert (f'the lowest 5 of {has:,}' in legend.get_title().get_text())==(has>5)
        _,ax = plt.subplots()
        getattr(interp, name)([0], ax=ax)
        legend = ax.get_legend()
        assert ax.lines and legend.get_texts()[0].get_text().endswith('  label 0')
        assert 'lowest' not in legend.get_title().get_text()

def test_curves_are_scikit_learn_s():
    interp,p,y,s = arrays_of(400, 6, density=0.3)
    true,predicted,score = y[:,2],p[:,2],s[:,2]
    interp.plot_precision_recall(labels=[2])
    curve,dot = plt.gca().lines
    precision,recall,_ = skm.precision_recall_curve(true, score)
    np.testing.assert_allclose(curve.get_xydata(), np.stack([recall,precision], 1))
    now = [skm.recall_score(true, predicted), skm.precision_score(true, predicted)]
    np.testing.assert_allclose(dot.get_xydata()[0], now)
    interp.plot_roc(labels=[2])
    curve,dot,_ = plt.gca().lines
    np.testing.assert_allclose(curve.get_xydata(), np.stack(skm.roc_curve(true, score)[:2], 1))
    tn,fp,fn,tp = skm.confusion_matrix(true, predicted).flatten()
    np.testing.assert_allclose(dot.get_xydata()[0], [fp/(tn+fp), tp/(tp+fn)])
    never = MultiLabelInterpretation.from_preds(s, y*(np.arange(6)!=3))
    never.plot_roc(k=10)
    assert len(plt.gca().get_legend().get_texts())==5
    with pytest.raises(ValueError, match='no curve of label 3: it is true in 0 of 400'):
        never.plot_precision_recall([3])
    with pytest.raises(ValueError, match='no curve'): MultiLabelInterpretation.from_preds(s, y*0).plot_roc()
    with pytest.raises(ValueError, match='labels='): interp.plot_confusion_matrices(labels=[])
    MultiLabelInterpretation.from_preds(s*0, y*0).plot_confusion_matrices() # no targets and no predictions

@pytest.mark.parametrize('scale', ['probabilities','margins'])
@pytest.mark.parametrize('t', [0.5, 0.999, 0.])
def test_thresholds_are_drawn_as_they_decide(scale, t):
    logits,targs = simulate(100, 3, density=0.3)
    preds = (logits.sigmoid()*0.8 if scale=='probabilities' else logits)
    interp = MultiLabelInterpretation.from_preds(preds, targs, thresh=0. if scale=='margins' else t)
    t,s,y = interp.thresh,preds[:,1].numpy(),targs[:,1].int().numpy()
    interp.plot_thresholds(1)
    ax = plt.gca()
    *lines,now = ax.lines
    low,high = ax.get_xlim()
    assert low<t<high and now.get_xdata()[0]==t
    for line,f in zip(lines, (skm.precision_score, skm.recall_score, skm.f1_score)):
        x,v = (np.asarray(o) for o in line.get_data())
        assert line.get_drawstyle()=='steps-post' and x[0]==high and x[-1]==low and (np.diff(x)<=0).all()
        for at in np.linspace(low, high, 23)[1:-1]:
            d,drawn = s>at,v[np.flatnonzero(x>at)[-1]]
            if math.isnan(drawn): assert f is skm.precision_score and not d.any()
            else: assert drawn==pytest.approx(f(y, d, zero_division=0))

def test_the_calibration_plot_names_its_error():
    interp,p,y,s = arrays_of(2000, bias=-3)
    bins = np.minimum((s*10).astype(int), 9)
    gaps = [(bins==b).mean()*abs(s[bins==b].mean()-y[bins==b].mean()) for b in np.unique(bins)]
    expected = sum(gaps)
    interp.plot_calibration()
    assert f'{expected:.3f}' in plt.gca().get_title()

def test_mistakes_are_named():
    logits,targs = simulate(50)
    with pytest.raises(ValueError, match='pass sigmoid=True'): MultiLabelInterpretation.from_preds(logits, targs)
    make = partial(MultiLabelInterpretation.from_preds, sigmoid=True)
    with pytest.raises(ValueError, match='not a single sample'): make(logits[:0], targs[:0])
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
    with pytest.raises(ValueError, match='from_learner'): named[[0]]
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
    same = [o for o in a.report() if o not in ('thresh','calibration_error')]
    pd.testing.assert_frame_equal(a.report('label')[same], c.report('label')[same])
    c.plot_thresholds(0)
    with pytest.raises(ValueError, match='probabilities'): c.plot_calibration()

def test_a_number_as_it_is_shown():
    interp = MultiLabelInterpretation.from_preds(torch.rand(30, 4), torch.eye(4)[torch.arange(30)%4])
    for label in ('3',3):
        interp.plot_thresholds(label)
        assert plt.gca().get_title()=='label 3: true in 7 of 30 samples'
    plt.close('all')
    for label in ('4',4):
        with pytest.raises(ValueError, match=f"label {label!r} is not in the vocab: it has 0, 1, 2, 3$"):
            interp.plot_thresholds(label)

def test_nothing_is_confused(capsys):
    interp = MultiLabelInterpretation.from_preds(torch.zeros(30, 4), torch.eye(4)[torch.arange(30)%4])
    words = 'No label is predicted, so none is confused with another one.'
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
        assert interp.report()[['ap','roc_auc','calibration_error']].isna().all(None) # they rank scores

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

def test_three_axes_and_a_loss_without_a_loss_per_sample():
    logits,targs = simulate(64, 5, density=0.3)
    items = [o.view(16, 4, 5) for o in (logits,targs)]
    own = MultiLabelInterpretation.from_learner(make_learner(*items, loss_func=Masked()))
    test_close(own.losses, MultiLabelInterpretation.from_learner(make_learner(*items)).losses)

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

def test_curves_are_without_limits():
    logits,targs = simulate(200, 5, density=0.3)
    for limits in ('','max_labels=1','min_labels=1, max_labels=2'):
        kw = {k: int(v) for k,v in (o.split('=') for o in limits.split(', ') if o)}
        MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, **kw).plot_thresholds(0)
        now = plt.gca().get_legend_handles_labels()[1][-1]
        test_eq(now, 'now: 0.5' + (f',\nwithout {limits}' if limits else ''))

def test_a_label_of_which_nothing_counts():
    logits,targs = simulate(50, 3, density=0.3)
    targs[:,1] = math.nan
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, ignore_index=math.nan)
    with pytest.raises(ValueError, match='label 1 has no target that counts'): interp.plot_thresholds(1)

def test_a_report_tells_what_never_occurs():
    logits,targs = simulate(50, 4, density=0.3)
    targs[:,[1,3]] = 0
    def reading(names):
        p,y = logits[:,:len(names)],targs[:,:len(names)]
        return MultiLabelInterpretation.from_preds(p, y, sigmoid=True, vocab=names).report().reading
    assert reading(list('abcd')).endswith(' Nothing is known of labels that no sample has: b, d.')
    assert reading(list('abc')).endswith(' Nothing is known of labels that no sample has: b.')
    assert 'Nothing' not in reading(['a'])

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
            f"{start}micro F1 {f1['micro avg']:.3f}; the best constant prediction scores "
            f"{interp.judge().constant_f1:.3f}; macro F1 {f1['macro avg']:.3f}"), repr(interp)
    assert text(2000, 5).endswith('. The model gives many labelled samples no label.')
    assert text(2000, 5, thresh=0.05).endswith('. No warning.')
    assert text(1, 1).startswith('MultiLabelInterpretation of 1 sample and 1 label, at thresh=0.5: micro F1 ')
    assert text(30, 1).endswith('. No verdict: fewer than 20 samples have a label.')
    binary = MultiLabelInterpretation.from_preds(logits>0, targs)
    assert repr(binary).startswith('MultiLabelInterpretation of 2,000 samples and 5 labels: micro F1 ')

def test_judge_is_that_of_arrays():
    logits,targs = simulate(300, 6, density=0.3, bias=-2)
    targs[::7,2] = math.nan
    preds,kw = logits.sigmoid(),dict(thresh=[0.2]*6, min_labels=1, ignore_index=math.nan, vocab=list('abcdef'))
    for p,of_binary in ((preds, {}), (preds>0.2, dict(thresh=0.5, min_labels=0))):
        ours = MultiLabelInterpretation.from_preds(p, targs, **kw).judge(max_empty=0.9)
        test_eq(str(ours), str(judge(p, targs, max_empty=0.9, **kw | of_binary)))

def test_plots_have_the_order_of_their_tables():
    logits,targs = simulate(1500, 8, density=0.3, bias=-2)
    logits[:,3],targs[:,3] = -9,0 # Neither true nor predicted
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=list('abcdefgh'))
    order = [*interp.report(averages=False).index]
    assert order[-1]=='d' and [*interp.report('ap', averages=False).index][-1]=='d'
    assert [*interp.report('support', averages=False).index][0]=='d'
    plt.close('all')
    interp.plot_confusion_matrices()
    test_eq([ax.get_title() for ax in plt.gcf().axes if ax.images], order)
    plt.close('all')
    interp.plot_label_confusion()
    pairs,shown = interp.most_confused(k=None),[o.get_text() for o in plt.gca().get_xticklabels()]
    times = pairs.groupby('missed').samples.sum().add(pairs.groupby('predicted').samples.sum(), fill_value=0)
    times = pairs.groupby('predicted').samples.sum()
    assert {*shown}=={*pairs.predicted} and times[shown].is_monotonic_decreasing

@given(st.integers(0,2**20), st.integers(1,25), st.integers(2,12))
@hypothesis.example(15879, 3, 11) # A row whose confusions are all with labels that are not shown
def test_a_plot_of_confusions_has_no_empty_row_or_column(seed, k, c):
    rng = np.random.default_rng(seed)
    preds,targs = ((rng.random((30,c))<rng.random(c)*0.2).astype(int) for _ in range(2))
    interp = MultiLabelInterpretation.from_preds(preds, targs)
    pairs = interp.most_confused(k=None)
    if not len(pairs): return
    interp.plot_label_confusion(k)
    ax = plt.gca()
    m = np.array(ax.images[0].get_array())
    assert m.any(0).all() and m.any(1).all() and max(m.shape)<=k
    count = pairs.set_index(['missed','predicted']).samples
    rows,cols = ([int(o.get_text()) for o in ticks] for ticks in (ax.get_yticklabels(),ax.get_xticklabels()))
    for (i,j),n in np.ndenumerate(m): assert count.get((rows[i],cols[j]), 0)==n
    if k>=c: assert m.sum()==count.sum() # All are shown
    plt.close('all')

def test_plots_have_the_same_fonts():
    interp,*_ = arrays_of(300, 8, density=0.3, bias=-2)
    for f in (interp.plot_confusion_matrices, interp.plot_label_confusion, lambda: interp.plot_thresholds(0),
              interp.plot_roc, interp.plot_precision_recall, interp.plot_calibration, interp.plot_cardinality):
        plt.close('all')
        f()
        fig = plt.gcf()
        fig.canvas.draw()
        texts = [o for o in fig.findobj(matplotlib.text.Text) if o.get_text() and o.get_visible()]
        assert {o.get_fontsize() for o in texts} <= {8,10}, f

def test_above_one_label_is_its_own_threshold():
    logits,targs = simulate(300, 3, density=0.3)
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, thresh=[0.2,0.3,0.4], max_labels=2)
    assert ' samples with it, at thresh=0.3, max_labels=2; the lowest 9 scores' in interp.show(1).reading
    for labels,at in ((1, '0.3'), ([2], '0.4'), ([0,2], '0.2 to 0.4 by label'), (None, '0.2 to 0.4 by label')):
        interp.plot_confusion_matrices(labels=labels)
        test_eq(plt.gcf().get_suptitle(), f'at thresh={at}, max_labels=2')
    interp.plot_confusion_matrices(k=1)
    assert re.fullmatch(r'lowest F1: 1 of 3 labels, at thresh=0\.[234], max_labels=2', plt.gcf().get_suptitle())

@pytest.mark.parametrize('f,names', [
    ('plot_confusion_matrices', ['k','ncols']),
    ('plot_label_confusion', ['k']),
    ('plot_precision_recall', ['k']),
    ('plot_roc', ['k']),
    ('plot_calibration', ['bins']),
    ('most_confused', ['k']),
    ('plot_top_losses', ['k']),
    (partial(MultiLabelInterpretation.plot_top_losses, k=3), ['nrows','ncols']),
    (partial(MultiLabelInterpretation.show, label=0), ['max_n','nrows','ncols']),
    (partial(MultiLabelInterpretation.show_results, idxs=[0,1]), ['nrows','ncols'])])
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
    for o in (interp.empty(), interp.show(names[1]), interp.most_confused(), interp.report(), interp.most_missed()):
        assert "'" not in repr(o) and '&#x27;' not in o._repr_html_() and '(a, c)' in repr(o)
    assert interp.show('(a, c)').reading.startswith('(a, c): missed in ')
    n = len(interp.empty())
    assert n>1000 and interp.empty().reading.startswith(f'{n:,} of 1,500 samples get no label')
    interp.plot_label_confusion()
    assert {o.get_text() for o in plt.gca().get_xticklabels()} <= {'(a, b)','(a, c)','(b, c)'}

@pytest.mark.parametrize('make', [BCEWithLogitsLossFlat, AsymmetricLossFlat])
@pytest.mark.parametrize('shape', [(64,5), (16,4,5)], ids=str)
def test_losses_of_a_loss_that_ignores_targets(make, shape):
    "They are the loss function's own, averaged over a sample's known targets"
    logits,targs = (o.view(shape) for o in simulate(64, 5, density=0.3))
    holes = targs.masked_fill(torch.arange(320).view(shape)%3==0, math.nan)
    holes[0] = math.nan
    learn = make_learner(logits, holes, F1ScoreMulti(ignore_index=math.nan), loss_func=make(ignore_index=math.nan))
    losses = make(reduction='none')(logits, targs).view(shape).where(~holes.isnan(), math.nan)
    expected = losses.flatten(1).nanmean(1).repeat_interleave(64//len(losses))
    ours = MultiLabelInterpretation.from_learner(learn).losses
    torch.testing.assert_close(ours, expected, equal_nan=True, rtol=1e-4, atol=1e-5, check_dtype=False)

def test_a_report_by_label_makes_no_large_tables():
    p,y = torch.rand(20_000, 300),(torch.rand(20_000, 300)<0.02).float()
    interp = MultiLabelInterpretation.from_preds(p, y)
    MultiLabelInterpretation.from_preds(p[:2000], y[:2000]).report()
    assert peak_of(interp.report) < 16*p.numel()/2**20
    assert peak_of(interp.most_confused) < 16*p.numel()/2**20

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

@pytest.mark.parametrize('ignored', [None,math.nan])
def test_a_single_label_has_a_loss_per_sample(ignored):
    logits,targs = simulate(64, 1, density=0.3)
    loss = BCEWithLogitsLossFlat(pos_weight=tensor([3.]), ignore_index=ignored)
    learn = make_learner(logits, targs, F1ScoreMulti(ignore_index=ignored), loss_func=loss)
    expected = F.binary_cross_entropy_with_logits(logits, targs, pos_weight=tensor([3.]), reduction='none')
    test_close(MultiLabelInterpretation.from_learner(learn).losses, expected[:,0])

def test_unknown_targets_are_told_from_absent_labels():
    logits,targs = simulate(60, 4, density=0.2)
    n = int((targs.sum(1)==0).sum())
    targs[targs.sum(1)==0] = tensor([0.,0,0,math.nan])
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, ignore_index=math.nan)
    assert f'{n} of 60 samples have no label known to be true' in interp.report().reading
    assert f'{n} of 60 samples have no label known to be true' in interp.accuracy_report().reading
    interp = MultiLabelInterpretation.from_preds(logits, targs.nan_to_num(), sigmoid=True)
    for r in (interp.report(), interp.accuracy_report()): assert f'{n} of 60 samples have no label' in r.reading
