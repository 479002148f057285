"Threads, default types and devices, and half precision change no value; nothing is sent or written"
import contextlib, io
from helpers import *

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
            judge(probs.numpy(), targs.numpy()).f1_micro, accuracy_report(probs.numpy(), targs, ci=None).value.tolist(),
            label_stats(targs).values.tolist(), pos_weight(targs).tolist(),
            str(pos_weight(targs).dtype), accuracy_multi(logits, targs).item()]

@pytest.fixture(scope='module')
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

@pytest.mark.slow
@pytest.mark.parametrize('ties', ['few','many'])
def test_the_number_of_threads_changes_nothing(ties):
    logits,targs = simulate(40_000, 30)
    if ties=='many': logits = logits.round(decimals=1)
    n,found = torch.get_num_threads(),[]
    try:
        for threads in (1,2,3):
            torch.set_num_threads(threads)
            ms = *multilabel_metrics(full=True, ranking=True),BrierScoreMulti(average='samples'),BrierScoreMulti()
            best = (best_thresholds(logits.sigmoid(), targs, average=a, cv=2) for a in ('micro','samples'))
            found.append([m(logits, targs) for m in ms] + [o.table.values.tolist() for o in best])
            assert torch.get_num_threads()==threads
    finally: torch.set_num_threads(n)
    for o in found[1:]: assert_same(o, found[0])

def assert_same(a, b):
    def plain(o): return repr(o.tolist() if hasattr(o, 'tolist') else o)
    for i,(x,y) in enumerate(zip(a, b)): assert plain(x)==plain(y), i
    assert len(a)==len(b)

def touched(path):
    "The files and connections that a user's session opens, and what it prints, in the folder `path`"
    os.chdir(path)
    def loader(): return DataLoader(list(zip(torch.randn(64,5), (torch.rand(64,5)<0.3).float())), bs=16)
    dls = DataLoaders(loader(), loader(), device=torch.device('cpu'))
    learn = Learner(dls, nn.Linear(5,5), loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics(ranking=True),
                    cbs=ZeroLabelsCallback()).remove_cb(ProgressCallback)
    events = []
    warnings.simplefilter('ignore')
    warnings.simplefilter('ignore', ZeroLabelsWarning)
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

@pytest.mark.slow
def test_nothing_is_sent_or_written(tmp_path):
    test_eq(in_process(touched, tmp_path), ([], ''))
    assert not [*tmp_path.iterdir()]

@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_is_counted_as_its_floats(dtype):
    class Half(Same):
        def forward(self, x): return super().forward(x.to(dtype))
    logits,targs = simulate(300, bias=-2.)
    def loss(p, t): return F.binary_cross_entropy_with_logits(p.float(), t)
    def trained(logits, model): return values(make_learner(logits, targs, all_metrics(), model=model, loss_func=loss))
    test_eq(trained(logits, Half()), trained(logits.to(dtype).float(), Same()))
    big = torch.full((70_000,2), 1., dtype=dtype)
    ones = torch.ones(70_000,2)
    assert AccuracyMulti()(big, ones)==1 and LabelCardinality()(big, ones)==2

@pytest.mark.parametrize('to', ['to_fp16','to_bf16'])
def test_mixed_precision_changes_nothing(to):
    learn = full_learner()
    with warnings_as('ignore'): # torch says that there is no GPU
        getattr(learn, to)()
        with learn.no_logging(): learn.fit(1, 0.)
    test_eq(dict(zip(learn.metrics.attrgot('name'), learn.recorder.values[-1][2:])), clean())
