"Counts at every threshold, and the best constant prediction"
import sklearn.metrics as skm
from conftest import *
from fastai_mlmetrics.curves import bin_edges, bin_index, constant_values

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

@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@given(st.data(), st.sampled_from([2,7,64,1024,2**14]))
def test_a_score_is_beyond_exactly_the_edges_below_it(dtype, data, bins):
    edges = bin_edges(bins)[1:-1].numpy()
    near = np.concatenate([np.nextafter(edges.astype(dtype), o) for o in (dtype(0), dtype(2))] + [edges, [0.,1.,0.5]])
    p = torch.from_numpy(np.clip(data.draw(st.permutations(near.astype(dtype).tolist()[:500])), 0, 1).astype(dtype))
    p = torch.cat([p, torch.from_numpy(near.astype(dtype)).clip(0, 1)])[:,None]
    at = bin_index(p, torch.zeros_like(p), bins, sigmoid=False, exact=True)
    inner = (edges.astype(dtype)>=p.numpy()).sum(1)
    np.testing.assert_array_equal(at[:,0], inner)
