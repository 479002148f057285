"The page that `to_html` writes: parsed, and in a browser where there is one"
import base64, io, json, os, shutil, subprocess, sys, tarfile
from xml.etree import ElementTree
from bs4 import BeautifulSoup
from fastai.tabular.all import *
from fastai_mlmetrics.core.tables import as_shown
from fastai_mlmetrics.core import tables
from fastai_mlmetrics.reports import page as page_module
from fastai_mlmetrics.reports.page import _rows, glossary, SECTIONS
from helpers import *
from reference import *
from pytest import approx

def interpretation(n=300, c=12, vocab=None, density=0.2, skill=3., bias=-3., **kw):
    logits,targs = simulate(n, c, density, skill, bias)
    return MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=vocab, **kw)

def written(interp, path, *args, **kwargs):
    "The page, parsed"
    before = plt.get_fignums()
    assert interp.to_html(path/'page.html', *args, **kwargs)==path/'page.html' and plt.get_fignums()==before
    return BeautifulSoup((path/'page.html').read_text(encoding='utf-8'), 'html.parser')

def sections(page): return [o['id'] for o in page.find_all('section')]

def cells(part): return [[o.get_text() for o in row.find_all(['th','td'])] for row in part.find_all('tr')]

def shown(table):
    "What a page shows of a table"
    def text(o):
        if not isinstance(o, float): return str(o)
        return '-' if math.isnan(o) else table.formatted(o)
    return [[str(name), *map(text, row)] for name,*row in table.itertuples(name=None)]

def svgs(page):
    uris = [o['src'] for o in page.find_all('img') if o['src'].startswith('data:image/svg+xml;base64,')]
    return [base64.b64decode(o.partition(',')[2]).decode() for o in uris]

def test_the_numbers_are_those_of_the_reports(tmp_path):
    interp = interpretation()
    page = written(interp, tmp_path, 'A title', data='some data')
    assert page.title.get_text()=='A title: some data' and page.h1.get_text()=='A title'
    assert sections(page)==[o for o in SECTIONS if o not in ('comparison','slices')]
    assert not page.find(id='samples').img
    labels = page.find(id='labels').table
    report = interp.report()
    assert cells(labels.thead)==[['label',*report]]
    assert cells(labels.tbody)==shown(report[:12]) and cells(labels.tfoot)==shown(report[12:])
    accuracy,report = page.find(id='accuracy'),interp.accuracy_report()
    assert cells(accuracy.table.thead)==[['',*report]] and cells(accuracy.table.tbody)==shown(report)
    assert report.loc[['f1_micro']].reading.split('. ')[0] in accuracy.p.get_text()
    def letters(o): return re.sub(r'[^\w.]', '', str(o))
    box = page.find(class_='box')
    for o in box.find_all('summary'): o.decompose()
    assert sorted(letters(box.get_text()))==sorted(letters(interp.judge()))
    pairs = page.find(id='confusions').table
    assert cells(pairs.tbody)==shown(interp.most_confused().set_index('missed'))
    facts = {o.get_text(): o.find_next('dd').get_text() for o in page.find(id='data').find_all('dt')}
    r,version = interp.judge(),sys.modules['fastai_mlmetrics'].__version__
    assert facts['data set']=='some data' and facts['samples']==f'300, {r.labelled} of them with a label'
    assert facts['labels']=='12'
    assert facts['seen before?'].startswith('Unknown. If the samples were used')
    assert facts['threshold']=='0.5' and re.fullmatch(r'\d{4}-\d\d-\d\d \d\d:\d\d', facts['written'])
    assert facts['versions'].startswith(f'fastai_mlmetrics {version}, fastai ')
    assert torch.__version__ in facts['versions']
    terms = [o.get_text() for o in page.find(id='glossary').find_all('dt')]
    assert terms==[*glossary()] and sections(page)[-1]=='glossary'
    for o in labels.thead.find_all('th')[1:]: # Each column is explained
        assert any(o.get_text() in k.lower() or o.get_text() in v for k,v in glossary().items()), o

def test_nothing_comes_from_outside(tmp_path):
    page = written(interpretation(), tmp_path)
    assert "default-src 'none'" in page.find('meta', attrs={'http-equiv': True})['content']
    assert not page.find_all(['link','iframe','object','base'])
    assert not any(o.get('src') for o in page.find_all('script'))
    assert '@import' not in page.style.get_text() and 'url(' not in page.style.get_text()
    for o in page.find_all(src=True): assert o['src'].startswith('data:image/')
    for o in page.find_all(href=True): assert page.find(id=o['href'].removeprefix('#')) and o['href'][0]=='#'
    for o in page.find_all('img'): assert o['alt']
    assert len(svgs(page))==5
    for o in svgs(page): assert not re.search(r'href="(?!#|data:)', o) and '@import' not in o
    assert (tmp_path/'page.html').stat().st_size<5e5

NAMES = ['<script>alert(1)</script>', 'a & b', '$x_1$ or $5', 'שלום', 'two\nlines', '"quoted" \'it\'', '猫',
         '</td><b>', '{{ 7*7 }}', '%s {x} \\frac', 'a'*70, ('a','b'), 7]

