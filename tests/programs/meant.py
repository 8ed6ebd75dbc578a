"""Differences from upstream that are meant: reason -> patterns of the lines that `differential.py compare` prints."""

_RAISES = r".*: error: theirs raises "
_TYPE = r".*: error type: "

MEANT: dict[str, list[str]] = {
    "Functions of nothing but Python numbers give weakly typed results, and so do those of truth values and such numbers.": [
        r".* \((float|int)\): weak type: .*, False, .* / .*, True, ",
        r"(scipy\.stats|nn)\.\w+(\.\w+)? \(bool\): weak type: .*, False, .* / .*, True, ",
    ],
    "Counters of iterations, and what is made of an array besides numbers, are strongly typed.": [
        r"(scipy\.optimize\.minimize|lax\.linalg\.\w+|numpy\.(place|select|setdiff1d)) .*: weak type: .*, True, .* / .*, False, ",
        r"(scipy\.linalg\.fiedler_companion|lax\.custom_linear_solve) \((float|int)\): weak type: .*, True, .* / .*, False, ",
    ],
    "Functions of SciPy's are computed in float32 for shorter floats, and for integers and truth values.": [
        _RAISES + r"TypeError: (\w+\.dtype=\w+ is not supported|Only float32 and float64 inputs|\w+ does not accept dtype u?int)",
        _RAISES + r"NotImplementedError: \(KeyError\(<class '\S+'>\), 'Unsupported dtype",
        _RAISES + r"TypeError: (while_loop body function carry|primal and tangent arguments to jax.jvp|grad requires real- or)",
        _TYPE + r"TypeError: (Only float32 and float64 inputs|while_loop body function carry)",
        r"scipy\.special\.owens_t \(b?float16\): dtype: ",
    ],
    "Numbers drawn for parameters of less than 32 bits are drawn as for float32: their tails are too short otherwise.": [
        r"random\.(geometric|binomial|multinomial) \((b?float16|u?int8)\): value: ",
    ],
    "Values at the ends of the domain, and beyond, are SciPy's.": [
        r"scipy\.stats\.(beta|gamma)\.logcdf \(u?int8\): value: .* nan\] / .* -inf\]",
        r"scipy\.stats\.(cauchy|gumbel_l|gumbel_r|pareto)\.(isf|ppf) \((bool|u?int8|int)\): value: ",
        r"scipy\.special\.(expi|expn|loggamma|bessel_jn|gammaincc?) .*: value: .*nan",
        r"scipy\.special\.expn \((bool|u?int8)\): value: ",
    ],
    "Unsigned integers are made floats before anything is subtracted from them.": [
        r"(nn|scipy\.special)\.(log_)?softmax \(uint8\): value: ", r"scipy\.stats\.truncnorm\.\w+ \(uint8\): value: ",
    ],
    "What is no quasi-triangular matrix has no complex Schur form.": [r"scipy\.linalg\.rsf2csf .*: value: "],
    "Vectors are vectors, and arrays of no elements are arrays: no function of SciPy's refuses them for that.": [
        r"scipy\.linalg\.(hankel|fiedler_companion) \((0-d|float|int|empty)\): error: theirs raises ValueError",
        r"image\.resize \(empty\): error: theirs raises ZeroDivisionError",
        r"scipy\.special\.sph_harm_y \((0-d|float)\): error: theirs raises TypeError: len\(\) of unsized",
    ],
    "An update out of range is dropped, that of `apply` with a number included.": [
        r"Array\.at\[[\w ]+\]\.apply \(empty\): error: theirs raises IndexError",
    ],
    "A slice is not longer than the axis that it is taken from, in a gather of nothing, too.": [
        r"lax\.(gather|index_take) \(empty\): error: .* ours raises TypeError: gather: slice_sizes",
    ],
    "A convolution multiplies: it has no patches of truth values.": [
        r"lax\.conv_general_dilated_(local|patches) \(bool\): error: ",
    ],
    "Nothing has no tridiagonal matrix: there is one element less beside the diagonal than on it.": [
        r"scipy\.linalg\.eigh_tridiagonal \(empty\): error: .* ours raises ValueError",
    ],
    "Truth values are numbers in arithmetic, as in NumPy: no function refuses them that takes integers.": [
        _RAISES + r"TypeError: \w+ does not accept dtype bool",
        _RAISES + r"ValueError: data type <class 'numpy.bool'> not inexact",
    ],
    "Small integers and small floats are converted where an operation needs others.": [
        _RAISES + r"ValueError: data type <class '\S+'> not inexact",
        _RAISES + r"ValueError: RFFT input must be float32 or float64, got b?float16",
        _RAISES + r"TypeError: (floor|logistic) does not accept dtype u?int",
        r"lax\.linalg\.\w+ \(u?int8\): error: theirs raises TypeError: \w+ does not accept dtype",
    ],
    "A Python number is an array of rank 0 wherever an array is taken.": [
        _RAISES + r"AttributeError: '(float|int)' object has no attribute",
        _RAISES + r"ValueError: Cannot broadcast to shape with fewer dimensions",
    ],
    "A shape is checked before it is used: the error tells it, where upstream meets one of Python or of the compiler.": [
        _TYPE + r"(AssertionError|AttributeError|MLIRError|XlaRuntimeError|JaxRuntimeError|ZeroDivisionError|OverflowError): ",
        _TYPE + r"IndexError: (tuple|index|list( assignment)? index) .*out of (range|bounds).* / (ValueError|TypeError): ",
        _TYPE + r"ValueError: (Incompatible types for broadcasting|safe_map\(\) argument|axis 0 is out of bounds for array of shape)",
        _TYPE + r"(TypeError: (scaled_dot does not support|slice limit_indices)|ValueError: Array shapes are not compatible for c)",
        _TYPE + r"TypeError: broadcast_in_dim shape must have",
        _TYPE + r"TypeError: (len\(\) of unsized object|transpose permutation isn't|Input 0 to \w+ must have rank)",
        _TYPE + r"TypeError: (add got incompatible shapes|convolution requires lhs and rhs ndim|Slice size at index)",
        _TYPE + r"ValueError: (size must be positive|Cannot lower jaxpr)",
        r"numpy\.(reshape|polyval|delete|linalg\.cond) \([^)]*\): error type: ",
    ],
    "Programs that upstream's compiler does not verify are compiled.": [_RAISES + r"ValueError: Cannot lower jaxpr"],
    "What is asked of an empty array is answered where NumPy answers it.": [
        r"numpy\.histogram\w* \(empty\): error: theirs raises ValueError: zero-size array",
    ],
    "`extract` fills up to the size that is asked for, which may be larger than the array.": [
        r"numpy\.extract .*: error: theirs raises ValueError: size must be positive",
    ],
    "Which of several right answers is found is free: what is beside the parted element, how an empty set is filled.": [
        r"(numpy|Array)\.(arg)?partition .*: value: ",
        r"numpy\.setxor1d \((0-d|float)\): value: ",
    ],
    "An axis without elements has no Fourier transform, as in NumPy.": [
        r"numpy\.fft\.i?r?fft(2|n) \(empty\): error: .* ours raises ValueError: .* is too short",
    ],
    "Where points of an interpolation coincide, either of their values is right.": [
        r"numpy\.interp \((u?int8|bool)\): value: ",
    ],
    "`solve` returns the types of its argument; upstream does not ask.": [
        r"lax\.custom_linear_solve \(u?int8?\): error: .* solve must return the types of its argument",
    ],
    "Activations of truth values and small integers are computed in floats, and are strongly typed.": [
        r"nn\.\w+ \((bool|u?int8)\): weak type: .*, True, .* / .*, False, ",
        r"nn\.log\w+ \(uint8\): value: ",
    ],
    "Attention is of floats, and of arrays that have its axes.": [
        r"nn\.dot_product_attention \((0-d|float|int|bool|u?int8)\): error: .* ours raises ValueError",
    ],
    "`in` reads arrays of any rank, as NumPy's does.": [r"Array\.__contains__ .*: error: theirs raises ValueError"],
    "The remainder of truth values by False is 0, as that of integers by 0 is.": [r"numpy\.fmod \(bool\): value: "],
    "Shapes are tuples of `int`.": [r"lax\.conv\w*_shape_tuple .*: class: \('int64', .* / \('int', "],
    "Results are arrays, also where upstream hands a NumPy array back.": [
        r".*: class: \('(ndarray|TypedNdArray|TypedFloat|TypedInt)', .* / \('array', "
    ],
    "The class of the dtypes of keys has another name.": [r"random\.key_dtype .*: class: \('KeyTy', "],
    "How often nothing occurs is a whole number.": [r"scipy\.stats\.mode \(empty\): dtype: .*'float32'.* / .*'int32'"],
    "Upstream alone has hooks of Python 2, buffers of arrays that lie on one device, and names for annotations; Legendre functions, which it dropped, are here.": [
        r"Array\.(__hex__|__oct__|device_buffers?) .*: record: only theirs",
        r"lax\.(ConvGeneralDilatedDimensionNumbers|PrecisionLike) .*: record: only theirs",
        r"scipy\.special\.lpmn(_values)? .*: record: only ours",
    ],
    "Transforms over no axes of reals give reals.": [r"numpy\.fft\.irfftn .*: dtype: "],
    "The dtype of a root finder's operand may be narrower than its derivative's.": [r"lax\.custom_root .*: error( type)?: "],
    "Types are promoted of arrays, too; shapes are read of anything that has one.": [
        r"numpy\.promote_types .*: error: theirs raises TypeError: Cannot construct a dtype from an array",
        r"lax\.broadcast_shapes .*: error: theirs raises AssertionError",
    ],
}  # fmt: skip


def page() -> str:
    """The section of `docs/differences.md`."""
    rows = [f"| {why} | {' '.join(f'`{_shown(p)}`' for p in patterns)} |" for why, patterns in MEANT.items()]
    return "\n".join(["| meant | where it shows (patterns of `nox -s differential`) |", "|---|---|", *rows])


def _shown(pattern: str) -> str:
    return pattern.replace("|", "\\|")
