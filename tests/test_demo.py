"The demo on the command line"
import contextlib, io, runpy, signal, subprocess, time
from helpers import *
from fastai_mlmetrics.demo import _print_row, _try_remedies, get_data, ticket_dls, ticket_table, TICKETS

def typed(*args, **kwargs):
    "Run the command in a new Python"
    command = [sys.executable, '-m', 'fastai_mlmetrics', *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, **kwargs)

def _run(args, cwd, env):
    if cwd: os.chdir(cwd)
    os.environ.update(env)
    sys.argv[1:],code = args,0
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try: runpy.run_module('fastai_mlmetrics', run_name='__main__', alter_sys=True)
        except SystemExit as e: code = e.code or 0
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())

def job(*args, cwd=None, **env):
    "The result of `typed`, without the seconds that the imports of a new Python take"
    return in_process(_run, [*map(str, args)], cwd, env)

def failed(run, message):
    "Whether the command failed with one paragraph, which fits a terminal, before any training"
    lines = run.stderr.splitlines()
    fits = all(len(o)<80 or ' ' not in o for o in lines) and '' not in lines
    told = run.returncode==2 and lines[0].startswith('fastai_mlmetrics:') and 'Training' not in run.stdout
    return fits and told and 'Traceback' not in run.stderr and re.search(message, one_line(run.stderr))

@pytest.mark.slow
def test_the_main_job_shows_the_problem_and_the_cure(tmp_path):
    out = tmp_path/'out'
    run = typed('--epochs', 2, '--size', 32, '--out', 'out', cwd=tmp_path)
    assert run.returncode==0, run.stderr
    shown = ('20 labels', 'Training for 1 epoch\n', 'zeros', 'What helps without training',
             'Training on, for 1 epoch\n', 'Before and after', 'with your own data:', ' 1 epoch ',
             ' 2 epochs\n', *multilabel_metrics().attrgot('name'))
    for text in shown:
        assert text in run.stdout, text
    assert max(map(len, run.stdout.splitlines()))<=79 and run.stderr==''
    verdict = run.stdout[run.stdout.index('Training for'):run.stdout.index('What helps without training')]
    for text in ('predicts no label', 'predicting no label at all scores 0.923', 'What to do:'):
        assert text in verdict, text
    assert {o.name for o in out.iterdir()}=={'multidigits_32','before.png','after.png','zero_labels.png','report.html'}
    assert [o.name for o in tmp_path.iterdir()]==['out']
    for name in ('before.png','after.png','zero_labels.png'):
        assert f'{Path("out")/name}: ' in run.stdout and min(PILImage.create(out/name).size)>200
    assert run.stdout.splitlines()[-1].strip()=='learn.set_thresh(learn.thresh_find())'
    assert 'report.html: ' in run.stdout and f'{Path("out")/"report.html"}: ' in run.stdout
    page = (out/'report.html').read_text(encoding='utf-8')
    assert 'digits' in page and 'id="samples"' in page and len(page)<5e6

@pytest.mark.parametrize('args,message', [
    (('--epochs',0), 'write 1 or more'),
    slow(('--epochs',-1), '--epochs -1: write 1 or more'),
    slow(('--arch','resnet1'), "no architecture 'resnet1'"),
    (('--arch','ResNet'), "no architecture 'ResNet'"),
    (('--data','pascal','--arch','resnet1'), "no architecture 'resnet1'")]) # before it downloads
def test_bad_arguments_are_named_before_any_work(tmp_path, args, message):
    run = job(*args, '--out', tmp_path/'out')
    assert failed(run, message) and 'Preparing' not in run.stdout and not (tmp_path/'out').exists()

@pytest.fixture
def no_fastai(tmp_path):
    "The environment of a process that fails at the import of fastai or torch, which take seconds"
    for name in ('fastai','torch'): (tmp_path/f'{name}.py').write_text('raise KeyboardInterrupt')
    return {**os.environ, 'PYTHONPATH': os.pathsep.join([str(tmp_path), os.environ.get('PYTHONPATH', '')])}

