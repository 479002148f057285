"What all metrics do with batches: accumulate, share, copy, warn, and which arguments they take"
import pickle, fastai.metrics as fm, torchmetrics.classification as tmc
from copy import copy, deepcopy
from fastcore.docments import docments
from helpers import *
from reference import *
from six_labels import SCORES, TARGS

def test_batches_add_up_until_the_reset():
    m = SubsetAccuracy()
    m.accum_values(tensor([[0,1,0],[1,0,1]]), tensor([[0,1,0],[1,0,1]]))
    assert m.value==m.value==1 and m.counts.tolist()==[2,2]
    m.accum_values(tensor([[1,0,0],[0,1,0]]), tensor([[0,1,0],[0,1,0]]))
    assert m.value==m.value==0.75 and m.counts.tolist()==[3,4]
    m.reset()
    assert m.value is None
    m.accum_values(tensor([[1,0,0]]), tensor([[0,1,0]]))
    assert m.value==0

@pytest.mark.parametrize('n,c', [(1,1), (1,1000), (3,1000), (65,20)])
def test_odd_sizes_have_finite_values(n, c):
    logits,targs = simulate(n, c)
    learn = make_learner(logits, targs, multilabel_metrics(), bs=16)
    for name,value in values(learn).items(): assert math.isfinite(value), name

def test_a_class_need_not_be_called():
    logits,targs = simulate(40)
    learn = make_learner(logits, targs, [F1ScoreMulti, SubsetAccuracy, accuracy_multi])
    assert values(learn).keys()=={'f1_score','subset_accuracy','accuracy_multi'}

def test_no_two_columns_of_one_name():
    every = [(cls, a) for cls in {getattr(o, 'func', o) for o in BINARY} for a in averages(cls)]
    names = [(cls(2, average=a) if cls is FBetaMulti else cls(average=a)).name for cls,a in every]
    assert len(set(names))==len(names)
    logits,targs = simulate(40)
    learn = make_learner(logits, targs, [F1ScoreMulti(0.2), F1ScoreMulti(), AccuracyMulti()])
    with pytest.warns(UserWarning, match="several metrics are named 'f1_score'") as caught: values(learn)
    assert len(caught)==1
    names = multilabel_metrics(full=True).attrgot('name')
    test_eq(names, ('accuracy_multi zeros_accuracy empty_rate f1_macro f1_micro f1_samples '
                    'f1_weighted precision_samples recall_samples').split())

def test_labels_are_chosen_by_name():
    logits,targs = simulate(60, 3)
    expected = F1ScoreMulti(labels=[2,0])(logits, targs)
    for vocab in (L('cat','dog','eel'), [L('the','a'), L('cat','dog','eel')]):
        learn = make_learner(logits, targs, F1ScoreMulti(labels=['eel','cat']), vocab=vocab)
        assert values(learn)['f1_score']==expected
    learn = make_learner(logits, targs, F1ScoreMulti(labels=['cow']), vocab=L('cat','dog','eel'))
    with pytest.raises(ValueError, match="'cow' is not in the vocab: it has cat, dog"): values(learn)
    with pytest.raises(ValueError, match='the labels have no names'): F1ScoreMulti(labels=['cat'])(logits, targs)
    with pytest.raises(ValueError, match='label 3 is not in the vocab'):
        F1ScoreMulti(labels=[3])(logits, targs)

def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="average='makro'.*'micro', 'macro', 'weighted', 'samples', None"):
        F1ScoreMulti(average='makro')
    with pytest.raises(ValueError, match="SubsetAccuracy has no average='macro'.*'samples'"):
        SubsetAccuracy(average='macro')
    with pytest.raises(ValueError, match='thresh=-1.*sigmoid=False'): F1ScoreMulti(thresh=-1)
    for w in ([0,0], [1,-1], [1,math.nan], [1,math.inf], [[1],[2]], [[1,2],[3,4]]):
        with pytest.raises(ValueError, match='one finite number per sample'): F1ScoreMulti(sample_weight=w)
    for kw,match in (
            (dict(min_labels=-1), 'min_labels=-1'), (dict(ignore_index='-1'), "ignore_index='-1' should be a number"),
            (dict(min_labels=1.5), 'whole number'),
            (dict(min_labels=True), 'whole number'),
            (dict(zero_division='warn'), "'warn' should be a number"),
            (dict(zero_division=None), 'should be a number'),
            (dict(labels=[]), 'nothing to score'),
            (dict(thresh=None), 'thresh=None should be'),
            (dict(thresh=['a']), 'should be a number')):
        with pytest.raises(ValueError, match=match): F1ScoreMulti(**kw)
    for labels,match in (([True,False],'a mask'), ([1.5],'1.5 is not in'), (tensor([True,False]),'a mask')):
        with pytest.raises(ValueError, match=match):
            F1ScoreMulti(labels=labels)(torch.zeros(3,2), torch.zeros(3,2))
    with pytest.raises(ValueError, match='shape'): F1ScoreMulti()(torch.zeros(3,0), torch.zeros(3,0))
    with pytest.warns(UserWarning, match='pos_label=0'): F1ScoreMulti(pos_label=0)

