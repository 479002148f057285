"Counts at every threshold, and the best constant prediction"
import sklearn.metrics as skm
from helpers import *
from fastai_mlmetrics.metrics.curves import bin_edges, bin_index, constant_values

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

@pytest.mark.parametrize('bins', [2,7,64,1024,2**14])
@pytest.mark.parametrize('dtype', [np.float32, np.float64])
def test_a_score_is_beyond_exactly_the_edges_below_it(dtype, bins):
    edges = bin_edges(bins)[1:-1].numpy().astype(dtype)
    near = [np.nextafter(edges, dtype(o)) for o in (0, 2)]
    p = np.concatenate([edges, *near, np.random.default_rng(0).random(1000), [0.,1.,0.5]]).clip(0, 1).astype(dtype)
    at = bin_index(torch.from_numpy(p)[:,None], torch.zeros(len(p), 1), bins, exact=True)
    inner = len(edges)-np.searchsorted(edges[::-1], p) # the edges that are not below it
    np.testing.assert_array_equal(at[:,0], inner)
