"""Write README.md from nbs/index.ipynb, and the list of all pages: nbs/README.md, and for programs nbs/llms.txt

`--picture` first draws nbs/images/warning.png, the table and the message that nbs/index.ipynb saves, with Chromium.
Without it, a picture of another run is an error."""
import hashlib, json, re, runpy, shutil, subprocess, sys, tempfile
from pathlib import Path
import nbformat
from bs4 import BeautifulSoup
from nbconvert import MarkdownExporter
from nbdev.process import NBProcessor
from PIL import Image, ImageChops
from PIL.PngImagePlugin import PngInfo

root = Path(__file__).parent.parent
INDEX,PICTURE = root/'nbs'/'index.ipynb',root/'nbs'/'images'/'warning.png'

def soup(html): return BeautifulSoup(html, 'html.parser')

def html_of(output): return ''.join(output.get('data', {}).get('text/html', ''))
def is_table(html): return 'class="fastprogress"' in html
def is_box(html): return 'border-left:' in html

def first_remedy(html):
    "The callback's box without the remedies after the first one"
    box = soup(html).div
    for o in box.select('details, ul ~ ul > li:not(:first-child)'): o.decompose()
    return box

# --- the picture

# As in Jupyter, in larger letters: README pages are narrower than the picture
STYLE = """
body { box-sizing: border-box; width: 1000px; margin: 0; padding: 2px 0; background: #fff; color: #1f2328;
       font: 17px/1.4 'Helvetica Neue', Arial, sans-serif; }
table { border-collapse: collapse; width: 100%; margin-bottom: 14px; }
th, td { padding: 5px 8px; border: 1px solid #ddd; text-align: left; }
thead tr, tr:nth-child(even) { background: #f8f9fa; }
div { max-width: none !important; }
code { font: 15px 'DejaVu Sans Mono', monospace; background: #f0f1f2; padding: 1px 3px; }"""

def drawn():
    "The page of the picture: fastai's table without the times, and the callback's box"
    cells = json.loads(INDEX.read_text(encoding='utf-8'))['cells']
    found = [html_of(o) for c in cells for o in c.get('outputs', ())]
    table,box = soup(next(filter(is_table, found))).table,first_remedy(next(filter(is_box, found)))
    for row in table('tr'): row(['th','td'])[-1].decompose()
    return f'<meta charset="utf-8"><style>{STYLE}</style>{table}{box}'

def digest(): return hashlib.sha256(drawn().encode()).hexdigest()

def draw():
    "Write the picture, which says what it was drawn from"
    browser = next(filter(None, map(shutil.which, ('chromium','chromium-browser','google-chrome'))), None)
    if not browser: sys.exit('The picture needs Chromium: apt-get install -y chromium')
    with tempfile.TemporaryDirectory() as tmp:
        page,png = Path(tmp)/'page.html',Path(tmp)/'page.png'
        page.write_text(drawn(), encoding='utf-8')
        options = '--headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,2000'.split()
        subprocess.run([browser, *options, f'--screenshot={png}', page.as_uri()], check=True, capture_output=True)
        im = Image.open(png).convert('RGB')
    *_,bottom = ImageChops.difference(im, Image.new('RGB', im.size, 'white')).getbbox()
    info = PngInfo()
    info.add_text('drawn from', digest())
    im.crop((0, 0, im.width, bottom+3)).quantize(64).save(PICTURE, pnginfo=info, optimize=True)

# --- the texts

def for_readme(cell):
    "Keep of a cell's HTML the callback's box, as a quotation: repositories show no styles, and the picture the table"
    outputs = []
    for o in cell.get('outputs', ()):
        html = html_of(o)
        if is_box(html):
            box = first_remedy(html)
            box.name = 'blockquote'
            for tag in (box, *box.find_all(True)): tag.attrs.pop('style', None)
            o.data = {'text/html': str(box)}
        if is_box(html) or not html: outputs.append(o)
    cell.outputs = outputs

def readme():
    "The text of README.md"
    nb = NBProcessor(INDEX, process=True).nb
    nb.cells = [c for c in nb.cells if c.source and 'hide' not in c.directives_]
    for c in nb.cells: c.pop('directives_')
    nb = nbformat.reads(json.dumps(nb), as_version=4)
    nb.metadata.language_info = dict(name='python')
    for c in nb.cells:
        if c.cell_type=='code': for_readme(c)
    text,_ = MarkdownExporter().from_notebook_node(nb)
    text = '\n'.join(l.rstrip() for l in text.strip().splitlines())
    return re.sub(r'\n{3,}', '\n\n', text)+'\n'

def entry(page, heading):
    "The lines of a page in a list: a heading, if there is one, its title, which leads to it, and its summary"
    first = ''.join(json.loads(page.read_text(encoding='utf-8'))['cells'][0]['source'])
    title,summary = re.match(r'# (.*)\s+> (.*)', first).groups()
    return (f'\n### {heading}\n\n' if heading else '')+f'- [{title}]({page.relative_to(INDEX.parent)}): {summary}'

def pages():
    "The texts of nbs/README.md and nbs/llms.txt: the lists of pages that the site has"
    docs = runpy.run_path(root/'tools'/'docs.py')
    kinds = [o for kind,o in docs['KINDS'].items() if kind!='making']
    sections = [f'## {title}\n\n{what}\n\n'+'\n'.join(entry(o, docs['HEADINGS'].get(o)) for o in files).lstrip()
                for title,what,files in kinds]
    name,description = (docs['settings'][o] for o in ('lib_name','description'))
    # As https://llmstxt.org wants it: no headings below the second level
    plain = [f'## {title}\n\n'+'\n'.join(entry(o, None) for o in files) for title,_,files in kinds]
    return {'nbs/README.md': '\n\n'.join(['# All pages', *sections])+'\n',
            'nbs/llms.txt': '\n\n'.join([f'# {name}', f'> {description}', *plain])+'\n'}

def render():
    "The files that are written: name -> text"
    return {'README.md': readme(), **pages()}

if __name__=='__main__':
    if '--picture' in sys.argv[1:]: draw()
    for name,text in render().items(): (root/name).write_text(text, encoding='utf-8')
    with Image.open(PICTURE) as im:
        if im.text['drawn from']!=digest(): sys.exit('The picture is of another run: python tools/readme.py --picture')
