from . import (
    arith as arith,
    builtin as builtin,
    chlo as chlo,
    func as func,
    math as math,
    memref as memref,
    mpmd as mpmd,
    scf as scf,
    sdy as sdy,
    sparse_tensor as sparse_tensor,
    stablehlo as stablehlo,
    vector as vector,
)