def test_names_are_text(tmp_path):
    with warnings_as('error'): # matplotlib's of glyphs that its font lacks
        title = '<script>alert("t")</script> & $x$ {{ 1 }}'
        page = written(interpretation(600, 13, NAMES), tmp_path, title, data='<b>bold</b>')
    assert page.h1.get_text()==title and page.title.get_text()==f'{title}: <b>bold</b>'
    counts,_ = page.find_all('script')
    assert '<' not in counts.get_text() and [*map(as_shown, NAMES)]==[o['name'] for o in counted(page)['labels']]
    assert '<b>bold</b>' in page.find(id='data').get_text()
    assert not page.find(id='data').find('b') and len(page.find_all('section'))==11
    names = {row[0] for row in cells(page.find(id='labels').tbody)}
    assert names=={'(a, b)' if isinstance(o, tuple) else str(o) for o in NAMES}
    texts = [''.join(ElementTree.fromstring(o).itertext()) for o in svgs(page)]
    for name in ('</td><b>','a & b','$x_1$ or $5','שלום','猫','{{ 7*7 }}'):
        assert name in texts[-2], name # Confusions

@pytest.mark.slow
def test_sections_are_left_out(tmp_path):
    interp = interpretation(100, 3)
    assert sections(written(interp, tmp_path, sections=['labels','verdict']))==['verdict','labels']
    page = written(interp, tmp_path, without=['labels','glossary'])
    assert sections(page)==[o for o in SECTIONS if o not in ('labels','glossary','comparison','slices')]
    assert [o['href'][1:] for o in page.nav.find_all('a')]==sections(page)
    assert 'verdict' not in sections(written(interp, tmp_path, without='verdict'))
    for kw in (dict(sections=['labels','pictures']), dict(without='pictures')):
        with pytest.raises(ValueError, match="no section 'pictures': use one of verdict, data, .*, glossary$"):
            interp.to_html(tmp_path/'none.html', **kw)
    for kw in (dict(k=0), dict(max_n=0)):
        with pytest.raises(ValueError, match='should be a whole number, 1 or more'):
            interp.to_html(tmp_path/'none.html', **kw)
    assert not (tmp_path/'none.html').exists()

@pytest.mark.parametrize('kw,out', [
    (dict(c=1), 'confusions'), (dict(skill=0., bias=-9.), 'confusions'), (dict(skill=60., bias=-30.), 'confusions'),
    slow(dict(bias=2.), ''), slow(dict(min_labels=1, max_labels=1), ''), (dict(thresh=[.1]*6+[.9]*6), ''),
    slow(dict(c=80, density=0.02), ''), (dict(n=1), '')], ids=str)
@pytest.mark.slow
def test_a_page_is_written_of_any_model(tmp_path, kw, out):
    interp = interpretation(**kw)
    page = written(interp, tmp_path)
    assert {'verdict','accuracy','labels','frequencies'} <= {*sections(page)}
    assert f'{interp.judge().f1_micro:.3f}' in page.find(id='accuracy').get_text()
    if out: assert out not in sections(page) or not page.find(id=out).table
    text = page.get_text().replace('zero_division=nan', '')
    assert 'nan' not in text.lower() and 'k=None' not in text

@pytest.mark.slow
def test_a_good_model_is_better_than_a_constant(tmp_path):
    page = written(MultiLabelInterpretation.from_preds(*GOOD, sigmoid=True), tmp_path)
    finding = page.find(id='verdict').find(class_='finding').get_text()
    assert finding=='The model beats predicting the same labels for every sample.'

def test_each_section_begins_with_what_it_shows(tmp_path):
    "Each section begins with what it shows"
    logits,targs = simulate(300, 6, density=0.3, bias=-2.)
    targs[:,5],targs[:7,5] = 0,1 # A rare label
    logits[:,0] = -9
    logits[targs[:,0].argmin(),0] = 9 # Predicted, and never right
    logits[:,1] = -9 # Never predicted
    page = written(MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=list('abcdef')), tmp_path)
    def finding(name): return page.find(id=name).find(class_='finding').get_text()
    r = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True)
    assert finding('verdict').startswith('The model beats predicting the same labels for every sample, but it ')
    box = page.find(class_='box').get_text()
    assert f'micro F1 is {r.judge().f1_micro:.3f}' in box and 'never predicted: b' in box
    text = page.find(id='labels').p.get_text()
    assert text.startswith('F1 of labels with 20 positives or more is lowest for a (0.000), ')
    assert finding('frequencies')=='Values are uncertain for 1 of 6 labels, with fewer than 20 positives: f (7).'
    o = r.judge()
    assert (f'F1 is {o.per_label_f1:.3f} with thresholds per label, {o.global_f1:.3f} at the best global threshold '
            f'({o.suggested_thresh:.3g}), and {o.f1_micro:.3f} now') in finding('thresholds')
    # The number of the table is that of the plot
    error = r.report().ece['micro avg']
    assert any(f'expected calibration error {error:.3f}' in o for o in svgs(page))
    assert finding('confusions').startswith('Most often, ')

def test_both_ways_to_threshold_are_compared(tmp_path):
    def finding(interp):
        page = written(interp, tmp_path, sections='thresholds')
        return page.find(id='thresholds').find(class_='finding').get_text()
    def scaled(n=800, c=8, **kw):
        "Scores whose scale differs between labels: no global threshold is good"
        logits,targs = simulate(n, c, 0.2, 4., -2.)
        logits = logits + torch.linspace(-6, 6, c)
        return MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, **kw),targs
    neither = 'No other threshold is clearly better: '
    assert finding(interpretation(400, skill=4., bias=-2.4)).startswith(neither)
    assert finding(interpretation(400, skill=2., bias=-4.)).startswith('Another threshold would help: ')
    only = finding(interpretation(400, c=1))
    assert 'per label' not in only and 'micro F1 is 0.' in only
    interp,targs = scaled()
    text = finding(interp)
    r,whole = interp.judge(),best_thresholds(interp.preds, targs, per_label=True)
    assert text.startswith('Thresholds per label would help: cross-validated, ') and r.per_label_f1-r.global_f1>0.2
    held = dict(zip(('per_label','best'), map(float, re.findall(r'(0\.\d+) (?:with|at)', text))))
    for k,o in held.items(): assert o==pytest.approx(whole.table.held_out[k], abs=0.02), k
    # With them, neither helps any more
    assert finding(scaled(thresh=whole)[0]).startswith(neither)

