"ZeroLabelsCallback: what it records, and when it warns"
import contextlib, io, logging, pickle, threading, time
import fastai.losses
from contextlib import nullcontext
from fastai.callback.tracker import EarlyStoppingCallback, SaveModelCallback, TerminateOnNaNCallback
from fastai.tabular.all import *
from fastai.text.all import *
from helpers import *
from fastai_mlmetrics.diagnosis.boxes import notify
from fastai_mlmetrics.diagnosis.records import Record, describe

class Waking(Module):
    "A model that predicts nothing for `asleep` validations, then predicts well"
    def __init__(self, asleep):
        self.w = nn.Parameter(torch.zeros(1))
        self.asleep,self.seen = asleep,0
    def train(self, mode=True):
        self.seen += not mode
        return super().train(mode)
    def forward(self, x): return x + 0*self.w - (9 if self.seen<=self.asleep else 0)

def test_when_it_warns_and_at_what_length(capsys):
    "With a learning rate of 0, only the first validation improves on the best loss"
    def lines(*args, **kw):
        "Epoch and length of each warning"
        _,caught = trained(*args, **kw)
        return [(w.message.record.epoch, 'full' if 'What to do' in str(w.message) else 'line') for w in caught]
    assert lines(*COLLAPSED, n_epoch=7)==[(3,'full'),(6,'line')]
    assert lines(*COLLAPSED, n_epoch=4)==[(3,'full')]
    assert lines(*COLLAPSED, n_epoch=2)==[(1,'full')]
    assert not lines(*GOOD, n_epoch=5, model=Waking(2)) and not capsys.readouterr().out
    assert lines(*GOOD, n_epoch=7, model=Waking(5))==[(3,'full')]
    assert 'Epoch 6: the earlier warning no longer applies.' in capsys.readouterr().out
    assert lines(*GOOD, n_epoch=9, model=Waking(5))==[(3,'full')]
    assert capsys.readouterr().out.count('Epoch 7: the earlier warning no longer applies.')==1

@pytest.mark.parametrize('losses,acts_at', [
    ([1.,.9,.8,.7,.6,.5,.4,.3], None), # learns
    ([1.,.9,2.,.8,2.,.7,2.,.6], None), # learns, with bad epochs between
    ([1.,.9,2.,2.,.8,2.,2.,.7], None),
    ([1.,1.,1.,1.,1.,1.,1.,1.], 3),
    ([1.,math.nan,math.nan,math.nan,1.,1.,1.,1.], 3),
    ([1.,.9,.9,.95,.9,.9,.9,.9], 4),
    ([1.,2.,3.,4.,5.,6.,7.,8.], 3)])
@pytest.mark.parametrize('on_flag', ['warn',slow('stop'),slow('raise')])
def test_a_model_that_learns_is_left_alone(losses, acts_at, on_flag):
    cbs = [ZeroLabelsCallback(on_flag=on_flag), Falling(losses)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=cbs, bs=100)
    with recording(learn) as caught:
        try:
            learn.fit(8, 0.)
            raised = False
        except ZeroLabelsError: raised = True
    epochs = [w.message.record.epoch for w in caught]
    assert len(learn.zero_labels.records)==(acts_at+1 if acts_at and on_flag!='warn' else 8)
    if on_flag=='raise': assert raised and not epochs # at the end of a fit as well
    else: assert epochs==([acts_at] if acts_at else []) + ([7] if on_flag=='warn' or not acts_at else [])

def test_better_ranking_is_learning():
    "The loss rises and nothing is predicted, but true labels rank higher and higher"
    logits,targs = simulate(skill=0., bias=-9)
    class Learns(Same):
        n = 0.
        def forward(self, x):
            self.n += 1/7 if not self.training else 0
            return super().forward(x[...,:20] + 0.3*self.n*x[...,20:] - self.n)
    inputs = torch.cat([logits, targs], 1)
    learn = make_learner(inputs, targs, model=Learns(), cbs=ZeroLabelsCallback(on_flag='stop'))
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(8, 0.)
    r = learn.zero_labels.report(full=True)
    assert r.flagged.all() and r.valid_loss.is_monotonic_increasing and len(r)==8
    assert len(caught)==1 and 'micro average precision is still rising' in one_line(caught[0].message)

def test_stop_ends_the_fit():
    learn,caught = trained(*COLLAPSED, n_epoch=6, on_flag='stop')
    assert len(learn.recorder.values)==4==len(learn.zero_labels.records) and len(caught)==1
    assert "`on_flag='stop'` ended the fit at epoch 3." in one_line(caught[0].message)
    assert "ended the fit" in one_line(repr(learn.zero_labels.explain()))
    with pytest.warns(ZeroLabelsWarning, match=r'^\nAs before, at threshold 0.5, the model predicts'): values(learn)

def test_raise_ends_the_fit_with_an_error():
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag='raise'))
    learn.add_cbs(ProgressCallback())
    logger = learn.logger
    with pytest.raises(ZeroLabelsError, match='predicts no label'): learn.fit(6, 0.)
    assert len(learn.recorder.values)==4
    assert learn.logger is logger and not hasattr(learn.progress, 'mbar')
    learn.remove_cb(ProgressCallback)
    learn.zero_labels.on_flag = 'warn'
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)

def test_a_function_gets_the_flagged_records():
    seen = []
    trained(*COLLAPSED, n_epoch=6, on_flag=seen.append)
    assert [r.epoch for r in seen]==[3,5] and all(r.flagged for r in seen)

def test_function_may_apply_the_remedy():
    def apply(r): learn.set_thresh(learn.thresh_find(show_plot=False).best)
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag=apply))
    with learn.no_logging(): learn.fit(1, 0.)
    assert learn.recorder.values[-1][-1]==0 and values(learn)['f1_samples']>0.3

def test_function_may_validate_in_a_validation():
    "For which the Learner is locked"
    seen = []
    def act(r): seen.append((r, len(learn.get_preds()), learn.validate()))
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag=act))
    with learn.no_bar(), learn.no_logging(): expected = learn.validate()
    (r,n,again), = seen
    assert r is learn.zero_labels.records[0] and n==2 and again==expected
    assert not learn.lock.locked() and 'validation_context' not in vars(learn)

def test_function_may_validate_and_is_not_called_again():
    seen = []
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback(on_flag=lambda r: seen.append(r) or learn.validate()))
    with learn.no_logging(): learn.fit(6, 0.)
    assert [r.epoch for r in seen]==[3,5]
    assert [r.phase for r in learn.zero_labels.records].count('validate')==2

class Within(Callback):
    "Calls `f` in the middle of a fit"
    order = 51 # after the Recorder
    def __init__(self, event, f):
        setattr(self, event, lambda: None if self.learn.lock.locked() else f(self.learn))

@pytest.mark.parametrize('event', ['after_train','after_validate','after_epoch'])
@pytest.mark.parametrize('f', [
    lambda o: o.get_preds(),
    lambda o: o.get_preds(inner=True),
    lambda o: o.validate(dl=make_learner(*GOOD).dls.valid)], ids=['get_preds','inner','validate'])
@pytest.mark.slow
def test_other_validations_within_a_fit(event, f):
    cbs = [ZeroLabelsCallback(on_flag='raise'), Within(event, f)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=cbs)
    with pytest.raises(ZeroLabelsError), learn.no_logging(): learn.fit(6, 0.)
    assert [r.verdict for r in learn.zero_labels.records if r.phase=='fit']==['predicts nothing']*4

def test_no_record_without_samples_or_targets():
    logits,targs = COLLAPSED
    for data in (TensorPairs(logits[:0], targs[:0]), TensorPairs(logits)):
        learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback())
        learn.dls.n_inp = 1
        with learn.no_logging(): learn.validate(dl=DataLoader(data, bs=16))
        assert not learn.zero_labels.records
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.recorder.valid_metrics = False
    with learn.no_logging(), pytest.warns(ZeroLabelsWarning): learn.fit(1, 0.)
    assert math.isnan(learn.zero_labels.records[0].valid_loss)

