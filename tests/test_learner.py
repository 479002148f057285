"Tests of a Learner's methods and plots, and of the names of labels in tables and texts"
import contextlib, io, json, sklearn.metrics as skm
from fastai.tabular.all import TabularDataLoaders, Normalize, tabular_learner
from fastai.text.all import TextBlock, BaseTokenizer
from conftest import *
from fastai_mlmetrics.inputs import label_vocab

CPU = torch.device('cpu')
NAMES = [f'l{i}' for i in range(20)]

def trained(n_epoch=3, metrics=None, **kwargs):
    metrics = multilabel_metrics() if metrics is None else metrics
    learn = make_learner(*simulate(200, bias=-3), metrics, vocab=NAMES, **kwargs)
    with learn.no_logging(): learn.fit(n_epoch)
    return learn

def panels(learn, **kwargs):
    "The figure of `plot_metrics`, and its curves by title and by label"
    assert learn.recorder.plot_metrics(**kwargs) is None # a notebook shows no text
    fig = plt.gcf()
    fig.canvas.draw()
    plt.close(fig)
    def curves(ax): return {line.get_label(): line.get_ydata() for line in ax.lines}
    return fig,{ax.get_title(): curves(ax) for ax in fig.axes if ax.get_title()}

# Metrics

def test_the_recorder_keeps_its_epochs():
    learn = trained(2)
    epochs = [*learn.recorder.values]
    assert len(epochs)==2
    learn.evaluate()
    learn.accuracy_report(ci=None)
    learn.thresh_find(show_plot=False, cv=None)
    MultiLabelInterpretation.from_learner(learn)
    assert learn.recorder.values==epochs

def test_warnings_point_at_the_users_line():
    from fastai.metrics import F1ScoreMulti as Theirs
    makes = (lambda: trained(1, F1ScoreMulti(sigmoid=False)),
             lambda: trained(1, Theirs()).set_thresh(0.2),
             lambda: F1ScoreMulti(pos_label=2),
             lambda: accuracy_multi(*simulate(), sigmoid=False))
    for make in makes:
        with pytest.warns(UserWarning) as caught: make()
        assert {w.filename for w in caught}=={__file__}, [str(w.message) for w in caught]

def test_evaluate_is_validate_with_names():
    learn = trained()
    learn.set_thresh(0.153, min_labels=1)
    with learn.no_logging(): expected = learn.validate()
    t = learn.evaluate()
    assert list(t.index)==['loss', *learn.metrics.attrgot('name')] and t.value.tolist()==list(expected)
    assert t.thresh['f1_macro']=='0.153, min_labels=1' and t.thresh['loss']==t.thresh['zeros_accuracy']==''
    assert t.value['f1_macro']==learn.accuracy_report(ci=None).value['F1, macro']
    train = learn.evaluate(dl=learn.dls.train)
    assert train.value['f1_macro']==pytest.approx(t.value['f1_macro'], abs=0.1)
    assert max(map(len, repr(t).split('\n')))<60
    class Seen(Callback):
        n = 0
        def after_batch(self): Seen.n += 1
    learn.evaluate(cbs=Seen())
    assert Seen.n==13 and len(trained(1, []).evaluate())==1

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
    with warnings.catch_warnings():
        warnings.simplefilter('error', UserWarning)
        found = learn.thresh_find(show_plot=False)
        learn.thresh_find(metric='recall', at_precision=0.08, average='micro', show_plot=False)
    scores,y = learn.get_preds()
    for name,t in found._asdict().items():
        n,true = ((o.sum()/len(y)).item() for o in (scores>tensor(t), y))
        said = re.search(rf'`{name}` predicts ([\d.]+) labels per sample, while ([\d.]+) are true', found.table.reading)
        assert bool(said)==(n>2*true)
        if said: assert tuple(map(float, said.groups()))==pytest.approx((n, true), abs=0.006)
    assert re.search(r'`best` predicts \d', found.table.reading)

def test_thresholds_of_mostly_unlabelled_data():
    "set_thresh(thresh_find()) is not condemned by the callback, though 61 % of the samples have no label"
    for seed in range(5):
        logits,targs = simulate(1000, 10, density=0.12, skill=1.5, bias=-3, seed=seed)
        targs[:610] = 0
        learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
        learn.set_thresh(learn.thresh_find(show_plot=False))
        with warnings.catch_warnings(), learn.no_logging():
            warnings.simplefilter('error', ZeroLabelsWarning)
            learn.validate()
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

