"Tables of every kind become predictions, targets and label names; what is no table is named"
import collections, scipy.sparse
from fastai.data.all import CategoryMap
from fastai.tabular.all import Normalize, TabularDataLoaders, tabular_learner
from fastai.text.all import BaseTokenizer, TextBlock
from sklearn.preprocessing import MultiLabelBinarizer
from helpers import *
from fastai_mlmetrics.core.inputs import as_vocab, label_vocab
from six_labels import FUNCTIONS, NAMES, SCORES, TARGS, assert_alike, every_function, interpretation, metric

KINDS = dict(
    array=lambda x: x.numpy(),
    reversed=lambda x: x.numpy()[::-1,::-1].copy()[::-1,::-1],
    fortran=lambda x: np.asfortranarray(x.numpy()),
    objects=lambda x: x.numpy().astype(object),
    lists=lambda x: x.tolist(),
    frame=lambda x: pd.DataFrame(x.numpy()),
    sparse=lambda x: scipy.sparse.csr_matrix(x.numpy()),
    sparse_tensor=lambda x: x.to_sparse(),
    sparse_rows=lambda x: x.to_sparse_csr(),
    doubles=lambda x: x.numpy().astype(np.float64),
    subclass=TensorBase,
    tracked=lambda x: x.clone().requires_grad_(),
    strided=lambda x: x.t().contiguous().t(),
    lists_of_rows=lambda x: list(x.numpy()))

@every_function
@pytest.mark.parametrize('kind', KINDS)
def test_every_kind_of_table(f, kind):
    expected = f(SCORES, TARGS)
    scores,y = KINDS[kind](SCORES),KINDS[kind](TARGS)
    with warnings_as('error'):
        for preds,targs in ((scores, y), (scores, TARGS), (SCORES, y)):
            found = f(preds, targs)
            if kind in ('doubles','lists','objects'):
                np.testing.assert_allclose(np.array(flat(found)), np.array(flat(expected)), atol=1e-6)
            else: assert_alike(found, expected)

class OtherTable:
    "What a table of polars (`columns`) or of pyarrow (`column_names`) is to numpy"
    def __init__(self, df, attr='columns'):
        self.values = df.to_numpy()
        setattr(self, attr, [*df])
    def __array__(self, dtype=None, copy=None): return self.values

@every_function
@pytest.mark.parametrize('attr', ['columns','column_names'])
def test_columns_of_other_libraries_are_matched_by_name(f, attr):
    preds,targs = pd.DataFrame(SCORES.numpy(), columns=NAMES),pd.DataFrame(TARGS.numpy(), columns=NAMES)
    expected = f(preds, targs)
    assert_alike(f(OtherTable(preds[NAMES[::-1]], attr), OtherTable(targs, attr)), f(preds[NAMES[::-1]], targs))
    assert_alike(f(OtherTable(preds, attr), targs[NAMES[::-1]]), expected)

def test_other_tables_name_their_labels():
    targs = pd.DataFrame(TARGS.numpy(), columns=NAMES)
    assert [*label_stats(OtherTable(targs), OtherTable(targs[NAMES[::-1]])).index]==NAMES
    with pytest.raises(ValueError, match='tables must have the same columns'):
        F1ScoreMulti(sigmoid=False)(OtherTable(targs), targs.rename(columns={NAMES[0]: 'x'}))

HIDDEN = np.ma.array([[1,7],[0,1]], mask=[[0,1],[0,0]])

@pytest.mark.parametrize('masked', [HIDDEN, HIDDEN.astype(float), [*HIDDEN], (*HIDDEN,), [np.ma.masked]*2],
                         ids=['whole numbers','floats','list of rows','tuple of rows','constant'])
@pytest.mark.parametrize('f', [
    *FUNCTIONS.values(), categorical_accuracy, lambda p, y: label_stats(y), lambda p, y: pos_weight(y),
    lambda p, y: label_stats([[0,1]], y), lambda p, y: stratified_split(y), lambda p, y: stratified_folds(y, 2),
    lambda p, y: ThreshFinder().update(p, y), lambda p, y: F1ScoreMulti(sample_weight=y)])
def test_masked_entries_have_one_error_wherever_arrays_come_in(f, masked):
    p = np.array([[.9,.1],[.2,.8]])
    for preds,targs in ((p, masked), (masked, masked)):
        with pytest.raises(ValueError, match='numpy masks are not ignored.*ignore_index=nan'): f(preds, targs)

