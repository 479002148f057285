"Asymmetric and focal loss: their values, and their use in a Learner"
from hypothesis import given
from torchvision.ops import sigmoid_focal_loss
from conftest import *
from fastai_mlmetrics.losses import AsymmetricLoss

def batch(seed=0, n=40, c=6, scale=4.):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, c, generator=g)*scale,(torch.rand(n, c, generator=g)<0.2).float()

def by_element(x, y, gamma_neg, gamma_pos, clip):
    "The formula of Ridnik et al. for one sample-label pair, in Python's floats"
    p = 1/(1+math.exp(-x))
    q = max(p-clip, 0)
    return -(1-p)**gamma_pos*math.log(p) if y else -q**gamma_neg*math.log(1-q)

@given(st.floats(0,5), st.floats(0,5), st.floats(0,0.5), st.integers(0,9))
def test_the_formula(gamma_neg, gamma_pos, clip, seed):
    x,y = (o.double() for o in batch(seed, 4, 3))
    pairs = zip(x.flatten().tolist(), y.flatten().tolist())
    expected = [by_element(a, b, gamma_neg, gamma_pos, clip) for a,b in pairs]
    losses = AsymmetricLoss(gamma_neg, gamma_pos, clip, reduction='none')(x, y)
    test_close(losses.flatten(), tensor(expected).double(), eps=1e-5)
    test_close(AsymmetricLossFlat(gamma_neg, gamma_pos, clip)(x, y), np.mean(expected), eps=1e-4) # in float32

@pytest.mark.parametrize('gamma', [0., 0.5, 1., 2., 5.])
@pytest.mark.parametrize('alpha', [None, 0.25, 0.9])
def test_focal_as_torchvision(gamma, alpha):
    x,y = batch()
    for reduction in ('mean','sum','none'):
        theirs = sigmoid_focal_loss(x, y, ifnone(alpha, -1), gamma, reduction)
        ours = SigmoidFocalLossFlat(gamma, alpha=alpha, reduction=reduction)(x, y)
        test_close(ours.view_as(theirs), theirs, eps=1e-4)

def test_without_focus_it_is_cross_entropy():
    x,y = batch(scale=60.) # a naive logarithm is infinite
    assert torch.equal(AsymmetricLossFlat(0, 0, 0)(x, y), SigmoidFocalLossFlat(0)(x, y))
    test_close(AsymmetricLossFlat(0, 0, 0)(x, y), BCEWithLogitsLossFlat()(x, y))

@pytest.mark.parametrize('args', [
    (4,0,0.05), (4,1,0.05), (0.5,0.5,0.05), (0.5,0.5,0), (0,0,0), (2,2,0), (0,0,0.2)], ids=str)
def test_slopes_are_finite_and_right(args):
    f = AsymmetricLoss(*args, reduction='sum')
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.linspace(-200, 200, 401, dtype=dtype).repeat(2).requires_grad_()
        f(x, torch.arange(2.).repeat_interleave(401)).backward()
        assert torch.isfinite(x.grad).all()
    x = tensor([-4.,-1.,0.3,2.]).double().repeat(2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: f(x, torch.arange(2.).double().repeat_interleave(4)), x)

def test_half_precision_is_widened():
    x,y = batch()
    loss = AsymmetricLossFlat()
    for dtype in (torch.float16, torch.bfloat16):
        half = x.to(dtype)
        test_close(loss(half, y), loss(half.float(), y))
        assert loss(half, y).dtype==torch.float32
    assert loss(x, y.int())==loss(x, y)

@pytest.mark.parametrize('kw', [dict(gamma_neg=-1), dict(gamma_pos=-0.1), dict(clip=1.), dict(clip=-0.1)])
def test_slips(kw):
    with pytest.raises(ValueError, match='at least 0'): AsymmetricLossFlat(**kw)

@pytest.mark.parametrize('loss', [AsymmetricLossFlat, SigmoidFocalLossFlat, lambda: AsymmetricLossFlat(thresh=0.3)])
def test_in_a_learner(loss, tmp_path):
    logits,targs = simulate()
    loss = loss()
    learn = make_learner(logits, targs, multilabel_metrics(), loss_func=loss, path=tmp_path, cbs=ZeroLabelsCallback())
    preds,_ = learn.get_preds()
    test_close(preds, logits.sigmoid())
    test_eq(learn.get_preds(with_decoded=True)[2], logits.sigmoid()>loss.thresh)
    with learn.no_logging(), learn.no_bar(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(1, 0.)
    assert learn.recorder.values[-1][1]==pytest.approx(loss(logits, targs).item(), rel=1e-5)
    r = learn.zero_labels.records[-1]
    assert r.decodes and not any('does not decode' in o for o in r.pitfalls)
    assert all('pos_weight' not in o for o in re.findall('`(.*?)`', str(learn.zero_labels.explain())))
    found = learn.thresh_find(show_plot=False)
    learn.set_thresh(found, min_labels=1)
    test_close(learn.get_preds()[0].sum(), preds.sum(), eps=2)
    decoded = learn.get_preds(with_decoded=True)[2]
    test_eq(decoded, binarize(logits, found.best, min_labels=1))
    m = F1ScoreMulti(found.best, average='samples', min_labels=1)
    assert values(learn)['f1_samples']==pytest.approx(m(logits, targs))
    assert type(loss)(thresh=0.2).thresh==0.2 and getattr(loss, 'min_labels', 0)==0 # the Learner has a copy
    learn.export(tmp_path/'m.pkl')
    test_eq(load_learner(tmp_path/'m.pkl').loss_func.thresh, found.best)

def test_it_learns():
    g = torch.Generator().manual_seed(0)
    x,w = torch.randn(400, 8, generator=g),torch.randn(8, 5, generator=g)
    y = (x@w>3).float()
    for loss in (AsymmetricLossFlat(), SigmoidFocalLossFlat()):
        set_seed(0)
        learn = make_learner(x, y, APScoreMulti(), model=nn.Linear(8, 5), loss_func=loss)
        with learn.no_logging(), learn.no_bar(): learn.fit(8, 0.1)
        assert learn.recorder.values[-1][-1]>0.9

@pytest.mark.parametrize('make', [AsymmetricLossFlat, SigmoidFocalLossFlat])
def test_alpha_is_a_share(make):
    "torchvision's -1 means no alpha; as a number, it would make a loss that rewards mistakes"
    for alpha in (-1,5):
        with pytest.raises(ValueError, match=f'alpha={alpha} must be from 0 to 1, or None'): make(alpha=alpha)
