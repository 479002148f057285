"Thresholds of a Learner: `thresh_find` and `set_thresh`"
import contextlib, io, json, pickle, sklearn.metrics as skm
from helpers import *
from fastai_mlmetrics.core.rules import as_thresh
from fastai_mlmetrics.thresholds.tuning import Objective
from fastai_mlmetrics.learner.thresholds import SuggestedThresholds

# Metrics

def test_the_recorder_keeps_its_epochs():
    learn = fitted(2)
    epochs = [*learn.recorder.values]
    assert len(epochs)==2
    learn.evaluate()
    learn.accuracy_report(ci=None)
    learn.thresh_find(show_plot=False, cv=None)
    MultiLabelInterpretation.from_learner(learn)
    assert learn.recorder.values==epochs

def test_a_loss_that_is_a_function_stays_as_it_is():
    def loss(p, y): return F.binary_cross_entropy_with_logits(p, y)
    loss.activation,loss.decodes = torch.sigmoid,lambda x: x>0.5
    given = dict(vars(loss))
    logits,targs = simulate(100, bias=-3)
    a,b = (make_learner(logits, targs, multilabel_metrics(), loss_func=loss) for _ in range(2))
    for thresh in (0.2,0.3): # also a second time
        a.set_thresh(thresh)
        assert torch.equal(a.get_preds(with_decoded=True)[2], logits.sigmoid()>thresh)
        assert torch.equal(b.get_preds(with_decoded=True)[2], logits>0)
    assert vars(loss)==given and b.loss_func is loss
    assert a.evaluate().thresh['f1_macro']=='0.3'
    with a.no_logging(): a.fit(1, 0.)

def test_thresholds_that_predict_too_much():
    "The table's reading says so, of global and per-label thresholds, and there is no warning"
    learn = make_learner(*simulate(400, skill=0.5, bias=-3))
    with warnings_as('error', UserWarning):
        found = learn.thresh_find(show_plot=False)
        learn.thresh_find(metric='recall', at_precision=0.08, average='micro', show_plot=False)
    scores,y = learn.get_preds()
    for name,t in found._asdict().items():
        n,true = ((o.sum()/len(y)).item() for o in (scores>tensor(t), y))
        said = re.search(rf'`{name}` predicts ([\d.]+) labels per sample, while ([\d.]+) are true', found.table.reading)
        assert bool(said)==(n>2*true)
        if said: assert tuple(map(float, said.groups()))==pytest.approx((n, true), abs=0.006)
    assert re.search(r'`best` predicts \d', found.table.reading)

@pytest.mark.slow
def test_thresholds_of_mostly_unlabelled_data():
    "set_thresh(thresh_find()) is not condemned by the callback, though 61 % of the samples have no label"
    for seed in range(5):
        logits,targs = simulate(1000, 10, density=0.12, skill=1.5, bias=-3, seed=seed)
        targs[:610] = 0
        learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
        learn.set_thresh(learn.thresh_find(show_plot=False))
        with warnings_as('error', ZeroLabelsWarning), learn.no_logging(): learn.validate()
        assert learn.zero_labels.records[-1].verdict==''

@pytest.mark.parametrize('thresh', [0.2, np.linspace(0.1, 0.9, 20)], ids=['one','per label'])
def test_thresholds_outlive_save_and_load(thresh, tmp_path):
    "As the docstring of `set_thresh` says"
    def new(): return make_learner(*simulate(100, bias=-1), multilabel_metrics(), vocab=NAMES, path=tmp_path)
    learn,again = new(),new()
    learn.set_thresh(thresh)
    learn.save('model')
    (tmp_path/'thresh.json').write_text(json.dumps(learn.loss_func.thresh))
    again.load('model')
    assert again.loss_func.thresh==0.5
    again.set_thresh(json.loads((tmp_path/'thresh.json').read_text()))
    assert again.evaluate().equals(learn.evaluate())
    assert torch.equal(again.get_preds(with_decoded=True)[2], learn.get_preds(with_decoded=True)[2])

# Thresholds

def test_found_thresholds_are_a_table():
    logits,targs = simulate(400, bias=-4)
    learn = make_learner(logits, targs, multilabel_metrics(), vocab=NAMES)
    scores,found = logits.sigmoid(),learn.thresh_find(show_plot=False)
    t = found.table
    assert list(t.index)==['now','best','cardinality','per_label',*NAMES]
    best,cardinality,per_label = found
    thresholds = dict(now=0.5, best=best, cardinality=cardinality, per_label=tensor(per_label))
    for name,thresh in thresholds.items():
        f1 = skm.f1_score(targs, scores>thresh, average='micro')
        assert t.score[name]==pytest.approx(f1, abs=1e-12), name
    one = best_thresholds(scores, targs)
    test_eq([t.threshold['best'], t.score['best'], t.held_out['best']], [one.thresh, one.score, one.held_out])
    assert np.isnan(t.held_out['now']) # 0.5 might have been tuned on these samples
    assert t.held_out[1:].notna().all()
    each = best_thresholds(scores, targs, per_label=True)
    assert 'fallback' not in t
    test_close(t.held_out[4:].values, each.table.held_out[2:].values, eps=1e-12)
    test_eq(t.support[4:].tolist(), each.table.support[2:].tolist())
    assert max(map(len, repr(found).split('\n')))<=80 and 'optimistically biased' in found._repr_html_()
    for o,at in ((found, best), (found.cardinality, cardinality), (found.per_label, per_label),
                 (each, per_label), (one, best)):
        learn.set_thresh(o)
        assert learn.loss_func.thresh==at
    assert learn.thresh_find(show_plot=False).table.score['now']==pytest.approx(one.score)
    learn.set_thresh(each, min_labels=1)
    now = learn.thresh_find(show_plot=False).table.score['now, min_labels=1']
    assert now==learn.evaluate().value['f1_micro']

def advised(found):
    "The row that the table marks, and the mark"
    marked = found.table.advice[found.table.advice!='']
    assert len(marked)==1
    return marked.index[0],marked.iloc[0]

def of_scales(n=600, c=8, seed=0):
    "Labels whose scores differ in scale: one threshold for all is hopeless"
    logits,targs = simulate(n, c, density=0.2, skill=4., bias=-2, seed=seed)
    return logits/torch.logspace(0, 1, c) - torch.linspace(0, 3, c),targs

