"The statistics of a validation, and the threshold that they suggest"
import sklearn.metrics as skm
from helpers import *
from fastai_mlmetrics.core.predictions import Predictions
from fastai_mlmetrics.diagnosis.records import OF_LEARNER
from fastai_mlmetrics.diagnosis.validation import suggest, ValidationStats
from fastai_mlmetrics.thresholds.search import ScoreHistogram
from six_labels import LOGITS, TARGS

@pytest.mark.parametrize('scale', [1e-4, 0.01, 1, 100, 1000])
def test_margins_of_any_size_have_the_same_suggestion(scale):
    z = (LOGITS-1).double()
    r,expected = (judge(z*s, TARGS, thresh=0.) for s in (scale, 1))
    assert r.suggested_thresh==pytest.approx(scale*expected.suggested_thresh, rel=0.05)
    assert r.suggested_f1==pytest.approx(expected.suggested_f1, abs=0.02)
    assert r.ap_micro==pytest.approx(APScoreMulti(average='micro')(z, TARGS), abs=2e-3)
    then = judge(z*scale, TARGS, thresh=r.suggested_thresh)
    assert then.f1_micro==r.suggested_f1 and then.pred_per_sample<=2*then.true_per_sample

def test_a_record_has_scikit_learn_s_values():
    logits,targs = simulate()
    learn,_ = trained(logits, targs)
    r, = learn.zero_labels.records
    p,y = (logits>0).long(),targs.long()
    labelled,empty = y.any(1),~p.any(1)
    expected = dict(
        samples=400, labelled=labelled.sum(), thresh=0.5, epoch=0, validation=0,
        accuracy=(p==y).float().mean(), zeros_accuracy=(y==0).float().mean(),
        f1_micro=skm.f1_score(y, p, average='micro'),
        empty_rate=empty.float().mean(), missed_rate=empty[labelled].float().mean(),
        pred_per_sample=p.sum()/400, true_per_sample=y.sum()/400)
    for key,value in expected.items(): assert r[key]==pytest.approx(float(value), abs=1e-6), key
    assert r.lift==pytest.approx((r.accuracy-r.zeros_accuracy)/(1-r.zeros_accuracy))
    assert r.phase=='fit' and r.valid_loss==pytest.approx(learn.recorder.values[-1][1])

def test_missing_targets_count_nowhere():
    logits,targs = simulate(bias=-6)
    keep = torch.rand(400, 20, generator=torch.Generator().manual_seed(0))<0.7
    gaps = torch.where(keep, targs, math.nan)
    with pytest.warns(ZeroLabelsWarning, match='ignore_index'):
        values(make_learner(logits, gaps, cbs=ZeroLabelsCallback()))
    learn = make_learner(logits, gaps, multilabel_metrics(ignore_index=math.nan),
                         cbs=ZeroLabelsCallback(ignore_index=math.nan))
    with pytest.warns(ZeroLabelsWarning): v = values(learn)
    r, = learn.zero_labels.records
    assert r.accuracy==v['accuracy_multi']==((logits[keep]>0)==targs[keep]).double().mean()
    assert r.true_per_sample==targs[keep].sum()/400
    p = (logits.sigmoid()>r.suggested_thresh)[keep].long()
    assert skm.f1_score(targs[keep], p)==pytest.approx(r.suggested_f1, abs=1e-12)
    n,true = keep.sum(0),(targs*keep).sum(0)
    order = (true/n).argsort(descending=True)
    f1s = [2*true[order[:k]].sum()/(n[order[:k]].sum()+true.sum()) for k in range(1, 21)]
    assert r.constant_f1==pytest.approx(max(f1s).item())

def suggestion(batches, **kw):
    "Threshold and micro F1 that a histogram of several batches suggests"
    hist = ScoreHistogram(**kw)
    for preds,targs in batches: hist.update(preds, targs)
    return suggest(hist.table)

@pytest.mark.parametrize('bias,c,density', [
    *((b,*cd) for b in (-2.,-6.,-12.) for cd in ((5,0.3),(80,0.03))),
    *(slow(b, 600, 0.01) for b in (-2.,-6.,-12.)),
    *((b,5,0.3) for b in (1.,6.,9.))])
@pytest.mark.parametrize('sigmoid', [True, False])
def test_the_suggested_threshold_is_nearly_the_best_one(bias, c, density, sigmoid):
    "In three digits, of those that predict at most twice as many labels as are true"
    logits,targs = simulate(1000, c, density, bias=bias)
    preds = logits if sigmoid else logits.double().sigmoid()
    thresh,f1 = suggestion(zip(preds.split(64), targs.split(64)), sigmoid=sigmoid)
    from_end = min(thresh, 1-thresh)
    assert float(f'{from_end:.3g}')==pytest.approx(from_end, rel=1e-6)
    assert binarize(preds, thresh, sigmoid).sum()<=2*targs.sum()
    assert f1>=best_thresholds(preds, targs, sigmoid=sigmoid, cv=None).score-0.003

