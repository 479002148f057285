"Which threshold is recommended"
from helpers import *
from scipy.special import expit, logit
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.thresholds.tuning import Objective
from fastai_mlmetrics.thresholds.choosing import InUse, recommend
from fastai_mlmetrics.thresholds.finding import score_table
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
    shift = np.linspace(-2, 2, 8)
    for scores,y in [calibrated(400, seed) for seed in range(8)]:
        for logits in (logit(scores), logit(scores)+shift):
            objective,ways = options(expit(logits), y)
            _,best,per_label = ways
            change = per_label.held_out.estimate(objective.m).minus(best.held_out.estimate(objective.m))
            chosen,_ = recommend(objective, ways)
            assert (chosen.name=='per_label')==(change.value>change.error)

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
