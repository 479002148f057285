"""Builds the site of README, tutorials, how-to pages and reference: `python tools/docs.py [FOLDER]` (build/site)

Made of the notebooks as they were saved; nothing in them is run. Below a heading `### NAME` of the reference and its
text, and below a cell that exports names, stands their documentation from the package. Any warning fails the build,
and so does a link within the site that leads nowhere. `--signatures` writes the signatures and arguments into the
notebooks of the reference, for who reads them elsewhere."""
import argparse, ast, inspect, json, re, shutil, sys, tempfile
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit
from bs4 import BeautifulSoup
from fastcore.docments import docments
from nbdev.process import NBProcessor
from nbdev.processors import clean_magics, hide_line, rm_header_dash, strip_ansi
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT/'nbs'
TUTORIALS,REFERENCE = (sorted(NBS.glob(f'{o}/[!_.]*.ipynb')) for o in ('tutorials','reference'))
# The how-to pages by task, as the lists show them: heading -> numbers of pages
TASKS = {'When something is wrong': '30 32',
         'Data and labels': '31 22 25 12',
         'Choose metrics and thresholds': '29 23',
         'Train': '10 04 14',
         'Evaluate and report': '01 17 24',
         'Save and predict': '05 15',
         'Other libraries': '02 03'}
HOWTO = [o for numbers in TASKS.values() for n in numbers.split() for o in NBS.glob(f'howto/{n}_*.ipynb')]
# The wings of the package, from the ground up, with what they hold: the bold rows of the table in CONTRIBUTING.md
WINGS = dict(re.findall(r'(?m)^\| \*\*`nbs/(\w+)/`\*\* \| \*\*(.+)\*\* \|$',
                        (ROOT/'CONTRIBUTING.md').read_text(encoding='utf-8')))
ROOMS = {o: sorted((NBS/o).glob('[0-9]*.ipynb')) for o in WINGS}
MODULES = [*sum(ROOMS.values(), []), NBS/'demo.ipynb']
# What stands above a page in its list
HEADINGS = ({ROOMS[wing][0]: f'{wing}\n\n{what[0].upper()}{what[1:]}.' for wing,what in WINGS.items()}
            | {first: task for task,numbers in TASKS.items() for first in NBS.glob(f'howto/{numbers[:2]}_*.ipynb')}
            | {NBS/'demo.ipynb': 'On top'})
PAGES = [*sorted(ROOT.glob('benchmarks/*.md')), *(ROOT/f'{o}.md' for o in ('CONTRIBUTING','RELEASING','CHANGELOG'))]
UNSEARCHED = MODULES # Of those who change the package
FILES = [*PAGES, *ROOT.glob('benchmarks/*.png'), *NBS.glob('images/*.png')]

# The kinds of pages, each with a page that lists them: file -> title, what for, pages
KINDS = dict(
    start=('Start', 'Train, read the message, tune, test.', TUTORIALS),
    howto=('How to', 'One task per page, with code to copy.', HOWTO),
    reference=('Reference', 'Each name, column and message.', REFERENCE),
    making=('How it is made', 'For contributors: the notebooks that the package is generated from, with the '
            'source folded, and benchmarks.', [*MODULES, *PAGES]))

