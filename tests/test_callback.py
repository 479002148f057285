"Tests of `ZeroLabelsCallback`: what it records, its verdicts, and when it warns"
import contextlib, io, itertools, logging, pickle, sklearn.metrics as skm
from contextlib import nullcontext
from copy import copy, deepcopy
from hypothesis import given, settings
from fastai.tabular.all import *
from fastai.text.all import *
from conftest import *
from fastai.callback.tensorboard import TensorBoardCallback
from fastai.callback.tracker import SaveModelCallback, TerminateOnNaNCallback, EarlyStoppingCallback
from fastai_mlmetrics.curves import constant_values
from fastai_mlmetrics.records import Record, ScoreHistogram
from fastai_mlmetrics.verdicts import beats_constant, describe, remedies

@contextlib.contextmanager
def recording(learn):
    "Record all warnings, without the Learner's log"
    with warnings.catch_warnings(record=True) as caught, learn.no_logging():
        warnings.simplefilter('always')
        yield caught

def trained(logits, targs, n_epoch=1, model=None, **kwargs):
    "A Learner with the callback after `n_epoch` epochs at a learning rate of 0, and the callback's warnings"
    learn = make_learner(logits, targs, multilabel_metrics(), model, cbs=ZeroLabelsCallback(**kwargs))
    with recording(learn) as caught: learn.fit(n_epoch, 0.)
    return learn,[w for w in caught if issubclass(w.category, ZeroLabelsWarning)]

COLLAPSED = simulate(bias=-9)
GOOD = simulate(skill=8)

class Waking(Module):
    "A model that predicts nothing for `asleep` validations, then predicts well"
    def __init__(self, asleep):
        self.w = nn.Parameter(torch.zeros(1))
        self.asleep,self.seen = asleep,0
    def train(self, mode=True):
        self.seen += not mode
        return super().train(mode)
    def forward(self, x): return x + 0*self.w - (9 if self.seen<=self.asleep else 0)

def test_record():
    logits,targs = simulate()
    learn,_ = trained(logits, targs)
    r, = learn.zero_labels.records
    p,y = (logits>0).long(),targs.long()
    labelled,empty = y.any(1),~p.any(1)
    expected = dict(
        samples=400, labelled=labelled.sum(), thresh=0.5, epoch=0, validation=0,
        accuracy=(p==y).float().mean(), zeros_accuracy=(y==0).float().mean(),
        f1_micro=skm.f1_score(y, p, average='micro'),
        empty_rate=empty.float().mean(), missed_rate=empty[labelled].float().mean(),
        pred_per_sample=p.sum()/400, true_per_sample=y.sum()/400)
    for key,value in expected.items(): assert r[key]==pytest.approx(float(value), abs=1e-6), key
    assert r.lift==pytest.approx((r.accuracy-r.zeros_accuracy)/(1-r.zeros_accuracy))
    assert r.phase=='fit' and r.valid_loss==pytest.approx(learn.recorder.values[-1][1])

def test_collapsed_is_flagged():
    learn,caught = trained(*COLLAPSED)
    r = learn.zero_labels.records[-1]
    assert r.verdict=='predicts nothing' and r.accuracy==r.zeros_accuracy>0.9 and len(r.never_predicted)==20
    warning, = caught
    text = str(warning.message)
    assert warning.message.record is r and max(map(len, text.splitlines()))<=80
    assert f'accuracy {r.accuracy:.3f}; predicting nothing at all scores {r.zeros_accuracy:.3f}' in text
    assert f'thresh={r.suggested_thresh}' in text and 'min_labels=1' in text
    better = F1ScoreMulti(r.suggested_thresh, average='micro')(*COLLAPSED)
    assert better==pytest.approx(r.suggested_f1, abs=0.02) and better>0.5
    assert not os.path.exists(warning.filename)

@pytest.mark.parametrize('data,why', [
    (GOOD, 'a good model'),
    (simulate(2000, skill=8, density=0.002), 'most samples have no label'),
    (simulate(skill=6, bias=-5), 'good but cautious'),
    (simulate(15, bias=-9), 'fewer than 20 samples with labels')])
def test_silent(data, why):
    learn,caught = trained(*data, n_epoch=4)
    assert not caught and not any(r.verdict for r in learn.zero_labels.records), why

def test_nothing_is_true():
    "For example with a `get_y` that finds no labels"
    learn,caught = trained(torch.full((400,20), -9.), torch.zeros(400,20), n_epoch=4)
    assert len(caught)==1
    assert 'none of the 400 validation samples has a label' in one_line(caught[0].message)
    assert not any(r.verdict for r in learn.zero_labels.records)

def test_forum():
    "20 labels, an accuracy of 0.97, and most images without a predicted label"
    logits,targs = simulate(2000, density=0.05, skill=4.5, bias=-5.2)
    r = trained(logits, targs)[0].zero_labels.records[-1]
    assert 0.955<r.accuracy<0.985 and r.verdict=='leaves samples empty'

@pytest.mark.parametrize('c,density', [(17,0.171), (6,0.26)])
def test_denser_data(c, density):
    learn,_ = trained(*simulate(1000, c, density, bias=-9))
    assert learn.zero_labels.records[-1].verdict=='predicts nothing'

def test_no_better_than_a_constant():
    _,targs = simulate(1000, 10, 0.1)
    targs[:,0] = (torch.arange(1000)%3==0).float()
    constant = torch.where(torch.arange(10)==0, 1., -1.).expand(1000,10)
    r = trained(constant, targs)[0].zero_labels.records[-1]
    assert r.verdict=='no better than a constant' and r.f1_micro==pytest.approx(r.constant_f1)

def test_worse_than_a_constant_is_not_well(capsys):
    "Also if the accuracy is too low to mislead, so that there is no verdict"
    logits,targs = simulate(c=6, density=0.4, skill=8)
    wrong = judge(-logits, targs, sigmoid=True)
    assert not wrong.verdict and '#d62728' in wrong._repr_html_()
    assert 'The model is worse than predicting the same labels for every sample, at' in one_line(repr(wrong))
    learn,caught = trained(logits-30, targs)
    assert caught and learn.zero_labels.reported
    learn.model.forward = lambda x: -x-30 + 0*learn.model.w
    with warnings.catch_warnings(record=True) as caught, learn.no_logging():
        learn.validate()
        learn.fit(4, 0.)
    assert not learn.zero_labels.records[-1].verdict and not caught
    assert 'All clear' not in capsys.readouterr().out

@pytest.mark.parametrize('density', [0.8, 0.93, 1.])
def test_where_most_labels_are_true(density):
    "A constant prediction has a high F1, and a good model is not flagged"
    logits,targs = simulate(1000, 5, density, skill=9, bias=-4.5)
    good = judge(logits, targs, sigmoid=True)
    assert good.constant_f1>0.87 and not good.verdict and 'No warning' in repr(good)
    p = targs.flip(0) # as good as chance
    assert judge(p, targs).verdict==('no better than a constant' if density<1 else '')

@given(st.floats(0.001, 1), st.floats(0, 1))
def test_clearly_above_a_constant(constant, f1):
    "A margin of 15 % of the constant baseline's F1, up to 0.5; a lower F1 is never above, an F1 of 1 always"
    beats = beats_constant(f1, constant)
    if constant<=0.5 and abs(f1-1.15*constant)>1e-9: assert beats==(f1>1.15*constant)
    if f1<constant: assert not beats
    if f1==1: assert beats

def test_over_predicting_has_its_own_words():
    learn,caught = trained(*simulate(skill=6, bias=-1), n_epoch=4)
    assert learn.zero_labels.records[-1].verdict=='over-predicts' and len(caught)==1
    assert 'far more labels than are true' in str(caught[0].message) and 'min_labels' not in str(caught[0].message)

@settings(max_examples=100)
@given(binary_pairs(max_samples=20))
def test_best_constant(pair):
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

def test_when_it_speaks(capsys):
    "With a learning rate of 0, only the first validation improves on the best loss"
    def lines(*args, **kw):
        "Epoch and length of each warning"
        _,caught = trained(*args, **kw)
        return [(w.message.record.epoch, 'full' if 'What helps' in str(w.message) else 'line') for w in caught]
    assert lines(*COLLAPSED, n_epoch=7)==[(3,'full'),(6,'line')]
    assert lines(*COLLAPSED, n_epoch=4)==[(3,'full')]
    assert lines(*COLLAPSED, n_epoch=2)==[(1,'full')]
    assert not lines(*GOOD, n_epoch=5, model=Waking(2)) and not capsys.readouterr().out
    assert lines(*GOOD, n_epoch=7, model=Waking(5))==[(3,'full')]
    assert 'All clear since epoch 5: epoch 6' in capsys.readouterr().out
    assert lines(*GOOD, n_epoch=9, model=Waking(5))==[(3,'full')]
    assert capsys.readouterr().out.count('All clear since epoch 5: epoch 7')==1

class Falling(Callback):
    "Sets the validation loss of each epoch"
    order = 51
    def __init__(self, losses): self.losses = losses
    def after_validate(self): self.recorder.loss.total,self.recorder.loss.count = self.losses[self.epoch],1

@pytest.mark.parametrize('losses,acts_at', [
    ([1.,.9,.8,.7,.6,.5,.4,.3], None), # learns
    ([1.,.9,2.,.8,2.,.7,2.,.6], None), # learns, with bad epochs between
    ([1.,.9,2.,2.,.8,2.,2.,.7], None),
    ([1.,1.,1.,1.,1.,1.,1.,1.], 3),
    ([1.,math.nan,math.nan,math.nan,1.,1.,1.,1.], 3),
    ([1.,.9,.9,.95,.9,.9,.9,.9], 4),
    ([1.,2.,3.,4.,5.,6.,7.,8.], 3)])
@pytest.mark.parametrize('on_flag', ['warn','stop','raise'])
def test_a_model_that_learns_is_left_alone(losses, acts_at, on_flag):
    cbs = [ZeroLabelsCallback(on_flag=on_flag), Falling(losses)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=cbs, bs=100)
    with recording(learn) as caught:
        try:
            learn.fit(8, 0.)
            raised = False
        except ZeroLabelsError: raised = True
    epochs = [w.message.record.epoch for w in caught]
    assert len(learn.zero_labels.records)==(acts_at+1 if acts_at and on_flag!='warn' else 8)
    if on_flag=='raise': assert raised and not epochs # at the end of a fit as well
    else: assert epochs==([acts_at] if acts_at else []) + ([7] if on_flag=='warn' or not acts_at else [])

def test_better_ranking_is_learning():
    "The loss rises and nothing is predicted, but true labels rank higher and higher"
    logits,targs = simulate(skill=0., bias=-9)
    class Learns(Same):
        n = 0.
        def forward(self, x):
            self.n += 1/25 if not self.training else 0
            return super().forward(x[...,:20] + 0.3*self.n*x[...,20:] - self.n)
    inputs = torch.cat([logits, targs], 1)
    learn = make_learner(inputs, targs, model=Learns(), cbs=ZeroLabelsCallback(on_flag='stop'))
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(8, 0.)
    r = learn.zero_labels.report(full=True)
    assert r.flagged.all() and r.valid_loss.is_monotonic_increasing and len(r)==8
    assert len(caught)==1 and 'micro average precision is still rising' in str(caught[0].message)

@pytest.mark.parametrize('losses,words', [
    ([1.,.5,.4], 'still falling, 0.4 now'),
    ([.3,.4,.9], 'A lower learning rate: the validation loss has risen, from 0.3 to 0.9'),
    ([.5,.5,.501], 'hardly moves, 0.5 at best')])
def test_what_the_loss_points_to(losses, words):
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=[ZeroLabelsCallback(), Falling(losses)])
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(3, 0.)
    assert words in one_line(caught[0].message)

def test_stop():
    learn,caught = trained(*COLLAPSED, n_epoch=6, on_flag='stop')
    assert len(learn.recorder.values)==4==len(learn.zero_labels.records) and len(caught)==1
    with pytest.warns(ZeroLabelsWarning, match=r'^\nStill predicts nothing'): values(learn)

