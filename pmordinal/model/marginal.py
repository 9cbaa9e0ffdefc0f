"""`MarginalOrdinal`: a Gaussian process with ordinal labels; an engine integrates the latent function out."""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable

from pmordinal.checks import got, one_of
from pmordinal.data import design as design_of
from pmordinal.data.design import Design
from pmordinal.data.features import Features
from pmordinal.data.terms import Term
from pmordinal.engines import Engine, get_engine
from pmordinal.gram import Kernel, check_columns, lower
from pmordinal.links import Link, get_link
from pmordinal.model.laws import ByLaw, Law
from pmordinal.model.observed import is_data
from pmordinal.model.ops.evidence import OrdinalEvidence, PriorLatent
from pmordinal.model.ordinal import classify, draw_noise, increasing_tensor, positive_tensor
from pmordinal.model.problem import Problem

IMPROPER = (FlatRV, HalfFlatRV)
ONE_VECTOR = (
    "engines integrate over the latent function for one vector of thresholds. Thresholds by group: "
    "pmo.latent_model(X, y, thresholds_by=…); groups that differ by a shift alone: a categorical column of X"
)


class MarginalOrdinal:
    """Gaussian process with ordinal labels, in the manner of ``pm.gp.Marginal``.

    Parameters
    ----------
    cov_func : pm.gp.cov.Covariance
        Covariance of the latent function, with random variables as parameters.
    engine : str or Engine
        How the latent function is integrated out: ``"ep"``, ``"laplace"``, …, or an instance with options such
        as ``pmo.EP(tol=1e-10)``.
    link : {"probit", "logit", "cloglog"}
        Distribution of the noise on the latent function.

    Examples
    --------
    >>> import pymc as pm, pmordinal as pmo
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> with pm.Model() as model:
    ...     ls = pm.InverseGamma("ls", 5, 5)
    ...     b = pmo.thresholds("thresholds", n_classes=3)
    ...     s = pm.HalfNormal("noise", 1.0)
    ...     gp = pmo.MarginalOrdinal(pm.gp.cov.ExpQuad(1, ls=ls))
    ...     y = gp.marginal_likelihood("y", X, [0, 0, 1, 1, 2, 2], thresholds=b, noise=s)
    >>> bool(np.isfinite(model.point_logps()["y"]))
    True
    """

    def __init__(self, cov_func, engine: str | Engine = "ep", link: str | Link = "probit") -> None:
        if not isinstance(cov_func, pm.gp.cov.BaseCovariance):
            raise TypeError(
                f"cov_func must be a pm.gp.cov covariance, got {type(cov_func).__name__}; a matrix "
                "becomes one by pmo.Precomputed(matrix)"
            )
        self.cov_func = cov_func
        self.engine = get_engine(engine)
        self.link = get_link(link)
        self.engine.check_link(self.link)

    def marginal_likelihood(
        self,
        name: str,
        X,
        y,
        thresholds,
        noise,
        *,
        categories=None,
        objective: str | None = None,
        unlabeled=None,
        features: Features | None = None,
        start: dict | None = None,
        **kwargs,
    ):
        """Add the labels as an observed variable, the latent function integrated out.

        Parameters
        ----------
        name : str
            Name of the observed variable.
        X : DataFrame or array_like, shape (n, d)
            Rows, in the units of the covariance.
        y : array_like, shape (n,)
            Labels: ordered categorical, integers, or anything with `categories`. Missing labels are
            marginalised.
        thresholds : tensor_like, shape (r − 1,)
            Increasing, see `thresholds`.
        noise : tensor_like
            Scale of the noise on the latent function.
        categories : sequence, optional
            All labels in order, the unobserved ones included.
        objective : str, optional
            The engine's objective that is used as log probability of `y`; default is its first, the evidence.
        unlabeled : DataFrame or array_like, shape (m, d), optional
            Further rows without a label.
        features : Features, optional
            How `X` becomes rows; learned from `X` if not given.
        start : dict, optional
            Values that `fit` starts from, by variable name; by default those of the papers.
        **kwargs
            For the variable, such as `dims`.

        Returns
        -------
        TensorVariable
            The observed variable, class codes of the labelled rows.
        """
        design = design_of.read(X, y, categories, unlabeled=unlabeled, features=features)
        check_columns(self.cov_func, design.features.names)
        return self.observe(
            name, design, thresholds, noise, objective=objective, start=start, **kwargs
        )

    def observe(
        self,
        name: str,
        design: Design,
        thresholds,
        noise,
        *,
        objective: str | None = None,
        start: dict | None = None,
        terms: tuple[Term, ...] = (),
        **kwargs,
    ):
        """Add the labels of a design as an observed variable; see `marginal_likelihood`.

        `terms` names the parts of the covariance, in their order.
        """
        labels = design.labels
        thresholds = pt.cast(increasing_tensor("thresholds", thresholds), "float64")
        noise = pt.cast(positive_tensor("noise", noise), "float64")
        if thresholds.type.ndim == 2:
            raise ValueError(f"thresholds must be a vector of {labels.n_classes - 1}: {ONE_VECTOR}")
        check_thresholds(thresholds, labels.n_classes)
        if noise.type.ndim != 0:
            raise ValueError(f"noise must be a scalar, got {noise.type.ndim} dimensions")
        objective = objective or self.engine.objectives[0]
        one_of("objective", objective, self.engine.objectives)
        r = labels.n_classes
        papers = -1.0 + 2.0 / r * np.arange(r - 1)  # b_1 = −1, Δ = 2/r [CG2005, footnote 6]
        begin = {
            thresholds.name: papers,
            f"{thresholds.name}_first": papers[0],
            f"{thresholds.name}_gaps": np.diff(papers),
            noise.name: 1.0,
        }
        kernel = lower(self.cov_func)
        problem = Problem(
            kernel=kernel,
            X=design.X,
            labels=labels,
            features=design.features,
            engine=self.engine,
            objective=objective,
            link=self.link,
            unlabeled=design.unlabeled,
            scale_is_free=_scale_is_free(kernel, thresholds, noise),
            start=begin | (start or {}),
            terms=terms,
        )
        return _observed(name, problem, thresholds, noise, **kwargs)


