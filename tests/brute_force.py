"Brute force over all distinct binary predictions, with which threshold searches are compared"
from helpers import *

CLASSES = dict(f1=F1ScoreMulti, jaccard=JaccardMulti, accuracy=AccuracyMulti, balanced_accuracy=BalancedAccuracyMulti,
               matthews=MatthewsCorrCoefMulti)

@st.composite
def scored(draw, max_samples=9, max_labels=3):
    "Scores with many ties, 0 and 1 among them, and targets"
    shape = draw(st.integers(1, max_samples)),draw(st.integers(2, max_labels))
    values = np.array([0,1e-6,0.1,0.3,0.5,np.nextafter(np.float32(0.5), np.float32(1)),0.9,1], np.float32)
    scores = draw(arrays(np.float32, shape, elements=st.sampled_from(values.tolist())))
    return scores,draw(arrays(np.int64, shape, elements=st.integers(0, 1)))

def every_thresh(scores):
    """Thresholds for all distinct predictions of probabilities, without those between scores that differ in their last
    digits; a score of exactly 0 is above one that is negative"""
    s = np.unique(scores)
    apart = [float(a) for a,b in zip(s, s[1:]) if b-a>2**-20*b]
    return sorted({0., *apart, 1., -1e-9 if s[0]==0 else float(s[0])/2})

def best_of(values):
    "The maximum, without NaN"
    values = [o for o in values if not np.isnan(o)]
    return max(values) if values else np.nan

def above(scores, thresh): return (np.asarray(scores)>np.float32(thresh)).astype(int)
