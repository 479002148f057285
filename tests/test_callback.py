"What the callback records, when it speaks, and what it says"
import sklearn.metrics as skm
from hypothesis import given
from conftest import *
from fastai_mlmetrics.callback import ScoreHistogram, best_constant_f1

def trained(logits, targs, n_epoch=1, model=None, **kwargs):
    "A Learner with the callback, after a fit that changes nothing; and what it said"
    learn = make_learner(logits, targs, multilabel_metrics(), model, cbs=ZeroLabelsCallback(**kwargs))
    with warnings.catch_warnings(record=True) as said, learn.no_logging():
        warnings.simplefilter('always')
        learn.fit(n_epoch, 0.)
    return learn,[w for w in said if issubclass(w.category, ZeroLabelsWarning)]

COLLAPSED = simulate(bias=-9)
GOOD = simulate(skill=8)

class Waking(Module):
    "Collapsed for some validations, then good"
    def __init__(self, asleep): self.w,self.asleep,self.seen = nn.Parameter(torch.zeros(1)),asleep,0
    def train(self, mode=True):
        self.seen += not mode
        return super().train(mode)
    def forward(self, x): return x + 0*self.w - (9 if self.seen<=self.asleep else 0)

def test_record():
    logits,targs = simulate()
    learn,_ = trained(logits, targs)
    r, = learn.zero_labels.records
    p,y = (logits>0).long(),targs.long()
    labelled = y.any(1)
    for key,expected in dict(samples=400, labelled=labelled.sum(), thresh=0.5, accuracy=(p==y).float().mean(), zeros_accuracy=(y==0).float().mean(),
                             f1_micro=skm.f1_score(y, p, average='micro'), empty_rate=(~p.any(1)).float().mean(),
                             missed_rate=(~p.any(1))[labelled].float().mean(), pred_per_sample=p.sum()/400, true_per_sample=y.sum()/400,
                             n_never=((p.sum(0)==0) & (y.sum(0)>0)).sum(), epoch=0, validation=0).items():
        assert r[key]==pytest.approx(float(expected), abs=1e-6), key
    assert r.lift==pytest.approx((r.accuracy-r.zeros_accuracy)/(1-r.zeros_accuracy))
    assert r.phase=='fit' and r.valid_loss==pytest.approx(learn.recorder.values[-1][1])

def test_collapsed_is_flagged():
    learn,said = trained(*COLLAPSED)
    r = learn.zero_labels.records[-1]
    assert r.verdict=='predicts nothing' and r.accuracy==r.zeros_accuracy>0.9 and r.n_never==20
    warning, = said
    text = str(warning.message)
    assert warning.message.record is r and max(map(len, text.splitlines()))<=80
    assert f'accuracy {r.accuracy:.3f}; predicting nothing at all has {r.zeros_accuracy:.3f}' in text
    assert f'thresh={r.suggested_thresh}' in text and 'min_labels=1' in text
    better = F1ScoreMulti(r.suggested_thresh, average='micro')(*COLLAPSED)
    assert better==pytest.approx(r.suggested_f1, abs=0.02) and better>0.5
    assert not os.path.exists(warning.filename)

@pytest.mark.parametrize('data,why', [
    (GOOD, 'a good model'),
    (simulate(2000, skill=8, density=0.002), 'most samples have no label'),
    (simulate(skill=6, bias=-5), 'good but cautious'),
    ((torch.full((400,20), -9.), torch.zeros(400,20)), 'all-zeros is right'),
    (simulate(15, bias=-9), 'fewer than 20 samples with labels')])
def test_silent(data, why):
    learn,said = trained(*data, n_epoch=4)
    assert not said and not any(r.verdict for r in learn.zero_labels.records), why

def test_forum():
    "20 labels, accuracy 0.97, most pictures without a label"
    logits,targs = simulate(2000, density=0.05, skill=4.5, bias=-5.2)
    r = trained(logits, targs)[0].zero_labels.records[-1]
    assert 0.955<r.accuracy<0.985 and r.verdict=='leaves samples empty'