# Words of users that are not in the titles, for the search: it matches them word by word. Page or section -> phrases
TERMS = {
    'index': 'getting started, quick start, pip install, installation',
    'tutorials/01_start#texts-and-tables': 'text classification, ULMFiT, tabular multi-label',
    'tutorials/02_fastbook': 'high accuracy low F1, accuracy always 0.9, accuracy always 0.95, '
        'accuracy too high, PASCAL',
    'tutorials/02_fastbook#whose-accuracy-fastai-keras-and-scikit-learn': 'categorical_crossentropy',
    'tutorials/02_fastbook#logits-and-probabilities': 'logits or probabilities, sigmoid or softmax',
    'tutorials/03_arrays': 'numpy arrays, without fastai',
    'howto/01_test_score': 'test set, final score, leakage, test-time augmentation, TTA, unbiased score',
    'howto/01_test_score#several-images-per-patient': 'groups, grouped data, patients, clustered samples, '
        'independent samples, frames of a video, same patient in train and test',
    'howto/01_test_score#my-test-set-has-more-positives-than-reality': 'prevalence, prior shift, enriched test set, '
        'balanced test set, label shift, frequencies',
    'howto/01_test_score#how-many-samples': 'validation set large enough, sample size, uncertainty, '
        'which label needs more data, collect more data',
    'howto/02_other_libraries': 'sklearn classification_report, torchmetrics vs fastai',
    'howto/02_other_libraries#notes': 'torchmetrics value in the training table',
    'howto/03_hugging_face': 'huggingface, BERT, transformers',
    'howto/04_loop_lightning_gpus': 'callback in a plain loop, DDP, LightningModule, Lightning, out of memory, '
        '10 million samples, gradient accumulation, slow validation, GPU memory',
    'howto/04_loop_lightning_gpus#several-gpus-in-fastai': 'multiple GPUs, multi-GPU, two GPUs, T4 x2, accelerate, '
        'distributed training',
    'howto/04_loop_lightning_gpus#mixed-precision-and-memory': 'fp16, half precision, bf16',
    'howto/05_production': 'production, inference, serve, server, deploy, Docker, FastAPI, TorchScript, '
        'export model, save model threshold, images in deployment, Gradio, ONNX, Hugging Face Spaces, '
        'huggingface spaces',
    'howto/05_production#export-load_learner-with-this-package-or-with-fastai-alone': 'export learner, export, '
        'without package',
    'howto/05_production#with-numpy-alone': 'numpy thresholds, thresholds with numpy, without fastai',
    'howto/10_monitor_trackers': 'stop early, early stopping, save best model, checkpoint, resume from a checkpoint, '
        'metrics on the training set, ReduceLROnPlateau, reduce learning rate on plateau, wandb, Weights and Biases, '
        'Weights & Biases, Optuna, prune, TrialPruned, hyperparameter search, my own logger, silence a sweep, '
        'log to a file, TensorBoard',
    'howto/10_monitor_trackers#monitor-one-label':
        'one column for a label, F1 per label during training, recall of one label, '
        'precision and recall per class while training',
    'howto/10_monitor_trackers#a-function-for-on_flag': 'on_flag function',
    'reference/04_callback#fields-of-a-record': 'record fields',
    'howto/12_wrong_labels': 'label noise, noisy labels, relabel, cleanlab, k-fold cross-validation, '
        'cross validation',
    'howto/14_other_shapes': 'padding, tokens, pixels, sequence, segmentation',
    'howto/14_other_shapes#segmentation-b-x-c-x-h-x-w': 'N x C x H x W, NxCxHxW, NCHW, Dice score, '
        'IoU of a segmentation',
    'howto/14_other_shapes#several-outputs-or-targets': 'multiple outputs, several targets, multi-task, multitask, '
        'two heads, multi-head, tuple of outputs, model returns a tuple',
    'howto/15_no_internet_kaggle': 'air-gapped, offline, submission CSV, Kaggle submission, predict new images, '
        'sample submission, file names of predictions, ensemble of models, ensemble, ensembling, average of folds',
    'howto/17_compare_models': "last week's model, last month's predictions, old predictions, previous model, "
        'A/B test, compare two checkpoints, statistically significant, significance, difference of 0.02, '
        'save predictions',
    'howto/17_compare_models#was-it-the-seed': 'which seed, random seed, lucky seed, several runs, '
        'variance of training',
    'howto/17_compare_models#f1-per-hospital-for-whom-does-it-fail': 'F1 per hospital, F1 per site, per camera, '
        'by age, by sex, fairness, demographic bias, subgroup, score by slice',
    'howto/22_no_label': 'no finding, background images, negative images, '
        'from single-label to multi-label, multi-class to multi-label, '
        'empty labels, samples without any label, missing targets, missing labels, unlabelled, unlabeled, '
        'unknown labels, only positives known, value -1, mixup, cutmix, validation set without a label, split, '
        'ROC AUC is nan, ROC AUC one class, only one class is present in y_true, undefined metric',
    'howto/23_which_metric': 'which metric, choose a metric, F1 or mAP, micro vs macro F1',
    'howto/24_confusion_matrix': 'multilabel confusion matrix, savefig',
    'howto/24_confusion_matrix#results-table-for-a-paper': 'mAP CP CR CF1, PASCAL VOC 2007, 11-point average precision',
    'howto/25_rare_labels': 'class imbalance, WeightedRandomSampler, WeightedDL, weighted sampler, '
        'imbalanced data set, imbalanced dataset, balanced sampling, oversampling, pos_weight, undersampling, '
        'long tail',
    'howto/25_rare_labels#calibration-probabilities-after-pos_weight': 'calibration, calibrate probabilities, '
        'isotonic regression, temperature scaling, scores are not probabilities, probabilities too high, '
        'undo pos_weight, Platt scaling, make scores calibrated',
    'howto/29_choose_threshold': 'cost-sensitive, reset threshold, back to 0.5, threshold per class, '
        'recall of 0.95, minimum recall, target recall, fixed recall, sensitivity of 90%, '
        'recall of one label and the others as they are',
    'howto/29_choose_threshold#a-required-recall-or-precision': 'minimum precision',
    'howto/29_choose_threshold#labels-that-exclude-each-other':
        'mutually exclusive labels, exclusive groups, clear cloudy haze',
    'howto/30_predicts_nothing': 'show_results without labels, predict returns nothing, predict returns empty list, '
        'no tags predicted, empty predictions, F1 is zero, F1 is 0, F1 stays 0, unfreeze, learning rate finder',
    'howto/31_csv_to_dataloaders': 'ImageDataLoaders, TextDataLoaders, TabularDataLoaders, TabularPandas, DataBlock, '
        'label_delim, label_col, y_block, MultiCategoryBlock, several targets in a table, one-hot columns of a CSV, '
        'columns of 0/1, load my data, valid_idx, valid_col, names with commas',
    'howto/32_fastai_errors': 'error_rate fails, accuracy fails, AssertionError, KeyError, shape mismatch, '
        'Exception occured in Recorder when calling event after_batch, 0D or 1D target tensor expected multi-target '
        'not supported, target size must be the same as input size, not included in the training dataset red_4 red_5',
    'reference/01_metrics#a-metric-of-your-own': 'custom metric, AccumMetric, metrics that are not sums, median',
    'reference/01_metrics#jaccardmulti': 'IoU, intersection over union',
    'reference/01_metrics#fbetamulti': 'F0.5, F2, F-beta',
    'reference/01_metrics#arguments-of-all-metrics': 'do metrics take logits or probabilities, sample weights, '
        'score some labels, score five of eighty labels, subset of labels, select labels, exclude labels',
    'reference/01_metrics#apscoremulti': 'mean average precision, VOC 2007, 11-point average precision',
    'reference/01_metrics#rocaucmulti': 'AUC multilabel, AUROC',
    'reference/01_metrics#precisionatk': 'top k, top-k accuracy, precision at k, precision at 3, precision@3',
    'reference/02_thresholds': 'which threshold, threshold per label, threshold for each class, best threshold, '
        'optimal threshold for F1, choose threshold, cut-off, threshold too low, threshold overfitting',
    'reference/02_thresholds#learnerset_thresh':
        'min_labels, predict at least one label, always predict one label, max_labels, at most two labels, '
        'top 3 labels, limit number of labels, '
        'threshold of each label by name, dict of thresholds, thresholds after more training',
    'reference/02_thresholds#learnerthresh_find':
        'which threshold to set, best or per_label',
    'reference/03_reports#accuracy_report': 'confidence interval, interval threshold, bootstrap, jackknife, '
        'results as a DataFrame',
    'reference/01_metrics#multilabel_metrics': 'fewer columns in the training table, fewer metrics',
    'reference/03_reports#compare_models': 'statistically significant, p-value',
    'reference/03_reports#multilabelinterpretationreport': '500 classes, many classes, hundreds of labels, 1000 labels',
    'reference/03_reports#multilabelinterpretationplot_roc': 'ROC curve',
    'reference/01_metrics#hamminglossmulti': 'Hamming, Hamming score',
    'reference/01_metrics#subsetaccuracy': 'exact match, exact match ratio',
    'reference/04_callback#zerolabelscallback': 'quiet, warn once per run, one warning per fit, '
        'too many warnings, patience, warning every epoch, warn at the end',
    'reference/04_callback#zerolabelserror': 'error instead of warning',
    'reference/04_callback#learnerevaluate': 'learn.validate, validate a test set',
    'reference/04_callback#zerolabelswarning': 'suppress, disable or silence a warning, turn off warnings, '
        'treat warnings as errors',
    'reference/03_reports':
        'precision and recall per class, which labels are confused, wrong images, HTML report',
    'reference/03_reports#multilabelinterpretationprint_classification_report': 'classification report sklearn',
    'reference/03_reports#plots': 'save a plot, save a figure, savefig',
    'reference/03_reports#multilabelinterpretationitems': 'file names, wrong predictions to CSV',
    'reference/03_reports#multilabelinterpretationplot_top_losses':
        'top losses, worst images, ten most wrong images, hardest samples',
    'reference/05_data#labels': 'rare classes, long tail distribution',
    'reference/03_reports#multilabelinterpretationto_html': 'report to send, report for a colleague',
    'reference/05_data#splitting': 'iterative stratification, three parts, 60 20 20',
    'reference/05_data#stratified_folds': 'k-fold cross-validation, kfold, one threshold for all folds',
    'reference/05_data#losses':
        'BCE, BCEWithLogitsLoss, class weights, rare labels loss, focal loss, asymmetric loss',
    'reference/05_data#bcewithlogitslossflat': 'weight positives by 3, weighted BCE',
    'reference/06_terms': 'what a column means',
    'reference/04_callback#what-can-be-wrong': 'model predicts nothing, model predicts no labels, over-predicts, '
        'predicts too many labels, model predicts everything',
    'reference/04_callback#what-helps': 'unfreeze, frozen layers',
    'reference/04_callback#common-errors': 'NaN loss, loss is nan, soft labels, label smoothing, '
        'targets must be 0 or 1',
    'reference/06_terms#counts': 'false positives, false negatives',
    'reference/06_terms#evaluation': 'held_out',
    'reference/06_terms#which-average': 'which average to choose, macro or micro',
    'reference/06_terms#baselines': 'chance level, what is lift, lift over predicting nothing',
    'benchmarks/results': 'overhead, GPU cost, slow, speed, runtime, how long does it take',
    'CONTRIBUTING': 'how to contribute, pull request, run the tests, add a metric, build the site',
    'RELEASING': 'release to PyPI', 'CHANGELOG': "what's new"}

