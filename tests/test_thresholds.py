"The best thresholds, against brute force over every decision that a threshold can make"
import sklearn.metrics as skm
from hypothesis import given, settings
from conftest import *
from fastai_mlmetrics.thresholds import averaged_values

CLASSES = dict(f1=F1ScoreMulti, jaccard=JaccardMulti, accuracy=AccuracyMulti, balanced_accuracy=BalancedAccuracyMulti, matthews=MatthewsCorrCoefMulti)

@st.composite
def scored(draw, max_samples=9, max_labels=3):
    "Scores with many ties, 0 and 1 among them, and truths"
    shape = draw(st.integers(1, max_samples)),draw(st.integers(2, max_labels))
    values = np.array([0,1e-6,0.1,0.3,0.5,np.nextafter(np.float32(0.5), np.float32(1)),0.9,1], np.float32)
    scores = draw(arrays(np.float32, shape, elements=st.sampled_from(values.tolist())))
    return scores,draw(arrays(np.int64, shape, elements=st.integers(0, 1)))

def every_thresh(scores):
    "One threshold in [0, 1] for each decision that is possible without a cut between two that differ in their last digits"
    s = np.unique(scores)
    apart = [float(a) for a,b in zip(s, s[1:]) if b-a>2**-20*b]
    return sorted({0., *apart, 1.} | {float(o)/2 for o in s[:1]})

def best_of(values):
    values = [o for o in values if not np.isnan(o)]
    return max(values) if values else np.nan

@pytest.mark.parametrize('metric,average', [(m,a) for m,cls in CLASSES.items() for a in ('micro','macro','weighted','samples') if a in cls.averages])
@settings(max_examples=60)
@given(scored())
def test_one_threshold(metric, average, scored):
    scores,y = scored
    res = best_thresholds(scores, y, metric, average, per_label=False, cv=None)
    m = CLASSES[metric](average=average)
    brute = best_of([m((scores>np.float32(t)).astype(int), y) for t in every_thresh(scores)])
    assert res.score==pytest.approx(brute, abs=1e-9) and isinstance(res.thresh, float)
    assert m((scores>np.float32(res.thresh)).astype(int), y)==res.score==CLASSES[metric](thresh=res.thresh, sigmoid=False, average=average)(scores, y)

@pytest.mark.parametrize('metric', CLASSES)
@settings(max_examples=60)
@given(scored())
def test_one_per_label(metric, scored):
    scores,y = scored
    res = best_thresholds(scores, y, metric, min_positives=0, sure_positives=0, folds=None, cv=None)
    m = CLASSES[metric](average=None)
    brute = np.nanmax([m((scores>np.float32(t)).astype(int), y) for t in every_thresh(scores)], 0)
    found = m((scores>np.array(res.thresh, dtype=np.float32)).astype(int), y)
    for i,why in enumerate(res.fallback):
        if not why: assert found[i]==pytest.approx(brute[i], abs=1e-9)
        else: assert why=='predicts too often' and res.thresh[i]==best_thresholds(scores, y, metric, per_label=False, cv=None).thresh

@settings(max_examples=60)
@given(scored())
def test_as_many_as_true(scored):
    scores,y = scored
    t = best_thresholds(scores, y, 'cardinality', per_label=False, cv=None).thresh
    off = {o: abs(int((scores>np.float32(o)).sum())-y.sum()) for o in every_thresh(scores)}
    assert abs(int((scores>np.float32(t)).sum())-y.sum())==min(off.values())

@pytest.mark.parametrize('least', [0.3, 0.8, 1.])
@settings(max_examples=60)
@given(scored())
def test_precision_at_recall_and_the_reverse(least, scored):
    scores,y = scored
    for metric,other,f,g in (('precision','at_recall',PrecisionMulti,RecallMulti), ('recall','at_precision',RecallMulti,PrecisionMulti)):
        for average in ('micro','macro'):
            ds = [(scores>np.float32(t)).astype(int) for t in every_thresh(scores)]
            brute = [f(average=average)(d, y) for d in ds if g(average=average)(d, y)>=least-1e-12]
            if not brute:
                with pytest.raises(ValueError, match='no threshold reaches'): best_thresholds(scores, y, metric, average, per_label=False, **{other:least})
            else: assert best_thresholds(scores, y, metric, average, per_label=False, **{other:least}).score==pytest.approx(max(brute), abs=1e-9)