def test_a_warning_may_be_an_error():
    with warnings_as('error', ZeroLabelsWarning):
        learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback())
        with pytest.raises(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)

def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="on_flag='shout' should be"): ZeroLabelsCallback(on_flag='shout')
    for patience in (0,2.5):
        with pytest.raises(ValueError, match=f'patience={patience}'): ZeroLabelsCallback(patience=patience)
    with pytest.raises(ValueError, match='before the first validation'): ZeroLabelsCallback().plot()
    with pytest.raises(ValueError, match='2 names.*20 labels'): judge(*GOOD, sigmoid=True, vocab=['a','b'])

def test_what_the_metrics_ignore_is_ignored():
    "By everything that evaluates the Learner's validation set, unless another value is passed"
    logits,targs = simulate(bias=-3)
    targs[torch.rand(400, 20, generator=torch.Generator().manual_seed(0))<0.3] = -1
    learn = make_learner(logits, targs, multilabel_metrics(ignore_index=-1), cbs=ZeroLabelsCallback())
    with warnings.catch_warnings(record=True): v = values(learn)
    assert learn.zero_labels.records[-1].accuracy==v['accuracy_multi']
    kw = dict(ignore_index=-1)
    learn.accuracy_report() # It alone says that samples are taken as independent
    for f in (lambda **kw: learn.thresh_find(show_plot=False, **kw),
              learn.accuracy_report,
              lambda **kw: MultiLabelInterpretation.from_learner(learn, **kw).report()):
        f() # What is said once has been said
        assert repr(f())==repr(f(**kw))
    learn.metrics = L(accuracy_multi)
    where = 'missing targets, pass ignore_index='
    with pytest.raises(ValueError, match=where): learn.thresh_find(show_plot=False)

SOME = ['l1','l3']

def looked_at(metrics=(), thresh=None, **kw):
    "The record of a validation of 20 labels"
    learn = make_learner(*simulate(bias=-1), metrics, vocab=[f'l{i}' for i in range(20)],
                         cbs=ZeroLabelsCallback(thresh, **kw))
    with recording(learn): learn.validate()
    return learn.zero_labels.records[-1]

def test_the_callback_looks_at_some_labels():
    logits,targs = simulate(bias=-1)
    by_label = torch.linspace(0.1, 0.9, 20)
    thresh = dict(l1=by_label[1].item(), **{f'l{i}': by_label[i].item() for i in range(20) if i!=1})
    r = looked_at(labels=SOME, thresh=thresh)
    expected = judge(logits[:,[1,3]], targs[:,[1,3]], sigmoid=True, vocab=SOME, thresh=by_label[[1,3]])
    assert r.labels==SOME and r.n_labels==2 and r.thresh==expected.thresh
    names = ('accuracy','f1_micro','f1_macro','missed_rate','verdict','never_predicted','constant_f1','ap_micro',
             'absent')
    for name in names: assert r[name]==expected[name], name
    assert math.isnan(r.label_each_f1)

@pytest.mark.parametrize('metrics,labels', [
    ([F1ScoreMulti(labels=SOME), accuracy_multi], SOME), # Functions have no `labels`
    ([F1ScoreMulti(labels=SOME), RecallMulti(labels=['l1'])], None),
    ([F1ScoreMulti(labels=SOME), RecallMulti()], None), # One looks at all labels
    ([F1ScoreMulti(labels=[i], name=f'f{i}') for i in range(20)], None), # A column for each label
    ([F1ScoreMulti()], None), ([], None)])
def test_the_labels_are_those_of_the_metrics_if_all_agree(metrics, labels):
    assert looked_at(metrics).labels==labels and looked_at(metrics, labels=['l2']).labels==['l2']

def test_labels_of_the_callback_are_checked_before_a_fit():
    with pytest.raises(ValueError, match='is not in the vocab: did you mean'): looked_at(labels=['l01'])
    with pytest.raises(ValueError, match='leaves nothing'): ZeroLabelsCallback(labels=[])

def test_only_labels_that_are_looked_at_need_valid_targets():
    logits,targs = simulate(bias=-1)
    targs[0,0] = 0.5
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback(labels=[1,3]))
    with learn.no_bar(), learn.no_logging(): learn.validate()
    assert learn.zero_labels.records[-1].labels==[1,3]

def test_only_validations_are_recorded(tmp_path):
    learn,_ = trained(*GOOD, n_epoch=2)
    learn.path = tmp_path
    with learn.no_logging():
        learn.validate()
        learn.get_preds()
        learn.lr_find(show_plot=False, num_it=20)
        learn.fine_tune(1, 0., freeze_epochs=1)
    learn.export(tmp_path/'learn.pkl')
    cb = load_learner(tmp_path/'learn.pkl').zero_labels
    expected = [(0,'fit'),(1,'fit'),(2,'validate'),(3,'fit'),(4,'fit')]
    for o in (learn.zero_labels, cb): assert [(r.validation, r.phase) for r in o.records]==expected
    assert list(cb.report(full=True).columns)==list(cb.records[0]) and cb.report().shape==(5,9)

def test_the_threshold_is_that_of_the_loss():
    learn,_ = trained(*COLLAPSED)
    learn.loss_func = BCEWithLogitsLossFlat(thresh=0.003)
    values(learn)
    assert learn.zero_labels.records[-1].thresh==0.003 and not learn.zero_labels.records[-1].flagged
    assert trained(*COLLAPSED, thresh=0.003)[0].zero_labels.records[-1].thresh==0.003

def test_thresholds_may_be_by_name():
    names = [f'l{i}' for i in range(COLLAPSED[0].shape[1])]
    thresh = dict(zip(names[::-1], [0.1]+[0.003]*(len(names)-1)))
    learn = make_learner(*COLLAPSED, vocab=names, cbs=ZeroLabelsCallback(thresh=thresh))
    with warnings_as('ignore', ZeroLabelsWarning): values(learn)
    assert learn.zero_labels.records[-1].validation==0

@pytest.mark.parametrize('turns,says', [
    (lambda x: x*math.nan, 'predictions are NaN'),
    (torch.sigmoid, 'predictions all lie in')])
def test_no_verdict_is_no_all_clear(turns, says, capsys):
    model = Same()
    learn = make_learner(*COLLAPSED, multilabel_metrics(), model, cbs=ZeroLabelsCallback(patience=1))
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
    model.forward = partial(lambda x: turns(x + 0*model.w))
    with pytest.warns(UserWarning, match=says), learn.no_logging():
        learn.fit(3, 0.)
        learn.validate()
    last = learn.zero_labels.explain()
    assert not last.verdict and re.search(rf'cannot be judged,\s+because\s+(some\s+)?{says}', str(last))
    assert L(learn.zero_labels.reported.values()).itemgot(0).attrgot('verdict')==["predicts nothing"]
    assert 'no longer applies' not in capsys.readouterr().out
    model.w.data.zero_() # NaN has spread to the weights and to the optimizer
    learn.create_opt()
    model.forward = lambda x: x + 7 + 0*model.w
    with learn.no_logging(): learn.fit(1, 0.)
    assert not learn.zero_labels.reported and 'no longer applies' in capsys.readouterr().out

def test_the_plot_shows_the_columns_of_the_report():
    learn,_ = trained(*GOOD, n_epoch=4, model=Waking(3))
    left,right = learn.zero_labels.plot()
    accuracy,zeros = (l.get_ydata() for l in left.lines)
    report = learn.zero_labels.report()
    test_eq(list(accuracy), report.accuracy.tolist())
    test_eq(list(zeros), report.zeros_accuracy.tolist())
    test_eq(list(right.lines[0].get_ydata()), report.empty_rate.tolist())
    assert len(left.patches)==3

def test_other_data_are_in_no_plot_of_the_validation_set():
    learn,_ = trained(*GOOD, n_epoch=2)
    with recording(learn): learn.evaluate(dl=make_learner(*COLLAPSED).dls.valid)
    left,_ = learn.zero_labels.plot()
    test_eq(list(left.lines[0].get_ydata()), learn.zero_labels.report().accuracy.tolist()[:2])
    assert len(learn.zero_labels.report())==3

