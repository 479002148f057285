"The site: its contents, and errors that must fail the build"
import ast, fastai_mlmetrics.all, json, runpy
from bs4 import BeautifulSoup
from types import ModuleType, SimpleNamespace
from helpers import *
from reference import *
from fastai_mlmetrics.diagnosis import callback, pitfalls, remedies, verdicts
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
    heading,directive,*_,text = re.split(r'\n\n', first['source'])
    assert heading=='### total' and directive.startswith('````{py:function} total(*args)\n')
    assert text=='As {py:obj}`total <m.total>`, *more*.' and other['source']=='### Other things'

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
    public = {k for k,o in vars(fastai_mlmetrics.all).items()
              if k[0]!='_' and getattr(o, '__module__', '').startswith('fastai_mlmetrics')}
    classes = dict(Learner=Learner, Recorder=Recorder, MultiLabelInterpretation=MultiLabelInterpretation)
    methods = {f'{cls}.{k}' for cls,o in classes.items() for k,m in vars(o).items()
               if k[0]!='_' and not hasattr(event, k) and getattr(m, '__module__', '').startswith('fastai_mlmetrics')}
    same = 'MultiLabelInterpretation.plot_confusion_matrix' # fastai's name
    assert len(names)==len({*names}) and not (public | methods) - {*names, same}
    for cells in reference.values(): # A heading, and nothing but its name
        assert all(re.match(r'### [\w.]+(\n\n|$)', c.source) for c in cells if c.source.startswith('###'))

def test_every_name_of_the_reference_has_a_use_and_a_line_that_runs(reference):
    for cells in reference.values():
        for c,after in zip(cells, [*cells[1:], cell('', 'markdown')]):
            if not (name := docs.subject(c)) or name=='ThreshFinder.compute': continue # whose line is above it
            assert re.search(r'\bUse (it|the)\b', c.source) and after.cell_type=='code', name

def test_the_reference_shows_signatures_and_arguments_without_the_site():
    cells = docs.all_cells()
    objects,_ = docs.documented_objects(cells)
    for o in docs.REFERENCE:
        names = [*filter(None, map(docs.subject, cells[o]))]
        if names: assert cells[o][-1].source==docs.signatures(names, objects), 'python tools/docs.py --signatures'

def test_signatures_say_once_what_several_names_share(module):
    text = docs.signatures(['Counter','total'], dict(Counter=module.Counter, total=module.total))
    assert '```python\n# Counts\nCounter(n=3, *, names=None, f=len)\n# Adds up\ntotal(*args)\n```' in text
    assert text.endswith('| `f` | What counts them |\n| `args` | Numbers |')
    assert docs.signatures(['a','b'], dict(a=module.total, b=module.total)).count('Numbers')==1
    def f(
        x # Another
    ): "Differs"
    def g(
        x # The same
    ): "As most"
    f.__module__ = g.__module__ = 'fastai_mlmetrics.made_up'
    text = docs.signatures(['C.a','C.b'], {'C.a': f, 'C.b': g})
    assert '| `x` of `a` | Another |' in text and '| `x` of `b` | The same |' in text
    text = docs.signatures([*'abcde'], dict(a=f, **dict.fromkeys('bcde', g))) # only the exception is named
    assert '| `x` of `a` | Another |' in text and '| `x` | The same |' in text

def text_of(cells): return '\n'.join(c.source for c in cells if c.cell_type=='markdown')

def test_every_column_is_explained(reference):
    rng = np.random.default_rng(0)
    targs = (rng.random((60, 3))<0.4).astype(int)
    preds = (targs + rng.random((60, 3)))/2
    interp = MultiLabelInterpretation.from_preds(preds, targs)
    tables = [accuracy_report(preds, targs), interp.report(), label_stats(targs, targs), imbalance_measures(targs),
              best_thresholds(preds, targs, average='macro').table]
    names = {*multilabel_metrics(full=True, ranking=True).attrgot('name'), *paper_metrics(top_k=3).attrgot('name')}
    names |= {o for table in tables for o in table.columns} | {*tables[0].index, *tables[3].index}
    names |= {*compare_models(dict(a=preds, b=preds), targs).columns} - {'a','b'}
    names |= {*callback._COLUMNS} | {o for f in ('empty','most_missed','most_confused') for o in getattr(interp, f)()}
    names |= {f'{o} avg' for o in ('micro','macro','weighted','samples')}
    names |= {'no threshold will do','few positives','predicts too often','no better held out'} # fallbacks
    shown = [data for c in reference['terms'] if c.cell_type=='code' for o in c.outputs
             for data in o.get('data', {}).get('text/markdown', ())]
    text = text_of(reference['terms']) + ''.join(shown)
    assert not names - {*re.findall(r'`([^`]*)`', text)} and len(names)>60
