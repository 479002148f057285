"The code of the forum's thread, unchanged, on data of the same kind"
import sklearn.metrics as skm
from helpers import *
from fastai_mlmetrics.demo import small_convnet

def test_the_code_of_the_thread_has_scikit_learn_s_values(digits_dls):
    dls = digits_dls
    th = 0.5

    f1_macro = F1ScoreMulti(thresh=th, average='macro')
    f1_macro.name = 'F1(macro)'
    f1_samples = F1ScoreMulti(thresh=th, average='samples')
    f1_samples.name = 'F1(samples)'
    f1_micro = F1ScoreMulti(thresh=th, average='micro')
    f1_micro.name = 'F1(micro)'
    f1_weighted = F1ScoreMulti(thresh=th, average='weighted')
    f1_weighted.name = 'F1(weighted)'
    precision_samples = PrecisionMulti(thresh=th, average='samples')
    precision_samples.name = 'Precision(samples)'
    recall_samples = RecallMulti(thresh=th, average='samples')
    recall_samples.name = 'Recall(samples)'

    metrics = [partial(accuracy_multi, thresh=th), f1_macro, f1_micro, f1_samples, f1_weighted,
               precision_samples, recall_samples]
    learn = vision_learner(dls, small_convnet, pretrained=False, metrics=metrics).remove_cb(ProgressCallback)
    with learn.no_logging(): learn.fit_one_cycle(2, 1e-2)

    row = learn.recorder.values[-1]
    names = ['accuracy_multi','F1(macro)','F1(micro)','F1(samples)','F1(weighted)',
             'Precision(samples)','Recall(samples)']
    test_eq(learn.recorder.metric_names, ['epoch','train_loss','valid_loss',*names,'time'])
    preds,targs,decoded = learn.get_preds(with_decoded=True)
    def sk(f, average): return f(targs, decoded, average=average, zero_division=0)
    expected = [skm.accuracy_score(targs.flatten(), decoded.flatten()),
                *(sk(skm.f1_score, a) for a in ('macro','micro','samples','weighted')),
                sk(skm.precision_score, 'samples'), sk(skm.recall_score, 'samples')]
    test_close(row[2:], expected, eps=1e-6)
    zero_preds = torch.zeros(preds.shape)
    assert accuracy_multi(zero_preds, targs, thresh=0.5, sigmoid=False)==pytest.approx(1-targs.mean().item())