def test_the_plot_agrees_with_the_boxes():
    "Each validation whose box is red is shaded, by its verdict; the others are white"
    gen = torch.Generator().manual_seed(0)
    logits,targs = simulate(600, 12, density=0.2, bias=-1.5, skill=4)
    dead = logits.clone()
    dead[:,:4] -= 20
    noise = torch.randn(600, 12, generator=gen)
    cases = dict(zip(('','predicts nothing','leaves samples empty','over-predicts','never predicts some labels',
                      'worse than a constant'), (logits, logits-20, logits-3.2, logits+2.5, dead, noise-0.9)))
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback(min_accuracy=1.))
    for o in cases.values():
        learn.model.forward = lambda x, o=o: o[:len(x)] + 0*learn.model.w
        with warnings_as('ignore'), learn.no_logging():
            learn.validate(dl=DataLoader(TensorPairs(logits, targs), bs=600))
    records = learn.zero_labels.records
    found = [r.verdict for r in records]
    assert [bool(o) for o in found]==['#d62728' in describe(r).html for r in records]
    test_eq(found, [*cases])
    for ax in learn.zero_labels.plot():
        # matplotlib 3.8 draws a polygon, later ones a rectangle
        left = lambda o: o.get_patch_transform().transform_path(o.get_path()).get_extents().x0
        shaded = {round(left(o)+0.5): o.get_facecolor() for o in ax.patches}
        test_eq(sorted(shaded), [i for i,o in enumerate(found) if o])
        assert len({*shaded.values()})==len(shaded)
        assert [o.get_text() for o in ax.figure.legends[0].get_texts()]==[o for o in found if o]

# fine_tune: a frozen phase, and a second fit

def test_a_frozen_phase_is_told_in_short():
    splitter = lambda m: [[], params(m)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(), splitter=splitter)
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fine_tune(5, 0., freeze_epochs=1)
    frozen = next(w.message for w in caught if isinstance(w.message, ZeroLabelsWarning))
    n_lines = len(str(frozen).strip().splitlines())
    test_eq((frozen.record.validation, n_lines, 'only the last layers' in str(frozen)), (0,3,True))
    assert [w.message.record.validation for w in caught]==[0,4,5]
    assert 'What to do' in str(caught[1].message)
    assert 'learn.unfreeze()' in repr(learn.zero_labels.records[0])
    assert 'learn.unfreeze()' not in repr(learn.zero_labels.explain())

@pytest.mark.slow
def test_advice_within_a_frozen_phase_holds():
    "`fine_tune` unfreezes by itself; a best epoch of the frozen phase is not frozen any more when it is loaded"
    splitter = lambda m: [[], params(m)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(), splitter=splitter)
    with recording(learn) as caught: learn.fine_tune(1, 0., freeze_epochs=5)
    text, = [one_line(w.message) for w in caught if 'Train all layers' in one_line(w.message)]
    assert ('Train all layers: only the last ones are being trained. `fine_tune` does this next; '
            'before `fit`, call `learn.unfreeze()`.') in text
    save = SaveModelCallback(monitor='accuracy_multi', reset_on_fit=False)
    learn = make_learner(*COLLAPSED, multilabel_metrics(), splitter=splitter, cbs=[ZeroLabelsCallback(), save],
                         path=Path(tempfile.mkdtemp()))
    with recording(learn) as caught: learn.fine_tune(2, 0., freeze_epochs=1)
    assert 'What to do' in str(caught[-1].message) and 'unfreeze' not in str(caught[-1].message)
    assert caught[-1].message.record.validation==0

@pytest.mark.parametrize('on_flag', ['stop','raise'])
def test_a_frozen_phase_is_no_end(on_flag):
    splitter = lambda m: [[], params(m)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag=on_flag), splitter=splitter)
    with pytest.warns(ZeroLabelsWarning), learn.no_logging():
        with nullcontext() if on_flag=='stop' else pytest.raises(ZeroLabelsError):
            learn.fine_tune(2, 0., freeze_epochs=1)
    assert len(learn.zero_labels.records)==3

def test_what_on_flag_validates_is_not_reported():
    "Although its verdict is a new one"
    def act(r):
        if r.epoch>4: return
        learn.set_thresh(1e-6)
        with learn.no_bar(): learn.validate()
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag=act))
    with recording(learn) as caught: learn.fit(6, 0.)
    within, = [r for r in learn.zero_labels.records if r.phase=='validate']
    assert within.verdict=='worse than a constant'
    assert not [w for w in caught if w.message.record and w.message.record.phase=='validate']

def test_a_fit_of_the_last_layers_that_ends_flagged_is_told_in_short():
    "Also if its last validation is the one after which a longer fit would be told in full"
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(), splitter=lambda m: [[], params(m)])
    learn.freeze()
    with recording(learn) as caught: learn.fit(4, 0.)
    text, = [one_line(w.message) for w in caught]
    assert 'only the last layers were trained' in text and 'What to do' not in text

def test_a_flagged_fit_of_the_last_layers_raises_its_error():
    "At its end, not the short report of a fit that `fine_tune` continues"
    cb = ZeroLabelsCallback(on_flag='raise', patience=2)
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=cb, splitter=lambda m: [[], params(m)])
    learn.freeze()
    with learn.no_logging(), pytest.raises(ZeroLabelsError) as e: learn.fit(8, 0.)
    assert e.value.record.frozen and e.value.record.epoch==2 and len(learn.zero_labels.records)==3

# What it cannot compute it leaves out

@pytest.mark.slow
@pytest.mark.parametrize('shape', [(1,20), (1,), (1,1), (), (20,)], ids=str)
def test_any_shape_of_pos_weight_trains(shape):
    "And the report knows whether it raises scores"
    def weighs(loss):
        learn = make_learner(*COLLAPSED, multilabel_metrics(), bs=100, loss_func=loss, cbs=ZeroLabelsCallback())
        with recording(learn) as caught: learn.fit(2, 0.)
        assert not [w for w in caught if 'Left out' in str(w.message)]
        with learn.no_logging(): assert learn.thresh_find(show_plot=False).best>0
        return [r.pos_weight for r in learn.zero_labels.records]
    for size in (0.5,12.):
        weight = torch.full(shape, size)
        assert weighs(BCEWithLogitsLossFlat(pos_weight=weight))==[size>2]*2
        assert weighs(fastai.losses.BCEWithLogitsLossFlat(pos_weight=weight))==[size>2]*2

@pytest.mark.parametrize('weight', [2., 'balanced', [1.,2.], np.ones(3)], ids=str)
def test_a_custom_loss_may_have_any_pos_weight(weight):
    loss = BCEWithLogitsLossFlat()
    loss.func = nn.BCEWithLogitsLoss()
    del loss.func.pos_weight
    loss.func.weight,loss.func.pos_weight = None,weight
    loss.func.forward = F.binary_cross_entropy_with_logits
    learn = make_learner(*GOOD, multilabel_metrics(), bs=100, loss_func=loss, cbs=ZeroLabelsCallback())
    with recording(learn) as caught: learn.fit(1, 0.)
    assert learn.zero_labels.records and not [w for w in caught if 'Left out' in str(w.message)]

def _fails(*args, **kwargs): raise KeyError('a part')

@pytest.mark.parametrize('name,records', [
    ('ValidationStats.accumulate',0), ('ValidationStats.fields',0), ('add_trend',0), ('add_verdict',0),
    ('ZeroLabelsCallback.track',5), ('describe_next',5), ('all_clear',5)])
def test_what_it_cannot_compute_ends_no_fit(name, records, monkeypatch):
    loss = BCEWithLogitsLossFlat(pos_weight=torch.ones(20))
    learn = make_learner(*GOOD, multilabel_metrics(), model=Waking(4), bs=100, loss_func=loss,
                         cbs=ZeroLabelsCallback())
    monkeypatch.setattr(f'fastai_mlmetrics.diagnosis.callback.{name}', _fails)
    with recording(learn) as caught: learn.fit(5, 0.)
    told = [one_line(w.message) for w in caught if 'Left out' in str(w.message)]
    assert len(told)==1 and "because of an error" in told[0] and "KeyError: 'a part'" in told[0]
    assert len(learn.recorder.values)==5 and len(learn.zero_labels.records)==records
    assert [o.epoch for o in learn.zero_labels.fit_records]==list(range(records))

