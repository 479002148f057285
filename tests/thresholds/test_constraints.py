"A recall or a precision that thresholds have to keep"
from fractions import Fraction
from helpers import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.metrics.curves import label_curve
from fastai_mlmetrics.thresholds.constraints import (
    Constraint, design_effect, fixed_sequences, most_misses, n_needed)
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

def test_a_sequence_begins_at_a_fixed_number_and_ends_at_the_first_failure():
    "22 right predictions prove a precision of 0.9; a later sequence may begin after a failure"
    n = np.arange(200)
    def proven(wrong, n_most): # All numbers of predictions that are proven
        return n[fixed_sequences(n, n-np.isin(n, wrong).cumsum(), 0.9, 0.9, n_most)].tolist()
    assert proven([], 21)==[] and proven([], 22)==[*range(22, 200)]
    assert proven([5], 43)==[] # 38 would be enough, but a search for them would be many tests
    assert proven([30], 43)==[*range(22, 30)]
    assert proven([], 116)==[*range(29, 200)] # Two sequences, at 0.05 each, begin at 29 and at 116
    assert proven([5], 116)==[*range(116, 200)]

@pytest.mark.parametrize('n_most', [30,200,600])
def test_the_error_probability_of_sequences_is_kept(n_most):
    "Predictions that are right with a probability just below the minimum"
    rng = np.random.default_rng(0)
    n = np.arange(1, n_most+1)
    right = (rng.random((600,n_most))<0.895).cumsum(1)
    proven = [fixed_sequences(n, row, 0.9, 0.9, n_most).any() for row in right]
    assert np.mean(proven)<0.12

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

def test_a_precision_that_no_threshold_has_is_not_promised():
    "0.89 at each threshold, for a promise that may be wrong in one of ten draws"
    rng = np.random.default_rng(0)
    promised = []
    for _ in range(30):
        y = rng.random((200,5))<0.89
        found = best_thresholds(rng.random(y.shape), y, 'recall', 'macro', at_precision=0.9, confidence=0.9, cv=None)
        promised += [not o for o in found.fallback]
    assert np.mean(promised)<=0.12

def rare_label():
    rng = np.random.default_rng(0)
    y = rng.random((800,4))<[0.01,0.1,0.2,0.3]
    return 1/(1+np.exp(-(rng.normal(size=y.shape)+2*y-1.5))),y

def test_too_few_positives_predict_everything():
    p,y = rare_label()
    assert 0<y[:,0].sum()<22
    found = best_thresholds(p, y, 'precision', 'macro', at_recall=0.9, confidence=0.9)
    assert found.fallback==('always predicted: fewer than 22 positives','','','') and (p[:,0]>found.thresh[0]).all()

@pytest.mark.parametrize('bins', [None,1024])
def test_few_positives_are_predicted_where_scores_are_0(bins):
    "As in trees and nearest neighbours"
    r = np.random.default_rng(0)
    y = r.random((400,1))<.3
    p = r.binomial(5, np.where(y, .3, .05))/5
    found = best_thresholds(p, y, 'precision', 'macro', at_recall=0.9, confidence=0.9, bins=bins)
    assert y.sum()>22 and (p[y]>found.thresh[0]).mean()==found.table.recall['per_label']==1
    assert found.fallback==('',) # Enough of them, though no other threshold is low enough
    few = best_thresholds(p[:50], y[:50], 'precision', 'macro', at_recall=0.9, confidence=0.9, bins=bins)
    assert y[:50].sum()<22 and few.fallback==('always predicted: fewer than 22 positives',)
    assert (p[:50]>few.thresh[0]).all() and few.table.recall['per_label']==1

@pytest.mark.parametrize('at', [dict(at_recall={'c': 0.9}), dict(at_precision={'c': 0.9}),
                                dict(at_recall={'c': 0.8}, confidence=0.9)], ids=str)
@pytest.mark.parametrize('kw', [dict(), dict(per_label=True), dict(average='macro')], ids=str)
def test_labels_without_a_requirement_get_what_they_get_without_it(kw, at):
    "Also rare ones, which have the global threshold; the label itself gets the best F1 of those that keep it"
    p,y = rare_label()
    free = best_thresholds(p, y, vocab=[*'abcd'], **kw)
    found = best_thresholds(p, y, vocab=[*'abcd'], **kw, **at)
    of_free = np.broadcast_to(free.thresh, 4)
    assert [a==b for a,b in zip(of_free, found.thresh)]==[True,True,False,True]
    assert found.table.threshold['best']==free.table.threshold['best']
    if 'confidence' in at: return
    name, = (o.removeprefix('at_') for o in at)
    f = dict(recall=recall, precision=precision)[name]
    at_found = p[:,2]>found.thresh[2]
    assert f(y[:,2], at_found)>=0.9 and found.table.loc['c',name]==pytest.approx(f(y[:,2], at_found))
    f1s = [skm.f1_score(y[:,2], p[:,2]>=t) for t in p[y[:,2],2] if f(y[:,2], p[:,2]>=t)>=0.9]
    assert skm.f1_score(y[:,2], at_found)==pytest.approx(max(f1s))