def test_one_list_makes_glossary_and_columns(reference):
    "Each word of the page's glossary is defined in the reference, from the same list"
    shown = [re.findall(r"'([^']+)'", c.source) for c in reference['terms'] if c.source.startswith('define(')]
    assert {*glossary()}=={o for names in shown for o in names}
    assert not {'baseline','constant','ceiling','lift','held_out','support'} & { # nor once more, in other words
        *re.findall(r'(?m)^(?:\| |- \*\*)`?(\w+)', text_of(reference['terms']))}

# Of each row of a table of messages, words that a user can search for
REMEDIES = {'thresholds-per-label': 'Thresholds per label', 'another-threshold': 'Another threshold',
    'scores': 'Another threshold', 'thresholds-for-macro-f1': 'Thresholds per label for macro F1',
    'more-samples': 'More samples with some labels', 'a-label-each': 'At least one label per sample',
    'a-smaller-pos-weight': 'A smaller `pos_weight`', 'unfreezing': 'Training all layers',
    'training': 'More training', 'a-better-model': 'A better model',
    'a-weighted-loss': 'Last resort: weight positives in the loss'}
LOSS_ADVICE = {'loss-diverges': 'A lower learning rate', 'network-collapsed': 'Another learning rate',
    'loss-falls': 'More training', 'ranking-improves': 'More training', 'overfits': 'Fewer epochs, or more data',
    'loss-is-flat': 'Another learning rate', 'loss-has-risen': 'A lower learning rate'}
PITFALLS = {
    'wrong-range': 'predictions all lie in [0, 1], so they seem to be probabilities already',
    'two-sigmoids':
        '`get_preds` and `predict` apply the sigmoid of the loss function ... '
        'to what the metrics take for probabilities',
    'fastai-metrics': "... fastai's own, not this package's",
    'no-labels': 'none of the ... validation samples has a label',
    'same-targets': 'all ... validation samples have the same labels',
    'labels-differ': 'the metrics score different labels',
    'binary-vocab': 'columns of zeros and ones are read as lists of labels',
    'single-letters': 'the labels are single letters',
    'absent-labels': 'no validation sample has ...',
    'ignored-in-training': 'the metrics ignore targets of ..., but the loss function ... trains on them',
    'tracked-upside-down': '... looks for the highest value, but lower is better',
    'tracked-validation': '... this `validate()` as an epoch of a fit',
    'monitor': 'by ..., which depends on the threshold, epoch ... was the best',
    'stale-threshold': 'the threshold was tuned before this training',
    'no-decoding': 'the loss function ... does not decode',
    'two-thresholds': '... but `predict` and `show_results` ...'}

def test_every_message_is_explained(reference):
    text = text_of(reference['messages'])
    for v in verdicts.VERDICTS: assert f'| `{v.name}` | {v.text} |' in text and v.flagged==bool(
        re.search(rf'(?m)^\| `{v.name}` .* yes \|$', text))
    trees = [ast.parse(o.read_text()) for o in (ROOT/'fastai_mlmetrics').rglob('*.py')]
    said = [o.value for tree in trees for o in ast.walk(tree) if isinstance(getattr(o, 'value', None), str)]
    def is_said(message):
        return all(any(o.strip() in s for s in said) for o in re.split(r'\.\.\.|fastai_mlmetrics', message))
    for table,words in ((remedies.REMEDIES,REMEDIES), (remedies.LOSS_ADVICE,LOSS_ADVICE), (pitfalls.PITFALLS,PITFALLS)):
        assert [o.code for o in table]==[*words]
        for code,o in words.items(): assert re.search(rf'\n\| {re.escape(o)} \|.*`{code}`.* \|\n', text), (code, o)
    for message in re.findall(r'(?m)^\| ([^|]+) \|(?: [^|]+ \|){1,2}$', text):
        assert message in ('---','message','the message says','other message','remedy') or is_said(message), message

def search(site):
    "The site's own search, without a browser: words -> pages, best first"
    js = pytest.importorskip('quickjs').Context()
    js.eval("""var window = globalThis, SPHINX_HIGHLIGHT_ENABLED = false, _ = o => o, _ready = () => {};
        var document = {addEventListener: () => {}, getElementById: () => null};
        window.addEventListener = document.addEventListener; window.location = {};""")
    static = [(site/'_static'/o).read_text() for o in ('language_data.js','searchtools.js')]
    for o in (*static, (site/'searchindex.js').read_text()):
        js.eval(o.replace('"use strict";', '').replace('const Search =', 'var Search ='))
    js.eval("""function found(words) {
        window.location.search = "?q=" + encodeURIComponent(words).replace(/%20/g, "+");
        return JSON.stringify(Search._performSearch(...Search._parseQuery(words)).reverse()); }""")
    find = js.get('found')
    return lambda words: [*dict.fromkeys(o[0].removeprefix('nbs/') for o in json.loads(find(words)))]