@pytest.mark.parametrize('name,value', [
    ('thresh','auto'), ('thresh',object()), ('min_labels',-1), ('max_labels','all')])
def test_a_custom_loss_may_have_other_things_under_the_names_of_ours(name, value):
    class Loss(Module):
        def forward(self, p, y): return F.binary_cross_entropy_with_logits(p, y)
    loss = Loss()
    setattr(loss, name, value)
    learn = make_learner(*GOOD, multilabel_metrics(), bs=100, loss_func=loss, cbs=ZeroLabelsCallback())
    with recording(learn) as caught: learn.fit(2, 0.)
    assert len(learn.recorder.values)==2 and not learn.zero_labels.records
    assert sum('Left out' in str(w.message) for w in caught)==1

def test_a_check_of_the_set_up_that_fails_is_left_out_alone(monkeypatch):
    from fastai_mlmetrics.diagnosis.pitfalls import Pitfall, PITFALLS
    rows = [Pitfall(f'fails-at-{when}', when, _fails) for when in ('start','validation','end')]
    monkeypatch.setattr('fastai_mlmetrics.diagnosis.pitfalls.PITFALLS', [*rows, *PITFALLS])
    learn = make_learner(*GOOD, [*multilabel_metrics(), accuracy_multi], cbs=ZeroLabelsCallback(thresh=0.5))
    learn.metrics[-1].func = partial(accuracy_multi, thresh=0.2)
    texts = ' '.join(pitfall_texts(learn, 2))
    for o in rows: assert texts.count(f"the check `{o.code}` failed and is left out (KeyError: 'a part')")==1
    assert 'accuracy_multi' in texts

@pytest.mark.parametrize('error', [ValueError,TypeError])
def test_errors_of_the_data_still_end_a_fit(error, monkeypatch):
    learn = make_learner(*GOOD, cbs=ZeroLabelsCallback())
    def bad(*args): raise error('these targets')
    monkeypatch.setattr('fastai_mlmetrics.diagnosis.callback.ValidationStats.accumulate', bad)
    with pytest.raises(error, match='these targets'), learn.no_logging(): learn.fit(1, 0.)

def test_soft_targets_end_no_fit_and_are_told():
    logits,targs = simulate(64)
    learn = make_learner(logits, targs*0.8+0.1, cbs=ZeroLabelsCallback())
    with recording(learn) as caught: learn.fit(2, 0.)
    text, = [one_line(o.message) for o in caught]
    assert 'Left out' in text and 'targets must be 0 or 1' in text and not learn.zero_labels.records
    assert len(learn.recorder.values)==2

# How a warning behaves

def format_after_threads():
    "What formats warnings after many at once, and the texts that were printed"
    usual,waits = warnings.formatwarning,threading.Barrier(8)
    warnings.simplefilter('always')
    class Slow(ZeroLabelsWarning):
        def __str__(self):
            time.sleep(0.002) # another thread may come between
            return 'ours'
    def warn(i):
        waits.wait()
        for _ in range(20):
            if i: notify(Slow('ours'))
            else: warnings.warn_explicit("another's", UserWarning, 'file.py', 7)
    threads = [threading.Thread(target=warn, args=[i]) for i in range(8)]
    with contextlib.redirect_stderr(io.StringIO()) as err:
        for o in threads: o.start()
        for o in threads: o.join()
    return warnings.formatwarning is usual,err.getvalue().splitlines()

@pytest.mark.slow
def test_threads_leave_the_format_of_warnings_as_it_was():
    restored,lines = in_process(format_after_threads)
    assert restored and sorted(lines)==sorted(["file.py:7: UserWarning: another's"]*20+['ours']*140)

def test_good_news_is_hidden_with_the_warning(capsys):
    learn = make_learner(*GOOD, model=Waking(5), cbs=ZeroLabelsCallback())
    with warnings_as('ignore', ZeroLabelsWarning), learn.no_logging():
        for n in (5,2): learn.fit(n, 0.)
    assert learn.zero_labels.records[0].flagged and not learn.zero_labels.reported and not capsys.readouterr().out

def test_good_news_is_no_warning(monkeypatch, capsys):
    with warnings_as('error'):
        warnings.simplefilter('ignore', ZeroLabelsWarning)
        learn = make_learner(*GOOD, model=Waking(5), cbs=ZeroLabelsCallback())
        with learn.no_logging(): learn.fit(5, 0.)
        warnings.simplefilter('error', ZeroLabelsWarning)
        with learn.no_logging(): learn.fit(2, 0.)
        assert capsys.readouterr().out.strip().startswith('Epoch 1: the earlier warning no')
        shown = []
        monkeypatch.setattr('fastai_mlmetrics.diagnosis.boxes.IN_NOTEBOOK', True)
        monkeypatch.setattr('IPython.display.display', shown.append)
        learn.zero_labels.reported = {id(o): ('predicts nothing',o) for o in [learn.dls.valid_ds]}
        values(learn)
        values(learn)
        assert len(shown)==1 and '#2ca02c' in shown[0]._repr_html_()

def warned_of():
    "The text of a warning in a terminal, where pytest does not record it"
    warnings.simplefilter('default', UserWarning)
    with contextlib.redirect_stderr(io.StringIO()) as err: notify(describe(judged()))
    return err.getvalue()

@pytest.mark.slow
def test_no_prefix_in_a_terminal():
    text = in_process(warned_of)
    assert text.startswith('\nAt threshold 0.5, the model predicts no label') and 'ZeroLabels' not in text
    assert max(map(len, text.splitlines()))<=80

def test_warnings_are_filtered_and_logged(caplog):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        warnings.simplefilter('ignore', ZeroLabelsWarning)
        values(make_learner(*COLLAPSED, cbs=ZeroLabelsCallback()))
    assert not caught
    logging.captureWarnings(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('always')
            warnings.showwarning = logging._showwarning # pytest's recorder has replaced it
            values(make_learner(*COLLAPSED, cbs=ZeroLabelsCallback()))
    finally: logging.captureWarnings(False)
    assert 'predicts no label' in caplog.text

@pytest.mark.parametrize('category,is_told', [(Warning,True), (UserWarning,True), (ZeroLabelsWarning,False)])
def test_who_ignores_all_warnings_gets_a_line(category, is_told, capsys):
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'some other text')
        warnings.simplefilter('ignore', category)
        values(make_learner(*COLLAPSED, cbs=ZeroLabelsCallback()))
    out,err = capsys.readouterr()
    assert ('predicts no label' in one_line(out))==is_told and not err
    assert ('print(learn.zero_labels.explain()) shows the whole report' in one_line(out))==is_told
    assert max(map(len, out.splitlines()), default=0)<=80 and len(out.splitlines())<=3

@pytest.mark.parametrize('action,boxes', [('always',1), ('ignore',0), ('recorded',0)])
def test_a_warning_is_a_box_in_a_notebook(action, boxes, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr('fastai_mlmetrics.diagnosis.boxes.IN_NOTEBOOK', True)
    monkeypatch.setattr('IPython.display.display', shown.append)
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback())
    with warnings.catch_warnings(record=action=='recorded') as caught:
        warnings.simplefilter('always' if action=='recorded' else action)
        if action!='recorded':
            warnings.showwarning = lambda message, category, *a, **k: sys.stderr.write(str(message))
        values(learn)
    assert len(shown)==boxes and len(caught or [])==(action=='recorded')
    for o in shown: assert o._repr_html_().startswith('<div') and '<code>learn.set_thresh(' in o._repr_html_()
    assert 'ZeroLabelsWarning' not in capsys.readouterr().err

