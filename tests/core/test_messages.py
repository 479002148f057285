"Messages, progress bars, checks of arguments, and the number of threads"
import io, threading
from helpers import *
from fastai_mlmetrics.core import predictions
from fastai_mlmetrics.reports import page
from fastai_mlmetrics.core.messages import progress, said_once, single_threaded, suggestion

@pytest.mark.parametrize('make,message', [
    (lambda: PrecisionAtK(math.nan), 'k=nan should be a whole number, 1 or more'),
    (lambda: RecallAtK(True), 'k=True'),
    (lambda: PrecisionAtK(None), 'k=None'),
    (lambda: APScoreMulti(bins=math.inf), 'bins=inf should be a whole number, 2 or more'),
    (lambda: ExpectedCalibrationError(2.5), 'n_bins=2.5'),
    (lambda: paper_metrics(top_k=3.5), 'top_k=3.5'),
    (lambda: F1ScoreMulti(min_labels=-1), 'min_labels=-1 should be a whole number, 0 or more'),
    (lambda: F1ScoreMulti(max_labels=0), 'max_labels=0 should be a whole number, 1 or more'),
    (lambda: F1ScoreMulti(min_labels=3, max_labels=2), 'max_labels=2 should be a whole number, 3 or more')])
def test_whole_numbers_are_checked(make, message):
    with pytest.raises(ValueError, match=re.escape(message)): make()

def test_warnings_point_at_the_users_line():
    from fastai.metrics import F1ScoreMulti as Theirs
    data = simulate(200, bias=-3)
    makes = (lambda: make_learner(*data, F1ScoreMulti(sigmoid=False)).fit(1),
             lambda: make_learner(*data, Theirs()).set_thresh(0.2),
             lambda: F1ScoreMulti(pos_label=2),
             lambda: accuracy_multi(*simulate(), sigmoid=False))
    for make in makes:
        with pytest.warns(UserWarning) as caught: make()
        assert {w.filename for w in caught}=={__file__}, [str(w.message) for w in caught]

def test_threads_that_overlap():
    "A thread that starts while another one counts has torch's number of threads, then and later"
    n,both,found = torch.get_num_threads(),threading.Barrier(2),[]
    torch.set_num_threads(3)
    def run(f):
        t = threading.Thread(target=f)
        t.start()
        return t
    def first_in():
        single_threaded(lambda: (both.wait(), both.wait()))
        found.append(torch.get_num_threads())
    def second_in():
        both.wait()
        found.append(torch.get_num_threads())
        test_eq(single_threaded(torch.get_num_threads), 1)
        with pytest.raises(ZeroDivisionError): single_threaded(lambda: 1/0)
        both.wait()
        found.append(torch.get_num_threads())
    try:
        for t in [run(first_in), run(second_in)]: t.join()
        test_eq(found, [3,3,3])
    finally: torch.set_num_threads(n)

class Terminal(io.StringIO):
    def isatty(self): return True

@pytest.mark.parametrize('out,wait,show,shown', [
    (Terminal,-1,True,True), (Terminal,5,True,False), (Terminal,-1,False,False), (io.StringIO,-1,True,False)])
def test_progress_is_shown_where_it_is_of_use(monkeypatch, out, wait, show, shown):
    monkeypatch.setattr(sys, 'stdout', out())
    assert [*progress([3,1,2], wait=wait, show=show)]==[3,1,2]
    text = sys.stdout.getvalue()
    monkeypatch.undo()
    assert bool(text)==shown

@pytest.mark.slow
def test_a_long_report_and_page_show_their_progress(monkeypatch, tmp_path):
    def at_once(items, wait=5): return progress(items, wait=-1)
    for module in (predictions,page): monkeypatch.setattr(module, 'progress', at_once)
    targs = torch.rand(40, 3)<0.5
    interp = MultiLabelInterpretation.from_preds(torch.rand(40, 3), targs)
    def shown(f):
        monkeypatch.setattr(sys, 'stdout', Terminal())
        f()
        return sys.stdout.getvalue()
    texts = [shown(lambda: accuracy_report(torch.rand(40, 3), targs)), shown(lambda: interp.to_html(tmp_path/'a.html'))]
    monkeypatch.undo()
    assert '/1 ' in texts[0] and f'/{len(page.SECTIONS)} ' in texts[1]
    assert all(o.rstrip(' ').endswith('\r') for o in texts) # The bar is removed