def counted(page):
    "What the slider of a page shows: thresholds, and counts above them, those of all first and those in use last"
    res = json.loads(page.find('script', type='application/json').get_text())
    def above(x): return [*np.cumsum(x[-2::-1])[::-1].tolist(), x[-1]]
    res['covered'] = above(res['covered'])
    for o in res['labels']: o.update(tp=above(o['tp']), fp=above(o['fp']))
    return res

@pytest.mark.parametrize('kw', [
    dict(), dict(c=1), slow(dict(thresh=0.3, min_labels=1)), slow(dict(thresh=[.2]*6+[.7]*6)), dict(ignore_index=-1),
    slow(dict(margins=True)), slow(dict(double=True))])
@pytest.mark.slow
def test_counts_of_the_slider_are_those_of_the_library(tmp_path, kw):
    c,margins,double,kw = kw.pop('c', 12),kw.pop('margins', False),kw.pop('double', False),dict(kw)
    logits,targs = simulate(300, c, 0.2, bias=-3.)
    preds = logits if margins else logits.double().sigmoid() if double else logits.sigmoid()
    if margins: kw['thresh'] = 0.
    if kw.get('ignore_index'):
        targs = targs.masked_fill(torch.arange(300*c).view(300, c)%4==0, -1)
        targs[:,3],targs[:9] = -1,-1
    def interp(**kwargs): return MultiLabelInterpretation.from_preds(preds, targs, **kw | kwargs)
    def at(t):
        if margins: return MultiLabelInterpretation.from_preds(preds-t, targs, thresh=0.)
        return interp(thresh=t, min_labels=0)
    o = counted(written(interp(), tmp_path, sections='thresholds'))
    t = o['thresh']
    assert t==sorted(t) and 190<=len(t)<=203 and [o['name'] for o in o['labels']]==[*map(str, range(c))]
    picked = np.linspace(0, len(t)-1, 20).astype(int).tolist()
    for i,same in [(len(t)+1, interp()), *((k+1, at(t[k])) for k in picked)]:
        tp,fp = (torch.tensor([x[k][i] for x in o['labels']]) for k in ('tp','fp'))
        assert torch.equal(same.counts[:2], torch.stack([tp,fp]))
        true,all_fp = (torch.tensor([x[k][0] for x in o['labels']]) for k in ('tp','fp'))
        assert torch.equal(true, same.counts[[0,2]].sum(0)) and torch.equal(all_fp, same.counts[[1,3]].sum(0))
        f1 = 2*tp/(tp+fp+true).clip(1)
        report,r = same.accuracy_report(ci=None).value,same.judge()
        assert f1[true+all_fp>0].mean()==approx(report['f1_macro'])
        assert 2*tp.sum()/(tp+fp+true).sum()==approx(report['f1_micro'])
        assert 1-o['covered'][i]/o['covered'][0]==approx(r.missed_rate)
        assert (tp+fp).sum()/o['samples']==approx(same.predicted[same.valid_samples].sum(1).double().mean())
    start = t[min(o['start'], len(t)-1)]
    if c>1: assert start==interp().judge().suggested_thresh

def test_colors_of_thresholds_are_those_of_the_notebook(tmp_path):
    "Red is the best one, black the one in use"
    def colors(**kw):
        svg, = svgs(written(interpretation(**kw), tmp_path, sections='thresholds'))
        texts = [o for o in re.findall(r'>([a-z ]+): [\d.]+<', svg)]
        return texts,['#d62728' in svg,'#ff7f0e' in svg]
    assert colors()==(['best','now'], [True,False])
    assert colors(thresh=[0.1]*6+[0.9]*6)==(['best','lowest now','highest now'], [True,False])

def test_rare_labels_are_not_what_is_shown(tmp_path):
    "But those with the most mistakes, of labels with enough positives"
    logits,targs = simulate(600, 12, 0.2, 3., -2.)
    targs[:,:6] = 0
    targs[:3,:6],logits[:,:6] = 1,-9 # Never found
    logits[:,6] = torch.where(targs[:,6]==1, -4., 4.) # Always wrong
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=list('abcdefghijkl'))
    wrong = interp.counts[1:3].sum(0)
    page = written(interp, tmp_path, k=6, sections=['curves','labels'])
    svg, = svgs(page)
    shown = re.findall(r'>0\.\d\d  ([a-l])<|>1\.00  ([a-l])<', svg)
    names = [a or b for a,b in shown]
    assert len(names)==6 and names[0]=='g' and {*names}=={*'ghijkl'}
    mistakes = [wrong['abcdefghijkl'.index(o)].item() for o in names]
    assert mistakes==sorted(mistakes, reverse=True)
    assert 'the 6 labels with the most mistakes, of those with at least 20 positives' in page.get_text()
    text = page.find(id='labels').p.get_text()
    assert text.startswith('F1 of labels with 20 positives or more is lowest for g (0')

