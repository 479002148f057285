"Label statistics and weights of all kinds of data, without opening an image"
from fastai.tabular.all import *
from fastai.text.all import *
from helpers import *
from fastai_mlmetrics.data.imbalance import label_matrix

@pytest.fixture
def opened(monkeypatch):
    "The image files that were opened"
    files,open_ = [],Image.open
    monkeypatch.setattr(Image, 'open', lambda fn, *a, **k: files.append(fn) or open_(fn, *a, **k))
    return files

def image_table(tmp_path, labels, n_train):
    Image.new('RGB', (8,8)).save(tmp_path/'a.png')
    return pd.DataFrame(dict(fname='a.png', labels=labels, is_valid=[i>=n_train for i in range(len(labels))]))

LABELS = ['cat', 'cat dog', '', 'cat', 'dog eel', 'cat', 'dog', 'cow']

def by_block(df, path, vocab=None):
    block = DataBlock((ImageBlock, MultiCategoryBlock(vocab=vocab)), get_x=ColReader('fname', pref=path),
                      get_y=ColReader('labels', label_delim=' '), splitter=ColSplitter())
    return block.dataloaders(df, bs=2, device=CPU)

def by_factory(df, path):
    return ImageDataLoaders.from_df(df, path, label_delim=' ', valid_col='is_valid', bs=2, device=CPU)

def one_hot_columns(df, path):
    names = ['cat','cow','dog','eel']
    df = pd.concat([df, df.labels.str.get_dummies(' ').reindex(columns=names, fill_value=0)], axis=1)
    block = DataBlock((ImageBlock, MultiCategoryBlock(encoded=True, vocab=names)),
                      get_x=ColReader('fname', pref=path), get_y=ColReader(names), splitter=ColSplitter())
    return block.dataloaders(df, bs=2, device=CPU)

@pytest.mark.parametrize('make', [by_block, by_factory, one_hot_columns])
def test_images_are_counted_without_opening_them(make, tmp_path, opened):
    dls = make(image_table(tmp_path, LABELS, 6), tmp_path)
    opened.clear()
    s = label_stats(dls)
    assert not opened
    known = [o for o in s.index if o!='cow']
    test_eq(known, ['cat','dog','eel'])
    test_eq(s.loc[known,'train'].tolist(), [4,2,1])
    test_eq(s.loc[known,'valid'].tolist(), [0,1,0])
    test_close(s.loc[known,'train_freq'].tolist(), [4/6,2/6,1/6])
    test_eq(s.missing_from.to_dict(), dict(cat='validation', dog='', eel='validation', cow='training'))
    w = pos_weight(dls)
    assert not opened and w.dtype==torch.float32 and w.device==dls.device
    close(w, [2/4,100,4/2,5] if make is one_hot_columns else [2/4,4/2,5])
    assert len(w)==len(dls.vocab)

def test_a_label_that_only_validation_has(tmp_path):
    "fastai raises an error for it, and `label_stats` shows it"
    dls = by_block(image_table(tmp_path, LABELS, 6), tmp_path)
    with pytest.raises(KeyError): dls.valid.one_batch()
    assert label_stats(dls).index[-1]=='cow' and len(dls.vocab)==3
    dls = by_block(image_table(tmp_path, LABELS, 6), tmp_path, ['cow','cat','dog','eel'])
    close(pos_weight(dls), [100,2/4,4/2,5])
    close(pos_weight(dls, max_weight=3), [3,0.5,2,3])

def tensors(targs): return make_learner(torch.zeros(targs.shape), targs).dls

def test_tensors_are_counted():
    _,targs = simulate()
    s = label_stats(tensors(targs))
    test_eq(s.train.tolist(), targs.sum(0).int().tolist())
    test_eq(s.valid.tolist(), s.train.tolist())
    test_eq(list(s.index), list(range(20)))

def test_weights_are_negatives_by_positives_within_limits():
    targs = torch.zeros(100, 4)
    targs[:5,0] = targs[:1,1] = targs[:,3] = 1
    w = pos_weight(tensors(targs))
    close(w, [19,99,100,0.01])
    with pytest.raises(ValueError, match='at least 1'): pos_weight(tensors(targs), max_weight=0.5)
    learn = make_learner(torch.randn(100,4), targs, multilabel_metrics(), loss_func=BCEWithLogitsLossFlat(pos_weight=w))
    with learn.no_logging(): learn.fit(1, 0.)
    loss = learn.recorder.values[-1][1]
    expected = F.binary_cross_entropy_with_logits(*learn.get_preds(act=noop), pos_weight=w).item()
    assert loss==pytest.approx(expected, rel=1e-5)

