"""The exponential of many numbers that are not positive, in place.

x = k log 2 + r with a whole k and |r| ≤ ½ log 2, so that exp(x) = 2^k exp(r): the polynomial of exp(r) is
summed in pairs, which do not wait for each other, and 2^k is a shift of the exponent.
NumPy does the same several times slower where the processor lacks AVX-512.
"""

import numpy as np

from pmordinal.jit import njit

LEAST = -708.0  # below it 2^k leaves the normal numbers
CHUNK = 256
TO_WHOLE = 1.5 * 2.0**52  # adding it rounds to a whole number, which then stands in the last bits
PER_LOG_2 = 1.4426950408889634
LOG_2, LOG_2_REST = 6.93145751953125e-1, 1.42860682030941723212e-6  # k LOG_2 is exact


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _overwrite(x, power, bits):
    """Overwrite x with exp(x); `bits` are those of `power`, room for a chunk."""
    for start in range(0, x.size, power.size):
        z = x[start : start + power.size]
        for i in range(z.size):
            v = LEAST if z[i] < LEAST else z[i]
            power[i] = v * PER_LOG_2 + TO_WHOLE
        for i in range(z.size):
            v = LEAST if z[i] < LEAST else z[i]
            k = power[i] - TO_WHOLE
            r = v - k * LOG_2
            r = r - k * LOG_2_REST
            r2 = r * r
            r4 = r2 * r2
            first = r + r2 * (0.5 + r * (1 / 6))
            second = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
            third = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
            last = 1 / 479001600 + r * (1 / 6227020800)
            p = first + r4 * (second + r4 * (third + r4 * last))
            z[i] = 0.0 if z[i] < LEAST else 1.0 + p
        for i in range(z.size):
            bits[i] = (bits[i] + 1023) << 52
        for i in range(z.size):
            z[i] *= power[i]


def exponential(x: np.ndarray) -> None:
    """Overwrite x ≤ 0, contiguous, with exp(x) to about one unit in the last place; zero below −708."""
    if not x.flags.c_contiguous:
        raise ValueError("x must be contiguous: a copy of it would be overwritten")
    power = np.empty(CHUNK)
    _overwrite(x.reshape(-1), power, power.view(np.int64))
