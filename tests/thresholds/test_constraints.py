"A recall or a precision that thresholds have to keep"
from fractions import Fraction
from helpers import *
from fastai_mlmetrics.thresholds.constraints import design_effect, first_run, most_misses, n_needed

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
    assert value<0.6 and f"misses it: its precision (macro) is {value:.3f}" in found.table.reading

def test_a_required_score_is_held_out_as_well():
    p,y = rare_label()
    t = best_thresholds(p, y, 'precision', 'macro', at_recall=0.9).table
    assert [*t.columns[:6]]==['threshold','support','score','held_out','recall','recall_held_out']
    assert t.recall_held_out.notna().all() and (t.recall_held_out['3']!=t.recall['3'] if '3' in t.index else True)

@pytest.mark.parametrize('kw,match', [
    (dict(metric='precision', at_recall={'a': 0.9}), 'one number for all labels'),
    (dict(at_recall=0.9, at_precision=0.5), 'cannot be required at once'),
    (dict(at_recall={'z': 0.9}, per_label=True), "'z' is none of the labels"),
    (dict(confidence=0.9), 'goes with at_recall'),
    (dict(at_recall=0.9, confidence=90), 'from 0.5 to below 1'),
    (dict(at_recall=1, confidence=0.9), 'cannot be promised'),
    (dict(at_recall={'a': 90}, per_label=True), 'above 0 and at most 1'),
    (dict(metric='recall', at_recall=0.9, at_precision=None), 'also needs at_precision')])
def test_what_cannot_be_required(kw, match):
    p,y = rare_label()
    with pytest.raises(ValueError, match=match): best_thresholds(p, y, vocab=[*'abcd'], **kw)
