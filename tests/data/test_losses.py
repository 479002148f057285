"Losses for rare labels and for missing targets: their values, and their use in a Learner"
from fastai.tabular.core import Normalize, TabularPandas
from fastai.tabular.all import tabular_learner
import fastai.losses, pickle
from torchvision.ops import sigmoid_focal_loss
from helpers import *
from fastai_mlmetrics.data.losses import AsymmetricLoss

def batch(seed=0, n=40, c=6, scale=4.):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, c, generator=g)*scale,(torch.rand(n, c, generator=g)<0.2).float()

def by_element(x, y, gamma_neg, gamma_pos, clip):
    "The formula of Ridnik et al. for one sample-label pair, in Python's floats"
    p = 1/(1+math.exp(-x))
    q = max(p-clip, 0)
    return -(1-p)**gamma_pos*math.log(p) if y else -q**gamma_neg*math.log(1-q)

@given(st.floats(0,5), st.floats(0,5), st.floats(0,0.5), st.integers(0,9))
def test_asymmetric_loss_is_the_formula(gamma_neg, gamma_pos, clip, seed):
    x,y = (o.double() for o in batch(seed, 4, 3))
    pairs = zip(x.flatten().tolist(), y.flatten().tolist())
    expected = [by_element(a, b, gamma_neg, gamma_pos, clip) for a,b in pairs]
    losses = AsymmetricLoss(gamma_neg, gamma_pos, clip, reduction='none')(x, y)
    test_close(losses.flatten(), tensor(expected).double(), eps=1e-5)
    test_close(AsymmetricLossFlat(gamma_neg, gamma_pos, clip)(x, y), np.mean(expected), eps=1e-4) # in float32

@pytest.mark.parametrize('gamma', [0., 0.5, 1., 2., 5.])
@pytest.mark.parametrize('alpha', [None, 0.25, 0.9])
def test_focal_loss_is_torchvision_s(gamma, alpha):
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
def test_bad_arguments_are_named(kw):
    with pytest.raises(ValueError, match='at least 0'): AsymmetricLossFlat(**kw)

@pytest.mark.parametrize('loss', [AsymmetricLossFlat, SigmoidFocalLossFlat, lambda: AsymmetricLossFlat(thresh=0.3)])
def test_losses_decode_in_a_learner(loss, tmp_path):
    logits,targs = simulate()
    loss = loss()
    learn = make_learner(logits, targs, multilabel_metrics(), loss_func=loss, path=tmp_path, cbs=ZeroLabelsCallback())
    preds,_ = learn.get_preds()
    test_close(preds, logits.sigmoid())
    test_eq(learn.get_preds(with_decoded=True)[2], logits.sigmoid()>loss.thresh)
    with learn.no_logging(), learn.no_bar(), warnings_as('ignore'): learn.fit(1, 0.)
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

@pytest.mark.slow
def test_losses_learn():
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
        with pytest.raises(ValueError, match=f'alpha={alpha} from 0 to 1, or None'): make(alpha=alpha)

# Missing targets

ALL = BCEWithLogitsLossFlat,AsymmetricLossFlat,SigmoidFocalLossFlat
each_loss = pytest.mark.parametrize('make', ALL, ids=lambda o: o.__name__)
PER_LABEL = tensor(0.5,1.,2.,4.,8.,16.)
MISSING = math.nan,-1,-100,255

def with_holes(seed=0, share=0.5, value=math.nan, **kwargs):
    "Logits, targets, targets with `value` in some places, and where they are known"
    x,y = batch(seed, **kwargs)
    known = torch.rand(y.shape, generator=torch.Generator().manual_seed(seed)) >= share
    return x,y,y.where(known, torch.tensor(float(value))),known

def graded(f, x):
    "The value and the gradient of `f`"
    x = x.clone().requires_grad_()
    res = f(x)
    return res.detach().as_subclass(Tensor),torch.autograd.grad(res.sum(), x)[0]

def assert_same(a, b, eps=1e-5):
    for o,p in zip(a, b): torch.testing.assert_close(o, p, rtol=eps, atol=eps)

@pytest.mark.parametrize('kw', [{}, dict(pos_weight=PER_LABEL), dict(pos_weight=PER_LABEL, weight=PER_LABEL.flip(0)),
    dict(pos_weight=tensor([3.])), dict(weight=tensor([3.])), dict(weight=tensor(3.)), dict(thresh=0.2, axis=1),
    dict(flatten=False)], ids=lambda kw: ' '.join(kw))