config = ConfigParser(interpolation=None)
config.read(ROOT/'settings.ini', encoding='utf-8')
settings = config['DEFAULT']

def read(notebook):
    "The notebook's cells after nbdev's processing, each with its directives"
    nb = NBProcessor(notebook, procs=[hide_line, strip_ansi, clean_magics, rm_header_dash], process=True).nb
    return [o for o in nb.cells if o.source.strip() and not {'hide','default_exp'} & {*o.directives_}]

def defined(cell):
    "The public functions, classes and class methods of an exported cell; `Learner.thresh_find` where it is patched in"
    for o in ast.parse(cell.source).body:
        if isinstance(o, ast.Assign) and ast.unparse(o.value).startswith('_function_of('): yield o.targets[0].id
        if not isinstance(o, (ast.FunctionDef,ast.ClassDef)) or o.name[0]=='_': continue
        patch = any(ast.unparse(d).startswith('patch') for d in o.decorator_list)
        owner = ast.unparse(o.args.args[0].annotation) if patch else None
        yield f'{owner}.{o.name}' if patch else o.name
        for m in o.body if isinstance(o, ast.ClassDef) else ():
            if 'classmethod' in map(ast.unparse, getattr(m, 'decorator_list', [])): yield f'{o.name}.{m.name}'
            # A function that is a method: `plot_roc = plot_roc`
            is_method = isinstance(m, ast.Assign) and isinstance(m.value, ast.Name) and m.targets[0].id[0]!='_'
            if is_method: yield f'{o.name}.{m.targets[0].id}'

