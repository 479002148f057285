"Every metric and average, against scikit-learn on the same decisions and against fastai in a Learner"
import fastai.metrics as fm, sklearn.metrics as skm, torchmetrics.functional.classification as tm
from hypothesis import given
from conftest import *

AVERAGES = 'micro','macro','weighted','samples',None
REFERENCE = {PrecisionMulti: skm.precision_score, RecallMulti: skm.recall_score, F1ScoreMulti: skm.f1_score}

def same(a, b, eps=1e-12): np.testing.assert_allclose(a, b, atol=eps, rtol=0, equal_nan=True)

def sk_average(f, y, p, average, **kw):
    "`f` of each label or sample, averaged as scikit-learn averages"
    if average=='micro': return f(y.ravel(), p.ravel(), **kw)
    per = np.array([f(a, b, **kw) for a,b in (zip(y, p) if average=='samples' else zip(y.T, p.T))])
    if average is None: return per
    weights = y.sum(0) if average=='weighted' and y.sum() else None
    return np.average(per, weights=weights)

@pytest.mark.parametrize('average', AVERAGES)
@pytest.mark.parametrize('cls', REFERENCE)
@given(decided(), st.sampled_from([0., 1., np.nan]), st.data())
def test_as_sklearn(cls, average, decided, zero_division, data):
    p,y = decided
    labels = data.draw(st.none() | st.lists(st.integers(0, p.shape[1]-1), min_size=1, unique=True))
    weight = data.draw(st.none() | arrays(float, len(p), elements=st.floats(0.125, 4)))
    ours = cls(labels=labels, average=average, zero_division=zero_division, sample_weight=weight)(p, y)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        ref = REFERENCE[cls](y, p, labels=labels, average=average, zero_division=zero_division, sample_weight=weight)
    same(ours, ref)

@pytest.mark.parametrize('average', AVERAGES)
@given(decided())
def test_accuracy_as_sklearn(average, decided):
    p,y = decided
    same(AccuracyMulti(average=average)(p, y), sk_average(skm.accuracy_score, y, p, average))
    same(ZerosAccuracy(average=average)(p, y), sk_average(skm.accuracy_score, y, np.zeros_like(p), average))

@given(decided())
def test_own_metrics(decided):
    p,y = decided
    same(SubsetAccuracy()(p, y), skm.accuracy_score(y, p))
    same(EmptyRate()(p, y), (p.sum(1)==0).mean())
    acc,zeros = (p==y).mean(),(y==0).mean()
    same(AccuracyLift()(p, y), (acc-zeros)/(1-zeros) if zeros<1 else np.nan)
    if p.sum()==y.sum()>0: same(AccuracyLift()(p, y), 2*skm.f1_score(y, p, average='micro')-1)

@given(decided(), st.data())
def test_accuracies_agree(decided, data):
    p,y = decided
    weight = data.draw(st.none() | arrays(float, len(p), elements=st.floats(0.125, 4)))
    micro,macro,samples = (AccuracyMulti(average=a, sample_weight=weight)(p, y) for a in ('micro','macro','samples'))
    same(micro, macro); same(micro, samples)

@pytest.mark.parametrize('cls', REFERENCE)
@given(decided(1, 1), st.sampled_from(['micro','macro','weighted']))
def test_single_label_is_binary(cls, decided, average):
    p,y = decided
    same(cls(average=average)(p[:,0], y), REFERENCE[cls](y, p, zero_division=0))

@pytest.mark.parametrize('cls', REFERENCE)
@given(decided(), st.sampled_from([-1,np.nan]), st.sampled_from(['micro',None,'samples']), st.data())
def test_ignored_elements_count_nowhere(cls, decided, ignore, average, data):
    p,y = decided
    keep = data.draw(arrays(bool, p.shape))
    targs,ref = np.where(keep, y, np.array(ignore, float)),partial(REFERENCE[cls], zero_division=0)
    def per(*parts): return np.array([ref(a[k], b[k]) if k.any() else np.nan for a,b,k in zip(*parts)])
    if   average is None:    expected = per(y.T, p.T, keep.T)
    elif average=='samples': expected = np.nanmean(per(y, p, keep)) if keep.any() else np.nan
    else: expected = ref(y[keep], p[keep]) if keep.any() else np.nan
    same(cls(average=average, ignore_index=ignore)(p, targs), expected)

