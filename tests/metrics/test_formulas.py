"Values of metrics and averages, compared with scikit-learn, torchmetrics and fastai on the same predictions"
import fastai.metrics as fm, sklearn.metrics as skm
import torchmetrics.functional.classification as tm
from helpers import *
from reference import *

def weights(n): return st.none() | arrays(float, n, elements=st.floats(0.125, 4))

def named(cls): return getattr(cls, 'func', cls).__name__ + ''.join(map(str, getattr(cls, 'args', ())))

every_class = pytest.mark.parametrize('cls', BINARY, ids=named)
KINDS = [np.int64, bool, np.uint8, torch.float32, torch.float64, torch.float16, torch.bfloat16, 'strided', TensorBase]

def as_input(p, kind):
    "Binary predictions as `kind`: the same values, or logits"
    if kind in KINDS[:3]: return p.astype(kind)
    logits = torch.from_numpy(6.*p-3)*100 # with sigmoids of 0 and 1
    if kind=='strided': return torch.stack([logits]*2, -1).float()[...,0]
    return TensorBase(logits) if kind is TensorBase else logits.to(kind)

@every_class
@given(binary_pairs(), st.sampled_from([0., 1., np.nan]), st.sampled_from(KINDS), st.integers(1, 12), st.data())
def test_values_are_scikit_learn_s(cls, pair, zero_division, kind, bs, data):
    p,y = pair
    labels = data.draw(st.none() | st.lists(st.integers(0, p.shape[1]-1), min_size=1, unique=True))
    weight = data.draw(weights(len(p)))
    kw = dict(labels=labels, zero_division=zero_division, sample_weight=weight)
    preds = as_input(p, kind)
    with warnings_as('ignore'):
        for average in averages(cls):
            m,ref = cls(average=average, **kw),reference(cls, y, p, average, **kw)
            for i in range(0, len(p), bs): m.accum_values(preds[i:i+bs], y[i:i+bs])
            same(m.value, ref, of=average)
            same(m(preds, y), ref, of=average)

@given(binary_pairs())
def test_lift_is_the_gain_over_zeros(pair):
    p,y = pair
    acc,zeros = (p==y).mean(),(y==0).mean()
    same(AccuracyLift()(p, y), (acc-zeros)/(1-zeros) if zeros<1 else np.nan)
    of_labels = [(a-z)/(1-z) if z<1 else np.nan for a,z in zip((p==y).mean(0), (y==0).mean(0))]
    same(AccuracyLift(average=None)(p, y), of_labels)
    if p.sum()==y.sum()>0: same(AccuracyLift()(p, y), 2*skm.f1_score(y, p, average='micro')-1)

@given(binary_pairs(), st.data())
def test_accuracies_agree(pair, data):
    p,y = pair
    weight = data.draw(weights(len(p)))
    micro,macro,samples = (AccuracyMulti(average=a, sample_weight=weight)(p, y) for a in ('micro','macro','samples'))
    same(micro, macro)
    same(micro, samples)

@pytest.mark.parametrize('cls', [cls for cls in BINARY if 'macro' in averages(cls)], ids=named)
@given(binary_pairs(1, 1), st.sampled_from([0., 1.]))
def test_single_label_is_binary(cls, pair, zero_division):
    p,y = pair
    ref = BINARY[cls](y[:,0], p[:,0], None, zero_division)
    for average in ('micro','macro','weighted'):
        same(cls(average=average, zero_division=zero_division)(p[:,0], y), ref, of=average)

@given(arrays(np.float32, (7,3), elements=st.floats(0, 1, width=32)),
       arrays(np.int64, (7,3), elements=st.integers(0, 1)))
