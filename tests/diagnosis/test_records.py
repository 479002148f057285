"Verdicts, and remedies that do what they say"
import contextlib, io, itertools, pickle, sklearn.metrics as skm
from copy import copy, deepcopy
from helpers import *
from fastai_mlmetrics.diagnosis.records import add_trend
from fastai_mlmetrics.diagnosis.verdicts import add_verdict, beats_constant
from fastai_mlmetrics.diagnosis.remedies import remedies
from fastai_mlmetrics.diagnosis.records import describe, FACTS, in_numbers, Record, what_remains
from six_labels import SCORES, TARGS

def test_decisions_are_told_as_decisions():
    "Without scores, neither a threshold nor the highest-scoring label is recommended"
    r = judge(torch.zeros(300,6).long(), TARGS)
    text = str(describe(r))
    assert r.verdict=='predicts nothing' and r.suggested_thresh is None
    assert 'these predictions are binary' in one_line(text)
    assert 'min_labels' not in text and 'No threshold helps' not in text
    with pytest.raises(ValueError, match=r'preds are binary \(torch.bool\)'): best_thresholds(SCORES>0.5, TARGS)

def test_a_collapsed_model_is_flagged():
    learn,caught = trained(*COLLAPSED)
    r = learn.zero_labels.records[-1]
    assert r.verdict=='predicts nothing' and r.accuracy==r.zeros_accuracy>0.9 and len(r.never_predicted)==20
    warning, = caught
    text = str(warning.message)
    assert warning.message.record is r and max(map(len, text.splitlines()))<=80
    assert f'accuracy_multi is {r.accuracy:.3f}; predicting no label at all scores {r.zeros_accuracy:.3f}' in text
    assert f'set_thresh({r.suggested_thresh})' in text and 'min_labels=1' not in text # A fifth has no label
    better = F1ScoreMulti(r.suggested_thresh, average='micro')(*COLLAPSED)
    assert better==pytest.approx(r.suggested_f1, abs=0.02) and better>0.5
    assert not os.path.exists(warning.filename)

@pytest.mark.parametrize('data,why', [
    (GOOD, 'a good model'),
    (simulate(2000, skill=8, density=0.002), 'most samples have no label'),
    (simulate(skill=6, bias=-5), 'good but cautious'),
    (simulate(15, bias=-9), 'fewer than 20 samples with labels')])
def test_good_models_and_small_data_have_no_verdict(data, why):
    learn,caught = trained(*data, n_epoch=4)
    assert not caught and not any(r.verdict for r in learn.zero_labels.records), why

def test_the_model_of_the_forum_leaves_samples_empty():
    "20 labels, an accuracy of 0.97, and most images without a predicted label"
    logits,targs = simulate(2000, density=0.05, skill=4.5, bias=-5.2)
    r = trained(logits, targs)[0].zero_labels.records[-1]
    assert 0.955<r.accuracy<0.985 and r.verdict=='leaves samples empty'

@pytest.mark.parametrize('c,density', [(17,0.171), (6,0.26)])
def test_denser_data_are_flagged_too(c, density):
    learn,_ = trained(*simulate(1000, c, density, bias=-9))
    assert learn.zero_labels.records[-1].verdict=='predicts nothing'

def test_a_constant_is_no_better_than_a_constant():
    _,targs = simulate(1000, 10, 0.1)
    targs[:,0] = (torch.arange(1000)%3==0).float()
    constant = torch.where(torch.arange(10)==0, 1., -1.).expand(1000,10)
    r = trained(constant, targs)[0].zero_labels.records[-1]
    assert r.verdict=='no better than a constant' and r.f1_micro==pytest.approx(r.constant_f1)

def test_worse_than_a_constant_is_not_well(capsys):
    "Also if the accuracy is too low to mislead"
    logits,targs = simulate(c=6, density=0.4, skill=8)
    wrong = judge(-logits, targs, sigmoid=True)
    assert wrong.accuracy<wrong.min_accuracy and wrong.verdict=='worse than a constant' and wrong.flagged
    assert '#d62728' in wrong._repr_html_()
    assert ('At threshold 0.5, the model is worse than predicting the same labels for every sample, with a micro F1 of '
            f'{wrong.f1_micro:.3f} against {wrong.constant_f1:.3f}.') in one_line(repr(wrong))
    learn,caught = trained(logits-30, targs)
    assert caught and learn.zero_labels.reported
    learn.model.forward = lambda x: -x-30 + 0*learn.model.w
    with recording(learn) as caught:
        learn.validate()
        learn.fit(4, 0.)
    assert learn.zero_labels.records[-1].verdict=='worse than a constant'
    assert 'worse than predicting the same labels' in one_line(caught[0].message)
    assert 'no longer applies' not in capsys.readouterr().out

def test_over_prediction_does_not_hide_a_model_that_is_worse_than_a_constant():
    "It would run on with `on_flag='stop'`"
    gen = torch.Generator().manual_seed(0)
    targs = (torch.rand(400, 10, generator=gen)<0.08).float()
    targs[:,0] = 1.
    logits = torch.randn(400, 10, generator=gen) + torch.tensor([-9.,*[9.]*9])
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback(on_flag='stop'))
    with recording(learn) as caught: learn.fit(6, 0.)
    r = learn.zero_labels.records[-1]
    assert r.pred_per_sample>2*r.true_per_sample and r.accuracy<r.min_accuracy and r.f1_micro<0.5*r.constant_f1
    assert r.verdict=='worse than a constant' and r.epoch==2 and len(caught)==1
    assert ' is worse than predicting the same labels for every sample, with ' in one_line(caught[0].message)
    assert ': it predicts far too many labels.' in one_line(caught[0].message)

@pytest.mark.parametrize('density', [0.8, 0.93, 1.])
def test_a_good_model_is_not_flagged_where_most_labels_are_true(density):
    "A constant prediction has a high F1, and a good model is not flagged"
    logits,targs = simulate(1000, 5, density, skill=9, bias=-4.5)
    good = judge(logits, targs, sigmoid=True)
    assert good.constant_f1>0.87 and not good.verdict and ('the model beats' in repr(good))==(density<1)
    p = targs.flip(0) # as good as chance
    assert judge(p, targs).verdict==('worse than a constant' if density<1 else '')