@pytest.mark.parametrize('c,density', [(17,0.171), (6,0.26)])
def test_denser_data(c, density):
    assert trained(*simulate(1000, c, density, bias=-9))[0].zero_labels.records[-1].verdict=='predicts nothing'

def test_recall_without_precision_is_no_zero_label_problem():
    logits,targs = simulate(2000, density=0.08, skill=0, bias=0)
    p = torch.where(targs>0, torch.rand(2000,20)<0.9, torch.rand(2000,20)<0.092)
    r = trained(torch.where(p, 1., -1.), targs)[0].zero_labels.records[-1]
    assert r.accuracy<r.zeros_accuracy and not r.flagged

def test_no_better_than_a_constant():
    _,targs = simulate(1000, 10, 0.1)
    targs[:,0] = (torch.arange(1000)%3==0).float()
    r = trained(torch.where(torch.arange(10)==0, 1., -1.).expand(1000,10), targs)[0].zero_labels.records[-1]
    assert r.verdict=='no better than a constant' and r.f1_micro==pytest.approx(r.constant_f1)

def test_over_predicting_has_its_own_words():
    learn,said = trained(*simulate(skill=6, bias=-1), n_epoch=4)
    assert learn.zero_labels.records[-1].verdict=='over-predicts' and len(said)==1
    assert 'far more labels than there are' in str(said[0].message) and 'min_labels' not in str(said[0].message)

@given(decided(max_samples=20))
def test_best_constant(decided):
    _,y = decided
    order = y.sum(0).argsort()[::-1]
    best = max(skm.f1_score(y, np.isin(np.arange(y.shape[1]), order[:k])[None].repeat(len(y), 0), average='micro', zero_division=0) for k in range(1, y.shape[1]+1))
    assert best_constant_f1(torch.tensor(y.sum(0)), len(y))==pytest.approx(best)

def test_when_it_speaks():
    assert [w.message.record.epoch for w in trained(*COLLAPSED, n_epoch=6)[1]]==[2,5]
    assert [w.message.record.epoch for w in trained(*COLLAPSED, n_epoch=3)[1]]==[2]
    assert [w.message.record.epoch for w in trained(*COLLAPSED, n_epoch=2)[1]]==[1]
    assert not trained(*GOOD, n_epoch=5, model=Waking(2))[1]
    begin,end = trained(*GOOD, n_epoch=6, model=Waking(4))[1]
    assert begin.message.record.epoch==2 and end.message.record.epoch==4 and 'All clear' in str(end.message)

def test_stop():
    learn,said = trained(*COLLAPSED, n_epoch=6, on_flag='stop')
    assert len(learn.recorder.values)==3==len(learn.zero_labels.records) and len(said)==1
    with pytest.warns(ZeroLabelsWarning): values(learn)

def test_raise():
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag='raise')).add_cbs(ProgressCallback())
    logger = learn.logger
    with pytest.raises(ZeroLabelsError, match='predicts .nearly. nothing'): learn.fit(6, 0.)
    assert len(learn.recorder.values)==3 and learn.logger is logger and not hasattr(learn.progress, 'mbar')
    learn.remove_cb(ProgressCallback)
    learn.zero_labels.on_flag = 'warn'
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)

def test_function():
    seen = []
    trained(*COLLAPSED, n_epoch=6, on_flag=seen.append)
    assert [r.epoch for r in seen]==[2,5] and all(r.flagged for r in seen)

def test_as_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter('error', ZeroLabelsWarning)
        learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback())
        with pytest.raises(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)

def test_bad_argument():
    with pytest.raises(ValueError, match="on_flag='shout' should be"): ZeroLabelsCallback(on_flag='shout')

