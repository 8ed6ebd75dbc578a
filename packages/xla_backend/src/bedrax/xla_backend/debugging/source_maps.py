"""Source maps (`jax.experimental.source_mapper`): the user's source line of each line of a program.

A `Pass` makes a program of a function, and a dump of it with a `SourceMap` (version 3, as browsers read them). The
passes here print the jaxpr, the StableHLO module, and XLA's modules before and after optimization.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bedrax.core.staging import make_jaxpr
from bedrax.xla_backend import jit

__all__ = [
    "MappingsGenerator",
    "Pass",
    "SourceMap",
    "SourceMapDump",
    "all_passes",
    "canonicalize_filename",
    "compile_with_env",
    "create_mlir_sourcemap",
    "filter_passes",
    "generate_sourcemaps",
    "register_pass",
]

# The segments of each line of the program: a column; then optionally the number of a source, a line, a column; then
# optionally the number of a name. All are relative to the previous segment (the first column to the start of the line).
Segment: TypeAlias = tuple[int, ...]
Mappings: TypeAlias = list[list[Segment]]

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _encoded(numbers: Iterable[int]) -> str:
    """Numbers in base 64 with a sign bit: five bits in each digit, and one bit that marks a following digit."""
    out = []
    for n in numbers:
        n = -n << 1 | 1 if n < 0 else n << 1
        while True:
            n, digit = n >> 5, n & 31
            out.append(_DIGITS[digit | (32 if n else 0)])
            if not n:
                break
    return "".join(out)


def _decoded(text: str) -> Segment:
    found, value, shift = [], 0, 0
    for letter in text:
        digit = _DIGITS.index(letter)
        value |= (digit & 31) << shift
        shift += 5
        if not digit & 32:
            found.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return tuple(found)


@dataclass(frozen=True)
class SourceMap:
    """A map from the positions of a text to those of its sources.

    Attributes:
      version: 3.
      sources: names of files.
      sources_content: their texts, if known.
      names: names that segments refer to.
      mappings: see `Mappings`.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> given = source_mapper.SourceMap(3, ["model.py"], ["y = sin(x)"], [], [[(4, 0, 0, 4)]])
      >>> text = given.to_json()
      >>> source_mapper.SourceMap.from_json(text) == given
      True
    """

    version: int
    sources: Sequence[str]
    sources_content: Sequence[str]
    names: Sequence[str]
    mappings: Mappings

    @classmethod
    def from_json(cls, json_data: str) -> SourceMap:
        """Read the output of `to_json`."""
        data = json.loads(json_data)
        lines = [[_decoded(part) for part in line.split(",") if part] for line in data["mappings"].split(";")]
        return cls(data["version"], data["sources"], data["sourcesContent"], data["names"], lines)

    def to_json(self) -> str:
        """The map as JSON, in the form that browsers read."""
        lines = ";".join(",".join(map(_encoded, line)) for line in self.mappings)
        return json.dumps(
            dict(
                version=self.version,
                sources=list(self.sources),
                sourcesContent=list(self.sources_content),
                names=list(self.names),
                mappings=lines,
            )
        )


class MappingsGenerator:
    """Makes `Mappings` from segments with absolute positions.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> generator = source_mapper.MappingsGenerator()
      >>> generator.new_group()
      >>> generator.new_segment(4, 0, 11, 2)  # column; file, line, column of the source
      >>> generator.mappings()
      [[(4, 0, 11, 2)]]
    """

    def __init__(self) -> None:
        self._lines: Mappings = []
        self._before = [0, 0, 0, 0, 0]

    def new_group(self) -> None:
        """Begin the next line."""
        self._lines.append([])
        self._before[0] = 0

    def new_segment(self, *seg: int) -> None:
        """Add a segment to the line: ``column[, source, line, column[, name]]``, counted from 0."""
        if len(seg) not in (1, 4, 5):
            raise ValueError(f"a segment has 1, 4 or 5 numbers, got {seg}")
        self._lines[-1].append(tuple(n - before for n, before in zip(seg, self._before)))
        self._before[: len(seg)] = seg

    def mappings(self) -> Mappings:
        """The mappings of the segments so far."""
        return self._lines


@dataclass(frozen=True)
class SourceMapDump:
    """A program as text, its map, and the name of the pass that made them.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> (dump, *_) = source_mapper.generate_sourcemaps(lambda x: jnp.sin(x), source_mapper.filter_passes("hlo"))(1.)
      >>> dump.source_map.version, len(dump.source_map.sources) > 0
      (3, True)
    """

    source_map: SourceMap
    generated_code: str
    pass_name: str


@dataclass(frozen=True)
class Pass:
    """A function that makes a program and one that dumps it.

    Attributes:
      name: its name.
      compile_fn: ``(folder for files, function, args, kwargs, **options) -> anything``.
      generate_dump: ``(result of compile_fn, folder) -> SourceMapDump``.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> def compile_fn(folder, f, args, kwargs, **options):
      ...     return jax.make_jaxpr(f)(*args, **kwargs)
      ...
      >>> def generate_dump(program, folder):
      ...     return source_mapper.SourceMapDump(source_mapper.SourceMap(3, [], [], [], []), str(program), "as text")
      ...
      >>> as_text = source_mapper.Pass("as text", compile_fn, generate_dump)
      >>> (dump,) = source_mapper.generate_sourcemaps(jnp.negative, [as_text])(1.)
      >>> dump.generated_code
      '{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }'
    """

    name: str
    compile_fn: Callable[..., Any]
    generate_dump: Callable[[Any, str], SourceMapDump]


_passes: dict[str, Pass] = {}


def register_pass(pass_: Pass) -> None:
    """Add a pass.

    Raises:
      ValueError: a pass of this name exists.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> (first, *_) = source_mapper.all_passes()
      >>> try:
      ...     source_mapper.register_pass(first)
      ... except ValueError as error:
      ...     print(first.name in str(error))
      ...
      True
    """
    if pass_.name in _passes:
        raise ValueError(f"there is a pass {pass_.name!r} already")
    _passes[pass_.name] = pass_


def all_passes() -> Sequence[Pass]:
    """The registered passes.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> [p.name for p in source_mapper.all_passes()][:4]
      ['jaxpr', 'hlo:stable-hlo', 'hlo:original', 'hlo:optimized']
    """
    return list(_passes.values())


def filter_passes(regex: str) -> Sequence[Pass]:
    """The passes whose names a regular expression matches, from the beginning.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> [p.name for p in source_mapper.filter_passes("hlo")]
      ['hlo:stable-hlo', 'hlo:original', 'hlo:optimized']
    """
    return [p for p in _passes.values() if re.match(regex, p.name)]


def generate_sourcemaps(
    f: Callable[..., Any], passes: Sequence[Pass], **pass_kwargs: Any
) -> Callable[..., Sequence[SourceMapDump]]:
    """A function of the arguments of `f` that returns a dump for each pass.

    Args:
      pass_kwargs: options for the passes.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> dumps = source_mapper.generate_sourcemaps(lambda x: jnp.sin(x), source_mapper.filter_passes("hlo"))(1.)
      >>> [(dump.pass_name, "sine" in dump.generated_code) for dump in dumps]
      [('hlo:stable-hlo', True), ('hlo:original', True), ('hlo:optimized', True)]
    """

    def dumps(*args: Any, **kwargs: Any) -> Sequence[SourceMapDump]:
        with tempfile.TemporaryDirectory() as folder:
            return [p.generate_dump(p.compile_fn(folder, f, args, kwargs, **pass_kwargs), folder) for p in passes]

    return dumps


def canonicalize_filename(file_name: str) -> str:
    """A file's name without the folder in which a build system runs programs.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> source_mapper.canonicalize_filename("models/train.py")
      'models/train.py'
    """
    return re.sub(r"^.*\.runfiles/[^/]*/", "", file_name)


def compile_with_env(
    f: Callable[..., Any],
    f_args: Sequence[Any],
    f_kwargs: dict[str, Any],
    env_flags: dict[Any, Any],
    compiler_flags: dict[str, Any],
) -> Any:
    """Compile a function while variables of the environment are set.

    Args:
      f: a function, or the result of `jit`.
      f_args, f_kwargs: its positional and keyword arguments, arrays or `ShapeDtypeStruct`.
      env_flags: values of environment variables by name, strings. The variables get their former values afterwards.
      compiler_flags: options of the compiler by name.

    Returns:
      The compiled function.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> compiled = source_mapper.compile_with_env(jax.jit(jnp.sin), (0.,), {}, {"NAME_OF_A_VARIABLE": "1"}, {})
      >>> compiled(0.)
      Array(0., dtype=float32, weak_type=True)
    """
    with contextlib.ExitStack() as stack:
        for name, value in env_flags.items():
            before = os.environ.get(name)
            os.environ[name] = value
            stack.callback(
                os.environ.pop if before is None else os.environ.__setitem__, name, *() if before is None else (before,)
            )
        return jit(f).lower(*f_args, **f_kwargs).compile(compiler_options=dict(compiler_flags))


# ---- maps of texts: for each line, the column at which what is mapped begins, and (file, line, column) counted from 1


def _map(lines: Iterable[tuple[int, tuple[str, int, int] | None]]) -> SourceMap:
    made, sources = MappingsGenerator(), {}
    for column, place in lines:
        made.new_group()
        if place is not None:
            file, line, at = place
            number = sources.setdefault(canonicalize_filename(file), len(sources))
            made.new_segment(column, number, line - 1, max(at - 1, 0))
    return SourceMap(3, list(sources), [], [], made.mappings())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _of_jaxpr(text: str) -> SourceMap:
    def place(line):
        found = re.search(r"# (.+):(\d+) \(.*\)$", line)
        return None if found is None else (found[1], int(found[2]), 1)

    return _map((_indent(line), place(line)) for line in text.splitlines())


def create_mlir_sourcemap(mlir_dump: str) -> SourceMap:
    """The map of an MLIR module that was printed with its locations.

    Examples:

      >>> from jax.experimental import source_mapper

      >>> text = jax.jit(lambda x: jnp.sin(x)).lower(1.).as_text(debug_info=True)
      >>> source_mapper.create_mlir_sourcemap(text).version
      3
    """
    table = dict(re.findall(r"^(#loc\d*) = (loc\(.*\))$", mlir_dump, re.MULTILINE))

    def place(location, depth=0):
        """The first file in a location, names looked up."""
        direct = re.search(r'"([^"]+)":(\d+):(\d+)', location)
        if direct is not None:
            return direct[1], int(direct[2]), int(direct[3])
        if depth > 20:
            return None
        for name in re.findall(r"#loc\d*", location):
            found = place(table.get(name, ""), depth + 1)
            if found is not None:
                return found
        return None

    def of_line(line):
        if line.startswith("#loc"):
            return None
        found = re.search(r"loc\((.*)\)\s*\{?$", line)
        return None if found is None else place(found[1])

    return _map((_indent(line), of_line(line)) for line in mlir_dump.splitlines())


def _of_hlo(text: str) -> SourceMap:
    def table(title):
        found = re.search(rf"^{title}\n((?:\d+ .*\n)+)", text, re.MULTILINE)
        return dict(line.split(" ", 1) for line in found[1].splitlines()) if found else {}

    files, places, frames = table("FileNames"), table("FileLocations"), table("StackFrames")

    def number(record, name):
        return re.search(rf"{name}=(\d+)", record)[1]

    def place(line):
        frame = re.search(r"stack_frame_id=(\d+)", line)
        if frame is None or frame[1] not in frames:
            return None
        where = places[number(frames[frame[1]], "file_location_id")]
        return files[number(where, "file_name_id")].strip('"'), int(number(where, "line")), int(number(where, "column"))

    return _map((_indent(line), place(line)) for line in text.splitlines())


def _dump(name: str, source_map: Callable[[str], SourceMap]) -> Callable[[str, str], SourceMapDump]:
    return lambda text, folder: SourceMapDump(source_map(text), text, name)


def _jaxpr(folder, f, args, kwargs, **options):
    return make_jaxpr(f)(*args, **kwargs).pretty_print(source_info=True)


def _stable_hlo(folder, f, args, kwargs, **options):
    return jit(f).lower(*args, **kwargs).as_text(debug_info=True)


def _hlo(folder, f, args, kwargs, **options):
    return jit(f).lower(*args, **kwargs).as_text("hlo")


def _optimized(folder, f, args, kwargs, env_flags=(), compiler_options=(), **options):
    return compile_with_env(f, args, kwargs, dict(env_flags), dict(compiler_options)).as_text()


for _name, _make, _read in (
    ("jaxpr", _jaxpr, _of_jaxpr),
    ("hlo:stable-hlo", _stable_hlo, create_mlir_sourcemap),
    ("hlo:original", _hlo, _of_hlo),
    ("hlo:optimized", _optimized, _of_hlo),
):
    register_pass(Pass(_name, _make, _dump(_name, _read)))