def test_what_is_told_in_short_needs_no_callback():
    "fastai removes a callback that was passed to `fit`"
    learn = make_learner(*COLLAPSED)
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging():
        learn.fit(5, 0., cbs=ZeroLabelsCallback())
    last = one_line(caught[-1].message)
    assert len(caught)==2 and 'learn.' not in last
    assert last.startswith('Epoch 4: as before, at threshold 0.5, the model predicts no label.')

def test_the_same_problem_after_a_fit_that_has_helped_says_how_to_go_on():
    "Each line is typed as it stands; a fit that does not help is told in one sentence"
    learn = make_learner(*simulate(), model=nn.Linear(20, 20), cbs=ZeroLabelsCallback())
    nn.init.zeros_(learn.model.weight)
    nn.init.constant_(learn.model.bias, -4.)
    line,told = 'learn.fit_one_cycle(2, 0.001)',[]
    for _ in range(3):
        with recording(learn) as caught: eval(line)
        told.append(one_line(caught[-1].message))
        line, = re.findall(r'Train longer, with `(.*?)`', told[-1])
    assert told[0].startswith('Epoch 1: at threshold') and line=='learn.fit_one_cycle(16, 0.001)'
    for o in told[1:]: assert 'as before' in o and o.count('- ')==1
    losses = L(learn.zero_labels.records).attrgot('valid_loss')
    assert losses[-1]<losses[5]<losses[1]
    for is_known in (False,True): # After a single epoch, other advice, and the same once more
        with recording(learn) as caught: learn.fit(1, 0.)
        assert ('learn.' in one_line(caught[-1].message))!=is_known

def test_data_that_come_and_go_are_each_told_of():
    "A new data set may get the `id` of one that was deleted"
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_bar(), learn.no_logging():
        for _ in range(8):
            learn.validate(dl=DataLoader(TensorPairs(*COLLAPSED), bs=16, device=torch.device('cpu')))
    assert len(caught)==8 and not any('as before' in str(w.message).lower() for w in caught)

def test_validate_may_raise():
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback(on_flag='raise'))
    with pytest.raises(ZeroLabelsError): values(learn)
    assert not learn.lock.locked() and len(learn.zero_labels.records)==1
    learn.zero_labels.on_flag = 'warn'
    with pytest.warns(ZeroLabelsWarning): values(learn)

# With other callbacks, and in other Learners

def tensorboard():
    pytest.importorskip('tensorboard')
    from fastai.callback.tensorboard import TensorBoardCallback
    return TensorBoardCallback('runs', log_preds=False, trace_model=False)

@pytest.mark.parametrize('cb', [
    lambda: SaveModelCallback(monitor='f1_macro'),
    lambda: EarlyStoppingCallback(monitor='f1_macro', patience=1),
    CSVLogger,
    pytest.param(tensorboard, marks=pytest.mark.dev),
    lambda: GradientAccumulation(32),
    MixedPrecision,
    MixUp,
    ReduceLROnPlateau])
def test_records_agree_with_the_recorder_beside_other_callbacks(cb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path) # some of them write
    learn = make_learner(*GOOD, multilabel_metrics(), cbs=ZeroLabelsCallback(), path=tmp_path)
    with warnings_as('ignore'):
        with learn.no_bar(): learn.fit(2, 0., cbs=cb())
    rows = learn.zero_labels.report()
    assert len(rows)==len(learn.recorder.values)==2
    column = learn.recorder.metric_names.index('accuracy_multi') - 1
    np.testing.assert_allclose(rows.accuracy, np.array(learn.recorder.values)[:,column], atol=1e-12)

@pytest.mark.slow
def test_nothing_else_is_recorded(digits_dls, tmp_path):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, metrics=multilabel_metrics(),
                           cbs=ZeroLabelsCallback(), path=tmp_path).remove_cb(ProgressCallback)
    with warnings_as('ignore'), learn.no_logging():
        learn.get_preds()
        learn.tta(n=1)
        learn.predict(digits_dls.valid_ds.items.iloc[0])
        learn.summary()
        learn.show_results(max_n=2)
        learn.lr_find(show_plot=False, num_it=10)
        Interpretation.from_learner(learn)
        assert not learn.zero_labels.records
        learn.fine_tune(1, freeze_epochs=1)
    plt.close('all')
    test_eq([(r.phase, r.epoch, r.frozen) for r in learn.zero_labels.records], [('fit',0,True),('fit',0,False)])

def flags(learn):
    "The verdicts before and during the training of a Learner"
    with warnings_as('ignore'), learn.no_bar(), learn.no_logging():
        learn.validate()
        learn.fit_one_cycle(8, 2e-2)
    return [r.verdict for r in learn.zero_labels.records]

