"Mistakes in a Learner's set-up are told, once"
import sklearn.metrics as skm
from fastai.callback.tracker import EarlyStoppingCallback, SaveModelCallback
from fastai.tabular.all import *
from helpers import *
from fastai_mlmetrics.core.decoding import Decoding
from fastai_mlmetrics.diagnosis.records import describe

def test_no_labels_at_all_is_told_once():
    "For example with a `get_y` that finds no labels"
    learn,caught = trained(torch.full((400,20), -9.), torch.zeros(400,20), n_epoch=4)
    assert len(caught)==1
    assert 'none of the 400 validation samples has a label' in one_line(caught[0].message)
    assert not any(r.verdict for r in learn.zero_labels.records)

def test_no_labels_among_those_that_are_looked_at():
    targs = GOOD[1].clone()
    targs[:,[3,5]] = 0
    learn = make_learner(GOOD[0], targs, cbs=ZeroLabelsCallback(labels=[3,5]))
    assert any('samples has a label (of these labels: 3, 5), so' in o for o in pitfall_texts(learn))
    targs[:,3] = 1
    learn = make_learner(GOOD[0], targs, cbs=ZeroLabelsCallback(labels=[3,5]))
    assert any('have the same labels (of these labels: 3, 5), so' in o for o in pitfall_texts(learn))

@pytest.mark.parametrize('ours', [True, False])
def test_probabilities_taken_for_logits_are_told(ours):
    metrics = multilabel_metrics() if ours else []
    learn = make_learner(*GOOD, metrics, Sigmoid(), loss_func=BCEWithLogitsLossFlat(), cbs=ZeroLabelsCallback())
    with recording(learn) as caught: learn.fit(2, 0.)
    advice = "(BCEWithLogitsLoss) applies another: remove the sigmoid at the model's end"
    assert sum(advice in one_line(w.message) for w in caught)==1
    r = learn.zero_labels.records[-1]
    assert r.verdict=='no better than a constant' or r.pred_per_sample==20

def test_logits_taken_for_probabilities_are_told():
    text, = pitfall_texts(make_learner(*GOOD, cbs=ZeroLabelsCallback(sigmoid=False)), 2)
    assert 'seem to be logits' in text and 'pass sigmoid=True' in text
    assert not pitfall_texts(make_learner(*GOOD, cbs=ZeroLabelsCallback(thresh=0., sigmoid=False)))

@pytest.mark.parametrize('sigmoid', [True, False])
def test_two_advices_do_not_contradict_each_other(sigmoid):
    "Advice on the metrics and advice on the loss function do not contradict each other"
    learn = make_learner(*GOOD, multilabel_metrics(sigmoid=sigmoid), Sigmoid(), loss_func=BCELossFlat(),
                         cbs=ZeroLabelsCallback(sigmoid=sigmoid))
    with recording(learn) as caught: learn.fit(1, 0.)
    text = ' '.join(one_line(w.message) for w in caught)
    advice = "remove the sigmoid at the model's end, and use `loss_func=BCEWithLogitsLossFlat()`"
    of_metrics = ('the model seems to end with a sigmoid: pass sigmoid=False to each metric and to '
                  f'ZeroLabelsCallback, or {advice}')
    of_callback = f'show no label, however good the model: {advice}'
    assert text.count(of_metrics)==sigmoid
    assert text.count(of_callback)==1
    assert ('with `sigmoid=True` for the metrics and this callback' in text)!=sigmoid

@pytest.mark.parametrize('metrics,found', [
    (lambda: multilabel_metrics(thresh=0.2),
     'use thresh=0.2, but `predict` and `show_results` use 0.5: `learn.set_thresh(0.2)` sets one for all'),
    (lambda: [partial(accuracy_multi, thresh=0.2)], 'accuracy_multi uses thresh=0.2'),
    (lambda: [sys.modules['fastai.metrics'].F1ScoreMulti(thresh=0.3)], 'f1_score uses thresh=0.3'),
    (lambda: [F1ScoreMulti([0.3]*20)], 'f1_score uses thresh=0.3, but `predict` and `show_results` use 0.5'),
    (lambda: [F1ScoreMulti(0.2), RecallMulti(0.3)], 'use thresh=0.2 or 0.3, but'),
    (lambda: [F1ScoreMulti(math.log(0.25), sigmoid=False)], 'f1_score uses thresh=0.2, but'),
    (lambda: [*multilabel_metrics(thresh=0., sigmoid=False), accuracy_multi, BrierScoreMulti(), ZerosAccuracy(0.9),
              F1ScoreMulti([0.5]*20, name='a')], None)])