@pytest.mark.parametrize('bins', [None,512])
def test_per_label_thresholds_are_recommended_where_scores_differ_in_scale(bins):
    learn = make_learner(*of_scales(), multilabel_metrics(), vocab=list('abcdefgh'))
    found = learn.thresh_find(show_plot=False, bins=bins)
    assert advised(found)==('per_label','set') and found.thresh==found.per_label
    f1,t = found.table.held_out['per_label'],found.table
    said = re.search(r'^`per_label` is recommended: its held-out f1_micro is ([\d.]+)\. That is better than the '
                     r'[\d.]+ of `now`, by ([\d.]+) \(95% interval ([\d.]+) to ([\d.]+)\)\. '
                     r'The held-out f1_micro is ([\d.]+) with `per_label` and ([\d.]+) with `best`, the f1_macro is ',
                     t.reading)
    held,gained,low,high,*pair = map(float, said.groups())
    assert held==pytest.approx(f1, abs=6e-4) and pair==pytest.approx([f1, t.held_out['best']], abs=6e-4)
    assert low<gained<high and gained==pytest.approx(f1-t.score['now'], abs=6e-3)
    learn.set_thresh(pickle.loads(pickle.dumps(found)))
    assert learn.loss_func.thresh==found.per_label and values(learn)['f1_micro']==pytest.approx(t.score['per_label'])
    other = make_learner(*(o.flip(1) for o in of_scales()), vocab=list('hgfedcba'))
    other.set_thresh(found) # in the order of its labels
    assert other.loss_func.thresh==found.per_label[::-1]

def test_a_threshold_that_nothing_beats_clearly_is_kept():
    "With its limits; a gain that may be chance is called that"
    texts = set()
    for seed in range(6):
        logits,targs = simulate(300, 6, density=0.5, skill=1.5, seed=seed)
        learn = make_learner(logits, targs, multilabel_metrics())
        learn.set_thresh(best_thresholds(logits.sigmoid(), targs).thresh+0.02, min_labels=1)
        before = learn.loss_func.thresh
        found = learn.thresh_find(show_plot=False)
        name,mark = advised(found)
        if name!='now, min_labels=1': continue
        assert mark=='keep' and found.thresh==before
        texts |= {found.table.reading.split(':')[0]}
        learn.set_thresh(found)
        assert (learn.loss_func.thresh,learn.loss_func.min_labels)==(before,1)
        learn.set_thresh(found, max_labels=2)
        assert (learn.loss_func.min_labels,learn.loss_func.max_labels)==(0,2)
    assert '`now, min_labels=1` is recommended' in texts

def test_tuned_thresholds_are_kept():
    "What was set is not replaced by what is as good"
    learn = make_learner(*of_scales(), multilabel_metrics())
    for _ in range(2): learn.set_thresh(found := learn.thresh_find(show_plot=False))
    assert advised(found)==('now','keep') and found.thresh==found.per_label==learn.loss_func.thresh

def test_noise_recommends_no_threshold_per_label():
    for seed in range(5):
        learn = make_learner(*simulate(100, 10, density=0.2, skill=0., seed=seed))
        assert advised(learn.thresh_find(show_plot=False))[0]!='per_label'

def test_what_cannot_be_compared_is_told():
    logits,targs = simulate(300, 6, density=0.3, skill=1.5, bias=-3)
    found = make_learner(logits, targs).thresh_find(show_plot=False, cv=None)
    assert found.thresh==found.best and advised(found)==('best','set')
    assert found.table.reading.startswith('`best` is not compared with other ways: there are no held-out scores.')
    found = make_learner(logits, targs, loss_func=nn.BCEWithLogitsLoss()).thresh_find(show_plot=False)
    assert re.match(r'`\w+` is recommended: its held-out f1_micro is [\d.]+\.', found.table.reading)
    found = make_learner(logits, targs).thresh_find(show_plot=False, metric='precision', at_recall=0.7)
    assert advised(found)[0] in ('best','per_label') # `now` and `cardinality` may miss the recall
    found = make_learner(logits, targs).thresh_find(show_plot=False, metric=HammingLossMulti)
    assert re.search(r'than the [\d.]+ of `now`, by [\d.]+ \(95% interval [\d.]+ to [\d.]+\)', found.table.reading)
    found = make_learner(logits, targs).thresh_find(show_plot=False, metric=SubsetAccuracy, average='samples')
    assert found.per_label is None and found.thresh in (0.5,found.best,found.cardinality)

def test_labels_that_are_never_predicted_are_told():
    "Rare labels that rank weakly, at the thresholds that are best for micro F1"
    logits,targs = simulate(2000, 8, density=0.3, skill=3., bias=-2)
    gen = torch.Generator().manual_seed(0)
    targs[:,:3],logits[:,:3] = (torch.rand(2000, 3, generator=gen)<0.02).float(),torch.randn(2000, 3, generator=gen)/4-4
    found = make_learner(logits, targs).thresh_find(show_plot=False)
    says = r"never predicts 3 of the 8 labels with at least 20 positives: average='macro' counts all labels alike"
    assert re.search(says, found.table.reading)
    found = make_learner(logits, targs).thresh_find(show_plot=False, average='macro')
    assert 'never predicts' not in found.table.reading

def test_where_thresholds_are_drawn():
    learn = fitted(1)
    fig,axs = plt.subplots(1, 2)
    learn.thresh_find(ax=axs[1])
    assert not axs[0].lines and len(axs[1].lines)==5 and plt.get_fignums()==[fig.number]
    learn.thresh_find(figsize=(3,2))
    assert list(plt.gcf().get_size_inches())==[3,2]
    plt.close('all')
    learn.set_thresh([0.2]*20)
    learn.thresh_find() # 'now' is several thresholds, so it has no line
    assert len(plt.gca().lines)==4

def test_missing_labels_change_no_threshold():
    logits,targs = simulate(300, bias=-3)
    missing = targs.clone()
    missing[::4] = math.nan
    found = make_learner(logits, missing, vocab=NAMES).thresh_find(ignore_index=math.nan)
    known = ~missing[:,0].isnan()
    expected = make_learner(logits[known], targs[known], vocab=NAMES).thresh_find(show_plot=False)
    test_close(found.table.score, expected.table.score, eps=1e-12)
    assert max(plt.gca().lines[0].get_ydata())==pytest.approx(found.table.score['best'], abs=1e-9)

@pytest.mark.parametrize('kw', [
    dict(metric='jaccard'), dict(average='macro'), dict(average='micro'),
    dict(metric=HammingLossMulti, average='micro'), dict(metric='fbeta', beta=2.),
    dict(metric='precision', average='micro', at_recall=0.7),
    dict(cv=None), dict(zero_division=math.nan)], ids=str)
def test_thresholds_are_found_for_other_aims(kw):
    found = fitted(1).thresh_find(**kw)
    assert found.table.score.notna().all()
    assert found.table.held_out.iloc[1:].isna().all()==(kw.get('cv', 5) is None)