def test_what_the_error_of_masked_entries_says_is_the_cure():
    targs = np.ma.array(TARGS.numpy().astype(int), mask=torch.rand(TARGS.shape).numpy()<0.2)
    known = targs.astype(float).filled(np.nan)
    expected = metric(SCORES, TARGS.masked_fill(torch.from_numpy(targs.mask), -1), ignore_index=-1)
    assert_alike(metric(SCORES, known, ignore_index=math.nan), expected)

class Unreadable:
    "A table of HDF5 whose disk is broken"
    def __init__(self, error): self.error = error
    def __array__(self, *args, **kwargs): raise self.error

@pytest.mark.parametrize('error', [OSError('broken'), MemoryError(), RuntimeError('CUDA out of memory')])
def test_errors_of_disk_and_memory_are_not_changed(error):
    for o in (Unreadable(error), [Unreadable(error)]*2):
        with pytest.raises(type(error)) as e: judge(SCORES, o)
        assert e.value is error

def test_text_in_tables_of_other_libraries_is_named():
    table = OtherTable(pd.DataFrame(dict(cat=[0,1], path=['a.jpg','b.jpg'])))
    with pytest.raises(ValueError, match="column 'path' has text, such as 'a.jpg'"): label_stats(table)

def test_an_error_keeps_its_cause():
    for o in ([[1,2],[3]], pd.DataFrame(dict(a=pd.date_range('2020', periods=2)))):
        with pytest.raises(ValueError) as e: pos_weight(o)
        assert isinstance(e.value.__cause__, (TypeError,ValueError)) and str(e.value.__cause__)

@every_function
def test_complex_numbers_are_refused(f):
    for o in (SCORES+0j, SCORES.numpy()+0j):
        with pytest.raises(ValueError, match='a table of numbers is needed'): f(o, TARGS)

def flat(o):
    "All numbers in nested lists"
    if isinstance(o, (list,tuple)): return sum(map(flat, o), [])
    return [o] if isinstance(o, (int,float)) else []

@every_function
def test_frames_are_matched_by_column(f):
    names = list('abcdef')
    preds,targs = (pd.DataFrame(o.numpy(), columns=names) for o in (SCORES,TARGS))
    expected = f(SCORES, TARGS) if f is not interpretation else f(SCORES, TARGS, vocab=names)
    assert_alike(f(preds, targs[names[::-1]]), expected)
    with pytest.raises(ValueError, match="columns.*'f', 'x'"): f(preds, targs.rename(columns=dict(f='x')))
    with pytest.raises(ValueError, match='columns'): f(preds, targs[names[:5]])
    with pytest.raises(ValueError, match='index in another order'): f(preds, targs.sample(frac=1, random_state=0))
    other = targs.set_index(np.arange(300)+1000) # a default index only numbers rows: they are matched by position
    assert_alike(f(preds, other), f(preds, targs))

def test_columns_are_the_vocab():
    preds,targs = (pd.DataFrame(o.numpy(), columns=list('abcdef')) for o in (SCORES,TARGS))
    for p,t in ((preds,targs), (preds,TARGS), (SCORES,targs)):
        assert list(MultiLabelInterpretation.from_preds(p, t).vocab)==list('abcdef')
        assert judge(SCORES*0, targs).never_predicted==list('abcdef')
    assert ' scores ' in accuracy_report(preds, targs, ci=None).reading
    interp = MultiLabelInterpretation.from_preds(preds, targs, vocab=dict(enumerate('uvwxyz')))
    assert list(interp.vocab)==list('uvwxyz')

@every_function
def test_what_is_no_table_of_numbers(f):
    for bad in (['cat dog','cat']*150, [['cat','dog'],['cat']]*150, np.array([['a']*6]*300),
                np.array([[None,'x']*3]*300, object)):
        with pytest.raises(ValueError, match='One-hot encode'): f(SCORES, bad)

@pytest.mark.parametrize('targs', [
    ['a b', 'a', 'b', 'c'], [['a','b'], ['a'], ['b'], ['c']], (['a','b'], [], ['c'], ['b']),
    pd.Series(['a b', 'a', 'b', 'c']), [['1','1','0'], *[['0','1','0']]*3]])
