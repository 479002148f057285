"Which samples of a batch loop count, of which process, and how metrics share them"
import pickle, threading, weakref
from fastai.distributed import DistributedDL
from helpers import *
from reference import *
from fastai_mlmetrics.core import loop
from fastai_mlmetrics.core.loop import (all_reduce, Batch, forget_batch, gather, is_split, join_batches, LARGE,
                                        loop_batch, LoopBatch)

# Which samples, of which process

def own_samples(dl):
    "The samples of a loader that are counted"
    found = []
    for i,x in enumerate(dl):
        batch = loop_batch(SimpleNamespace(pred=x[:,None].float(), yb=(x[:,None],), iter=i, dl=dl))
        found += batch.targs[:,0].tolist()
        assert is_split(dl) # fastai's knows it once it is read
        assert torch.equal(batch.preds, batch.targs.float())
    return found

@pytest.mark.parametrize('n,world', itertools.product((4, 5, 6, 7, 13), (2, 3)))
@pytest.mark.parametrize('of_torch', [False, True])
def test_padding_of_distributed_loaders_is_not_counted(n, world, of_torch, monkeypatch):
    "Each sample is in one process, once"
    monkeypatch.setattr(DistributedDL, '_broadcast', lambda self, t, rank: t)
    def loader(rank):
        if not of_torch: return DistributedDL(DataLoader(range(n), bs=2), rank=rank, world_size=world)
        sampler = torch.utils.data.DistributedSampler(range(n), world, rank, shuffle=False)
        return torch.utils.data.DataLoader(range(n), 2, sampler=sampler)
    loaders = [loader(rank) for rank in range(world)]
    read = [sum((x.tolist() for x in dl), []) for dl in loaders]
    assert len({*map(len, read)})==1 # With padding, all processes have the same number
    test_eq(sorted(sum(map(own_samples, loaders), [])), [*range(n)])

@pytest.mark.parametrize('dl', [DataLoader(range(4)), torch.utils.data.DataLoader(range(4)), [], None])
def test_other_loaders_are_not_split(dl): assert not is_split(dl)

@pytest.fixture
def second(monkeypatch):
    "This is the first of two processes; a function that sets what the second one has"
    other = {}
    def reduce(x): x += other['sizes' if x.dtype==torch.long and 'sizes' in other else 'x']
    def collect(shards, x):
        shards[0].copy_(x)
        shards[1][:len(other['x'])] = other['x']
    monkeypatch.setattr(loop, 'num_distrib', lambda: 2)
    monkeypatch.setattr(loop, 'rank_distrib', lambda: 0)
    monkeypatch.setattr(torch.distributed, 'all_reduce', reduce)
    monkeypatch.setattr(torch.distributed, 'all_gather', collect)
    return other.update

def test_sums_of_processes_leave_those_of_this_one(second):
    x = tensor([1.,2.])
    second(dict(x=tensor([10.,20.])))
    test_eq(all_reduce(x).tolist(), [11,22])
    test_eq(x.tolist(), [1,2])
    assert all_reduce(x, split=False) is x and gather(x, split=False) is x

@pytest.mark.parametrize('a,b', [(2,3), (3,2), (0,2), (2,0), (2,2)])
def test_rows_of_processes_are_joined_without_padding(a, b, second):
    x,y = torch.randn(a, 4),torch.randn(b, 4)
    second(dict(x=y, sizes=tensor([0,b])))
    assert torch.equal(gather(x), torch.cat([x, y]))

def test_a_single_process_exchanges_nothing():
    x = torch.randn(3)
    assert all_reduce(x) is x and gather(x) is x

# Which batch is the current one

def one_batch(n=4, **kw): return SimpleNamespace(pred=torch.randn(n, 3), yb=(torch.ones(n, 3),), **kw)

def test_metrics_of_one_batch_get_the_same_object():
    learn = one_batch(iter=0)
    first = loop_batch(learn)
    assert loop_batch(learn) is first
    assert loop_batch(SimpleNamespace(pred=learn.pred, yb=learn.yb, iter=0)) is first

def test_a_buffer_with_another_number_is_another_batch():
    "A model may write each output into the same memory"
    learn = one_batch(iter=0)
    first = loop_batch(learn)
    before = learn.pred.clone()
    learn.pred.add_(1)
    learn.iter = 1
    second = loop_batch(learn)
    assert second is not first
    assert torch.equal(first.preds, before) and torch.equal(second.preds, before+1)