def test_against_curves_of_sklearn():
    logits,targs = simulate(2000, 5, density=0.2, bias=-3)
    scores = logits.sigmoid().numpy()
    res = best_thresholds(logits, targs, sigmoid=True, folds=None, sure_positives=0)
    for i,t in enumerate(res.thresh):
        p,r,_ = skm.precision_recall_curve(targs[:,i], scores[:,i])
        assert skm.f1_score(targs[:,i], scores[:,i]>np.float32(t))==pytest.approx((2*p*r/np.maximum(p+r, 1e-9)).max(), abs=1e-9)

def test_logits_without_sigmoid():
    logits,targs = simulate(300)
    a,b = best_thresholds(logits, targs, average='micro'),best_thresholds(logits, targs, average='micro', sigmoid=True)
    assert a.score==b.score and a.thresh==pytest.approx(math.log(b.thresh/(1-b.thresh)), abs=0.02)

@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float64])
def test_kinds_of_scores(dtype):
    logits,targs = simulate(300)
    preds = logits.sigmoid().to(dtype)
    res = best_thresholds(preds, targs)
    assert F1ScoreMulti(res.thresh, sigmoid=False)(preds, targs)==res.score

def test_no_threshold_between_last_digits():
    a = np.float32(0.1)
    b = np.nextafter(a, np.float32(1))
    for x,between in ((b,False), (np.float32(0.1001),True)):
        t = best_thresholds(np.array([[x],[a]]), np.array([[1],[0]]), average='micro').thresh
        assert (a<=np.float32(t)<x)==between
    t = best_thresholds(np.array([[5+1e-6],[5]], np.float32), np.array([[1],[0]]), average='micro').thresh # margins: no sigmoid rounds them
    assert 5<=np.float32(t)<np.float32(5+1e-6)

@pytest.mark.parametrize('metric,average', [('f1','micro'), ('f1','macro'), ('f1','samples'), ('cardinality','micro'), ('balanced_accuracy','weighted'), (HammingLossMulti,'macro')])
@settings(max_examples=40)
@given(st.data())
def test_ignored_elements_are_as_if_not_there(metric, average, data):
    scores,y = data.draw(scored())
    valid = data.draw(arrays(bool, y.shape))
    missing = np.where(valid, y, -1)
    def found(**kw): return best_thresholds(scores, missing, metric, average, per_label=False, ignore_index=-1, cv=None, **kw)
    if not valid.any():
        with pytest.raises(ValueError, match='counts'): found()
        return
    res,cls = found(),{'f1':F1ScoreMulti,'balanced_accuracy':BalancedAccuracyMulti}.get(metric, metric)
    if metric=='cardinality': score = lambda t: -abs(((scores>np.float32(t)) & valid).sum()-y[valid].sum())
    else: score = lambda t: (-1 if cls is HammingLossMulti else 1)*cls(average=average, ignore_index=-1)((scores>np.float32(t)).astype(int), missing)
    assert score(res.thresh)==pytest.approx(best_of([score(t) for t in every_thresh(scores)]), abs=1e-9)
    nan = best_thresholds(scores, np.where(valid, y, np.nan), metric, average, per_label=False, ignore_index=np.nan, cv=None)
    assert nan.thresh==res.thresh

def test_ignored_elements_per_label_and_in_folds():
    logits,targs = simulate(600, 4, density=0.3)
    more,noise = torch.cat([logits, torch.randn(200, 4)]),torch.cat([targs, torch.full((200,4), math.nan)])
    few = best_thresholds(logits, targs, sigmoid=True, folds=None)
    all_ = best_thresholds(more, noise, sigmoid=True, folds=None, ignore_index=math.nan)
    p,q = (to_decisions(logits, o.thresh) for o in (few, all_))
    test_eq(p, q); assert few.score==all_.score
    res = best_thresholds(more, noise, sigmoid=True, cv=4, ignore_index=math.nan)
    assert abs(res.held_out-res.score)<0.05 and res.score==pytest.approx(few.score, abs=0.02)