@given(decided(), st.data())
def test_ignored_elements_are_right_in_a_subset(decided, data):
    p,y = decided
    keep = data.draw(arrays(bool, p.shape))
    rows = keep.any(1)
    same(SubsetAccuracy(ignore_index=-1)(p, np.where(keep, y, -1)), ((p==y)|~keep)[rows].all(1).mean() if rows.any() else np.nan)

def test_ignore_index_as_torchmetrics():
    torch.manual_seed(0)
    p,y = torch.rand(200,7),torch.randint(0, 2, (200,7))
    y[torch.rand(200,7)<0.2] = -1
    for average in ('micro','macro','weighted'):
        same(F1ScoreMulti(sigmoid=False, average=average, ignore_index=-1)(p, y),
             tm.multilabel_f1_score(p, y, 7, average=average, ignore_index=-1), eps=1e-6)

@given(decided(), st.integers(1, 3))
def test_min_labels(decided, k):
    p,y = decided
    scores = torch.rand(p.shape)*0.4 + 0.6*torch.tensor(p)
    d = to_decisions(scores, 0.5, False, min_labels=k)
    assert (d.sum(1)==torch.tensor(p).sum(1).clamp(min=min(k, p.shape[1]))).all()
    assert (d | ~torch.tensor(p).bool()).all()
    for s,row in zip(scores, d): assert s[row].min() > s[~row].max() if (~row).any() and row.any() else True
    same(EmptyRate(0.5, False, min_labels=1)(scores, y), 0)

# The known answers of shared/cases.md

LOGITS,TRUTHS = tensor([[-.1,-.1,-.1],[.1,.1,.1]]),tensor([[0,0,0],[0,1,1]])

def test_thresholds_on_logits():
    same(accuracy_multi(LOGITS, TRUTHS), 5/6, 1e-7)
    same(accuracy_multi(LOGITS, TRUTHS, thresh=0., sigmoid=False), 5/6, 1e-7)
    with pytest.warns(UserWarning, match='seem to be logits.*sigmoid=True'): same(accuracy_multi(LOGITS, TRUTHS, sigmoid=False), 4/6, 1e-7)
    assert F1ScoreMulti(thresh=0., sigmoid=False, average='micro')(LOGITS, TRUTHS)==0.8

def test_three_accuracies():
    logits,targs = simulate(250)
    p = logits>0
    same(accuracy_multi(logits, targs), (p==targs).float().mean(), 1e-6)
    same(subset_accuracy(logits, targs), (p==targs).all(1).float().mean(), 1e-6)
    same(categorical_accuracy(logits, targs), (logits.argmax(1)==targs.argmax(1)).float().mean(), 1e-6)
    same(empty_rate(logits, targs), (~p.any(1)).float().mean(), 1e-6)
    same(zeros_accuracy(logits, targs), 1-targs.mean(), 1e-6)

def test_three_by_three():
    y,p = tensor([[1,0,1],[0,1,0],[1,1,1]]),tensor([[1,0,1],[0,0,1],[1,1,0]])
    same(F1ScoreMulti(average='micro')(p, y), 8/11)
    same(AccuracyMulti(average=None)(p, y), [1,2/3,1/3])
    for average in ('micro','macro','weighted'): same(AccuracyMulti(average=average)(p, y), 2/3)

def test_streaming():
    m = SubsetAccuracy()
    m.accum_values(tensor([[0,1,0],[1,0,1]]), tensor([[0,1,0],[1,0,1]]))
    assert m.value==m.value==1 and m.counts.tolist()==[2,2]
    m.accum_values(tensor([[1,0,0],[0,1,0]]), tensor([[0,1,0],[0,1,0]]))
    assert m.value==m.value==0.75 and m.counts.tolist()==[3,4]
    m.reset()
    assert m.value is None
    m.accum_values(tensor([[1,0,0]]), tensor([[0,1,0]]))
    assert m.value==0