def test_brier_score_is_the_mean_squared_error(scores, y):
    scores = scores.astype(float)
    same(BrierScoreMulti(sigmoid=False)(scores, y), skm.mean_squared_error(y, scores))
    of_labels = [skm.brier_score_loss(a, b, pos_label=1) for a,b in zip(y.T, scores.T)]
    same(BrierScoreMulti(sigmoid=False, average=None)(scores, y), of_labels)
    ignored = (scores>0.5) & (y==1)
    expected = ((scores-y)**2)[~ignored].mean() if not ignored.all() else np.nan
    same(BrierScoreMulti(sigmoid=False, ignore_index=-1)(scores, np.where(ignored, -1, y)), expected)

# torchmetrics also has strict thresholds and `ignore_index`, but no samples average
TORCHMETRICS = {
    PrecisionMulti:         tm.multilabel_precision,
    RecallMulti:            tm.multilabel_recall,
    F1ScoreMulti:           tm.multilabel_f1_score,
    partial(FBetaMulti, 2): lambda *a, **k: tm.multilabel_fbeta_score(a[0], a[1], 2., *a[2:], **k),
    JaccardMulti:           tm.multilabel_jaccard_index,
    SpecificityMulti:       tm.multilabel_specificity,
    AccuracyMulti:          tm.multilabel_accuracy,
    HammingLossMulti:       tm.multilabel_hamming_distance}

@pytest.mark.parametrize('ignore', [None, -1])
@pytest.mark.parametrize('thresh', [0.5, 0.2])
def test_values_are_torchmetrics_s(thresh, ignore):
    torch.manual_seed(0)
    p = torch.rand(200,7).round(decimals=1)
    y = (torch.rand(200,7)<torch.linspace(0.02, 0.9, 7)).long()
    if ignore: y[torch.rand(200,7)<0.2] = ignore
    kw = dict(threshold=thresh, ignore_index=ignore)
    def ours(cls, **kwargs): return cls(thresh=thresh, sigmoid=False, ignore_index=ignore, **kwargs)(p, y)
    for cls,f in TORCHMETRICS.items():
        for average in ('micro','macro','weighted',None):
            same(ours(cls, average=average), f(p, y, 7, average=average, **kw), eps=1e-6)
    same(ours(MatthewsCorrCoefMulti, average='micro'), tm.multilabel_matthews_corrcoef(p, y, 7, **kw), eps=1e-6)
    if not ignore: same(ours(SubsetAccuracy), tm.multilabel_exact_match(p, y, 7, threshold=thresh), eps=1e-6)

def test_accuracies_are_their_definitions():
    logits,targs = simulate(250)
    p = logits>0
    same(accuracy_multi(logits, targs), (p==targs).float().mean(), 1e-6)
    same(subset_accuracy(logits, targs), (p==targs).all(1).float().mean(), 1e-6)
    same(categorical_accuracy(logits, targs), (logits.argmax(1)==targs.argmax(1)).float().mean(), 1e-6)
    same(empty_rate(logits, targs), (~p.any(1)).float().mean(), 1e-6)
    same(zeros_accuracy(logits, targs), 1-targs.mean(), 1e-6)

def test_known_answers_of_three_by_three():
    y,p = tensor([[1,0,1],[0,1,0],[1,1,1]]),tensor([[1,0,1],[0,0,1],[1,1,0]])
    same(F1ScoreMulti(average='micro')(p, y), 8/11)
    same(AccuracyMulti(average=None)(p, y), [1,2/3,1/3])
    for average in ('micro','macro','weighted'): same(AccuracyMulti(average=average)(p, y), 2/3)

def test_zeros_have_a_high_accuracy_and_no_f1():
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

# fastai's metrics, and their arguments before `thresh`
OF_FASTAI = {
    'PrecisionMulti': (), 'RecallMulti': (), 'F1ScoreMulti': (), 'FBetaMulti': (0.5,), 'JaccardMulti': (),
    'HammingLossMulti': (), 'MatthewsCorrCoefMulti': (), 'BrierScoreMulti': ()}
