"""Words that users try: errors guess what an unknown name was meant to be."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from inspect import signature

# what other libraries call it, by our name
MEANT = {
    "X": "data df table dataframe features",
    "target": "y outcome response label labels",
    "kernel": "cov cov_func covariance",
    "y": "target response outcome labels",
    "cov_func": "kernel cov covariance cov_function covariance_function",
    "cov": "kernel cov_func",
    "engine": "method inference approximation approx",
    "engines": "engine methods",
    "ep": "expectation_propagation",
    "inducing": "vfe fitc svgp vi svi variational",
    "link": "family",
    "nb": "naive naive_bayes",
    "probit": "normal gaussian cumulative",
    "expquad": "rbf se gaussian squared_exponential exponentiated_quadratic",
    "evidence": "marginal_likelihood",
    "lengthscale": "ls",
    "amplitude": "eta outputscale",
    "noise": "sigma",
    "thresholds": "cutpoints cuts",
    "categories": "classes levels",
    "gp": "s smooth hsgp",
    "anova": "te ti t2",
    "starts": "n_restarts n_restarts_optimizer",
    "max_evaluations": "maxiter max_iter n_iter",
    "start": "initial init initvals x0",
    "point": "map mle",
    "integrate": "mcmc nuts bayes",
    "full": "mcmc nuts",
    "seed": "rng random_state",
    "random_state": "seed random_seed",
    "draws": "samples n_samples num_samples n_draws",
    "chains": "n_chains num_chains",
    "tune": "warmup n_tune burn_in",
    "ci_prob": "ci hdi hdi_prob level",
    "kind": "type method",
    "probs": "probability probabilities",
    "tol": "tolerance",
    "reference": "ref",
    "order": "labels",
}


def nearest(value: object, choices: Iterable[object]) -> str | None:
    """Return the choice that was probably meant: another word for it, its start, or one spelt like it.

    Examples
    --------
    >>> nearest("laplcae", ["ep", "laplace"]), nearest("temp", ["temperature", "age"])
    ('laplace', 'temperature')
    >>> nearest("rbf", ["expquad", "matern52"])
    'expquad'
    """
    if not isinstance(value, str):
        return None
    names = {choice.lower(): choice for choice in choices if isinstance(choice, str)}
    word = value.lower().replace(" ", "_").replace("-", "_")
    said = [name for name in names.values() if word in MEANT.get(name, "").split()]
    begun = [name for low, name in names.items() if len(word) > 2 and low.startswith(word)]
    close = [names[low] for low in get_close_matches(value.lower(), names, 1)]
    found = [*said, *close, *(begun if len(begun) == 1 else [])]
    return found[0] if found else None


def guess(value: object, choices: Iterable[object]) -> str:
    """Return a sentence with the choice that was probably meant, to end an error message; else nothing.

    Examples
    --------
    >>> guess("laplcae", ["ep", "laplace"])
    ". Did you mean 'laplace'?"
    >>> guess("nuts", ["ep", "laplace"])
    ''
    """
    found = nearest(value, choices)
    return f". Did you mean {found!r}?" if found else ""


def check_argument(function: str, name: str, known: Iterable[str]) -> None:
    """Raise if a function has no argument of that name.

    Examples
    --------
    >>> check_argument("gp_model", "kernel", ["X", "y", "cov_func"])
    Traceback (most recent call last):
        ...
    TypeError: gp_model() has no argument 'kernel'. Did you mean 'cov_func'?
    """
    known = list(known)
    if name not in known:
        hint = guess(name, known) or f"; it has {', '.join(known)}"
        raise TypeError(f"{function}() has no argument {name!r}{hint}")


def guessing[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its error on an unknown argument guesses what was meant."""
    parameters, name = signature(function).parameters, function.__qualname__
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        raise TypeError(f"{name} takes any argument: there is nothing to guess")
    known, called = list(parameters), name.removesuffix(".__init__").split(".")[-1]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for each in kwargs:
            check_argument(called, each, known)
        return function(*args, **kwargs)

    return checked