def test_a_page_opens_in_plain_words(tmp_path):
    "And names of code stand in folded notes alone"
    logits,targs = simulate(400, 5, 0.3, 3., -2.)
    best = best_thresholds(logits.sigmoid(), targs, at_recall={'a': 0.9}, vocab=list('abcde'), cv=None)
    interp = MultiLabelInterpretation.from_preds(logits.sigmoid(), targs, thresh=best, vocab=list('abcde'))
    page = written(interp, tmp_path, by=np.arange(400)%3)
    tp,fp,fn,_ = interp.counts.sum(1).tolist()
    opening = page.h1.find_next('p').get_text()
    assert opening==(f'{tp/(tp+fp):.0%} of the predicted labels are right, and {tp/(tp+fn):.0%} of the true ones '
                     'are found. Required of the threshold: a recall of at least 0.9 for a.')
    for o in page.find_all('code'): assert o.find_parent('details'), o.parent
    for name in ('thresh=','groups=','Learner','zero_division','compare_models'):
        plain = BeautifulSoup(str(page.body), 'html.parser')
        for o in plain.find_all(['details','script']): o.decompose()
        assert name not in plain.get_text(), name
    assert interpretation().required==''
    nothing = MultiLabelInterpretation.from_preds(targs*0, targs)
    assert page_module.opening(nothing)=='The model predicts no label, and 0% of the true ones are found.'
    assert 'No sample has a label' in page_module.opening(MultiLabelInterpretation.from_preds(targs, targs*0))

def test_a_required_recall_is_remembered_by_the_learner():
    logits,targs = simulate(300, 3, 0.3)
    learn = make_learner(logits, targs)
    learn.set_thresh(learn.thresh_find(at_recall=0.9, show_plot=False))
    assert MultiLabelInterpretation.from_learner(learn).required=='a recall of at least 0.9'
    assert MultiLabelInterpretation.from_learner(learn, thresh=0.5).required==''
    learn.set_thresh(0.4)
    assert MultiLabelInterpretation.from_learner(learn).required==''

def test_nothing_confused_has_a_reason(tmp_path):
    for bias in (-99.,-30.):
        page = written(interpretation(skill=60., bias=bias), tmp_path, sections='confusions')
        words = page.find(id='confusions').find(class_='finding').get_text()
        assert words=='No pair of a missed and a wrongly predicted label is in 1 sample or more.'

@pytest.mark.slow
def test_a_long_table_says_so(tmp_path):
    for n in (20,60):
        part = written(interpretation(60, n), tmp_path, sections='labels').find(id='labels')
        table = part.find(class_='scroll')['class']
        assert (f'all {n} labels: scroll' in part.get_text())==(n>25)==('tall' in table) and 'table' in table

def test_a_comparison_is_shown(tmp_path):
    logits,targs = simulate(300, 5, 0.3, bias=-2.)
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True)
    models = {'<old> & $a$': logits-targs, 'new': logits, 'other': logits+targs}
    two = compare_models(dict([*models.items()][:2]), targs, sigmoid=True)
    page = written(interp, tmp_path, comparison=two)
    assert sections(page)==[o for o in SECTIONS if o!='slices']
    part = page.find(id='comparison')
    assert cells(part.table.thead)==[['',*two]] and cells(part.table.tbody)==shown(two)
    lines = two.reading.replace('`', '').splitlines()
    shown_lines = [o.get_text() for o in part.find_all('p', recursive=False)]
    assert shown_lines==[o.partition(' Samples are')[0] for o in lines] and not part.find('old')
    texts = ''.join(ElementTree.fromstring(svgs(page)[0]).itertext())
    assert 'difference from <old> & $a$' in texts and 'new' in texts and 'f1_micro' in texts
    three = compare_models(models, targs, sigmoid=True)
    part = written(interp, tmp_path, comparison=three, sections='comparison').find(id='comparison')
    assert [o.get_text() for o in part.find_all('h3')]==['new','other']
    assert [cells(o.thead)[0][1:3] for o in part.find_all('table')]==[['<old> & $a$','new'],['<old> & $a$','other']]
    with pytest.raises(TypeError, match='comparison is a dict: pass what compare_models returns'):
        interp.to_html(tmp_path/'none.html', comparison=models)

def test_slices_are_shown(tmp_path):
    logits,targs = simulate(300, 5, 0.3, bias=-2.)
    site = pd.Series(['<b>','$c$','d']*100, name='site')
    logits[site=='d',2] -= 4*targs[site=='d',2]
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True)
    page = written(interp, tmp_path, by=site)
    assert sections(page)==[o for o in SECTIONS if o!='comparison']
    part = page.find(id='slices')
    slices = interp.compare_slices(site)
    columns = ['samples','value','difference','difference_low','difference_high','result']
    first,labels = part.find_all('table')
    assert cells(first.thead)==[['site',*columns]] and cells(first.tbody)==shown(slices[columns])
    assert cells(labels.tbody)==shown(slices.labels.set_axis(slices.labels.index.map(as_shown)))
    assert as_shown(slices.labels.index[0])=='(d, 2)'
    reading = slices.reading.split(' Samples are')[0].replace(' (see `.labels`)', '') # No code
    assert [o.get_text() for o in part.find_all('p', recursive=False)]==[reading]
    texts = ''.join(ElementTree.fromstring(svgs(part)[0]).itertext())
    assert 'f1_micro, minus that of all other samples' in texts and '<b>' in texts
    page = written(interp, tmp_path, by=np.arange(300)%2, sections='slices')
    assert len(page.find(id='slices').find_all('table'))==1 # No label differs