def test_only_validations_are_recorded(tmp_path):
    learn,_ = trained(*GOOD, n_epoch=2)
    learn.path = tmp_path
    with learn.no_logging():
        learn.validate()
        learn.get_preds(); learn.lr_find(show_plot=False, num_it=20)
        learn.fine_tune(1, 0., freeze_epochs=1)
    learn.export(tmp_path/'learn.pkl')
    cb = load_learner(tmp_path/'learn.pkl').zero_labels
    for o in (learn.zero_labels, cb): assert [(r.validation, r.phase) for r in o.records]==[(0,'fit'),(1,'fit'),(2,'validate'),(3,'fit'),(4,'fit')]
    assert list(cb.report().columns)==list(cb.records[0]) and len(cb.report())==5

def test_threshold_of_the_loss():
    learn,_ = trained(*COLLAPSED)
    learn.loss_func = BCEWithLogitsLossFlat(thresh=0.003)
    values(learn)
    assert learn.zero_labels.records[-1].thresh==0.003 and not learn.zero_labels.records[-1].flagged
    assert trained(*COLLAPSED, thresh=0.003)[0].zero_labels.records[-1].thresh==0.003

def test_nan_predictions_have_no_verdict():
    logits,targs = simulate(bias=-9)
    logits[3] = math.nan
    with pytest.warns(UserWarning, match='NaN in 1 samples'): learn = make_learner(logits, targs, cbs=ZeroLabelsCallback()); values(learn)
    assert learn.zero_labels.records[-1].verdict=='' and math.isnan(learn.zero_labels.records[-1].accuracy)

def test_plot():
    learn,_ = trained(*GOOD, n_epoch=4, model=Waking(3))
    left,right = learn.zero_labels.plot()
    accuracy,zeros = (l.get_ydata() for l in left.lines)
    test_eq(list(accuracy), learn.zero_labels.report().accuracy.tolist()); test_eq(list(zeros), learn.zero_labels.report().zeros_accuracy.tolist())
    test_eq(list(right.lines[0].get_ydata()), learn.zero_labels.report().empty_rate.tolist())
    assert len(left.patches)==3
    plt.close()

# The histogram

@pytest.mark.parametrize('bias,c,density', [(b,*cd) for b in (-2.,-6.,-12.) for cd in ((5,0.3),(80,0.03),(600,0.01))] + [(1.,5,0.3)])
def test_suggested_threshold(bias, c, density):
    logits,targs = simulate(1000, c, density, bias=bias)
    hist = ScoreHistogram(2**30)
    for l,t in zip(logits.split(64), targs.split(64)): hist.add(l.sigmoid(), t)
    thresh = hist.suggest()
    assert float(f'{thresh:.3g}')==thresh
    p = to_decisions(logits, thresh)
    assert abs(p.sum()/targs.sum()-1)<0.05
    assert hist.f1(thresh)==pytest.approx(skm.f1_score(targs, p, average='micro'), abs=0.02)
    tp,pred,true = hist.at(0.5)
    assert true==targs.sum() and pred==pytest.approx((logits>0).sum().item(), rel=0.02, abs=2)

def test_no_threshold_where_scores_are_alike():
    hist = ScoreHistogram()
    hist.add(torch.full((100,20), 0.003), torch.eye(20).repeat(5,1))
    assert hist.suggest() is None
    assert ScoreHistogram().bins is None

def test_rows_are_sampled_from_large_batches():
    logits,targs = simulate(20_000, 20)
    hist = ScoreHistogram(2**14)
    hist.add(logits.sigmoid(), targs)
    assert hist.bins.sum()<=2**14
    assert abs(to_decisions(logits, hist.suggest()).sum()/targs.sum()-1)<0.15

def test_histogram_of_logits():
    logits,targs = simulate()
    hist = ScoreHistogram(2**30)
    hist.add(logits, targs)
    for t in (-3., -0.5, 0., 0.5): assert hist.at(t)[1]==pytest.approx((logits>t).sum().item(), abs=3)
