"The how-to pages: their tables hold, and their commands run"
import json, subprocess
from types import SimpleNamespace
import sklearn.metrics as skm, torchmetrics.classification
import fastai.metrics, fastai_mlmetrics.all
from helpers import *

PAGES = sorted((ROOT/'nbs'/'howto').glob('*.ipynb'))

def cells(notebook, kind):
    return [''.join(o['source']) for o in json.loads(notebook.read_text())['cells'] if o['cell_type']==kind]

def page(name): return next(o for o in PAGES if name in o.stem)

def rows_of(notebook, section=None):
    "The rows of the page's table, or of that of a section, without the heading"
    text = '\n'.join(cells(notebook, 'markdown'))
    if section: text = text.partition(f'\n## {section}\n')[2].partition('\n## ')[0]
    rows = [[c.strip().strip('`') for c in o.strip('|').split('|')] for o in re.findall(r'(?m)^\|.*\|$', text)]
    return rows[2:]

def value(m, preds, targs):
    "The value of a metric in the validation of a Learner"
    if not isinstance(m, Metric): return float(m(preds, targs))
    m.reset()
    m.accumulate(SimpleNamespace(pred=preds, y=targs, yb=(targs,), to_detach=to_detach))
    return float(m.value)

@pytest.fixture(scope='module')
def data():
    torch.manual_seed(0)
    y = (torch.rand(200, 5)<0.25).int()
    return torch.randn(200, 5) + 2*y - 1, y

def test_the_table_of_fastai_holds(data):
    "Other columns have fastai's names"
    rows = rows_of(page('other_libraries'), 'fastai')
    defaults = 'F1ScoreMulti PrecisionMulti RecallMulti JaccardMulti HammingLossMulti APScoreMulti RocAucMulti'.split()
    same = [('accuracy_multi',)*3, *((f'{o}()',)+(getattr(fastai.metrics, o)().name,)*2 for o in defaults)]
    assert len(rows)>3 and len(same)>7
    for code,theirs,ours in rows+same:
        a,b = (eval(code, vars(o)) for o in (fastai.metrics, fastai_mlmetrics.all))
        assert value(a, *data)==pytest.approx(value(b, *data), abs=1e-6), code
        assert [getattr(o, 'name', getattr(o, '__name__', '')) for o in (a,b)]==[theirs,ours]

def test_the_table_of_torchmetrics_and_sklearn_holds(data):
    z,y = data
    names = dict(z=z, y=y, s=z.sigmoid(), p=(z>0).int())
    arrays = {k: o.numpy() for k,o in names.items()} # of scikit-learn
    rows = rows_of(page('other_libraries'), 'torchmetrics and scikit-learn')
    assert len(rows)>12
    for ours,theirs,sklearn in rows:
        expected = value(eval(ours, vars(fastai_mlmetrics.all)), z, y)
        if theirs:
            m = eval(theirs, vars(torchmetrics.classification))
            assert float(m(names['s'], y))==pytest.approx(expected, abs=1e-5), theirs
        if sklearn:
            o = eval(sklearn, vars(skm), names if 'float' in sklearn else arrays)
            assert float(o)==pytest.approx(expected, abs=1e-5), sklearn

def test_what_differs_from_fastai_is_what_the_page_says():
    space,_ = run_page('other_libraries')
    value,fm,(logits,targs) = space['value'],space['fm'],space['few']
    probs,one = logits.sigmoid(),(logits[:,:1],targs[:,:1])
    assert value(BrierScoreMulti(), logits, targs)==pytest.approx(((probs-targs)**2).mean().item(), abs=1e-3)
    scored = ((one[0]>0)!=one[1]).float().mean().item() # fastai's Brier score is that of binary predictions
    assert value(fm.BrierScoreMulti(), *one)==pytest.approx(scored, abs=1e-3)
    assert value(RocAucMulti())==value(RocAucMulti(), logits, targs) # without the absent label
    assert value(fm.MatthewsCorrCoefMulti())=='ValueError' and value(fm.APScoreMulti())==value(APScoreMulti())
    assert (value(fm.RecallMulti(), *space['half']), value(RecallMulti(), *space['half']))==(1, 0)

