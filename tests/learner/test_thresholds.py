"Thresholds of a Learner: `thresh_find` and `set_thresh`"
import contextlib, io, itertools, json, pickle, sklearn.metrics as skm
from helpers import *
from fastai_mlmetrics.core.messages import said
from fastai_mlmetrics.core.rules import as_thresh
from fastai_mlmetrics.thresholds.tuning import Objective
from fastai_mlmetrics.learner.thresholds import SuggestedThresholds
from fastai_mlmetrics.demo import ticket_dls, ticket_table

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

def test_thresholds_outlive_save_and_load(tmp_path):
    "As the docstring of `set_thresh` says"
    def new(): return make_learner(*simulate(100, bias=-1), multilabel_metrics(), vocab=NAMES, path=tmp_path)
    learn,again = new(),new()
    learn.set_thresh(np.linspace(0.1, 0.9, 20))
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
    assert [*t.index]==['now','best','per_label',*NAMES] and found._fields==('best','per_label')
    assert [*t.columns]==['threshold','held_out','score','range','support','advice']
    best,per_label = found
    for name,thresh in dict(now=0.5, best=best, per_label=tensor(per_label)).items():
        f1 = skm.f1_score(targs, scores>thresh, average='micro')
        assert t.score[name]==pytest.approx(f1, abs=1e-12), name
    one,each = (best_thresholds(scores, targs, per_label=o) for o in (False,True))
    shown = ['threshold','range','score','held_out']
    test_eq([*t.loc['best', shown]], [*one.table.loc['best', shown]])
    assert np.isnan(t.held_out['now']) # 0.5 might have been tuned on these samples
    test_close(t.held_out[3:].values, each.table.held_out[2:].values, eps=1e-12)
    test_eq([*t.range[3:]], [*each.table.range[2:]])
    test_eq(t.support[3:].tolist(), each.table.support[2:].tolist())
    assert max(map(len, lines(found)))<=80
    for o,at in ((found.per_label, per_label), (each, per_label), (one, best)):
        learn.set_thresh(o)
        assert learn.loss_func.thresh==at
    assert learn.thresh_find(show_plot=False).table.score['now']==pytest.approx(one.score)
    learn.set_thresh(each, min_labels=1)
    now = learn.thresh_find(show_plot=False).table.score['now, min_labels=1']
    assert now==learn.evaluate().value['f1_micro']

def advised(found):
    "The row that the table marks"
    row, = found.table.index[found.table.advice=='set']
    return row

def of_scales(n=600, c=8, seed=0):
    "Labels whose scores differ in scale: one threshold for all is hopeless"
    logits,targs = simulate(n, c, density=0.2, skill=4., bias=-2, seed=seed)
    return logits/torch.logspace(0, 1, c) - torch.linspace(0, 3, c),targs

@pytest.mark.parametrize('bins', [None,512])
def test_per_label_thresholds_are_recommended_where_scores_differ_in_scale(bins):
    learn = make_learner(*of_scales(), multilabel_metrics(), vocab=list('abcdefgh'))
    found = learn.thresh_find(show_plot=False, bins=bins)
    t = found.table
    assert advised(found)=='per_label' and found.thresh==found.per_label
    said = re.search(r'^`per_label` is recommended: micro F1 ([\d.]+) is expected on new samples, ([\d.]+) '
                     r'\(95% interval ([\d.]+) to ([\d.]+)\) more than with the threshold in use \(0\.5\)\.', t.reading)
    held,gained,low,high = map(float, said.groups())
    assert held==pytest.approx(t.held_out['per_label'], abs=6e-4)
    assert low<gained<high and gained==pytest.approx(t.held_out['per_label']-t.score['now'], abs=6e-3)
    learn.set_thresh(pickle.loads(pickle.dumps(found)))
    assert learn.loss_func.thresh==found.per_label and values(learn)['f1_micro']==pytest.approx(t.score['per_label'])
    other = make_learner(*(o.flip(1) for o in of_scales()), vocab=list('hgfedcba'))
    other.set_thresh(found) # in the order of its labels
    assert other.loss_func.thresh==found.per_label[::-1]
    for per_label in (False,True): # as asked for
        asked = learn.thresh_find(show_plot=False, bins=bins, per_label=per_label)
        assert asked==found and asked.thresh==(found.per_label if per_label else found.best)