def test_metrics_and_loss_that_decide_apart_are_named(metrics, found):
    caught = pitfall_texts(make_learner(*GOOD, metrics(), cbs=ZeroLabelsCallback()), 2)
    assert found in caught[0] and len(caught)==1 if found else not caught

@pytest.mark.parametrize('labels,callback,code', [
    (['crash'], None, "`learn.set_thresh({'crash': 0.2})` sets one for all"),
    ([2], None, "`learn.set_thresh({'crash': 0.2})` sets one for all"),
    (['crash'], ['login'], None), (None, ['login'], '`learn.set_thresh(0.2)` sets one for all')], ids=str)
def test_a_threshold_of_some_labels_is_not_set_for_others(labels, callback, code):
    learn = make_learner(*simulate(c=3, density=0.3), multilabel_metrics(thresh=0.2, labels=labels),
                         vocab=['billing','login','crash'], cbs=ZeroLabelsCallback(labels=callback))
    text, = [o for o in pitfall_texts(learn) if 'use thresh=0.2, but' in o]
    assert ('set_thresh' in text)==bool(code) and (code or '') in text
    learn = make_learner(*simulate(c=3, density=0.3), vocab=['billing','login','crash'], cbs=ZeroLabelsCallback())
    learn.set_thresh({'crash': 0.2})
    learn.metrics = multilabel_metrics(labels=['crash'])
    assert '`learn.set_thresh(learn.loss_func.thresh)` sets one for all' in ' '.join(pitfall_texts(learn))

def test_the_threshold_that_was_chosen_is_kept():
    learn = make_learner(*GOOD, cbs=ZeroLabelsCallback())
    learn.set_thresh(0.3)
    learn.metrics = L(F1ScoreMulti())
    text, = pitfall_texts(learn)
    assert ('f1_score uses thresh=0.5, but `predict` and `show_results` use 0.3: '
            '`learn.set_thresh(0.3)` sets one for all') in text
    learn.set_thresh(0.3)
    assert learn.metrics[0].thresh==0.3

def test_fastai_s_own_metrics_are_named():
    theirs = sys.modules['fastai.metrics']
    metrics = [theirs.accuracy_multi, theirs.F1ScoreMulti(), partial(theirs.accuracy_multi, thresh=0.5),
               F1ScoreMulti(name='ours'), accuracy_multi]
    text, = pitfall_texts(make_learner(*GOOD, metrics, cbs=ZeroLabelsCallback()), 2)
    assert "these metrics are fastai's: accuracy_multi, f1_score." in text
    assert 'Run `from fastai_mlmetrics.all import *` last' in text
    learn = make_learner(*GOOD, [theirs.F1ScoreMulti(), F1ScoreMulti(name='ours')], cbs=ZeroLabelsCallback())
    with pytest.warns(UserWarning, match='f1_score: .*functions and fastai.s own metrics keep theirs'):
        learn.set_thresh(0.1)
    text, = pitfall_texts(learn)
    assert 'sets one for all' not in text
    assert ('f1_score uses thresh=0.5, but `predict` and `show_results` use 0.1: '
            'f1_score cannot follow `learn.set_thresh`. Use classes of this package') in text

def test_other_metrics_of_fastai_are_no_pitfall():
    theirs = sys.modules['fastai.metrics']
    of_sklearn = theirs.skm_to_fastai(skm.label_ranking_loss, flatten=False, axis=None)
    learn = make_learner(*GOOD, [theirs.mse, of_sklearn], cbs=ZeroLabelsCallback())
    assert not any('fastai\'s own' in o for o in pitfall_texts(learn, 2))

@pytest.mark.parametrize('loss,model', [
    (nn.BCEWithLogitsLoss(), Same),
    (BCELossFlat(), Sigmoid),
    (nn.BCELoss(), Sigmoid)])
def test_a_loss_that_does_not_decode_is_named(loss, model):
    logits,targs = GOOD
    learn = make_learner(logits*9, targs, model=model(), loss_func=loss, cbs=ZeroLabelsCallback(sigmoid=model is Same))
    text, = pitfall_texts(learn, 2)
    assert 'does not decode' in text and 'BCEWithLogitsLossFlat()' in text
    assert ("remove the sigmoid at the model's end" in text)==(model is Sigmoid)
    *_,decoded = learn.get_preds(with_decoded=True)
    assert (decoded!=targs).any() # the model is perfect
    learn.loss_func = BCEWithLogitsLossFlat()
    if model is Same: assert torch.equal(learn.get_preds(with_decoded=True)[2], targs>0)

