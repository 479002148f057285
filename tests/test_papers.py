"Metrics of papers on multi-label images, compared with other libraries and with the definitions"
import pickle, sklearn.metrics as skm, torchmetrics.functional.classification as tmf
from fractions import Fraction
from hypothesis import given
from conftest import *

SIX = 'CP CR CF1 OP OR OF1'.split()
def same(a, b): np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)

def top_of(scores, k):
    "Exactly `k` labels per sample, by definition"
    d = np.zeros(scores.shape, int)
    for row,s in zip(d, np.asarray(scores)): row[np.argsort(-s, kind='stable')[:k]] = 1
    return d

def reference(y, d):
    "CP, CR, CF1, OP, OR and OF1 of scikit-learn's precision and recall"
    def pr(average):
        return [f(y, d, average=average, zero_division=0) for f in (skm.precision_score, skm.recall_score)]
    return [o for p,r in map(pr, ('macro','micro')) for o in (p, r, 2*p*r/(p+r) if p+r else 0.)]

def by_name(metrics, *args): return {m.name: m(*args) for m in metrics}

@st.composite
def distinct(draw):
    "Logits without ties, in float32, and targets"
    n,c = draw(st.integers(1, 12)),draw(st.integers(3, 7))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    logits = rng.permutation(np.linspace(-6, 6, n*c+1)[1:]).reshape(n, c).astype(np.float32)
    return logits,draw(arrays(np.int64, (n,c), elements=st.integers(0, 1)))

@settings(max_examples=100)
@given(distinct(), st.integers(1, 3), st.sampled_from((0.2,0.5,0.9)))
def test_a_paper_s_row(data, k, thresh):
    scores,y = data
    passed,top = (1/(1+np.exp(-scores.astype(float)))>thresh).astype(int),top_of(scores, k)
    every = by_name(paper_metrics(thresh, top_k=k), scores, y)
    assert [*every]==['mAP', *SIX, *(f'{o}_{k}' for o in SIX)]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore') # of a label without positives
        same(every['mAP'], skm.average_precision_score(y, scores))
    same([every[o] for o in SIX], reference(y, passed))
    same([every[f'{o}_{k}'] for o in SIX], reference(y, top))
    above = by_name(paper_metrics(thresh, top_k=k, above_thresh=True), scores, y)
    same([above[f'{o}_{k}'] for o in SIX], reference(y, top&passed))
    assert {o: above[o] for o in ('mAP', *SIX)}=={o: every[o] for o in ('mAP', *SIX)}

def test_the_values_that_mmpretrain_documents():
    "The examples of its `MultiLabelMetric` and `AveragePrecision`, in percent"
    y = tensor([[1,1,0,0],[0,0,1,0],[1,1,1,0],[1,0,0,0],[1,0,0,0]])
    binary = tensor([[1,1,0,0],[1,1,0,0],[0,0,1,0],[0,1,0,0],[0,1,0,0]])
    scores = tensor([
        [.4575,.7335,.3934,.2572],
        [.1318,.1004,.8248,.6448],
        [.8349,.6294,.7896,.2061],
        [.4037,.7308,.6713,.8374],
        [.3779,.4836,.0313,.0067]])
    def of(p, **kw): return [100*cls(sigmoid=False, **kw)(p, y) for cls in (PrecisionMulti,RecallMulti,F1ScoreMulti)]
    assert of(binary)==pytest.approx([43.75,31.25,33.3333], abs=1e-4)
    assert of(scores, thresh=0.1)==pytest.approx([42.5,75,53.1746], abs=1e-4)
    assert of(scores, min_labels=1, max_labels=1)==pytest.approx([62.5,31.25,39.1667], abs=1e-4)
    assert CF1()(binary, y)==pytest.approx(2*.4375*.3125/.75) # not macro F1
    p = tensor([[.9,.8,.3,.2],[.1,.2,.2,.1],[.7,.5,.9,.3],[.8,.1,.1,.2]])
    y = tensor([[1,1,0,0],[0,1,0,0],[0,0,1,0],[1,0,0,0]])
    assert 100*APScoreMulti(average=None)(p, y)==pytest.approx([100,83.33,100,0], abs=0.01)

def test_torchmetrics_agrees():
    scores,y = simulate(skill=2., bias=-1.)
    every,c = by_name(paper_metrics(top_k=3), scores, y),y.shape[1]
    def theirs(f, p, average, **kw): return f(p, y.long(), num_labels=c, average=average, **kw).item()
    same(every['mAP'], theirs(tmf.multilabel_average_precision, scores, 'macro'))
    top = torch.from_numpy(top_of(scores, 3))
    for end,p in (('', scores.sigmoid()), ('_3', top.float())):
        for o,average in (('C','macro'),('O','micro')):
            same(every[f'{o}P{end}'], theirs(tmf.multilabel_precision, p, average))
            same(every[f'{o}R{end}'], theirs(tmf.multilabel_recall, p, average))
        same(every[f'OF1{end}'], theirs(tmf.multilabel_f1_score, p, 'micro'))
    macro_f1 = theirs(tmf.multilabel_f1_score, scores.sigmoid(), 'macro')
    assert every['CF1']!=pytest.approx(macro_f1, abs=1e-3)

