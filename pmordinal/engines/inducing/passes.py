"""Passes over the rows: pure functions of a block and of what all rows share; their sums add up over blocks.

A row's latent value is f = φᵀw plus an independent residual of variance λ, see `pieces`. Sites on η = φᵀw have the
precisions τ; Λ = I + Σ τ φ φᵀ is the posterior precision of w.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from pmordinal.engines.inducing.blocks import Block, Sums, add
from pmordinal.engines.inducing.pieces import Piece, Shared, State, squares
from pmordinal.likelihood.smoothing import Terms, Triple


def newton_pass(block: Block, state: State) -> Sums:
    """Return the log likelihood at w, its slope and its curvature, residuals being averaged out."""
    total: Sums = {}
    for piece in state.pieces(block):
        terms = at_mode(piece, state.w @ piece.phi)
        add(
            total,
            {
                "S": piece.weighted_square(terms.curvature),
                "slope": piece.phi @ terms.d1,
                "value": terms.value.sum(),
                "excess": piece.excess.sum(),
            },
        )
    return total


def at_mode(piece: Piece, m: np.ndarray) -> Terms:
    """Return the likelihood at the mode, times the weights."""
    with np.errstate(over="ignore"):  # a step too far: the next one is nearer
        terms = piece.likelihood.tilting(piece.block.y)(m, piece.lam)
    return terms.times(piece.likelihood.weights)


def site_pass(block: Block, state: State) -> Sums:
    """Return the sums of expectation propagation: sites that match the marginals of the state.

    ``S`` is Σ τ φ φᵀ and ``r`` is Σ (α + τ m) φ. ``value`` is what the rows add to the log evidence; in this form the
    whole is stationary at the fixed point, as a function of w and Λ. ``error`` is that of the cavities.
    """
    total: Sums = {}
    for piece in state.pieces(block):
        v = squares(piece.half(state))
        found = piece.cavities(state, v)
        terms, copies = found.terms, piece.copies
        m, ratio = state.w @ piece.phi, v / found.c
        value = terms.value - 0.5 * np.log(ratio) + 0.5 * (ratio - 1.0)
        value += 0.5 * (m - found.mu) ** 2 / found.c
        add(
            total,
            _site_sums(piece, terms, found.shrink, found.mean)
            | {
                "value": (copies * value).sum(),
                "error": (copies * found.error**2).sum(),
                "excess": piece.excess.sum(),
            },
        )
    return total


def prior_pass(block: Block, shared: Shared) -> Sums:
    """Return the sums of sites whose cavities are the prior: the first step of expectation propagation."""
    total: Sums = {}
    for piece in shared.pieces(block):
        terms = piece.tilt_of(None)(np.zeros(len(piece.block)), piece.prior + piece.lam)
        shrink = terms.shrink + piece.lam * terms.curvature
        add(total, _site_sums(piece, terms, shrink, piece.prior * terms.d1))
    return total


def carried_pass(block: Block, states: tuple[State, Shared]) -> Sums:
    """Return the sums of sites for new parameters, from the cavities that the rows had at earlier ones.

    Cavities change little with the parameters. Both may have other inducing rows.
    """
    total: Sums = {}
    before, after = states
    for new in after.pieces(block):
        known = new.known_cavities
        if known is None:
            old = Piece(before, new.block)
            found = old.cavities(before, squares(old.half(before)))
            mu, c = found.mu, found.c
        else:
            mu, c = known
        terms = new.tilt_of(None)(mu, c + new.lam)
        shrink = terms.shrink + new.lam * terms.curvature
        add(total, _site_sums(new, terms, shrink, mu + c * terms.d1))
    return total


def carried_mode_pass(block: Block, states: tuple[State, Shared]) -> Sums:
    """Return the same for the sites of a mode."""
    total: Sums = {}
    before, after = states
    for new in after.pieces(block):
        m = before.w @ Piece(before, new.block).phi
        terms = at_mode(new, m)
        slope = terms.d1 + terms.curvature * m
        add(total, {"S": new.weighted_square(terms.curvature), "r": new.phi @ slope})
    return total


def _site_sums(piece: Piece, terms: Terms, shrink: np.ndarray, mean: np.ndarray) -> Sums:
    """Return Σ τ φ φᵀ and Σ (α + τ m) φ."""
    tau = terms.curvature / shrink
    return {
        "S": piece.weighted_square(piece.copies * tau),
        "r": piece.phi @ (piece.copies * (terms.d1 + tau * mean)),
    }


@dataclass(frozen=True, eq=False)
class Reacting(State):
    """A state at the mode of the Laplace approximation, with the reaction of the mode to what moves it.

    Attributes
    ----------
    pull : ndarray, shape (m,)
        Λ⁻¹ Σ ½ v L''' φ: the derivative of the evidence by Σ α φ.
    """

    pull: np.ndarray | None = None


def pull_pass(block: Block, state: State) -> Sums:
    """Return the derivative of −½ log|Λ| by the mode, Σ ½ v L''' φ."""
    total: Sums = {}
    for piece in state.pieces(block):
        terms = at_mode(piece, state.w @ piece.phi)
        v = squares(piece.half(state))
        add(total, {"by_mode": piece.phi @ (0.5 * v * terms.d3)})
    return total


def gradient_pass(block: Block, state: State) -> Sums:
    """Return the gradient of the evidence of expectation propagation, with w and Λ held fixed."""
    total: Sums = {}
    for piece in state.pieces(block):
        half = piece.half(state)
        found = piece.cavities(state, squares(half))
        terms = found.terms.times(piece.likelihood.copies)
        tau = piece.copies * found.precision
        by_residual = 0.5 * piece.copies * (found.terms.d1**2 - found.terms.curvature)
        outer = [(state.w, terms.d1)]
        add(total, _pulled(piece, state, half, tau, by_residual, outer))
        add(total, _likelihood_part(piece, terms.upper[0], terms.lower[0], terms.log_noise[0]))
    return total


def laplace_gradient_pass(block: Block, state: Reacting) -> Sums:
    """Return the gradient of Laplace's evidence, the motion of the mode included."""
    total: Sums = {}
    assert state.pull is not None
    for piece in state.pieces(block):
        half = piece.half(state)
        v, w = squares(half), piece.weights
        terms = at_mode(piece, state.w @ piece.phi)
        along = state.pull @ piece.phi
        a, nu, L3, L4 = (t / w for t in (terms.d1, terms.curvature, terms.d3, terms.d4))
        by_residual = 0.5 * (a * a - nu) + 0.5 * v * (0.5 * L4 + nu * nu + a * L3)
        by_residual = w * (by_residual + along * (0.5 * L3 - a * nu))
        outer = [
            (state.w, terms.d1 + 0.5 * v * terms.d3 - along * terms.curvature),
            (state.pull, terms.d1),
        ]
        add(total, _pulled(piece, state, half, terms.curvature, by_residual, outer))

        def by(parts: Triple, along=along, v=v) -> np.ndarray:
            return parts[0] + along * parts[1] + 0.5 * v * parts[2]

        add(
            total,
            _likelihood_part(piece, by(terms.upper), by(terms.lower), by(terms.log_noise)),
        )
    return total