# What was asked for is what is set

@pytest.fixture(scope='module')
def tickets():
    "A Learner of the toy tickets after a short training"
    from fastai.tabular.all import tabular_learner
    with warnings_as('ignore'):
        learn = tabular_learner(ticket_dls(ticket_table(1500)), layers=[10], metrics=multilabel_metrics(),
                                loss_func=BCEWithLogitsLossFlat(), cbs=ZeroLabelsCallback()).remove_cb(ProgressCallback)
        with learn.no_logging(): learn.fit(2, 0.02)
    return learn

AFTER = {
    'micro': lambda learn: learn.set_thresh(learn.thresh_find(show_plot=False)),
    'macro': lambda learn: learn.set_thresh(learn.thresh_find(show_plot=False, average='macro')),
    'a required recall': lambda learn: learn.set_thresh(learn.thresh_find(show_plot=False, at_recall={'crash': 0.99})),
    'one of its own': lambda learn: learn.set_thresh(0.37, min_labels=1),
    'further training': lambda learn: (AFTER['micro'](learn), learn.fit(1, 0.01))}
SEARCHES = dict(micro={}, macro=dict(average='macro'), each=dict(per_label=True),
                recall=dict(at_recall={'refund': 0.95}, confidence=0.9), average=dict(at_recall=0.9))

@pytest.mark.parametrize('before', AFTER)
def test_what_is_found_is_what_is_set(before, tickets, capsys):
    "In the loss function, the metrics and the predictions; with one printed line; whatever was in use"
    learn = tickets
    probs,targs = learn.get_preds()
    with warnings_as('ignore'), learn.no_logging(): AFTER[before](learn)
    if before=='further training': probs,targs = learn.get_preds()
    in_use = learn.loss_func.thresh
    for name,kw in SEARCHES.items():
        learn.set_thresh(in_use, getattr(learn.loss_func, 'min_labels', 0))
        found = learn.thresh_find(show_plot=False, **kw)
        is_global = name in ('micro','average') and advised(found)=='best'
        assert found.thresh==(found.best if is_global else found.per_label)
        capsys.readouterr()
        learn.set_thresh(found)
        said, = capsys.readouterr().out.splitlines()
        row = found.table.loc[advised(found)]
        assert learn.loss_func.thresh==found.thresh and learn.loss_func.min_labels==0
        assert {m.rule.thresh for m in learn.metrics if m.uses_thresh}=={found.thresh}
        what = 'one threshold' if is_global else 'a threshold per label'
        assert re.match(rf'Set {what}, [\d.]+( to [\d.]+)?(, for a recall of at least [^:]+)?: '
                        rf'\w+ \w+ {row.held_out:.3f} is expected on new samples '
                        rf'\({found.table.score.iloc[0]:.3f} before(, tuned on these samples)?\)\.$', said)
        decoded = (probs>tensor(found.thresh)).int()
        average = kw.get('average', 'micro')
        assert skm.f1_score(targs, decoded, average=average)==pytest.approx(row.score)
        assert learn.evaluate().value[f'f1_{average}']==pytest.approx(row.score)
        if name=='recall': assert skm.recall_score(targs[:,3], decoded[:,3])>=0.95
        if name=='average': assert skm.recall_score(targs, decoded, average='micro')>=0.9