def test_half_is_not_predicted():
    scores = tensor([[0.5,0.5+1e-6],[0.,1.]])
    assert to_decisions(scores, sigmoid=False).tolist()==[[False,True],[False,True]]
    logits = torch.randn(10_000)*10
    assert torch.equal(to_decisions(logits), to_decisions(logits, 0., False))

def test_forum_numbers():
    targs = torch.zeros(2000, 20)
    targs[torch.arange(2000), torch.arange(2000)%20] = 1
    targs[:1100, 0] = 1
    zeros = torch.zeros_like(targs)
    same(accuracy_multi(zeros, targs, thresh=0.5, sigmoid=False), 1-targs.mean(), 1e-6)
    assert F1ScoreMulti()(zeros.long(), targs)==0

def test_perfect_on_mostly_unlabelled():
    y = torch.zeros(100, 6, dtype=torch.long)
    y[:5,0] = 1
    same(F1ScoreMulti(average='samples')(y, y), 0.05)
    same(F1ScoreMulti(average='samples', zero_division=math.nan)(y, y), 1)
    same(F1ScoreMulti()(y, y), 1/6)

def test_twenty_million_elements():
    m = RecallMulti(average='micro')
    ones = torch.ones(2_500_000, 1, dtype=torch.bool)
    for _ in range(8): m.accum_values(ones, ones)
    assert m.counts.flatten().tolist()==[20_000_000]*4 and m.value==1
    assert RecallMulti(average=None)(torch.ones(2**24+3, 1, dtype=torch.bool), torch.ones(2**24+3, 1, dtype=torch.bool))==[1]

@pytest.mark.parametrize('kind', [torch.float16, torch.bfloat16, torch.float64, torch.bool, torch.int64, torch.uint8, TensorImage, 'strided', 'numpy'])
def test_kinds_of_input(kind):
    logits,targs = simulate(64)
    if isinstance(kind, torch.dtype) and not kind.is_floating_point: preds,targs = (logits>0).to(kind),targs.to(kind)
    elif isinstance(kind, torch.dtype): preds = logits.to(kind)
    elif kind=='strided': preds,targs = logits.t().contiguous().t(),targs.t().contiguous().t()
    elif kind=='numpy': preds,targs = logits.numpy(),targs.numpy()
    else: preds,targs = kind(logits),kind(targs)
    wide = torch.as_tensor(preds).as_subclass(Tensor)
    ref = skm.f1_score(np.asarray(targs), (wide.float().sigmoid()>0.5 if wide.is_floating_point() else wide.bool()).numpy(), average='samples', zero_division=0)
    same(F1ScoreMulti(average='samples')(preds, targs), ref)

@pytest.mark.parametrize('n,c', [(1,1), (1,1000), (3,1000), (65,20)])
def test_odd_sizes(n, c):
    logits,targs = simulate(n, c)
    learn = make_learner(logits, targs, multilabel_metrics(), bs=16)
    for name,value in values(learn).items(): assert math.isfinite(value), name

def test_more_axes_are_samples():
    logits,targs = simulate(60)
    for a in AVERAGES:
        same(F1ScoreMulti(average=a)(logits.view(3,20,20), targs.view(3,20,20)), F1ScoreMulti(average=a)(logits, targs))

def test_one_threshold_per_label():
    logits,targs = simulate(200, 3)
    t = [0.1,0.5,0.9]
    p = (logits.sigmoid()>tensor(t)).numpy()
    for thresh in (t, tuple(t), tensor(t), np.array(t)): same(F1ScoreMulti(thresh)(logits, targs), skm.f1_score(targs, p, average='macro'))

# In a Learner