def test_raise():
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag='raise'))
    learn.add_cbs(ProgressCallback())
    logger = learn.logger
    with pytest.raises(ZeroLabelsError, match='predicts .nearly. nothing'): learn.fit(6, 0.)
    assert len(learn.recorder.values)==4
    assert learn.logger is logger and not hasattr(learn.progress, 'mbar')
    learn.remove_cb(ProgressCallback)
    learn.zero_labels.on_flag = 'warn'
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)

def test_function():
    seen = []
    trained(*COLLAPSED, n_epoch=6, on_flag=seen.append)
    assert [r.epoch for r in seen]==[3,5] and all(r.flagged for r in seen)

def test_function_may_apply_the_remedy():
    def apply(r): learn.set_thresh(learn.thresh_find(show_plot=False).best)
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag=apply))
    with learn.no_logging(): learn.fit(1, 0.)
    assert learn.recorder.values[-1][-1]==0 and values(learn)['f1_samples']>0.3

def test_function_may_not_validate_in_a_validation_and_is_told_so():
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback(on_flag=lambda r: learn.get_preds()))
    with pytest.raises(RuntimeError, match='within learn.validate.*do so after it'), learn.no_logging():
        learn.validate()
    assert not learn.lock.locked() and len(learn.get_preds())==2
    seen = []
    learn.zero_labels.on_flag = seen.append
    with learn.no_logging(): learn.validate()
    assert seen[0] is learn.zero_labels.records[-1] and 'validation_context' not in vars(learn)

def test_function_may_validate_and_is_not_called_again():
    seen = []
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback(on_flag=lambda r: seen.append(r) or learn.validate()))
    with learn.no_logging(): learn.fit(6, 0.)
    assert [r.epoch for r in seen]==[3,5]
    assert [r.phase for r in learn.zero_labels.records].count('validate')==2

class Within(Callback):
    "Calls `f` in the middle of a fit"
    order = 51 # after the Recorder
    def __init__(self, event, f):
        setattr(self, event, lambda: None if self.learn.lock.locked() else f(self.learn))

@pytest.mark.parametrize('event', ['after_train','after_validate','after_epoch'])
@pytest.mark.parametrize('f', [
    lambda o: o.get_preds(),
    lambda o: o.get_preds(inner=True),
    lambda o: o.validate(dl=make_learner(*GOOD).dls.valid)], ids=['get_preds','inner','validate'])
def test_other_validations_within_a_fit(event, f):
    cbs = [ZeroLabelsCallback(on_flag='raise'), Within(event, f)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=cbs)
    with pytest.raises(ZeroLabelsError), learn.no_logging(): learn.fit(6, 0.)
    assert [r.verdict for r in learn.zero_labels.records if r.phase=='fit']==['predicts nothing']*4

def test_nothing_to_judge():
    logits,targs = COLLAPSED
    for data in (TensorPairs(logits[:0], targs[:0]), TensorPairs(logits)):
        learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback())
        learn.dls.n_inp = 1
        with learn.no_logging(): learn.validate(dl=DataLoader(data, bs=16))
        assert not learn.zero_labels.records
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.recorder.valid_metrics = False
    with learn.no_logging(), pytest.warns(ZeroLabelsWarning): learn.fit(1, 0.)
    assert math.isnan(learn.zero_labels.records[0].valid_loss)

def test_as_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter('error', ZeroLabelsWarning)
        learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback())
        with pytest.raises(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)

def test_bad_argument():
    with pytest.raises(ValueError, match="on_flag='shout' should be"): ZeroLabelsCallback(on_flag='shout')
    for patience in (0,2.5):
        with pytest.raises(ValueError, match=f'patience={patience}'): ZeroLabelsCallback(patience=patience)
    with pytest.raises(ValueError, match='before the first validation'): ZeroLabelsCallback().plot()
    with pytest.raises(ValueError, match='2 names.*20 labels'): judge(*GOOD, sigmoid=True, vocab=['a','b'])

def test_missing_targets():
    logits,targs = simulate(bias=-6)
    keep = torch.rand(400, 20, generator=torch.Generator().manual_seed(0))<0.7
    gaps = torch.where(keep, targs, math.nan)
    with pytest.raises(ValueError, match='ignore_index'): values(make_learner(logits, gaps, cbs=ZeroLabelsCallback()))
    learn = make_learner(logits, gaps, multilabel_metrics(ignore_index=math.nan),
                         cbs=ZeroLabelsCallback(ignore_index=math.nan))
    with pytest.warns(ZeroLabelsWarning): v = values(learn)
    r, = learn.zero_labels.records
    assert r.accuracy==v['accuracy_multi']==((logits[keep]>0)==targs[keep]).double().mean()
    assert r.true_per_sample==targs[keep].sum()/400
    assert abs((logits.sigmoid()>r.suggested_thresh)[keep].sum()/targs[keep].sum()-1)<0.04
    n,true = keep.sum(0),(targs*keep).sum(0)
    order = (true/n).argsort(descending=True)
    f1s = [2*true[order[:k]].sum()/(n[order[:k]].sum()+true.sum()) for k in range(1, 21)]
    assert r.constant_f1==pytest.approx(max(f1s).item())

def test_what_the_metrics_ignore_is_ignored():
    "By everything that evaluates the Learner's validation set, unless another value is passed"
    logits,targs = simulate(bias=-3)
    targs[torch.rand(400, 20, generator=torch.Generator().manual_seed(0))<0.3] = -1
    learn = make_learner(logits, targs, multilabel_metrics(ignore_index=-1), cbs=ZeroLabelsCallback())
    with warnings.catch_warnings(record=True): v = values(learn)
    assert learn.zero_labels.records[-1].accuracy==v['accuracy_multi']
    kw = dict(ignore_index=-1)
    for f in (lambda **kw: learn.thresh_find(show_plot=False, **kw),
              learn.accuracy_report,
              lambda **kw: MultiLabelInterpretation.from_learner(learn, **kw).report()):
        assert repr(f())==repr(f(**kw))
    learn.metrics = L(accuracy_multi)
    where = 'ignore_index, which metric classes, ZeroLabelsCallback, reports and searches for thresholds take'
    with pytest.raises(ValueError, match=where): learn.thresh_find(show_plot=False)

def test_only_validations_are_recorded(tmp_path):
    learn,_ = trained(*GOOD, n_epoch=2)
    learn.path = tmp_path
    with learn.no_logging():
        learn.validate()
        learn.get_preds()
        learn.lr_find(show_plot=False, num_it=20)
        learn.fine_tune(1, 0., freeze_epochs=1)
    learn.export(tmp_path/'learn.pkl')
    cb = load_learner(tmp_path/'learn.pkl').zero_labels
    expected = [(0,'fit'),(1,'fit'),(2,'validate'),(3,'fit'),(4,'fit')]
    for o in (learn.zero_labels, cb): assert [(r.validation, r.phase) for r in o.records]==expected
    assert list(cb.report(full=True).columns)==list(cb.records[0]) and cb.report().shape==(5,9)

def test_threshold_of_the_loss():
    learn,_ = trained(*COLLAPSED)
    learn.loss_func = BCEWithLogitsLossFlat(thresh=0.003)
    values(learn)
    assert learn.zero_labels.records[-1].thresh==0.003 and not learn.zero_labels.records[-1].flagged
    assert trained(*COLLAPSED, thresh=0.003)[0].zero_labels.records[-1].thresh==0.003

def test_nan_predictions_have_no_verdict():
    logits,targs = simulate(bias=-9)
    logits[3] = math.nan
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback())
    with pytest.warns(UserWarning, match='NaN in 1 sample,'): values(learn)
    r = learn.zero_labels.records[-1]
    assert r.verdict=='' and not r.never_predicted and r.same_for_all is None and r.suggested_thresh is None
    assert r.true_per_sample>0
    of_predictions = ('accuracy','f1_micro','empty_rate','missed_rate','pred_per_sample','ap_micro')
    assert np.isnan([r[k] for k in of_predictions]).all()
    with pytest.warns(UserWarning, match='NaN in all samples, and so are the metrics. The weights probably are, too'):
        values(make_learner(logits*math.nan, targs, multilabel_metrics()))
    with pytest.warns(UserWarning, match='NaN in all samples, and so are the metrics$'):
        judge(logits*math.nan, targs, sigmoid=True)

@pytest.mark.parametrize('turns,says', [
    (lambda x: x*math.nan, 'predictions are NaN'),
    (torch.sigmoid, 'predictions all lie in')])
def test_no_verdict_is_no_all_clear(turns, says, capsys):
    model = Same()
    learn = make_learner(*COLLAPSED, multilabel_metrics(), model, cbs=ZeroLabelsCallback(patience=1))
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
    model.forward = lambda x: turns(x + 0*model.w)
    with pytest.warns(UserWarning, match=says), learn.no_logging():
        learn.fit(3, 0.)
        learn.validate()
    last = learn.zero_labels.explain()
    assert not last.verdict and re.search(rf'No verdict on validate\(\): (some )?{says}', str(last))
    assert L(learn.zero_labels.reported.values()).itemgot(0)==["predicts nothing"]
    assert 'All clear' not in capsys.readouterr().out
    model.w.data.zero_() # NaN has spread to the weights and to the optimizer
    learn.create_opt()
    model.forward = lambda x: x + 7 + 0*model.w
    with learn.no_logging(): learn.fit(1, 0.)
    assert not learn.zero_labels.reported and 'All clear' in capsys.readouterr().out

def test_plot():
    learn,_ = trained(*GOOD, n_epoch=4, model=Waking(3))
    left,right = learn.zero_labels.plot()
    accuracy,zeros = (l.get_ydata() for l in left.lines)
    report = learn.zero_labels.report()
    test_eq(list(accuracy), report.accuracy.tolist())
    test_eq(list(zeros), report.zeros_accuracy.tolist())
    test_eq(list(right.lines[0].get_ydata()), report.empty_rate.tolist())
    assert len(left.patches)==3
    plt.close()

def test_the_plot_agrees_with_the_boxes():
    "Each validation whose box is red is shaded, by its verdict; the others are white"
    gen = torch.Generator().manual_seed(0)
    logits,targs = simulate(600, 12, density=0.2, bias=-1.5, skill=4)
    dead = logits.clone()
    dead[:,:4] -= 20
    noise = torch.randn(600, 12, generator=gen)
    cases = dict(zip(('','predicts nothing','leaves samples empty','over-predicts','never predicts some labels',
                      'worse than a constant'), (logits, logits-20, logits-3.2, logits+2.5, dead, noise-0.9)))
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback(min_accuracy=1.))
    for o in cases.values():
        learn.model.forward = lambda x, o=o: o[:len(x)] + 0*learn.model.w
        with warnings.catch_warnings(), learn.no_logging():
            warnings.simplefilter('ignore')
            learn.validate(dl=DataLoader(TensorPairs(logits, targs), bs=600))
    records = learn.zero_labels.records
    found = [r.verdict or ('worse than a constant' if '#d62728' in describe(r).html else '') for r in records]
    test_eq(found, [*cases])
    for ax in learn.zero_labels.plot():
        shaded = {round(o.get_x()+0.5): o.get_facecolor() for o in ax.patches}
        test_eq(sorted(shaded), [i for i,o in enumerate(found) if o])
        assert len({*shaded.values()})==len(shaded)
        assert [o.get_text() for o in ax.figure.legends[0].get_texts()]==[o for o in found if o]
    plt.close()


# The histogram

@pytest.mark.parametrize('bias,c,density', [
    *((b,*cd) for b in (-2.,-6.,-12.) for cd in ((5,0.3),(80,0.03),(600,0.01))),
    *((b,5,0.3) for b in (1.,6.,12.))])