def test_the_cure_of_text_cures(targs):
    "What the message says, typed literally, gives targets that are taken"
    with pytest.raises(ValueError) as error: accuracy_report(SCORES[:4,:3], targs)
    names = dict(targs=targs, vocab=[*'abc'], np=np, MultiLabelBinarizer=MultiLabelBinarizer)
    code = re.search(r"(targs = [^,]+), then|", str(error.value))[1] or ''
    exec(code, names)
    call = re.search(r"(?:sklearn's |by )(\S+\(.*targs[^)]*\))", str(error.value))[1]
    table = eval(call, names)
    assert table.shape==(4,3) and accuracy_report(SCORES[:4,:3], table).value.notna().any()

def test_numbers_of_pandas_and_of_other_byte_orders_are_taken():
    y = pd.DataFrame(TARGS.numpy()).astype('Int64')
    y.iloc[:100,2] = pd.NA
    missing = TARGS.clone()
    missing[:100,2] = math.nan
    for f,table in itertools.product(FUNCTIONS.values(), (y, y.astype(object))):
        assert_alike(f(SCORES, table, ignore_index=math.nan), f(SCORES, missing, ignore_index=math.nan))
    assert_alike(metric(SCORES.numpy().astype('>f4'), TARGS.numpy().astype('>i8')), metric(SCORES, TARGS))
    assert F1ScoreMulti(zero_division=np.float32(1)).zero_division==1

def test_what_is_no_vocab_is_named():
    for vocab,match in (({'a','b','c','d','e','f'}, 'set'),
                        ({0:'a',1:'b',2:'c',3:'d',4:'e',9:'z'}, '0 to 5'),
                        ({c:i for i,c in enumerate('abcdef')}, 'keys'),
                        (list('abc'), '3 names.*6 labels')):
        with pytest.raises(ValueError, match=match): judge(SCORES, TARGS, vocab=vocab)
    for thresh in (math.nan, True, '0.5', [[0.5]]):
        with pytest.raises(ValueError, match='thresh='): judge(SCORES, TARGS, thresh=thresh)
    with pytest.raises(ValueError, match="min_labels='1'"): judge(SCORES, TARGS, min_labels='1')

# Names

def test_vocab_does_not_contradict_the_columns():
    p,y = (pd.DataFrame(o.numpy(), columns=NAMES) for o in (SCORES, TARGS))
    with pytest.raises(ValueError, match='another order than the DataFrame'): best_thresholds(p, y, vocab=NAMES[::-1])
    found = best_thresholds(p, y, average='macro', vocab=list('uvwxyz'))
    assert found.names==list('uvwxyz')

@pytest.mark.parametrize('kind', [pd.DataFrame, lambda o: pd.DataFrame(o)[0]])
def test_rows_go_together(kind):
    p,y = kind(SCORES.numpy()),kind(TARGS.numpy())
    m = F1ScoreMulti(sigmoid=False)
    assert m(p[100:], y[:200])==m(p[100:].to_numpy(), y[:200].to_numpy()) # rows have no names
    p.index = y.index = [f'row {i}' for i in range(300)]
    assert m(p, y)==m(p.reset_index(drop=True), y)
    with pytest.raises(ValueError, match='the same index in another order'): m(p, y[::-1])
    with pytest.raises(ValueError, match='different indexes'): m(p[1:], y[:-1])

# Mistakes in calls

@pytest.mark.parametrize('dtype', [np.uint8, np.uint16, np.uint32, np.uint64])
@every_function
def test_targets_may_be_unsigned(f, dtype): assert_alike(f(SCORES, TARGS.numpy().astype(dtype)), f(SCORES, TARGS))

def test_lists_of_what_scikit_learn_predicts():
    "For each label an array of both classes' probabilities, or of the only class's"
    both = [np.stack([1-p, p], axis=1) for p in SCORES.numpy().T]
    for args,match in (
            ((both, TARGS), 'np.stack([p[:,1] for p in preds], axis=1)'),
            (([*both[:5], both[5][:,:1]], TARGS),
             'this list is not one: pass an array, a tensor, a DataFrame, or lists of equally long'),
            ((SCORES, TARGS.T), 'but targets (6, 300); both need a row per sample and a column per label')):
        with pytest.raises(ValueError, match=re.escape(match)): accuracy_report(*args)
    assert_alike(accuracy_report(np.stack([p[:,1] for p in both], axis=1), TARGS), accuracy_report(SCORES, TARGS))