@given(st.floats(0.001, 1), st.floats(0, 1))
def test_clearly_above_a_constant(constant, f1):
    "A margin of 15 % of the constant baseline's F1, up to 0.5; a lower F1 is never above, an F1 of 1 always"
    beats = beats_constant(f1, constant)
    if constant<=0.5 and abs(f1-1.15*constant)>1e-9: assert beats==(f1>1.15*constant)
    if f1<constant: assert not beats
    if f1==1: assert beats

def test_what_the_loss_points_to():
    "A loss that falls asks for more training; of others, nothing is known that helps"
    for losses,falls in (([1.,.5,.4],True), ([.3,.4,.9],False), ([.5,.5,.501],False)):
        learn = make_learner(*COLLAPSED, multilabel_metrics(), cbs=[ZeroLabelsCallback(), Falling(losses)])
        with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(3, 0.)
        text = one_line(caught[0].message)
        longer = 'Train longer, with `learn.fit_one_cycle(6, 0)`: the validation loss is still falling, 0.4 now'
        assert (longer in text)==falls
        assert 'learning rate' not in text and ('validation loss' in text)==falls

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

def test_the_same_for_all_is_said():
    _,targs = simulate()
    constant = torch.where(torch.arange(20)==3, 1., -1.).expand(400,20)
    learn,caught = trained(constant, targs)
    assert learn.zero_labels.records[-1].same_for_all==[3]
    assert 'every sample gets the same labels: 3' in str(caught[0].message)

def test_a_record_shows_itself():
    r = judged()
    assert repr(r)==str(describe(r)).strip()
    assert 'predicts no label' in repr(r) and '#d62728' in r._repr_html_()
    assert 'At threshold 0.5, min_labels=1, the model' in one_line(repr(judged(min_labels=1)))
    assert 'threshold' not in repr(judge(GOOD[0]>0, GOOD[1])) # binary predictions have none
    learn,_ = trained(*COLLAPSED, n_epoch=1)
    assert learn.zero_labels.explain() is learn.zero_labels.records[-1]
    assert 'learn.set_thresh' in repr(learn.zero_labels.explain())
    with pytest.raises(ValueError, match='before the first validation'): ZeroLabelsCallback().explain()
    # No problem
    healthy = judge(*GOOD, sigmoid=True)
    assert not healthy.verdict and repr(healthy).startswith('At threshold 0.5, the model beats')
    assert 'What to do' not in repr(healthy) and '#2ca02c' in healthy._repr_html_()
    # No verdict
    logits,targs = COLLAPSED
    few = judge(logits[:10], targs[:10], sigmoid=True)
    assert 'The model cannot be judged, because fewer than 20 samples have a label' in repr(few)
    assert 'The model cannot be judged, because all targets are 0' in repr(judge(logits, targs*0, sigmoid=True))
    with pytest.warns(UserWarning) as caught: no_numbers = judge(logits*math.nan, targs, sigmoid=True)
    assert 'The model cannot be judged, because some predictions are NaN' in repr(no_numbers)
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
    assert r.verdict=='no better than a constant' and r.flagged
    assert f'{r.pred_per_sample:.2f} labels per sample predicted, {r.true_per_sample:.2f} true' in repr(r)
    assert ' the threshold:' not in one_line(r) and r.suggested_f1<r.f1_micro
    logits += 1.2*targs # a model with some skill
    r = judge(logits, targs, sigmoid=True)
    assert r.verdict=='over-predicts' and not r.flagged and 'far more labels than are true, ' in repr(r)
    assert f', {r.pred_per_sample:.2f} per sample instead of {r.true_per_sample:.2f}.' in one_line(r)
    assert f'thresh={r.suggested_thresh:.10g}' in repr(r)
    learn,caught = trained(logits, targs, n_epoch=2)
    text = one_line(caught[0].message)
    assert 'learn.set_thresh' in text and 'validation loss' not in text
    assert 'min_labels' not in text and 'BCEWithLogitsLossFlat' not in text and len(caught)==1
    learn.set_thresh(learn.zero_labels.records[-1].suggested_thresh)
    values(learn)
    assert learn.zero_labels.records[-1].verdict!='over-predicts'
    weighted = BCEWithLogitsLossFlat(pos_weight=torch.full((20,), 9.))
    learn = make_learner(logits, targs, loss_func=weighted, cbs=ZeroLabelsCallback())
    values(learn)
    assert 'Use a smaller pos_weight' in repr(learn.zero_labels.explain())

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
    helps = one_line(caught[0].message).split('What to do:')[1]
    assert any(o in helps for o in ('learn.set_thresh','learn.loss_func =','Train longer'))

def all_labelled(logits, targs):
    "Targets with a label for each sample"
    targs = targs.clone()
    targs[~targs.any(1),0] = 1
    return logits,targs

def test_the_remedies_work_as_written():
    logits,targs = all_labelled(*COLLAPSED)
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    text = one_line(describe(caught[0].message.record, full=True))
    remedies = re.findall(r'`(learn\.[^`]*)`', text)
    test_eq([o.split('(')[0] for o in remedies],
            ['learn.set_thresh','learn.loss_func = BCEWithLogitsLossFlat','learn.set_thresh','learn.set_thresh'])
    r = learn.zero_labels.records[0]
    for code in remedies:
        exec(code, dict(globals(), learn=learn))
        with warnings_as('ignore'): v = values(learn)
        if 'thresh_find' in code: assert v['f1_micro']>r.f1_micro+0.1
        elif code=='learn.set_thresh(0.5)': assert learn.loss_func.thresh==0.5
        elif 'set_thresh' in code: assert v['f1_micro']==pytest.approx(r.suggested_f1, abs=0.02)
        elif 'loss_func' in code: assert learn.loss_func.func.pos_weight.shape==(20,)

def test_no_threshold_to_suggest():
    r = judge(torch.full((100,5), 0.1), (torch.arange(500).view(100,5)%4==0).long())
    assert r.suggested_thresh is None
    assert 'the scores lie too close together to see whether another threshold helps' in one_line(r)

