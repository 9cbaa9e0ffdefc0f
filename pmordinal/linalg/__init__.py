"""Dense linear algebra shared by the engines: B = I + W^½ K W^½, its Cholesky factor and its inverse.

K is the covariance matrix and the diagonal W holds the precisions of the sites, the Gaussians that replace
the labels. K itself is never factorised: duplicated inputs make it singular, and no jitter is added. All
eigenvalues of B are at least one.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from pmordinal.jit import njit
from pmordinal.linalg.workspace import empty

FLAT, WELL = 1e-12, 1e4  # single precision is used if the largest W_ii K_ii is between
LEAF = 32  # LAPACK inverts triangles of up to twice this order at once
BLOCK = 32  # size of the blocks in which a triangle is copied


def in_single(K: np.ndarray) -> np.ndarray:
    """Return K in single precision."""
    single = empty(K.shape, np.float32)
    single[...] = K
    return single


def is_well_conditioned(K: np.ndarray, W: np.ndarray) -> bool:
    """Tell whether single precision suffices to factorise B for a step that is refined afterwards.

    The largest W_ii K_ii bounds the condition number of B. If it is almost zero, variances lose their digits,
    since they are computed by a division by W.
    """
    return bool(FLAT < (W * K.diagonal()).max() < WELL)


def cholesky_B(K: np.ndarray, S: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return the lower Cholesky factor of B = I + S K S (its upper triangle is not cleared).

    Parameters
    ----------
    K : ndarray, shape (n, n)
        Symmetric covariance matrix; in single precision so is the factor.
    S : ndarray, shape (n,)
        Square roots of the site precisions.
    out : ndarray, shape (n, n), optional
        Fortran-ordered buffer to work in.
    """
    n = S.size
    S = S.astype(K.dtype, copy=False)
    out = empty((n, n), K.dtype) if out is None else out
    _write_B(K, S, out)
    L, info = _lapack(out, "potrf")(out, lower=1, clean=0, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError(f"B = I + S K S is not positive definite (order {info})")
    return L


@njit(cache=True, nogil=True)
def _write_B(K, S, out):
    """Write the lower triangle of I + S K S. Slices let the compiler use vector instructions."""
    for j in range(S.size):
        column, k, right, s = out[j:, j], K[j:, j], S[j:], S[j]
        for i in range(column.size):
            column[i] = k[i] * right[i] * s
        column[0] += 1


def _lapack(like: np.ndarray, name: str) -> Callable:
    return getattr(lapack, ("s" if like.itemsize == 4 else "d") + name)


def solve(L: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return (L Lᵀ)⁻¹ x."""
    trtrs = _lapack(L, "trtrs")  # potrs takes three times as long for a vector
    return trtrs(L, trtrs(L, x, lower=1)[0], lower=1, trans=1, overwrite_b=1)[0]


def half_solve(L: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return L⁻¹ x."""
    return _lapack(L, "trtrs")(L, x, lower=1)[0]


def log_det(L: np.ndarray) -> float:
    """Return log |L Lᵀ|."""
    return 2.0 * float(np.log(L.diagonal()).sum())


def inverse(L: np.ndarray) -> np.ndarray:
    """Return the full symmetric matrix (L Lᵀ)⁻¹; the upper triangle of L is not read."""
    return fill_upper(lower_inverse(L))


def lower_inverse(L: np.ndarray) -> np.ndarray:
    """Return the lower triangle of (L Lᵀ)⁻¹, with zeros above the diagonal."""
    out = triangular_inverse(L)
    return gram_of_columns(out, out)


def gram_of_columns(X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return the lower triangle of Xᵀ X for a lower triangular X; the upper triangle stays that of X.

    Parameters
    ----------
    X : ndarray, shape (n, n)
    out : ndarray, shape (n, n), optional
        Fortran-ordered buffer for the result; it may be X.
    """
    out = empty(X.shape, X.dtype) if out is None else out
    if out is not X:
        out[...] = X
    return _lapack(out, "lauum")(out, lower=1, overwrite_c=1)[0]


def triangular_inverse(L: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return L⁻¹ with zeros above the diagonal; the upper triangle of L is not read.

    Parameters
    ----------
    L : ndarray, shape (n, n)
    out : ndarray, shape (n, n), optional
        Fortran-ordered buffer for the result.
    """
    out = _inverse_triangle(L, empty(L.shape, L.dtype) if out is None else out)
    _clear_upper(out)
    return out


def _inverse_triangle(L: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return the lower triangle of L⁻¹ (the upper one is not cleared).

    Recursive: the two diagonal blocks are inverted, and the block below becomes −second⁻¹ corner first⁻¹. LAPACK's own
    routine takes up to twice the time for large triangles. Inverses of blocks are contiguous, as SciPy would copy
    others.
    """
    half = len(L) // 2
    if half < LEAF:
        inverse = _lapack(L, "trtri")(L, lower=1)[0]
        if out is None:
            return inverse
        out[...] = inverse
        return out
    out = np.empty(L.shape, L.dtype, order="F") if out is None else out
    first, second = _inverse_triangle(L[:half, :half]), _inverse_triangle(L[half:, half:])
    trmm = blas.strmm if L.itemsize == 4 else blas.dtrmm
    corner = trmm(-1.0, first, L[half:, :half], side=1, lower=1)
    out[:half, :half], out[half:, half:] = first, second
    out[half:, :half] = trmm(1.0, second, corner, lower=1, overwrite_b=1)
    return out


@njit(cache=True, nogil=True)
def _clear_upper(A):
    """Write zeros above the diagonal."""
    for j in range(A.shape[0]):
        for i in range(j):
            A[i, j] = 0


def column_squares(X: np.ndarray) -> np.ndarray:
    """Return the sums of squares of the columns of a lower triangular X, whose upper triangle is not read."""
    squares = np.empty(X.shape[1])
    _write_squares(X, squares)
    return squares


# Arrays are made outside of compiled functions, and filled in loops: both compile in half the time.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _write_squares(X, squares):
    """Write them in the precision of X."""
    for j in range(X.shape[1]):
        column, total = X[j:, j], X.dtype.type(0)
        for i in range(column.size):
            total += column[i] * column[i]
        squares[j] = total


def fill_upper(A: np.ndarray) -> np.ndarray:
    """Copy the lower triangle of `A` into its upper one, in place; return `A`."""
    _mirror(A)
    return A


@njit(cache=True, nogil=True)
def _mirror(A):
    """Do it in blocks that fit into the processor's cache."""
    n = A.shape[0]
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for j in range(start, n):
            for i in range(start, min(stop, j)):
                A[i, j] = A[j, i]


@njit(cache=True, nogil=True)
def site_gradient(A, S, v, alpha, out):
    """Write the lower triangle of −½ S A S + ½ (v αᵀ + α vᵀ), given that of A."""
    for j in range(S.size):
        s, left, right = -0.5 * S[j], 0.5 * v[j], 0.5 * alpha[j]
        column, a, S_below, alpha_below, v_below = out[j:, j], A[j:, j], S[j:], alpha[j:], v[j:]
        for i in range(column.size):
            column[i] = s * S_below[i] * a[i] + left * alpha_below[i] + right * v_below[i]


def symv(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return A x for a symmetric matrix A; only its lower triangle is read."""
    return (blas.ssymv if A.itemsize == 4 else blas.dsymv)(1.0, A, x, lower=1)


def symm(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A B for a symmetric matrix of which the lower triangle is read, B with few columns."""
    if not B.size:
        return np.zeros(B.shape)
    if A.flags.f_contiguous:
        return blas.dsymm(1.0, A, B, lower=1)
    return blas.dsymm(1.0, A.T, B, lower=0)


def posterior_diagonal(
    K: np.ndarray, Binv_diagonal: np.ndarray, W: np.ndarray, S: np.ndarray, L: np.ndarray
) -> np.ndarray:
    """Return the posterior variances A_ii, A = (K⁻¹ + W)⁻¹, accurate for any W.

    1 − W_ii A_ii = (B⁻¹)_ii gives A_ii without a further product, but is inaccurate where
    W_ii K_ii is small; there A_ii = K_ii − |L⁻¹ S k_i|² is used.
    """
    k, shrunk = K.diagonal(), 1.0 - Binv_diagonal
    A = shrunk / W
    few_digits = 1e-3 if L.itemsize == 4 else 1e-5
    if shrunk.min() < few_digits:
        lost = (shrunk < few_digits) & (W * k < 1.0)
        A[lost] = k[lost] - (half_solve(L, S[:, None] * K[:, lost]) ** 2).sum(0)
    return np.maximum(A, 1e-16 * k)


def weighted_square(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the lower triangle of A diag(w) A for a symmetric A; weights may be negative.

    The columns of each sign are multiplied by BLAS' dsyrk, at half the cost of a general product.
    """
    out, room = empty(A.shape), empty(A.shape)
    beta = 0.0
    for sign in (1.0, -1.0):
        half = room[:, : _scaled_columns(A, sign * w, room)]
        if half.size:
            out = blas.dsyrk(sign, half, beta=beta, c=out, lower=1, overwrite_c=1)
            beta = 1.0
    if beta == 0.0:
        out.fill(0.0)
    return out


@njit(cache=True, nogil=True)
def _scaled_columns(A, w, out):
    """Write the columns √w_j A_j with positive weight one after another; return their number."""
    k = 0
    for j in range(w.size):
        if w[j] > 0:
            root = np.sqrt(w[j])
            for i in range(w.size):
                out[i, k] = root * A[i, j]
            k += 1
    return k


def add_outer(A: np.ndarray, scale: float, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Add scale (u vᵀ + v uᵀ) to the lower triangle of A, and return A."""
    return blas.dsyr2(scale, u, v, a=A, lower=1, overwrite_a=1)


def inner(A: np.ndarray, B: np.ndarray) -> float:
    """Return Σ_ij A_ij B_ij without a temporary array."""
    if A.ndim == 1:
        return float(A @ B)
    if A.flags.f_contiguous and B.flags.f_contiguous:
        A, B = A.T, B.T
    if A.flags.c_contiguous and B.flags.c_contiguous:
        return float(np.dot(A.ravel(), B.ravel()))
    return float(np.einsum("ij,ij->", A, B))


def factor_psd(K: np.ndarray) -> np.ndarray:
    """Return R with R Rᵀ = K for a positive semi-definite K, which may be singular; no jitter.

    R has as many columns as the numerical rank of K (pivoted Cholesky factorisation).
    """
    C, pivots, rank, _ = lapack.dpstrf(np.array(K, order="F"), lower=1)
    R = np.empty((K.shape[0], rank))
    R[pivots - 1] = np.tril(C)[:, :rank]
    return R


class SiteCovariance:
    """Products with A = (K⁻¹ + W)⁻¹ and with A∘A, from the off-diagonal part of B⁻¹.

    A_ij = −(B⁻¹)_ij / √(W_i W_j) off the diagonal has all its digits for any W > 0; the diagonal
    comes from `posterior_diagonal`.

    Parameters
    ----------
    Binv : ndarray, shape (n, n)
        B⁻¹, of which the lower triangle is read; kept, and its diagonal overwritten.
    W, S, diagonal : ndarray, shape (n,)
        Site precisions, their roots, and A_ii.
    room : ndarray, shape (n, n), optional
        Buffer for B⁻¹∘B⁻¹.
    left_share : ndarray, shape (n,), optional
        q, the share of W_i that is not of the others: one, unless i stands for several equal sites.
    """

    def __init__(
        self,
        Binv: np.ndarray,
        W: np.ndarray,
        S: np.ndarray,
        diagonal: np.ndarray,
        room: np.ndarray | None = None,
        left_share: np.ndarray | None = None,
    ):
        self.off = Binv
        Binv.reshape(-1, order="A")[:: W.size + 1] = 0.0
        self.W, self.S, self.diagonal, self.room = W, S, diagonal, room
        self.own = None if left_share is None else (1.0 - left_share) * diagonal**2

    @cached_property
    def off_squared(self) -> np.ndarray:
        """The off-diagonal part of B⁻¹∘B⁻¹."""
        return np.multiply(self.off, self.off, out=self.room)

    def times(self, x: np.ndarray) -> np.ndarray:
        """Return A x."""
        return self.diagonal * x - symv(self.off, x / self.S) / self.S

    def others_squared_times(self, x: np.ndarray) -> np.ndarray:
        """Return Σ_{j≠i} A_ij² x_j + (1 − q_i) A_ii² x_i."""
        others = symv(self.off_squared, x / self.W) / self.W
        return others if self.own is None else others + self.own * x


def conjugate_residuals(
    operator: Callable[[np.ndarray], np.ndarray], b: np.ndarray, rtol: float, max_products: int = 40
) -> np.ndarray:
    """Return x with operator(x) = b, the residual below rtol·|b| (or as small as rounding allows).

    Generalised conjugate residuals: the iterates of GMRES, for operators whose symmetric part is definite.

    Parameters
    ----------
    operator : callable
        Linear map of vectors.
    b : ndarray, shape (n,)
    rtol : float
    max_products : int
        Applications of the operator; there are no restarts.
    """
    x, residual = np.zeros_like(b), b
    m = min(max_products, b.size)
    directions, images = np.empty((m, b.size)), np.empty((m, b.size))
    target = rtol * np.sqrt(b @ b)
    for k in range(m):
        if not np.inf > np.sqrt(residual @ residual) > target:
            break
        direction, image = residual, operator(residual)
        for _ in range(2):  # Gram–Schmidt twice, against rounding errors
            overlap = images[:k] @ image
            image = image - overlap @ images[:k]
            direction = direction - overlap @ directions[:k]
        length = np.sqrt(image @ image)
        if not np.inf > length > 0.0:
            break
        directions[k], images[k] = direction / length, image / length
        step = images[k] @ residual
        x += step * directions[k]
        residual = residual - step * images[k]
    return x