@pytest.mark.parametrize('as_function', [True, False])
def test_a_loss_of_ones_own_is_kept_and_told_how_to_decode(as_function):
    logits,targs = (o.clone() for o in GOOD)
    targs[::7,3] = math.nan
    loss = (lambda p, y: Masked()(p, y)) if as_function else Masked()
    metrics = multilabel_metrics(ignore_index=math.nan)
    learn = make_learner(logits, targs, metrics, loss_func=loss, cbs=ZeroLabelsCallback())
    text, = pitfall_texts(learn)
    advice = ('set `learn.loss_func.activation = torch.sigmoid` '
              'and `learn.loss_func.decodes = torch.round`')
    assert advice in text and 'BCEWithLogits' not in text
    with pytest.raises(ValueError, match=re.escape(advice)): learn.set_thresh(0.3)
    loss.activation,loss.decodes = torch.sigmoid,torch.round
    assert not pitfall_texts(learn) and torch.equal(learn.get_preds(with_decoded=True)[2]==1, logits>0)
    learn.set_thresh(0.3)
    assert torch.equal(learn.get_preds(with_decoded=True)[2], logits.sigmoid()>0.3)
    def bce(p, y): return F.binary_cross_entropy(p[~y.isnan()], y[~y.isnan()])
    ended = make_learner(logits, targs, multilabel_metrics(sigmoid=False, ignore_index=math.nan), Sigmoid(),
                         loss_func=bce, cbs=ZeroLabelsCallback(sigmoid=False))
    text, = pitfall_texts(ended)
    assert ': set `learn.loss_func.decodes = torch.round`' in text

def test_min_labels_are_not_forgotten():
    logits,targs = simulate(skill=2., bias=-6)
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
    learn.set_thresh(0.9, min_labels=1)
    values(learn)
    r = learn.zero_labels.explain()
    assert ', min_labels=1)` applies it' in one_line(r) or not r.verdict
    text, = pitfall_texts(make_learner(*GOOD, multilabel_metrics(min_labels=1), cbs=ZeroLabelsCallback()))
    assert ('use min_labels=1, but `predict` and `show_results` use no limit: '
            '`learn.set_thresh(0.5, min_labels=1)` sets one for all') in text
    learn.loss_func = BCEWithLogitsLossFlat(thresh=0.9) # as the advice on `pos_weight` sets it
    assert 'min_labels=1)` sets one for all' in pitfall_texts(learn)[0]
    targs = (torch.arange(40)%2)[:,None].float() # one label: min_labels=1 would predict it for every sample
    assert 'min_labels' not in repr(judge(torch.full((40,1), 0.1), targs))

def test_a_sigmoid_that_a_metric_lacks_is_told_once():
    "A metric without its sigmoid is not taken for a metric with another threshold"
    learn = make_learner(*GOOD, F1ScoreMulti(sigmoid=False), cbs=ZeroLabelsCallback())
    with pytest.warns(UserWarning) as caught, learn.no_logging(): learn.fit(1, 0.)
    assert ['pass sigmoid=True' in str(o.message) for o in caught]==[True]

def test_a_sigmoid_that_the_callback_lacks_is_told():
    learn = make_learner(*GOOD, multilabel_metrics(sigmoid=False), Sigmoid(), loss_func=BCELossFlat(),
                         cbs=ZeroLabelsCallback())
    assert 'pass sigmoid=False to each metric and to ZeroLabelsCallback' in pitfall_texts(learn)[0]

def test_a_tracker_upside_down_is_named():
    logits,targs = simulate()
    def learner(cb): return make_learner(logits, targs, multilabel_metrics(), cbs=[ZeroLabelsCallback(), cb])
    text, = pitfall_texts(learner(EarlyStoppingCallback('empty_rate', patience=5)))
    assert ("`EarlyStoppingCallback(monitor='empty_rate')` looks for the highest value, "
            "but lower is better: add `comp=np.less`") in text
    for cb in (EarlyStoppingCallback('empty_rate', comp=np.less),
               EarlyStoppingCallback('f1_macro'),
               EarlyStoppingCallback()):
        assert not pitfall_texts(learner(cb))

