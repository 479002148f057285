"The site: its contents, and errors that must fail the build"
import ast, fastai_mlmetrics.all, json, runpy
from functools import cached_property
from itertools import chain
from bs4 import BeautifulSoup
from types import ModuleType, SimpleNamespace
from helpers import *
from reference import *
from fastai_mlmetrics.diagnosis import callback, pitfalls, records, remedies, verdicts
from fastai_mlmetrics.reports.page import glossary

pytestmark = pytest.mark.dev
for package in ('nbdev','sphinx'): pytest.importorskip(package)
docs = SimpleNamespace(**runpy.run_path(str(ROOT/'tools'/'docs.py')))

# --- the site

def cell(source, kind='code', **directives):
    return SimpleNamespace(cell_type=kind, source=source, outputs=[], directives_=directives)

SOURCE = '''
class Counter:
    "Counts"
    def __init__(self,
        n:int=3, # How many | at most
        *,
        names=None, # What they are called
        f=len # What counts them
    ): pass
    @classmethod
    def of(cls,
        items, # What to count
        **kwargs # Of `Counter`
    ): "Made of `items`"
    def _private(self): pass

def total(
    *args # Numbers
)->float: # Their sum
    "Adds up"

def _helper(): pass
'''

@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path/'made_up.py').write_text(SOURCE) # comments are read from the file
    monkeypatch.syspath_prepend(tmp_path)
    res = ModuleType('fastai_mlmetrics.made_up')
    exec(compile(SOURCE, tmp_path/'made_up.py', 'exec'), vars(res))
    return res

def test_definitions_are_found_in_cells():
    assert [*docs.defined(cell(SOURCE))]==['Counter','Counter.of','total']
    assert [*docs.defined(cell('@patch(as_prop=True)\ndef best(self:Learner): pass'))]==['Learner.best']
    made = cell("def _function_of(cls): ...\naccuracy = _function_of(Accuracy)\nnames = L('a')")
    assert [*docs.defined(made)]==['accuracy']
    assert [*docs.defined(cell('class A:\n    plot = plot\n    _hidden = plot\n    n = 1'))]==['A','A.plot']

def test_documentation_has_signature_and_arguments(module):
    text = docs.documented(module.Counter, 'Counter')
    assert '{py:class} Counter(n=3, *, names=None, f=len)\n:module: fastai_mlmetrics.made_up\n\nCounts\n' in text
    for row in (r'| `n` | `int` | How many \| at most |', '| `names` |  | What they are called |'): assert row in text
    text = docs.documented(module.Counter.of, 'Counter.of', ':no-index:')
    assert '{py:method} Counter.of(items, **kwargs)' in text and 'Of `Counter`' in text
    assert ':classmethod:\n:no-index:\n' in text
    module.total.__doc__ += '\n\nArguments:\n  args: Numbers' # as `help` shows it
    text = docs.documented(module.total, 'total')
    assert 'Arguments:' not in text
    assert '{py:function} total(*args)' in text and '| **returns** | `float` | Their sum |' in text

def test_a_page_links_names_and_folds_the_source(module):
    text = '# made up, of `total`\n\nSee `total` and `total()`, not `other`, [`total`](x.md).'
    cells = [cell(text, 'markdown'), cell('from x import *', export=''), cell(SOURCE, export=''),
             cell('def inside(): pass', exporti=''), cell('1+1', echo='false'), cell('2+2', slow='')]
    objects = {k: eval(k, vars(module)) for k in ('Counter','Counter.of','total')}
    first,*shown,source,inside,quiet,slow = docs.page(cells, {'total': 'm.total'}, objects, ['total'])['cells']
    link = '{py:obj}`total <m.total>`'
    assert first['source']==f'# made up, of `total`\n\nSee {link} and {link}, not `other`, [`total`](x.md).'
    assert ['{py:' in o['source'][:9] for o in shown]==[True]*3
    assert shown[2]['source']=='{py:obj}`total <m.total>`: Adds up' # which the reference documents
    assert source['metadata']['tags']==inside['metadata']['tags']==['hide-input']
    assert quiet['metadata']['tags']==['remove-input'] and slow['metadata']['tags']==[] and slow['source']=='2+2'

