"""Names of columns, levels and classes as text in pictures: shown literally, and cut if too long.

Matplotlib typesets text between two dollar signs as mathematics, which names are not. So every picture passes them
through `caption`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


def caption(name: Any, width: int = 40) -> str:
    r"""Return a name so that matplotlib shows it literally, cut to `width` characters.

    Parameters
    ----------
    name : object
        Name of a column, a level, a class or a row.
    width : int
        Longest name; the middle of longer ones is left out, as names that begin alike often end differently.

    Examples
    --------
    >>> caption("satisfaction with the service (1)", width=20)
    'satisfacti…rvice (1)'
    >>> print(caption("$5 to $10"))
    \$5 to \$10
    """
    from matplotlib import rcParams  # here, since MODL works without it

    text = str(name)
    if len(text) > width:
        text = f"{text[: width // 2]}…{text[len(text) - (width - 1) // 2 :]}"
    is_parsed = rcParams["text.parse_math"] or rcParams["text.usetex"]
    return text.replace("$", r"\$") if is_parsed else text


def captions(names: Sequence[Any], width: int = 40) -> list[str]:
    """Return the captions of names that stand side by side.

    Where names cut in the middle would look the same, what all begin or end with is left out.

    Examples
    --------
    >>> captions(["the first rater of the panel", "the other rater of the panel"], width=12)
    ['the fi…panel', 'the ot…panel']
    >>> captions(["rater number 1 of the panel", "rater number 12 of the panel"], width=12)
    ['…1', '…12']
    """
    texts = [str(name) for name in names]
    cut = [caption(text, width) for text in texts]
    if len(set(cut)) == len(set(texts)):
        return cut
    start = _shared(texts)
    end = _shared([text[start:][::-1] for text in texts])
    return [caption(f"…{text[start : len(text) - end]}", width) for text in texts]


def _shared(texts: Sequence[str]) -> int:
    """Return how many letters of whole words all texts begin with."""
    letters = enumerate(zip(*texts, strict=False))  # to the end of the shortest
    count = next((i for i, here in letters if len(set(here)) > 1), min(map(len, texts)))
    while count and texts[0][count - 1].isalnum():
        count -= 1
    return count


def evenly_chosen(n: int, most: int) -> np.ndarray:
    """Return at most so many of 0, …, n − 1, evenly spaced, with the first and the last.

    Examples
    --------
    >>> evenly_chosen(3, most=5).tolist(), evenly_chosen(45, most=5).tolist()
    ([0, 1, 2], [0, 11, 22, 33, 44])
    """
    return np.linspace(0, n - 1, min(n, most)).round().astype(int)