def test_missing_targets_need_ignore_index():
    _,targs = simulate()
    keep = torch.rand(400, 20)<0.7
    for gap in (math.nan, -1.):
        dls = tensors(torch.where(keep, targs, gap))
        for f in (label_stats, pos_weight):
            with pytest.raises(ValueError, match='ignore_index'): f(dls)
        s = label_stats(dls, ignore_index=gap)
        true,n = (targs*keep).sum(0),keep.sum(0)
        test_eq(s.train.tolist(), true.tolist())
        close(s.train_freq, true/n)
        close(pos_weight(dls, ignore_index=gap), ((n-true)/true).clamp(0.01, 100))

def test_one_class_per_sample_is_an_error(tmp_path):
    Image.new('RGB', (8,8)).save(tmp_path/'a.png')
    df = pd.DataFrame(dict(fname='a.png', label=list('abcabc')))
    dls = ImageDataLoaders.from_df(df, tmp_path, valid_pct=0.4, seed=1, bs=2, device=CPU)
    for f in (label_stats, pos_weight):
        with pytest.raises(ValueError, match='N x C'): f(dls)

def test_tables_are_counted(opened):
    df = pd.DataFrame(dict(x=range(10), a=[1,0]*5, b=[0]*9+[1]))
    table = TabularPandas(df, cont_names=['x'], y_names=['a','b'], splits=[list(range(8)),[8,9]],
                          y_block=MultiCategoryBlock(encoded=True, vocab=['a','b']))
    dls = table.dataloaders(bs=4, device=CPU)
    s = label_stats(dls)
    test_eq(s.train.tolist(), [4,0])
    test_eq(s.valid.tolist(), [1,1])
    test_eq(s.missing_from.tolist(), ['','training'])
    close(pos_weight(dls), [1,100])

def test_texts_are_counted():
    df = pd.DataFrame(dict(text=['a b c','a','b b','c c c c']*5, labels=['x;y','x','','y']*5))
    block = DataBlock((TextBlock.from_df('text', tok=BaseTokenizer()), MultiCategoryBlock),
                      get_x=ColReader('text'), get_y=ColReader('labels', label_delim=';'),
                      splitter=IndexSplitter(range(12,20)))
    dls = block.dataloaders(df, bs=4, device=CPU)
    s = label_stats(dls)
    test_eq(list(s.index), ['x','y'])
    test_eq(s.train.tolist(), [6,6])
    test_eq(s.valid.tolist(), [4,4])
    close(pos_weight(dls), [1,1])

def test_the_embedded_data_are_counted_without_opening_images(digits_dls, opened):
    s = label_stats(digits_dls)
    assert not opened
    test_eq(s.train.tolist(), sum(digits_dls.train_ds.tls[1]).int().tolist())
    test_eq(s.valid.tolist(), sum(digits_dls.valid_ds.tls[1]).int().tolist())
    assert list(s.index)==list(digits_dls.vocab)
    assert label_matrix(digits_dls)[1].shape==(len(digits_dls.train_ds),20)

class Endless(torch.utils.data.Dataset):
    "A data set of torch's kind: it has a length, and need not raise an `IndexError`"
    def __len__(self): return 6
    def __getitem__(self, i): return torch.zeros(3),tensor([1.,float(i%2),0.])

class WithTargets(Endless):
    targets = [[1,0,0],[1,1,0]]*3
    def __getitem__(self, i): raise AssertionError("a sample was read for its target")

def test_data_sets_of_torch_are_counted():
    of_tensors = torch.utils.data.TensorDataset(torch.zeros(6,3), tensor(WithTargets.targets).float())
    for ds in (Endless(), WithTargets(), torch.utils.data.Subset(WithTargets(), range(6)), of_tensors):
        dls = DataLoaders(*(torch.utils.data.DataLoader(ds, 2) for _ in range(2)), device=CPU)
        s = label_stats(dls)
        test_eq(s.train.tolist(), [6,3,0])
        test_eq(s.valid.tolist(), [6,3,0])
        close(pos_weight(dls), [0.01,1,100])

class Stream(torch.utils.data.IterableDataset):
    "Samples without numbers; `fit` needs their length"
    def __len__(self): return 6
    def __iter__(self): return iter([(torch.zeros(3), tensor(o).float()) for o in WithTargets.targets])

