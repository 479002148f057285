"""Write README.md from nbs/index.ipynb, and the list of all pages: nbs/README.md, and for programs nbs/llms.txt"""
import json, re, runpy
from pathlib import Path
import nbformat
from nbconvert import MarkdownExporter
from nbdev.process import NBProcessor

root = Path(__file__).parent.parent
INDEX = root/'nbs'/'index.ipynb'

def readme():
    "The text of README.md"
    nb = NBProcessor(INDEX, process=True).nb
    nb.cells = [c for c in nb.cells if c.source and 'hide' not in c.directives_]
    for c in nb.cells: c.pop('directives_')
    nb = nbformat.reads(json.dumps(nb), as_version=4)
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
    *kinds,(making,what_for,_) = docs['KINDS'].values()
    sections = [f'## {title}\n\n{what}\n\n'+'\n'.join(entry(o, docs['HEADINGS'].get(o)) for o in files).lstrip()
                for title,what,files in [*kinds, (making, what_for, docs['MODULES'])]]
    name,description = (docs['settings'][o] for o in ('lib_name','description'))
    # As https://llmstxt.org wants it: no headings below the second level
    plain = [f'## {title}\n\n'+'\n'.join(entry(o, None) for o in files) for title,_,files in kinds]
    first = ('If you read one page, read [Start](tutorials/01_start.ipynb). If your model predicts nothing, '
             '[begin here](howto/30_predicts_nothing.ipynb).')
    return {'nbs/README.md': '\n\n'.join(['# All pages', first, *sections])+'\n',
            'nbs/llms.txt': '\n\n'.join([f'# {name}', f'> {description}', *plain])+'\n'}

def render():
    "The files that are written: name -> text"
    return {'README.md': readme(), **pages()}

if __name__=='__main__':
    for name,text in render().items(): (root/name).write_text(text, encoding='utf-8')
