"Lists of metrics, and the metrics of papers, compared with other libraries and with the definitions"
import sklearn.metrics as skm, torchmetrics.functional.classification as tmf
from helpers import *

SIX = 'CP CR CF1 OP OR OF1'.split()

def top_of(scores, k):
    "Exactly `k` labels per sample, by definition"
    d = np.zeros(scores.shape, int)
    for row,s in zip(d, np.asarray(scores)): row[np.argsort(-s, kind='stable')[:k]] = 1
    return d

def six_of(y, d):
    "CP, CR, CF1, OP, OR and OF1 of scikit-learn's precision and recall"
    def pr(average):
        return [f(y, d, average=average, zero_division=0) for f in (skm.precision_score, skm.recall_score)]
    return [o for p,r in map(pr, ('macro','micro')) for o in (p, r, 2*p*r/(p+r) if p+r else 0.)]

def by_name(metrics, *args): return {m.name: m(*args) for m in metrics}

@given(distinct(), st.integers(1, 3), st.sampled_from((0.2,0.5,0.9)))
def test_a_paper_s_row_has_scikit_learn_s_values(data, k, thresh):
    scores,y = data
    passed,top = (1/(1+np.exp(-scores.astype(float)))>thresh).astype(int),top_of(scores, k)
    every = by_name(paper_metrics(thresh, top_k=k), scores, y)
    assert [*every]==['mAP', *SIX, *(f'{o}_{k}' for o in SIX)]
    with warnings_as('ignore'): # of a label without positives
        close(every['mAP'], skm.average_precision_score(y, scores))
    close([every[o] for o in SIX], six_of(y, passed))
    close([every[f'{o}_{k}'] for o in SIX], six_of(y, top))
    above = by_name(paper_metrics(thresh, top_k=k, above_thresh=True), scores, y)
    close([above[f'{o}_{k}'] for o in SIX], six_of(y, top&passed))
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
    close(every['mAP'], theirs(tmf.multilabel_average_precision, scores, 'macro'))
    top = torch.from_numpy(top_of(scores, 3))
    for end,p in (('', scores.sigmoid()), ('_3', top.float())):
        for o,average in (('C','macro'),('O','micro')):
            close(every[f'{o}P{end}'], theirs(tmf.multilabel_precision, p, average))
            close(every[f'{o}R{end}'], theirs(tmf.multilabel_recall, p, average))
        close(every[f'OF1{end}'], theirs(tmf.multilabel_f1_score, p, 'micro'))
    macro_f1 = theirs(tmf.multilabel_f1_score, scores.sigmoid(), 'macro')
    assert every['CF1']!=pytest.approx(macro_f1, abs=1e-3)

@given(binary_pairs())
def test_cf1_is_at_least_macro_f1(data):
    p,y = data
    close(CF1()(p, y), six_of(y, p)[2])
    assert CF1()(p, y)>=F1ScoreMulti()(p, y)-1e-12
    m = CF1(zero_division=math.nan)
    precision,recall = (cls(zero_division=math.nan)(p, y) for cls in (PrecisionMulti,RecallMulti))
    close(m(p, y), 2*precision*recall/(precision+recall) if precision+recall>0 else precision+recall)

def test_cf1_has_no_other_average():
    with pytest.raises(ValueError, match="use one of 'macro'"): CF1(average='micro')

# --- limits: `min_labels` and `max_labels`

def test_a_learner_has_the_values_of_arrays():
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
        top_3 = six_of(targs, top_of(logits, 3)) # not changed by `set_thresh`
        assert [v[f'{o}_3'] for o in SIX]==pytest.approx(top_3)
        r = learn.accuracy_report(ci=None)
        assert r.value['f1_samples']==pytest.approx(v['f1_samples']) and r.index.name==ThresholdRule(**kw).limits
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
    with warnings_as('error'):
        for t in (0.2, 0.7, np.linspace(0.2, 0.8, 20)):
            learn.set_thresh(t, min_labels=1)
            expected = six_of(targs, binarize(logits, t, max_labels=3))
            assert [values(learn)[f'{o}_3'] for o in SIX]==pytest.approx(expected)

# --- average precision

