"""`FitStatus`: how a fit ended."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FitStatus:
    """How a fit ended.

    Attributes
    ----------
    converged : bool
    evaluations, iterations : int
        Evaluations of the objective and iterations of L-BFGS, over all starts.
    seconds : float
    message : str
    objectives : tuple of float
        The optimum that each start reached.
    log_evidence_correction : float, optional
        The engine's estimate of the true log evidence minus its own, in nats.
    interrupted : bool
        Whether Ctrl-C ended it; the best result until then is kept.
    seed : int, optional
        The seed of the scattered starts, if it was given as a number.
    """

    converged: bool
    evaluations: int
    iterations: int
    seconds: float
    message: str
    objectives: tuple[float, ...]
    log_evidence_correction: float | None = None
    interrupted: bool = False
    seed: int | None = None
