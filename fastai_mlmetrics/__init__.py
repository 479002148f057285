"""Metrics for multi-label fastai models, and a warning if a high accuracy means next to nothing

A model that predicts hardly any label still scores an `accuracy_multi` of 0.92 if labels are rare.
`multilabel_metrics` shows accuracy beside that of predicting nothing, and F1 in three averages;
`ZeroLabelsCallback` warns of such a model and says what to type. To start:

    from fastai_mlmetrics.all import * # After fastai's own imports
    learn = vision_learner(dls, resnet18, metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())

For predictions and targets as arrays of any library: `judge(preds, targs)`. For all names:
`help(fastai_mlmetrics.all)`.
"""

__version__ = "0.1.0"
