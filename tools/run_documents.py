"""Run the examples of the documentation: those in docstrings of public objects, then the READMEs and docs/.

An example is a prompt (>>>), whose output must equal the printed one, or a ```python block. Each docstring has its own
namespace, which starts with the names of its module and with `NAMES`. At the end the program prints how many public functions and
classes have an example.

    python tools/run_documents.py [MODULE...]      default: every module of bedrax and jax, then tools/run_docs.py
"""

import builtins
import contextlib
import doctest
import importlib
import inspect
import pkgutil
import re
import sys

import run_docs

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")

# Public names without examples, and the reasons.
_CLUSTER = "needs several processes, ports, or hardware that is not everywhere"
_COMPILED = "needs a library that was compiled for it: packages/xla_backend/tests/test_ffi.py"
WITHOUT_EXAMPLE = {
    **{
        f"jax.{n}": _CLUSTER
        for n in (
            "distributed.initialize",
            "profiler.register_subprocess",
            "profiler.start_server",
            "profiler.stop_server",
            "experimental.profiler.get_profiled_instructions_proto",
            "experimental.multihost_utils.ltg_batcher",
        )
    },
    **{f"jax.ffi.{n}": _COMPILED for n in ("register_ffi_type", "register_ffi_type_id")},
    **{
        f"jax.debug.{n}": "draws with rich, which is an extra"
        for n in ("visualize_sharding", "visualize_array_sharding")
    },
    "jax.experimental.jax2tf.call_tf.emit_tf_embedded_graph_custom_call": "a part of call_tf, which has an example",
}


class Close(doctest.OutputChecker):
    """Numbers with a fraction may differ in their last places: processors round differently."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        if [x.split() for x in NUMBER.split(want)] != [x.split() for x in NUMBER.split(got)]:
            return False
        pairs = zip(NUMBER.findall(want), NUMBER.findall(got))
        return all(a == b or ("." in a and abs(float(a) - float(b)) <= 3e-6 * max(1, abs(float(a)))) for a, b in pairs)


# A docstring describes the arguments of a function in a section, or names the function whose arguments they are.
ARGUMENTS = re.compile(r"^Args:", re.MULTILINE)
AS_ELSEWHERE = re.compile(r"\barguments (and result )?as (in|for|there)\b|^Args: see `", re.MULTILINE | re.IGNORECASE)

# The modules that classes of the packages below state, as users import them from there.
AS_USERS_SEE = ("jax.errors", "jax.numpy")


def modules():
    """The names of all importable public modules of the distribution's packages, parents first."""
    import bedrax

    found = pkgutil.walk_packages(bedrax.__path__, "bedrax.", onerror=lambda name: None)
    return [m.name for m in found if not any(part.startswith("_") for part in m.name.split("."))]


def public(module):
    """Each public object with a docstring that `module` itself defines, and the methods of its classes, by name.

    Those with an example count as public if ``__all__`` leaves them out: the face may have them under another name.
    """
    public_here = getattr(module, "__all__", None)
    for name in dict.fromkeys((*vars(module), *(public_here or ()))):  # some are made at their first lookup
        found = getattr(module, name, None)
        if name.startswith("_"):
            continue
        value = inspect.unwrap(found) if callable(found) else found
        kind = value if inspect.isclass(value) or inspect.isfunction(value) else type(value)
        if getattr(value, "__module__", kind.__module__) not in (module.__name__, *AS_USERS_SEE):
            continue
        is_object = kind is not value  # such as a ufunc
        if (is_object or public_here is not None and name not in public_here) and not has_example(found.__doc__ or ""):
            continue
        yield name, found
        if inspect.isclass(value):
            for member, method in vars(value).items():
                method = getattr(method, "__func__", getattr(method, "fget", method))
                if inspect.isfunction(method) and not member.startswith("_"):
                    yield f"{name}.{member}", method


def documents(module):
    """(name, docstring) of the module and of its public names."""
    yield module.__name__, module.__doc__ or ""
    for name, value in public(module):
        yield f"{module.__name__}.{name}", value.__doc__ or ""


def has_example(text):
    return ">>> " in text or run_docs.FENCE.search(inspect.cleandoc(text)) is not None