# What users look for, and the page that answers: index entries of the list `TERMS`, and words of their own
SEARCHES = {
    'F0.5': 'reference/01_metrics', 'Kaggle': 'howto/15_no_internet_kaggle',
    'no internet': 'howto/15_no_internet_kaggle',
    'offline': 'howto/15_no_internet_kaggle', 'overhead': 'benchmarks/results', 'GPU cost': 'benchmarks/results',
    'sweep': 'howto/13_own_logger_sweep', 'my own logger': 'howto/13_own_logger_sweep',
    'on_flag function': 'howto/13_own_logger_sweep', 'record fields': 'howto/13_own_logger_sweep',
    'stop a bad run': 'howto/13_own_logger_sweep', 'timm': 'howto/16_own_loop_timm',
    'PyTorch loop': 'howto/16_own_loop_timm', 'segmentation': 'howto/14_segmentation_sequences',
    'padding': 'howto/14_segmentation_sequences', 'sequence': 'howto/14_segmentation_sequences',
    'segmentation mask': 'howto/14_segmentation_sequences', 'padded tokens': 'howto/14_segmentation_sequences',
    'one column for a label': 'howto/10_monitor_trackers', 'ONNX': 'howto/05_production',
    'several images per patient': 'howto/19_groups', 'how many samples': 'howto/20_how_many_samples',
    'significance': 'howto/20_how_many_samples', 'large enough': 'howto/20_how_many_samples',
    'Platt scaling': 'howto/18_calibrate', 'undo pos_weight': 'howto/18_calibrate',
    'calibrate probabilities': 'howto/18_calibrate', 'images in deployment': 'howto/05_production',
    'AccumMetric': 'howto/09_own_metric',
    'metrics that are not sums': 'howto/09_own_metric', "last week's model": 'howto/17_compare_last_week',
    'save predictions': 'howto/17_compare_last_week', 'compare two models': 'howto/17_compare_last_week',
    'logits or probabilities': 'tutorials/03_whose_accuracy', 'logits probabilities': 'reference/01_metrics',
    'N x C x H x W': 'howto/14_segmentation_sequences', 'callback overhead': 'howto/11_processes_large_data',
    'GPU memory': 'howto/11_processes_large_data', 'do metrics take logits': 'reference/01_metrics',
    'recall of 0.95': 'howto/05_production', 'minimum recall': 'howto/05_production',
    'which threshold': 'reference/03_thresholds', 'which of three thresholds': 'reference/03_thresholds',
    'average to choose': 'reference/08_terms', 'show_results no labels': 'tutorials/02_forum_thread',
    'several GPUs': 'howto/11_processes_large_data',
    'interval threshold': 'reference/04_reports', '10 million samples': 'howto/11_processes_large_data',
    'mixed precision': 'howto/11_processes_large_data', 'which average': 'reference/08_terms',
    'per label': 'reference/03_thresholds', 'pick threshold': 'reference/03_thresholds',
    'best threshold': 'reference/03_thresholds', 'set_thresh': 'reference/03_thresholds',
    'held_out': 'reference/08_terms', 'baseline': 'reference/08_terms', 'glossary': 'reference/08_terms',
    'Hugging Face trainer': 'howto/03_hugging_face', 'Lightning': 'howto/04_lightning_pytorch',
    'missing targets': 'howto/08_missing_targets', 'stratified split': 'reference/07_data',
    'mAP': 'reference/02_ranking',
    'export without package': 'howto/05_production', 'F1ScoreMulti': 'reference/01_metrics',
    'HTML report': 'reference/06_interpretation', 'predicts nothing': 'reference/09_messages',
    'wrong labels': 'howto/12_wrong_labels', 'relabel': 'howto/12_wrong_labels', 'cleanlab': 'howto/12_wrong_labels',
    'accuracy 0.95 F1 0': 'tutorials/02_forum_thread', 'high accuracy low F1': 'tutorials/02_forum_thread',
    'predict returns empty': 'tutorials/02_forum_thread', 'model predicts no labels': 'reference/09_messages',
    'text classification': 'tutorials/05_tables_and_texts', 'save model threshold': 'howto/05_production',
    'slow validation': 'howto/11_processes_large_data', 'sample weights': 'reference/01_metrics',
    'mean average precision': 'reference/02_ranking', 'precision at k': 'reference/02_ranking',
    'top k': 'reference/02_ranking', 'choose threshold': 'reference/03_thresholds',
    'min_labels': 'reference/03_thresholds', 'max_labels': 'reference/03_thresholds',
    'predict at least one label': 'reference/03_thresholds', 'top 3 labels': 'reference/03_thresholds',
    'suppress warning': 'reference/05_learner', 'deploy': 'howto/05_production',
    'statistically significant': 'reference/04_reports', 'leakage': 'howto/01_test_score',
    'precision recall curve': 'reference/06_interpretation', 'which labels are confused': 'reference/06_interpretation',
    'stop training predicts nothing': 'howto/13_own_logger_sweep', 'patient groups': 'howto/19_groups',
    'ignore missing targets': 'howto/08_missing_targets',
    'resume from a checkpoint': 'howto/10_monitor_trackers', 'test-time augmentation': 'howto/01_test_score',
    'gradient accumulation': 'howto/11_processes_large_data', 'submission CSV': 'howto/21_submission',
    'predict new images': 'howto/21_submission', 'bootstrap': 'reference/04_reports',
    'jackknife': 'reference/04_reports', 'license': 'index', 'training metrics': 'howto/10_monitor_trackers',
    'k-fold': 'howto/12_wrong_labels', 'unlabelled': 'howto/08_missing_targets',
    'top-k accuracy': 'reference/02_ranking', 'over-predicts': 'reference/09_messages',
    'false positives': 'reference/08_terms', 'unfreeze': 'reference/09_messages',
    'soft labels': 'reference/09_messages', 'class weights': 'reference/07_data',
    'Kaggle submission': 'howto/21_submission', 'none of the above': 'howto/22_no_label',
    'which metric': 'howto/23_which_metric', 'confusion matrix': 'howto/24_confusion_matrix',
    'oversampling': 'howto/25_oversampling', 'WeightedDL': 'howto/25_oversampling',
    'costs of errors': 'howto/26_costs', 'hierarchical labels': 'howto/27_hierarchical_labels',
    'several outputs': 'howto/28_several_outputs', 'multi-task model': 'howto/28_several_outputs',
    'model returns a tuple': 'howto/28_several_outputs', 'two heads': 'howto/28_several_outputs',
    'export ONNX thresholds': 'howto/05_production', 'compare with last week': 'howto/17_compare_last_week',
    'predictions seem to be logits': 'reference/09_messages', 'targets must be 0 or 1': 'reference/09_messages'}