@pytest.mark.parametrize('part', ['pred','yb','more targets','number','forgotten'])
def test_what_makes_a_batch_another_one(part):
    learn = one_batch(iter=3)
    first = loop_batch(learn)
    if part=='pred': learn.pred = learn.pred.clone()
    if part=='yb': learn.yb = (learn.yb[0].clone(),)
    if part=='more targets': learn.yb = (*learn.yb, learn.yb[0])
    if part=='number': learn.iter = None # As in a loop that does not number its batches
    if part=='forgotten': forget_batch()
    if part=='more targets':
        with pytest.raises(ValueError, match='2 targets'): loop_batch(learn)
    else: assert loop_batch(learn) is not first
    if part=='number': assert loop_batch(learn) is not loop_batch(learn)

def test_a_forgotten_batch_is_freed():
    freed = weakref.ref(loop_batch(one_batch(iter=0)))
    assert freed() is not None
    forget_batch()
    assert freed() is None

def test_small_batches_are_copied_and_large_ones_are_not():
    for n,is_copied in ((LARGE//2, True), (LARGE//2+1, False)):
        preds,targs = torch.zeros(n, 1),torch.zeros(n, 1)
        batch = LoopBatch(preds, targs)
        assert [batch.preds is preds, batch.targs is targs]==[not is_copied]*2

def test_joined_batches_are_shared_by_rule_batches_and_start():
    a,b = (LoopBatch(torch.randn(4, 3), torch.ones(4, 3)) for _ in range(2))
    rule = ThresholdRule(0.5)
    joined = join_batches([a,b], rule, start=0)
    assert torch.equal(joined.preds, torch.cat([a.preds, b.preds])) and joined.n==8
    assert join_batches([a,b], ThresholdRule(0.5), start=0) is joined
    others = [join_batches([a,b], ThresholdRule(0.4)), join_batches([a], rule), join_batches([b,a], rule),
              join_batches([a,b], rule, start=8)]
    assert joined not in others and len({*map(id, others)})==4
    assert others[1].preds is a.preds # A single one is not copied

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
    for room in ('core.loop','metrics.streaming'): monkeypatch.setattr(f'fastai_mlmetrics.{room}.Batch', Counting)
    v = values(learn)
    assert sorted(made)==[16]*8+[64] # The classes together, and each function each batch
    assert v['f1_score']==F1ScoreMulti()(logits, targs)
    assert v['accuracy_multi']==pytest.approx(accuracy_multi(logits, targs).item())

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
        for room in ('core.loop','metrics.streaming'): patch.setattr(f'fastai_mlmetrics.{room}.LARGE', 30)
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
    class Counting(Batch):
        @property
        def predicted(self):
            made.append(self)
            return super().predicted
    for room in ('core.loop','metrics.streaming'): monkeypatch.setattr(f'fastai_mlmetrics.{room}.Batch', Counting)
    return made

EVERY_AVERAGE = [cls(average=a) for cls in BINARY for a in averages(cls)] + [AccuracyLift()]

@pytest.mark.parametrize('option', [None, 'ignore_index', 'sample_weight'])
def test_blocks_of_an_array_have_the_value_of_the_array(option, counted, monkeypatch):
    logits,targs = simulate(300, 8, density=0.3)
    if option=='ignore_index': targs[::7] = -1
    kw = {option: dict(ignore_index=-1, sample_weight=np.arange(300)%3+1.)[option]} if option else {}
    averages = 'micro','macro','weighted','samples',None
    metrics = [*(F1ScoreMulti(average=a, **kw) for a in averages), AccuracyMulti(**kw), EmptyRate(**kw),
               BrierScoreMulti(**kw), APScoreMulti(**kw), LRAP(**kw), RocAucMulti(bins=64, **kw)]
    expected = [m(logits, targs) for m in metrics]
    monkeypatch.setattr('fastai_mlmetrics.metrics.streaming._BLOCK', 1000)
    for m,value in zip(metrics, expected):
        m.reset()
        counted.clear()
        m.update(logits, targs)
        if isinstance(m, CountsMetric): assert [o.n for o in counted]==[125,125,50]
        same(m.value, value, 1e-9, of=m)

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
    assert not [o for o in gc.get_objects() if isinstance(o, (Batch,LoopBatch))]
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
