"What the interpretation says, and that the model runs only once for it"
import sklearn.metrics as skm
from fastai.tabular.all import *
from fastai.text.all import *
from hypothesis import given, settings
from conftest import *
from test_callback import text_dls, BagOfWords

def arrays_of(n=300, c=20, **kw):
    logits,targs = simulate(n, c, **kw)
    return MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True),(logits>0).long().numpy(),targs.long().numpy(),logits.sigmoid().numpy()

def test_report():
    interp,p,y,s = arrays_of(skill=4)
    r = interp.report().sort_index()
    for col,f in (('precision',skm.precision_score), ('recall',skm.recall_score), ('f1',skm.f1_score)):
        np.testing.assert_allclose(r[col], f(y, p, average=None, zero_division=0), atol=1e-12)
    np.testing.assert_allclose(r.ap, skm.average_precision_score(y, s, average=None), atol=1e-6)
    test_eq(r.support.tolist(), y.sum(0)); test_eq(r.predicted.tolist(), p.sum(0))
    assert interp.report().f1.is_monotonic_increasing and interp.report('support').support.is_monotonic_increasing
    own = MultiLabelInterpretation.from_preds(s, y, vocab=list('abcdefghijklmnopqrst'), thresh=np.linspace(0.1, 0.9, 20))
    assert own.report().loc['t','thresh']==0.9 and own.report().loc['a','predicted']==(s[:,0]>0.1).sum()

@settings(max_examples=100)
@given(decided())
def test_confusions(decided):
    p,y = decided
    interp = MultiLabelInterpretation.from_preds(p.astype(np.float32), y)
    expected = {(i,j): n for i in range(p.shape[1]) for j in range(p.shape[1]) if (n:=int(((y[:,i]==1) & (p[:,i]==0) & (y[:,j]==0) & (p[:,j]==1)).sum()))}
    df = interp.most_confused()
    assert {(r.missed,r.predicted): r.samples for r in df.itertuples()}==expected and df.samples.is_monotonic_decreasing
    assert interp.most_missed().missed.to_dict()=={i: n for i,n in enumerate(((y==1)&(p==0)).sum(0)) if n}
    assert sorted(interp.empty().index)==list(np.flatnonzero(p.sum(1)==0))

def test_empty_samples():
    interp,p,y,s = arrays_of(bias=-6)
    df = interp.empty()
    assert df.n_true.is_monotonic_decreasing and len(df)==(p.sum(1)==0).sum()
    for i,r in df.head(20).iterrows():
        assert r.n_true==y[i].sum() and r.true==' '.join(map(str, np.flatnonzero(y[i]))) and r.nearest==s[i].argmax() and r.score==pytest.approx(s[i].max())

@pytest.mark.parametrize('c,density', [(1,0.3), (6,0.26), (20,0.0775), (80,0.035), (1000,0.02)])
def test_plots(c, density):
    interp,p,y,s = arrays_of(200, c, density=density, skill=4, bias=-2.5)
    axs = interp.plot_confusion_matrices()
    shown = [ax for ax in axs.flat if ax.images]
    assert len(shown)==min(12, c)
    f1 = skm.f1_score(y, p, average=None, zero_division=0) if c>1 else [skm.f1_score(y, p)]
    i = int(shown[0].get_title())
    assert f1[i]==min(f1)
    test_eq([int(t.get_text()) for t in shown[0].texts], skm.confusion_matrix(y[:,i], p[:,i], labels=[0,1]).flatten())
    assert (f'of {c}' in axs.flat[0].figure.get_suptitle())==(c>12)
    ax = interp.plot_label_confusion()
    df = interp.most_confused()
    n = min(20, c, max(2, len({*df.missed, *df.predicted})))
    assert len(ax.get_xticks())==n and (f'of {c}' in ax.get_title())==(n<c)
    heights = [[b.get_height() for b in bars] for bars in interp.plot_cardinality().containers]
    assert sum(heights[0])==sum(heights[1])==200 and len(heights[0])<=30
    ax = interp.plot_calibration()
    assert sum(int(o.get_text()) for o in ax.texts)==200*c
    lines = interp.plot_thresholds(0).lines
    precision,recall,_ = skm.precision_recall_curve(y[:,0], s[:,0])
    np.testing.assert_allclose(sorted(lines[0].get_ydata()), sorted(precision[:-1]), atol=1e-9); np.testing.assert_allclose(sorted(lines[1].get_ydata()), sorted(recall[:-1]), atol=1e-9)
    plt.close('all')

def test_calibration_error():
    interp,p,y,s = arrays_of(2000, bias=-3)
    bins = np.minimum((s*10).astype(int), 9)
    expected = sum((bins==b).mean()*abs(s[bins==b].mean()-y[bins==b].mean()) for b in np.unique(bins))
    assert f'{expected:.3f}' in interp.plot_calibration().get_title()
    plt.close('all')

def test_what_is_refused():
    logits,targs = simulate(50)
    with pytest.raises(ValueError, match='pass sigmoid=True'): MultiLabelInterpretation.from_preds(logits, targs)
    make = partial(MultiLabelInterpretation.from_preds, sigmoid=True)
    with pytest.raises(ValueError, match='not a single sample'): make(logits[:0], targs[:0])
    with pytest.raises(ValueError, match='3 names.*20 labels'): make(logits, targs, vocab=['a','b','c'])
    with pytest.raises(ValueError, match='0 or 1'): make(logits, targs*2)
    with pytest.raises(ValueError, match="'zebra' is not in the vocab"): make(logits, targs).plot_thresholds('zebra')
    with pytest.raises(ValueError, match='from_learner'): make(logits, targs).show_results([0])
    with pytest.warns(UserWarning, match='NaN'), pytest.raises(ValueError, match='NaN'): make(logits*math.nan, targs)