@pytest.mark.parametrize('bad', [2., 0.5, -1., math.nan])
def test_targets_other_than_0_and_1_are_named(bad):
    logits,targs = simulate(50)
    targs[17,3] = bad
    with pytest.raises(ValueError, match=f'one is {bad:.3g}'): F1ScoreMulti()(logits, targs)
    with pytest.raises(ValueError, match=f'one is {bad:.3g}'): values(make_learner(logits, targs, F1ScoreMulti()))

def test_soft_targets_while_training_are_nan():
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=MixUp())
    learn.recorder.train_metrics = True
    with pytest.warns(UserWarning, match='targets must be 0 or 1') as caught, learn.no_logging(): learn.fit(1, 0.)
    assert len(caught)==1
    row = learn.recorder.values[-1]
    assert np.isnan(row[1:7]).all() and np.isfinite(row[8:]).all()

@pytest.mark.parametrize('mixed', [MixUp, CutMix])
def test_functions_are_nan_for_soft_targets_as_classes_are(mixed):
    logits,targs = simulate(64)
    functions = [accuracy_multi, subset_accuracy, empty_rate, zeros_accuracy, categorical_accuracy]
    metrics = [*functions, partial(accuracy_multi, thresh=0.2)]
    if mixed is CutMix: # Of pictures
        logits = logits[:,:,None,None].expand(-1, -1, 32, 32).contiguous()
    class Pictures(Same):
        def forward(self, x): return super().forward(x).flatten(2).mean(-1) if x.ndim==4 else super().forward(x)
    for ms,n in ((metrics, len(metrics)), ([*metrics, *multilabel_metrics()], len(metrics)+6)):
        learn = make_learner(logits, targs, ms, Pictures(), bs=16, cbs=mixed()) # A batch may have nothing mixed
        learn.recorder.train_metrics = True
        with warnings.catch_warnings(record=True) as caught, learn.no_logging():
            warnings.simplefilter('default') # As a user sees them: each text once
            learn.fit(1, 0.)
        assert sum('targets must be 0 or 1' in str(o.message) for o in caught)==1
        row = learn.recorder.values[-1]
        assert np.isnan(row[1:n+1]).all() and np.isfinite(row[n+2:]).all()
    learn.remove_cb(mixed) # What is no soft target is an error in a validation, and in a call
    targs[3,2] = 0.5
    for f in functions:
        with pytest.raises(ValueError, match='targets must be 0 or 1'): f(logits.flatten(2).mean(-1) if mixed is CutMix
                                                                         else logits, targs)
        with pytest.raises(ValueError, match='targets must be 0 or 1'):
            values(make_learner(logits, targs, f, Pictures()))

def test_nan_predictions_are_told_once():
    logits,targs = simulate(50)
    logits[[3,9],5] = math.nan
    learn = make_learner(logits, targs, multilabel_metrics())
    with pytest.warns(UserWarning, match='NaN in 2 samples') as caught: v = values(learn)
    assert len(caught)==1 and all(map(math.isnan, v.values()))
    assert not math.isnan(F1ScoreMulti(ignore_index=-1)(logits, torch.where(logits.isnan(), -1, targs)))

TWO_SIGMOIDS = "BCEWithLogitsLoss. applies another: remove the sigmoid at the model's end"

@pytest.mark.parametrize('loss,message', [
    (BCELossFlat, "with a sigmoid: pass sigmoid=False to each .* or remove the sigmoid at the model's end, and use"),
    (BCEWithLogitsLossFlat, TWO_SIGMOIDS), (nn.BCEWithLogitsLoss, TWO_SIGMOIDS)])
