"Which threshold is recommended"
from helpers import *
from scipy.special import expit, logit
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.thresholds.tuning import Objective
from fastai_mlmetrics.metrics.intervals import Estimate
from fastai_mlmetrics.thresholds.choosing import _never_predicted, _why_kept, InUse, recommend, thresh_table
from fastai_mlmetrics.thresholds.finding import score_table, ThreshFinder
from fastai_mlmetrics.diagnosis.verdicts import thresh_helps

def options(scores, y, thresh=0.5, groups=None, metric='f1', average='micro', chosen=False, **kw):
    "The threshold in use, the best one, and thresholds per label"
    p = Predictions.of(scores, y, thresh=thresh, groups=groups, **kw)
    table = score_table(p, 5)
    objective,of_labels = Objective(metric, average, False),Objective(metric, average, True)
    in_use = InUse(table, dict(thresh=thresh, **kw), p, is_chosen=chosen)
    best = objective.tune_global(table)
    return objective,[in_use, best, of_labels.tune(table)[1]]

def calibrated(n, seed, c=8, skill=1.5):
    rng = np.random.default_rng(seed)
    freq = np.geomspace(0.05, 0.5, c)
    y = rng.random((n,c))<freq
    return expit(skill*(skill*y+rng.normal(size=(n,c)))-skill**2/2+logit(freq)),y

def test_nobody_chose_a_half():
    "With few samples the gain may be chance, and is taken; a threshold that was set stays"
    scores,y = calibrated(60, 0)
    objective,ways = options(scores, y)
    chosen,text = recommend(objective, ways)
    assert chosen.name=='best' and 'difference may be chance, but `now` is only the default threshold' in text
    objective,ways = options(scores, y, chosen=True)
    chosen,text = recommend(objective, ways)
    assert chosen.in_use and 'may be chance' in text

def test_a_clear_gain_replaces_a_threshold_that_was_set():
    scores,y = calibrated(3000, 0)
    chosen,text = recommend(*options(scores, y, thresh=0.9, chosen=True))
    assert chosen.name=='best' and 'may be chance' not in text.split('adds only')[0]

def test_the_box_does_not_contradict():
    "It advises another threshold than one that was set only where a search recommends one, but for one draw in twenty"
    advised = contradicted = 0
    for (n,thresh),seed in itertools.product([(100,0.2),(1000,0.6)], range(10)):
        scores,y = calibrated(n, seed)
        if not thresh_helps(judge(scores, y, thresh=thresh)): continue
        chosen,_ = recommend(*options(scores, y, thresh=thresh, chosen=True))
        advised += 1
        contradicted += chosen.in_use
    assert advised>=8 and contradicted<=1

def test_a_clear_loss_keeps_the_default():
    "0.5 is best, and few samples in the folds find it badly"
    rng = np.random.default_rng(3)
    y = rng.random((25,30))<0.04
    scores = np.where(y, 0.5+rng.random(y.shape)/2, rng.random(y.shape)**6*0.5)
    objective,ways = options(scores, y)
    change = ways[1].held_out.estimate(objective.m).minus(ways[0].fit.estimate(objective.m))
    chosen,text = recommend(objective, ways)
    assert chosen.in_use==(change.limits(0.95)[1]<0)

def test_thresholds_per_label_need_a_gain_of_a_standard_error():
    "1.5 times that of two fixed models, because thresholds of five folds vary too"
    shift = np.linspace(-2, 2, 8)
    for scores,y in [calibrated(400, seed) for seed in range(8)]:
        for logits in (logit(scores), logit(scores)+shift):
            objective,ways = options(expit(logits), y)
            _,best,per_label = ways
            change = per_label.held_out.estimate(objective.m).minus(best.held_out.estimate(objective.m))
            chosen,_ = recommend(objective, ways)
            assert (chosen.name=='per_label')==(change.value>1.5*change.error)

def test_limits_count():
    "With them, the threshold in use is what they make of it"
    scores,y = calibrated(300, 0)
    objective,ways = options(scores, y, min_labels=1)
    now = ways[0]
    p = Predictions.of(scores, y, min_labels=1)
    assert now.fit.score(objective.m)==pytest.approx(skm.f1_score(y, p.predicted, average='micro'))
    without = now.fit.estimate(objective.m).without
    i = 7
    others = np.arange(300)!=i
    expected = skm.f1_score(y[others], p.predicted[others], average='micro')
    assert without[i].item()==pytest.approx(expected)

