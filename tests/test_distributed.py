"Several processes have the results of one, in fastai's `distrib_ctx`"
import socket, torch.distributed as dist, torch.multiprocessing as mp
from contextlib import nullcontext
from datetime import timedelta
from fastai.distributed import DistributedDL
from helpers import *

pytestmark = pytest.mark.slow

def _broadcast(self, t, rank):
    "fastai's own moves the indices to a GPU, which gloo does not need"
    t = torch.tensor(t)
    dist.broadcast(t, rank)
    return t.tolist()

def _process(rank, f, world, port, path, args):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR='localhost',
                      MASTER_PORT=str(port), OMP_NUM_THREADS='1', ACCELERATE_USE_CPU='1')
    torch.set_num_threads(1)
    dist.init_process_group('gloo', timeout=timedelta(seconds=60)) # no process waits for ever
    DistributedDL._broadcast = _broadcast
    warnings.simplefilter('ignore')
    torch.save(f(*args), path/f'{rank}.pt')
    dist.barrier()
    os._exit(0) # torch 2.2 may wait for ever in `destroy_process_group`

def in_processes(f, world, path, *args):
    "What `f` returns in each of `world` processes"
    with socket.socket() as s:
        s.bind(('localhost', 0))
        port = s.getsockname()[1]
    mp.start_processes(_process, (f, world, port, path, args), world, start_method=START)
    return [torch.load(path/f'{i}.pt', weights_only=False) for i in range(world)]

def context(learn): return learn.distrib_ctx(sync_bn=False, cpu=True) if num_distrib() else nullcontext()

# All metrics

def of_counts():
    return multilabel_metrics() + [
        F1ScoreMulti(average=None, name='f1_each'), AccuracyLift(), SubsetAccuracy(), LabelCardinality(),
        HammingLossMulti(), JaccardMulti(), FBetaMulti(2), SpecificityMulti(), MatthewsCorrCoefMulti(),
        BalancedAccuracyMulti(), BrierScoreMulti(), BrierScoreMulti(average='samples', name='brier_samples'),
        APScoreMulti(average='samples'), APScoreMulti(bins=64, name='ap_binned'),
        RocAucMulti(average='samples'), RocAucMulti(bins=64, average='micro'),
        LRAP(), CoverageError(), LabelRankingLoss(), OneError(), PrecisionAtK(3), RecallAtK(3),
        ExpectedCalibrationError()]
def of_scores(): return L(APScoreMulti(), APScoreMulti(average='micro'), RocAucMulti())

def validated(n, bs=16):
    "The values of all metrics, the callback's record, and its number of warnings"
    learn = make_learner(*simulate(n, bias=-6), of_counts()+of_scores(), cbs=ZeroLabelsCallback(), bs=bs)
    with warnings.catch_warnings(record=True) as caught, context(learn):
        warnings.simplefilter('always')
        result = values(learn)
    n_warnings = sum(issubclass(w.category, ZeroLabelsWarning) for w in caught)
    return result,dict(learn.zero_labels.records[0], valid_loss=None),n_warnings

SIZES = 70,51,49,2 # With 49 samples, the last two processes have an empty last batch
def all_validated(): return [validated(n) for n in SIZES]

def test_processes_agree_with_one(tmp_path):
    results = in_processes(all_validated, 3, tmp_path)
    for i,(expected,record,_) in enumerate(all_validated()):
        for rank,(result,r,n_warnings) in enumerate(o[i] for o in results):
            for k,v in expected.items():
                np.testing.assert_allclose(result[k], v, atol=1e-12, err_msg=f'{k} of {SIZES[i]}')
            assert str(r)==str(record)
            assert n_warnings==(rank==0 and bool(record['verdict']))

# A fit

def fitted(on_flag):
    cb = ZeroLabelsCallback(on_flag=on_flag, patience=2)
    learn = make_learner(*simulate(150, bias=-6), multilabel_metrics(), cbs=cb)
    try:
        with context(learn), learn.no_logging(): learn.fit(4)
        error = None
    except ZeroLabelsError as e: error = str(e)
    return len(learn.zero_labels.records),learn.recorder.values[-1][2:],error

def all_fitted(): return {o: fitted(o) for o in ('warn','stop','raise')}

def test_all_processes_stop_together(tmp_path):
    first,second = in_processes(all_fitted, 2, tmp_path)
    for on_flag,(n,row,error) in second.items():
        n_first,row_first,error_first = first[on_flag]
        assert n==n_first==(4 if on_flag=='warn' else 3)
        assert error==error_first and (error is not None)==(on_flag=='raise')
        np.testing.assert_allclose(row, row_first, atol=1e-12)

# What is not synchronised

def whole():
    "Results of whole arrays in each process, and one that only the first process computes"
    logits,targs = simulate(500, bias=-9)
    alone = accuracy_multi(logits, targs) if not rank_distrib() else None # the other processes do not take part
    m = F1ScoreMulti()
    m(logits, targs)
    interp = MultiLabelInterpretation.from_preds(logits.sigmoid(), targs)
    return (m.counts[3,0].item(),
            judge(logits, targs, sigmoid=True).samples,
            judge(logits[:12], targs[:12], sigmoid=True).verdict,
            interp.report().support.sum(),
            alone)