WIDTH = 90 # Of a signature in one line; if it is longer, each argument has a line

def arguments(docs):
    "List the arguments that `docs` documents, with their defaults"
    star = {inspect.Parameter.VAR_POSITIONAL: '*', inspect.Parameter.VAR_KEYWORD: '**'}
    res = []
    for k,v in docs.items():
        if v.kind is v.kind.KEYWORD_ONLY and not any(o[0]=='*' for o in res): res.append('*')
        value = getattr(v.default, '__name__', type(v.default).__name__) if callable(v.default) else repr(v.default)
        res.append(star.get(v.kind, '')+k + ('' if v.default is inspect._empty else f'={value}'))
    return res

def signature(docs): return f"({', '.join(arguments(docs))})"

def wrapped(name, docs):
    "The signature, with a line for each argument if one line is too short"
    line = name+signature(docs)
    return line if len(line)<=WIDTH else '\n'.join([f'{name}(', *(f'    {o},' for o in arguments(docs)), ')'])

def table(docs, returns):
    "The arguments in a table, and what is returned"
    def kind(o): # a default of None says nothing
        if o in (inspect._empty, None, type(None)): return ''
        return f"`{o.__name__ if isinstance(o, type) else str(o).replace('typing.', '')}`"
    rows = [(f'`{k}`', v) for k,v in docs.items() if v.docment] # The signature has the others
    rows += [('**returns**', o) for o in returns if o.docment]
    def text(o): return re.sub(r'\s+', ' ', o or '').replace('|', r'\|')
    cells = [map(text, (name, kind(v.anno), v.docment)) for name,v in rows]
    return ['| | Type | |', '|---|---|---|', *(f"| {' | '.join(o)} |" for o in cells)] if cells else []