def test_labels_without_a_requirement_get_what_they_get_without_it(tickets):
    learn = tickets
    for kw in ({}, dict(average='macro'), dict(per_label=True)):
        free = learn.thresh_find(show_plot=False, **kw)
        found = learn.thresh_find(show_plot=False, at_recall={'refund': 0.99}, **kw)
        of_free = np.broadcast_to(free.thresh, 4)
        assert found.thresh[:3]==tuple(of_free[:3]) and found.thresh[3]!=of_free[3] and found.best==free.best
        assert found.table.recall['refund']>=0.99 and advised(found)=='per_label'

def test_what_is_set_is_printed(capsys):
    "For what a search found; plain numbers say nothing"
    logits,targs = simulate(300, 6, density=0.3)
    learn = make_learner(logits, targs, vocab=[*'abcdef'])
    def printed(thresh):
        capsys.readouterr()
        learn.set_thresh(thresh)
        return capsys.readouterr().out
    found = learn.thresh_find(show_plot=False, per_label=False)
    held,now = found.table.held_out['best'],found.table.score['now']
    assert printed(found)==(f'Set one threshold, {found.best:.3g}: micro F1 {held:.3f} is expected on new samples '
                            f'({now:.3f} before).\n')
    for thresh in (0.3, found.best, found.per_label, dict(a=0.2)): assert printed(thresh)==''
    some = best_thresholds(logits.sigmoid(), targs, vocab=[*'abcdef'], labels=['b','c'])
    assert printed(some)==(f'Set one threshold for b, c, {some.thresh:.3g}: micro F1 {some.held_out:.3f} is expected '
                           'on new samples.\n')
    each = best_thresholds(logits.sigmoid(), targs, average='macro', cv=None)
    assert printed(each)==(f'Set a threshold per label, {min(each.thresh):.3g} to {max(each.thresh):.3g}: macro F1 '
                           f'is {each.score:.3f} on the samples used for tuning.\n')
    learn.set_thresh(0.2, min_labels=1)
    binned = learn.thresh_find(show_plot=False, bins=64) # Histograms cannot compare limits
    assert 'before' not in printed(binned) and 'is expected on new samples.' in binned.expects+'.'