def test_scores_that_rank_backwards_are_told():
    "Strongly or weakly, such as those of absence"
    rng = np.random.default_rng(0)
    targs = rng.random((500,4))<(0.3,0.2,0.1,0.1)
    for strength in (2, 6):
        logits = strength*targs+rng.normal(size=targs.shape)-strength/2
        assert 'these may be scores of absence' in one_line(judge(-logits, targs.astype(int), sigmoid=True))
        assert 'of absence' not in one_line(judge(logits-2, targs.astype(int), sigmoid=True))

def test_equal_numbers_are_called_so():
    r = judged()
    r.update(f1_micro=0.3781, constant_f1=0.3784, pred_per_sample=1., true_per_sample=1., missed_rate=0.)
    assert 'with nearly the same micro F1, 0.378' in repr(add_verdict(r))

def test_a_masked_loss_is_not_replaced():
    logits,targs = COLLAPSED[0],COLLAPSED[1].clone()
    targs[::7,3] = math.nan
    learn = make_learner(logits, targs, loss_func=MaskedFlat(), cbs=ZeroLabelsCallback(ignore_index=math.nan))
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    text = str(caught[-1].message)
    assert 'predicts no label' in text and 'pos_weight' not in text

def test_no_remedy_that_is_in_use():
    "The label that `min_labels` adds may be an ignored one"
    logits,targs = COLLAPSED[0].clone(),COLLAPSED[1].clone()
    logits[:,0],targs[:,0] = 0,-1
    r = judge(logits, targs, sigmoid=True, ignore_index=-1, min_labels=1)
    assert r.missed_rate>0.9 and not any(o.startswith('Predict at least one label') for o in remedies(r))
    r = Record(judge(*simulate(skill=0., bias=0.), thresh=0.9, sigmoid=True))
    r.suggested_thresh,r.suggested_f1 = r.thresh,r.f1_micro+0.01 # Not clearly better
    for share,said in ((0.95, 'no threshold helps much'), (0.5, 'no other threshold is clearly better')):
        r.constant_f1 = share*r.suggested_f1
        assert f'or try another model: {said}' in remedies(r)[-1]

def test_enough_labels_need_no_weights():
    "If only a tenth of the labels is missing"
    r = Record(judge(*COLLAPSED, sigmoid=True))
    r.update(pred_per_sample=0.9*r.true_per_sample, can_weigh=True, decodes=True)
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

@pytest.mark.parametrize('losses,trend,best', [
    ((math.nan,0.5,0.4), 'falls', 0.5), # The first one is unknown
    ((-0.5,-1.,-0.8), '', -1.), # No percentage of a negative loss
    ((-0.1,0.5,0.8), '', -0.1)]) # Nor of one that was negative
def test_losses_that_have_no_meaning_have_no_trend(losses, trend, best):
    records = []
    for loss in losses:
        r = Record(judged(), phase='fit', epoch=0, valid_loss=loss)
        add_trend(r, records, train_loss=-2.)
        records.append(r)
    assert (r.loss_trend,r.best_loss,r.overfits)==(trend, best, False)

@pytest.mark.parametrize('verdict', ['predicts nothing','over-predicts','no better than a constant'])
def test_a_threshold_is_a_remedy_where_f1_gains_by_it(verdict):
    def advice(f1, suggested):
        r = Record(judged(), verdict=verdict, f1_micro=f1, suggested_f1=suggested, constant_f1=0.1)
        return ' '.join(remedies(r))
    for f1,suggested in ((0.2,0.18), (0.33,0.334), (0.,0.11), (0.2,math.nan)):
        assert ' the threshold:' not in advice(f1, suggested)
        assert 'try another model' in advice(f1, suggested)
    for f1,suggested in ((0.2,0.22), (0.33,0.35), (0.,0.12)):
        assert f'micro F1 rises from {f1:.3f} to {suggested:.3f}' in advice(f1, suggested)

