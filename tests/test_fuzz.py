"""Any input has the value of a plain reference implementation or raises a documented error

`python tests/test_fuzz.py SECONDS [SEED]` runs for that time, and prints how many inputs were tried."""
from collections import Counter
import hypothesis, sklearn.metrics as skm, time
from helpers import *

FORMULAS = {
    AccuracyMulti:    lambda tp,pred,true,n: (n-pred-true+2*tp)/n,
    HammingLossMulti: lambda tp,pred,true,n: (pred+true-2*tp)/n,
    ZerosAccuracy:    lambda tp,pred,true,n: (n-true)/n,
    PrecisionMulti:   lambda tp,pred,true,n: tp/pred,
    RecallMulti:      lambda tp,pred,true,n: tp/true,
    F1ScoreMulti:     lambda tp,pred,true,n: 2*tp/(pred+true),
    JaccardMulti:     lambda tp,pred,true,n: tp/(pred+true-tp),
    SpecificityMulti: lambda tp,pred,true,n: (n-pred-true+tp)/(n-true),
    SubsetAccuracy:   lambda tp,pred,true,n: (tp==pred) & (pred==true),
    EmptyRate:        lambda tp,pred,true,n: pred==0,
    LabelCardinality: lambda tp,pred,true,n: pred}
OF_SAMPLES = SubsetAccuracy,EmptyRate,LabelCardinality
RANKED = {APScoreMulti: skm.average_precision_score, RocAucMulti: skm.roc_auc_score}
AVERAGES = 'micro','macro','weighted','samples',None
FLOATS = torch.float16,torch.bfloat16,torch.float32,torch.float64
INTEGERS = torch.bool,torch.uint8,torch.int32,torch.int64
VALUES = dict(
    logits=lambda g,s: g.normal(size=s)*3,
    probs=lambda g,s: g.random(s),
    coarse=lambda g,s: g.integers(-2, 3, s)/2,
    wide=lambda g,s: g.normal(size=s)*10.**g.integers(-40, 35, s),
    edges=lambda g,s: g.choice([0.,-0.,1.,0.5,-math.inf,math.inf,1e-45,30.,-90.], s),
    same=lambda g,s: np.full(s, g.normal()))
LAYOUTS = 'plain','transposed','strided','offset','numpy'

def laid_out(t, how):
    "The same numbers in another memory layout or container"
    if how=='transposed': return t.transpose(0, -1).contiguous().transpose(0, -1)
    if how=='strided': return torch.stack([t,t], -1)[...,0]
    if how=='offset': return torch.cat([t.flatten()[:1],t.flatten()])[-t.numel() or None:][:t.numel()].view(t.shape)
    if how=='numpy' and t.dtype!=torch.bfloat16: return t.numpy()
    if how=='list' and t.numel(): return t.tolist()
    if how=='grad' and t.is_floating_point(): return t.requires_grad_()
    return t

@st.composite
def cases(draw):
    "A metric, its arguments, predictions and targets, the batch size, and the layouts of both"
    def one(*o): return draw(st.sampled_from(o))
    def rarely(x, other=None, of=8): return x if draw(st.integers(0, of-1))==of-1 else other
    g = np.random.default_rng(draw(st.integers(0, 2**32)))
    n,c = rarely(0, draw(st.integers(1, 40)), 20),draw(st.integers(1, 12))
    preds = torch.from_numpy(VALUES[one(*VALUES)](g, (n,c)))
    dtype = rarely(one(*INTEGERS), one(*FLOATS))
    if dtype in FLOATS: preds = preds.to(dtype)
    else: preds = torch.from_numpy(g.integers(0, rarely(4, 2), (n,c))).to(dtype)
    y = torch.from_numpy((g.random((n,c))<one(0.05,0.3,1.,0.)).astype(float)).to(one(*FLOATS, *INTEGERS))
    ignore = one(None,None,-1,math.nan,2)
    def holds(dtype, value):
        "Whether `dtype` can represent `value`"
        if dtype in FLOATS: return True
        return abs(value)<math.inf and value==int(value) and (value>=0 or dtype in INTEGERS[2:])
    def spoil(t, value):
        "Set a tenth of `t` to `value`"
        if holds(t.dtype, value): t[torch.from_numpy(g.random(t.shape)<0.1)] = value
    if dtype in FLOATS and (bad:=rarely(math.nan)): spoil(preds, bad)
    bad = rarely(one(2.,0.5,-1.,math.nan,200.,math.inf))
    if bad is not None and y.dtype!=torch.bool: spoil(y, bad)
    if ignore is not None and one(True,False) and y.dtype!=torch.bool: spoil(y, ignore)
    sigmoid,cls = one(True,True,False),one(*FORMULAS, *RANKED)
    def thresh(): return rarely(one(-0.1,1.5,math.nan,-3.), one(0.5,0.5,0.2,0.,1.,0.9,1e-6), 20)
    weight = rarely(one(g.normal(size=n), np.zeros(n), np.ones(n+1)), g.integers(0, 3, n).astype(float))
    labels = [int(o) for o in g.integers(0, c+rarely(3, 0), draw(st.integers(1, 2*c)))]
    kw = dict(sigmoid=sigmoid, sample_weight=rarely(weight), ignore_index=ignore, labels=rarely(labels))
    if cls not in RANKED:
        by_label = [thresh() for _ in range(rarely(c+1, c))]
        kw['thresh'] = one(thresh(), thresh(), by_label, np.float32(thresh()), tensor(thresh()))
        kw['min_labels'] = rarely(draw(st.integers(0, 15)), 0)
    kw['average'] = 'samples' if cls in OF_SAMPLES else one(*AVERAGES)
    kw['zero_division'] = one(0.,1.,math.nan)
    step = one(1, 7, 100)
    how = one(*[(a,b) for a in (*LAYOUTS,'list','grad') for b in LAYOUTS])
    if how[0]=='list' and preds.is_floating_point(): preds = preds.double() # numpy makes float64 of a list
    return cls,kw,preds,y,step,how

