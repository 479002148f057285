"`export_plain`: Learners that load without this package"
import contextlib, io
import fastai.metrics
from fastai.callback.tracker import *
from helpers import *

PREDICT = """
import sys
assert 'fastai_mlmetrics' not in sys.modules
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0]=='fastai_mlmetrics': raise ModuleNotFoundError("No module named 'fastai_mlmetrics'")
sys.meta_path.insert(0, Blocked())
from fastai.vision.all import *
learn = load_learner(path/'plain.pkl')
with learn.no_bar(): labels,_,probs = learn.predict(picture)
torch.save((list(labels), probs.tolist()), path/'out.pt')
"""

@pytest.mark.slow
@pytest.mark.parametrize('thresh,min_labels', [(None,0), (0.3,0), (tuple(np.linspace(0.1,0.9,20).tolist()),0), (0.3,1)])
def test_export_plain_predicts_without_the_package(digits_dls, tmp_path, thresh, min_labels):
    metrics = [*multilabel_metrics(), accuracy_multi, partial(accuracy_multi, thresh=0.2)]
    learn = vision_learner(digits_dls, resnet18, pretrained=False, loss_func=BCEWithLogitsLossFlat(), metrics=metrics,
                           cbs=[ZeroLabelsCallback(), SaveModelCallback(monitor='f1_macro')], path=tmp_path)
    if thresh: learn.set_thresh(thresh, min_labels)
    metrics,cbs,state = list(learn.metrics),{*learn.cbs},dict(vars(learn.loss_func))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        learn.export_plain('plain.pkl')
    left_out = ["min_labels=1 is left out: fastai's own decoding has no such limit. To keep it, call "
                "learn.export(), and install fastai_mlmetrics where the file is loaded"] if min_labels else []
    assert [str(o.message) for o in caught if 'min_labels' in str(o.message)]==left_out
    assert list(learn.metrics)==metrics and {*learn.cbs}==cbs and vars(learn.loss_func)==state
    item = digits_dls.valid_ds.items.iloc[0]
    in_process(exec, PREDICT, dict(path=tmp_path, picture=digits_dls.path/'train'/item.fname))
    labels,probs = torch.load(tmp_path/'out.pt', weights_only=False)
    d = binarize(tensor(probs)[None], 0.5 if thresh is None else thresh, sigmoid=False)[0]
    assert labels==[o for o,on in zip(digits_dls.vocab, d) if on]

@pytest.mark.parametrize('protocol', [2,4])
@pytest.mark.parametrize('left', [F1ScoreMulti, F1ScoreMulti(), partial(binarize, thresh=0.3)],
                         ids=['class','metric','function'])
def test_export_plain_says_that_the_package_is_still_needed(left, protocol, tmp_path):
    learn = full_learner(path=tmp_path)
    learn.left = left
    learn.export = partial(learn.export, pickle_protocol=protocol)
    with pytest.warns(UserWarning, match=r'l\.pkl still needs fastai_mlmetrics'): learn.export_plain('l.pkl')
    learn.left = 'F1ScoreMulti'
    with warnings_as('error'): learn.export_plain()

@pytest.mark.parametrize('loss', [nn.BCEWithLogitsLoss().forward, torch.binary_cross_entropy_with_logits,
                                  F.binary_cross_entropy_with_logits], ids=['method','builtin','function'])
def test_export_plain_keeps_a_loss_that_has_no_class(loss, tmp_path):
    learn = full_learner(path=tmp_path)
    learn.loss_func = loss
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.export_plain('l.pkl')
        assert load_learner(tmp_path/'l.pkl').loss_func.__name__==loss.__name__
    assert learn.loss_func==loss

def test_export_plain_leaves_out_the_logger_that_fastai_cannot_export(tmp_path):
    learn = make_learner(*simulate(64), multilabel_metrics(), path=tmp_path, cbs=[CSVLogger(), ZeroLabelsCallback()])
    with warnings_as('ignore'), learn.no_logging(), contextlib.redirect_stdout(io.StringIO()): learn.fit(1, 0.)
    with warnings_as('error'): learn.export_plain()
    assert not load_learner(tmp_path/'export.pkl').cbs.filter(risinstance(CSVLogger))
    assert len(learn.cbs.filter(risinstance(CSVLogger)))==1

@pytest.mark.parametrize('loss', [AsymmetricLossFlat,SigmoidFocalLossFlat])
def test_export_plain_tells_of_a_loss_of_this_package(loss, tmp_path):
    learn = make_learner(*simulate(64), multilabel_metrics(), loss_func=loss(), path=tmp_path)
    with pytest.warns(UserWarning, match="perhaps for a loss function or a model: use fastai's"): learn.export_plain()

class Watcher(Callback):
    "A callback of a user that looks for the column that it monitors"
    def __init__(self, monitor): self.monitor = monitor
    def before_fit(self): self.idx = self.recorder.metric_names.index(self.monitor)

@pytest.mark.slow
@pytest.mark.parametrize('make', [SaveModelCallback, EarlyStoppingCallback, ReduceLROnPlateau, TrackerCallback])
def test_export_plain_leaves_out_trackers_of_its_metrics(make, tmp_path):
    logits,targs = simulate(64)
    kept,left_out = ['valid_loss','accuracy_multi'],['f1_macro','valid_f1_macro','train_f1_macro']
    for monitor in kept+left_out:
        metrics = [*multilabel_metrics(), fastai.metrics.accuracy_multi]
        learn = make_learner(logits, targs, metrics, model=nn.Linear(20, 20), path=tmp_path)
        learn.add_cbs([make(monitor=monitor), ZeroLabelsCallback(), TerminateOnNaNCallback()])
        before = {*learn.cbs}
        learn.recorder.train_metrics = monitor.startswith(('train','valid_f'))
        with warnings_as('ignore'), learn.no_logging(): learn.fit(1, 0.)
        learn.recorder.train_metrics = False
        with warnings_as('error'): learn.export_plain('plain.pkl')
        assert {*learn.cbs}==before
        with warnings_as('ignore'): plain = load_learner(tmp_path/'plain.pkl')
        with plain.no_bar(): probs = plain.get_preds(dl=DataLoader(TensorPairs(logits, targs), bs=16))[0]
        test_close(probs, learn.model(logits).sigmoid(), eps=1e-6)
        names = [type(o).__name__ for o in plain.cbs]
        assert (make.__name__ in names)==(monitor in kept) and 'TerminateOnNaNCallback' in names

def test_export_plain_leaves_out_whatever_monitors_its_metrics(tmp_path):
    learn = make_learner(*simulate(64), multilabel_metrics(), path=tmp_path, cbs=Watcher('f1_macro'))
    learn.export_plain()
    with warnings_as('ignore'): plain = load_learner(tmp_path/'export.pkl')
    assert not plain.cbs.filter(risinstance(Watcher)) and len(learn.cbs.filter(risinstance(Watcher)))==1