def test_probabilities_taken_for_logits_are_told(loss, message):
    "By the metrics, or by the callback, in the same words; and once"
    logits,targs = simulate(50)
    for cbs in (None, ZeroLabelsCallback()):
        learn = make_learner(logits.sigmoid(), targs, multilabel_metrics(), loss_func=loss(), cbs=cbs)
        with recording(learn) as caught: learn.validate()
        told = [one_line(w.message) for w in caught if 'lie in [0, 1]' in one_line(w.message)]
        assert len(told)==1 and re.search(message.replace('[', r'\['), told[0]), told

def test_integers_are_decisions():
    with pytest.raises(ValueError, match='one is 7'): F1ScoreMulti()(tensor([[0,7]]), tensor([[0,1]]))

def test_good_input_says_nothing(recwarn):
    logits,targs = simulate(50)
    values(make_learner(logits, targs, multilabel_metrics()))
    values(make_learner(logits.sigmoid(), targs, multilabel_metrics(sigmoid=False)))
    values(make_learner(logits, targs, multilabel_metrics(thresh=0., sigmoid=False)))
    assert not [w for w in recwarn if issubclass(w.category, UserWarning) and 'fastai_mlmetrics' in w.filename]

def test_sample_weights_need_an_order():
    logits,targs = simulate(50)
    for n in (49,51):
        learn = make_learner(logits, targs, F1ScoreMulti(sample_weight=np.ones(n)))
        with pytest.raises(ValueError, match=f'{n} values.*50 samples'): values(learn)
    learn = make_learner(logits, targs, F1ScoreMulti(sample_weight=np.ones(50)))
    with pytest.raises(ValueError, match='shuffle=False'), learn.no_logging(): learn.validate(0)

class Bare(Learner):
    "As in the notebooks of fastai"
    def __init__(self): self.pred,self.xb,self.yb = None,None,None

class Weakless:
    "Has no weak references"
    __slots__ = 'pred','yb','iter'

@pytest.mark.parametrize('make', [
    Bare,
    SimpleNamespace,
    Weakless,
    partial(SimpleNamespace, dl=None, training=True, metrics=None)])
def test_anything_with_predictions_and_targets_will_do(make):
    logits,targs = simulate(60)
    learn = make()
    metrics = L(multilabel_metrics(full=True, ranking=True)) + [BrierScoreMulti(), ExpectedCalibrationError()]
    for i,(learn.pred,y) in enumerate(zip(logits.split(16), targs.split(16))):
        learn.yb = y,
        if make is Weakless: learn.iter = i
        for m in metrics: m.accumulate(learn)
    for m in metrics: same(m.value, deepcopy(m)(logits, targs), 1e-9)

def test_predictions_with_a_gradient_count():
    logits,targs = simulate(40)
    learn = SimpleNamespace(pred=logits.requires_grad_()*1, yb=(targs,), iter=0)
    m,hist = F1ScoreMulti(),APScoreMulti()
    with torch.no_grad():
        for o in (m,hist): o.accumulate(learn)
    assert m.value==F1ScoreMulti()(logits, targs) and hist.value==APScoreMulti()(logits, targs)
    assert learn.pred.grad_fn is not None

def test_train_metrics_are_apart():
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, multilabel_metrics())
    ref = values(learn)
    learn.recorder.train_metrics = True
    with learn.no_logging(): learn.fit(1, 0.)
    row = learn.recorder.values[-1]
    test_close(row[1:7], list(ref.values()))
    test_close(row[8:], list(ref.values()))

def test_metrics_are_monitored_by_name(tmp_path):
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, F1ScoreMulti(), path=tmp_path)
    with learn.no_logging(): learn.fit(1, 0., cbs=SaveModelCallback(monitor='f1_score'))
    assert (tmp_path/'models/model.pth').exists()

@pytest.mark.parametrize('make,given,near', [
    (F1ScoreMulti, 'threshold', 'thresh'), (F1ScoreMulti, 'treshold', 'thresh'),
    (AccuracyMulti, 'min_label', 'min_labels'),
    (APScoreMulti, 'averages', 'average'), (multilabel_metrics, 'tresh', 'thresh'), (paper_metrics, 'topk', 'top_k')])
def test_a_misspelt_argument_is_named(make, given, near):
    says = f"{make.__name__} has no argument '{given}': did you mean '{near}'"
    with pytest.raises(TypeError, match=says): make(**{given: 0})

@pytest.mark.parametrize('cls,given', [
    *((o, 'thresh') for o in (APScoreMulti, RocAucMulti, LRAP, partial(PrecisionAtK, 1), ExpectedCalibrationError)),
    *((o, 'bins') for o in (F1ScoreMulti, LRAP, OneError, BrierScoreMulti)), (BrierScoreMulti, 'min_labels'),
    (ExpectedCalibrationError, 'zero_division'), (MatthewsCorrCoefMulti, 'pos_label'), (EmptyRate, 'beta')])
