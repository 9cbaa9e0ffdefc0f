"""Small ordinal data sets that come with the package."""

import pandas as pd

# Bitterness, 1 to 5, given by nine judges (rows) to eight bottles (columns).
_WINE = """
23344455
12132354
23325544
32323253
23433333
32322454
11222323
22233334
12323244
"""


def wine() -> pd.DataFrame:
    """Return the bitterness of white wines as rated by nine judges, 72 rows.

    Grapes were crushed cold or warm, with or without contact between juice and skins; two bottles
    of each of the four wines were rated by every judge on a scale from 1 (least) to 5 (most
    bitter).

    Returns
    -------
    DataFrame
        Columns ``temperature``, ``contact``, ``judge`` (categorical), ``bottle`` (integer) and
        ``rating`` (ordered).

    References
    ----------
    Randall, J. H. (1989). The analysis of sensory data by generalised linear models. Biometrical
    Journal 31(7), 781–793.

    Examples
    --------
    >>> wine()["rating"].value_counts(sort=False).to_list()
    [5, 22, 26, 12, 7]
    """
    rows = [
        (
            "warm" if b >= 4 else "cold",
            "yes" if b % 4 >= 2 else "no",
            str(j + 1),
            b + 1,
            int(rating),
        )
        for j, ratings in enumerate(_WINE.split())
        for b, rating in enumerate(ratings)
    ]
    table = pd.DataFrame(rows, columns=["temperature", "contact", "judge", "bottle", "rating"])
    for name in ("temperature", "contact", "judge"):
        table[name] = pd.Categorical(table[name])
    table["rating"] = pd.Categorical(table["rating"], categories=range(1, 6), ordered=True)
    return table