def test_groups_make_gains_less_clear():
    scores,y = calibrated(60, 0)
    copies = np.arange(60).repeat(10)
    objective,ways = options(scores[copies], y[copies], chosen=True)
    chosen,_ = recommend(objective, ways)
    assert not chosen.in_use
    objective,ways = options(scores[copies], y[copies], groups=copies, chosen=True)
    chosen,_ = recommend(objective, ways)
    assert chosen.in_use

@pytest.mark.parametrize('average', ['micro','macro','samples'])
def test_a_constant_that_is_not_beaten_is_named(average):
    rng = np.random.default_rng(0)
    y = rng.random((400,5))<[0.8,0.6,0.5,0.4,0.3]
    _,text = recommend(*options(rng.random(y.shape), y, average=average))
    assert 'no better than predicting the same labels for every sample' in text
    scores,y = calibrated(400, 0, skill=4)
    _,text = recommend(*options(scores, y, average=average))
    assert 'the same labels' not in text

@pytest.mark.slow
@pytest.mark.parametrize('n', [50,300,1500])
def test_the_recommended_threshold_is_about_the_best_on_new_samples(n):
    new,truth = calibrated(30_000, -1+2**31)
    gains,losses = [],[]
    for seed in range(30):
        objective,ways = options(*calibrated(n, seed))
        chosen,_ = recommend(objective, ways)
        f1 = {o.name: F1ScoreMulti(o.value, sigmoid=False, average='micro')(new, truth) for o in [*ways, chosen]}
        gains.append(f1[chosen.name]-f1['now'])
        losses.append(f1['best']-f1[chosen.name])
    assert np.mean(gains)>0.01 and np.mean(losses)<0.004 and max(losses)<0.04

@pytest.mark.slow
def test_the_box_and_the_search_do_not_contradict_each_other():
    from fastai_mlmetrics.diagnosis.verdicts import per_label_helps, thresh_helps
    n_advised = 0
    for n,seed in itertools.product((50,100,300), range(25)):
        scores,y = calibrated(n, seed)
        chosen,_ = recommend(*options(scores, y))
        r = judge(scores, y)
        n_advised += bool(thresh_helps(r))
        assert not (thresh_helps(r) and chosen.in_use)
        assert not per_label_helps(r) or chosen.name=='per_label'
    assert n_advised>30

# Each rule by itself

@pytest.mark.parametrize('chosen', [True,False])
def test_what_is_in_use_stays_by_the_interval_of_the_gain(chosen):
    "If somebody chose it, unless the gain is clear; the default, only if the loss is clear"
    kept = []
    rng = np.random.default_rng(3)
    y = rng.random((25,30))<0.04
    separate = np.where(y, 0.5+rng.random(y.shape)/2, rng.random(y.shape)**6*0.5),y
    few = calibrated(60, 0)
    for (scores,y),thresh in ((separate,0.5), (few,0.5), (few,0.35), (calibrated(300, 1),0.8)):
        objective,ways = options(scores, y, thresh=thresh, chosen=chosen)
        now,best,per_label = ways
        adds = per_label.held_out.estimate(objective.m).minus(best.held_out.estimate(objective.m))
        tuned = per_label if adds.value>adds.error else best
        low,high = tuned.held_out.estimate(objective.m).minus(now.fit.estimate(objective.m)).limits(0.95)
        kept.append(not low>0 if chosen else high<0)
        assert recommend(objective, ways)[0] is (now if kept[-1] else tuned)
    assert {*kept}=={True,False} or not chosen

@pytest.mark.parametrize('value,says', [(0., 'no better'), (-0.1, 'is worse by 0.100'), (0.1, 'gain of 0.100')])
def test_why_the_threshold_in_use_is_kept(value, says):
    change = Estimate(value, value+0.01*torch.linspace(-1, 1, 30, dtype=torch.float64), is_difference=True)
    text = _why_kept(SimpleNamespace(name='now'), SimpleNamespace(name='best'), change)
    assert says in text and sum(o in text for o in ('no better','is worse','may be chance'))==1

