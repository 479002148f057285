"Which verdict a record has, and where its bound is"
from helpers import *
from fastai_mlmetrics.diagnosis.records import Record
from fastai_mlmetrics.diagnosis.verdicts import (add_verdict, diagnosis, is_better, is_choice, per_label_helps, problem,
                                                 thresh_gains, thresh_helps, VERDICTS, why_no_verdict,
                                                 constant_beats_zeros)

NO_GAIN = 0.,-0.1,0.1
HEALTHY = dict(
    range_problem='', accuracy=0.9, zeros_accuracy=0.8, constant_accuracy=0.8, labelled=100, n_labels=8, rated=8,
    true_per_sample=2., pred_per_sample=2., missed_rate=0.1, f1_micro=0.8, constant_f1=0.4,
    thresh=0.5, suggested_f1=0.8, global_gain=(0.1,-0.1,0.3), per_label_f1=0.8, per_label_gain=NO_GAIN,
    dead=[], never_predicted=[], same_for_all=None, samples=100, one_class=False)

def record(**changes): return add_verdict(Record(HEALTHY, **changes))

def code(r):
    "The code of what is wrong; '' if nothing is"
    row = diagnosis(r)
    return row.code if row else ''

def dead(n, predicted=0): return [dict(label=f'label {i}', predicted=predicted) for i in range(n)]

PER_LABEL_HELPS = dict(per_label_f1=0.9, per_label_gain=(0.1, 0.05, 0.15))

@pytest.mark.parametrize('expected,changes', [
    ('', {}),
    # Fewer than a hundredth of the true labels
    ('predicts-nothing', dict(pred_per_sample=0.019)), ('', dict(pred_per_sample=0.02)),
    # From `max_empty` on
    ('leaves-samples-empty', dict(missed_rate=0.5)), ('', dict(missed_rate=0.499)),
    ('leaves-samples-empty', dict(missed_rate=0.3, max_empty=0.3)), ('', dict(missed_rate=0.6, max_empty=0.7)),
    # Below the constant; above it by less than 15 % of what is possible on the nearer side
    ('worse-than-a-constant', dict(f1_micro=0.399)), ('worse-than-a-constant', dict(f1_micro=0.399, accuracy=0.4)),
    ('no-better-than-a-constant', dict(f1_micro=0.4)), ('no-better-than-a-constant', dict(f1_micro=0.459)),
    ('', dict(f1_micro=0.461)),
    ('no-better-than-a-constant', dict(f1_micro=0.829, constant_f1=0.8)), ('', dict(f1_micro=0.831, constant_f1=0.8)),
    # If the accuracy is at least `min_accuracy`
    ('no-better-than-a-constant', dict(f1_micro=0.4, accuracy=0.5)), ('', dict(f1_micro=0.4, accuracy=0.499)),
    ('', dict(f1_micro=0.4, accuracy=0.6, min_accuracy=0.7)),
    # More than twice the true labels, but for a good model at its best threshold
    ('over-predicts', dict(pred_per_sample=4.01, f1_micro=0.79)), ('', dict(pred_per_sample=4., f1_micro=0.79)),
    ('', dict(pred_per_sample=4.01)),
    ('over-predicts', dict(pred_per_sample=4.01, f1_micro=0.4, suggested_f1=0.4, accuracy=0.4)),
    # A quarter of the labels with enough positives, and at least one
    ('never-predicts-some-labels', dict(dead=dead(2))), ('', dict(dead=dead(1))),
    ('never-predicts-some-labels', dict(dead=dead(1), rated=3)), ('', dict(dead=dead(1), rated=5)), ('', dict(rated=0)),
    ('', dict(dead=dead(8, predicted=3))),
    # But not by choice
    ('', dict(dead=dead(2), thresh=(0.3,0.4))), ('never-predicts-some-labels', dict(dead=dead(2), thresh=(0.3,0.3))),
    ('never-predicts-some-labels', dict(dead=dead(2), thresh=(0.3,0.4), **PER_LABEL_HELPS)),
    ('the-same-for-all-samples', dict(same_for_all=['a']))], ids=str)
def test_the_bound_of_each_verdict(expected, changes):
    r = record(**changes)
    assert code(r)==expected
    has_verdict = expected not in ('','the-same-for-all-samples')
    assert r.verdict==(diagnosis(r).name if has_verdict else '')
    assert r.flagged==(expected in ('predicts-nothing','leaves-samples-empty','worse-than-a-constant',
                                    'no-better-than-a-constant'))

