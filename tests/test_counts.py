"Confusion counts: exact with weights, in any surroundings, and shared by metrics"
from fractions import Fraction
from hypothesis import given
from conftest import *

FORMULAS = {
    AccuracyMulti: lambda tp,fp,fn,tn: (tp+tn, tp+fp+fn+tn),
    HammingLossMulti: lambda tp,fp,fn,tn: (fp+fn, tp+fp+fn+tn),
    PrecisionMulti: lambda tp,fp,fn,tn: (tp, tp+fp), RecallMulti: lambda tp,fp,fn,tn: (tp, tp+fn),
    F1ScoreMulti: lambda tp,fp,fn,tn: (2*tp, 2*tp+fp+fn), JaccardMulti: lambda tp,fp,fn,tn: (tp, tp+fp+fn),
    SpecificityMulti: lambda tp,fp,fn,tn: (tn, tn+fp), ZerosAccuracy: lambda tp,fp,fn,tn: (fp+tn, tp+fp+fn+tn),
    SubsetAccuracy: lambda tp,fp,fn,tn: (fp+fn==0, 1), EmptyRate: lambda tp,fp,fn,tn: (tp+fp==0, 1),
    LabelCardinality: lambda tp,fp,fn,tn: (tp+fp, 1), AccuracyLift: lambda tp,fp,fn,tn: (tp-fp, tp+fn)}

def balanced(tp, fp, fn, tn):
    both = [a/b for a,b in ((tp,tp+fn), (tn,tn+fp)) if b]
    return (sum(both), len(both))

def matthews(tp, fp, fn, tn):
    if not (tp+fn and tn+fp): return 0,0
    root = math.sqrt((tp+fp)*(tp+fn)*(tn+fp)*(tn+fn))
    return (float(tp*tn-fp*fn), root) if root else (0,1)

ALL = {**FORMULAS, BalancedAccuracyMulti: balanced, MatthewsCorrCoefMulti: matthews}

def exact(formula, average, cells, weights, zero_division):
    "A metric from exact counts of each label, or of each sample for the average over samples"
    def value(c):
        if not sum(c): return math.nan # Nothing counts
        a,b = formula(*c)
        return float(a/b) if b else zero_division
    if average=='micro': return value([*map(sum, zip(*cells))])
    values = [*map(value, cells)]
    if average is None: return values
    if average=='macro': weights = [1]*len(values)
    if average=='weighted': weights = [tp+fn for tp,_,fn,_ in cells]
    kept = [(v,w) for v,w in zip(values, weights) if not math.isnan(v)]
    if average=='weighted' and not sum(w for _,w in kept): kept = [(v,1) for v,_ in kept]
    total = sum(w for _,w in kept)
    return float(sum(Fraction(v)*w for v,w in kept)/total) if total else math.nan

@given(st.data())
def test_exact_fractions(data):
    "All metrics with weights, ignored elements and random batches"
    p,y = data.draw(binary_pairs())
    n,c = p.shape
    w = data.draw(arrays(np.float64, n, elements=st.sampled_from([0.1,0.3,0.7,1.,2.5,0.])))
    if not w.any(): w[0] = 0.3
    targs = np.where(data.draw(arrays(bool, y.shape, elements=st.booleans(), fill=st.just(True))), y, -1)
    cuts = sorted(data.draw(st.sets(st.integers(1, n), max_size=3)) | {0,n})
    weighted,zero_division = data.draw(st.booleans()),data.draw(st.sampled_from([0.,1.,math.nan]))
    ws = [Fraction(float(o)) if weighted else Fraction(1) for o in w]
    def cells(rows, cols, weights):
        def cell(a, b):
            return sum((weights[i] for i in rows for j in cols if p[i,j]==a and targs[i,j]==b), Fraction(0))
        return [cell(1,1), cell(1,0), cell(0,1), cell(0,0)]
    of_labels = [cells(range(n), [j], ws) for j in range(c)]
    of_samples = [cells([i], range(c), [Fraction(1)]*n) for i in range(n)]
    for cls,formula in ALL.items():
        for average in cls.averages:
            kw = dict(sample_weight=w) if weighted else {}
            m = cls(average=average, ignore_index=-1, zero_division=zero_division, **kw)
            loop = SimpleNamespace()
            for loop.iter,(a,b) in enumerate(zip(cuts, cuts[1:])):
                loop.pred,loop.yb = tensor(p[a:b]),(tensor(targs[a:b]),)
                m.accumulate(loop)
            expected = exact(formula, average, of_samples if average=='samples' else of_labels, ws, zero_division)
            assert m.value==pytest.approx(expected, abs=1e-12, nan_ok=True), (cls, average)

def test_a_weighted_count_is_zero_only_if_nothing_is_counted():
    "Ignored elements and several batches: the specificity of a label that is true wherever it counts is 0/0"
    w = np.array([0.1,0.2,0.3,0.7,0.1])
    targs = tensor([[1.,0],[1,1],[-1,0],[1,1],[1,0]])
    m = SpecificityMulti(average=None, sample_weight=w, ignore_index=-1, zero_division=math.nan)
    loop = SimpleNamespace()
    for loop.iter,i in enumerate((0,2,4)):
        loop.pred,loop.yb = torch.randn(2, 2)[:len(targs[i:i+2])],(targs[i:i+2],)
        m.accumulate(loop)
    assert math.isnan(m.value[0]) and not math.isnan(m.value[1])

