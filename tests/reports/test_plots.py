"The plots of an interpretation, and that their curves are scikit-learn's"
import hypothesis
import sklearn.metrics as skm
from helpers import *
from six_labels import LOGITS, SCORES, TARGS
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.reports.plots import plot_thresh_curve
from fastai_mlmetrics.reports.labels import count_confusions
from fastai_mlmetrics.thresholds.search import ScoreTable

@pytest.mark.parametrize('c,density', [(1,0.3), (6,0.26), slow(20,0.0775), slow(80,0.035), slow(1000,0.02)])
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
    for name,area in (('plot_precision_recall',skm.average_precision_score), ('plot_roc',skm.roc_auc_score)):
        ax, = drawn(getattr(interp, name))
        legend = ax.get_legend()
        # The most mistakes, of labels with enough positives
        order = [j for j in range(c) if y[:,j].sum()>=20] or [j for j in range(c) if y[:,j].any()]
        order = sorted(order, key=lambda j: -(y[:,j]!=p[:,j]).sum())
        expected = [area(y[:,j], s[:,j]) for j in order[:5]]
        assert [float(o.get_text().split()[0]) for o in legend.get_texts()]==pytest.approx(expected, abs=0.0051)
        has = y.any(0).sum()
        n = len(expected)
        assert (f'most mistakes: {n} of {has:,}' in legend.get_title().get_text())==(has>n)
        _,ax = plt.subplots()
        getattr(interp, name)([0], ax=ax)
        legend = ax.get_legend()
        assert ax.lines and legend.get_texts()[0].get_text().endswith('  label 0')
        assert 'mistakes' not in legend.get_title().get_text()

def test_curves_are_scikit_learn_s():
    interp,p,y,s = arrays_of(400, 6, density=0.3)
    true,predicted,score = y[:,2],p[:,2],s[:,2]
    interp.plot_precision_recall(labels=[2])
    curve,dot = plt.gca().lines
    precision,recall,_ = skm.precision_recall_curve(true, score)
    np.testing.assert_allclose(curve.get_xydata(), np.stack([recall,precision], 1)[::-1]) # From the highest threshold
    assert curve.get_drawstyle()=='steps-pre' # scikit-learn's go the other way, 'steps-post'
    now = [skm.recall_score(true, predicted), skm.precision_score(true, predicted)]
    np.testing.assert_allclose(dot.get_xydata()[0], now)
    interp.plot_roc(labels=[2])
    curve,dot,_ = plt.gca().lines
    np.testing.assert_allclose(curve.get_xydata(), np.stack(skm.roc_curve(true, score, drop_intermediate=False)[:2], 1))
    tn,fp,fn,tp = skm.confusion_matrix(true, predicted).flatten()
    np.testing.assert_allclose(dot.get_xydata()[0], [fp/(tn+fp), tp/(tp+fn)])
    never = MultiLabelInterpretation.from_preds(s, y*(np.arange(6)!=3))
    never.plot_roc(k=10)
    assert len(plt.gca().get_legend().get_texts())==5
    with pytest.raises(ValueError, match='no curve of label 3, which is true in all samples or in none'):
        never.plot_precision_recall([3])
    with pytest.raises(ValueError, match='no curve'): MultiLabelInterpretation.from_preds(s, y*0).plot_roc()
    with pytest.raises(ValueError, match='labels='): interp.plot_confusion_matrices(labels=[])
    MultiLabelInterpretation.from_preds(s*0, y*0).plot_confusion_matrices() # no targets and no predictions

