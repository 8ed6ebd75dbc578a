"""Places in the user's program, and tracebacks without library frames."""

import functools
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

from bedrax.core import config, ir, names, source, staging, tracing


def library(text, filename=source.__file__):
    """Return the names that `text` defines, run as a file of Bedrax."""
    namespace = {"source": source, "sys": sys}
    exec(compile(text, filename, "exec"), namespace)
    return namespace


lib = library((Path(__file__).with_name("programs") / "library.py").read_text(encoding="utf-8"))


def here():
    return sys._getframe(1).f_lineno


def test_user_frame_skips_our_frames():
    for found, line in ((lib["place"](), here()), (lib["deep"](9), here()), (source.user_frame(), here())):
        assert source.line_of(found) == line
        assert source.describe(found) == f"{__file__}:{line} (test_user_frame_skips_our_frames)"


def test_positions():
    found = lib["place"]()
    file, line, end_line, column, end_column, name = source.position_of(found)
    with open(__file__, encoding="utf-8") as f:
        text = f.read().splitlines()[line - 1]
    assert file == __file__ and line == end_line and name == "test_positions"
    assert text[column - 1 : end_column - 1] == 'lib["place"]()'


def test_the_text_of_an_unknown_place():
    assert source.describe(None) == "unknown place"


def test_a_change_of_the_excluded_paths_applies_to_known_files():
    call = library("def call(): return source.user_frame()", filename="/theirs/file.py")["call"]
    changes = [
        lambda paths: paths.append("/theirs"),
        lambda paths: paths.remove("/theirs"),
        lambda paths: paths.insert(0, "/theirs"),
        lambda paths: paths.pop(0),
        lambda paths: paths.extend(["/theirs"]),
        lambda paths: paths.__delitem__(-1),
        lambda paths: paths.__iadd__(["/theirs"]),
        lambda paths: paths.__setitem__(-1, "/elsewhere"),
    ]
    saved = list(source.exclude_paths)
    try:
        files = []
        for change in changes:
            change(source.exclude_paths)
            files.append(call()[0].co_filename)
        assert files == [__file__, "/theirs/file.py"] * 4
    finally:
        source.exclude_paths[:] = saved


def test_excluded_paths(tmp_path):
    inside = str(tmp_path / "theirs" / "module.py")
    other = library("def f(): return source.user_frame()", inside)["f"]
    assert source.describe(other()).startswith(inside)
    try:
        source.register_exclusion(str(tmp_path / "theirs"))
        assert source.is_excluded(inside) and not source.is_excluded(str(tmp_path / "theirs2.py"))
        assert source.describe(other()).startswith(__file__)
    finally:
        source.exclude_paths.remove(str(tmp_path / "theirs"))
        source._is_ours.clear()


def test_warnings_point_at_the_user():
    with pytest.warns(UserWarning, match="careful") as caught:
        lib["warn"]()
    assert caught[0].filename == __file__


def test_describe_function():
    def f():
        pass

    class Callable:
        def __call__(self):
            pass

    line = f.__code__.co_firstlineno
    assert source.describe_function(f) == f"f at {__file__}:{line}"
    assert source.describe_function(functools.partial(f)) == f"f at {__file__}:{line}"
    assert source.describe_function(source.api_boundary(f)) == f"f at {__file__}:{line}"
    assert source.describe_function(Callable()).startswith(f"Callable at {__file__}")
    assert source.describe_function(len) == "len"


def fail():
    return 1 / 0


def caught(mode):
    entry = source.api_boundary(lib["call"])
    with config.traceback_filtering(mode), pytest.raises(ZeroDivisionError) as info:
        entry(fail)
    error = info.value
    return error, {frame.filename for frame in traceback.extract_tb(error.__traceback__)}


@pytest.mark.parametrize("mode", ["quiet_remove_frames", "remove_frames", "auto"])
def test_our_frames_are_removed(mode):
    error, files = caught(mode)
    assert files == {__file__}
    frames = traceback.extract_tb(error.__traceback__)
    assert [f.name for f in frames][-2:] == ["caught", "fail"]
    if mode == "remove_frames":
        assert isinstance(error.__cause__, source.SimplifiedTraceback)
        assert source.__file__ in {f.filename for f in traceback.extract_tb(error.__cause__.__traceback__)}
    else:
        assert error.__cause__ is None and "JAX_TRACEBACK_FILTERING" in error.__notes__[0]


def test_frames_stay_when_filtering_is_off():
    error, files = caught("off")
    assert source.__file__ in files and not hasattr(error, "__notes__")


def test_frames_are_marked_for_ipython():
    error, files = caught("tracebackhide")
    assert source.__file__ in files
    tb = error.__traceback__
    while tb is not None:
        ours = tb.tb_frame.f_code.co_filename == source.__file__
        assert bool(tb.tb_frame.f_locals.get("__tracebackhide__")) == ours
        tb = tb.tb_next


def test_the_cause_of_a_filtered_error_is_kept():
    def raising():
        raise ValueError("outer") from KeyError("inner")

    with config.traceback_filtering("remove_frames"), pytest.raises(ValueError, match="outer") as info:
        source.api_boundary(raising)()
    assert isinstance(info.value.__cause__, KeyError)


def test_boundaries_nest_and_recover():
    inner = source.api_boundary(lib["call"])

    @source.api_boundary
    def outer(f):
        with pytest.raises(ZeroDivisionError):
            inner(f)
        return inner(lambda: 7)

    assert outer(fail) == 7
    assert caught("quiet_remove_frames")[1] == {__file__}


def test_an_equation_records_its_scopes_and_its_place():
    p = tracing.Primitive("p_of_names")
    p.def_abstract_eval(lambda x: x)

    def f(x):
        with names.named_scope("outer"):
            with names.named_scope("inner"):
                x = p.bind(x)
            x = p.bind(x)
        return p.bind(x)

    jaxpr = staging.make_jaxpr(f)(np.float32(1))
    stacks = [eqn.source_info.name_stack for eqn in jaxpr.eqns]
    assert list(map(str, stacks)) == ["outer/inner", "outer", ""] and stacks[0].stack == ("outer", "inner")
    assert str(stacks[0][:1]) == "outer" and str(stacks[1] + stacks[0][1:]) == "outer/inner"
    copied = [eqn.replace(primitive=eqn.primitive) for eqn in jaxpr.eqns]
    assert [str(eqn.source_info.name_stack) for eqn in copied] == list(map(str, stacks))
    assert source.describe(jaxpr.eqns[0].source_info.traceback) == source.describe(jaxpr.eqns[0].source_info[:2])
    without = ir.Eqn(p, jaxpr.eqns[0].invars, jaxpr.eqns[0].outvars, {}).source_info
    assert without == () and str(without.name_stack) == "" and source.describe(without) == "unknown place"
