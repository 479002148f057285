"Passes over the data: which loader is read, how, and what else sees it"
import contextlib, io
from helpers import *
from fastai_mlmetrics.core.passes import accumulate_metrics, get_probs

@pytest.mark.parametrize('of_torch', [False, True])
def test_a_loader_may_be_the_first_argument(of_torch):
    learn,(logits,targs) = fitted(1),simulate(80, seed=3)
    dl = DataLoader(TensorPairs(logits, targs), bs=32)
    if of_torch: dl = torch.utils.data.DataLoader([*zip(logits, targs)], 32)
    takers = (Learner.evaluate, Learner.accuracy_report,
              lambda o, *args, **kw: MultiLabelInterpretation.from_learner(o, *args, **kw).accuracy_report(),
              lambda o, *args, **kw: o.thresh_find(*args, **kw, show_plot=False).table)
    for f in takers:
        first,named = f(learn, dl),f(learn, dl=dl)
        assert str(first)==str(named) and str(first)!=str(f(learn))
        with pytest.raises(TypeError, match='ds_idx is a list.*test_dl'): f(learn, [*zip(logits, targs)])

def test_what_is_no_loader_is_refused(): # By name and by position, before any pass over the data
    learn,(logits,targs) = fitted(1),simulate(80, seed=3)
    other = DataLoaders(*(DataLoader(TensorPairs(logits, targs), bs=32) for _ in range(2)))
    class WithoutLength:
        def __iter__(self): return iter([(logits, targs)])
    wrong = [other, learn.dls.valid_ds, TensorPairs(logits, targs), logits, targs.numpy(), (logits,targs), 'valid',
             True, pd.DataFrame(targs), L([(logits,targs)]), dict(dl=1), {1}, 1.5, learn, iter([(logits, targs)]),
             WithoutLength(), torch.utils.data.TensorDataset(logits, targs)]
    takers = (Learner.evaluate, Learner.accuracy_report, partial(Learner.thresh_find, show_plot=False),
              partial(Learner.thresh_find, show_plot=False, bins=64), MultiLabelInterpretation.from_learner,
              get_probs, partial(accumulate_metrics, metrics=[]))
    learn.model = None # A pass over the data would fail
    for f,o in itertools.product(takers, wrong):
        name = type(o).__name__
        says = f'{name}, but should be 0 for training, 1 for validation, or a loader.*test_dl'
        with pytest.raises(TypeError, match='dl is a '+says): f(learn, dl=o)
        with pytest.raises(TypeError, match='ds_idx is a '+says): f(learn, ds_idx=o)
    with pytest.raises(TypeError, match=r'one of its own \(`dls.valid`\) or a new one'): learn.evaluate(dl=other)
    for number in (2, -3, 99):
        with pytest.raises(ValueError, match='there are no such data'): learn.evaluate(number)

def test_loaders_of_other_packages_and_lists_that_a_learner_has_are_taken():
    logits,targs = simulate(80, 4)
    batches = [*zip(logits.split(32), targs.split(32))]
    class Loader: # As that of NVIDIA DALI
        def __iter__(self): return iter(batches)
        def __len__(self): return len(batches)
    learn = make_learner(logits, targs, multilabel_metrics())
    expected = str(learn.evaluate())
    assert str(learn.evaluate(dl=Loader()))==expected and str(learn.evaluate(Loader()))==expected
    learn.dls = DataLoaders(batches, batches)
    for o in (dict(), dict(ds_idx=0), dict(dl=1), dict(dl=batches)): assert str(learn.evaluate(**o))==expected