def test_whole_arrays_are_not_added_up(tmp_path):
    expected = whole()
    for rank,result in enumerate(in_processes(whole, 2, tmp_path)):
        assert result[:4]==expected[:4] and result[4]==(None if rank else expected[4])

def shared_otherwise():
    """The first process counts while batches come, and its metrics share counts; the second process has one sample
    less, and counts when values are read, one metric after another"""
    metrics = [APScoreMulti(), F1ScoreMulti(0.3), APScoreMulti(labels=[0,1], name='two'), RocAucMulti()]
    learn = make_learner(*simulate(8191, 64), metrics, bs=1024)
    with context(learn): return values(learn)

def test_processes_gather_together(tmp_path):
    expected = shared_otherwise()
    for result in in_processes(shared_otherwise, 2, tmp_path):
        for k,v in expected.items(): np.testing.assert_allclose(result[k], v, atol=1e-12, err_msg=k)

def by_torch_sampler(n, shuffle):
    "torch's own loaders and samplers, without fastai's code for processes"
    ds = torch.utils.data.TensorDataset(*simulate(n, bias=-6))
    sampler = torch.utils.data.DistributedSampler(ds, shuffle=shuffle) if num_distrib() else None
    dl = torch.utils.data.DataLoader(ds, 16, sampler=sampler)
    learn = Learner(DataLoaders(dl, dl, device=torch.device('cpu')), Same(), loss_func=BCEWithLogitsLossFlat(),
                    metrics=of_counts()+of_scores(), cbs=ZeroLabelsCallback()).remove_cb(ProgressCallback)
    return values(learn),learn.zero_labels.records[0].samples

def all_by_torch_sampler():
    return [by_torch_sampler(n, shuffle) for n,shuffle in ((51,False), (51,True), (40,False), (3,False))]

def test_processes_agree_with_one_under_samplers_of_torch(tmp_path):
    expected = all_by_torch_sampler()
    for result in in_processes(all_by_torch_sampler, 3, tmp_path):
        for (a,n),(b,m) in zip(result, expected):
            assert n==m
            for k,v in b.items(): np.testing.assert_allclose(a[k], v, atol=1e-12, err_msg=k)

# What processes exchange

def sent(n, ranking):
    "Bytes that the metrics and the callback pass to torch.distributed in a validation"
    metrics,cbs = (of_scores(),[]) if ranking else (of_counts(),ZeroLabelsCallback())
    learn = make_learner(*simulate(n, bias=-6), metrics, cbs=cbs, bs=256)
    log,real = [],{o: getattr(dist, o) for o in ('all_reduce','all_gather')}
    def logged(f, at):
        def inner(*args, **kwargs):
            ours = sys._getframe(1).f_globals['__name__'].startswith('fastai_mlmetrics') # fastai gathers losses
            if ours: log.append(args[at].numel()*args[at].element_size())
            return f(*args, **kwargs)
        return inner
    with context(learn), learn.no_logging():
        dist.all_reduce,dist.all_gather = logged(real['all_reduce'], 0),logged(real['all_gather'], 1)
        try: learn.validate()
        finally: dist.all_reduce,dist.all_gather = real.values()
    return sum(log)

def all_sent(): return [sent(60, False), sent(6000, False), sent(600, True), sent(6000, True)]

def test_only_counts_are_sent_or_scores_without_bins(tmp_path):
    small,large,few,many = in_processes(all_sent, 2, tmp_path)[0]
    bins = (2*64*20 + 2*64*20 + 3*15*20 + 2*2**16)*8 # of AP, AUC, calibration error and callback
    by_fold = 2*5*20*2**12*4 # Of the callback, each label's
    metrics = len(of_counts())+5
    assert 0<small==large<=bins + by_fold + metrics*(4*20+6+2*2)*8
    assert 5*few<many<=3*6000*20*(4+1+8)

def found_thresholds():
    "Of fastai's loader; 51 samples are padded"
    res = []
    for n in (51,400):
        learn = make_learner(*simulate(n, 6, density=0.3, skill=2., bias=-2.), vocab=list('abcdef'))
        with context(learn), learn.no_bar(): best = learn.thresh_find(bins=256, show_plot=False, min_positives=5)
        res.append((*best, best.table.to_csv()))
    return res

def thresholds_by_torch_sampler():
    "Of torch's own sampler, which gives each process every second sample"
    ds = torch.utils.data.TensorDataset(*simulate(301, 6, density=0.3, skill=2., bias=-2.))
    sampler = torch.utils.data.DistributedSampler(ds, shuffle=False) if num_distrib() else None
    dl = torch.utils.data.DataLoader(ds, 16, sampler=sampler)
    learn = Learner(DataLoaders(dl, dl, device=torch.device('cpu')), Same(), loss_func=BCEWithLogitsLossFlat())
    learn.remove_cb(ProgressCallback)
    best = learn.thresh_find(bins=256, show_plot=False)
    return [(*best, best.table.to_csv())]

def all_thresholds(): return found_thresholds(),thresholds_by_torch_sampler()

def test_processes_find_the_thresholds_of_one(tmp_path):
    expected = all_thresholds()
    for result in in_processes(all_thresholds, 2, tmp_path): assert result==expected
