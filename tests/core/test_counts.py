"Confusion counts: exact, with weights and ignored targets; values that are checked"
from fractions import Fraction
from helpers import *
from reference import *
from fastai_mlmetrics.core.counts import (
    at_frequencies, Batch, cells, check_frequencies, check_values, join_checks, sum_and_weight, value_checks)

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

@pytest.mark.slow
@given(st.data())
def test_values_are_exact_fractions(data):
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

def test_recall_is_exact_under_autocast():
    "A product with ones in bfloat16 makes 12,352 of 12,345"
    targs = torch.zeros(20_000, 80)
    targs.view(-1)[:12_345] = 1
    with torch.autocast('cpu', torch.bfloat16):
        m = RecallMulti(average='micro')
        assert m(4*targs-2, targs)==1 and m.counts.sum(1).tolist()==[12_345,0,0,20_000*80-12_345]

@pytest.mark.parametrize('mean', [-12, 0, 14])
def test_logits_and_their_sigmoids_decide_alike(mean):
    "Logits and their sigmoids give the same predictions, also where the threshold is exactly a score"
    logits,targs = simulate(3000, 20, density=0.3, skill=1., bias=mean)
    scores = logits.sigmoid()
    for t in scores.flatten()[::3000].tolist():
        assert F1ScoreMulti(t)(logits, targs)==F1ScoreMulti(t, sigmoid=False)(scores, targs)

@pytest.mark.parametrize('n,c', [(10,20), (500,80), (1500,200), (3000,200)])
@pytest.mark.parametrize('ignore', [None, -1])
def test_batches_of_any_size_are_counted_alike(n, c, ignore):
    "Each size of batch is counted in another way"
    logits,targs = simulate(n, c)
    if ignore: targs[torch.rand(n, c, generator=torch.Generator().manual_seed(0))<0.2] = ignore
    p,y,valid = (logits>0).numpy(),(targs==1).numpy(),(targs!=-1).numpy()
    cells = [o&valid for o in (p&y, p&~y, ~p&y, ~p&~y)]
    expected = [o.sum(0) for o in cells]
    m = F1ScoreMulti(average=None, ignore_index=ignore)
    f1 = [2*tp/(2*tp+fp+fn) if tp+fp+fn else 0 for tp,fp,fn,_ in zip(*expected)]
    same(m(logits, targs), f1)
    test_eq(m.counts, tensor(np.array(expected)))
    f1 = [2*tp/(2*tp+fp+fn) if tp+fp+fn else 0 for tp,fp,fn,_ in zip(*(o.sum(1) for o in cells))]
    same(F1ScoreMulti(average='samples', ignore_index=ignore)(logits, targs), np.mean(f1))
    weight = np.arange(n)%3+1.
    m = F1ScoreMulti(average='samples', ignore_index=ignore, sample_weight=weight)
    same(m(logits, targs), np.average(f1, weights=weight))

def test_no_value_depends_on_the_number_of_threads():
    n,found = torch.get_num_threads(),[]
    try:
        for threads in (1,3):
            torch.set_num_threads(threads)
            for size in (100,1000,4000):
                logits,targs = simulate(size, 80)
                test_eq(Batch(logits, targs).cached(lambda o: torch.get_num_threads()), 1)
                found.append([m(logits, targs) for m in [*multilabel_metrics(full=True), BrierScoreMulti()]])
            assert torch.get_num_threads()==threads
    finally: torch.set_num_threads(n)
    test_eq(found[:3], found[3:])

@pytest.mark.slow
def test_twenty_million_elements_are_counted_exactly():
    m = RecallMulti(average='micro')
    ones = torch.ones(2_500_000, 1, dtype=torch.bool)
    for _ in range(8): m.accum_values(ones, ones)
    assert m.counts.flatten().tolist()==[20_000_000,0,0,0] and m.value==1
    halves = (torch.arange(200_000)%2)[:,None]
    same([MatthewsCorrCoefMulti()(halves, halves), MatthewsCorrCoefMulti()(1-halves, halves)], [1,-1])

# A batch