def test_an_argument_that_a_class_does_not_use_is_an_error(cls, given):
    with pytest.raises(TypeError, match=f"has no argument '{given}'"): cls(**{given: 0.5})

def test_arguments_of_ones_own_class():
    class Mine(F1ScoreMulti):
        def __init__(self, k=2, **kwargs):
            self.k = k
            super().__init__(average='micro', **kwargs)
    assert repr(Mine(3, thresh=0.2)).startswith('Mine(k=3') and Mine(thresh=0.2).thresh==0.2
    with pytest.raises(TypeError, match="Mine has no argument 'treshold': did you mean 'thresh'"): Mine(treshold=0.2)
    assert [*inspect.signature(StreamMetric).parameters]==[*inspect.signature(StreamMetric.__init__).parameters][1:]

def test_declared_arguments():
    "A class declares what may be passed by position, what it leaves out, and its own defaults"
    class Cost(CountsMetric):
        "Costs of errors"
        order,without,defaults = ('thresh','missed'),('pos_label',),dict(average='micro')
        def __init__(self,
            missed:float=1., # Cost of a false negative
            **kwargs
        ):
            self.missed = missed
            super().__init__(**kwargs)
        def formula(self, tp, fp, fn, tn): return self.missed*fn+fp
    class Missed(Cost): defaults = dict(missed=9., zero_division=1.)
    args = inspect.signature(Cost).parameters
    assert [k for k,p in args.items() if p.kind==p.POSITIONAL_OR_KEYWORD]==['thresh','missed']
    assert {*args}=={*inspect.signature(CountsMetric).parameters, 'missed'}-{'pos_label'}
    docs = docments(Missed.__init__) # Of a class itself, fastcore 1.8 reads only the last `__init__`
    assert args.keys()<=docs.keys() and docs.missed=='Cost of a false negative'
    assert docs.name==docments(StreamMetric.__init__).name
    assert inspect.signature(Missed).parameters['missed'].default==9.
    found = [(m.thresh, m.missed, m.average, m.zero_division, m.name) for m in
             (Cost(), Cost(0.2, 3.), Missed(), Missed(0.2, average='macro', zero_division=0.))]
    assert found==[(0.5, 1., 'micro', 0., 'cost'), (0.2, 3., 'micro', 0., 'cost'),
                   (0.5, 9., 'micro', 1., 'missed'), (0.2, 9., 'macro', 0., 'missed_macro')]
    assert repr(Missed(0.2))=='Missed(thresh=0.2)'
    for wrong in (dict(pos_label=1), dict(mised=2.)):
        with pytest.raises(TypeError, match='has no argument'): Cost(**wrong)
    for args in ((0.5, 1., True), ()):
        with pytest.raises(TypeError): FBetaMulti(2, *[0.5]*8) if args else FBetaMulti()

@given(pair=binary_pairs(max_samples=30), cut=st.integers(1, 29))
def test_update_and_compute_are_torchmetrics_s(pair, cut):
    "torchmetrics' way of use gives its value"
    p,y = map(tensor, pair)
    for average in ('micro','macro'):
        ours,theirs = F1ScoreMulti(sigmoid=False, average=average),tmc.MultilabelF1Score(p.shape[1], average=average)
        for o in (ours, theirs):
            o.reset()
            for batch in zip(p.split(cut), y.split(cut)): o.update(*batch)
        same(ours.compute(), ours.value)
        if average=='micro': same(ours.compute(), theirs.compute().item(), 1e-6)
        same(ours.compute(), ours(p, y))

def test_a_call_accumulates_as_torchmetrics_does():
    "Each call returns the value of its arrays alone, and `compute` that of all"
    ours,theirs = F1ScoreMulti(average='micro'),tmc.MultilabelF1Score(4, average='micro')
    set_seed(0)
    for _ in range(3):
        p,y = torch.randn(50, 4),(torch.rand(50, 4)<0.4).long()
        same(ours(p, y), theirs(p, y).item(), 1e-6)
    same(ours.compute(), theirs.compute().item(), 1e-6)
    assert abs(ours.compute()-ours(p, y))>0.01
    ours.reset()
    test_eq(ours(p, y), ours.value)