def test_tables_that_differ_name_only_what_differs():
    names,m = [f'l{i}' for i in range(40)],F1ScoreMulti(sigmoid=False)
    def frame(columns): return pd.DataFrame(np.random.default_rng(0).random((20,40)), columns=columns)
    a,b = frame(names),frame([*names[:-7], *'tuvwxyz'])
    differ = "Only in one of them, or repeated: ['l33', 'l34', 'l35', 'l36', 'l37', 'l38'"
    with pytest.raises(ValueError, match=re.escape(differ)): m(a, (b>0.5).astype(int))
    twice = a.set_axis(['l0', *names[:-1]], axis=1)
    with pytest.raises(ValueError, match=re.escape("repeated: ['l0']")): m(twice, twice>0.5)

def test_lists_that_are_no_tables():
    "A list of batches and ragged lists are not taken for lists of probabilities from scikit-learn"
    for bad in ([SCORES[:64].numpy(), SCORES[64:74].numpy()], [[[.1,.2],[.3]], [[.1],[.2]]]):
        with pytest.raises(ValueError, match='a table of numbers is needed, with a row per sample'):
            AccuracyMulti(sigmoid=False)(bad, TARGS[:74])

def test_rows_of_the_same_names_in_another_kind_of_index():
    p,y = (pd.DataFrame(o.numpy()) for o in (SCORES, TARGS))
    m = AccuracyMulti(sigmoid=False)
    expected = m(p, y)
    for dtype in ('Int64','category'): assert m(p, y.set_axis(pd.Index(range(len(y)), dtype=dtype)))==expected
    with pytest.raises(ValueError, match='different indexes'): m(p[3:6], y[1:4])
    m(p[3:6].reset_index(drop=True), y[1:4])

COLUMNS = ['red','blue','green']

def table(yes=1, no=0):
    "A table with targets in three columns, which are `yes` or `no`"
    rng = np.random.default_rng(0)
    df = pd.DataFrame(dict(a=rng.normal(size=200), b=rng.normal(size=200)))
    for i,o in enumerate(COLUMNS): df[o] = np.where(df.a+rng.normal(size=200)>0.2*i, yes, no)
    return df

@pytest.mark.parametrize('block', [
    None, MultiCategoryBlock(encoded=True, vocab=COLUMNS), RegressionBlock(3)], ids=['none','encoded','regression'])
def test_target_columns_keep_their_names(block):
    dls = TabularDataLoaders.from_df(table(), procs=[Normalize], cont_names=['a','b'], y_names=COLUMNS,
                                     y_block=block, valid_idx=list(range(100)), bs=20, device=CPU)
    learn = tabular_learner(dls, layers=[8], metrics=multilabel_metrics(), loss_func=BCEWithLogitsLossFlat(),
                            cbs=ZeroLabelsCallback()).remove_cb(ProgressCallback)
    with learn.no_logging(), warnings_as('ignore'):
        learn.fit(2, 0.1)
        test_eq(label_vocab(dls), COLUMNS)
        found = learn.thresh_find(show_plot=False)
        assert list(found.table.index[3:])==COLUMNS
        assert [*learn.evaluate().index[1:3]]==['accuracy_multi','zeros_accuracy']
        assert re.search('here (red|blue|green)', learn.accuracy_report(thresh=found.best).attrs['about'])
        assert list(MultiLabelInterpretation.from_learner(learn).vocab)==COLUMNS
        learn.metrics = [F1ScoreMulti(labels=['blue'], name='f1_blue')]
        assert learn.evaluate().value['f1_blue']>=0

def test_names_come_from_the_columns_or_the_classes():
    def vocab(df, y):
        return label_vocab(TabularDataLoaders.from_df(df, cont_names=['a','b'], y_names=y, bs=20, device=CPU))
    test_eq(vocab(table('yes','no'), COLUMNS), COLUMNS) # the DataLoaders' vocab is the classes of a column
    test_eq(vocab(table('yes','no'), 'red'), ['no','yes'])
    test_eq(vocab(table(), 'red'), ['red'])
    assert label_vocab(None) is None and label_vocab(make_learner(*simulate(20)).dls) is None

