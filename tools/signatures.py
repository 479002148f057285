"""Print the signature and the text of `help` of all that is public: `python tools/signatures.py`

fastcore makes many of them, by `@delegates` and `docments`, so `.ci/run` compares those of several versions."""
import inspect
from fastai.learner import Learner, Recorder
import fastai_mlmetrics.all as everything

def is_ours(o): return (getattr(o, '__module__', None) or '').startswith('fastai_mlmetrics')

# What `all.py` imports for users: name -> object
PUBLIC = {k: getattr(everything, k) for k in everything.__all__}

def functions():
    "The public functions and classes, and their methods, also those that fastai's classes gain: name -> object"
    classes = {k: o for k,o in PUBLIC.items() if isinstance(o, type)} | dict(Learner=Learner, Recorder=Recorder)
    methods = {f'{name}.{k}': m for name,cls in classes.items() for k,m in inspect.getmembers(cls, inspect.isroutine)
               if k[0]!='_' and m.__doc__}
    return {k: o for k,o in {**PUBLIC, **methods}.items() if is_ours(o)}

def described(name, o):
    """The signature and the docstring, without what versions of fastcore do in different ways: annotations that they
    turn into text, and comments of `**kwargs`"""
    sig = inspect.signature(o)
    plain = [p.replace(annotation=p.empty) for p in sig.parameters.values()]
    doc = '\n'.join(l for l in inspect.getdoc(o).splitlines() if not l.startswith('  kwargs: '))
    return f'{name}{sig.replace(parameters=plain, return_annotation=sig.empty)}\n{doc}\n'

if __name__=='__main__':
    for name,o in sorted(functions().items()): print(described(name, o))
