"A recall or a precision that thresholds have to keep"
from fractions import Fraction
from helpers import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.curves import label_curve
from fastai_mlmetrics.metrics.intervals import estimate
from fastai_mlmetrics.thresholds.constraints import (
    Constraint, design_effect, first_above, first_run, most_misses, n_needed)
from fastai_mlmetrics.thresholds.finding import score_table

def cdf(k, n, p):
    "Exact"
    return sum(math.comb(n, i)*p**i*(1-p)**(n-i) for i in range(k+1))

@pytest.mark.slow
@pytest.mark.parametrize('confidence', [Fraction(1,2),Fraction(9,10),Fraction(19,20)])
@pytest.mark.parametrize('recall', [Fraction(1,2),Fraction(9,10),Fraction(99,100)])
def test_as_many_misses_as_the_binomial_distribution_allows(recall, confidence):
    for n in (0,1,5,21,22,23,60,200):
        allowed = [k for k in range(n+1) if cdf(k, n, 1-recall)<=1-confidence]
        assert most_misses(n, float(recall), float(confidence))==max(allowed, default=-1)
    n = n_needed(float(recall), float(confidence))
    assert recall**n<=1-confidence<recall**(n-1)

def test_the_first_run():
    x = np.array([[0,1,1,0,1],[1,1,1,1,1],[0,0,0,0,0],[0,0,0,0,1]], bool)
    assert first_run(x).sum(1).tolist()==[2,5,0,1] and first_run(x)[0].tolist()==[False,True,True,False,False]

def test_copies_say_nothing_new():
    right = np.random.default_rng(0).random(300)<0.8
    assert design_effect(right.repeat(4).astype(float), np.arange(300).repeat(4))==pytest.approx(4)
    assert design_effect(np.ones(12), np.arange(4).repeat(3))==3