PAIRS = [(name, average) for name in ('F1ScoreMulti','PrecisionMulti','RecallMulti') for average in ('micro','macro','weighted','samples')]

def test_values_of_fastai():
    logits,targs = simulate(130, skill=4)
    weight = np.random.default_rng(0).uniform(0.5, 2, 130)
    ours,theirs = (L(getattr(o, name)(0.2, average=average, **kw) for name,average in PAIRS for kw in (dict(), dict(labels=[1,4]), dict(sample_weight=weight)))
                   for o in (sys.modules['fastai_mlmetrics.metrics'], fm))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        same([m.value for m in run(logits, targs, ours)], [m.value for m in run(logits, targs, theirs)], eps=1e-9)
    test_eq(ours[::12].attrgot('name'), ['f1_score_micro','precision_score_micro','recall_score_micro'])
    test_eq(F1ScoreMulti().name, fm.F1ScoreMulti().name)

def run(logits, targs, metrics):
    learn = make_learner(logits, targs, metrics)
    values(learn)
    return learn.metrics

def test_signatures_of_fastai():
    for name in ('F1ScoreMulti','PrecisionMulti','RecallMulti'):
        theirs = inspect.signature(getattr(fm, name)).parameters
        ours = inspect.signature(globals()[name]).parameters
        assert [(k, p.default) for k,p in theirs.items()]==[(k, p.default) for k,p in list(ours.items())[:len(theirs)]]
        assert all(p.kind==p.KEYWORD_ONLY for p in list(ours.values())[len(theirs):])
        assert issubclass(globals()[name], AccumMetric)

def test_class_not_called():
    logits,targs = simulate(40)
    assert values(make_learner(logits, targs, [F1ScoreMulti, SubsetAccuracy, accuracy_multi])).keys()=={'f1_score','subset_accuracy','accuracy_multi'}

def test_no_two_columns_of_one_name():
    names = [cls(average=a).name for cls in (*REFERENCE, AccuracyMulti, ZerosAccuracy) for a in AVERAGES]
    assert len(set(names))==len(names)
    names = multilabel_metrics().attrgot('name')
    test_eq(names, 'accuracy_multi zeros_accuracy empty_rate f1_macro f1_micro f1_samples f1_weighted precision_samples recall_samples'.split())

def test_labels_by_name():
    logits,targs = simulate(60, 3)
    for vocab in (L('cat','dog','eel'), [L('the','a'), L('cat','dog','eel')]):
        assert values(make_learner(logits, targs, F1ScoreMulti(labels=['eel','cat']), vocab=vocab))['f1_score']==F1ScoreMulti(labels=[2,0])(logits, targs)
    with pytest.raises(ValueError, match="'cow' is not in the vocab"): values(make_learner(logits, targs, F1ScoreMulti(labels=['cow']), vocab=L('cat','dog','eel')))
    with pytest.raises(ValueError, match='pass its index'): F1ScoreMulti(labels=['cat'])(logits, targs)
    with pytest.raises(ValueError, match='label 3 is not one of the 3'): F1ScoreMulti(labels=[3])(logits, targs)

# Bad input

def test_bad_arguments():
    with pytest.raises(ValueError, match="average='makro'.*'micro', 'macro', 'weighted', 'samples', None"): F1ScoreMulti(average='makro')
    with pytest.raises(ValueError, match="SubsetAccuracy has no average='macro'.*'samples'"): SubsetAccuracy(average='macro')
    with pytest.raises(ValueError, match='thresh=-1.*sigmoid=False'): F1ScoreMulti(thresh=-1)
    with pytest.raises(ValueError, match='sum above 0'): F1ScoreMulti(sample_weight=[0,0])
    with pytest.warns(UserWarning, match='pos_label=0'): F1ScoreMulti(pos_label=0)

@pytest.mark.parametrize('p,y,match', [((3,2), (2,3), r'\(3, 2\).*\(2, 3\)'), ((3,2), (3,), r'\(3, 2\).*\(3,\)'), ((4,), (3,), r'\(4,\).*\(3,\)')])
def test_shapes_that_differ(p, y, match):
    for f in (F1ScoreMulti(), accuracy_multi, categorical_accuracy):
        with pytest.raises(ValueError, match=match): f(torch.zeros(p), torch.zeros(y))