# The data, and other callbacks

@pytest.mark.parametrize('of_torch', [False, True])
def test_a_loader_as_the_first_argument(of_torch):
    learn,(logits,targs) = trained(1),simulate(80, seed=3)
    dl = DataLoader(TensorPairs(logits, targs), bs=32)
    if of_torch: dl = torch.utils.data.DataLoader([*zip(logits, targs)], 32)
    takers = (Learner.evaluate, Learner.accuracy_report,
              lambda o, *args, **kw: MultiLabelInterpretation.from_learner(o, *args, **kw).accuracy_report(),
              lambda o, *args, **kw: o.thresh_find(*args, **kw, show_plot=False).table)
    for f in takers:
        first,named = f(learn, dl),f(learn, dl=dl)
        assert str(first)==str(named) and str(first)!=str(f(learn))
        with pytest.raises(TypeError, match='ds_idx is a list.*test_dl'): f(learn, [*zip(logits, targs)])

def test_looking_at_data_changes_no_checkpoint(tmp_path):
    "Neither callbacks that save, log or stop, nor their state, nor their files see a validation by this package"
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), path=tmp_path)
    cbs = [SaveModelCallback(monitor='f1_macro'), EarlyStoppingCallback(monitor='f1_macro'), ReduceLROnPlateau(),
           CSVLogger(), TerminateOnNaNCallback()]
    learn.add_cbs(cbs)
    with learn.no_logging(): learn.fit(2, 0.1)
    files = {o: (o.stat().st_mtime_ns, o.read_bytes()) for o in (tmp_path/'models/model.pth', tmp_path/'history.csv')}
    kept = [(o.best, o.monitor) for o in cbs[:3]]
    lr,state = learn.opt.hypers[0]['lr'],dict(vars(learn.recorder))
    dl,order = DataLoader(TensorPairs(*simulate(80, seed=3)), bs=32),[type(o) for o in learn.cbs.sorted('order')]
    learn.metrics = paper_metrics() # Fewer columns than in the fit
    for f in (learn.evaluate, learn.accuracy_report, partial(learn.thresh_find, show_plot=False),
              partial(MultiLabelInterpretation.from_learner, learn)):
        with contextlib.redirect_stdout(io.StringIO()) as out: f(dl=dl)
        assert out.getvalue()=='' and not learn.lock.locked()
    assert [type(o) for o in learn.cbs.sorted('order')]==order and all(o.learn is learn for o in cbs)
    assert {o: (o.stat().st_mtime_ns, o.read_bytes()) for o in files}==files
    assert [(o.best, o.monitor) for o in cbs[:3]]==kept and learn.opt.hypers[0]['lr']==lr
    assert learn.recorder.values==state['values']

def test_fastais_own_validate_with_a_tracker(tmp_path):
    "The pitfall is told before fastai's tracker acts, and its advice leaves the checkpoint alone"
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), path=tmp_path, cbs=ZeroLabelsCallback())
    learn.add_cb(SaveModelCallback(monitor='f1_samples')) # The last column
    with learn.no_logging(): learn.fit(1, 0.)
    says = r'(?s)`SaveModelCallback`.*learn.evaluate\(\)'
    with pytest.warns(ZeroLabelsWarning, match=says), pytest.raises(IndexError): learn.validate()
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), path=tmp_path, cbs=ZeroLabelsCallback())
    learn.add_cb(SaveModelCallback(monitor='f1_samples'))
    with warnings.catch_warnings(), learn.no_logging():
        warnings.simplefilter('error', ZeroLabelsWarning)
        learn.fit(1, 0.)
        learn.evaluate()

@pytest.mark.parametrize('f', [
    Learner.evaluate,
    Learner.accuracy_report,
    Learner.thresh_find,
    lambda o, dl: MultiLabelInterpretation.from_learner(o, dl=dl)])