@pytest.mark.parametrize('reduction', ['mean','sum','none'])
def test_without_ignore_index_it_is_fastais(kw, reduction):
    x,y = batch(scale=20.)
    kw = dict(kw, reduction=reduction)
    ours,theirs = BCEWithLogitsLossFlat(**kw),fastai.losses.BCEWithLogitsLossFlat(**kw)
    assert isinstance(ours, fastai.losses.BCEWithLogitsLossFlat) and ours.thresh==theirs.thresh
    for targs in (y, y.bool(), y.int(), y.half(), TensorMultiCategory(y), y*0.9+0.05):
        for preds in (x, x.bfloat16(), TensorBase(x)):
            (a,da),(b,db) = (graded(lambda x: f(x, targs), preds) for f in (ours, theirs))
            assert torch.equal(a, b) and torch.equal(da, db) and a.dtype==b.dtype
    assert ours(x, y.where(y>0, math.nan)).isnan().any()

def test_weights_are_numbers_and_lists_as_well():
    x,y = batch()
    for kw in (dict(pos_weight=PER_LABEL), dict(weight=PER_LABEL)):
        name, = kw
        assert BCEWithLogitsLossFlat(**{name: PER_LABEL.tolist()})(x, y)==BCEWithLogitsLossFlat(**kw)(x, y)
        assert BCEWithLogitsLossFlat(**{name: 3})(x, y)==BCEWithLogitsLossFlat(**{name: tensor([3.])})(x, y)

def test_positional_arguments_and_errors_are_fastais():
    x,y = batch()
    assert BCEWithLogitsLossFlat(tensor([2.]))(x, y)==fastai.losses.BCEWithLogitsLossFlat(tensor([2.]))(x, y)
    for o in (BCEWithLogitsLossFlat, fastai.losses.BCEWithLogitsLossFlat):
        with pytest.raises(ValueError, match='`flatten` must be False'): o(pos_weight=PER_LABEL, flatten=True)
        with pytest.raises(ValueError, match='must be the same as input size'): o()(x, torch.zeros(40))
    with pytest.raises(ValueError, match='must be the same as input size'):
        BCEWithLogitsLossFlat(ignore_index=math.nan)(x, torch.zeros(40))

@given(st.integers(0, 99), st.floats(0, 0.95), st.sampled_from(MISSING), st.sampled_from(['mean','sum']),
       st.booleans(), st.booleans())
def test_cross_entropy_of_known_targets(seed, share, value, reduction, pos, weight):
    x,y,targs,known = with_holes(seed, share, value, n=7)
    kw = dict(pos_weight=PER_LABEL if pos else None, weight=PER_LABEL.flip(0) if weight else None)
    loss = BCEWithLogitsLossFlat(ignore_index=value, reduction=reduction, **kw)
    def by_torch(x):
        ws = {k: None if w is None else w.expand_as(x)[known] for k,w in kw.items()}
        return F.binary_cross_entropy_with_logits(x[known], y[known], reduction=reduction, **ws)
    if known.any(): assert_same(graded(lambda x: loss(x, targs), x), graded(by_torch, x))

@each_loss
@given(st.integers(0, 99), st.floats(0, 0.95), st.sampled_from(MISSING), st.sampled_from(['mean','sum']))
def test_losses_of_known_targets(make, seed, share, value, reduction):
    x,y,targs,known = with_holes(seed, share, value, n=7)
    loss,plain = make(ignore_index=value, reduction=reduction),make(reduction=reduction)
    ours = graded(lambda x: loss(x, targs), x)
    if known.any(): assert_same(ours, graded(lambda x: plain(x[known], y[known]), x))
    assert (ours[1][~known]==0).all()
    loss.reduction = plain.reduction = 'none' # As `get_preds(with_loss=True)` sets it
    a,b = loss(x, targs).view_as(x),plain(x, y).view_as(x)
    assert torch.equal(a, b.where(known, torch.tensor(0.)))

@each_loss
@pytest.mark.parametrize('value', MISSING)
def test_a_batch_without_known_targets(make, value):
    x,_ = batch(scale=100.)
    for reduction in ('mean','sum','none'):
        loss,slopes = graded(lambda x: make(ignore_index=value, reduction=reduction)(x, torch.full_like(x, value)), x)
        assert (loss==0).all() and (slopes==0).all()

@each_loss
def test_types_and_shapes_of_missing_targets(make):
    x,y,targs,known = with_holes(value=-1)
    loss = make(ignore_index=-1)
    expected = make()(x[known], y[known])
    for o in (targs, targs.int(), targs.long(), targs.to(torch.int8), targs.half(), TensorMultiCategory(targs)):
        for preds in (x, TensorBase(x)): test_close(loss(preds, o).float(), expected, eps=1e-3)
    test_close(make(ignore_index=255)(x, targs.where(known, 255.).to(torch.uint8)), expected)
    nans = targs.where(known, math.nan)
    for dtype in (torch.float16, torch.bfloat16):
        half = x.to(dtype)
        for o in (nans, nans.to(dtype)):
            a,b = make(ignore_index=math.nan)(half, o),make()(half[known], o[known])
            assert a.dtype==b.dtype
            test_close(a.float(), b.float(), eps=2e-2 if a.dtype==dtype else 1e-5)
    assert loss(x, y.bool())==make()(x, y) # No target is missing
    test_close(make(ignore_index=-1, axis=1)(x.T[None], targs.T[None]), expected)
    single = make()(x[:,:1][known[:,0]], y[:,:1][known[:,0]])
    for o in (targs[:,0], targs[:,:1]): test_close(loss(x[:,:1], o), single) # One label, as fastai flattens it
    with torch.autocast('cpu', dtype=torch.bfloat16): test_close(loss(x@torch.eye(6), targs), expected, eps=2e-2)

