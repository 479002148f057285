"Everything that a notebook needs after `from fastai.vision.all import *`"
from .counts import to_scores, to_decisions
from .metrics import *
from .callback import ZeroLabelsCallback, ZeroLabelsWarning, ZeroLabelsError
from .digits import multidigits, multilabel_dls
