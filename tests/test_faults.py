"No sample is lost or counted twice after interruptions, copies and exports"
import contextlib, io, pickle
from conftest import *
from copy import copy, deepcopy

def every():
    return multilabel_metrics(ranking=True) + [
        APScoreMulti(bins=64, name='binned'), ExpectedCalibrationError(), BrierScoreMulti(),
        AccuracyMulti(average='macro')]

def learner(bs=16, **kwargs):
    return make_learner(*simulate(100, bias=-2.), every(), cbs=ZeroLabelsCallback(), bs=bs, **kwargs)

def clean(bs=16): return values(learner(bs))

def same(learn, expected):
    "Validate, and compare with the values of a Learner without interruptions"
    test_eq(values(learn), expected)
    r = learn.zero_labels.records[-1]
    assert r.samples==100 and r.accuracy==pytest.approx(expected['accuracy_multi'], abs=1e-12)

class Fails(Same):
    "A model that raises `error` at its n-th batch, once"
    def __init__(self, error, n):
        super().__init__()
        self.error,self.n = error,n
    def forward(self, x):
        self.n -= 1
        if self.n==0: raise self.error
        return super().forward(x)

# Interruptions

@pytest.mark.parametrize('error', [
    KeyboardInterrupt(), RuntimeError('a fault'), CancelValidException(), CancelFitException(),
    CancelEpochException(), CancelBatchException()], ids=lambda o: type(o).__name__)
@pytest.mark.parametrize('in_fit', [False, True])
def test_interrupted(error, in_fit):
    expected,learn = clean(),learner(model=Fails(error, 10 if in_fit else 3)) # a fit trains on 6 batches before
    with learn.no_logging():
        try: learn.fit(1) if in_fit else learn.validate()
        except (KeyboardInterrupt, RuntimeError, CancelFitException, CancelEpochException): pass
    learn.model.n = 0
    same(learn, expected)
    with learn.no_logging(): learn.fit(1, 0.)
    test_eq(dict(zip(learn.metrics.attrgot('name'), learn.recorder.values[-1][2:])), expected)

# Copies and files

def test_a_copy_is_a_new_metric_of_the_same_arguments():
    logits,targs = simulate(100, bias=-2.)
    more = [F1ScoreMulti(0.3, sample_weight=np.arange(100)),
            F1ScoreMulti(ignore_index=math.nan, average='samples', labels=[1,2])]
    for m in every()+more:
        m.name = 'renamed'
        value = m(logits, targs)
        m.reset()
        m.accum_values(logits[:60], targs[:60])
        for copied in (pickle.loads(pickle.dumps(m)), deepcopy(m), copy(m)):
            assert copied.value is None and copied.name=='renamed' and repr(copied)==repr(m)
            np.testing.assert_equal(copied(logits, targs), value)
        m.accum_values(logits[60:], targs[60:])
        np.testing.assert_allclose(m.value, value, rtol=0, atol=1e-9)

def test_weights_are_copied():
    logits,targs = simulate(100, bias=-2.)
    weights = [1.]*100
    first = F1ScoreMulti(sample_weight=weights)
    weights[:50] = [100.]*50
    learn = make_learner(logits, targs, [first, F1ScoreMulti(sample_weight=weights, name='second')])
    weighted = F1ScoreMulti(sample_weight=np.array(weights))(logits, targs)
    test_eq(values(learn), dict(f1_score=F1ScoreMulti()(logits, targs), second=weighted))
    for w in (torch.ones(100, dtype=torch.bfloat16), torch.ones(100, requires_grad=True)):
        test_eq(F1ScoreMulti(sample_weight=w)(logits, targs), F1ScoreMulti()(logits, targs))

def test_rules_of_another_process_are_not_mixed_up():
    theirs = in_process(F1ScoreMulti, 0.9)
    others = [F1ScoreMulti(t) for t in np.linspace(0.01, 0.99, 50)]
    assert theirs.rule==ThresholdRule(0.9) and all(theirs.rule!=o.rule or o.rule.thresh==0.9 for o in others)

def test_export_and_resume(tmp_path):
    expected,learn = clean(),learner(path=tmp_path, model_dir='.')
    with learn.no_logging():
        learn.fit(2, 0.)
        learn.save('two', with_opt=True)
        learn.export('l.pkl')
        again = learner(path=tmp_path, model_dir='.').load('two')
        with again.no_logging(): again.fit(3, 0., start_epoch=2)
        assert [(r.epoch,r.phase) for r in again.zero_labels.records]==[(2,'fit')]
        same(again, expected)
        loaded = load_learner(tmp_path/'l.pkl')
    loaded.dls = learn.dls
    same(loaded, expected)

# Without the package

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

