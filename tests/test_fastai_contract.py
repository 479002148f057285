"""What this package relies on in fastai, fastcore and torch and their documentation does not promise

Each test holds one fact, and its docstring names the modules that rely on it. A new version fails here first."""
import fastai.losses, fastai.metrics, io, threading
from fastai.callback.progress import CSVLogger
from fastai.callback.schedule import LRFinder
from fastai.callback.tracker import EarlyStoppingCallback, SaveModelCallback, TerminateOnNaNCallback, TrackerCallback
from fastai.distributed import DistributedDL
from fastai.interpret import Interpretation
from fastai.metrics import ActivationType
from fastai.tabular.all import TabularDataLoaders
from fastcore.docments import docments
from helpers import *

class Look(Callback):
    "Notes what `look` returns at each event of `events`"
    order = 65 # As `ZeroLabelsCallback`
    def __init__(self, look, *events):
        self.look,self.events,self.seen = look,events,[]
        for o in events: setattr(self, o, partial(self._note, o))
    def _note(self, name): self.seen.append((name, self.look(self.learn)))

def looked(look, *events, run=lambda learn: learn.fit(1, 0.), **kwargs):
    "What `look` returns at each event of `events` while `run` uses a Learner"
    learn = make_learner(*simulate(64, 4), **kwargs)
    cb = Look(look, *events)
    learn.add_cb(cb)
    with learn.no_logging(): run(learn)
    return cb.seen

# The Learner

def test_a_lock_is_held_outside_of_a_fit_alone():
    "diagnosis.callback, diagnosis.pitfalls: `learn.lock` tells `validate` and `get_preds` from a fit"
    def locked(learn): return learn.lock.locked()
    assert isinstance(make_learner(*simulate(8, 2)).lock, type(threading.Lock()))
    events = 'before_fit','before_validate','after_batch','after_validate','after_epoch','after_fit'
    assert {o for _,o in looked(locked, *events)}=={False}
    for run in (lambda o: o.validate(), lambda o: o.get_preds()):
        seen = looked(locked, 'before_validate','after_batch','after_validate', run=run)
        assert seen and {o for _,o in seen}=={True}

def test_the_lock_is_released_after_an_error():
    "diagnosis.callback: an error of `on_flag='raise'` does not block the next validation"
    learn = make_learner(*simulate(8, 2))
    class Fails(Callback):
        def after_validate(self): raise ValueError('of a callback')
    with pytest.raises(ValueError), learn.no_logging(): learn.validate(cbs=Fails())
    assert not learn.lock.locked()

def test_a_validation_sends_the_events_of_a_fit():
    "diagnosis.callback: `validate` and `get_preds` have before_fit, after_epoch and after_fit; a batch has no training"
    events = 'before_fit','before_epoch','before_validate','after_validate','after_epoch','after_fit'
    seen = [o for o,_ in looked(lambda o: None, *events, run=lambda o: o.validate())]
    assert seen==[*events]
    assert {o for _,o in looked(lambda o: o.training, 'after_batch', run=lambda o: o.validate())}=={False}

def test_get_preds_adds_a_callback_of_a_known_name():
    "diagnosis.callback, core.passes: `learn.gather_preds` exists while `get_preds` runs, and at no other time"
    def gathers(learn): return hasattr(learn, 'gather_preds')
    assert {o for _,o in looked(gathers, 'before_validate', run=lambda o: o.get_preds())}=={True}
    assert {o for _,o in looked(gathers, 'before_validate', run=lambda o: o.validate())}=={False}
    assert {o for _,o in looked(gathers, 'before_validate')}=={False}

def test_lr_find_adds_a_callback_of_a_known_name(tmp_path):
    "diagnosis.callback: `learn.lr_finder` exists while `lr_find` runs"
    assert LRFinder().name=='lr_finder'
    seen = looked(lambda o: hasattr(o, 'lr_finder'), 'before_fit', path=tmp_path,
                  run=lambda o: o.lr_find(num_it=20, show_plot=False))
    assert ('before_fit',True) in seen