def table(share=0.5, value=math.nan, n=1200, d=5, c=4):
    "`DataLoaders` of a table whose targets are missing in places, and all targets of the validation set"
    gen = np.random.default_rng(0)
    x,w = gen.normal(size=(n,d)),gen.normal(size=(d,c))
    xs,ys = [f'x{i}' for i in range(d)],[f'y{i}' for i in range(c)]
    df = pd.DataFrame(np.hstack([x, x@w>0.5]), columns=xs+ys)
    truth = tensor(df[ys].values[800:])
    df[ys] = df[ys].mask(gen.random((n,c))<share, value)
    splits = [*range(800)],[*range(800, n)]
    to = TabularPandas(df, [Normalize], cont_names=xs, y_names=ys, splits=splits,
                       y_block=MultiCategoryBlock(encoded=True, vocab=ys))
    return to.dataloaders(bs=64),truth

def quiet_fit(learn, *args):
    with learn.no_logging(), learn.no_bar(), warnings_as('ignore'): learn.fit_one_cycle(*args)

@pytest.mark.slow
@each_loss
@pytest.mark.parametrize('value', [math.nan, -1])
def test_half_of_the_targets_are_missing(make, value, tmp_path):
    dls,truth = table(value=value)
    set_seed(0)
    learn = tabular_learner(dls, layers=[16], loss_func=make(ignore_index=value), path=tmp_path,
                            metrics=multilabel_metrics(ranking=True, ignore_index=value), cbs=ZeroLabelsCallback())
    learn.remove_cb(ProgressCallback)
    quiet_fit(learn, 6, 2e-2)
    valid_loss = learn.recorder.values[-1][1]
    preds,targs,losses = learn.get_preds(with_loss=True)
    known = ~targs.isnan() if value!=value else targs!=value
    assert 0.4<known.float().mean()<0.6 and truth.shape==targs.shape
    m = APScoreMulti(sigmoid=False, ignore_index=math.nan)
    for o in (known, ~known): assert m(preds, truth.where(o, math.nan))>0.96 # Missing ones are learned as well
    # The loss of a sample is the mean over all labels; of what is known, over the share that is
    plain = make(reduction='none')(preds.logit(), truth).view_as(preds)
    test_close(losses, (plain*known).mean(1), eps=1e-4)
    batches = [(a[b].mean(), len(a)) for a,b in zip(plain.split(64), known.split(64))]
    test_close(valid_loss, sum(o*n for o,n in batches)/len(plain), eps=1e-4) # As fastai averages over batches
    r = learn.zero_labels.records[-1]
    assert r.accuracy==pytest.approx(((preds>0.5)==truth)[known].float().mean().item())
    assert not r.verdict and not r.pitfalls and r.decodes
    # Thresholds and limits, a copy, a pickle, and what is exported
    found = learn.thresh_find(show_plot=False)
    learn.set_thresh(found, min_labels=1)
    assert learn.loss_func.ignore_index is value and learn.loss_func.thresh==found.thresh
    targs = targs.where(known, math.nan)
    learn.export(tmp_path/'m.pkl')
    loaded = load_learner(tmp_path/'m.pkl').loss_func
    for loss in (learn.loss_func, loaded, pickle.loads(pickle.dumps(learn.loss_func)), copy(learn.loss_func)):
        test_close(loss(preds.logit(), targs.where(known, value)), plain[known].mean(), eps=1e-4)
        assert torch.equal(loss.decodes(preds), binarize(preds, found.thresh, sigmoid=False, min_labels=1))
        assert type(loss) is type(learn.loss_func)
    assert learn.get_preds(with_decoded=True)[2].any(1).all()

def test_losses_of_samples_are_of_known_targets():
    x,y,targs,known = with_holes()
    learn = make_learner(x, targs, F1ScoreMulti(ignore_index=math.nan),
                         loss_func=BCEWithLogitsLossFlat(ignore_index=math.nan))
    interp = MultiLabelInterpretation.from_learner(learn)
    plain = F.binary_cross_entropy_with_logits(x, y, reduction='none').where(known, math.nan)
    torch.testing.assert_close(interp.losses, plain.nanmean(1), equal_nan=True, rtol=1e-5, atol=1e-4)
    *_,losses = learn.get_preds(with_loss=True)
    torch.testing.assert_close(losses/known.float().mean(1), plain.nanmean(1), equal_nan=True)

