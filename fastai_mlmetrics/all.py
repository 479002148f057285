"Everything that a notebook needs after `from fastai.vision.all import *`"
from .counts import to_scores, to_decisions
from .metrics import *
from .ranking import CurveMetric, APScoreMulti, RocAucMulti, LRAP, CoverageError, LabelRankingLoss, OneError, PrecisionAtK, RecallAtK, ExpectedCalibrationError
from .report import multilabel_metrics, accuracy_report, AccuracyReport
from .callback import ZeroLabelsCallback, ZeroLabelsWarning, ZeroLabelsError, judge
from .thresholds import best_thresholds, BestThresholds, SuggestedThresholds
from .imbalance import label_stats, pos_weight
from .interpret import MultiLabelInterpretation
from .digits import multidigits, multilabel_dls
