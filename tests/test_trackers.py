"fastai's callbacks for trackers log the metrics by name, and the callback's record"
import json, zipfile
from fastai_mlmetrics.demo import get_learner
from helpers import *

pytestmark = pytest.mark.dev

LOGITS,TARGS = simulate(n=128, bias=-6., skill=2.) # predicts nothing
NAMES = ['valid_loss', *multilabel_metrics().attrgot('name')]
NUMBERS = [f'zero_labels/{o}' for o in ('lift','empty_rate','suggested_thresh','flagged')]

def fitted(cb, learn=None):
    "A Learner after a fit of two epochs with the tracker `cb`"
    learn = learn or make_learner(LOGITS, TARGS, multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.add_cb(cb)
    with learn.no_logging(), warnings_as('ignore'): learn.fit(2, 0.)
    return learn

def wanted(learn):
    "The expected numbers of each epoch, by name"
    rows = [dict(zip(learn.recorder.metric_names[1:], o)) for o in learn.recorder.values]
    def of_record(r): return {f'zero_labels/{k[12:]}': float(r[k[12:]]) for k in NUMBERS}
    return [{**{k: row[k] for k in NAMES}, **of_record(r)} for row,r in zip(rows, learn.zero_labels.records)]

def test_tensorboard_has_metrics_and_records(tmp_path):
    pytest.importorskip('tensorboard')
    from fastai.callback.tensorboard import TensorBoardCallback
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    learn = fitted(TensorBoardCallback(tmp_path, trace_model=False, log_preds=False))
    events = EventAccumulator(str(tmp_path)).Reload()
    expected = wanted(learn)
    for k in (*NAMES, *NUMBERS):
        seen = events.Scalars(k)
        assert [o.value for o in seen]==pytest.approx([o[k] for o in expected], rel=1e-6), k
        assert [o.step for o in seen]==[o.step for o in events.Scalars('valid_loss')], k
    assert {o.verdict for o in learn.zero_labels.records}=={'predicts nothing'}
    assert expected[0]['zero_labels/flagged']==1
    texts = events.Tensors('zero_labels/verdict/text_summary')
    assert [o.tensor_proto.string_val[0].decode() for o in texts]==['predicts nothing']*2
    learn.fit(1, 0.) # with another writer
    assert len(learn.zero_labels.records)==3

def test_tensorboard_of_one_fit_alone(tmp_path):
    "A callback that is passed to `fit` is removed after it, and nothing more is logged"
    pytest.importorskip('tensorboard')
    from fastai.callback.tensorboard import TensorBoardCallback
    learn = make_learner(LOGITS, TARGS, cbs=ZeroLabelsCallback())
    with learn.no_logging(), warnings_as('ignore'):
        learn.fit(1, 0., cbs=TensorBoardCallback(tmp_path, trace_model=False, log_preds=False))
        files = {o: o.stat().st_size for o in tmp_path.iterdir()}
        learn.fit(1, 0.)
        learn.validate()
    assert {o: o.stat().st_size for o in tmp_path.iterdir()}==files and len(learn.zero_labels.records)==3

def test_a_threshold_that_there_is_not_is_not_logged(tmp_path):
    pytest.importorskip('tensorboard')
    from fastai.callback.tensorboard import TensorBoardCallback
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    targs = (torch.arange(256).reshape(64, 4)%3==0).float()
    tracker = TensorBoardCallback(tmp_path, trace_model=False, log_preds=False)
    learn = make_learner(torch.zeros(64, 4), targs, cbs=[ZeroLabelsCallback(), tracker])
    with learn.no_logging(), warnings_as('ignore'): learn.fit(1, 0.)
    assert learn.zero_labels.records[0].suggested_thresh is None
    scalars = EventAccumulator(str(tmp_path)).Reload().Tags()['scalars']
    assert {o for o in scalars if '/' in o}=={*NUMBERS}-{'zero_labels/suggested_thresh'}

def log_records(data, block=2**15):
    "The records of a file in LevelDB's log format, as written by W&B after a header of 7 bytes"
    i,part = 7,b''
    while i+7<=len(data):
        if block-i%block<7: i += block-i%block # the end of a block is padded
        n,kind = int.from_bytes(data[i+4:i+6], 'little'),data[i+6]
        part,i = part+data[i+7:i+7+n],i+7+n
        if kind in (1,4): # a whole record, or its last part
            yield part
            part = b''

@pytest.mark.slow
def test_wandb_has_metrics_and_records(tmp_path, monkeypatch, digits_dls):
    "In its offline mode: the contents of the run's file"
    wandb = pytest.importorskip('wandb')
    from fastai.callback.wandb import WandbCallback
    from wandb.proto.wandb_internal_pb2 import Record
    monkeypatch.setenv('WANDB_SILENT', 'true')
    # fastai 2.8.12 with fastcore 2 takes the `vars` of plain numbers
    monkeypatch.setattr(Learner, 'gather_args', lambda self: {})
    run = wandb.init(mode='offline', dir=tmp_path, project='test')
    try: learn = fitted(WandbCallback(), get_learner(digits_dls))
    finally:
        run.finish()
        wandb.teardown() # its process has then written everything
    rows = []
    for data in log_records(next(tmp_path.rglob('run-*.wandb')).read_bytes()):
        record = Record.FromString(data)
        if record.WhichOneof('record_type')!='history': continue
        row = {o.key or '/'.join(o.nested_key): json.loads(o.value_json) for o in record.history.item}
        if 'valid_loss' in row: rows.append(row)
    expected = wanted(learn)
    assert len(rows)==len(expected)==2
    for row,o in zip(rows, expected): # all of an epoch are logged at one step
        assert {k: row[k] for k in o}==pytest.approx(o, rel=1e-6)
        assert row['zero_labels/verdict']==(learn.zero_labels.records[-1].verdict or 'none')

@pytest.mark.slow
def test_comet_has_metrics_and_records(tmp_path, monkeypatch):
    "In its offline mode: the contents of the archive"
    comet_ml = pytest.importorskip('comet_ml')
    import fastai.callback.comet as comet
    monkeypatch.setattr(comet, 'keep_experiment_running', True, raising=False) # fastai's callback lacks this name
    def offline(project_name):
        return comet_ml.OfflineExperiment(
            project_name=project_name, offline_directory=str(tmp_path), workspace='test', log_code=False,
            log_graph=False, log_git_metadata=False, log_env_details=False, auto_param_logging=False,
            auto_metric_logging=False, display_summary_level=0)
    monkeypatch.setattr(comet_ml, 'Experiment', offline)
    learn = fitted(comet.CometCallback('test', log_model_weights=False))
    archive = zipfile.ZipFile(next(tmp_path.glob('*.zip')))
    lines = [json.loads(o) for o in archive.read('messages.json').decode().splitlines()]
    logged = {}
    for m in filter(None, (o['payload'].get('metric') for o in lines)):
        logged.setdefault(m['metricName'], []).append(float(m['metricValue']))
    for k in (*NAMES, *NUMBERS):
        assert logged[k if '/' in k else f'epoch__{k}']==pytest.approx([o[k] for o in wanted(learn)], rel=1e-6), k
    verdict = 'zero_labels/verdict: predicts nothing'
    assert verdict in json.dumps(lines) or any(verdict.encode() in archive.read(o) for o in archive.namelist())
