"""Checks of arguments: each function returns the converted value, or raises and says what to pass."""

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from pmordinal.words import guess


def positive(name: str, value: Any) -> float:
    """Return `value` as a finite float greater than zero.

    Parameters
    ----------
    name : str
        The argument's name, for the error message.
    value : float
        What the user passed.

    Examples
    --------
    >>> positive("noise", 2)
    2.0
    >>> positive("noise", 0)
    Traceback (most recent call last):
        ...
    ValueError: noise must be a finite number greater than 0, got 0
    """
    try:
        # float() would also take text, and arrays of one entry, which NumPy deprecates.
        if isinstance(value, (bool, np.bool_, str, bytes)) or np.ndim(value) != 0:
            raise TypeError("not a number")
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be one number greater than 0, got {got(value)}") from error
    except OverflowError:
        number = np.inf
    if not (0.0 < number < np.inf):
        raise ValueError(f"{name} must be a finite number greater than 0, got {value!r}")
    return number


def integer(name: str, value: Any, minimum: int | None = None) -> int:
    """Return `value` as an int, not smaller than `minimum`.

    Parameters
    ----------
    name : str
        The argument's name, for the error message.
    value : int
        What the user passed; floats are refused even when they are whole.
    minimum : int, optional
        The smallest value allowed.

    Examples
    --------
    >>> integer("draws", 10, minimum=1)
    10
    >>> integer("draws", 0, minimum=1)
    Traceback (most recent call last):
        ...
    ValueError: draws must be an integer of at least 1, got 0
    """
    bound = "" if minimum is None else f" of at least {minimum}"
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError("a bool is not a count")
        number = operator.index(value)
    except TypeError as error:
        hint = ""
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            hint = f"; pass {int(value)}"
        raise TypeError(f"{name} must be an integer{bound}, got {got(value)}{hint}") from error
    if minimum is not None and number < minimum:
        raise ValueError(f"{name} must be an integer{bound}, got {number}")
    return number


def rows(name: str, value: Any) -> tuple[int, ...]:
    """Return `value` as numbers of rows: at least one, and none twice.

    Examples
    --------
    >>> rows("basis", [4, 1])
    (4, 1)
    >>> rows("basis", [4, 4])
    Traceback (most recent call last):
        ...
    ValueError: basis must hold at least one row, and none twice
    """
    if np.ndim(value) != 1:
        raise TypeError(f"{name} must be a sequence of rows, got {got(value)}")
    found = tuple(integer(name, row, minimum=0) for row in value)
    if len(set(found)) != len(found) or not found:
        raise ValueError(f"{name} must hold at least one row, and none twice")
    return found


def one_of[T](name: str, value: T, choices: Iterable[T]) -> T:
    """Return `value` if it is one of `choices`; otherwise the error lists them.

    Parameters
    ----------
    name : str
        The argument's name, for the error message.
    value : object
        What the user passed.
    choices : iterable
        Values that may be passed.

    Examples
    --------
    >>> one_of("approx", "full", ["full", "hsgp"])
    'full'
    >>> one_of("approx", "ful", ["full", "hsgp"])
    Traceback (most recent call last):
        ...
    ValueError: approx must be one of 'full', 'hsgp', got 'ful'. Did you mean 'full'?
    """
    choices = list(choices)
    for choice in choices:
        # The type comes first, because == on an array has no single truth value.
        if isinstance(value, type(choice)) and value == choice:
            return choice
    listing = ", ".join(repr(choice) for choice in choices)
    raise ValueError(f"{name} must be one of {listing}, got {value!r}{guess(value, choices)}")


def names(name: str, value: Any) -> list[str]:
    """Return one name or several as a list, which must not be empty.

    Examples
    --------
    >>> names("feature", "age"), names("feature", ("age", "town"))
    (['age'], ['age', 'town'])
    """
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, Iterable) or not (listed := list(listed)):
        raise TypeError(f"{name} must be a name, or a list of names, got {got(value)}")
    for each in listed:
        if not isinstance(each, str):
            raise TypeError(f"{name} must be a name, or a list of names, got {got(value)}")
    return listed


def one_or_each(name: str, count: int, columns: int) -> None:
    """Raise unless there is one number for all columns, or one for each.

    Examples
    --------
    >>> one_or_each("lengthscale", 2, columns=2)
    >>> one_or_each("lengthscale", 2, columns=1)
    Traceback (most recent call last):
        ...
    ValueError: lengthscale must be one number for all 1 column(s), or one for each, got 2
    """
    if count not in (1, columns):
        raise ValueError(
            f"{name} must be one number for all {columns} column(s), or one for each, got {count}"
        )


def finite_array(name: str, value: Any, ndim: int | None = None) -> np.ndarray:
    """Return `value` as a new float64 array without NaN or infinity.

    Parameters
    ----------
    name : str
        The argument's name, for the error message.
    value : array_like
        What the user passed.
    ndim : int, optional
        The number of dimensions it must have.

    Returns
    -------
    ndarray of float64
        A C-contiguous copy.

    Examples
    --------
    >>> finite_array("thresholds", [0, 1], ndim=1)
    array([0., 1.])
    >>> finite_array("thresholds", [0, float("nan")])
    Traceback (most recent call last):
        ...
    ValueError: thresholds must be finite, got nan at index 1: remove or replace it
    """
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "biufO":
            raise TypeError(f"dtype {raw.dtype}")
        array = np.array(raw, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {got(value)}") from error
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        index = tuple(bad[0].tolist())
        where = f" at index {index[0] if len(index) == 1 else index}" if index else ""
        raise ValueError(f"{name} must be finite, got {array[index]}{where}: remove or replace it")
    return array


def generator(name: str, value: Any) -> np.random.Generator:
    """Return a NumPy random generator for a seed.

    Parameters
    ----------
    name : str
        The argument's name, for the error message.
    value : int, sequence of int, SeedSequence, Generator or None
        What the user passed; None gives other numbers every time.

    Examples
    --------
    >>> int(generator("seed", 1).integers(100))
    47
    >>> generator("seed", -1)
    Traceback (most recent call last):
        ...
    ValueError: seed must be an integer of at least 0, a numpy Generator or None, got -1 (int)
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError("a bool is no seed")
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be an integer of at least 0, a numpy Generator or None, got {got(value)}"
        ) from error


def one_seed(seed: Any, random_seed: Any) -> Any:
    """Return the seed that was given by either name.

    Examples
    --------
    >>> one_seed(None, 3), one_seed(3, None)
    (3, 3)
    >>> one_seed(1, 3)
    Traceback (most recent call last):
        ...
    ValueError: seed and random_seed are two names for one thing: pass one of them
    """
    if random_seed is None:
        return seed
    if seed is not None and not (isinstance(seed, int) and seed == 0):  # zero is a default
        raise ValueError("seed and random_seed are two names for one thing: pass one of them")
    return random_seed


def seeds(name: str, value: Any, count: int) -> list[np.random.SeedSequence]:
    """Return `count` independent seeds made from one; each is the same in any process and order."""
    return generator(name, value).bit_generator.seed_seq.spawn(count)  # type: ignore[attr-defined]


def seed_number(seed: Any) -> int | None:
    """Return an integer seed so that results can record it; None for any other kind."""
    return int(seed) if isinstance(seed, int | np.integer) else None


def got(value: Any) -> str:
    """Return a value and its type as text for an error message; a long value is cut short."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