def test_a_table_without_a_block_has_a_loss_for_regression():
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(100,2)), columns=list('ab'))
    df['y'],df['z'] = (df.a>0).astype(int),(df.b>0).astype(int)
    dls = TabularDataLoaders.from_df(df, cont_names=['a','b'], y_names=['y','z'], procs=[Normalize], bs=16,
                                     device=torch.device('cpu'))
    learn = tabular_learner(dls, layers=[8], cbs=ZeroLabelsCallback())
    problem = ('the loss function (MSELoss) does not decode, so `predict` and `show_results` show no label, '
               'however good the model: this loss is not made for labels; use `loss_func=BCEWithLogitsLossFlat()`')
    assert problem in pitfall_texts(learn)[0]

def test_two_sigmoids_are_named():
    "The model ends with a sigmoid, as the metrics have it, and `get_preds` applies another"
    learn = make_learner(*GOOD, multilabel_metrics(sigmoid=False), Sigmoid(), cbs=ZeroLabelsCallback(sigmoid=False))
    text, = pitfall_texts(learn, 2)
    assert ('the metrics take the predictions for probabilities (sigmoid=False), but `get_preds` and `predict` '
            "apply the sigmoid of the loss function (BCEWithLogitsLoss) to them. Remove the sigmoid at the model's "
            "end, and leave out sigmoid=False") in text
    assert not pitfall_texts(make_learner(*GOOD, multilabel_metrics(), cbs=ZeroLabelsCallback()))

def test_what_changes_in_numbers_alone_is_told_once():
    "Whatever the number of samples in a later validation"
    learn = make_learner(GOOD[0], GOOD[1]*0, multilabel_metrics(), cbs=ZeroLabelsCallback())
    texts = pitfall_texts(learn, 2)
    learn.dls = make_learner(GOOD[0][:300], GOOD[1][:300]*0).dls
    assert len(texts)==1 and 'none of the 400 validation samples' in texts[0]
    assert not pitfall_texts(learn)
    assert 'none of the 300 validation samples' in learn.zero_labels.records[-1].pitfalls[0]

def test_numbers_in_code_are_told_anew():
    learn = make_learner(*GOOD, [F1ScoreMulti(0.2)], cbs=ZeroLabelsCallback())
    assert '`learn.set_thresh(0.2)`' in pitfall_texts(learn)[0]
    learn.metrics = [F1ScoreMulti(0.3)]
    assert '`learn.set_thresh(0.3)`' in pitfall_texts(learn)[0]

@pytest.mark.parametrize('t', [0.3, 0.5, 0.6, 0.7, 0.8])
def test_margins_follow_a_threshold(t):
    "Also if the threshold on logits looks like a probability"
    learn = make_learner(*GOOD, [F1ScoreMulti(0., sigmoid=False)], cbs=ZeroLabelsCallback(thresh=0., sigmoid=False))
    learn.set_thresh(t)
    with warnings_as('error'): assert values(learn)['f1_score']==pytest.approx(F1ScoreMulti(t)(*GOOD))
    r = learn.zero_labels.records[-1]
    assert not r.pitfalls and r.f1_micro==pytest.approx(F1ScoreMulti(t, average='micro')(*GOOD))

def test_absent_labels_are_told_once_per_learner():
    "Those of another validation set are among the facts; those of other data are in no advice to split"
    logits,targs = GOOD
    first_,second = targs.clone(),targs.clone()
    first_[:,3] = second[:,7] = 0
    learn = make_learner(logits, first_, cbs=ZeroLabelsCallback())
    assert 'no validation sample has label 3' in pitfall_texts(learn)[0] and not pitfall_texts(learn)
    learn.dls = make_learner(logits, second).dls
    assert not pitfall_texts(learn)
    assert 'no sample has these labels, so they cannot be judged: 7' in repr(learn.zero_labels.explain())
    learn = make_learner(*GOOD, cbs=ZeroLabelsCallback())
    with warnings_as('error'), learn.no_logging(): learn.validate(dl=DataLoader(TensorPairs(logits, first_), bs=50))
    assert learn.zero_labels.records[-1].absent==[3] and not learn.zero_labels.records[-1].pitfalls

