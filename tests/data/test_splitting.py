"Splits in which every label occurs on both sides"
from fastai.tabular.all import *
import random, subprocess
from helpers import *

@st.composite
def targets(draw, max_samples=30, max_labels=6):
    "Targets, N x C, with few or many positives"
    shape = draw(st.integers(2, max_samples)),draw(st.integers(1, max_labels))
    return draw(arrays(np.int64, shape, elements=st.integers(0,1), fill=st.just(0)))

def missing(y, parts):
    "The number of labels that are missing from a part, although they have a positive for each part"
    return sum(((y[list(o)].sum(0)==0) & (y.sum(0)>=len(parts))).sum() for o in parts)

def split_measures(y, parts, shares):
    "The measures of Sechidis et al.: how far label odds and sizes of the parts are off, and what they lack"
    sizes,true = np.array([len(o) for o in parts]),np.stack([y[list(o)].sum(0) for o in parts])
    apart = abs(true/(sizes[:,None]-true).clip(1) - y.sum(0)/(1-y).sum(0))
    return dict(LD=apart.mean(), ED=abs(sizes-np.array(shares)*len(y)).mean(), FLZ=(true==0).sum())

@given(targets(), st.integers(0,9), st.floats(0.05, 0.95))
def test_a_split_is_one(y, seed, valid_pct):
    train,valid = stratified_split(y, valid_pct, seed)
    test_eq(sorted(train+valid), range_of(y))
    assert train and valid
    test_eq((train,valid), stratified_split(tensor(y), valid_pct, seed))

@given(targets(), st.integers(2,5), st.integers(0,9))
def test_folds_are_a_partition(y, k, seed):
    if len(y)<k: return
    folds = stratified_folds(y, k, seed)
    test_eq(sorted(i for _,o in folds for i in o), range_of(y))
    for train,valid in folds:
        test_eq(sorted(train+valid), range_of(y))
        assert valid

@given(st.integers(2,60), st.integers(2,5), st.integers(0,99))
def test_a_label_is_in_as_many_folds_as_it_can_be(n, k, seed):
    y = np.zeros((80,1), int)
    y[np.random.default_rng(seed).choice(80, n, replace=False)] = 1
    test_eq(sum(y[list(o)].any() for _,o in stratified_folds(y, k, seed)), min(n, k))
    train,valid = stratified_split(y, 0.1, seed)
    assert y[train].any() and y[valid].any()

def test_a_single_sample_is_for_training():
    y = np.eye(20, 5, dtype=int)
    for seed in range(20): assert not y[stratified_split(y, seed=seed)[1]].any()

@pytest.mark.parametrize('n,slack', [(100, 3), (500, 2), (2000, 1)])
def test_sizes_are_near_their_shares_although_labels_come_first(n, slack):
    off = []
    for seed in range(20):
        gen = np.random.default_rng(seed)
        y = (gen.random((n,20))<gen.uniform(0.01, 0.3, 20)).astype(int)
        parts = stratified_split(y, seed=seed)
        test_eq(missing(y, parts), 0)
        off.append(abs(len(parts[1])-0.2*n))
    assert max(off)<=slack and np.mean(off)<0.5, off

def of_their_own(*counts):
    "Targets of which each sample has one label, `counts` samples per label"
    return np.repeat(np.eye(len(counts), dtype=int), counts, 0)

@pytest.mark.parametrize('y,n,told', [
    (np.eye(20, dtype=int), 1, True), # a label with one sample cannot be on both sides
    (of_their_own(*[1]*10, 90), 19, False),
    (of_their_own(*[2]*10, 80), 23, False),
    (np.pad(of_their_own(*[2]*44), ((0,12),(0,0))), 44, True)], ids=['one','one and many','two and many','two'])