@pytest.mark.parametrize('sigmoid', [True, False])
def test_suggested_threshold(bias, c, density, sigmoid):
    logits,targs = simulate(1000, c, density, bias=bias)
    preds,hist = logits if sigmoid else logits.double().sigmoid(),ScoreHistogram(sigmoid=sigmoid)
    for p,t in zip(preds.split(64), targs.split(64)): hist.accum_values(p, t)
    thresh,f1 = hist.suggest()
    distance = min(thresh, 1-thresh) # to 0 or 1
    assert float(f'{distance:.6g}')==pytest.approx(distance, rel=1e-6)
    p = binarize(preds, thresh, sigmoid)
    assert abs(p.sum()/targs.sum()-1)<0.04
    assert f1==pytest.approx(skm.f1_score(targs, p, average='micro'), abs=0.02)
    tp,fp,fn,tn = hist.curve.at(hist.place(0.5)).flatten()
    assert tp+fn==targs.sum() and tp+fp==pytest.approx((logits>0).sum().item(), rel=0.02, abs=2)

def test_no_threshold_where_scores_are_alike():
    ties = torch.full((100,20), 0.003),torch.eye(20).repeat(5,1)
    for scores,targs in (ties, (torch.rand(10,3), torch.zeros(10,3))):
        hist = ScoreHistogram(sigmoid=False)
        hist.accum_values(scores, targs)
        assert hist.suggest()[0] is None

def test_odd_scores():
    hist = ScoreHistogram(sigmoid=False)
    batches = (tensor([[0.,1.],[1.,0.]]), tensor([[0,1]]), tensor([[True,False]]), tensor([[0.5,0.5]]).half())
    for p in batches: hist.accum_values(p, torch.ones_like(p, dtype=torch.int))
    assert hist.read()[0].sum()==10
    assert hist.curve.at(hist.place(0.6)).flatten().tolist()==[4,0,6,0]

@settings(max_examples=60)
@given(levels=st.lists(st.integers(1, 999), min_size=3, max_size=40, unique=True), seed=st.integers(0, 99))
def test_the_promised_f1_is_that_of_the_threshold(levels, seed):
    "Also of scores in the threshold's own bin"
    rng = np.random.default_rng(seed)
    scores = rng.choice(np.array(levels)/1000, (200,5))
    targs = (rng.random((200,5))<scores).astype(int)
    r = judge(scores, targs)
    hist = ScoreHistogram(sigmoid=False)
    hist.accum_values(scores, targs)
    thresh,f1 = hist.suggest()
    assert thresh==r.suggested_thresh
    if thresh is None: return
    real = skm.f1_score(targs, scores>thresh, average='micro')
    assert r.suggested_f1==pytest.approx(real, abs=1e-12) and real-0.005<=f1<=real+1e-12

def test_thresholds_on_logits():
    logits,targs = simulate()
    hist = ScoreHistogram(thresh=0., sigmoid=False)
    hist.accum_values(logits, targs)
    for t in (-3., -0.5, 0., 0.5):
        assert hist.curve.at(hist.place(t))[:2].sum().item()==pytest.approx((logits>t).sum().item(), rel=0.01)
    assert abs(binarize(logits, hist.suggest()[0], sigmoid=False).sum()/targs.sum()-1)<0.04
    assert judge(logits, targs, thresh=0., sigmoid=False).suggested_thresh==hist.suggest()[0]

# Other verdicts

def test_the_same_for_all_is_said():
    _,targs = simulate()
    constant = torch.where(torch.arange(20)==3, 1., -1.).expand(400,20)
    learn,caught = trained(constant, targs)
    assert learn.zero_labels.records[-1].same_for_all==[3]
    assert 'every sample gets the same labels: 3' in str(caught[0].message)

def test_judge_is_what_the_callback_records():
    logits,targs = simulate()
    r = judge(logits, targs, sigmoid=True)
    theirs = trained(logits, targs)[0].zero_labels.records[-1]
    for k,v in r.items(): assert v==theirs[k] or k.startswith('suggested'), k
    with pytest.raises(ValueError, match='not a single sample'): judge(logits[:0], targs[:0])

# fine_tune: a frozen phase, and a second fit

def test_frozen_phase():
    splitter = lambda m: [[], params(m)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(), splitter=splitter)
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fine_tune(5, 0., freeze_epochs=1)
    frozen = next(w.message for w in caught if isinstance(w.message, ZeroLabelsWarning))
    n_lines = len(str(frozen).strip().splitlines())
    test_eq((frozen.record.validation, n_lines, 'only its last layers' in str(frozen)), (0,4,True))
    assert [w.message.record.validation for w in caught]==[0,4,5]
    assert 'What helps' in str(caught[1].message)
    assert 'learn.unfreeze()' in repr(learn.zero_labels.records[0])
    assert 'learn.unfreeze()' not in repr(learn.zero_labels.explain())

def test_advice_within_a_frozen_phase_holds():
    "`fine_tune` unfreezes by itself; a best epoch of the frozen phase is not frozen any more when it is loaded"
    splitter = lambda m: [[], params(m)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(), splitter=splitter)
    with recording(learn) as caught: learn.fine_tune(1, 0., freeze_epochs=5)
    text, = [one_line(w.message) for w in caught if 'all layers' in one_line(w.message)]
    assert ('Training all layers, not only the last ones: `fine_tune` goes on to that by itself; '
            'for `fit`, call `learn.unfreeze()` first.') in text
    save = SaveModelCallback(monitor='accuracy_multi', reset_on_fit=False)
    learn = make_learner(*COLLAPSED, multilabel_metrics(), splitter=splitter, cbs=[ZeroLabelsCallback(), save],
                         path=Path(tempfile.mkdtemp()))
    with recording(learn) as caught: learn.fine_tune(2, 0., freeze_epochs=1)
    assert 'What helps' in str(caught[-1].message) and 'unfreeze' not in str(caught[-1].message)
    assert caught[-1].message.record.validation==0

@pytest.mark.parametrize('on_flag', ['stop','raise'])
def test_a_frozen_phase_is_no_end(on_flag):
    splitter = lambda m: [[], params(m)]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(on_flag=on_flag), splitter=splitter)
    with pytest.warns(ZeroLabelsWarning), learn.no_logging():
        with nullcontext() if on_flag=='stop' else pytest.raises(ZeroLabelsError):
            learn.fine_tune(2, 0., freeze_epochs=1)
    assert len(learn.zero_labels.records)==3

# Pitfalls

def pitfall_texts(learn, n=1):
    "The callback's warnings of pitfalls in `n` fits"
    with recording(learn) as caught:
        for _ in range(n): learn.fit(1, 0.)
    return [one_line(w.message) for w in caught if 'may mislead' in str(w.message)]

class Sigmoid(Same):
    def forward(self, x): return super().forward(x).sigmoid()

@pytest.mark.parametrize('ours', [True, False])
def test_probabilities_taken_for_logits(ours):
    metrics = multilabel_metrics() if ours else []
    learn = make_learner(*GOOD, metrics, Sigmoid(), loss_func=BCEWithLogitsLossFlat(), cbs=ZeroLabelsCallback())
    with recording(learn) as caught: learn.fit(2, 0.)
    advice = 'BCEWithLogitsLoss) takes one itself: let the model end without it'
    assert sum(advice in one_line(w.message) for w in caught)==1
    r = learn.zero_labels.records[-1]
    assert r.verdict=='no better than a constant' or r.pred_per_sample==20

def test_logits_taken_for_probabilities():
    text, = pitfall_texts(make_learner(*GOOD, cbs=ZeroLabelsCallback(sigmoid=False)), 2)
    assert 'seem to be logits' in text and 'pass sigmoid=True' in text
    assert not pitfall_texts(make_learner(*GOOD, cbs=ZeroLabelsCallback(thresh=0., sigmoid=False)))

@pytest.mark.parametrize('sigmoid', [True, False])
def test_a_sigmoid_and_a_loss_that_does_not_decode(sigmoid):
    "Advice on the metrics and advice on the loss function do not contradict each other"
    learn = make_learner(*GOOD, multilabel_metrics(sigmoid=sigmoid), Sigmoid(), loss_func=BCELossFlat(),
                         cbs=ZeroLabelsCallback(sigmoid=sigmoid))
    with recording(learn) as caught: learn.fit(1, 0.)
    text = ' '.join(one_line(w.message) for w in caught)
    of_metrics = ('pass sigmoid=False, to each metric and to ZeroLabelsCallback. '
                  'Better: let the model end without a sigmoid, and use `loss_func=BCEWithLogitsLossFlat()`')
    of_callback = ('show no label, however good the model: '
                   'let the model end without a sigmoid, and use `loss_func=BCEWithLogitsLossFlat()`')
    assert text.count(of_metrics)==sigmoid
    assert text.count(of_callback)==1
    assert ('with `sigmoid=True` for the metrics and this callback' in text)!=sigmoid

def test_a_label_that_never_occurs():
    logits,targs = (o.clone() for o in GOOD)
    targs[:,[2,7]] = 0
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback(), vocab=list('abcdefghijklmnopqrst'))
    text, = pitfall_texts(learn, 2)
    assert '2 of 20 labels are true in no sample of this validation (c, h): nothing is known of such labels' in text

@pytest.mark.parametrize('metrics,found', [
    (lambda: multilabel_metrics(thresh=0.2),
     'use thresh=0.2, but `predict` and `show_results` 0.5: `learn.set_thresh(0.2)` sets one for all'),
    (lambda: [partial(accuracy_multi, thresh=0.2)], 'accuracy_multi uses thresh=0.2'),
    (lambda: [sys.modules['fastai.metrics'].F1ScoreMulti(thresh=0.3)], 'f1_score uses thresh=0.3'),
    (lambda: [F1ScoreMulti([0.3]*20)], 'f1_score uses thresh=0.3, but `predict` and `show_results` 0.5'),
    (lambda: [F1ScoreMulti(0.2), RecallMulti(0.3)], 'use thresh=0.2 or 0.3, but'),
    (lambda: [F1ScoreMulti(math.log(0.25), sigmoid=False)], 'f1_score uses thresh=0.2, but'),
    (lambda: [*multilabel_metrics(thresh=0., sigmoid=False), accuracy_multi, BrierScoreMulti(), ZerosAccuracy(0.9),
              F1ScoreMulti([0.5]*20, name='a')], None)])
def test_metrics_and_loss_decide_apart(metrics, found):
    caught = pitfall_texts(make_learner(*GOOD, metrics(), cbs=ZeroLabelsCallback()), 2)
    assert found in caught[0] and len(caught)==1 if found else not caught

def test_the_threshold_that_was_chosen_is_kept():
    learn = make_learner(*GOOD, cbs=ZeroLabelsCallback())
    learn.set_thresh(0.3)
    learn.metrics = L(F1ScoreMulti())
    text, = pitfall_texts(learn)
    assert ('f1_score uses thresh=0.5, but `predict` and `show_results` 0.3: '
            '`learn.set_thresh(0.3)` sets one for all') in text
    learn.set_thresh(0.3)
    assert learn.metrics[0].thresh==0.3

def test_metrics_of_fastai_although_this_is_imported():
    theirs = sys.modules['fastai.metrics']
    metrics = [theirs.accuracy_multi, theirs.F1ScoreMulti(), partial(theirs.accuracy_multi, thresh=0.5),
               F1ScoreMulti(name='ours'), accuracy_multi]
    text, = pitfall_texts(make_learner(*GOOD, metrics, cbs=ZeroLabelsCallback()), 2)
    assert 'accuracy_multi, f1_score are fastai\'s own' in text
    assert '`from fastai_mlmetrics.all import *` once more' in text
    learn = make_learner(*GOOD, [theirs.F1ScoreMulti(), F1ScoreMulti(name='ours')], cbs=ZeroLabelsCallback())
    with pytest.warns(UserWarning, match='f1_score: functions and fastai.s own metrics keep their threshold'):
        learn.set_thresh(0.1)
    text, = pitfall_texts(learn)
    assert 'sets one for all' not in text
    assert ('f1_score uses thresh=0.5, but `predict` and `show_results` 0.1: '
            'f1_score cannot follow `learn.set_thresh`; classes of this package can') in text

