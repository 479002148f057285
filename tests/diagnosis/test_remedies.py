"Remedies that do what they say"
from dataclasses import FrozenInstanceError
from helpers import *
from fastai_mlmetrics.diagnosis.remedies import LOSS_ADVICE, REMEDIES, remedies
from fastai_mlmetrics.core.decoding import Decoding
from fastai_mlmetrics.diagnosis.records import FACTS, Record

# Each remedy, followed as it is written, in trainings of a second: it does what it says

def learner(n=600, c=10, d=20, bias=-3., layers=(), seed=0, loss_func=None):
    "A Learner on rows of numbers, with a linear model or an MLP"
    set_seed(seed)
    x = torch.randn(n+1000, d)
    y = torch.bernoulli((x@torch.randn(d, c)*0.7+bias).sigmoid())
    train,valid = (TensorPairs(x[o], y[o]) for o in (slice(n), slice(n, None)))
    dls = DataLoaders(DataLoader(train, bs=64, shuffle=True), DataLoader(valid, bs=500), device=torch.device('cpu'))
    dls.vocab = list('abcdefghij')
    sizes = [d, *layers, c]
    linear = [nn.Linear(*o) for o in zip(sizes, sizes[1:])]
    model = nn.Sequential(*linear[:1], *(o for l in linear[1:] for o in (nn.ReLU(),l)))
    learn = Learner(dls, model, loss_func=loss_func or BCEWithLogitsLossFlat(), metrics=multilabel_metrics(),
                    splitter=lambda m: [params(m[:-1]), params(m[-1])], cbs=ZeroLabelsCallback())
    learn.remove_cb(ProgressCallback)
    return learn

def fit(learn, *args):
    "The record after a fit"
    with warnings_as('ignore'), learn.no_logging(): learn.fit(*args)
    return learn.zero_labels.records[-1]

def validated(learn):
    with warnings_as('ignore'), learn.no_logging(): learn.validate()
    return learn.zero_labels.records[-1]

def advice(r, code):
    "The text of a remedy that applies"
    row, = [o for o in REMEDIES if o.code==code]
    assert row.applies(r)
    return row.says(r)

def loss_advice(r, code):
    assert first(LOSS_ADVICE, lambda o: o.applies(r)).code==code
    return advice(r, 'training')

def promised(text): return float(re.search(r'[Mm]icro F1 rises from \S+ to (\d\.\d+)', text)[1])

FOLLOWED = {}
def remedy(name):
    "Register a test as that of a remedy"
    return lambda f: FOLLOWED.setdefault(name, []).append(f) or f

@remedy('another-loss')
def another_loss():
    before = fit(learner(loss_func=MSELossFlat(), layers=(50,)), 2, 1e-3)
    assert before.remedies[0]=='another-loss' and 'training' not in before.remedies
    code = re.search('`loss_func=(.*)`', advice(before, 'another-loss'))[1]
    assert 'another-loss' not in fit(learner(loss_func=eval(code), layers=(50,)), 2, 1e-3).remedies

@remedy('another-threshold')
def another_thresh():
    learn = learner(layers=(50,))
    before = fit(learn, 10, 1e-3)
    text = advice(before, 'another-threshold')
    follow(learn, text)
    assert validated(learn).f1_micro==pytest.approx(promised(text), abs=0.0051)