def test_a_new_loss_needs_a_new_threshold():
    learn = make_learner(*simulate(bias=-4), multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.set_thresh(0.6, min_labels=1)
    values(learn)
    learn.zero_labels.records[-1].update(pred_per_sample=0.5, verdict='no better than a constant')
    text, = [o for o in remedies(learn.zero_labels.records[-1]) if 'pos_weight' in o]
    assert '0.6' not in text
    assert ('\n2. `learn.set_thresh(0.5, min_labels=1)`, because the weights raise all scores.\n3. Train on.\n'
            '4. Tune the threshold again: `learn.set_thresh(learn.thresh_find())`') in text
    for code in re.findall('`(.*?)`', text)[:2]: exec(code, dict(globals(), learn=learn))
    assert not pitfall_texts(learn) # the advice leaves metrics and loss with the same threshold

def test_names_are_escaped():
    learn = make_learner(*COLLAPSED, cbs=ZeroLabelsCallback(), vocab=[f'<{i}>' for i in range(20)])
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    learn.zero_labels.records[-1].verdict = 'leaves samples empty'
    for html in (caught[0].message.html, learn.zero_labels.explain()._repr_html_()): assert '<0>' not in html
    assert '&lt;0&gt;' in html

@pytest.mark.parametrize('change,text', [
    (dict(loss_trend='diverges', last_loss=math.inf),
     'Use a lower learning rate, in a new Learner: the validation loss is inf now.'),
    (dict(loss_trend='rises', overfits=True, learns=False),
     'Use fewer epochs, or more data: the validation loss has risen, from 0.3 to 0.4 now, '
     'while the training loss went on falling.')])
def test_more_of_what_the_loss_points_to(change, text):
    r = trained(*COLLAPSED, n_epoch=2)[0].zero_labels.records[-1]
    r.update(best_loss=0.3, last_loss=0.4)
    r.update(change)
    assert text in remedies(r)

def test_one_label_each_is_not_advised_where_most_samples_have_none():
    "One label per sample would be wrong for most samples, and the samples average ignores false positives there"
    logits,targs = simulate(2000, 6, density=0.02, bias=-7.)
    learn,caught = trained(logits, targs)
    text = repr(caught[0].message.record)
    assert 'min_labels' not in text and 'learn.set_thresh(learn.thresh_find())' in text
    with learn.no_logging(), pytest.warns(UserWarning, match="of the samples have no label.*average='micro' does"):
        learn.thresh_find(average='samples', show_plot=False)
    ignored = torch.where(targs.any(1, keepdim=True), targs, -1.)
    other = make_learner(logits, ignored)
    with other.no_logging(), warnings_as('error'): other.thresh_find(show_plot=False, ignore_index=-1)
    with other.no_logging(), pytest.warns(UserWarning, match='of the samples have no label known to be true'):
        make_learner(logits, targs.where(torch.arange(6)>0, -1.)).thresh_find(
            average='samples', show_plot=False, ignore_index=-1)
    with learn.no_logging():
        learn.set_thresh(learn.thresh_find(average='micro', show_plot=False))
        learn.validate()
    assert not learn.zero_labels.records[-1].verdict

def test_advice_holds_without_a_loss_that_decodes():
    logits,targs = simulate(bias=-6.)
    learn = make_learner(logits.sigmoid(), targs, multilabel_metrics(sigmoid=False),
                         loss_func=BCELossFlat(), cbs=ZeroLabelsCallback(sigmoid=False))
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging(): learn.fit(1, 0.)
    code, = re.findall(r'`(learn\.set_thresh\(\S+\))`, with a loss function that decodes', one_line(caught[-1].message))
    learn.loss_func.decodes = torch.round # As the mistake in the set-up says
    exec(code)
    with warnings_as('error', UserWarning), learn.no_logging(): learn.fit(1, 0.)
    assert not learn.zero_labels.records[-1].verdict

@pytest.mark.parametrize('kw', [dict(min_labels=3), dict(max_labels=1), dict(min_labels=4, max_labels=4)], ids=str)
def test_promised_f1_holds_when_followed(kw):
    p,y = simulate(1000, skill=6., bias=-9. if 'min_labels' not in kw else -4.)
    p = p.sigmoid()
    r = judge(p, y, **kw)
    change = 'Use a threshold instead of' if kw.get('min_labels')==kw.get('max_labels') else 'the threshold, without'
    promise = re.search(change+r' .*?: predict labels above \S+, and pass `thresh=(\S+)` to the metrics\. '
                        r'On these samples, micro F1 rises from \S+ to (\S+)\.', ' '.join(remedies(r)))
    thresh,f1 = float(promise[1]),float(promise[2])
    assert judge(p, y, thresh=thresh).f1_micro==pytest.approx(f1, abs=0.01)

def test_weights_are_not_advised_where_most_labels_are_true():
    logits,targs = simulate(400, density=0.8, bias=-12)
    text = repr(trained(logits, targs)[1][0].message.record)
    assert 'pos_weight' not in text and 'pos_weight' in repr(trained(*COLLAPSED)[1][0].message.record)

def test_absent_labels_are_among_the_facts():
    logits,targs = (o.clone() for o in COLLAPSED)
    targs[:,[2,7]] = 0
    r = judge(logits, targs, sigmoid=True, vocab=list('abcdefghijklmnopqrst'))
    assert 'no sample has these labels, so they cannot be judged: c, h' in repr(r)
    assert 'no sample has' not in repr(judged())

def test_advice_for_margins_can_be_followed():
    "After `set_thresh`, metrics and callback on logits have the threshold of the loss function"
    learn = make_learner(*COLLAPSED, multilabel_metrics(thresh=0., sigmoid=False),
                         cbs=ZeroLabelsCallback(thresh=0., sigmoid=False))
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    r = learn.zero_labels.records[-1]
    code, = re.findall(r'the threshold: `(learn.set_thresh.[^`]*)`\.', one_line(caught[0].message))
    exec(code)
    with warnings_as('error'): v = values(learn)
    now = learn.zero_labels.records[-1]
    assert not now.verdict and not now.pitfalls
    assert v['f1_micro']==pytest.approx(now.f1_micro)==pytest.approx(r.suggested_f1, abs=0.02)
    assert math.log(now.thresh/(1-now.thresh))==pytest.approx(r.suggested_thresh, abs=1e-4)

def test_advice_on_weights_keeps_what_the_loss_ignores():
    logits,targs = COLLAPSED[0],COLLAPSED[1].clone()
    targs[::7,3] = math.nan
    metrics = multilabel_metrics(ignore_index=math.nan)
    learn = make_learner(logits, targs, metrics, loss_func=BCEWithLogitsLossFlat(ignore_index=math.nan),
                         cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning) as caught: values(learn)
    code, = re.findall('`(learn.loss_func = .*?)`', one_line(describe(caught[-1].message.record, full=True)))
    exec(code)
    assert learn.loss_func.func.pos_weight.shape==(20,) and math.isfinite(learn.loss_func(logits, targs))
    learn.zero_labels.records[-1].update(pos_weight=True, pred_per_sample=9.)
    text, = [o for o in remedies(learn.zero_labels.records[-1]) if 'Use a smaller' in o]
    assert 'the square root of the present one' in text

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
    of_two = r'h \(average precision \d.\d{3}, chance 0.0\d\d\), i \(\d.\d{3}, chance 0.0\d\d\)\.'
    assert re.search(f'never predicted: {of_two}', text)
    assert re.search(r'Collect more samples of .*: j \(average precision 0\.\d+, chance 0\.0\d\d\)\.', text)
    assert 'another model' not in text and '#d62728' in r._repr_html_()
    few = judge(logits[:100], targs[:100], sigmoid=True) # Too few positives to tell
    assert targs[:100,7:].sum(0).max()<20 and not few.verdict and not few.dead

def test_thresholds_of_their_own_find_labels():
    "The advice, followed literally, in a Learner and on arrays; then all is clear but for the label without skill"
    logits,targs = half_dead()
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback(), vocab=list('abcdefghij'))
    with pytest.warns(ZeroLabelsWarning, match='(?s)never predicts 3 of 10 labels.*use a threshold per') as caught:
        with learn.no_logging(): learn.fit(1, 0.)
    code, = re.findall(r'`(learn\.set_thresh.*?)`', one_line(caught[0].message))
    with warnings_as('error', ZeroLabelsWarning):
        plt.close('all')
        exec(code, dict(learn=learn))
        with contextlib.redirect_stdout(io.StringIO()) as out, learn.no_logging(): learn.validate()
    after = learn.zero_labels.records[-1]
    assert [o['label'] for o in after.dead] in (['j'], []) and after.f1_macro>learn.zero_labels.records[0].f1_macro+0.1
    text = f"for every sample{', but it' if after.dead else '.'}"
    assert text in one_line(out.getvalue()) and 'macro F1' in one_line(out.getvalue())
    found = best_thresholds(logits.sigmoid(), targs, average='macro')
    assert len(judge(logits.sigmoid(), targs, thresh=found).dead)<=1

