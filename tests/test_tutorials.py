"The tutorials: they run, and what they say of their results is true"
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from helpers import *

def tutorial(name): return next((ROOT/'nbs'/'tutorials').glob(f'*_{name}.ipynb'))

def snippets(name):
    "The code blocks in the page's text"
    cells = json.loads(tutorial(name).read_text())['cells']
    text = '\n'.join(''.join(o['source']) for o in cells if o['cell_type']=='markdown')
    return re.findall(r'(?s)```python\n(.*?)```', text)

@pytest.mark.slow
def test_start_leads_from_a_warning_to_the_test_score_that_was_promised():
    space,values = run_notebook(tutorial('start'))
    learn,scores,report = (space[o] for o in ('learn','scores','report'))
    warned,again,trained = (learn.zero_labels.records[o] for o in (2,8,20))
    assert warned.flagged and warned.loss_trend==again.loss_trend=='falls'
    # Each line of the messages is typed as it stands
    typed = [''.join(c['source']) for c in json.loads(tutorial('start').read_text())['cells']]
    assert {warned.fit_code, again.fit_code} <= {*typed}
    assert warned.accuracy==pytest.approx(warned.zeros_accuracy, abs=0.005)
    assert warned.suggested_f1 < trained.f1_micro-0.2 and not trained.flagged
    assert learn.loss_func.thresh<0.5
    test,train = space['test'],space['df']
    assert not {*test.index} & {*train.index} and len(test)==200 and not {*test.fname} & {*train.fname}
    assert scores.low['f1_micro'] < scores.value['f1_micro'] < scores.high['f1_micro']
    assert scores.value['f1_micro']>0.85 and scores.baseline['accuracy_multi']>0.92
    worst = report.index[:4]
    assert (report.support[worst]<20).all() and report.f1[worst].max()<report.f1.median()

def test_the_code_for_texts_and_tables_makes_multi_label_learners(tmp_path, monkeypatch):
    import fastai.text.all, fastai.tabular.all
    monkeypatch.chdir(tmp_path)
    small = {**fastai.text.all.awd_lstm_clas_config, 'emb_sz': 8, 'n_hid': 8}
    monkeypatch.setattr(fastai.text.all, 'text_classifier_learner',
                        partial(fastai.text.all.text_classifier_learner, pretrained=False, config=small))
    texts = dict(text=['the app crashes', 'refund me', 'no login'], labels=['crash,login', 'refund', 'login'])
    pd.DataFrame(texts).loc[[0,1,2]*50].to_csv('texts.csv', index=False)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 2, (200,3)), columns=['churn','upgrade','refund'])
    table.assign(plan=rng.choice(['a','b'], 200), age=rng.normal(size=200), visits=rng.normal(size=200)).to_csv(
        'table.csv', index=False)
    _,*of_kinds = snippets('start') # The first one adds a column to the CSV
    for code,labels in zip(of_kinds, (['crash','login','refund'], ['churn','upgrade','refund']), strict=True):
        space = {}
        exec(code, space)
        learn = space['learn']
        vocab = learn.dls.vocab
        assert [*(vocab if vocab[0]==labels[0] else vocab[-1])]==labels
        assert isinstance(learn.loss_func, fastai.losses.BCEWithLogitsLossFlat) and len(learn.metrics)==6
        assert learn.dls.one_batch()[-1].shape[-1]==3 and hasattr(learn, 'zero_labels')

