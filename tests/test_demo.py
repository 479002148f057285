"The main job, as a person at a terminal meets it"
import signal, subprocess, time
from conftest import *

def job(*args, cwd=None): return subprocess.run([sys.executable, '-m', 'fastai_mlmetrics', *map(str, args)], cwd=cwd, capture_output=True, text=True)

def test_main_job(tmp_path):
    out = tmp_path/'out'
    run = job('--epochs', 2, '--size', 32, '--out', out, cwd=tmp_path)
    assert run.returncode==0, run.stderr
    for text in ('20 labels', 'Training for 1 epochs', 'zeros', 'The remedies', 'Training on, for 1 epochs', 'Before and after', *multilabel_metrics().attrgot('name')):
        assert text in run.stdout, text
    assert 'ZeroLabelsWarning' in run.stderr and 'predicting nothing at all has 0.923' in run.stderr and 'What helps:' in run.stderr
    assert 'FutureWarning' not in run.stderr and 'Traceback' not in run.stderr
    assert {o.name for o in out.iterdir()}=={'multidigits','before.png','after.png','zero_labels.png'}
    assert [o.name for o in tmp_path.iterdir()]==['out']
    for name in ('before.png','after.png','zero_labels.png'):
        assert str(out/name) in run.stdout and min(PILImage.create(out/name).size)>200

@pytest.mark.parametrize('args,message', [
    (('--data','no/such/folder'), r'no/such/folder.*does not exist'),
    (('--arch','resnet1'), "no architecture 'resnet1'"),
    (('--epochs',0), 'write 1 or more'),
    (('--thresh',1.5), r'thresh=1.5')])
def test_bad_arguments(tmp_path, args, message):
    run = job(*args, '--out', tmp_path)
    assert run.returncode==2 and len(run.stderr.splitlines())==1 and re.search(message, run.stderr)

def test_csv_without_columns(tmp_path):
    (tmp_path/'train').mkdir()
    pd.DataFrame(dict(file=['a.png'], labels=['cat'])).to_csv(tmp_path/'train.csv')
    run = job('--data', tmp_path, cwd=tmp_path)
    assert run.returncode==2 and len(run.stderr.splitlines())==1 and 'fname' in run.stderr and 'is_valid' in run.stderr

def test_interrupt(tmp_path):
    run = subprocess.Popen([sys.executable, '-u', '-m', 'fastai_mlmetrics', '--size', '32', '--out', str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) # which a shell's background jobs ignore
    while 'Training for' not in run.stdout.readline(): assert run.poll() is None, run.stderr.read()
    time.sleep(1)
    run.send_signal(signal.SIGINT)
    _,err = run.communicate(timeout=60)
    assert run.returncode==130 and 'interrupted' in err and 'Traceback' not in err

def test_pascal_is_what_untar_data_brings(tmp_path, monkeypatch):
    from fastai_mlmetrics.demo import get_data
    asked = []
    def local(url): asked.append(url); return multidigits(tmp_path/'data', n=30, size=16)
    monkeypatch.setattr('fastai_mlmetrics.demo.untar_data', local)
    dls = get_data('pascal', tmp_path, 32)
    assert asked==[URLs.PASCAL_2007] and dls.one_batch()[0].shape[1:]==(3,32,32)
