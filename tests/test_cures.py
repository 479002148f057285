"The page *Messages*: who follows its cure does not see the message again"
import json
from fastai.callback.tracker import EarlyStoppingCallback, SaveModelCallback
from fastai.tabular.all import *
from helpers import *

def rows(heading):
    "The messages in the tables below a heading of the page"
    cells = json.loads((ROOT/'nbs'/'reference'/'04_callback.ipynb').read_text())['cells']
    text = '\n'.join(''.join(o['source']) for o in cells if o['cell_type']=='markdown')
    section = text.partition(f'\n## {heading}\n')[2].partition('\n## ')[0]
    found = re.findall(r'(?m)^\| ([^|]+) \|(?: [^|]+ \|){1,2}$', section)
    return [o for o in found if o not in ('---','message','the message says')]

def says(message, text):
    "Whether `text` has the words of a row, in which dots stand for values"
    return re.search('.*'.join(re.escape(o.strip()) for o in message.split('...') if o.strip()), text)

def learner(*cbs, metrics=None, data=GOOD, sigmoid=True, **kwargs):
    metrics = multilabel_metrics(sigmoid=sigmoid) if metrics is None else metrics
    return make_learner(*data, metrics, cbs=[ZeroLabelsCallback(sigmoid=sigmoid), *cbs], **kwargs)

def decoding_bce():
    loss_func = BCELossFlat(); loss_func.decodes = lambda x: x>0.5
    return loss_func

def with_targets(change):
    logits,targs = GOOD[0],GOOD[1].clone()
    change(targs)
    return logits,targs

def missing(targs): targs[::7,3] = math.nan
def rarely(targs): targs[:,2] = 0; targs[:2,2] = 1
def none(targs): targs[:] = 0
def same(targs): targs[:] = 0; targs[:,0] = 1

def split(targs, indices):
    logits = GOOD[0]
    (train,valid),learn = indices(targs),learner(data=(logits, targs))
    learn.dls = DataLoaders(*(DataLoader(TensorPairs(logits[o], targs[o]), bs=16) for o in (train, valid)),
                            device=CPU)
    return learn

def improving(tracker, metrics):
    return learner(Falling([1.64, 0.9, 0.5, 0.26]), tracker, metrics=metrics, bs=400, model=Improves(),
                   data=simulate(400, 10, density=0.1, skill=4., bias=-2.))

THEIRS = sys.modules['fastai.metrics']
# The words of a row -> a Learner that is warned so, and one or more that follow the cure
SETUP = {
    'predictions all lie in [0, 1], so the model seems to end with a sigmoid': [
        lambda: learner(model=Sigmoid(), loss_func=BCELossFlat()), lambda: learner(),
        lambda: learner(model=Sigmoid(), loss_func=decoding_bce(), sigmoid=False)],
    'The loss function ... applies another': [
        lambda: learner(model=Sigmoid()), lambda: learner()],
    'predictions like ... seem to be logits': [lambda: learner(sigmoid=False), lambda: learner()],
    'the metrics take the predictions for probabilities (sigmoid=False)': [
        lambda: learner(model=Sigmoid(), sigmoid=False), lambda: learner()],
    "these metrics are fastai's": [
        lambda: learner(metrics=[THEIRS.F1ScoreMulti()]), lambda: learner(metrics=[F1ScoreMulti()])],
    'a metric is a list or a dict': None, # These four in test_pitfalls
    'not for labels, but for one class per sample: ...': None,
    'the loss function ... is for one class per sample or pixel': None,
    'the validation set is empty': None,
    'none of the ... validation samples has a label': [
        lambda: learner(data=with_targets(none)), lambda: learner()],
    'all ... samples have the same labels': [
        lambda: learner(data=with_targets(same)), lambda: learner()],
    'the scores of each sample sum to 1': [
        lambda: learner(model=nn.Sequential(Same(), nn.Softmax(-1)), loss_func=BCELossFlat()), lambda: learner()],
    'columns of zeros and ones are read as lists of labels': None, # in test_pitfalls
    'the labels are single letters': None, # in test_pitfalls
    'the labels have names such as ..., because ...': None, # in test_pitfalls
    'no validation sample has ...': [
        lambda: split(with_targets(rarely)[1], lambda y: (range(200), range(200, 400))),
        lambda: split(with_targets(rarely)[1], lambda y: stratified_split(y, 0.5, seed=0))],
    'the metrics ignore targets of ..., but the loss function ... trains on them': [
        lambda: learner(data=with_targets(missing), metrics=multilabel_metrics(ignore_index=math.nan)),
        lambda: learner(data=with_targets(missing), metrics=multilabel_metrics(ignore_index=math.nan),
                        loss_func=BCEWithLogitsLossFlat(ignore_index=math.nan))],
    '... looks for the highest value, but lower is better': [
        lambda: learner(EarlyStoppingCallback('empty_rate', patience=9)),
        lambda: learner(EarlyStoppingCallback('empty_rate', comp=np.less, patience=9))],
    '... this `validate()` as an epoch of a fit': None, # below
    'by ..., which depends on the threshold, epoch ... was the best': [
        lambda: improving(SaveModelCallback('f1_macro'), multilabel_metrics()),
        lambda: improving(SaveModelCallback('ap_macro'), multilabel_metrics(ranking=True))],
    'the threshold was tuned before this training': None, # in learner/test_thresholds
    'the loss function ... does not decode': [
        lambda: learner(loss_func=nn.BCEWithLogitsLoss()), lambda: learner()],
    '... but `predict` and `show_results` ...': [
        lambda: learner(metrics=multilabel_metrics(thresh=0.2)),
        lambda: (learn := learner(metrics=multilabel_metrics(thresh=0.2))).set_thresh(0.2) or learn]}

