"The embedded data set, and loading of data sets with the same layout"
import pytest
from concurrent.futures import ThreadPoolExecutor
from fastai.vision.all import *
from fastai_mlmetrics.data import digits
from fastai_mlmetrics.data.digits import *

def contents(path): return {str(o.relative_to(path)): o.read_bytes() for o in path.rglob('*') if o.is_file()}
def mtimes(path): return {o: o.stat().st_mtime_ns for o in path.rglob('*')}
def onehot(df): return np.array([[o in labels.split() for o in digit_labels] for labels in df.labels])
small = partial(multidigits, n=30, size=24)

@pytest.fixture(scope='module')
def made(tmp_path_factory): return small(tmp_path_factory.mktemp('made')/'set')

@pytest.fixture
def copied(made, tmp_path): return Path(shutil.copytree(made, tmp_path/'copied'))

# --- the labels

@pytest.mark.parametrize('n', [*range(20,66), 100, 2000])
def test_every_label_is_trained_on(n):
    for seed in range(50 if n==50 else 5 if n<2000 else 2):
        df = digit_table(n, seed)
        y = onehot(df)
        assert len(df)==n and df.is_valid.sum()==n//5
        assert y[~df.is_valid].any(0).all()
        if n>=65: assert y[df.is_valid].any(0).all()
        assert df.labels.str.split().map(lambda o: 1<=len(o)<=3 and len({*o})==len(o)).all()

@pytest.mark.parametrize('seed', [0,1,42])
def test_statistics_are_those_of_the_text(seed):
    df = digit_table(seed=seed)
    for part in (df, df[~df.is_valid], df[df.is_valid]):
        y = onehot(part)
        assert 1.53<y.sum(1).mean()<1.56 and 0.92<1-y.mean()<0.926
    freqs = np.sort(onehot(df).mean(0))
    assert 4<freqs[-1]/freqs[0]<9 and freqs[10]<.45*freqs[-1] # a few common labels, and a long tail

@pytest.mark.parametrize('kwargs,what', [
    (dict(n=19), 'n=19.*20 or more'),
    (dict(n=-1), 'n=-1'),
    (dict(n='30'), "n='30'"),
    (dict(seed=-2), 'seed=-2'),
    (dict(seed=None), 'seed=None'),
    (dict(size=8), 'size=8.*16 or more')])
def test_bad_arguments_are_named(kwargs, what, tmp_path):
    with pytest.raises(ValueError, match=what): multidigits(tmp_path/'set', **kwargs)
    assert not (tmp_path/'set').exists()

# --- the files

def test_the_same_arguments_make_the_same_files(made, tmp_path):
    assert contents(small(tmp_path/'again')) == contents(made)
    other = contents(small(tmp_path/'other', seed=1))
    assert all(other[o]!=v for o,v in contents(made).items() if o.endswith('png'))

def test_files_have_the_layout_of_pascal(made):
    df = pd.read_csv(made/'train.csv')
    assert [*df]==['fname','labels','is_valid'] and df.is_valid.dtype==bool
    assert sorted(df.fname) == sorted(o.name for o in (made/'train').ls())
    assert all(Image.open(made/'train'/o).size==(24,24) for o in df.fname)

def test_numbers_of_numpy_will_do(made, tmp_path):
    path = multidigits(tmp_path/'set', n=np.int64(30), size=np.int64(24))
    assert contents(path)==contents(made)==contents(small(path))

def test_no_sample_in_both_parts(made):
    train,valid = ({o.tobytes() for d in part for o in d} for part in digits._samples())
    assert len(train)+len(valid)==1797 and not train&valid

def test_a_second_call_writes_nothing(made):
    before = mtimes(made)
    assert small(str(made))==made and mtimes(made)==before

def test_the_default_path_depends_on_the_arguments(tmp_path, monkeypatch):
    monkeypatch.setattr(digits, 'fastai_path', lambda o: tmp_path/o)
    path = multidigits(n=20, size=16, seed=3)
    assert path.parent==tmp_path/'data' and path!=multidigits(n=20, size=16, seed=4)

