"`evaluate`, `accuracy_report` and `plot_metrics` of a Learner, and errors of a training"
from helpers import *

def panels(learn, **kwargs):
    "The figure of `plot_metrics`, and its curves by title and by label"
    assert learn.recorder.plot_metrics(**kwargs) is None # a notebook shows no text
    fig = plt.gcf()
    fig.canvas.draw()
    plt.close(fig)
    def curves(ax): return {line.get_label(): line.get_ydata() for line in ax.lines}
    return fig,{ax.get_title(): curves(ax) for ax in fig.axes if ax.get_title()}

def test_evaluate_is_validate_with_names():
    learn = fitted()
    learn.set_thresh(0.153, min_labels=1)
    with learn.no_logging(): expected = learn.validate()
    t = learn.evaluate()
    assert list(t.index)==['loss', *learn.metrics.attrgot('name')] and t.value.tolist()==list(expected)
    assert t.thresh['f1_macro']=='0.153, min_labels=1' and t.thresh['loss']==t.thresh['zeros_accuracy']==''
    assert t.value['f1_macro']==learn.accuracy_report(ci=None).value['f1_macro']
    train = learn.evaluate(dl=learn.dls.train)
    assert train.value['f1_macro']==pytest.approx(t.value['f1_macro'], abs=0.1)
    assert max(map(len, repr(t).split('\n')))<60
    class Seen(Callback):
        n = 0
        def after_batch(self): Seen.n += 1
    learn.evaluate(cbs=Seen())
    assert Seen.n==len(learn.dls.valid) and len(fitted(1, []).evaluate())==1

def test_evaluate_shows_the_thresholds_of_each_metric():
    own = F1ScoreMulti([0.1]*19+[0.9], name='own')
    metrics = [*multilabel_metrics(full=True, ranking=True), own, BrierScoreMulti(), accuracy_multi]
    t = fitted(1, metrics).evaluate()
    assert t.thresh['own']=='0.1 to 0.9 by label' and t.value.notna().all()
    assert (t.thresh[['lrap','ap_macro','brier_score_loss','zeros_accuracy']]=='').all()

def test_curves_show_each_epoch():
    learn = fitted(3)
    fig,drawn = panels(learn)
    assert list(drawn)==['loss', *learn.metrics.attrgot('name')]
    test_eq(drawn['loss'].keys(), {'train','valid'})
    test_eq(drawn['f1_macro'].keys(), {'valid'})
    for i,name in enumerate(learn.recorder.metric_names[2:-1], 1):
        test_close(drawn[name.replace('valid_','')]['valid'], L(learn.recorder.values).itemgot(i))

def test_curves_show_training_too():
    learn = fitted(2, [F1ScoreMulti(name='f1'), EmptyRate()], cbs=Recorder(train_metrics=True))
    _,drawn = panels(learn)
    assert list(drawn)==['loss','f1','empty_rate']
    assert all(o.keys()=={'train','valid'} for o in drawn.values())
    names = list(learn.recorder.metric_names[1:-1])
    for o in ('train','valid'): test_eq(drawn['f1'][o], L(learn.recorder.values).itemgot(names.index(f'{o}_f1')))

@pytest.mark.slow
@pytest.mark.parametrize('n', [1, 3, 6, 12])
def test_curves_do_not_overlap(n):
    fig,drawn = panels(fitted(1, [F1ScoreMulti(0.1+i/20, name=f'a_long_name_{i}') for i in range(n)]))
    boxes = [ax.get_tightbbox() for ax in fig.axes if ax.get_title()]
    assert len(boxes)==n+1 and fig.get_figwidth()<=10
    assert not any(a.overlaps(b) for i,a in enumerate(boxes) for b in boxes[:i])
    inner = fig.bbox
    assert all(b.x0>=inner.x0-1 and b.x1<=inner.x1+1 for b in boxes)

def test_curves_stay_after_looking_at_thresholds():
    "Each validation resets fastai's Recorder; methods of this package do not"
    learn = fitted(3)
    losses = list(learn.recorder.losses)
    learn.evaluate()
    learn.accuracy_report()
    learn.thresh_find(show_plot=False)
    assert len(panels(learn)[1]['loss']['valid'])==3 and learn.recorder.losses==losses
    learn.recorder.plot_loss()
    with learn.no_logging(): learn.validate()
    with pytest.raises(ValueError, match='no epoch is recorded: call it after `fit`'):
        learn.recorder.plot_metrics()
    with pytest.raises(ValueError, match='no epoch is recorded'):
        make_learner(*simulate(20)).recorder.plot_metrics()

def test_an_interrupted_training_has_curves():
    class Stop(Callback):
        def before_batch(self):
            if self.training and self.epoch==2: raise CancelFitException
    learn = make_learner(*simulate(100), multilabel_metrics(), cbs=Stop())
    with learn.no_logging(): learn.fit(5)
    assert len(panels(learn)[1]['f1_macro']['valid'])==2
    class NoTrain(Callback):
        def before_train(self):
            if self.epoch==1: raise CancelTrainException
    learn = make_learner(*simulate(100), multilabel_metrics(), cbs=NoTrain())
    with learn.no_logging(): learn.fit(3)
    assert len(panels(learn)[1]['f1_macro']['valid'])==2 # an epoch without training has no training loss

def test_a_single_epoch_has_a_whole_number():
    fig,_ = panels(fitted(1))
    assert all([o.get_text() for o in ax.get_xticklabels()]==['0'] for ax in fig.axes if ax.lines)

