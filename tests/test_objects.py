"""Objects of some sixty kinds as predictions and as targets of every function that takes arrays: a result, or an error
of ours that names the object"""
import decimal, fractions, traceback
from array import array as StandardArray
import PIL.Image
import scipy.sparse
from helpers import *
from fastai_mlmetrics.core import messages
from fastai_mlmetrics.core.inputs import as_rows

N,C = 40,3
SCORES = np.random.default_rng(0).random((N,C)).astype('float32')
TARGS = (np.random.default_rng(1).random((N,C))<SCORES).astype('float32')
TARGS[0] = 1,0,1

class Holder:
    "An object of a class that we have never seen"

class Endless:
    "An object with length and items, but without an end"
    def __len__(self): return N
    def __getitem__(self, i): return self

def frame(x): return pd.DataFrame(x, columns=list('abc'))
def cells(x): return pd.Series([*x])
def of_arrays(x): return pd.DataFrame(dict(a=[*x], b=[*x]))
def structured(x): return np.array([tuple(o) for o in x], dtype=[('a','f4'),('b','f4'),('c','f4')])
def ragged(x): return [row[:1+i%3].tolist() for i,row in enumerate(x)]

# What has one obvious meaning: the result is that of the array
TAKEN = {
    'array': lambda x: x,
    'tensor': torch.from_numpy,
    'with gradient': lambda x: torch.from_numpy(x.copy()).requires_grad_(),
    'parameter': lambda x: nn.Parameter(torch.from_numpy(x.copy())),
    'lists': lambda x: x.tolist(),
    'tuples': lambda x: tuple(map(tuple, x.tolist())),
    'L': lambda x: L(x.tolist()),
    'list of arrays': list,
    'tuple of arrays': tuple,
    'list of tensors': lambda x: [*torch.from_numpy(x)],
    'tuple of tensors': lambda x: (*torch.from_numpy(x),),
    'L of tensors': lambda x: L(*torch.from_numpy(x)),
    'list of tensors with gradients': lambda x: [*torch.from_numpy(x.copy()).requires_grad_()],
    'list of lists of tensors with gradients': lambda x: [[*o] for o in torch.from_numpy(x.copy()).requires_grad_()],
    'list of scalars in tensors': lambda x: [[torch.tensor(v) for v in o] for o in x.tolist()],
    'array of tensors': lambda x: of_objects(torch.from_numpy(x)),
    'list of sparse tensors': lambda x: [o.to_sparse() for o in torch.from_numpy(x)],
    'list of series': lambda x: [pd.Series(o) for o in x],
    'frame': frame,
    'frame of objects': lambda x: frame(x).astype(object),
    'frame of extension type': lambda x: frame(x).convert_dtypes(),
    'series of lists': lambda x: cells(x.tolist()),
    'series of tuples': lambda x: cells(map(tuple, x.tolist())),
    'series of arrays': cells,
    'series of tensors': lambda x: cells(torch.from_numpy(x)),
    'column of lists': lambda x: pd.DataFrame(dict(labels=x.tolist())),
    'column of arrays': lambda x: pd.DataFrame(dict(labels=[*x])),
    'array of lists': lambda x: of_objects(x.tolist()),
    'array of arrays': lambda x: of_objects(x),
    'objects': lambda x: x.astype(object),
    'half': lambda x: torch.from_numpy(x).double().numpy(),
    'sparse matrix': scipy.sparse.csr_matrix,
    'sparse array': scipy.sparse.coo_array,
    'sparse tensor': lambda x: torch.from_numpy(x).to_sparse(),
    'frame of sparse columns': lambda x: frame(x).astype(pd.SparseDtype('float32')),
    'other byte order': lambda x: x.astype('>f4'),
    'read-only': lambda x: np.broadcast_to(x, x.shape),
    'reversed': lambda x: x[::-1].copy()[::-1],
    'masked, nothing hidden': np.ma.array,
    'decimals': lambda x: [[decimal.Decimal(float(v)) for v in o] for o in x],
    'fractions': lambda x: [[fractions.Fraction(float(v)) for v in o] for o in x],
    'standard arrays': lambda x: [StandardArray('f', o) for o in x.tolist()],
}