@pytest.mark.parametrize('kw,match', [
    (dict(at_recall=0.9, confidence=0.9), 'confidence= is for the minimum of each label: pass per_label=True'),
    (dict(at_recall={'a': 0.9}, per_label=False), 'leave out per_label=False'),
    (dict(at_recall={'aa': 0.9}), "label 'aa' is not in the vocab: did you mean 'a'"),
    (dict(metric=SubsetAccuracy, average='samples', at_recall={'a': 0.9}), 'has no threshold per label'),
    (dict(metric=AccuracyLift, per_label=True), 'has no threshold per label'),
    (dict(at_recall=0.9, confidence=0.9, per_label=True, bins=64, groups=np.arange(120)//4),
     'leave bins out')], ids=str)
def test_what_cannot_be_asked_for(kw, match):
    learn = make_learner(*simulate(120, 3, density=0.4), vocab=[*'abc'])
    with pytest.raises(ValueError, match=match): learn.thresh_find(show_plot=False, **kw)

def test_a_requirement_is_said_with_its_confidence():
    "Also of labels by name or by number, and what is missed"
    logits,targs = simulate(300, 3, density=0.4)
    logits[:,2] = -logits[:,2] # Negatives have higher scores
    learn,unnamed = make_learner(logits, targs, vocab=[*'abc']),make_learner(logits, targs)
    def find(learn=learn, **kw): return learn.thresh_find(show_plot=False, **kw)
    said = 'it keeps a recall of at least 0.9 on new samples, with a confidence of 0.9. '
    assert said in find(average='macro', at_recall=0.9, confidence=0.9).table.reading
    assert said in find(at_recall=0.9, confidence=0.9, per_label=True).table.reading
    assert 'it keeps a recall of at least 0.9 for b on these samples. ' in find(at_recall={'b': 0.9}).table.reading
    assert find(at_recall={'b': 0.9})==find(unnamed, at_recall={1: 0.9})
    for kw in (dict(average='macro', at_precision=0.7), dict(at_precision=0.7, confidence=0.8, per_label=True)):
        missing = find(**kw).table
        assert missing.reading.startswith('`per_label` does not keep a precision of at least 0.7 on ')
        assert f' but comes nearest: precision of c is {missing.precision["c"]:.3f}. ' in missing.reading
        assert missing.precision['c']<0.7

def test_what_stands_under_the_table_and_how_the_recommended_row_is_seen():
    "At most two sentences on what it means, and once per process on independence; legends are folded"
    logits,targs = simulate(300, 6, density=0.3, skill=1.5, bias=-3)
    learn = make_learner(logits, targs, vocab=[*'abcdef'])
    first,second = learn.thresh_find(show_plot=False),learn.thresh_find(show_plot=False)
    *rows,meaning,independence = repr(first).split('\n\n')
    assert independence.startswith('Samples are taken as independent') and len(rows)==1
    assert repr(second).split('\n\n')==[*rows, meaning] and len(meaning.split())<40
    html = first._repr_html_()
    row, = re.findall('<tr style="font-weight:bold[^>]*>\\s*<th>(.*?)</th>', html)
    assert row==advised(first)
    ruled, = re.findall('<tr style="[^"]*border-bottom[^>]*>\\s*<th>(.*?)</th>', html)
    assert ruled=='per_label'
    assert [*first.table.columns[:2]]==['threshold','held_out'] # Also on a telephone
    folded, = re.findall('<details.*?</summary>(.*?)</details>', html)
    assert folded.startswith('Rows: <code>best</code> is one threshold for all labels') and 'Rows:' not in repr(first)
    for name in ('now','best','per_label','held_out','score','range','support','advice'):
        assert f'<code>{name}</code>' in folded
    assert 'fallback' not in folded and 'fallback' not in first.table

def test_states_without_a_comparison():
    logits,targs = simulate(300, 6, density=0.3, skill=1.5, bias=-3)
    found = make_learner(logits, targs).thresh_find(show_plot=False, cv=None)
    assert found.thresh==found.best and found.table.reading.startswith('`best` is recommended; its score is')
    found = make_learner(logits, targs, loss_func=nn.BCEWithLogitsLoss()).thresh_find(show_plot=False)
    assert re.match(r'With `\w+`, micro F1 [\d.]+ is expected on new samples\.', found.table.reading)
    one_label = make_learner(logits[:,:1], targs[:,:1]).thresh_find(show_plot=False, average='macro')
    assert one_label.per_label==(one_label.best,)==one_label.thresh
    # Without a fold with its only positive, F1 is undefined
    alone = torch.zeros_like(targs[:40])
    alone[3,0] = 1
    logits[3,0] = 9
    found = make_learner(logits[:40], alone).thresh_find(show_plot=False, zero_division=math.nan)
    assert np.isnan(found.table.held_out['best']) and 'so expect less on new ones' in found.table.reading

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
    "The curve's peak is marked as the best"
    learn = fitted(1)
    fig,axs = plt.subplots(1, 2)
    found = learn.thresh_find(ax=axs[1])
    assert not axs[0].lines and plt.get_fignums()==[fig.number]
    assert [o.get_label().split(':')[0] for o in axs[1].lines[1:]]==['predicting nothing','now','best']
    x,curve = axs[1].lines[0].get_data()
    assert max(curve)==pytest.approx(found.table.score['best'])
    assert x[curve.argmax()]==pytest.approx(found.best, rel=1e-4)
    learn.thresh_find(figsize=(3,2))
    assert list(plt.gcf().get_size_inches())==[3,2]
    learn.set_thresh([0.2]*20)
    learn.thresh_find() # 'now' is several thresholds, so it has no line
    assert len(plt.gca().lines)==3

def test_missing_labels_change_no_threshold():
    logits,targs = simulate(300, bias=-3)
    missing = targs.clone()
    missing[::4] = math.nan
    found = make_learner(logits, missing, vocab=NAMES).thresh_find(ignore_index=math.nan)
    known = ~missing[:,0].isnan()
    expected = make_learner(logits[known], targs[known], vocab=NAMES).thresh_find(show_plot=False)
    test_close(found.table.score, expected.table.score, eps=1e-12)
    assert max(plt.gca().lines[0].get_ydata())==pytest.approx(found.table.score['best'], abs=1e-9)

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
    with pytest.raises(TypeError, match="no argument 'plot': did you mean 'show_plot'"): learn.thresh_find(plot=False)

def test_a_vocab_of_another_length_is_an_error():
    learn = make_learner(*simulate(100), vocab=NAMES[:19])
    for f in (learn.thresh_find, learn.accuracy_report):
        with pytest.raises(ValueError, match='19 names.*20 labels'): f()

# Names of labels in tables and texts

def test_where_the_threshold_of_a_rare_label_is_from():
    logits,targs = simulate(300, 4, 0.1)
    targs[torch.arange(300)>15,3] = 0
    learn = make_learner(logits, targs, vocab=list('abcd'))
    found = learn.thresh_find(average='macro')
    assert [*found.table.fallback]==['']*6+['few positives'] and found.per_label[3]==found.best
    assert plt.gca().get_ylabel()=='f1_macro'
    assert 'fallback' not in learn.thresh_find(show_plot=False).table

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
    targs[8:,3] = 0 # label by label, it has too few positives, and gets the global threshold
    learn = make_learner(logits, targs)
    by_name = learn.thresh_find(average=average, show_plot=False)
    found = learn.thresh_find(metric=F1ScoreMulti(average=average), show_plot=False)
    whole,each = (best_thresholds(logits.sigmoid(), targs, average=o, per_label=True) for o in ('micro','macro'))
    assert found.per_label==by_name.per_label==(each if average=='weighted' else whole).thresh
    assert found.best==by_name.best
    assert ('fallback' in found.table)==(average=='weighted')

def test_thresholds_are_set_everywhere(tmp_path):
    logits,targs = simulate(bias=-6)
    m = [*multilabel_metrics(),
         F1ScoreMulti(0., sigmoid=False, average='micro', name='on_logits'),
         F1ScoreMulti(average='micro', min_labels=0, labels=[1,2], name='two')]
    learn = make_learner(logits, targs, m, cbs=ZeroLabelsCallback(), vocab=NAMES, path=tmp_path)
    with warnings_as('ignore'):
        for thresh,min_labels in (([*np.linspace(0.01, 0.2, 20)],0), (0.3,1)):
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
        told = '^high, low: custom thresholds, not changed by `set_thresh`.*created without thresh='
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
    assert [o.partition(',')[0] for o in told]==([] if follows else ['f1: custom thresholds'])
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
    told = "^accuracy_multi: .*functions and fastai's own metrics keep theirs"
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
    logits,targs = simulate(500, 7, density=0.3, skill=1., bias=mean)
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
    for s in scores.flatten()[::500].tolist(): # thresholds that are scores
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

def test_a_number_in_place_of_a_name_and_a_table_in_place_of_thresholds():
    "The name is suggested; the table is not printed"
    learn = make_learner(*simulate(100, 4, density=0.3), vocab=[*'abcd'])
    for number,hint in ((2, ": did you mean 'c'?"), (7, '')):
        with pytest.raises(ValueError, match=rf'labels \[{number}\], which are not here{re.escape(hint)}$'):
            learn.set_thresh({number: 0.3})
    found = learn.thresh_find(show_plot=False)
    for f in (learn.set_thresh, F1ScoreMulti):
        with pytest.raises(ValueError, match='^thresh is a table: pass the thresholds themselves, `found` for'):
            f(found.table)

def test_scores_of_one_class_are_named():
    logits,_ = simulate(100, 4)
    targs = F.one_hot(torch.arange(100)%4, 4).float()
    probs = logits.softmax(1)
    for bins in (None, 64):
        with pytest.warns(UserWarning, match='sum to 1, as those of a softmax'):
            best_thresholds(probs, targs, bins=bins)
    for scores,y in ((logits.sigmoid(), targs), (probs[:19], targs[:19]), (probs[:,:1], targs[:,:1])):
        with warnings_as('error'): best_thresholds(scores, y)
    learn = make_learner(probs, targs, loss_func=OfProbs())
    with pytest.warns(UserWarning, match='sum to 1, as those of a softmax'): learn.thresh_find(show_plot=False)

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

def test_a_metric_of_samples_alone_has_no_threshold_per_label():
    logits,targs = simulate(200, 6, density=0.4)
    learn = make_learner(logits, targs)
    for metric,average in ((SubsetAccuracy,'samples'), (AccuracyLift,'micro')):
        found = learn.thresh_find(metric=metric, average=average, show_plot=False)
        assert found.per_label is None and [*found.table.index]==['now','best']
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

@pytest.mark.parametrize('name', ['judge','ZeroLabelsWarning','ZeroLabelsCallback.explain',
    'ZeroLabelsCallback.report','ZeroLabelsCallback.plot','Learner.accuracy_report','Learner.evaluate',
    'Learner.export_plain','Learner.set_thresh','Learner.thresh_find','Recorder.plot_metrics','SuggestedThresholds'])
def test_examples_of_docstrings_run(name, tmp_path):
    logits,targs = simulate(200, 5, density=0.3)
    learn = make_learner(logits, targs, multilabel_metrics(), path=tmp_path, cbs=ZeroLabelsCallback(),
                         vocab=['cancer',*'bcde'])
    with warnings_as('ignore'), learn.no_logging(): learn.fit(1, 0.)
    code = example(eval(name))
    assert name.rpartition('.')[2] in code or name=='SuggestedThresholds'
    with warnings_as('ignore'), learn.no_logging():
        exec(code, dict(globals(), learn=learn, dls=learn.dls, logits=logits, probs=logits.sigmoid(), targs=targs))
    plt.close('all')

def test_groups_are_a_column_of_the_items_or_an_array(digits_dls):
    from fastai_mlmetrics.demo import get_learner
    learn = get_learner(digits_dls).remove_cb(ProgressCallback)
    items = digits_dls.valid.items
    items['writer'] = [f'writer {i%12}' for i in range(len(items))]
    try:
        for f in (learn.accuracy_report, partial(learn.thresh_find, show_plot=False)):
            texts = []
            for groups in ('writer',items.writer.to_numpy()):
                said.clear()
                texts.append(one_line(f(groups=groups)))
            assert texts[0]==texts[1] and 'The 12 groups are' in texts[0]
        interp = MultiLabelInterpretation.from_learner(learn, groups='writer')
        assert interp.predictions.n_independent==12
        in_bins = [learn.thresh_find(groups=o, bins=1024, show_plot=False) for o in ('writer',items.writer)]
        assert repr(in_bins[0])==repr(in_bins[1])
        assert repr(in_bins[0])!=repr(learn.thresh_find(bins=1024, show_plot=False))
        for f in (learn.accuracy_report, learn.thresh_find, partial(MultiLabelInterpretation.from_learner, learn)):
            with pytest.raises(ValueError, match="'writr' is no column of the items: did you mean 'writer'"):
                f(groups='writr')
    finally: items.drop(columns='writer', inplace=True)

def test_a_column_needs_a_table():
    learn = make_learner(*simulate(100, 3))
    with pytest.raises(ValueError, match='which have none: pass a value per sample'):
        learn.thresh_find(groups='patient')

def said_of_tuning(learn, **kwargs):
    "Whether search and report say that the threshold in use was tuned on these samples"
    found,report = learn.thresh_find(show_plot=False, **kwargs).table.reading,learn.accuracy_report(ci=None).reading
    return ', tuned on these samples)' in found,'The threshold was tuned on these samples' in report

def test_a_threshold_knows_the_samples_that_it_was_tuned_on():
    "Its score on them is optimistic, and training makes it stale"
    logits,targs = simulate(300, 6, density=0.3)
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback())
    assert said_of_tuning(learn)==(False,False)
    for _ in range(2): # Also what is as good as before
        learn.set_thresh(learn.thresh_find(show_plot=False))
        assert said_of_tuning(learn)==(True,True)
    with pytest.warns(ZeroLabelsWarning, match=r'(?s)was tuned before this training, .*Tune it'): learn.fit(1)
    learn.set_thresh(learn.thresh_find(show_plot=False)) # As the box advises
    with recording(learn) as caught: learn.validate()
    assert not any('tuned before' in str(o.message) for o in caught)
    learn.set_thresh(0.3)
    assert said_of_tuning(learn)==(False,False)