def draw(n, rng, c=2, size=1, shift=1.2):
    "Labels in groups of `size` samples, which share a shift of their scores"
    group = np.arange(n)//size
    y = rng.random((n,c))<0.25
    y[:,0] &= rng.random(n)<0.5
    noise = rng.normal(size=(n,c)) + (size>1)*shift*rng.normal(size=(n//size+1,c))[group]
    return 1/(1+np.exp(-(noise+2*y-1))),y,group

def share_kept(score, tune, n, size=1, n_draws=80):
    "In how many draws thresholds keep a score of new samples, by label or on average"
    new,targs,_ = draw(60_000, np.random.default_rng(-1+2**31), size=size)
    kept = []
    for seed in range(n_draws):
        probs,y,group = draw(n, np.random.default_rng(seed), size=size)
        kept.append(score(targs, new>np.array(tune(probs, y, group))))
    return np.mean(kept, 0)

def recall(targs, predicted): return (targs & predicted).sum(0)/targs.sum(0)
def precision(targs, predicted): return (targs & predicted).sum(0)/predicted.sum(0)

@pytest.mark.slow
@pytest.mark.parametrize('size', [1,20])
def test_a_recall_is_kept_on_new_samples(size):
    "Without a confidence, in about half of the draws"
    def tune(confidence, groups=True):
        return lambda p, y, group: best_thresholds(
            p, y, 'precision', 'macro', at_recall=0.8, confidence=confidence, cv=None,
            groups=group if size>1 and groups else None).thresh
    def score(targs, predicted): return recall(targs, predicted)>=0.8
    sure = share_kept(score, tune(0.9), 600, size)
    assert (sure>=0.85).all() and (sure<=0.985).all()
    assert (share_kept(score, tune(None), 600, size)<0.65).all()
    if size>1: assert share_kept(score, tune(0.9, groups=False), 600, size).min()<0.85

@pytest.mark.slow
def test_a_precision_is_kept_on_new_samples():
    def tune(confidence):
        return lambda p, y, _: best_thresholds(
            p, y, 'recall', 'macro', at_precision=0.5, confidence=confidence, cv=None).thresh
    def score(targs, predicted): return precision(targs, predicted)>=0.5
    sure = share_kept(score, tune(0.9), 600)
    assert (sure>=0.85).all() and (share_kept(score, tune(None), 600)<0.7).all()

@pytest.mark.slow
@pytest.mark.parametrize('name,size', [('recall',1), ('precision',1), ('recall',8)])
def test_an_average_is_kept_on_new_samples(name, size):
    "By the lower limit of its interval"
    other = dict(recall='precision', precision='recall')[name]
    f = dict(recall=skm.recall_score, precision=skm.precision_score)[name]
    def tune(confidence):
        return lambda p, y, group: best_thresholds(
            p, y, other, 'micro', **{f'at_{name}': 0.6}, confidence=confidence, cv=None,
            groups=group if size>1 else None).thresh
    def score(targs, predicted): return f(targs.ravel(), predicted.ravel())>=0.6
    assert share_kept(score, tune(0.9), 400, size)>=0.85
    assert share_kept(score, tune(None), 400, size)<0.65

def rare_label():
    rng = np.random.default_rng(0)
    y = rng.random((800,4))<[0.01,0.1,0.2,0.3]
    return 1/(1+np.exp(-(rng.normal(size=y.shape)+2*y-1.5))),y

def test_too_few_positives_predict_everything():
    p,y = rare_label()
    assert 0<y[:,0].sum()<22
    found = best_thresholds(p, y, 'precision', 'macro', at_recall=0.9, confidence=0.9)
    assert found.fallback==('fewer than 22 positives','','','') and (p[:,0]>found.thresh[0]).all()

def test_a_constraint_for_some_labels():
    "The others keep their best"
    p,y = rare_label()
    free = best_thresholds(p, y, per_label=True, vocab=[*'abcd'])
    found = best_thresholds(p, y, per_label=True, vocab=[*'abcd'], at_recall={'c': 0.9})
    assert [a==b for a,b in zip(free.thresh, found.thresh)]==[True,True,False,True]
    at = p[:,2]>found.thresh[2]
    assert recall(y[:,2], at)>=0.9 and found.table.loc['c','recall']==pytest.approx(recall(y[:,2], at))
    # The best F1 among the thresholds that keep it
    f1s = [skm.f1_score(y[:,2], p[:,2]>=t) for t in p[y[:,2],2] if recall(y[:,2], p[:,2]>=t)>=0.9]
    assert skm.f1_score(y[:,2], at)==pytest.approx(max(f1s))

@pytest.mark.parametrize('bins', [None,1024])
def test_an_absent_label_ends_nothing(bins):
    p,y = rare_label()
    y[:,0] = False
    found = best_thresholds(p, y, 'precision', 'macro', at_recall=0.9, bins=bins)
    assert found.fallback[0]=='no positives' and not any(found.fallback[1:])
    assert (found.table.recall['1':]>=0.9).all() if '1' in found.table.index else True
    assert recall(y[:,1:], p[:,1:]>np.array(found.thresh[1:])).min()>=0.88

def test_an_average_that_is_not_kept_is_told():
    "No threshold of the first label has such a precision"
    p,y = rare_label()
    p[:,0] = np.random.default_rng(1).random(len(p))
    found = best_thresholds(p, y, 'recall', 'macro', at_precision=0.6)
    assert found.fallback[0]=='no threshold will do'
    value = found.table.precision['per_label']
    assert value<0.6 and f"does not reach this minimum: its precision (macro) is {value:.3f}" in found.table.reading

def test_a_required_score_is_held_out_as_well():
    p,y = rare_label()
    t = best_thresholds(p, y, 'precision', 'macro', at_recall=0.9).table
    assert [*t.columns[:6]]==['threshold','support','score','held_out','recall','recall_held_out']
    assert t.recall_held_out.notna().all() and (t.recall_held_out['3']!=t.recall['3'] if '3' in t.index else True)

@pytest.mark.parametrize('kw,match', [
    (dict(metric='precision', at_recall={'a': 0.9}), 'one number for all labels'),
    (dict(at_recall=0.9, at_precision=0.5), 'cannot be required at once'),
    (dict(at_recall={'z': 0.9}, per_label=True), "'z' is none of the labels"),
    (dict(at_recall={'z': 0.9}, per_label=True, vocab=None), 'pass their names as vocab='),
    (dict(at_recall={'zoo': 0.9}, per_label=True, vocab=[*'bcd', 'zoom']), "did you mean 'zoom'"),
    (dict(at_recall={}, per_label=True), 'names no label'),
    (dict(at_recall={'a': 90}, per_label=True), "at_recall=90 for 'a' should be above 0"),
    (dict(confidence=0.9), 'needs at_recall'),
    (dict(at_recall=0.9, confidence=90), 'from 0.5 to below 1'),
    (dict(at_recall=1, confidence=0.9), 'cannot be promised'),
    (dict(at_recall={'a': 90}, per_label=True), 'above 0 and at most 1'),
    (dict(metric='recall', at_recall=0.9, at_precision=None), 'also needs at_precision')])
def test_what_cannot_be_required(kw, match):
    p,y = rare_label()
    with pytest.raises(ValueError, match=match): best_thresholds(p, y, **dict(vocab=[*'abcd']) | kw)

# The constraint itself

def constraint(name, least, confidence=None, average=None):
    cls = dict(recall=RecallMulti, precision=PrecisionMulti)[name]
    return Constraint(name, cls(average=average, sigmoid=False), least, confidence)

def small(n=60, c=3, **kw):
    "Scores and targets of a few labels, some of them ignored"
    rng = np.random.default_rng(0)
    y = (rng.random((n,c))<0.5).astype(int)
    scores = 1/(1+np.exp(-(rng.normal(size=y.shape)+2*y-1)))
    y[rng.random(y.shape)<0.1] = -1
    return Predictions.of(scores, y, ignore_index=-1, **kw)

def test_groups_never_say_more_than_their_samples():
    assert design_effect(np.tile([0.,1.], 50), np.arange(100)//2)==1

@pytest.mark.parametrize('effect', [1,2.5])
@pytest.mark.parametrize('name', ['recall','precision'])
def test_what_is_kept_with_a_confidence_is_a_binomial_test(name, effect):
    "With exact fractions, of as many samples as the groups are worth"
    least,confidence = Fraction(1,2),Fraction(4,5)
    s,y,valid = small().column(0)
    curve = label_curve(s[valid], y[valid])
    tp,fp,fn,_ = (o[0,:-1].int().tolist() for o in curve.cells)
    expected = []
    for tp_,fp_,fn_ in zip(tp, fp, fn):
        if name=='recall':
            n = math.floor((tp_+fn_)/effect)
            expected.append(cdf(math.ceil(fn_/effect), n, 1-least)<=1-confidence)
        else:
            n,right = math.floor((tp_+fp_)/effect),math.floor(tp_/effect)
            expected.append(n>0 and 1-cdf(right-1, n, least)<=1-confidence)
    if name=='precision': expected = first_run(np.array(expected))
    kept = constraint(name, float(least), float(confidence)).kept_at(curve, float(least), effect)
    assert kept.shape==(1,len(tp)) and kept[0].tolist()==[*expected] and 0<kept.sum()<len(tp)

def test_without_a_confidence_the_value_on_these_samples_counts():
    "A value that is just reached is kept, also up to rounding, and so is an average"
    curve = label_curve([0.9,0.8,0.7,0.6,0.5], [1,0,1,1,0])
    c = constraint('precision', 2/3)
    values = curve.values(c.m)[0,:-1]
    assert c.kept_at(curve, 2/3+1e-10)[0].tolist()==(values>=2/3-1e-9).tolist()
    assert c.allows(2/3) and c.allows(2/3-1e-12) and not c.allows(0.66)
    assert constraint('precision', {'a': 0.9}).allows(0.) # Of each label by itself

def test_a_constraint_in_words_and_without_its_confidence():
    c = constraint('recall', 0.9, 0.95)
    assert c.text=='a recall of at least 0.9 on new samples, with a confidence of 0.95'
    assert c.without_confidence().text=='a recall of at least 0.9' and c.confidence==0.95
    assert constraint('precision', {'a': 0.9, 'b': 0.5}).text=='a precision of at least 0.9 for a, 0.5 for b'
    by_name = constraint('recall', {'c': 0.9, 'a': 0.5})
    by_name.look_up(L('a','b','c'))
    assert by_name.least_by_label(3)=={2: 0.9, 0: 0.5} and c.least_by_label(2)=={0: 0.9, 1: 0.9}

@pytest.mark.parametrize('name,confidence,n,effect,why', [
    ('recall', 0.9, 5, 1, 'fewer than 22 positives'), ('recall', 0.9, 5, 1.5, 'fewer than 33 positives'),
    ('recall', 0.9, 0, 1, 'no positives'), ('recall', None, 5, 1, 'no threshold will do'),
    ('precision', 0.9, 5, 1, 'no threshold will do')])
def test_why_a_label_cannot_reach_its_minimum(name, confidence, n, effect, why):
    assert constraint(name, 0.9, confidence).why(0.9, n, effect)==why

@pytest.mark.parametrize('name', ['recall','precision'])
def test_the_design_effect_is_of_positives_or_of_predictions(name):
    "Of those that count"
    s,y,valid = small().column(1)
    groups = (y+s).argsort().argsort().numpy()//6 # Of samples that are alike
    table = score_table(small(groups=groups))
    among,right = (y,s>0.4) if name=='recall' else ((s>0.4) & valid, y)
    expected = design_effect(right[among].numpy().astype(float), groups[among])
    assert constraint(name, 0.5, 0.9).design_effect_of(table, 1, 0.4)==pytest.approx(expected) and expected>1
    assert constraint(name, 0.5).design_effect_of(table, 1, 0.4)==1 # Without a confidence
    assert constraint(name, 0.5, 0.9).design_effect_of(score_table(small()), 1, 0.4)==1 # Without groups
    if name=='precision': assert constraint(name, 0.5, 0.9).design_effect_of(table, 1, 1.)==1 # Nothing is predicted

@pytest.mark.parametrize('name', ['recall','precision'])
def test_an_average_is_kept_where_its_lower_limit_is(name):
    "At a few thresholds all are tried; of a precision, only the first run counts"
    p,least = small(),0.6
    thresh = np.linspace(0.95, 0.05, 12)
    c = constraint(name, least, 0.9, average='micro')
    table = score_table(p)
    low = [estimate(c.m, p.replace(rule=p.rule.replace(thresh=t))).limits(0.8)[0] for t in thresh.tolist()]
    expected = np.array(low)>=least
    if name=='precision': expected = first_run(expected)
    values_of = partial(table.averaged, thresh=thresh)
    kept = c.kept_at_global(table, thresh, values_of, np.ones((1,1)))
    assert kept.tolist()==[expected.tolist()] and 0<kept.sum()<12

@pytest.mark.parametrize('least', [0.3, 0.55, 0.8, 0.95, 1])
@pytest.mark.parametrize('margin', [0, 0.01, 0.2])
def test_first_above_finds_what_a_scan_finds(least, margin):
    "In few calls; where values are equal, and where no limit is high enough"
    values = np.linspace(0.2, 1, 2000).round(2)
    lows = values - margin*(1.1-values)
    calls = []
    def low_at(i):
        calls.append(i)
        return lows[i]
    assert first_above(least, values, low_at)==np.searchsorted(lows, least) and len(calls)<=6

def test_one_threshold_has_to_do_for_each_label_that_is_named():
    table,thresh = score_table(small()),np.linspace(0.95, 0.05, 12)
    c = constraint('recall', {'a': 0.9, 'c': 0.7})
    c.look_up(L('a','b','c'))
    masks = np.ones((1,1))
    each = [c.kept_at(table.row(i, thresh).curve(masks), least)[0] for i,least in ((0,0.9), (2,0.7))]
    assert c.kept_at_global(table, thresh, None, masks)[0].tolist()==(each[0] & each[1]).tolist()
    assert each[0].sum()!=each[1].sum()

@pytest.mark.parametrize('at', [dict(at_recall={'a': 0.85}), dict(at_precision={'a': 0.6})], ids=str)
def test_one_threshold_keeps_a_minimum_for_groups_of_copies(at):
    "As many groups as samples without the copies tell as much"
    p = small()
    copies = np.arange(len(p.targs)).repeat(5)
    def find(i, **kw):
        return best_thresholds(p.preds[i], p.targs[i], per_label=False, cv=None, confidence=0.9, vocab=[*'abc'],
                               ignore_index=-1, **at, **kw).thresh
    assert find(copies, groups=copies)==find(copies[::5])!=find(copies)

def test_the_confidence_of_an_average_needs_each_score():
    p,y = rare_label()
    with pytest.raises(ValueError, match='leave bins out, or pass per_label=True'):
        best_thresholds(p, y, 'precision', 'micro', at_recall=0.9, confidence=0.9, bins=64)