def test_few_positives_and_uninformative_labels():
    gen = torch.Generator().manual_seed(0)
    y = torch.zeros(2000, 4)
    y[:15,0] = y[:60,1] = y[:400,2] = y[:400,3] = 1
    scores = (torch.randn(2000, 4, generator=gen) + tensor([3.,3.,3.,0.])*y + tensor([-3.,-3.,0.,-2.])).sigmoid()
    res,hasty = best_thresholds(scores, y, cv=4),best_thresholds(scores, y, min_positives=0, sure_positives=0, folds=None)
    shared = best_thresholds(scores, y, per_label=False).thresh
    test_eq(res.fallback[:1], ('few positives',)); assert res.thresh[0]==shared
    if not res.fallback[1]: assert min(shared, hasty.thresh[1]) <= res.thresh[1] <= max(shared, hasty.thresh[1])
    assert res.fallback[2]=='' and res.thresh[2]==hasty.thresh[2]
    assert res.fallback[3]=='predicts too often' # predicting it always is best on paper
    assert 0<res.held_out<=res.score+0.02

def test_own_thresholds_are_worth_it_where_labels_differ():
    y = (torch.rand(3000, 3, generator=torch.Generator().manual_seed(0))<0.2).float()
    scores = (torch.randn(3000, 3, generator=torch.Generator().manual_seed(1)) + 3*y + tensor([-1.,-4.,-7.])).sigmoid()
    res,one = best_thresholds(scores, y, cv=5),best_thresholds(scores, y, per_label=False, cv=5)
    assert not any(res.fallback) and res.held_out>one.held_out+0.1 and abs(res.held_out-res.score)<0.02

def test_a_label_whose_scores_have_another_scale():
    "What is drawn to the shared threshold predicts nothing; the label's own is found, and holds on other samples"
    def draw(n, seed):
        gen = torch.Generator().manual_seed(seed)
        y = torch.rand(n, 4, generator=gen)<tensor([0.3,0.3,0.3,0.06])
        return tensor([0.5,0.5,0.5,0.08]) * (0.4 + 0.6*y + 0.25*torch.rand(n, 4, generator=gen)),y
    scores,y = draw(1000, 0)
    res,drawn = best_thresholds(scores, y),best_thresholds(scores, y, folds=None)
    assert 20<=y[:,3].sum()<100 and res.fallback[3]=='' and 0.05<res.thresh[3]<0.08<drawn.thresh[3]
    assert F1ScoreMulti(drawn.thresh, sigmoid=False, average=None)(*draw(1000, 1))[3]==0
    assert F1ScoreMulti(res.thresh, sigmoid=False, average=None)(*draw(1000, 1))[3]>0.99

def test_no_target_is_true():
    with pytest.warns(UserWarning, match='no target is true, so no threshold is better than another'): best_thresholds(torch.rand(30, 2), torch.zeros(30, 2))
    y = torch.zeros(30, 2)
    y[0] = 1
    with pytest.warns(UserWarning, match='no target is true'): best_thresholds(torch.rand(30, 2), torch.where(y==1, -1., 0.), ignore_index=-1)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        best_thresholds(torch.rand(30, 2), y)

@pytest.mark.parametrize('scores,y', [(torch.full((30,2), 0.3), torch.eye(2).repeat(15,1)), (torch.rand(30,2), torch.zeros(30,2)), (torch.rand(30,2), torch.ones(30,2)),
                                      (torch.rand(1,3), tensor([[1.,0.,0.]])), (torch.rand(30), (torch.arange(30)%2).float()), (torch.zeros(5,2), torch.ones(5,2))])
def test_odd_data(scores, y):
    for average in ('micro','macro','weighted','samples'):
        for per_label in (True, False):
            res = best_thresholds(scores, y, average=average, per_label=per_label)
            assert all(0<=t<=1 for t in L(res.thresh)) and res.score>=0

