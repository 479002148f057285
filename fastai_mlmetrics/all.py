"Everything that a notebook needs after `from fastai.vision.all import *`"
from fastai.learner import Learner as _Learner, Recorder as _Recorder
from .messages import document as _document
from .formulas import (
    AccuracyMulti, PrecisionMulti, RecallMulti, F1ScoreMulti, CF1, FBetaMulti, JaccardMulti,
    SpecificityMulti, BalancedAccuracyMulti, HammingLossMulti, MatthewsCorrCoefMulti, SubsetAccuracy,
    EmptyRate, LabelCardinality, ZerosAccuracy, AccuracyLift, BrierScoreMulti, accuracy_multi,
    subset_accuracy, empty_rate, zeros_accuracy, categorical_accuracy)
from .ranking import (
    APScoreMulti, RocAucMulti, LRAP, CoverageError, LabelRankingLoss, OneError, PrecisionAtK,
    RecallAtK, ExpectedCalibrationError)
from .lists import multilabel_metrics, paper_metrics
from .finding import best_thresholds, ThreshFinder
from .accuracy import accuracy_report
from .comparison import compare_models
from .records import judge, ZeroLabelsWarning, ZeroLabelsError
from .callback import ZeroLabelsCallback
from . import learner_thresholds as _, evaluate as _, export as _ # patches `Learner`
from .interpret import MultiLabelInterpretation
from . import plots as _, page as _ # patches `MultiLabelInterpretation`
from .imbalance import label_stats, imbalance_measures, plot_cooccurrence, pos_weight
from .splitting import StratifiedMultiLabelSplitter, stratified_split, stratified_folds
from .losses import BCEWithLogitsLossFlat, AsymmetricLossFlat, SigmoidFocalLossFlat
from .digits import multidigits, multilabel_dls

# `help` and `?` show what arguments mean
_document(*[o for k,o in globals().items() if k[0]!='_'], _Learner, _Recorder)