def test_a_call_adds_to_every_kind_of_metric():
    logits,targs = simulate(100, bias=-2.)
    for m in all_metrics():
        whole = deepcopy(m)(logits, targs)
        m.accum_values(logits[:30], targs[:30])
        for part in (slice(30, 60), slice(60, 100)):
            np.testing.assert_equal(m(logits[part], targs[part]), deepcopy(m)(logits[part], targs[part]))
        np.testing.assert_allclose(m.value, whole, rtol=0, atol=1e-9)

def test_a_call_that_fails_adds_nothing():
    logits,targs = simulate(100, bias=-2.)
    m = F1ScoreMulti()
    value = m(logits, targs)
    with pytest.raises(ValueError, match='must be 0 or 1'): m(logits, targs+0.5)
    test_eq(m.value, value)

def test_a_call_on_other_labels_counts_from_the_start():
    logits,targs = simulate(100, bias=-2.)
    m = F1ScoreMulti()
    m(logits, targs)
    three = m(logits[:,:3], targs[:,:3])
    test_eq(m.compute(), three)
    test_eq(three, F1ScoreMulti()(logits[:,:3], targs[:,:3]))

def test_a_call_leaves_what_a_learner_has_accumulated():
    logits,targs = simulate(100, bias=-2.)
    m = F1ScoreMulti()
    learn = make_learner(logits, targs, m)
    with learn.no_bar(): value = learn.validate()[1]
    test_eq(m(logits[:50], targs[:50]), F1ScoreMulti()(logits[:50], targs[:50]))
    test_eq(m.value, value)

def test_nothing_accumulated_is_none():
    empty = torch.zeros(0,3)
    for m in (F1ScoreMulti(), SubsetAccuracy(), APScoreMulti(), BrierScoreMulti()):
        assert m.value is None and m.compute() is None
        m.update(empty, empty)
        assert m.value is None

def test_several_metrics_of_one_name_are_told_once():
    "One warning names all of them"
    learn = make_learner(*simulate(64), paper_metrics()+paper_metrics())
    with pytest.warns(UserWarning) as caught, learn.no_logging(): learn.validate()
    texts = [str(o.message) for o in caught if 'several metrics' in str(o.message)]
    assert len(texts)==1 and "'CP', 'CR', 'CF1'" in texts[0]

@pytest.mark.parametrize('off', ['0.9997','0.99999','2','-1','0.5'])
def test_a_target_that_is_nearly_right_is_named_in_full(off):
    logits,targs = simulate(50, 4, density=0.3)
    targs[0,0] = float(off)
    with pytest.raises(ValueError, match=f'but one is {off}[.:] '): F1ScoreMulti()(logits, targs)
    with pytest.raises(ValueError, match=f'label 0 has {off}: '): label_stats(targs)

def test_labels_that_are_numbers_are_names():
    logits,targs = simulate(100, 4, density=0.3)
    metrics = [F1ScoreMulti(labels=[1]), F1ScoreMulti(labels=[10], name='ten')]
    learn = make_learner(logits, targs, metrics, vocab=L(1, 2, 10, 20))
    expected = [F1ScoreMulti(labels=[i])(logits, targs) for i in (0,2)]
    with learn.no_logging(): assert [*learn.validate()[1:]]==pytest.approx(expected)

def test_repr_shows_weights():
    m = F1ScoreMulti(sample_weight=[1,2])
    assert repr(m)=="F1ScoreMulti(sample_weight=tensor([1., 2.], dtype=torch.float64))"
    assert repr(F1ScoreMulti())=='F1ScoreMulti()'

def test_metrics_of_ones_own_in_plain_numbers():
    class Wrong(CountsMetric):
        def formula(self, tp, fp, fn, tn): return fp.numpy()
    assert Wrong(average="micro", sigmoid=False)(SCORES, TARGS)==((SCORES>0.5) & (TARGS==0)).sum()
    class Seen(StreamMetric):
        def from_batch(self, batch): return batch.inputs[1].sum()
        def from_total(self, total): return float(total)
    assert Seen()(SCORES, TARGS)==TARGS.sum()

def test_sigmoid_is_no_average():
    for make in (lambda: F1ScoreMulti(0.5, 'samples'),
                 lambda: APScoreMulti('micro'),
                 lambda: RocAucMulti('micro'),
                 lambda: multilabel_metrics(0.5, 'no'),
                 lambda: ZeroLabelsCallback(0.5, 'raise')):
        with pytest.raises(ValueError, match="sigmoid='.*' should be True or False"): make()

