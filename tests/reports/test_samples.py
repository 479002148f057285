"Samples with their names and labels, as pictures and as tables"
from fastai.tabular.all import *
from fastai_mlmetrics.reports.samples import _without_tokens
from helpers import *

def test_empty_samples_show_what_was_nearest():
    interp,p,y,s = arrays_of(bias=-6)
    df = interp.empty()
    assert df.n_true.is_monotonic_decreasing and len(df)==(p.sum(1)==0).sum()
    for i,r in df.head(20).iterrows():
        by_score = sorted(np.flatnonzero(y[i]), key=lambda j: -s[i,j])
        assert r.n_true==y[i].sum()
        assert r.true==', '.join(map(str, by_score)) or 'more' in r.true
        assert r.nearest==s[i].argmax() and r.score==pytest.approx(s[i].max())

def check_show(interp, label):
    "`show` has all false negatives or all false positives of a label, the most confident first"
    i = interp.vocab.index(label)
    for kind,true in (('missed',1), ('false',0)):
        expected = [j for j in range(len(interp.preds)) if interp.true[j,i]==true and interp.predicted[j,i]!=true]
        table = interp.show(label, kind, max_n=1000)
        if not expected:
            assert table is None
            continue
        test_eq(table.index.tolist(), sorted(expected, key=lambda j: interp.preds[j,i]*(1 if true else -1)))
        assert f'in {len(expected)} of' in table.reading and 'thresh=' in table.reading
        first = table.index[0]
        columns = dict(true=interp.true, predicted=interp.predicted,
                       missed=interp.true & ~interp.predicted, false=~interp.true & interp.predicted)
        for column,which in columns.items():
            names = {str(o) for o,w in zip(interp.vocab, which[first]) if w}
            shown = {*table.loc[first,column].split(', ')} - {''}
            assert shown==names or 'more' in table.loc[first,column], (column, shown, names)
        assert table.loc[first,kind].split(', ')[0]==str(label)

def test_arrays_are_shown_as_tables(capsys):
    interp,p,y,s = arrays_of(300, 6, density=0.3)
    for i in range(6): check_show(interp, i)
    capsys.readouterr()
    good = MultiLabelInterpretation.from_preds(y.astype(float), y, vocab=list('abcdef'), min_labels=1)
    n = y[:,0].sum()
    assert good.show('a') is None
    assert capsys.readouterr().out==f"a: missed in 0 of the {n} samples with it, at thresh=0.5, min_labels=1\n"
    assert good.show_results(good.empty().index) is None and 'no samples' in capsys.readouterr().out
    assert good.show('a', 'false') is None or 'a false positive' in good.show('a', 'false').reading
    assert interp.show_results([3,1]).index.tolist()==[3,1]
    highest = interp.losses.sort(descending=True).values
    assert interp.plot_top_losses([0,2]).loss.tolist()==highest[[0,2]].tolist()
    assert interp.plot_top_losses(2, largest=False).loss.iloc[0]==interp.losses.min()
    assert len(interp.plot_top_losses(10**6))==300