def test_no_green_with_a_dead_label():
    "One of ten is no verdict, but it is named, in another colour than that of good news"
    logits,targs = half_dead()
    logits[:,8:] = 6*targs[:,8:]-3
    r = judge(logits, targs, sigmoid=True, vocab=list('abcdefghij'))
    assert not r.verdict and [o['label'] for o in r.dead]==['h']
    assert 'the model beats' in repr(r) and 'never predicted: h' in repr(r)
    assert 'use a threshold per label' in one_line(r)
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
    assert 'Some labels rank above chance and are never predicted correctly: h (average precision' in one_line(r)
    learn = make_learner(good-12, targs, multilabel_metrics(), cbs=ZeroLabelsCallback(), vocab=list('abcdefghij'))
    with recording(learn): learn.fit(1, 0.)
    for now,text in ((logits,'sample, but it'), (good,'for every sample.')):
        learn.model.forward = lambda x, o=now: o + 0*learn.model.w
        learn.zero_labels.reported = {id(learn.dls.valid_ds): ('predicts nothing', learn.dls.valid_ds)}
        with contextlib.redirect_stdout(io.StringIO()) as out, learn.no_logging():
            learn.validate(dl=DataLoader(learn.dls.valid_ds, bs=1000))
        assert text in one_line(out.getvalue()) and ('never correctly: h' in out.getvalue())==(now is logits)

def test_a_threshold_that_gains_much_is_shown_without_a_verdict():
    logits,targs = simulate(2000, 20, density=0.1, bias=-1.5)
    r = judge(logits, targs, sigmoid=True)
    assert not r.verdict and r.suggested_f1>1.05*r.f1_micro and not r.dead
    assert f'Raise the threshold: predict labels above {r.suggested_thresh:.10g}, and' in one_line(describe(r))
    assert '#2ca02c' not in r._repr_html_()

@pytest.mark.slow
def test_a_label_each_keeps_its_promise():
    "`min_labels=1` is offered only where it raises micro F1, by what it promises"
    offered = 0
    for seed,skill,bias in itertools.product(range(4), (0.2, 1., 3.), (-6., -4.)):
        logits,targs = simulate(300, 8, density=0.15, skill=skill, bias=bias, seed=seed)
        targs[~targs.any(1),0] = 1
        logits += 3*torch.randn(300, 1, generator=torch.Generator().manual_seed(seed)) # No threshold fits all samples
        learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
        with warnings_as('ignore'), learn.no_logging():
            learn.fit(1, 0.)
            r = learn.zero_labels.records[-1]
            with_one = F1ScoreMulti(average='micro', min_labels=1)(logits, targs)
            assert r.label_each_f1==pytest.approx(with_one)
            advice = [o for o in remedies(r) if 'min_labels=1' in o]
            assert not advice or with_one>r.f1_micro
            if not advice: continue
            offered += 1
            promise,code = re.search(r'`(learn\..*?)`.*Micro F1 rises from \S+ to (\S+)\.', advice[0]).groups()[::-1]
            exec(code, dict(learn=learn))
            learn.validate()
        assert learn.zero_labels.records[-1].f1_micro==pytest.approx(float(promise), abs=0.0051)
    assert offered

def test_of_exactly_k_labels_another_threshold_frees():
    "A threshold is a remedy only without limits that replace it"
    r = judge(*simulate(n=200, c=20, bias=-1.), sigmoid=True, min_labels=8, max_labels=8)
    r.decodes = True
    from fastai_mlmetrics.diagnosis.remedies import remedies
    text = ' '.join(remedies(r))
    assert r.verdict=='over-predicts' and 'Use a threshold instead of min_labels=8, max_labels=8: ' in text
    assert re.search(r'`learn\.set_thresh\([\d.]+\)`', text)

# The best that is known

def test_thresholds_per_label_are_the_first_remedy_where_scales_differ():
    logits,targs = scales()
    r = judge(logits, targs, sigmoid=True)
    assert r.verdict=='no better than a constant' and r.global_f1<0.4 and r.per_label_f1>0.86
    gain,low,high = r.per_label_gain
    assert gain==pytest.approx(r.per_label_f1-r.global_f1) and 0.4<low<gain<high
    text = one_line(r)
    assert f'against {r.constant_f1:.3f}.' in text
    first_ = 'What to do: - Use a threshold per label: best_thresholds(preds, targs, per_label=True, sigmoid=True).'
    assert f'{first_} Cross-validated micro F1: {r.per_label_f1:.3f} per label' in text and 'another model' not in text
    found = best_thresholds(logits, targs, per_label=True, sigmoid=True)
    assert found.held_out==pytest.approx(r.per_label_f1, abs=0.01) # Other folds, and no bins
    after = judge(logits, targs, thresh=found.thresh, sigmoid=True)
    assert after.f1_micro>r.per_label_f1-0.005 and 'a threshold per label' not in one_line(after)

def test_no_thresholds_per_label_where_one_will_do():
    "The gain is a chance one, or there are too few samples to tell"
    for seed in range(10):
        r = judge(*simulate(400, 10, 0.15, skill=2., seed=seed), sigmoid=True)
        assert 'Use a threshold per label' not in one_line(r) and r.per_label_gain[0]<0.02
    assert math.isnan(judge(torch.rand(100, 1), torch.rand(100, 1)<0.5).per_label_f1)

def test_a_gain_of_thresholds_per_label_that_is_not_clear_is_left_to_the_search():
    r = Record(judge(*COLLAPSED, sigmoid=True), global_f1=0.5)
    r.update(per_label_f1=0.51, per_label_gain=(0.01, -0.01, 0.03))
    assert not any('threshold per label' in o for o in remedies(r))