def run_text(name, text, namespace):
    """Run the examples of one docstring. Returns the list of failures."""
    failures = []
    text = inspect.cleandoc(text)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(Close(), optionflags=flags, verbose=False)
    plain = [s for s in run_docs.blocks(text) if not s.lstrip().startswith(">>>")]
    for source in plain:
        try:
            exec(compile(source, name, "exec", dont_inherit=True), namespace)
        except Exception as error:
            failures.append(f"{name}: {type(error).__name__}: {error}")
    prompts = run_docs.FENCE.sub(lambda m: m[1], text)  # a closing fence would be read as output
    runner.run(doctest.DocTestParser().get_doctest(prompts, namespace, name, name, 0), out=failures.append)
    return failures


def faces():
    """The names of all modules of `jax`, parents first."""
    import jax

    found = pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda name: None)
    return ["jax", *(m.name for m in found if "._" not in m.name)]


def stated(name):
    """(name, value, docstring) of each public function and class of ours that a module of `jax` has and its package has not.

    Names that a package offers count as well.
    """
    module, package = importlib.import_module(name), importlib.import_module(name.rpartition(".")[0] or name)
    if name.startswith("jax.extend.mlir"):
        return
    for n in getattr(module, "__all__", ()):
        value = getattr(module, n)
        if package is not module and getattr(package, n, None) is value:
            continue
        text = inspect.getdoc(value) or ""
        ours = str(getattr(value, "__module__", "")).partition(".")[0] in ("jax", "bedrax")
        if (inspect.isclass(value) or inspect.isroutine(value)) and ours and not text.startswith("Not supported"):
            yield f"{name}.{n}", value, text


def lacking(name):
    """The public functions and classes of a module of `jax` without an example and without an entry in the table."""
    for n, _, text in stated(name):
        if not has_example(text) and n not in WITHOUT_EXAMPLE and f"{name}.*" not in WITHOUT_EXAMPLE:
            yield n


def lacking_arguments(name):
    """The public functions of a module of `jax` that do not describe a parameter, and these parameters.

    A description names the parameter before the examples. The names of positional parameters may differ from it.
    """
    for n, value, text in stated(name):
        parameters = inspect.signature(value).parameters.values() if inspect.isroutine(value) else ()
        if len(parameters) < 2 or AS_ELSEWHERE.search(text):
            continue
        described = text.partition("\nExamples:")[0]
        named = [p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY and not p.name.startswith("_")]
        missing = [p for p in named if not re.search(rf"\b{p}\b", described)]
        if missing or not ARGUMENTS.search(text):
            yield f"{n}: {', '.join(missing) or 'no section'}"


def left_over():
    """Entries of the table whose name is absent or has an example."""
    for entry in WITHOUT_EXAMPLE:
        name, _, n = entry.rpartition(".")
        module = importlib.import_module(name)
        if n != "*" and (not hasattr(module, n) or has_example(getattr(module, n).__doc__ or "")):
            yield entry


# The names that an example may use without an import, and their modules: the first one that is installed.
NAMES = {"jax": ("jax",), "jnp": ("jax.numpy", "bedrax.numpy"), "lax": ("jax.lax", "bedrax.lax"), "np": ("numpy",)}


def names_of_users():
    """The modules of `NAMES`, where they are installed."""
    found = {}
    for name, places in NAMES.items():
        for place in places:
            with contextlib.suppress(ModuleNotFoundError):
                found[name] = importlib.import_module(place)
                break
    return found


def run_module(name):
    """Run the examples of one module. Returns (public objects, those with an example, failures)."""
    module = importlib.import_module(name)
    importlib.import_module("bedrax.numpy_backend")  # an executor; a package above may replace it
    found = list(documents(module))
    names = {n: value for n, value in vars(module).items() if not hasattr(builtins, n)}  # `sum` is Python's for users
    failures = [f for n, text in found if has_example(text) for f in run_text(n, text, names | names_of_users())]
    return len(found) - 1, sum(has_example(text) for _, text in found[1:]), failures


def main(names):
    results = [run_module(name) for name in names or modules() if name.startswith("bedrax")]
    failures = [failure for _, _, each in results for failure in each]
    interfaces = [name for name in names or faces() if name.startswith("jax")]
    failures += [f"no example: {n}" for name in interfaces for n in lacking(name)]
    failures += [f"no description of the arguments: {n}" for name in interfaces for n in lacking_arguments(name)]
    print(*failures, sep="\n")
    print(f"{sum(r[1] for r in results)} of {sum(r[0] for r in results)} public objects have an example")
    return bool(failures) or (0 if names else run_docs.main([]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
