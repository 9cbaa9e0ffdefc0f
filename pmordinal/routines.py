"""BLAS and LAPACK inside compiled loops.

Numba can call SciPy's BLAS and LAPACK by address. The addresses differ from process to process, so they are
arguments and never constants of a function that is kept on disk.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic
from numpy.typing import DTypeLike

from pmordinal.jit import njit

POTRF, TRTRI, TRMM, STRTRI, STRMM = range(5)
LETTERS = np.frombuffer(b"LNR", dtype=np.uint8)
LEAF = 32  # order up to which LAPACK inverts a triangle


@cache
def addresses() -> np.ndarray:
    """Return the addresses of the routines, the first argument of what is below."""
    names = "lapack.dpotrf lapack.dtrtri blas.dtrmm lapack.strtri blas.strmm"
    pairs = (name.split(".") for name in names.split())
    found = [get_cython_function_address(f"scipy.linalg.cython_{a}", b) for a, b in pairs]
    return np.array(found, dtype=np.int64)


@intrinsic
def _call(typingctx, address, arguments):
    """Call the function at `address`, all of whose arguments are pointers, given as integers."""
    signature = types.void(address, arguments)

    def generate(context, builder, signature, args):
        pointers = [builder.extract_value(args[1], i) for i in range(signature.args[1].count)]
        word = ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [word] * len(pointers)).as_pointer()
        builder.call(builder.inttoptr(args[0], function), pointers)
        return context.get_dummy_value()

    return signature, generate


def room(dtype: DTypeLike = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers that a routine is given by their addresses: whole ones to be written, and 1 and −1."""
    return np.zeros(4, dtype=np.int32), np.array([1.0, -1.0], dtype=dtype)


@njit(cache=True, nogil=True)
def factor_B(where, numbers, K, S, L):
    """Write the Cholesky factor of B = I + S K S, zero above its diagonal; return whether there is one."""
    for j in range(S.size):
        for i in range(j):
            L[i, j] = 0.0
        for i in range(j, S.size):
            L[i, j] = K[i, j] * S[i] * S[j]
        L[j, j] += 1.0
    numbers[0], numbers[1] = S.size, 0
    n = numbers.ctypes.data
    _call(where[POTRF], (LETTERS.ctypes.data, n, L.ctypes.data, n, n + 4))
    return numbers[1] == 0


@njit(cache=True, nogil=True)
def triangular_inverse(where, numbers, signs, A):
    """Overwrite a lower triangular A, in either precision, with its inverse.

    Blocks along the diagonal first, then what lies below pairs of them, −second⁻¹ corner first⁻¹, for pairs of
    growing order: LAPACK's own routine takes up to twice the time.
    """
    trtri, trmm = (where[STRTRI], where[STRMM]) if A.itemsize == 4 else (where[TRTRI], where[TRMM])
    order, at, step = A.shape[0], A.ctypes.data, A.itemsize
    left = LETTERS.ctypes.data
    no, right = left + 1, left + 2
    numbers[0], numbers[3] = order, 0
    n = numbers.ctypes.data
    rows, columns, info = n + 4, n + 8, n + 12
    one = signs.ctypes.data
    minus_one = one + step
    for start in range(0, order, LEAF):
        numbers[1] = min(LEAF, order - start)
        _call(trtri, (left, no, rows, at + start * (order + 1) * step, n, info))
        if numbers[3] != 0:
            return False
    size = LEAF
    while size < order:
        for start in range(0, order - size, 2 * size):
            middle = start + size
            numbers[1], numbers[2] = min(size, order - middle), size
            corner = at + (middle + start * order) * step
            first, second = at + start * (order + 1) * step, at + middle * (order + 1) * step
            _call(trmm, (right, left, no, no, rows, columns, minus_one, first, n, corner, n))
            _call(trmm, (left, left, no, no, rows, columns, one, second, n, corner, n))
        size *= 2
    return True


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def times(K, x, y):
    """Write K x into y, for a symmetric K stored in full."""
    for i in range(x.size):
        y[i] = 0.0
    for j in range(x.size):
        column, left = K[:, j], x[j]
        for i in range(x.size):
            y[i] += left * column[i]