@pytest.mark.parametrize('args,code,message', [
    (('--help',), 0, r'^usage: python -m fastai_mlmetrics \[-h\]'),
    (('--size','x'), 2, "argument --size: invalid int value: 'x'"),
    (('--sizes','32'), 2, 'unrecognized arguments: --sizes 32'),
    (('--epochs','0'), 2, 'write 1 or more')])
def test_an_answer_without_fastai(no_fastai, tmp_path, args, code, message):
    run = typed(*args, env=no_fastai, cwd=tmp_path)
    assert run.returncode==code and re.search(message, run.stderr if code else run.stdout)
    assert 'Loading' not in run.stdout and {o.name for o in tmp_path.iterdir()}=={'fastai.py','torch.py'}

def test_says_something_before_the_imports(no_fastai):
    run = typed(env=no_fastai)
    assert (run.returncode, run.stdout, run.stderr)==(130, 'Loading fastai ...\n', '\ninterrupted\n')

def test_each_fit_prints_a_table_with_a_head(capsys):
    learn = make_learner(*simulate(), multilabel_metrics()).remove_cb(ProgressCallback)
    learn.logger = partial(_print_row, learn.recorder)
    for _ in range(2): learn.fit(2, 0.)
    test_eq([o.split()[0] for o in capsys.readouterr().out.splitlines()], ['epoch','loss','0','1']*2)

@pytest.fixture
def own(tmp_path): return multidigits(tmp_path/'own', n=30, size=32)

@pytest.mark.parametrize('change,message', [
    (dict(fname=''), 'does not exist'), (dict(fname='.'), 'does not exist')])
def test_a_bad_table_is_named_before_training(own, tmp_path, change, message):
    pd.read_csv(own/'train.csv').assign(**change).to_csv(own/'train.csv', index=False)
    assert failed(job('--data', own, '--out', tmp_path/'out'), f'own.*{message}')
    assert not (tmp_path/'out').exists()

@pytest.mark.parametrize('labels', [('cat',''), ('$\\frac$ 猫 "q" a,b', '$x_$ <b> é %s {x} 100%')])
def test_odd_labels_do_no_harm(own, tmp_path, labels):
    "One label only; characters with a meaning in CSV, format strings, HTML and matplotlib"
    df = pd.read_csv(own/'train.csv')
    df.assign(labels=np.where(df.index%3>0, *labels)).to_csv(own/'train.csv', index=False)
    run = job('--data', own, '--epochs', 2, '--size', 16, cwd=tmp_path)
    assert run.returncode==0, run.stderr
    assert (tmp_path/'mlmetrics_demo'/'after.png').exists() and max(map(len, run.stdout.splitlines()))<=80

def test_a_folder_that_cannot_be_written_is_named(own, tmp_path):
    (tmp_path/'file').touch()
    for out in (tmp_path/'file', tmp_path/'file'/'out'):
        run = job('--data', own, '--out', out)
        assert failed(run, str(out)), run

@pytest.mark.slow
def test_a_tilde_is_the_home_folder(own, tmp_path):
    env = {'HOME': str(tmp_path), 'USERPROFILE': str(tmp_path)}
    run = job('--data=~/own', '--out=~/out', '--epochs', 1, '--size', 16, cwd=tmp_path, **env)
    assert run.returncode==0, run.stderr
    assert {o.name for o in (tmp_path/'out').iterdir()}=={'before.png','zero_labels.png','report.html'}
    assert not (tmp_path/'~').exists()

@pytest.mark.parametrize('args,message', [
    (('--thresh',2), 'thresh=2 is above every probability'), (('--size',4), 'size=4 should be .* 16 or more'),
    (('--data','no/such/folder'), 'No such file or directory: .no/such/folder/train.csv')])
def test_bad_arguments_are_named_before_training(args, message, tmp_path):
    assert failed(job(*args, cwd=tmp_path), message)

def test_missing_columns_are_named(tmp_path):
    (tmp_path/'train').mkdir()
    pd.DataFrame(dict(file=['a.png'], labels=['cat'])).to_csv(tmp_path/'train.csv')
    assert failed(job('--data', tmp_path, cwd=tmp_path), 'fname.*is_valid')