# Of Learners

class Counting(Callback):
    "Counts the batches that the model sees"
    n = 0
    def after_pred(self): self.n += 1

def check(learn, show=True):
    "One pass, in the order of the data, and none after it"
    learn.remove_cb(ProgressCallback)
    learn.add_cb(Counting())
    interp = MultiLabelInterpretation.from_learner(learn)
    assert learn.counting.n==len(learn.dls.valid)
    preds,targs = learn.get_preds()
    assert torch.equal(interp.preds, preds) and torch.equal(interp.targs, targs) and interp.losses.shape==(len(preds),)
    logits,_ = learn.get_preds(act=noop) # a sigmoid may saturate
    np.testing.assert_allclose(interp.losses, F.binary_cross_entropy_with_logits(logits, targs.float(), reduction='none').mean(1), rtol=1e-4)
    seen = learn.counting.n
    assert isinstance(interp, Interpretation) and len(interp.report())==preds.shape[1]
    idxs = interp.top_losses(4)[1]
    inps,p,t,d,losses = interp[idxs]
    assert torch.equal(t, targs[idxs].float()) and torch.equal(d, (preds[idxs]>0.5).float()) and torch.equal(p, preds[idxs]) and torch.equal(losses, interp.losses[idxs])
    assert learn.counting.n==seen
    # The inputs belong to them: the model makes the same predictions of them
    with torch.no_grad(): again = learn.model.eval()(*L(inps)).sigmoid()
    np.testing.assert_allclose(again, p, atol=1e-5)
    if show: interp.show_results(idxs)
    assert learn.counting.n==seen
    plt.close('all')
    return interp

def test_images(digits_dls):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, loss_func=BCEWithLogitsLossFlat())
    interp = check(learn)
    seen = learn.counting.n
    interp.plot_top_losses(3); interp.plot_top_losses([0,5])
    assert learn.counting.n==seen
    plt.close('all')
    learn.set_thresh([0.1]*20, min_labels=2)
    interp = MultiLabelInterpretation.from_learner(learn)
    assert (interp.decided.sum(1)>=2).all() and interp.report().thresh.eq(0.1).all() and not len(interp.empty())
    assert torch.equal(interp.decided, learn.get_preds(with_decoded=True)[2])
    other = MultiLabelInterpretation.from_learner(learn, ds_idx=0, thresh=0.5)
    assert len(other.preds)==len(digits_dls.train_ds)

def test_texts_are_sorted_and_stay_aligned():
    dls = text_dls()
    learn = Learner(dls, BagOfWords(len(dls.vocab[0]), len(dls.vocab[1])), loss_func=BCEWithLogitsLossFlat())
    check(learn, show=False).plot_top_losses(3)
    with pytest.raises(TypeError, match='not subscriptable'): learn.show_results() # fastai's own, and the reason

def test_tables():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(100,3)), columns=list('xyz'))
    df[['a','b']] = rng.integers(0, 2, (100,2))
    dls = TabularPandas(df, procs=[Normalize], cont_names=list('xyz'), y_names=['a','b'], y_block=MultiCategoryBlock(encoded=True, vocab=['a','b']),
                        splits=RandomSplitter(seed=0)(range_of(df))).dataloaders(bs=16, device=torch.device('cpu'))
    check(tabular_learner(dls, layers=[8]))

def test_a_loss_without_activation():
    logits,targs = simulate(100)
    learn = make_learner(logits, targs, loss_func=nn.BCEWithLogitsLoss())
    learn.dls.valid.n_inp = 1
    np.testing.assert_allclose(MultiLabelInterpretation.from_learner(learn).preds, logits.sigmoid(), atol=1e-6)

def test_three_axes():
    "Rows of several steps per item: a loss, a decision and a truth for each row"
    logits,targs = (o.view(40,5,4) for o in simulate(200, 4, density=0.3))
    learn = make_learner(logits, targs)
    interp = MultiLabelInterpretation.from_learner(learn)
    assert len(interp.losses)==len(interp.preds)==len(interp.true)==200
    losses,idxs = interp.top_losses(3)
    assert (idxs<200).all() and len(interp.empty())==(~(logits>0).any(-1)).sum()
    assert interp.report().support.sum()==targs.sum()

def test_missing_truths_and_margins():
    logits,targs = simulate(200, 4, density=0.3)
    more,missing = torch.cat([logits, torch.randn(50, 4)]),torch.cat([targs, torch.full((50,4), math.nan)])
    a,b = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True),MultiLabelInterpretation.from_preds(more, missing, sigmoid=True, ignore_index=math.nan)
    pd.testing.assert_frame_equal(a.report(), b.report()); pd.testing.assert_frame_equal(a.empty(), b.empty()); pd.testing.assert_frame_equal(a.most_confused(), b.most_confused())
    assert b.plot_calibration().get_title()==a.plot_calibration().get_title() and b.plot_thresholds(1).get_title()==a.plot_thresholds(1).get_title()
    c = MultiLabelInterpretation.from_preds(logits, targs, thresh=0.)
    test_eq(c.decided, a.decided); test_close(c.losses, a.losses, 1e-5)
    same = [o for o in a.report() if o not in ('thresh','calibration_error')]
    pd.testing.assert_frame_equal(a.report()[same].sort_index(), c.report()[same].sort_index())
    c.plot_thresholds(0)
    with pytest.raises(ValueError, match='probabilities'): c.plot_calibration()
    plt.close('all')