@pytest.mark.slow
@pytest.mark.parametrize('c', [1,slow(20),slow(80),1000])
@pytest.mark.parametrize('shape', [(32,32), slow((32,80)), slow((80,32))])
def test_no_text_of_pictures_overlaps(c, shape):
    "No text overlaps another or is cut off, whatever the length of names and their number"
    rng = np.random.default_rng(0)
    parts = 'right upper','left_lower_lobe'
    vocab = [f'$a rather long name of finding {i} in the {parts[i%2]} lung, $' for i in range(c)]
    images = [PILImage.create(rng.integers(0, 255, (*shape,3), dtype=np.uint8)) for _ in range(24)]
    targs = rng.random((24,c))<0.3
    block = DataBlock((ImageBlock, MultiCategoryBlock(encoded=True, vocab=vocab)),
                      get_x=lambda i: images[i], get_y=lambda i: targs[i].astype(int),
                      splitter=IndexSplitter(range(12, 24)))
    dls = block.dataloaders(list(range(24)), bs=4, device=torch.device('cpu'))
    torch.manual_seed(0)
    model = nn.Sequential(nn.AdaptiveAvgPool2d(1), Flatten(), nn.Linear(3, c))
    learn = Learner(dls, model, loss_func=BCEWithLogitsLossFlat()).remove_cb(ProgressCallback)
    interp = MultiLabelInterpretation.from_learner(learn)
    missed = interp.true & ~interp.predicted
    label,kind = int(missed.sum(0).argmax()),'missed' if missed.any() else 'false'
    for f in (lambda: interp.show(label, kind),
              lambda: interp.plot_top_losses(5, ncols=4),
              lambda: interp.show_results([0,1], nrows=2),
              lambda: interp.plot_top_losses(3, figsize=(9,6))):
        assert f() is None
        fig = plt.gcf()
        r = fig.canvas.get_renderer()
        fig.canvas.draw()
        texts = [t for ax in fig.axes for t in (ax.title, *ax.texts) if t.get_text()] + [fig._suptitle]
        boxes = [t.get_window_extent(r) for t in texts] + [ax.get_window_extent(r) for ax in fig.axes]
        for a,b in itertools.combinations(boxes, 2):
            assert not a.shrunk(0.98, 0.98).overlaps(b.shrunk(0.98, 0.98))
        whole = fig.bbox
        for b in boxes:
            assert b.x0>=whole.x0-1 and b.x1<=whole.x1+1
            assert b.y0>=whole.y0-1 and b.y1<=whole.y1+1
        colors = {o.get_text().split(':')[0]: o.get_color() for ax in fig.axes for o in ax.texts}
        assert {*colors} <= {'right','missed','false'} and len({*colors.values()})==len(colors)
        plt.close('all')

class Counting(Callback):
    "Counts the batches that the model sees"
    n = 0
    def after_pred(self): self.n += 1

def check(learn, show=True):
    "One pass over the validation set, in its order, and no other later"
    learn.remove_cb(ProgressCallback)
    learn.add_cb(Counting())
    interp = MultiLabelInterpretation.from_learner(learn)
    assert learn.counting.n==len(learn.dls.valid)
    preds,targs = learn.get_preds()
    assert torch.equal(interp.preds, preds) and torch.equal(interp.targs, targs)
    assert interp.losses.shape==(len(preds),)
    logits,_ = learn.get_preds(act=noop) # a sigmoid may saturate
    losses = F.binary_cross_entropy_with_logits(logits, targs.float(), reduction='none').mean(1)
    np.testing.assert_allclose(interp.losses, losses, rtol=1e-4)
    seen = learn.counting.n
    assert isinstance(interp, Interpretation) and len(interp.report(averages=False))==preds.shape[1]
    idxs = interp.top_losses(4)[1]
    inps,p,t,d,losses = interp[idxs]
    assert torch.equal(p, preds[idxs]) and torch.equal(t, targs[idxs].float())
    assert torch.equal(d, (preds[idxs]>0.5).float())
    assert torch.equal(losses, interp.losses[idxs])
    assert learn.counting.n==seen
    # The inputs are those of the predictions: the model predicts the same from them
    with torch.no_grad(): again = learn.model.eval()(*to_device(L(inps), learn.dls.device)).sigmoid()
    atol = 1e-3 if torch.cuda.is_available() else 1e-5 # Kernels of a GPU depend on the batch
    np.testing.assert_allclose(again.cpu(), p, atol=atol)
    if show: interp.show_results(idxs)
    assert learn.counting.n==seen
    plt.close('all')
    return interp

@pytest.mark.slow
def test_images_are_predicted_once(digits_dls):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, loss_func=BCEWithLogitsLossFlat())
    interp = check(learn)
    seen = learn.counting.n
    interp.plot_top_losses(3)
    interp.plot_top_losses([0,5])
    assert learn.counting.n==seen
    plt.close('all')
    learn.set_thresh([0.1]*20, min_labels=2)
    interp = MultiLabelInterpretation.from_learner(learn)
    assert (interp.predicted.sum(1)>=2).all() and not len(interp.empty())
    assert interp.report(averages=False).thresh.eq(0.1).all()
    assert torch.equal(interp.predicted, learn.get_preds(with_decoded=True)[2])
    other = MultiLabelInterpretation.from_learner(learn, ds_idx=0, thresh=0.5)
    assert len(other.preds)==len(digits_dls.train_ds)

