"Everything that a notebook needs after `from fastai.vision.all import *`"
from fastai.learner import Learner as _Learner, Recorder as _Recorder
from .messages import document as _document
from .metrics import (
    AccuracyMulti, PrecisionMulti, RecallMulti, F1ScoreMulti, CF1, FBetaMulti, JaccardMulti,
    SpecificityMulti, BalancedAccuracyMulti, HammingLossMulti, MatthewsCorrCoefMulti, SubsetAccuracy,
    EmptyRate, LabelCardinality, ZerosAccuracy, AccuracyLift, BrierScoreMulti, accuracy_multi,
    subset_accuracy, empty_rate, zeros_accuracy, categorical_accuracy)
from .ranking import (
    APScoreMulti, RocAucMulti, LRAP, CoverageError, LabelRankingLoss, OneError, PrecisionAtK,
    RecallAtK, ExpectedCalibrationError)
from .lists import multilabel_metrics, paper_metrics
from .thresholds import best_thresholds, ThreshFinder
from .report import accuracy_report
from .comparison import compare_models
from .verdicts import judge, ZeroLabelsWarning, ZeroLabelsError
from .callback import ZeroLabelsCallback
from . import learner as _ # patches `Learner`
from .interpret import MultiLabelInterpretation
from . import page as _ # patches `MultiLabelInterpretation`
from .imbalance import label_stats, imbalance_measures, plot_cooccurrence, pos_weight
from .splitting import StratifiedMultiLabelSplitter, stratified_split, stratified_folds
from .losses import BCEWithLogitsLossFlat, AsymmetricLossFlat, SigmoidFocalLossFlat
from .digits import multidigits, multilabel_dls

# `help` and `?` show what arguments mean
_document(*[o for k,o in globals().items() if k[0]!='_'], _Learner, _Recorder)
