"Confusion counts: exact with weights, shared by metrics, and of each batch once"
import pickle, threading, weakref
from fractions import Fraction
from helpers import *
from reference import *
from fastai_mlmetrics.core.counts import Batch, check_values, count_pairs, join_checks, value_checks
from fastai_mlmetrics.metrics.streaming import accum_all

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

def test_a_function_among_the_metrics_does_not_break_the_sharing(monkeypatch):
    made = []
    class Counting(Batch):
        @property
        def predicted(self):
            made.append(self.n)
            return super().predicted
    logits,targs = simulate(64)
    metrics = [F1ScoreMulti(), accuracy_multi, EmptyRate(), subset_accuracy, F1ScoreMulti(average='micro')]
    learn = make_learner(logits, targs, metrics, bs=16)
    monkeypatch.setattr('fastai_mlmetrics.core.counts.Batch', Counting)
    v = values(learn)
    assert sorted(made)==[16]*8+[64] # The classes together, and each function each batch
    assert v['f1_score']==F1ScoreMulti()(logits, targs)
    assert v['accuracy_multi']==pytest.approx(accuracy_multi(logits, targs).item())

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

METRIC = st.integers(0, 4)
CALLS = st.lists(st.tuples(st.sampled_from(['take','read','reset','call','add']), METRIC), max_size=2)
# Size of a batch, whether it is in a buffer of the one before, calls, metrics that skip it, more calls
BATCH = st.tuples(st.integers(0, 12), st.booleans(), CALLS, st.sets(METRIC, max_size=2), CALLS)

@given(st.booleans(), st.lists(BATCH, min_size=1, max_size=12))
def test_a_metric_counts_its_own_batches(numbered, batches):
    "A metric counts its own batches, whatever other metrics accumulate, compute or reset, also if memory is reused"
    weight = torch.arange(2000)%5+1.
    metrics = [RecallMulti(average=None), F1ScoreMulti(average='samples'), PrecisionMulti(average='micro'),
               F1ScoreMulti(thresh=0.7), LabelCardinality(sample_weight=weight)]
    taken = [[] for _ in metrics]
    buffer,g = torch.empty(12, 3),torch.Generator().manual_seed(0)
    def check(m, own):
        p,y = map(torch.cat, zip(*own)) if own else (torch.empty(0, 3),)*2
        if not len(p): return
        d = m.rule.binarize(p)
        if m.rule.sample_weight is not None: same(m.counts, [weight[:len(p)]@d.sum(1), weight[:len(p)].sum()])
        elif m.average=='samples': same(m.value, deepcopy(m)(p, y))
        else: test_eq(m.counts, torch.stack([d*y, d*(1-y), (1-d)*y, (1-d)*(1-y)]).sum(1))
    with pytest.MonkeyPatch.context() as patch:
        for room in ('core.counts','metrics.streaming'): patch.setattr(f'fastai_mlmetrics.{room}.LARGE', 30)
        for i,(n,reuse,before,skip,after) in enumerate(batches):
            pred,targ = torch.randn(n, 3, generator=g),(torch.rand(n, 3, generator=g)<0.5).float()
            learn = SimpleNamespace(pred=buffer[:n].copy_(pred) if reuse else pred, yb=(targ,))
            if numbered: learn.iter = i
            for op,k in [*before, *(('take',k) for k in range(5) if k not in skip), *after]:
                m,own = metrics[k],taken[k]
                if op=='take': m.accumulate(learn)
                elif op=='add': m.accum_values(pred, targ)
                elif op=='read': check(m, own)
                elif op=='call' and len(pred) and m.rule.sample_weight is None: m(pred, targ)
                else:
                    m.reset()
                    own.clear()
                if op in ('take','add') or op=='call' and m.rule.sample_weight is None: own.append((pred, targ))
        for m,own in zip(metrics, taken): check(m, own)

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

def test_learners_in_threads_count_their_own_batches():
    "No Learner's batch is counted by another's metrics"
    metrics,every = [],sys.getswitchinterval()
    def count(shape):
        learn,m = SimpleNamespace(pred=None, yb=None, iter=0),AccuracyMulti()
        metrics.append(m)
        for learn.iter in range(200):
            learn.pred,learn.yb = torch.zeros(shape),(torch.ones(shape),)
            m.accumulate(learn)
    sys.setswitchinterval(1e-5)
    try:
        shapes = [(1700,20)]*2 + [(64,20)]*2
        threads = [threading.Thread(target=count, args=[shape]) for shape in shapes]
        for t in threads: t.start()
        for t in threads: t.join()
    finally: sys.setswitchinterval(every)
    test_eq(sorted(m.counts.sum().item() for m in metrics), [200*64*20]*2 + [200*1700*20]*2)

@pytest.mark.slow
def test_twenty_million_elements_are_counted_exactly():
    m = RecallMulti(average='micro')
    ones = torch.ones(2_500_000, 1, dtype=torch.bool)
    for _ in range(8): m.accum_values(ones, ones)
    assert m.counts.flatten().tolist()==[20_000_000,0,0,0] and m.value==1
    halves = (torch.arange(200_000)%2)[:,None]
    same([MatthewsCorrCoefMulti()(halves, halves), MatthewsCorrCoefMulti()(1-halves, halves)], [1,-1])
    many = torch.ones(2**24+3, 1, dtype=torch.bool)
    assert RecallMulti(average=None)(many, many)==[1]

