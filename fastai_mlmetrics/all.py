"Everything that a notebook needs after `from fastai.vision.all import *`"
from fastai.learner import Learner as _Learner, Recorder as _Recorder
from .core.messages import document as _document
from .metrics.formulas import (
    AccuracyMulti, PrecisionMulti, RecallMulti, F1ScoreMulti, CF1, FBetaMulti, JaccardMulti,
    SpecificityMulti, BalancedAccuracyMulti, HammingLossMulti, MatthewsCorrCoefMulti, SubsetAccuracy,
    EmptyRate, LabelCardinality, ZerosAccuracy, AccuracyLift, BrierScoreMulti, accuracy_multi,
    subset_accuracy, empty_rate, zeros_accuracy, categorical_accuracy)
from .metrics.ranking import (
    APScoreMulti, RocAucMulti, LRAP, CoverageError, LabelRankingLoss, OneError, PrecisionAtK,
    RecallAtK, ExpectedCalibrationError)
from .metrics.lists import multilabel_metrics, paper_metrics
from .thresholds.finding import best_thresholds, ThreshFinder
from .reports.accuracy import accuracy_report
from .reports.comparison import compare_models
from .reports.slices import compare_slices
from .diagnosis.boxes import ZeroLabelsWarning, ZeroLabelsError
from .diagnosis.records import judge
from .diagnosis.callback import ZeroLabelsCallback
from .learner import thresholds as _, evaluate as _, export as _ # patches `Learner`
from .reports.interpret import MultiLabelInterpretation
from .data.imbalance import label_stats, pos_weight
from .data.splitting import StratifiedMultiLabelSplitter, stratified_split, stratified_folds
from .data.losses import BCEWithLogitsLossFlat, AsymmetricLossFlat, SigmoidFocalLossFlat

__all__ = [k for k in globals() if k[0]!='_']

# `help` and `?` show what arguments mean
_document(*map(globals().get, __all__), _Learner, _Recorder)