@each_loss
def test_mixed_targets(make):
    "MixUp interpolates targets: what is mixed with nan is ignored"
    x,y,targs,_ = with_holes(n=64, share=0.3)
    learn = make_learner(x, targs, loss_func=make(ignore_index=math.nan), model=nn.Linear(6, 6), cbs=MixUp())
    quiet_fit(learn, 2, 0.1)
    assert all(o.isfinite().all() for o in learn.model.parameters())
    assert all(math.isfinite(o) for o in learn.recorder.losses)

def test_missing_targets_of_images(digits_dls):
    "The columns of a table, as targets of images"
    items = digits_dls.train_ds.items[:60].copy()
    items[['a','b']] = np.random.default_rng(0).choice([0., 1., math.nan], (60,2))
    block = DataBlock((ImageBlock, MultiCategoryBlock(encoded=True, vocab=['a','b'])), splitter=RandomSplitter(seed=0),
                      get_x=lambda r: digits_dls.path/'train'/r['fname'], get_y=ColReader(['a','b']))
    dls = block.dataloaders(items, bs=16, device='cpu', num_workers=0)
    assert dls.one_batch()[1].isnan().any()
    learn = vision_learner(dls, resnet18, pretrained=False, loss_func=BCEWithLogitsLossFlat(ignore_index=math.nan),
                           metrics=multilabel_metrics(ignore_index=math.nan)).remove_cb(ProgressCallback)
    quiet_fit(learn, 1, 1e-3)
    assert math.isfinite(learn.recorder.values[-1][1]) and all(o.isfinite().all() for o in learn.model.parameters())
    loss = learn.loss_func
    assert loss.decodes(loss.activation(tensor([[2.,-2.]]))).tolist()==[[True,False]]

@pytest.mark.parametrize('value', [-1, math.nan])
def test_metrics_that_ignore_what_the_loss_trains_on(value):
    "The pitfall is told before the first batch, and its code is what helps"
    logits,targs = simulate(300, 5, density=0.3, bias=-1)
    targs[::2,1] = value
    metrics = F1ScoreMulti(ignore_index=value)
    class Stops(Callback):
        def before_epoch(self): raise CancelFitException
    of_fastai = fastai.losses.BCEWithLogitsLossFlat()
    for loss in (of_fastai, BCEWithLogitsLossFlat(), AsymmetricLossFlat(), nn.BCEWithLogitsLoss()):
        learn = make_learner(logits, targs, metrics, loss_func=loss, cbs=ZeroLabelsCallback())
        says = '(?s)metrics ignore targets.*loss_func ='
        with pytest.warns(ZeroLabelsWarning, match=says) as caught, learn.no_logging(): learn.fit(1, 0.1, cbs=Stops())
        code, = re.findall('`(.*?)`', one_line(caught[0].message))
        exec(code, dict(globals(), learn=learn))
        with warnings_as('error', ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)
        assert not learn.zero_labels.records[-1].pitfalls
        assert math.isfinite(learn.recorder.values[-1][0])
    for loss in (MaskedFlat(), Masked()):
        learn = make_learner(logits, targs, metrics, loss_func=loss, cbs=[ZeroLabelsCallback(), Stops()])
        with warnings_as('error', ZeroLabelsWarning), learn.no_logging(): learn.fit(1, 0.)

@pytest.mark.parametrize('make', [BCEWithLogitsLossFlat, AsymmetricLossFlat, SigmoidFocalLossFlat])
def test_thresholds_per_label_decode(make):
    logits,targs = simulate(60, 3, density=0.3, bias=-1)
    t = [0.2, 0.4, 0.6]
    for thresh in (t, tuple(t), np.array(t), tensor(t), pd.Series(t)):
        learn = make_learner(logits, targs, loss_func=make(thresh=thresh))
        assert torch.equal(learn.get_preds(with_decoded=True)[2], logits.sigmoid()>tensor(t))
    with pytest.raises(ValueError, match='learn.set_thresh'): make(thresh=dict(a=0.2, b=0.4, c=0.6))

def test_a_reduction_can_be_set_later():
    loss = AsymmetricLoss(reduction='sum')
    x,y = torch.randn(5, 3),torch.ones(5, 3)
    assert loss.reduction=='sum' and loss(x, y)==AsymmetricLoss(reduction='none')(x, y).sum()
    loss.reduction = 'none' # As `get_preds(with_loss=True)` sets it
    assert loss(x, y).shape==x.shape
    assert pickle.loads(pickle.dumps(loss)).reduction==copy(loss).reduction=='none'