@pytest.mark.slow
def test_fastbook_shows_that_accuracy_hides_the_threshold():
    space,values = run_notebook(tutorial('fastbook'))
    book,preds,targs,table = (space[o] for o in ('book','preds','targs','table'))
    assert book['wrong per image'].tolist()==[0.71,0.98,1.55] and book['lift'].iloc[0]>0.5
    accs,f1s = (np.array(space[o])[space['xs'].numpy()>0.2] for o in ('accs','f1s'))
    assert np.abs(accs-table['accuracy_multi'][1]).max()<0.04 and np.ptp(f1s)>0.3
    record = space['learn'].zero_labels.records[9]
    assert len(record.never_predicted)==8
    assert record.empty_rate==pytest.approx(0.5, abs=0.05)
    y,p = targs.numpy()>0,preds.numpy()>space['thresh']
    first = y.argmax(1)==preds.numpy().argmax(1)
    assert [table[o][0] for o in table]==pytest.approx([(y==p).mean(), (y==p).all(1).mean(), first.mean()], abs=1e-6)
    with pytest.warns(UserWarning, match='probabilities already: pass sigmoid=False'):
        assert accuracy_multi(preds, targs)==accuracy_multi(torch.ones_like(preds), targs, sigmoid=False)
    shown = values['Logits and probabilities'][-1]
    assert shown['two sigmoids']==pytest.approx(targs.mean().item(), abs=1e-3)

def test_the_learner_of_the_book_reads_data_laid_out_like_pascal(tmp_path):
    from fastai_mlmetrics.demo import small_convnet
    space = {}
    cells = json.loads(tutorial('fastbook').read_text())['cells']
    for o in cells:
        if ''.join(o['source']).startswith(('from fastai','def pascal_learner')): exec(''.join(o['source']), space)
    path = multidigits(tmp_path/'set', n=300, size=32)
    learn = space['pascal_learner'](path, small_convnet, pretrained=False)
    train = pd.read_csv(path/'train.csv').query('not is_valid')
    assert learn.dls.one_batch()[0].shape[1:]==(3,128,128) and len(learn.dls.vocab)==20
    assert learn.dls.train_ds.items.fname.tolist()==train.fname.tolist()
    assert 'untar_data(URLs.PASCAL_2007)' in snippets('fastbook')[0]

@pytest.fixture(scope='module')
def arrays_page(): return run_notebook(tutorial('arrays'))

def test_arrays_have_scikit_learn_s_values(arrays_page):
    space,values = arrays_page
    probs,y,found,report = (space[o] for o in ('probs','y_valid','found','report'))
    record = values['What is wrong with these predictions?'][0]
    assert record.accuracy==pytest.approx(skm.accuracy_score(y.values.ravel(), (probs>0.5).ravel()))
    assert record.f1_micro==pytest.approx(skm.f1_score(y, probs>0.5, average='micro'))
    assert found.table.held_out['per_label']>found.table.held_out['best']+0.1
    p = probs>np.array(found.thresh)
    for a in ('micro','macro'):
        assert report.value[f'f1_{a}']==pytest.approx(skm.f1_score(y, p, average=a, zero_division=0))
    assert report.value['f1_micro']>found.table.held_out['per_label']
    compared = values['Which model is better?'][0]
    assert compared.high['ap_macro']<0 and compared.low['f1_micro']<0<compared.high['f1_micro']

def test_the_table_of_arrays_holds(arrays_page):
    space,_ = arrays_page
    probs,y,clf,x = (space[o] for o in ('probs','y_valid','clf','x_valid'))
    expected = judge(probs, y).f1_micro
    logits = np.log(probs/(1-probs))
    assert judge(logits, y, sigmoid=True).f1_micro==pytest.approx(expected)
    assert judge(clf.decision_function(x), y, thresh=0.).f1_micro==pytest.approx(expected)
    assert F1ScoreMulti(sigmoid=False, average='micro')(probs, y)==pytest.approx(expected)
    shuffled = pd.DataFrame(probs, columns=space['names'])[space['names'][::-1]]
    assert judge(shuffled, y).f1_micro==pytest.approx(expected)
    mlb = MultiLabelBinarizer()
    targs = mlb.fit_transform([['login','crash'], [], ['praise']])
    assert label_stats(targs, vocab=mlb.classes_).train.to_dict()==dict(crash=1, login=1, praise=1)
    lacking = space['y_train'].assign(praise=0)
    absent = RandomForestClassifier(3, random_state=0).fit(space['x_train'], lacking).predict_proba(x)[-1]
    with pytest.raises(IndexError): absent[:,1]