def left_out():
    "Logits and targets of which the best thresholds for micro F1 never predict some labels"
    g = torch.Generator().manual_seed(0)
    targs = (torch.rand(3000, 10, generator=g)<torch.tensor([.4]*6+[.03]*4)).float()
    return torch.randn(3000, 10, generator=g) + targs*torch.tensor([5.]*6+[0.3]*4) - 3, targs

def test_labels_that_the_best_thresholds_leave_out_are_a_choice():
    logits,targs = left_out()
    assert judge(logits, targs, sigmoid=True, thresh=0.85).verdict=='never predicts some labels'
    found = best_thresholds(logits, targs, per_label=True, sigmoid=True).thresh
    r = judge(logits, targs, thresh=found, sigmoid=True)
    assert sum(not o['predicted'] for o in r.dead)>=r.rated/4 and not r.verdict
    assert 'the model beats' in repr(r) and 'thresholds for the best micro F1 may leave labels out' in one_line(r)
    assert '#2ca02c' not in r._repr_html_()
    assert judge(logits-6, targs, thresh=[0.5]*10, sigmoid=True).verdict # Not chosen

def planet(n=1500):
    "Targets of which one label is true in 93 % of the samples, and scores as good as chance"
    g = torch.Generator().manual_seed(0)
    targs = (torch.rand(n, 17, generator=g)<torch.tensor([0.93]+[0.12]*16)).float()
    return torch.randn(n, 17, generator=g)-1,targs

def test_both_baselines_are_told_where_a_label_is_in_most_samples():
    logits,targs = planet()
    r = judge(logits, targs, sigmoid=True)
    constant = torch.zeros(1500, 17)
    constant[:,0] = 1
    assert r.constant_accuracy==pytest.approx((constant==targs).double().mean().item())
    assert r.constant_accuracy>r.zeros_accuracy
    both = f'scores {r.zeros_accuracy:.3f}, the same labels for every sample {r.constant_accuracy:.3f}'
    assert both in one_line(r)
    assert 'accuracy' in one_line(judged()) and judged().constant_accuracy==judged().zeros_accuracy
    empty = judge(*simulate(bias=-4), sigmoid=True) # One of micro F1
    assert empty.verdict=='leaves samples empty' and one_line(empty).count('the same labels for every sample')==1
    for data,n in ((planet(400), 3), (COLLAPSED, 2)):
        learn = make_learner(*data, cbs=ZeroLabelsCallback())
        with warnings_as('ignore'): values(learn)
        assert len(learn.zero_labels.plot()[0].lines)==n

@pytest.mark.parametrize('case', ['empty','accuracy','clear'])
def test_all_is_clear_only_if_nothing_remains(case, capsys):
    "Otherwise what remains is told; 'no longer leaves samples empty' is not said of a third of the samples"
    logits,targs = simulate(600, 10, density=0.15, skill=8.)
    now = dict(clear=logits, empty=logits-12*(torch.arange(600)%3==0)[:,None],
               accuracy=simulate(600, 10, density=0.15, skill=2., bias=-1.)[0])[case]
    learn = make_learner(logits-20, targs, cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning): values(learn)
    learn.model.forward = lambda x: now[:len(x)] + 0*learn.model.w
    with learn.no_logging(): learn.validate(dl=DataLoader(learn.dls.valid_ds, bs=600))
    r,text = learn.zero_labels.records[-1],one_line(capsys.readouterr().out)
    assert not r.verdict, r
    start = ('The earlier warning no longer applies. At threshold 0.5, the model beats predicting the same labels for '
             'every sample')
    assert text.startswith(f'{start}.' if case=='clear' else f'{start}, but it') and 'leaves samples empty' not in text
    assert ('it predicts no label for' in text)==(case=='empty')
    below = f'its accuracy_multi, {r.accuracy:.3f}, is below the {r.zeros_accuracy:.3f} of predicting no label'
    assert (below in text)==(case=='accuracy')

def test_narrow_scores_that_rank_well_are_found():
    "Ranked almost perfectly within a tenth of a logit, and never predicted"
    logits,targs = half_dead()
    logits[:,7:] = 0.02*(torch.randn(1000, 3, generator=torch.Generator().manual_seed(1))+3*targs[:,7:])-4
    r = judge(logits, targs, sigmoid=True)
    for o,i in zip(r.dead, (7,8,9)):
        assert o['ap']==pytest.approx(skm.average_precision_score(targs[:,i], logits[:,i])) and o['ap']>0.7
    in_bins = trained(logits, targs)[0].zero_labels.records[-1] # Of any number of samples
    assert [o['ap'] for o in in_bins.dead]==pytest.approx([o['ap'] for o in r.dead], abs=0.1)
    assert 'hardly rank above chance' not in one_line(r) and 'Some labels rank above chance' in one_line(r)

@pytest.mark.parametrize('c', [60,120])
def test_bins_that_are_too_wide_tell_nothing_of_a_label(c):
    g = torch.Generator().manual_seed(0)
    targs = (torch.rand(1000, c, generator=g)<torch.tensor([.3]*(c-3)+[.04]*3)).float()
    logits = torch.randn(1000, c, generator=g) + 6*targs - 3
    logits[:,-3:] = 0.01*(torch.randn(1000, 3, generator=g)+3*targs[:,-3:])-4.03
    r = trained(logits, targs)[0].zero_labels.records[-1]
    assert len(r.dead)==3 and all(math.isnan(o['ap']) for o in r.dead)
    assert not {'hardly rank','nan'} & {*re.findall('hardly rank|nan', one_line(r))} and not r.collapsed
    found = judge(logits, targs, sigmoid=True)
    for o,i in zip(found.dead, range(c-3, c)):
        assert o['ap']==pytest.approx(skm.average_precision_score(targs[:,i], logits[:,i])) and o['ap']>0.7

def test_names_of_labels_with_brackets():
    r = judge(*half_dead(), sigmoid=True, vocab=[f'{o} (big)' for o in 'abcdefghij'])
    assert re.search(r'h \(big\) \(average precision [\d.]+, chance [\d.]+\), i \(big\) \([\d.]+, chance', one_line(r))

def test_binary_predictions_have_no_average_precision():
    logits,targs = half_dead()
    preds = targs.int()
    preds[:,3] = 0
    r = judge(preds, targs)
    test_eq(what_remains(r), ['it never predicts 1 of 10 labels'])
    assert math.isnan(r.ap_micro) and math.isnan(r.dead[0]['ap'])