def test_curves_of_ties_and_infinite_scores_are_scikit_learn_s():
    "As its lines, where equal scores are one step, and infinite ones are the highest or the lowest"
    logits,targs = simulate(300, 3, density=0.3)
    margins = (logits*2).round()/2
    margins[:20],margins[20:40] = math.inf,-math.inf
    interp = MultiLabelInterpretation.from_preds(margins, targs, thresh=0.)
    y,s = targs[:,1].numpy(),margins[:,1].nan_to_num().numpy()
    def line(f):
        f(labels=[1])
        points = plt.gca().lines[0].get_xydata()
        return points[np.r_[True, (np.diff(points, axis=0)!=0).any(1)]] # Points within a tie are the same
    precision,recall,_ = skm.precision_recall_curve(y, s)
    np.testing.assert_allclose(line(interp.plot_precision_recall), np.stack([recall,precision], 1)[::-1])
    expected = skm.roc_curve(y, s, drop_intermediate=False)[:2]
    np.testing.assert_allclose(line(interp.plot_roc), np.stack(expected, 1), atol=1e-12)
    for f in (interp.plot_precision_recall, interp.plot_roc):
        f()
        ax = plt.gca()
        assert ax.get_xlim()==ax.get_ylim()==(-0.01,1.01) and ax.get_aspect()==1

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
        assert line.get_drawstyle()=='steps-post' and low<x[-1]<=min(s.min(), t)<=max(s.max(), t)<=x[0]<high
        assert (np.diff(x)<=0).all()
        for at in np.linspace(x[-1], x[0], 23)[1:-1]:
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

def test_a_number_as_it_is_shown():
    interp = MultiLabelInterpretation.from_preds(torch.rand(30, 4), torch.eye(4)[torch.arange(30)%4])
    for label in ('3',3):
        interp.plot_thresholds(label)
        assert plt.gca().get_title()=='label 3: true in 7 of 30 samples'
    plt.close('all')
    with pytest.raises(ValueError, match="label 4 is not in the vocab: it has 0, 1, 2, 3$"): interp.plot_thresholds(4)
    with pytest.raises(ValueError, match="label '4' is not known, because the labels have no names"):
        interp.plot_thresholds('4')

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
def test_a_plot_of_confusions_has_no_empty_column(seed, k, c):
    rng = np.random.default_rng(seed)
    preds,targs = ((rng.random((30,c))<rng.random(c)*0.2).astype(int) for _ in range(2))
    interp = MultiLabelInterpretation.from_preds(preds, targs)
    pairs = interp.most_confused(k=None)
    if not len(pairs): return
    interp.plot_label_confusion(k)
    ax = plt.gca()
    m = np.array(ax.images[0].get_array())
    assert m.any(0).all() and max(m.shape)<=k
    count = pairs.set_index(['missed','predicted']).samples
    rows,cols = ([int(o.get_text()) for o in ticks] for ticks in (ax.get_yticklabels(),ax.get_xticklabels()))
    for (i,j),n in np.ndenumerate(m): assert count.get((rows[i],cols[j]), 0)==n
    if k>=c: assert m.sum()==count.sum() # All are shown
    plt.close('all')

@pytest.mark.slow
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
    assert ' samples with it, at thresh=0.3, max_labels=2; the 9 most confident' in interp.show(1).reading
    for labels,at in ((1, '0.3'), ([2], '0.4'), ([0,2], '0.2 to 0.4 by label'), (None, '0.2 to 0.4 by label')):
        interp.plot_confusion_matrices(labels=labels)
        test_eq(plt.gcf().get_suptitle(), f'at thresh={at}, max_labels=2')
    interp.plot_confusion_matrices(k=1)
    assert re.fullmatch(r'lowest F1: 1 of 3 labels, at thresh=0\.[234], max_labels=2', plt.gcf().get_suptitle())

@given(binary_pairs())
def test_confusions_are_counted_in_blocks(pair):
    true,predicted = (torch.from_numpy(o).bool() for o in pair)
    def expected(true, predicted): return ((true & ~predicted).int().T@(predicted & ~true).int()).numpy()
    counts = count_confusions(SimpleNamespace(true=true, predicted=predicted))
    test_eq(counts.toarray(), expected(true, predicted))
    assert counts.nnz==(counts.toarray()>0).sum() and counts.has_sorted_indices
    many = 2**21//true.shape[1]//len(true)+2 # More than a block
    counts = count_confusions(SimpleNamespace(true=true.repeat(many, 1), predicted=predicted.repeat(many, 1)))
    test_eq(counts.toarray(), many*expected(true, predicted))