@pytest.mark.parametrize('thresh,min_labels', [(None,0), (0.3,0), (tuple(np.linspace(0.1,0.9,20).tolist()),0), (0.3,1)])
def test_export_plain(digits_dls, tmp_path, thresh, min_labels):
    metrics = [*multilabel_metrics(), accuracy_multi, partial(accuracy_multi, thresh=0.2)]
    learn = vision_learner(digits_dls, resnet18, pretrained=False, loss_func=BCEWithLogitsLossFlat(), metrics=metrics,
                           cbs=ZeroLabelsCallback(), path=tmp_path)
    if thresh: learn.set_thresh(thresh, min_labels)
    metrics,cbs,state = list(learn.metrics),{*learn.cbs},dict(vars(learn.loss_func))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        learn.export_plain('plain.pkl')
    left_out = ["min_labels=1 is left out: fastai's own decoding has none"] if min_labels else []
    assert [str(o.message) for o in caught if 'min_labels' in str(o.message)]==left_out
    assert list(learn.metrics)==metrics and {*learn.cbs}==cbs and vars(learn.loss_func)==state
    item = digits_dls.valid_ds.items.iloc[0]
    in_process(exec, PREDICT, dict(path=tmp_path, picture=digits_dls.path/'train'/item.fname))
    labels,probs = torch.load(tmp_path/'out.pt', weights_only=False)
    d = binarize(tensor(probs)[None], 0.5 if thresh is None else thresh, sigmoid=False)[0]
    assert labels==[o for o,on in zip(digits_dls.vocab, d) if on]

def test_export_plain_says_what_it_cannot_leave_out(tmp_path):
    learn = learner(path=tmp_path)
    learn.left = F1ScoreMulti()
    needed = r'l\.pkl needs fastai_mlmetrics all the same: .*fastai_mlmetrics\.metrics F1ScoreMulti'
    with pytest.warns(UserWarning, match=needed): learn.export_plain('l.pkl')

# Files and connections

def touched(path):
    "The files and connections that a user's session opens, and what it prints, in the folder `path`"
    os.chdir(path)
    def loader(): return DataLoader(list(zip(torch.randn(64,5), (torch.rand(64,5)<0.3).float())), bs=16)
    dls = DataLoaders(loader(), loader(), device=torch.device('cpu'))
    learn = Learner(dls, nn.Linear(5,5), loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics(ranking=True),
                    cbs=ZeroLabelsCallback())
    learn.remove_cb(ProgressCallback)
    events = []
    warnings.simplefilter('ignore')
    watched = 'os.mkdir','os.rename','os.remove','subprocess.Popen'
    def hook(event, args):
        writes = event=='open' and set(str(args[1]))&set('wax+')
        if event.startswith('socket.') or event in watched or writes: events.append((event, *map(str, args)))
    sys.addaudithook(hook)
    with contextlib.redirect_stdout(io.StringIO()) as out, learn.no_logging():
        learn.fit(2)
        learn.thresh_find(show_plot=False)
        learn.set_thresh(0.2)
        MultiLabelInterpretation.from_learner(learn)
        accuracy_report(*learn.get_preds())
        best_thresholds(*learn.get_preds())
        label_stats(dls)
        pos_weight(dls)
    return events,out.getvalue()

def test_nothing_is_sent_or_written(tmp_path):
    test_eq(in_process(touched, tmp_path), ([], ''))
    assert not [*tmp_path.iterdir()]

# Half precision

@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    class Half(Same):
        def forward(self, x): return super().forward(x.to(dtype))
    logits,targs = simulate(300, bias=-2.)
    def loss(p, t): return F.binary_cross_entropy_with_logits(p.float(), t)
    def trained(logits, model): return values(make_learner(logits, targs, every(), model=model, loss_func=loss))
    test_eq(trained(logits, Half()), trained(logits.to(dtype).float(), Same()))
    big = torch.full((70_000,2), 1., dtype=dtype)
    ones = torch.ones(70_000,2)
    assert AccuracyMulti()(big, ones)==1 and LabelCardinality()(big, ones)==2

@pytest.mark.parametrize('to', ['to_fp16','to_bf16'])
def test_mixed_precision(to):
    learn = learner()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore') # torch says that there is no GPU
        getattr(learn, to)()
        with learn.no_logging(): learn.fit(1, 0.)
    test_eq(dict(zip(learn.metrics.attrgot('name'), learn.recorder.values[-1][2:])), clean())

def test_two_learners_with_the_same_metrics():
    "Learners may share metrics one after the other; one within the other would mix up their counts"
    def other(seed, metrics): return make_learner(*simulate(100, seed=seed), metrics)
    metrics = multilabel_metrics()
    a,b = (other(i, metrics) for i in range(2))
    x,y = (values(other(i, multilabel_metrics())) for i in range(2))
    test_eq([values(a), values(b), values(a)], [x, y, x])
    class Nested(Callback):
        def after_batch(self):
            if self.iter==2 and not self.training: values(other(1, self.learn.metrics)) # a Learner that is then deleted
    a.add_cb(Nested())
    with pytest.raises(RuntimeError, match='two Learners at once'): values(a)
    a.remove_cb(Nested)
    test_eq(values(a), x)

def test_not_called():
    learn = make_learner(*simulate(100), [multilabel_metrics])
    with pytest.raises(ValueError, match=r'call it: metrics=multilabel_metrics\(\)$'): values(learn)