def test_labels_by_the_names_of_columns():
    names,m = list('abcdef'),F1ScoreMulti(labels=['b','e'], sigmoid=False)
    p,y = (pd.DataFrame(o.numpy(), columns=names) for o in (SCORES, TARGS))
    expected = F1ScoreMulti(labels=[1,4], sigmoid=False)(SCORES, TARGS)
    for args in ((p, y), (p, y[names[::-1]]), (SCORES, y), (p, TARGS)): assert m(*args)==expected
    with pytest.raises(ValueError, match="label 'b' is not known, because the labels have no names"):
        m(SCORES, TARGS)
    with pytest.raises(ValueError, match="label 'z' is not in the vocab: it has a, b, c, d, e, f$"):
        F1ScoreMulti(labels=['z'])(p, y)

def test_a_copy_is_a_new_metric_of_the_same_arguments():
    logits,targs = simulate(100, bias=-2.)
    more = [F1ScoreMulti(0.3, sample_weight=np.arange(100)),
            F1ScoreMulti(ignore_index=math.nan, average='samples', labels=[1,2])]
    for m in all_metrics()+more:
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

def test_two_learners_at_once_may_not_share_metrics():
    "Learners may share metrics one after the other; one within the other would mix up their counts"
    def other(seed, metrics): return make_learner(*simulate(100, seed=seed), metrics, bs=16)
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

@pytest.mark.parametrize('m,text', [
    (F1ScoreMulti(0.2, average='samples'), "F1ScoreMulti(thresh=0.2, average='samples')"),
    (F1ScoreMulti(), 'F1ScoreMulti()'),
    (FBetaMulti(2), 'FBetaMulti(beta=2)'),
    (F1ScoreMulti([0.1,0.2], min_labels=1), 'F1ScoreMulti(thresh=(0.1, 0.2), min_labels=1)'),
    (APScoreMulti(average='micro', bins=64), "APScoreMulti(average='micro', bins=64)"),
    (PrecisionAtK(3), 'PrecisionAtK(k=3)'),
    (F1ScoreMulti(labels=['a']), "F1ScoreMulti(labels=('a',))"),
    (LRAP(sigmoid=False), 'LRAP(sigmoid=False)')])
def test_metrics_show_their_arguments(m, text):
    assert repr(m)==text
    assert repr(eval(text))==text and (m.thresh, m.average)==(eval(text).thresh, eval(text).average)

# What the counting needs at its edges

def test_a_reset_forgets_the_batch_of_the_loop():
    "A batch in the same memory and of the same number is counted anew after a reset"
    logits,targs = simulate(40)
    learn = SimpleNamespace(pred=logits.clone(), yb=(targs,), iter=0)
    m = F1ScoreMulti()
    m.accumulate(learn)
    m.reset()
    learn.pred.copy_(-logits) # in place, so tensors and number are the same
    m.accumulate(learn)
    assert m.value==F1ScoreMulti()(-logits, targs)!=F1ScoreMulti()(logits, targs)

def test_batches_of_another_loop_keep_the_names_of_their_own():
    "Batches that wait are counted before the next loop, whose labels are in another order"
    logits,targs = simulate(40, 3, density=0.3)
    class Loop: # has no metrics, and is no Learner of fastai
        def __init__(self, vocab, i):
            self.dls = SimpleNamespace(vocab=vocab)
            self.pred,self.yb = logits[i:i+20],(targs[i:i+20],)
    m = F1ScoreMulti(labels=['a'])
    m.accumulate(Loop(L('a','b','c'), 0))
    m.accumulate(Loop(L('b','c','a'), 20))
    p,y = (torch.cat([o[:20,0], o[20:,2]]) for o in (logits, targs))
    assert m.value==F1ScoreMulti()(p[:,None], y[:,None])

def test_checks_of_many_batches_are_joined():
    "A stream of any length stores few of them, and forgets nothing that they found"
    logits,targs = simulate(80)
    m = F1ScoreMulti(sigmoid=False, thresh=0.)
    for i in range(80):
        m.update(logits[[i]], targs[[i]])
        assert len(m._checks)<16
    _,(low,low_targ,high,high_targ,fraction,nans) = m.read()
    test_eq([low, low_targ, high, high_targ, fraction, nans], [logits.min(), 0, logits.max(), 1, 0, 0])
    targs[3,1] = 0.5 # long before the last batches
    m.reset()
    for i in range(80): m.update(logits[[i]], targs[[i]])
    with pytest.raises(ValueError, match='one is 0.5'): m.value