def test_losses_and_metrics_of_others_do_no_harm():
    class Odd(nn.BCEWithLogitsLoss): activation,thresh = None,None
    with pytest.warns(UserWarning, match="remove the sigmoid at the model's end"):
        fitted(1, loss_func=Odd(), model=Sigmoid(), cbs=ZeroLabelsCallback())
    learn = fitted(1, [torch.dist, AccuracyMulti()], cbs=ZeroLabelsCallback())
    learn.set_thresh(0.2)
    assert learn.metrics[1].thresh==0.2

def test_thresh_find_names_the_arguments_that_it_lacks():
    learn = make_learner(*simulate(100))
    for name in ('sigmoid','vocab','thresh','valid'):
        with pytest.raises(TypeError, match=f"thresh_find has no argument '{name}'"): learn.thresh_find(**{name: None})
    with pytest.raises(TypeError, match="no argument 'plot', .* show_plot"): learn.thresh_find(plot=False)
    with pytest.raises(ValueError, match='finds both'): learn.thresh_find(per_label=True)
    found = learn.thresh_find(metric='cardinality', show_plot=False)
    assert '`per_label` predicts each label about as often as it is true' in found.table.reading
    assert 'optimises' not in found.table.reading.replace('optimistically', '')
    learn.thresh_find(show_plot=False, zero_division=1.)

def test_a_vocab_of_another_length_is_an_error():
    learn = make_learner(*simulate(100), vocab=NAMES[:19])
    for f in (learn.thresh_find, learn.accuracy_report):
        with pytest.raises(ValueError, match='19 names.*20 labels'): f()

# Names of labels in tables and texts

def test_where_the_threshold_of_a_rare_label_is_from():
    learn = make_learner(*simulate(300, 4, 0.03), vocab=list('abcd'))
    with learn.no_logging(): found = learn.thresh_find(average='macro')
    assert {*found.table.fallback[4:]}=={'few positives'} and len({*found.per_label})==1
    assert 'fallback: why a label gets the global threshold.' in found.table.reading
    assert found.table.reading.endswith('use the best global threshold for the macro average.')
    assert plt.gca().get_ylabel()=='f1_macro' # As in the text below the table
    plt.close()
    with learn.no_logging(): found = learn.thresh_find(metric='cardinality')
    assert found.best==found.cardinality and len(found.per_label)==len(found.table.fallback)-4
    assert plt.gca().get_ylabel().startswith('cardinality')
    plt.close()
    learn = make_learner(*simulate(300, 4, 0.4), vocab=list('abcd'))
    with learn.no_logging(): found = learn.thresh_find(show_plot=False, average='macro', cv=None)
    assert 'fallback' not in found.table and 'fallback:' not in found.table.reading

# Data of any kind

def test_a_learner_without_data_says_how_to_get_some(tmp_path):
    learn = fitted(1)
    learn.path = tmp_path
    learn.export()
    loaded = load_learner(tmp_path/'export.pkl')
    alone = make_learner(*simulate(50), multilabel_metrics())
    alone.dls = DataLoaders(alone.dls.train, device=CPU)
    advice = r'no such data .*pass dl=learn.dls.test_dl\(items, with_labels=True\)'
    for o in (loaded, alone):
        for f in (o.thresh_find, o.accuracy_report, o.evaluate, partial(MultiLabelInterpretation.from_learner, o)):
            with pytest.raises(ValueError, match=advice): f()

def test_thresh_find_says_what_holds():
    targs = simulate(200, 4, density=0.2)[1]
    logit = -2.
    learn = make_learner(torch.full((200,4), logit), targs)
    found = learn.thresh_find(show_plot=False)
    assert not (found.cardinality<torch.full((1,), logit).sigmoid().item())
    assert '`best` predicts 4.00 labels per sample' in found.table.reading

def test_a_vocab_that_is_given_names_parts_of_data_sets():
    logits,targs = simulate(100, 4, density=0.3)
    ds = torch.utils.data.TensorDataset(logits, targs)
    parts = [torch.utils.data.Subset(ds, o) for o in (range(80), range(80, 100))]
    for kind in (DataLoader, torch.utils.data.DataLoader):
        dls = DataLoaders(*(kind(o, batch_size=16) for o in parts), device=torch.device('cpu'))
        dls.vocab = list('abcd')
        learn = Learner(dls, Same(), loss_func=BCEWithLogitsLossFlat(), metrics=F1ScoreMulti(labels=['b']))
        learn.remove_cb(ProgressCallback)
        assert values(learn)['f1_score']==pytest.approx(F1ScoreMulti(labels=[1])(logits[80:], targs[80:]))
        assert [*label_stats(dls).index]==list('abcd')

def test_everything_decides_where_the_learner_does():
    logits,targs = simulate(n=128, bias=-1.)
    for kw in (dict(min_labels=3, max_labels=3), dict(max_labels=2)):
        learn = make_learner(logits, targs, multilabel_metrics() + paper_metrics(top_k=3), cbs=ZeroLabelsCallback())
        learn.set_thresh(0.3, **kw)
        with warnings_as('ignore', ZeroLabelsWarning): v = values(learn)
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
            assert i.accuracy_report(ci=None).value['f1_micro']==pytest.approx(v['f1_micro'])

def test_thresholds_are_found_for_an_instance():
    logits,targs = simulate(200, 4, density=0.3, skill=1.5)
    m = FBetaMulti(2, average='samples', zero_division=1.)
    learn = make_learner(logits, targs, [m])
    before = values(learn)
    found = learn.thresh_find(metric=m, show_plot=False)
    expected = best_thresholds(logits.sigmoid(), targs, m)
    assert found.best==expected.thresh and found.table.score['best']==expected.score
    assert found.table.score['now']==before[m.name] and values(learn)==before
    learn.set_thresh(found)
    assert values(learn)[m.name]==expected.score

@pytest.mark.parametrize('average', ['micro','samples','weighted'])
def test_per_label_thresholds_beside_an_instance(average):
    "`thresh_find` tunes them jointly for the micro average, and label by label for the others"
    logits,targs = simulate(300, 4, density=0.3, skill=1.5)
    targs[15:,3] = 0 # label by label, it has too few positives, and gets the global threshold
    learn = make_learner(logits, targs)
    by_name = learn.thresh_find(average=average, show_plot=False)
    found = learn.thresh_find(metric=F1ScoreMulti(average=average), show_plot=False)
    whole,each = (best_thresholds(logits.sigmoid(), targs, average=o, per_label=True) for o in ('micro','macro'))
    assert found.per_label==by_name.per_label==(each if average=='weighted' else whole).thresh
    assert found.best==by_name.best
    assert ('global threshold for the macro average' in found.table.reading)==(average=='weighted')
    assert f"`per_label` optimises f1_score_{'macro' if average=='weighted' else 'micro'}" in found.table.reading