RANKING = 'APScoreMulti','RocAucMulti'
OF_SEGMENTATION = {'DiceMulti', 'JaccardCoeffMulti'}
OURS = sys.modules['fastai_mlmetrics.all']

def test_every_metric_of_fastai_has_a_twin():
    assert {o for o in fm.__all__ if o.endswith('Multi')} == {*OF_FASTAI, *RANKING, *OF_SEGMENTATION}

@pytest.mark.parametrize('name', [*OF_FASTAI, *RANKING])
def test_signatures_begin_with_fastai_s(name):
    theirs,ours = (inspect.signature(getattr(o, name)).parameters for o in (fm, OURS))
    first_ = list(ours.items())[:len(theirs)]
    assert [(k, p.default) for k,p in theirs.items()]==[(k, p.default) for k,p in first_]
    assert all(p.kind==p.KEYWORD_ONLY for p in list(ours.values())[len(theirs):])
    assert issubclass(globals()[name], AccumMetric)
    ours,theirs = (getattr(o, name)(*OF_FASTAI.get(name, ())).name for o in (OURS, fm))
    test_eq(ours, theirs+''.join(f'_{o}' for o in OF_FASTAI.get(name, ()))) # beta

def run(logits, targs, metrics, **kwargs):
    learn = make_learner(logits, targs, metrics, **kwargs)
    values(learn)
    return [m.value for m in learn.metrics]

@pytest.mark.parametrize('name', [o for o in OF_FASTAI if o not in ('MatthewsCorrCoefMulti','BrierScoreMulti')])
def test_values_are_fastai_s(name):
    logits,targs = simulate(130, skill=4)
    weight,labels = np.random.default_rng(0).uniform(0.5, 2, 130),[1,4]
    calls = [((0.2,), {}), ((), dict(thresh=0.7)), ((0.2, True), dict(sample_weight=weight))]
    if name!='HammingLossMulti': # fastai's ignores `labels`
        calls += [((0.2, True, labels), {}), ((0.2, True, None, 1, 'samples', weight), {})]
        calls += [((), dict(thresh=0.2, average=a)) for a in ('micro','macro','weighted','samples')]
    ours,theirs = ([getattr(o, name)(*OF_FASTAI[name], *a, **k) for a,k in calls] for o in (OURS, fm))
    with warnings_as('ignore'):
        same(run(logits, targs, ours), run(logits, targs, theirs), eps=1e-9)
        probs = logits.sigmoid()
        ours,theirs = ([getattr(o, name)(*OF_FASTAI[name], 0.3, False)] for o in (OURS, fm))
        kw = dict(loss_func=BCELossFlat())
        same(run(probs, targs, ours, **kw), run(probs, targs, theirs, **kw), eps=1e-9)

def test_what_fastai_cannot():
    logits,targs = simulate(50)
    with warnings_as('ignore'):
        for o in (fm.MatthewsCorrCoefMulti(), fm.F1ScoreMulti(thresh=0., sigmoid=False)):
            with pytest.raises(ValueError): run(logits, targs, [o])
    y,p = targs.long().numpy(),(logits>0).long().numpy()
    metrics = [MatthewsCorrCoefMulti(), MatthewsCorrCoefMulti(average='micro'),
               F1ScoreMulti(thresh=0., sigmoid=False)]
    same(run(logits, targs, metrics), [
        np.mean([skm.matthews_corrcoef(a, b) for a,b in zip(y.T, p.T)]),
        skm.matthews_corrcoef(y.ravel(), p.ravel()),
        skm.f1_score(y, p, average='macro')])
    same(run(logits, targs, [BrierScoreMulti()]), [((logits.sigmoid()-targs)**2).double().mean()], 1e-7)
    labels = [1,4]
    same(run(logits, targs, [HammingLossMulti(labels=labels)]), [skm.hamming_loss(y[:,labels], p[:,labels])])