@pytest.mark.parametrize('text,changes', [
    ('the model predicts no label', dict(pred_per_sample=0.)),
    ('the model predicts nearly no label', dict(pred_per_sample=0.01)),
    ('the model is no better than predicting', dict(f1_micro=0.4)),
    ('the model is hardly better than predicting', dict(f1_micro=0.401)),
    ('the model predicts no label for 100% of the samples', dict(missed_rate=1.)),
    ('the model predicts no label for more than 99% of the samples', dict(missed_rate=0.996))])
def test_no_word_hedges_a_number_that_is_exact_nor_is_a_rounded_one_exact(text, changes):
    assert problem(record(**changes), 'so ').startswith(f'So {text}')

def test_the_first_verdict_that_is_not_muted_wins():
    wrong = dict(pred_per_sample=0., missed_rate=1., f1_micro=0., dead=dead(8), same_for_all=[])
    many = wrong | dict(pred_per_sample=5., missed_rate=0.)
    codes = [o.code for o in VERDICTS]
    assert len({*codes})==7
    muted = []
    for _ in range(6):
        r = record(**wrong, ignore=tuple(muted))
        muted.append(code(r))
        assert r.verdict==(diagnosis(r).name if diagnosis(r) else '')
    assert muted==[o for o in codes if o not in ('over-predicts','the-same-for-all-samples')]+['']
    assert code(record(**many, ignore=('worse-than-a-constant','no-better-than-a-constant')))=='over-predicts'
    assert code(record(same_for_all=['a'], ignore=('the-same-for-all-samples',)))==''

@pytest.mark.parametrize('changes', [
    dict(range_problem='predictions are logits'), dict(accuracy=math.nan), dict(true_per_sample=0), dict(labelled=19)],
    ids=str)
def test_no_verdict_without_numbers_that_tell(changes):
    r = record(pred_per_sample=0., **changes)
    assert why_no_verdict(r) and r.verdict=='' and not r.flagged and code(r)==''
    r = record(pred_per_sample=0., labelled=20)
    assert why_no_verdict(r)=='' and r.flagged and code(r)=='predicts-nothing'

@pytest.mark.parametrize('now,enough,too_little', [
    (0.2, 0.211, 0.209), # 5 %
    (0.8, 0.821, 0.819), # But 0.02 will do
    (0.,  0.051, 0.049), (0.045, 0.051, 0.049)]) # Always above 0.05
def test_a_better_f1_is_clearly_better(now, enough, too_little):
    assert is_better(enough, now) and not is_better(too_little, now)

@pytest.mark.parametrize('helps,changes', [
    (True, {}), (False, dict(suggested_f1=0.819)), (False, dict(suggested_f1=math.nan)),
    # It is better held out, too, or that is unknown
    (False, dict(global_gain=NO_GAIN)), (False, dict(global_gain=(-0.01,-0.1,0.1))),
    (True, dict(global_gain=(math.nan,)*3)), (True, dict(thresh=0.3, global_gain=(math.nan,)*3)),
    # A threshold that somebody chose stays, unless the gain is clear
    (False, dict(thresh=0.3, global_gain=(0.1, 0.025, 0.2))), (True, dict(thresh=0.3, global_gain=(0.1, 0.026, 0.2))),
    (True, dict(global_gain=(0.1, -0.1, 0.3))), (True, dict(thresh=0, global_gain=(0.1, -0.1, 0.3))),
    # It has to beat a constant, too
    (False, dict(f1_micro=0.3, suggested_f1=0.459)), (True, dict(f1_micro=0.3, suggested_f1=0.461))], ids=str)
def test_when_another_threshold_helps(helps, changes):
    r = Record(HEALTHY | dict(suggested_f1=0.9), **changes)
    assert thresh_helps(r)==helps
    assert thresh_gains(r, r.suggested_f1)==(helps or changes.get('suggested_f1')==0.459)

@pytest.mark.parametrize('helps,changes', [
    (True, {}), (True, dict(per_label_gain=(0.02, 0.001, 0.04))), (False, dict(per_label_gain=(0.019, 0.001, 0.04))),
    (False, dict(per_label_gain=(0.1, 0., 0.2))), (False, dict(per_label_f1=0.819)), (False, dict(constant_f1=0.89)),
    (False, dict(per_label_gain=(math.nan,)*3))], ids=str)
def test_when_thresholds_per_label_help(helps, changes):
    r = Record(HEALTHY | PER_LABEL_HELPS, **changes)
    assert per_label_helps(r)==helps and not is_choice(r)
    r.thresh = 0.3,0.4
    assert is_choice(r)==(not helps)

def test_constant_beats_zeros_only_by_a_better_constant():
    assert not constant_beats_zeros(record()) and constant_beats_zeros(record(constant_accuracy=0.81))