def expected_counts(p, y, valid, weight):
    "Counts of labels, weighted, and of samples, one pair after the other"
    n,c = p.shape
    labels,samples = np.zeros((4,c)),np.zeros((4,n))
    for i,j in itertools.product(range(n), range(c)):
        if not valid[i,j]: continue
        k = {(1,1): 0, (1,0): 1, (0,1): 2, (0,0): 3}[int(p[i,j]),int(y[i,j])]
        labels[k,j] += weight[i]
        samples[k,i] += 1
    return labels,samples

@pytest.mark.parametrize('columns', [None, [2,0]])
@pytest.mark.parametrize('ignored', [False, True])
@pytest.mark.parametrize('weighted', [False, True])
def test_counts_of_a_batch_are_those_of_its_pairs(weighted, ignored, columns):
    r = np.random.default_rng(0)
    scores,y = r.random((7,4)),(r.random((7,4))<0.5).astype(int)
    valid = r.random((7,4))<0.7 if ignored else np.ones((7,4), bool)
    weight = r.integers(1, 5, 10).astype(float) if weighted else np.ones(10)
    rule = ThresholdRule(0.4, sigmoid=False, ignore_index=-1 if ignored else None, labels=columns,
                         sample_weight=weight if weighted else None)
    batch = Batch(tensor(scores), tensor(np.where(valid, y, -1)), rule, start=3) # After three other samples
    kept = columns or range(4)
    expected = expected_counts(scores[:,kept]>0.4, y[:,kept], valid[:,kept], weight[3:])
    for found,o in zip(batch.counts, expected):
        assert found.dtype==torch.float64
        np.testing.assert_allclose(found, o, atol=1e-12)
    assert batch.c==len(kept) and batch.counts is batch.counts

def test_weights_that_are_missing_are_zero():
    "An error is raised when the metric is read"
    batch = Batch(torch.ones(4, 1), torch.ones(4, 1), ThresholdRule(sample_weight=[1.,2.,3.]), start=1)
    test_eq(batch.weight.tolist(), [2,3,0,0])
    test_eq(batch.counts[0].flatten().tolist(), [5,0,0,0])

def test_weights_of_a_batch_may_sum_to_zero():
    "Other batches count"
    weight = [0.,0,1,3]
    loop,preds,targs = SimpleNamespace(),tensor([[2.],[2],[2],[-2]]),torch.ones(4, 1)
    for average,expected in (('micro', 0.25), ('macro', 0.25), ('weighted', 0.25), ('samples', 0.25)):
        m = RecallMulti(average=average, sample_weight=weight)
        for loop.iter,i in enumerate((0,2)):
            loop.pred,loop.yb = preds[i:i+2],(targs[i:i+2],)
            m.accumulate(loop)
        assert m.value==expected
    values = tensor([1.,math.nan,3.])
    test_eq(sum_and_weight(values).tolist(), [4,2])
    test_eq(sum_and_weight(values, tensor([2.,5.,1.])).tolist(), [5,3])
    test_eq(sum_and_weight(values, torch.zeros(3)).tolist(), [0,0])
    test_eq(sum_and_weight(values[:0]).tolist(), [0,0])

def test_supports_that_sum_to_zero_weigh_all_labels_alike():
    m = SpecificityMulti(average='weighted')
    assert m(tensor([[2.,-2],[-2,-2]]), torch.zeros(2, 2))==0.75

@pytest.mark.slow
def test_more_samples_than_float32_can_count():
    n = 2**24+3
    ones = torch.ones(1, 1, dtype=torch.bool).expand(n, 1)
    test_eq(Batch(ones, ones).counts[0].flatten().tolist(), [n,0,0,0])

def test_four_counts_from_three_sums():
    test_eq(cells(tensor([2]), tensor([5]), tensor([3]), 10).flatten().tolist(), [2,3,1,4])

# Values that are checked: lowest prediction and target, highest ones, highest fraction of a target, samples with NaN

@pytest.mark.parametrize('preds,targs,expected', [
    ([[0.2,0.7],[0.4,0.1]], [[0,1],[1,1]], [0.1,0,0.7,1,0,0]),
    ([[True,False]], [[1,0]], [0,0,1,1,0,0]),
    ([[math.nan,math.nan],[0.5,0.1]], [[0,0.25],[-1,2]], [math.nan,-1,math.nan,2,0.25,1])])
