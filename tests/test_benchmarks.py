"The benchmarks: each section at a tiny size, and the page that is made of them"
from helpers import *

@pytest.fixture(scope='module')
def bench():
    with pytest.MonkeyPatch.context() as m:
        m.syspath_prepend(ROOT)
        import benchmarks.__main__ as res
    return res

TINY = ((300,5,64,1),)

@pytest.fixture(scope='module')
def tables(bench):
    "The sections of the page, without new processes"
    if NO_FAKE_GPU: pytest.skip(NO_FAKE_GPU)
    def python(m, module, stream, name, *size): return ' '.join(map(str, bench.STREAMED[name](*map(int, size))))
    rows = [(o, 2000, 10) for o in bench.STREAMED]
    made = dict(metrics=(TINY,), thresholds=(((200,4),), 1), memory=(rows,),
                validation=({'tiny': lambda: bench.free(300, 5, 64)}, 2), gpu=(2,), on_a_gpu=())
    with pytest.MonkeyPatch.context() as m:
        m.setattr(bench, 'python', python)
        return {f.__name__: pd.DataFrame(f(*made[f.__name__])) for f in bench.PAGE}

def test_each_section_of_the_page_measures(tables):
    assert {k: len(o) for k,o in tables.items()}==dict(
        metrics=1, thresholds=5, validation=1, memory=6, gpu=4, on_a_gpu=4)
    for o in ('ours','fastai','scikit-learn','torchmetrics'): assert (tables['metrics'][o]>0).all()
    assert 'per label, jointly for micro F1' in [*tables['thresholds'].thresholds]

def test_the_page_begins_with_its_three_sentences_and_replaces_the_last_one(bench, tables, tmp_path):
    (page := tmp_path/'results.md').write_text('of an older run')
    bench.write(tables, page)
    text = page.read_text()
    assert re.findall(r'^(?:- \*\*|## )([\w ]+)', text, re.M)==[
        'Thresholds and intervals','Memory',
        'Metrics of a validation','Thresholds','Validation with the callback',
        'Memory','Waiting for a GPU','On a GPU']
    assert 'older' not in text and not re.search(r'-\d|nan|e[-+]\d', text)

def test_the_page_names_the_gpu_that_it_was_measured_with(bench, monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    assert 'of one run, without a GPU:' in bench.where()
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda: 'NVIDIA H200')
    assert 'of one run, with a GPU, NVIDIA H200:' in bench.where()

def test_a_difference_within_noise_is_only_bounded(bench):
    noise = np.random.default_rng(0).normal(0, 1, 15)
    assert float(str(bench.Difference.of(10+noise, np.zeros(15))))==pytest.approx(10, abs=0.5)
    assert str(bench.Difference.of(noise, np.zeros(15))).startswith('below 0.')
    slower = bench.Difference.of(noise-10, np.zeros(15)) # no metric makes a validation faster
    assert slower.bound>0 and str(slower).startswith('below')

def test_the_other_sections_measure(bench):
    for f in (bench.ranking, bench.labels):
        assert all(v>0 for k,v in next(f(TINY)).items() if k!='samples x labels')

@pytest.mark.slow
def test_memory_is_measured_in_a_process_of_its_own(bench):
    row, = bench.memory((('our nine metrics', 2000, 10),))
    assert row['s']>0 and row['MB']>=0

@pytest.mark.parametrize('args', [['metric'], ['--save','soak']])
def test_commands_that_would_measure_something_else_are_refused(bench, args):
    with pytest.raises(SystemExit) as e: bench.main(args)
    assert e.value.code!=0

def test_few_small_tensors_are_listed_between_large_ones(bench):
    "256 of them kept 1.4 GB of freed memory from being used again, in 200 batches of 1,000 x 1,000"
    for m in (ThreshFinder(), F1ScoreMulti(), APScoreMulti(bins=32)):
        for _ in range(40): m.update(*bench.data(8, 3))
        assert len(m._checks)<=16, m.name
