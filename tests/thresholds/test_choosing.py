"Which threshold is recommended, and what is said of it"
import itertools
from helpers import *
from scipy.special import expit, logit
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.thresholds.tuning import gain, Objective
from fastai_mlmetrics.thresholds.choosing import (
    _constant_score, _never_predicted, choose, expectation, InUse, missed, recommendation, thresh_table)
from fastai_mlmetrics.thresholds.finding import score_table, ThreshFinder

def options(scores, y, thresh=0.5, groups=None, metric='f1', average='micro', cv=5, tuned_here=False, at={}, **limits):
    "The objective, the threshold in use, the best one, and thresholds per label"
    p = Predictions.of(scores, y, thresh=thresh, groups=groups, **limits)
    table = score_table(p, cv)
    objective,of_labels = (Objective(metric, average, o, **at) for o in (False,True))
    for o in (objective, of_labels):
        if o.constraint: o.constraint.look_up(range(table.c))
    now = InUse(table, dict(thresh=thresh, **limits), p, tuned_here)
    return objective,now,objective.tune_global(table, nearest=True),of_labels.tune(table)[1]

def calibrated(n, seed, c=8, skill=1.5):
    rng = np.random.default_rng(seed)
    freq = np.geomspace(0.05, 0.5, c)
    y = rng.random((n,c))<freq
    return expit(skill*(skill*y+rng.normal(size=(n,c)))-skill**2/2+logit(freq)),y

def reading(scores, y, **kwargs):
    objective,now,best,per_label = options(scores, y, **kwargs)
    return recommendation(objective, choose(objective, best, per_label), now, range(y.shape[1]))

# Which of the two

def test_what_is_asked_for_is_chosen():
    objective,_,best,per_label = options(*calibrated(60, 0))
    assert choose(objective, best, per_label, True) is per_label and choose(objective, best, per_label, False) is best
    assert choose(objective, best, None) is choose(objective, best, None, True) is best

def test_thresholds_per_label_need_a_gain_of_a_standard_error():
    "Whose variance is 1.5 times that of two fixed models, because thresholds of five folds vary too"
    chosen = []
    for seed,shift in itertools.product(range(8), (0, np.linspace(-2, 2, 8))):
        scores,y = calibrated(200, seed)
        objective,_,best,per_label = options(expit(logit(scores)+shift), y)
        a,b = (o.held_out.estimate(objective.m) for o in (per_label, best))
        change = a.minus(b)
        chosen.append(choose(objective, best, per_label).per_label)
        assert chosen[-1]==(change.value>math.sqrt(1.5)*change.error)
    assert {*chosen}=={True,False}

def test_without_held_out_scores_one_threshold_is_chosen():
    objective,_,best,per_label = options(*calibrated(60, 0), cv=None)
    assert choose(objective, best, per_label) is best

def test_only_what_keeps_a_requirement_is_chosen():
    "On average with one threshold, by each label with several"
    scores,y = calibrated(300, 0)
    noise = np.where(np.arange(8)==0, np.random.default_rng(0).random(y.shape), scores)
    each = []
    for s,at in ((scores, dict(at_recall=0.8)), (noise, dict(at_precision=0.6)), (1-scores, dict(at_precision=0.9))):
        objective,_,best,per_label = options(s, y, at=at)
        (name,least), = at.items()
        score = dict(at_recall=skm.recall_score, at_precision=skm.precision_score)[name]
        keeps = (score(y, s>best.value, average='micro', zero_division=0)>=least,
                 (score(y, s>per_label.value, average=None, zero_division=0)>=least).all())
        assert keeps==tuple(not missed(objective, o, range(8)) for o in (best, per_label))
        each.append(keeps)
        if keeps==(True,False): assert choose(objective, best, per_label) is best
    assert each==[(True,True),(True,False),(False,False)]

@pytest.mark.slow
@pytest.mark.parametrize('n', [50,300,1500])
def test_the_recommended_threshold_is_about_the_best_on_new_samples(n):
    new,truth = calibrated(30_000, -1+2**31)
    gains,losses = [],[]
    for seed in range(30):
        objective,now,best,per_label = options(*calibrated(n, seed))
        chosen = choose(objective, best, per_label)
        f1 = {o.name: F1ScoreMulti(o.value, sigmoid=False, average='micro')(new, truth) for o in (now,best,per_label)}
        gains.append(f1[chosen.name]-f1['now'])
        losses.append(f1['best']-f1[chosen.name])
    assert np.mean(gains)>0.01 and np.mean(losses)<0.004 and max(losses)<0.04