def test_data_without_targets(f, digits_dls):
    model = nn.Sequential(nn.AdaptiveAvgPool2d(1), Flatten(), nn.Linear(3, 20))
    learn = Learner(digits_dls, model, loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics())
    test_dl = digits_dls.test_dl(digits_dls.valid_ds.items[:4])
    advice = r'no targets: make the loader by `learn.dls.test_dl\(items, with_labels=True\)`'
    with pytest.raises(ValueError, match=advice), learn.no_bar(): f(learn, dl=test_dl)

def test_evaluate_of_every_kind_of_metric():
    own = F1ScoreMulti([0.1]*19+[0.9], name='own')
    metrics = [*multilabel_metrics(full=True, ranking=True), own, BrierScoreMulti(), accuracy_multi]
    t = trained(1, metrics).evaluate()
    assert t.thresh['own']=='0.1 to 0.9 by label' and t.value.notna().all()
    assert (t.thresh[['lrap','ap_macro','brier_score_loss','zeros_accuracy']]=='').all()

def test_curves_by_epoch():
    learn = trained(3)
    fig,drawn = panels(learn)
    assert list(drawn)==['loss', *learn.metrics.attrgot('name')]
    test_eq(drawn['loss'].keys(), {'train','valid'})
    test_eq(drawn['f1_macro'].keys(), {'valid'})
    for i,name in enumerate(learn.recorder.metric_names[2:-1], 1):
        test_close(drawn[name.replace('valid_','')]['valid'], L(learn.recorder.values).itemgot(i))

def test_curves_of_training_too():
    learn = trained(2, [F1ScoreMulti(name='f1'), EmptyRate()], cbs=Recorder(train_metrics=True))
    _,drawn = panels(learn)
    assert list(drawn)==['loss','f1','empty_rate']
    assert all(o.keys()=={'train','valid'} for o in drawn.values())
    names = list(learn.recorder.metric_names[1:-1])
    for o in ('train','valid'): test_eq(drawn['f1'][o], L(learn.recorder.values).itemgot(names.index(f'{o}_f1')))

@pytest.mark.parametrize('n', [1, 3, 6, 12])
def test_curves_do_not_overlap(n):
    fig,drawn = panels(trained(1, [F1ScoreMulti(0.1+i/20, name=f'a_long_name_{i}') for i in range(n)]))
    boxes = [ax.get_tightbbox() for ax in fig.axes if ax.get_title()]
    assert len(boxes)==n+1 and fig.get_figwidth()<=10
    assert not any(a.overlaps(b) for i,a in enumerate(boxes) for b in boxes[:i])
    inner = fig.bbox
    assert all(b.x0>=inner.x0-1 and b.x1<=inner.x1+1 for b in boxes)

def test_curves_after_looking_at_thresholds():
    "Each validation resets fastai's Recorder; methods of this package do not"
    learn = trained(3)
    losses = list(learn.recorder.losses)
    learn.evaluate()
    learn.accuracy_report()
    learn.thresh_find(show_plot=False)
    assert len(panels(learn)[1]['loss']['valid'])==3 and learn.recorder.losses==losses
    learn.recorder.plot_loss()
    with learn.no_logging(): learn.validate()
    with pytest.raises(ValueError, match='no epoch is recorded: call it after `fit`'):
        learn.recorder.plot_metrics()
    with pytest.raises(ValueError, match='no epoch is recorded'):
        make_learner(*simulate(20)).recorder.plot_metrics()
    plt.close('all')

def test_curves_of_an_interrupted_training():
    class Stop(Callback):
        def before_batch(self):
            if self.training and self.epoch==2: raise CancelFitException
    learn = make_learner(*simulate(100), multilabel_metrics(), cbs=Stop())
    with learn.no_logging(): learn.fit(5)
    assert len(panels(learn)[1]['f1_macro']['valid'])==2
    class NoTrain(Callback):
        def before_train(self):
            if self.epoch==1: raise CancelTrainException
    learn = make_learner(*simulate(100), multilabel_metrics(), cbs=NoTrain())
    with learn.no_logging(): learn.fit(3)
    assert len(panels(learn)[1]['f1_macro']['valid'])==2 # an epoch without training has no training loss

def test_a_single_epoch_has_a_whole_number():
    fig,_ = panels(trained(1))
    assert all([o.get_text() for o in ax.get_xticklabels()]==['0'] for ax in fig.axes if ax.lines)