def text_loaders(df, y_block, get_y):
    block = DataBlock((TextBlock.from_df('text', tok=BaseTokenizer()), y_block),
                      get_x=ColReader('text'), get_y=get_y, splitter=IndexSplitter(range(20,40)))
    return block.dataloaders(df, bs=4, device=CPU)

TEXTS = ['a b c','a','b b','c c c c']*10

def test_texts_without_a_vocab_of_labels():
    "The only vocab is that of the words"
    df = pd.DataFrame(dict(text=TEXTS, x=[1.,0,1,0]*10, y=[0.,0,1,1]*10))
    dls = text_loaders(df, RegressionBlock(2), ColReader(['x','y']))
    assert len(dls.vocab)>2 and label_vocab(dls) is None
    model = nn.Sequential(nn.Embedding(len(dls.vocab), 2), Lambda(lambda x: x.mean(1)))
    learn = Learner(dls, model, loss_func=BCEWithLogitsLossFlat(), metrics=multilabel_metrics(),
                    cbs=ZeroLabelsCallback()).remove_cb(ProgressCallback)
    with learn.no_logging(), warnings_as('ignore'):
        learn.fit(1, 0.1)
        learn.set_thresh([0.4,0.6])
        assert list(learn.thresh_find(show_plot=False).table.index[3:])==[0,1]
        assert len(learn.accuracy_report())
    dls.vocab = ['x','y'] # a user may set the names
    assert list(label_vocab(dls))==['x','y']

def test_texts_have_the_vocab_of_their_labels():
    df = pd.DataFrame(dict(text=TEXTS, labels=['x;y','x','','y']*10))
    dls = text_loaders(df, MultiCategoryBlock, ColReader('labels', label_delim=';'))
    assert len(dls.vocab)==2 and list(label_vocab(dls))==['x','y']
    y = torch.stack([y for _,y in dls.valid_ds])
    scores = (y*0.5+torch.rand(y.shape)*0.5).as_subclass(Tensor)
    assert list(best_thresholds(scores, y, average='macro', vocab=dls.vocab).table.index[2:])==['x','y']
    assert 'here x, y, ' in accuracy_report(scores, y, vocab=dls.vocab).attrs['about']
    test_eq(list(MultiLabelInterpretation.from_preds(scores, y, vocab=dls.vocab).vocab), ['x','y'])
    test_eq(judge(scores*0, y, vocab=dls.vocab).never_predicted, ['x','y'])

AVERAGES = 'micro','macro','weighted','samples',None

def test_more_axes_are_samples():
    logits,targs = simulate(60)
    for a in AVERAGES:
        m = F1ScoreMulti(average=a)
        same(m(logits.view(3,20,20), targs.view(3,20,20)), F1ScoreMulti(average=a)(logits, targs))

@pytest.mark.parametrize('p,y,match', [
    ((3,2), (2,3), r'\(3, 2\).*\(2, 3\)'),
    ((3,2), (3,), r'\(3, 2\).*\(3,\)'),
    ((4,), (3,), r'\(4,\).*\(3,\)')])
def test_shapes_that_differ_are_named(p, y, match):
    for f in (F1ScoreMulti(), accuracy_multi, categorical_accuracy):
        with pytest.raises(ValueError, match=match): f(torch.zeros(p), torch.zeros(y))

def test_labels_may_be_arrays_and_series():
    logits,targs = simulate(30, 4)
    ref = F1ScoreMulti(labels=[1,2])(logits, targs)
    for labels in (np.array([1,2]), tensor([1,2]), pd.Series([1,2]), range(1,3), L(1,2)):
        assert F1ScoreMulti(labels=labels)(pd.DataFrame(logits.numpy()), targs.tolist())==ref

def test_a_column_is_a_vector():
    p,y = torch.randn(30),(torch.rand(30)<0.5).float()
    for a,b in ((p[:,None],y), (p,y[:,None]), (p[:,None],y[:,None])):
        assert F1ScoreMulti()(a, b)==F1ScoreMulti()(p, y)

