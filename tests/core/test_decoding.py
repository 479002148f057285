"What a loss function does with predictions: activation, threshold and limits"
from helpers import *
from fastai.losses import BCEWithLogitsLossFlat as FastaiLoss
from fastai_mlmetrics.core.decoding import Decoding, range_words
from fastai_mlmetrics.core.messages import PROBS_GIVEN
from fastai_mlmetrics.core.rules import RangeFound

LOGITS = tensor([[2.,-1.,0.], [-3.,-2.,0.4]])

@pytest.mark.parametrize('loss, decodes, is_activated, takes_logits', [
    (BCEWithLogitsLossFlat(), True, True, True),
    (FastaiLoss(), True, True, True),
    (nn.BCEWithLogitsLoss(), False, False, True),
    (F.binary_cross_entropy_with_logits, False, False, True),
    (BCELossFlat(), False, False, False),
    (nn.BCELoss(), False, False, False)])
def test_what_loss_functions_do(loss, decodes, is_activated, takes_logits):
    decoding = Decoding(loss, 3)
    assert decoding.decodes is decodes
    assert decoding.is_activated is is_activated
    assert decoding.takes_logits is takes_logits

@pytest.mark.parametrize('name', ['pos_weight','weight'])
@pytest.mark.parametrize('make', [nn.BCEWithLogitsLoss, BCEWithLogitsLossFlat])
def test_weights_tell_how_many_labels_a_loss_takes(make, name):
    assert Decoding(make(**{name: torch.ones(3)})).takes_logits is True

def test_the_threshold_and_limits_are_those_of_the_loss():
    loss = BCEWithLogitsLossFlat(thresh=0.3)
    loss.min_labels = 1
    loss.max_labels = 2
    decoding = Decoding(loss)
    assert decoding.args==dict(thresh=0.3, min_labels=1, max_labels=2) and decoding.has_thresh
    assert decoding.rule==ThresholdRule(0.3, min_labels=1, max_labels=2)

def test_a_loss_without_threshold_has_the_default_one():
    decoding = Decoding(nn.BCEWithLogitsLoss())
    assert decoding.args==dict(thresh=0.5, min_labels=0, max_labels=None) and not decoding.has_thresh
    assert decoding.rule==ThresholdRule(0.5)

@pytest.mark.parametrize('loss, expected', [
    (BCEWithLogitsLossFlat(), True), (FastaiLoss(), True), (nn.BCEWithLogitsLoss(), True), (nn.BCELoss(), True),
    (BCEWithLogitsLossFlat(ignore_index=-1), False), # It ignores targets, and says so
    (MaskedFlat(), False), (Masked(), False)]) # They ignore targets by code of their own
def test_which_losses_train_on_all_targets(loss, expected):
    assert Decoding(loss).trains_on_all is expected

def test_probabilities_of_predictions():
    probs = LOGITS.sigmoid()
    assert torch.equal(Decoding(nn.BCEWithLogitsLoss()).to_probs(LOGITS), probs)
    for loss in (BCEWithLogitsLossFlat(), nn.BCELoss()): assert torch.equal(Decoding(loss).to_probs(probs), probs)

@pytest.mark.parametrize('loss, name', [(MSELossFlat(), 'MSELoss'), (nn.BCELoss(), 'BCELoss'),
                                        (nn.CrossEntropyLoss(), 'CrossEntropyLoss')])
def test_predictions_that_are_neither_logits_nor_probabilities_are_an_error(loss, name):
    with pytest.raises(ValueError) as e: Decoding(loss).to_probs(LOGITS)
    assert str(e.value)==(f"the loss function ({name}) takes neither logits nor probabilities: "
                          + Decoding(loss).advice(False))
    assert 'use `loss_func=BCEWithLogitsLossFlat()`' in str(e.value)

W = torch.ones(3)
FLAT = 'use `loss_func=BCEWithLogitsLossFlat'
OTHER = f'this loss is not made for labels; {FLAT}()`'

@pytest.mark.parametrize('loss, expected', [
    (nn.BCEWithLogitsLoss(), f'{FLAT}()`'),
    (nn.BCEWithLogitsLoss(pos_weight=W), f'{FLAT}(pos_weight=...)`'),
    (nn.BCEWithLogitsLoss(weight=W), f'{FLAT}(weight=...)`'),
    (nn.BCEWithLogitsLoss(weight=W, pos_weight=W), f'{FLAT}(weight=..., pos_weight=...)`'),
    (partial(F.binary_cross_entropy_with_logits, pos_weight=W), f'{FLAT}(pos_weight=...)`'),
    (nn.CrossEntropyLoss(), OTHER), (F.cross_entropy, OTHER), (MSELossFlat(), OTHER),
    (nn.CrossEntropyLoss(weight=W), OTHER), (partial(F.cross_entropy, weight=W), OTHER)])
def test_another_loss_keeps_the_weights_that_it_can(loss, expected):
    "Where the model ends with a sigmoid, that comes first"
    decoding = Decoding(loss, 3)
    assert decoding.advice(False)==expected and not decoding.decodes
    why,use,rest = expected.partition('use ')
    assert decoding.advice(True)==f"{why}remove the sigmoid at the model's end, and {use}{rest}"

