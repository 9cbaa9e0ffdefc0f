"""`gp_model` and `linear_model`: a whole PyMC model in one call."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pmordinal import checks
from pmordinal.data import design as design_of
from pmordinal.data import groups
from pmordinal.data.labels import Labels
from pmordinal.data.terms import Term
from pmordinal.engines import Engine, get_engine
from pmordinal.gram import check_columns
from pmordinal.links import Link, get_link
from pmordinal.model.compile import SmallModel
from pmordinal.model.covariances import SUMS, is_sum, named
from pmordinal.model.label_scales import NAME as SCALES
from pmordinal.model.label_scales import label_scales
from pmordinal.model.marginal import ONE_VECTOR, MarginalOrdinal, check_thresholds, is_random
from pmordinal.model.ordinal import Ordinal, increasing_tensor, positive_tensor
from pmordinal.model.thresholds import thresholds as threshold_prior
from pmordinal.model.units import warn_of_units

NDIM = {"amplitude": 0, "noise": 0, "noise_fraction": 0, "thresholds": 1}


def gp_model(
    X,
    y,
    cov_func=None,
    *,
    ard: bool = False,
    engine: str | Engine = "ep",
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
    standardize: bool | None = None,
) -> pm.Model:
    """Return a PyMC model of ordinal labels with a Gaussian-process predictor.

    Parameters
    ----------
    X : DataFrame or array_like, shape (n, d)
        Attributes; categorical columns become one column a level.
    y : array_like, shape (n,)
        Labels: ordered categorical, integers, or strings with `categories`. Missing labels are
        marginalised.
    cov_func : str, pm.gp.cov covariance, or a class of them, optional
        Covariance of the latent function. By name: ``"expquad"``, the papers' and the default,
        ``"matern12"``, ``"matern32"``, ``"matern52"``; or a sum of terms, ``"recommended"`` (a linear, a
        smooth and a rough function), ``"linear"``, ``"anova"`` (a function of each column and of each
        pair). A class, such as ``pm.gp.cov.Matern52``, gets the default length-scale. Names and
        classes are of standardised columns, a covariance of your own of the columns as they are:
        see `standardize`. Sums have hyperparameters of their own: they take no `ard`,
        `lengthscale`, `amplitude` or `noise`, which is one.
    ard : bool
        One length-scale for each attribute.
    engine : str or Engine
        How the latent function is integrated out.
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
        Refused: no engine has thresholds by group. Use `latent_model`, which takes this argument.
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

    Examples
    --------
    >>> import pmordinal as pmo
    >>> model = pmo.gp_model([[0.0], [1.0], [2.0], [3.0]], [1, 1, 2, 3])
    >>> [v.name for v in model.free_RVs]
    ['lengthscale', 'noise', 'thresholds']
    """
    if thresholds_by is not None:
        raise ValueError(ONE_VECTOR)
    engine = get_engine(engine)
    own = {"ard": ard, "lengthscale": lengthscale, "amplitude": amplitude, "noise": noise}
    cov_func = named(cov_func, **own)
    if is_sum(cov_func) and engine.in_label_units:
        raise ValueError(
            f"engine={engine.name!r} regresses on the labels with one covariance, and cov_func={cov_func!r} is a sum "
            "of terms: choose another engine, or leave cov_func out"
        )
    if standardize is None:
        standardize = not is_own(cov_func)
    design = design_of.read(X, y, categories, standardize=standardize, unlabeled=unlabeled)
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
            cov, terms, begin, noise = built.cov, built.terms, built.start, 1.0
        elif engine.in_label_units:
            spread = max(design.y.std(), 0.1)
            share = pm.Beta.dist(1.5, 1.5) if noise_fraction is None else noise_fraction
            share = variable("noise_fraction", share)
            if amplitude is None and noise is None:
                amplitude, noise = label_scales([np.log(spread), -1.0], [0.5, 1.0], share)
            else:
                default = pm.LogNormal.dist(np.log(spread), 0.5)
                amplitude = variable("amplitude", default if amplitude is None else amplitude)
                noise = noise_variable(noise, 1.0)
            cov = amplitude**2 * (1.0 - share) * covariance(cov_func, d, ard, lengthscale)
            cov += pm.gp.cov.WhiteNoise(amplitude * pt.sqrt(share))
            begin |= {"amplitude": spread, "noise_fraction": 0.5, "noise": 0.5}
            begin[SCALES] = np.array([spread, 0.5])
            begin["thresholds"] = np.arange(labels.n_classes - 1) + 1 - labels.n_classes / 2
        else:
            amplitude = variable("amplitude", 1.0 if amplitude is None else amplitude)
            cov = scaled(covariance(cov_func, d, ard, lengthscale), amplitude)
            noise = noise_variable(noise)
        total = built.total if is_sum(cov_func) else pt.sqrt(amplitude**2 + noise**2)
        unit = 1.0 if engine.in_label_units else noise
        thresholds = threshold_variable(thresholds, labels.n_classes, total, link, unit)
        if not is_sum(cov_func):  # which reads all columns that vary
            check_columns(cov, names)
        gp = MarginalOrdinal(cov, engine, link)
        gp.observe(
            "y",
            design,
            thresholds,
            noise,
            objective=objective,
            start=begin,
            terms=terms,
            dims="obs",
        )
        if is_own(cov_func):
            warn_of_units(cov_func, design.rows, names, by_size=is_default)
    return model


def linear_model(
    X,
    y,
    link: str | Link = "probit",
    *,
    categories=None,
    coefficients=None,
    thresholds=None,
    thresholds_by: str | None = None,
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
    X, members = (X, None) if thresholds_by is None else groups.split(X, thresholds_by)
    design = design_of.read(X, y, categories, standardize=standardize)
    model = pm.modelcontext(None) if pm.Model.get_context(error_if_none=False) else pm.Model()
    with model:
        model.add_coords(design.coords)
        default = pm.Normal.dist(0.0, 1.5, shape=len(design.features.names))
        beta = variable(
            "coefficients", default if coefficients is None else coefficients, dims="feature"
        )
        _, b = row_thresholds(thresholds, design.labels, 1.0, link, thresholds_by, members)
        eta = pt.sum(design.X * beta, axis=-1)
        Ordinal("y", eta, b, link=link, observed=design.y, dims="obs")
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


def scaled(cov, amplitude):
    """Return the covariance times the squared amplitude; unchanged if that is one."""
    if isinstance(amplitude, pt.TensorConstant) and float(amplitude.data) == 1.0:
        return cov
    return amplitude**2 * cov


def noise_variable(noise, width: float = 1.5):
    """Return the noise, by default a variable with a LogNormal prior of that width."""
    return variable("noise", pm.LogNormal.dist(-1.0, width) if noise is None else noise)


def threshold_variable(thresholds, n_classes: int, scale, link, unit=1.0):
    """Return the thresholds, by default with uniform class probabilities for a latent function of that scale."""
    if thresholds is None:
        options = {"scale": scale, "unit": unit, "link": link, "dims": "threshold"}
        return threshold_prior("thresholds", n_classes, **options)
    thresholds = variable("thresholds", thresholds, dims="threshold")
    check_thresholds(thresholds, n_classes)
    return thresholds


def row_thresholds(thresholds, labels: Labels, scale, link, by=None, members=None):
    """Return the common thresholds, and those of the labelled rows: the same, or one vector for each row."""
    if by is None:
        b = threshold_variable(thresholds, labels.n_classes, scale, link)
        return b, b
    if thresholds is not None:
        raise ValueError("thresholds_by has a prior of its own: leave thresholds= out")
    model = pm.modelcontext(None)
    model.add_coord(by, list(members.categories))
    options = {"scale": scale, "link": link, "dims": "threshold", "by": by}
    b = threshold_prior("thresholds", labels.n_classes, **options)
    return model["thresholds_population"], b[members.codes[labels.observed].astype(int)]


def variable(name: str, value, dims: str | None = None):
    """Return a number as a constant, a distribution as a new variable of the model, a variable unchanged."""
    model = pm.modelcontext(None)
    if not isinstance(value, pt.TensorVariable):
        array = checks.finite_array(name, value, ndim=NDIM.get(name))
        if name in ("lengthscale", "amplitude", "noise"):
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
