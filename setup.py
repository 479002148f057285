"The package's metadata, all of it read from settings.ini"
import re
from configparser import ConfigParser
from pathlib import Path
from setuptools import find_packages, setup

root = Path(__file__).parent
parser = ConfigParser(delimiters=['='], interpolation=None)
parser.read(root/'settings.ini', encoding='utf-8')
cfg = parser['DEFAULT']
name,git_url,doc_host = cfg['lib_name'],cfg.get('git_url', '').rstrip('/'),cfg.get('doc_host', '')

def for_index(text):
    "The README for a package index: links to files lead to `git_url`; without it they go, pictures too"
    def absolute(m):
        bang,label,path = m.groups()
        if ':' in path or path[0]=='#': return m[0]
        if not git_url: return '' if bang else label
        return f"{bang}[{label}]({git_url}/{'raw' if bang else 'blob'}/HEAD/{path})"
    parts = re.split(r'(?ms)(^```.*?^```)', text)
    return ''.join(o if i%2 else re.sub(r'(!?)\[([^\]]*)\]\(([^)\s]+)\)', absolute, o) for i,o in enumerate(parts))

extras = {o: cfg[f'{o}_requirements'].split() for o in ('test','docs','dev')}
extras['dev'] = sorted({*extras['test'], *extras['docs'], *extras['dev']})

setup(
    name=name, version=cfg['version'], description=cfg['description'], keywords=cfg['keywords'].split(),
    author=cfg['author'], license_expression=cfg['license'], license_files=['LICENSE'],
    long_description=for_index((root/'README.md').read_text(encoding='utf-8')),
    long_description_content_type='text/markdown',
    classifiers=cfg['classifiers'].strip().splitlines(),
    project_urls={k: v for k,v in dict(Source=git_url, Documentation=doc_host).items() if v},
    python_requires=f">={cfg['min_python']}",
    install_requires=cfg['requirements'].split(), extras_require=extras,
    packages=find_packages(include=[name, f'{name}.*']),
    package_data={f'{name}.reports': ['page.html','glossary.txt']}, zip_safe=False,
    entry_points={'nbdev': [f'{name}={name}._modidx:d']})
