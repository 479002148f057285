"The package's metadata, all of it read from settings.ini"
from configparser import ConfigParser
from pathlib import Path
from setuptools import setup

parser = ConfigParser(delimiters=['='], interpolation=None)
parser.read(Path(__file__).parent/'settings.ini', encoding='utf-8')
cfg = parser['DEFAULT']
name = cfg['lib_name']

setup(
    name=name, version=cfg['version'], description=cfg['description'], keywords=cfg['keywords'].split(),
    author=cfg['author'], license=cfg['license'], license_files=['LICENSE'],
    long_description=(Path(__file__).parent/'README.md').read_text(encoding='utf-8'), long_description_content_type='text/markdown',
    python_requires=f">={cfg['min_python']}",
    install_requires=cfg['requirements'].split(), extras_require={'dev': cfg['dev_requirements'].split()},
    packages=[name], zip_safe=False,
    entry_points={'nbdev': [f'{name}={name}._modidx:d']})