@pytest.mark.slow
def test_a_table_is_flagged_until_it_is_learnt():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000,8))
    columns,names = [f'x{i}' for i in range(8)],[f'label {i}' for i in range(8)]
    df = pd.DataFrame(x, columns=columns)
    df[names] = (x>1.3).astype(int)
    table = TabularPandas(df, procs=[Normalize], cont_names=columns, y_names=names,
                          y_block=MultiCategoryBlock(encoded=True, vocab=names),
                          splits=RandomSplitter(seed=0)(range_of(df)))
    dls = table.dataloaders(bs=64, device=torch.device('cpu'))
    learn = tabular_learner(dls, layers=[50], metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.model.layers[-1][0].bias.data -= 3.
    first,*_,last = flags(learn)
    assert first and not last
    assert learn.zero_labels.records[0].never_predicted==names

@pytest.mark.slow
def test_a_record_of_awd_lstm_has_the_metric_s_accuracy():
    config = {**awd_lstm_clas_config, 'emb_sz':16, 'n_hid':32}
    learn = text_classifier_learner(text_dls(), AWD_LSTM, config=config, pretrained=False,
                                    metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())
    with learn.no_bar(), learn.no_logging(): learn.fit(1, 0.)
    r, = learn.zero_labels.records
    assert r.accuracy==learn.recorder.values[-1][2]

@pytest.mark.slow
def test_texts_are_flagged_until_they_are_learnt():
    dls = text_dls()
    assert len(dls.vocab)==2 # words and labels
    words,labels = dls.vocab
    learn = Learner(dls, BagOfWords(len(words), len(labels)), metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.model.out.bias.data -= 20.
    first,*_,last = flags(learn)
    assert first and not last
    assert learn.zero_labels.records[0].never_predicted==list(labels)

@pytest.mark.parametrize('loss,model,kw', [
    (lambda: BCEWithLogitsLossFlat(pos_weight=torch.full((20,), 9.)), Same, {}),
    (BCELossFlat, Sigmoid, dict(sigmoid=False))])
def test_records_under_other_losses_agree_with_metrics(loss, model, kw):
    learn = make_learner(*GOOD, multilabel_metrics(**kw), model(), loss_func=loss(), cbs=ZeroLabelsCallback(**kw))
    v = values(learn)
    r, = learn.zero_labels.records
    assert not r.verdict and v['accuracy_multi']==r.accuracy==pytest.approx(accuracy_multi(*GOOD).item())

class SetTo(Module):
    "A model that adds another bias to its logits in each epoch"
    def __init__(self, *biases):
        self.w,self.bias = nn.Parameter(torch.zeros(1)),nn.Parameter(torch.zeros(1))
        self.biases = biases
    def forward(self, x): return x + self.bias + 0*self.w

class SetBias(Callback):
    order = -5
    def after_train(self): self.learn.model.bias.data.fill_(self.learn.model.biases[self.epoch])

def test_the_model_that_was_saved_is_judged(tmp_path, capsys):
    "`SaveModelCallback` loads the best epoch when the fit ends"
    model = SetTo(-9)
    learn = make_learner(*simulate(), multilabel_metrics(), model, cbs=[SetBias(), ZeroLabelsCallback()], path=tmp_path)
    def fit(*biases, cbs=None):
        model.biases = biases
        with recording(learn) as caught: learn.fit(len(biases), 0., cbs=cbs)
        return ' '.join(str(w.message) for w in caught if issubclass(w.category, ZeroLabelsWarning))
    assert 'predicts no label' in fit(-9)
    # The last epoch is better than the one that is loaded, and would be all clear
    assert 'Epoch 0: as before, at threshold 0.5, the model' in fit(-2.5, 2.6, cbs=SaveModelCallback())
    assert 'no longer applies' not in capsys.readouterr().out and learn.model.bias.item()==pytest.approx(-2.5)
    # The first callback loads nothing; the fit ends in the epoch that is loaded
    caught = fit(-9, -2.5, 2.6, cbs=[
        SaveModelCallback(every_epoch=True, fname='each'),
        SaveModelCallback(monitor='f1_micro'),
        EarlyStoppingCallback(monitor='f1_micro', comp=np.less, patience=2)])
    assert not caught and 'Epoch 2: the earlier warning no longer applies.' in capsys.readouterr().out
    assert learn.model.bias.item()==pytest.approx(2.6)
    assert 'predicts no label' in fit(-9)
    fit(-2.5, 2.6, cbs=SaveModelCallback(at_end=True))
    assert 'no longer applies' in capsys.readouterr().out and learn.model.bias.item()==pytest.approx(2.6)

def test_other_data_clears_nothing(capsys):
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
    with learn.no_logging(): learn.validate(dl=make_learner(*GOOD).dls.valid)
    assert L(learn.zero_labels.reported.values()).itemgot(0).attrgot('verdict')==["predicts nothing"]
    assert 'no longer applies' not in capsys.readouterr().out
    with pytest.warns(ZeroLabelsWarning, match='as before, at threshold 0.5'), learn.no_logging(): learn.fit(1, 0.)

def test_each_data_is_told_of_by_itself(capsys):
    model = SetTo(-9)
    learn = make_learner(*simulate(), multilabel_metrics(), model, cbs=[SetBias(), ZeroLabelsCallback()])
    other = make_learner(*simulate(bias=-9.)).dls.valid
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging():
        learn.fit(1, 0.)
        learn.validate(dl=other)
    messages = [str(w.message) for w in caught if issubclass(w.category, ZeroLabelsWarning)]
    test_eq([o.count('What to do') for o in messages], [1,1])
    model.biases = 2.,2.
    with learn.no_logging(): learn.fit(2, 0.)
    assert 'warning no longer applies.' in capsys.readouterr().out and len(learn.zero_labels.reported)==1
    model.bias.data.fill_(7.)
    with learn.no_logging(): learn.validate(dl=other)
    assert 'The earlier warning no longer applies.' in capsys.readouterr().out and not learn.zero_labels.reported

def test_another_learner_starts_anew(capsys):
    cb = ZeroLabelsCallback()
    for data,n in ((COLLAPSED,1), (COLLAPSED,1), (GOOD,0)):
        learn = make_learner(*data, multilabel_metrics(), cbs=cb)
        with recording(learn) as caught: learn.fit(1, 0.) if n else learn.validate()
        test_eq([str(w.message).count('What to do') for w in caught], [1]*n)
        test_eq(len(cb.records), 1)
    assert 'no longer applies' not in capsys.readouterr().out

def test_weights_that_became_nan_are_no_all_clear(capsys):
    class Diverges(Callback):
        order = -20
        def after_loss(self):
            if not self.training or self.epoch!=1: return
            self.learn.loss_grad = self.learn.loss = self.learn.loss_grad*math.nan
    model = SetTo(-9, -9)
    learn = make_learner(*simulate(), multilabel_metrics(), model, cbs=[SetBias(), ZeroLabelsCallback()])
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
    model.biases = 2.,2.
    with learn.no_logging(): learn.fit(2, 0.1, cbs=[Diverges(), TerminateOnNaNCallback()])
    assert not learn.zero_labels.records[-1].verdict and 'no longer applies' not in capsys.readouterr().out

def test_chance_is_not_learning():
    "Constant scores rank labels at chance level, whatever the loss does"
    learn,_ = trained(torch.full((400,20), -9.), COLLAPSED[1], n_epoch=3)
    r = learn.zero_labels.records[-1]
    assert r.ap_micro==pytest.approx(1-r.zeros_accuracy) and not r.learns

def test_an_exported_callback_has_told_nothing():
    learn,caught = trained(*COLLAPSED)
    assert len(caught)==1
    cb = pickle.loads(pickle.dumps(learn.zero_labels))
    other = make_learner(*COLLAPSED, multilabel_metrics(), cbs=cb)
    with pytest.warns(ZeroLabelsWarning) as caught, other.no_logging(): other.fit(1, 0.)
    assert 'What to do' in str(caught[0].message) and len(cb.records)==2

class AlsoTest(Callback):
    "Validates on other data after each epoch's training"
    def after_train(self): self.learn.validate(dl=self.dls.train)

@pytest.mark.parametrize('on_flag', ['warn','stop','raise'])
def test_a_validation_within_a_fit_only_records(on_flag):
    "For example of a second data set in each epoch"
    cb = ZeroLabelsCallback(on_flag=on_flag, patience=9)
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=[cb, AlsoTest()])
    outcome = nullcontext() if on_flag!='raise' else pytest.raises(ZeroLabelsError)
    with recording(learn) as caught, outcome: learn.fit(3, 0.)
    assert [o.phase for o in learn.zero_labels.records]==['validate','fit']*3
    caught = [w.message.record for w in caught if issubclass(w.category, ZeroLabelsWarning)]
    assert caught==([learn.zero_labels.records[-1]] if on_flag!='raise' else [])

@pytest.mark.parametrize('kind', [tuple, dict])
def test_a_model_that_returns_several_things(kind):
    "A callback has to select what the metrics take"
    key = 0 if kind is tuple else 'logits'
    class Several(Same):
        def forward(self, x):
            logits = super().forward(x)
            return (logits, x) if kind is tuple else dict(logits=logits, features=x)
    class TakeLogits(Callback):
        order = -20
        def after_loss(self): self.learn.pred = self.pred[key]
    def loss(p, y): return F.binary_cross_entropy_with_logits(p[key], y)
    def learner(cbs):
        return make_learner(*GOOD, multilabel_metrics(), Several(), loss_func=loss, cbs=[ZeroLabelsCallback(), *cbs])
    hint = f"the model returns a {kind.__name__} of 2, and a batch has 1 target: add a callback whose `after_loss`"
    with pytest.raises(ValueError, match=hint): values(learner([]))
    expected = values(make_learner(*GOOD, multilabel_metrics()))
    with warnings_as('ignore'): # of a loss that does not decode
        test_close([*values(learner([TakeLogits()])).values()], [*expected.values()], eps=1e-12)

def test_names_that_do_not_fit_end_no_training():
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(), vocab=['a','b'])
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
    assert learn.zero_labels.records[-1].never_predicted==[*range(20)]

def test_the_loaded_epoch_knows_how_the_loss_went_on(tmp_path):
    "The model of the first epoch is loaded; its remedies also depend on the epochs after it"
    class Rising(Callback):
        def before_validate(self): self.learn.model.w.data += 2
    class Shift(Same):
        def forward(self, x): return x*(1+self.w)
    cbs = [ZeroLabelsCallback(patience=9), Rising(), SaveModelCallback(fname='best')]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), Shift(), cbs=cbs, path=tmp_path)
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(3, 0.)
    r = caught[-1].message.record
    first_,*_,last = learn.zero_labels.records
    assert r.epoch==0 and r.accuracy==first_.accuracy
    assert r.loss_trend==last.loss_trend=='rises' and first_.loss_trend==''

@pytest.mark.parametrize('on_flag', ['warn','function'])
def test_the_loaded_epoch_is_acted_on_once(on_flag, tmp_path):
    called = []
    cb = ZeroLabelsCallback(patience=1, on_flag=on_flag if on_flag=='warn' else called.append)
    best_is_1 = AvgMetric(lambda p, y: torch.tensor(float(learn.epoch==1)))
    learn = make_learner(*COLLAPSED, [*multilabel_metrics(), best_is_1], path=tmp_path,
                         cbs=[cb, SaveModelCallback(monitor='<lambda>')])
    with recording(learn) as caught: learn.fit(4, 0.)
    warned = [w.message.record for w in caught if issubclass(w.category, ZeroLabelsWarning)]
    epochs = [o.epoch for o in (warned if on_flag=='warn' else called)]
    assert epochs.count(1)==1