def test_a_callback_is_an_attribute_by_its_name():
    "all: `learn.zero_labels`, `learn.recorder`, `learn.progress`; a callback reads the Learner's attributes as its own"
    learn = make_learner(*simulate(8, 2))
    class SomeThing(Callback): pass
    learn.add_cb(SomeThing())
    assert isinstance(learn.some_thing, SomeThing) and learn.some_thing.dls is learn.dls
    assert isinstance(learn.recorder, Recorder)
    learn.remove_cb(SomeThing)
    assert not hasattr(learn, 'some_thing')

def test_removed_cbs_puts_them_back():
    "core.passes, learner.export: `removed_cbs`, also after an error"
    learn = make_learner(*simulate(8, 2), cbs=CSVLogger())
    with pytest.raises(KeyError), learn.removed_cbs(learn.cbs.filter(risinstance(CSVLogger))):
        assert not hasattr(learn, 'csv_logger')
        raise KeyError
    assert isinstance(learn.csv_logger, CSVLogger)

def test_no_logging_replaces_the_logger():
    "core.passes: `no_logging` of the Learner, whose `logger` prints the table"
    learn = make_learner(*simulate(8, 2))
    rows = []
    learn.logger = rows.append
    with learn.no_logging(): learn.fit(1, 0.)
    assert not rows
    learn.fit(1, 0.)
    assert len(rows)==1

def test_the_number_of_epochs_is_known_in_a_fit():
    "diagnosis.callback: `n_epoch` and `epoch`"
    seen = looked(lambda o: (o.epoch, o.n_epoch), 'after_epoch', run=lambda o: o.fit(2, 0.))
    assert [o for _,o in seen]==[(0,2),(1,2)]

def test_the_iteration_begins_at_zero_in_each_validation():
    "core.loop, diagnosis.callback: `iter` numbers the batches, `dl` is the loader that is read"
    seen = looked(lambda o: (o.training, o.iter, o.dl is o.dls[not o.training]), 'after_batch',
                  bs=32, run=lambda o: o.fit(2, 0.))
    assert [o for _,o in seen]==[(True,0,True),(True,1,True),(False,0,True),(False,1,True)]*2

def test_predictions_and_targets_of_a_batch():
    "core.loop, metrics.streaming: `pred` and `yb`, whose tuple has one tensor"
    seen = looked(lambda o: (isinstance(o.pred, Tensor), isinstance(o.yb, tuple) and len(o.yb)), 'after_batch')
    assert {o for _,o in seen}=={(True,1)}

def test_a_callback_may_skip_its_training_batches():
    "diagnosis.callback: after `run_train = False`, its `after_batch` is called in validations alone"
    class Once(Callback):
        seen = 0
        def after_batch(self):
            if self.training: self.run_train,self.seen = False,self.seen+1
    cb = Once()
    learn = make_learner(*simulate(64, 4), cbs=cb)
    with learn.no_logging(): learn.fit(1, 0.)
    assert cb.seen==1

def test_a_fit_can_be_cancelled_from_after_epoch():
    "diagnosis.callback: `CancelFitException` ends a fit, and `after_fit` comes all the same"
    class Stop(Callback):
        order,ended = 65,False # After the Recorder
        def after_epoch(self): raise CancelFitException
        def after_fit(self): self.ended = True
    cb = Stop()
    learn = make_learner(*simulate(8, 2), cbs=cb)
    with learn.no_logging(): learn.fit(3, 0.)
    assert cb.ended and len(learn.recorder.values)==1

def test_the_optimizer_knows_what_is_frozen():
    "diagnosis.callback: `opt.frozen_idx` is 0 if all is trained"
    def groups(m): return [[*m[0].parameters()], [*m[1].parameters()]]
    learn = make_learner(*simulate(8, 2), model=nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), splitter=groups)
    learn.create_opt()
    assert learn.opt.frozen_idx==0
    learn.freeze()
    assert learn.opt.frozen_idx==1

def test_the_learner_stores_its_arguments_only_with_fastcore_1():
    "learner.export: `__stored_args__`, if there is one, has the metrics"
    stored = vars(make_learner(*simulate(8, 2), multilabel_metrics())).get('__stored_args__')
    assert stored is None or len(stored['metrics'])==6