def test_what_is_refused():
    s,y = torch.rand(20,3),torch.ones(20,3)
    for args,kw,match in (((s.long(),y),{},'decisions already'), ((s[:0],y[:0]),{},'not a single sample'), ((s*math.nan,y),{},'NaN'), ((s,y*2),{},'0 or 1'), ((s,y,'f3'),{},"metric='f3' should be one of f1, "),
                          *(((s,y),{k:v},f'{k}={v}') for k in ('cv','folds') for v in (-1,0,1,2.5)), ((s,y),dict(cv=256),'from 2 to 255'), ((s,y),dict(vocab=['a','b']),'2 names.*3 labels'),
                          ((s,y,'precision'),{},'at_recall='), ((s,y,'recall'),{},'at_precision='), ((s,y,'f1','binary'),{},"no single number with average='binary'"), ((s,y[:,:2]),{},'shape')):
        with pytest.raises(ValueError, match=match), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            best_thresholds(*args, **kw)

def test_a_class_for_a_metric():
    logits,targs = simulate(300)
    assert best_thresholds(logits, targs, SpecificityMulti, 'micro', sigmoid=True).score==1
    assert best_thresholds(logits, targs, 'fbeta', 'micro', sigmoid=True, beta=2).score==best_of([FBetaMulti(2, thresh=t, average='micro')(logits, targs) for t in np.unique(logits.sigmoid())])

def test_the_curve_is_the_metric():
    logits,targs = simulate(40, 4)
    scores = logits.sigmoid()
    for average in ('micro','macro','weighted','samples'):
        for zd in (0., 1., math.nan):
            m = F1ScoreMulti(average=average, zero_division=zd)
            cuts,v,first = averaged_values(m, scores, targs.long())
            np.testing.assert_allclose(first.item(), m(torch.zeros(40,4).long(), targs), atol=1e-12)
            for k in range(0, 159, 13): np.testing.assert_allclose(v[0,k], m((scores>cuts.score[0,k+1]).long(), targs), atol=1e-12)

# In a Learner