def test_a_page_of_the_reference(module):
    cells = [cell('### total\n\nAs `total`, *more*.', 'markdown'), cell('### Other things', 'markdown')]
    first,other = docs.page(cells, {'total': 'm.total'}, dict(total=module.total))['cells']
    heading,text,directive,*_ = re.split(r'\n\n', first['source'])
    assert heading=='### total' and directive.startswith('````{py:function} total(*args)\n')
    assert text=='As {py:obj}`total <m.total>`, *more*.' and other['source']=='### Other things'

@pytest.mark.slow
def test_every_notebook_is_a_page_without_its_directives():
    notebooks = {*(ROOT/'nbs').glob('*.ipynb'), *(ROOT/'nbs').glob('[!.]*/[!_.]*.ipynb')}
    pages = [o for _,_,files in docs.KINDS.values() for o in files]
    assert len(pages)==len({*pages}) and {*pages, ROOT/'nbs'/'index.ipynb'}==notebooks | {*docs.PAGES}
    for notebook in (*docs.HOWTO, *docs.TUTORIALS, *docs.REFERENCE, *docs.MODULES):
        cells = docs.read(notebook)
        assert re.match(r'# \w', cells[0].source), notebook
        assert not any('hide' in c.directives_ or c.source.startswith('#|') for c in cells)

def test_broken_links_are_found(tmp_path):
    (tmp_path/'a.html').write_text('<p id="here"></p><a href="#here">1</a><a href="b%20c.html#x">2</a>'
                                   '<a href="https://no.where">3</a><img src="data:,">')
    (tmp_path/'b c.html').write_text('<p id="x"></p><a href="a.html#there"></a><img src="gone.png">'
                                     '<a href="gone.html">2</a>')
    assert {*docs.broken_links(tmp_path)}=={'b c.html: a.html#there', 'b c.html: gone.png', 'b c.html: gone.html'}

@pytest.fixture(scope='module')
def reference(): return {o.stem[3:]: docs.read(o) for o in docs.REFERENCE}

def test_every_public_name_is_in_the_reference(reference):
    names = [o for cells in reference.values() for o in map(docs.subject, cells) if o]
    public = {*fastai_mlmetrics.all.__all__}
    classes = dict(Learner=Learner, Recorder=Recorder, MultiLabelInterpretation=MultiLabelInterpretation)
    methods = {f'{cls}.{k}' for cls,o in classes.items() for k,m in vars(o).items()
               if k[0]!='_' and not hasattr(event, k) and getattr(m, '__module__', '').startswith('fastai_mlmetrics')
               and not isinstance(m, cached_property)} # These have a module from Python 3.13 on
    same = 'MultiLabelInterpretation.plot_confusion_matrix' # fastai's name
    assert len(names)==len({*names}) and not (public | methods) - {*names, same}
    for cells in reference.values(): # A heading, and nothing but its name
        assert all(re.match(r'### [\w.]+(\n\n|$)', c.source) for c in cells if c.source.startswith('###'))

def test_every_name_of_the_reference_has_a_text_and_a_line_that_runs(reference):
    for cells in reference.values():
        for c,after in zip(cells, [*cells[1:], cell('', 'markdown')]):
            if not (name := docs.subject(c)) or name=='ThreshFinder.compute': continue # whose line is above it
            text = c.source.partition('\n\n')[2]
            assert len(text.split())>5 and after.cell_type=='code', name
            assert not re.match('Use ', text), f'{name}: first say what it is, or what for'