def test_a_tilde_is_the_home_folder(made, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.setenv('USERPROFILE', str(tmp_path)) # the home folder on Windows
    monkeypatch.chdir(tmp_path)
    assert small('~/set')==small(Path('~')/'set')==tmp_path/'set' and contents(tmp_path/'set')==contents(made)
    for path in ('~/set', Path('~/set')): assert multilabel_dls(path, bs=8).path==tmp_path/'set'
    assert [o.name for o in tmp_path.iterdir()]==['set']

@pytest.mark.parametrize('n_done', [0,11])
def test_an_interrupted_call_leaves_nothing(made, tmp_path, monkeypatch, n_done):
    path,paint,done = tmp_path/'set',digits._paint,[]
    def interrupted(*args):
        if len(done)==n_done: raise KeyboardInterrupt
        done.append(1)
        return paint(*args)
    with monkeypatch.context() as m, pytest.raises(KeyboardInterrupt):
        m.setattr(digits, '_paint', interrupted)
        small(path)
    assert not [*tmp_path.iterdir()]
    assert contents(small(path)) == contents(made)

def test_folders_of_others_are_left_alone(copied, tmp_path):
    (tmp_path/'notes.txt').write_text('mine')
    def refused(path, **kwargs):
        before = mtimes(path)
        with pytest.raises(FileExistsError, match='other files, or a set that was not made by .*"seed"') as e:
            small(path, **kwargs)
        assert mtimes(path)==before and '\n' not in str(e.value)
    refused(tmp_path)
    refused(copied, n=31)
    (copied/'multidigits.json').write_bytes(b'\xff\xfe\0')
    refused(copied)
    (copied/'multidigits.json').unlink() # now it could be anybody's
    refused(copied)
    with pytest.raises(NotADirectoryError): small(tmp_path/'notes.txt')

def test_empty_folder_is_used(made, tmp_path):
    (tmp_path/'set').mkdir()
    assert contents(small(tmp_path/'set')) == contents(made)

def test_two_calls_at_the_same_time_make_one_set(made, tmp_path):
    with ThreadPoolExecutor(2) as ex: L(ex.map(small, [tmp_path/'set']*2))
    assert contents(tmp_path/'set') == contents(made)

# --- loading

def test_loaders_have_the_images_and_labels_of_the_table(made):
    dls = multilabel_dls(str(made), size=32, bs=8)
    x,y = dls.one_batch()
    assert x.shape==(8,3,32,32) and y.shape==(8,20) and (len(dls.train_ds),len(dls.valid_ds))==(24,6)
    assert [*dls.vocab]==sorted(digit_labels)
    df = pd.read_csv(made/'train.csv')
    y = torch.cat([b[1] for b in dls.valid]).cpu()
    expected = [' '.join(sorted(o.split())) for o in df.labels[df.is_valid]]
    assert expected==[' '.join(dls.vocab[i] for i in o.nonzero().flatten()) for o in y]
    assert multilabel_dls(made, size=None).one_batch()[0].shape==(24,3,24,24) # fewer images than `bs`

def test_digits_are_read_once(made, copied, monkeypatch):
    "The same batches as if they were read in each epoch, as other sets and those with random transforms are"
    reads,load = [],PILImage.create
    monkeypatch.setattr(PILImage, 'create', classmethod(lambda cls, fn, **kw: reads.append(fn) or load(fn, **kw)))
    def epochs(path, **kwargs):
        set_seed(0)
        dls = multilabel_dls(path, size=24, bs=8, device='cpu', **kwargs)
        reads.clear()
        return dls,[b for _ in range(2) for dl in dls for b in dl]
    dls,once = epochs(made)
    assert len(reads)==30
    assert len(dls.test_dl(pd.read_csv(made/'train.csv')[:3]).one_batch()[0])==3 and len(reads)==33
    epochs(made, item_tfms=RandomErasing(p=0.))
    assert len(reads)==60
    (copied/'multidigits.json').unlink()
    _,again = epochs(copied)
    assert len(reads)==60 and len(once)==len(again)==8
    for a,b in zip(once, again): assert (a[0]==b[0]).all() and (a[1]==b[1]).all()
    monkeypatch.undo()
    dls = multilabel_dls(made, size=24)
    for copy in (deepcopy, lambda o: pickle.loads(pickle.dumps(o))): assert len(copy(dls).one_batch()[0])==24

def test_code_for_pascal_runs(made):
    "fastai's tutorial for `URLs.PASCAL_2007`, with another path"
    path,size = made,32
    df = pd.read_csv(path/'train.csv')
    dls = ImageDataLoaders.from_df(df, path, folder='train', valid_col='is_valid', label_delim=' ',
                                   item_tfms=Resize(size+8), batch_tfms=aug_transforms(size=size), bs=8)
    x,y = dls.one_batch()
    assert x.shape==(8,3,32,32) and y.shape==(8,20) and len(dls.valid_ds)==6
    block = DataBlock(blocks=(ImageBlock, MultiCategoryBlock), splitter=ColSplitter('is_valid'),
                      get_x=ColReader('fname', pref=str(path/'train') + os.path.sep),
                      get_y=ColReader('labels', label_delim=' '), item_tfms=Resize(size))
    assert len(block.dataloaders(df, bs=8).vocab)==20

def rewrite(path, **cols):
    df = pd.read_csv(path/'train.csv')
    df.assign(**{k: v(df) for k,v in cols.items()}).to_csv(path/'train.csv', index=False)
    return path

def test_pictures_without_labels_are_loaded(copied):
    dls = multilabel_dls(rewrite(copied, labels=lambda df: df.labels.where(df.index%3>0)), bs=8)
    labels = torch.cat([b[1] for dl in dls for b in dl]).sum(1)
    assert len(labels)==30 and (labels==0).sum()==10
    dls.valid.show_batch()

@pytest.mark.parametrize('yes,no', [('True','False'), ('TRUE','false'), (1,0), (' True',' False'), (' true','0')])
def test_is_valid_may_be_spelt_in_several_ways(copied, yes, no):
    assert len(multilabel_dls(rewrite(copied, is_valid=lambda df: np.where(df.is_valid, yes, no))).valid_ds)==6

def test_odd_labels_are_kept(copied):
    "Numbers, surplus spaces, a name that pandas reads as a missing value, and a label that only validation has"
    labels = lambda df: np.where(df.is_valid, ' NA  7', '3')
    dls = multilabel_dls(rewrite(copied, labels=labels))
    assert [*dls.vocab]==['3','7','NA'] and (dls.valid.one_batch()[1].cpu()==tensor([0.,1,1])).all()

def blank(path, name, *rows): return rewrite(path, fname=lambda df: np.where(df.index.isin(rows), name, df.fname))
def text(path, content): (path/'train.csv').write_bytes(content)

@pytest.mark.parametrize('change,error,what', [
    (lambda p: shutil.rmtree(p), FileNotFoundError, 'train.csv'),
    (lambda p: (p/'train.csv').unlink(), FileNotFoundError, 'train.csv'),
    (lambda p: (p/'train'/'000002.png').unlink(), FileNotFoundError, r'000002.png does not exist.*1 of 30'),
    (lambda p: text(p, b'fname,tags\na.png,a\n'), ValueError, "lacks labels, is_valid.*'fname', 'tags'"),
    (lambda p: rewrite(p, is_valid=lambda df: False), ValueError, 'has is_valid=False: write True'),
    (lambda p: rewrite(p, is_valid=lambda df: True), ValueError, 'has is_valid=True: write True.*there must be both'),
    (lambda p: rewrite(p, is_valid=lambda df: ['yes']+['no']*29), ValueError, 'is_valid=yes, no: write True'),
    (lambda p: (p/'train.csv').write_text('fname,labels,is_valid\n'), ValueError, 'must be both'),
    (lambda p: text(p, b'fname, labels, is_valid\na.png, a, True\n'), ValueError, "' labels'"),
    (lambda p: blank(p, '.', 3), FileNotFoundError, 'train does not exist')])
def test_what_cannot_be_loaded_is_named_in_one_line(copied, change, error, what):
    change(copied)
    with pytest.raises(error, match=what) as e: multilabel_dls(copied)
    assert '\n' not in str(e.value)

def test_an_exported_learner_predicts(made, tmp_path):
    dls = multilabel_dls(made, size=24, bs=8, device='cpu')
    body = lambda: nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 20))
    learn = Learner(dls, body(), path=tmp_path)
    learn.export()
    learn = load_learner(tmp_path/'export.pkl')
    with learn.no_bar(): assert learn.predict(made/'train'/'000000.png')[2].shape==(20,)
    assert len(learn.dls.test_dl([made/'train'/'000000.png']*3).one_batch()[0])==3

def test_keeps_what_a_crop_would_lose(copied):
    "Images of other shapes are squeezed, not cropped: ink at the edge stays"
    padding = (0,0),(0,50),(0,0)
    for o in (copied/'train').ls():
        image = np.pad(np.zeros((20,10,3), np.uint8), padding, constant_values=255)
        Image.fromarray(image).save(o)
    dls = multilabel_dls(copied, size=12)
    x = dls.decode((dls.valid.one_batch()[0],))[0]
    assert x[:,:,:,0].max()<.1 and x[:,:,:,-1].min()>.9

def test_damaged_pictures_are_found(tmp_path):
    "As the docstring of `multilabel_dls` says"
    path = multidigits(tmp_path/'set', n=30, size=32)
    cut,text = path/'train'/'000003.png',path/'train'/'000004.png'
    cut.write_bytes(cut.read_bytes()[:-300])
    text.write_text('no picture')
    test_eq({*verify_images(get_image_files(path/'train'))}, {cut,text})