def test_column_and_vector():
    p,y = torch.randn(30),(torch.rand(30)<0.5).float()
    for a,b in ((p[:,None],y), (p,y[:,None]), (p[:,None],y[:,None])): assert F1ScoreMulti()(a, b)==F1ScoreMulti()(p, y)

def test_thresholds_of_another_length():
    with pytest.raises(ValueError, match='thresh has 2 values.*3 labels'): F1ScoreMulti([0.1,0.2])(torch.randn(4,3), torch.zeros(4,3))

@pytest.mark.parametrize('bad', [2., 0.5, -1., math.nan])
def test_targets_other_than_0_and_1(bad):
    logits,targs = simulate(50)
    targs[17,3] = bad
    with pytest.raises(ValueError, match=f'one is {bad:.3g}'): F1ScoreMulti()(logits, targs)
    with pytest.raises(ValueError, match=f'one is {bad:.3g}'): values(make_learner(logits, targs, F1ScoreMulti()))

def test_soft_targets_while_training():
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=MixUp())
    learn.recorder.train_metrics = True
    with pytest.warns(UserWarning, match='targets must be 0 or 1') as said, learn.no_logging(): learn.fit(1, 0.)
    assert len(said)==1
    row = learn.recorder.values[-1]
    assert np.isnan(row[1:10]).all() and np.isfinite(row[11:]).all()

def test_nan_predictions():
    logits,targs = simulate(50)
    logits[[3,9],5] = math.nan
    with pytest.warns(UserWarning, match='NaN in 2 samples') as said: v = values(make_learner(logits, targs, multilabel_metrics()))
    assert len(said)==1 and all(map(math.isnan, v.values()))
    assert not math.isnan(F1ScoreMulti(ignore_index=-1)(logits, torch.where(logits.isnan(), -1, targs)))

def test_probabilities_taken_for_logits():
    logits,targs = simulate(50)
    with pytest.warns(UserWarning, match='probabilities already: pass sigmoid=False') as said: values(make_learner(logits.sigmoid(), targs, multilabel_metrics()))
    assert len(said)==1

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
    with pytest.raises(ValueError, match='49 values.*50 samples'): values(make_learner(logits, targs, F1ScoreMulti(sample_weight=np.ones(49))))
    with pytest.raises(ValueError, match='51 values.*50 samples'): values(make_learner(logits, targs, F1ScoreMulti(sample_weight=np.ones(51))))
    learn = make_learner(logits, targs, F1ScoreMulti(sample_weight=np.ones(50)))
    with pytest.raises(ValueError, match='shuffled'), learn.no_logging(): learn.validate(0)

# Sharing

@pytest.fixture
def counted(monkeypatch):
    "The batches that were thresholded"
    made = []
    class Counting(sys.modules['fastai_mlmetrics.counts'].Batch):
        def __init__(self, *a, **k): made.append(self); super().__init__(*a, **k)
    monkeypatch.setattr('fastai_mlmetrics.counts.Batch', Counting)
    return made

def test_each_batch_is_counted_once_per_rule(counted):
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, multilabel_metrics()+[AccuracyMulti(), SubsetAccuracy()], cbs=ZeroLabelsCallback())
    values(learn); assert len(counted)==4
    values(learn); assert len(counted)==8
    learn.metrics += multilabel_metrics(thresh=0.2)
    values(learn); assert len(counted)==16

class OneBuffer(Module):
    "So fast that it writes all its outputs into one piece of memory, and returns one and the same tensor"
    def __init__(self): self.w,self.out = nn.Parameter(torch.zeros(1)),{}
    def forward(self, x):
        out = self.out.setdefault(len(x), torch.empty_like(x))
        out.copy_(x.detach())
        return out