GIVEN,RIGHT = np.random.default_rng(0).random((8,3)).astype('float32'),np.eye(3, dtype=int)[np.arange(8)%3]
BAD_INPUT = {
    'swapped': (RIGHT.astype(float), GIVEN, 'are they swapped.*Predictions come first'),
    'swapped, whole numbers': (RIGHT, GIVEN, 'are they swapped'),
    'swapped logits': (RIGHT, 4*GIVEN-2, 'are they swapped'),
    'class indices': (GIVEN, np.arange(8)%3, r'\(8, 3\), but targets \(8,\).*class indices'),
    'class indices in a column': (GIVEN, (np.arange(8)%3)[:,None], r'\(8, 3\), but targets \(8, 1\).*class indices'),
    'a text column': (GIVEN, pd.DataFrame(RIGHT, columns=list('abc')).assign(path='x.jpg'),
                      "column 'path' has text, such as 'x.jpg'.*Select the columns of the labels"),
    'numbers as text': (GIVEN, RIGHT.astype(str), r"text, such as '1'. Convert it by np.array\(targs, float\)"),
    'numbers as text in lists': (GIVEN, RIGHT.astype(str).tolist(), "text, such as '1'"),
    'numbers as text in a table': (GIVEN, pd.DataFrame(RIGHT.astype(str)), "column 0 has text"),
    'numbers as objects': (GIVEN, RIGHT.astype(str).astype(object), "text, such as '1'"),
    'lists as text': (GIVEN, ["['a', 'b']"]*len(RIGHT), "this list has text, such as \"\\['a', 'b'\\]\""),
    'names in one text': (GIVEN, ['a b', 'c', '', 'a', 'b', 'c', 'a', 'b'],
                          r"such as 'a b'. One-hot encode names: targs = .*\.split\(' '\)"),
    'lists of names': (GIVEN, [['a','b'], ['c'], [], ['a'], ['b'], ['c'], ['a'], ['b']], 'MultiLabelBinarizer'),
    'empty': (GIVEN[:0], RIGHT[:0], 'there are no samples'),
    'no labels': (GIVEN[:,:0], RIGHT[:,:0], 'a column per label'),
    'nothing': (GIVEN, None, 'NoneType'),
    'class 2': (GIVEN, 2*RIGHT, 'targets must be 0 or 1, but one is 2')}
TAKERS = dict(metric=F1ScoreMulti(sigmoid=False), ranking=APScoreMulti(), bins=APScoreMulti(sigmoid=False, bins=64),
              function=partial(accuracy_multi, sigmoid=False), argmax=categorical_accuracy, report=accuracy_report,
              judge=judge, thresholds=best_thresholds, interpretation=MultiLabelInterpretation.from_preds)