def test_each_page_ends_with_one_next_step():
    for o in (*docs.TUTORIALS, *docs.HOWTO, *docs.REFERENCE):
        text = text_of(docs.read(o)).partition(docs.SIGNATURES)[0].strip()
        last = text.rpartition('\n')[2]
        assert re.search(r'(^|\. |\? )Next: ', last) and last.count('](')<3, (o.name, last)
        assert text.count('Next: ')==1, o.name

def test_signatures_are_folded_and_have_their_arguments(module):
    text = docs.signatures(['Counter','total'], dict(Counter=module.Counter, total=module.total))
    _,first,second = text.split('<details>')
    assert first.startswith('<summary><code>Counter</code>: Counts</summary>\n\n')
    assert '```python\nCounter(n=3, *, names=None, f=len)\n```' in first
    assert '| `names` |  | What they are called |' in first and '| **returns** | `float` | Their sum |' in second
    assert text.count('</details>')==2

@pytest.mark.slow
def test_a_long_signature_has_a_line_for_each_argument(module):
    found = {k: v for k,v in docs.documentation(module.Counter, 'Counter')[1].items() if k!='return'}
    name = 'a.'*30+'Counter'
    assert docs.wrapped(name, found)==f'{name}(\n    n=3,\n    *,\n    names=None,\n    f=len,\n)'
    cells = docs.all_cells()
    for o in docs.REFERENCE:
        code = re.findall(r'(?ms)^```python\n(.*?)^```$', cells[o][-1].source)
        assert max(map(len, '\n'.join(code).split('\n')))<=docs.WIDTH

def text_of(cells): return '\n'.join(c.source for c in cells if c.cell_type=='markdown')

def test_every_column_is_explained(reference):
    "On the page of the function that prints it, or among the terms"
    rng = np.random.default_rng(0)
    targs = (rng.random((60, 3))<0.4).astype(int)
    preds = (targs + rng.random((60, 3)))/2
    interp = MultiLabelInterpretation.from_preds(preds, targs)
    report,found = accuracy_report(preds, targs),best_thresholds(preds, targs, average='macro').table
    slices = compare_slices(preds, targs, [0,1]*30)
    others = [getattr(interp, f)() for f in ('empty','most_confused')]
    averages = [f'{o} avg' for o in ('micro','macro','weighted','samples')]
    printed = dict(
        metrics=[*multilabel_metrics(full=True, ranking=True).attrgot('name'), *paper_metrics(top_k=3).attrgot('name')],
        thresholds=[*found.columns, *found.index[:2], 'few positives', 'no positives', 'metric is undefined'],
        reports=[*report.columns, *report.index, *compare_models(dict(a=preds, b=preds), targs).columns[2:],
                 *interp.report().columns, *slices.columns, *slices.labels.columns, *chain(*others), *averages],
        callback=[*callback._COLUMNS], data=[*label_stats(targs, targs).columns])
    assert {*printed} | {'terms'}=={*reference}
    for page,names in printed.items():
        text = text_of(reference[page]).partition(docs.SIGNATURES)[0] + text_of(reference['terms'])
        assert not {*names} - {*re.findall(r'`([^`]*)`', text)} and names, page

def test_one_list_makes_glossary_and_columns(reference):
    "Each word of the page's glossary is defined once in the reference, in the same words"
    text = '\n'.join(text_of(cells).partition(docs.SIGNATURES)[0]+'\n' for cells in reference.values())
    for name,meaning in glossary().items():
        assert text.count(f"\n- `{name}`: {' '.join(meaning.split())}\n")==1, name
    assert 25<len(re.findall(r'(?m)^- [`*]', text_of(reference['terms'])))<38

def test_the_fields_of_a_record_exist(reference):
    y = np.eye(3, dtype=int).repeat(10, 0)
    part = text_of(reference['callback']).partition('## Fields of a record')[2].partition('\n## ')[0]
    rows = re.findall(r'(?m)^\| (`[^|]+) \|', part)
    fields = [o.strip(' `') for row in rows for o in row.split(',')]
    record = judge(0.9*y, y)
    assert len(fields)>12 and all(hasattr(record, o) for o in fields)

