"No sample is lost or counted twice after interruptions and exports"
from helpers import *

def as_before(learn, expected):
    "Validate, and compare with the values of a Learner without interruptions"
    test_eq(values(learn), expected)
    r = learn.zero_labels.records[-1]
    assert r.samples==100 and r.accuracy==pytest.approx(expected['accuracy_multi'], abs=1e-12)

class Fails(Same):
    "A model that raises `error` at its n-th batch, once"
    def __init__(self, error, n):
        super().__init__()
        self.error,self.n = error,n
    def forward(self, x):
        self.n -= 1
        if self.n==0: raise self.error
        return super().forward(x)

# Interruptions

@pytest.mark.parametrize('error,in_fit', [
    (KeyboardInterrupt(), True), (CancelFitException(), True), (CancelEpochException(), True),
    (KeyboardInterrupt(), False), (RuntimeError('a fault'), False), (CancelValidException(), False),
    (CancelBatchException(), False)], ids=lambda o: '' if isinstance(o, bool) else type(o).__name__)
def test_an_interruption_leaves_no_counts(error, in_fit):
    expected,learn = clean(),full_learner(model=Fails(error, 10 if in_fit else 3)) # a fit trains on 6 batches before
    with learn.no_logging():
        try: learn.fit(1) if in_fit else learn.validate()
        except (KeyboardInterrupt, RuntimeError, CancelFitException, CancelEpochException): pass
    learn.model.n = 0
    as_before(learn, expected)
    with learn.no_logging(): learn.fit(1, 0.)
    test_eq(dict(zip(learn.metrics.attrgot('name'), learn.recorder.values[-1][2:])), expected)

# Copies and files

def test_exported_and_resumed_learners_have_the_same_values(tmp_path):
    expected,learn = clean(),full_learner(path=tmp_path, model_dir='.')
    with learn.no_logging():
        learn.fit(2, 0.)
        learn.save('two', with_opt=True)
        learn.export('l.pkl')
        again = full_learner(path=tmp_path, model_dir='.').load('two')
        with again.no_logging(): again.fit(3, 0., start_epoch=2)
        assert [(r.epoch,r.phase) for r in again.zero_labels.records]==[(2,'fit')]
        as_before(again, expected)
        loaded = load_learner(tmp_path/'l.pkl')
    loaded.dls = learn.dls
    as_before(loaded, expected)