@pytest.mark.slow
def test_predictions_of_other_kinds_have_fewer_sections(tmp_path):
    logits,targs = simulate(200, 5, density=0.3)
    def of(preds, targs=targs, **kw):
        return {*sections(written(MultiLabelInterpretation.from_preds(preds, targs, **kw), tmp_path))}
    whole = {*SECTIONS}-{'comparison','slices'}
    assert of(logits>0)==whole-{'thresholds','curves','calibration'} # Binary
    assert of(logits, thresh=0.)==whole-{'calibration'} # Margins
    assert of(logits.sigmoid(), targs*0)==whole-{'thresholds','curves'}
    assert of(logits.sigmoid(), targs*0+1)>={'verdict','thresholds'}
    holes = targs.masked_fill(torch.arange(1000).view(200,5)%3==0, math.nan)
    assert of(logits.sigmoid(), holes, ignore_index=math.nan)==whole
    assert '33.4%' in (tmp_path/'page.html').read_text()

@pytest.mark.slow
def test_pictures_show_what_was_missed(digits_dls, tmp_path):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, loss_func=BCEWithLogitsLossFlat())
    learn.remove_cb(ProgressCallback)
    interp = MultiLabelInterpretation.from_learner(learn, thresh=0.4)
    page = written(interp, tmp_path, k=2, max_n=3)
    part = page.find(id='samples')
    titles = [o.get_text() for o in part.find_all('h3')]
    report = interp.report(averages=False).query('support>0') # None has 20
    wrong = dict(zip(interp.vocab, interp.counts[1:3].sum(0).tolist()))
    labels = sorted(report.index, key=lambda o: (-wrong[o], interp.vocab.index(o)))[:2]
    assert any('with the most mistakes' in o.get_text() for o in part.find_all('p'))
    assert titles and all(o.split(':')[0] in labels for o in titles)
    figures = part.find_all('figure')
    assert 1<=len(figures)<=12
    for o in figures:
        image = PILImage.create(io.BytesIO(base64.b64decode(o.img['src'].partition('base64,')[2])))
        assert image.size==(180,180) and image.convert('L').getextrema()!=(255,255)
        title,i = o.find_previous('h3').get_text(),int(re.search(r'sample (\d+), ', o.get_text())[1])
        label,kind = title.split(':')[0],'missed' if ': missed' in title else 'false'
        # Which of its labels matters comes first
        assert o.find('div', class_=True).get_text().startswith(f'{kind}: {label}')
        col = interp.vocab.index(label)
        assert interp.true[i,col]==(kind=='missed')!=interp.predicted[i,col]

@pytest.mark.slow
def test_the_most_confident_mistakes_have_names(tmp_path):
    interp = interpretation(300, 5)
    part = written(interp, tmp_path, sections='samples').find(id='samples')
    first = interp.mistakes(max_n=10)
    assert cells(part.tbody)==shown(first) and cells(part.thead)==[['sample','label','kind','score']]
    assert part.p.get_text().startswith(first.reading.replace('thresh=', 'threshold '))
    perfect = MultiLabelInterpretation.from_preds(interp.true.float(), interp.true.float())
    assert not sections(written(perfect, tmp_path, sections='samples'))
    # Files of images are beside their pictures as well
    (tmp_path/'im').mkdir()
    for i in range(10): PILImage.create(np.full((8,8,3), 20*i, np.uint8)).save(tmp_path/'im'/f'no_{i}.png')
    block = DataBlock((ImageBlock, MultiCategoryBlock), get_items=get_image_files, get_y=lambda o: ['a','b'])
    model = nn.Sequential(nn.AdaptiveAvgPool2d(1), Flatten(), nn.Linear(3, 2))
    learn = Learner(block.dataloaders(tmp_path, bs=4, device=CPU), model, loss_func=BCEWithLogitsLossFlat())
    interp = MultiLabelInterpretation.from_learner(learn.remove_cb(ProgressCallback), thresh=1.)
    part = written(interp, tmp_path).find(id='samples')
    first,row = interp.mistakes(),cells(part.tbody)[0]
    assert row[-1]==str(first.item.iloc[0])
    assert cells(part.thead)==[['sample','label','kind','score','item']]
    names = {int(re.match(r'sample (\d), ', o.get_text())[1]): o.get_text() for o in part.find_all('figcaption')}
    assert len(names)==2
    for i,text in names.items(): assert interp.items([i])[0].name in text