def test_six_numbers_describe_the_values_of_a_batch(preds, targs, expected):
    same(value_checks(Batch(tensor(preds), tensor(targs))), expected, 1e-7)

def test_values_of_ignored_targets_are_not_checked():
    rule = ThresholdRule(0.5, False, ignore_index=-1)
    batch = Batch(tensor([[0.2,math.nan],[7.,0.4]]), tensor([[0,-1],[-1,1]]), rule)
    same(batch.checks, [0,0,0.4,1,0,0], 1e-7)

def test_the_numbers_of_batches_are_joined():
    checks = tensor([[0.1,0,0.7,1,0,1],[0.2,-1,0.6,2,0.5,2]])
    same(join_checks(checks), [0.1,-1,0.7,2,0.5,3], 1e-7)

ONE_HOT,SIGNS,SWAPPED = 'One-hot encode class indices, and round soft labels','pass (targs+1)/2','are they swapped?'
IGNORE = 'marks missing targets, pass ignore_index='

@pytest.mark.parametrize('targs,says', [
    # Of lowest and highest target, and highest fraction
    ((0,2,0), [ONE_HOT, f'{IGNORE}2']), ((-1,1,0), [SIGNS, f'{IGNORE}-1']), ((-1,1,0.5), [f'{IGNORE}-1']),
    ((0,0.5,0.5), [ONE_HOT]), ((math.nan,)*3, [f'{IGNORE}math.nan'])], ids=str)
def test_what_to_do_about_targets_other_than_0_and_1(targs, says):
    def told(low, high, **kw):
        low_targ,high_targ,fraction = targs
        checks = [low,low_targ,high,high_targ,fraction,0.]
        if kw.get('trained'): return check_values(checks, 10, **kw)
        with pytest.raises(ValueError) as e: check_values(checks, 10, **kw)
        return str(e.value)
    for in_learner in (False,True):
        text = told(-3., 2., in_learner=in_learner)
        assert [o for o in (ONE_HOT,SIGNS,SWAPPED) if o in text]==[o for o in says if not o.startswith(IGNORE)]
        assert [o for o in says if o not in text]==[] and (IGNORE in text)==any(o.startswith(IGNORE) for o in says)
        assert ('callback and loss function' in text)==(in_learner and IGNORE in text)
    # Binary predictions, and targets that may be scores
    has_fraction = 0<targs[2]<1
    assert (SWAPPED in told(0., 1.))==has_fraction and SWAPPED not in told(0., 2.)
    text = told(0., 1., trained=True) # Of MixUp
    assert SWAPPED not in text and 'train_metrics are nan' in text

@pytest.mark.parametrize('nans,in_learner,where,is_model', [
    (1, False, 'in 1 sample', False), (2, True, 'in 2 samples', False), (5, False, 'in all samples', False),
    (5, True, 'in all samples', True)])
def test_nan_predictions_are_counted(nans, in_learner, where, is_model):
    "Of a model that predicts nothing else, the weights are blamed"
    text = check_values([math.nan,0,math.nan,1,0,nans], 5, in_learner=in_learner)
    assert f'NaN {where}, and so are the metrics' in text and ('make the model again' in text)==is_model

@pytest.mark.parametrize('low,high,bad', [(0,1,None), (-1,1,'-1'), (0,7,'7')])
def test_whole_numbers_are_0_or_1_unless_they_are_scores(low, high, bad):
    checks = [low,0,high,1,0,0]
    assert check_values(checks, 5) is None
    if bad is None: assert check_values(checks, 5, scored=False) is None
    else:
        with pytest.raises(ValueError, match=f'but one is {bad}:'): check_values(checks, 5, scored=False)