@settings(max_examples=100)
@given(binary_pairs())
def test_cf1_is_at_least_macro_f1(data):
    p,y = data
    same(CF1()(p, y), reference(y, p)[2])
    assert CF1()(p, y)>=F1ScoreMulti()(p, y)-1e-12
    m = CF1(zero_division=math.nan)
    precision,recall = (cls(zero_division=math.nan)(p, y) for cls in (PrecisionMulti,RecallMulti))
    same(m(p, y), 2*precision*recall/(precision+recall) if precision+recall>0 else precision+recall)

def test_cf1_has_no_other_average():
    with pytest.raises(ValueError, match="use one of 'macro'"): CF1(average='micro')

# --- limits: `min_labels` and `max_labels`

THRESHOLDS = st.lists(st.sampled_from((0.1,0.3,0.5,0.7)), min_size=7, max_size=7)

@given(distinct(), st.integers(1, 4), st.integers(0, 4), THRESHOLDS, st.booleans())
def test_the_limits(data, most, least, each, one):
    scores,_ = data
    thresh = each[0] if one else each[:scores.shape[1]]
    if least>most:
        with pytest.raises(ValueError, match=f'at least min_labels={least}'):
            ThresholdRule(min_labels=least, max_labels=most)
        return
    d = binarize(torch.from_numpy(scores), thresh, min_labels=least, max_labels=most).int().numpy()
    passed = 1/(1+np.exp(-scores.astype(float)))>thresh
    for got,s,ok in zip(d, scores, passed):
        order = np.argsort(-s)
        if least==most: wanted = order[:most]
        else:
            wanted = [i for i in order if ok[i]][:most]
            wanted += [i for i in order if i not in wanted][:max(0, least-len(wanted))]
        assert {*np.flatnonzero(got)}=={*wanted}

def test_ties_and_few_labels():
    tied = torch.zeros(4, 5)
    d = binarize(tied, 0.2, min_labels=2, max_labels=2)
    assert (d.sum(1)==2).all() and (d==d[0]).all()
    assert torch.equal(d, binarize(tied, 0.9, min_labels=2, max_labels=2))
    assert binarize(tied, 0.2, max_labels=9).all()
    assert binarize(tied, 0.2, min_labels=9, max_labels=9).all()
    assert not binarize(tied, 0.9, max_labels=3).any()
    low,high = torch.tensor([[-200.,-150.,-180.]]),torch.tensor([[20.,40.,30.]]) # with equal sigmoids
    for o in (low, high): assert binarize(o, min_labels=1, max_labels=1).tolist()==[(o==o.max()).tolist()[0]]
    assert binarize(torch.ones(2, 3).long(), max_labels=1).all() # binary predictions: no limits

@pytest.mark.parametrize('max_labels', [0, -1, 1.5, True, '3', math.nan, math.inf])
def test_max_labels_that_are_none(max_labels):
    with pytest.raises(ValueError, match='max_labels=.* should be a whole number'):
        F1ScoreMulti(max_labels=max_labels)

def test_rules_with_limits_are_shared_and_copied():
    logits,targs = simulate(n=64, bias=-1.)
    a,b = ThresholdRule(min_labels=3, max_labels=3),ThresholdRule(max_labels=3)
    assert a!=b and a==pickle.loads(pickle.dumps(a)) and deepcopy(b).max_labels==3
    assert hash(a)==hash(ThresholdRule(min_labels=3, max_labels=np.int64(3)))
    m = F1ScoreMulti(min_labels=3, max_labels=3)
    assert repr(m)=='F1ScoreMulti(min_labels=3, max_labels=3)' and (m.min_labels,m.max_labels)==(3,3)
    calls,old = [],ThresholdRule.binarize
    def counted(self, *args):
        calls.append(self.limits)
        return old(self, *args)
    with pytest.MonkeyPatch.context() as mp:
        mp.setattr(ThresholdRule, 'binarize', counted)
        values(make_learner(logits, targs, paper_metrics(top_k=3), bs=64))
    assert sorted(calls)==['', 'min_labels=3, max_labels=3'] # each rule is applied once