def test_labels_come_before_the_share_of_samples(y, n, told):
    "If that makes a part too large or too small, a warning says so"
    splits = set()
    for seed in range(5):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            train,valid = stratified_split(y, seed=seed)
        test_eq((len(valid), missing(y, (train,valid))), (n, 0))
        test_eq(['many labels have few samples' in str(o.message) for o in caught], [True]*told)
        splits.add(tuple(valid))
    assert len(splits)==5 or n==1
    test_eq({len(o) for _,o in stratified_folds(y, 5, seed=0)}, {len(y)//5})

def shapes():
    gen = np.random.default_rng(0)
    yield (gen.random((500,200))<np.geomspace(0.002, 0.05, 200)).astype(int)
    yield (gen.random((2000,50))<0.5).astype(int)
    yield (gen.random((3000,20))<np.geomspace(0.001, 0.3, 20)).astype(int)
    yield np.repeat(np.eye(10, dtype=int), 5, 0) # five samples per label

@pytest.mark.parametrize('y', [*shapes()], ids=['rare','dense','skewed','one each'])
def test_parts_have_their_shares_of_each_label(y):
    for seed in range(3):
        folds = [o for _,o in stratified_folds(y, 3, seed)]
        for parts,shares in ((stratified_split(y, 0.2, seed), (0.8,0.2)), (folds, (1/3,)*3)):
            test_eq(missing(y, parts), 0)
            m = split_measures(y, parts, shares)
            at = (np.cumsum(shares)[:-1]*len(y)).round().astype(int)
            random = np.split(np.random.default_rng(seed).permutation(len(y)), at)
            other = split_measures(y, random, shares)
            assert m['LD']<other['LD'] and m['FLZ']<=other['FLZ'] and m['ED']<5, (m, other)
        often = y.sum(0)>=100
        freq = y[stratified_split(y, 0.2, seed)[1]].mean(0)[often]
        assert (abs(freq/y.mean(0)[often]-1)<0.1).all()

def test_groups_stay_together():
    gen = np.random.default_rng(0)
    y = (gen.random((600,8))<np.geomspace(0.02, 0.4, 8)).astype(int)
    names = gen.choice([f'patient {i}' for i in range(80)], 600)
    folds = [o for _,o in stratified_folds(y, 4, seed=1, groups=list(names))]
    for parts in (stratified_split(y, seed=1, groups=names), folds):
        of = [set(names[list(o)]) for o in parts]
        assert not set.intersection(*of[:2]) and sum(map(len, of))==len(set(names))
        test_eq(missing(y, parts), 0)
    train,valid = stratified_split(y, seed=1, groups=names)
    assert 115<=len(valid)<=125

def lognormal_groups(seed, n_groups):
    "The group of each sample, and targets"
    gen = np.random.default_rng(seed)
    sizes = np.maximum(1, gen.lognormal(3, 1, n_groups)).astype(int)
    groups = np.repeat(np.arange(n_groups), sizes)
    return groups,(gen.random((len(groups),6))<0.2).astype(int)

@pytest.mark.parametrize('n_groups,limit', [(12, 0.003), (20, 0.002), (40, 0.001), (200, 0.0002)])
def test_groups_come_near_to_the_share(n_groups, limit):
    "The best of several orders: one order alone is further away"
    off = []
    for seed in range(10):
        groups,y = lognormal_groups(seed, n_groups)
        off.append(abs(len(stratified_split(y, seed=0, groups=groups)[1])/len(y)-0.2))
    assert np.mean(off)<limit, off

@pytest.mark.parametrize('n_groups', [12, 40])
def test_labels_are_balanced_in_whole_groups(n_groups):
    "Better than in the middle one of random splits of the same groups, of about the same size"
    apart = []
    for seed in range(5):
        groups,y = lognormal_groups(seed, n_groups)
        gen = np.random.default_rng(seed)
        def off(valid): return abs(y[valid].mean(0)/y.mean(0)-1).mean()
        valid = stratified_split(y, seed=0, groups=groups)[1]
        draws = [np.isin(groups, np.flatnonzero(gen.random(n_groups)<0.2)) for _ in range(300)]
        draws = [o for o in draws if 0.15<o.mean()<0.25]
        apart.append(off(valid)/np.median([off(o) for o in draws]))
    assert np.mean(apart)<0.8, apart

def test_thousands_of_groups_are_fast():
    gen = np.random.default_rng(0)
    y = (gen.random((20_000,30))<np.geomspace(0.001, 0.2, 30)).astype(int)
    start = time.process_time()
    valid = stratified_split(y, seed=0, groups=gen.integers(5000, size=20_000))[1]
    assert time.process_time()-start<6 and abs(len(valid)-4000)<10

@pytest.mark.parametrize('split', [
    stratified_split, stratified_folds, partial(stratified_split, groups=np.arange(400)//9),
    partial(stratified_folds, groups=np.arange(400)//9),
    lambda y, seed: StratifiedMultiLabelSplitter(seed=seed, get_y=noop)(L(y.tolist(), use_list=True))])
def test_a_seed_leaves_global_random_states_alone(split):
    def states(): return torch.get_rng_state().tolist(),str(np.random.get_state()),random.getstate()
    y = simulate()[1]
    before = states()
    split(y, seed=0)
    assert states()==before

@pytest.mark.parametrize('groups', [
    lambda a: [*tensor(a)], lambda a: pd.Series(a).astype('category'), lambda a: [f'patient {o}' for o in a]])
def test_groups_may_be_of_any_kind(groups):
    y,a = simulate(100, 5)[1],np.random.default_rng(0).permutation(np.arange(100)//4)
    test_eq(stratified_split(y, seed=1, groups=groups(a)), stratified_split(y, seed=1, groups=a))

def test_groups_too_large_for_the_share_are_told():
    y = simulate(100, 5, density=0.3)[1]
    with pytest.warns(UserWarning) as caught: stratified_split(y, seed=0, groups=np.arange(100)//34)
    assert len(caught)==1 and caught[0].filename==__file__
    test_eq(str(caught[0].message), 'the parts have [68, 32] samples, instead of [80, 20], because groups are large, '
            'or many labels have few samples: choose other shares, smaller groups or fewer labels')
    with pytest.warns(UserWarning, match=r'samples, instead of \[33, 33, 33\]') as caught:
        stratified_folds(y, 3, seed=0, groups=np.r_[np.zeros(60), np.arange(40)])
    with warnings_as('error'):
        for n in (1,5,10,20): stratified_split(y, seed=0, groups=np.arange(100)//n)
        stratified_split(y[:3], 0.05)

@pytest.mark.slow
@pytest.mark.dev
@pytest.mark.parametrize('shares', [[0.8,0.2], [0.25]*4], ids=str)
@pytest.mark.parametrize('y', [*shapes()], ids=['rare','dense','skewed','one each'])
def test_no_worse_than_the_published_algorithm(y, shares):
    ref = pytest.importorskip('iterstrat.ml_stratifiers')
    ours,theirs = [],[]
    for seed in range(5):
        part = ref.IterativeStratification(y.astype(bool), np.array(shares), np.random.RandomState(seed))
        theirs.append([np.flatnonzero(part==i) for i in range(len(shares))])
        folds = [o for _,o in stratified_folds(y, 4, seed=seed)]
        ours.append(stratified_split(y, seed=seed) if len(shares)==2 else folds)
    def total(splits): return np.array([(split_measures(y, o, shares)['LD'], missing(y, o)) for o in splits]).sum(0)
    (ld,lacking),(their_ld,their_lacking) = total(ours),total(theirs)
    assert ld<=1.25*their_ld and lacking<=their_lacking, (ld, their_ld)

def topics(seed, n=2000, c=60):
    "Sparse targets like those of tagged texts: Zipf's frequencies, about 3 labels each, which come in topics"
    gen = np.random.default_rng(seed)
    freqs = 1/np.arange(2, c+2)
    of_topic = gen.random((12,c))<0.25
    scores = freqs*np.where(of_topic[gen.integers(12, size=n)], 4, 0.3)
    y = (gen.random((n,c))<3*scores/scores.sum(1).mean()).astype(int)
    return y[:,y.sum(0)>=2]

@pytest.mark.dev
def test_sparse_targets_beside_the_published_algorithm():
    "Sizes, missing labels and pairs are as good or better; shares of labels are not: 1.4 times as far off"
    ref = pytest.importorskip('iterstrat.ml_stratifiers')
    rows = {'ours': [], 'theirs': [], 'random': []}
    shares = np.array([0.8,0.2])
    for seed in range(3):
        y = topics(seed)
        together = np.stack([y[:,i]*y[:,j] for i,j in itertools.combinations(range(y.shape[1]), 2)], 1)
        together = together[:,together.sum(0)>=5]
        part = ref.IterativeStratification(y.astype(bool), shares, np.random.RandomState(seed))
        splits = dict(ours=stratified_split(y, seed=seed),
                      theirs=[np.flatnonzero(part==i) for i in range(2)],
                      random=np.split(np.random.default_rng(seed).permutation(len(y)), [len(y)*4//5]))
        for name,parts in splits.items():
            of_labels,of_pairs = (split_measures(o, parts, shares) for o in (y, together))
            rows[name].append((of_labels['ED'], of_labels['LD'], missing(y, parts), of_pairs['LD']))
    ours,theirs,random_ = (np.mean(o, 0) for o in rows.values())
    assert ours[0]<=theirs[0] and ours[0]<1 and ours[2]==0, rows
    assert ours[1]<1.5*theirs[1] and ours[1]<random_[1]/5 and ours[3]<=theirs[3], rows

def test_a_large_split_is_fast():
    y = (np.random.default_rng(0).random((20_000,100))<np.geomspace(0.001, 0.2, 100)).astype(int)
    start = time.process_time()
    stratified_split(y, seed=0)
    assert time.process_time()-start<3

def test_a_seed_makes_the_split():
    y = simulate()[1]
    for f in (stratified_split, stratified_folds):
        test_eq(f(y, seed=3), f(y, seed=3))
        test_ne(f(y, seed=3), f(y, seed=4))
        set_seed(1)
        a = f(y)
        set_seed(1)
        test_eq(f(y), a)
        test_ne(f(y), a)

@pytest.mark.parametrize('call,says', [
    (lambda y: stratified_split(y, 0.), 'valid_pct=0.0'),
    (lambda y: stratified_split(y, 20), 'valid_pct=20'),
    (lambda y: stratified_split(y, [0.6,0.2,0.2]), 'valid_pct=.* split twice'),
    (lambda y: stratified_folds(y, 1), 'k=1'),
    (lambda y: stratified_split(y, seed=-1), 'seed=-1 should be a whole number, 0 or more'),
    (lambda y: stratified_folds(y, seed=-1), 'seed=-1'),
    (lambda y: stratified_folds(y[:3], 5), '3 samples cannot be split into 5'),
    (lambda y: stratified_split(y, groups=['a']*len(y)), '1 group cannot'),
    (lambda y: stratified_split(y, groups=[1,2]), 'groups has 2 values, but there are 400 samples'),
    (lambda y: stratified_split(y+1), '0 or 1'),
    (lambda y: stratified_split(y[:,0]), 'N x C')])
def test_bad_arguments_are_named(call, says):
    with pytest.raises(ValueError, match=says): call(simulate()[1])

def test_missing_targets_are_on_no_side():
    y = simulate()[1]
    gaps = y.masked_fill(torch.rand(y.shape, generator=torch.Generator().manual_seed(1))<0.3, math.nan)
    train,valid = stratified_split(gaps, seed=0, ignore_index=math.nan)
    assert (gaps[valid]==1).any(0).all() and (gaps[train]==1).any(0).all()

def table(n=60):
    gen = np.random.default_rng(0)
    has = gen.random((n,4))<[0.05,0.2,0.5,0.1]
    has[[0,1],0] = True
    df = pd.DataFrame(has.astype(int), columns=list('abcd'))
    labels = [';'.join(np.array(list('abcd'))[o]) for o in has]
    return df.assign(x=gen.normal(size=n), text='w', labels=labels, patient=np.arange(n)//3)

def on_both_sides(y, split): return all(y.iloc[list(o)].any().all() for o in split)

def test_rows_of_a_data_frame_are_split():
    df = table()
    y,get_y = df[list('abcd')],ColReader('labels', label_delim=';')
    splitter = StratifiedMultiLabelSplitter(0.25, seed=1, get_y=get_y, groups=ColReader('patient'))
    train,valid = splitter(df)
    assert on_both_sides(y, (train,valid)) and not set(df.patient[train]) & set(df.patient[valid])
    block = DataBlock((RegressionBlock(), MultiCategoryBlock), get_x=ColReader('x'), get_y=get_y, splitter=splitter)
    dls = block.dataloaders(df, bs=4, device=torch.device('cpu'))
    test_eq((len(dls.train_ds), len(dls.valid_ds)), (len(train), len(valid)))
    assert not label_stats(dls).missing_from.any()
    for splitter in (StratifiedMultiLabelSplitter(seed=1, get_y=ColReader(list('abcd'))),
                     StratifiedMultiLabelSplitter(seed=1, get_y=lambda o: o.labels.split(';'))):
        assert on_both_sides(y, splitter(df))

def test_paths_and_tables_are_split():
    df = table()
    labels = {Path(f'{i}.png'): [o for o in row.split(';') if o] for i,row in enumerate(df.labels)}
    split = StratifiedMultiLabelSplitter(seed=1, get_y=labels.get)(L([*labels]))
    assert on_both_sides(df[list('abcd')], split)
    split = StratifiedMultiLabelSplitter(seed=1, get_y=ColReader(list('abcd')))(df)
    to = TabularPandas(df, cont_names=['x'], y_names=list('abcd'), splits=split,
                       y_block=MultiCategoryBlock(encoded=True, vocab=list('abcd')))
    assert not label_stats(to.dataloaders(bs=4, device=torch.device('cpu'))).missing_from.any()

def test_folds_are_taken_by_scikit_learn():
    from sklearn.model_selection import cross_val_score
    from sklearn.linear_model import RidgeClassifier
    df = table()
    folds = stratified_folds(df[list('abcd')], 3, seed=0)
    assert len(cross_val_score(RidgeClassifier(), df[['x']], df['c'], cv=folds))==3
    test_eq(IndexSplitter(folds[0][1])(df)[0], folds[0][0])

@pytest.mark.slow
def test_single_labels_named_0_and_1_are_both_shared():
    "They are no one-hot rows, in which a 0 is nothing"
    ys = [[1]]*38+[[0]]*2
    train,valid = StratifiedMultiLabelSplitter(seed=0, get_y=ys.__getitem__)(range_of(ys))
    assert sum(ys[i]==[0] for i in train)==sum(ys[i]==[0] for i in valid)==1

@pytest.mark.slow
def test_names_split_alike_in_every_process():
    code = """from fastai_mlmetrics.data.splitting import *
names = [['cat','dog'][:i%3] + ['emu']*(i%7==0) for i in range(60)]
print(StratifiedMultiLabelSplitter(seed=0, get_y=names.__getitem__)(list(range(60)))[1])"""
    def printed(seed):
        env = {**os.environ, 'PYTHONHASHSEED': str(seed)}
        args = [sys.executable, '-W', 'ignore', '-c', code]
        return subprocess.run(args, env=env, capture_output=True, text=True, check=True).stdout
    done = {printed(i) for i in (1,2)}
    assert len(done)==1 and done!={''}

@pytest.mark.parametrize('kind', [tensor, np.array, pd.Series, TensorMultiCategory])
def test_targets_that_a_function_returns_as_arrays(kind):
    y = np.random.default_rng(0).integers(0, 2, (50,3))
    expected = StratifiedMultiLabelSplitter(seed=0, get_y=lambda i: y[i].tolist())(range(50))
    found = StratifiedMultiLabelSplitter(seed=0, get_y=lambda i: kind(y[i]))(range(50))
    test_eq([[*o] for o in found], [[*o] for o in expected])

@pytest.mark.parametrize('missing', [-1, math.nan])
def test_a_splitter_of_targets_with_gaps(missing):
    "Zeros and ones with missing values are not taken for names"
    gen = np.random.default_rng(0)
    y = (gen.random((60,12))<0.05).astype(float)
    y[gen.random(y.shape)<0.1] = missing
    items = L(y.tolist(), use_list=True)
    for seed in range(5):
        parts = StratifiedMultiLabelSplitter(seed=seed, get_y=noop, ignore_index=missing)(items)
        assert [*map(list, parts)]==[*map(list, stratified_split(y, seed=seed, ignore_index=missing))]
    with pytest.raises(ValueError, match='ignore_index'): StratifiedMultiLabelSplitter(get_y=noop)(items)

@pytest.mark.parametrize('missing', [math.nan, None])
def test_a_sample_without_a_group(missing):
    y = (torch.rand(40, 3, generator=torch.Generator().manual_seed(0))<0.4).int()
    with pytest.raises(ValueError, match='1 missing values of 40: give a sample without a group a value '
                       'that no other'):
        stratified_split(y, groups=[missing, *range(39)])

@pytest.mark.parametrize('kw', [dict(get_y=list('ab')), dict(get_y=pd.DataFrame(dict(a=[1]))),
                                dict(get_y=noop, groups='patient')])
def test_arguments_that_are_no_functions_are_an_error(kw):
    with pytest.raises(TypeError, match=f'{[*kw][-1]} should be a function of an item, such as ColReader'):
        StratifiedMultiLabelSplitter(**kw)([[0,1],[1,0]]*20)

def test_a_label_in_fewer_groups_than_parts_is_told():
    targs = (np.random.default_rng(0).random((300,3))<0.3).astype(int)
    groups = np.arange(300)//5
    with warnings_as('error'): stratified_split(targs, 0.2, groups=groups, seed=0)
    targs[:,2] = np.arange(300)<5
    with pytest.warns(UserWarning, match='label 2: in fewer groups than parts, so some part has none'):
        stratified_split(targs, 0.2, groups=groups, seed=0)