@pytest.mark.parametrize('first', [-1, math.nan])
def test_two_codes_for_missing_targets_end_in_no_circle(first):
    "Following the message works at once"
    scores,targs = torch.rand(300, 3),(torch.rand(300, 3)<0.3).float()
    targs[::7,0],targs[::5,1] = -1,math.nan
    known = torch.where(targs==-1, math.nan, targs)
    for f in (F1ScoreMulti(sigmoid=False, ignore_index=first), partial(judge, ignore_index=first),
              partial(best_thresholds, ignore_index=first)):
        with pytest.raises(ValueError, match='several values mark missing targets') as e: f(scores, targs)
        code = re.search(r'pass (np\.where\(.*\)) and ignore_index=math\.nan', str(e.value))[1]
        targs_of_one_code = eval(code, dict(np=np, targs=targs))
        np.testing.assert_array_equal(targs_of_one_code, known)
    judge(scores, targs_of_one_code, ignore_index=math.nan)
    with pytest.raises(ValueError) as e: judge(scores, targs)
    assert 'several values' not in str(e.value)

def test_weights_of_pairs_are_named():
    for weight in (torch.rand(300, 3), np.ones((300, 3))):
        with pytest.raises(ValueError, match=r'shape \(300, 3\).*leave out pairs.*nan.*ignore_index=math\.nan'):
            F1ScoreMulti(sample_weight=weight)

# Other label frequencies

COUNTS = torch.tensor([[4,1], [1,1], [1,2], [4,6]]).double() # tp, fp, fn, tn
NUMBERS = torch.tensor([[5,7], [5,3]]) # Negatives, positives

def test_counts_at_other_frequencies():
    "Positives count p'/p times, negatives (1-p')/(1-p) times; recall and the number of samples stay"
    frequencies = check_frequencies({'crash': 0.1}, ['crash','login'], NUMBERS)
    test_eq(frequencies.isnan().tolist(), [False,True])
    tp,fp,fn,tn = at_frequencies(COUNTS, frequencies)
    test_close([tp[0], fp[0], fn[0], tn[0]], [4*0.1/0.5, 1*0.9/0.5, 1*0.1/0.5, 4*0.9/0.5])
    test_eq([o[1].item() for o in (tp, fp, fn, tn)], COUNTS[:,1].tolist())
    assert at_frequencies(COUNTS, None) is COUNTS
    several = at_frequencies(COUNTS[:,None].repeat(1, 3, 1), frequencies)
    assert torch.equal(several[:,1], torch.stack([tp, fp, fn, tn]))

@pytest.mark.parametrize('given', [
    {0: 0.1}, {'crash': 0.1, 1: 0.2}, [0.1,0.2], pd.Series({'login': 0.2}), np.array([0.1,0.2])], ids=str)
def test_frequencies_by_name_by_number_or_one_per_label(given):
    frequencies = check_frequencies(given, ['crash','login'], NUMBERS)
    known = ~frequencies.isnan()
    assert known.any() and torch.equal(frequencies[known], torch.tensor([0.1,0.2], dtype=torch.float64)[known])

@pytest.mark.parametrize('given,match', [
    ({'crahs': 0.1}, "label 'crahs' is not in the vocab: did you mean 'crash'"),
    ({'crash': 5}, "5 for 'crash' should be above 0"),
    ({'crash': True}, "True for 'crash'"), (0.1, 'should be a dict by label'), ([0.1], 'or 2 numbers, one per label'),
    ({'login': 0}, "0 for 'login'"), ({1: 1.}, "1.0 for 'login'")])
def test_wrong_frequencies_are_named(given, match):
    with pytest.raises(ValueError, match=match): check_frequencies(given, ['crash','login'], NUMBERS)

@pytest.mark.parametrize('kind', ['negatives','positives'])
def test_a_frequency_needs_positives_and_negatives(kind):
    numbers = NUMBERS.clone()
    numbers[['negatives','positives'].index(kind),1] = 0
    with pytest.raises(ValueError, match=f"'login' has no {kind} here"):
        check_frequencies({'login': 0.1}, ['crash','login'], numbers)
    check_frequencies({'crash': 0.1}, ['crash','login'], numbers)

@pytest.mark.parametrize('code', [-1,math.nan])
def test_two_codes_of_missing_targets_do_not_send_each_others_way(code):
    targs = tensor([[1,0,-1],[0,math.nan,1]]*10)
    with pytest.raises(ValueError) as e: accuracy_report(torch.rand(20, 3), targs, ignore_index=code)
    assert 'np.where' in str(e.value) and 'pass ignore_index' not in str(e.value) and '(targs+1)/2' not in str(e.value)