def test_rare_labels_keep_their_score():
    "Whose global threshold a requirement would move"
    rng = np.random.default_rng(0)
    y = rng.random((400,4))<[0.3,0.3,0.01,0.01]
    p = 1/(1+np.exp(-(rng.normal(size=y.shape)+3*y-2)))
    p[:,0] = rng.random(400) # To find it, hardly a sample may be left out
    kw = dict(average='macro', vocab=[*'abcd'])
    free,found = (best_thresholds(p, y, **kw, **o) for o in ({}, dict(at_recall={'a': 0.95})))
    assert free.fallback==found.fallback==('','','few positives','') and free.thresh[1:]==found.thresh[1:]
    assert free.table.score['b':].equals(found.table.score['b':]) and found.table.recall['a']>=0.95

@pytest.mark.parametrize('bins', [None,1024])
def test_an_absent_label_ends_nothing(bins):
    "And misses nothing"
    p,y = rare_label()
    y[:,0] = False
    with warnings_as('error'): found = best_thresholds(p, y, 'precision', 'macro', at_recall=0.9, bins=bins)
    assert 'does not keep' not in found.table.reading
    assert found.fallback[0]=='no positives' and not any(found.fallback[1:])
    assert (found.table.recall[3:]>=0.9).all()
    assert recall(y[:,1:], p[:,1:]>np.array(found.thresh[1:])).min()>=0.88

def test_what_is_missed_is_told():
    "No threshold of the first label has such a precision, so it gets that with the highest"
    p,y = rare_label()
    p[:,0] = np.random.default_rng(1).random(len(p))
    found = best_thresholds(p, y, 'recall', 'macro', at_precision=0.6, vocab=[*'abcd'])
    assert found.fallback==('no precision of 0.6','','','')
    value = found.table.precision['a']
    assert ("`per_label` does not keep a precision of at least 0.6 on these samples, but comes nearest: precision of a "
            f"is {value:.3f}.") in found.table.reading
    values = [precision(y[:,0], p[:,0]>=t) for t in p[y[:,0],0]]
    assert value==pytest.approx(max(values)) and value<0.6

def test_a_required_score_is_held_out_as_well():
    p,y = rare_label()
    t = best_thresholds(p, y, 'precision', 'macro', at_recall=0.9).table
    assert [*t.columns[:5]]==['threshold','held_out','score','recall_held_out','recall']
    assert t.recall_held_out.notna().all() and not t.recall_held_out.equals(t.recall)