# Of each row of a table of messages, words that a user can search for
REMEDIES = {'thresholds-per-label': 'Use a threshold per label', 'another-threshold': 'Lower the threshold',
    'scores': 'Pass probabilities or logits instead',
    'thresholds-for-macro-f1': 'For macro F1, use a threshold per label',
    'more-samples': 'Collect more samples of these labels',
    'a-label-each': 'Predict at least one label per sample',
    'a-smaller-pos-weight': 'Use a smaller `pos_weight`', 'unfreezing': 'Train all layers',
    'another-loss': 'Use `loss_func=BCEWithLogitsLossFlat()`',
    'training': 'Train longer', 'overfits': 'Use fewer epochs, or more data',
    'a-better-model': 'Try another learning rate ..., or another model',
    'a-weighted-loss': 'As a last resort, weight positives in the loss'}
LOSS_ADVICE = {'loss-diverges': 'Use a lower learning rate', 'network-collapsed': 'Train again in a new Learner',
    'loss-falls': 'Train longer', 'ranking-improves': 'Train longer'}
PITFALLS = {
    'wrong-range': 'predictions all lie in [0, 1], so the model seems to end with a sigmoid',
    'two-sigmoids':
        'the metrics take the predictions for probabilities (sigmoid=False)',
    'fastai-metrics': "these metrics are fastai's",
    'other-metrics': 'a metric is a list or a dict',
    'one-class-loss': 'the loss function ... is for one class per sample or pixel',
    'no-validation': 'the validation set is empty',
    'no-labels': 'none of the ... validation samples has a label',
    'same-targets': 'all ... samples have the same labels',
    'one-class': 'the scores of each sample sum to 1',
    'binary-vocab': 'columns of zeros and ones are read as lists of labels',
    'single-letters': 'the labels are single letters',
    'wrong-separator': 'the labels have names such as ..., because ...',
    'absent-labels': 'no validation sample has ...',
    'ignored-in-training': 'the metrics ignore targets of ..., but the loss function ... trains on them',
    'tracked-upside-down': '... looks for the highest value, but lower is better',
    'tracked-validation': '... this `validate()` as an epoch of a fit',
    'monitor': 'by ..., which depends on the threshold, epoch ... was the best',
    'stale-threshold': 'the threshold was tuned before this training',
    'no-decoding': 'the loss function ... does not decode',
    'two-thresholds': '... but `predict` and `show_results` ...'}

HEADINGS = '---','message','the message says','other message','what helps','fact' # Of the tables' first columns

def test_every_message_is_explained(reference):
    text = text_of(reference['callback']).partition(docs.SIGNATURES)[0]
    for v in verdicts.VERDICTS:
        assert re.search(rf'(?m)^\| `{v.code}` \|.* \| {"yes" if v.flagged else "no"} \|$', text), v.code
    for o in records.FACTS: assert re.search(rf'(?m)^\| [^`].*`{o.code}` \|$', text), o.code
    trees = [ast.parse(o.read_text()) for o in (ROOT/'fastai_mlmetrics').rglob('*.py')]
    said = [o.value for tree in trees for o in ast.walk(tree) if isinstance(getattr(o, 'value', None), str)]
    def is_said(message):
        return all(any(o.strip() in s for s in said) for o in re.split(r'\.\.\.|fastai_mlmetrics', message))
    for table,words in ((remedies.REMEDIES,REMEDIES), (remedies.LOSS_ADVICE,LOSS_ADVICE), (pitfalls.PITFALLS,PITFALLS)):
        assert {o.code for o in table}=={*words}
        for code,o in words.items(): assert re.search(rf'\n\| {re.escape(o)} \|.*`{code}`.* \|\n', text), (code, o)
    for message in re.findall(r'(?m)^\| ((?!`)[^|]+) \|(?: [^|]+ \|){1,2}$', text):
        assert message in HEADINGS or is_said(message), message