def check_thresholds(thresholds, n_classes: int) -> None:
    """Raise if the shape of the thresholds is known and is not one entry less than there are classes."""
    shape = thresholds.type.shape
    if is_data(thresholds):  # pm.Data has no fixed length
        shape = tuple(thresholds.shape.eval(mode="FAST_COMPILE").tolist())
    if shape not in ((None,), (n_classes - 1,)):
        raise ValueError(
            f"thresholds must be a vector of {n_classes - 1} for {n_classes} classes, got shape {shape}: pass "
            f"n_classes={n_classes} to pmo.thresholds, or categories= with all labels in order"
        )


def _scale_is_free(kernel: Kernel, thresholds, noise) -> bool:
    """Tell whether amplitude, noise and thresholds are all free; raise if a prior of them is improper."""
    parts = [
        [v for v in ancestors(variables) if v.owner and is_random(v.owner.op)]
        for variables in (list(kernel.scale), [noise], [thresholds])
    ]
    if not all(parts):
        return False
    improper = [v.name for part in parts for v in part if isinstance(v.owner.op, IMPROPER)]
    if improper:
        raise ValueError(
            "the scale is not identified: the covariance's amplitude, the noise and the thresholds are all free, and "
            f"{improper[0]!r} has an improper prior. Fix the amplitude or the noise at 1, or give all of them "
            "proper priors"
        )
    return True


def check_model(model) -> pm.Model:
    """Return the model; raise a TypeError if it is no PyMC model."""
    if not isinstance(model, pm.Model):
        raise TypeError(
            f"model must be a pm.Model, such as pmo.gp_model(X, y) returns, got {got(model)}"
        )
    return model


def is_random(op) -> bool:
    """Tell whether an Op makes random variables."""
    return isinstance(op, RandomVariable | SymbolicRandomVariable)


@dataclass(frozen=True)
class EvidenceLaw(Law):
    """The joint distribution of all labels, with the latent function integrated out.

    Its parameters are those of the kernel, the thresholds, the noise, and a vector as long as the draws.
    """

    name = "MarginalOrdinal"
    signature: str
    of: OrdinalEvidence

    def draw(self, *parameters, size):
        """Draw the latent function, then labels."""
        *values, thresholds, noise, rows = parameters
        problem: Problem = self.of.problem
        z = pm.Normal.dist(0.0, 1.0, size=rows.shape)
        f = PriorLatent(problem)(z, *values)
        return classify(f + noise * draw_noise(problem.link, rows.shape), thresholds)

    def logp(self, value, *parameters):
        """Return the engine's objective."""
        return self.of(*parameters[:-1], value)[0]


def _observed(name: str, problem: Problem, thresholds, noise, **kwargs):
    parameters = [pt.cast(p, "float64") for p in problem.kernel.parameters]
    axes = iter("abcdefghilmopqrstuvwxyz")
    shapes = [",".join(next(axes) for _ in range(p.type.ndim)) for p in parameters]
    signature = ",".join(f"({s})" for s in [*shapes, "j", "", "n"]) + "->(n)"
    law = EvidenceLaw(signature, OrdinalEvidence(problem))
    parameters += [thresholds, noise, pt.as_tensor(np.arange(problem.y.size))]
    return ByLaw(name, law, *parameters, observed=problem.y, **kwargs)