def test_texts_are_sorted_and_stay_aligned():
    dls = text_dls()
    learn = Learner(dls, BagOfWords(len(dls.vocab[0]), len(dls.vocab[1])), loss_func=BCEWithLogitsLossFlat())
    interp = check(learn)
    table = interp.plot_top_losses(3)
    texts = [' '.join(dls.vocab[0][t] for t in dls.valid_ds[i][0]) for i in table.index]
    assert table.input.tolist()==[*map(_without_tokens, texts)] and (table.loss.diff()[1:]<=0).all()
    check_show(interp, 'rain')
    everything = interp.predictions.replace(rule=interp.rule.replace(thresh=0.)) # Predicted in all samples
    interp = MultiLabelInterpretation(learn, interp.dl, everything)
    assert interp.predicted.all()
    assert not re.search('xxbos|xxwrep', repr(interp.show('rain', 'false', max_n=2)))
    assert _without_tokens('xxbos xxmaj the xxup nato xxunk xxrep 3 a xxwrep 2 so xxeos')=='the nato … a so'
    assert max(map(len, repr(interp.show('rain', 'false')).splitlines()))<=80

def test_tables_are_predicted_once_and_shown_as_they_were():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(100,3)), columns=list('xyz'))
    df[['a','b']] = rng.integers(0, 2, (100,2))
    table = TabularPandas(df, procs=[Normalize], cont_names=list('xyz'), y_names=['a','b'],
                          y_block=MultiCategoryBlock(encoded=True, vocab=['a','b']),
                          splits=RandomSplitter(seed=0)(range_of(df)))
    dls = table.dataloaders(bs=16, device=torch.device('cpu'))
    learn = tabular_learner(dls, layers=[8])
    check(learn)
    idxs = [3,0,7]
    shown = MultiLabelInterpretation.from_learner(learn).show_results(idxs)
    expected = df.loc[dls.valid.items.index[idxs], [*'xyz']] # before `Normalize`
    np.testing.assert_allclose(shown[[*'xyz']], expected, rtol=1e-5)

def test_data_sets_of_torch_are_shown_by_number():
    "Their items cannot be shown, so tables have the samples' numbers"
    logits,targs = simulate(64, 5, density=0.3)
    ds = torch.utils.data.TensorDataset(logits, targs)
    learn = Learner(DataLoaders.from_dsets(ds, ds, bs=16, device='cpu'), Same(), loss_func=BCEWithLogitsLossFlat())
    interp = MultiLabelInterpretation.from_learner(learn)
    assert len(interp.plot_top_losses(3))==len(interp.show_results([0,5,7]))==3
    assert interp.show(0, 'missed').index.name=='sample'

def item_learner(dls, n_labels):
    "A Learner on items of any kind, whose model has learnt nothing"
    model = nn.Sequential(nn.AdaptiveAvgPool2d(1), Flatten(), nn.Linear(3, n_labels))
    return Learner(dls, model, loss_func=BCEWithLogitsLossFlat()).remove_cb(ProgressCallback)