@pytest.mark.slow
@pytest.mark.dev
def test_a_trainer_of_hugging_face_keeps_its_best_epoch_and_pads_texts():
    transformers = pytest.importorskip('transformers')
    from tokenizers import Tokenizer, models
    space,_ = run_page('hugging_face')
    trainer,preds,report,labels = (space[o] for o in ('trainer','preds','report','labels'))
    predicted = 1/(1+np.exp(-preds.predictions.astype(float)))>np.array(space['best'].thresh)
    f1 = skm.f1_score(preds.label_ids, predicted, average='macro', zero_division=0)
    assert report.value['f1_macro']==pytest.approx(f1, abs=1e-9) and report.value['ap_macro']>0.7
    maps = trainer.predict(space['valid']).metrics['test_ap_macro'],trainer.evaluate()['eval_ap_macro']
    assert maps[0]==maps[1]==max(o.get('eval_ap_macro', 0) for o in trainer.state.log_history)
    words = Tokenizer(models.WordLevel({'[PAD]': 0, 'a': 1, 'b': 2}, 'b'))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token='[PAD]')
    ids = tokenizer(['a','b'], truncation=True)['input_ids'] + [[1,2]]
    data = [dict(input_ids=x, labels=y) for x,y in zip(ids, labels)]
    padded = type(trainer)(trainer.model, space['args'], processing_class=tokenizer, eval_dataset=data)
    assert next(iter(padded.get_eval_dataloader()))['attention_mask'].sum()==4
    assert np.isfinite(padded.evaluate()['eval_loss'])

def test_the_best_epoch_of_one_label_is_kept():
    space,values = run_page('monitor_trackers')
    learn = space['learn']
    with learn.no_bar(): preds,targs = learn.get_preds()
    by_label = values['Monitor one label'][-1].value[1:]
    np.testing.assert_allclose(by_label, skm.f1_score(targs, preds>0.5, average=None), atol=1e-5)
    true,scores = targs[:,2],preds[:,2]
    f1,recall = (f(true, scores>0.5) for f in (skm.f1_score, skm.recall_score))
    learn.metrics = space['crash']
    with learn.no_bar(): shown = [*learn.validate()[1:]]
    assert shown==pytest.approx([f1, recall, skm.average_precision_score(true, scores)], abs=1e-5)
    assert TrackerCallback('empty_rate').comp is np.greater
    errors = HammingLossMulti(),BrierScoreMulti(),CoverageError(),LabelRankingLoss(),OneError()
    assert {TrackerCallback(m.name).comp for m in errors}=={np.less}