FLOATS = torch.float16,torch.bfloat16,torch.float32,torch.float64

@given(seed=st.integers(0, 999), dtype=st.sampled_from(FLOATS), kind=st.sampled_from(['logits','probs','margins']),
       ignored=st.sampled_from([None, -1, math.nan]), bias=st.sampled_from([-8., -2., 0., 11.]))
def test_the_promised_f1_is_what_a_metric_counts(seed, dtype, kind, ignored, bias):
    "Of batches of other sizes, of scores that are often equal and often on an edge"
    rng = np.random.default_rng(seed)
    y = (rng.random((150,4))<0.3).astype(np.float32)
    x = tensor(rng.normal(size=y.shape)+2*y+bias)
    if kind=='probs': x = x.sigmoid().mul(1000).round()/1000 # Many are edges
    if kind=='margins': x = tensor([float(f'{o:.2g}') for o in x.flatten()]).view_as(x)
    x = x.to(dtype)
    y = tensor(y)
    if ignored is not None: y[tensor(rng.random(y.shape)<0.2)] = ignored
    kw = dict(sigmoid=kind=='logits', ignore_index=ignored) | (dict(thresh=0.) if kind=='margins' else {})
    thresh,f1 = suggestion(zip(x.split(37), y.split(37)), **kw)
    if thresh is None: return # All scores may be 1
    m = F1ScoreMulti(average='micro', **kw | dict(thresh=thresh))
    for batch in zip(x.split(37), y.split(37)): m.update(*batch)
    assert f1==m.compute()

@pytest.mark.parametrize('margins', [False, True])
@pytest.mark.parametrize('thresh', [None, (0.1,0.2,0.3,0.4,0.5,0.6)])
def test_the_promised_f1_is_what_evaluate_prints(margins, thresh):
    "After `set_thresh`, in a real training, with the batches of its loader"
    gen = torch.Generator().manual_seed(0)
    x = torch.randn(700, 8, generator=gen)
    targs = (x@torch.randn(8, 6, generator=gen)+torch.randn(700, 6, generator=gen)>3).float()
    loss = BCEWithLogitsLossFlat(thresh=ifnone(thresh, 0.5))
    m = F1ScoreMulti(average='micro')
    cb = ZeroLabelsCallback(thresh=0., sigmoid=False) if margins else ZeroLabelsCallback()
    learn = make_learner(x, targs, m, nn.Linear(8, 6), bs=50, cbs=cb, loss_func=loss)
    with learn.no_logging(), warnings_as('ignore'): learn.fit(2, 1e-2)
    r = learn.zero_labels.records[-1]
    learn.set_thresh(torch.tensor(r.suggested_thresh).sigmoid().item() if margins else r.suggested_thresh)
    with warnings_as('ignore'): f1 = learn.evaluate().value['f1_score_micro']
    assert f1==pytest.approx(r.suggested_f1, abs=1e-6)

def test_no_threshold_where_scores_are_alike():
    "Or where nothing is true, or below the lowest edge"
    ties = torch.full((100,20), 0.003),torch.eye(20).repeat(5,1)
    for batch in (ties, (torch.rand(10,3), torch.zeros(10,3)), (torch.zeros(9,2), torch.ones(9,2))):
        assert suggestion([batch], sigmoid=False)[0] is None

def test_scores_of_several_types_are_counted_together():
    hist = ScoreHistogram(sigmoid=False)
    batches = (tensor([[0.,1.],[1.,0.]]), tensor([[0,1]]), tensor([[True,False]]), tensor([[0.5,0.5]]).half())
    for p in batches: hist.update(p, torch.ones_like(p, dtype=torch.int))
    assert hist.table.total.sum()==10
    assert hist.table.row(thresh=[0.6]).above.sum((0, 2))[1]==4+10 # Above 0.6, and all

def test_judge_is_what_the_callback_records():
    logits,targs = simulate()
    r = judge(logits, targs, sigmoid=True)
    theirs = trained(logits, targs)[0].zero_labels.records[-1]
    for k in r.keys()-OF_LEARNER.keys():
        if k=='dead': test_close([o['ap'] for o in r[k]], [o['ap'] for o in theirs[k]], eps=0.01)
        else: assert r[k]==theirs[k], k
    assert r.keys()==theirs.keys()
    with pytest.raises(ValueError, match='there are no samples'): judge(logits[:0], targs[:0])

def test_a_label_that_is_never_seen_is_not_absent():
    logits,targs = COLLAPSED[0],COLLAPSED[1].clone()
    targs[:,2] = -1
    r = judge(logits, targs, sigmoid=True, ignore_index=-1)
    assert list(r.same_for_all)==[] and list(r.absent)==[]