def test_curves_of_each_label():
    learn = trained(2, [F1ScoreMulti(average=None)])
    fig,_ = panels(learn)
    lines = next(ax for ax in fig.axes if ax.get_title()=='f1_score_per_label').lines
    expected = np.stack([row[-1] for row in learn.recorder.values], 1)
    assert len(lines)==20
    assert all(np.allclose(line.get_ydata(), o) for line,o in zip(lines, expected))

# Thresholds

def test_found_thresholds_as_a_table():
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
    each = best_thresholds(scores, targs, average='macro')
    test_eq(t.fallback[4:].tolist(), each.fallback)
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
    with pytest.raises(ValueError, match='finds both'): learn.thresh_find(per_label=True)

def test_where_thresholds_are_drawn():
    learn = trained(1)
    fig,axs = plt.subplots(1, 2)
    learn.thresh_find(ax=axs[1])
    assert not axs[0].lines and len(axs[1].lines)==5 and plt.get_fignums()==[fig.number]
    learn.thresh_find(figsize=(3,2))
    assert list(plt.gcf().get_size_inches())==[3,2]
    plt.close('all')
    learn.set_thresh([0.2]*20)
    learn.thresh_find() # 'now' is several thresholds, so it has no line
    assert len(plt.gca().lines)==4
    plt.close('all')

def test_thresholds_with_missing_labels():
    logits,targs = simulate(300, bias=-3)
    missing = targs.clone()
    missing[::4] = math.nan
    found = make_learner(logits, missing, vocab=NAMES).thresh_find(ignore_index=math.nan)
    known = ~missing[:,0].isnan()
    expected = make_learner(logits[known], targs[known], vocab=NAMES).thresh_find(show_plot=False)
    test_close(found.table.score, expected.table.score, eps=1e-12)
    assert max(plt.gca().lines[0].get_ydata())==pytest.approx(found.table.score['best'], abs=1e-9)
    plt.close('all')

@pytest.mark.parametrize('kw', [
    dict(metric='jaccard'), dict(average='macro'), dict(average='micro'),
    dict(metric=HammingLossMulti, average='micro'), dict(metric='fbeta', beta=2.),
    dict(metric='precision', average='micro', at_recall=0.7),
    dict(cv=None), dict(zero_division=math.nan)], ids=str)
def test_other_aims(kw):
    found = trained(1).thresh_find(**kw)
    assert found.table.score.notna().all()
    assert found.table.held_out.iloc[1:].isna().all()==(kw.get('cv', 5) is None)
    plt.close('all')

def test_losses_and_metrics_of_every_make():
    class Odd(nn.BCEWithLogitsLoss): activation,thresh = None,None
    with pytest.warns(UserWarning, match='let the model end without it'):
        trained(1, loss_func=Odd(), model=Bounded(), cbs=ZeroLabelsCallback())
    learn = trained(1, [torch.dist, AccuracyMulti()], cbs=ZeroLabelsCallback())
    learn.set_thresh(0.2)
    assert learn.metrics[1].thresh==0.2
    m = F1ScoreMulti(average='samples')
    assert m.value_of(*simulate(40))==F1ScoreMulti(average='samples')(*simulate(40))

class Bounded(Same):
    def forward(self, x): return super().forward(x).sigmoid()

def test_arguments_that_would_not_be_heard():
    learn = make_learner(*simulate(100))
    for kw in (dict(sigmoid=True), dict(thresh=0.1), dict(labels=[1]), dict(per_label=True)):
        with pytest.raises((TypeError,ValueError)): learn.thresh_find(show_plot=False, **kw)
    learn.thresh_find(show_plot=False, zero_division=1.)

def test_vocab_of_another_length():
    learn = make_learner(*simulate(100), vocab=NAMES[:19])
    for f in (learn.thresh_find, learn.accuracy_report):
        with pytest.raises(ValueError, match='19 names.*20 labels'): f()
    plt.close('all')

# Names of labels in tables and texts

COLUMNS = ['red','blue','green']

def table(yes=1, no=0):
    "A table with targets in three columns, which are `yes` or `no`"
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(a=rng.normal(size=200), b=rng.normal(size=200)))
    for i,o in enumerate(COLUMNS): df[o] = np.where(df.a+rng.normal(size=200)>0.2*i, yes, no)
    return df