def test_metrics_of_fastai_that_this_has_not():
    theirs = sys.modules['fastai.metrics']
    of_sklearn = theirs.skm_to_fastai(skm.label_ranking_loss, flatten=False, axis=None)
    learn = make_learner(*GOOD, [theirs.mse, of_sklearn], cbs=ZeroLabelsCallback())
    assert not any('fastai\'s own' in o for o in pitfall_texts(learn, 2))

@pytest.mark.parametrize('loss,model', [
    (nn.BCEWithLogitsLoss(), Same),
    (BCELossFlat(), Sigmoid),
    (nn.BCELoss(), Sigmoid)])
def test_a_loss_that_does_not_decode(loss, model):
    logits,targs = GOOD
    learn = make_learner(logits*9, targs, model=model(), loss_func=loss, cbs=ZeroLabelsCallback(sigmoid=model is Same))
    text, = pitfall_texts(learn, 2)
    assert 'does not decode' in text and 'BCEWithLogitsLossFlat()' in text
    assert ('let the model end without a sigmoid' in text)==(model is Sigmoid)
    *_,decoded = learn.get_preds(with_decoded=True)
    assert (decoded!=targs).any() # the model is perfect
    learn.loss_func = BCEWithLogitsLossFlat()
    if model is Same: assert torch.equal(learn.get_preds(with_decoded=True)[2], targs>0)

# How a warning behaves

def judged(**kwargs): return judge(*COLLAPSED, sigmoid=True, **kwargs)

def test_a_record_shows_itself():
    r = judged()
    assert repr(r)==str(describe(r)).strip()
    assert 'predicts (nearly) nothing' in repr(r) and '#d62728' in r._repr_html_()
    assert 'at threshold 0.5, min_labels=1.' in one_line(repr(judged(min_labels=1)))
    assert 'threshold' not in repr(judge(GOOD[0]>0, GOOD[1])) # binary predictions have none
    learn,_ = trained(*COLLAPSED, n_epoch=1)
    assert learn.zero_labels.explain() is learn.zero_labels.records[-1]
    assert 'learn.set_thresh' in repr(learn.zero_labels.explain())
    with pytest.raises(ValueError, match='before the first validation'): ZeroLabelsCallback().explain()
    # No problem
    healthy = judge(*GOOD, sigmoid=True)
    assert not healthy.verdict and repr(healthy).startswith('No warning, at threshold 0.5.')
    assert 'What helps' not in repr(healthy) and '#2ca02c' in healthy._repr_html_()
    # No verdict
    logits,targs = COLLAPSED
    few = judge(logits[:10], targs[:10], sigmoid=True)
    assert 'No verdict: fewer than 20 samples have a label' in repr(few)
    assert 'No verdict: all targets are 0' in repr(judge(logits, targs*0, sigmoid=True))
    with pytest.warns(UserWarning) as caught: no_numbers = judge(logits*math.nan, targs, sigmoid=True)
    assert 'No verdict: some predictions are NaN' in repr(no_numbers)
    assert [str(o.message) for o in caught]==['predictions are NaN in all samples, and so are the metrics']

def test_warnings_are_copied_and_pickled():
    r = judged()
    for w in (describe(r), ZeroLabelsError('a', r), ZeroLabelsWarning('a')):
        for o in (pickle.loads(pickle.dumps(w)), copy(w), deepcopy(w)):
            assert type(o) is type(w) and str(o)==str(w) and o.html==w.html
            assert dict(o.record or {})==dict(w.record or {})
    assert dict(pickle.loads(pickle.dumps(r)))==dict(r)

def test_over_prediction_is_told_as_such():
    "As of a resnet18 from scratch after a short training: 7.5 predicted labels per sample, 1.54 true labels"
    _,targs = simulate(1000)
    gen = torch.Generator().manual_seed(1)
    logits = torch.randn(1000, 20, generator=gen) - 0.32 + 0.3*targs
    r = judge(logits, targs, sigmoid=True)
    assert 7<r.pred_per_sample<8 and 0.55<r.accuracy<0.65
    assert r.verdict=='over-predicts' and not r.flagged
    assert 'far more labels than are true' in repr(r)
    assert 'Another threshold' not in repr(r) and r.suggested_f1<r.f1_micro
    logits += 1.2*targs # a model with some skill
    r = judge(logits, targs, sigmoid=True)
    assert r.verdict=='over-predicts' and f'thresh={r.suggested_thresh:.10g}' in repr(r)
    learn,caught = trained(logits, targs, n_epoch=2)
    text = one_line(caught[0].message)
    assert 'learn.set_thresh' in text and 'hardly moves' in text
    assert 'min_labels' not in text and 'BCEWithLogitsLossFlat' not in text
    learn.set_thresh(learn.zero_labels.records[-1].suggested_thresh)
    values(learn)
    assert learn.zero_labels.records[-1].verdict!='over-predicts'
    weighted = BCEWithLogitsLossFlat(pos_weight=torch.full((20,), 9.))
    learn = make_learner(logits, targs, loss_func=weighted, cbs=ZeroLabelsCallback())
    values(learn)
    assert 'A smaller `pos_weight`' in repr(learn.zero_labels.explain())

@pytest.mark.parametrize('kind', ['collapsed','constant','random','over'])
def test_every_problem_has_a_remedy(kind):
    logits,targs = simulate()
    gen = torch.Generator().manual_seed(1)
    logits = dict(
        collapsed=torch.full((400,20), -9.),
        constant=torch.where(torch.arange(20)==3, 1., -1.).expand(400,20),
        random=torch.randn(400, 20, generator=gen)-1.4,
        over=torch.full((400,20), 1.))[kind]
    learn,caught = trained(logits.clone(), targs)
    helps = one_line(caught[0].message).split('What helps:')[1]
    assert any(o in helps for o in ('learn.set_thresh','learn.loss_func =','more training'))

