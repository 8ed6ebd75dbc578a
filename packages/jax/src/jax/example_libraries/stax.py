"""`jax.example_libraries.stax`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.libraries.stax": (
        "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
        "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
        "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid",
        "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "glorot", "logsoftmax", "parallel",
        "randn", "serial", "shape_dependent",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.libraries.stax import (
        AvgPool as AvgPool, BatchNorm as BatchNorm, Conv as Conv, Conv1DTranspose as Conv1DTranspose,
        ConvTranspose as ConvTranspose, Dense as Dense, Dropout as Dropout, Elu as Elu, Exp as Exp,
        FanInConcat as FanInConcat, FanInSum as FanInSum, FanOut as FanOut, Flatten as Flatten,
        Gelu as Gelu, GeneralConv as GeneralConv, GeneralConvTranspose as GeneralConvTranspose,
        Identity as Identity, LeakyRelu as LeakyRelu, LogSoftmax as LogSoftmax, MaxPool as MaxPool,
        Relu as Relu, Selu as Selu, Sigmoid as Sigmoid, Softmax as Softmax, Softplus as Softplus,
        SumPool as SumPool, Tanh as Tanh, elementwise as elementwise, glorot as glorot,
        logsoftmax as logsoftmax, parallel as parallel, randn as randn, serial as serial,
        shape_dependent as shape_dependent,
    )  # fmt: skip