def test_a_monitor_that_depends_on_the_threshold_is_named(tmp_path):
    "It chose an untrained epoch, while loss and ranking improved; the column that is advised chooses a later one"
    logits,targs = simulate(400, 10, density=0.1, skill=4., bias=-2.)
    def learner(): return make_learner(logits, targs, multilabel_metrics(), Improves(), path=tmp_path, bs=400,
                                       cbs=[Falling([1.64, 0.9, 0.5, 0.26]), ZeroLabelsCallback()])
    learn = learner()
    with pytest.warns(ZeroLabelsWarning) as caught, learn.no_logging():
        learn.fit(4, 0., cbs=SaveModelCallback(monitor='f1_macro'))
    text, = [one_line(o.message) for o in caught if 'by f1_macro, which depends on the' in one_line(o.message)]
    assert 'epoch 0 was the best' in text and 'fell from 1.64 to 0.26' in text
    code, = re.findall('`(learn.metrics = .*?)`', text)
    learn = learner()
    exec(code, dict(globals(), learn=learn))
    with warnings.catch_warnings(record=True) as caught, learn.no_logging():
        learn.fit(4, 0., cbs=(save := SaveModelCallback(monitor='ap_macro')))
    assert not any('Monitor `ap_macro`' in one_line(o.message) for o in caught)
    assert save.best>0.5

def test_a_tracker_beside_fastai_s_validate_is_named(tmp_path):
    "The pitfall is told before fastai's tracker acts, and its advice leaves the checkpoint alone"
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), path=tmp_path, cbs=ZeroLabelsCallback())
    learn.add_cb(SaveModelCallback(monitor='f1_samples')) # The last column
    with learn.no_logging(): learn.fit(1, 0.)
    says = r'(?s)SaveModelCallback.*learn.evaluate\(\)'
    with pytest.warns(ZeroLabelsWarning, match=says), pytest.raises(IndexError): learn.validate()
    learn = make_learner(*simulate(200, bias=-3), multilabel_metrics(), path=tmp_path, cbs=ZeroLabelsCallback())
    learn.add_cb(SaveModelCallback(monitor='f1_samples'))
    with warnings_as('error', ZeroLabelsWarning), learn.no_logging():
        learn.fit(1, 0.)
        learn.evaluate()

def test_no_trap_in_a_paper_s_table():
    for above in (False, True):
        learn = make_learner(*simulate(n=128), paper_metrics(top_k=3, above_thresh=above), cbs=ZeroLabelsCallback())
        with warnings_as('ignore', ZeroLabelsWarning): values(learn)
        assert not learn.zero_labels.records[-1].pitfalls

@pytest.mark.parametrize('sigmoid', [True, False])
@pytest.mark.parametrize('callback', [True, False])
def test_metrics_leave_the_range_to_the_callback(sigmoid, callback):
    "Told once, as all pitfalls are; without a callback by a metric"
    model,cbs = (Sigmoid() if sigmoid else Same()),([ZeroLabelsCallback(sigmoid=sigmoid)] if callback else [])
    learn = make_learner(*GOOD, multilabel_metrics(sigmoid=sigmoid), model, cbs=cbs)
    with recording(learn) as caught:
        learn.fit(1, 0.)
        learn.validate()
    told = [o for o in caught if re.search('seem to be logits|seems to end with a sigmoid', one_line(o.message))]
    assert len(told)==1 and issubclass(told[0].category, ZeroLabelsWarning)==callback

def table_learner(df, block, get_y):
    "A tabular-like Learner whose targets come from a `DataBlock`, with scores that are always high"
    block = DataBlock((RegressionBlock(2), block), get_x=lambda o: [o.x, 1.], get_y=get_y,
                      splitter=IndexSplitter(range(30,60)))
    dls = block.dataloaders(df, bs=10, device=torch.device('cpu'))
    model = nn.Linear(2, len(dls.vocab))
    model.weight.data[:] = 9.
    learn = Learner(dls, model, loss_func=BCEWithLogitsLossFlat(), cbs=ZeroLabelsCallback())
    return learn.remove_cb(ProgressCallback)

def rare_learner(rows, block=None, valid=range(30, 60)):
    "A Learner on texts of labels, whose vocab is that of `block`"
    df = pd.DataFrame(dict(x=np.linspace(-1, 1, len(rows)), labels=rows))
    block = block or label_block(valid)
    dls = block.dataloaders(df, bs=10, device=CPU)
    torch.manual_seed(0)
    return Learner(dls, nn.Linear(2, len(dls.vocab)), loss_func=BCEWithLogitsLossFlat(),
                   cbs=ZeroLabelsCallback()).remove_cb(ProgressCallback)

def label_block(valid=range(30, 60)):
    return DataBlock((RegressionBlock(2), MultiCategoryBlock), get_x=lambda o: [o.x, 1.],
                     get_y=ColReader('labels', label_delim=' '), splitter=IndexSplitter(valid))

USUAL = ['cat dog','dog','bird cat']*20

