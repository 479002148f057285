"The README's code runs"
import fastai.vision.all
from fastai_mlmetrics.demo import small_convnet
from helpers import *

README = (ROOT/'README.md').read_text()

@pytest.fixture(scope='module')
def four_lines(digits_dls):
    "What the first block of code makes, with a small model in place of a pretrained one"
    block = re.search(r'```python\n(.*?)```', README, re.S)[1]
    assert 'vision_learner(dls, resnet18, metrics=multilabel_metrics(), cbs=ZeroLabelsCallback())' in block
    space = dict(dls=digits_dls)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(fastai.vision.all, 'vision_learner', partial(vision_learner, pretrained=False))
        m.setattr(fastai.vision.all, 'resnet18', small_convnet)
        exec(block, space)
    return space

@pytest.mark.slow
def test_the_four_lines_record_each_epoch_and_set_a_threshold(four_lines):
    learn = four_lines['learn']
    assert len(learn.zero_labels.records)==11 # an epoch with the body frozen, and ten
    assert np.any(np.not_equal(learn.loss_func.thresh, 0.5))

@pytest.mark.slow
def test_the_code_of_the_steps_runs(four_lines):
    learn = four_lines['learn']
    probs,targs = learn.get_preds()
    space = four_lines | dict(test_df=learn.dls.valid_ds.items, probs=probs, targs=targs)
    steps = README[README.index('## Four steps'):]
    code = re.findall(r'`([^`\n]+\(.*?)`', steps)
    assert len(code)>=6
    for line in code: exec(line, space)
    assert len(learn.loss_func.thresh)==len(learn.dls.vocab) # of the last line that sets it
