"The same labels for every sample, and a random ranking"
import sklearn.metrics as skm
from helpers import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.baselines import best_constant, constant_score, constant_values, predict_constant

@given(binary_pairs(max_samples=20))
def test_the_best_constant_has_the_highest_f1(pair):
    _,y = pair
    order = y.sum(0).argsort()[::-1]
    def f1_of_first(k):
        "Micro F1 if the `k` most frequent labels are predicted for every sample"
        constant = np.isin(np.arange(y.shape[1]), order[:k])[None].repeat(len(y), 0)
        return skm.f1_score(y, constant, average='micro', zero_division=0)
    best = max(f1_of_first(k) for k in range(1, y.shape[1]+1))
    zeros,support = torch.zeros(y.shape[1]),torch.tensor(y.sum(0))
    counts = torch.stack([zeros, zeros, support, len(y)-support])
    assert constant_values(F1ScoreMulti(average='micro'), counts).max().item()==pytest.approx(best)

@given(binary_pairs(max_samples=8), st.sampled_from([0., 1., math.nan]), st.data())
def test_constant_values_are_those_of_each_constant(pair, zero_division, data):
    "Each number of labels, predicted for every sample and scored as predictions are"
    _,y = pair
    ignored = data.draw(arrays(bool, y.shape))
    targs = np.where(ignored, -1, y)
    kept = ~ignored
    support,n = (y*kept).sum(0),kept.sum(0)
    zeros = np.zeros(y.shape[1])
    counts = torch.from_numpy(np.stack([zeros, zeros, support, n-support]))
    frequency = np.where(n>0, support/np.maximum(n, 1), 0)
    order = np.argsort(-frequency, kind='stable')
    for cls in (PrecisionMulti, RecallMulti, F1ScoreMulti, JaccardMulti, AccuracyMulti):
        for average in ('micro','macro','weighted'):
            m = cls(average=average, zero_division=zero_division, ignore_index=-1)
            expected = []
            for k in range(y.shape[1]+1):
                constant = np.isin(np.arange(y.shape[1]), order[:k])[None].repeat(len(y), 0).astype(int)
                expected.append(m(constant, targs))
            if average=='weighted' and np.isnan(expected).any(): continue # No defined label has a positive
            same(constant_values(m, counts), expected, of=(cls, average))

def targets(n, *support):
    "Targets with these numbers of positives, N x C, and their counts"
    y = torch.stack([torch.arange(n)%n<k for k in support], 1).long()
    true = y.sum(0).double()
    return y,torch.stack([0*true, 0*true, true, n-true])

@pytest.mark.parametrize('support,labels', [((5,50,10),[1]), ((50,45,1),[0,1]), ((0,0),[]), ((9,9),[0,1])])
def test_the_constant_is_of_the_most_frequent_labels(support, labels):
    "With the best micro F1; the fewest of these if several have it"
    assert best_constant(targets(100, *support)[1]).nonzero().flatten().tolist()==labels

def test_a_constant_of_labels_or_scores_is_scored_as_predictions_are():
    y,counts = targets(100, 5, 50, 60)
    y[:3,1] = -1
    p = Predictions.of(y.clamp(0)/2, y, ignore_index=-1, labels=[0,2], min_labels=1)
    constant = predict_constant(p, torch.tensor([False,True]))
    assert constant.predicted.tolist()==[[False,True]]*100 and not constant.scored
    assert constant.counts.tolist()==[[0,60],[0,40],[5,0],[95,0]]
    assert predict_constant(p, torch.tensor([0.2,0.3])).scores[7].tolist()==pytest.approx([0.2,0.3])

def test_a_constant_over_samples_is_the_best_of_the_micro_average():
    y,counts = targets(100, 5, 50, 60)
    p = Predictions.of(y/2, y)
    expected = skm.f1_score(y, np.tile([0,1,1], (100,1)), average='samples', zero_division=0)
    assert constant_score(F1ScoreMulti(average='samples'), counts, p)==pytest.approx(expected)
    assert constant_score(HammingLossMulti(), counts, sign=-1)==pytest.approx((5+50+40)/300)