def module_of(o): return getattr(o, 'fget', o).__module__ # A property has none itself
def doc_of(o): return (inspect.getdoc(o) or '').partition('\n\nArguments:')[0] # These have a table
def summary_of(o): return doc_of(o).partition('\n\n')[0]

def documentation(o, name):
    "The kind of `o`, and its arguments and `return` as docments, those of this package only"
    is_class,is_prop,is_cls_method = isinstance(o, type),isinstance(o, property),inspect.ismethod(o)
    f = o.__init__ if is_class else o.fget if is_prop else o.__func__ if is_cls_method else o
    ours = getattr(f, '__module__', '').startswith(settings['lib_name'])
    docs = {k: v for k,v in docments(f, full=True, args_kwargs=True).items() if k not in ('self','cls')} if ours else {}
    for k,text in getattr(o, 'argument_texts', {}).items(): docs[k].docment = text
    return 'class' if is_class else 'property' if is_prop else 'method' if '.' in name else 'function',docs

def in_table(o, docs):
    "The arguments to explain: of a metric, those that the table of all metrics lacks, or that differ"
    if not hasattr(o, 'argument_texts'): return docs
    usual = documentation(import_module(f"{settings['lib_name']}.metrics.formulas").F1ScoreMulti, 'F1ScoreMulti')[1]
    return {k: v for k,v in docs.items() if k not in usual or v.docment!=usual[k].docment}

def documented(o, name, *options, text=None):
    "A signature, the docstring or `text`, and a table of the arguments, as a directive of Sphinx"
    kind,docs = documentation(o, name)
    returns = [docs.pop('return')] if 'return' in docs else []
    return '\n'.join([f"````{{py:{kind}}} {name}{'' if kind=='property' else signature(docs)}",
                      f':module: {module_of(o)}', *[':classmethod:']*inspect.ismethod(o), *options, '',
                      doc_of(o) if text is None else text, '',
                      *table(in_table(o, docs), returns), '````'])

def linked(text, names):
    "`text` with the public names in it linked to where they are documented"
    parts = re.split(r'(?ms)(^```.*?^```|\[[^\]]*\]\([^)]*\)|^#.*?$)', text)
    link = lambda m: f'{{py:obj}}`{m[1]} <{names[m[1]]}>`' if m[1] in names else m[0]
    return ''.join(o if i%2 else re.sub(r'(?<!`)`([\w.]+)(?:\(\))?`(?!`)', link, o) for i,o in enumerate(parts))