def test_found_thresholds_are_set_everywhere(tmp_path):
    logits,targs = simulate(bias=-6)
    m = [*multilabel_metrics(),
         F1ScoreMulti(0., sigmoid=False, average='micro', name='on_logits'),
         F1ScoreMulti(average='micro', min_labels=0, labels=[1,2], name='two')]
    vocab = [f'l{i}' for i in range(20)]
    learn = make_learner(logits, targs, m, cbs=ZeroLabelsCallback(), vocab=vocab, path=tmp_path)
    with warnings_as('ignore'):
        found = learn.thresh_find()
        ax = plt.gca()
        labels = [o.get_label().split(':')[0] for o in ax.lines[1:]]
        assert labels==['predicting nothing','best','cardinality','now']
        plt.close()
        x,curve = ax.lines[0].get_data()
        best = best_thresholds(logits, targs, sigmoid=True)
        assert found.best==best.thresh
        assert best.score==pytest.approx(float(max(curve)), abs=1e-12) # the curve's peak is marked as the best
        assert x[curve.argmax()]==pytest.approx(found.best, rel=1e-4)
        assert found.per_label==best_thresholds(logits, targs, per_label=True, sigmoid=True).thresh
        assert (logits.sigmoid()>found.cardinality).sum()==targs.sum()
        learn.thresh_find(dl=learn.dls.train, show_plot=False)
        for thresh,min_labels in ((found.best,0), (found.per_label,0), (0.3,1)):
            learn.set_thresh(thresh, min_labels)
            v = values(learn)
            d = binarize(logits, thresh, min_labels=min_labels)
            for name in ('f1_samples','f1_macro'):
                f1 = skm.f1_score(targs, d, average=name[3:], zero_division=0)
                assert v[name]==pytest.approx(f1, abs=1e-12)
            assert v['on_logits']==pytest.approx(v['f1_micro'], abs=1e-3)
            assert v['two']==pytest.approx(skm.f1_score(targs[:,1:3], d[:,1:3], average='micro'))
            r = learn.zero_labels.records[-1]
            assert r.pred_per_sample==pytest.approx(d.sum().item()/400) and not r.pitfalls
            assert torch.equal(learn.get_preds(with_decoded=True)[2], d)
            learn.export('l.pkl')
            with learn.no_bar(): again = load_learner(tmp_path/'l.pkl')
            again.dls = learn.dls
            test_eq(values(again), v)
            assert torch.equal(again.get_preds(with_decoded=True)[2], d)

def test_other_learners_keep_their_thresholds():
    "All DataLoaders have the same object as `MultiCategorize.loss_func`, and Learners may share a list of metrics"
    loss,metrics = BCEWithLogitsLossFlat(),multilabel_metrics()
    a,b = (make_learner(*simulate(40), metrics, loss_func=loss) for _ in range(2))
    before = values(b)
    a.set_thresh(0.9, min_labels=2)
    assert {m.thresh for m in a.metrics}=={0.9} and {m.thresh for m in b.metrics}=={0.5}
    assert values(b)==before!=values(a)
    assert b.loss_func.thresh==loss.thresh==0.5 and not hasattr(loss, 'min_labels')
    assert a.loss_func.thresh==0.9
    assert torch.equal(b.get_preds(with_decoded=True)[2], simulate(40)[0]>0)
    # `copy` of a `partial` shares its attributes
    loss = partial(F.binary_cross_entropy_with_logits)
    loss.activation,loss.decodes = torch.sigmoid,lambda x: x>0.5
    a,b = (make_learner(*simulate(40), loss_func=loss) for _ in range(2))
    a.set_thresh(0.9)
    assert a.loss_func.thresh==0.9 and not hasattr(b.loss_func, 'thresh')

def test_metrics_with_a_threshold_of_their_own_keep_it():
    logits,targs = simulate(100, bias=-3)
    class Named:
        "A loss that decodes logits, but is not fastai's"
        thresh = 0.5
        def __call__(self, p, y): return F.binary_cross_entropy_with_logits(p, y)
        def decodes(self, x): return x>self.thresh
        def activation(self, x): return x.sigmoid()
    for loss in (BCEWithLogitsLossFlat(), Named()):
        metrics = [F1ScoreMulti(),
                   F1ScoreMulti(0., sigmoid=False, name='on_logits'),
                   F1ScoreMulti(0.7, name='high'),
                   F1ScoreMulti([0.2]*20, name='low')]
        learn = make_learner(logits, targs, metrics, loss_func=loss)
        told = ('high, low: custom thresholds, not changed by `set_thresh`. To change them, create the '
                'metrics without thresh=')
        with pytest.warns(UserWarning, match=told): learn.set_thresh(0.2)
        v = values(learn)
        assert v['f1_score']==F1ScoreMulti(0.2)(logits, targs)
        assert v['on_logits']==pytest.approx(v['f1_score'], abs=1e-6)
        assert v['high']==F1ScoreMulti(0.7)(logits, targs)

BY_LABEL = (0.1,0.2,0.3,0.4)

@pytest.mark.parametrize('of_loss,of_metric,follows', [
    (0.2, 0.2, True), (0.2, 0.5, True), (0.2, 0.3, True), # the loss function's, the default, the new one
    (0.2, 0.2+1e-7, True), (0.2, 0.205, False), (0.2, 0.25, False),
    (0.2, (0.2,)*4, False), ((0.2,)*4, 0.2, False), # one per label, beside a number
    (BY_LABEL, BY_LABEL, True), (BY_LABEL, BY_LABEL[::-1], False), (BY_LABEL, 0.2, False), (0.2, BY_LABEL, False)])
def test_which_thresholds_of_metrics_are_custom(of_loss, of_metric, follows):
    loss = BCEWithLogitsLossFlat(thresh=of_loss)
    learn = make_learner(*simulate(40, 4), [F1ScoreMulti(of_metric, name='f1')], loss_func=loss)
    with recording(learn) as caught: learn.set_thresh(0.3)
    told = [str(o.message) for o in caught if issubclass(o.category, UserWarning)]
    custom = 'f1: custom thresholds, not changed by `set_thresh`. To change them, create the metrics without thresh='
    assert told==([] if follows else [custom])
    assert learn.metrics[0].thresh==(0.3 if follows else of_metric)

def test_thresholds_by_name_are_replaced_with_their_names():
    logits,targs = simulate(200, 4, density=0.3, skill=1.)
    metric = F1ScoreMulti(dict(d=0.2, c=0.2, b=0.2, a=0.2), average='micro', name='f1')
    learn = make_learner(logits, targs, [metric], vocab=list('abcd'), loss_func=BCEWithLogitsLossFlat(thresh=(0.2,)*4))
    learn.set_thresh(dict(b=0.9, a=0.001, c=0.5, d=0.1))
    decoded = learn.get_preds(with_decoded=True)[2]
    assert torch.equal(decoded, logits.sigmoid()>tensor(0.001, 0.9, 0.5, 0.1))
    assert values(learn)['f1']==pytest.approx(skm.f1_score(targs, decoded, average='micro'))