def test_a_wrapped_fit_is_a_fit(monkeypatch):
    "As by tools that log automatically"
    fit = Learner.fit
    @functools.wraps(fit)
    def logged(*args, **kwargs): return fit(*args, **kwargs)
    monkeypatch.setattr(Learner, 'fit', logged)
    learn = make_learner(*COLLAPSED, cbs=[ZeroLabelsCallback(), AlsoTest()])
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(1, 0.)
    assert [w.message.record.phase for w in caught]==['fit']

def test_validate_warns_once_after_an_interrupted_fit():
    "`validate` reports a verdict on the validation set once; other data are recorded, until the next fit"
    class Interrupted(Same):
        batches = 10
        def forward(self, x):
            self.batches -= 1
            if not self.batches: raise KeyboardInterrupt
            return super().forward(x)
    learn = make_learner(*COLLAPSED, model=Interrupted(), cbs=ZeroLabelsCallback())
    other = make_learner(*COLLAPSED).dls.valid
    def titles(f, *args, **kwargs):
        with recording(learn) as caught: f(*args, **kwargs)
        return [re.split(r'(?<!\d)[:,]| -', one_line(w.message))[0] for w in caught]
    with pytest.raises(KeyboardInterrupt), learn.no_logging(): learn.fit(2, 0.)
    assert titles(learn.validate)==['At threshold 0.5, the model predicts no label.']
    assert titles(learn.validate)==titles(learn.validate, dl=other)==[]
    assert [r.phase for r in learn.zero_labels.records]==['validate']*3
    assert titles(learn.fit, 1, 0.)==['Epoch 0: as before']
    assert titles(learn.validate, dl=other)==['At threshold 0.5, the model predicts no label.']

# True of what it looks at

def test_numbers_are_of_the_loaded_epoch(tmp_path):
    "Those of later epochs are named as such"
    learn = make_learner(*COLLAPSED, multilabel_metrics(), path=tmp_path, cbs=[
        Falling([1.6, 1., 0.8, 0.26]), SaveModelCallback(monitor='zeros_accuracy'), ZeroLabelsCallback()])
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(4, 0.)
    text = one_line(caught[-1].message)
    assert text.startswith('Epoch 0: at threshold 0.5, the model') and 'at threshold 0.5' in text
    assert 'still falling, 0.26 at epoch 3 (epoch 0 is loaded)' in text
    assert caught[-1].message.record.valid_loss==1.6

def test_no_threshold_is_advised_on_other_data(tmp_path):
    "The verdict, without thresholds that were found on data to test with"
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback())
    dl = DataLoader(TensorPairs(*simulate(seed=5)), bs=64)
    for f in (learn.evaluate, learn.validate):
        with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): f(dl=dl)
        text = one_line(caught[0].message)
        assert "predicts no label for" in text and "learn.evaluate()" in text and "thresh=" not in text
        learn.zero_labels.reported.clear()
    with pytest.warns(ZeroLabelsWarning, match=r'Lower the threshold: learn\.set_thresh'): learn.evaluate()

class OfOnesOwn(ZeroLabelsCallback): pass

def test_a_subclass_is_found_by_the_same_name(tmp_path):
    "Set-up, training, messages, plots, `set_thresh` and `evaluate` find it; so does a fit that it is passed to"
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=OfOnesOwn(), path=tmp_path)
    learn.add_cb(SaveModelCallback(monitor='f1_micro'))
    with pytest.warns(ZeroLabelsWarning), learn.no_logging():
        learn.fit(2, 0.)
        learn.evaluate()
    assert type(learn.zero_labels) is OfOnesOwn and len(learn.zero_labels.report())==3
    learn.set_thresh(0.1)
    assert learn.zero_labels.thresh is None
    learn.export_plain()
    other = make_learner(*COLLAPSED, multilabel_metrics())
    with pytest.warns(ZeroLabelsWarning), other.no_logging(): other.fit(1, 0., cbs=(cb:=OfOnesOwn()))
    assert cb.explain().verdict=='predicts nothing'

def test_a_monitored_metric_may_be_nan_throughout():
    logits,targs = simulate(100)
    learn = make_learner(logits*math.nan, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.add_cb(EarlyStoppingCallback(monitor='f1_samples', patience=9))
    with warnings_as('ignore'), learn.no_logging(): learn.fit(2, 0.)
    assert len(learn.recorder.values)==2 and math.isnan(learn.recorder.values[-1][-1])

def last_axis(**kwargs):
    "A Learner of 5 x 7 pixels, three labels each, and a vocab if one is given"
    logits,targs = simulate(32*35, 3, bias=-1.)
    of_pixels = [o.view(32, 5, 7, 3) for o in (logits,targs)]
    return lambda axes, **kw: make_learner(*(o.permute(*axes) for o in of_pixels), **{'bs': 16, **kwargs, **kw})

@pytest.mark.parametrize('part', [dict(metrics=multilabel_metrics()), dict(cbs=ZeroLabelsCallback())])
def test_labels_on_another_axis_are_an_error(part):
    "Before the first batch counts; it says what to do, and that is right"
    axes,last = (0,3,1,2),(0,1,2,3)
    for kwargs,why in ((dict(vocab=list('abc')), 'labels, of which there are 3, but predictions'),
                       (dict(loss_func=BCEWithLogitsLossFlat(axis=1)), 'labels, but predictions')):
        learn = last_axis(**deepcopy(part), **kwargs)(axes)
        says,of_all = (rf'last axis.*{why} have the shape \({n}, 3, 5, 7\).*`.movedim\(1, -1\)`'
                       for n in (16, 16 if learn.metrics else 32)) # Metrics look at the first batch
        with pytest.raises(ValueError, match=says), learn.no_logging(): learn.validate()
        if not learn.metrics: # The callback looks at the first batch of a training
            with pytest.raises(ValueError, match=says), learn.no_logging(): learn.fit(1, 0.)
            assert learn.train_iter==1 and not learn.recorder.values
        for predict in (learn.accuracy_report, partial(learn.thresh_find, show_plot=False),
                        partial(MultiLabelInterpretation.from_learner, learn)):
            with pytest.raises(ValueError, match=of_all), learn.no_logging(): predict()
    right = last_axis(metrics=multilabel_metrics(), cbs=ZeroLabelsCallback(), vocab=list('abc'))(last)
    flat = make_learner(*simulate(32*35, 3, bias=-1.), multilabel_metrics())
    test_close([*values(right).values()], [*values(flat).values()])
    moved = last_axis(vocab=list('abc'), loss_func=BCEWithLogitsLossFlat(axis=1), **part)(last) # To the end
    table = make_learner(*simulate(), loss_func=BCEWithLogitsLossFlat(axis=1), **deepcopy(part)) # Axis 1 is the last
    for learn in (moved,table):
        with learn.no_logging(), warnings_as('ignore', ZeroLabelsWarning): learn.fit(1, 0.)

def test_it_looks_at_one_batch_of_a_training():
    seen = []
    class Watched(ZeroLabelsCallback):
        def after_batch(self):
            seen.append(self.training)
            super().after_batch()
    learn = make_learner(*simulate(100), multilabel_metrics(), cbs=Watched(), bs=20)
    with learn.no_logging(), warnings_as('ignore'): learn.fit(2, 0.)
    n = len(learn.dls.train)
    assert n>1 and sum(seen)==1 and len(seen)==1+2*len(learn.dls.valid)

def test_padded_sequences_are_counted_without_the_padding():
    "B x T x C with `ignore_index` are the pairs that are known"
    logits,targs = simulate(40*6, 5, bias=-1.)
    real = torch.rand(40, 6, generator=torch.Generator().manual_seed(3))<0.6
    padded = torch.where(real[...,None], targs.view(40, 6, 5), -1.)
    loss = BCEWithLogitsLossFlat(ignore_index=-1)
    learn = make_learner(logits.view(40, 6, 5), padded, multilabel_metrics(ignore_index=-1), loss_func=loss,
                         cbs=ZeroLabelsCallback(), vocab=list('abcde'))
    got = values(learn)
    keep = real.flatten()
    known = make_learner(logits[keep], targs[keep], multilabel_metrics(), vocab=list('abcde'))
    test_close([*got.values()], [*values(known).values()])
    r,expected = learn.zero_labels.explain(),judge(logits[keep], targs[keep], sigmoid=True, vocab=list('abcde'))
    for k in ('samples','labelled','f1_micro','missed','suggested_thresh'): assert r[k]==expected[k]

# Muted codes

def test_a_muted_verdict_leaves_the_next_one_that_applies():
    logits,targs = COLLAPSED
    def learner(*ignore, **kwargs):
        learn = make_learner(logits, targs, cbs=ZeroLabelsCallback(ignore=ignore, **kwargs))
        with recording(learn) as caught: learn.validate()
        return learn.zero_labels.records[-1],caught
    codes = 'predicts-nothing','leaves-samples-empty','worse-than-a-constant','no-better-than-a-constant'
    for i,code in enumerate(codes):
        r,caught = learner(*codes[:i])
        assert r.verdict==code.replace('-', ' ') and r.flagged and len(caught)==1
    r,caught = learner(*codes, 'never-predicts-some-labels', 'the-same-for-all-samples')
    assert not r.verdict and not r.flagged and not caught and repr(r).startswith('At threshold')

def test_facts_remedies_and_advice_are_muted():
    learn,caught = trained(*COLLAPSED, n_epoch=3)
    whole = learn.zero_labels.explain()
    assert 'labels per sample predicted' in repr(whole) and 'Lower the threshold' in repr(whole)
    assert 'As a last resort' in repr(whole)
    ignore = 'labels-per-sample','another-threshold','a-weighted-loss'
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback(ignore=ignore))
    with recording(learn): learn.fit(3, 0.)
    r = learn.zero_labels.explain()
    text = repr(r)
    assert r.verdict==whole.verdict and r.loss_trend=='is flat' and 'accuracy' in text
    for o in ('labels per sample predicted','Lower the threshold','As a last resort'): assert o not in text
    for loss in ('diverges','falls','rises','is flat',''): # A muted advice is not replaced by a wrong one
        muted = Record(whole, loss_trend=loss, collapsed=False, learns=False,
                       ignore=('loss-diverges','loss-falls'))
        assert 'validation loss' not in repr(muted)

