"Passes over the data: which loader is read, how, and what else sees it"
import contextlib, io
from helpers import *
from types import SimpleNamespace
from fastai_mlmetrics.core.passes import (accumulate_metrics, check_first_batch, check_label_axis, get_dl, get_probs,
                                          groups_of, without_trackers)

@pytest.mark.parametrize('of_torch', [False, True])
def test_a_loader_may_be_the_first_argument(of_torch):
    learn,(logits,targs) = fitted(1),simulate(80, seed=3)
    dl = DataLoader(TensorPairs(logits, targs), bs=32)
    if of_torch: dl = torch.utils.data.DataLoader([*zip(logits, targs)], 32)
    takers = (Learner.evaluate, Learner.accuracy_report,
              lambda o, *args, **kw: MultiLabelInterpretation.from_learner(o, *args, **kw).accuracy_report(),
              lambda o, *args, **kw: o.thresh_find(*args, **kw, show_plot=False).table)
    for f in takers:
        f(learn) # Some sentences are shown once
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
              partial(Learner.thresh_find, show_plot=False, bins=64), MultiLabelInterpretation.from_learner, get_dl)
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

@pytest.mark.parametrize('name', ['TrackerCallback','TerminateOnNaNCallback','CSVLogger','TensorBoardBaseCallback',
                                  'WandbCallback','CometCallback'])
def test_who_does_not_see_a_validation(name):
    "Nor those derived from it; other callbacks do"
    learn = make_learner(*simulate(20, 3))
    tracker = type('Own', (type(name, (Callback,), {}),), {})()
    other = type('Other', (Callback,), {})()
    learn.add_cbs([tracker, other])
    with without_trackers(learn): assert tracker not in learn.cbs and other in learn.cbs
    assert tracker in learn.cbs

def test_a_recorder_may_be_absent_and_is_preserved_by_an_error():
    learn = make_learner(*simulate(20, 3))
    learn.recorder.values = [[0.5]]
    with pytest.raises(KeyboardInterrupt), without_trackers(learn):
        learn.recorder.values = []
        raise KeyboardInterrupt
    assert learn.recorder.values==[[0.5]]
    learn.remove_cb(Recorder)
    assert len(get_probs(learn, learn.dls.valid)[0])==20

def test_what_a_loader_is():
    learn = make_learner(*simulate(20, 3))
    class Indexed(torch.utils.data.DataLoader):
        def __getitem__(self, i): return [*self][i]
    indexed = Indexed([1,2])
    assert get_dl(learn, indexed) is indexed
    with pytest.raises(TypeError, match='dl is a Datasets') as e: get_dl(learn, dl=Datasets([1,2]))
    assert 'one of its own' not in str(e.value)
    assert get_dl(learn, -1) is learn.dls.valid is get_dl(learn)
    with pytest.raises(ValueError, match='no such data'): get_dl(learn, -3)
    train = get_dl(learn, -2)
    assert train.dataset is learn.dls.train.dataset and not train.shuffle and not train.drop_last

def test_a_loader_in_order_and_whole_is_read_as_it_is():
    learn,ds = make_learner(*simulate(20, 3)),TensorPairs(*simulate(20, 3))
    for kw in (dict(shuffle=True), dict(drop_last=True)):
        new = get_dl(learn, DataLoader(ds, bs=8, **kw))
        assert len(new)==3 and not new.shuffle
    plain = DataLoader(ds, bs=8)
    assert get_dl(learn, plain) is plain

@pytest.mark.parametrize('kw,is_new', [(dict(shuffle=True),True), (dict(drop_last=True),True), (dict(),False),
                                       (dict(sampler=range(5)),False), (dict(sampler=range(5), drop_last=True),False)])
def test_which_loaders_of_torch_are_replaced(kw, is_new):
    "A sampler that the user passed stays; a new loader reads as the first one"
    kw = dict(num_workers=1, collate_fn=list, pin_memory=True, **kw)
    dl = torch.utils.data.DataLoader([1,2,3,4,5], 2, **kw)
    got = get_dl(make_learner(*simulate(20, 3)), dl)
    assert (got is not dl)==is_new
    if is_new: assert [*got.sampler]==[0,1,2,3,4] and len(got)==3
    for name in ('dataset','batch_size','num_workers','collate_fn','pin_memory'):
        assert getattr(got, name)==getattr(dl, name)

def test_where_the_column_of_groups_is():
    items = pd.DataFrame(dict(patient=[3,1,3], fold=0))
    inside = SimpleNamespace(dataset=SimpleNamespace(items=items))
    for dl in (SimpleNamespace(items=items), inside): assert groups_of(dl, 'patient').tolist()==[3,1,3]
    assert groups_of(inside, None) is None and groups_of(inside, [1,2,3])==[1,2,3]
    for items,name,hint in ((items,'patent',r"did you mean 'patient'\?"), (items,'x','which have patient, fold: pass'),
                            (pd.DataFrame([[1]*7]),'x','which have 0, 1, 2, 3, 4, 5 and 1 more: pass'),
                            ([1,2],'x','which have none: pass a value per sample')):
        with pytest.raises(ValueError, match=f"groups={name!r} is no column of the items.*{hint}"):
            groups_of(SimpleNamespace(items=items), name)

def test_probabilities_are_those_of_an_activation():
    logits,targs = simulate(20, 3)
    learn = make_learner(logits, targs)
    dl = learn.dls.valid
    test_close(get_probs(learn, dl)[0], logits.sigmoid(), eps=1e-6)
    test_close(get_probs(learn, dl, act=lambda o: (2*o).sigmoid())[0], (2*logits).sigmoid(), eps=1e-6)
    with pytest.raises(ValueError, match='act should return probabilities'): get_probs(learn, dl, act=noop)
    assert torch.equal(get_probs(learn, DataLoader(TensorPairs(targs, targs), bs=8), act=noop)[0], targs)
    plain = make_learner(logits, targs, loss_func=nn.BCEWithLogitsLoss())
    test_close(get_probs(plain, dl)[0], logits.sigmoid(), eps=1e-6)