def test_looking_at_data_changes_no_checkpoint(tmp_path):
    "Neither callbacks that save, log or stop, nor their state, nor their files see a validation by this package"
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), path=tmp_path)
    cbs = [SaveModelCallback(monitor='f1_macro'), EarlyStoppingCallback(monitor='f1_macro'), ReduceLROnPlateau(),
           CSVLogger(), TerminateOnNaNCallback()]
    learn.add_cbs(cbs)
    with learn.no_logging(): learn.fit(2, 0.1)
    files = {o: (o.stat().st_mtime_ns, o.read_bytes()) for o in (tmp_path/'models/model.pth', tmp_path/'history.csv')}
    kept = [(o.best, o.monitor) for o in cbs[:3]]
    lr,state = learn.opt.hypers[0]['lr'],dict(vars(learn.recorder))
    dl,order = DataLoader(TensorPairs(*simulate(80, seed=3)), bs=32),[type(o) for o in learn.cbs.sorted('order')]
    learn.metrics = paper_metrics() # Fewer columns than in the fit
    for f in (learn.evaluate, learn.accuracy_report, partial(learn.thresh_find, show_plot=False),
              partial(MultiLabelInterpretation.from_learner, learn)):
        with contextlib.redirect_stdout(io.StringIO()) as out: f(dl=dl)
        assert out.getvalue()=='' and not learn.lock.locked()
    assert [type(o) for o in learn.cbs.sorted('order')]==order and all(o.learn is learn for o in cbs)
    assert {o: (o.stat().st_mtime_ns, o.read_bytes()) for o in files}==files
    assert [(o.best, o.monitor) for o in cbs[:3]]==kept and learn.opt.hypers[0]['lr']==lr
    assert learn.recorder.values==state['values']

@pytest.mark.parametrize('f', [
    Learner.evaluate,
    Learner.accuracy_report,
    Learner.thresh_find,
    lambda o, dl: MultiLabelInterpretation.from_learner(o, dl=dl)])
def test_data_without_targets_are_an_error(f, digits_dls):
    model = nn.Sequential(nn.AdaptiveAvgPool2d(1), Flatten(), nn.Linear(3, 20))
    learn = Learner(digits_dls, model, loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics())
    test_dl = digits_dls.test_dl(digits_dls.valid_ds.items[:4])
    advice = r'no targets: create it with `learn.dls.test_dl\(items, with_labels=True\)` from'
    with pytest.raises(ValueError, match=advice), learn.no_bar(): f(learn, dl=test_dl)

def test_loaders_of_torch_will_do():
    logits,targs = simulate(100, 4)
    ds = torch.utils.data.TensorDataset(logits, targs)
    dls = DataLoaders(*(torch.utils.data.DataLoader(ds, batch_size=16) for _ in range(2)))
    learn = Learner(dls, Same(), loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics())
    learn.remove_cb(ProgressCallback)
    expected = best_thresholds(logits.sigmoid(), targs, average='micro').thresh
    assert learn.thresh_find(show_plot=False, average='micro').best==expected
    assert learn.accuracy_report().value['f1_macro']==pytest.approx(learn.evaluate().value['f1_macro'])
    assert MultiLabelInterpretation.from_learner(learn).report().support.iloc[0]>=0
    partly = torch.utils.data.DataLoader(ds, batch_size=16, shuffle=True, drop_last=True)
    learn.dls.loaders[0] = partly
    for given in (partly,0): assert torch.equal(MultiLabelInterpretation.from_learner(learn, given).targs, targs)
    for given in (partly,0):
        assert learn.evaluate(given).value['f1_macro']==learn.evaluate().value['f1_macro']
    chosen = torch.utils.data.DataLoader(ds, batch_size=16, sampler=range(50))
    assert len(MultiLabelInterpretation.from_learner(learn, chosen).targs)==50

def test_a_loader_that_is_passed_is_read_in_order_and_whole():
    "As the training set that is chosen by its number"
    logits,targs = simulate(100)
    learn = make_learner(logits, targs, multilabel_metrics(ranking=True))
    ds = TensorPairs(logits, targs)
    loaders = DataLoader(ds, bs=16, shuffle=True, drop_last=True),DataLoader(ds, bs=16)
    dls = DataLoaders(*loaders, device=default_device())
    learn.dls,train = dls,dls.train
    with learn.no_logging(), learn.no_bar():
        for f in (lambda *a, **kw: learn.evaluate(*a, **kw).value.iloc[1:].astype(float),
                  lambda *a, **kw: learn.accuracy_report(*a, ci=None, **kw).value,
                  lambda *a, **kw: tensor(learn.thresh_find(*a, show_plot=False, **kw).per_label),
                  lambda *a, **kw: tensor(learn.thresh_find(*a, show_plot=False, bins=64, **kw).per_label),
                  lambda *a, **kw: MultiLabelInterpretation.from_learner(learn, *a, **kw).preds):
            expected = f(0)
            for got in (f(train), f(dl=train), f(np.int64(0))): test_close(got, expected, eps=1e-9)
        assert [*learn.evaluate(np.int64(1)).index]==['loss', *learn.metrics.attrgot('name')]
    assert train.shuffle and train.drop_last