def scaled(learn):
    "A Learner whose labels differ in the scale of their scores"
    scale,shift = torch.linspace(0.2, 3, 10),torch.linspace(-6, 6, 10)
    class Scaled(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model
        def forward(self, x): return self.model(x)*scale+shift
    learn.model = Scaled(learn.model)
    return learn

@remedy('scores')
def scores_of_decisions():
    logits,targs = simulate(bias=-6.)
    assert 'Pass probabilities or logits instead' in advice(judge(logits>0, targs), 'scores')
    advice(judge(logits, targs, sigmoid=True), 'another-threshold')

@remedy('thresholds-per-label')
def own_thresholds():
    learn = learner()
    fit(learn, 20, 1e-2)
    before = validated(scaled(learn))
    text = advice(before, 'thresholds-per-label')
    follow(learn, text)
    after,held_out = validated(learn),float(re.search(r'Cross-validated micro F1.*?: (\S+) per label', text)[1])
    assert held_out-0.005<after.f1_micro<held_out+0.05 # Tuned on the same samples
    assert after.f1_micro>before.suggested_f1+0.02

@remedy('thresholds-for-macro-f1')
def thresh_per_label():
    learn = learner(bias=torch.tensor([-1.]*7+[-6.]*3)) # Three rare labels
    before = fit(learn, 20, 1e-2)
    text = advice(before, 'thresholds-for-macro-f1')
    assert [o['label'] for o in before.dead]==['i'] and ': i (average precision 0.' in text
    follow(learn, text)
    after = validated(learn)
    assert not after.dead and after.f1_macro>before.f1_macro+0.02

@remedy('more-samples')
def more_samples():
    "For a label that is hardly ranked better than chance"
    def fit_on(n):
        learn = learner(n, layers=(100,), seed=3)
        for o in learn.dls.loaders:
            x,y = o.dataset.ts
            y[:,9] = (x[:,0]*x[:,1] > 2).float()
        return fit(learn, 10, 1e-2)
    before = fit_on(200)
    assert [o['label'] for o in before.dead]==['j'] and ': j (average precision 0.' in advice(before, 'more-samples')
    assert not fit_on(4000).dead

@remedy('a-label-each')
def label_each():
    "Of a model whose scores are all high for some samples, and all low for others, so that no threshold fits"
    logits,targs = simulate(600, 8, 0.15)
    targs[~targs.any(1),0] = 1
    logits += 3*torch.randn(600, 1, generator=torch.Generator().manual_seed(0))
    learn = make_learner(logits, targs, multilabel_metrics(), cbs=ZeroLabelsCallback())
    text = advice(validated(learn), 'a-label-each')
    follow(learn, text)
    after = validated(learn)
    assert after.empty_rate==0 and after.f1_micro==pytest.approx(promised(text), abs=0.0051)

@remedy('a-smaller-pos-weight')
def smaller_pos_weight():
    weight = torch.full((10,), 20.)
    learn = learner(loss_func=BCEWithLogitsLossFlat(pos_weight=weight))
    before = fit(learn, 20, 1e-2)
    assert 'the square root of the present one, and train on' in advice(before, 'a-smaller-pos-weight')
    learn.loss_func = BCEWithLogitsLossFlat(pos_weight=weight.sqrt())
    after = fit(learn, 20, 1e-2)
    assert 'smaller' not in ' '.join(remedies(after))
    assert after.verdict!='over-predicts'==before.verdict and after.f1_micro>before.f1_micro+0.05

@remedy('unfreezing')
def unfreezing():
    def more(unfreeze):
        learn = learner(layers=(50,))
        learn.freeze()
        before = fit(learn, 5, 1e-3)
        if unfreeze: follow(learn, advice(before, 'unfreezing'))
        return fit(learn, 20, 3e-3)
    assert more(True).f1_micro>more(False).f1_micro+0.05

@remedy('training')
def more_training():
    learn = learner(layers=(50,))
    before = fit(learn, 4, 1e-3)
    text = loss_advice(before, 'loss-falls')
    assert 'Train longer, with `learn.fit_one_cycle(8, 0.001)`: the validation loss is still falling' in text
    after,n = before,0
    while 'training' in after.remedies and n<30:
        follow(learn, text)
        after,n = learn.zero_labels.records[-1],n+1
    assert n<30 and after.valid_loss<0.8*before.valid_loss and after.f1_micro>before.f1_micro+0.1

@remedy('overfits')
def fewer_epochs_or_more_data():
    learn = learner(100, layers=(200,))
    before = fit(learn, 30, 1e-2)
    assert 'Use fewer epochs, or more data' in advice(before, 'overfits')
    epochs = 1+int(np.argmin([o.valid_loss for o in learn.zero_labels.records]))
    for n,e in ((100,epochs), (2000,30)):
        assert fit(learner(n, layers=(200,)), e, 1e-2).valid_loss<0.8*before.valid_loss

@remedy('a-weighted-loss')
def weighted_loss():
    "After more training alone, the model predicts too little; the last line tunes the threshold after training"
    learn = learner(layers=(50,))
    before = fit(learn, 10, 1e-3)
    weigh,tune = advice(before, 'a-weighted-loss').split('3. Train on.')
    follow(learn, weigh)
    assert learn.loss_func.func.pos_weight.shape==(10,)
    fit(learn, 10, 1e-3)
    follow(learn, tune)
    after = validated(learn)
    assert not after.flagged and after.f1_micro>before.f1_micro+0.1

@remedy('a-better-model')
def better_model():
    "Right after the first epoch, when no trend of the loss is known; then the threshold is tuned, as is advised next"
    learn = learner(layers=(50,))
    before = fit(learn, 1, 1e-3)
    text = advice(before, 'a-better-model')
    assert 'Train longer, with `learn.fit_one_cycle(2, 0.001)`, or try another model' in text
    after = fit(learn, 20, 1e-3)
    follow(learn, advice(after, 'another-threshold'))
    assert validated(learn).f1_micro>before.f1_micro+0.1

@pytest.mark.slow # trainings
@pytest.mark.parametrize('f', [f for fs in FOLLOWED.values() for f in fs], ids=lambda f: f.__name__)
def test_a_remedy_that_is_followed_helps(f): f()

def test_each_remedy_is_followed(): assert FOLLOWED.keys()=={o.code for o in REMEDIES}

def test_codes_are_stable_names_and_unique():
    from fastai_mlmetrics.diagnosis.pitfalls import PITFALLS
    from fastai_mlmetrics.diagnosis.verdicts import VERDICTS
    codes = [o.code for table in (VERDICTS, LOSS_ADVICE, REMEDIES, FACTS, PITFALLS) for o in table]
    assert len({*codes})==len(codes) and all(re.fullmatch(r'[a-z0-9]+(-[a-z0-9]+)*', o) for o in codes)
    with pytest.raises(FrozenInstanceError): VERDICTS[0].code = 'another'

def test_an_interpretation_of_a_learner_names_what_to_call():
    "Only of its validation set; arrays have no Learner"
    logits,targs = scales()
    learn = make_learner(logits, targs, multilabel_metrics())
    learn.dls = DataLoaders(make_learner(logits[::2], targs[::2]).dls.valid, learn.dls.valid, device=learn.dls.device)
    of = MultiLabelInterpretation
    calls = {'label: `learn.set_thresh(learn.thresh_find(per_label=True))`.': of.from_learner(learn),
             'Call `MultiLabelInterpretation.from_learner(learn).judge()`': of.from_learner(learn, 0),
             'per label: `best_thresholds(preds, targs, per_label=True, sigmoid=True)`.':
                 of.from_preds(logits, targs, sigmoid=True)}
    for call,interp in calls.items():
        helps = remedies(interp.judge())
        assert call in helps[0] and ('best_thresholds' in ' '.join(helps))==('best_thresholds' in call)
    assert len(remedies(of.from_learner(learn, 0).judge()))==1
    follow(learn, remedies([*calls.values()][0].judge())[0])
    after = MultiLabelInterpretation.from_learner(learn).judge()
    assert after.f1_micro>0.85 and 'a threshold per label' not in one_line(after)
    with pytest.raises(TypeError): [*calls.values()][0].judge(min_acuracy=0.3)

OTHERS = dict(a=0.1, c=0.3)

def looking_at(labels, logits, targs):
    "A Learner of five labels whose metrics and callback look at some of them"
    learn = make_learner(logits, targs, multilabel_metrics(labels=labels), vocab=[*'abcde'], cbs=ZeroLabelsCallback())
    learn.set_thresh(OTHERS | dict(b=0.9, d=0.95, e=0.97))
    return learn

@pytest.mark.parametrize('labels,start', [
    (['b'], 'Lower the threshold: `learn.set_thresh({\'b\': '),
    (['d','b'], 'Use one threshold for these labels: `learn.set_thresh({\'d\': ')])
def test_a_threshold_for_some_labels_leaves_the_others_alone(labels, start):
    learn = looking_at(labels, *simulate(600, 5, 0.2, 3., -3.))
    r = validated(learn)
    text = advice(r, 'another-threshold')
    assert text.startswith(start)
    follow(learn, text)
    now = dict(zip('abcde', learn.loss_func.thresh))
    assert now==OTHERS | dict(b=0.9, d=0.95, e=0.97) | dict.fromkeys(labels, r.suggested_thresh)
    assert validated(learn).f1_micro==pytest.approx(r.suggested_f1, abs=1e-6) and values(learn)['f1_micro']>r.f1_micro

def test_thresholds_per_label_for_some_labels_leave_the_others_alone():
    logits,targs = simulate(1500, 5, 0.2, 4., -2.)
    learn = looking_at(['b','d','e'], logits+torch.tensor([0.,-4.,0.,0.,4.]), targs)
    r = validated(learn)
    text = advice(r, 'thresholds-per-label')
    call = "learn.thresh_find(per_label=True, labels=['b', 'd', 'e'])"
    assert f'`learn.set_thresh({call})`' in text
    follow(learn, text)
    now = dict(zip('abcde', learn.loss_func.thresh))
    assert {k: now[k] for k in OTHERS}==OTHERS and len({*now.values()})==5
    assert validated(learn).f1_micro>r.f1_micro+0.2
    assert 'pos_weight' not in ' '.join(remedies(r)) # It would change all labels
    learn.loss_func = nn.BCEWithLogitsLoss() # Nothing to set: metrics and callback are written anew
    with warnings_as('ignore'): text = advice(validated(learn), 'thresholds-per-label')
    assert call in text and 'set_thresh' not in text

@pytest.mark.slow
def test_what_helps_is_what_a_search_finds():
    "Of new samples of many kinds: no threshold is advised that a search finds no better, held out, than the one in use"
    from fastai_mlmetrics.diagnosis.verdicts import per_label_helps, thresh_helps
    n_advised = Counter()
    for n,skill,shift,thresh,seed in itertools.product((60,200,800), (1.,3.), (0.,4.), (0.5,0.3), range(5)):
        logits,targs = simulate(n, 6, 0.15, skill, -2., seed)
        scores = (logits+shift*torch.linspace(-1, 1, 6)).sigmoid()
        r = judge(scores, targs, thresh=thresh)
        one,each = (best_thresholds(scores, targs, per_label=o) for o in (False,True))
        n_advised.update(one=int(thresh_helps(r)), each=int(per_label_helps(r)))
        if thresh_helps(r): assert one.held_out>r.f1_micro
        if per_label_helps(r): assert each.held_out>max(r.f1_micro, one.held_out)
    assert min(n_advised.values())>10

def test_no_threshold_is_called_the_best_that_is_worse_than_the_present_one():
    "At this threshold, more labels are predicted than a threshold that is suggested may predict"
    text = one_line(judge(*simulate(400, 8, density=0.2, skill=0.2, bias=-3, seed=6), thresh=0.0225, sigmoid=True))
    assert 'no threshold helps much' in text
    assert 'Micro F1 is 0.342 now, and 0.332 for the same labels' in text

def test_a_threshold_that_was_searched_for_stays():
    "A required recall, or the best macro F1, is not undone by advice for micro F1; nor is a threshold set twice"
    learn = make_learner(*scales(), multilabel_metrics(), cbs=ZeroLabelsCallback())
    with recording(learn): learn.validate()
    advised = {'thresholds-per-label','another-threshold','thresholds-for-macro-f1'}
    assert advised & {*learn.zero_labels.explain().remedies}
    with learn.no_logging(), contextlib.redirect_stdout(io.StringIO()):
        learn.set_thresh(learn.thresh_find(at_recall=0.95, show_plot=False))
    changed = 'the threshold was changed after this validation: learn.evaluate() shows what it gives'
    assert changed in one_line(repr(learn.zero_labels.explain()))
    assert not advised & {*learn.zero_labels.explain().remedies}
    with recording(learn): learn.validate()
    last = learn.zero_labels.explain()
    assert not advised & {*last.remedies} and changed not in one_line(repr(last))
    assert not advised & {*MultiLabelInterpretation.from_learner(learn).judge().remedies}
    learn.set_thresh(0.5) # Chosen by hand
    with recording(learn): learn.validate()
    assert advised & {*learn.zero_labels.explain().remedies}

def test_the_trend_of_a_fit_holds_for_a_validation_of_its_weights():
    learn = learner(layers=(50,))
    before = fit(learn, 4, 1e-3)
    assert before.loss_trend=='falls' and validated(learn).remedies[0]=='training'
    call = 'learn.fit_one_cycle(8, 0.001)'
    assert validated(learn).fit_code==learn.zero_labels.explain().fit_code==call
    assert 'still falling' in repr(validated(learn)) and 'is loaded' not in repr(validated(learn))
    with torch.no_grad(): learn.model[-1].bias += 1
    assert not validated(learn).loss_trend

@pytest.mark.parametrize('train,call', [
    (lambda o: o.fine_tune(2, 2e-2), 'learn.fit_one_cycle(4, slice(0.0001, 0.01))'),
    (lambda o: o.fit_one_cycle(2, slice(1e-3)), 'learn.fit_one_cycle(4, slice(0.0001, 0.001))'),
    (lambda o: o.fit_flat_cos(3, 1e-3), 'learn.fit_one_cycle(6, 0.001)'),
    (lambda o: o.fit(3, 1e-3, cbs=ParamScheduler({'lr': SchedCos(3e-3, 1e-5)})), 'learn.fit_one_cycle(6, 0.003)')])
def test_training_longer_is_twice_as_long(train, call):
    learn = learner(layers=(50,))
    with warnings_as('ignore'), learn.no_logging(): train(learn)
    r = learn.zero_labels.records[-1]
    assert r.fit_code==call
    n,rest = re.fullmatch(r'(learn.fit_one_cycle\()(\d+)(.*)', call).groups()[1:]
    follow(learn, f'`{call}`')
    assert learn.zero_labels.records[-1].fit_code==f'learn.fit_one_cycle({2*int(n)}{rest}'

def test_no_advice_takes_back_what_was_followed():
    "Nor repeats it: of thresholds and of one label per sample, in 96 states"
    followed = Counter()
    for n,c,skill,bias,thresh,seed in itertools.product((60,200), (5,12), (1.,2.5), (-3.,-1.5), (0.5,0.3), range(3)):
        logits,targs = simulate(n, c, 0.15, skill, bias, seed)
        targs[~targs.any(1), 0] = 1
        logits += 2*torch.randn(n, 1, generator=torch.Generator().manual_seed(seed))
        before = judge(logits, targs, sigmoid=True, thresh=thresh)
        rules = {'another-threshold': dict(thresh=before.suggested_thresh),
                 'a-label-each': dict(thresh=thresh, min_labels=1)}
        for code in rules.keys() & {*before.remedies}:
            followed[code] += 1
            assert not rules.keys() & {*judge(logits, targs, sigmoid=True, **rules[code]).remedies}-{'a-label-each'}
    assert min(followed.values())>5

@pytest.mark.parametrize('average', ['micro','macro'])
def test_one_label_per_sample_keeps_a_threshold_that_was_searched_for(average):
    learn = make_learner(*simulate(600, 5, 0.25, 2., -2.), multilabel_metrics(), cbs=ZeroLabelsCallback())
    with learn.no_logging(), contextlib.redirect_stdout(io.StringIO()):
        learn.set_thresh(learn.thresh_find(average=average, show_plot=False))
    thresh = learn.loss_func.thresh
    r = Record(validated(learn), f1_micro=0.1, label_each_f1=0.9)
    follow(learn, one_line(REMEDIES[[o.code for o in REMEDIES].index('a-label-each')].says(r)))
    assert np.allclose(learn.loss_func.thresh, thresh) and learn.loss_func.min_labels==1
    assert validated(learn).tuned and Decoding(learn.loss_func).tuned_on
    learn.set_thresh(0.5) # Chosen by hand
    assert not validated(learn).tuned