def of_objects(rows):
    "A numpy array with one object per row"
    res = np.empty(len(rows), dtype=object)
    res[:] = [*rows]
    return res

# What has none
REFUSED = {
    'None': lambda x: None,
    'structured': structured,
    'number': lambda x: 0.5,
    'bool': lambda x: True,
    'text': lambda x: 'preds',
    'bytes': lambda x: b'preds',
    'path': lambda x: Path('preds.csv'),
    'type': lambda x: float,
    'function': lambda x: len,
    'module': lambda x: math,
    'an object': lambda x: Holder(),
    'an object without end': lambda x: Endless(),
    'dict of columns': lambda x: dict(zip('abc', x.T.tolist())),
    'dict of outputs': lambda x: dict(logits=x),
    'set': lambda x: {1,2,3},
    'generator': lambda x: (o for o in x),
    'iterator': lambda x: iter(x.tolist()),
    'map': lambda x: map(list, x),
    'range': lambda x: range(N),
    'list of dicts': lambda x: [dict(zip('abc', o)) for o in x.tolist()],
    'list of sets': lambda x: [{*np.flatnonzero(o).tolist()} for o in x],
    'list of None': lambda x: [None]*N,
    'None in rows': lambda x: [[None,*o[1:]] for o in x.tolist()],
    'None in arrays': lambda x: np.array([[None,*o[1:]] for o in x.tolist()], dtype=object),
    'list of texts': lambda x: ['a b','b']*(N//2),
    'list of names': lambda x: [['a','b'],['c']]*(N//2),
    'text in a frame': lambda x: frame(x).assign(path='x.jpg'),
    'column of texts': lambda x: pd.Series(['a b','b']*(N//2)),
    'categories': lambda x: pd.Series(pd.Categorical(['a','b']*(N//2))),
    'dates': lambda x: pd.DataFrame(dict(a=pd.date_range('2020', periods=N), b=1, c=0)),
    'times': lambda x: np.full((N,C), np.timedelta64(1, 's')),
    'ragged lists': ragged,
    'ragged arrays': lambda x: [np.array(o) for o in ragged(x)],
    'ragged tensors': lambda x: [torch.tensor(o) for o in ragged(x)],
    'series of ragged lists': lambda x: cells(ragged(x)),
    'column of ragged lists': lambda x: pd.DataFrame(dict(labels=ragged(x))),
    'lists that are NaN here and there': lambda x: cells([math.nan, *x[1:].tolist()]),
    'lists that are None here and there': lambda x: cells([None, *x[1:].tolist()]),
    'array of ragged lists': lambda x: of_objects(ragged(x)),
    'frame of arrays': of_arrays,
    'lists beside numbers': lambda x: frame(x).assign(a=x.tolist()),
    'tuple of two shapes': lambda x: (x, x[:,:2]),
    'list of two shapes': lambda x: [x, x[:,:2]],
    'tuple of two tensors': lambda x: (torch.from_numpy(x), torch.rand(N, 7)),
    'tensors with gradients of two shapes': lambda x: (
        torch.rand(N, 3, requires_grad=True), torch.rand(N, 7, requires_grad=True)),
    'tuple of three ranks': lambda x: (x, x[0], 0.5),
    'list of batches': lambda x: [x[:25], x[25:]],
    'list of tensor batches': lambda x: [torch.from_numpy(x[:25]), torch.from_numpy(x[25:])],
    'arrays and None': lambda x: (x, None),
    'array and text': lambda x: (x, 'a'),
    'tensors and lists': lambda x: [torch.from_numpy(x[0]), x[1:].tolist()],
    'complex array': lambda x: x+0j,
    'complex tensor': lambda x: torch.from_numpy(x)+0j,
    'complex lists': lambda x: (x+0j).tolist(),
    'list of complex tensors': lambda x: [*torch.from_numpy(x)+0j],
    'empty list': lambda x: [],
    'empty lists': lambda x: [[]]*N,
    'empty array': lambda x: x[:0],
    'no columns': lambda x: x[:,:0],
    'empty frame': lambda x: pd.DataFrame(),
    'scalar tensor': lambda x: torch.tensor(1.),
    'image': lambda x: PIL.Image.new('RGB', (4,4)),
    'DataLoader': lambda x: DataLoader([*x]),
    'loss': lambda x: BCEWithLogitsLossFlat(),
    'big numbers': lambda x: (x*0+10**30).astype(object),
    'big whole numbers': lambda x: [[10**30]*C]*N,
    'other number of rows': lambda x: x[1:],
    'other number of columns': lambda x: x[:,:2],
}

TAKERS = dict(
    metric=F1ScoreMulti(sigmoid=False), ranking=APScoreMulti(sigmoid=False), bins=APScoreMulti(sigmoid=False, bins=64),
    function=partial(accuracy_multi, sigmoid=False), subset=partial(subset_accuracy, sigmoid=False),
    empty=partial(empty_rate, sigmoid=False), zeros=zeros_accuracy, argmax=categorical_accuracy,
    report=partial(accuracy_report, ci=None), judge=judge, thresholds=partial(best_thresholds, cv=None),
    comparison=lambda p, y: compare_models({'a': p, 'b': SCORES}, y, ci=None),
    interpretation=MultiLabelInterpretation.from_preds)
OF_TARGETS = dict(stats=label_stats, weight=pos_weight, split=partial(stratified_split, seed=0),
                  folds=partial(stratified_folds, seed=0))

def outcome(f, *args):
    "The error of a call; None: there was none"
    try: f(*args)
    except Exception as e: return e

def check_ours(e, kind, name, allowed):
    "Check that an error is raised by a line of ours, in words that name what was passed"
    if e is None:
        assert allowed, f"{kind} was taken by {name}"
        return
    assert isinstance(e, (ValueError,TypeError)), f"{kind} in {name}: {e!r}"
    frame = traceback.extract_tb(e.__traceback__)[-1]
    assert 'fastai_mlmetrics' in frame.filename and 'raise ' in frame.line, f"{kind} in {name}: {e!r}"
    assert re.search('pred|targ|sample', str(e)) and len(str(e))<600, f"{kind} in {name}: {e}"

# What some functions take: missing values are nan, of which there is a warning, and tables of another size are targets
SOMETIMES = {'None in rows','None in arrays','other number of rows','other number of columns','empty array','image',
             'big numbers','big whole numbers','range'}

def test_what_is_no_table_is_named():
    with warnings_as('ignore'):
        for kind,make in REFUSED.items():
            check_ours(outcome(judge, make(SCORES), TARGS), kind, 'judge', kind in SOMETIMES)
            check_ours(outcome(judge, SCORES, make(TARGS)), kind, 'judge', kind in SOMETIMES)
            check_ours(outcome(label_stats, make(TARGS)), kind, 'label_stats', kind in SOMETIMES)

@pytest.mark.parametrize('kind', ['None','dict of outputs','list of names','ragged lists','tuple of two tensors'])
def test_what_is_no_table_is_named_by_each_function(kind):
    make = REFUSED[kind]
    with warnings_as('ignore'):
        for name,f in TAKERS.items():
            check_ours(outcome(f, make(SCORES), TARGS), kind, name, False)
            check_ours(outcome(f, SCORES, make(TARGS)), kind, name, False)
        for name,f in OF_TARGETS.items(): check_ours(outcome(f, make(TARGS)), kind, name, False)

def test_what_has_one_meaning_is_taken():
    metric = F1ScoreMulti(sigmoid=False)
    with warnings_as('error'):
        for kind,make in TAKEN.items():
            for preds,targs in ((make(SCORES), make(TARGS)), (make(SCORES), TARGS), (SCORES, make(TARGS))):
                p,y = as_rows(preds, targs)
                assert type(p) is type(y) is Tensor and not p.requires_grad, kind
                assert torch.equal(p.float(), torch.from_numpy(SCORES)), kind
                assert torch.equal(y.float(), torch.from_numpy(TARGS)), kind
                assert metric(preds, targs)==metric(SCORES, TARGS), kind
            assert torch.equal(pos_weight(make(TARGS)), pos_weight(TARGS)), kind
            assert label_stats(make(TARGS)).train.tolist()==TARGS.sum(0).tolist(), kind

EVERYWHERE = 'list of tensors with gradients','series of lists','column of arrays'

def test_what_has_one_meaning_is_taken_by_each_function():
    with warnings_as('ignore'):
        for name,f in TAKERS.items():
            for kind in EVERYWHERE: assert outcome(f, TAKEN[kind](SCORES), TAKEN[kind](TARGS)) is None, (name, kind)

SAYS = {
    'None': 'but this NoneType is not one: pass an array',
    'dict of outputs': 'this dict is not one',
    'ragged lists': 'this list is not one: pass .* lists of equally long',
    'series of ragged lists': r'this Series of the shape \(40,\) is not one: pass .* lists of equally long',
    'column of ragged lists': r'this Series of the shape \(40,\) is not one: pass .* lists of equally long',
    'tuple of two shapes': 'this tuple is not one: .* of several arrays, the one with a column per label',
    'dates': r'this DataFrame of the shape \(40, 3\) is not one',
    'arrays and None': 'this tuple is not one',
    'text in a frame': "column 'path' has text, such as 'x.jpg'.*Select the columns of the labels",
    'list of names': "this list has text, such as 'a'. One-hot encode names",
    'categories': "this Series has text, such as 'a'"}

def test_the_message_names_the_object():
    for kind,says in SAYS.items():
        make = REFUSED[kind]
        for preds,targs,what in ((make(SCORES), TARGS, 'predictions'), (SCORES, make(TARGS), 'targets')):
            with pytest.raises(ValueError, match=f'^{what}: a table of numbers is needed.*{says}'): judge(preds, targs)

@pytest.mark.parametrize('dtype', [
    'float16','bfloat16','bool'])
def test_rare_types_of_tensors(dtype):
    targs = torch.from_numpy(TARGS).to(getattr(torch, dtype))
    for f in (F1ScoreMulti(sigmoid=False), APScoreMulti(sigmoid=False)): assert f(SCORES, targs)==f(SCORES, TARGS)
    assert label_stats(targs).train.tolist()==TARGS.sum(0).tolist()
    as_preds = F1ScoreMulti(sigmoid=False)(targs, TARGS)
    assert as_preds==1

FUNCTIONS = dict(judge=judge, report=accuracy_report, thresholds=best_thresholds,
                 per_label=partial(best_thresholds, per_label=True), interpretation=MultiLabelInterpretation.from_preds,
                 comparison=lambda p, y, **kwargs: compare_models({'a': p, 'b': p[:,::-1].copy()}, y, **kwargs))

@pytest.mark.parametrize('name,ignored', [*((o, math.nan) for o in FUNCTIONS), ('judge', -1), ('thresholds', -999)])
def test_predictions_of_ignored_targets_may_be_any_number(name, ignored):
    rng = np.random.default_rng(0)
    targs = (rng.random((300,3))<0.4).astype(float)
    preds = 0.4*targs+0.6*rng.random((300,3))
    targs[:100,1] = ignored
    def text(value):
        messages.said.clear() # Sentences that are shown once
        p = preds.copy()
        p[:100,1] = value
        res = FUNCTIONS[name](p, targs, ignore_index=ignored)
        if name=='interpretation': return str(res.report())+str(res.top_losses(5))
        return str(getattr(res, 'reading', res))
    with warnings_as('error'):
        expected = text(0.5)
        for value in (ignored, math.nan, 7, -1): assert text(value)==expected

def test_a_model_without_a_threshold_is_named():
    models = dict(a=SCORES, b=1-SCORES)
    for thresh in (dict(a=.3), dict(a=.3, c=.2), dict(a=.3, b=.2, c=.1)):
        with pytest.raises(ValueError, match=r"by model, but has .* each of \['a', 'b'\]"):
            compare_models(models, TARGS, thresh=thresh)
    # Labels of the same names
    by_label = compare_models(models, TARGS, thresh=dict(a=.3, b=.2, c=.1), vocab=list('abc'))
    pd.testing.assert_frame_equal(by_label, compare_models(models, TARGS, thresh=[.3,.2,.1], vocab=list('abc')))