def test_the_table_has_the_tuned_thresholds_of_labels():
    "Not those in use"
    scores,y = calibrated(200, 0, c=3)
    in_use = 0.2,0.3,0.4
    objective,ways = options(scores, y, thresh=in_use)
    t = thresh_table(objective, ways, L('a','b','c'))
    assert [*t.index]==['now','best','per_label','a','b','c'] and 'fallback' not in t
    assert [*t.threshold[['a','b','c']]]==[*ways[2].value]!=[*in_use]
    assert np.isnan(t.threshold[['now','per_label']].astype(float)).all() and t.threshold['best']==ways[1].value
    assert np.isnan(t.held_out['now']) and t.held_out[1:].notna().all()
    assert [*t.support]==[y.sum()]*3+[*y.sum(0)]

@pytest.mark.parametrize('limits', [{}, dict(min_labels=1)])
def test_histograms_compare_a_threshold_in_use_without_limits_alone(limits):
    "With limits, its predictions for some folds are unknown"
    scores,y = calibrated(100, 0)
    finder,counted = ThreshFinder(bins=64, sigmoid=False),AccuracyMulti(average=None, sigmoid=False, **limits)
    for m in (finder, counted): m.update(scores, y)
    now = InUse(finder.table, dict(thresh=0.5, **limits), counted)
    assert (now.compared is None)==bool(limits)
    assert now.name==('now, min_labels=1' if limits else 'now')
    expected = Predictions.of(scores, y, **limits).predicted
    assert now.fit.score(F1ScoreMulti(average='micro'))==pytest.approx(skm.f1_score(y, expected, average='micro'))

@pytest.mark.parametrize('positives,predicted,average,n', [
    ([20]*4, [0,9,9,9], 'micro', '1 of the 4 labels'), ([20]*5, [0,9,9,9,9], 'micro', None),
    ([20]*3, [0,9,9], 'weighted', '1 of the 3 labels'), ([20]*3, [9,9,9], 'micro', None),
    ([5]*3, [0]*3, 'micro', None), ([20]*4, [0]*4, 'macro', None),
    ([19,20,20,20], [0,0,9,9], 'micro', '1 of the 3 labels')])
def test_frequent_labels_that_are_never_predicted_are_counted(positives, predicted, average, n):
    "From a quarter of them on"
    cells = torch.stack([tensor(predicted), tensor(predicted)*0, tensor(positives)-tensor(predicted)])
    cells = torch.cat([cells, 100-cells.sum(0, keepdim=True)])
    chosen = SimpleNamespace(name='best', fit=SimpleNamespace(cells=lambda: cells))
    text = _never_predicted(SimpleNamespace(m=SimpleNamespace(average=average)), chosen)
    assert (f'`best` never predicts {n} with at least 20 positives' in text) if n else text==''

def test_a_constant_that_is_only_reached_is_named():
    y = np.random.default_rng(0).random((100,3))<[0.6,0.1,0.1]
    _,text = recommend(*options(np.tile([0.9,0.2,0.1], (100,1)), y))
    assert 'It is no better than predicting the same labels' in text

@pytest.mark.parametrize('tuned_here', [True,False])
def test_a_threshold_that_was_tuned_on_these_samples_is_named(tuned_here):
    objective,(now,*tuned) = options(*calibrated(60, 0))
    now.tuned_here = tuned_here
    assert ('`now` was tuned on these samples' in recommend(objective, [now, *tuned])[1])==tuned_here

def test_a_threshold_in_use_that_misses_the_constraint_is_no_option():
    scores,y = calibrated(300, 0)
    p = Predictions.of(scores, y, thresh=0.8)
    table = score_table(p, 5)
    objective = Objective('precision', 'micro', False, at_recall=0.7)
    ways = [InUse(table, dict(thresh=0.8), p, is_chosen=True), objective.tune_global(table)]
    assert ways[0].fit.score(objective.constraint.m)<0.7 and recommend(objective, ways)[0] is ways[1]
    t = thresh_table(objective, ways, L(range(8)))
    assert t.recall['now']<0.7<=t.recall['best'] and 'does not reach' not in t.reading

def test_what_a_choice_costs_in_another_average():
    "Per label, beside the best global threshold; a global one, beside that in use"
    scores,y = calibrated(400, 0)
    for shift,name,says in (
            (np.linspace(-4, 4, 8), 'per_label',
             r'f1_micro is [\d.]+ with `per_label` and [\d.]+ with `best`, the f1_macro is'),
            (-2., 'best', r'The held-out f1_macro is [\d.]+ with `best` and [\d.]+ with `now`')):
        objective,ways = options(expit(logit(scores)+shift), y)
        chosen,text = recommend(objective, ways)
        assert chosen.name==name and re.search(says, text)