@pytest.mark.slow
@pytest.mark.dev
def test_a_submission_is_in_the_order_of_the_files_and_weights_come_from_a_folder(tmp_path, monkeypatch):
    timm = pytest.importorskip('timm')
    space,_ = run_page('no_internet')
    learn,sample,vocab,predicted = (space[o] for o in ('learn','sample','vocab','predicted'))
    written = pd.read_csv(space['folder']/'submission.csv', keep_default_na=False)
    assert [*written.fname]==[*sample.fname]!=sorted(sample.fname)
    assert [{*o.split()} for o in written.labels]==[{*vocab[o]} for o in predicted.bool().numpy()]
    true = pd.read_csv(space['path']/'train.csv').set_index('fname').labels[sample.fname].str.get_dummies(' ')
    targs = true.reindex(columns=vocab, fill_value=0).to_numpy()
    right,shuffled = (JaccardMulti(average='samples')(predicted.int(), o) for o in (targs, np.roll(targs, 1, 0)))
    assert right>2*shuffled
    with learn.no_bar(): tta = learn.tta(dl=space['dl'], n=1)[0]>tensor(space['found'].thresh)
    assert tta.shape==predicted.shape
    hub,of_timm = re.findall(r'(?s)```python\n(.*?)```', '\n'.join(cells(page('no_internet'), 'markdown')))
    (tmp_path/'checkpoints').mkdir()
    torch.manual_seed(1)
    weights = resnet18(weights=None).state_dict()
    torch.save(weights, tmp_path/'checkpoints'/'resnet18-f37072fd.pth')
    monkeypatch.setattr(torch.hub, '_hub_dir', None) # which `set_dir` sets
    exec(hub.replace('/kaggle/input/weights', str(tmp_path)), space)
    assert torch.equal(space['learn'].model[0][0].weight, weights['conv1.weight'])
    weights = timm.create_model('resnet18', pretrained=False).state_dict()
    torch.save(weights, tmp_path/'timm.pth')
    exec(of_timm.replace('timm.pth', str(tmp_path/'timm.pth')), space)
    assert torch.equal(first(space['learn'].model[0].model.state_dict().values()), first(weights.values()))

@pytest.mark.slow
def test_no_label_unknown_labels_and_absent_labels():
    space,values = run_page('no_label')
    none,truly = space['none'][:,0].bool(),space['truly'][:,0].bool()
    both = (truly&none).float().mean().item()
    by_label,f1s = values['No label: "none of the above"'][-2:]
    _,zero,one = f1s['the model']
    assert both>0.1 and one-zero==pytest.approx(both, abs=2e-3)
    assert by_label['the model'].recall==pytest.approx(skm.recall_score(truly, none), abs=1e-3)
    assert by_label['the model'].F1>by_label['always none'].F1 and one>f1s['predicting nothing'].iloc[2]
    assert ColReader('labels', label_delim=' ')(pd.Series(dict(labels='')))==[]
    preds,report,best = (space[o] for o in ('preds','report','best'))
    targs = torch.cat([y for *_,y in space['learn'].dls.valid])
    known = ~targs.isnan()
    f1 = skm.f1_score(targs[known], preds[known]>best.thresh)
    assert 0.5<known.float().mean()<0.65 and report.value['f1_micro']==pytest.approx(f1)
    random,stratified,_ = values['Absent label: a stratified split']
    assert [*random.index[random.missing_from!='']]==['crash','refund'] and (stratified.missing_from=='').all()