def search(site):
    "The site's own search, without a browser: words -> pages, best first"
    js = pytest.importorskip('quickjs').Context()
    js.eval("""var window = globalThis, SPHINX_HIGHLIGHT_ENABLED = false, _ = o => o, _ready = () => {};
        var document = {addEventListener: () => {}, getElementById: () => null};
        window.addEventListener = document.addEventListener; window.location = {};""")
    static = [(site/'_static'/o).read_text() for o in ('searchtools.js','language_data.js')]
    for o in (*static, (site/'searchindex.js').read_text()):
        js.eval(o.replace('"use strict";', '').replace('const Search =', 'var Search ='))
    js.eval("""function found(words) {
        window.location.search = "?q=" + encodeURIComponent(words).replace(/%20/g, "+");
        return JSON.stringify(Search._performSearch(...Search._parseQuery(words)).reverse()); }""")
    find = js.get('found')
    return lambda words: [*dict.fromkeys(o[0].removeprefix('nbs/') for o in json.loads(find(words)))]

# What users look for, and the page that must be among the first three: page -> searches
SEARCHES = {
    'index': 'license; pip install',
    'tutorials/01_start': 'text classification; tabular multi-label; ULMFiT',
    'tutorials/02_fastbook':
        'accuracy multi always 0.95; high accuracy low F1; accuracy always 0.9 multilabel; accuracy_multi too high; '
        'fastbook chapter 6; PASCAL; logits or probabilities; sigmoid or softmax; keras accuracy',
    'tutorials/03_arrays': 'numpy arrays; xgboost',
    'howto/01_test_score':
        'leakage; test-time augmentation; tta; score on test set; same patient in train and test; prevalence; '
        'several images per patient; patient groups; groups; how many samples; validation set large enough; '
        'uncertainty',
    'howto/02_other_libraries': 'sklearn classification_report; torchmetrics; torchmetrics vs fastai',
    'howto/03_hugging_face': 'Hugging Face trainer; bert',
    'howto/04_loop_lightning_gpus':
        'pytorch lightning callback; several GPUs; gradient accumulation; validation out of memory; GPU memory; '
        'timm; PyTorch loop; callback in a plain loop; mixed precision; 10 million samples; slow validation',
    'howto/05_production':
        'export learner with thresholds; export without package; save model threshold; deploy; export model; use '
        'without fastai; docker fastapi; torchscript; thresholds with numpy; numpy thresholds; images in '
        'deployment; export ONNX thresholds; huggingface spaces',
    'howto/10_monitor_trackers':
        'resume from a checkpoint; training metrics; early stopping f1; wandb; weights & biases; save best model; '
        'reduce learning rate on plateau f1; stop early; stop early on F1 over samples; one column for a label; f1 '
        'per label during training; recall of one label; precision recall per class while training; '
        'TrialPruned; hyperparameter search optuna; sweep; my own logger; on_flag function; record fields; stop a '
        'bad run; stop training predicts nothing; silence a sweep; log to a file',
    'howto/12_wrong_labels': 'wrong labels; relabel; cleanlab; k-fold',
    'howto/14_other_shapes':
        'IoU segmentation; dice score segmentation; padding; sequence; segmentation mask; padded tokens; '
        'N x C x H x W; several outputs; multi-task model; model returns a tuple; two heads',
    'howto/15_no_internet_kaggle':
        'no internet; offline; ensemble of models average; submission CSV; predict new images; Kaggle '
        'submission; test folder to submission.csv',
    'howto/17_compare_models':
        "last week's model; save predictions; compare two models; compare with last week; last month's "
        'predictions; previous model; F1 difference 0.02; significance; fairness',
    'howto/22_no_label':
        'none of the above; negative images; '
        'samples without any label; from single-label to multi-label; only positive labels known; '
        'missing targets; ignore missing targets; unlabelled; unknown labels; ignore_index; roc auc only one class; '
        'roc auc nan; Only one class present in y_true',
    'howto/23_which_metric': 'which metric; micro vs macro f1; which metric do I report?',
    'howto/24_confusion_matrix': 'confusion matrix multi label; VOC 2007',
    'howto/25_rare_labels':
        'WeightedDL; weighted sampler; imbalanced dataset; probabilities are too high; Platt scaling; '
        'undo pos_weight; calibrate probabilities; calibrate; isotonic; temperature',
    'howto/29_choose_threshold':
        'costs of errors; costs of false positives and negatives; '
        'minimum precision per label; recall of 0.95; minimum recall; guarantee a recall; recall of one label, the '
        'others as they are; required precision; sensitivity at least 90%; mutually exclusive labels',
    'howto/30_predicts_nothing':
        'show_results no labels; accuracy 0.95 F1 0; predict returns empty; learn.predict returns an empty list; '
        'no tags predicted; f1 is zero; val f1 stays 0; show_results empty; predicts nothing; lr_find',
    'howto/31_csv_to_dataloaders':
        'csv to dataloaders; ImageDataLoaders several labels; tabular data several targets; one-hot; '
        'one hot encoded csv; label_delim; TextDataLoaders; load my csv; names with commas',
    'howto/32_fastai_errors':
        'error_rate; accuracy AssertionError; multilabel-indicator is not supported',
    'reference/01_metrics':
        'F0.5; logits probabilities; do metrics take logits; F1ScoreMulti; sample weights; hamming loss; '
        'accuracy_multi; balanced accuracy; specificity; matthews correlation; exact match ratio; subset accuracy; '
        'iou; score five of eighty labels; score some labels; subset of labels; mAP; precision at k; '
        'precision at 3; precision@3; top k; top-k accuracy; auc multilabel; 11-point; AccumMetric; custom metric; '
        'metrics that are not sums; show fewer metrics',
    'reference/02_thresholds':
        'at most two labels; always predict one label; per class threshold overfitting; which threshold; '
        'per label; pick threshold; best threshold; set_thresh; choose threshold; min_labels; '
        'max_labels; predict at least one label; top 3 labels; threshold for each class; optimal threshold f1; '
        'threshold too low; threshold per label by name; dict of thresholds',
    'reference/03_reports':
        'results as dataframe; interval threshold; statistically significant; bootstrap; jackknife; '
        'classification report like sklearn; HTML report; precision recall curve; which labels are confused; '
        'precision recall per class; wrong predictions csv; most wrong images; worst images; '
        'file names; save a plot; savefig; top losses; report to send',
    'reference/04_callback':
        'treat warnings as errors; raise error instead of warning; suppress warning; silence; quiet; '
        'warn once per run; turn off warnings; over-predicts; unfreeze; soft labels; predictions seem to be '
        'logits; targets must be 0 or 1; label smoothing; model predicts everything',
    'reference/05_data':
        'weight positives 3; split 60 20 20; one threshold for all folds; long tail distribution; stratified split; '
        'class weights; bce; focal loss; BCEWithLogitsLoss; iterative stratification; rare classes',
    'reference/06_terms': 'average to choose; held_out; baseline; glossary; false positives; what is lift',
    'benchmarks/results': 'overhead; GPU cost',
    'CONTRIBUTING': 'add a metric; how to contribute; run tests add a metric; build the site',
    'CHANGELOG': 'changelog',
    'RELEASING': 'release'}