def test_export_pickles_the_learner_without_its_data(tmp_path):
    "learner.export: `path/fname` is a zip with the names of classes in a .pkl, as torch writes it"
    learn = make_learner(*simulate(8, 2), path=tmp_path)
    learn.export('a.pkl')
    with zipfile.ZipFile(tmp_path/'a.pkl') as z: assert any(o.endswith('.pkl') for o in z.namelist())

def test_replacing_yield_is_undone_after_an_error():
    "core.messages: `replaced` is made of fastai's `replacing_yield`"
    o = SimpleNamespace(a=1)
    with pytest.raises(KeyError), contextmanager(replacing_yield)(o, 'a', 2):
        assert o.a==2
        raise KeyError
    assert o.a==1

# The Recorder and callbacks

def test_the_recorder_comes_before_our_callback():
    "diagnosis.callback: its order is above the Recorder's, so the row of the epoch is written; below that of trackers"
    assert Recorder.order==50<ZeroLabelsCallback.order==65
    assert Recorder.order<SaveModelCallback.order<ZeroLabelsCallback.order

def test_the_recorder_resets_metrics_before_a_validation():
    "metrics.streaming: a metric is reset by each `before_validate`, so before our callback reads it"
    class Counting(AccumMetric):
        def __init__(self): self.resets = 0
        name,value = 'counting',0.
        def reset(self): self.resets += 1
        def accumulate(self, learn): pass
    m = Counting()
    seen = looked(lambda o: m.resets, 'before_validate', metrics=m, run=lambda o: o.fit(2, 0.))
    first,second = (o for _,o in seen)
    assert first>=1 and second==first+1

def test_the_losses_of_the_recorder():
    "diagnosis.callback: `loss.count` and `valid_metrics` tell whether the validation loss is computed"
    learn = make_learner(*simulate(64, 4))
    assert learn.recorder.valid_metrics is True
    seen = looked(lambda o: (o.recorder.loss.count, float(o.recorder.loss.value), float(o.recorder.smooth_loss.value)),
                  'after_validate')
    (_,(count,valid,train)), = seen
    assert count and valid>0 and train>0

def test_the_columns_of_a_row():
    "diagnosis.pitfalls, learner.evaluate, demo: `metric_names` begins with the epoch, which `values` lacks"
    learn = make_learner(*simulate(8, 2), multilabel_metrics())
    with learn.no_logging(): learn.fit(2, 0.)
    names = learn.recorder.metric_names
    assert names==['epoch','train_loss','valid_loss', *learn.metrics.attrgot('name'), 'time']
    assert {len(o) for o in learn.recorder.values}=={len(names)-2} # neither epoch nor time
    with learn.no_logging(): learn.validate()
    assert len(learn.recorder.values)==1 # `validate` forgets the fit

def test_the_state_of_the_recorder_is_its_attributes():
    "core.passes: `vars` of the Recorder, stored and put back, is all that a validation changes"
    learn = make_learner(*simulate(8, 2), multilabel_metrics())
    with learn.no_logging(): learn.fit(2, 0.)
    state = dict(vars(learn.recorder))
    with learn.no_logging(): learn.validate()
    vars(learn.recorder).update(state)
    assert len(learn.recorder.values)==2 and len(learn.recorder.losses)==2

def test_a_tracker_knows_its_column_and_whether_it_is_best(tmp_path):
    "diagnosis.callback, diagnosis.pitfalls: `idx`, `new_best`, `comp` and `monitor` of a `TrackerCallback`"
    save = SaveModelCallback(monitor='valid_loss')
    learn = make_learner(*simulate(64, 4), path=tmp_path)
    with learn.no_logging(): learn.fit(2, 0., cbs=[save, Falling([1., 2.])])
    assert learn.recorder.metric_names[1:][save.idx]=='valid_loss' and save.comp is np.less
    assert save.new_best is False and not save.every_epoch and not save.at_end
    assert SaveModelCallback(monitor='f1_macro').comp is np.greater