@pytest.mark.parametrize('kw,match', [
    (dict(metric='precision', at_recall={'a': 0.9}), 'one number for all labels'),
    (dict(at_recall=0.9, at_precision=0.5), 'cannot be required at once'),
    (dict(at_recall={'z': 0.9}, per_label=True), "label 'z' is not in the vocab: it has a, b, c, d"),
    (dict(at_recall={'z': 0.9}, per_label=True, vocab=None), "label 'z' is not known"),
    (dict(at_recall={'zoo': 0.9}, per_label=True, vocab=[*'bcd', 'zoom']), "did you mean 'zoom'"),
    (dict(at_recall={}, per_label=True), 'names no label'),
    (dict(at_recall={'a': 90}, per_label=True), "at_recall=90 for 'a' should be above 0"),
    (dict(confidence=0.9), 'needs at_recall'),
    (dict(at_recall=0.9, confidence=90), 'from 0.5 to below 1'),
    (dict(at_recall=1, confidence=0.9, per_label=True), 'cannot be promised'),
    (dict(at_recall=0.9, confidence=0.9), 'pass per_label=True. The minimum of an average can only be kept on these'),
    (dict(at_recall=0.9, confidence=0.9, average='macro', per_label=False), 'pass per_label=True'),
    (dict(at_recall={'a': 0.9}, per_label=False), 'needs a threshold per label: leave out per_label=False'),
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

def row_of(curve):
    "A row of a search table with one set of folds"
    return SimpleNamespace(counts=lambda masks: curve, values=lambda m, masks: curve.values(m)[:,:-1])

@pytest.mark.parametrize('effect', [1,2.5])
@pytest.mark.parametrize('name', ['recall','precision'])
def test_what_is_kept_with_a_confidence_is_a_binomial_test(name, effect):
    "With exact fractions, of as many samples as the groups are worth"
    least,confidence = Fraction(1,2),Fraction(4,5)
    s,y,valid = small(150).column(0)
    curve = label_curve(s[valid], y[valid])
    tp,fp,fn,_ = (o[0,:-1].int().tolist() for o in curve.cells)
    expected = []
    for tp_,fp_,fn_ in zip(tp, fp, fn):
        if name=='recall':
            n = math.floor((tp_+fn_)/effect)
            expected.append(cdf(math.ceil(fn_/effect), n, 1-least)<=1-confidence)
    if name=='precision':
        n = np.floor((np.array(tp)+fp)/effect)
        expected = fixed_sequences(n, np.floor(np.array(tp)/effect), 0.5, 0.8, y[valid].sum().item()/effect/0.5)
    kept = constraint(name, float(least), float(confidence)).kept_at(row_of(curve), None, float(least), effect)
    assert kept.shape==(1,len(tp)) and kept[0].tolist()==[*expected] and 0<kept.sum()<len(tp)

def test_without_a_confidence_the_value_on_these_samples_counts():
    "A value that is just reached is kept, also up to rounding, and so is an average"
    curve = label_curve([0.9,0.8,0.7,0.6,0.5], [1,0,1,1,0])
    c = constraint('precision', 2/3)
    values = curve.values(c.m)[0,:-1]
    assert c.kept_at(row_of(curve), None, 2/3+1e-10)[0].tolist()==(values>=2/3-1e-9).tolist()
    assert c.is_kept(2/3, 2/3) and c.is_kept(2/3-1e-12, 2/3) and not c.is_kept(0.66, 2/3)

def test_a_constraint_in_words_and_without_its_confidence():
    c = constraint('recall', 0.9, 0.95)
    assert c.text=='a recall of at least 0.9 on new samples, with a confidence of 0.95'
    assert c.without_confidence().text=='a recall of at least 0.9' and c.confidence==0.95
    assert constraint('precision', {'a': 0.9, 'b': 0.5}).text=='a precision of at least 0.9 for a, 0.5 for b'
    by_name = constraint('recall', {'c': 0.9, 'a': 0.5})
    for o in (by_name, c): o.look_up(L('a','b','c'))
    assert by_name.least_by_label=={2: 0.9, 0: 0.5} and c.least_by_label==dict.fromkeys(range(3), 0.9)

@pytest.mark.parametrize('name,confidence,n,effect,why', [
    ('recall', 0.9, 5, 1, 'always predicted: fewer than 22 positives'),
    ('recall', 0.9, 5, 1.5, 'always predicted: fewer than 33 positives'),
    ('recall', 0.9, 0, 1, 'no positives'), ('recall', None, 5, 1, 'no recall of 0.9'),
    ('precision', 0.9, 5, 1, 'too few positives for 22 predictions'),
    ('precision', 0.9, 90, 1, 'no sure precision of 0.9')])
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

@pytest.mark.parametrize('at', [dict(at_recall={'a': 0.9}), dict(at_precision={'a': 0.8})], ids=str)
def test_a_threshold_keeps_a_minimum_for_groups_of_copies(at):
    "As many groups as samples without the copies tell as much"
    p = small(200)
    copies = np.arange(len(p.targs)).repeat(5)
    def find(i, **kw):
        return best_thresholds(p.preds[i], p.targs[i], cv=None, confidence=0.9, vocab=[*'abc'], ignore_index=-1,
                               **at, **kw).thresh
    assert find(copies, groups=copies)==find(copies[::5])!=find(copies)

def test_groups_in_bins_have_no_confidence():
    "Histograms do not show how alike the samples of a group are; without a confidence they need not"
    p,y = rare_label()
    groups = np.arange(800)//4
    kw = dict(average='macro', at_recall=0.8, bins=1024)
    for f in (lambda: best_thresholds(p, y, groups=groups, confidence=0.9, **kw),
              lambda: ThreshFinder(sigmoid=False, confidence=0.9, **kw).deal(torch.from_numpy(groups))):
        with pytest.raises(ValueError, match='confidence= with groups= needs .* leave bins out'): f()
    assert best_thresholds(p, y, groups=groups, **kw).held_out and best_thresholds(p, y, confidence=0.9, **kw).thresh

@pytest.mark.parametrize('at', [dict(at_recall={'c': 0.9}), dict(at_precision={'c': 0.9})], ids=str)
def test_a_label_without_positives_keeps_the_threshold_that_it_has_without_a_requirement(at):
    "No threshold comes nearest to a recall of no positives, and predicting every sample would be wrong for all"
    logits,targs = simulate(300, 3)
    targs[:,2] = 0
    free,found = (best_thresholds(logits, targs, sigmoid=True, vocab=list('abc'), **o)
                  for o in (dict(metric='f1', average='micro'), at))
    assert found.thresh[2]==free.thresh>0.01