def thresh_curve(m, preds, targs, marks, **kwargs):
    "The axes after `plot_thresh_curve`"
    ax = plt.subplots()[1]
    table = ScoreTable(Predictions.of(preds, targs, thresh=None, **kwargs))
    assert plot_thresh_curve(m, table, marks, ax=ax) is None
    ax.figure.canvas.draw()
    plt.close(ax.figure)
    return ax

@given(st.integers(0, 1000), st.sampled_from([1, 3, 40, 3000]), st.sampled_from([-12, -4, 0]),
       st.sampled_from(['micro','macro','samples']))
@hypothesis.example(371, 3, 0, 'micro') # No target is true, and the only point of the curve is near 1
@pytest.mark.slow
def test_the_drawn_peak_is_the_best(seed, n, bias, average):
    "Curves of more than 2,048 positives are drawn at 2,048 of them; in micro, the best threshold may lie between"
    logits,targs = simulate(n, 4, density=0.2, bias=bias, seed=seed)
    scores = logits.sigmoid()
    best = best_thresholds(logits, targs, average=average, per_label=False, sigmoid=True, cv=None)
    ax = thresh_curve(F1ScoreMulti(average=average), scores, targs, {'best': best.thresh})
    x,v = ax.lines[0].get_data()
    exact,peak = average!='micro' or targs.sum()<=2048,max(0, *v)
    assert best.score-(1e-9 if exact else 1/targs.sum())<=peak<=best.score+1e-9 and len(x)<=2*2048+1
    low,high = ax.get_xlim()
    assert low<best.thresh<high
    if best.score>0 and best.score in v and best.thresh>1e-7:
        assert min(abs(x[v==v.max()]/best.thresh-1))<1e-3
    some = slice(None, None, max(1, len(x)//300))
    for t,value in zip(x[some], v[some]):
        expected = F1ScoreMulti(float(t), sigmoid=False, average=average)(scores, targs)
        assert abs(expected-value)<1e-9 or min(t,1-t)<1e-6

def test_small_thresholds_are_legible():
    logits,targs = simulate(2000, 20, bias=-8)
    marks = {'best':0.004, 'before':0.01, 'now':0.5}
    ax = thresh_curve(F1ScoreMulti(average='micro'), logits.sigmoid(), targs, marks)
    at = ax.transAxes.inverted().transform(ax.transData.transform([(t, 0) for t in marks.values()]))[:,0]
    assert 0.02<at[0]<at[1]-0.05 and at[1]<at[2]-0.2 and at[2]<0.98
    assert len(ax.get_xticks())>=4 and any(t<0.1 for t in ax.get_xticks())

def test_the_best_threshold_does_not_look_like_those_in_use():
    marks = {'best': 0.3, 'lowest now': 0.1, 'highest now': 0.9}
    ax = thresh_curve(F1ScoreMulti(average='micro'), SCORES, TARGS, marks)
    best,*in_use = ((o.get_color(), o.get_linestyle()) for o in ax.lines[-3:])
    assert best not in in_use and in_use==[('k','--')]*2

def test_curves_are_drawn_of_margins_and_missing_labels():
    ax = thresh_curve(F1ScoreMulti(), LOGITS, TARGS, {'best':0.})
    assert ax.get_xscale()=='linear' and ax.get_xlim()[0]<-1
    valid = (torch.rand(300,6)<0.7)
    missing = TARGS.masked_fill(~valid, -1)
    best = best_thresholds(SCORES, missing, average='macro', per_label=False, ignore_index=-1)
    ax = thresh_curve(F1ScoreMulti(ignore_index=-1), SCORES, missing, {'best':best.thresh}, ignore_index=-1)
    assert max(ax.lines[0].get_ydata())==pytest.approx(best.score, abs=1e-9)

@pytest.mark.parametrize('marks', [{}, {'now': 0.5}])
def test_a_metric_that_is_undefined_at_all_thresholds_has_an_empty_curve(marks):
    ax = thresh_curve(RecallMulti(average='micro', zero_division=math.nan), SCORES, 0*TARGS, marks)
    low,high = ax.get_xlim()
    assert not len(ax.lines[0].get_xdata()) and 0<low<0.5<high<1