def test_in_a_learner_as_on_arrays():
    logits,targs = simulate(n=300, bias=-1.)
    for kw in (dict(), dict(above_thresh=True), dict(thresh=0.3), dict(ignore_index=-1), dict(labels=[0,3,5]),
               dict(voc=2007), dict(bins=512)):
        y = targs.clone()
        if 'ignore_index' in kw: y[torch.rand(y.shape, generator=torch.Generator().manual_seed(1))<0.1] = -1
        learn = make_learner(logits, y, paper_metrics(top_k=3, **kw), loss_func=lambda p, y: F.mse_loss(p, y))
        assert values(learn)==pytest.approx(by_name(paper_metrics(top_k=3, **kw), logits, y), rel=1e-9)

def test_call_it_and_a_wrong_k():
    with pytest.raises(ValueError, match='paper_metrics()'): make_learner(*simulate(n=32), paper_metrics).validate()
    for k in (0, -1, 2.5):
        with pytest.raises(ValueError): paper_metrics(top_k=k)

def test_no_word_of_the_threshold_where_it_has_no_say():
    logits,targs = simulate()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        F1ScoreMulti(sigmoid=False, min_labels=3, max_labels=3)(logits, targs)
    with pytest.warns(UserWarning, match='seem to be logits'):
        F1ScoreMulti(sigmoid=False, max_labels=3)(logits, targs)

# --- a Learner's predictions

def test_the_learner_decides_the_k_highest():
    logits,targs = simulate(n=96, bias=-1.)
    learn = make_learner(logits, targs, multilabel_metrics() + paper_metrics(top_k=3))
    for kw in (dict(min_labels=3, max_labels=3), dict(max_labels=2), dict(min_labels=1, max_labels=2)):
        learn.set_thresh(0.3, **kw)
        d = binarize(logits, 0.3, **kw)
        _,_,decoded = learn.get_preds(with_decoded=True)
        assert torch.equal(decoded.bool(), d)
        v = values(learn)
        assert v['f1_samples']==pytest.approx(F1ScoreMulti(average='samples')(d, targs))
        assert v['CP']==pytest.approx(PrecisionMulti()(d, targs))
        top_3 = reference(targs, top_of(logits, 3)) # not changed by `set_thresh`
        assert [v[f'{o}_3'] for o in SIX]==pytest.approx(top_3)
        r = learn.accuracy_report(ci=None)
        assert r.value['F1, samples']==pytest.approx(v['f1_samples']) and r.index.name==ThresholdRule(**kw).limits
        shown = learn.evaluate().thresh
        assert shown['CP_3']=='min_labels=3, max_labels=3' and shown['mAP']==''
        limits = ThresholdRule(**kw).limits
        assert shown['CP']==(limits if kw=={'min_labels':3,'max_labels':3} else f'0.3, {limits}')
    learn.set_thresh(0.3)
    assert learn.loss_func.max_labels is None
    assert values(learn)['CP']==pytest.approx(PrecisionMulti(0.3)(logits, targs))

def test_those_above_the_threshold_follow_it():
    logits,targs = simulate(n=96, bias=-1.)
    learn = make_learner(logits, targs, paper_metrics(top_k=3, above_thresh=True))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for t in (0.2, 0.7, np.linspace(0.2, 0.8, 20)):
            learn.set_thresh(t, min_labels=1)
            expected = reference(targs, binarize(logits, t, max_labels=3))
            assert [values(learn)[f'{o}_3'] for o in SIX]==pytest.approx(expected)

# --- average precision

def from_definition(y, s, voc):
    "Mean of the highest precision at any higher recall, at eleven recalls or at each true positive; in fractions"
    y,s = np.asarray(y),np.asarray(s)
    if not y.sum(): return 0
    def point(t):
        "Recall and precision of all scores from `t`"
        tp = int(y[s>=t].sum())
        return Fraction(tp, int(y.sum())),Fraction(tp, int((s>=t).sum()))
    points = [point(t) for t in np.unique(s)]
    def highest(recall): return max(p for r,p in points if r>=recall)
    if voc==2007: return float(sum(highest(Fraction(k, 10)) for k in range(11))/11)
    at = sorted({r for r,_ in points})
    return float(sum((r-before)*highest(r) for before,r in zip([0, *at], at)))