def expected(cls, kw, preds, y):
    "The value by plain numpy, or 'error'; 'either' if it depends on ties or on the last bit of a score"
    thresh,c = np.float64(kw.get('thresh', 0.5)),y.shape[1]
    w = kw['sample_weight']
    if np.isnan(thresh).any() or kw['sigmoid'] and not np.all((0<=thresh) & (thresh<=1)): return 'error'
    if w is not None and not (np.all(w>=0) and w.sum()>0): return 'error'
    if not len(y): return None
    if thresh.ndim and len(thresh)!=c: return 'error'
    if cls not in RANKED and kw['min_labels']>c: return 'error'
    if kw['labels'] and (max(kw['labels'])>=c or len({*kw['labels']})<len(kw['labels'])): return 'error'
    if w is not None and len(w)!=len(y): return 'error'
    columns = ifnone(kw['labels'], [*range(c)])
    k = kw.get('min_labels', 0) if preds.is_floating_point() else 0
    x,t = preds.double().numpy(),y.double().numpy()
    if preds.is_floating_point():
        wide = preds if preds.dtype==torch.float64 else preds.float()
        s = (wide.sigmoid() if kw['sigmoid'] else wide).numpy()
        limit = thresh.astype(s.dtype)
        p = s>limit
        # torch's sigmoid may differ in the last bit between tensors of other shapes
        near = (x!=0) & (s>0) & (s<1) & (np.abs(s-limit)<=2*np.spacing(limit))
        unsure = kw['sigmoid'] and near.any()
    else: p,unsure = x!=0,False
    unsure |= k and any(len({*row})<c for row in x)
    if k: p |= np.argsort(np.argsort(-np.where(p, np.inf, x), axis=1, kind='stable'), axis=1)<k
    x,t,p,ignore = x[:,columns],t[:,columns],p[:,columns],kw['ignore_index']
    if ignore is None: valid = np.ones(t.shape, bool)
    else: valid = ~np.isnan(t) if ignore!=ignore else t!=ignore
    if not np.isin(t[valid], (0,1)).all(): return 'error'
    if np.isnan(x[valid]).any(): return np.full(len(columns), math.nan) if kw['average'] is None else math.nan
    is_binary = np.isin(x[valid], (0,1)).all()
    any_value = cls in RANKED or cls is ZerosAccuracy # which looks at the targets alone
    if not (preds.is_floating_point() or any_value or is_binary): return 'error'
    if unsure: return 'either'
    w,zero = np.ones(len(t)) if w is None else w,kw['zero_division']
    def mean(values, weights):
        weights = np.where(np.isnan(values), 0, weights)
        if not weights.sum() and kw['average']=='weighted': weights = np.where(np.isnan(values), 0, 1.)
        return (np.nan_to_num(values)*weights).sum()/weights.sum()
    with np.errstate(all='ignore'):
        axis = {'micro':None, 'samples':1}.get(kw['average'], 0)
        e = valid*(1. if axis==1 else w[:,None])
        t = np.where(valid, t, 0)
        n,true = e.sum(axis),(e*t).sum(axis)
        if cls in RANKED:
            def of(t, x, e):
                if not (e*t).sum() or cls is RocAucMulti and not (e*(1-t)).sum(): return math.nan
                ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
                return RANKED[cls](t, ranks, sample_weight=e)
            def masked(i): return [o[i][valid[i]] for o in (t, x, e)]
            if axis is None: values = np.array(of(*masked(...)))
            else: values = np.array([of(*masked((slice(None),i) if axis==0 else i)) for i in range(len(n))])
        else:
            p = p & valid
            values = np.float64(FORMULAS[cls]((e*p*t).sum(axis), (e*p).sum(axis), true, n))
        values = np.where(n>0, np.where(np.isnan(values), zero, values), math.nan)
        if kw['average'] in ('micro',None): return values
        return mean(values, {'macro':1., 'weighted':true, 'samples':w}[kw['average']])

def outcome(cls, kw, preds, y, step, how):
    "The metric's value, or 'error'"
    args = {k:v for k,v in kw.items() if k!='min_labels'} if cls in RANKED else kw
    with warnings_as('ignore'):
        try:
            m,parts = cls(**args),[laid_out(o, h) for o,h in zip((preds, y), how)]
            for i in range(0, max(1, len(y)), step): m.accum_values(*(o[i:i+step] for o in parts))
            return m.value
        except ValueError: return 'error'

tried = Counter()

def check(case):
    cls,kw,preds,y,step,how = case
    due = expected(cls, kw, preds.detach().clone(), y.clone())
    got = outcome(*case)
    either = isinstance(due, str) and due=='either'
    tried['nothing' if due is None else 'ties' if either else 'error' if isinstance(due, str) else 'value'] += 1
    if either: assert not isinstance(got, str)
    elif due is None or isinstance(due, str) or got is None or isinstance(got, str): assert due is got or due==got
    else: np.testing.assert_allclose(got, due, atol=1e-9)

test_any_input = given(case=cases())(check)

if __name__=='__main__':
    seconds,seed = float(sys.argv[1]),int((sys.argv[2:] or [0])[0])
    begun = time.time()
    endless = settings(max_examples=2000, derandomize=False, database=None, deadline=None)
    try:
        while time.time()-begun<seconds:
            hypothesis.seed(seed)(endless(given(case=cases())(check)))()
            seed += 1
    finally: print(f'{sum(tried.values()):,} inputs in {time.time()-begun:.0f} s, up to seed {seed}: {dict(tried)}')
