"""Run the tests with the minimum versions, those of Colab and Kaggle, and the newest on each Python:
`python tools/matrix.py [NAME ...]`

Takes the interpreters of pyenv, or `python3.10` to `python3.14` from the path, makes a virtual environment for each
in turn, and prints the table of RELEASING.md. The output of the tests is in the folder for temporary files."""
import datetime, re, subprocess, sys, tempfile
from configparser import ConfigParser
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parent.parent
SHOWN = 'fastai','fastcore','torch','numpy','pandas','matplotlib','scikit-learn'
config = ConfigParser()
config.read(ROOT/'settings.ini', encoding='utf-8')
requirements,test,docs,dev = (config['DEFAULT'][o].split() for o in (
    'requirements','test_requirements','docs_requirements','dev_requirements'))
tools = test+docs+dev

def name_of(requirement): return re.match(r'[\w-]+', requirement)[0]

def with_tests(*pins):
    "The package with some versions of its dependencies, and the rest of what the tests need"
    return ROOT,*pins,*(o for o in test if name_of(o) not in map(name_of, pins))

PLUM = 'plum-dispatch<2.10' # with a newer one, fastai 2.8.8 and older cannot export a Learner
# nbdev, which brings IPython, needs a newer fastcore, so tests of notebooks and of the site are skipped; with today's
# onnxscript, torch 2.2 cannot be imported, and today's transformers refuses it: only notebooks need both
NEWER = {name_of(o) for o in tools} # packages that the tests need newer than this package does
OLDEST = [*(o.replace('>=', '==') for o in requirements if name_of(o) not in NEWER),
          PLUM, *(o for o in tools if not o.startswith(('nbdev','onnx','transformers')))]
MATRIX = {
    'oldest': ('3.10', (ROOT, *OLDEST)),
    'colab': ('3.13', with_tests('fastai==2.8.8', 'fastcore==2.2.12', PLUM, 'numpy==2.1.3', 'pandas==2.2.*',
                                 'scikit-learn==1.6.1')),
    'kaggle': ('3.12', with_tests('fastcore<2', PLUM, 'numpy==2.1.*', 'pandas==2.2.*')),
    **{v: (v, (f'{ROOT}[dev]',)) for v in ('3.10','3.11','3.12','3.13','3.14')}}

def interpreter(version):
    of_pyenv = sorted((Path.home()/'.pyenv'/'versions').glob(f'{version}.*/bin/python'))
    return next(iter(of_pyenv), None) or which(f'python{version}') or sys.exit(f'There is no python{version} here')

def tested(name):
    "A row of the table"
    version,packages = MATRIX[name]
    with tempfile.TemporaryDirectory() as tmp:
        def run(*args): return subprocess.run(list(map(str, args)), text=True, capture_output=True, cwd=ROOT)
        run(interpreter(version), '-m', 'venv', tmp).check_returncode()
        python = Path(tmp)/'bin'/'python'
        done = run(python, '-m', 'pip', 'install', '-q', *packages)
        if not done.returncode: done = run(python, '-m', 'pytest', '-q', '-m', '')
        Path(tempfile.gettempdir(), f'matrix-{name}.log').write_text(done.stdout+done.stderr)
        have = dict(re.findall(r'(?m)^(\S+)==(\S+)$', run(python, '-m', 'pip', 'freeze').stdout))
        versions = run(python, '--version').stdout.split()[-1],*(have.get(o, '-') for o in SHOWN)
        last_line = (done.stdout.strip().splitlines() or ['not installed'])[-1].strip('= ')
        shown = *versions,last_line
        return f"| {' | '.join(shown)} |"

if __name__=='__main__':
    print(f"{datetime.date.today()}\n\n| Python | {' | '.join(SHOWN)} | tests |\n|{'---|'*(len(SHOWN)+2)}", flush=True)
    failed = False
    for name in sys.argv[1:] or MATRIX:
        print(row := tested(name), flush=True)
        failed |= ' passed' not in row or 'failed' in row or 'error' in row
    sys.exit(failed)