def test_weights_that_are_kept_give_the_same_loss():
    g = torch.Generator().manual_seed(0)
    w,p,y = torch.rand(3, generator=g),torch.randn(8, 3, generator=g),torch.rand(8, 3, generator=g).round()
    for kw in (dict(weight=w), dict(pos_weight=w), dict(weight=w, pos_weight=w)):
        same(BCEWithLogitsLossFlat(**kw)(p, y), nn.BCEWithLogitsLoss(**kw)(p, y), eps=1e-6)

SEEMS = 'predictions all lie in [0, 1], so the model seems to end with a sigmoid'
REMOVE = "remove the sigmoid at the model's end"
KEEP = f'pass sigmoid=False to each metric and to ZeroLabelsCallback, or {REMOVE}'
def named(p, y): return F.binary_cross_entropy(p, y)

@pytest.mark.parametrize('loss, expected', [
    (BCEWithLogitsLossFlat(), f'. The loss function (BCEWithLogitsLoss) applies another: {REMOVE}'),
    (nn.BCEWithLogitsLoss(pos_weight=W),
     f'. The loss function (BCEWithLogitsLoss) applies another: {REMOVE}, and {FLAT}(pos_weight=...)`'),
    (F.binary_cross_entropy_with_logits,
     f'. The loss function (binary_cross_entropy_with_logits) applies another: {REMOVE}, and {FLAT}()`'),
    (BCELossFlat(), f': {KEEP}, and {FLAT}()`'),
    (nn.BCELoss(weight=W), f': {KEEP}, and {FLAT}(weight=...)`'),
    (MSELossFlat(), f': this loss is not made for labels; {REMOVE}, and {FLAT}()`'),
    (nn.CrossEntropyLoss(), f': this loss is not made for labels; {REMOVE}, and {FLAT}()`'),
    (named, f': {KEEP}'),
    (lambda p, y, k: 0, f': {KEEP}')])
def test_a_sigmoid_too_many_has_one_text(loss, expected):
    assert range_words(RangeFound('probabilities', 0.1, 0.9), Decoding(loss, 3))==SEEMS+expected

def test_arrays_have_no_loss_function():
    found = RangeFound('probabilities', 0.1, 0.9)
    assert range_words(None) is None
    for decoding in (None, Decoding.of(SimpleNamespace())):
        assert range_words(found, decoding)==PROBS_GIVEN and PROBS_GIVEN.endswith('pass sigmoid=False')
    logits = RangeFound('logits', -3., 3.)
    assert range_words(logits)==logits.text
    assert range_words(logits, Decoding(nn.BCELoss()))==f'{logits.text} to each metric and to ZeroLabelsCallback'

@pytest.mark.parametrize('loss, through', [(BCEWithLogitsLossFlat(), torch.sigmoid), (nn.BCEWithLogitsLoss(), noop)])
def test_two_sigmoids_show_in_the_range_of_predictions(loss, through):
    "`through` is what `get_preds` applies"
    outputs,decoding = torch.linspace(0, 1, 12).view(4, 3),Decoding(loss)
    assert decoding.range_found(through(outputs)).kind=='probabilities'
    for other in (outputs*1.1, outputs-0.1, outputs[:2], torch.full((4,3), 0.4)):
        assert decoding.range_found(through(other)) is None
    assert Decoding(nn.BCELoss()).range_found(outputs) is None

def test_a_plain_function_trains_on_all_targets():
    assert Decoding(F.binary_cross_entropy_with_logits).trains_on_all and not Decoding(F.mse_loss).trains_on_all

class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)
    def forward(self, x): return torch.sigmoid(self.fc(x))

@pytest.mark.parametrize('make,ends', [
    (lambda: nn.Linear(2, 3), False), (lambda: nn.Sequential(nn.Sigmoid(), nn.Linear(2, 3)), False),
    (lambda: nn.Sequential(nn.Linear(2, 3), nn.Sigmoid()), True), (Functional, True),
    (lambda: nn.Sequential(nn.Linear(2, 2), Functional()), True)])
def test_a_sigmoid_is_removed_only_where_there_is_one(make, ends):
    "Logits that hardly depend on the input lie in [0, 1] too"
    model = make()
    for o in model.parameters(): o.data.fill_(0.02)
    list(model.parameters())[-1].data.fill_(0.4)
    learn = make_learner(torch.randn(60, 2), (torch.rand(60, 3)<0.6).float(), multilabel_metrics(), model,
                         cbs=ZeroLabelsCallback())
    with recording(learn) as caught: learn.validate()
    assert any('remove the sigmoid' in one_line(o.message) for o in caught)==ends
    with recording(learn) as caught: learn.thresh_find(show_plot=False)
    assert bool(learn.zero_labels.records[-1].range_problem)==ends

def test_narrow_logits_at_a_threshold_for_probabilities_are_told():
    learn = make_learner(torch.randn(60, 2), (torch.rand(60, 3)<0.6).float(), F1ScoreMulti(sigmoid=False),
                         nn.Linear(2, 3))
    for o in learn.model.parameters(): o.data.fill_(-0.02)
    with recording(learn) as caught: learn.validate()
    assert any('seem to be logits' in str(o.message) for o in caught)

@pytest.mark.parametrize('f', [
    Learner.validate, partial(Learner.thresh_find, show_plot=False), Learner.accuracy_report])
def test_a_softmax_is_named_as_one(f):
    learn = make_learner(*GOOD, multilabel_metrics(), nn.Sequential(Same(), nn.Softmax(-1)))
    with recording(learn) as caught: f(learn)
    text = ' '.join(one_line(o.message) for o in caught)
    assert 'end the model without a softmax' in text and 'sigmoid' not in text