def images_in(folder, n=20):
    (folder/'im').mkdir()
    for i in range(n): PILImage.create(np.full((8,8,3), 9*i, np.uint8)).save(folder/'im'/f'{i:02}.png')
    return pd.DataFrame(dict(fname=[f'{i:02}.png' for i in range(n)], labels=['a b','b']*(n//2)),
                        index=[f'r{i}' for i in range(n)])

def test_images_have_the_names_of_their_files(tmp_path):
    df = images_in(tmp_path)
    of_table = ImageDataLoaders.from_df(df, tmp_path, folder='im', label_delim=' ', y_block=MultiCategoryBlock(),
                                        bs=4, device=CPU)
    block = DataBlock((ImageBlock, MultiCategoryBlock), get_items=get_image_files, get_y=lambda o: ['a','b'])
    for dls in (of_table, block.dataloaders(tmp_path, bs=4, device=CPU)):
        interp = MultiLabelInterpretation.from_learner(item_learner(dls, 2), thresh=1.)
        files = [*interp.items(tensor([2,0]))]
        assert all(file.parts[-2:]==('im',file.name) for file in files)
        if dls is of_table: assert len(files[0].parts)==2 # Relative to the folder of the data
        for i,file in zip((2,0), files):
            test_eq(np.array(dls.valid_ds[i][0]), np.array(PILImage.create(tmp_path/file)))
        interp.show_results([2])
        title = plt.gcf().axes[0].get_title()
        assert title.startswith('sample 2, ') and f'{files[0].name}\nloss ' in title
        if dls is of_table: assert 'im/' in title
        plt.close('all')

def test_samples_without_files_are_not_loaded_for_their_names():
    loaded = []
    def picture(row):
        loaded.append(row.name)
        return PILImage.create(np.zeros((8,8,3), np.uint8))
    df = pd.DataFrame(dict(labels=['a b','b']*10))
    block = DataBlock((ImageBlock, MultiCategoryBlock), get_x=picture, get_y=ColReader('labels', label_delim=' '))
    interp = MultiLabelInterpretation.from_learner(item_learner(block.dataloaders(df, bs=4, device=CPU), 2))
    loaded.clear()
    assert len(interp.items([0,1,2]))==3 and len(loaded)==1

def test_rows_have_the_names_of_their_index(tmp_path):
    dls = text_dls()
    learn = Learner(dls, BagOfWords(len(dls.vocab[0]), len(dls.vocab[1])), loss_func=BCEWithLogitsLossFlat())
    interp = MultiLabelInterpretation.from_learner(learn.remove_cb(ProgressCallback))
    rows = dls.valid_ds.items.index
    test_eq(interp.items([3,1]), rows[[3,1]])
    table = interp.show_results([3,1])
    assert [*table]==['item','loss','true','predicted','missed','false','input']
    test_eq(table.item.tolist(), [*rows[[3,1]]])
    scores = pd.DataFrame([[0.9,0.1],[0.2,0.3],[0.8,0.7]], ['x','y','z'], ['a','b'])
    for p,y in ((scores, np.eye(3, 2)), (scores.values, scores.round())):
        interp = MultiLabelInterpretation.from_preds(p, y)
        test_eq(interp.show_results([2,0]).item.tolist(), ['z','x'])
        assert interp.items(range(3)).equals(scores.index)
    for p in (scores.values, scores.reset_index(drop=True)):
        interp = MultiLabelInterpretation.from_preds(p, np.eye(3, 2))
        assert interp.items([0]) is None and 'item' not in interp.show_results([0])

def test_all_mistakes_are_listed_most_confident_first():
    interp,p,y,s = arrays_of(300, 6, density=0.3, bias=-1.5)
    table = interp.mistakes()
    test_eq([*table], ['label','kind','score'])
    rows = {(i,r.label,r.kind) for i,r in table.iterrows()}
    assert rows=={(i,j,'missed' if y[i,j] else 'false') for i,j in np.argwhere(p!=y)} and len(rows)==len(table)
    scores = s[table.index,table.label.astype(int)]
    test_close(table.score, scores)
    sure = np.where(table.kind=='missed', 1-scores, scores)
    assert (np.diff(sure)<=0).all()
    test_eq(table.reading, f'{len(table)} mistakes at thresh=0.5.')
    for label,kind in itertools.product((None,2), (None,'missed','false')):
        part,of = interp.mistakes(label, kind, max_n=3),table
        if label: of = of[of.label==label]
        if kind: of = of[of.kind==kind]
        pd.testing.assert_frame_equal(part, of[:3])
        assert part.reading.startswith(f'The first 3 of {len(of)} mistakes')
        if label and kind: test_eq(interp.show(label, kind, 3).index.tolist(), part.index.tolist())
    with pytest.raises(ValueError, match="kind='wrong' should be 'missed'"): interp.mistakes(kind='wrong')
    with pytest.raises(ValueError, match='max_n=0 should be'): interp.mistakes(max_n=0)
    margins = MultiLabelInterpretation.from_preds(*simulate(300, 6, density=0.3, bias=-1.5), thresh=0.)
    assert len(margins.mistakes())==len(table) and margins.mistakes().score.abs().is_monotonic_decreasing

def test_mistakes_have_their_items(tmp_path):
    scores = pd.DataFrame([[0.95,0.1],[0.2,0.3],[0.4,0.7]], ['x','y','z'], ['a','b'])
    interp = MultiLabelInterpretation.from_preds(scores, [[0,1],[1,0],[0,1]])
    table = interp.mistakes()
    test_eq([*table], ['item','label','kind','score'])
    test_eq([*zip(table.index, table.item, table.label, table.kind)],
            [(0,'x','a','false'),(0,'x','b','missed'),(1,'y','a','missed')])
    table.to_csv(tmp_path/'check.csv')
    test_eq((tmp_path/'check.csv').read_text().splitlines()[:2], ['sample,item,label,kind,score','0,x,a,false,0.95'])
    images_in(tmp_path)
    block = DataBlock((ImageBlock, MultiCategoryBlock), get_items=get_image_files, get_y=lambda o: ['a','b'])
    learn = item_learner(block.dataloaders(tmp_path, bs=4, device=CPU), 2)
    table = MultiLabelInterpretation.from_learner(learn, thresh=1.).mistakes('a')
    test_eq([*table.item], [learn.dls.valid_ds.items[i] for i in table.index])
    perfect = MultiLabelInterpretation.from_preds(scores, scores.round())
    assert not len(perfect.mistakes()) and perfect.mistakes().reading=='0 mistakes at thresh=0.5.'

def test_flipped_targets_are_the_most_confident_mistakes():
    logits,targs = simulate(2000, 10, density=0.2, skill=8., bias=-4.)
    flipped = torch.rand(2000, 10, generator=torch.Generator().manual_seed(0))<0.02
    noisy = torch.where(flipped, 1-targs, targs)
    table = MultiLabelInterpretation.from_preds(logits, noisy, sigmoid=True).mistakes(max_n=200)
    assert flipped[table.index.tolist(),table.label.tolist()].float().mean()>0.95

def test_a_list_of_mistakes_takes_little_memory():
    p,y = torch.rand(20_000, 300)**3,(torch.rand(20_000, 300)<0.02).float()
    interp = MultiLabelInterpretation.from_preds(p, y, thresh=0.99)
    MultiLabelInterpretation.from_preds(p[:2000], y[:2000], thresh=0.99).mistakes()
    assert len(interp.mistakes(max_n=10))==10
    assert peak_of(partial(interp.mistakes, max_n=10)) < 16*p.numel()/2**20

def test_the_nearest_label_is_one_that_counts():
    scores,targs = torch.tensor([[0.4,0.3,0.1],[0.2,0.1,0.3]]),torch.tensor([[-1.,0,1],[0,1,0]])
    df = MultiLabelInterpretation.from_preds(scores, targs, ignore_index=-1, vocab=list('abc')).empty()
    test_eq([*zip(df.nearest, df.true)], [('b','c'),('c','b')])
    test_close(df.score, [0.3,0.3])

def test_an_argument_that_does_not_exist_is_an_error():
    interp,*_ = arrays_of(100, 5, density=0.3, bias=-1.5)
    for f in (partial(interp.show, 0), partial(interp.plot_top_losses, 3), partial(interp.show_results, [0,1])):
        with pytest.raises(TypeError, match='nrow'): f(nrow=1)
        assert [*inspect.signature(f).parameters][-3:]==['nrows','ncols','figsize']

# Items of any library

@pytest.fixture
def given():
    rng = np.random.default_rng(0)
    return rng.random((40,4)),(rng.random((40,4))<0.3).astype(int)

def test_texts_of_any_library_are_shown(given, tmp_path):
    texts = [f'text number {i}' for i in range(40)]
    interp = MultiLabelInterpretation.from_preds(*given, items=texts)
    shown = interp.show(0, 'false', max_n=3)
    assert [*shown.input]==[texts[i] for i in shown.index] and 'item' not in interp.mistakes()
    page = interp.to_html(tmp_path/'page.html').read_text()
    assert 'text number' in page and 'text number' not in (
        MultiLabelInterpretation.from_preds(*given).to_html(tmp_path/'other.html').read_text())
    with pytest.raises(ValueError, match='items has 39 values, but there are 40 samples'):
        MultiLabelInterpretation.from_preds(*given, items=texts[:-1])

@pytest.mark.parametrize('kind', [Path, str])
def test_image_files_of_any_library_are_shown(given, tmp_path, kind):
    files = [kind(tmp_path/f'{i}.png') for i in range(40)]
    for i,o in enumerate(files): PILImage.create(np.full((8,8,3), 6*i, np.uint8)).save(o)
    interp = MultiLabelInterpretation.from_preds(*given, items=files)
    found = interp.mistakes(0)
    assert [*map(str, found['item'])]==[str(files[i]) for i in found.index]
    interp.show(0, 'false', max_n=2)
    ax = plt.gcf().axes[0]
    assert ax.images[0].get_array().shape[:2]==(8,8) and '.png' in ax.get_title()
    plt.close('all')

def test_one_mistake_of_each_group(given):
    "The most confident one"
    interp = MultiLabelInterpretation.from_preds(*given, vocab=[*'abcd'])
    groups = np.arange(40)//8
    every,one = interp.mistakes(),interp.mistakes(groups=groups)
    assert len(one)==5 and 'one of each group' in one.reading
    for (i,row) in one.iterrows():
        first_one = every[groups[every.index]==groups[i]].iloc[0]
        assert row.equals(first_one) and first_one.name==i
    with pytest.raises(ValueError, match='groups has 39 values'): interp.mistakes(groups=groups[1:])

def test_a_list_of_mistakes_names_its_label(given):
    interp = MultiLabelInterpretation.from_preds(*given, vocab=[*'abcd'])
    assert ' mistakes of label c at thresh=0.5.' in interp.mistakes('c').reading
    assert ' of label' not in interp.mistakes(max_n=2).reading

def test_items_are_images_arrays_and_tables(given):
    "As PIL and PyTorch have them, with the first of many columns"
    rng = np.random.default_rng(0)
    arrays = rng.integers(0, 255, (40,8,12,3), dtype=np.uint8)
    tensors = [tensor(o).permute(2, 0, 1)/255 for o in arrays]
    for items in ([PILImage.create(o) for o in arrays], [Image.fromarray(o) for o in arrays], arrays, tensors):
        interp = MultiLabelInterpretation.from_preds(*given, items=items)
        interp.show(0, 'false', max_n=2)
        test_eq(plt.gcf().axes[0].images[0].get_array().shape[:2], (8,12))
        plt.close('all')
    table = pd.DataFrame(rng.normal(size=(40,128)), [f'r{i}' for i in range(40)]).add_prefix('x')
    with warnings_as('error'):
        shown = MultiLabelInterpretation.from_preds(*given, items=table).show_results([3])
    inputs = [o for o in shown if o.startswith('x')]
    assert inputs==[*table][:8] and 'The first 8 columns' in shown.reading
    with pytest.raises(ValueError, match='different indexes'):
        p,y = (pd.DataFrame(o, table.index) for o in given)
        MultiLabelInterpretation.from_preds(p, y, items=table[::-1])

def test_long_texts_are_whole(given):
    interp = MultiLabelInterpretation.from_preds(*given, items=[f'{i} '+'a word '*90 for i in range(40)])
    shown = interp.show_results([3])
    assert shown.input.item()==interp.given[3] and interp.given[3] not in repr(shown)
    with pd.option_context('display.max_colwidth', None): assert interp.given[3] in repr(shown)

def test_wide_tables_of_a_learner_show_eight_columns(tmp_path):
    rng = np.random.default_rng(0)
    names = [f'x{i}' for i in range(128)]
    df = pd.DataFrame(rng.normal(size=(100,128)), columns=names)
    df[['a','b']] = rng.integers(0, 2, (100,2))
    table = TabularPandas(df, procs=[Normalize], cont_names=names, y_names=['a','b'],
                          splits=([*range(70)],[*range(70, 100)]),
                          y_block=MultiCategoryBlock(encoded=True, vocab=['a','b']))
    learn = tabular_learner(table.dataloaders(bs=16, device=CPU), layers=[8])
    with warnings_as('error', pd.errors.PerformanceWarning):
        interp = MultiLabelInterpretation.from_learner(learn, thresh=0.01)
        for shown in (interp.show('a', 'false'), interp.plot_top_losses(3)):
            assert len([o for o in shown if o[0]=='x'])==8
            test_close(shown.iloc[0,-1], df.loc[shown['item'].iloc[0], shown.columns[-1]], eps=1e-4)
        interp.to_html(tmp_path/'page.html')

def test_a_number_is_the_index_of_a_label(given):
    interp = MultiLabelInterpretation.from_preds(*given, vocab=[*'abcd'])
    pd.testing.assert_frame_equal(interp.mistakes(2), interp.mistakes('c'))
    assert ' of label c at' in interp.mistakes('c').reading
    assert 'mistakes of label 3 at' in MultiLabelInterpretation.from_preds(*given).mistakes(3).reading
    test_eq(len(interp.mistakes(3, max_n=2)), 2)

def test_groups_of_items_with_several_samples():
    logits,targs = (o.view(10, 8, 3) for o in simulate(80, 3, density=.3, bias=-1))
    interp = MultiLabelInterpretation.from_learner(make_learner(logits, targs))
    one = interp.mistakes(groups=[*'aabbccddee'])
    assert len(one)==5 and len({*(one.index//16)})==5
