"""A start for the search: merges rows and columns of a fine square grid greedily, on both axes at once.

[HB2007, Algorithm 1] starts from random target partitions of about √N intervals, which miss weak signals; the
two-sided merge from a √N × √N grid finds them, because its last merges compare large blocks.
"""

import numpy as np

from pmordinal.jit import njit


@njit(cache=True, nogil=True)
def merge_both_axes(table, lines, cuts, lf):
    """Merge greedily and write the cuts of the cheapest grid on the way; both axes keep at least two parts.

    Parameters
    ----------
    table : ndarray of int64, shape (2, G, G)
        Cell counts of the starting grid, predictor in rows, and their transpose; used up.
    lines : ndarray of int64, shape (2, 2)
        Row 0: numbers of predictor and target parts at the start, at most G each; used up. Row 1 receives
        those of the cheapest grid.
    cuts : ndarray of int64, shape (2, 2, G + 1)
        ``cuts[1, axis]`` receives the boundaries as indices, both ends included; row 0 is work space.
    lf : ndarray
        Table of log factorials.
    """
    # plain loops over one array for both axes, since array expressions take long to compile
    side = table.shape[1]
    size = np.zeros((2, side), np.int64)
    n = 0
    for axis in range(2):
        for i in range(side + 1):
            cuts[0, axis, i] = i
        for i in range(lines[0, axis]):
            for k in range(side):
                size[axis, i] += table[axis, i, k]
            n += size[axis, i]
    n //= 2
    change = 0.0
    best = np.inf
    while True:
        rows, cols = lines[0, 0], lines[0, 1]
        if change <= best:
            best = change
            for axis in range(2):
                lines[1, axis] = lines[0, axis]
                for i in range(lines[0, axis] + 1):
                    cuts[1, axis, i] = cuts[0, axis, i]
        low = np.inf
        at, on = -1, 0
        for axis in range(2):
            if lines[0, axis] <= 2:
                continue
            if axis == 0:
                # change of the prior with one part less: of log C(N + I − 1, I − 1) and of −I log (J − 1)!
                prior = lf[n + rows - 2] - lf[n + rows - 1] + lf[rows - 1] - lf[rows - 2]
                prior += lf[cols - 1]
            else:
                prior = rows * (lf[cols - 1] - lf[cols - 2])
                for i in range(rows):
                    prior += lf[size[0, i] + cols - 2] - lf[size[0, i] + cols - 1]
            extra = cols - 1 if axis == 0 else 0
            for i in range(lines[0, axis] - 1):
                a, b = size[axis, i], size[axis, i + 1]
                delta = prior + lf[a + b + extra] - lf[a + extra] - lf[b + extra]
                for k in range(lines[0, 1 - axis]):
                    c, d = table[axis, i, k], table[axis, i + 1, k]
                    if c > 0 and d > 0:  # lf[c + d] = lf[c] + lf[d] otherwise
                        delta += lf[c] + lf[d] - lf[c + d]
                if delta < low:
                    low, at, on = delta, i, axis
        if at < 0:
            return
        last = lines[0, on] - 1
        for i in range(at, last + 1):
            for k in range(lines[0, 1 - on]):
                moved = table[on, i + 1, k] if i < last else 0
                table[on, i, k] = moved + (table[on, i, k] if i == at else 0)
                table[1 - on, k, i] = table[on, i, k]
            moved = size[on, i + 1] if i < last else 0
            size[on, i] = moved + (size[on, i] if i == at else 0)
            if i > at:
                cuts[0, on, i] = cuts[0, on, i + 1]
        lines[0, on] -= 1
        change += low