def test_good_news_is_no_warning(monkeypatch, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.simplefilter('ignore', ZeroLabelsWarning)
        learn = make_learner(*GOOD, model=Waking(5), cbs=ZeroLabelsCallback())
        with learn.no_logging(): learn.fit(5, 0.)
        warnings.simplefilter('error', ZeroLabelsWarning)
        with learn.no_logging(): learn.fit(2, 0.)
        assert capsys.readouterr().out.strip().startswith('All clear since epoch 0: epoch 1')
        shown = []
        monkeypatch.setattr('fastai_mlmetrics.callback.IN_NOTEBOOK', True)
        monkeypatch.setattr('IPython.display.display', shown.append)
        learn.zero_labels.reported = {id(o): ('predicts nothing',o) for o in [learn.dls.valid_ds]}
        values(learn)
        values(learn)
        assert len(shown)==1 and '#2ca02c' in shown[0]._repr_html_()

def warned_of():
    "The text of a warning in a terminal, where pytest does not record it"
    warnings.simplefilter('default', UserWarning)
    with contextlib.redirect_stderr(io.StringIO()) as err: ZeroLabelsCallback().notify(describe(judged()))
    return err.getvalue()

def test_no_prefix_in_a_terminal():
    text = in_process(warned_of)
    assert text.startswith('\nThe model predicts (nearly) nothing') and 'ZeroLabels' not in text
    assert max(map(len, text.splitlines()))<=80

def test_filtered_and_logged(caplog):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        warnings.simplefilter('ignore', ZeroLabelsWarning)
        values(make_learner(*COLLAPSED, cbs=ZeroLabelsCallback()))
    assert not caught
    logging.captureWarnings(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('always')
            warnings.showwarning = logging._showwarning # pytest's recorder has replaced it
            values(make_learner(*COLLAPSED, cbs=ZeroLabelsCallback()))
    finally: logging.captureWarnings(False)
    assert 'predicts (nearly) nothing' in caplog.text

def test_table_is_narrowed_in_each_fit(monkeypatch):
    "A cell that runs again loses its output"
    shown = []
    monkeypatch.setattr('fastai_mlmetrics.callback.IN_NOTEBOOK', True)
    monkeypatch.setattr('IPython.display.display', shown.append)
    learn = make_learner(*GOOD, cbs=ZeroLabelsCallback())
    with learn.no_logging():
        learn.fit(1, 0.)
        learn.fit(1, 0.)
    assert len([o for o in shown if 'table.fastprogress' in o._repr_html_()])==2

@pytest.mark.parametrize('action,boxes', [('always',1), ('ignore',0), ('recorded',0)])
def test_box_in_a_notebook(action, boxes, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr('fastai_mlmetrics.callback.IN_NOTEBOOK', True)
    monkeypatch.setattr('IPython.display.display', shown.append)
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback())
    with warnings.catch_warnings(record=action=='recorded') as caught:
        warnings.simplefilter('always' if action=='recorded' else action)
        if action!='recorded':
            warnings.showwarning = lambda message, category, *a, **k: sys.stderr.write(str(message))
        values(learn)
    assert len(shown)==boxes and len(caught or [])==(action=='recorded')
    for o in shown: assert o._repr_html_().startswith('<div') and '<code>min_labels=1</code>' in o._repr_html_()
    assert 'ZeroLabelsWarning' not in capsys.readouterr().err

def test_the_remedies_work_as_written():
    logits,targs = COLLAPSED
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    text = one_line(caught[0].message)
    remedies = re.findall(r'`(learn\.[^`]*)`', text)
    test_eq([o.split('(')[0] for o in remedies],
            ['learn.set_thresh','learn.set_thresh','learn.loss_func = BCEWithLogitsLossFlat',
             'learn.set_thresh','learn.set_thresh'])
    r = learn.zero_labels.records[0]
    for code in remedies:
        exec(code, dict(globals(), learn=learn))
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            v = values(learn)
        if 'min_labels' in code: assert v['empty_rate']==0
        elif 'thresh_find' in code: assert learn.loss_func.thresh==learn.thresh_find(show_plot=False).cardinality
        elif code=='learn.set_thresh(0.5)': assert learn.loss_func.thresh==0.5
        elif 'set_thresh' in code: assert v['f1_micro']==pytest.approx(r.suggested_f1, abs=0.02)
        elif 'loss_func' in code: assert learn.loss_func.func.pos_weight.shape==(20,)
    plt.close('all')

def test_what_a_flat_loss_says():
    "A flat loss does not show whether the learning rate is too low or too high"
    _,caught = trained(*COLLAPSED, 4)
    text = one_line(caught[0].message)
    assert 'hardly moves' in text
    assert 'Another learning rate, which `learn.lr_find()` suggests, or more samples' in text

def test_no_threshold_to_suggest():
    r = judge(torch.full((100,5), 0.1), (torch.arange(500).view(100,5)%4==0).long())
    assert r.suggested_thresh is None
    assert ('no threshold was found that predicts about as many labels as are true. '
            '`best_thresholds`') in one_line(repr(r))

def test_a_masked_loss_is_not_replaced():
    logits,targs = COLLAPSED[0],COLLAPSED[1].clone()
    targs[::7,3] = math.nan
    learn = make_learner(logits, targs, loss_func=MaskedFlat(), cbs=ZeroLabelsCallback(ignore_index=math.nan))
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    text = str(caught[-1].message)
    assert 'predicts (nearly) nothing' in text and 'pos_weight' not in text

@pytest.mark.parametrize('as_function', [True, False])
def test_a_loss_of_ones_own_is_kept_and_told_how_to_decode(as_function):
    logits,targs = (o.clone() for o in GOOD)
    targs[::7,3] = math.nan
    loss = (lambda p, y: Masked()(p, y)) if as_function else Masked()
    metrics = multilabel_metrics(ignore_index=math.nan)
    learn = make_learner(logits, targs, metrics, loss_func=loss, cbs=ZeroLabelsCallback())
    text, = pitfall_texts(learn)
    advice = ('give the loss function an `activation` that returns `x.sigmoid()` '
              'and a `decodes` that returns `x>0.5`')
    assert advice in text and 'BCEWithLogits' not in text
    with pytest.raises(ValueError, match=re.escape(advice)): learn.set_thresh(0.3)
    loss.activation,loss.decodes = (lambda x: x.sigmoid()),(lambda x: x>0.5)
    assert not pitfall_texts(learn) and torch.equal(learn.get_preds(with_decoded=True)[2], logits>0)
    learn.set_thresh(0.3)
    assert torch.equal(learn.get_preds(with_decoded=True)[2], logits.sigmoid()>0.3)
    def bce(p, y): return F.binary_cross_entropy(p[~y.isnan()], y[~y.isnan()])
    ended = make_learner(logits, targs, multilabel_metrics(sigmoid=False, ignore_index=math.nan), Sigmoid(),
                         loss_func=bce, cbs=ZeroLabelsCallback(sigmoid=False))
    text, = pitfall_texts(ended)
    assert 'give the loss function a `decodes` that returns `x>0.5`' in text

def test_no_remedy_that_is_in_use():
    "The label that `min_labels` adds may be an ignored one"
    logits,targs = COLLAPSED[0].clone(),COLLAPSED[1].clone()
    logits[:,0],targs[:,0] = 0,-1
    r = judge(logits, targs, sigmoid=True, ignore_index=-1, min_labels=1)
    assert r.missed_rate>0.9 and not any(o.startswith('At least one label') for o in remedies(r))
    r = Record(judge(*simulate(skill=0., bias=0.), thresh=0.9, sigmoid=True))
    r.suggested_thresh,r.suggested_f1 = r.thresh,r.f1_micro
    assert remedies(r)[-1].startswith('A better model: about as many labels are predicted as are true, but micro')

def test_enough_labels_need_no_weights():
    "If only a tenth of the labels is missing"
    r = Record(judge(*COLLAPSED, sigmoid=True))
    r.update(pred_per_sample=0.9*r.true_per_sample, loss_weighs=False, decodes=True)
    assert not any('pos_weight' in o for o in remedies(r))
    r.pred_per_sample = 0.7*r.true_per_sample
    assert any('pos_weight' in o for o in remedies(r))

def test_logits_at_a_threshold_of_their_own():
    "With `sigmoid=False, thresh=0`; `set_thresh` takes probabilities"
    cb = ZeroLabelsCallback(sigmoid=False, thresh=0.)
    learn = make_learner(*simulate(bias=-6), [AccuracyMulti(0., sigmoid=False)], cbs=cb)
    assert not pitfall_texts(learn)
    r = learn.zero_labels.records[-1]
    code = re.search('`(learn.set_thresh[^`]*)`', ' '.join(remedies(r)))[1]
    exec(code)
    assert learn.loss_func.thresh==pytest.approx(torch.tensor(r.suggested_thresh).sigmoid().item())
    assert values(learn)['accuracy_multi']>r.accuracy

def test_a_loss_that_came_down_has_not_jumped():
    cb = ZeroLabelsCallback()
    recorder = SimpleNamespace(smooth_loss=SimpleNamespace(value=0.05))
    cb.learn = SimpleNamespace(lock=SimpleNamespace(locked=lambda: False), recorder=recorder, opt=None)
    for loss in (0.479,0.0524,0.0525):
        r = Record(judged(), phase='fit', epoch=0, valid_loss=loss)
        cb._compare(r, True)
        helps = ' '.join(remedies(r))
    assert 'hardly moves, 0.0524 at best and 0.0525 now' in helps and 'jumped' not in helps

def test_a_label_that_is_never_seen():
    logits,targs = COLLAPSED[0],COLLAPSED[1].clone()
    targs[:,2] = -1
    r = judge(logits, targs, sigmoid=True, ignore_index=-1)
    assert list(r.same_for_all)==[] and list(r.absent)==[]

def test_what_is_told_in_short_needs_no_callback():
    "fastai removes a callback that was passed to `fit`"
    learn = make_learner(*COLLAPSED)
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging():
        learn.fit(5, 0., cbs=ZeroLabelsCallback())
    last = one_line(caught[-1].message)
    assert len(caught)==2 and 'learn.' not in last
    assert last.startswith('Still predicts nothing (epoch 4): 0.00 labels per sample predicted, 1.5')

def test_data_that_come_and_go():
    "A new data set may get the `id` of one that was deleted"
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_bar(), learn.no_logging():
        for _ in range(8):
            learn.validate(dl=DataLoader(TensorPairs(*COLLAPSED), bs=16, device=torch.device('cpu')))
    assert len(caught)==8 and not any('Still' in str(w.message) for w in caught)

@pytest.mark.parametrize('verdict', ['predicts nothing','over-predicts','no better than a constant'])
def test_a_threshold_is_a_remedy_where_f1_gains_by_it(verdict):
    def advice(f1, suggested):
        r = Record(judged(), verdict=verdict, f1_micro=f1, suggested_f1=suggested, constant_f1=0.1)
        return ' '.join(remedies(r))
    for f1,suggested in ((0.2,0.18), (0.33,0.334), (0.,0.11), (0.2,math.nan)):
        assert 'Another threshold' not in advice(f1, suggested)
        assert 'A better model' in advice(f1, suggested)
    for f1,suggested in ((0.2,0.22), (0.33,0.35), (0.,0.12)):
        assert f'micro F1 of {suggested:.2f} instead of {f1:.2f}' in advice(f1, suggested)

def test_a_new_loss_needs_a_new_threshold():
    learn = make_learner(*simulate(bias=-4), multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.set_thresh(0.6, min_labels=1)
    values(learn)
    learn.zero_labels.records[-1].update(pred_per_sample=0.5, verdict='no better than a constant')
    text, = [o for o in remedies(learn.zero_labels.records[-1]) if 'pos_weight' in o]
    assert '0.6' not in text
    assert ('`learn.set_thresh(0.5, min_labels=1)`, and further training; '
            'then `learn.set_thresh(learn.thresh_find().cardinality)`') in text
    for code in re.findall('`(.*?)`', text)[:2]: exec(code, dict(globals(), learn=learn))
    assert not pitfall_texts(learn) # the advice leaves metrics and loss with the same threshold

def test_names_are_escaped():
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback(), vocab=[f'<{i}>' for i in range(20)])
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    assert '&lt;0&gt;' in caught[0].message.html and '<0>' not in caught[0].message.html

def test_validate_may_raise():
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback(on_flag='raise'))
    with pytest.raises(ZeroLabelsError): values(learn)
    assert not learn.lock.locked() and len(learn.zero_labels.records)==1
    learn.zero_labels.on_flag = 'warn'
    with pytest.warns(ZeroLabelsWarning): values(learn)

# With other callbacks, and in other Learners

@pytest.mark.parametrize('cb', [
    lambda: SaveModelCallback(monitor='f1_macro'),
    lambda: EarlyStoppingCallback(monitor='f1_macro', patience=1),
    CSVLogger,
    lambda: TensorBoardCallback('runs', log_preds=False, trace_model=False),
    lambda: GradientAccumulation(32),
    MixedPrecision,
    MixUp,
    ReduceLROnPlateau])
def test_beside(cb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path) # some of them write
    learn = make_learner(*GOOD, multilabel_metrics(), cbs=ZeroLabelsCallback(), path=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        with learn.no_bar(): learn.fit(2, 0., cbs=cb())
    rows = learn.zero_labels.report()
    assert len(rows)==len(learn.recorder.values)==2
    column = learn.recorder.metric_names.index('accuracy_multi') - 1
    np.testing.assert_allclose(rows.accuracy, np.array(learn.recorder.values)[:,column], atol=1e-12)

def test_nothing_else_is_recorded(digits_dls, tmp_path):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, metrics=multilabel_metrics(),
                           cbs=ZeroLabelsCallback(), path=tmp_path)
    learn.remove_cb(ProgressCallback)
    with warnings.catch_warnings(), learn.no_logging():
        warnings.simplefilter('ignore')
        learn.get_preds()
        learn.tta(n=1)
        learn.predict(digits_dls.valid_ds.items.iloc[0])
        learn.summary()
        learn.show_results(max_n=2)
        learn.lr_find(show_plot=False, num_it=10)
        Interpretation.from_learner(learn)
        assert not learn.zero_labels.records
        learn.fine_tune(1, freeze_epochs=1)
    plt.close('all')
    test_eq([(r.phase, r.epoch, r.frozen) for r in learn.zero_labels.records], [('fit',0,True),('fit',0,False)])

def flags(learn):
    "The verdicts before and during the training of a Learner"
    with warnings.catch_warnings(), learn.no_bar(), learn.no_logging():
        warnings.simplefilter('ignore')
        learn.validate()
        learn.fit_one_cycle(8, 2e-2)
    return [r.verdict for r in learn.zero_labels.records]

def test_tabular():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000,8))
    columns,names = [f'x{i}' for i in range(8)],[f'label {i}' for i in range(8)]
    df = pd.DataFrame(x, columns=columns)
    df[names] = (x>1.3).astype(int)
    table = TabularPandas(df, procs=[Normalize], cont_names=columns, y_names=names,
                          y_block=MultiCategoryBlock(encoded=True, vocab=names),
                          splits=RandomSplitter(seed=0)(range_of(df)))
    dls = table.dataloaders(bs=64, device=torch.device('cpu'))
    learn = tabular_learner(dls, layers=[50], metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.model.layers[-1][0].bias.data -= 3.
    first,*_,last = flags(learn)
    assert first and not last
    assert learn.zero_labels.records[0].never_predicted==names

def test_split_of_a_table():
    "The advice also applies if there is no `get_y`"
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(200,3)), columns=list('abc'))
    df['y'],df['z'] = (df.a>0).astype(int),0
    df.loc[:1,'z'] = 1
    def learner(split):
        table = TabularPandas(df, procs=[Normalize], cont_names=list('abc'), y_names=['y','z'],
                              y_block=MultiCategoryBlock(encoded=True, vocab=['y','z']), splits=split)
        dls = table.dataloaders(bs=64, device=torch.device('cpu'))
        return tabular_learner(dls, layers=[8], cbs=ZeroLabelsCallback())
    text, = pitfall_texts(learner(IndexSplitter(range(100, 200))(df)), 2)
    assert ('1 of 2 labels is true in no sample of this validation (z): '
            'nothing is known of such labels, and macro averages count 0 for each.') in text
    advice, = re.findall(r'`valid_idx=(.*?)`', text)
    split = IndexSplitter(eval(advice, dict(globals(), y_names=['y','z'], df=df)))(df)
    assert not any('in no sample of this validation' in o for o in pitfall_texts(learner(split), 2))

class BagOfWords(Module):
    def __init__(self, n, c):
        self.bag = nn.EmbeddingBag(n, 16, mode='sum', padding_idx=1)
        self.out = nn.Linear(16, c)
    def forward(self, x): return self.out(self.bag(x.as_subclass(Tensor)))

def text_dls():
    rng = np.random.default_rng(0)
    words,fill = ['sun','rain','wind','snow','hail','fog'],['the','day','was','with','and','cold']
    rows = [[w for w in words if rng.random()<0.25] for _ in range(600)]
    texts = [' '.join(rng.permutation(r+list(rng.choice(fill, 6)))) for r in rows]
    df = pd.DataFrame(dict(text=texts, labels=[';'.join(r) for r in rows]))
    block = DataBlock((TextBlock.from_df('text', tok=BaseTokenizer()), MultiCategoryBlock),
                      get_x=ColReader('text'), get_y=ColReader('labels', label_delim=';'),
                      splitter=RandomSplitter(seed=0))
    return block.dataloaders(df, bs=32, num_workers=0, device=torch.device('cpu'))

def test_awd_lstm():
    config = {**awd_lstm_clas_config, 'emb_sz':16, 'n_hid':32}
    learn = text_classifier_learner(text_dls(), AWD_LSTM, config=config, pretrained=False,
                                    metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())
    with learn.no_bar(), learn.no_logging(): learn.fit(1, 0.)
    r, = learn.zero_labels.records
    assert r.accuracy==learn.recorder.values[-1][2]