def test_samples_without_a_target_and_some_labels_are_known_as_well():
    logits,targs = simulate(300, 6, density=0.3)
    targs[7] = math.nan
    learn = make_learner(logits, targs, F1ScoreMulti(ignore_index=math.nan), vocab=[*'abcdef'])
    learn.set_thresh(learn.thresh_find(show_plot=False))
    assert said_of_tuning(learn)==(True,True)
    learn.set_thresh(learn.thresh_find(show_plot=False, labels=['b','c']))
    assert said_of_tuning(learn, labels=['b','c'])==said_of_tuning(learn)==(True,True)
    learn.set_thresh(learn.thresh_find(show_plot=False, bins=1024))
    assert said_of_tuning(learn)==(True,True)
    other = make_learner(*simulate(300, 6, density=0.3, seed=1), vocab=[*'abcdef'])
    other.loss_func = learn.loss_func
    assert said_of_tuning(other)==(False,False)

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
    true = targs.sum(0).int().tolist()
    assert found.tuned_on=={i: (200-o,o) for i,o in enumerate(true)} and advised(found)=='best'
    assert found.expects.endswith(f"({found.table.score['now, min_labels=1']:.3f} before)")
    learn.set_thresh(found)
    assert learn.loss_func.tuned_on==found.tuned_on and learn.loss_func.min_labels==0
    assert learn.thresh_find(show_plot=False).expects.endswith(' before, tuned on these samples)')

