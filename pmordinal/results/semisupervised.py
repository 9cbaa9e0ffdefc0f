"""`SemiSupervisedFit`: a fit that has also learned from unlabelled rows."""

from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
import pandas as pd
import xarray as xr

from pmordinal.likelihood import Rows
from pmordinal.results.fit import OrdinalFit

PATH = ("weight", "objective", "log_evidence", "match", "switches", "rounds", "evaluations")


@dataclass(frozen=True, eq=False, repr=False)
class SemiSupervisedFit(OrdinalFit):
    """A fit that has also learned from unlabelled rows.

    Attributes
    ----------
    proportions : ndarray, shape (r,)
        Prescribed class proportions of the unlabelled rows.
    unlabeled_codes : ndarray of int, shape (m,)
        Final class codes of the unlabelled rows; `unlabeled_labels` are the labels.
    path : DataFrame
        One row for each annealing step: ``weight`` λ; ``objective``, what was maximised (log prior included);
        ``log_evidence``; ``match``, the mean log probability of the labels given to the unlabelled rows; ``switches``,
        pairs of labels that were switched; ``rounds``, alternations; ``evaluations`` of the objective.
    """

    proportions: np.ndarray = field(kw_only=True, repr=False)
    unlabeled_codes: np.ndarray = field(kw_only=True, repr=False)
    path: pd.DataFrame = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, fit: OrdinalFit, **extra: Any) -> Self:
        """Return `fit` with the additional fields of this class."""
        return cls(**{f.name: getattr(fit, f.name) for f in fields(OrdinalFit)}, **extra)

    @property
    def unlabeled_labels(self) -> Any:
        """Final labels of the unlabelled rows, of the type you gave, in the prescribed proportions.

        First the rows of `X` without a label, then those of ``unlabeled=``.
        """
        return self.labels.decode(self.unlabeled_codes)

    def predict_unlabeled(self, kind: str = "probs", *, rule="mode"):
        """Return predictions for the unlabelled rows (transduction), in the order of `unlabeled_labels`.

        Parameters
        ----------
        kind, rule
            See `OrdinalFit.predict`.
        """
        rows = {"obs": np.arange(len(self.unlabeled))}
        known = Rows(shift=self.features.shift(self.unlabeled))
        return self._predict(
            self.unlabeled, rows, kind, rule, lambda fit: fit.posterior.likelihood.at_new(known)
        )

    def further_groups(self) -> dict[str, xr.Dataset]:
        """Return what this fit has in addition to an `OrdinalFit`, as groups for a file."""
        data = {
            "proportions": ("class", self.proportions),
            "unlabeled_codes": ("extra", self.unlabeled_codes),
        }
        path = {f"path_{k}": ("step", self.path[k].to_numpy()) for k in PATH}
        return {"semisupervised": xr.Dataset(data | path)}

    @classmethod
    def from_dataset(cls, fit: OrdinalFit, data: xr.Dataset) -> Self:
        """Return `fit` with the data that `further_groups` had returned."""
        return cls.of(
            fit,
            proportions=data["proportions"].values,
            unlabeled_codes=data["unlabeled_codes"].values,
            path=pd.DataFrame({k: data[f"path_{k}"].values for k in PATH}),
        )
