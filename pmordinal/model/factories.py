"""`gp_model` and `linear_model`: a whole PyMC model in one call."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pmordinal import checks
from pmordinal.data import by_row, target
from pmordinal.data import design as design_of
from pmordinal.data.design import Design
from pmordinal.data.terms import Term
from pmordinal.engines import Engine
from pmordinal.gram import check_columns
from pmordinal.links import Link, get_link
from pmordinal.model import reading
from pmordinal.model.compile import SmallModel
from pmordinal.model.covariances import PAPERS, SUMS, is_sum, named, scaled
from pmordinal.model.label_scales import NAME as SCALES
from pmordinal.model.label_scales import label_scales
from pmordinal.model.marginal import MarginalOrdinal, check_thresholds, is_random
from pmordinal.model.ordinal import Ordinal, increasing_tensor, positive_tensor
from pmordinal.model.thresholds import thresholds as threshold_prior
from pmordinal.model.units import warn_of_units
from pmordinal.words import guessing

POPULATION = "noise_population"
NDIM = {"amplitude": 0, "noise": 0, POPULATION: 0, "noise_fraction": 0, "thresholds": 1}


@guessing
def gp_model(
    X,
    y,
    cov_func=None,
    *,
    ard: bool = False,
    engine: str | Engine | None = None,
    link: str | Link = "probit",
    objective: str | None = None,
    categories=None,
    unlabeled=None,
    lengthscale=None,
    amplitude=None,
    noise=None,
    noise_fraction=None,
    thresholds=None,
    thresholds_by: str | None = None,
    noise_by: str | None = None,
    weights=None,
    standardize: bool | None = None,
) -> pm.Model:
    """Return a PyMC model of ordinal labels with a Gaussian-process predictor.

    Parameters
    ----------
    X : DataFrame or array_like, shape (n, d)
        Attributes; each level of a categorical column gets a column. A Dask DataFrame or array stays where
        it is, if the engine is ``"inducing"``.
    y : array_like, shape (n,), or str
        Labels: ordered categorical, integers, or strings with `categories`; or the column of `X` that has
        them. Missing labels are marginalised. A Dask series or array where `X` is one of Dask.
    cov_func : str, pm.gp.cov covariance, or a class of them, optional
        Covariance of the latent function. By name: a sum of terms, ``"recommended"`` (a linear, a smooth and a
        rough function: the default), ``"linear"``, ``"anova"`` (a function of each column and of each
        pair); or one, ``"expquad"``, the papers', ``"matern12"``, ``"matern32"``, ``"matern52"``. ``"expquad"`` is
        the default for ``engine="plsor"`` and where `ard`, `lengthscale`, `amplitude` or `noise` is
        given. A class, such as ``pm.gp.cov.Matern52``, gets the default length-scale. Names and
        classes are of standardised columns, a covariance of your own of the columns as they are:
        see `standardize`. Sums have hyperparameters of their own, and their noise is one.
    ard : bool
        One length-scale for each attribute.
    engine : str or Engine, optional
        How the latent function is integrated out. Default is ``"ep"``, and ``"inducing"`` beyond 3000 rows.
    link : {"probit", "logit", "cloglog"}
        Distribution of the noise.
    objective : str, optional
        The engine's objective that is used as log probability of `y`; default is its evidence.
    categories : sequence, optional
        All labels in order, the unobserved ones included.
    unlabeled : DataFrame or array_like, optional
        Rows without a label.
    lengthscale, amplitude, noise, thresholds : optional
        A number fixes the parameter; a distribution such as ``pm.HalfNormal.dist(1)``, or a
        variable of the model on the stack, replaces its prior. Amplitude, noise and thresholds
        share one scale: the amplitude is one unless you say otherwise.
    noise_fraction : optional
        Only for engines that regress on the labels (``"plsor"``): the share of the labels'
        variance, ``amplitude**2``, that is white noise.
    thresholds_by : str, optional
        Column of `X` that says whose thresholds cut a row, such as the rater: each has its own,
        partially pooled (see `thresholds`). It is no attribute of the latent function then.
    noise_by : str, optional
        Column of `X` that says whose noise is on a row, which may be the same one: each has its own,
        partially pooled.
    weights : str or array_like, shape (n,), optional
        How many rows like it each row stands for, or the column of `X` that has them. Whole numbers
        give the fit of the repeated rows at the cost of the distinct ones; others are powers of the
        likelihood. Not for ``"exact"`` and ``"sparse"``.
    standardize : bool, optional
        Centre and scale the attributes; default is to do so unless you give a covariance of your
        own, whose parameters are in your units. A warning says so where its prior cannot suit them:
        a linear term on an income of 20,000, say.

    Returns
    -------
    pm.Model
        The model on the stack if there is one, else a new one.

    Notes
    -----
    Default priors, weakly informative: thresholds such that the category probabilities of a new
    row are uniform over the simplex. Of one covariance: ``lengthscale ~ LogNormal(½ log d, 1)`` in
    standard deviations of the attributes, ``noise ~ LogNormal(−1, 1.5)``, amplitude one. Of sums of
    terms: the noise is one and each term has an amplitude; `model_summary` shows all priors. For ``engine="plsor"`` the
    latent function is in label units: ``amplitude ~ LogNormal(log sd(y), 0.5)`` is the standard
    deviation of a noisy label, ``noise_fraction ~ Beta(1.5, 1.5)``, ``noise ~ LogNormal(−1, 1)``;
    amplitude and noise are sampled as one vector, ``scales``, in coordinates that suit a sampler.

    With `noise_by`, the prior above is that of ``noise_population``, and the noise of group j is
    ``noise_population·exp(noise_sd·z_j)``, ``noise_sd ~ HalfNormal(0.5)`` and z standard normal. `fit` finds
    the joint mode in these coordinates: groups with few rows are drawn to the population. Predictions for
    groups that the training rows do not have are those of the population.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.gp_model([[0.0], [1.0], [2.0], [3.0]], [1, 1, 2, 3], "expquad")
    >>> [v.name for v in model.free_RVs]
    ['lengthscale', 'noise', 'thresholds']
    """
    X, y = target.split(X, y)
    engine = reading.named(engine, X, y, objective)
    own = {"ard": ard, "lengthscale": lengthscale, "amplitude": amplitude, "noise": noise}
    in_label_units = engine is not None and engine.in_label_units
    cov_func = named(PAPERS if cov_func is None and in_label_units else cov_func, **own)
    if is_sum(cov_func) and in_label_units:
        raise ValueError(
            f"this engine regresses on the labels with one covariance, and cov_func={cov_func!r} is a sum of "
            "terms: choose another engine, or leave cov_func out"
        )
    if standardize is None:
        standardize = not is_own(cov_func)
    by = {"thresholds_by": thresholds_by, "noise_by": noise_by, "weights": weights}
    design, engine = reading.read(
        engine, X, y, categories, standardize=standardize, unlabeled=unlabeled, **by
    )
    labels, names = design.labels, design.features.names
    if noise_fraction is not None and not engine.in_label_units:
        raise ValueError(f"noise_fraction belongs to engine='plsor'; {engine.name!r} has none")
    d, is_default = len(names), thresholds is None
    begin = {"lengthscale": np.sqrt(d)}  # κ = 1/d [CG2005, footnote 6]
    model = pm.modelcontext(None) if pm.Model.get_context(error_if_none=False) else SmallModel()
    with model:
        model.add_coords(design.coords)
        terms: tuple[Term, ...] = ()
        if is_sum(cov_func):
            built = SUMS[cov_func](design, get_link(link))
            cov, terms, begin = built.cov, built.terms, built.start
            noise = pt.constant(np.float64(1.0))
        elif engine.in_label_units:
            spread = max(_spread(design.y, design.by_row.weights), 0.1)
            share = pm.Beta.dist(1.5, 1.5) if noise_fraction is None else noise_fraction
            share = variable("noise_fraction", share)
            if amplitude is None and noise is None:
                called = ("amplitude", "noise" if noise_by is None else POPULATION)
                amplitude, noise = label_scales([np.log(spread), -1.0], [0.5, 1.0], share, called)
            else:
                default = pm.LogNormal.dist(np.log(spread), 0.5)
                amplitude = variable("amplitude", default if amplitude is None else amplitude)
                noise = noise_variable(noise, 1.0, noise_by)
            cov = scaled(covariance(cov_func, d, ard, lengthscale), amplitude, 1.0 - share)
            cov += pm.gp.cov.WhiteNoise(amplitude * pt.sqrt(share))
            begin |= {"amplitude": spread, "noise_fraction": 0.5, "noise": 0.5, POPULATION: 0.5}
            begin[SCALES] = np.array([spread, 0.5])
            begin["thresholds"] = np.arange(labels.n_classes - 1) + 1 - labels.n_classes / 2
            begin["thresholds_population"] = begin["thresholds"]
        else:
            amplitude = variable("amplitude", 1.0 if amplitude is None else amplitude)
            cov = scaled(covariance(cov_func, d, ard, lengthscale), amplitude)
            noise = noise_variable(noise, by=noise_by)
        total = built.total if is_sum(cov_func) else pt.sqrt(amplitude**2 + noise**2)
        unit = 1.0 if engine.in_label_units else noise
        if not is_sum(cov_func):  # which reads all columns that vary
            check_columns(cov, names)
        population, b = grouped_thresholds(thresholds, design, total, link, unit)
        options = {"objective": objective, "start": begin, "terms": terms}
        observe_marginal(
            MarginalOrdinal(cov, engine, link), design, population, b, noise, **options
        )
        if is_own(cov_func):
            warn_of_units(cov_func, design.rows, names, by_size=is_default)
    return model


@guessing
def linear_model(
    X,
    y,
    link: str | Link = "probit",
    *,
    categories=None,
    coefficients=None,
    thresholds=None,
    thresholds_by: str | None = None,
    noise_by: str | None = None,
    weights=None,
    standardize: bool = True,
) -> pm.Model:
    """Return a PyMC model of ordinal labels with a linear predictor: the cumulative-link baseline.

    Parameters
    ----------
    X : DataFrame or array_like, shape (n, d)
    y : array_like, shape (n,)
        Labels; rows with a missing one are left out of the likelihood, since they carry no
        information on the coefficients.
    link : {"probit", "logit", "cloglog"}
    categories : sequence, optional
        All labels in order.
    coefficients, thresholds : optional
        Number, distribution or model variable instead of the default prior.
    thresholds_by : str, optional
        Column of `X` that says whose thresholds cut a row, such as the rater: each has its own,
        partially pooled (see `thresholds`). It is no attribute of the predictor then.
    noise_by : str, optional
        Column of `X` that says whose noise is on a row: each group has its own, pooled around one.
    weights : str or array_like, shape (n,), optional
        How many rows each row stands for, or a column; see `gp_model`.
    standardize : bool
        Centre and scale the attributes, so that coefficients are per standard deviation; the levels
        of a factor share one.

    Returns
    -------
    pm.Model

    Notes
    -----
    Default priors: ``coefficients ~ Normal(0, 1.5)``, and thresholds such that the category
    probabilities at the mean attributes are uniform over the simplex. The noise is one.

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.linear_model([[0.0], [1.0], [2.0], [3.0]], [1, 1, 2, 3], link="logit")
    >>> [v.name for v in model.free_RVs]
    ['coefficients', 'thresholds']
    """
    X, y = target.split(X, y)
    X, every = by_row.read(X, thresholds_by, noise_by, weights)
    design = design_of.read(X, y, categories, standardize=standardize, by_row=every)
    model = pm.modelcontext(None) if pm.Model.get_context(error_if_none=False) else pm.Model()
    with model:
        model.add_coords(design.coords)
        default = pm.Normal.dist(0.0, 1.5, shape=len(design.features.names))
        beta = variable(
            "coefficients", default if coefficients is None else coefficients, dims="feature"
        )
        _, b = grouped_thresholds(thresholds, design, 1.0, link)
        noise = noise_variable(1.0, by=noise_by)
        eta = pt.sum(design.X * beta, axis=-1)
        observe_rows(eta, b, grouped_noise(noise, design), link, design)
    return model


def is_own(cov_func) -> bool:
    """Tell whether the user passed a covariance with its parameters, rather than a class or None."""
    if is_sum(cov_func):
        return False
    kind = cov_func if isinstance(cov_func, type) else type(cov_func)
    if cov_func is not None and not issubclass(kind, pm.gp.cov.BaseCovariance):
        raise TypeError(
            f"cov_func must be a pm.gp.cov covariance or a class of them, got {cov_func!r}; a matrix becomes one by "
            "pmo.Precomputed(matrix)"
        )
    return cov_func is not None and not isinstance(cov_func, type)


def covariance(cov_func, d: int, ard: bool, lengthscale):
    """Return the user's covariance unchanged, or one of that class with a prior on the length-scale."""
    if is_own(cov_func):
        if lengthscale is not None:
            raise ValueError("lengthscale belongs to the default covariance; yours has its own")
        return cov_func
    if lengthscale is None:
        lengthscale = pm.LogNormal.dist(0.5 * np.log(d), 1.0, shape=d if ard else ())
    shape = np.shape(lengthscale)
    if isinstance(lengthscale, pt.TensorVariable):
        shape = lengthscale.type.shape
        if ard and not shape and is_new(lengthscale):
            raise ValueError(
                f"ard=True wants a lengthscale for each of {d} column(s): make the distribution with shape={d}"
            )
    if len(shape) > 1:
        raise ValueError(f"lengthscale must be a number or a vector, got {len(shape)} axes")
    if shape and shape[0] is not None:
        checks.one_or_each("lengthscale", shape[0], d)
    scale = variable("lengthscale", lengthscale, dims="feature" if ard else None)
    return (cov_func or pm.gp.cov.ExpQuad)(d, ls=scale)