@settings(max_examples=100)
@given(st.data())
def test_interpolated_average_precision(data):
    n,c = data.draw(st.integers(1, 25)),data.draw(st.integers(1, 4))
    y = data.draw(arrays(np.int64, (n,c), elements=st.integers(0, 1)))
    s = data.draw(arrays(np.float32, (n,c), elements=st.integers(-8, 8).map(float))) # with ties
    for voc in (2007,2010):
        each = [from_definition(*o, voc) for o in zip(y.T, s.T)]
        same(APScoreMulti(average=None, voc=voc)(s, y), each)
        same(APScoreMulti(voc=voc)(s, y), np.mean(each))
        same(APScoreMulti(voc=voc, average='micro')(s, y), from_definition(y.ravel(), s.ravel(), voc))
        same(APScoreMulti(voc=voc, average='samples')(s, y), np.mean([from_definition(*o, voc) for o in zip(y, s)]))
        times = data.draw(arrays(np.int64, n, elements=st.integers(0, 3)))
        if times.any(): # a sample with weight w counts w times
            repeated = [np.repeat(o, times, 0) for o in (s, y)]
            same(APScoreMulti(voc=voc, sample_weight=times)(s, y), APScoreMulti(voc=voc)(*repeated))
            same(APScoreMulti(voc=voc, sample_weight=times/7)(s, y), APScoreMulti(voc=voc)(*repeated))
        off = data.draw(arrays(np.bool_, (n,c)))
        marked = np.where(off, -1, y) # difficult objects
        same(APScoreMulti(average=None, voc=voc, ignore_index=-1)(s, marked)[~off.all(0)],
             [from_definition(a[~o], b[~o], voc) for a,b,o in zip(y.T, s.T, off.T) if not o.all()])
    assert (APScoreMulti(average=None, voc=2010)(s, y) >= APScoreMulti(average=None)(s, y)-1e-12).all()

def test_names_and_refusals_of_voc():
    names = [APScoreMulti(voc=o).name for o in (None,2007,2010)]
    assert names==['average_precision_score','average_precision_score_voc2007','average_precision_score_voc2010']
    assert repr(APScoreMulti(voc=2007))=='APScoreMulti(voc=2007)'
    assert APScoreMulti(voc=2007)(*simulate())==paper_metrics(voc=2007)[0](*simulate())
    with pytest.raises(ValueError, match='voc=2012 should be'): APScoreMulti(voc=2012)
    with pytest.raises(ValueError, match='leave out bins'): APScoreMulti(voc=2007, bins=64)

def test_difficult_objects_are_left_out():
    scores,y = simulate(n=200, bias=-1.)
    off = torch.rand(y.shape, generator=torch.Generator().manual_seed(2))<0.1
    marked,kept = y.masked_fill(off, -1),~off
    every = by_name(paper_metrics(top_k=3, ignore_index=-1), scores, marked)
    each = [skm.average_precision_score(a[k], b[k]) for a,b,k in zip(y.T, scores.T, kept.T)]
    same(every['mAP'], np.mean(each))
    top_3 = torch.from_numpy(top_of(scores, 3)).bool() # an ignored label may be one of the three
    for end,d in (('', scores>0), ('_3', top_3)):
        d,t = (d&kept).numpy(),(y.bool()&kept).numpy()
        same([every[o+end] for o in SIX], reference(t, d))

def test_everything_decides_where_the_learner_does():
    logits,targs = simulate(n=128, bias=-1.)
    for kw in (dict(min_labels=3, max_labels=3), dict(max_labels=2)):
        learn = make_learner(logits, targs, multilabel_metrics() + paper_metrics(top_k=3), cbs=ZeroLabelsCallback())
        learn.set_thresh(0.3, **kw)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ZeroLabelsWarning)
            v = values(learn)
        r,d = learn.zero_labels.records[-1],binarize(logits, 0.3, **kw)
        assert r.f1_micro==pytest.approx(v['f1_micro'])
        assert (r.min_labels,r.max_labels)==(kw.get('min_labels', 0),kw['max_labels'])
        # Top-k metrics are intended to differ
        assert not [o for o in r.pitfalls if 'use thresh' in o or 'at least' in o]
        kw = dict(sigmoid=True, thresh=0.3, **kw)
        assert judge(logits, targs, **kw).f1_micro==pytest.approx(r.f1_micro)
        for i in (MultiLabelInterpretation.from_learner(learn),
                  MultiLabelInterpretation.from_preds(logits, targs, **kw)):
            assert torch.equal(i.predicted, d)
            assert i.accuracy_report(ci=None).value['F1, micro']==pytest.approx(v['f1_micro'])

def test_no_trap_in_a_paper_s_table():
    for above in (False, True):
        learn = make_learner(*simulate(n=128), paper_metrics(top_k=3, above_thresh=above), cbs=ZeroLabelsCallback())
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ZeroLabelsWarning)
            values(learn)
        assert not learn.zero_labels.records[-1].pitfalls

def test_of_exactly_k_another_threshold_frees():
    "A threshold is a remedy only without limits that replace it"
    r = judge(*simulate(n=200, c=20, bias=-1.), sigmoid=True, min_labels=8, max_labels=8)
    r.decodes = True
    from fastai_mlmetrics.verdicts import remedies
    text = ' '.join(remedies(r))
    assert r.verdict=='over-predicts' and ', without min_labels=8, max_labels=8, predicts' in text
    assert re.search(r'`learn\.set_thresh\([\d.]+\)`', text)
