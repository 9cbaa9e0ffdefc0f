"""`FitStatus`: how a fit ended."""

from dataclasses import dataclass, field


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
        The engine's estimate of the true log evidence minus its own, in nats. None if it has none, as with inducing
        rows for more than 5000 rows.
    interrupted : bool
        Whether Ctrl-C ended it; the best result until then is kept.
    seed : int, optional
        The seed of the scattered starts, if it was given as a number.
    stages : tuple of str
        Of a fit to many rows: how many it optimised on, one after the other.
    notes : dict
        Numbers about the approximation, such as ``n_inducing`` and ``residual_over_noise``.
    advice : str
        What to change where the approximation is too coarse.
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
    stages: tuple[str, ...] = ()
    notes: dict[str, float] = field(default_factory=dict)
    advice: str = ""