def test_batches_of_many_kinds_are_counted_together():
    logits,targs = simulate(60, 5)
    m = F1ScoreMulti()
    m.accum_values(logits[:20], targs[:20])
    m.accum_values(logits[20:40].double(), targs[20:40].bool())
    m.accum_values(logits[40:]>0, targs[40:].long())
    assert m.value==F1ScoreMulti()(logits, targs) and m.seen==60
    with pytest.raises(ValueError, match='predictions have 4 labels, but before they had 5'):
        m.accum_values(logits[:,:4], targs[:,:4])

@pytest.fixture
def counted(monkeypatch):
    "The batches that were thresholded"
    made = []
    class Counting(sys.modules['fastai_mlmetrics.core.counts'].Batch):
        @property
        def predicted(self):
            made.append(self)
            return super().predicted
    monkeypatch.setattr('fastai_mlmetrics.core.counts.Batch', Counting)
    return made

EVERY_AVERAGE = [cls(average=a) for cls in BINARY for a in averages(cls)] + [AccuracyLift()]

@pytest.mark.parametrize('option', [None, 'ignore_index', 'sample_weight'])
def test_several_metrics_walk_through_arrays_together(option, counted, monkeypatch):
    "Values are those of each metric alone, and each block of samples is counted once"
    monkeypatch.setattr('fastai_mlmetrics.metrics.streaming._BLOCK', 1000)
    logits,targs = simulate(300, 8, density=0.3)
    if option=='ignore_index': targs[::7] = -1
    kw = {option: dict(ignore_index=-1, sample_weight=np.arange(300)%3+1.)[option]} if option else {}
    averages = 'micro','macro','weighted','samples',None
    metrics = [*(F1ScoreMulti(average=a, **kw) for a in averages), AccuracyMulti(**kw), EmptyRate(**kw),
               BrierScoreMulti(**kw), APScoreMulti(**kw), LRAP(**kw), RocAucMulti(bins=64, **kw)]
    accum_all(metrics, logits, targs)
    assert [o.n for o in counted]==[125,125,50]
    for m in metrics: same(m.value, deepcopy(m)(logits, targs))

def test_all_share_one_count_however_they_were_made(counted):
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, deepcopy(EVERY_AVERAGE))
    for m,i in zip(learn.metrics, range(len(EVERY_AVERAGE))): m.name = str(i)
    v = values(learn)
    assert len(counted)==1 # all batches together, because they are small
    for m,value in zip(learn.metrics, v.values()): same(value, deepcopy(m)(logits, targs))

@pytest.mark.parametrize('rule', [
    dict(thresh=0.2), dict(thresh=[0.5]*19+[0.4]), dict(thresh=0., sigmoid=False), dict(min_labels=1),
    dict(labels=[0,1]), dict(ignore_index=-1), dict(sample_weight=np.ones(50))], ids=str)
def test_another_rule_is_counted_apart(rule, counted):
    logits,targs = simulate(50)
    metrics = [F1ScoreMulti(), F1ScoreMulti(average='samples'),
               F1ScoreMulti(name='a', **rule), F1ScoreMulti(average='samples', name='b', **rule)]
    v = values(make_learner(logits, targs, metrics))
    assert len(counted)==2
    same(v['a'], F1ScoreMulti(**rule)(logits, targs))
    same(v['f1_score'], F1ScoreMulti()(logits, targs))

def test_each_batch_is_counted_once_per_rule(counted):
    logits,targs = simulate(50)
    metrics = multilabel_metrics() + [AccuracyMulti(), SubsetAccuracy()]
    learn = make_learner(logits, targs, metrics, cbs=ZeroLabelsCallback())
    values(learn)
    assert len(counted)==1
    values(learn)
    assert len(counted)==2
    learn.metrics += multilabel_metrics(thresh=0.2)
    values(learn)
    assert len(counted)==4

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

def test_large_batches_in_reused_memory_are_counted_at_once():
    "The last block of a batch is small and not a copy: it must be counted at once"
    torch.manual_seed(0)
    batches = [(torch.randn(512, 1030), (torch.rand(512, 1030)<0.1).float()) for _ in range(2)]
    buffer,m = torch.empty(512, 1030),F1ScoreMulti()
    for i,(preds,targs) in enumerate(batches):
        m.accumulate(SimpleNamespace(pred=buffer.copy_(preds), yb=(targs,), iter=i))
    test_eq(m.value, F1ScoreMulti()(*map(torch.cat, zip(*batches))))