def test_text():
    dls = text_dls()
    assert len(dls.vocab)==2 # words and labels
    words,labels = dls.vocab
    learn = Learner(dls, BagOfWords(len(words), len(labels)), metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.model.out.bias.data -= 20.
    first,*_,last = flags(learn)
    assert first and not last
    assert learn.zero_labels.records[0].never_predicted==list(labels)

@pytest.mark.parametrize('loss,model,kw', [
    (lambda: BCEWithLogitsLossFlat(pos_weight=torch.full((20,), 9.)), Same, {}),
    (BCELossFlat, Sigmoid, dict(sigmoid=False))])
def test_other_losses(loss, model, kw):
    learn = make_learner(*GOOD, multilabel_metrics(**kw), model(), loss_func=loss(), cbs=ZeroLabelsCallback(**kw))
    v = values(learn)
    r, = learn.zero_labels.records
    assert not r.verdict and v['accuracy_multi']==r.accuracy==pytest.approx(accuracy_multi(*GOOD).item())

def test_min_labels_are_not_forgotten():
    logits,targs = simulate(skill=2., bias=-6)
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.set_thresh(0.9, min_labels=1)
    values(learn)
    r = learn.zero_labels.explain()
    assert ', min_labels=1)` applies it' in one_line(repr(r)) or not r.verdict
    text, = pitfall_texts(make_learner(*GOOD, multilabel_metrics(min_labels=1), cbs=ZeroLabelsCallback()))
    assert ('use min_labels=1, but `predict` and `show_results` no limit: '
            '`learn.set_thresh(0.5, min_labels=1)` sets one for all') in text
    learn.loss_func = BCEWithLogitsLossFlat(thresh=0.9) # as the advice on `pos_weight` sets it
    assert 'min_labels=1)` sets one for all' in pitfall_texts(learn)[0]
    targs = (torch.arange(40)%2)[:,None].float() # one label: min_labels=1 would predict it for every sample
    assert 'min_labels' not in repr(judge(torch.full((40,1), 0.1), targs))

def test_sigmoid_of_a_metric_alone():
    "A metric without its sigmoid is not taken for a metric with another threshold"
    learn = make_learner(*GOOD, F1ScoreMulti(sigmoid=False), cbs=ZeroLabelsCallback())
    with pytest.warns(UserWarning) as caught, learn.no_logging(): learn.fit(1, 0.)
    assert ['pass sigmoid=True' in str(o.message) for o in caught]==[True]

def test_sigmoid_of_the_callback_alone():
    learn = make_learner(*GOOD, multilabel_metrics(sigmoid=False), Sigmoid(), loss_func=BCELossFlat(),
                         cbs=ZeroLabelsCallback())
    assert 'pass sigmoid=False, to each metric and to ZeroLabelsCallback' in pitfall_texts(learn)[0]

class SetTo(Module):
    "A model that adds another bias to its logits in each epoch"
    def __init__(self, *biases):
        self.w,self.bias = nn.Parameter(torch.zeros(1)),nn.Parameter(torch.zeros(1))
        self.biases = biases
    def forward(self, x): return x + self.bias + 0*self.w

class SetBias(Callback):
    order = -5
    def after_train(self): self.learn.model.bias.data.fill_(self.learn.model.biases[self.epoch])

def test_the_model_that_was_saved_is_judged(tmp_path, capsys):
    "`SaveModelCallback` loads the best epoch when the fit ends"
    model = SetTo(-9)
    learn = make_learner(*simulate(), multilabel_metrics(), model, cbs=[SetBias(), ZeroLabelsCallback()], path=tmp_path)
    def fit(*biases, cbs=None):
        model.biases = biases
        with recording(learn) as caught: learn.fit(len(biases), 0., cbs=cbs)
        return ' '.join(str(w.message) for w in caught if issubclass(w.category, ZeroLabelsWarning))
    assert 'predicts (nearly) nothing' in fit(-9)
    # The last epoch is better than the one that is loaded, and would be all clear
    assert 'Still predicts nothing (epoch 0)' in fit(-2.5, 2.6, cbs=SaveModelCallback())
    assert 'All clear' not in capsys.readouterr().out and learn.model.bias.item()==pytest.approx(-2.5)
    # The first callback loads nothing; the fit ends in the epoch that is loaded
    caught = fit(-9, -2.5, 2.6, cbs=[
        SaveModelCallback(every_epoch=True, fname='each'),
        SaveModelCallback(monitor='f1_micro'),
        EarlyStoppingCallback(monitor='f1_micro', comp=np.less, patience=2)])
    assert not caught and 'All clear: epoch 2' in capsys.readouterr().out
    assert learn.model.bias.item()==pytest.approx(2.6)
    assert 'predicts nothing' in fit(-9).replace('(nearly) ', '')
    fit(-2.5, 2.6, cbs=SaveModelCallback(at_end=True))
    assert 'All clear' in capsys.readouterr().out and learn.model.bias.item()==pytest.approx(2.6)

def test_other_data_clears_nothing(capsys):
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
    with learn.no_logging(): learn.validate(dl=make_learner(*GOOD).dls.valid)
    assert L(learn.zero_labels.reported.values()).itemgot(0)==["predicts nothing"]
    assert 'All clear' not in capsys.readouterr().out
    with pytest.warns(ZeroLabelsWarning, match='Still predicts nothing'), learn.no_logging(): learn.fit(1, 0.)

def test_each_data_is_told_of_by_itself(capsys):
    model = SetTo(-9)
    learn = make_learner(*simulate(), multilabel_metrics(), model, cbs=[SetBias(), ZeroLabelsCallback()])
    other = make_learner(*simulate(bias=-9.)).dls.valid
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging():
        learn.fit(1, 0.)
        learn.validate(dl=other)
    messages = [str(w.message) for w in caught if issubclass(w.category, ZeroLabelsWarning)]
    test_eq([o.count('What helps') for o in messages], [1,1])
    model.biases = 2.,2.
    with learn.no_logging(): learn.fit(2, 0.)
    assert 'All clear since epoch 0: epoch 1' in capsys.readouterr().out and len(learn.zero_labels.reported)==1
    model.bias.data.fill_(7.)
    with learn.no_logging(): learn.validate(dl=other)
    assert 'All clear: validate()' in capsys.readouterr().out and not learn.zero_labels.reported

def test_another_learner_starts_anew(capsys):
    cb = ZeroLabelsCallback()
    for data,n in ((COLLAPSED,1), (COLLAPSED,1), (GOOD,0)):
        learn = make_learner(*data, multilabel_metrics(), cbs=cb)
        with recording(learn) as caught: learn.fit(1, 0.) if n else learn.validate()
        test_eq([str(w.message).count('What helps') for w in caught], [1]*n)
        test_eq(len(cb.records), 1)
    assert 'All clear' not in capsys.readouterr().out

def test_weights_that_became_nan_are_no_all_clear(capsys):
    class Diverges(Callback):
        order = -20
        def after_loss(self):
            if not self.training or self.epoch!=1: return
            self.learn.loss_grad = self.learn.loss = self.learn.loss_grad*math.nan
    model = SetTo(-9, -9)
    learn = make_learner(*simulate(), multilabel_metrics(), model, cbs=[SetBias(), ZeroLabelsCallback()])
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
    model.biases = 2.,2.
    with learn.no_logging(): learn.fit(2, 0.1, cbs=[Diverges(), TerminateOnNaNCallback()])
    assert not learn.zero_labels.records[-1].verdict and 'All clear' not in capsys.readouterr().out

@pytest.mark.parametrize('change,text', [
    (dict(loss_trend='diverges', last_loss=math.inf),
     'A lower learning rate, in a new Learner: the validation loss is inf now.'),
    (dict(loss_trend='rises', overfits=True, learns=False),
     'Fewer epochs, or more data: the validation loss has risen, from 0.3 to 0.4 now, '
     'while the training loss went on falling.')])
def test_more_of_what_the_loss_points_to(change, text):
    r = trained(*COLLAPSED, n_epoch=2)[0].zero_labels.records[-1]
    r.update(best_loss=0.3, last_loss=0.4, peak_loss=0.4)
    r.update(change)
    assert text in remedies(r)

def test_chance_is_not_learning():
    "Constant scores rank labels at chance level, whatever the loss does"
    learn,_ = trained(torch.full((400,20), -9.), COLLAPSED[1], n_epoch=3)
    r = learn.zero_labels.records[-1]
    assert r.ap_micro==pytest.approx(1-r.zeros_accuracy) and not r.learns

def test_where_most_samples_have_no_label():
    "One label per sample would be wrong for most samples, and the samples average ignores false positives there"
    logits,targs = simulate(2000, 6, density=0.02, bias=-7.)
    learn,caught = trained(logits, targs)
    text = one_line(caught[0].message)
    assert 'min_labels' not in text and 'learn.set_thresh(learn.thresh_find().cardinality)' in text
    with learn.no_logging(), pytest.warns(UserWarning, match="of the samples have no label.*average='micro' counts it"):
        learn.thresh_find(average='samples', show_plot=False)
    ignored = torch.where(targs.any(1, keepdim=True), targs, -1.)
    other = make_learner(logits, ignored)
    with other.no_logging(), warnings.catch_warnings():
        warnings.simplefilter('error')
        other.thresh_find(show_plot=False, ignore_index=-1)
    with learn.no_logging():
        learn.set_thresh(learn.thresh_find(average='micro', show_plot=False))
        learn.validate()
    assert not learn.zero_labels.records[-1].verdict

def test_advice_without_a_loss_that_decodes():
    logits,targs = simulate(bias=-6.)
    learn = make_learner(logits.sigmoid(), targs, multilabel_metrics(sigmoid=False),
                         loss_func=BCELossFlat(), cbs=ZeroLabelsCallback(sigmoid=False))
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(1, 0.)
    advice = re.findall(r'Write `(.*?)`, and `(.*?)`, or `(.*?)`', one_line(caught[-1].message))
    *codes,search = advice[0]
    for code in codes: exec(code)
    assert 'sigmoid=False' in codes[0]
    assert eval(search).thresh==learn.zero_labels.thresh
    with warnings.catch_warnings(), learn.no_logging():
        warnings.simplefilter('error', UserWarning)
        learn.fit(1, 0.)
    assert not learn.zero_labels.records[-1].verdict

@pytest.mark.parametrize('kw', [dict(min_labels=3), dict(max_labels=1), dict(min_labels=4, max_labels=4)], ids=str)
def test_promised_f1_holds_when_followed(kw):
    p,y = simulate(1000, skill=6., bias=-9. if 'min_labels' not in kw else -4.)
    p = p.sigmoid()
    r = judge(p, y, **kw)
    promise = re.search(r'Another threshold: `thresh=(\S+)`, without .*?, predicts .*? with a micro F1 of (\S+) inst',
                        ' '.join(remedies(r)))
    thresh,f1 = float(promise[1]),float(promise[2])
    assert judge(p, y, thresh=thresh).f1_micro==pytest.approx(f1, abs=0.01)

def test_the_lowest_is_best():
    logits,targs = simulate()
    def learner(cb): return make_learner(logits, targs, multilabel_metrics(), cbs=[ZeroLabelsCallback(), cb])
    text, = pitfall_texts(learner(EarlyStoppingCallback('empty_rate', patience=5)))
    assert ("`EarlyStoppingCallback(monitor='empty_rate')` looks for the highest value, "
            "but lower is better: add `comp=np.less`") in text
    for cb in (EarlyStoppingCallback('empty_rate', comp=np.less),
               EarlyStoppingCallback('f1_macro'),
               EarlyStoppingCallback()):
        assert not pitfall_texts(learner(cb))

def test_an_exported_callback_has_told_nothing():
    learn,caught = trained(*COLLAPSED)
    assert len(caught)==1
    cb = pickle.loads(pickle.dumps(learn.zero_labels))
    other = make_learner(*COLLAPSED, multilabel_metrics(), cbs=cb)
    with pytest.warns(ZeroLabelsWarning) as caught, other.no_logging(): other.fit(1, 0.)
    assert 'What helps' in str(caught[0].message) and len(cb.records)==2

def test_weights_where_most_labels_are_true():
    logits,targs = simulate(400, density=0.8, bias=-12)
    text = str(trained(logits, targs)[1][0].message)
    assert 'pos_weight' not in text and 'pos_weight' in str(trained(*COLLAPSED)[1][0].message)

def test_a_table_without_a_block_for_its_targets():
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(100,2)), columns=list('ab'))
    df['y'],df['z'] = (df.a>0).astype(int),(df.b>0).astype(int)
    dls = TabularDataLoaders.from_df(df, cont_names=['a','b'], y_names=['y','z'], procs=[Normalize], bs=16,
                                     device=torch.device('cpu'))
    learn = tabular_learner(dls, layers=[8], cbs=ZeroLabelsCallback())
    problem = ('the loss function (MSELoss) does not decode, so `predict` and `show_results` show no label, '
               'however good the model: it is for regression; use `loss_func=BCEWithLogitsLossFlat()`')
    assert problem in pitfall_texts(learn)[0]