@pytest.mark.slow
def test_the_box_and_the_search_do_not_contradict_each_other():
    "Where the box advises another threshold, the search finds a better one, but for one draw in ten, and by little"
    from fastai_mlmetrics.diagnosis.verdicts import per_label_helps, thresh_helps
    gains = []
    for n,seed in itertools.product((50,100,300), range(25)):
        scores,y = calibrated(n, seed)
        r = judge(scores, y)
        objective,now,best,per_label = options(scores, y)
        chosen = choose(objective, best, per_label)
        if thresh_helps(r): gains.append(gain(objective.m, chosen.held_out, now.compared).value)
        assert not per_label_helps(r) or chosen.per_label
    assert len(gains)>30 and np.mean(np.array(gains)<=0)<=0.1 and min(gains)>-0.03

# What is said first

def test_a_gain_is_said_with_its_interval():
    scores,y = calibrated(300, 0)
    for metric,cls,sign in (('f1',F1ScoreMulti,1), (HammingLossMulti,HammingLossMulti,-1)):
        m = cls(average='micro')
        objective,now,best,_ = options(scores, y, thresh=0.9, metric=metric)
        text = recommendation(objective, best, now, range(8))
        said = re.match(r'`best` is recommended: micro [\w ]+ ([\d.]+) is expected on new samples, ([\d.]+) '
                        r'\(95% interval ([\d.]+) to ([\d.]+)\) more than with the threshold in use \(0.9\)\.$', text)
        held,gained,low,high = map(float, said.groups())
        assert held==pytest.approx(best.held_out.score(m), abs=6e-4) and low<gained<high
        assert gained==pytest.approx(sign*(best.held_out.score(m)-m(scores>0.9, y)), abs=6e-4)

def test_a_gain_that_may_be_chance_is_called_that():
    "As may that of copies, which are known by their groups"
    scores,y = calibrated(60, 0)
    copies = np.arange(60).repeat(10)
    assert 'more than with the threshold in use (0.5); this may be chance.' in reading(scores, y)
    assert 'more than with the threshold in use (0.5).' in reading(scores[copies], y[copies])
    assert 'may be chance' in reading(scores[copies], y[copies], groups=copies)

@pytest.mark.parametrize('kw,said', [
    (dict(), '0.35'), (dict(tuned_here=True), '0.35, tuned on these samples'),
    (dict(min_labels=1), '0.35 with min_labels=1')], ids=str)
def test_that_nothing_is_better_than_what_is_in_use_is_said_first(kw, said):
    scores,y = calibrated(300, 3)
    objective,now,best,per_label = options(scores, y, thresh=0.35, **kw)
    held = best.held_out.score(objective.m)
    of_use = Predictions.of(scores, y, thresh=0.35, min_labels=kw.get('min_labels', 0)).predicted
    in_use = skm.f1_score(y, of_use, average='micro')
    assert held<in_use
    text = recommendation(objective, best, now, range(8))
    assert text==(f'Held out, `best` is no better than the threshold in use ({said}): micro F1 is {held:.3f} against '
                  f'{in_use:.3f}; `set_thresh` still sets `best`.')

@pytest.mark.parametrize('average', ['micro','macro','samples'])
def test_a_constant_that_is_not_beaten_is_said_first(average):
    "And which score it has: by brute force over all sets of labels, for samples the best of the micro average"
    rng = np.random.default_rng(0)
    y = rng.random((400,5))<[0.8,0.6,0.5,0.4,0.3]
    def constants(a): return {o: skm.f1_score(y, np.tile(o, (400,1)), average=a, zero_division=0)
                              for o in itertools.product([0,1], repeat=5)}
    of_micro = constants('micro')
    of_average = constants(average)
    best = of_average[max(of_micro, key=of_micro.get)] if average=='samples' else max(of_average.values())
    text = reading(rng.random(y.shape), y, average=average)
    assert re.match(r'Held out, `\w+` is not better than predicting the same labels for every sample, which scores '
                    f'{best:.3f}. ', text)
    assert 'the same labels' not in reading(*calibrated(400, 0, skill=4), average=average)