@pytest.mark.parametrize('thresh', [0.5,0.599])
def test_thresholds_per_label_help_a_good_model(thresh):
    g = torch.Generator().manual_seed(0)
    targs = (torch.rand(3000, 10, generator=g)<0.2).float()
    logits = 1.3*torch.randn(3000, 10, generator=g) + 5*targs - 2.6 + torch.linspace(-1, 1, 10)
    r = judge(logits, targs, sigmoid=True, thresh=thresh)
    assert r.f1_micro>0.9 and not r.verdict and remedies(r)[0].startswith('Use a threshold per label')
    own = best_thresholds(logits.sigmoid(), targs, per_label=True).thresh
    assert not remedies(judge(logits, targs, sigmoid=True, thresh=own))

def test_a_collapsed_network_is_called_so():
    "Its average precision rises by chance, from the labels' frequencies"
    g,(_,targs) = torch.Generator().manual_seed(0),all_labelled(*simulate(1000, 10, density=0.1))
    logits = torch.linspace(-4, -2, 10) + 1e-3*torch.randn(1000, 10, generator=g)
    records = []
    for loss,shift in ((0.3,0.), (0.3,0.2), (0.3,0.4)):
        r = judge(logits+shift*targs.mean(0), targs, sigmoid=True)
        r.update(phase='fit', epoch=len(records), valid_loss=loss, ap_micro=0.2+0.1*len(records))
        add_trend(r, records, train_loss=0.3)
        records.append(r)
    text = one_line(r)
    assert r.collapsed and not r.learns and 'still rising' not in text and 'last resort' not in text
    assert '- scores hardly depend on the input' in text and 'the network has collapsed, or has not' in text
    r.update(loss_trend='falls') # As the frequencies of labels are learnt
    assert 'Train longer' not in one_line(r)
    assert not judged().collapsed and not judge(torch.rand(10,3), torch.ones(10,3)).collapsed
    assert not judge(logits*0+60, targs, sigmoid=True).collapsed # Beyond the bins

def test_a_loss_that_is_no_number_diverges():
    "Infinite logits have a NaN loss, and are no NaN"
    first_ = Record(judge(*COLLAPSED, sigmoid=True), valid_loss=0.3, epoch=0)
    add_trend(first_, [], train_loss=0.3)
    for loss in (math.inf,math.nan):
        r = Record(judge(*COLLAPSED, sigmoid=True), valid_loss=loss, epoch=1)
        add_trend(r, [first_], train_loss=loss)
        assert f'Use a lower learning rate, in a new Learner: the validation loss is {loss} now.' in remedies(r)

def test_the_same_labels_for_all_samples_are_no_success():
    "Whose accuracy is too low for a verdict"
    targs = torch.zeros(100, 10)
    targs[:70,0],targs[95:,1:] = 1,1
    r = judge(torch.tensor([0.9]+[0.1]*9).expand(100, 10), targs, min_accuracy=0.95)
    assert not r.verdict and 'the model predicts the same labels for every sample' in repr(r)

@pytest.mark.parametrize('loss,trend', [(0.9995,'is flat'), (0.9985,'falls')])
def test_a_fall_of_less_than_a_thousandth_does_not_count(loss, trend):
    before,r = (Record(epoch=i, valid_loss=o, ap_micro=0.5, random_ap=0.1, collapsed=False, ap_median=0.5)
                for i,o in enumerate((1.,loss)))
    add_trend(r, [before])
    assert r.loss_trend==trend and r.learns==(trend=='falls')

def test_no_loss_trend_of_a_negative_loss():
    "As of a loss that is to be maximised"
    def trends(losses):
        records = []
        for loss in losses:
            records.append(Record(judged(), phase='fit', epoch=0, valid_loss=loss))
            add_trend(records[-1], records[:-1], train_loss=loss)
        return [(o.loss_trend,o.learns) for o in records]
    assert trends([-1., -1.5, -1.5])==[('',True),('',True),('',False)]
    assert trends([1., 0.5, 0.7])==[('',True),('falls',True),('rises',False)]
    assert trends([math.nan, 0.5, 0.5])[1:]==[('falls',True),('is flat',False)]
    assert trends([math.inf, 0.5])[1]==('falls',True)

def test_labels_without_a_known_positive_fail_in_no_count():
    logits,targs = half_dead()
    targs[:,7:9] = 0
    logits[:,7:9] = 1.
    r = judge(logits, targs, sigmoid=True)
    assert r.absent==[7,8] and not any('never correctly' in o for o in in_numbers(r))

def test_the_promise_of_a_label_each_counts_as_binarize_does():
    "The top-scoring label of a sample may be an ignored one, and an ignored label may be the only prediction"
    logits,targs = all_labelled(*simulate(600, 8, density=0.2, skill=2., bias=-4.))
    gen = torch.Generator().manual_seed(1)
    targs[torch.rand(600, 8, generator=gen)<0.3] = -1
    targs[:,0],logits[:,0] = -1,logits[:,0]+3
    r = judge(logits, targs, sigmoid=True, ignore_index=-1)
    assert r.label_each_f1==pytest.approx(judge(logits, targs, sigmoid=True, ignore_index=-1, min_labels=1).f1_micro)
    logits[:,0] = 3. # The top label of all, and always ignored
    r = judge(logits, targs, sigmoid=True, ignore_index=-1)
    assert r.label_each_f1==r.f1_micro and not any('min_labels' in o for o in remedies(r))

def test_a_label_each_beats_the_constant():
    logits,targs = all_labelled(*simulate(600, 8, density=0.2, skill=1., bias=-6.))
    for f1,said in ((0.3,True), (0.19,False)):
        r = Record(judge(logits, targs, sigmoid=True), label_each_f1=f1, constant_f1=0.2, suggested_f1=0.2)
        assert any('min_labels=1' in o for o in remedies(r))==said