class Unsized(torch.utils.data.IterableDataset):
    "A stream of unknown length"
    def __iter__(self): return iter(Stream())

class AsDicts(Endless):
    "Samples as those of Hugging Face's data sets"
    def __getitem__(self, i): return dict(image=torch.zeros(3), target=tensor(WithTargets.targets[i]).float())

class Batches:
    "A loader with no more than `fit` needs"
    def __len__(self): return 3
    def __iter__(self): return iter(batches())

def batches():
    y = tensor(WithTargets.targets).float()
    return [(torch.zeros(2,3), y[i:i+2]) for i in (0,2,4)]

def collate_dicts(samples): return tuple(torch.stack([o[k] for o in samples]) for k in ('image','target'))

READ_BY_BATCH = dict(
    batches=batches, loader=Batches, fastai=lambda: DataLoader(Stream(), bs=4, drop_last=True),
    torch=lambda: torch.utils.data.DataLoader(Stream(), 4),
    batched=lambda: torch.utils.data.DataLoader(batches(), None),
    dicts=lambda: torch.utils.data.DataLoader(AsDicts(), 4, shuffle=True, collate_fn=collate_dicts))

@pytest.mark.parametrize('make', READ_BY_BATCH.values(), ids=READ_BY_BATCH)
def test_all_that_fit_takes_is_counted(make):
    dls = DataLoaders(make(), make())
    learn = Learner(dls, Same(), loss_func=BCEWithLogitsLossFlat())
    with learn.no_bar(), learn.no_logging(): learn.fit(1, 0.)
    set_seed(0)
    state = torch.get_rng_state()
    for valid in (make(), []):
        dls = DataLoaders(make(), valid)
        s = label_stats(dls)
        test_eq(s.train.tolist(), [6,3,0])
        if not isinstance(valid, list) or valid: test_eq(s.valid.tolist(), [6,3,0])
        else: assert 'valid' not in s
        close(pos_weight(dls), [0.01,1,100])
    assert torch.equal(torch.get_rng_state(), state)

def test_a_stream_of_unknown_length_is_counted():
    for loader in (DataLoader(Unsized(), bs=4), torch.utils.data.DataLoader(Unsized(), 4)):
        dls = DataLoaders(loader, loader)
        test_eq(label_stats(dls).train.tolist(), [6,3,0])
        close(pos_weight(dls), [0.01,1,100])

def test_batches_are_counted_with_a_progress_bar(monkeypatch):
    from fastai_mlmetrics.data import imbalance
    seen = []
    monkeypatch.setattr(imbalance, 'progress', lambda items, show: seen.append((items, show)) or items)
    dl = batches()
    label_stats(DataLoaders(dl, []))
    assert seen[0][0] is dl and seen[0][1]

@pytest.mark.parametrize('batch', [(torch.zeros(2,3),), dict(x=torch.zeros(2,3), y=torch.zeros(2,3)), torch.zeros(2,3)])
def test_batches_without_targets_ask_for_these(batch):
    for f in (label_stats, pos_weight):
        with pytest.raises(ValueError, match='pass the targets instead'): f(DataLoaders([batch], [batch]))
        with pytest.raises(ValueError, match='no samples'): f(DataLoaders([], []))

def test_arrays_of_every_kind_are_counted():
    y = pd.DataFrame(WithTargets.targets, columns=['cat','dog','eel'])
    for targs,kw in ((y, {}),
                     (y.values, dict(vocab=[*y])),
                     (y.values.tolist(), dict(vocab=dict(enumerate(y)))),
                     (tensor(y.values), dict(vocab=y.columns))):
        s = label_stats(targs, targs, **kw)
        test_eq([*s.index], ['cat','dog','eel'])
        test_eq(s.train.tolist(), [6,3,0])
        test_eq(s.valid.tolist(), [6,3,0])
        close(pos_weight(targs), [0.01,1,100])
    test_eq(label_stats(y).missing_from.tolist(), ['','','training'])
    assert 'valid' not in label_stats(y.values)
    with pytest.raises(ValueError, match='2 names.*3 labels'): label_stats(y.values, vocab=['a','b'])

def test_a_label_may_be_called_device():
    y = pd.DataFrame(WithTargets.targets, columns=['cat','device','eel'])
    close(pos_weight(y), [0.01,1,100])