def test_labels_that_a_dict_leaves_out_keep_their_threshold():
    logits,targs = simulate(200, 4, density=0.3, skill=1.)
    learn = make_learner(logits, targs, F1ScoreMulti(average='micro', name='f1'), vocab=list('abcd'))
    learn.set_thresh(dict(c=0.1))
    assert learn.loss_func.thresh==(0.5,0.5,0.1,0.5)==learn.metrics[0].rule.thresh
    learn.set_thresh(dict(a=0.2, d=0.9))
    assert learn.loss_func.thresh==(0.2,0.5,0.1,0.9)
    some = dict(b=0.3)
    assert MultiLabelInterpretation.from_learner(learn, thresh=some).thresh==(0.2,0.3,0.1,0.9)
    of_all = learn.accuracy_report(thresh=(0.2,0.3,0.1,0.9), ci=None)
    pd.testing.assert_frame_equal(pd.DataFrame(learn.accuracy_report(thresh=some, ci=None)), pd.DataFrame(of_all))
    with pytest.raises(ValueError, match=r"labels \['e'\], which are not here") as e:
        learn.set_thresh(dict(a=0.1, e=0.2))
    assert learn.loss_func.thresh==(0.2,0.5,0.1,0.9) and '[]' not in str(e.value)

def test_which_limits_metrics_keep():
    "Limits of their own, not those of an earlier `set_thresh`"
    metrics = [F1ScoreMulti(name='plain'), F1ScoreMulti(max_labels=2, name='at most 2'),
               F1ScoreMulti(min_labels=3, max_labels=3, name='top 3')]
    learn = make_learner(*simulate(40, 6), metrics)
    def rules(): return [(m.rule.thresh, m.rule.min_labels, m.rule.max_labels) for m in learn.metrics]
    learn.set_thresh(0.3, min_labels=1, max_labels=1)
    assert rules()==[(0.3,1,1), (0.3,0,2), (0.5,3,3)]
    learn.set_thresh(0.4, min_labels=1) # Top 1 is over
    assert rules()==[(0.4,1,None), (0.4,0,2), (0.5,3,3)]
    assert learn.metrics[2] is metrics[2]

class OfProbs:
    "A loss function that takes probabilities, and decodes"
    thresh = 0.5
    def __call__(self, p, y): return F.binary_cross_entropy(p, y)
    def decodes(self, x): return x>self.thresh

def test_metrics_of_probabilities_stay_that():
    metrics = [F1ScoreMulti(sigmoid=False, name='probs'), F1ScoreMulti(name='logits')]
    learn = make_learner(*simulate(40), metrics, Sigmoid(), loss_func=OfProbs(), cbs=ZeroLabelsCallback(sigmoid=False))
    with warnings_as('ignore'): learn.set_thresh(0.3)
    assert [m.rule.sigmoid for m in learn.metrics]==[False,True]
    assert not learn.zero_labels.sigmoid and torch.equal(
        learn.get_preds(with_decoded=True)[2], simulate(40)[0].sigmoid()>0.3)

def test_metrics_of_fastai_are_named_unless_they_agree():
    learn = make_learner(*simulate(40), [partial(accuracy_multi, thresh=0.3), torch.dist])
    with warnings_as('error'): learn.set_thresh(0.3)
    told = "^accuracy_multi: functions and fastai's own metrics keep"
    with pytest.warns(UserWarning, match=told): learn.set_thresh(0.4)

def test_nothing_is_changed_by_a_bad_argument():
    learn = make_learner(*simulate(40), multilabel_metrics())
    loss = learn.loss_func
    for args in ((0.3,-1), (0.3,1.5), (2.,), ([0.3,0.4],)):
        if args[0]==[0.3,0.4]: learn.dls.vocab = list('abcdefghijklmnopqrst')
        with pytest.raises(ValueError): learn.set_thresh(*args)
    assert learn.loss_func is loss and vars(loss).get('decodes') is None
    assert all(m.thresh==0.5 for m in learn.metrics)
    learn.set_thresh(0.3, 1.)
    assert learn.get_preds(with_decoded=True)[2].any(1).all()

@pytest.mark.parametrize('mean', [slow(-12), 0, slow(14)])
def test_decoded_is_what_was_counted(mean):
    "Saturated models, thresholds equal to a score, and tuned thresholds, whose score the metrics reproduce"
    logits,targs = simulate(2000, 7, density=0.3, skill=1., bias=mean)
    scores = logits.sigmoid()
    def check(learn, *args):
        learn.set_thresh(*args)
        v = values(learn)
        preds,_,decoded = learn.get_preds(with_decoded=True)
        for name,average in (('f1_micro','micro'), ('f1_macro','macro')):
            f1 = skm.f1_score(targs, decoded, average=average, zero_division=0)
            assert v[name]==pytest.approx(f1, abs=1e-12)
        assert (preds-scores).abs().max()<=1.2e-7
        return v
    on_logits = F1ScoreMulti(0., sigmoid=False, average='micro', name='on_logits')
    learn = make_learner(logits, targs, [*multilabel_metrics(), on_logits], bs=500)
    for s in scores.flatten()[::1000].tolist(): # thresholds that are scores
        v = check(learn, s)
        assert v['on_logits']==v['f1_micro']
    for average in ('micro','macro','samples'):
        best = best_thresholds(*learn.get_preds(), average=average)
        v = check(learn, best.thresh)
        assert v[f'f1_{average}']==pytest.approx(best.score, abs=1e-12)

def test_predict_follows_set_thresh(digits_dls):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, loss_func=BCEWithLogitsLossFlat(),
                           metrics=multilabel_metrics(), cbs=ZeroLabelsCallback()).remove_cb(ProgressCallback)
    item = digits_dls.valid_ds.items.iloc[0]
    for thresh,n in ((0.,20), (1.,0)):
        learn.set_thresh(thresh)
        assert len(learn.predict(item)[0])==n
    learn.set_thresh(1., min_labels=2)
    assert len(learn.predict(item)[0])==2
    learn.show_results(max_n=2)

def test_what_cannot_be_set_is_named():
    logits,targs = simulate(50)
    learn = make_learner(logits, targs, loss_func=nn.BCEWithLogitsLoss())
    with pytest.raises(ValueError, match='BCEWithLogitsLoss.*does not decode.*BCEWithLogitsLossFlat'):
        learn.set_thresh(0.2)
    learn = make_learner(logits, targs, vocab=list('abcdefghijklmnopqrst'))
    with pytest.raises(ValueError, match='2 values.*20 labels'): learn.set_thresh([0.1,0.2])
    with pytest.raises(ValueError, match='thresh=3'): learn.set_thresh(3)