def test_find_and_set(tmp_path):
    logits,targs = simulate(bias=-6)
    m = [*multilabel_metrics(), F1ScoreMulti(0., sigmoid=False, average='micro', name='on_logits'), F1ScoreMulti(average='micro', min_labels=0, labels=[1,2], name='two')]
    learn = make_learner(logits, targs, m, cbs=ZeroLabelsCallback(), vocab=[f'l{i}' for i in range(20)], path=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        found = learn.thresh_find()
        ax = plt.gca()
        assert [o.get_label().split(':')[0] for o in ax.lines[1:]]==['predicting nothing','best','as many as true','now']
        plt.close()
        curve = max(ax.lines[0].get_ydata())
        assert found.best==best_thresholds(logits, targs, average='samples', sigmoid=True).thresh
        assert best_thresholds(logits, targs, average='samples', sigmoid=True).score==pytest.approx(float(curve), abs=1e-12) # The drawn peak is the marked best
        assert ax.lines[0].get_xdata()[ax.lines[0].get_ydata().argmax()]==pytest.approx(found.best, rel=1e-4)
        assert found.per_label==best_thresholds(logits, targs, sigmoid=True).thresh and (logits.sigmoid()>found.cardinality).sum()==targs.sum()
        learn.thresh_find(dl=learn.dls.train, show_plot=False)
        for thresh,min_labels in ((found.best,0), (found.per_label,0), (0.3,1)):
            learn.set_thresh(thresh, min_labels)
            v = values(learn)
            d = to_decisions(logits, thresh, min_labels=min_labels)
            for name in ('f1_samples','f1_macro'): assert v[name]==pytest.approx(skm.f1_score(targs, d, average=name[3:], zero_division=0), abs=1e-12)
            assert v['on_logits']==pytest.approx(v['f1_micro'], abs=1e-3) and v['two']==pytest.approx(skm.f1_score(targs[:,1:3], d[:,1:3], average='micro'))
            assert learn.zero_labels.records[-1].pred_per_sample==pytest.approx(d.sum().item()/400) and not learn.zero_labels.records[-1].traps
            assert torch.equal(learn.get_preds(with_decoded=True)[2], d)
            learn.export('l.pkl')
            with learn.no_bar(): again = load_learner(tmp_path/'l.pkl')
            again.dls = learn.dls
            test_eq(values(again), v); assert torch.equal(again.get_preds(with_decoded=True)[2], d)

def test_other_learners_keep_their_thresholds():
    "fastai's `MultiCategorize.loss_func` is one object for all, and so may a list of metrics be"
    loss,metrics = BCEWithLogitsLossFlat(),multilabel_metrics()
    a,b = (make_learner(*simulate(40), metrics, loss_func=loss) for _ in range(2))
    before = values(b)
    a.set_thresh(0.9, min_labels=2)
    assert {m.thresh for m in a.metrics}=={0.9} and {m.thresh for m in b.metrics}=={0.5} and values(b)==before!=values(a)
    assert b.loss_func.thresh==loss.thresh==0.5 and not hasattr(loss, 'min_labels') and a.loss_func.thresh==0.9
    assert torch.equal(b.get_preds(with_decoded=True)[2], simulate(40)[0]>0)

def test_metrics_with_a_threshold_of_their_own_keep_it():
    logits,targs = simulate(100, bias=-3)
    class Named:
        "A loss that decodes logits, but is not fastai's"
        thresh = 0.5
        def __call__(self, p, y): return F.binary_cross_entropy_with_logits(p, y)
        def decodes(self, x): return x>self.thresh
        def activation(self, x): return x.sigmoid()
    for loss in (BCEWithLogitsLossFlat(), Named()):
        metrics = [F1ScoreMulti(), F1ScoreMulti(0., sigmoid=False, name='on_logits'), F1ScoreMulti(0.7, name='high'), F1ScoreMulti([0.2]*20, name='low')]
        learn = make_learner(logits, targs, metrics, loss_func=loss)
        with pytest.warns(UserWarning, match='high, low: these have thresholds of their own'): learn.set_thresh(0.2)
        v = values(learn)
        assert v['f1_score']==F1ScoreMulti(0.2)(logits, targs) and v['on_logits']==pytest.approx(v['f1_score'], abs=1e-6) and v['high']==F1ScoreMulti(0.7)(logits, targs)

def test_report_of_a_learner():
    logits,targs = simulate(200, bias=-3)
    for loss in (BCEWithLogitsLossFlat(), nn.BCEWithLogitsLoss()):
        learn = make_learner(logits, targs, multilabel_metrics(), loss_func=loss)
        if isinstance(loss, BCEWithLogitsLossFlat): learn.set_thresh(0.15, min_labels=1)
        r,v = learn.accuracy_report(ci=None),values(learn)
        assert r.value['F1, samples']==pytest.approx(v['f1_samples'], abs=1e-12) and r.value['accuracy, elementwise']==pytest.approx(v['accuracy_multi'], abs=1e-12)
        assert learn.accuracy_report(thresh=0.3, min_labels=0, ci=None).value['F1, micro']==pytest.approx(F1ScoreMulti(0.3, average='micro')(logits, targs), abs=1e-12)

def test_nothing_is_changed_by_a_bad_argument():
    learn = make_learner(*simulate(40), multilabel_metrics())
    loss = learn.loss_func
    for args in ((0.3,-1), (0.3,1.5), (2.,), ([0.3,0.4],)):
        if args[0]==[0.3,0.4]: learn.dls.vocab = list('abcdefghijklmnopqrst')
        with pytest.raises(ValueError): learn.set_thresh(*args)
    assert learn.loss_func is loss and vars(loss).get('decodes') is None and all(m.thresh==0.5 for m in learn.metrics)
    learn.set_thresh(0.3, 1.)
    assert learn.get_preds(with_decoded=True)[2].any(1).all()

@pytest.mark.parametrize('mean', [-12, 0, 14])
def test_decoded_is_what_was_counted(mean):
    "Saturated models, thresholds exactly on a score, and found ones, whose stated score is what the table then says"
    logits,targs = simulate(2000, 7, density=0.3, skill=1., bias=mean)
    scores = logits.sigmoid()
    def check(learn, *args):
        learn.set_thresh(*args)
        v,preds,decoded = values(learn),*L(learn.get_preds(with_decoded=True))[0,2]
        for name,average in (('f1_micro','micro'), ('f1_macro','macro')):
            assert v[name]==pytest.approx(skm.f1_score(targs, decoded, average=average, zero_division=0), abs=1e-12)
        assert (preds-scores).abs().max()<=1.2e-7
        return v
    learn = make_learner(logits, targs, [*multilabel_metrics(), F1ScoreMulti(0., sigmoid=False, average='micro', name='on_logits')], bs=500)
    for s in scores.flatten()[::1000].tolist(): # ten thresholds on a score
        v = check(learn, s)
        assert v['on_logits']==v['f1_micro']
    for average in ('micro','macro','samples'):
        best = best_thresholds(*learn.get_preds(), average=average)
        v = check(learn, best.thresh)
        assert v[f'f1_{average}']==pytest.approx(best.score, abs=1e-12)

def test_set_in_an_image_learner(digits_dls):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.remove_cb(ProgressCallback)
    item = digits_dls.valid_ds.items.iloc[0]
    for thresh,n in ((0.,20), (1.,0)):
        learn.set_thresh(thresh)
        assert len(learn.predict(item)[0])==n
    learn.set_thresh(1., min_labels=2)
    assert len(learn.predict(item)[0])==2
    learn.show_results(max_n=2)
    plt.close('all')

def test_what_cannot_be_set():
    logits,targs = simulate(50)
    with pytest.raises(ValueError, match='BCEWithLogitsLoss.*does not decode.*BCEWithLogitsLossFlat'): make_learner(logits, targs, loss_func=nn.BCEWithLogitsLoss()).set_thresh(0.2)
    learn = make_learner(logits, targs, vocab=list('abcdefghijklmnopqrst'))
    with pytest.raises(ValueError, match='2 values.*20 labels'): learn.set_thresh([0.1,0.2])
    with pytest.raises(ValueError, match='thresh=3'): learn.set_thresh(3)

def test_set_after_a_new_loss():
    "Metrics that followed once follow again, whatever loss the Learner has by then"
    logits,targs = simulate(200, bias=-3)
    weight = torch.full((20,), 5.)
    learn = make_learner(logits, targs, [*multilabel_metrics(), F1ScoreMulti(0.7, name='own')], cbs=ZeroLabelsCallback())
    for before,after in ((0.2,0.6), ([0.2]*20,0.3), (0.3,[0.1]*20)):
        with pytest.warns(UserWarning, match='^own: these have'): learn.set_thresh(before)
        learn.loss_func = BCEWithLogitsLossFlat(pos_weight=weight)
        with pytest.warns(UserWarning, match='^own: these have'): learn.set_thresh(after)
        v,decoded = values(learn),learn.get_preds(with_decoded=True)[2]
        assert v['f1_micro']==pytest.approx(skm.f1_score(targs, decoded, average='micro'), abs=1e-12)==learn.accuracy_report(ci=None).value['F1, micro'] and v['own']==F1ScoreMulti(0.7)(logits, targs)
    learn = make_learner(logits, targs, multilabel_metrics(), loss_func=BCEWithLogitsLossFlat(thresh=0.2))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        learn.set_thresh(0.3); learn.set_thresh([0.2]*20); learn.set_thresh(0.5)
        for found in (learn.thresh_find(show_plot=False), best_thresholds(*learn.get_preds())): learn.set_thresh(found)

def test_a_weighted_loss_without_a_vocab():
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), loss_func=BCEWithLogitsLossFlat(pos_weight=torch.full((20,), 5.)))
    learn.set_thresh(0.3)
    assert learn.metrics[0].thresh==learn.loss_func.thresh==0.3

