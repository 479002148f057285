"The main job: python -m fastai_mlmetrics"
import sys, warnings
warnings.filterwarnings('ignore', category=FutureWarning) # torch's, of what torchvision calls
warnings.filterwarnings('ignore', module='torchvision') # of how fastai calls it
sys.argv[0] = 'python -m fastai_mlmetrics' # as the usage names it

try:
    print('Loading fastai ...', flush=True)
    from .demo import main
    main()
except KeyboardInterrupt:
    print('\ninterrupted', file=sys.stderr)
    sys.exit(130)