def test_batches_of_several_kinds_are_counted_apart():
    "Logits, binary predictions, and other data types; a number of labels that changes is an error"
    logits,targs = simulate(40, 4, density=0.3, bias=0.)
    m,learn = F1ScoreMulti(0.8),SimpleNamespace()
    def take(pred, y, i):
        learn.pred,learn.yb,learn.iter = pred,(y,),i
        m.accumulate(learn)
    take(logits[:20], targs[:20], 0)
    take(logits[20:].sigmoid()>0.8, targs[20:].bool(), 1)
    assert m.value==F1ScoreMulti(0.8)(logits, targs)>0.5 and m.scored
    for more in (lambda: m.update(logits[:,:3], targs[:,:3]), lambda: take(logits[:,:3], targs[:,:3], 2)):
        with pytest.raises(ValueError, match='have 3 labels, but before they had 4'): more()

def test_samples_that_are_added_come_after_the_batches_that_wait():
    "So each has its own weight"
    logits,targs = simulate(40, 4, density=0.3)
    weight = np.arange(40)%7+1.
    m = F1ScoreMulti(sample_weight=weight)
    m.accumulate(SimpleNamespace(pred=logits[:25], yb=(targs[:25],), iter=0))
    m.update(logits[25:], targs[25:])
    assert m.value==F1ScoreMulti(sample_weight=weight)(logits, targs)

@pytest.mark.parametrize('make,has_order', [
    (lambda ds: torch.utils.data.DataLoader(ds, shuffle=True), False),
    (lambda ds: torch.utils.data.DataLoader(
        ds, sampler=torch.utils.data.DistributedSampler(ds, 2, 0, shuffle=False)), False),
    (torch.utils.data.DataLoader, True)])
def test_sample_weights_need_a_loader_in_order(make, has_order):
    logits,targs = simulate(8, 3)
    learn = SimpleNamespace(dl=make(torch.utils.data.TensorDataset(logits, targs)), pred=logits, yb=(targs,), iter=0)
    m = F1ScoreMulti(sample_weight=np.ones(8))
    if has_order: return m.accumulate(learn)
    with pytest.raises(ValueError, match='one known order.*shuffle=False, in a single process'): m.accumulate(learn)

@pytest.mark.parametrize('low,high,kw,kind', [
    # Logits in [0, 1]
    (0.2, 0.9, {}, 'probabilities'), (0., 1., {}, 'probabilities'), (-0.1, 0.9, {}, None), (0.2, 1.1, {}, None),
    (0.3, 0.3, {}, None), # All are equal, as of a layer of zeros
    # Probabilities beyond, if the threshold is one
    (0.2, 0.9, dict(sigmoid=False), None), (-0.1, 0.9, dict(sigmoid=False), 'logits'),
    (0.2, 1.1, dict(sigmoid=False), 'logits'), (-0.1, 1.1, dict(sigmoid=False, thresh=0.), None),
    # The same number of labels for each sample, whatever the scale
    (0.2, 0.9, dict(min_labels=2, max_labels=2), None),
    (-1., 2., dict(sigmoid=False, min_labels=2, max_labels=2), None)], ids=str)
def test_which_range_contradicts_the_arguments(low, high, kw, kind):
    preds = torch.linspace(low, high, 12).view(4, 3)
    def found(m, preds):
        m.update(preds, torch.ones_like(preds))
        return m.range_found
    res = found(F1ScoreMulti(**kw), preds)
    assert (res and res.kind)==kind
    if res: assert (res.low, res.high)==pytest.approx((low, high))
    assert found(F1ScoreMulti(**kw), preds>0.5) is None # Binary
    assert found(LRAP(sigmoid=kw.get('sigmoid', True)), preds) is None # Only their order matters

def test_fewer_than_ten_logits_may_be_in_0_to_1_by_chance():
    for n,found in ((9, False), (10, True)):
        m = F1ScoreMulti()
        m.update(torch.linspace(0.1, 0.9, n)[:,None], torch.ones(n, 1))
        assert bool(m.range_found)==found

@pytest.mark.parametrize('low,high,kw,is_error', [
    (-0.1, 0.9, dict(sigmoid=False), True), (0.1, 1.1, dict(sigmoid=False), True), (0., 1., dict(sigmoid=False), False),
    (-3., 3., {}, False)])
