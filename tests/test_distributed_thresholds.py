"Thresholds in bins have the results of one process"
from conftest import *
from test_distributed import context, in_processes

def found():
    "Of fastai's loader; 51 samples are padded"
    res = []
    for n in (51,400):
        learn = make_learner(*simulate(n, 6, density=0.3, skill=2., bias=-2.), vocab=list('abcdef'))
        with context(learn), learn.no_bar(): best = learn.thresh_find(bins=256, show_plot=False, min_positives=5)
        res.append((*best, best.table.to_csv()))
    return res

def by_torch_sampler():
    "Of torch's own sampler, which gives each process every second sample"
    ds = torch.utils.data.TensorDataset(*simulate(301, 6, density=0.3, skill=2., bias=-2.))
    sampler = torch.utils.data.DistributedSampler(ds, shuffle=False) if num_distrib() else None
    dl = torch.utils.data.DataLoader(ds, 16, sampler=sampler)
    learn = Learner(DataLoaders(dl, dl, device=torch.device('cpu')), Same(), loss_func=BCEWithLogitsLossFlat())
    learn.remove_cb(ProgressCallback)
    best = learn.thresh_find(bins=256, show_plot=False)
    return [(*best, best.table.to_csv())]

@pytest.mark.parametrize('f', [found, by_torch_sampler])
def test_processes_find_the_thresholds_of_one(tmp_path, f):
    expected = f()
    for result in in_processes(f, 2, tmp_path): assert result==expected
