"Scores and targets of six labels, and all functions of arrays, with plain values as results"
from helpers import *

LOGITS,TARGS = simulate(300, 6, density=0.3, bias=-2)
SCORES = LOGITS.sigmoid()
NAMES = list('abcdef')

def report(*a, **kw): return accuracy_report(*a, ci=None, **kw).drop(columns=['low','high']).values.tolist()
def record(*a, **kw):
    r = judge(*a, **kw)
    return [r[k] for k in ('accuracy','f1_micro','missed_rate','suggested_f1','never_predicted')]
def interpretation(*a, **kw):
    return MultiLabelInterpretation.from_preds(*a, **kw).report('label', averages=False).values.tolist()
def thresholds(*a, thresh=None, **kw):
    return [best_thresholds(*a, average=o, **kw) for o in ('micro','macro','samples')]
def metric(*a, sigmoid=False, **kw):
    return [F1ScoreMulti(sigmoid=sigmoid, average=o, **kw)(*a) for o in ('macro','samples')]

FUNCTIONS = dict(report=report, judge=record, interpretation=interpretation, thresholds=thresholds, metric=metric)
every_function = pytest.mark.parametrize('f', FUNCTIONS.values(), ids=FUNCTIONS)

def rounded(o):
    "`o` with all floats, also nested ones, rounded to nine digits"
    if isinstance(o, float): return round(o, 9)
    if hasattr(o, '_fields'): return type(o)(*map(rounded, o))
    return [*map(rounded, o)] if isinstance(o, (list,tuple)) else o

def without_sampling(o): return re.sub(r'\s*Samples\s+are\s+taken.*', '', str(rounded(o)), flags=re.S) # Said once

def assert_alike(a, b): assert without_sampling(a)==without_sampling(b)