SIGNATURES = '## Signatures and arguments'

def signatures(names, objects):
    "The signature and a table of the arguments of each name, folded"
    parts = [SIGNATURES]
    for name in names:
        docs = documentation(objects[name], name)[1]
        returns = [docs.pop('return')] if 'return' in docs else []
        summary = re.sub('`([^`]*)`', r'<code>\1</code>', summary_of(objects[name]))
        parts += [f'<details><summary><code>{name}</code>: {summary}</summary>',
                  f'```python\n{wrapped(name, docs)}\n```', '\n'.join(table(in_table(objects[name], docs), returns)),
                  '</details>']
    return '\n\n'.join(filter(None, parts))

def subject(cell):
    "The name that a cell of the reference documents; None: it documents none"
    found = re.match(r'### ([\w.]+)$', cell.source, re.M) if cell.cell_type=='markdown' else None
    return found and found[1]

def page(cells, names, objects, elsewhere=None):
    "The notebook that MyST-NB reads; `elsewhere`: names that another page documents; None: all are documented here"
    res = []
    def add(kind, source, outputs=(), tags=()):
        extra = dict(outputs=list(outputs), execution_count=None) if kind=='code' else {}
        res.append(dict(cell_type=kind, source=source, metadata=dict(tags=list(tags)), **extra))
    for c in cells:
        if elsewhere is None and (name:=subject(c)):
            heading,_,text = c.source.partition('\n\n')
            summary = summary_of(objects[name]) # The page says the rest
            doc = documented(objects[name], name, ':no-contents-entry:', text=summary)
            add('markdown', f'{heading}\n\n{linked(text, names)}\n\n{doc}')
        elif c.cell_type=='markdown': add('markdown', linked(c.source, names))
        elif {'export','exporti'} & {*c.directives_}:
            if all(isinstance(o, (ast.Import,ast.ImportFrom)) for o in ast.parse(c.source).body): continue
            if 'export' in c.directives_: # Not of internals, which are `exporti`
                for name in defined(c):
                    link = f'{{py:obj}}`{name} <{names.get(name)}>`: {summary_of(objects[name])}'
                    add('markdown', link if name in elsewhere else documented(objects[name], name))
            add('code', c.source, c.outputs, ['hide-input'])
        else: add('code', c.source, c.outputs, ['remove-input'] if c.directives_.get('echo')=='false' else [])
    kernel = dict(name='python3', display_name='Python 3', language='python')
    return dict(cells=res, metadata=dict(kernelspec=kernel), nbformat=4, nbformat_minor=4)

def slug(title): return re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') # As MyST makes its anchors

def indexed(nb, page):
    "Put the index entries of `page` after their headings"
    for place,words in TERMS.items():
        name,_,section = place.partition('#')
        if name!=page: continue
        entries = '```{index} ' + ', '.join(f'! {o.strip()}' for o in words.split(',')) + '\n```'
        for c in nb['cells']:
            if c['cell_type']!='markdown': continue
            lines = c['source'].split('\n')
            found = [i for i,o in enumerate(lines) if o[:1]=='#' and section in ('', slug(o.lstrip('# ')))]
            if not found: continue
            after = found[0]+1
            c['source'] = '\n'.join([*lines[:after], '', entries, '', *lines[after:]])
            break
        else: sys.exit(f'{place} has no such section')

def toctree(files, *options):
    return '\n'.join(['```{toctree}', ':hidden:', *options, '', *map(str, files), '```'])

def contents(kind, cells, names, objects):
    "The page that lists the pages of a kind; for the reference also all names, by task"
    title,text,files = KINDS[kind]
    pages,tables = [],[]
    for o in files:
        if o in HEADINGS: pages.append(f'\n## {HEADINGS[o]}\n')
        first = cells[o][0].source if o in cells else o.read_text(encoding='utf-8')
        link = f'[{re.match("# (.*)", first)[1]}]({o.relative_to(ROOT)})'
        summary = re.search(r'^> (.*)', first, re.M)
        pages.append(f'- {link}' + (f': {summary[1]}' if summary else ''))
        rows = [f'| {{py:obj}}`{n} <{names[n]}>` | {summary_of(objects[n])} |'
                for n in filter(None, map(subject, cells.get(o, ())))] if kind=='reference' else []
        if rows: tables += [f'## {link}', '\n'.join(['| name | |', '|---|---|', *rows])]
    index = ['All names by task; {ref}`by letter <genindex>`.'] if tables else []
    tree = toctree([o.relative_to(ROOT).with_suffix('') for o in files], ':titlesonly:')
    return '\n\n'.join([f'# {title}', text, '\n'.join(pages), *index, *tables, tree])

