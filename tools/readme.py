"Write README.md and its images from nbs/index.ipynb"
import json, re
from pathlib import Path
import nbformat
from nbconvert import MarkdownExporter
from nbdev.process import NBProcessor

root = Path(__file__).parent.parent

def render():
    "The files of the README: name -> content, in bytes"
    nb = NBProcessor(root/'nbs'/'index.ipynb', process=True).nb
    nb.cells = [c for c in nb.cells if c.source and 'hide' not in c.directives_]
    for c in nb.cells:
        quiet = c.pop('directives_').get('echo')=='false'
        c.metadata = dict(tags=['no_input'] if quiet else [])
    nb = nbformat.reads(json.dumps(nb), as_version=4)
    nb.metadata.language_info = dict(name='python')
    exporter = MarkdownExporter(config={'TagRemovePreprocessor': dict(enabled=True, remove_input_tags=['no_input'])})
    resources = dict(output_files_dir='README_files', unique_key='readme')
    text,resources = exporter.from_notebook_node(nb, resources=resources)
    text = re.sub(r'<style.*?</style>\n?', '', text, flags=re.S)
    # Repositories show no styles: a box is a quotation there
    text = re.sub(r'<div style="display:inline-block.*?">(.*?)</div>', r'<blockquote>\1</blockquote>', text, flags=re.S)
    text = re.sub(r'(<\w+) style="[^"]*"', r'\1', text)
    text = '\n'.join(l.rstrip() for l in text.strip().splitlines())
    return {'README.md': (re.sub(r'\n{3,}', '\n\n', text)+'\n').encode(), **resources.get('outputs', {})}

if __name__=='__main__':
    for name,content in render().items():
        (root/name).parent.mkdir(exist_ok=True)
        (root/name).write_bytes(content)