def noise_variable(noise, width: float = 1.5, by: str | None = None):
    """Return the noise, by default with a LogNormal prior of that width; that of the population, if it is by group."""
    prior = pm.LogNormal.dist(-1.0, width) if noise is None else noise
    return variable("noise" if by is None else POPULATION, prior)


def threshold_variable(thresholds, n_classes: int, scale, link, unit=1.0):
    """Return the thresholds, by default with uniform class probabilities for a latent function of that scale."""
    if thresholds is None:
        options = {"scale": scale, "unit": unit, "link": link, "dims": "threshold"}
        return threshold_prior("thresholds", n_classes, **options)
    thresholds = variable("thresholds", thresholds, dims="threshold")
    check_thresholds(thresholds, n_classes)
    return thresholds


def grouped_thresholds(thresholds, design: Design, scale, link, unit=1.0):
    """Return the population's thresholds, and those of each group of the design, if there are groups: else the same."""
    by, n_classes = design.every.thresholds, design.labels.n_classes
    if by is None:
        b = threshold_variable(thresholds, n_classes, scale, link, unit)
        return b, b
    if thresholds is not None:
        raise ValueError("thresholds_by has a prior of its own: leave thresholds= out")
    model = pm.modelcontext(None)
    model.add_coord(by.name, list(by.levels))
    options = {"scale": scale, "unit": unit, "link": link, "dims": "threshold", "by": by.name}
    b = threshold_prior("thresholds", n_classes, **options)
    return model["thresholds_population"], b