DOORS = '\n'.join(['```{container} doors', *(f'- [**{title}**]({k}.md) {text}' for k,(title,text,_) in
                                           [*KINDS.items()][:3]), '```'])

def all_cells(): return {o: read(o) for o in [NBS/'index.ipynb', *HOWTO, *TUTORIALS, *REFERENCE, *MODULES]}

def module_name(notebook):
    "`fastai_mlmetrics.core.inputs` of `nbs/core/00_inputs.ipynb`"
    wing,room = notebook.parent.relative_to(NBS).parts,re.sub(r'^\d\d_', '', notebook.stem)
    return '.'.join((settings['lib_name'], *wing, room))

def documented_objects(cells):
    "All names that modules export or the reference documents, with their objects; and those of the reference"
    modules = {o: import_module(module_name(o)) for o in MODULES}
    import_module(f"{settings['lib_name']}.all") # which completes what `help` and signatures show
    scope = {k: v for module in modules.values() for k,v in vars(module).items()}
    documents = [name for o in REFERENCE for name in filter(None, map(subject, cells[o]))]
    objects = {name: eval(name, scope | vars(modules[o])) for o in MODULES for c in cells[o]
               if 'export' in c.directives_ for name in defined(c)}
    return objects | {name: eval(name, scope) for name in documents if name not in objects},documents

def write_signatures():
    "Replace or add the last cell of each notebook of the reference"
    cells = all_cells()
    objects,_ = documented_objects(cells)
    for o in REFERENCE:
        nb,names = json.loads(o.read_text(encoding='utf-8')),[*filter(None, map(subject, cells[o]))]
        if not names: continue
        kept = [c for c in nb['cells'] if not ''.join(c['source']).startswith(SIGNATURES)]
        text = signatures(names, objects).splitlines(keepends=True)
        nb['cells'] = [*kept, dict(cell_type='markdown', id='signatures', metadata={}, source=text)]
        o.write_text(json.dumps(nb, indent=1, ensure_ascii=False, sort_keys=True)+'\n', encoding='utf-8')