def test_the_cures_of_absent_labels():
    "Two samples are split, and a new `DataBlock` has no old vocab"
    block,rows = label_block(),['emu cat']*2+USUAL[2:]
    says = ('no validation sample has emu. Count the training samples with `label_stats(learn.dls)`. If a label has '
            'two or more, split again with `StratifiedMultiLabelSplitter` or `stratified_split`, and with `groups=`')
    text, = pitfall_texts(rare_learner(rows, block))
    assert says in text
    df = pd.DataFrame(dict(x=0., labels=rows))
    splitter = StratifiedMultiLabelSplitter(get_y=ColReader('labels', label_delim=' '), valid_pct=0.5, seed=0)
    assert not pitfall_texts(rare_learner(rows, valid=splitter(df)[1]))
    text, = pitfall_texts(rare_learner(USUAL, block))
    assert 'leave the label out of the vocab' in text and not pitfall_texts(rare_learner(USUAL))

COLUMNS = pd.DataFrame(dict(x=np.linspace(-1, 1, 60), a=[0,1,0]*20, b=[1,0,0]*20, c=[0,1,1]*20,
                            labels=['cat dog','dog','bird cat']*20, letters=['p q','q','r']*20))

@pytest.mark.parametrize('kind', [int, str, float, bool])
def test_one_hot_columns_that_are_read_as_lists_are_told(kind):
    df = COLUMNS.astype({c: kind for c in 'abc'})
    text, = pitfall_texts(table_learner(df, MultiCategoryBlock, ColReader(list('abc'))), 2)
    assert 'columns of zeros and ones are read as lists' in text and 'encoded=True, vocab=' in text
    block = MultiCategoryBlock(encoded=True, vocab=list('abc'))
    assert not pitfall_texts(table_learner(COLUMNS, block, ColReader(list('abc'))), 2)

def test_columns_that_are_read_letter_by_letter_are_told():
    df = pd.DataFrame(dict(x=np.linspace(-1, 1, 60), churn=[0,1]*30, refund=[1,0]*30))
    dls = TabularDataLoaders.from_df(df, procs=[Normalize], cont_names=['x'], y_names=['churn','refund'], bs=16,
                                     y_block=MultiCategoryBlock)
    learn = tabular_learner(dls, layers=[4], cbs=ZeroLabelsCallback())
    with pytest.warns(ZeroLabelsWarning, match='the labels are single letters, of the columns churn, refund'):
        with pytest.raises(ValueError, match='Target size'), learn.no_bar(), learn.no_logging(): learn.fit(1)

def test_labels_that_are_single_letters_are_told():
    text, = pitfall_texts(table_learner(COLUMNS, MultiCategoryBlock, ColReader('labels')), 2)
    assert "texts like 'cat dog' are read letter by letter" in text and "label_delim=' '" in text
    for column in ('labels','letters'):
        reader = ColReader(column, label_delim=' ')
        assert not pitfall_texts(table_learner(COLUMNS, MultiCategoryBlock, reader), 2)

@pytest.mark.parametrize('row,says', [
    ([1.]*20, 'every label is true in every sample'),
    ([1.]*5+[0.]*15, 'all 400 samples have the same labels')], ids=['all','some'])
def test_targets_that_are_the_same_for_all_samples_are_told(row, says):
    targs = tensor(row).repeat(400, 1)
    learn = make_learner(9*targs-4, targs, cbs=ZeroLabelsCallback())
    with redirect_stdout(io.StringIO()) as out: texts = pitfall_texts(learn, 4)
    assert sum(says in o for o in texts)==1
    r = learn.zero_labels.records[-1]
    assert r.f1_micro==1 and not r.verdict
    for text in (out.getvalue(), str(r), str(judge(9*targs-4, targs, sigmoid=True))):
        assert 'no longer applies' not in text and 'beats' not in text
    assert 'Epoch 0: the model cannot be judged, because all samples have the same labels' in one_line(r)

def test_a_constant_model_is_never_all_clear():
    "Neither after a verdict of another epoch"
    targs = torch.ones(400, 3)
    learn = make_learner(torch.full((400,3), -9.), targs, cbs=ZeroLabelsCallback())
    with recording(learn): learn.validate()
    with redirect_stdout(io.StringIO()) as out, recording(learn):
        learn.model = nn.Sequential(learn.model, Lambda(lambda x: x+18))
        learn.validate()
    assert 'clear' not in out.getvalue() and learn.zero_labels.records[-1].f1_micro==1