def test_a_constant_that_is_only_reached_is_named():
    y = np.random.default_rng(0).random((100,3))<[0.6,0.1,0.1]
    assert reading(np.tile([0.9,0.2,0.1], (100,1)), y).startswith('Held out, `best` is not better than predicting')

def test_without_a_held_out_score_or_a_threshold_in_use():
    scores,y = calibrated(60, 0)
    assert reading(scores, y, cv=None)==('`best` is recommended; its score is that of the samples it was tuned on, so '
                                         'expect less on new ones.')
    objective,_,best,_ = options(scores, y)
    score = best.held_out.score(objective.m)
    expected = f'With `best`, micro F1 {score:.3f} is expected on new samples.'
    assert recommendation(objective, best, None, range(8))==expected

def test_what_a_requirement_costs():
    "What keeps it, on these samples or on new ones, and else which labels miss it and by how much"
    scores,y = calibrated(300, 0)
    objective,now,best,per_label = options(scores, y, at=dict(at_recall=0.8))
    f1,before = best.held_out.score(objective.m),now.fit.score(objective.m)
    assert recommendation(objective, best, now, range(8))==(
        f'`best` is recommended: it keeps a recall of at least 0.8 on these samples. Micro F1 {f1:.3f} is expected on '
        f'new samples ({before:.3f} before).')
    noise = np.where(np.arange(8)<2, np.random.default_rng(0).random(y.shape), scores)
    objective,now,best,per_label = options(noise, y, at=dict(at_precision=0.6))
    of = skm.precision_score(y, noise>per_label.value, average=None)
    assert recommendation(objective, per_label, now, 'abcdefgh').startswith(
        '`per_label` does not keep a precision of at least 0.6 on these samples, but comes nearest: precision of a is '
        f'{of[0]:.3f}, precision of b is {of[1]:.3f}. Micro F1 ')
    objective = Objective(per_label=True, at_recall=0.8, confidence=0.9)
    objective.constraint.look_up(range(8))
    sure = objective.tune(per_label.table)[1]
    assert 'it keeps a recall of at least 0.8 on new samples, with a confidence of 0.9. ' in recommendation(
        objective, sure, now, range(8))

def test_what_is_expected():
    scores,y = calibrated(100, 0)
    objective,now,best,_ = options(scores, y)
    held,before = best.held_out.score(objective.m),f1(y, scores>0.5, 'micro')
    text = f'micro F1 {held:.3f} is expected on new samples'
    assert expectation(objective, best)==text and expectation(objective, best, now)==f'{text} ({before:.3f} before)'
    objective,_,best,_ = options(scores, y, cv=None, metric='matthews', average='macro')
    m = MatthewsCorrCoefMulti(best.value, sigmoid=False)
    assert expectation(objective, best)==(
        f'macro Matthews correlation is {m(scores, y):.3f} on the samples used for tuning')

# What misses a minimum

@pytest.mark.parametrize('confidence', [None,0.9])
def test_what_misses_a_minimum(confidence):
    "With a confidence, what these samples keep may be missed by new ones, unless it was tuned for them"
    scores,y = calibrated(300, 0)
    objective = Objective(per_label=True, at_precision={1: 0.5, 7: 0.5}, confidence=confidence)
    objective.constraint.look_up(range(8))
    table = score_table(Predictions.of(scores, y), 5)
    shared,sure = objective.tune(table)
    value = skm.precision_score(y[:,[1,7]], scores[:,[1,7]]>shared.value, average=None, zero_division=0)
    told = [f'precision of {name} is {v:.3f}'+', perhaps by chance'*int(v>=0.5)
            for name,v in zip('bh', value) if confidence or v<0.5]
    assert missed(objective, shared, 'abcdefgh')==told and value[1]>=0.5
    assert (missed(objective, sure, 'abcdefgh')==[])==(sure.fallback==('',)*8)==(confidence is None)
    assert missed(objective.without_constraint(), shared, 'abcdefgh')==[]

# The table and the threshold in use

