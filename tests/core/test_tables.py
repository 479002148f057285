"Tables and names of labels, in text and in plots"
from helpers import *
from fastai_mlmetrics.core.tables import percent, Table, with_limits
from six_labels import SCORES, TARGS

def test_a_small_number_keeps_its_digits():
    shown = repr(Table(dict(x=[0.00040016,0.0005,0.25,-5e-18,-0.0001])))
    assert all(o in shown for o in ('0.0004\n','0.001\n','0.250\n',' 0.000\n','-0.0001'))

@pytest.mark.parametrize('share,text', [
    (0, '0%'), (1e-9, 'less than 1%'), (0.3149, '31%'), (0.9949, '99%'), (0.9951, 'more than 99%'), (1., '100%')])
def test_only_exact_shares_are_shown_as_nothing_or_all(share, text): assert percent(share)==text

def test_names_may_be_of_every_kind():
    names = [('a',1),('b',2),3,'c',None,2.5]
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS, vocab=names)
    for o in (interp.report(averages=False), label_stats(TARGS, vocab=names)):
        assert {*o.index}=={*names}

def test_labels_may_look_like_formulas():
    names = ['$a','$b$','c$_','d','$\\frac','f']
    interp = MultiLabelInterpretation.from_preds(SCORES, TARGS, vocab=names)
    for f in (interp.plot_confusion_matrices, interp.plot_label_confusion,
              *(partial(interp.plot_thresholds, o) for o in ('$b$','$\\frac'))):
        f()
        plt.gcf().canvas.draw()

def test_code_in_a_text_below_a_table_is_code():
    t = Table(dict(a=[1.]))
    t.attrs['reading'] = '`best` is <best>\nsee `now`'
    assert t._repr_html_().endswith('<p style="max-width:50em"><code>best</code> is &lt;best&gt;</p>'
                                    '<p style="max-width:50em">see <code>now</code></p>')
    assert '`best` is <best>' in repr(t)

def test_long_tables_show_ten_rows_and_say_so():
    df = Table(dict(f1=np.linspace(0, 1, 60)), index=[f'label{i}' for i in range(60)])
    for text in (repr(df), df._repr_html_()):
        assert 'label9' in text and 'label10' not in text and '10 of 60 rows' in text
    df.attrs['averages'] = ['label59']
    assert 'label59' in repr(df) and '10 of 59 rows' in repr(df)
    with pd.option_context('display.max_rows', None):
        assert 'label58' in repr(df) and 'rows' not in repr(df)
    assert 'rows' not in repr(df[:20]) and 'label19' in repr(df[:20])

def test_long_texts_follow_pandas():
    text = 'x'*150
    df = Table(dict(item=[text]))
    assert text in df._repr_html_() and text not in repr(df)
    with pd.option_context('display.max_colwidth', None): assert text in repr(df) and text in df._repr_html_()

def test_rows_are_marked_and_ruled_in_html_alone():
    "By their names, also if rows are left out; what rows and columns are is folded"
    t = Table(dict(x=[1.,2.,3.]), index=['a','b','c'])
    plain = t._repr_html_()
    assert '<tr style="font' not in plain and '<details' not in plain
    t.attrs |= dict(marked=['b'], ruled=['b'], about='Columns: `x`.')
    for table in (t, t.loc[['c','b']]):
        styled = re.findall('<tr style="(.*?)">\\s*<th>(.*?)</th>', table._repr_html_().partition('<tbody>')[2])
        assert [o[1] for o in styled]==['b'] and 'bold' in styled[0][0] and 'border-bottom' in styled[0][0]
    assert 'About this table</summary>Columns: <code>x</code>.</details>' in t._repr_html_()
    assert 'Columns' not in repr(t)

def test_limits_that_exclude_0_are_not_shown_as_0():
    assert with_limits(0.0322, 0.0003, 0.0641)=='0.032 (0.0003 to 0.064)'
    assert with_limits(-0.02, -0.04, 0.)=='0.020 (0.000 to 0.040)'
