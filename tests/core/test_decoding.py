"What a loss function does with predictions: activation, threshold and limits"
from helpers import *
from fastai.losses import BCEWithLogitsLossFlat as FastaiLoss
from fastai_mlmetrics.core.decoding import Decoding

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

@pytest.mark.parametrize('loss, name', [(MSELossFlat(), 'MSELoss'), (nn.BCELoss(), 'BCELoss')])
def test_predictions_that_are_neither_logits_nor_probabilities_are_an_error(loss, name):
    with pytest.raises(ValueError) as e: Decoding(loss).to_probs(LOGITS)
    assert str(e.value)==(f"the loss function ({name}) takes neither logits nor probabilities: "
                          "use loss_func=BCEWithLogitsLossFlat(), or give it an `activation`")

def test_a_plain_function_trains_on_all_targets():
    assert Decoding(F.binary_cross_entropy_with_logits).trains_on_all and not Decoding(F.mse_loss).trains_on_all
