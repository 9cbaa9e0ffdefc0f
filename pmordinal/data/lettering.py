"""Names of columns, levels and classes as text in pictures: shown literally, and cut if too long.

Matplotlib typesets text between two dollar signs as mathematics, which names are not. So every picture passes them
through `caption`.
"""

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


def evenly_chosen(n: int, most: int) -> np.ndarray:
    """Return at most so many of 0, …, n − 1, evenly spaced, with the first and the last.

    Examples
    --------
    >>> evenly_chosen(3, most=5).tolist(), evenly_chosen(45, most=5).tolist()
    ([0, 1, 2], [0, 11, 22, 33, 44])
    """
    return np.linspace(0, n - 1, min(n, most)).round().astype(int)