@pytest.mark.parametrize('block', [
    None, MultiCategoryBlock(encoded=True, vocab=COLUMNS), RegressionBlock(3)], ids=['none','encoded','regression'])
def test_target_columns_keep_their_names(block):
    dls = TabularDataLoaders.from_df(table(), procs=[Normalize], cont_names=['a','b'], y_names=COLUMNS,
                                     y_block=block, valid_idx=list(range(100)), bs=20, device=CPU)
    learn = tabular_learner(dls, layers=[8], metrics=multilabel_metrics(), loss_func=BCEWithLogitsLossFlat(),
                            cbs=ZeroLabelsCallback())
    learn.remove_cb(ProgressCallback)
    with learn.no_logging(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(2, 0.1)
        test_eq(label_vocab(dls), COLUMNS)
        found = learn.thresh_find(show_plot=False)
        assert list(found.table.index[4:])==COLUMNS
        assert [*learn.evaluate().index[1:3]]==['accuracy_multi','zeros_accuracy']
        assert re.search('predicting (red|blue|green)', learn.accuracy_report(thresh=found.best).reading)
        assert list(MultiLabelInterpretation.from_learner(learn).vocab)==COLUMNS
        learn.metrics = [F1ScoreMulti(labels=['blue'], name='f1_blue')]
        assert learn.evaluate().value['f1_blue']>=0

def test_names_of_other_tables():
    def vocab(df, y):
        return label_vocab(TabularDataLoaders.from_df(df, cont_names=['a','b'], y_names=y, bs=20, device=CPU))
    test_eq(vocab(table('yes','no'), COLUMNS), COLUMNS) # the DataLoaders' vocab is the classes of a column
    test_eq(vocab(table('yes','no'), 'red'), ['no','yes'])
    test_eq(vocab(table(), 'red'), ['red'])
    assert label_vocab(None) is None and label_vocab(make_learner(*simulate(20)).dls) is None

def text_loaders(df, y_block, get_y):
    block = DataBlock((TextBlock.from_df('text', tok=BaseTokenizer()), y_block),
                      get_x=ColReader('text'), get_y=get_y, splitter=IndexSplitter(range(20,40)))
    return block.dataloaders(df, bs=4, device=CPU)

TEXTS = ['a b c','a','b b','c c c c']*10

def test_texts_without_a_vocab_of_labels():
    "The only vocab is that of the words"
    df = pd.DataFrame(dict(text=TEXTS, x=[1.,0,1,0]*10, y=[0.,0,1,1]*10))
    dls = text_loaders(df, RegressionBlock(2), ColReader(['x','y']))
    assert len(dls.vocab)>2 and label_vocab(dls) is None
    model = nn.Sequential(nn.Embedding(len(dls.vocab), 2), Lambda(lambda x: x.mean(1)))
    learn = Learner(dls, model, loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics(),
                    cbs=ZeroLabelsCallback())
    learn.remove_cb(ProgressCallback)
    with learn.no_logging(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(1, 0.1)
        learn.set_thresh([0.4,0.6])
        assert list(learn.thresh_find(show_plot=False).table.index[4:])==[0,1]
        assert len(learn.accuracy_report())
    dls.vocab = ['x','y'] # a user may set the names
    assert list(label_vocab(dls))==['x','y']

def test_texts():
    df = pd.DataFrame(dict(text=TEXTS, labels=['x;y','x','','y']*10))
    dls = text_loaders(df, MultiCategoryBlock, ColReader('labels', label_delim=';'))
    assert len(dls.vocab)==2 and list(label_vocab(dls))==['x','y']
    y = torch.stack([y for _,y in dls.valid_ds])
    scores = (y*0.5+torch.rand(y.shape)*0.5).as_subclass(Tensor)
    assert list(best_thresholds(scores, y, average='macro', vocab=dls.vocab).table.index[2:])==['x','y']
    assert 'predicting x, y for every' in accuracy_report(scores, y, vocab=dls.vocab).reading
    test_eq(list(MultiLabelInterpretation.from_preds(scores, y, vocab=dls.vocab).vocab), ['x','y'])
    test_eq(judge(scores*0, y, vocab=dls.vocab).never_predicted, ['x','y'])

def test_where_the_threshold_of_a_rare_label_is_from():
    learn = make_learner(*simulate(300, 4, 0.03), vocab=list('abcd'))
    with learn.no_logging(): found = learn.thresh_find()
    assert {*found.table.fallback[4:]}=={'few positives'} and len({*found.per_label})==1
    assert 'fallback: why a label gets the global threshold.' in found.table.reading
    why = 'which counts false positives also where no label is true'
    assert f'`best` maximises f1 (micro), {why}; `cardinality` predicts' in found.table.reading
    assert found.table.reading.endswith('use the best global threshold for the macro average.')
    assert plt.gca().get_ylabel().startswith('f1_score')
    plt.close()
    with learn.no_logging(): found = learn.thresh_find(metric='cardinality')
    assert found.best==found.cardinality and len(found.per_label)==len(found.table.fallback)-4
    assert plt.gca().get_ylabel().startswith('cardinality')
    plt.close()
    learn = make_learner(*simulate(300, 4, 0.4), vocab=list('abcd'))
    with learn.no_logging(): found = learn.thresh_find(show_plot=False, cv=None)
    assert not any(found.table.fallback) and 'fallback:' not in found.table.reading

# Data of any kind

def test_loaders_of_torch():
    logits,targs = simulate(100, 4)
    ds = torch.utils.data.TensorDataset(logits, targs)
    dls = DataLoaders(*(torch.utils.data.DataLoader(ds, batch_size=16) for _ in range(2)))
    learn = Learner(dls, Same(), loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics())
    learn.remove_cb(ProgressCallback)
    expected = best_thresholds(logits.sigmoid(), targs, average='micro').thresh
    assert learn.thresh_find(show_plot=False, average='micro').best==expected
    assert learn.accuracy_report().value['F1, macro']==pytest.approx(learn.evaluate().value['f1_macro'])
    assert MultiLabelInterpretation.from_learner(learn).report().support.iloc[0]>=0

def test_nothing_to_look_at(tmp_path):
    learn = trained(1)
    learn.path = tmp_path
    learn.export()
    loaded = load_learner(tmp_path/'export.pkl')
    alone = make_learner(*simulate(50), multilabel_metrics())
    alone.dls = DataLoaders(alone.dls.train, device=CPU)
    advice = r'no such data .*pass dl=learn.dls.test_dl\(items, with_labels=True\)'
    for o in (loaded, alone):
        for f in (o.thresh_find, o.accuracy_report, o.evaluate, partial(MultiLabelInterpretation.from_learner, o)):
            with pytest.raises(ValueError, match=advice): f()

def test_all_of_the_training_data():
    logits,targs = simulate(50)
    metrics = [AccuracyMulti(), F1ScoreMulti(sample_weight=torch.arange(50.))]
    learn = make_learner(logits, targs, metrics, bs=64)
    learn.dls = DataLoaders(learn.dls.train.new(drop_last=True), learn.dls.valid, device=CPU)
    assert learn.evaluate(0).value.tolist()==pytest.approx(learn.evaluate(1).value.tolist())

def test_thresh_find_says_what_holds():
    targs = simulate(200, 4, density=0.2)[1]
    logit = -2.
    learn = make_learner(torch.full((200,4), logit), targs)
    found = learn.thresh_find(show_plot=False)
    assert not (found.cardinality<torch.full((1,), logit).sigmoid().item())
    assert '`best` predicts 4.00 labels per sample' in found.table.reading
    with pytest.raises(TypeError, match='no argument valid'): learn.thresh_find(valid=None)

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

def test_evaluate_is_validate():
    "Also of loaders of other kinds"
    logits,targs = simulate(100, 4, density=0.3)
    ds = TensorPairs(logits, targs)
    class Rows(torch.utils.data.IterableDataset):
        def __iter__(self): return iter(zip(logits, targs))
    class Own(DataLoader):
        def __init__(self, logits, targs, bs=16, **kwargs):
            super().__init__(TensorPairs(logits, targs), bs=bs, **kwargs)
    for dl in (DataLoader(ds, bs=16, n=32), DataLoader(Rows(), bs=16, n=100), Own(logits, targs)):
        dls = DataLoaders(dl, dl, device=CPU)
        learn = Learner(dls, Same(), loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics())
        learn.remove_cb(ProgressCallback)
        with learn.no_logging(): assert learn.evaluate().value.tolist()==[*learn.validate()]