def _likelihood_part(piece: Piece, upper, lower, log_noise) -> Sums:
    likelihood, y = piece.likelihood, piece.block.y
    return {
        "thresholds": likelihood.threshold_gradient(y, upper, lower),
        "log_noise": np.asarray(likelihood.noise_gradient(log_noise)),
    }


def _pulled(
    piece: Piece,
    state: State,
    half: np.ndarray,
    tau: np.ndarray,
    by_residual: np.ndarray,
    outer: Sequence[tuple[np.ndarray, np.ndarray]],
) -> Sums:
    """Return derivatives by the kernel's parameters, and what the driver needs for those by L.

    The derivative by φ of a row is −τ Λ⁻¹ φ − 2 a φ + Σ c u, with a that by λ and pairs (u, c) in `outer`.
    """
    a = np.where(piece.has_residual, by_residual, 0.0)
    by_phi = blas.dtrmm(-1.0, state.inverse, half, lower=1, trans_a=1)
    by_phi *= tau
    by_phi -= piece.phi * (2.0 * a)
    along: Sums = {}
    for k, (u, c) in enumerate(outer):
        by_phi = blas.dger(1.0, u, c, a=by_phi, overwrite_a=1)
        along[f"outer_{k}"] = piece.phi @ c
    shared = piece.shared
    each = zip(shared.carriers, shared.slices, piece.pulls, strict=True)
    through_k = shared.to_parameters(c.through_features(by_phi[s], pull) for c, s, pull in each)
    through_diagonal = piece.pull_diagonal(a)
    found = {
        f"parameter_{i}": np.asarray(p) + np.asarray(q)
        for i, (p, q) in enumerate(zip(through_k, through_diagonal, strict=True))
    }
    return found | along | {"A": piece.weighted_square(a)}


def marginal_pass(block: Block, state: State) -> np.ndarray:
    """Return the posterior of f at each row, see `Marginals`, shape (7, b)."""
    parts = [np.empty((7, 0))]
    for piece in state.pieces(block):
        found = piece.cavities(state, squares(piece.half(state)))
        terms, V = found.terms, found.c + piece.lam
        p = piece.copies * terms.curvature / terms.shrink
        mean = found.mu + V * terms.d1
        alpha = piece.copies * terms.d1
        parts.append(np.array([mean, V * terms.shrink, found.mu, V, p, alpha, piece.lam]))
    return np.concatenate(parts, axis=1)


def laplace_marginal_pass(block: Block, state: State) -> np.ndarray:
    """Return the same for sites from the curvature at the mode."""
    parts = [np.empty((7, 0))]
    for piece in state.pieces(block):
        v, m, lam = squares(piece.half(state)), state.w @ piece.phi, piece.lam
        terms = at_mode(piece, m)
        share = 1.0 / np.maximum(piece.weights, 1.0)
        one, p = share * terms.d1, terms.curvature / terms.shrink
        c = v / (1.0 - share * terms.curvature * v)
        V = c + lam
        var = V / (1.0 + share * p * V)
        parts.append(np.array([m + lam * one, var, m - c * one, V, p, terms.d1, lam]))
    return np.concatenate(parts, axis=1)