def test_a_search_shows_progress_where_the_learner_does(monkeypatch):
    from fastai_mlmetrics.learner import thresholds
    learn,shown,tune = make_learner(*simulate(60, 3)),[],thresholds._tune
    def watched(asked, objective, label_objective, table, *args):
        shown.append(table.show)
        return tune(asked, objective, label_objective, table, *args)
    monkeypatch.setattr(thresholds, '_tune', watched)
    learn.thresh_find(show_plot=False)
    learn.add_cb(ProgressCallback())
    with learn.no_logging(), contextlib.redirect_stdout(io.StringIO()): learn.thresh_find(show_plot=False)
    assert shown==[False,True]

# What `set_thresh` sets

@pytest.mark.parametrize('thresh', [0, 1., [0,1,0.5]], ids=str)
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

@pytest.mark.parametrize('loss', [CrossEntropyLossFlat, nn.CrossEntropyLoss, MSELossFlat])
def test_no_threshold_is_set_in_a_loss_of_other_tasks(loss):
    learn = make_learner(*simulate(20), loss_func=loss())
    with pytest.raises(ValueError, match='does not decode labels.*not made for labels; use `loss_func=BCEWith'):
        learn.set_thresh(0.3)

def test_nothing_is_promised_with_limits(capsys):
    "The search knows none, and with a label for every sample others are predicted"
    learn = make_learner(*simulate(bias=-2.), multilabel_metrics())
    with learn.no_logging(): found = learn.thresh_find(show_plot=False)
    learn.set_thresh(found, min_labels=1)
    assert capsys.readouterr().out.strip()==f'Set one threshold, {found.thresh:.3g}, with min_labels=1.'
