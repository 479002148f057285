"The how-to pages: their tables hold, and their commands run"
import json, subprocess
from types import SimpleNamespace
import sklearn.metrics as skm, torchmetrics.classification
import fastai.metrics, fastai_mlmetrics.all
from helpers import *

PAGES = sorted((ROOT/'nbs'/'howto').glob('*.ipynb'))

def cells(notebook, kind):
    return [''.join(o['source']) for o in json.loads(notebook.read_text())['cells'] if o['cell_type']==kind]

def page(name): return next(o for o in PAGES if name in o.stem)

def rows_of(notebook, section=None):
    "The rows of the page's table, or of that of a section, without the heading"
    text = '\n'.join(cells(notebook, 'markdown'))
    if section: text = text.partition(f'\n## {section}\n')[2].partition('\n## ')[0]
    rows = [[c.strip().strip('`') for c in o.strip('|').split('|')] for o in re.findall(r'(?m)^\|.*\|$', text)]
    return rows[2:]

def value(m, preds, targs):
    "The value of a metric in the validation of a Learner"
    if not isinstance(m, Metric): return float(m(preds, targs))
    m.reset()
    m.accumulate(SimpleNamespace(pred=preds, y=targs, yb=(targs,), to_detach=to_detach))
    return float(m.value)

@pytest.fixture(scope='module')
def data():
    torch.manual_seed(0)
    y = (torch.rand(200, 5)<0.25).int()
    return torch.randn(200, 5) + 2*y - 1, y

def test_the_table_of_fastai_holds(data):
    "Other columns have fastai's names"
    rows = rows_of(page('other_libraries'), 'fastai')
    defaults = 'F1ScoreMulti PrecisionMulti RecallMulti JaccardMulti HammingLossMulti APScoreMulti RocAucMulti'.split()
    same = [('accuracy_multi',)*3, *((f'{o}()',)+(getattr(fastai.metrics, o)().name,)*2 for o in defaults)]
    assert len(rows)>3 and len(same)>7
    for code,theirs,ours in rows+same:
        a,b = (eval(code, vars(o)) for o in (fastai.metrics, fastai_mlmetrics.all))
        assert value(a, *data)==pytest.approx(value(b, *data), abs=1e-6), code
        assert [getattr(o, 'name', getattr(o, '__name__', '')) for o in (a,b)]==[theirs,ours]

def test_the_table_of_torchmetrics_and_sklearn_holds(data):
    z,y = data
    names = dict(z=z, y=y, s=z.sigmoid(), p=(z>0).int())
    arrays = {k: o.numpy() for k,o in names.items()} # of scikit-learn
    rows = rows_of(page('other_libraries'), 'torchmetrics and scikit-learn')
    assert len(rows)>12
    for ours,theirs,sklearn in rows:
        expected = value(eval(ours, vars(fastai_mlmetrics.all)), z, y)
        if theirs:
            m = eval(theirs, vars(torchmetrics.classification))
            assert float(m(names['s'], y))==pytest.approx(expected, abs=1e-5), theirs
        if sklearn:
            o = eval(sklearn, vars(skm), names if 'float' in sklearn else arrays)
            assert float(o)==pytest.approx(expected, abs=1e-5), sklearn

def test_the_fields_of_a_record_exist():
    y = np.eye(3, dtype=int).repeat(10, 0)
    fields = [o.strip(' `') for row in rows_of(page('monitor_trackers')) for o in row[0].split(',')]
    assert len(fields)>12 and {*fields} <= {*judge(0.9*y, y)}

@pytest.mark.slow
def test_the_commands_without_internet_install_the_package(tmp_path):
    "In a copy of the files, because pip builds where they are; dependencies are those that are installed already"
    files = subprocess.run(['git','ls-files'], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split('\n')
    for o in filter(re.compile('fastai_mlmetrics/|[^/]+$').match, files):
        (tmp_path/o).parent.mkdir(exist_ok=True)
        (tmp_path/o).write_bytes((ROOT/o).read_bytes())
    text = '\n'.join(cells(page('no_internet'), 'markdown'))
    wheel,install,*_on_kaggle = re.findall(r'(?s)```sh\n(.*?)\n```', text)
    install,check = install.split('\n')
    assert check=='pip check'
    run = partial(subprocess.run, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True)
    run(f'{sys.executable} -m {wheel}')
    run(f'{sys.executable} -m venv new')
    env = {k: v for k,v in os.environ.items() if k!='PYTHONPATH'} | {'PIP_NO_INDEX': '1'}
    run(f'new/bin/{install}', env=env)
    python = f'{tmp_path}/new/bin/python -c'
    purelib = run(f"{python} 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'").stdout.strip()
    (Path(purelib)/'deps.pth').write_text('\n'.join(o for o in sys.path if 'site-packages' in o))
    found = run(f"{python} 'import fastai_mlmetrics as o; print(o.__file__)'", env=env, cwd=purelib).stdout
    assert found.startswith(purelib)

def run_page(name): return run_notebook(page(name))

@pytest.mark.slow
def test_a_model_that_predicts_nothing_is_cured_by_training_then_by_a_threshold():
    space,values = run_page('predicts_nothing')
    trained_twice = space['learn'].zero_labels.records[1].f1_micro
    before,after = (space[o].value for o in ('before','after'))
    empty = next(o for shown in values.values() for o in shown if isinstance(o, dict) and 'highest_score' in o)
    again = next(o for o in values['2. The threshold is too high: tune it'] if isinstance(o, dict))
    assert empty['predicted']==[] and empty['highest_score']<0.5
    assert {*again['predicted']}=={*again['true'].split()}
    assert trained_twice<0.2 and before['f1_micro']>0.5
    assert after['f1_micro']>before['f1_micro'] and after['empty_rate']<before['empty_rate']

def test_loaders_of_each_kind_of_file_have_the_labels():
    space,values = run_page('csv_to_dataloaders')
    for name in ('in one column','a column per label','are in the path'):
        assert [*next(o[-1] for k,o in values.items() if name in k)]==['beach','city','sunset']
    vocab,loss = values['Tables with several targets'][-1]
    assert vocab==space['targets'] and 'BCEWithLogitsLoss' in str(loss)
    assert values['Texts'][-1]==['billing','crash','login','refund']
    stats,shares = values['A validation set that has every label']
    assert (stats.missing_from=='').all() and (stats.valid>0).all()
    assert (shares.loc[True]-shares.loc[False]).abs().max()<0.1

def test_each_heading_is_the_text_of_fastais_error():
    _,values = run_page('fastai_errors')
    errors = {k.strip('`'): str(v[-1]).replace("\\'", "'") for k,v in values.items() if k.startswith('`')}
    assert len(errors)>8
    for heading,error in errors.items(): assert heading in error, (heading,error)