def test_a_loss_for_neither():
    learn = make_learner(*simulate(200, bias=-3), loss_func=MSELossFlat())
    for f in (learn.accuracy_report, learn.thresh_find, lambda: MultiLabelInterpretation.from_learner(learn)):
        with pytest.raises(ValueError, match=r'\(MSELoss\).*BCEWithLogitsLossFlat'): f()

def test_what_is_found_can_be_passed_as_it_is():
    logits,targs = simulate(200, 4, density=0.4)
    scores = logits.sigmoid()
    for per_label in (False,True):
        found = best_thresholds(scores, targs, per_label=per_label)
        assert accuracy_report(scores, targs, thresh=found, ci=None).equals(accuracy_report(scores, targs, thresh=found.thresh, ci=None))
        assert F1ScoreMulti(found, sigmoid=False)(scores, targs)==found.score

def test_metrics_by_class():
    p,y = torch.rand(300, 4),(torch.rand(300, 4)<0.3).float()
    for name,cls,kw in (('precision',PrecisionMulti,dict(at_recall=0.8)), ('recall',RecallMulti,dict(at_precision=0.25))):
        by_name,by_class = (best_thresholds(p, y, m, 'micro', cv=None, **kw) for m in (name, cls))
        test_eq(by_class.thresh, by_name.thresh); test_eq(by_class.score, by_name.score)
        with pytest.raises(ValueError, match='beside it'): best_thresholds(p, y, cls, 'micro')
    with pytest.raises(ValueError, match='no single number with average=None'): best_thresholds(p, y, average=None)
    with pytest.raises(ValueError, match='should be one of'): best_thresholds(p, y, CF1)
    test_close(best_thresholds(p, y, ZerosAccuracy, 'micro', cv=None).score, 1-y.double().mean().item())