@pytest.mark.parametrize('f', TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize('preds,targs,says', BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_named_by_each_function(preds, targs, says, f):
    with pytest.raises(ValueError, match=f'(?s){says}'): f(preds, targs)

@pytest.mark.parametrize('value', [2., -1., 7.])
def test_bad_targets_never_index(value):
    "A histogram raises the error that names the value; on CUDA an index out of range would end the process"
    logits,targs = simulate(600, 5)
    targs[-1,-1] = value
    says = f'targets must be 0 or 1, but one is {value:.0f}'
    with pytest.raises(ValueError, match=says): APScoreMulti(bins=64)(logits, targs)
    with pytest.raises(ValueError, match=says): judge(logits.repeat(100, 8), targs.repeat(100, 8), sigmoid=True)
    learn = make_learner(logits, targs, cbs=ZeroLabelsCallback())
    with pytest.warns(Warning, match=says), learn.no_logging(): learn.validate() # Left out, so that the fit goes on

@pytest.mark.parametrize('f', [accuracy_report, judge, best_thresholds, MultiLabelInterpretation.from_preds])
def test_names_that_occur_twice_are_an_error(f):
    with pytest.raises(ValueError, match="vocab has 'a' 2 times"): f(GIVEN, RIGHT, vocab=['a','b','a'])

@pytest.mark.parametrize('vocab', [
    NAMES,
    tuple(NAMES),
    np.array(NAMES),
    pd.Index(NAMES),
    dict(enumerate(NAMES)),
    {str(i): o for i,o in enumerate(NAMES)},
    CategoryMap(NAMES),
    (['the','cat'], NAMES),
    L(['xxunk','the'], CategoryMap(NAMES)),
    [['the'], np.array(NAMES)]], ids=lambda o: type(o).__name__)
def test_every_kind_of_vocab(vocab):
    "The vocab of texts has two parts; the last one is that of the labels"
    test_eq(as_vocab(vocab), NAMES)
    test_eq(label_vocab(SimpleNamespace(vocab=vocab)), NAMES)
    test_eq(list(best_thresholds(SCORES, TARGS, average='macro', vocab=vocab, cv=None).table.index[2:]), NAMES)
    assert re.search('here [a-f]', accuracy_report(SCORES, TARGS, vocab=vocab, ci=None).attrs['about'])
    assert judge(SCORES*0, TARGS, vocab=vocab).never_predicted==NAMES
    test_eq(list(MultiLabelInterpretation.from_preds(SCORES, TARGS, vocab=vocab).vocab), NAMES)

def test_columns_are_the_vocab_of_thresholds():
    def names(columns):
        targs = pd.DataFrame(TARGS.numpy(), columns=columns)
        return list(best_thresholds(SCORES, targs, average='macro', cv=None).table.index[2:])
    test_eq(names(NAMES), NAMES)
    columns = pd.MultiIndex.from_product([['x','y'], ['a','b','c']]) # names that are tuples are not parts of a vocab
    test_eq(names(columns), columns.tolist())

def test_what_vocab_is_refused():
    for vocab in (NAMES[:5], (['the','cat'], NAMES[:5])):
        for f in (best_thresholds, accuracy_report, judge):
            with pytest.raises(ValueError, match='5 names.*6 labels'): f(SCORES, TARGS, vocab=vocab)

def test_an_empty_dict_is_named():
    with pytest.raises(ValueError, match='this dict is not one: pass an array'): judge({}, [[0,1]])

# Rows of several tables

PATIENTS = pd.Series(np.arange(300)//5, index=[f'row {i}' for i in range(300)])

def by_row(x): return pd.DataFrame(x.numpy(), index=PATIENTS.index)

@pytest.mark.parametrize('f', [
    lambda p, y, groups: accuracy_report(p, y, groups=groups),
    lambda p, y, groups: judge(p.to_numpy(), y, groups=groups),
    lambda p, y, groups: judge(p, y.to_numpy(), groups=groups),
    lambda p, y, groups: best_thresholds(p, y, groups=groups),
    lambda p, y, groups: MultiLabelInterpretation.from_preds(p, y, groups=groups),
    lambda p, y, groups: compare_models(dict(a=p, b=p), y, groups=groups),
    lambda p, y, groups: stratified_split(y, 0.2, groups=groups),
    lambda p, y, groups: stratified_folds(y, 3, groups=groups),
    lambda p, y, weight: AccuracyMulti(sigmoid=False, sample_weight=weight+1)(p, y),
    lambda p, y, weight: AccuracyMulti(sigmoid=False, sample_weight=weight+1).update(p[:9].to_numpy(), y[:9])])
def test_groups_and_weights_belong_to_their_rows(f):
    "By position, samples of a patient would be in both parts"
    p,y = by_row(SCORES),by_row(TARGS)
    for other in (PATIENTS[::-1], PATIENTS.sample(frac=1, random_state=0), PATIENTS.set_axis(range(1000, 1300))):
        with pytest.raises(ValueError, match='have different indexes, or the same index in another order'):
            f(p, y, other)
    for same in (PATIENTS, PATIENTS.reset_index(drop=True), PATIENTS.to_numpy()): f(p, y, same)

def test_weights_of_batches_belong_to_their_rows():
    p,y,weight = by_row(SCORES),by_row(TARGS),PATIENTS+1
    m = AccuracyMulti(sigmoid=False, sample_weight=weight)
    for i in range(0, 300, 100): m.update(p[i:i+100], y[i:i+100])
    assert m.value==AccuracyMulti(sigmoid=False, sample_weight=weight.to_numpy())(p, y)
    assert copy(m)(p, y)==m.value
    with pytest.raises(ValueError, match='sample_weight and .* have different indexes'): m(p[:100], y[100:200])

@pytest.mark.parametrize('ids', [range(40), range(500, 540), np.arange(40)*.5, [f'{i}.png' for i in range(40)]])
def test_an_id_column_in_both_tables_is_named(ids):
    arrays = np.random.default_rng(0).random((40,2)),np.eye(2)[[0,1]*20]
    p,y = (pd.DataFrame(o, columns=['cat','dog']) for o in arrays)
    both = [o.assign(image=ids) for o in (p, y)]
    for f in (judge, accuracy_report, best_thresholds, MultiLabelInterpretation.from_preds, F1ScoreMulti(sigmoid=False),
              lambda p, y: compare_models(dict(a=p, b=p), y)):
        with pytest.raises(ValueError, match="column 'image' is the same .* by .set_index\\('image'\\)"): f(*both)
        f(*(o.set_index('image') for o in both))

# Containers of rows

class Column(collections.abc.Sequence):
    "What `datasets.Column` is: a sequence that reads its rows"
    def __init__(self, rows): self.rows = rows
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return self.rows[i]

CONTAINERS = dict(column=Column, userlist=collections.UserList, deque=lambda o: collections.deque(o),
                  values=lambda o: dict(enumerate(o)).values())

@pytest.mark.parametrize('kind', CONTAINERS)
@every_function
def test_containers_of_rows_are_taken(f, kind):
    make = CONTAINERS[kind]
    expected = f(SCORES, TARGS)
    for rows in (lambda x: make([*x.numpy()]), lambda x: make([*x])):
        for preds,targs in ((rows(SCORES), rows(TARGS)), (rows(SCORES), TARGS)): assert_alike(f(preds, targs), expected)

@pytest.mark.parametrize('kind', CONTAINERS)
def test_containers_of_targets_are_taken(kind):
    rows = CONTAINERS[kind](TARGS.tolist())
    assert label_stats(rows).equals(label_stats(TARGS)) and torch.equal(pos_weight(rows), pos_weight(TARGS))
    assert stratified_split(rows, seed=0)==stratified_split(TARGS, seed=0)
    with pytest.raises(ValueError, match='One-hot encode'): label_stats(CONTAINERS[kind]([['cat'],['dog']]))
    with pytest.raises(ValueError, match='has text'): judge(SCORES, CONTAINERS[kind](['cat']*300))

@every_function
def test_lists_of_columns_and_crops_are_named(f):
    for preds,says in (([*SCORES.numpy().T[:,:,None]], r'list of N x 1 arrays, use np\.concatenate\(preds, axis=1\)'),
                       (torch.stack([SCORES,SCORES], 1), r'crops.*preds\.mean\(1\)')):
        with pytest.raises(ValueError, match=says): f(preds, TARGS)
    assert_alike(f(np.concatenate([*SCORES.numpy().T[:,:,None]], axis=1), TARGS), f(SCORES, TARGS))

# --- one class per pixel or token

PIXELS = torch.arange(2*4*5).view(2, 4, 5)%3 # One of three classes per pixel

@pytest.mark.parametrize('preds,targs', [
    (torch.rand(2, 3, 4, 5), PIXELS), (torch.rand(2, 4, 5, 3), PIXELS), (torch.rand(2, 4, 3), PIXELS[:,:,0]),
    (torch.rand(2, 3, 4, 5, 6), PIXELS[...,None].expand(2, 4, 5, 6))], ids=lambda o: str(tuple(o.shape)))
def test_one_class_per_pixel_is_no_multi_label_target(preds, targs):
    for f in (F1ScoreMulti(), APScoreMulti(), accuracy_multi, partial(judge, sigmoid=True)):
        with pytest.raises(ValueError, match='one class per sample or pixel, .*DiceMulti.*one_hot'): f(preds, targs)

@pytest.mark.parametrize('loss', [CrossEntropyLossFlat(axis=1), lambda p, y: p.mean()], ids=['cross entropy','custom'])
@pytest.mark.parametrize('vocab', [None, ['sky','road','car'], [*range(5)]], ids=['none','three','as wide'])
def test_one_class_per_pixel_in_a_learner_without_the_callback(loss, vocab):
    learn = make_learner(torch.rand(2, 3, 4, 5), PIXELS, multilabel_metrics(), loss_func=loss, vocab=vocab)
    with learn.no_logging(), pytest.raises(ValueError, match='one class per sample or pixel.*DiceMulti.*one_hot'):
        learn.validate()

def test_other_shapes_are_not_taken_for_pixels():
    for preds,targs,says in (((2,4,3), (2,3), r'crops of a sample, use preds.mean\(1\)'),
                             ((2,1,4,5), (2,4,5), 'both need a row per sample'), ((2,3,4,5), (2,4,6), 'both need')):
        with pytest.raises(ValueError, match=says): F1ScoreMulti()(torch.rand(preds), torch.zeros(targs))