@pytest.mark.parametrize('message', [k for k,v in SETUP.items() if v])
def test_a_cure_of_the_set_up_ends_the_message(message, tmp_path):
    wrong,*right = SETUP[message]
    n = 4 if message.startswith('by') else 1
    def texts(make):
        learn = make()
        learn.path = tmp_path
        with recording(learn) as caught: learn.fit(n, 0.)
        return [one_line(o.message) for o in caught]
    assert any(says(message, o) for o in texts(wrong))
    for make in right: # nor is another mistake named
        assert not any('may mislead' in o or says(message, o) for o in texts(make))

def test_evaluate_is_no_epoch_of_a_tracker(tmp_path):
    message = '... this `validate()` as an epoch of a fit'
    learn = learner(SaveModelCallback(monitor='f1_samples'), path=tmp_path)
    with recording(learn): learn.fit(1, 0.)
    with recording(learn) as caught, pytest.raises(IndexError): learn.validate()
    assert message in SETUP and any(says(message, one_line(o.message)) for o in caught)
    with recording(learn) as caught: learn.evaluate()
    assert not any(says(message, one_line(o.message)) for o in caught)

rng = np.random.default_rng(0)
Y = (rng.random((40, 3))<0.4).astype(int)
P = 0.5*Y + 0.5*rng.random((40, 3))
def report(p=P, y=Y, **kwargs): return lambda: accuracy_report(p, y, ci=None, **kwargs)

def fit(*metrics, cbs=None, data=GOOD, change=None):
    def run():
        learn = make_learner(*data, metrics, cbs=cbs() if cbs else None)
        if change: change(learn)
        with learn.no_logging(): learn.fit(1, 0.)
    return run

def shuffled(shuffle):
    def run():
        dl = DataLoader(TensorPairs(*GOOD), bs=50, shuffle=shuffle, device=CPU)
        learn = make_learner(*GOOD, F1ScoreMulti(sample_weight=np.ones(400)))
        with learn.no_logging(): learn.validate(dl=dl)
    return run

def half_empty(): return learner(data=(GOOD[0], GOOD[1]*(torch.arange(400)<200)[:,None]))

def exported(loss_func, **limits):
    def run():
        learn = make_learner(*GOOD, loss_func=loss_func, path=Path.cwd())
        if limits: learn.set_thresh(0.5, **limits)
        (learn.export if limits.get('max_labels') else learn.export_plain)('learner.pkl')
    return run

def two_at_once(shared):
    def run():
        metrics = multilabel_metrics()
        inner = make_learner(*GOOD, metrics if shared else multilabel_metrics())
        class Nested(Callback):
            def after_batch(self):
                if not self.training and not self.iter:
                    with inner.no_logging(): inner.validate()
        fit(*metrics, cbs=lambda: Nested())()
    return run

class Twice(nn.Module):
    def forward(self, x): return x,x

class SelectFirst(Callback):
    def after_loss(self): self.learn.pred = self.learn.pred[0]