def test_the_table_has_the_tuned_thresholds_of_labels():
    "Not those in use"
    scores,y = calibrated(200, 0, c=3)
    in_use = 0.2,0.3,0.4
    objective,*rows = options(scores, y, thresh=in_use)
    t = thresh_table(objective, rows, L('a','b','c'))
    assert [*t.index]==['now','best','per_label','a','b','c'] and 'fallback' not in t
    assert [*t.columns]==['threshold','held_out','score','range','support']
    assert [*t.threshold[['a','b','c']]]==[*rows[2].value]!=[*in_use]
    assert np.isnan(t.threshold[['now','per_label']].astype(float)).all() and t.threshold['best']==rows[1].value
    assert np.isnan(t.held_out['now']) and t.held_out[1:].notna().all()
    assert [*t.support]==[y.sum()]*3+[*y.sum(0)]
    low,high = rows[2].thresh[1:,1].min(),rows[2].thresh[1:,1].max()
    assert t.range['b']==f'{low:.3g} to {high:.3g}' and t.range['now']==t.range['per_label']==''

def test_limits_count():
    "With them, the threshold in use is what they make of it"
    scores,y = calibrated(300, 0)
    objective,now,*_ = options(scores, y, min_labels=1)
    p = Predictions.of(scores, y, min_labels=1)
    assert now.fit.score(objective.m)==pytest.approx(skm.f1_score(y, p.predicted, average='micro'))
    others = np.arange(300)!=7
    expected = skm.f1_score(y[others], p.predicted[others], average='micro')
    assert now.fit.estimate(objective.m).without[7].item()==pytest.approx(expected)

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
    text = recommendation(finder.objective, finder.objective.tune_global(finder.table), now, range(8))
    assert ('in use' in text)==(not limits)

@pytest.mark.parametrize('positives,predicted,average,n', [
    ([20]*4, [0,9,9,9], 'micro', '1 of the 4 labels'), ([20]*5, [0,9,9,9,9], 'micro', None),
    ([20]*3, [0,9,9], 'weighted', '1 of the 3 labels'), ([20]*3, [9,9,9], 'micro', None),
    ([5]*3, [0]*3, 'micro', None), ([20]*4, [0]*4, 'macro', None),
    ([19,20,20,20], [0,0,9,9], 'micro', '1 of the 3 labels')])
def test_frequent_labels_that_are_never_predicted_are_counted(positives, predicted, average, n):
    "From a quarter of them on"
    cells = torch.stack([tensor(predicted), tensor(predicted)*0, tensor(positives)-tensor(predicted)])
    cells = torch.cat([cells, 100-cells.sum(0, keepdim=True)])
    table = SimpleNamespace(true=np.array(positives))
    chosen = SimpleNamespace(name='best', fit=SimpleNamespace(cells=cells), table=table)
    text = _never_predicted(SimpleNamespace(m=SimpleNamespace(average=average)), chosen)
    assert (f'`best` never predicts {n} with at least 20 positives' in text) if n else text==''

# True in every state

STATES = [dict(n=n, thresh=thresh, seed=seed, skill=skill, metric=metric, average=average)
          for n,skill,seed in ((60,1.5,0), (60,0,1), (300,1.5,2), (300,0.3,3), (300,3,4))
          for thresh in (0.2, 0.35, 0.5, (0.1,0.2,0.3,0.4), 'best')
          for metric,average in (('f1','micro'), ('f1','macro'), ('f1','samples'), (HammingLossMulti,'micro'))]

def sentences(text): return re.split(r'(?<=\.) (?=[A-Z`])', text)

def best_constant(m, y, sign):
    "By brute force over all sets of labels"
    return sign*max(sign*m(np.tile(o, (len(y),1)), y) for o in itertools.product([0,1], repeat=y.shape[1]))