def test_each_label_has_its_curve():
    learn = fitted(2, [F1ScoreMulti(average=None)])
    fig,_ = panels(learn)
    lines = next(ax for ax in fig.axes if ax.get_title()=='f1_score_per_label').lines
    expected = np.stack([row[-1] for row in learn.recorder.values], 1)
    assert len(lines)==20
    assert all(np.allclose(line.get_ydata(), o) for line,o in zip(lines, expected))

def test_all_of_the_training_data_are_evaluated():
    logits,targs = simulate(50)
    metrics = [AccuracyMulti(), F1ScoreMulti(sample_weight=torch.arange(50.))]
    learn = make_learner(logits, targs, metrics, bs=64)
    learn.dls = DataLoaders(learn.dls.train.new(drop_last=True), learn.dls.valid, device=CPU)
    assert learn.evaluate(0).value.tolist()==pytest.approx(learn.evaluate(1).value.tolist())

def test_evaluate_is_validate():
    "Also of loaders of other kinds"
    logits,targs = simulate(100, 4, density=0.3)
    ds = TensorPairs(logits, targs)
    class Rows(torch.utils.data.IterableDataset):
        def __iter__(self): return iter(zip(logits, targs))
    class Own(DataLoader):
        def __init__(self, logits, targs, bs=16, **kwargs):
            super().__init__(TensorPairs(logits, targs), bs=bs, **kwargs)
    for dl in (DataLoader(ds, bs=16, n=32), DataLoader(Rows(), bs=16, n=100), Own(logits, targs)):
        dls = DataLoaders(dl, dl, device=CPU)
        learn = Learner(dls, Same(), loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics())
        learn.remove_cb(ProgressCallback)
        with learn.no_logging(): assert learn.evaluate().value.tolist()==[*learn.validate()]

def test_the_report_is_of_the_learner_s_threshold():
    logits,targs = simulate(200, bias=-3)
    for loss in (BCEWithLogitsLossFlat(), nn.BCEWithLogitsLoss()):
        learn = make_learner(logits, targs, multilabel_metrics(), loss_func=loss)
        if isinstance(loss, BCEWithLogitsLossFlat): learn.set_thresh(0.15, min_labels=1)
        r = learn.accuracy_report(ci=None)
        v = values(learn)
        assert r.value['f1_samples']==pytest.approx(v['f1_samples'], abs=1e-12)
        assert r.value['accuracy_multi']==pytest.approx(v['accuracy_multi'], abs=1e-12)
        f1 = learn.accuracy_report(thresh=0.3, min_labels=0, ci=None).value['f1_micro']
        assert f1==pytest.approx(F1ScoreMulti(0.3, average='micro')(logits, targs), abs=1e-12)

def test_the_report_says_that_the_threshold_was_tuned_on_its_samples():
    learn = make_learner(*simulate(300, bias=-2.), multilabel_metrics(), vocab=[f'l{i}' for i in range(20)])
    says = 'The threshold was tuned on these samples, so scores at this threshold are optimistically biased.'
    assert says not in learn.accuracy_report().reading
    found = learn.thresh_find(show_plot=False)
    learn.set_thresh(found.per_label)
    assert says not in learn.accuracy_report().reading # A list does not know what it was tuned on
    learn.set_thresh(found)
    for report in (learn.accuracy_report(), learn.accuracy_report(ds_idx=0)):
        assert report.reading.endswith(f'. {says}')
    assert says not in learn.accuracy_report(thresh=0.2).reading
    test = DataLoader(TensorPairs(*simulate(300, bias=-2., seed=1)), bs=64)
    assert says not in learn.accuracy_report(dl=test).reading

CRUSH = dict(crush=0.2, rain=0.3, snow=0.4)

@pytest.mark.parametrize('part,says', [
    (lambda: dict(metrics=F1ScoreMulti(labels=['crush'])),
     "label 'crush' is not in the vocab: did you mean 'crash'"),
    (lambda: dict(metrics=F1ScoreMulti(CRUSH)), r"labels \['crush'\], which are not here: did you mean 'crash'\?"),
    (lambda: dict(cbs=ZeroLabelsCallback(CRUSH)), r"labels \['crush'\], which are not here: did you mean 'crash'\?"),
    (lambda: dict(metrics=F1ScoreMulti(labels=['rain']), vocab=None), 'in a Learner, set learn.dls.vocab'),
    (lambda: dict(cbs=ZeroLabelsCallback(CRUSH), vocab=None), 'set learn.dls.vocab')])
def test_unknown_labels_are_an_error(part, says):
    learn = make_learner(*simulate(64, 3), **dict(vocab=['crash','rain','snow']) | part())
    with pytest.raises(ValueError, match=says): learn.fit(1, 0.)

def fitted_after_reloading_each():
    "The epochs of a Learner from before and of one from after every module was loaded again, twice"
    import importlib
    def make():
        import fastai_mlmetrics.all as package
        cbs = [package.ZeroLabelsCallback(), EarlyStoppingCallback(monitor='f1_macro', patience=9)]
        return make_learner(*simulate(64), package.multilabel_metrics(), cbs=cbs)
    before = make()
    modules = [o for name,o in sys.modules.items() if name.startswith('fastai_mlmetrics.')]
    for o in modules*2: importlib.reload(o)
    learners = before,make()
    for o in learners:
        with warnings_as('ignore'), o.no_logging(): o.fit(2, 0.)
    return [len(o.recorder.values) for o in learners]

@pytest.mark.slow
def test_fits_go_on_after_modules_were_reloaded(): assert in_process(fitted_after_reloading_each)==[2,2]

def test_a_loss_for_one_class_is_evaluated_on_classes():
    logits,targs = simulate(64, 4, density=0.3)
    classes = make_learner(logits, targs[:,0].long(), [accuracy], loss_func=CrossEntropyLossFlat())
    assert classes.evaluate().value['accuracy']==classes.validate()[1]
