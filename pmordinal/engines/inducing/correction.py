"""What the sites miss of the evidence to second order: sums over all pairs of rows.

The posterior covariance of two rows is V_ij = φᵢᵀ Λ⁻¹ φⱼ. Residuals are averaged out exactly, so that they do not
enter; the estimates are those of the full engines for the likelihood that is left.
"""

from collections.abc import Sequence
from math import factorial

import numpy as np

from pmordinal.engines.inducing.blocks import Block
from pmordinal.engines.inducing.passes import at_mode
from pmordinal.engines.inducing.pieces import State, squares

MOST_PAIRED = 5000  # rows up to which pairs are summed: work grows with the square
PAIRED = 512  # rows whose pairs with all others are held at a time


def ep_correction(blocks: Sequence[Block], state: State) -> float:
    """Return the estimate of expectation propagation, from the third and fourth cumulants of the sites."""
    features, rows = [], []
    for block in blocks:
        for piece in state.pieces(block):
            half = piece.half(state)
            found = piece.cavities(state, squares(half))
            features.append(half / found.shrink)
            copies = np.broadcast_to(piece.copies, found.mu.shape)
            rows.append(np.array([found.terms.d3, found.terms.d4, copies]))
    G = np.concatenate(features, axis=1)
    d3, d4, w = np.concatenate(rows, axis=1)
    v, total = squares(G), 0.0
    pairs = _over_pairs(G, {3: w * d3, 4: w * d4})
    for order, t in ((3, d3), (4, d4)):
        # copies of a row are pairs, too
        same = float((w * (w - 1.0) * t * t) @ v**order)
        total += 0.5 * (pairs[order] + same) / factorial(order)
    return total


def laplace_correction(blocks: Sequence[Block], state: State) -> float:
    """Return the estimate of Laplace's approximation, from the third and fourth derivatives at the mode."""
    features, rows = [], []
    for block in blocks:
        for piece in state.pieces(block):
            features.append(piece.half(state))
            terms = at_mode(piece, state.w @ piece.phi)
            rows.append(np.array([terms.d3, terms.d4]))
    G = np.concatenate(features, axis=1)
    d3, d4 = np.concatenate(rows, axis=1)
    v = squares(G)
    along = G @ (d3 * v)
    cubes = _over_pairs(G, {3: d3})[3] + d3**2 @ v**3
    return float(d4 @ v**2 / 8.0 + along @ along / 8.0 + cubes / 12.0)


def _over_pairs(G: np.ndarray, of_order: dict[int, np.ndarray]) -> dict[int, float]:
    """Return Σ tᵢ tⱼ (gᵢᵀ gⱼ)^order over pairs of different columns of G, each pair twice, by the order of t."""
    n, total = G.shape[1], dict.fromkeys(of_order, 0.0)
    for start in range(0, n, PAIRED):
        stop = min(start + PAIRED, n)
        products = G[:, start:stop].T @ G[:, :stop]
        np.fill_diagonal(products[:, start:], 0.0)
        power = products * products
        for order, t in sorted(of_order.items()):  # 3, then 4
            power *= products
            by_row = t[start:stop] @ power
            total[order] += 2.0 * float(by_row[:start] @ t[:start])
            total[order] += float(by_row[start:] @ t[start:stop])
    return total