def test_difficult_objects_are_left_out():
    scores,y = simulate(n=200, bias=-1.)
    off = torch.rand(y.shape, generator=torch.Generator().manual_seed(2))<0.1
    marked,kept = y.masked_fill(off, -1),~off
    every = by_name(paper_metrics(top_k=3, ignore_index=-1), scores, marked)
    each = [skm.average_precision_score(a[k], b[k]) for a,b,k in zip(y.T, scores.T, kept.T)]
    close(every['mAP'], np.mean(each))
    top_3 = torch.from_numpy(top_of(scores, 3)).bool() # an ignored label may be one of the three
    for end,d in (('', scores>0), ('_3', top_3)):
        d,t = (d&kept).numpy(),(y.bool()&kept).numpy()
        close([every[o+end] for o in SIX], six_of(t, d))

def test_a_list_that_is_not_called_is_named():
    learn = make_learner(*simulate(100), [multilabel_metrics])
    with pytest.raises(ValueError, match=r'call it: metrics=multilabel_metrics\(\)$'): values(learn)

def test_bins_without_a_histogram_are_an_error():
    with pytest.raises(ValueError, match='bins=64 .*ranking=True'): multilabel_metrics(bins=64)
    logits,targs = simulate(60)
    for cls in (APScoreMulti, RocAucMulti): # An average over samples stores nothing
        assert cls(average='samples', bins=64)(logits, targs)==cls(average='samples')(logits, targs)
    with pytest.raises(ValueError, match='above_thresh=True .*top_k='): paper_metrics(above_thresh=True)

@pytest.mark.parametrize('f', [multilabel_metrics, paper_metrics])
def test_a_list_of_metrics_has_its_own_averages(f):
    for kw in (dict(average='macro'), dict(name='mine'), dict(pos_label=1)):
        with pytest.raises(TypeError, match=f"{f.__name__} has no argument '{[*kw][0]}'"): f(**kw)

def test_ranking_metrics_are_in_the_list():
    logits,targs = simulate(60)
    for kw in (dict(), dict(bins=2048), dict(labels=[1,2], min_labels=1, zero_division=1)):
        learn = in_learner(logits, targs, *multilabel_metrics(thresh=0.2, ranking=True, **kw))
        names = learn.metrics.attrgot('name')
        assert names[-3:]==['ap_macro','roc_auc_macro','lrap'] and len(set(names))==9
        cut = kw.get('labels', slice(None))
        a,b = np.array(targs)[:,cut],np.array(logits.double())[:,cut]
        values = [skm.average_precision_score(a, b),
                  np.nanmean([auc(*o) for o in zip(a.T, b.T)]),
                  skm.label_ranking_average_precision_score(a, b)]
        same([m.value for m in learn.metrics[-3:]], values, 0.02 if kw.get('bins') else 1e-9)
    assert len(multilabel_metrics())==6 and len(multilabel_metrics(full=True))==9
    test_eq([m.zero_division for m in multilabel_metrics(ranking=True, zero_division=0.5)][:7], [0.5]*7)

@pytest.mark.parametrize('zero_division', [0., 0.3, 1., math.nan])
def test_ranking_metrics_are_those_of_the_report(zero_division):
    logits,targs = simulate(100, 5, density=0.3)
    targs[:,3],targs[:9] = 0,0
    report = accuracy_report(logits, targs, sigmoid=True, ci=None, zero_division=zero_division).value
    ms = {m.name: m(logits, targs) for m in multilabel_metrics(ranking=True, zero_division=zero_division)}
    for name,row in dict(ap_macro='ap_macro', roc_auc_macro='roc_auc_macro', lrap='lrap', f1_macro='f1_macro',
                         f1_samples='f1_samples').items():
        assert ms[name]==pytest.approx(report[row]), name

@pytest.mark.parametrize('make', [multilabel_metrics, paper_metrics])
def test_a_list_in_a_list_says_how_to_write_one(make):
    data = simulate(60)
    nested = make_learner(*data, [make(), BrierScoreMulti()])
    with nested.no_logging(), pytest.raises(ValueError, match=r'write one flat list, such as metrics=\[\*multilabel_'):
        nested.validate()
    metrics = make()
    for flat in ([*metrics, BrierScoreMulti()], metrics+[BrierScoreMulti()]):
        learn = make_learner(*data, flat)
        with learn.no_logging(): assert len(learn.validate())==len(metrics)+2
    # A Learner that is exported needs no class of this package for its list
    assert all(type(o) is L for o in (make_learner(*data, metrics).metrics, metrics[:2], metrics+[]))