def everything(logits, targs):
    "Values of all kinds of metrics and functions"
    metrics = [*multilabel_metrics(full=True, ranking=True), *multilabel_metrics(ranking=True, bins=64),
               RecallMulti(average='micro'), BrierScoreMulti(), BrierScoreMulti(average='samples'),
               ExpectedCalibrationError(), MatthewsCorrCoefMulti(), PrecisionAtK(2)]
    res = [m(logits, targs) for m in metrics]
    loop = SimpleNamespace()
    for loop.iter,(loop.pred,y) in enumerate(zip(logits.split(300), targs.split(300))):
        loop.yb = (y,)
        for m in metrics: m.accumulate(loop)
    probs = logits.sigmoid()
    return [*res, *(m.value for m in metrics), best_thresholds(probs, targs, average='macro').table.values.tolist(),
            best_thresholds(probs, targs, average='samples').thresh, accuracy_report(probs, targs).values.tolist(),
            [*judge(probs, targs).values()], MultiLabelInterpretation.from_preds(probs, targs).report().values.tolist(),
            label_stats(targs).values.tolist(), pos_weight(targs).tolist(), accuracy_multi(logits, targs).item()]

@pytest.fixture
def plain():
    logits,targs = simulate(1500, 12, density=0.3, skill=2., bias=-1.)
    return logits,targs,everything(logits, targs)

@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_autocast_changes_nothing(plain, dtype):
    logits,targs,expected = plain
    with torch.autocast('cpu', dtype): assert_same(everything(logits, targs), expected)

@pytest.mark.parametrize('dtype', [torch.float64, torch.float16])
def test_the_default_dtype_changes_nothing(plain, dtype):
    logits,targs,expected = plain
    torch.set_default_dtype(dtype)
    try: assert_same(everything(logits, targs), expected)
    finally: torch.set_default_dtype(torch.float32)

def test_the_default_device_changes_nothing(plain):
    logits,targs,expected = plain
    with torch.device('meta'): assert_same(everything(logits, targs), expected)

@pytest.mark.parametrize('threads', [1, 2, 3])
def test_the_number_of_threads_changes_nothing(threads):
    logits,targs = simulate(40_000, 30)
    n = torch.get_num_threads()
    def found():
        ms = *multilabel_metrics(full=True, ranking=True),BrierScoreMulti(average='samples'),BrierScoreMulti()
        best = (best_thresholds(logits, targs, average=a, cv=2) for a in ('micro','samples'))
        return [m(logits, targs) for m in ms] + [o.table.values.tolist() for o in best]
    expected = found()
    torch.set_num_threads(threads)
    try:
        assert_same(found(), expected)
        assert torch.get_num_threads()==threads
    finally: torch.set_num_threads(n)

def assert_same(a, b):
    def plain(o): return repr(o.tolist() if hasattr(o, 'tolist') else o)
    for i,(x,y) in enumerate(zip(a, b)): assert plain(x)==plain(y), i
    assert len(a)==len(b)

def test_recall_under_autocast():
    "A product with ones in bfloat16 makes 12,352 of 12,345"
    targs = torch.zeros(20_000, 80)
    targs.view(-1)[:12_345] = 1
    with torch.autocast('cpu', torch.bfloat16):
        m = RecallMulti(average='micro')
        assert m(4*targs-2, targs)==1 and m.counts.sum(1).tolist()==[12_345,0,0,20_000*80-12_345]

def test_a_function_among_the_metrics_does_not_break_the_sharing(monkeypatch):
    made = []
    class Counting(Batch):
        @property
        def predicted(self):
            made.append(self.n)
            return super().predicted
    logits,targs = simulate(64)
    metrics = [F1ScoreMulti(), accuracy_multi, EmptyRate(), subset_accuracy, F1ScoreMulti(average='micro')]
    learn = make_learner(logits, targs, metrics)
    monkeypatch.setattr('fastai_mlmetrics.counts.Batch', Counting)
    v = values(learn)
    assert made==[64] # The classes; functions count for themselves
    assert v['f1_score']==F1ScoreMulti()(logits, targs)
    assert v['accuracy_multi']==pytest.approx(accuracy_multi(logits, targs).item())

@pytest.mark.parametrize('mean', [-12, 0, 14])
def test_thresholds_that_are_scores(mean):
    "Logits and their sigmoids give the same predictions, also where the threshold is exactly a score"
    logits,targs = simulate(3000, 20, density=0.3, skill=1., bias=mean)
    scores = logits.sigmoid()
    for t in scores.flatten()[::3000].tolist():
        assert F1ScoreMulti(t)(logits, targs)==F1ScoreMulti(t, sigmoid=False)(scores, targs)