@pytest.mark.parametrize('p', [0.97, 0.9, 0.2])
def test_a_suggestion_for_ties_is_below_them(p):
    "Below a score that all samples have, not equal to it"
    y = (torch.rand(100, 5, generator=torch.Generator().manual_seed(0))<0.9).float()
    preds = torch.full((100,5), p)
    r = judge(preds, y)
    assert p-0.01<r.suggested_thresh<p
    assert judge(preds, y, thresh=r.suggested_thresh).pred_per_sample==5

@pytest.mark.parametrize('scale', [1, 0.1, 0.03, 0.01, 0.001])
def test_a_suggestion_keeps_its_promise(scale):
    "However close together the scores are"
    for seed in range(4):
        logits,y = simulate(400, 10, 0.15, seed=seed)
        for p in ((scale*logits).sigmoid(), (scale*logits-6).sigmoid()):
            r = judge(p, y)
            if r.suggested_thresh is None: # Scores that are closer are in one bin
                assert scale<0.01
                continue
            then = judge(p, y, thresh=r.suggested_thresh)
            assert then.f1_micro==r.suggested_f1 and then.pred_per_sample<=2*then.true_per_sample
            if scale>=0.03: assert then.f1_micro>best_thresholds(p, y, cv=None).score-0.01

@pytest.mark.parametrize('make', [
    lambda y: 10*torch.randn(300, 6, generator=torch.Generator().manual_seed(1))+30*y+3,
    lambda y: torch.full((300,6), -50.),
    lambda y: torch.full((300,6), 60.)])
def test_no_suggestion_at_the_ends(make):
    "If a threshold would be below the lowest scores of the histogram, and nothing false above the highest"
    y = (torch.rand(300, 6, generator=torch.Generator().manual_seed(0))<0.8).float()
    for p in (make(y), make(y)-3):
        r = judge(p, y, sigmoid=True)
        if r.suggested_thresh is None: continue
        then = judge(p, y, thresh=r.suggested_thresh, sigmoid=True)
        assert then.f1_micro==r.suggested_f1 and then.pred_per_sample<=2*then.true_per_sample
    y = y[:200,:5]
    assert judge(torch.zeros(200,5), y).suggested_thresh is None
    assert judge(torch.full((200,5), -50.), y, sigmoid=True).suggested_thresh is None

def test_each_field_is_in_the_table_of_the_notebook():
    "And each row of the table is about fields that a record has"
    nb = json.loads((ROOT/'nbs/diagnosis/04_records.ipynb').read_text(encoding='utf-8'))
    table, = [o for c in nb['cells'] if '| field |' in (o:=''.join(c['source']))]
    fields = [o for row in re.findall(r'(?m)^\| (`.*?) \|', table) for o in re.findall(r'`(\w+)`', row)]
    learn,_ = trained(*COLLAPSED)
    assert sorted(fields)==sorted(learn.zero_labels.explain())==sorted(judged())

@pytest.mark.parametrize('c,mb', [(20,'2.5'), (1000,'31')])
def test_memory_of_a_validation_is_as_said(c, mb):
    stats = ValidationStats.of(Predictions.of(*simulate(50, c), sigmoid=True))
    totals = [o for m in stats.metrics for o in L(m.total, use_list=None) if isinstance(o, Tensor)]
    n = sum(o.numel()*o.element_size() for o in totals)
    assert f'{n/1e6:.2g}'==mb
    text = (ROOT/'nbs/diagnosis/06_callback.ipynb').read_text(encoding='utf-8')
    assert f'{mb} MB with {c:,}' in text

def test_strides_change_nothing():
    "scikit-learn's `OneVsRestClassifier` returns a transposed array"
    logits,y = simulate(200, 6, bias=-2.)
    p = logits.sigmoid()
    turned = [np.asfortranarray(o.numpy()) for o in (p,y)]
    assert str(judge(*turned))==str(judge(p, y))