def test_the_names_of_callbacks_that_track():
    "core.passes: names, because some need further packages"
    for cls in (SaveModelCallback, EarlyStoppingCallback, ReduceLROnPlateau):
        assert issubclass(cls, TrackerCallback)
    assert {o.__name__ for o in (TrackerCallback,TerminateOnNaNCallback,CSVLogger)}=={
        'TrackerCallback','TerminateOnNaNCallback','CSVLogger'}

@pytest.mark.dev
def test_the_names_of_trackers_with_packages_of_their_own():
    "core.passes, diagnosis.callback: `TensorBoardBaseCallback` and `WandbCallback`"
    for o in ('tensorboard','wandb'): pytest.importorskip(o)
    from fastai.callback.tensorboard import TensorBoardCallback
    from fastai.callback.wandb import WandbCallback
    assert 'TensorBoardBaseCallback' in [o.__name__ for o in TensorBoardCallback.__mro__]
    assert WandbCallback.__name__=='WandbCallback'

def test_a_tracker_of_an_unknown_column_fails_before_the_first_batch():
    "howto.10_monitor_trackers"
    learn = make_learner(*simulate(8, 2), multilabel_metrics(), cbs=EarlyStoppingCallback(monitor='f1_macros'))
    with pytest.raises((AssertionError,IndexError)), learn.no_logging(): learn.fit(1, 0.) # The text has no words
    assert not hasattr(learn, 'pred')

def test_the_progress_bar_has_a_start():
    "core.messages: `start_t`, `update` and `on_iter_end` of fastprogress's bar"
    with contextlib.redirect_stdout(io.StringIO()):
        bar = progress_bar(range(3), leave=False)
        bar.update(0)
        assert bar.start_t>0
        bar.start_t -= 5
        bar.update(1)
        bar.on_iter_end()

# Metrics and losses

def test_the_parts_of_an_accum_metric():
    "diagnosis.pitfalls: `thresh` and `activation` of fastai's own metrics"
    m = fastai.metrics.F1ScoreMulti(thresh=0.3)
    assert isinstance(m, AccumMetric) and m.thresh==0.3 and m.activation==ActivationType.Sigmoid

def test_a_function_becomes_an_avg_metric():
    "core.decoding, diagnosis.pitfalls: the `func` that `AvgMetric` and `BaseLoss` wrap"
    assert mk_metric(accuracy_multi).func is accuracy_multi
    assert isinstance(BCEWithLogitsLossFlat().func, nn.BCEWithLogitsLoss)

def test_a_loss_puts_its_axis_last():
    "data.losses: `BaseLoss._contiguous` moves `axis` to the end"
    loss = fastai.losses.BCEWithLogitsLossFlat(axis=1)
    assert loss._contiguous(torch.zeros(2, 3, 4)).shape==(2,4,3) and loss.axis==1

def test_none_reduce_is_undone():
    "data.losses: `NoneReduce` sets the `reduction` that a loss has, and sets it back"
    loss = fastai.losses.BCEWithLogitsLossFlat()
    with NoneReduce(loss): assert loss.reduction=='none'
    assert loss.reduction=='mean'

def test_a_base_loss_decodes_nothing():
    "core.decoding: a loss that decodes has a `decodes` other than `BaseLoss.decodes`"
    assert fastai.losses.BCELossFlat().decodes.__func__ is BaseLoss.decodes
    theirs = fastai.losses.BCEWithLogitsLossFlat(thresh=0.3)
    assert theirs.decodes.__func__ is not BaseLoss.decodes and theirs.thresh==0.3
    assert (theirs.activation(torch.zeros(1))==0.5).all()

# Data