@pytest.mark.slow
@pytest.mark.parametrize('seed', range(6))
def test_no_silence_where_a_threshold_gains_much_by_predicting_less(seed):
    "Over-prediction is told if a threshold that predicts at most twice as many labels as are true is better"
    rng = np.random.default_rng(seed)
    for _ in range(30):
        logits,targs = simulate(300, 8, rng.uniform(0.05, 0.4), skill=rng.uniform(1, 5), bias=rng.uniform(-3, 1))
        r = judge(logits, targs, sigmoid=True)
        many,better = r.pred_per_sample>2*r.true_per_sample,r.suggested_f1>r.f1_micro
        if many and better: assert r.verdict=='over-predicts'
        if r.verdict=='over-predicts': assert many and (better or not beats_constant(r.f1_micro, r.constant_f1))

def test_what_is_still_so_has_the_name_that_it_had():
    logits,targs = simulate(c=6, density=0.4, skill=8)
    learn = make_learner(-logits/9, targs, cbs=ZeroLabelsCallback(min_accuracy=0., max_empty=1.))
    with recording(learn) as caught: learn.fit(5, 0.)
    with recording(learn) as again: learn.validate()
    r = learn.zero_labels.records[-1]
    assert r.verdict=='worse than a constant' and 'worse than predicting' in one_line(caught[0].message)
    assert 'As before, at threshold 0.5, the model is worse than predicting' in one_line(again[0].message)

def test_worse_and_no_better_are_two_states():
    "The second one is told in full"
    logits,targs = simulate(c=6, density=0.4, skill=8)
    learn = make_learner(-logits/9, targs, cbs=ZeroLabelsCallback(min_accuracy=0., max_empty=1.))
    with recording(learn): learn.fit(5, 0.)
    hardly = torch.randn(400, 6, generator=torch.Generator().manual_seed(1)) + 0.6*targs + 0.5
    learn.dls.valid.dataset.ts[0][:] = hardly
    with recording(learn) as caught: learn.validate()
    r = learn.zero_labels.records[-1]
    assert r.verdict=='no better than a constant' and r.f1_micro>=r.constant_f1
    assert 'hardly better than predicting the same labels' in one_line(caught[0].message)

def test_code_is_set_apart_in_a_box_alone():
    "A terminal shows no backticks"
    w = describe(judged())
    assert '`' not in str(w)+repr(w)+repr(w.record) and '<code>thresh=' in w.html and '`' not in w.html
    learn,_ = trained(*COLLAPSED, n_epoch=4)
    assert '`' not in repr(learn.zero_labels.explain()) and 'learn.set_thresh(' in repr(learn.zero_labels.explain())

def test_one_number_is_printed_in_one_way():
    "Metrics have three decimals in all sentences"
    r = judge(*half_dead(), sigmoid=True)
    numbers = re.findall(r'\b0\.\d+', one_line(r).replace('threshold 0.5', ''))
    assert len(numbers)>8 and all(len(o)==5 for o in numbers)
    r.update(loss_trend='is flat', learns=True, last_ap=0.21549, last_epoch=0, epoch=0, verdict='predicts nothing')
    assert 'still rising, 0.215 now' in one_line(r)

def test_no_empty_bullet():
    "Neither does 1 of 200 samples, which rounds to 0 %, make one"
    row, = [o for o in FACTS if o.code=='samples-without-prediction']
    assert not row.applies(AttrDict(missed_rate=1/200)) and row.applies(AttrDict(missed_rate=1/100))
    text = 'no label for'
    assert text not in one_line(judge(*GOOD, sigmoid=True))
    assert text in one_line(judge(*simulate(bias=-4), sigmoid=True))

P,Y = (np.random.default_rng(i).random((300,3)) for i in (0,1))
Y = (Y<0.3).astype(int)

@pytest.mark.parametrize('preds,targs,kwargs,says', [
    (P, np.ones((300,3)), {}, 'every label is true in every sample, so the model cannot be judged: look at the'),
    (P[:,:2], np.ones((300,2)), {}, 'For columns of zeros and ones, use `MultiCategoryBlock(encoded=True, vocab=...)`'),
    (P, np.repeat([[1,0,0]], 300, 0), {}, 'all 300 samples have the same labels'),
    (P, np.stack([Y[:,0], *np.ones((2,300))], 1), dict(labels=[1,2]), 'every label is true in every sample (of these'),
    (P/P.sum(1, keepdims=True), Y, {}, 'the scores of each sample sum to 1, as those of a softmax'),
    (P/P.sum(1, keepdims=True), Y, dict(sigmoid=True), 'the scores of each sample sum to 1, as those of a softmax')])
def test_targets_and_scores_that_mislead_are_named(preds, targs, kwargs, says):
    r = judge(preds, targs, **kwargs)
    text = one_line(r)
    assert 'These numbers may mislead: - ' in text and says.replace('`', '') in text.replace('`', '')
    assert says.split('`')[0] in r._repr_html_()
    if len(np.unique(targs, axis=0))==1: assert not r.verdict and 'Lower' not in text and 'warning' not in text
    assert 'may mislead' not in repr(judge(P, Y))
    assert not judge((P>0.9).astype(int), Y).one_class and not judge(P[:,:1], Y[:,:1]).one_class

def test_no_other_model_is_advised_while_the_loss_falls():
    r = Record(judge(*simulate(skill=0., bias=0.), thresh=0.9, sigmoid=True), last_epoch=1, epoch=1, last_loss=1.,
               last_ap=0.5)
    for trend,learns,advised in (('falls',True,False), ('rises',True,False), ('rises',False,True), ('',False,True)):
        assert any('another model' in o for o in remedies(Record(r, loss_trend=trend, learns=learns)))==advised

def test_remedies_of_a_record_are_codes():
    r = judge(*COLLAPSED, sigmoid=True)
    assert r.remedies[0]=='another-threshold' and len(r.remedies)==len(remedies(r))
    assert 'Lower the threshold' in remedies(r)[0]
    assert Record(r, other_data=True).remedies==[]==judge(P, np.ones((300,3))).remedies
    assert 'another-threshold' not in Record(r, ignore=('another-threshold',)).remedies

def test_what_the_title_says_is_no_fact_again():
    logits,targs = simulate(600, 10, density=0.15, skill=8.)
    r = judge(logits-12*(torch.arange(600)%3==0)[:,None], targs, sigmoid=True)
    assert not r.verdict and 'but it predicts no label for' in one_line(repr(r))
    assert 'no label is predicted for' not in one_line(repr(r))