def test_a_pitfall_is_muted():
    for ignore,n in (((),1), (('no-decoding',),0)):
        learn = make_learner(*simulate(skill=9.), loss_func=nn.BCEWithLogitsLoss(),
                             cbs=ZeroLabelsCallback(ignore=ignore))
        with recording(learn) as caught: learn.fit(1, 0.)
        assert sum('does not decode' in one_line(o.message) for o in caught)==n
        assert len(learn.zero_labels.records[-1].pitfalls)==n

@pytest.mark.parametrize('name,value', [('min_accuracy',90), ('max_empty',50), ('max_empty',-0.1), ('max_empty','a')])
def test_shares_are_no_percentages(name, value):
    for f in (ZeroLabelsCallback, judged):
        with pytest.raises(ValueError, match=f"{name}={value!r} should be a share, from 0 to 1"): f(**{name: value})

def test_an_unknown_code_is_an_error_that_names_the_nearest():
    for code in ('over-predict','over predicts'):
        with pytest.raises(ValueError, match=f"no message has the code '{code}': did you mean 'over-predicts'"):
            ZeroLabelsCallback(ignore=['another-threshold', code])
    with pytest.raises(ValueError, match="use one of predicts-nothing, leaves-"): ZeroLabelsCallback(ignore='xyz')
    assert ZeroLabelsCallback(ignore='over-predicts').ignore==('over-predicts',)
    assert ZeroLabelsCallback(ignore=['monitor','f1-micro']).ignore==('monitor','f1-micro')

@pytest.mark.parametrize('thresh', [0.003, tuple(np.linspace(0.001, 0.006, 20).tolist())], ids=['one','per label'])
def test_the_callback_s_threshold_is_used_beside_another_one_of_the_loss(thresh):
    "With the limits of the loss"
    loss = BCEWithLogitsLossFlat(thresh=0.3)
    loss.max_labels = 2
    learn = make_learner(*COLLAPSED, loss_func=loss, cbs=ZeroLabelsCallback(thresh=thresh))
    with warnings_as('ignore', ZeroLabelsWarning): values(learn)
    r = learn.zero_labels.records[-1]
    expected = judge(*COLLAPSED, sigmoid=True, thresh=thresh, max_labels=2)
    assert (r.thresh,r.max_labels,r.f1_micro)==(thresh, 2, expected.f1_micro) and 0.3<r.f1_micro<1

def test_a_copy_has_records_of_its_own():
    learn = make_learner(*GOOD, multilabel_metrics(), cbs=ZeroLabelsCallback())
    with learn.no_bar(): learn.validate()
    copied = copy(learn.zero_labels)
    copied.records.append('another')
    assert len(learn.zero_labels.records)==1 and copied.records[0] is learn.zero_labels.records[0]

def test_an_unknown_label_of_a_metric_is_seen_before_the_first_batch():
    logits,targs = simulate(60, 3)
    learn = make_learner(logits, targs, [F1ScoreMulti(labels=['crsh'])], cbs=ZeroLabelsCallback())
    learn.dls.vocab = ['billing','login','crash']
    seen = []
    learn.add_cb(Callback(before_batch=lambda o: seen.append(1)))
    with learn.no_logging(), pytest.raises(ValueError, match="did you mean 'crash'"): learn.fit(1)
    assert not seen

@pytest.mark.parametrize('metric,each', [
    ('f1', F1ScoreMulti), ('recall', RecallMulti), (FBetaMulti(beta=2), partial(FBetaMulti, beta=2)),
    (SpecificityMulti, SpecificityMulti)])
def test_labels_over_the_validations(metric, each):
    "Each label has the metric's value at the threshold of the validation"
    preds,targs = simulate(200, 4)
    learn = make_learner(preds, targs, cbs=ZeroLabelsCallback())
    for thresh in (0.5,0.2):
        learn.set_thresh(thresh)
        learn.validate()
    table = learn.zero_labels.labels(metric)
    close(table.to_numpy(), np.stack([each(thresh=o, average=None)(preds, targs) for o in (0.5,0.2)]))
    assert table.index.name=='validation' and [*table.columns]==[*learn.zero_labels.records[0].label_counts]

def test_some_labels_over_the_validations():
    learn = make_learner(*simulate(200, 4), cbs=ZeroLabelsCallback(labels=[2,0]))
    learn.validate()
    assert {*learn.zero_labels.labels().columns}=={*learn.zero_labels.records[0].labels}
    with pytest.raises(ValueError, match="metric='auc' should be one of f1"): learn.zero_labels.labels('auc')

def test_what_a_message_says_to_type_shows_the_rest_in_a_script(capsys):
    learn = make_learner(*scales(), multilabel_metrics(), cbs=ZeroLabelsCallback())
    with recording(learn) as caught: learn.validate()
    text = caught[0].message.args[0]
    more, = re.findall(r'More: `(.*)`$', text)
    exec(more, dict(learn=learn))
    assert len(capsys.readouterr().out)>len(text)

def test_explain_is_about_the_epoch_that_is_loaded(tmp_path):
    cbs = [ZeroLabelsCallback(), SaveModelCallback()] # All losses are equal, so the first one stays the best
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=cbs, path=tmp_path)
    with recording(learn): learn.fit(3, 0.)
    assert len(learn.zero_labels.records)==3 and learn.zero_labels.explain().epoch==0
    with recording(learn): learn.validate()
    assert learn.zero_labels.explain() is learn.zero_labels.records[-1]