@pytest.mark.slow
def test_infinite_margins_are_left_out_of_plots(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random((60,4))<0.4
    some = rng.normal(size=(60,4))+y
    some[:5,0],some[5:9,1] = math.inf,-math.inf
    for scores,has_plot in ((some,True), (np.where(y, math.inf, some),False)):
        page = written(MultiLabelInterpretation.from_preds(scores, y, thresh=0.), tmp_path)
        assert (page.find(id='thresholds') is not None)==has_plot and page.find(id='curves').img

@pytest.mark.slow
def test_the_page_says_which_loader_was_validated(digits_dls, tmp_path):
    from fastai_mlmetrics.demo import small_convnet
    learn = vision_learner(digits_dls, small_convnet, pretrained=False, loss_func=BCEWithLogitsLossFlat())
    learn.remove_cb(ProgressCallback)
    other = digits_dls.test_dl(digits_dls.valid_ds.items[:40], with_labels=True)
    def of(**kw): return MultiLabelInterpretation.from_learner(learn, **kw)
    for kw,source,start in ((dict(), 'validation set', 'Not in training'), (dict(ds_idx=0), 'training set', 'Yes'),
                            (dict(dl=digits_dls.train), 'training set', 'Yes'),
                            (dict(dl=other), 'another loader', 'Not as far as is known')):
        interp = of(**kw)
        assert interp.source==source
        page = written(interp, tmp_path, sections=['data','thresholds'])
        assert start in page.find(id='data').get_text()
        # Thresholds are chosen by the validation set
        says = 'on the validation set, not on these' in page.get_text()
        assert interp.judge().other_data==says==(source!='validation set')

@pytest.mark.slow
def test_rows_of_tables_are_shown(tmp_path):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(100,3)), columns=list('xyz'))
    df[['a','b']] = rng.integers(0, 2, (100,2))
    table = TabularPandas(df, cont_names=list('xyz'), y_names=['a','b'], splits=RandomSplitter(seed=0)(range_of(df)),
                          y_block=MultiCategoryBlock(encoded=True, vocab=['a','b']))
    learn = tabular_learner(table.dataloaders(bs=16, device=torch.device('cpu')), layers=[8])
    learn.remove_cb(ProgressCallback)
    interp = MultiLabelInterpretation.from_learner(learn)
    part = written(interp, tmp_path).find(id='samples')
    kind = 'missed' if ': missed' in part.h3.get_text() else 'false'
    expected = interp.show(part.h3.get_text().split(':')[0], kind, max_n=6)
    table = part.h3.find_next('table')
    assert [row[0] for row in cells(table.tbody)]==[*map(str, expected.index)]
    assert cells(table.thead)==[['sample',*expected.columns.drop('item'),'item']] and 'x' in expected

@pytest.mark.slow
def test_plots_do_not_depend_on_settings(tmp_path):
    interp = interpretation(100, 3)
    plain = svgs(written(interp, tmp_path))
    with plt.rc_context({'font.size': 20, 'figure.facecolor': 'k', 'svg.fonttype': 'path'}):
        before = {**plt.rcParams}
        assert svgs(written(interp, tmp_path))==plain
        assert {**plt.rcParams}==before

BROWSER = next(filter(None, map(shutil.which, ('chromium','chromium-browser','google-chrome'))), None)

TABLE = '''
const texts = () => [...document.querySelectorAll('.sortable tbody tr')].filter(o => !o.hidden)
    .map(o => [...o.cells].map(c => c.textContent))
const click = i => { document.querySelectorAll('.sortable th button')[i].click(); return texts() }
const find = text => { const o = document.querySelector('input'); o.value = text
    o.dispatchEvent(new Event('input', {bubbles: true})); return texts() }
const steps = {start: texts(), up: click(2), down: click(2), undefined: click(3), names: click(0),
               found: find('LABEL 1'), none: find('zebra'), all: find(''),
               said: document.querySelector('output').textContent,
               wide: document.documentElement.scrollWidth - innerWidth}'''

SLIDER = '''
const form = document.querySelector('form.slider'), names = [...document.querySelectorAll('.sortable tbody th')]
const read = () => Object.fromEntries([...form.querySelectorAll('tr')].map(o => [...o.cells].map(c => c.textContent))
    .map(([name, now, at]) => [name, [now, at]]))
const set = (input, value) => { input.value = value; input.dispatchEvent(new Event('input')); return read() }
const click = o => { o.click(); return read() }
const found = () => [form.recall.textContent, form.precision.textContent]
const steps = {start: read(), at: PICKED.map(i => set(form.place, i)), found: found(),
               most: click(form.recall), few: set(form.least, 0.5) && found(), none: set(form.least, 1.2) && found(),
               label: click(names.find(o => o.textContent == 'label 3')),
               chosen: form.label.selectedOptions[0].textContent,
               focused: document.activeElement == form.place, labels: PICKED.map(i => set(form.place, i)),
               own: set(form.least, 0.9) && found(), all: set(form.label, ''),
               wide: document.documentElement.scrollWidth - innerWidth}'''

def in_browser(path, script):
    "What a script finds on the page, which sets `steps`"
    text = path.read_text(encoding='utf-8')
    script += """
        const out = document.createElement('pre'); out.id = 'steps'; out.textContent = JSON.stringify(steps)
        document.body.append(out)"""
    path.write_text(text.replace('</body>', f'<script>{script}</script></body>'), encoding='utf-8')
    flags = '--headless=new --no-sandbox --disable-gpu --enable-logging=stderr --window-size=600,900 --dump-dom'
    run = subprocess.run([BROWSER, *flags.split(), f'--user-data-dir={path.parent/"profile"}', path.as_uri()],
                         capture_output=True, text=True, encoding='utf-8', timeout=120)
    assert 'CONSOLE' not in run.stderr, run.stderr
    return SimpleNamespace(**json.loads(BeautifulSoup(run.stdout, 'html.parser').find(id='steps').get_text()))

@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason='there is no Chromium')
def test_the_table_is_sorted_and_searched_in_a_browser(tmp_path):
    logits,targs = simulate(300, 12, 0.2, bias=-3)
    targs[:,4] = 0 # No area under the curve
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=[f'label {i}' for i in range(12)])
    path = interp.to_html(tmp_path/'page.html')
    steps = in_browser(path, TABLE)
    report = interp.report(averages=False)
    assert steps.start==shown(report)
    def column(rows, i): return [row[i] for row in rows]
    counts = sorted(report.predicted.tolist())
    assert column(steps.up, 2)==[*map(str, counts)] and column(steps.down, 2)==[*map(str, counts[::-1])]
    assert column(steps.undefined, 3)==sorted(column(steps.undefined, 3), key=float)
    assert column(steps.names, 0)==[f'label {i}' for i in range(12)] # 10 after 9
    assert column(steps.found, 0)==['label 1','label 10','label 11']
    assert steps.none==[] and steps.all==steps.names and steps.said=='' and steps.wide<=0