# What newcomers type, and the page that must come first
FIRST = {
    'howto/01_test_score': 'my test set has more positives than reality',
    'howto/03_hugging_face': 'huggingface',
    'howto/04_loop_lightning_gpus': 'lightning',
    'howto/05_production': 'gradio; export; onnx',
    'howto/10_monitor_trackers': 'weights and biases; early stopping',
    'howto/12_wrong_labels': 'label noise; cross validation',
    'howto/14_other_shapes': 'segmentation',
    'howto/15_no_internet_kaggle': 'kaggle; ensemble',
    'howto/17_compare_models': 'f1 per hospital; which seed',
    'howto/22_no_label': 'missing labels; mixup; cutmix',
    'howto/24_confusion_matrix': 'confusion matrix',
    'howto/25_rare_labels': 'class imbalance; calibration; oversampling',
    'howto/29_choose_threshold': 'reset threshold; threshold per class',
    'howto/30_predicts_nothing': 'predict returns nothing; f1 is 0; learning rate finder',
    'howto/32_fastai_errors':
        '==: 32 640; Expected input batch_size to match target batch_size; '
        'was not included in the training dataset; object of type float has no len; unhashable type list; '
        'Target size must be the same as input size',
    'reference/01_metrics': 'mean average precision; hamming; exact match',
    'reference/03_reports': '500 classes; roc curve',
    'reference/04_callback': 'nan loss',
    'reference/05_data': 'pos_weight'}

