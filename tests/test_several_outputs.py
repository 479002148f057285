"Models with several outputs, data with several targets: one message, and everything works after its cure"
from helpers import *

N = 200
GEN = torch.Generator().manual_seed(0)
LABELS = (torch.rand(N, 5, generator=GEN)<0.3).float()
KIND = torch.randint(0, 3, (N,), generator=GEN)
INPUTS = 4*torch.cat([LABELS, F.one_hot(KIND, 3)], 1) - 2 + torch.randn(N, 8, generator=GEN)

class TwoTasks(Same):
    "Returns logits of five labels and of three kinds"
    def forward(self, x): return tuple(super().forward(x).split([5, 3], 1))

class Features(TwoTasks):
    def forward(self, x): return dict(zip(('logits','features'), super().forward(x)))

def bce(p, y): return F.binary_cross_entropy_with_logits(p, y)

class TwoLosses(BCEWithLogitsLossFlat):
    def __call__(self, preds, labels, kind, **kwargs):
        return super().__call__(preds[0], labels, **kwargs) + F.cross_entropy(preds[1], kind)

# Model, loss, and what the callback selects
CASES = {
    'two tasks': (TwoTasks, lambda p, y, k: bce(p[0], y) + F.cross_entropy(p[1], k), 'self.pred[0]'),
    'two tasks, a loss that decodes': (TwoTasks, TwoLosses(), 'self.pred[0]'),
    'logits and features': (TwoTasks, lambda p, y: bce(p[0], y), 'self.pred[0]'),
    'a dict': (Features, lambda p, y: bce(p['logits'], y), "self.pred['logits']")}

class Select(Callback):
    def __init__(self, pred): self.code = pred
    def after_loss(self): self.learn.pred,self.learn.yb = eval(self.code),(self.yb[0],)

def learner_of(case, cured=True):
    model,loss,pred = CASES[case]
    targets = (LABELS, KIND) if 'two tasks' in case else (LABELS,)
    ds = TensorPairs(INPUTS, *targets)
    dls = DataLoaders(DataLoader(ds, bs=64, shuffle=True), DataLoader(ds, bs=64), device=CPU)
    if not isinstance(loss, BaseLoss): loss = partial(loss)
    cbs = [ZeroLabelsCallback(), *([Select(pred)] if cured else [])]
    learn = Learner(dls, model(), loss, metrics=multilabel_metrics(), cbs=cbs).remove_cb(ProgressCallback)
    for dl in dls: dl.n_inp = 1
    return learn

USES = {
    'fit': lambda o: o.fit(1, 0.), 'validate': lambda o: o.validate(), 'evaluate': lambda o: o.evaluate(),
    'thresh_find': lambda o: o.thresh_find(show_plot=False), 'accuracy_report': lambda o: o.accuracy_report(),
    'thresh_find in bins': lambda o: o.thresh_find(show_plot=False, bins=99), 'set_thresh': lambda o: o.set_thresh(0.3),
    'from_learner': lambda o: MultiLabelInterpretation.from_learner(o, act=torch.sigmoid)}

@pytest.mark.parametrize('use', USES)
@pytest.mark.parametrize('case', CASES)
def test_one_message_with_the_whole_cure(case, use):
    if case=='two tasks, a loss that decodes' and use=='set_thresh': return # Its threshold can be set
    learn = learner_of(case, cured=False)
    with learn.no_logging(), pytest.raises(ValueError) as e: USES[use](learn)
    returned = 'dict' if case=='a dict' else 'tuple'
    targets = '2 targets' if 'two tasks' in case else '1 target'
    cure = f"such as `self.learn.pred = {CASES[case][2]}` and `self.learn.yb = (self.yb[0],)`"
    assert f"the model returns a {returned} of 2, and a batch has {targets}: add a callback" in one_line(e.value)
    assert cure in one_line(e.value)

@pytest.mark.slow
@pytest.mark.parametrize('case', CASES)
def test_after_the_cure_everything_works(case, tmp_path):
    learn = learner_of(case)
    plain = make_learner(INPUTS[:,:5], LABELS, multilabel_metrics(), cbs=ZeroLabelsCallback(), bs=64)
    same([*values(learn).values()], [*values(plain).values()])
    if not isinstance(learn.loss_func, TwoLosses): # What to pass, or to write, is named
        for f in (learn.accuracy_report, learn.thresh_find, partial(learn.thresh_find, bins=99),
                  partial(MultiLabelInterpretation.from_learner, learn)):
            with pytest.raises(ValueError, match='`learn.loss_func.activation = torch.sigmoid`'): f()
        with pytest.raises(ValueError, match='activation = torch.sigmoid` and `learn.loss_func.decodes = '):
            learn.set_thresh(0.3)
        learn.loss_func.activation = torch.sigmoid
        learn.loss_func.decodes = torch.round
    with recording(learn) as caught: learn.fit(1, 0.)
    assert not [w for w in caught if issubclass(w.category, ZeroLabelsWarning)], caught
    for bins in (None, 2000):
        found,expected = (o.thresh_find(show_plot=False, bins=bins) for o in (learn, plain))
        assert found.best==expected.best
    for o in (learn, plain): o.set_thresh(0.3)
    test_eq(learn.accuracy_report(ci=None).value.tolist(), plain.accuracy_report(ci=None).value.tolist())
    interp = MultiLabelInterpretation.from_learner(learn)
    of_plain = MultiLabelInterpretation.from_learner(plain)
    assert interp.thresh==0.3 and interp.report().equals(of_plain.report())
    same(interp.losses, of_plain.losses, eps=1e-6)
    assert interp.mistakes().equals(of_plain.mistakes())
    interp.to_html(tmp_path/'report.html')
    plt.close('all')

def test_predictions_and_targets_of_one_shape_are_named():
    "Neither the first output nor the first target is that of the labels"
    from fastai_mlmetrics.core.passes import check_single
    with pytest.raises(ValueError, match=r'self.learn.pred = self.pred\[1\]` and `self.learn.yb = \(self.yb\[2\],\)'):
        check_single((torch.ones(4), torch.ones(4, 3)), (torch.ones(4), torch.ones(4, 2), torch.ones(4, 3)))
    with pytest.raises(ValueError, match=r"one tensor, and a batch has 2 .*= self.pred` .*\(self.yb\[0\]\['y'\],\)"):
        check_single(torch.ones(4, 3), (dict(x=torch.ones(4), y=torch.ones(4, 3)),))
    with pytest.raises(ValueError, match='a list of 2'): check_single([torch.ones(4, 3)]*2, (torch.ones(4, 3),))
    check_single(torch.ones(4, 3), (torch.ones(4, 3),))

@pytest.mark.parametrize('encoded', [False, True])
def test_names_are_those_of_the_labels_wherever_they_are(encoded):
    labels = MultiCategoryBlock(encoded=True, vocab=[*'abc']) if encoded else MultiCategoryBlock(vocab=[*'abc'])
    ys = [[1,0,0],[0,1,1]]*4 if encoded else [['a'],['b','c']]*4
    items = [*zip(range(8), ys, 'uv'*4)]
    for blocks,getters in (((labels,CategoryBlock), (1,2)), ((CategoryBlock,labels), (2,1))):
        block = DataBlock((TransformBlock,*blocks), getters=[ItemGetter(0), *map(ItemGetter, getters)], n_inp=1,
                          splitter=IndexSplitter([6,7]))
        dls = block.dataloaders(items, bs=2, num_workers=0, device=CPU)
        from fastai_mlmetrics.core.inputs import label_vocab
        test_eq(label_vocab(dls), [*'abc'])
