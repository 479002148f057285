"Each remedy, followed as it is written, in trainings of a second: it does what it says"
from conftest import *
from fastai_mlmetrics.verdicts import LOSS_ADVICE, REMEDIES

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
    with warnings.catch_warnings(), learn.no_logging():
        warnings.simplefilter('ignore')
        learn.fit(*args)
    return learn.zero_labels.records[-1]

def validated(learn):
    with warnings.catch_warnings(), learn.no_logging():
        warnings.simplefilter('ignore')
        learn.validate()
    return learn.zero_labels.records[-1]

def advice(r, name):
    "The text of a remedy that applies"
    row, = [o for o in REMEDIES if o.name==name]
    assert row.applies(r)
    return row.says(r)

def loss_advice(r, name):
    assert first(LOSS_ADVICE, lambda o: o.applies(r)).name==name
    return advice(r, 'training')

def follow(learn, text):
    "Run the code of an advice, line by line"
    with warnings.catch_warnings(), learn.no_logging():
        warnings.simplefilter('ignore')
        for code in re.findall(r'`(learn\.[^`]*)`', text): exec(code, dict(globals(), learn=learn))
    plt.close('all')

def promised(text): return float(re.search(r'micro F1 of (\S+) instead', text)[1])

FOLLOWED = {}
def remedy(name):
    "Register a test as that of a remedy"
    return lambda f: FOLLOWED.setdefault(name, []).append(f) or f

@remedy('another threshold')
def another_thresh():
    learn = learner(layers=(50,))
    before = fit(learn, 10, 1e-3)
    text = advice(before, 'another threshold')
    follow(learn, text)
    assert validated(learn).f1_micro==pytest.approx(promised(text), abs=0.0051)

@remedy('thresholds per label')
def thresh_per_label():
    learn = learner(bias=torch.tensor([-1.]*7+[-6.]*3)) # Three rare labels
    before = fit(learn, 20, 1e-2)
    text = advice(before, 'thresholds per label')
    assert [o['label'] for o in before.dead]==['i'] and ' is i 0.' in text
    follow(learn, text)
    after = validated(learn)
    assert not after.dead and after.f1_macro>before.f1_macro+0.02

@remedy('more to learn from')
def more_to_learn_from():
    "For a label that is hardly ranked better than chance"
    def fit_on(n):
        learn = learner(n, layers=(100,), seed=3)
        for o in learn.dls.loaders:
            x,y = o.dataset.ts
            y[:,9] = (x[:,0]*x[:,1] > 2).float()
        return fit(learn, 10, 1e-2)
    before = fit_on(200)
    assert [o['label'] for o in before.dead]==['j'] and ' is j 0.' in advice(before, 'more to learn from')
    assert not fit_on(4000).dead

@remedy('a label each')
def label_each():
    learn = learner(layers=(50,))
    text = advice(fit(learn, 4, 1e-3), 'a label each')
    follow(learn, text)
    after = validated(learn)
    assert after.empty_rate==0 and after.f1_micro==pytest.approx(promised(text), abs=0.0051)

@remedy('a smaller pos_weight')
def smaller_pos_weight():
    weight = torch.full((10,), 20.)
    learn = learner(loss_func=BCEWithLogitsLossFlat(pos_weight=weight))
    before = fit(learn, 20, 1e-2)
    assert 'the root of this one, and more training' in advice(before, 'a smaller pos_weight')
    learn.loss_func = BCEWithLogitsLossFlat(pos_weight=weight.sqrt())
    after = fit(learn, 20, 1e-2)
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
    assert 'More training: the validation loss is still falling' in loss_advice(before, 'falls')
    after = fit(learn, 20, 1e-3)
    assert after.valid_loss<0.8*before.valid_loss and after.f1_micro>before.f1_micro+0.1

@remedy('training')
def rate_of_lr_find():
    learn = learner(layers=(50,))
    before = fit(learn, 4, 1e-7)
    assert '`learn.lr_find()` suggests' in loss_advice(before, 'is flat')
    with learn.no_logging(), learn.no_bar(): lr = learn.lr_find(show_plot=False).valley
    assert fit(learn, 4, lr).valid_loss<0.8*before.valid_loss

@remedy('training')
def lower_rate():
    before = fit(learner(layers=(50,)), 6, 100.)
    assert 'A lower learning rate' in loss_advice(before, 'has risen')
    assert fit(learner(layers=(50,)), 6, 1e-2).valid_loss<0.1*before.valid_loss

@remedy('training')
def fewer_epochs_or_more_data():
    learn = learner(100, layers=(200,))
    before = fit(learn, 30, 1e-2)
    assert 'Fewer epochs, or more data' in loss_advice(before, 'overfits')
    epochs = 1+int(np.argmin([o.valid_loss for o in learn.zero_labels.records]))
    for n,e in ((100,epochs), (2000,30)):
        assert fit(learner(n, layers=(200,)), e, 1e-2).valid_loss<0.8*before.valid_loss

@remedy('a weighted loss')
def weighted_loss():
    "After more training alone, the model predicts too little; the last line tunes the threshold after training"
    learn = learner(layers=(50,))
    before = fit(learn, 10, 1e-3)
    weigh,tune = advice(before, 'a weighted loss').split('and training on;')
    follow(learn, weigh)
    assert learn.loss_func.func.pos_weight.shape==(10,)
    fit(learn, 10, 1e-3)
    follow(learn, tune)
    after = validated(learn)
    assert not after.flagged and after.f1_micro>before.f1_micro+0.1

@remedy('a better model')
def better_model():
    "Right after the first epoch, when no trend of the loss is known"
    learn = learner(layers=(50,))
    before = fit(learn, 1, 1e-3)
    assert 'more training, at a learning rate from `learn.lr_find()`' in advice(before, 'a better model')
    with learn.no_logging(), learn.no_bar(): lr = learn.lr_find(show_plot=False).valley
    assert fit(learn, 20, lr).f1_micro>before.f1_micro+0.1

@pytest.mark.parametrize('f', [f for fs in FOLLOWED.values() for f in fs], ids=lambda f: f.__name__)
def test_followed(f): f()

def test_each_remedy_is_followed(): assert FOLLOWED.keys()=={o.name for o in REMEDIES}