def sources(folder):
    "Write what Sphinx reads, laid out as the repository is, so that relative links hold in both"
    cells = all_cells()
    objects,documents = documented_objects(cells)
    names = {k: f'{module_of(o)}.{k}' for k,o in objects.items()}
    links = names | {k.replace('Learner.', 'learn.'): v for k,v in names.items()}
    for o,found in cells.items():
        dest = folder/('index.ipynb' if o.stem=='index' else o.relative_to(ROOT))
        dest.parent.mkdir(parents=True, exist_ok=True)
        if o in REFERENCE: found = [c for c in found if not c.source.startswith(SIGNATURES)] # which are in place
        nb = page(found, links, objects, documents if o in MODULES else None)
        indexed(nb, str(o.relative_to(NBS).with_suffix('')))
        if o.stem!='index': # the front page is one folder higher here
            for c in nb['cells']: c['source'] = re.sub(r'\]\(((\.\./)*index\.ipynb)', r'](../\1', c['source'])
        else:
            def list_of(m): return f"({m[1].replace('-', '')}.md)" # the site has a page for each list of pages
            for c in nb['cells']: c['source'] = re.sub(r'\(nbs/README\.md#([\w-]+)\)', list_of, c['source'])
            nb['cells'].insert(1, dict(cell_type='markdown', metadata={}, source=DOORS))
            nb['cells'].append(dict(cell_type='markdown', metadata={}, source=toctree(KINDS)))
        dest.write_text(json.dumps(nb), encoding='utf-8')
    for kind in KINDS: (folder/f'{kind}.md').write_text(contents(kind, cells, names, objects), encoding='utf-8')
    (folder/'_static').mkdir()
    shutil.copy(ROOT/'tools'/'docs.css', folder/'_static')
    for o in FILES:
        (folder/o.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(o, folder/o.relative_to(ROOT))
    for o in PAGES:
        source = re.sub(r'\(nbs/README\.md#how-it-is-made\)', '(making.md)', o.read_text(encoding='utf-8'))
        text = dict(cell_type='markdown', source=source)
        indexed(dict(cells=[text]), str(o.relative_to(ROOT).with_suffix('')))
        (folder/o.relative_to(ROOT)).write_text(text['source'], encoding='utf-8')

CONF = dict(
    project=settings['lib_name'], author=settings['author'], version=settings['version'],
    extensions=['myst_nb','sphinx_copybutton'], nb_execution_mode='off', nb_render_markdown_format='myst',
    nb_code_prompt_show='Source', nb_code_prompt_hide='Source',
    myst_heading_anchors=3, nitpicky=True, add_module_names=False, toc_object_entries_show_parents='hide',
    copybutton_selector='div.cell_input pre, div.highlight-sh pre, div.highlight-python pre',
    html_theme='furo', html_static_path=['_static'], html_css_files=['docs.css'],
    html_search_scorer=str(ROOT/'tools'/'search.js'),
    html_title=f"{settings['lib_name']} {settings['version']}", html_copy_source=False,
    html_show_sphinx=False, html_show_copyright=False,
    html_baseurl=settings.get('doc_host', ''))

def broken_links(site):
    "The links within the built `site` that lead nowhere"
    pages = {o: BeautifulSoup(o.read_text(encoding='utf-8'), 'html.parser') for o in site.rglob('*.html')}
    ids = {o: {t.get('id') for t in page.find_all(id=True)} for o,page in pages.items()}
    for file,page in pages.items():
        for tag in page.find_all(['a','img','link','script']):
            url = urlsplit(tag.get('href') or tag.get('src') or '')
            if url.scheme or url.netloc: continue
            dest = (file.parent/unquote(url.path)).resolve() if url.path else file
            if not dest.exists() or (url.fragment and dest in ids and unquote(url.fragment) not in ids[dest]):
                yield f'{file.relative_to(site)}: {url.geturl()}'

def leave_out(app, env):
    "Keep module notebooks out of the search: who looks for a word wants to use the package"
    for o in UNSEARCHED: env.metadata[str(o.relative_to(ROOT).with_suffix(''))]['nosearch'] = ''

def break_names(app, page, template, context, doctree):
    "Let a line begin after the class in a method's name, in headings and code"
    if doctree: context['body'] = re.sub(r'(<(?:h3|span class="pre")>[A-Z]\w+\.)(?=\w+<)', r'\1<wbr>', context['body'])

def build(site):
    "Build the site into the folder `site`; the number of problems"
    if site.exists():
        if not (site/'.buildinfo').exists(): sys.exit(f'{site} holds something else: give another folder')
        shutil.rmtree(site)
    with tempfile.TemporaryDirectory() as tmp:
        sources(src := Path(tmp).resolve()/'src')
        app = Sphinx(src, None, site, Path(tmp)/'doctrees', 'html', CONF, status=None, warningiserror=True)
        app.connect('env-updated', leave_out)
        app.connect('html-page-context', break_names)
        app.build()
    text = (NBS/'llms.txt').read_text(encoding='utf-8')
    (site/'llms.txt').write_text(re.sub(r'\]\((\S+)\.ipynb', r'](nbs/\1.html', text), encoding='utf-8')
    broken = sorted({*broken_links(site)})
    for o in broken: print(f'broken link in {o}', file=sys.stderr)
    return app.statuscode or len(broken)

if __name__=='__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('site', nargs='?', type=Path, default=ROOT/'build'/'site', help='the folder to build into')
    parser.add_argument('--signatures', action='store_true', help='write the signatures into the reference instead')
    args = parser.parse_args()
    if args.signatures: sys.exit(write_signatures())
    if build(site := args.site.resolve()): sys.exit(1)
    print(f'{site}/index.html')
