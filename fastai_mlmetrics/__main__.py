"The main job: python -m fastai_mlmetrics"
import sys, warnings
from pathlib import Path
from textwrap import fill
from fastcore.script import call_parse

# torch's, of what torchvision calls
warnings.filterwarnings('ignore', category=FutureWarning)
# torchvision's, of how fastai calls it
warnings.filterwarnings('ignore', module='torchvision')
sys.argv[0] = 'python -m fastai_mlmetrics' # as the usage names it

def main(
    data:str='digits', # 'digits' (made), 'pascal' (downloaded), or a folder with train.csv and train/
    arch:str='small', # 'small', or one of fastai's architectures, such as 'resnet18'
    epochs:int=15, # Number of epochs, a fifth of them before the first look
    thresh:float=0.5, # Labels with probabilities above it are predicted
    out:Path='mlmetrics_demo', # Folder for the data set, the figures and the report
    size:int=64 # Height and width of the pictures in pixels
):
    "Train a multi-label model that predicts nothing at first, show the warning, and try what helps"
    out = out.expanduser()
    try:
        if epochs<1: raise ValueError(f"--epochs {epochs}: write 1 or more")
        # The imports of fastai take seconds, so they come after the checks
        print('Loading fastai ...', flush=True)
        from .demo import get_learner, prepare_data, run_demo
        learn = get_learner(prepare_data(data, arch, out, size), arch, thresh)
        out.mkdir(parents=True, exist_ok=True)
    except (ValueError, OSError) as e:
        print(fill(f'fastai_mlmetrics: {e}', 79, break_long_words=False,
                   break_on_hyphens=False), file=sys.stderr)
        sys.exit(2)
    run_demo(learn, epochs, out)

try: call_parse(main) # Runs it, because this file is run
except KeyboardInterrupt:
    print('\ninterrupted', file=sys.stderr)
    sys.exit(130)