def test_metrics_follow_set_thresh_after_a_new_loss():
    "Metrics that have followed `set_thresh` follow it again after the loss function was replaced"
    logits,targs = simulate(200, bias=-3)
    weight = torch.full((20,), 5.)
    metrics = [*multilabel_metrics(), F1ScoreMulti(0.7, name='own')]
    learn = make_learner(logits, targs, metrics, cbs=ZeroLabelsCallback())
    for before,after in ((0.2,0.6), ([0.2]*20,0.3), (0.3,[0.1]*20)):
        with pytest.warns(UserWarning, match='^own: custom thresholds'): learn.set_thresh(before)
        learn.loss_func = BCEWithLogitsLossFlat(pos_weight=weight)
        with pytest.warns(UserWarning, match='^own: custom thresholds'): learn.set_thresh(after)
        v,decoded = values(learn),learn.get_preds(with_decoded=True)[2]
        f1 = skm.f1_score(targs, decoded, average='micro')
        assert v['f1_micro']==pytest.approx(f1, abs=1e-12)==learn.accuracy_report(ci=None).value['f1_micro']
        assert v['own']==F1ScoreMulti(0.7)(logits, targs)
    learn = make_learner(logits, targs, multilabel_metrics(), loss_func=BCEWithLogitsLossFlat(thresh=0.2))
    with warnings_as('error'):
        for thresh in (0.3, [0.2]*20, 0.5): learn.set_thresh(thresh)
        for found in (learn.thresh_find(show_plot=False), best_thresholds(*learn.get_preds(), average='macro')):
            learn.set_thresh(found)

def test_a_weighted_loss_needs_no_vocab():
    weighted = BCEWithLogitsLossFlat(pos_weight=torch.full((20,), 5.))
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), loss_func=weighted)
    learn.set_thresh(0.3)
    assert learn.metrics[0].thresh==learn.loss_func.thresh==0.3

def test_a_loss_for_regression_is_named():
    learn = make_learner(*simulate(200, bias=-3), loss_func=MSELossFlat())
    for f in (learn.accuracy_report, learn.thresh_find, lambda: MultiLabelInterpretation.from_learner(learn)):
        with pytest.raises(ValueError, match=r'\(MSELoss\).*BCEWithLogitsLossFlat'): f()

def test_what_is_required_is_shown_beside_each():
    logits,targs = simulate(300, 6, density=0.3)
    learn = make_learner(logits, targs)
    found = learn.thresh_find(metric='precision', average='micro', at_recall=0.8, show_plot=False)
    recall = found.table.recall
    expected = RecallMulti(found.cardinality, average='micro')(logits, targs)
    assert recall['best']>=0.8 and recall['cardinality']==pytest.approx(expected)
    assert 'Required: a recall of at least 0.8.' in found.table.reading
    assert found.table.recall_held_out.notna()['best'] and 'required' not in found.table

def test_a_metric_of_samples_alone_has_no_threshold_per_label():
    logits,targs = simulate(200, 6, density=0.4)
    learn = make_learner(logits, targs)
    for metric,average in ((SubsetAccuracy,'samples'), (AccuracyLift,'micro')):
        found = learn.thresh_find(metric=metric, average=average, show_plot=False)
        assert found.per_label is None and [*found.table.index]==['now','best','cardinality']
        assert found.best==best_thresholds(logits.sigmoid(), targs, metric, average).thresh

def test_thresholds_in_bins_leave_the_learner_as_it_was():
    logits,targs = simulate(500, 6, density=0.3, skill=2.)
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.fit(1)
    before = dict(vars(learn.recorder)),len(learn.zero_labels.records),learn.metrics,[*learn.cbs]
    found = learn.thresh_find(bins=1024)
    plt.close()
    kw = dict(sigmoid=True, bins=1024)
    assert found.best==best_thresholds(logits, targs, **kw).thresh
    assert found.cardinality==best_thresholds(logits, targs, 'cardinality', **kw).thresh
    assert found.per_label==best_thresholds(logits, targs, per_label=True, **kw).thresh
    exact = learn.thresh_find(show_plot=False)
    assert found.table.score['now']==pytest.approx(exact.table.score['now'], abs=1e-12)
    assert found.table.score['best']==pytest.approx(exact.table.score['best'], abs=0.005)
    assert (len(learn.zero_labels.records),learn.metrics,[*learn.cbs])==before[1:]
    assert learn.recorder.values==before[0]['values']

class Interrupting(Callback):
    def after_pred(self): raise KeyboardInterrupt

def test_an_interrupt_leaves_everything_as_it_was(monkeypatch):
    learn = make_learner(*simulate(100), multilabel_metrics())
    learn.fit(1)
    state,metrics,cbs = learn.recorder.values,learn.metrics,[*learn.cbs]
    threads = torch.get_num_threads()
    def interrupted(f):
        with pytest.raises(KeyboardInterrupt): f()
        assert learn.recorder.values==state and [*learn.metrics]==[*metrics] and [*learn.cbs]==cbs
        assert torch.get_num_threads()==threads
    with learn.added_cbs(Interrupting()):
        cbs = [*learn.cbs]
        for bins in (None, 64): interrupted(lambda: learn.thresh_find(bins=bins, show_plot=False))
    cbs = [*learn.cbs]
    def stop(*args): raise KeyboardInterrupt
    monkeypatch.setattr(Objective, 'best', stop)
    for bins in (None, 64): interrupted(lambda: learn.thresh_find(bins=bins, show_plot=False))

@pytest.mark.parametrize('name', ['judge','ZeroLabelsWarning','ZeroLabelsCallback','ZeroLabelsCallback.explain',
    'ZeroLabelsCallback.report','ZeroLabelsCallback.plot','Learner.accuracy_report','Learner.evaluate',
    'Learner.export_plain','Learner.set_thresh','Learner.thresh_find','Recorder.plot_metrics','SuggestedThresholds'])
def test_examples_of_docstrings_run(name, tmp_path):
    logits,targs = simulate(200, 5, density=0.3)
    learn = make_learner(logits, targs, multilabel_metrics(), path=tmp_path, cbs=ZeroLabelsCallback())
    with warnings_as('ignore'), learn.no_logging(): learn.fit(1, 0.)
    code = example(eval(name))
    assert name.rpartition('.')[2] in code or name=='SuggestedThresholds'
    if name=='ZeroLabelsCallback': learn.remove_cbs(learn.cbs.filter(risinstance(ZeroLabelsCallback)))
    with warnings_as('ignore'), learn.no_logging():
        exec(code, dict(globals(), learn=learn, probs=logits.sigmoid(), targs=targs))
    plt.close('all')

