"""Run what the documentation shows: the examples in docstrings of public objects, then the READMEs and docs/.

An example is a prompt (>>>), whose output must be what is printed, or a ```python block. Each docstring
has a namespace of its own, in which it starts with what its module defines. Printed at the end: how many
public functions and classes have an example.

    python tools/run_documents.py [MODULE...]      default: every module of bedrax, then tools/run_docs.py
"""

import doctest
import importlib
import inspect
import pkgutil
import sys

import run_docs


def modules():
    """The names of all importable public modules of the distribution's packages, parents first."""
    import bedrax

    found = pkgutil.walk_packages(bedrax.__path__, "bedrax.", onerror=lambda name: None)
    return [m.name for m in found if not any(part.startswith("_") for part in m.name.split("."))]


def public(module):
    """Each public function and class that `module` itself defines, and the methods of such classes, by name."""
    for name in getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]):
        value = vars(module).get(name)
        value = inspect.unwrap(value) if callable(value) else value
        if not (inspect.isclass(value) or inspect.isfunction(value)) or value.__module__ != module.__name__:
            continue
        yield name, value
        if inspect.isclass(value):
            for member, method in vars(value).items():
                method = getattr(method, "__func__", getattr(method, "fget", method))
                if inspect.isfunction(method) and not member.startswith("_"):
                    yield f"{name}.{member}", method


def documents(module):
    """(name, docstring) of the module and of what it makes public."""
    yield module.__name__, module.__doc__ or ""
    for name, value in public(module):
        yield f"{module.__name__}.{name}", value.__doc__ or ""


def has_example(text):
    return ">>> " in text or run_docs.FENCE.search(inspect.cleandoc(text)) is not None


def run_text(name, text, namespace):
    """Run the examples of one docstring; return a list of what failed."""
    failures = []
    text = inspect.cleandoc(text)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    plain = [s for s in run_docs.blocks(text) if not s.lstrip().startswith(">>>")]
    for source in plain:
        try:
            exec(compile(source, name, "exec", dont_inherit=True), namespace)
        except Exception as error:
            failures.append(f"{name}: {type(error).__name__}: {error}")
    prompts = run_docs.FENCE.sub(lambda m: m[1], text)  # a closing fence would be read as output
    runner.run(doctest.DocTestParser().get_doctest(prompts, namespace, name, name, 0), out=failures.append)
    return failures


def run_module(name):
    """Run the examples of one module; return (public objects, those with an example, what failed)."""
    module = importlib.import_module(name)
    importlib.import_module("bedrax.numpy_backend")  # so that something evaluates; a package above it may take over
    found = list(documents(module))
    failures = [f for n, text in found if has_example(text) for f in run_text(n, text, dict(vars(module)))]
    return len(found) - 1, sum(has_example(text) for _, text in found[1:]), failures


def main(names):
    results = [run_module(name) for name in names or modules()]
    failures = [failure for _, _, each in results for failure in each]
    print(*failures, sep="\n")
    print(f"{sum(r[1] for r in results)} of {sum(r[0] for r in results)} public objects have an example")
    return bool(failures) or (0 if names else run_docs.main([]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