@pytest.mark.slow
@given(st.data())
def test_at_least_a_label_each_is_what_min_labels_then_gives(data):
    "Also with many equal scores, limits, a threshold per label, and ignored labels that score highest"
    n,c = data.draw(st.integers(1, 30)),data.draw(st.integers(1, 70))
    gen = torch.Generator().manual_seed(data.draw(st.integers(0, 999)))
    levels = data.draw(st.integers(1, 5))
    dtype = data.draw(st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]))
    scores = torch.randint(levels+1, (n,c), generator=gen).to(dtype)/levels
    if dtype==torch.float64: scores = scores/2 + 1e-12*torch.rand(n, c, generator=gen, dtype=dtype)
    targs = torch.randint(2, (n,c), generator=gen)
    ignore_index = data.draw(st.sampled_from([None, -1]))
    if ignore_index==-1: targs[torch.rand(n, c, generator=gen)<0.3] = -1
    if (targs==-1).all(): return
    high = data.draw(st.sampled_from([0.3, 0.6, 1.]))
    thresh = data.draw(st.sampled_from([high, tuple((high*torch.rand(c, generator=gen)).tolist())]))
    max_labels = data.draw(st.sampled_from([None, 1, 2]))
    p = Predictions.of(scores, targs, thresh=thresh, ignore_index=ignore_index, max_labels=max_labels)
    then = p.replace(rule=p.rule.replace(min_labels=1)).counts
    fields = ValidationStats.of(p).fields()
    assert fields['label_each_f1']==F1ScoreMulti().values(*then.sum(1)).item()
    at_least_2 = p.rule.replace(min_labels=min(2, c), max_labels=None) # So each has one already
    fields = ValidationStats.of(p.replace(rule=at_least_2)).fields()
    assert fields['label_each_f1']==fields['f1_micro']

def test_binary_predictions_have_no_top_label():
    for p in (TARGS.bool(), TARGS.int()): assert math.isnan(judge(p, TARGS).label_each_f1)

# Fields by their definition

def fields_of(preds, targs, **kw):
    "Fields of a validation, with labels that are named by letters"
    preds,targs = tensor(preds),tensor(targs)
    return ValidationStats.of(Predictions.of(preds, targs, **kw)).fields([*'abcdef'[:preds.shape[1]]])

def test_labels_are_listed_by_what_is_wrong_with_them():
    "Columns: right, never predicted, predicted wrongly, absent, absent and predicted, ignored"
    preds = [[1,0,0,0,1,0],[0,0,1,0,0,1]]
    targs = [[1,1,1,0,0,-1],[0,0,0,0,0,-1]]
    r = fields_of(preds, targs, ignore_index=-1)
    assert (r['never_predicted'],r['absent'])==(['b'], ['d','e'])
    assert (r['samples'],r['labelled'],r['missed'],r['same_for_all'])==(2, 1, 0, None)
    assert (r['pred_per_sample'],r['true_per_sample'],r['empty_rate'])==(1.5, 1.5, 0)

def test_the_same_for_all_samples_needs_several():
    assert fields_of([[1,0,1]]*2, [[1,0,-1],[0,1,-1]], ignore_index=-1)['same_for_all']==['a']
    assert fields_of([[1,0]], [[1,0]])['same_for_all'] is None
    assert fields_of([[0,0]]*3, [[1,0]]*3)['same_for_all']==[]
    assert fields_of([[0,0]]*3+[[1,0]], [[1,0]]*4)['same_for_all'] is None

def test_samples_are_counted_where_a_target_counts():
    r = fields_of([[0,0],[0,1],[0,0],[1,1]], [[1,-1],[0,0],[0,0],[-1,-1]], ignore_index=-1)
    assert (r['samples'],r['labelled'],r['missed'])==(3, 1, 1)
    assert (r['empty_rate'],r['missed_rate'])==(pytest.approx(2/3), 1)

@pytest.mark.parametrize('n,rated', [(19,0), (20,1)])
def test_a_label_is_rated_from_twenty_positives_on(n, rated):
    "Of two labels, one in most of the samples"
    targs = torch.zeros(30, 2)
    targs[:n,0],targs[:5,1] = 1,1
    r = fields_of(torch.zeros(30, 2), targs)
    assert r['rated']==rated and [o['label'] for o in r['dead']]==['a']*rated
    assert r['constant_accuracy']==pytest.approx((n+25)/60) and r['zeros_accuracy']==pytest.approx((60-n-5)/60)

def test_thresholds_are_compared_only_where_folds_and_labels_allow_it():
    logits,targs = simulate(200, 4, density=0.3, bias=-1)
    logits = logits+torch.linspace(-3, 3, 4) # So thresholds per label gain much
    def compare(n, c): return ValidationStats.of(Predictions.of(logits[:n,:c], targs[:n,:c], sigmoid=True)).fields()
    r = compare(200, 4)
    (change,low,high),global_gain = r['per_label_gain'],r['global_gain']
    assert change==pytest.approx(r['per_label_f1']-r['global_f1']) and low<=change<=high
    assert global_gain[0]==pytest.approx(r['global_f1']-r['f1_micro'], abs=0.01)
    assert change>0.05 # So the gain is not that of thresholds per label
    for few in (compare(200, 1), compare(1, 4)):
        found = few['per_label_f1'],few['global_f1'],*few['per_label_gain'],*few['global_gain']
        assert all(map(math.isnan, found))
    limited = ValidationStats.of(Predictions.of(logits, targs, sigmoid=True, max_labels=1)).fields()
    assert limited['global_f1']==r['global_f1'] and math.isnan(limited['global_gain'][0])

