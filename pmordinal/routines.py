"""LAPACK inside compiled loops.

Numba can call SciPy's LAPACK by address. The addresses differ from process to process, so they are
arguments and never constants of a function that is kept on disk.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import get_cython_function_address, intrinsic

POTRF, TRTRI, LAUUM = range(3)


@cache
def addresses() -> np.ndarray:
    """Return the addresses of dpotrf, dtrtri and dlauum, the first argument of what is below."""
    names = ("dpotrf", "dtrtri", "dlauum")
    module = "scipy.linalg.cython_lapack"
    return np.array([get_cython_function_address(module, name) for name in names], dtype=np.int64)


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


@njit(cache=True, nogil=True)
def cholesky(where, A):
    """Overwrite the lower triangle of A with its Cholesky factor; return whether there is one."""
    letters, numbers = np.array([76], dtype=np.uint8), np.array([A.shape[0], 0], dtype=np.int32)
    uplo, n = letters.ctypes.data, numbers.ctypes.data
    _call(where[POTRF], (uplo, n, A.ctypes.data, n, n + 4))
    return numbers[1] == 0


@njit(cache=True, nogil=True)
def triangular_inverse(where, A):
    """Overwrite a lower triangular A with its inverse."""
    letters, numbers = np.array([76, 78], dtype=np.uint8), np.array([A.shape[0], 0], dtype=np.int32)
    uplo, n = letters.ctypes.data, numbers.ctypes.data
    _call(where[TRTRI], (uplo, uplo + 1, n, A.ctypes.data, n, n + 4))
    return numbers[1] == 0


@njit(cache=True, nogil=True)
def gram_of_columns(where, A):
    """Overwrite a lower triangular A with the lower triangle of Aᵀ A."""
    letters, numbers = np.array([76], dtype=np.uint8), np.array([A.shape[0], 0], dtype=np.int32)
    uplo, n = letters.ctypes.data, numbers.ctypes.data
    _call(where[LAUUM], (uplo, n, A.ctypes.data, n, n + 4))
    return numbers[1] == 0
