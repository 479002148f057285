"The main job: python -m fastai_mlmetrics"
import warnings
warnings.filterwarnings('ignore', category=FutureWarning) # torch's, of a function that torchvision calls

from .demo import main
main()