@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason='there is no Chromium')
def test_a_threshold_is_moved_in_a_browser(tmp_path):
    logits,targs = simulate(300, 12, 0.2, bias=-3.)
    targs = targs.masked_fill(torch.arange(3600).view(300, 12)%7==0, -1)
    targs[:,4] = -1 # Is in no average
    vocab = [f'label {i}' for i in range(12)]
    def at(thresh=0.5):
        return MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=vocab, thresh=thresh,
                                                   ignore_index=-1)
    path = at().to_html(tmp_path/'page.html')
    thresh = counted(BeautifulSoup(path.read_text(encoding='utf-8'), 'html.parser'))['thresh']
    picked = np.linspace(0, len(thresh)-1, 20).astype(int).tolist()
    steps = in_browser(path, SLIDER.replace('PICKED', str(picked)))
    def averages(interp):
        r,report = interp.judge(),interp.report()
        macro = [m(average='macro', ignore_index=-1, thresh=interp.thresh)(logits, targs)
                 for m in (F1ScoreMulti,PrecisionMulti,RecallMulti)]
        cardinality = LabelCardinality(ignore_index=-1, thresh=interp.thresh)(logits, targs)
        return [*report.loc['micro avg',['f1','precision','recall']], *macro, cardinality, r.missed_rate]
    def numbers(shown, i): return [float(o[i]) for o in [*shown.values()][1:]]
    now = averages(at())
    assert [*steps.start][1:]==[f'{k}_{a}' for a in ('micro','macro') for k in ('f1','precision','recall')] + [
        f'labels per sample, {(targs==1).sum()/300:.3f} true', 'samples with labels that get no prediction']
    for i,shown in zip(picked, steps.at):
        assert shown['']==['now', f'at {float(f"{thresh[i]:.6g}"):g}']
        assert numbers(shown, 0)==approx(now, abs=6e-4)
        assert numbers(shown, 1)==approx(averages(at(thresh[i])), abs=6e-4)
    best = float(f'{at().judge().suggested_thresh:.6g}')
    assert steps.start['']==['now', f'at {best:g}']
    assert steps.chosen=='label 3' and steps.focused and steps.wide<=0
    assert [*steps.all]==[*steps.start]
    def of_label(interp): return interp.report().loc['label 3',['f1','precision','recall','predicted']].tolist()
    for i,shown in zip(picked, steps.labels):
        assert [*shown]==['','f1','precision','recall',f'predicted, {(targs[:,3]==1).sum()} true']
        assert numbers(shown, 0)==approx(of_label(at()), abs=6e-4)
        assert numbers(shown, 1)==approx(of_label(at(thresh[i])), abs=6e-4)
    # At least so much of one, the most of the other
    each = [at(t).report() for t in thresh]
    def check(found, name, least):
        for a,b,text in zip(('recall','precision'), ('precision','recall'), found):
            t,value = re.fullmatch(fr'([\d.]+) \({b} ([\d.]+)\)', text).groups()
            at_t = each[np.argmin(abs(np.array(thresh)-float(t)))].loc[name]
            assert at_t[a]>=least-1e-9 and at_t[b]==approx(float(value), abs=6e-4)
            assert at_t[b]==approx(max(o.loc[name,b] for o in each if o.loc[name,a]>=least-1e-9))
    check(steps.found, 'micro avg', 0.9)
    check(steps.few, 'micro avg', 0.5)
    check(steps.own, 'label 3', 0.9)
    assert steps.none==['none','none'] and float(steps.most['recall_micro'][1])>=0.9

@pytest.mark.slow
def test_template_and_glossary_are_in_wheel_and_sdist(tmp_path):

    for o in ('setup.py','settings.ini','README.md','LICENSE','MANIFEST.in'): shutil.copy(ROOT/o, tmp_path)
    shutil.copytree(ROOT/'fastai_mlmetrics', tmp_path/'fastai_mlmetrics')
    subprocess.run([sys.executable,'setup.py','-q','build_py','-d','lib','sdist'], cwd=tmp_path, check=True,
                   capture_output=True)
    sdist, = (tmp_path/'dist').glob('*.tar.gz')
    with tarfile.open(sdist) as f: packed = f.getnames()
    for name in ('fastai_mlmetrics/reports/page.html','fastai_mlmetrics/reports/glossary.txt'):
        assert (tmp_path/'lib'/name).exists() and any(o.endswith(name) for o in packed)

def test_a_page_is_there_when_it_is_whole(tmp_path, monkeypatch):
    interp = interpretation(100, 3)
    path = tmp_path/'new'/'page.html'
    def _stops(p):
        assert not path.exists() or path.read_text()=='the old one'
        raise KeyboardInterrupt
    monkeypatch.setitem(SECTIONS, 'data', ('None', _stops))
    for old in (False, True):
        if old: path.write_text('the old one')
        with pytest.raises(KeyboardInterrupt): interp.to_html(path)
        assert [*path.parent.iterdir()]==[path]*old
    assert path.read_text()=='the old one'
    interp.to_html(path, sections='labels')
    assert [*path.parent.iterdir()]==[path] and path.read_text(encoding='utf-8').rstrip().endswith('</html>')