@pytest.mark.slow
def test_the_built_site_finds_names_and_pages(tmp_path):
    assert docs.build(tmp_path/'site')==0
    read = lambda o: BeautifulSoup((tmp_path/'site'/o).read_text(), 'html.parser')
    find = search(tmp_path/'site')
    missed = {words: (page, find(words)[:5]) for page,searches in SEARCHES.items() for words in searches.split('; ')
              if page not in find(words)[:3]}
    assert not missed
    others = {words: (page, find(words)[:5]) for page,searches in FIRST.items() for words in searches.split('; ')
              if find(words)[:1]!=[page]}
    assert not others
    assert find('zqx')==[] and find('zqx Kaggle')==find('Kaggle') # A word of no page is ignored
    of_modules = [o.partition('/')[0] in docs.WINGS for o in find('CountsMetric')]
    assert not of_modules[0] and of_modules[-1] and of_modules==sorted(of_modules)
    assert 'CONTRIBUTING' not in find('test')[:5] # Who looks for a word wants to use the package, as a rule
    pages = re.findall(r'\]\((.+?)\): ', (tmp_path/'site'/'llms.txt').read_text())
    assert len(pages)>20 and all((tmp_path/'site'/o).exists() for o in pages)
    home = read('index.html')
    doors = [o['href'] for o in home.select('.doors a')]
    assert doors==['start.html','howto.html','reference.html']
    entries = [o.get_text() for o in home.select('.sidebar-tree a.reference')]
    assert len(entries)==len({*entries}) and {o for o,_,_ in docs.KINDS.values()} <= {*entries}
    reference = read('reference.html')
    assert reference.select('article a[href="genindex.html"]')
    names = [o.get_text() for o in reference.select('article td a')]
    assert {'F1ScoreMulti','best_thresholds','Learner.thresh_find'} <= {*names} and len(names)==len({*names})
    f1 = read('nbs/reference/01_metrics.html').find(id='fastai_mlmetrics.metrics.formulas.F1ScoreMulti').parent
    arguments = [o.get_text() for o in f1.select('tbody tr td:first-child')]
    assert arguments==[] # but in one table for all metrics
    table = read('nbs/reference/01_metrics.html').find(id='arguments-of-all-metrics').select('tbody tr td:first-child')
    explained = {name for o in table for name in o.get_text().split(', ')}
    assert {*inspect.signature(F1ScoreMulti).parameters} <= explained
    links = [o['href'] for o in read('nbs/metrics/02_formulas.html').select('article a.reference.internal')]
    shown = fastai_mlmetrics.all.__all__
    assert links and not any('../0' in o and o.rpartition('.')[2] in shown for o in links) # to the reference

def test_no_folder_of_others_is_emptied(tmp_path):
    (tmp_path/'mine').touch()
    with pytest.raises(SystemExit, match='holds something else'): docs.build(tmp_path)
    assert (tmp_path/'mine').exists()