@pytest.mark.slow
def test_the_commands_without_internet_install_the_package(tmp_path):
    "In a copy of the files, because pip builds where they are; dependencies are those that are installed already"
    files = subprocess.run(['git','ls-files'], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split('\n')
    for o in filter(re.compile('fastai_mlmetrics/|[^/]+$').match, files):
        (tmp_path/o).parent.mkdir(exist_ok=True)
        (tmp_path/o).write_bytes((ROOT/o).read_bytes())
    text = '\n'.join(cells(page('no_internet'), 'markdown'))
    wheel,install,*_on_kaggle = re.findall(r'(?s)```sh\n(.*?)\n```', text)
    install,check = install.split('\n')
    assert check=='pip check'
    run = partial(subprocess.run, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True)
    run(f'{sys.executable} -m {wheel}')
    run(f'{sys.executable} -m venv new')
    env = {k: v for k,v in os.environ.items() if k!='PYTHONPATH'} | {'PIP_NO_INDEX': '1'}
    run(f'new/bin/{install}', env=env)
    python = f'{tmp_path}/new/bin/python -c'
    purelib = run(f"{python} 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'").stdout.strip()
    (Path(purelib)/'deps.pth').write_text('\n'.join(o for o in sys.path if 'site-packages' in o))
    found = run(f"{python} 'import fastai_mlmetrics as o; print(o.__file__)'", env=env, cwd=purelib).stdout
    assert found.startswith(purelib)

def run_page(name): return run_notebook(page(name))

@pytest.mark.slow
def test_a_model_that_predicts_nothing_is_cured_by_training_then_by_a_threshold():
    space,values = run_page('predicts_nothing')
    trained_twice = space['learn'].zero_labels.records[1].f1_micro
    before,after = (space[o].value for o in ('before','after'))
    empty = next(o for shown in values.values() for o in shown if isinstance(o, dict) and 'highest_score' in o)
    again = next(o for o in values['4. The threshold is too high: tune it'] if isinstance(o, dict))
    assert empty['predicted']==[] and empty['highest_score']<0.5
    assert {*again['predicted']}=={*again['true'].split()}
    assert trained_twice<0.2 and before['f1_micro']>0.5
    assert after['f1_micro']>before['f1_micro'] and after['empty_rate']<before['empty_rate']

def test_loaders_of_each_kind_of_file_have_the_labels():
    space,values = run_page('csv_to_dataloaders')
    for name in ('in one column','a column per label','are in the path'):
        assert [*next(o[-1] for k,o in values.items() if name in k)]==['beach','city','sunset']
    vocab,loss = values['Tables with several targets'][-1]
    assert vocab==space['targets'] and 'BCEWithLogitsLoss' in str(loss)
    assert values['Texts'][-1]==['billing','crash','login','refund']
    for stats in values['A validation set that has every label']:
        assert (stats.valid>0).all() and (stats.valid-(stats.train+stats.valid)/5).abs().max()<1

def test_each_heading_is_the_text_of_fastais_error():
    _,values = run_page('fastai_errors')
    errors = {k.strip('`'): str(v[-1]).replace("\\'", "'") for k,v in values.items() if k.startswith('`')}
    assert len(errors)>8
    for heading,error in errors.items(): assert heading in error, (heading,error)

@pytest.mark.slow
def test_groups_widen_the_interval_of_a_test_score():
    space,values = run_page('test_score')
    alone,by_patient,report = (space[o] for o in ('alone','by_patient','report'))
    assert by_patient.high-by_patient.low > 1.2*(alone.high-alone.low)
    probs,targs = space['learn'].get_preds(dl=space['test_dl'])
    predicted = probs>space['found'].thresh
    assert len(targs)==1000 and report.value['f1_micro']==pytest.approx(skm.f1_score(targs, predicted, average='micro'))
    # A rarer label has more false positives for each true one
    assert space['real'].value['f1_macro']<report.value['f1_macro']
    assert space['learn'].loss_func.thresh>space['found'].thresh

def test_the_positives_that_a_label_needs():
    "The table on the page of the test score"
    from fastai_mlmetrics.thresholds.constraints import most_misses, n_needed
    assert (n_needed(0.9, 0.9),n_needed(0.95, 0.95))==(22,59)
    assert [*most_misses([90,91], 0.9, 0.9)]==[4,5]
    def low(n, f1=0.7): # Lower limit of an F1 with n positives, and as many predictions
        right = round(f1*n)
        targs,predicted = np.zeros((2, 20*n, 1), int)
        targs[:n] = predicted[n-right:2*n-right] = 1
        return MultiLabelInterpretation.from_preds(predicted, targs).report().low.iloc[0]
    assert low(15)<0.5<low(20)

def test_twice_the_samples_that_the_width_asks_for_show_a_difference_in_four_of_five_sets():
    "The formula at the end of the page that compares models"
    def draw(n, seed=0):
        rng = np.random.default_rng(seed)
        targs = (rng.random((n,8))<np.geomspace(0.02, 0.4, 8)).astype(int)
        noise = rng.normal(size=targs.shape)
        logits = [4*targs+2*noise-4, 4.4*targs+2*noise+0.6*rng.normal(size=targs.shape)-4]
        return dict(zip('ab', (1/(1+np.exp(-o)) for o in logits))),targs
    measured = compare_models(*draw(1000)).loc['f1_micro']
    real = compare_models(*draw(20_000), ci=None).difference['f1_micro']
    n = round(2*1000*((measured.high-measured.low)/2/real)**2)
    found = [compare_models(*draw(n, seed)).low['f1_micro']>0 for seed in range(1, 61)]
    assert 0.6<np.mean(found)<0.97

@pytest.mark.slow
def test_a_model_is_better_over_all_seeds_and_fails_in_one_hospital():
    space,_ = run_page('compare_models')
    d = space['compared'].loc['f1_micro']
    f1 = [skm.f1_score(space['targs'], space['probs'][k]>space['thresh'][k], average='micro') for k in 'AB']
    np.testing.assert_allclose([d.A, d.B], f1, atol=1e-6)
    assert d.low>0 and (space['of_runs'].low[['f1_micro','ap_macro']]>0).all()
    assert (space['slices'].result=='').all() and ('west','login') in space['slices'].labels.index

def test_neither_weights_nor_oversampling_beat_tuned_thresholds():
    space,values = run_page('rare_labels')
    plain,*others = (space['means'][o] for o in ('as they are','oversampled','pos_weight'))
    for o in others:
        assert o['mean score of rare']>2*plain['mean score of rare']
        assert plain['macro F1, tuned']>max(o['macro F1 at 0.5'], o['macro F1, tuned']) and plain['mAP']>o['mAP']
    p,weight = np.random.default_rng(0).random((50,3)),np.array([2.,9,30])
    np.testing.assert_allclose(space['undo'](weight*p/(1-p+weight*p), weight), p)

@pytest.mark.dev
def test_metrics_of_other_loops_are_those_of_scikit_learn():
    for o in ('timm','lightning'): pytest.importorskip(o)
    space,_ = run_page('loop_lightning')
    probs,targs = space['logits'].sigmoid().numpy(),space['targs'].numpy()
    f1 = partial(skm.f1_score, targs, average='micro', zero_division=0)
    assert space['rows'][-1]['f1_micro']==pytest.approx(f1(probs>0.5))
    assert space['best'].score==pytest.approx(f1(probs>np.array(space['best'].thresh)))
    weights = torch.load(space['folder']/'best.ckpt', weights_only=False)['state_dict']
    log = space['log'].sort_values('ap_macro')
    torch.manual_seed(0)
    x = torch.randn(1200, 10)
    y = (x[:,:4] + 0.5*torch.randn(1200, 4) > 1)[1000:]
    preds = F.linear(x[1000:], weights['model.weight'], weights['model.bias'])
    assert len(log)==3 and log.ap_macro.iloc[-1]==pytest.approx(skm.average_precision_score(y, preds), abs=1e-6)

@pytest.mark.slow
def test_other_shapes_are_scored_by_label():
    space,values = run_page('other_shapes')
    real = space['targs'][...,0]!=-100
    p = space['logits'][real]>0
    assert space['f1']==pytest.approx(skm.f1_score(space['targs'][real], p, average='macro'), abs=1e-6)
    table,learn = space['table'],space['learn']
    report = learn.accuracy_report()
    assert report.value['f1_micro']==pytest.approx(table.value['f1_micro'], abs=1e-6)
    with torch.no_grad(): right = [learn.model.eval()(x)[1].argmax(1)==y for x,_,y in learn.dls.valid]
    assert table.value['accuracy']==pytest.approx(torch.cat(right).float().mean().item(), abs=1e-6)

@pytest.mark.dev
@pytest.mark.slow
def test_a_served_model_predicts_the_same_labels():
    for o in ('timm','onnxruntime','onnxscript'): pytest.importorskip(o)
    space,values = run_page('production')
    assert space['by_fastai'].endswith('False') # without this package
    assert space['served_labels']==space['fastai_labels'] and any(space['served_labels'])
    assert 'no label' not in next(iter(values['A Gradio app']))
    images,served = space['images'],space['served']
    program = torch.export.export(served, (images,), dynamic_shapes=space['shapes']).module()
    assert torch.allclose(program(images[:1].repeat(3,1,1,1)), served(images[:1]), atol=1e-5)

@pytest.mark.slow
def test_the_most_confident_mistakes_are_wrong_labels():
    space,_ = run_page('wrong_labels')
    assert space['wrong'][:100].mean()>0.9 and len(pd.read_csv(space['folder']/'check.csv'))==len(space['found'])
    targs = space['targs']
    of_folds = MultiLabelInterpretation.from_preds(space['preds'], targs).mistakes(max_n=100)
    assert space['flipped'][of_folds.index,targs.columns.get_indexer(of_folds.label)].mean()>0.8

def test_only_accuracy_and_two_f1_prefer_frequent_labels_alone():
    space,_ = run_page('which_metric')
    targs,models = space['targs'],space['models']
    t = pd.DataFrame({k: {name: m(scores, targs) for name,m in space['metrics'].items()}
                      for k,scores in models.items()})
    assert (t.drop(index='AUC').nothing.drop('accuracy')<0.1).all() and t.nothing.accuracy>0.9
    higher = t['frequent labels only']>t['all labels']
    assert {*t.index[higher]}=={'accuracy','micro F1','samples F1'}

def test_matrices_and_the_table_for_a_paper_have_the_values_of_scikit_learn():
    space,values = run_page('confusion_matrix')
    true,found,interp = space['interp'].targs.bool(),space['logits']>0,space['interp']
    assert (interp.confusion_matrix()==skm.multilabel_confusion_matrix(true.int(), found)).all()
    (bus,truck,*_),(for_bus,for_truck,*_) = true.T,torch.as_tensor(found).T
    confused = (truck & ~for_truck & ~bus & for_bus).sum()
    assert [*values['Label against label'][-1].iloc[0]]==['truck','bus',confused]
    y,p,table = space['targs'].numpy(),space['preds']['ours'].numpy(),space['table']
    cp,cr = (f(y, p>0.5, average='macro') for f in (skm.precision_score, skm.recall_score))
    expected = [skm.average_precision_score(y, p), skm.f1_score(y, p>0.5, average='micro'), 2*cp*cr/(cp+cr)]
    np.testing.assert_allclose([table[o]['ours'] for o in ('mAP','OF1','CF1')], 100*np.array(expected), atol=1e-4)

@pytest.mark.slow
def test_a_required_recall_holds_and_tuned_thresholds_cost_least():
    space,_ = run_page('choose_threshold')
    found,strict,learn = (space[o] for o in ('found','strict','learn'))
    assert found.per_label[2]==pytest.approx(found.table.loc['crash','threshold']) and found.per_label[2]<found.best
    assert found.table.loc['crash','recall_held_out']>0.9
    np.testing.assert_allclose(learn.loss_func.thresh, strict.thresh, atol=1e-6)
    _,costs,exclusive = re.findall(r'(?s)```python\n(.*?)```', '\n'.join(cells(page('choose_threshold'), 'markdown')))
    group = dict(zip(('clear','cloudy','haze'), learn.dls.vocab))
    for a,b in group.items(): exclusive = exclusive.replace(a, b)
    one = dict(space)
    with learn.no_bar(): exec(exclusive, one)
    with learn.no_bar(): exec(costs, dict(space))
    assert learn.loss_func.thresh[2]==min(learn.loss_func.thresh) # A missed crash costs most
    assert (one['predicted'][:,:3].sum(1)==1).all() and one['predicted'][:,3].sum()>0
    total,scores,by_formula = (space[o] for o in ('total','scores','by_formula'))
    best = total(space['expit'](space['z']), by_formula)
    assert total(scores, space['tuned'])<1.05*best
    assert total(scores, by_formula)>1.1*best and total(scores, 0.5)>1.1*best