def two_outputs(cured):
    def run():
        def loss(preds, targs): return F.binary_cross_entropy_with_logits(preds[0], targs)
        learn = make_learner(*GOOD, F1ScoreMulti(), loss_func=loss, cbs=SelectFirst() if cured else None)
        learn.model = nn.Sequential(learn.model, Twice())
        with learn.no_logging(): learn.fit(1, 0.)
    return run

# The words of a row -> what raises or warns so, and what follows the cure
ERRORS = {
    'targets must be 0 or 1': [report(y=2*Y), report(y=np.where(Y==1, 1, 0)), report(y=2*Y, ignore_index=2)],
    'the model returns ..., and a batch has ...': [two_outputs(cured=False), two_outputs(cured=True)],
    'are they swapped?': [report(Y, P), report(P, Y)],
    'predictions have the shape ..., but targets ...': [report(P[:,:2]), report(P)],
    'predictions are NaN': [lambda: F1ScoreMulti(sigmoid=False)(P*math.nan, Y),
                            lambda: F1ScoreMulti(sigmoid=False)(P, Y)],
    'no label would ever be predicted': [lambda: F1ScoreMulti(thresh=50), lambda: F1ScoreMulti(thresh=0.5),
                                  lambda: F1ScoreMulti(thresh=2, sigmoid=False)],
    'several metrics are named': [fit(F1ScoreMulti(0.2), F1ScoreMulti(0.3)),
                                  fit(F1ScoreMulti(0.2), F1ScoreMulti(0.3, name='other'))],
    'counts for two Learners at once': [two_at_once(True), two_at_once(False)],
    'sample_weight needs the samples in one known order': [shuffled(True), shuffled(False)],
    'custom thresholds, not changed by `set_thresh`': [
        fit(F1ScoreMulti([0.2]*20), change=lambda o: o.set_thresh(0.3)),
        fit(F1ScoreMulti(), change=lambda o: o.set_thresh(0.3))],
    'keep theirs': [fit(accuracy_multi, change=lambda o: o.set_thresh(0.3)),
                    fit(AccuracyMulti(), change=lambda o: o.set_thresh(0.3))],
    "of the samples have no label, and average='samples' does not count": [
        lambda: half_empty().thresh_find(average='samples', show_plot=False),
        lambda: half_empty().thresh_find(average='micro', show_plot=False)],
    'are not probabilities, so the thresholds are on': [lambda: best_thresholds(9*P-4, Y),
                                                        lambda: best_thresholds(9*P-4, Y, sigmoid=True)],
    'no threshold on probabilities separates them': [lambda: best_thresholds(9*P+40, Y, sigmoid=True),
                                                     lambda: best_thresholds(9*P+40, Y, sigmoid=False)],
    'no target is true': [lambda: best_thresholds(P, 0*Y), lambda: best_thresholds(P, Y)],
    'is left out: fastai\'s own decoding has no such limit': [
        exported(BCEWithLogitsLossFlat(), min_labels=1),
        exported(BCEWithLogitsLossFlat(), min_labels=1, max_labels=2)],
    'still needs fastai_mlmetrics, perhaps for ...': [exported(AsymmetricLossFlat()),
                                              exported(sys.modules['fastai.losses'].BCEWithLogitsLossFlat())],
    'because groups are large, or many labels have few samples': [
        lambda: stratified_split(Y, 0.2, groups=[0]*39+[1], seed=0),
        lambda: stratified_split(Y, 0.2, groups=np.arange(40)//2, seed=0)]}

@pytest.mark.parametrize('message', ERRORS)
def test_a_cure_of_an_error_ends_it(message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    def text(f):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            try: f()
            except (ValueError,TypeError,RuntimeError) as e: return one_line(e)
        return ' '.join(one_line(o.message) for o in caught)
    wrong,*right = ERRORS[message]
    assert says(message, text(wrong))
    for f in right: assert not says(message, said := text(f)) and 'Error' not in said

# Other errors name the cure themselves
LISTED = ('targets must be 0 or 1','the model returns ..., and a batch has ...','predictions are NaN',
          'sample_weight needs the samples in one known order',
          'custom thresholds, not changed by `set_thresh`',"is left out: fastai's own decoding has no such limit",
          'because groups are large, or many labels have few samples')

def test_each_row_of_the_page_is_followed():
    assert rows('These numbers may mislead')==[*SETUP]
    assert rows('Common errors')==[o for o in ERRORS if o in LISTED]
