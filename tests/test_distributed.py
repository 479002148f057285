"Several processes see what one would"
import socket
import torch.multiprocessing as mp
from fastai.distributed import DistributedDL
from conftest import *

class CpuDistributedDL(DistributedDL):
    def _broadcast(self, t, rank): # fastai's moves it to a GPU, which gloo does not need
        t = torch.tensor(t)
        torch.distributed.broadcast(t, rank)
        return t.tolist()

def metrics(): return multilabel_metrics() + [F1ScoreMulti(average=None, name='f1_each'), AccuracyLift(), SubsetAccuracy(), LabelCardinality(),
        MatthewsCorrCoefMulti(), BalancedAccuracyMulti(), BrierScoreMulti(), BrierScoreMulti(average='samples', name='brier_samples'),
        APScoreMulti(), APScoreMulti(average='micro'), APScoreMulti(bins=64, name='ap_binned'), RocAucMulti(), RocAucMulti(average='samples'), RocAucMulti(bins=64, average='micro'),
        LRAP(), CoverageError(), LabelRankingLoss(), OneError(), PrecisionAtK(3), RecallAtK(3), ExpectedCalibrationError()]

def work(rank, world, port, n, path):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR='localhost', MASTER_PORT=str(port))
    torch.distributed.init_process_group('gloo')
    learn = make_learner(*simulate(n, bias=-6), metrics(), cbs=ZeroLabelsCallback())
    learn.dls.loaders[1] = CpuDistributedDL(learn.dls.valid, rank, world)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        result = values(learn)
    said = sum(issubclass(w.category, ZeroLabelsWarning) for w in said)
    torch.save((result, dict(learn.zero_labels.records[0], valid_loss=None), said), f'{path}/{rank}.pt')
    torch.distributed.destroy_process_group()

@pytest.mark.parametrize('world,n', [(2,51), (3,70), (2,1)])
def test_processes_agree_with_one(tmp_path, world, n):
    with socket.socket() as s:
        s.bind(('localhost', 0))
        port = s.getsockname()[1]
    mp.spawn(work, (world, port, n, str(tmp_path)), world)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn = make_learner(*simulate(n, bias=-6), metrics(), cbs=ZeroLabelsCallback())
        expected,record = values(learn),dict(learn.zero_labels.records[0], valid_loss=None)
    for rank in range(world):
        result,r,said = torch.load(tmp_path/f'{rank}.pt', weights_only=False)
        for k,v in expected.items(): np.testing.assert_allclose(result[k], v, atol=1e-12, err_msg=k)
        assert str(r)==str(record)
        assert said==(rank==0 and bool(record['verdict']))