@pytest.mark.parametrize('bs', [16, 64])
def test_reused_memory_is_not_taken_for_the_same_batch(bs):
    logits,targs = simulate(50)
    a = make_learner(logits, targs, multilabel_metrics(), OneBuffer(), bs=bs)
    first = values(a)
    assert first==values(make_learner(logits, targs, multilabel_metrics()))
    a.dls.loaders[1] = make_learner(logits.roll(1, 0), targs, bs=bs).dls.valid
    test_eq(values(a), values(make_learner(logits.roll(1, 0), targs, multilabel_metrics())))
    a.dls.loaders[1] = make_learner(logits, targs, bs=bs).dls.valid
    test_eq(values(a), first)

def test_metric_objects_in_two_learners_and_clones():
    (logits,targs),(other,others) = simulate(50),simulate(70, seed=1)
    metrics = multilabel_metrics()
    a,b = make_learner(logits, targs, metrics),make_learner(other, others, metrics)
    va,vb = values(a),values(b)
    assert va!=vb
    test_eq(values(a), va); test_eq(values(b), vb); test_eq(values(deepcopy(a)), va)
    with a.no_logging(): test_eq(dict(zip(va, a.validate(dl=b.dls.valid)[1:])), vb)
    test_eq(values(pickle.loads(pickle.dumps(a))), va)

def test_a_call_in_between_disturbs_no_sibling():
    logits,targs = simulate(50)
    a,b = F1ScoreMulti(),F1ScoreMulti(average='micro')
    class Between(Callback):
        order = 55
        def after_batch(self): between(logits[:3], targs[:3])
    between = F1ScoreMulti(average='samples')
    learn = make_learner(logits, targs, [a,b], cbs=Between())
    test_eq(values(learn), {'f1_score': F1ScoreMulti()(logits, targs), 'f1_score_micro': F1ScoreMulti(average='micro')(logits, targs)})

def test_interrupted_validation_leaves_nothing():
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, multilabel_metrics())
    ref = values(learn)
    class Stop(Callback):
        def after_pred(self):
            if self.iter==2: raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), learn.no_logging(): learn.validate(cbs=Stop())
    test_eq(values(learn), ref)

def test_train_metrics_are_apart():
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, multilabel_metrics())
    ref = values(learn)
    learn.recorder.train_metrics = True
    with learn.no_logging(): learn.fit(1, 0.)
    row = learn.recorder.values[-1]
    test_close(row[1:10], list(ref.values())); test_close(row[11:], list(ref.values()))

def test_nothing_of_a_batch_is_kept():
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, multilabel_metrics())
    values(learn)
    gc.collect()
    counts = sys.modules['fastai_mlmetrics.counts']
    assert not counts._current[learn]
    stored = sum(o.numel() for m in learn.metrics for o in vars(m).values() if isinstance(o, Tensor))
    assert stored <= len(learn.metrics)*(4*20+5) and not any(m._pending for m in learn.metrics)
    assert len(pickle.dumps(learn.metrics[3])) < 5000

def test_a_metric_of_ones_own():
    class HitRate(SampleMetric):
        "Share of the samples with at least one right label"
        def formula(self, tp, pred, true, n): return tp>0
    logits,targs = simulate(50)
    same(values(make_learner(logits, targs, HitRate))['hit_rate'], ((logits>0)&(targs>0)).any(1).float().mean(), 1e-7)

def test_monitoring_by_name(tmp_path):
    logits,targs = simulate(64)
    learn = make_learner(logits, targs, F1ScoreMulti(), path=tmp_path)
    with learn.no_logging(): learn.fit(1, 0., cbs=SaveModelCallback(monitor='f1_score'))
    assert (tmp_path/'models/model.pth').exists()

def test_nothing_accumulated():
    for m in (F1ScoreMulti(), SubsetAccuracy()):
        assert m.value is None and m(torch.zeros(0,3), torch.zeros(0,3)) is None
    assert accuracy_multi(torch.zeros(0,3), torch.zeros(0,3)).isnan()