def test_groups_are_a_column_of_the_items_or_an_array(digits_dls):
    from fastai_mlmetrics.demo import get_learner
    learn = get_learner(digits_dls)
    with learn.no_bar(), learn.no_logging(): learn.fit(1, 1e-3)
    items = digits_dls.valid.items
    items['writer'] = [f'writer {i%12}' for i in range(len(items))]
    try:
        for f in (learn.accuracy_report, partial(learn.thresh_find, show_plot=False)):
            by_name,by_array = f(groups='writer'),f(groups=items.writer.to_numpy())
            assert repr(by_name)==repr(by_array) and 'The 12 groups are' in one_line(by_name)
        interp = MultiLabelInterpretation.from_learner(learn, groups='writer')
        assert interp.predictions.n_independent==12
        in_bins = [learn.thresh_find(groups=o, bins=1024, show_plot=False) for o in ('writer',items.writer)]
        assert repr(in_bins[0])==repr(in_bins[1])
        assert repr(in_bins[0])!=repr(learn.thresh_find(bins=1024, show_plot=False))
        for f in (learn.accuracy_report, learn.thresh_find, partial(MultiLabelInterpretation.from_learner, learn)):
            with pytest.raises(ValueError, match="'writr' is no column of the loader's items: did you mean 'writer'"):
                f(groups='writr')
    finally: items.drop(columns='writer', inplace=True)

def test_a_column_needs_a_table():
    learn = make_learner(*simulate(100, 3))
    with pytest.raises(ValueError, match='which are not a table: pass an array'): learn.thresh_find(groups='patient')

