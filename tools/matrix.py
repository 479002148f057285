"""The tests on each Python, with the newest versions and with the oldest that are admitted: `python tools/matrix.py [NAME ...]`

Takes the interpreters `python3.10` to `python3.13` from the path, or those of pyenv, and makes a virtual environment for each in turn. Prints the table that CONTRIBUTING.md has."""
import datetime, os, re, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parent.parent
OLDEST = 'fastai==2.8.0','fastcore==1.8.0','torch==2.1.0','torchvision==0.16.0','scikit-learn==1.3.0','pandas==2.0.0','numpy==1.26.0'
MATRIX = {'3.10, oldest': ('3.10', OLDEST), **{v: (v, ()) for v in ('3.10','3.11','3.12','3.13')}}

def interpreter(version):
    found = which(f'python{version}') or next(iter(sorted((Path.home()/'.pyenv'/'versions').glob(f'{version}.*/bin/python'))), None)
    return found or sys.exit(f'There is no python{version} here')

def tested(name):
    "A row of the table"
    version,pins = MATRIX[name]
    with tempfile.TemporaryDirectory() as tmp:
        def run(*args, **kw): return subprocess.run(list(map(str, args)), text=True, capture_output=True, cwd=ROOT, **kw)
        run(interpreter(version), '-m', 'venv', tmp, check=True)
        python = Path(tmp)/'bin'/'python'
        done = run(python, '-m', 'pip', 'install', '-q', f'{ROOT}[dev]', *pins)
        if not done.returncode:
            # One thread, since two of these run at a time
            done = run(python, '-m', 'pytest', '-q', env={**os.environ, 'OMP_NUM_THREADS':'1'})
        (Path(tempfile.gettempdir())/f'matrix {name}.log').write_text(done.stdout+done.stderr)
        packages = dict(re.findall(r'(?m)^(\S+)==(\S+)$', run(python, '-m', 'pip', 'freeze').stdout))
        full = run(python, '--version').stdout.split()[-1]
        return f"| {full} | {' | '.join(packages.get(o, '-') for o in ('fastai','torch','scikit-learn','pandas','numpy'))} | {(done.stdout.strip().splitlines() or ['not installed'])[-1].strip('= ')} |"

if __name__=='__main__':
    print(f"{datetime.date.today()}\n\n| Python | fastai | torch | scikit-learn | pandas | numpy | tests |\n|---|---|---|---|---|---|---|", flush=True)
    with ThreadPoolExecutor(2) as pool:
        for row in pool.map(tested, sys.argv[1:] or MATRIX): print(row, flush=True)