class AlsoTest(Callback):
    "Validates on other data after each epoch's training"
    def after_train(self): self.learn.validate(dl=self.dls.train)

@pytest.mark.parametrize('on_flag', ['warn','stop','raise'])
def test_a_validation_within_a_fit_only_records(on_flag):
    "For example of a second data set in each epoch"
    cb = ZeroLabelsCallback(on_flag=on_flag, patience=9)
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=[cb, AlsoTest()])
    outcome = nullcontext() if on_flag!='raise' else pytest.raises(ZeroLabelsError)
    with recording(learn) as caught, outcome: learn.fit(3, 0.)
    assert [o.phase for o in learn.zero_labels.records]==['validate','fit']*3
    caught = [w.message.record for w in caught if issubclass(w.category, ZeroLabelsWarning)]
    assert caught==([learn.zero_labels.records[-1]] if on_flag!='raise' else [])

@pytest.mark.parametrize('kind', [tuple, dict])
def test_a_model_that_returns_several_things(kind):
    "A callback has to select what the metrics take"
    key = 0 if kind is tuple else 'logits'
    class Several(Same):
        def forward(self, x):
            logits = super().forward(x)
            return (logits, x) if kind is tuple else dict(logits=logits, features=x)
    class TakeLogits(Callback):
        order = -20
        def after_loss(self): self.learn.pred = self.pred[key]
    def loss(p, y): return F.binary_cross_entropy_with_logits(p[key], y)
    def learner(cbs):
        return make_learner(*GOOD, multilabel_metrics(), Several(), loss_func=loss, cbs=[ZeroLabelsCallback(), *cbs])
    hint = f"the model returns a {kind.__name__}: in a callback's `after_loss`, let `self.learn.pred` be the part"
    with pytest.raises(ValueError, match=hint): values(learner([]))
    expected = values(make_learner(*GOOD, multilabel_metrics()))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore') # of a loss that does not decode
        test_close([*values(learner([TakeLogits()])).values()], [*expected.values()], eps=1e-12)

