"""`latent_model`: a PyMC model with the latent function in it, for full MCMC.

Nothing is integrated out or approximated (except with ``approx="hsgp"``). The latent function is sampled in
the coordinates of `pmordinal.model.latent.whitening`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.gp.hsgp_approx import approx_hsgp_hyperparams
from scipy.stats import norm

from pmordinal import checks
from pmordinal.data import by_row, target
from pmordinal.data import design as design_of
from pmordinal.data.labels import Labels
from pmordinal.gram import check_columns, lower
from pmordinal.links import Link, get_link
from pmordinal.model import factories as models
from pmordinal.model.covariances import PAPERS, SUMS, is_sum, named, scaled
from pmordinal.model.latent.hsgp_ops import (
    Basis,
    BasisCoordinates,
    BasisFactor,
    BasisValues,
    BasisWeights,
    eigenfunctions,
)
from pmordinal.model.latent.process_ops import (
    Process,
    ProcessCoordinates,
    ProcessDensity,
    ProcessValues,
    Spectrum,
)
from pmordinal.model.laws import ByLaw, Law
from pmordinal.model.units import warn_of_units
from pmordinal.words import guessing

APPROXIMATIONS = ("full", "hsgp")
# Number of attributes: length-scales that the default basis resolves, in half-ranges of an attribute.
RESOLVED = {1: (0.2, 3.0), 2: (0.5, 1.3), 3: (1.0, 1.2)}
LEAST_C = 1.2  # below it PyMC calls the approximation inadequate


@guessing
def latent_model(
    X,
    y,
    cov_func=None,
    *,
    approx: str = "full",
    ard: bool = False,
    link: str | Link = "probit",
    categories=None,
    lengthscale=None,
    amplitude=None,
    noise=None,
    thresholds=None,
    thresholds_by: str | None = None,
    noise_by: str | None = None,
    weights=None,
    standardize: bool | None = None,
    m: int | Sequence[int] | None = None,
    c: float | None = None,
) -> pm.Model:
    """Return a PyMC model of ordinal labels with the latent function in it, for ``pm.sample``.

    It is the model of `gp_model`, with the same variables, coordinates and priors, and ``f``, the
    latent function at the labelled rows.

    Parameters
    ----------
    X, y, cov_func, ard, link, categories, lengthscale, amplitude, noise, thresholds, standardize
        As in `gp_model`. Missing labels are marginalised: ``f`` is at the labelled rows.
    approx : {"full", "hsgp"}
        ``"full"``: the exact process; an evaluation costs O(n³). ``"hsgp"``: a basis of
        eigenfunctions, O(n) for one to three attributes, and any number with `m`; for covariances
        that have a spectral density, ``"expquad"`` by default.
    thresholds_by : str, optional
        Column of `X` that says whose thresholds cut a row, such as the rater: each has its own,
        partially pooled (see `thresholds`). It is no attribute of the latent function then.
    noise_by, weights
        As in `gp_model`.
    m, c : int or sequence of int, and float, optional
        For ``approx="hsgp"``: basis functions for each attribute, and how far the basis extends, in
        half-ranges of the data. The defaults resolve length-scales of 0.2 to 3 half-ranges for
        one attribute, 0.5 to 1.3 for two, 1 to 1.2 for three.

    Returns
    -------
    pm.Model
        The model on the stack if there is one, else a new one. ``f_white`` are the coordinates in
        which the latent function is sampled.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.latent_model([[0.0], [1.0], [2.0], [3.0]], [1, 1, 2, 3], "expquad")
    >>> [v.name for v in model.free_RVs], [v.name for v in model.deterministics]
    (['lengthscale', 'noise', 'thresholds', 'f_white'], ['f'])
    """
    checks.one_of("approx", approx, APPROXIMATIONS)
    if approx == "full" and not (m is None and c is None):
        raise ValueError("m and c belong to approx='hsgp'")
    own = {"ard": ard, "lengthscale": lengthscale, "amplitude": amplitude, "noise": noise}
    cov_func = named(PAPERS if cov_func is None and approx == "hsgp" else cov_func, **own)
    if is_sum(cov_func) and approx == "hsgp":
        raise ValueError(
            f"approx='hsgp' needs a covariance with a spectral density, such as 'expquad', and cov_func={cov_func!r} "
            "has none"
        )
    if standardize is None:
        standardize = not models.is_own(cov_func)
    X, y = target.split(X, y)
    X, every = by_row.read(X, thresholds_by, noise_by, weights)
    design = design_of.read(X, y, categories, standardize=standardize, by_row=every)
    features, labels = design.features, design.labels
    link, d = get_link(link), len(features.names)
    model = pm.modelcontext(None) if pm.Model.get_context(error_if_none=False) else pm.Model()
    with model:
        model.add_coords(design.coords)
        if is_sum(cov_func):
            built = SUMS[cov_func](design, link)
            cov, total, noise = built.cov, built.total, pt.as_tensor(np.float64(1.0))
        else:
            amplitude = models.variable("amplitude", 1.0 if amplitude is None else amplitude)
            cov = scaled(models.covariance(cov_func, d, ard, lengthscale), amplitude)
            noise = models.noise_variable(noise, by=noise_by)
            total = pt.sqrt(amplitude**2 + noise**2)
            check_columns(cov, features.names)
        if models.is_own(cov_func):
            warn_of_units(cov_func, design.rows, features.names, by_size=thresholds is None)
        centre, b = models.grouped_thresholds(thresholds, design, total, link)
        measured = measurements(labels, link, centre, noise, total)
        if approx == "hsgp":
            gp, phi, root = _basis(cov, design.X, features.names, m, c)
            basis = Basis(gp, phi, design.X, features, labels, link, design.by_row)
            f = _basis_values(basis, root, *measured)
        else:
            process = Process(lower(cov), design.X, features, labels, link, design.by_row)
            f = process_values(process, *measured)
        f = pm.Deterministic("f", f, dims="obs")
        models.observe_rows(f, b, models.grouped_noise(noise, design), link, design)
    return model


def measurements(labels: Labels, link: Link, thresholds, noise, total):
    """Return the centre of each class, and the precision of a label as a measurement of f there."""
    p = (labels.counts + 1.0) / (labels.counts.sum() + labels.n_classes)
    t = norm.ppf(np.cumsum(p)[:-1])
    means = -np.diff(norm.pdf(t), prepend=0.0, append=0.0) / p  # mean of a normal in each class
    ends = thresholds[:1] + total * (means[0] - t[0]), thresholds[-1:] + total * (means[-1] - t[-1])
    centres = pt.concatenate([ends[0], 0.5 * (thresholds[:-1] + thresholds[1:]), ends[1]])
    # variance of the noise, and of a value within its class
    w = 1.0 / ((link.noise_sd * noise) ** 2 + (1.0 - p @ means**2) * total**2)
    return pt.cast(centres, "float64"), pt.cast(w, "float64")


def process_values(problem: Process, centres, w):
    """Add the whitened coordinates of the process to the model; return f at the rows."""
    spectrum = Spectrum(problem).make_node(*problem.kernel.parameters).outputs
    parameters = [centres, w, *spectrum]
    length = np.arange(problem.whitening.size)  # gives the draws their length
    v = ByLaw("f_white", ProcessLaw(ProcessDensity(problem)), *parameters, length)
    return ProcessValues(problem)(v, *parameters)


@dataclass(frozen=True)
class ProcessLaw(Law):
    """The prior of a process in its whitened coordinates."""

    name = "ProcessCoordinates"
    signature = "(k),(),(n,n),(n),(n)->(n)"
    of: ProcessDensity

    def draw(self, *parameters, size):
        """Draw white noise and transform it."""
        *inputs, index = parameters
        return ProcessCoordinates(self.of.problem)(pm.Normal.dist(size=index.shape), *inputs)

    def logp(self, value, *parameters):
        """Return the log density."""
        return self.of(value, *parameters[:-1])

    def support_point(self, rv, size, *parameters):
        """Return the origin."""
        return pt.zeros(self.of.problem.whitening.size)


def _basis(cov, rows: np.ndarray, names: Sequence[str], m, c):
    """Return the basis, its functions at the rows, and the roots of the spectral density."""
    constant = [names[j] for j in cov.active_dims if np.ptp(rows[:, j]) == 0]
    if constant:
        raise ValueError(
            f"approx='hsgp' measures its basis in ranges of the attributes, and {constant[0]!r} is constant in the "
            "labelled rows: drop the column or the level, or use approx='full'"
        )
    d = cov.n_dims
    if m is None and d not in RESOLVED:
        raise ValueError(
            f"approx='hsgp' multiplies its basis with every attribute and there are {d}: give m=, the number of "
            "functions for each, or use approx='full'"
        )
    if m is None or c is None:
        default = approx_hsgp_hyperparams([-1.0, 1.0], list(RESOLVED[min(d, 3)]), "expquad")
        m, c = default[0] if m is None else m, default[1] if c is None else c
    if checks.positive("c", c) < LEAST_C:
        raise ValueError(f"c must be {LEAST_C} or more, got {c}: f is held to 0 at c half-ranges")
    sizes = [m] * d if np.ndim(m) == 0 else list(m)
    gp = pm.gp.HSGP(m=[checks.integer("m", k, minimum=1) for k in sizes], c=c, cov_func=cov)
    try:
        return gp, *eigenfunctions(gp, rows)
    except (AttributeError, NotImplementedError) as error:
        raise ValueError(
            "approx='hsgp' needs a covariance with a spectral density, such as ExpQuad, Matern32 or Matern52, "
            "scaled or added: use approx='full' for this one"
        ) from error


def _basis_values(problem: Basis, root, centres, w):
    """Add the whitened coordinates of the weights to the model; return f at the rows."""
    root = pt.cast(root, "float64")
    x = w * root * pt.sum(problem.tally * centres, axis=-1)
    L = BasisFactor(problem)(w, root)
    v = ByLaw("f_white", BasisLaw(), x, L)
    return BasisValues(problem)(root * BasisWeights()(v, x, L))


@dataclass(frozen=True)
class BasisLaw(Law):
    """The prior of the weights of a basis in whitened coordinates, given x and L."""

    name = "BasisCoordinates"
    signature = "(n),(n,n)->(n)"

    def draw(self, x, L, size):
        """Draw white weights and transform them."""
        return BasisCoordinates()(pm.Normal.dist(size=x.shape), x, L)

    def logp(self, value, x, L):
        """Return the log density of the weights minus log |L|."""
        weights = BasisWeights()(value, x, L)
        norms = pt.sum(weights**2) + x.shape[0] * np.log(2.0 * np.pi)
        return -0.5 * norms - pt.sum(pt.log(pt.diagonal(L)))

    def support_point(self, rv, size, x, L):
        """Return the origin."""
        return pt.zeros_like(x)