def grouped_noise(population, design: Design):
    """Return the noise of each group of the design, pooled around the population's, if there are groups: else that."""
    by = design.every.noise
    if by is None:
        return population
    model = pm.modelcontext(None)
    model.add_coord(by.name, list(by.levels))
    if POPULATION not in model.named_vars:
        population = pm.Deterministic(POPULATION, population)
    z = pm.Normal("noise_z", shape=len(by.levels), dims=by.name)
    spread = pm.HalfNormal("noise_sd", 0.5)
    return pm.Deterministic("noise", population * pt.exp(spread * z), dims=by.name)


def with_population(parameters, population, by):
    """Return the parameters of groups with the population's after them; those of no groups as they are."""
    return parameters if by is None else pt.concatenate([parameters, pt.shape_padleft(population)])


def observe_marginal(gp: MarginalOrdinal, design: Design, population, b, noise, **options) -> None:
    """Add the labels of a design as an observed variable of a process; `noise` is that of the population."""
    every = design.every
    thresholds = with_population(b, population, every.thresholds)
    by_noise = with_population(grouped_noise(noise, design), noise, every.noise)
    gp.observe("y", design, thresholds, by_noise, dims="obs", **options)


def observe_rows(eta, thresholds, noise, link, design: Design) -> None:
    """Add the labels of a design as an observed variable of a predictor; parameters may be by group."""
    known = design.by_row
    by_threshold, by_noise = known.codes()
    b = thresholds if by_threshold is None else thresholds[by_threshold]
    s = noise if by_noise is None else noise[by_noise]
    Ordinal("y", eta, b, s, link=link, weights=known.weights, observed=design.y, dims="obs")


def variable(name: str, value, dims: str | None = None):
    """Return a number as a constant, a distribution as a new variable of the model, a variable unchanged."""
    model = pm.modelcontext(None)
    if not isinstance(value, pt.TensorVariable):
        array = checks.finite_array(name, value, ndim=NDIM.get(name))
        if name in ("lengthscale", "amplitude", "noise", POPULATION):
            return positive_tensor(name, array)
        if name == "thresholds":
            return increasing_tensor(name, array)
        if name == "noise_fraction" and not 0.0 < array < 1.0:
            raise ValueError(f"noise_fraction must be between 0 and 1, got {value}")
        return pt.as_tensor(array)
    if is_new(value):
        return model.register_rv(value, name, dims=(dims,) if dims else None)
    return value


def is_new(value) -> bool:
    """Tell whether a variable is a distribution that is not yet in the current model."""
    is_distribution = value.owner is not None and is_random(value.owner.op)
    return is_distribution and value.name not in pm.modelcontext(None).named_vars


def _spread(y: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the standard deviation of class codes, of all the rows that these stand for."""
    if weights is None:
        return float(y.std())
    return float(np.sqrt(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)))