WORDS = dict(num_labels='leave it out', num_classes='leave it out', n_labels='leave it out', multilabel='leave it out',
             task='leave it out', class_names="did you mean 'vocab'", label_names="did you mean 'vocab'",
             target_names="did you mean 'vocab'", from_logits="did you mean 'sigmoid'",
             names="did you mean 'vocab'", threshold="did you mean 'thresh'",
             ignore_value="did you mean 'ignore_index'")

@pytest.mark.parametrize('word', WORDS)
def test_words_of_other_libraries_are_known(word):
    scores,targs = torch.rand(300, 3),torch.rand(300, 3)<0.3
    for f in (judge, accuracy_report, MultiLabelInterpretation.from_preds):
        with pytest.raises(TypeError, match=f"has no argument '{word}': {WORDS[word]}"): f(scores, targs, **{word: 3})
    of_metric = WORDS[word]
    if 'vocab' in of_metric: of_metric = 'leave it out, since labels are named by `dls.vocab`, or by the columns of'
    for f in (F1ScoreMulti, multilabel_metrics):
        with pytest.raises(TypeError, match=f"no argument '{word}': {of_metric}"): f(**{word: 3})

def test_words_of_other_libraries_for_metrics():
    for word,ours in dict(sample_weights='sample_weight', weights='sample_weight', top_k='max_labels',
                          reduction='average').items():
        with pytest.raises(TypeError, match=f"no argument '{word}': did you mean '{ours}'"): F1ScoreMulti(**{word: 1})

def test_a_text_is_said_once():
    test_eq([said_once(o) for o in ('a','a','b','a')], ['a','','b',''])

METRICS = 'f1','fbeta','jaccard','accuracy','balanced_accuracy','matthews','precision','recall'

@pytest.mark.parametrize('ours,theirs', [
    ('f1', 'F1 f1_score micro_f1 f1_macro macro-f1 MultilabelF1Score multilabel_f1_score F.f1 dice DiceCoefficient'),
    ('fbeta', 'fbeta_score FBetaScore f_beta'), ('jaccard', 'iou IoU MeanIoU mean_io_u BinaryIoU JaccardIndex'),
    ('accuracy', 'acc accuracy_score BinaryAccuracy accuracy_multi'),
    ('balanced_accuracy', 'balanced_accuracy_score bal'),
    ('matthews', 'mcc MCC matthews_corrcoef MultilabelMatthewsCorrCoef phi'),
    ('precision', 'prec MultilabelPrecision ppv'), ('recall', 'sensitivity tpr Recall recall_score')])
def test_metrics_of_other_libraries_are_known(ours, theirs):
    for name in theirs.split(): test_eq(suggestion(name, METRICS), f": did you mean {ours!r}?")

@pytest.mark.parametrize('name', ['F2Score','f2','map','roc_auc','cohen_kappa','hamming','loss','x'])
def test_no_name_is_better_than_a_wrong_one(name): test_eq(suggestion(name, METRICS), '')

def test_arguments_of_other_libraries_are_known():
    names = [*inspect.signature(best_thresholds).parameters]
    words = dict(cv='folds n_folds n_splits', seed='random_state', vocab='names class_names classes')
    for ours,theirs in words.items():
        for name in theirs.split(): test_eq(suggestion(name, names), f": did you mean {ours!r}?")

@pytest.mark.parametrize('name,names,near', [
    ('light', ['car','traffic light'], 'traffic light'), ('red car', ['car','bus'], 'car'), ('2', [0,1,2], 2),
    ('dgo', ['dog','cat'], 'dog'), ('Dog', ['dog','cat'], 'dog'), ('z', [*'abc'], None)])
def test_names_of_labels_are_suggested(name, names, near):
    test_eq(suggestion(name, names), '' if near is None else f': did you mean {near!r}?')

def test_an_average_is_suggested():
    for cls,average,near in ((F1ScoreMulti,'macros',"'macro'"), (F1ScoreMulti,'sample',"'samples'"),
                             (APScoreMulti,'none','None')):
        with pytest.raises(ValueError, match=rf"has no average='{average}': use one of .*: did you mean {near}\?"):
            cls(average=average)
    with pytest.raises(ValueError, match="LRAP has no average='macro': use one of 'samples'$"): LRAP(average='macro')