# A situation -> a loss function, what the model ends with, and the advice that callback, metrics and searches share
FLAT = 'use `loss_func=BCEWithLogitsLossFlat'
NO_SIGMOID = "applies another: remove the sigmoid at the model's end"
SITUATIONS = {
    'classes': (nn.CrossEntropyLoss(), Same, f'this loss is not made for labels; {FLAT}()`'),
    'classes with weights': (nn.CrossEntropyLoss(torch.ones(20)), Same, f'this loss is not made for labels; {FLAT}()`'),
    'numbers': (MSELossFlat(), Same, f'this loss is not made for labels; {FLAT}()`'),
    'two sigmoids': (BCEWithLogitsLossFlat(), Sigmoid, NO_SIGMOID),
    "torch's loss after a sigmoid": (nn.BCEWithLogitsLoss(), Sigmoid, f'{NO_SIGMOID}, and {FLAT}()`'),
    "torch's loss with weights after a sigmoid": (
        nn.BCEWithLogitsLoss(pos_weight=torch.ones(20)), Sigmoid, f'{NO_SIGMOID}, and {FLAT}(pos_weight=...)`')}

@pytest.mark.parametrize('bins', [None, slow(99)])
@pytest.mark.parametrize('name', SITUATIONS)
def test_one_situation_has_one_advice(name, bins):
    loss,model,advice = SITUATIONS[name]
    def learner(*cbs): return make_learner(*GOOD, multilabel_metrics(), model(), loss_func=loss, cbs=cbs)
    callback, = pitfall_texts(learner(ZeroLabelsCallback()), 2)
    assert advice in callback
    def texts(f, learn):
        with recording(learn) as caught:
            try: f(learn)
            except ValueError as e: return [one_line(e)]
        return [text for o in caught if advice in (text := one_line(o.message))]
    for f in (partial(Learner.thresh_find, show_plot=False, bins=bins), Learner.accuracy_report):
        text, = texts(f, learner())
        assert advice in text
    if model is Sigmoid:
        text, = texts(Learner.validate, learner())
        assert text in callback # By the metrics
        learn = learner(ZeroLabelsCallback())
        pitfall_texts(learn)
        assert not texts(partial(Learner.thresh_find, show_plot=False, bins=bins), learn) # Told once
    if not Decoding(loss).decodes:
        with pytest.raises(ValueError, match=re.escape(advice.split('and ')[-1])): learner().set_thresh(0.3)

@pytest.mark.parametrize('kw', [dict(weight=torch.ones(20)), dict(pos_weight=torch.full((20,), 2.))])
def test_weights_of_the_loss_are_kept(kw):
    learn = make_learner(*GOOD, multilabel_metrics(), loss_func=nn.BCEWithLogitsLoss(**kw), cbs=ZeroLabelsCallback())
    name, = kw
    text, = pitfall_texts(learn)
    assert f'{FLAT}({name}=...)`' in text
    learn.loss_func = BCEWithLogitsLossFlat(**kw)
    assert not pitfall_texts(learn)

def test_the_advice_on_a_custom_loss_is_the_same_everywhere():
    "It applies a sigmoid, so the model should not"
    def loss(p, y): return F.binary_cross_entropy_with_logits(p, y)
    learn = make_learner(*GOOD, multilabel_metrics(), Sigmoid(), loss_func=loss, cbs=ZeroLabelsCallback())
    text, = pitfall_texts(learn)
    advice = 'set `learn.loss_func.activation = torch.sigmoid` and `learn.loss_func.decodes = torch.round`'
    assert f'The loss function (loss) {NO_SIGMOID}' in text and advice in text
    with pytest.raises(ValueError, match=re.escape(advice)): learn.set_thresh(0.3)

@pytest.mark.parametrize('metrics', [
    [F1ScoreMulti([0.3]*20)], [F1ScoreMulti(np.linspace(0.2, 0.6, 20))], [F1ScoreMulti(0.2), RecallMulti(0.3)]],
    ids=['equal','per label','two metrics'])
def test_several_thresholds_of_the_metrics_are_not_set_for_the_loss(metrics):
    "Which of them is meant is unknown"
    text, = [o for o in pitfall_texts(make_learner(*GOOD, metrics, cbs=ZeroLabelsCallback())) if 'thresh=' in o]
    assert 'but `predict` and `show_results` use 0.5' in text and 'set_thresh' not in text

def started(metrics=None, data=None, vocab=None, **kwargs):
    "The box before the first batch, and the error that ends a fit"
    learn = make_learner(*data or simulate(60, 3), metrics, vocab=vocab, cbs=ZeroLabelsCallback(), **kwargs)
    seen = []
    learn.add_cb(Callback(before_batch=lambda o: seen.append(len(caught))))
    error = None
    with warnings.catch_warnings(record=True) as caught, learn.no_logging():
        warnings.simplefilter('always', ZeroLabelsWarning)
        try: learn.fit(1, 0.)
        except Exception as e: error = e
    return ' '.join(one_line(o.message) for o in caught[:first(seen) or 0]),error