def test_index_entries_are_of_pages():
    pages = {str(o.relative_to(docs.NBS).with_suffix('')) for _,_,files in docs.KINDS.values() for o in files
             if o.suffix=='.ipynb'}
    assert {o.partition('#')[0] for o in docs.TERMS} <= pages | {'index','benchmarks/results'}

@pytest.mark.slow
def test_the_built_site_finds_names_and_pages(tmp_path):
    assert docs.build(tmp_path/'site')==0
    read = lambda o: BeautifulSoup((tmp_path/'site'/o).read_text(), 'html.parser')
    find = search(tmp_path/'site')
    missed = {words: find(words)[:5] for words,page in SEARCHES.items() if page not in find(words)[:3]}
    assert not missed
    of_modules = [o[0].isdigit() for o in find('predictions')]
    assert 0<len(of_modules)-sum(of_modules) and of_modules==sorted(of_modules) and 'CONTRIBUTING' not in find('test')
    home = read('index.html')
    doors = [o['href'] for o in home.select('.doors a')]
    assert doors==['start.html','howto.html','reference.html','explanations.html']
    entries = [o.get_text() for o in home.select('.sidebar-tree a.reference')]
    assert len(entries)==len({*entries}) and {o for o,_,_ in docs.KINDS.values()} <= {*entries}
    reference = read('reference.html')
    assert reference.select('article a[href="genindex.html"]')
    names = [o.get_text() for o in reference.select('article td a')]
    assert {'F1ScoreMulti','best_thresholds','Learner.thresh_find'} <= {*names} and len(names)==len({*names})
    f1 = read('nbs/reference/01_metrics.html').find(id='fastai_mlmetrics.metrics.formulas.F1ScoreMulti').parent
    arguments = [o.get_text() for o in f1.select('tbody tr td:first-child')]
    assert arguments==[*inspect.signature(F1ScoreMulti).parameters]
    links = [o['href'] for o in read('nbs/howto/09_own_metric.html').select('article a.reference.internal')]
    shown = {k for k,o in vars(fastai_mlmetrics.all).items() if getattr(o, '__module__', '').startswith('fastai_')}
    assert links and not any('../0' in o and o.rpartition('.')[2] in shown for o in links) # to the reference

def test_no_folder_of_others_is_emptied(tmp_path):
    (tmp_path/'mine').touch()
    with pytest.raises(SystemExit, match='holds something else'): docs.build(tmp_path)
    assert (tmp_path/'mine').exists()