def test_a_threshold_knows_the_samples_that_it_was_tuned_on():
    "Its score on them is optimistic, and training makes it stale"
    logits,targs = simulate(300, 6, density=0.3)
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback())
    assert '`now` was tuned' not in learn.thresh_find(show_plot=False).table.reading
    learn.set_thresh(learn.thresh_find(show_plot=False))
    again = learn.thresh_find(show_plot=False)
    assert '`now` was tuned on these samples, so its score is optimistically biased.' in again.table.reading
    learn.set_thresh(again) # It is kept, and still known
    assert 'tuned on these samples, so' in learn.thresh_find(show_plot=False).table.reading
    with pytest.warns(ZeroLabelsWarning, match=r'(?s)was tuned before this training, .*Tune it'): learn.fit(1)
    learn.set_thresh(0.3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        learn.fit(1)
    assert not any('tuned before' in str(o.message) for o in said)
    assert 'tuned on these samples, which' not in learn.thresh_find(show_plot=False).table.reading

def test_a_constraint_for_some_labels_and_with_confidence():
    logits,targs = simulate(600, 4, density=0.3)
    learn = make_learner(logits, targs)
    found = learn.thresh_find(at_recall={1: 0.9}, show_plot=False)
    at_b = found.table.recall[1]
    assert at_b>=0.9 and found.per_label is not None
    sure = learn.thresh_find(metric='precision', average='macro', at_recall=0.9, confidence=0.9, show_plot=False)
    assert (sure.table.recall[[0,1,2,3]]>=0.9).all() and 'with a confidence of 0.9' in sure.table.reading

@pytest.mark.parametrize('average', ['micro','macro'])
def test_thresholds_of_chosen_labels_leave_the_others(average):
    logits,targs = simulate(300, 6, density=0.2, skill=2.)
    vocab,before = [*'abcdef'],[0.1,0.2,0.3,0.4,0.5,0.6]
    learn = make_learner(logits, targs, [F1ScoreMulti(average=average)], vocab=vocab)
    def find(learn=learn, **kwargs): return learn.thresh_find(average=average, show_plot=False, **kwargs)
    learn.set_thresh(before)
    found = find(labels=['e','b'])
    cols = [4,1]
    plain = make_learner(logits[:,cols], targs[:,cols], [F1ScoreMulti(average=average)], vocab=['e','b'])
    plain.set_thresh([before[i] for i in cols])
    expected = find(plain)
    assert found==expected and found.thresh==expected.thresh and found.table.equals(expected.table)
    searched = best_thresholds(*learn.get_preds(), average=average, vocab=vocab, labels=['e','b'])
    for result in (found, searched):
        learn.set_thresh(before)
        learn.set_thresh(result)
        of_both = np.broadcast_to(as_thresh(result), 2)
        same(learn.loss_func.thresh, [0.1,of_both[1],0.3,0.4,of_both[0],0.6])
        assert learn.metrics[0].thresh==learn.loss_func.thresh
    with pytest.raises(ValueError, match='needs all scores: leave out bins'): find(labels=['e'], bins=99)

def test_chosen_labels_are_scored_with_the_limits_of_all():
    logits,targs = simulate(300, 6, density=0.2, skill=2.)
    learn = make_learner(logits, targs, multilabel_metrics(), vocab=[*'abcdef'])
    learn.set_thresh([0.1,0.2,0.3,0.4,0.5,0.6], max_labels=1)
    found = learn.thresh_find(labels=['a','f'], show_plot=False)
    now = F1ScoreMulti([0.1,0.2,0.3,0.4,0.5,0.6], labels=[0,5], average='micro', max_labels=1)(logits, targs)
    assert found.table.score['now, max_labels=1']==pytest.approx(now, abs=1e-12)

def test_chosen_labels_without_names_cannot_be_set():
    learn = make_learner(*simulate(300, 6, density=0.2, skill=2.), multilabel_metrics())
    for average in ('micro','macro'):
        found = learn.thresh_find(average=average, labels=[1,4], show_plot=False)
        with pytest.raises(ValueError, match=r'for the labels \[1, 4\] only.*set `learn.dls.vocab`'):
            learn.set_thresh(found)

# What `thresh_find` passes on

@pytest.mark.parametrize('bins', [None,1024])
def test_folds_are_those_of_arrays(bins):
    "Of the same seed, groups and ignored targets"
    logits,targs = simulate(120, 3, density=0.4, skill=1.)
    targs[::5] = math.nan
    learn = make_learner(logits, targs, [F1ScoreMulti(ignore_index=math.nan)], bs=50)
    for kw in (dict(seed=7, cv=3), dict(groups=np.arange(120)//4, cv=3)):
        found = learn.thresh_find(bins=bins, show_plot=False, **kw).table.held_out
        for name in ('best','per_label'):
            expected = best_thresholds(logits.sigmoid(), targs, per_label=name=='per_label',
                                       ignore_index=math.nan, bins=bins, **kw)
            assert found[name]==pytest.approx(expected.held_out, abs=1e-9)

@pytest.mark.parametrize('bins', [None,64])
def test_data_without_a_threshold_are_an_error(bins):
    logits,targs = simulate(60, 3)
    learn = make_learner(logits, targs*math.nan, loss_func=BCEWithLogitsLossFlat())
    with pytest.raises(ValueError, match='there are no samples'):
        learn.thresh_find(ignore_index=math.nan, bins=bins, show_plot=False)
    learn = make_learner(logits, targs, loss_func=MSELossFlat())
    with pytest.raises(ValueError, match='takes neither logits nor probabilities'):
        learn.thresh_find(bins=bins, show_plot=False)

def test_saturated_logits_are_told_of():
    "Thresholds on logits would separate them; a model of probabilities has none"
    logits,targs = simulate(200, 3, density=0.4, bias=0.)
    learn = make_learner(logits+40, targs)
    with pytest.warns(UserWarning, match=r'get_preds\(act=noop\).*set_thresh takes thresholds on probabilities only'):
        learn.thresh_find(show_plot=False)
    learn = make_learner(logits+40, targs, model=Sigmoid(), loss_func=OfProbs())
    with recording(learn) as caught: learn.thresh_find(show_plot=False)
    assert not any('set_thresh takes' in str(o.message) for o in caught)

def test_a_constraint_may_name_labels():
    logits,targs = simulate(120, 3, density=0.4)
    learn,unnamed = make_learner(logits, targs, vocab=[*'abc']),make_learner(logits, targs)
    by_name,by_number = (o.thresh_find(at_recall={k: 0.9}, show_plot=False) for o,k in ((learn,'b'), (unnamed,1)))
    assert by_name==by_number and by_name.table.recall['b']==by_number.table.recall[1]>=0.9
    with pytest.raises(ValueError, match='bb'): learn.thresh_find(at_recall={'bb': 0.9}, show_plot=False)

def test_the_reading_says_what_each_row_aims_at():
    learn = make_learner(*simulate(120, 3, density=0.05, bias=-2.))
    def reading(**kwargs): return learn.thresh_find(show_plot=False, cv=None, **kwargs).table.reading
    micro,macro = reading(),reading(average='macro')
    counts_all = ', which also counts false positives in samples without labels; `cardinality`'
    assert counts_all in micro and counts_all not in macro and '; `per_label` optimises f1_micro, by' in micro
    assert macro.endswith('Labels with a fallback reason use the best global threshold for the macro average.')
    of_recall = reading(average='macro', metric='precision', at_recall=0.8)
    assert 'Labels with a fallback' not in of_recall
    assert '`per_label`' not in reading(metric=SubsetAccuracy, average='samples').partition('`best` optimises')[2]

@pytest.mark.parametrize('n,ignored,told', [(25,None,False), (26,None,True), (26,-1,True)])
def test_samples_without_a_label_are_told_of(n, ignored, told):
    "The samples average does not count their false positives"
    logits,targs = simulate(100, 3, density=0.4)
    targs[:] = tensor([1.,0,0])
    targs[:n] = 0
    learn = make_learner(logits, targs)
    def find(average):
        with recording(learn) as caught: learn.thresh_find(average=average, ignore_index=ignored, show_plot=False)
        return [str(o.message) for o in caught if 'average=' in str(o.message)]
    known = '' if ignored is None else ' known to be true'
    assert [o.partition(',')[0] for o in find('samples')]==[f'26% of the samples have no label{known}']*told
    assert find('micro')==[]

def test_found_thresholds_carry_what_belongs_to_them():
    logits,targs = simulate(200, 3, density=0.4)
    learn = make_learner(logits, targs)
    learn.set_thresh(0.999, min_labels=1)
    found = learn.thresh_find(show_plot=False)
    assert advised(found)[1]=='set' and found.limits=={}
    assert found.tuned_on==(200, *targs.sum(0).int().tolist())
    learn.set_thresh(found)
    learn.loss_func.tuned_on = (1,2,3,4) # Other samples
    kept = learn.thresh_find(show_plot=False)
    assert advised(kept)[1]=='keep' and kept.tuned_on==(1,2,3,4) and 'was tuned on these' not in kept.table.reading

def test_a_search_shows_progress_where_the_learner_does(monkeypatch):
    from fastai_mlmetrics.learner import thresholds
    learn,shown,tune = make_learner(*simulate(60, 3)),[],thresholds._tune
    def watched(objective, label_objective, table, vocab):
        shown.append(table.show)
        return tune(objective, label_objective, table, vocab)
    monkeypatch.setattr(thresholds, '_tune', watched)
    learn.thresh_find(show_plot=False)
    learn.add_cb(ProgressCallback())
    with learn.no_logging(), contextlib.redirect_stdout(io.StringIO()): learn.thresh_find(show_plot=False)
    assert shown==[False,True]

# What `set_thresh` sets

def test_limits_that_are_passed_replace_those_of_a_found_threshold():
    learn = make_learner(*simulate(60, 3))
    found = SuggestedThresholds(0.3, 0.4).with_table(None, thresh=0.3, names=None, tuned_on=(),
                                                     limits=dict(min_labels=1))
    for kw,expected in (({},(1,None)), (dict(min_labels=2),(2,None)), (dict(max_labels=2),(0,2))):
        learn.set_thresh(found, **kw)
        assert (learn.loss_func.thresh,learn.loss_func.min_labels,learn.loss_func.max_labels)==(0.3,*expected)

@pytest.mark.parametrize('thresh', [0, 1, 0., 1., [0,1,0.5]])
def test_0_and_1_are_thresholds(thresh):
    learn = make_learner(*simulate(60, 3), [F1ScoreMulti()])
    learn.set_thresh(thresh)
    assert learn.loss_func.thresh==as_thresh(thresh)==learn.metrics[0].thresh

@pytest.mark.parametrize('logits', [True,False])
@pytest.mark.parametrize('sigmoid', [True,False])
def test_the_callback_follows(logits, sigmoid):
    kw = dict() if logits else dict(model=Sigmoid(), loss_func=OfProbs())
    learn = make_learner(*simulate(60, 3), cbs=ZeroLabelsCallback(thresh=0.7, sigmoid=sigmoid), **kw)
    learn.set_thresh(0.3)
    assert (learn.zero_labels.thresh,learn.zero_labels.sigmoid)==(None, logits or sigmoid)

def test_a_model_of_several_outputs_is_named():
    class Two(Same):
        def forward(self, x): return x+0*self.w,x
    logits,targs = simulate(60, 3)
    learn = make_learner(logits, targs, model=Two(), loss_func=lambda p,y: F.mse_loss(p[0], y)+p[1].abs().sum())
    for f in (lambda: learn.set_thresh(0.3), lambda: learn.thresh_find(bins=64, show_plot=False)):
        with pytest.raises(ValueError, match='returns a tuple of 2'): f()