@pytest.mark.parametrize('metric,required,kw', [('precision', RecallMulti, dict(at_recall=0.9)), ('recall', PrecisionMulti, dict(at_precision=0.6))])
def test_what_is_required_holds_for_each_label(metric, required, kw):
    "Also where a label has few positives, for which its own threshold would otherwise not be trusted"
    g = torch.Generator().manual_seed(0)
    y = (torch.rand(2000, 6, generator=g)<tensor([0.3,0.2,0.1,0.04,0.01,0.005])).float()
    p = (torch.randn(2000, 6, generator=g) + 4*y - 2).sigmoid()
    best = best_thresholds(p, y, metric, **kw)
    reached = required(best.thresh, sigmoid=False, average=None)(p, y)
    assert (reached>=[*kw.values()][0]-1e-9).all() and not any(best.fallback)
    name = 'recall' if metric=='precision' else 'precision'
    same = best.table[name]
    assert np.allclose(same.iloc[2:], reached) and same['one per label']==pytest.approx(reached.mean()) and f'{name}: on the samples' in best.table.reading

def test_what_is_required_is_shown_beside_each():
    logits,targs = simulate(300, 6, density=0.3)
    learn = make_learner(logits, targs)
    found = learn.thresh_find(metric='precision', average='micro', at_recall=0.8, show_plot=False)
    recall = found.table.recall
    assert recall['best']>=0.8 and recall['cardinality']==pytest.approx(RecallMulti(found.cardinality, average='micro')(logits, targs))
    assert 'where 0.8 was required' in found.table.reading

@pytest.mark.parametrize('kw,match', [(dict(metric='precision', average='samples', at_recall=0.99), 'zero_division=nan leaves them out'),
    (dict(metric='precision', at_recall=50), 'above 0 and at most 1'), (dict(metric=AccuracyLift), "AccuracyLift has no single number with average='macro': use one of 'micro'$"),
    (dict(average=None), "use one of 'micro', 'macro', 'weighted', 'samples'$")])
def test_what_a_search_refuses(kw, match):
    logits,targs = simulate(200, 6)
    with pytest.raises(ValueError, match=match): best_thresholds(logits.sigmoid(), targs, **kw)

def test_a_metric_of_samples_alone_has_no_threshold_per_label():
    logits,targs = simulate(200, 6, density=0.4)
    learn = make_learner(logits, targs)
    for metric,average in ((SubsetAccuracy,'samples'), (AccuracyLift,'micro')):
        found = learn.thresh_find(metric=metric, average=average, show_plot=False)
        assert found.per_label is None and [*found.table.index]==['now','best','cardinality']
        assert found.best==best_thresholds(logits.sigmoid(), targs, metric, average).thresh

