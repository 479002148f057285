"""Run the tests on each Python, with the newest and with the minimum versions: `python tools/matrix.py [NAME ...]`

Takes the interpreters of pyenv, or `python3.10` to `python3.13` from the path, makes a virtual environment for each
in turn, and prints the table of RELEASING.md. The output of the tests is in the folder for temporary files."""
import datetime, re, subprocess, sys, tempfile
from configparser import ConfigParser
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parent.parent
SHOWN = 'fastai','fastcore','torch','numpy','pandas','matplotlib','scikit-learn'
config = ConfigParser()
config.read(ROOT/'settings.ini', encoding='utf-8')
requirements,test,dev = (config['DEFAULT'][o].split() for o in ('requirements','test_requirements','dev_requirements'))
tools = test+dev
# plum-dispatch 2.10 has what fastai 2.8.1 cannot export
# nbdev, which brings IPython, needs a newer fastcore, so tests of notebooks and of the site are skipped; with today's
# onnxscript, torch 2.2 cannot be imported, and today's transformers refuses it: only notebooks need both
NEWER = {o.split('>=')[0] for o in tools} # packages that the tests need newer than this package does
OLDEST = [*(o.replace('>=', '==') for o in requirements if o.split('>=')[0] not in NEWER),
          'plum-dispatch<2.10', 'ipython', *(o for o in tools if not o.startswith(('nbdev','onnx','transformers')))]
MATRIX = {
    'oldest': ('3.10', (ROOT, *OLDEST)),
    **{v: (v, (f'{ROOT}[dev]',)) for v in ('3.10','3.11','3.12','3.13')}}

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