def test_what_is_for_probabilities_takes_no_other_scores(low, high, kw, is_error):
    preds = torch.linspace(low, high, 12).view(4, 3)
    m = BrierScoreMulti(**kw)
    m.update(preds, (preds>0.5).float())
    if not is_error: assert math.isfinite(m.value)
    else:
        with pytest.raises(ValueError, match=f'like {low:.3g} and {high:.3g}: are they logits'): m.value

def test_a_weighted_average_leaves_out_what_is_undefined():
    "Without any positives it is the mean"
    m = F1ScoreMulti(average='weighted')
    def average(values, support): return m.average_labels(tensor(values).double(), tensor(support).double()).item()
    assert average([0.2,0.8,math.nan], [1,3,6])==pytest.approx(0.65)
    for support in ([0,0,0],[0,0,5]): assert average([0.2,0.8,math.nan], support)==pytest.approx(0.5)

def test_whole_scores_may_be_ranked():
    scores,targs = tensor([[3,7,-2],[9,1,4]]),tensor([[0,1,0],[1,0,1]])
    assert LRAP()(scores, targs)==1
    with warnings_as('error'): F1ScoreMulti(pos_label=None)

def test_a_loop_of_any_length_waits_with_few_batches():
    targs = torch.ones(1, 2)
    m = F1ScoreMulti()
    for i in range(260):
        m.accumulate(SimpleNamespace(pred=torch.ones(1, 2), yb=(targs,), iter=i))
        assert len(m._batches)<=256
    assert m.value==1 and m.seen==260

def test_weighted_counts_are_no_whole_numbers():
    m = RecallMulti(sample_weight=[0.25,1.5], average=None, sigmoid=False)
    m.update(tensor([[1,0],[1,1]]), tensor([[1,0],[0,1]]))
    same(m.counts, [[0.25,1.5], [1.5,0], [0,0], [0,0.25]])

@pytest.mark.parametrize('make', [F1ScoreMulti, partial(F1ScoreMulti, average='samples'), APScoreMulti, LRAP,
                                  BrierScoreMulti], ids=str)
def test_a_call_takes_the_weights_of_its_samples(make):
    "Called batch by batch, as updated; a batch has the value of its samples with their weights"
    logits,targs = simulate(60, 4, density=0.3)
    weight = np.arange(60)%7+1.
    m,updated = make(sample_weight=weight),make(sample_weight=weight)
    for epoch in range(2):
        m.reset()
        for rows in (slice(0, 25), slice(25, 50), slice(50, 60)):
            same(m(logits[rows], targs[rows]), make(sample_weight=weight[rows])(logits[rows], targs[rows]))
            if not epoch: updated.update(logits[rows], targs[rows])
        same(m.compute(), updated.compute())
    for _ in range(2): same(m(logits, targs), updated.compute()) # Whole arrays, again and again
    with pytest.raises(ValueError, match='sample_weight has 60 values, but there were 61 samples'):
        make(sample_weight=weight)(*simulate(61, 4))
    m.reset()
    m(logits[:25], targs[:25])
    with pytest.raises(ValueError, match='sample_weight has 60 values, but there were 25 samples'): m.compute()

def test_a_batch_whose_weights_are_zero_has_no_value():
    logits,targs = simulate(20, 3, density=0.3)
    m = F1ScoreMulti(sample_weight=[0.]*10+[1.]*10)
    assert math.isnan(m(logits[:10], targs[:10]))
    m(logits[10:], targs[10:])
    same(m.compute(), F1ScoreMulti()(logits[10:], targs[10:]))

def test_weights_of_pandas_are_matched_in_a_call_of_a_batch():
    logits,targs = simulate(20, 3, density=0.3)
    index = [f'row {i}' for i in range(20)]
    y = pd.DataFrame(targs.numpy(), index=index)
    m = F1ScoreMulti(sample_weight=pd.Series(np.arange(20)+1., index))
    for rows in (slice(0, 12), slice(12, 20)): m(logits[rows], y[rows])
    same(m.compute(), F1ScoreMulti(sample_weight=np.arange(20)+1.)(logits, targs))
    m.reset()
    m(logits[:12], y[:12])
    with pytest.raises(ValueError, match='sample_weight and the arrays have different indexes'): m(logits[:8], y[:8])

def test_at_most_256_batches_wait():
    logits,targs = simulate(1, 3)
    m,learn = F1ScoreMulti(),SimpleNamespace()
    for learn.iter in range(256):
        learn.pred,learn.yb = logits+0,(targs+0,)
        m.accumulate(learn)
        assert len(m._batches)<256
    assert m.seen==256 and not m._batches