OURS,THEIRS = multilabel_metrics,sys.modules['fastai.metrics']

@pytest.mark.parametrize('metrics,says', [
    (lambda: [OURS(), APScoreMulti()], '`learn.metrics = [*multilabel_metrics(), APScoreMulti()]`'),
    (lambda: {'f1': F1ScoreMulti()}, 'write one flat list'), (lambda: [(F1ScoreMulti(),)], 'write one flat list'),
    (lambda: [THEIRS.accuracy, THEIRS.error_rate], 'for one class per sample: accuracy, error_rate. Use'),
    (lambda: [F1ScoreMulti(), THEIRS.F1Score()], 'for one class per sample: f1_score. Use'),
    (lambda: [partial(THEIRS.top_k_accuracy, k=2)], 'for one class per sample: top_k'),
    (OURS, None), (lambda: [accuracy_multi, F1ScoreMulti, THEIRS.accuracy_multi], None)])
def test_metrics_that_end_a_fit_are_seen_before_the_first_batch(metrics, says):
    text,error = started(metrics())
    assert (says in text and error) if says else not error and 'flat list' not in text and 'one class' not in text

@pytest.mark.parametrize('vocab,says', [
    (['dog','cat',' dog'], "names such as ' dog', because the separator comes with a blank: pass both"),
    (['','cat','dog'], "names such as '', because a text is empty, repeats the separator or ends with it"),
    (['cat','dog','dog;'], "names such as 'dog;'"), (["['cat'","'dog']",'x'], '`.map(ast.literal_eval)`'),
    (['cat','dog','New York (US)'], None), ([1,2,3], None)])
def test_names_that_betray_a_wrong_separator_are_seen_before_the_first_batch(vocab, says):
    text,_ = started(vocab=vocab)
    assert says in text if says else not text

def test_one_class_per_pixel_is_no_multi_label_task():
    pixels = torch.randn(20, 4, 8, 8),torch.randint(0, 4, (20,8,8))
    for metrics in (OURS(), []):
        text,error = started(metrics, pixels, loss_func=CrossEntropyLossFlat(axis=1))
        for o in (text, str(error)): assert 'DiceMulti()' in o and 'F.one_hot' in o and 'movedim' not in o
    text,_ = started(OURS(), (torch.randn(60, 4), torch.randint(0, 4, (60,))), loss_func=CrossEntropyLossFlat())
    assert 'is for one class per sample or pixel' in text

def test_no_validation_set_is_said():
    block = label_block(valid=[])
    learn = rare_learner(USUAL, block)
    learn.metrics = OURS()
    text, = pitfall_texts(learn, 2)
    assert 'the validation set is empty, so all metrics are None' in text and 'valid_pct=0.2' in text

@pytest.mark.parametrize('rows,delim,says', [
    (['cat, dog','dog'], ',', "`label_delim=', '`"), (['cat;dog;','dog;'], ';', "`.str.strip('; ')`"),
    (['cat  dog','dog'], ' ', "`.str.split().str.join(' ')`"), (["['cat', 'dog']","['dog']"], ', ', 'ast.literal_eval'),
    (["['cat', 'dog']","['dog']"], None, 'ast.literal_eval'), (['cat, dog','dog'], None, 'letter by letter')], ids=str)
def test_one_wrong_separator_has_one_cure(rows, delim, says):
    block = DataBlock((RegressionBlock(2), MultiCategoryBlock), get_x=lambda o: [o.x, 1.],
                      get_y=ColReader('labels', label_delim=delim), splitter=IndexSplitter(range(30, 60)))
    text = ' '.join(pitfall_texts(rare_learner(rows*30, block)))
    assert says in text and sum(o in text for o in ('letter by letter','names such as'))==1

def test_a_softmax_is_not_taken_for_a_sigmoid():
    for loss,sigmoid in ((BCELossFlat(), False), (BCEWithLogitsLossFlat(), True)):
        text = ' '.join(pitfall_texts(make_learner(
            *simulate(), OURS(sigmoid=sigmoid), nn.Sequential(Same(), nn.Softmax(-1)), loss_func=loss,
            cbs=ZeroLabelsCallback(sigmoid=sigmoid))))
        assert 'end the model without a softmax' in text and 'remove the sigmoid' not in text