def test_each_size_is_a_set_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr('fastai_mlmetrics.demo.multidigits', partial(multidigits, n=30))
    for size in (16,32,16): assert get_data('digits', str(tmp_path), size).one_batch()[0].shape[-1]==size

@pytest.mark.slow
@pytest.mark.parametrize('when', ['Preparing the data','Training for','What helps without training'])
def test_an_interrupt_ends_with_one_word(own, tmp_path, when):
    args = '--data', str(own), '--size', '32', '--epochs', '2', '--out', str(tmp_path/'out')
    command = [sys.executable, '-u', '-m', 'fastai_mlmetrics', *args]
    def default_signal(): signal.signal(signal.SIGINT, signal.SIG_DFL) # background jobs of a shell ignore it
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           preexec_fn=default_signal)
    while when not in run.stdout.readline(): assert run.poll() is None, run.stderr.read()
    time.sleep(.1)
    run.send_signal(signal.SIGINT)
    _,err = run.communicate(timeout=60)
    assert run.returncode==130 and err.endswith('\ninterrupted\n') and 'Traceback' not in err

def test_pascal_is_what_untar_data_brings(tmp_path, monkeypatch):
    asked = []
    def local(url):
        asked.append(url)
        return multidigits(tmp_path/'data', n=30, size=16)
    monkeypatch.setattr('fastai_mlmetrics.demo.untar_data', local)
    dls = get_data('pascal', tmp_path, 32)
    assert asked==[URLs.PASCAL_2007] and dls.one_batch()[0].shape[1:]==(3,32,32)

def demo_learner(logits, targs, names):
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback(), vocab=names)
    with learn.no_logging(), warnings_as('ignore', ZeroLabelsWarning): learn.validate()
    return learn

def test_the_remedies_are_scored_by_the_metric_and_the_names_that_the_callback_promised(capsys):
    learn = demo_learner(*simulate(400, 20, density=0.1, skill=1.5, bias=-3), [f'l{i}' for i in range(20)])
    r = learn.zero_labels.records[-1]
    with learn.no_bar(): _try_remedies(learn, '1 epoch', 0.5)
    lines = capsys.readouterr().out
    text = ' '.join(lines.split())
    assert r.suggested_thresh and f"learn.set_thresh({r.suggested_thresh})" in str(r)
    for number,name in ((r.f1_micro,'1 epoch'), (r.label_each_f1,'min_labels=1'),
                        (r.suggested_f1,f'thresh={r.suggested_thresh}')):
        assert f'{number:.3f} ({name})' in text, name
    assert text.startswith('Micro F1 without') and max(map(len, lines.splitlines()))<80

# --- the toy data of the how-to pages

def test_a_table_of_tickets_is_the_same_each_time():
    df = ticket_table(500)
    assert df.equals(ticket_table(500)) and not df.equals(ticket_table(500, seed=1))
    assert [*df]==[*(f'x{i}' for i in range(6)), *TICKETS] and {*df[TICKETS].values.ravel()}=={0,1}
    share = ticket_table()[TICKETS].mean()
    assert share.is_monotonic_decreasing and 0.05<share.min()<share.max()<0.3
    assert (ticket_table(cuts=(1.6,1.8,2,2.2))[TICKETS].mean()<share).all()

@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:.*not writable')
def test_tickets_are_loaded_and_learnt():
    from fastai.tabular.all import tabular_learner
    df = ticket_table(1500)
    dls = ticket_dls(df.assign(id='other columns stay out'), bs=32)
    parts = [{*o.items.index} for o in dls.loaders]
    assert dls.vocab==TICKETS and dls.train.bs==32 and [*map(len, parts)]==[1200,300] and not parts[0] & parts[1]
    assert dls.cont_names==[*df][:6] and len(ticket_dls().valid_ds)==800
    set_seed(0)
    learn = tabular_learner(dls, layers=[16], metrics=multilabel_metrics()).remove_cb(ProgressCallback)
    with learn.no_logging(): learn.fit_one_cycle(8, 3e-2)
    assert values(learn)['f1_micro']>0.5