def test_thresh_find_names_what_it_lacks():
    learn = make_learner(*simulate(200, 6))
    for name in ('sigmoid','vocab','thresh'):
        with pytest.raises(TypeError, match=f'thresh_find has no argument {name}'): learn.thresh_find(**{name: None})

def test_names_of_thresholds_in_metrics():
    "A metric takes them in order, which must be that of the labels wherever their names are known"
    names = list('abc')
    logits,targs = simulate(200, 3, density=0.3, bias=-1.)
    p,y = (pd.DataFrame(o.numpy(), columns=names) for o in (logits.sigmoid(), targs))
    by_name = pd.Series(dict(c=0.2, b=0.5, a=0.7))
    expected = accuracy_report(p, y, thresh=by_name).value['F1, macro']
    assert F1ScoreMulti([0.7,0.5,0.2], sigmoid=False)(p, y)==pytest.approx(expected)
    assert F1ScoreMulti(by_name[names], sigmoid=False)(p, y)==pytest.approx(expected)
    assert F1ScoreMulti(pd.Series([0.7,0.5,0.2]), sigmoid=False)(p, y)==pytest.approx(expected) # numbers are no names
    assert F1ScoreMulti(by_name, sigmoid=False)(p[names[::-1]], y)==pytest.approx(expected)
    wrong = re.escape("thresh is for the labels ['c', 'b', 'a'], in that order, but these are ['a', 'b', 'c']")
    found = best_thresholds(p[names[::-1]], y)
    for thresh in (by_name, found):
        with pytest.raises(ValueError, match=wrong): F1ScoreMulti(thresh, sigmoid=False)(p, y)
        with pytest.raises(ValueError, match=wrong): values(make_learner(logits, targs, [F1ScoreMulti(thresh)], vocab=names))
        with pytest.raises(ValueError, match=wrong): values(make_learner(logits, targs, cbs=ZeroLabelsCallback(thresh), vocab=names))
        values(make_learner(logits, targs, [F1ScoreMulti(thresh)], vocab=names[::-1])); F1ScoreMulti(thresh, sigmoid=False)(p.values, y.values)
    assert F1ScoreMulti(by_name).rule!=F1ScoreMulti([0.2,0.5,0.7]).rule and F1ScoreMulti(by_name).rule==F1ScoreMulti(by_name.copy()).rule

def test_names_survive_a_copy():
    p,y = (pd.DataFrame(o.numpy(), columns=list('abc')) for o in (simulate(200, 3, density=0.3)[0].sigmoid(), simulate(200, 3, density=0.3)[1]))
    m = F1ScoreMulti(best_thresholds(p[list('cba')], y), sigmoid=False)
    for o in (m, copy(m), deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert o.rule==m.rule
        with pytest.raises(ValueError, match='in that order'): o(p, y)
        assert o(p[list('cba')], y)==m(p[list('cba')], y)

def test_names_that_are_numbers_in_another_order():
    logits,targs = simulate(200, 4, density=0.3)
    p,y = logits.sigmoid().numpy(),targs.numpy()
    by_number = pd.Series([.9,.5,.3,.1], index=[3,2,1,0])
    assert accuracy_report(p, y, thresh=by_number).equals(accuracy_report(p, y, thresh=[.1,.3,.5,.9]))
    for args in ((p, y), (pd.DataFrame(p), pd.DataFrame(y))):
        with pytest.raises(ValueError, match='in that order'): AccuracyMulti(by_number, sigmoid=False)(*args)
        assert AccuracyMulti(by_number.sort_index(), sigmoid=False)(*args)==AccuracyMulti([.1,.3,.5,.9], sigmoid=False)(p, y)

def test_a_metric_above_1():
    "Where labels are alike, most have no threshold that is better than the shared one"
    class Profit(CountsMetric):
        def formula(self, tp, pred, true, n): return 5*tp-(pred-tp)
    kept = []
    for seed in range(5):
        logits,y = simulate(600, 8, density=0.3, seed=seed)
        kept += [not o for o in best_thresholds(logits.sigmoid(), y, metric=Profit).fallback]
    assert sum(kept)<len(kept)/2