def test_a_reset_tells_validations_in_the_same_memory_apart():
    "Only the reset between these validations shows that they differ"
    logits,targs = simulate(50)
    class Batches(list): device = torch.device('cpu')
    learn = make_learner(logits, targs, multilabel_metrics(), OneBuffer())
    for x in (logits, logits.roll(1, 0), logits):
        with learn.no_logging(): learn.validate(dl=Batches([(x, targs)]))
        found = dict(zip(learn.metrics.attrgot('name'), learn.final_record[1:]))
        test_eq(found, {m.name: deepcopy(m)(x, targs) for m in learn.metrics})

def test_metrics_may_be_in_two_learners_and_clones():
    (logits,targs),(other,others) = simulate(50),simulate(70, seed=1)
    metrics = multilabel_metrics()
    a,b = make_learner(logits, targs, metrics),make_learner(other, others, metrics)
    va,vb = values(a),values(b)
    assert va!=vb
    test_eq(values(a), va)
    test_eq(values(b), vb)
    test_eq(values(deepcopy(a)), va)
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
    test_eq(values(learn), {
        'f1_score': F1ScoreMulti()(logits, targs),
        'f1_score_micro': F1ScoreMulti(average='micro')(logits, targs)})

def test_interrupted_validation_leaves_nothing():
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, multilabel_metrics(), bs=16)
    ref = values(learn)
    class Stop(Callback):
        def after_pred(self):
            if self.iter==2: raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), learn.no_logging(): learn.validate(cbs=Stop())
    test_eq(values(learn), ref)

@pytest.mark.slow
def test_nothing_of_a_batch_is_kept():
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, multilabel_metrics())
    values(learn)
    gc.collect()
    counts = sys.modules['fastai_mlmetrics.core.counts']
    assert not [o for o in gc.get_objects() if isinstance(o, (counts.Batch,counts.LoopBatch))]
    stored = sum(o.numel() for m in learn.metrics for o in vars(m).values() if isinstance(o, Tensor))
    assert stored <= len(learn.metrics)*(4*20+6)
    assert not any(m._batches for m in learn.metrics)
    assert len(pickle.dumps(learn.metrics[3])) < 2000

def test_large_batches_are_let_go():
    "A metric keeps only its last batch, until the next comes"
    metrics = [F1ScoreMulti(), LRAP(), APScoreMulti(), F1ScoreMulti(thresh=0.3)]
    learn,refs = SimpleNamespace(),[]
    for i in range(3):
        learn.pred,learn.yb = torch.randn(2000, 100),((torch.rand(2000, 100)<0.5).float(),)
        learn.iter = i
        refs.append(weakref.ref(learn.pred))
        for m in metrics[:4-i]: m.accumulate(learn) # from batch to batch, one metric less
    learn.pred = learn.yb = None
    test_eq([o() is not None for o in refs], [False,False,True])
    metrics[0].value
    test_eq([o() for o in refs], [None]*3)

def test_decisions_among_scores_stay_decisions():
    "Binary predictions are not joined with scores, which would take them for scores"
    m,targs = F1ScoreMulti(0.8, average='micro'),tensor([[1,0]]*4)
    for i,pred in enumerate((targs.bool(), targs*10-5., targs)):
        m.accumulate(SimpleNamespace(pred=pred, yb=(targs,), iter=i))
    test_eq(m.value, 1)

def test_errors_are_raised_in_the_batch_that_makes_them():
    targs = torch.ones(4, 3)
    learn = SimpleNamespace(pred=torch.randn(4, 3), yb=(targs,), iter=0)
    m = F1ScoreMulti()
    m.accumulate(learn)
    m.value
    learn.pred,learn.yb,learn.iter = torch.randn(4, 2),(targs[:,:2],),1
    with pytest.raises(ValueError, match="2 labels, but before they had 3"): m.accumulate(learn)
    learn.pred,learn.yb,learn.iter = torch.randn(4, 3),(targs,),2
    F1ScoreMulti(thresh=0.5).accumulate(learn)
    with pytest.raises(ValueError, match="1 values"): F1ScoreMulti(thresh=[0.5]).accumulate(learn)

@given(binary_pairs())
def test_pairs_are_counted_in_blocks(pair):
    a,b = (torch.from_numpy(o).bool() for o in pair)
    counts = count_pairs(a, b)
    test_eq(counts.toarray(), (a.int().T@b.int()).numpy())
    assert counts.nnz==(counts.toarray()>0).sum() and counts.has_sorted_indices
    many = 2**21//a.shape[1]//len(a)+2 # More than a block
    test_eq(count_pairs(a.repeat(many, 1), b.repeat(many, 1)).toarray(), many*counts.toarray())

# Values that are checked: lowest prediction and target, highest ones, highest fraction of a target, samples with NaN

@pytest.mark.parametrize('preds,targs,expected', [
    ([[0.2,0.7],[0.4,0.1]], [[0,1],[1,1]], [0.1,0,0.7,1,0,0]),
    ([[True,False]], [[1,0]], [0,0,1,1,0,0]),
    ([[math.nan,math.nan],[0.5,0.1]], [[0,0.25],[-1,2]], [math.nan,-1,math.nan,2,0.25,1])])
def test_six_numbers_describe_the_values_of_a_batch(preds, targs, expected):
    same(value_checks(Batch(tensor(preds), tensor(targs))), expected, 1e-7)

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