def test_where_the_names_of_labels_are():
    "core.inputs, data.imbalance: `dls.tls`, `dls.vocab`, and the transforms of a `TfmdLists`"
    df = pd.DataFrame(dict(x=[1., 2., 3., 4.], y=['a','b','a b','']))
    block = DataBlock((TransformBlock, MultiCategoryBlock), get_x=ColReader('x'), splitter=IndexSplitter([3]),
                      get_y=ColReader('y', label_delim=' '))
    dls = block.dataloaders(df, bs=2)
    assert [*dls.tls[-1].vocab]==['a','b'] and 'vocab' not in vars(dls)
    assert any(isinstance(o, MultiCategorize) for o in dls.tls[-1].tfms.fs)
    assert len(dls.train_ds.tls[-1].items)==3 and dls.train_ds.tls[-1].split_idx==0

def test_where_the_targets_of_a_table_are():
    "core.inputs, data.imbalance, diagnosis.pitfalls: `dls.y_names`, and `ys` of the data set"
    df = pd.DataFrame(dict(x=[1., 2., 3., 4.], a=[0, 1, 0, 1], b=[1, 1, 0, 0]))
    dls = TabularDataLoaders.from_df(df, cont_names=['x'], y_names=['a','b'], valid_idx=[3], bs=2, procs=[])
    assert [*dls.y_names]==['a','b'] and [*dls.train_ds.ys.columns]==['a','b']

def test_a_loader_is_made_anew_with_other_arguments():
    "core.passes, reports.samples: `new` of a `DataLoader`, with `get_idxs`"
    dl = DataLoader(range(6), bs=4, shuffle=True, drop_last=True)
    assert dl.shuffle and dl.drop_last
    assert torch.cat([*dl.new(shuffle=False, drop_last=False)]).tolist()==[*range(6)]
    assert torch.cat([*DataLoader(range(6), bs=4).new(get_idxs=lambda: [2, 0])]).tolist()==[2,0]

def test_a_loader_of_torch_has_a_sampler_of_a_known_type():
    "core.passes, metrics.streaming: whether torch's `DataLoader` shuffles is seen in the type of its `sampler`"
    load = torch.utils.data.DataLoader
    assert type(load(range(4)).sampler) is torch.utils.data.SequentialSampler
    assert type(load(range(4), shuffle=True).sampler) is torch.utils.data.RandomSampler

def test_the_loaders_of_dls():
    "core.passes, diagnosis.callback: `dls.loaders`, of which the second one is `dls.valid`"
    dls = make_learner(*simulate(8, 2)).dls
    assert len(dls.loaders)==2 and dls.valid is dls.loaders[1] is dls[1]

def test_a_distributed_loader_knows_its_part(monkeypatch):
    "core.loop, thresholds.search: `n`, `n_padded`, `rank`, `world_size`, and `i`, the samples read so far"
    monkeypatch.setattr(DistributedDL, '_broadcast', lambda self, t, rank: t)
    dl = DistributedDL(DataLoader(range(5), bs=2), rank=1, world_size=2)
    assert not hasattr(DataLoader(range(5), bs=2), 'n_padded')
    read = []
    for b in dl: read += [(b.tolist(), dl.i)]
    assert (dl.rank, dl.world_size, dl.n, dl.n_padded)==(1, 2, 5, 6)
    assert read==[([3,4], 2), ([0], 3)] # the last one repeats the first sample
    sampler = torch.utils.data.distributed.DistributedSampler(range(5), 2, 1, shuffle=False)
    assert (sampler.rank, sampler.num_replicas, [*sampler])==(1, 2, [1,3,0])

# Interpretation and fastcore

def test_what_an_interpretation_has():
    "reports.interpret, reports.samples: methods of fastai's `Interpretation` that ours replaces"
    assert {'from_learner','top_losses','plot_top_losses','show_results','__getitem__'} <= {*dir(Interpretation)}

def test_comments_of_arguments_are_found_through_delwrap():
    "core.messages, metrics.streaming: `docments` reads comments of a signature, and of `__delwrap__`"
    assert docments(F1ScoreMulti.__init__, full=True)['thresh'].docment.startswith('Labels with scores')

def test_attributes_are_stored():
    "most: fastcore's `store_attr`, with and without names"
    class A:
        def __init__(self, a, b=2): store_attr('a')
    class B:
        def __init__(self, a, b=2): store_attr()
    assert vars(A(1)).get('a')==1 and 'b' not in vars(A(1)) and B(1).b==2