def test_targets_may_be_alone_or_in_another_order():
    y = pd.DataFrame(WithTargets.targets, columns=['cat','dog','eel'])
    test_eq(label_stats(WithTargets.targets).train.tolist(), [6,3,0]) # a plain list, without validation
    test_eq(label_stats(y, y[['eel','cat','dog']]).valid.tolist(), [6,3,0])
    with pytest.raises(ValueError, match='columns'): label_stats(y, y.rename(columns=dict(cat='cow')))

def test_imbalance_ratios_are_those_of_the_literature():
    "By the formula of Charte et al.; nan for a label without positives"
    y = (np.random.default_rng(0).random((200,9))<np.geomspace(0.01, 0.6, 9)).astype(int)
    y[:,4] = 0
    n = y.sum(0)
    close(label_stats(y).IRLbl.values, np.where(n>0, n.max()/np.maximum(n, 1), math.nan))

def test_label_stats_is_a_table():
    from fastai_mlmetrics.core.tables import Table
    s = label_stats(simulate()[1], vocab=[f'label {i}' for i in range(20)])
    assert isinstance(s, Table) and '...' not in repr(s) and '0.' in repr(s)
    assert max(map(len, repr(s).splitlines()))<=80

def test_no_validation_is_no_error():
    targs = simulate(30, 4, density=0.3)[1]
    x = torch.zeros(30, 1)
    ds,none = (torch.utils.data.TensorDataset(x[:n], targs[:n]) for n in (30,0))
    listed = [(a,b) for a,b in zip(x, targs)]
    for dls in (DataLoaders.from_dsets(ds, none, bs=4, device=CPU),
                DataLoaders.from_dsets(listed, [], bs=4, device=CPU),
                DataLoaders(DataLoader(ds, bs=4), device=CPU)):
        s = label_stats(dls)
        assert s.train.tolist()==targs.sum(0).tolist() and 'valid' not in s

def test_a_part_of_a_data_set_is_counted():
    get_y = [lambda i: LABELS[i].split(), MultiCategorize(), OneHotEncode()]
    ds = Datasets(list(range(8)), [[lambda i: torch.zeros(1)], get_y], splits=[range(6), range(6, 8)])
    dls = DataLoaders.from_dsets(torch.utils.data.Subset(ds.train, [0,1,4]), ds.valid, bs=2, device=CPU)
    t = label_stats(dls)
    assert t.train.to_dict()=={'cat': 2, 'cow': 0, 'dog': 2, 'eel': 1} and len(pos_weight(dls))==3

def test_shares_are_of_samples_that_are_known():
    y = tensor([[1.,1,0],[1,math.nan,1],[1,0,1],[0,1,math.nan],[1,1,0]])
    s = label_stats(y, vocab=list('abc'), ignore_index=math.nan)
    close(s.IRLbl, [1, 0.8/0.75, 0.8/0.5])

def test_more_axes_are_samples():
    y = (torch.rand(6, 5, 3, generator=torch.Generator().manual_seed(0))<0.4).float()
    assert label_stats(y).equals(label_stats(y.view(30, 3)))
    with pytest.raises(ValueError, match=re.escape('For a single label, pass targs[:,None]')):
        label_stats(y[:,0,0])
    assert len(label_stats(y[:,0,0][:,None]))==1

def sparse_targets(n, c, per_sample=3):
    r = np.random.default_rng(0)
    y = torch.zeros(n, c, dtype=torch.uint8)
    y[np.repeat(np.arange(n), per_sample),r.integers(0, c, per_sample*n)] = 1
    return y

def test_thousands_of_labels_take_little_memory():
    y = sparse_targets(1000, 6000)
    label_stats(y[:,:10]) # What a first call loads does not count
    assert peak_of(label_stats, y) < 3*8*y.numel()/2**20 < 8*y.shape[1]**2/2**20

Y = np.random.default_rng(0).integers(0, 2, (40,3))

def two_targets(kind):
    "Data with two targets, of which one are labels"
    x,y,score = torch.zeros(40, 5),tensor(Y).float(),torch.rand(40)
    if kind=='nested': loader = DataLoader([(x[i], (y[i],score[i])) for i in range(40)], bs=8)
    elif kind=='of torch': loader = torch.utils.data.DataLoader([(x[i], (y[i],score[i])) for i in range(40)], 8)
    elif kind=='batches': loader = [(x, y, score)]
    else: loader = DataLoader(TensorPairs(x, *((score,y) if kind=='last' else (y,score))), bs=8)
    dls = DataLoaders(loader, loader)
    if kind in ('first','last','batches'): dls.n_inp = 1
    if kind=='of a loader': loader.n_inp = 1
    return dls