def test_any_beta_from_0_to_infinity():
    p,y = tensor([[1,1,0],[0,1,1]]),tensor([[1,0,0],[0,1,0]])
    same(FBetaMulti(math.inf)(p, y), skm.fbeta_score(y, p, beta=np.inf, average='macro', zero_division=0))
    for beta in (-1, math.nan):
        with pytest.raises(ValueError, match='beta'): FBetaMulti(beta)

def test_a_brier_score_of_logits_is_an_error():
    logits,targs = simulate(20)
    with pytest.raises(ValueError, match='logits.*sigmoid=True'): BrierScoreMulti(sigmoid=False)(logits, targs)

def test_a_metric_of_ones_own_is_a_formula():
    class HitRate(SampleMetric):
        "Share of the samples with at least one true positive"
        def formula(self, tp, fp, fn, tn): return tp>0
    logits,targs = simulate(50)
    expected = ((logits>0)&(targs>0)).any(1).float().mean()
    same(values(make_learner(logits, targs, HitRate))['hit_rate'], expected, 1e-7)

def test_nan_has_no_value():
    p,y = torch.rand(30, 4),torch.eye(4)[torch.arange(30)%4]
    p[3] = math.nan
    assert math.isnan(categorical_accuracy(p, y)) and not math.isnan(categorical_accuracy(p[4:], y[4:]))
    with pytest.warns(UserWarning, match='NaN'): assert math.isnan(ZerosAccuracy()(p, y))

def test_accuracy_of_zeros_asks_nothing_of_the_scores():
    y = torch.eye(4)
    with warnings_as('error', UserWarning):
        for p in (torch.rand(4, 4), torch.randn(4, 4)):
            for sigmoid in (True,False): test_eq(zeros_accuracy(p, y, sigmoid=sigmoid), 0.75)

@pytest.mark.parametrize('turn', [Tensor.bool, Tensor.int])
def test_categorical_accuracy_takes_decisions(turn):
    logits,targs = simulate(50, 4, density=0.3)
    test_eq(categorical_accuracy(turn(logits>0), turn(targs)), categorical_accuracy((logits>0).float(), targs))

def test_losses_are_known_as_such():
    losses = [BrierScoreMulti(), HammingLossMulti(), CoverageError(), LabelRankingLoss(), OneError(),
              ExpectedCalibrationError()]
    low = {EmptyRate, *map(type, losses)}
    for o in multilabel_metrics(full=True, ranking=True) + losses + [SubsetAccuracy()]:
        assert o.is_loss==(type(o) in low), o

def test_f_beta_has_beta_in_its_name():
    found = [FBetaMulti(o, average=a).name for o,a in ((0.5,'macro'), (2,'macro'), (2.,'micro'))]
    test_eq(found, ['fbeta_score_0.5','fbeta_score_2','fbeta_score_2_micro'])

@pytest.mark.parametrize('cls,text', [
    *((c, "Always 'samples': mean over samples") for c in (
        LRAP, CoverageError, LabelRankingLoss, OneError, PrecisionAtK, RecallAtK, SubsetAccuracy, EmptyRate)),
    (CF1, "Always 'macro': mean over labels"),
    *((c, "'micro': all sample-label pairs together; 'macro': mean over labels; 'weighted': mean over labels, weighted "
          "by their positives; None: one value per label") for c in (BalancedAccuracyMulti, MatthewsCorrCoefMulti)),
    *((c, "'micro': all sample-label pairs together; 'macro': mean over labels; 'weighted': mean over labels, weighted "
          "by their positives; 'samples': mean over samples; None: one value per label")
      for c in (F1ScoreMulti, AccuracyMulti, APScoreMulti, BrierScoreMulti)),
    (AccuracyLift, "'micro': all sample-label pairs together; None: one value per label")])
def test_help_explains_the_averages_of_the_class(cls, text):
    line, = re.findall(r'(?m)^  average: (.*)', cls.__doc__)
    test_eq(line, text)
    for o in cls.averages: assert repr(o) in line