def test_names_that_do_not_fit_end_no_training():
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback(), vocab=['a','b'])
    with pytest.warns(ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
    assert learn.zero_labels.records[-1].never_predicted==[*range(20)]

def test_two_sigmoids():
    "The model ends with a sigmoid, as the metrics have it, and `get_preds` applies another"
    learn = make_learner(*GOOD, multilabel_metrics(sigmoid=False), Sigmoid(), cbs=ZeroLabelsCallback(sigmoid=False))
    text, = pitfall_texts(learn, 2)
    assert ('`get_preds` and `predict` apply the sigmoid of the loss function (BCEWithLogitsLoss) to what the metrics '
            "take for probabilities: remove the sigmoid at the model's end, and leave out sigmoid=False") in text
    assert not pitfall_texts(make_learner(*GOOD, multilabel_metrics(), cbs=ZeroLabelsCallback()))

def test_what_changes_in_numbers_alone_is_told_once():
    "Whatever the number of samples in a later validation"
    learn = make_learner(GOOD[0], GOOD[1]*0, multilabel_metrics(), cbs=ZeroLabelsCallback())
    texts = pitfall_texts(learn, 2)
    learn.dls = make_learner(GOOD[0][:300], GOOD[1][:300]*0).dls
    assert len(texts)==1 and 'none of the 400 validation samples' in texts[0]
    assert not pitfall_texts(learn)
    assert 'none of the 300 validation samples' in learn.zero_labels.records[-1].pitfalls[0]

def test_numbers_in_code_are_told_anew():
    learn = make_learner(*GOOD, [F1ScoreMulti(0.2)], cbs=ZeroLabelsCallback())
    assert '`learn.set_thresh(0.2)`' in pitfall_texts(learn)[0]
    learn.metrics = [F1ScoreMulti(0.3)]
    assert '`learn.set_thresh(0.3)`' in pitfall_texts(learn)[0]

def test_the_loaded_epoch_knows_how_the_loss_went_on(tmp_path):
    "The model of the first epoch is loaded; its remedies also depend on the epochs after it"
    class Rising(Callback):
        def before_validate(self): self.learn.model.w.data += 2
    class Shift(Same):
        def forward(self, x): return x*(1+self.w)
    cbs = [ZeroLabelsCallback(patience=9), Rising(), SaveModelCallback(fname='best')]
    learn = make_learner(*COLLAPSED, multilabel_metrics(), Shift(), cbs=cbs, path=tmp_path)
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(3, 0.)
    r = caught[-1].message.record
    first_,*_,last = learn.zero_labels.records
    assert r.epoch==0 and r.accuracy==first_.accuracy
    assert r.loss_trend==last.loss_trend=='rises' and first_.loss_trend==''

def test_absent_labels_are_among_the_facts():
    logits,targs = (o.clone() for o in COLLAPSED)
    targs[:,[2,7]] = 0
    r = judge(logits, targs, sigmoid=True, vocab=list('abcdefghijklmnopqrst'))
    assert 'nothing is known of labels that no sample has: c, h' in repr(r)
    assert 'no sample has' not in repr(judged())

@pytest.mark.parametrize('p', [0.97, 0.9, 0.2])
def test_a_suggestion_for_ties(p):
    "Below a score that all samples have, not equal to it"
    y = (torch.rand(100, 5, generator=torch.Generator().manual_seed(0))<0.9).float()
    preds = torch.full((100,5), p)
    r = judge(preds, y)
    assert p-0.01<r.suggested_thresh<p
    assert judge(preds, y, thresh=r.suggested_thresh).pred_per_sample==5

@pytest.mark.parametrize('scale', [1, 0.1, 0.03, 0.01, 0.003, 0.001])
def test_a_suggestion_keeps_its_promise(scale):
    "However close together the scores are; if they are too close, no threshold is suggested"
    for seed in range(8):
        logits,y = simulate(400, 10, 0.15, seed=seed)
        for p in ((scale*logits).sigmoid(), (scale*logits-6).sigmoid()):
            r = judge(p, y)
            if r.suggested_thresh is None:
                assert scale<0.01
                continue
            then = judge(p, y, thresh=r.suggested_thresh)
            assert abs(then.pred_per_sample/then.true_per_sample-1)<0.2
            assert then.f1_micro==pytest.approx(r.suggested_f1, abs=0.05)

def test_advice_for_margins_can_be_followed():
    "After `set_thresh`, metrics and callback on logits have the threshold of the loss function"
    learn = make_learner(*COLLAPSED, multilabel_metrics(thresh=0., sigmoid=False),
                         cbs=ZeroLabelsCallback(thresh=0., sigmoid=False))
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    r = learn.zero_labels.records[-1]
    code, = re.findall(r'`(learn.set_thresh.[^`]*)` applies it to metrics', one_line(caught[0].message))
    exec(code)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        v = values(learn)
    now = learn.zero_labels.records[-1]
    assert not now.verdict and not now.pitfalls
    assert v['f1_micro']==pytest.approx(now.f1_micro)==pytest.approx(r.suggested_f1, abs=0.02)
    assert math.log(now.thresh/(1-now.thresh))==pytest.approx(r.suggested_thresh, abs=1e-4)

@pytest.mark.parametrize('make', [
    lambda y: 10*torch.randn(300, 6, generator=torch.Generator().manual_seed(1))+30*y+3,
    lambda y: torch.full((300,6), -50.),
    lambda y: torch.full((300,6), 60.)])
def test_no_suggestion_at_the_ends(make):
    "If a threshold would be 1 in float32, or below the lowest scores of the histogram"
    y = (torch.rand(300, 6, generator=torch.Generator().manual_seed(0))<0.8).float()
    for p in (make(y), make(y)-3):
        r = judge(p, y, sigmoid=True)
        if r.suggested_thresh is None: continue
        then = judge(p, y, thresh=r.suggested_thresh, sigmoid=True)
        assert abs(then.pred_per_sample/then.true_per_sample-1)<0.2+1e-9
    y = y[:200,:5]
    assert judge(torch.zeros(200,5), y).suggested_thresh is None
    assert judge(torch.full((200,5), -50.), y, sigmoid=True).suggested_thresh is None

@pytest.mark.parametrize('t', [0.3, 0.5, 0.6, 0.7, 0.8])
def test_margins_follow_a_threshold(t):
    "Also if the threshold on logits looks like a probability"
    learn = make_learner(*GOOD, [F1ScoreMulti(0., sigmoid=False)], cbs=ZeroLabelsCallback(thresh=0., sigmoid=False))
    learn.set_thresh(t)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert values(learn)['f1_score']==pytest.approx(F1ScoreMulti(t)(*GOOD))
    r = learn.zero_labels.records[-1]
    assert not r.pitfalls and r.f1_micro==pytest.approx(F1ScoreMulti(t, average='micro')(*GOOD))

@pytest.mark.parametrize('on_flag', ['warn','function'])
def test_the_loaded_epoch_is_acted_on_once(on_flag, tmp_path):
    called = []
    cb = ZeroLabelsCallback(patience=1, on_flag=on_flag if on_flag=='warn' else called.append)
    best_is_1 = AvgMetric(lambda p, y: torch.tensor(float(learn.epoch==1)))
    learn = make_learner(*COLLAPSED, [*multilabel_metrics(), best_is_1], path=tmp_path,
                         cbs=[cb, SaveModelCallback(monitor='<lambda>')])
    with recording(learn) as caught: learn.fit(4, 0.)
    warned = [w.message.record for w in caught if issubclass(w.category, ZeroLabelsWarning)]
    epochs = [o.epoch for o in (warned if on_flag=='warn' else called)]
    assert epochs.count(1)==1

def test_each_absent_label_is_told():
    "Another label in another validation set"
    logits,targs = GOOD
    first_,second = targs.clone(),targs.clone()
    first_[:,3] = second[:,7] = 0
    learn = make_learner(logits, first_, cbs=ZeroLabelsCallback())
    assert '(3)' in pitfall_texts(learn)[0] and not pitfall_texts(learn)
    learn.dls = make_learner(logits, second).dls
    assert '(7)' in pitfall_texts(learn)[0] and not pitfall_texts(learn)

def test_a_wrapped_fit(monkeypatch):
    "As by tools that log automatically"
    fit = Learner.fit
    @functools.wraps(fit)
    def logged(*args, **kwargs): return fit(*args, **kwargs)
    monkeypatch.setattr(Learner, 'fit', logged)
    learn = make_learner(*COLLAPSED, cbs=[ZeroLabelsCallback(), AlsoTest()])
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(1, 0.)
    assert [w.message.record.phase for w in caught]==['fit']

def test_after_an_interrupted_fit():
    "`validate` reports a verdict on the validation set once; other data are recorded, until the next fit"
    class Interrupted(Same):
        batches = 10
        def forward(self, x):
            self.batches -= 1
            if not self.batches: raise KeyboardInterrupt
            return super().forward(x)
    learn = make_learner(*COLLAPSED, model=Interrupted(), cbs=ZeroLabelsCallback())
    other = make_learner(*COLLAPSED).dls.valid
    def titles(f, *args, **kwargs):
        with recording(learn) as caught: f(*args, **kwargs)
        return [one_line(w.message).partition(':')[0] for w in caught]
    with pytest.raises(KeyboardInterrupt), learn.no_logging(): learn.fit(2, 0.)
    assert titles(learn.validate)==['The model predicts (nearly) nothing']
    assert titles(learn.validate)==titles(learn.validate, dl=other)==[]
    assert [r.phase for r in learn.zero_labels.records]==['validate']*3
    assert titles(learn.fit, 1, 0.)==['Still predicts nothing (epoch 0)']
    assert titles(learn.validate, dl=other)==['The model predicts (nearly) nothing']

def test_advice_on_weights_keeps_what_the_loss_ignores():
    logits,targs = COLLAPSED[0],COLLAPSED[1].clone()
    targs[::7,3] = math.nan
    metrics = multilabel_metrics(ignore_index=math.nan)
    learn = make_learner(logits, targs, metrics, loss_func=BCEWithLogitsLossFlat(ignore_index=math.nan),
                         cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    code, = re.findall('`(learn.loss_func = .*?)`', one_line(caught[-1].message))
    exec(code)
    assert learn.loss_func.func.pos_weight.shape==(20,) and math.isfinite(learn.loss_func(logits, targs))
    learn.zero_labels.records[-1].update(pos_weight=True, pred_per_sample=9.)
    text, = [o for o in remedies(learn.zero_labels.records[-1]) if 'A smaller' in o]
    assert 'its square root' in text

# Labels that are never predicted

def half_dead(n=1000, seed=0):
    "Logits and targets of ten labels: two are ranked well and never predicted, one is random and never predicted"
    g = torch.Generator().manual_seed(seed)
    targs = (torch.rand(n, 10, generator=g)<torch.tensor([.3]*7+[.04]*3)).float()
    logits = torch.randn(n, 10, generator=g) + 6*targs - 3
    logits[:,7:9] -= 8
    logits[:,9] = torch.randn(n, generator=g) - 8
    return logits,targs

def test_labels_that_are_never_predicted():
    logits,targs = half_dead()
    r = judge(logits, targs, sigmoid=True, vocab=list('abcdefghij'))
    assert (r.verdict,r.flagged,r.rated)==('never predicts some labels', False, 10)
    assert r.f1_micro>0.9 and [o['label'] for o in r.dead]==['h','i','j']
    assert r.f1_macro==pytest.approx(skm.f1_score(targs, logits>0, average='macro', zero_division=0))
    for o,i in zip(r.dead, (7,8,9)):
        assert o['positives']==targs[:,i].sum()
        assert o['ap']==pytest.approx(skm.average_precision_score(targs[:,i], logits[:,i]), abs=0.02)
    text = one_line(r)
    of_two = r'h \S+ \(chance 0.0\d\), i \S+ \(chance 0.0\d\)\.'
    assert re.search(f'Thresholds per label.*average precision: {of_two}', text)
    assert re.search(r'More samples with.*average precision: j 0\.\d+ \(chance 0\.0\d\)\.', text)
    assert 'A better model' not in text and '#d62728' in r._repr_html_()
    few = judge(logits[:100], targs[:100], sigmoid=True) # Too few positives to tell
    assert targs[:100,7:].sum(0).max()<20 and not few.verdict and not few.dead

def test_thresholds_of_their_own_find_labels():
    "The advice, followed literally, in a Learner and on arrays; then all is clear but for the label without skill"
    logits,targs = half_dead()
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback(), vocab=list('abcdefghij'))
    with pytest.warns(ZeroLabelsWarning, match='(?s)never predicts some of.*Thresholds per label') as caught:
        with learn.no_logging(): learn.fit(1, 0.)
    code, = re.findall(r'`(learn\.set_thresh.*?)`', one_line(caught[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter('error', ZeroLabelsWarning)
        plt.close('all')
        exec(code, dict(learn=learn))
        with contextlib.redirect_stdout(io.StringIO()) as out, learn.no_logging(): learn.fit(1, 0.)
    after = learn.zero_labels.records[-1]
    assert [o['label'] for o in after.dead] in (['j'], []) and after.f1_macro>learn.zero_labels.records[0].f1_macro+0.1
    text = 'No longer never predicts some labels' if after.dead else 'All clear'
    assert text in one_line(out.getvalue()) and 'macro F1' in one_line(out.getvalue())
    found = best_thresholds(logits.sigmoid(), targs, average='macro')
    assert len(judge(logits.sigmoid(), targs, thresh=found).dead)<=1

def test_no_green_with_a_dead_label():
    "One of ten is no verdict, but it is named, in another colour than that of good news"
    logits,targs = half_dead()
    logits[:,8:] = 6*targs[:,8:]-3
    r = judge(logits, targs, sigmoid=True, vocab=list('abcdefghij'))
    assert not r.verdict and [o['label'] for o in r.dead]==['h']
    assert 'No warning' in repr(r) and 'never predicted: h' in repr(r) and 'Thresholds per label' in repr(r)
    assert '#2ca02c' not in r._repr_html_()
    logits[:,7] = 6*targs[:,7]-3
    assert '#2ca02c' in judge(logits, targs, sigmoid=True)._repr_html_()

def test_no_green_over_many_empty_samples():
    y = torch.eye(5).repeat(40, 1)
    for n,green in ((10,True), (30,False)): # Of 200 samples
        p = y*0.98+0.01
        p[:n] = 0.01
        r = judge(p, y)
        assert not r.verdict and not r.dead and ('#2ca02c' in r._repr_html_())==green

def test_no_green_with_a_label_that_is_never_right():
    "Predicted now and then, but without a true positive: named, neither green nor all clear"
    logits,targs = half_dead()
    good = logits.clone()
    good[:,7:] = 6*targs[:,7:]-3
    logits[:,7:] = good[:,7:]
    wrong = (targs[:,7]==0).nonzero()[:3,0]
    logits[:,7] -= 8
    logits[wrong,7] = 1.
    r = judge(logits, targs, sigmoid=True, vocab=list('abcdefghij'))
    dead, = r.dead
    assert (dead['label'],dead['predicted'],r.verdict,r.never_predicted)==('h',3,'',[])
    assert 'predicted, but never correctly: h' in one_line(r) and '#2ca02c' not in r._repr_html_()
    assert 'Some labels rank above chance and are never predicted correctly; their' in one_line(r)
    learn = make_learner(good-12, targs, multilabel_metrics(), cbs=ZeroLabelsCallback(), vocab=list('abcdefghij'))
    with recording(learn): learn.fit(1, 0.)
    for now,text in ((logits,'No longer predicts nothing'), (good,'All clear')):
        learn.model.forward = lambda x, o=now: o + 0*learn.model.w
        learn.zero_labels.reported = {id(learn.dls.valid_ds): ('predicts nothing', learn.dls.valid_ds)}
        with contextlib.redirect_stdout(io.StringIO()) as out, learn.no_logging():
            learn.validate(dl=DataLoader(learn.dls.valid_ds, bs=1000))
        assert text in out.getvalue() and ('never correctly: h' in out.getvalue())==(now is logits)

def test_a_threshold_that_gains_much_is_shown_without_a_verdict():
    logits,targs = simulate(2000, 20, density=0.1, bias=-1.5)
    r = judge(logits, targs, sigmoid=True)
    assert not r.verdict and r.suggested_f1>1.05*r.f1_micro and not r.dead
    assert f'Another threshold: `thresh={r.suggested_thresh:.10g}`' in one_line(r) and '#2ca02c' not in r._repr_html_()

# True of what it looks at

def test_numbers_are_of_the_loaded_epoch(tmp_path):
    "Those of later epochs are named as such"
    learn = make_learner(*COLLAPSED, multilabel_metrics(), path=tmp_path, cbs=[
        Falling([1.6, 1., 0.8, 0.26]), SaveModelCallback(monitor='zeros_accuracy'), ZeroLabelsCallback()])
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(4, 0.)
    text = one_line(caught[-1].message)
    assert 'epoch 0, at threshold' in text
    assert 'still falling, 0.26 at epoch 3 (epoch 0 is loaded)' in text
    assert caught[-1].message.record.valid_loss==1.6

def test_other_data_than_the_validation_set(tmp_path):
    "The verdict, without thresholds that were found on data to test with"
    learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=ZeroLabelsCallback())
    dl = DataLoader(TensorPairs(*simulate(seed=5)), bs=64)
    for f in (learn.evaluate, learn.validate):
        with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): f(dl=dl)
        text = one_line(caught[0].message)
        assert "no label: validate()" in text and "learn.evaluate()" in text and "thresh=" not in text
        learn.zero_labels.reported.clear()
    with pytest.warns(ZeroLabelsWarning, match='Another threshold'): learn.evaluate()

def test_a_label_each_keeps_its_promise():
    "`min_labels=1` is offered only where it raises micro F1, by what it promises"
    offered = 0
    for seed,skill,bias in itertools.product(range(4), (0.2, 1., 3.), (-6., -4.)):
        logits,targs = simulate(300, 8, density=0.15, skill=skill, bias=bias, seed=seed)
        targs[~targs.any(1),0] = 1
        learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
        with warnings.catch_warnings(), learn.no_logging():
            warnings.simplefilter('ignore')
            learn.fit(1, 0.)
            r = learn.zero_labels.records[-1]
            with_one = F1ScoreMulti(average='micro', min_labels=1)(logits, targs)
            assert r.label_each_f1==pytest.approx(with_one)
            advice = [o for o in remedies(r) if 'min_labels=1' in o]
            assert not advice or with_one>r.f1_micro
            if not advice: continue
            offered += 1
            promise,code = re.search(r'micro F1 of (\S+) instead.*`(learn\..*?)`', advice[0]).groups()
            exec(code, dict(learn=learn))
            learn.validate()
        assert learn.zero_labels.records[-1].f1_micro==pytest.approx(float(promise), abs=0.0051)
    assert offered

class Improves(Module):
    "Good scores that grow from epoch to epoch, and never exceed the threshold after the first one"
    def __init__(self): self.w,self.epoch = nn.Parameter(torch.zeros(1)),-1
    def train(self, mode=True):
        self.epoch += mode
        return super().train(mode)
    def forward(self, x):
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        return (noise*2 if self.epoch<1 else x*self.epoch/3-6) + 0*self.w

@pytest.mark.parametrize('tracker', [SaveModelCallback, partial(EarlyStoppingCallback, patience=3)],
                         ids=['save','stop'])
def test_a_monitor_that_depends_on_the_threshold(tracker, tmp_path):
    "It chose an untrained epoch, while loss and ranking improved; the column that is advised chooses a later one"
    logits,targs = simulate(400, 10, density=0.1, skill=4., bias=-2.)
    def learner(): return make_learner(logits, targs, multilabel_metrics(), Improves(), path=tmp_path, bs=400,
                                       cbs=[Falling([1.64, 0.9, 0.5, 0.26]), ZeroLabelsCallback()])
    learn = learner()
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging():
        learn.fit(4, 0., cbs=tracker(monitor='f1_macro'))
    text, = [one_line(o.message) for o in caught if 'by f1_macro, which depends on the' in one_line(o.message)]
    assert 'epoch 0 was the best' in text and 'fell from 1.64 to 0.26' in text
    code, = re.findall('`(learn.metrics = .*?)`', text)
    learn = learner()
    exec(code, dict(globals(), learn=learn))
    with warnings.catch_warnings(record=True) as caught, learn.no_logging():
        learn.fit(4, 0., cbs=(save := tracker(monitor='ap_macro')))
    assert not any('Monitor `ap_macro`' in one_line(o.message) for o in caught)
    assert save.best>0.5