def test_a_second_sigmoid_is_told_once():
    learn = make_learner(*simulate(20, 3), model=Sigmoid())
    with pytest.warns(UserWarning, match="remove the sigmoid at the model's end"): get_probs(learn, learn.dls.valid)
    with warnings_as('error'): get_probs(learn, learn.dls.valid)

def test_several_outputs_are_told_before_they_are_collected():
    class Two(Same):
        def forward(self, x): return x+0*self.w,x
    targs = simulate(20, 3)[1]
    learn = make_learner(targs, targs, model=Two(), loss_func=lambda p,y: F.mse_loss(p[0], y))
    for f in (get_probs, check_first_batch):
        with pytest.raises(ValueError, match='returns a tuple of 2'): f(learn, learn.dls.valid)

def test_only_the_first_batch_is_checked():
    learn,seen = make_learner(*simulate(20, 3), bs=8),[]
    class Watch(TrackerCallback):
        order = 0
        def before_fit(self): seen.append('tracker')
    class Count(Callback):
        def after_pred(self): seen.append(len(self.pred))
    learn.add_cbs([Watch(), Count()])
    check_first_batch(learn, [])
    check_first_batch(learn, learn.dls.valid)
    assert seen==[8]

def test_metrics_that_accumulate_are_the_only_ones():
    "A pass has the name of one that is not a validation, and neither trackers nor the Learner's metrics see it"
    logits,targs = simulate(20, 3)
    learn,seen = make_learner(logits, targs, [F1ScoreMulti()]),[]
    class Watch(Callback):
        def before_validate(self): seen.append((hasattr(self.learn, 'gather_preds'), [*self.learn.metrics]))
    learn.add_cbs([Watch(), type('CSVLogger', (Watch,), {})()])
    m = F1ScoreMulti(average='micro')
    m.reset()
    accumulate_metrics(learn, [m], get_dl(learn, 0))
    assert seen==[(True,[])] and len(learn.metrics)==1
    assert m.value==pytest.approx(m(logits, targs))
    without_targs = DataLoader(TensorPairs(logits), bs=8)
    without_targs.n_inp = 1
    with pytest.raises(ValueError, match='this loader has no targets'): accumulate_metrics(learn, [m], without_targs)

@pytest.mark.parametrize('shape,axis,vocab,is_wrong', [
    ((4,3,5), 1, None, True), ((4,3,5), 0, None, True), ((4,3,5), -1, None, False), ((4,3,5), 2, None, False),
    ((4,3,5), -2, None, True), ((4,3), 1, None, False), ((4,3), 0, None, False), ((4,3,5), None, None, False),
    ((4,3,5), -1, 'abc', True), ((4,3,5), -1, 'abcdef', True), ((4,3,5), 1, 'abcde', False),
    ((4,3), -1, 'abcde', False)])
def test_labels_are_the_last_of_several_axes(shape, axis, vocab, is_wrong):
    "By the vocab; without one, by the axis of the loss function"
    loss = SimpleNamespace() if axis is None else SimpleNamespace(axis=axis)
    dls = SimpleNamespace(vocab=[*vocab]) if vocab else SimpleNamespace()
    learn = SimpleNamespace(dls=dls, loss_func=loss)
    if not is_wrong: return check_label_axis(learn, torch.zeros(shape))
    why = f'labels, of which there are {len(vocab)}, but' if vocab else 'labels, but'
    with pytest.raises(ValueError, match=rf'{why}.*\(4, 3, 5\).*movedim'): check_label_axis(learn, torch.zeros(shape))

class Rows(Callback):
    "Make a row of each pixel or token, as the loss of a loop of one's own expects it"
    def __init__(self, f): self.f = f
    def after_pred(self): self.learn.pred,self.learn.yb = self.f(self.pred),(self.f(self.y),)

@pytest.mark.parametrize('f,shape', [(lambda o: o.flatten(0, 1),(40,6,3)),
                                     (lambda o: o.unflatten(0, (-1,2)).mean(1),(240,3))])
def test_all_rows_of_a_callback_are_taken(f, shape):
    "A row per pixel, and the mean of two crops"
    logits,targs = simulate(240, 3, density=.3, bias=-1)
    logits,targs = logits.view(shape),targs[::2].repeat_interleave(2, 0).view(shape)
    learn = make_learner(logits, targs, F1ScoreMulti(average='micro'), bs=16, cbs=Rows(f))
    expected = pytest.approx(learn.evaluate().value['f1_score_micro'])
    scores,true = get_probs(learn, learn.dls.valid)
    test_close(scores, f(logits).sigmoid(), eps=1e-6)
    assert torch.equal(true, f(targs)) and len(true)!=len(targs)
    interp = MultiLabelInterpretation.from_learner(learn)
    for o in (interp, learn): assert o.accuracy_report(ci=None).value['f1_micro']==expected
    assert learn.thresh_find(show_plot=False).table.score['now']==expected
    assert interp.source=='training set' # Both loaders have it
    assert len(interp.plot_top_losses(3))==3 and interp.items([0]) is None
    with pytest.raises(ValueError, match='a callback changed the number of rows'): interp[[0]]
    with pytest.raises(ValueError, match=f'{len(true)}'): learn.accuracy_report(groups=[*range(len(targs))])