@pytest.mark.parametrize('wanted', [None,True,False])
def test_each_sentence_is_true_in_every_state(wanted):
    "What is compared with what, and with which result, by scores that the table has, or by brute force"
    said = Counter()
    for state in STATES:
        n,seed,skill,thresh = (state[o] for o in ('n','seed','skill','thresh'))
        scores,y = calibrated(n, seed, 4, skill)
        kw = dict(metric=state['metric'], average=state['average'])
        if thresh=='best': thresh = best_thresholds(scores, y, **kw, per_label=True).thresh # On these samples
        objective,now,best,per_label = options(scores, y, thresh=thresh, **kw)
        chosen = choose(objective, best, per_label, wanted)
        table = thresh_table(objective, [now,best,per_label], range(4))
        held,before = table.held_out[chosen.name],table.score['now']
        better = objective.sign*(held-before)
        text = recommendation(objective, chosen, now, range(4))
        parts = sentences(text)
        assert len(parts)<=2 and f'`{chosen.name}`' in parts[0]
        for part in parts:
            numbers = [*map(float, re.findall(r'\d\.\d+', part))]
            if 'is no better than the threshold in use' in part:
                said['not better'] += 1
                assert better<=0 and numbers[-2:]==[round(held, 3), round(before, 3)]
            elif 'the same labels for every sample' in part:
                said['constant'] += 1
                m = objective.m
                assert objective.sign*(held-numbers[-1])<=0.0005
                of_all = best_constant(m, y, objective.sign)
                if m.average!='samples': assert numbers[-1]==pytest.approx(of_all, abs=6e-4)
            elif 'is recommended' in part:
                said['better'] += 1
                assert better>0 and numbers[0]==round(held, 3)
                if 'less than 0.001' in part: assert better<0.0005
                else: assert numbers[1]==pytest.approx(better, abs=6e-4)
                assert ('may be chance' in part)==(' -' in part or '(95% interval 0.000' in part)
            else: assert 'never predicts' in part
    assert min(said[o] for o in ('not better','constant','better'))>=5

@pytest.mark.parametrize('wanted', [None,True,False])
def test_what_is_said_of_a_requirement_is_true_in_every_state(wanted):
    "Of all labels together for one threshold, of each label for thresholds per label"
    said = Counter()
    for (n,skill,seed),(name,least) in itertools.product(
            ((60,1.5,0), (300,0,1), (300,3,2)),
            (('recall',0.8), ('recall',1.), ('precision',0.6), ('precision',0.95))):
        scores,y = calibrated(n, seed, 4, skill)
        objective,now,best,per_label = options(scores, y, at={f'at_{name}': least})
        chosen = choose(objective, best, per_label, wanted)
        score = dict(recall=skm.recall_score, precision=skm.precision_score)[name]
        average = None if chosen.per_label else 'micro'
        kept = np.all(score(y, scores>chosen.value, average=average, zero_division=0)>=least-1e-9)
        first,second = sentences(recommendation(objective, chosen, now, range(4)))
        assert f'`{chosen.name}`' in first and second.startswith('Micro F1 ')
        assert ('it keeps a' in first)==kept==('does not keep' not in first)
        said[bool(kept)] += 1
    assert min(said.values())>=2

def test_a_requirement_that_predicts_everything_is_told():
    "With few positives, only a threshold below all scores is sure to keep a recall"
    learn = make_learner(*simulate(200, 8, density=0.05))
    with learn.no_logging():
        found = learn.thresh_find(at_recall=0.9, confidence=0.9, per_label=True, show_plot=False)
    assert re.search(r'because \d of 8 labels are predicted for every sample\.', one_line(repr(found)))

def test_one_label_that_is_always_predicted_is_told():
    learn = make_learner(*simulate(200, 8, density=0.1), vocab=[*'abcdefgh'])
    found = learn.thresh_find(at_recall={'c': 0.99}, confidence=0.9, show_plot=False)
    assert 'c: predicted for every sample, because too few positives can promise more.' in one_line(repr(found))

def test_one_threshold_that_scores_more_is_told():
    "Where thresholds per label were asked for"
    told = 0
    for seed in range(6):
        learn = make_learner(*simulate(150, 8, density=0.1, seed=seed))
        found = learn.thresh_find(average='macro', show_plot=False)
        held = found.table.held_out
        text = found.table.reading
        is_told = text.startswith(
            f"Held out, one threshold for all labels, {found.best:.3g}, is better than one per label: macro F1 is "
            f"{held['best']:.3f} against {held['per_label']:.3f}. To get it, pass `per_label=False`.")
        assert ('`per_label` is recommended' in text)!=is_told
        assert is_told==(held['best']-held['per_label']>=0.0005)
        told += is_told
    assert 0<told<6

def test_a_precision_that_only_these_samples_keep_is_told():
    "Where a label is rare, no predicted negative here means little"
    learn = make_learner(*simulate(600, 6, density=0.2, skill=2.), vocab=[*'abcdef'])
    def find(**kwargs):
        with learn.no_logging(): return learn.thresh_find(show_plot=False, **kwargs).table.reading
    rare = find(at_precision={'a': 0.9}, frequencies={'a': 0.01})
    assert ' on these samples, but held out, precision of a is 0.' in rare
    assert 'but held out' not in find(at_recall={'a': 0.9})