@pytest.mark.parametrize('kind', ['first','last','nested','of torch','of a loader','batches'])
def test_of_several_targets_the_labels_are_counted(kind):
    dls = two_targets(kind)
    test_eq(label_stats(dls).train.tolist(), Y.sum(0).tolist())
    close(pos_weight(dls), pos_weight(Y))

def block_of(*blocks):
    "Data of a `DataBlock` with these targets"
    items = [(i, [*np.array(['cat','dog','eel'])[row==1]], 'uv'[i%2]) for i,row in enumerate(Y)]
    part = {MultiCategoryBlock: 1, RegressionBlock: 0, CategoryBlock: 2}
    block = DataBlock((TransformBlock,*blocks), n_inp=1, splitter=IndexSplitter(range(30,40)),
                      getters=[ItemGetter(0), *(ItemGetter(part[o]) for o in blocks)])
    return block.dataloaders(items, bs=8, num_workers=0, device=CPU)

@pytest.mark.parametrize('blocks', [
    (MultiCategoryBlock,RegressionBlock), (RegressionBlock,MultiCategoryBlock), (MultiCategoryBlock,CategoryBlock)])
def test_of_several_blocks_the_labels_are_counted(blocks):
    dls = block_of(*blocks)
    s = label_stats(dls)
    assert [*s.index]==['cat','dog','eel'] and s.train.tolist()==Y[:30].sum(0).tolist()
    close(pos_weight(dls), pos_weight(Y[:30]))

def test_data_sets_and_single_loaders_of_fastai_are_counted():
    dls = block_of(MultiCategoryBlock)
    for data in (dls.train, dls.train_ds, dls.train_ds.tls[-1]):
        test_eq(label_stats(data).train.tolist(), Y[:30].sum(0).tolist())
        close(pos_weight(data), pos_weight(Y[:30]))
        assert stratified_split(data, seed=0)==stratified_split(Y[:30], seed=0)
    for data in (dls.train, dls.train_ds): test_eq([*label_stats(data).index], ['cat','dog','eel'])
    get_y = dict(get_y=ItemGetter(1))
    found = StratifiedMultiLabelSplitter(seed=0, **get_y)(dls.train_ds)
    test_eq([*map(list, found)], [*map(list, stratified_split(Y[:30], seed=0))])

def test_the_label_with_a_wrong_target_is_named():
    df = pd.DataFrame(Y, columns=['cat','dog','eel'])
    with_id = pd.concat([df, pd.Series(range(40), name='id')], axis=1)
    for f in (label_stats, pos_weight, stratified_split):
        with pytest.raises(ValueError, match="label 'cat' has 0.[09]5: round soft labels"): f(df*0.9+0.05)
        with pytest.raises(ValueError, match="'?id'? has 2: .* leave out columns that are no labels"): f(with_id)
        f((df*0.9+0.05).round())

def test_labels_whose_share_differs_by_more_than_chance_are_named():
    rng = np.random.default_rng(0)
    train,valid = rng.random((1000,20))<0.1,rng.random((250,20))<0.1
    test_eq(label_stats(train, valid).reading, '')
    valid[:,3] = rng.random(250)<0.3
    stats = label_stats(train, valid, vocab=[f'l{i}' for i in range(20)])
    row = stats.loc['l3']
    assert stats.reading==('1 of 20 labels differ between training and validation by more than chance, as a share of '
                           f'the samples: l3 ({row.train_freq:.3f} and {row.valid_freq:.3f}). `stratified_split` keeps '
                           'the shares alike.')
    assert label_stats(train).reading=='' and label_stats(train[:0], valid).reading==''
    from scipy.stats import fisher_exact
    from fastai_mlmetrics.data.imbalance import _differs
    n_true = [[o[:,3].sum(), (~o[:,3]).sum()] for o in (train,valid)]
    assert fisher_exact(n_true)[1]*20<=0.05 and _differs(*map(lambda o: tensor(o).double(), (train,valid))).sum()==1

def test_splits_of_one_set_are_not_said_to_differ():
    "In any label, in at most 5 % of splits"
    rng = np.random.default_rng(1)
    def is_said(c):
        y = rng.random((800,c))<rng.uniform(0.01, 0.4, c)
        return bool(label_stats(y[:640], y[640:]).reading)
    assert np.mean([is_said(c) for c in (5,20,80) for _ in range(100)])<=0.05
