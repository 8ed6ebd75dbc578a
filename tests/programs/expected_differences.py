"""The expected differences from upstream: rows of a page for users. `differential.py compare` finds their calls by
patterns, or by a property of the results here, which it checks."""

from typing import NamedTuple

UPSTREAM = "0.10.2"  # the version that `nox -s differential` installs
_RAISES = r".*: error: theirs raises "
_TYPE = r".*: error type: "


class Difference(NamedTuple):
    """A row of the table in `docs/differences.md`.

    Attributes:
      subject: the functions or the feature.
      here: the behaviour of this `jax`.
      upstream: the behaviour of upstream.
      why: the reason of the difference.
      patterns: regular expressions; each matches the beginning of printed lines of `differential.py compare`.
      kinds: in place of patterns: the kinds of arguments that have this difference, if the property holds.
      property: a name in `differential.PROPERTIES`.
    """

    subject: str
    here: str
    upstream: str
    why: str
    patterns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    property: str = ""


EXPECTED = (
    Difference(
        "objects that are arrays only by their method `__jax_array__`",
        "the result of the array",
        "`ValueError` or `TypeError` of most functions of `numpy`",
        "An array can stand wherever an array is expected.",
        kinds=("object",),
        property="as given",
    ),
    Difference(
        "None, texts, types and lists in place of arrays",
        "`TypeError`",
        "`ValueError`, `AttributeError` or a result of some functions",
        "None of them is an array.",
        kinds=("none", "text", "type", "list"),
        property="TypeError",
    ),
    Difference(
        "keys in place of numbers",
        "`TypeError`",
        "`ValueError` of some functions",
        "The type of the argument is wrong, not its value.",
        kinds=("keys",),
        property="TypeError",
    ),
    Difference(
        "`numpy.compress`, `diag`, `extract` and others of keys",
        "the keys, and keys of zeros where NumPy has zeros",
        "`ValueError` or an error of the compiler",
        "The functions move elements.",
        kinds=("keys",),
        property="moved keys",
    ),
    Difference(
        "functions of Python numbers only, or of booleans and Python numbers",
        "weakly typed results",
        "strongly typed results of some functions",
        "Python numbers do not decide the dtype of a later result.",
        (
            r".* \((float|int)\): weak type: .*, False, .* / .*, True, ",
            r"(scipy\.stats|nn)\.\w+(\.\w+)? \(bool\): weak type: .*, False, .* / .*, True, ",
        ),
    ),
    Difference(
        "functions of lists that stand for arrays of rank 0, which are Python numbers",
        "the result of the Python numbers",
        "strongly typed results of some functions",
        "Python numbers do not decide the dtype of a later result.",
        kinds=("list",),
        property="as numbers",
    ),
    Difference(
        "`numpy.place`, `select`, `setdiff1d`, functions of `lax.linalg`, `scipy.linalg.fiedler_companion`, "
        "`lax.custom_linear_solve` of arrays and numbers; the counters of `scipy.optimize.minimize` and `lax.linalg.qdwh`",
        "strongly typed results",
        "weakly typed results",
        "An operand is an array, or the dtype is fixed.",
        (
            r"(scipy\.optimize\.minimize|lax\.linalg\.\w+|numpy\.(place|select|setdiff1d)) .*: weak type: .*, True, .* / .*, False, ",
            r"(scipy\.linalg\.fiedler_companion|lax\.custom_linear_solve) \((float|int)\): weak type: .*, True, .* / .*, False, ",
            r"(scipy\.optimize\.minimize|lax\.linalg\.qdwh) \(x64\): dtype: .*'int64', True, \(\)\) / .*'int32', False, ",
        ),
    ),
    Difference(
        "functions of SciPy of float16, bfloat16, integers and booleans",
        "computed in float32",
        "`TypeError` or `NotImplementedError` of some functions",
        "The operand is converted to a dtype that the function supports.",
        (
            _RAISES
            + r"TypeError: (\w+\.dtype=\w+ is not supported|Only float32 and float64 inputs|\w+ does not accept dtype u?int)",
            _RAISES + r"NotImplementedError: \(KeyError\(<class '\S+'>\), 'Unsupported dtype",
            _RAISES
            + r"TypeError: (while_loop body function carry|primal and tangent arguments to jax.jvp|grad requires real- or)",
            _TYPE + r"TypeError: (Only float32 and float64 inputs|while_loop body function carry)",
            r"scipy\.special\.owens_t \(b?float16\): dtype: ",
        ),
    ),
    Difference(
        "`random.geometric`, `binomial`, `multinomial` with parameters of less than 32 bits",
        "the same numbers as for float32 parameters",
        "other numbers",
        "The tails are too short with fewer bits.",
        (r"random\.(geometric|binomial|multinomial) \((b?float16|u?int8)\): value: ",),
    ),
    Difference(
        "`logcdf`, `isf`, `ppf` of `scipy.stats`, and `expi`, `expn`, `loggamma`, `bessel_jn`, `gammainc`, `gammaincc` of "
        "`scipy.special`, at the ends of the domain and beyond",
        "SciPy's values",
        "other values, or NaN",
        "SciPy's documentation defines the values.",
        (
            r"scipy\.stats\.(beta|gamma)\.logcdf \(u?int8\): value: .* nan\] / .* -inf\]",
            r"scipy\.stats\.(cauchy|gumbel_l|gumbel_r|pareto)\.(isf|ppf) \((bool|u?int8|int)\): value: ",
            r"scipy\.special\.(expi|expn|loggamma|bessel_jn|gammaincc?) .*: value: .*nan",
            r"scipy\.special\.expn \((bool|u?int8)\): value: ",
        ),
    ),
    Difference(
        "`softmax`, `log_softmax`, `scipy.stats.truncnorm` of unsigned integers",
        "the operand is converted to a float before a subtraction",
        "the subtraction wraps around",
        "The difference of unsigned integers may be negative.",
        (r"(nn|scipy\.special)\.(log_)?softmax \(uint8\): value: ", r"scipy\.stats\.truncnorm\.\w+ \(uint8\): value: "),
    ),
    Difference(
        "`scipy.linalg.rsf2csf` of a matrix that is not quasi-triangular",
        "other values",
        "other values",
        "The function is defined for quasi-triangular matrices only.",
        (r"scipy\.linalg\.rsf2csf .*: value: ",),
    ),
    Difference(
        "`scipy.linalg.hankel` and `fiedler_companion` of numbers and empty arrays, `image.resize` of empty arrays, "
        "`scipy.special.sph_harm_y` of arrays of rank 0",
        "computed",
        "`ValueError`, `ZeroDivisionError`, `TypeError`",
        "The arguments are valid.",
        (
            r"scipy\.linalg\.(hankel|fiedler_companion) \((0-d|float|int|empty)\): error: theirs raises ValueError",
            r"image\.resize \(empty\): error: theirs raises ZeroDivisionError",
            r"scipy\.special\.sph_harm_y \((0-d|float)\): error: theirs raises TypeError: len\(\) of unsized",
        ),
    ),
    Difference(
        "`x.at[i].apply(f)` with an integer `i` that is out of range",
        "the update is dropped",
        "`IndexError`",
        "All updates that are out of range are dropped.",
        (r"Array\.at\[[\w ]+\]\.apply \(empty\): error: theirs raises IndexError",),
    ),
    Difference(
        "`lax.gather`, `index_take` of an empty array with a slice that is longer than its axis",
        "`TypeError`",
        "no error",
        "A slice must fit its axis.",
        (r"lax\.(gather|index_take) \(empty\): error: .* ours raises TypeError: gather: slice_sizes",),
    ),
    Difference(
        "`lax.conv_general_dilated_patches`, `conv_general_dilated_local` of booleans",
        "an error",
        "no error",
        "A convolution multiplies numbers.",
        (r"lax\.conv_general_dilated_(local|patches) \(bool\): error: ",),
    ),
    Difference(
        "`scipy.linalg.eigh_tridiagonal` of an empty diagonal",
        "`ValueError`",
        "no error",
        "The other diagonal would need -1 elements.",
        (r"scipy\.linalg\.eigh_tridiagonal \(empty\): error: .* ours raises ValueError",),
    ),
    Difference(
        "arithmetic functions of booleans",
        "computed, as for integers",
        "`TypeError` or `ValueError` of some functions",
        "NumPy computes them.",
        (
            _RAISES + r"TypeError: \w+ does not accept dtype bool",
            _RAISES + r"ValueError: data type <class 'numpy.bool'> not inexact",
        ),
    ),
    Difference(
        "functions of small integers and small floats, such as `numpy.fft.rfft`, `numpy.linalg.det`, `lax.floor`, functions"
        " of `lax.linalg`",
        "the operand is converted to a dtype that the operation supports",
        "`TypeError`, `ValueError` or `NotImplementedError` of some functions",
        "The conversion is exact.",
        (
            r".*linalg\.(det|slogdet) \(b?float16\): error: theirs raises NotImplementedError",
            _RAISES + r"ValueError: data type <class '\S+'> not inexact",
            _RAISES + r"ValueError: RFFT input must be float32 or float64, got b?float16",
            _RAISES + r"TypeError: (floor|logistic) does not accept dtype u?int",
            r"lax\.linalg\.\w+ \(u?int8\): error: theirs raises TypeError: \w+ does not accept dtype",
        ),
    ),
    Difference(
        "Python numbers as arguments",
        "accepted by every function that takes arrays",
        "`AttributeError` or `ValueError` of some functions",
        "A Python number is an array of rank 0.",
        (
            _RAISES + r"AttributeError: '(float|int)' object has no attribute",
            _RAISES + r"ValueError: Cannot broadcast to shape with fewer dimensions",
        ),
    ),
    Difference(
        "arguments whose shapes do not fit",
        "`ValueError` or `TypeError` that states the shape",
        "errors of Python or of the compiler (`AssertionError`, `IndexError`, ...), or the other of these two types",
        "The shape is checked before its use.",
        (
            _TYPE
            + r"(AssertionError|AttributeError|MLIRError|XlaRuntimeError|JaxRuntimeError|ZeroDivisionError|OverflowError): ",
            _TYPE
            + r"IndexError: (tuple|index|list( assignment)? index) .*out of (range|bounds).* / (ValueError|TypeError): ",
            _TYPE
            + r"ValueError: (Incompatible types for broadcasting|safe_map\(\) argument|axis 0 is out of bounds for array of shape)",
            _TYPE
            + r"(TypeError: (scaled_dot does not support|slice limit_indices)|ValueError: Array shapes are not compatible for c)",
            _TYPE + r"TypeError: broadcast_in_dim shape must have",
            _TYPE + r"TypeError: (len\(\) of unsized object|transpose permutation isn't|Input 0 to \w+ must have rank)",
            _TYPE
            + r"TypeError: (add got incompatible shapes|convolution requires lhs and rhs ndim|Slice size at index)",
            _TYPE + r"ValueError: (size must be positive|Cannot lower jaxpr)",
            r"numpy\.(reshape|polyval|delete|linalg\.cond) \([^)]*\): error type: ",
        ),
    ),
    Difference(
        "programs that upstream's compiler rejects in its verification",
        "compiled",
        "`ValueError: Cannot lower jaxpr`",
        "The programs are well typed.",
        (_RAISES + r"ValueError: Cannot lower jaxpr",),
    ),
    Difference(
        "`numpy.histogram`, `histogram2d`, `histogramdd`, `histogram_bin_edges` of empty arrays",
        "NumPy's results",
        "`ValueError`",
        "NumPy computes them.",
        (r"numpy\.histogram\w* \(empty\): error: theirs raises ValueError: zero-size array",),
    ),
    Difference(
        "`numpy.extract(..., size=)` with a size larger than the array",
        "the result is filled up to the size",
        "`ValueError`",
        "`size` is the size of the result.",
        (r"numpy\.extract .*: error: theirs raises ValueError: size must be positive",),
    ),
    Difference(
        "`numpy.partition`, `argpartition`",
        "another order within the two parts",
        "another order within the two parts",
        "The order is unspecified.",
        (r"(numpy|Array)\.(arg)?partition .*: value: ",),
    ),
    Difference(
        "`numpy.setxor1d(..., size=)` of numbers",
        "another fill value of an empty result",
        "another fill value of an empty result",
        "The fill value is unspecified.",
        (r"numpy\.setxor1d \((0-d|float)\): value: ",),
    ),
    Difference(
        "`numpy.fft.fft2`, `fftn` and their inverses along an axis of size 0",
        "`ValueError`",
        "no error",
        "NumPy raises, too.",
        (r"numpy\.fft\.i?r?fft(2|n) \(empty\): error: .* ours raises ValueError: .* is too short",),
    ),
    Difference(
        "`numpy.interp` at a coordinate that occurs twice in `xp`",
        "one of the two values",
        "the other one",
        "Both values are right.",
        (r"numpy\.interp \((u?int8|bool)\): value: ",),
    ),
    Difference(
        "`lax.custom_linear_solve` with a `solve` that returns another type than its argument's",
        "`TypeError`",
        "not checked",
        "The solution has the type of the right-hand side.",
        (r"lax\.custom_linear_solve \(u?int8?\): error: .* solve must return the types of its argument",),
    ),
    Difference(
        "activations of `nn` of booleans and small integers",
        "strongly typed floats",
        "weakly typed, or integers",
        "The operand is an array with a dtype.",
        (r"nn\.\w+ \((bool|u?int8)\): weak type: .*, True, .* / .*, False, ", r"nn\.log\w+ \(uint8\): value: "),
    ),
    Difference(
        "`nn.dot_product_attention` of integers, of booleans, and of arrays without the four axes",
        "`ValueError`",
        "no error, or another one",
        "Attention is defined for floats with these axes.",
        (r"nn\.dot_product_attention \((0-d|float|int|bool|u?int8)\): error: .* ours raises ValueError",),
    ),
    Difference(
        "`x in array`",
        "arrays of any rank",
        "`ValueError`, unless the rank is 1",
        "NumPy accepts any rank.",
        (r"Array\.__contains__ .*: error: theirs raises ValueError",),
    ),
    Difference(
        "`numpy.fmod` of booleans with the divisor False",
        "0",
        "1 for the dividend True",
        "The remainder of integers by 0 is 0.",
        (r"numpy\.fmod \(bool\): value: ",),
    ),
    Difference(
        "`lax.conv_shape_tuple`, `conv_general_shape_tuple`, `conv_transpose_shape_tuple`",
        "tuples of `int`",
        "tuples of NumPy's `int64`",
        "Shapes are tuples of `int`.",
        (r"lax\.conv\w*_shape_tuple .*: class: \('int64', .* / \('int', ",),
    ),
    Difference(
        "results of functions of arrays",
        "`jax.Array`",
        "NumPy arrays from some functions",
        "All results have one type.",
        (r".*: class: \('(ndarray|Subclass|TypedNdArray|TypedFloat|TypedInt)', .* / \('array', ",),
    ),
    Difference(
        "the class of the dtypes of keys",
        "another name",
        "`KeyTy`",
        "The class is not public.",
        (r"(random\.key_dtype|lax\.dtype|Array\.dtype) .*: class: \('KeyTy', ",),
    ),
    Difference(
        "the class of the iterator of an array",
        "that of an iterator over rows, which are computed together",
        "that of a generator",
        "The class is not public.",
        (r"Array\.__iter__ .*: class: \('generator', .* / \('list_iterator', ",),
    ),
    Difference(
        "`weak_type` of an array of keys",
        "`False`",
        "`AttributeError`",
        "Every array has the attribute.",
        (r"Array\.weak_type \(keys\): error: theirs raises AttributeError.*; ours returns \[\('bool', ",),
    ),
    Difference(
        "`numpy.median`, `nanmedian`, `nanquantile`, `nanpercentile` of empty arrays",
        "NaN",
        "`TypeError`, `IndexError`",
        "NumPy returns NaN.",
        kinds=("empty",),
        property="NaN",
    ),
    Difference(
        "`numpy.linalg.matrix_rank` of a matrix without elements",
        "0",
        "`ValueError`",
        "NumPy returns 0.",
        (r"numpy\.linalg\.matrix_rank \(empty\): error: theirs raises ValueError: zero-size array",),
    ),
    Difference(
        "`numpy.argpartition` in the 64-bit mode",
        "int64",
        "int32",
        "The dtype of positions is that of `argsort`.",
        (r"(numpy|Array)\.argpartition \(x64\): dtype: \('array', 'int32', .* / \('array', 'int64', ",),
    ),
    Difference(
        "`numpy.tri` and `scipy.linalg.pascal` in the 64-bit mode",
        "float64",
        "float32 (0.12: `tri` float64)",
        "It is the default float dtype, as in `invpascal`.",
        (r"(numpy\.tri|scipy\.linalg\.pascal) \(x64\): dtype: \('array', 'float32', .* / \('array', 'float64', ",),
    ),
    Difference(
        "`scipy.stats.norm.ppf` and `isf`, `scipy.special.sph_harm_y` of float32 in the 64-bit mode",
        "float32, complex64",
        "float64, complex128",
        "The dtype of the operand is kept.",
        (
            r"scipy\.stats\.norm\.(ppf|isf) \(x64\): dtype: \('array', 'float64', .* / \('array', 'float32', ",
            r"scipy\.special\.sph_harm_y \(x64\): dtype: \('array', 'complex128', .* / \('array', 'complex64', ",
        ),
    ),
    Difference(
        "`dtype=` of `random.beta`, `double_sided_maxwell`, `multivariate_normal` and other samplers, with a shorter dtype than "
        "that of the parameters",
        "numbers of the dtype",
        "`TypePromotionError`, or numbers of the dtype of the parameters",
        "The argument is the dtype of the result.",
        (
            r"random\.\w+ \(dtype\): error: theirs raises TypePromotionError: In arguments to \w+, cannot safely cast "
            r"argument of type float32 to float16; ours returns \[\('array', 'float16', ",
            r"random\.\w+ \(dtype\): dtype: \('array', 'float32', .* / \('array', 'float16', ",
        ),
    ),
    Difference(
        "`scipy.stats.mode` of an empty array",
        "an integer count",
        "a float count",
        "A count is an integer.",
        (r"scipy\.stats\.mode \(empty\): dtype: .*'float32'.* / .*'int32'",),
    ),
    Difference(
        "`Array.__hex__`, `__oct__`, `device_buffer`, `device_buffers`, `lax.ConvGeneralDilatedDimensionNumbers`, "
        "`PrecisionLike`",
        "absent",
        "present",
        "These are hooks of Python 2, buffers of arrays on one device, and names for annotations.",
        (
            r"Array\.(__hex__|__oct__|device_buffers?) .*: record: only theirs",
            r"lax\.(ConvGeneralDilatedDimensionNumbers|PrecisionLike) .*: record: only theirs",
        ),
    ),
    Difference(
        "`scipy.special.lpmn`, `lpmn_values`",
        "present",
        "absent",
        "Older versions of upstream have them.",
        (r"scipy\.special\.lpmn(_values)? .*: record: only ours",),
    ),
    Difference(
        "`numpy.fft.irfftn` over no axes",
        "a real result",
        "a complex result",
        "The transform of reals over no axes is real.",
        (r"numpy\.fft\.irfftn .*: dtype: ",),
    ),
    Difference(
        "`lax.custom_root` with an operand of a narrower dtype than its derivative's",
        "accepted",
        "an error",
        "The derivative is converted.",
        (r"lax\.custom_root .*: error( type)?: ",),
    ),
    Difference(
        "`numpy.promote_types` of arrays",
        "the dtypes of the arrays are promoted",
        "`TypeError`",
        "An array has a dtype.",
        (
            r"numpy\.promote_types .*: error: theirs raises TypeError: Cannot construct a dtype from an array",
            r"numpy\.promote_types \(keys\): error: theirs raises ValueError: Could not convert ",
        ),
    ),
    Difference(
        "`numpy.iscomplexobj` and `isrealobj` of types",
        "NumPy's results",
        "`TypeError`",
        "NumPy computes them.",
        (r"numpy\.is(complex|real)obj \(type\): error: theirs raises TypeError",),
    ),
    Difference(
        "keyword arguments for the function of `numpy.fromfunction`",
        "passed to it as they are",
        "mapped over the first axis",
        "They are not positions.",
        (r"numpy\.fromfunction \(more\): error type: ValueError: vmap was requested",),
    ),
    Difference(
        "`random.choice` of a number, with an axis that numbers do not have",
        "`ValueError`",
        "the axis is not used",
        "The choices have one axis.",
        (r"random\.choice \(wrong axis\): error: .* ours raises ValueError: axis 2 is out of bounds",),
    ),
    Difference(
        "`numpy.argsort(dtype=)` of a float dtype",
        "`ValueError`",
        "positions as floats",
        "Positions are integers.",
        (r"numpy\.argsort \(dtype\): error: .* ours raises ValueError: Invalid integer data type",),
    ),
    Difference(
        "functions of `scipy.special` under strict promotion, `scipy.stats.poisson.entropy` under refused rank promotion",
        "computed, if the arguments have one dtype or shape",
        "`TypePromotionError` of some functions, `ValueError`",
        "The options are about the operands of the user.",
        (
            r"scipy\.special\.\w+ \(strict\): error: theirs raises TypePromotionError",
            r"scipy\.stats\.poisson\.entropy \(rank promotion\): error: theirs raises ValueError: Operands could not",
        ),
    ),
    Difference(
        "`numpy.minmax`, `numpy.top_k`, `lax.log2`, `lax.one_minus_square`, `lax.polynomial`, `lax.psum_scatter_start`, "
        "`scipy.special.erfcinv`",
        "present",
        "absent",
        "Newer versions of upstream have them.",
        (
            r"(numpy\.(minmax|top_k)|lax\.(log2|one_minus_square|polynomial|psum_scatter_start)) .*: record: only ours",
            r"scipy\.special\.erfcinv .*: record: only ours",
        ),
    ),
    Difference(
        "`lax.broadcast_shapes` of objects with a `shape`",
        "their shapes are used",
        "`AssertionError`",
        "The object has a shape.",
        (r"lax\.broadcast_shapes .*: error: theirs raises AssertionError",),
    ),
)


def page() -> str:
    """Return the table of `docs/differences.md`."""
    head = [f"| function or feature | here | upstream {UPSTREAM} | why |", "|---|---|---|---|"]
    return "\n".join([*head, *(f"| {d.subject} | {d.here} | {d.upstream} | {d.why} |" for d in EXPECTED)])
