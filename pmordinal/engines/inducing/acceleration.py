"""Anderson's acceleration of a fixed-point iteration: a step that uses the steps before it."""

import numpy as np

DEPTH = 8  # steps that are kept


class Anderson:
    """The last iterates and the steps from them.

    From points z_k and steps f_k of the plain iteration it extrapolates to where the step would vanish, were it linear
    in the point: the combination of steps is as short as possible, in the length that `measure` gives.
    """

    def __init__(self) -> None:
        self.points: list[np.ndarray] = []
        self.steps: list[np.ndarray] = []
        self.measured: list[np.ndarray] = []

    def forget(self) -> None:
        """Begin anew."""
        self.points, self.steps, self.measured = [], [], []

    def next(self, point: np.ndarray, step: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """Return the next point.

        Parameters
        ----------
        point, step : ndarray
            The iterate, and the step that the plain iteration would take.
        measured : ndarray
            The step, in coordinates in which its length counts.
        """
        for kept, new in ((self.points, point), (self.steps, step), (self.measured, measured)):
            kept.append(new)
            del kept[:-DEPTH]
        if len(self.points) == 1:
            return point + step
        F = np.diff(np.array(self.measured), axis=0)
        # a little of the plain step where earlier ones are almost parallel
        gamma = np.linalg.lstsq(F.T, measured, rcond=1e-8)[0]
        moved = point + step
        for g, k in zip(gamma, range(len(gamma)), strict=True):
            moved -= g * (self.points[k + 1] - self.points[k] + self.steps[k + 1] - self.steps[k])
        return moved