@pytest.mark.slow
def test_code_in_sentences_is_shown_as_code(tmp_path):
    logits,targs = simulate(300, 5, 0.3, bias=-2.)
    interp = MultiLabelInterpretation.from_preds(logits, targs, sigmoid=True, vocab=['a`<b>`','b','c','d','e'])
    page = written(interp, tmp_path, comparison=compare_models(dict(a=logits-targs, b=logits), targs, sigmoid=True))
    for name in ('verdict','accuracy','labels','comparison'):
        part = page.find(id=name)
        assert part.details.find('code') and '`' not in ''.join(o.get_text() for o in part.find_all(['p','dd'])), name
    assert not page.find('b', string='`') and 'a`<b>`' in [row[0] for row in cells(page.find(id='labels').tbody)]

def scaled(n=800, c=8, **kw):
    "An interpretation of scores whose scale differs between labels: no global threshold is good"
    logits,targs = simulate(n, c, 0.2, 4., -2.)
    return MultiLabelInterpretation.from_preds(logits+torch.linspace(-6, 6, c), targs, sigmoid=True, **kw)

@pytest.mark.parametrize('kw,color', [
    (dict(skill=8.), 'green'), (dict(skill=4., bias=-3.), 'blue'), (dict(bias=-9.), 'red')])
def test_the_box_is_blue_where_a_model_without_a_verdict_could_be_better(tmp_path, kw, color):
    interp = MultiLabelInterpretation.from_preds(*simulate(400, 12, 0.2, **kw), sigmoid=True)
    part = written(interp, tmp_path, sections='verdict').find(id='verdict')
    box = part.find(class_='box')
    colors = dict(red='#d62728', blue='#1f77b4', green='#2ca02c')
    assert [k for k,o in colors.items() if o in box.div['style']]==[color]
    better = part.find(class_='finding').get_text().startswith('The model beats')
    assert ('the model beats' in box.b.get_text())==better==(color!='red')
    headings = dict(red=['What to do'], blue=['You could improve this'], green=[])[color]
    assert [o.get_text() for o in box.find_all('b')[1:]]==headings

def test_texts_are_shown_without_tokens_and_cut(tmp_path):
    from fastai.text.all import BaseTokenizer, TextBlock
    rng = np.random.default_rng(0)
    words = ['Sun','rain','WIND','snow','so','the','day']
    texts = [' '.join([*rng.permutation(words)]*12) for _ in range(40)]
    df = pd.DataFrame(dict(text=texts, labels=rng.choice(['a','b','a;b'], 40)))
    block = DataBlock((TextBlock.from_df('text', tok=BaseTokenizer()), MultiCategoryBlock),
                      get_x=ColReader('text'), get_y=ColReader('labels', label_delim=';'),
                      splitter=RandomSplitter(seed=0))
    dls = block.dataloaders(df, bs=8, num_workers=0, device=CPU)
    learn = Learner(dls, BagOfWords(len(dls.vocab[0]), 2), loss_func=BCEWithLogitsLossFlat())
    with learn.no_bar(): interp = MultiLabelInterpretation.from_learner(learn, ds_idx=0, thresh=0.9999)
    part = written(interp, tmp_path, sections='samples', max_n=3).find(id='samples')
    figures = part.select('.texts figure')
    assert len(figures)>=3
    for o in figures:
        text,i = o.blockquote.get_text(),int(re.search(r'sample (\d+), ', o.figcaption.get_text())[1])
        assert len(text)==200 and text.endswith('…') and 'xx' not in text
        original = df.text[int(re.search(r'row (\d+)', o.figcaption.get_text())[1])]
        assert text[:150].lower()==original[:150].lower()
        assert 'missed: ' in o.figcaption.get_text() and interp.true[i].any()

TYPED = '''
const form = document.querySelector('form.slider')
const type = text => { form.typed.value = text; form.typed.dispatchEvent(new Event('change'))
    return [form.place.valueAsNumber, form.typed.value, form.querySelector('thead th:last-child').textContent] }
const steps = {start: form.typed.value, typed: TEXTS.map(type)}
document.body.style.width = '390px' // As narrow as a phone
const range = document.createRange()
range.selectNodeContents([...document.querySelectorAll('#data dt')].find(o => o.textContent == 'independence'))
steps.lines = range.getClientRects().length'''

@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason='there is no Chromium')
def test_a_threshold_is_typed_in_a_browser(tmp_path):
    interp = interpretation(300, 4)
    path = interp.to_html(tmp_path/'page.html', sections=['data','thresholds'])
    thresh = counted(BeautifulSoup(path.read_text(encoding='utf-8'), 'html.parser'))['thresh']
    texts = ['0.3','0.30001','','-5','7']
    steps = in_browser(path, TYPED.replace('TEXTS', json.dumps(texts)))
    def shown(t): return f'{float(f"{t:.6g}"):g}'
    assert steps.start==shown(interp.judge().suggested_thresh)
    nearest = np.argmin(abs(np.array(thresh)-0.3)).item()
    # Without a number it stays where it is
    places = [nearest, nearest, nearest, 0, len(thresh)-1]
    assert steps.typed==[[i, shown(thresh[i]), f'at {shown(thresh[i])}'] for i in places]
    assert steps.lines==1

def test_small_numbers_are_those_of_tables():
    (name,cells),_ = _rows(tables.Table(dict(a=[0.000463,1], b=[0.4,1], c=[math.nan,1], d=[3,1], e=['x','y'])))
    test_eq((name,cells), ('0', [('0.000463',False),('0.400',False),('-',False),('3',False),('x',True)]))
