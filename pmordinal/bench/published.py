"""Numbers published in the papers, to compare ours with.

Means and standard deviations over partitions of the zero-one error in per cent and of the absolute error, average
ranks with the Friedman F, and the tables of the semi-supervised and the rank regression paper. Chu and Ghahramani's
absolute errors are those of their own tables, with two more digits than the later papers repeat.
"""

import re
from typing import NamedTuple

_ERRORS = {
    "SVM": {  # [CG2005, Tables 2 and 3]
        5: """diabetes 57.31 12.09 .7462 .1414|pyrimidines 41.46 8.49 .4500 .1136|triazines 54.19 1.48 .6977 .0259
        |wisconsin 70.78 3.73 1.0031 .0727|machine 17.37 3.56 .1915 .0423|autompg 25.73 2.24 .2596 .0230
        |boston 25.56 1.98 .2672 .0190|stocks 10.81 1.70 .1081 .0170|abalone 21.58 .32 .2293 .0038""",
        10: """diabetes 90.38 7.00 2.4577 .4369|pyrimidines 59.37 7.63 .9187 .1895|triazines 67.91 3.63 1.2308 .0874
        |wisconsin 85.86 3.78 2.1250 .1500|machine 32.63 3.84 .4398 .0688|autompg 44.01 2.30 .5081 .0263
        |boston 42.06 2.49 .4971 .0305|stocks 17.74 2.15 .1804 .0213|abalone 42.84 .86 .5160 .0087""",
    },
    "MAP-GPOR": {  # [CG2005, Tables 2 and 3]
        5: """diabetes 54.23 13.78 .6615 .1376|pyrimidines 39.79 7.21 .4271 .0906|triazines 52.91 2.15 .6872 .0229
        |wisconsin 65.00 4.71 1.0102 .0937|machine 16.53 3.56 .1847 .0404|autompg 23.78 1.85 .2411 .0189
        |boston 24.88 2.02 .2604 .0206|stocks 11.99 2.34 .1199 .0234|abalone 21.50 .22 .2322 .0025""",
        10: """diabetes 83.46 5.73 2.1385 .3317|pyrimidines 55.42 8.01 .8771 .1749|triazines 63.72 4.34 1.1994 .0671
        |wisconsin 78.52 3.58 2.1391 .1797|machine 33.81 3.91 .4746 .0727|autompg 43.96 2.81 .4990 .0352
        |boston 41.53 2.77 .4920 .0330|stocks 19.90 1.72 .2006 .0166|abalone 42.60 .91 .5140 .0075""",
    },
    "EP-GPOR": {  # [CG2005, Tables 2 and 3]
        5: """diabetes 54.23 13.78 .6654 .1373|pyrimidines 36.46 6.47 .3917 .0745|triazines 52.62 2.66 .6878 .0295
        |wisconsin 65.16 4.65 1.0141 .0932|machine 16.78 3.88 .1856 .0424|autompg 23.75 1.74 .2411 .0186
        |boston 24.49 1.85 .2585 .0200|stocks 12.00 2.06 .1200 .0206|abalone 21.56 .36 .2337 .0072""",
        10: """diabetes 83.08 5.91 2.1423 .3314|pyrimidines 54.38 7.70 .8292 .1338|triazines 64.01 3.78 1.2012 .0680
        |wisconsin 78.52 3.51 2.1437 .1790|machine 33.73 3.64 .4686 .0763|autompg 43.88 2.60 .4979 .0340
        |boston 41.26 2.86 .4896 .0346|stocks 19.44 1.91 .1960 .0184|abalone 42.27 .46 .5113 .0053""",
    },
    "PLSOR": {  # [PLSOR, Tables 3 and 4]
        5: """diabetes 48.46 11.2 .62 .16|pyrimidines 39.37 9.41 .46 .19|triazines 54.42 3.43 .74 .063
        |wisconsin 65.70 3.23 1.24 .10|machine 18.39 3.45 .21 .05|autompg 25.76 2.19 .26 .02
        |boston 24.59 2.57 .26 .02|stocks 10.70 1.66 .11 .02|abalone 22.05 .30 .24 .00""",
        10: """diabetes 76.92 9.98 1.50 .37|pyrimidines 55.63 8.47 .89 .18|triazines 69.88 4.97 1.37 .20
        |wisconsin 75.94 1.86 2.94 .13|machine 35.17 3.64 .53 .08|autompg 46.35 2.48 .56 .04
        |boston 41.99 2.82 .51 .04|stocks 18.17 1.79 .19 .02|abalone 44.24 .68 .55 .01""",
    },
    "LOO-GPOR": {  # [Srijith2012, Tables 3 and 4]
        5: """diabetes 49.62 13.3 .65 .18|triazines 54.36 1.50 .70 .02|wisconsin 64.06 2.53 1.12 .07
        |machine 16.61 4.25 .19 .05|autompg 25.78 2.65 .27 .03|boston 24.85 2.90 .26 .03
        |stocks 10.60 1.69 .11 .02|abalone 21.85 .29 .24 .00""",
        10: """diabetes 71.54 10.9 1.20 .31|triazines 72.21 1.55 1.35 .04|wisconsin 75.94 2.45 2.74 .14
        |machine 34.24 3.19 .50 .07|autompg 44.30 2.26 .50 .03|boston 41.04 2.25 .50 .04
        |stocks 18.74 2.38 .19 .02|abalone 42.80 .49 .53 .01""",
    },
    "sparse GPOR": {  # [Srijith2012, Tables 3 and 4]
        5: """diabetes 52.69 12.30 .72 .23|triazines 56.74 4.09 .75 .05|wisconsin 64.06 4.67 1.10 .12
        |machine 16.61 4.06 .19 .06|autompg 25.44 2.13 .26 .02|boston 26.75 3.04 .29 .03
        |stocks 13.69 1.67 .14 .02|abalone 22.41 .42 .24 .01""",
        10: """diabetes 74.23 14.18 1.57 .92|triazines 71.63 3.17 1.38 .12|wisconsin 76.80 3.73 2.58 .21
        |machine 33.73 5.84 .46 .07|autompg 46.67 2.26 .58 .04|boston 42.48 3.29 .55 .05
        |stocks 22.46 1.97 .23 .02|abalone 43.91 .81 .54 .01""",
    },
}
PARTITIONS = 20  # every mean above is over so many partitions
COLUMN = {  # method: the column of the papers' tables that it reproduces
    "svm": "SVM",
    "laplace": "MAP-GPOR",
    "ep": "EP-GPOR",
    "ep:bound": "EP-GPOR",
    "ep:loo": "LOO-GPOR",
    "plsor": "PLSOR",
    "sparse": "sparse GPOR",
}
# Average ranks over sets, zero-one and absolute for 5 bins, then for 10; the last line is the Friedman F.
RANKS = {
    "plsor": {  # [PLSOR, Table 5]
        "MAP-GPOR": (1.944, 1.778, 2.167, 1.833),
        "EP-GPOR": (1.722, 1.778, 1.500, 1.611),
        "PLSOR": (2.333, 2.444, 2.333, 2.556),
        "F": (0.8266, 1.3880, 1.8449, 2.5841),
    },
    "loo": {  # [Srijith2012, Table 2]
        "MAP-GPOR": (2.1875, 1.875, 2.875, 2.125),
        "EP-GPOR": (2.4375, 2.0, 1.875, 2.0),
        "LOO-GPOR": (2.25, 2.625, 2.125, 2.625),
        "sparse GPOR": (3.125, 3.5, 3.125, 3.25),
        "F": (0.8735, 3.4672, 1.8889, 1.6823),
    },
}
# [SSGPOR, Tables 1, 4 and 5]: zero-one and absolute error by column, as fractions; no standard deviations
SEMISUPERVISED = {
    "similar": {"EPGPOR": (0.0456, 0.0456), "SSGPOR": (0.0267, 0.0267)},
    "shifted": {"EPGPOR": (0.1489, 0.1489), "SSGPOR": (0.0733, 0.0733)},
    "boston-50": {"EPGPOR": (0.3860, 0.4656), "SSGPOR": (0.3816, 0.4498)},
    "boston-100": {"EPGPOR": (0.3590, 0.4192), "SSGPOR": (0.3538, 0.4039)},
    "stocks-50": {"EPGPOR": (0.2732, 0.2894), "SSGPOR": (0.2503, 0.2669)},
    "stocks-100": {"EPGPOR": (0.2079, 0.2165), "SSGPOR": (0.1977, 0.2059)},
    "abalone-50": {"EPGPOR": (0.5764, 0.8834), "SSGPOR": (0.5643, 0.7947)},
    "abalone-100": {
        "EPGPOR": (0.5453, 0.7781),
        "SSGPOR": (0.5407, 0.7378),
        "TOR": (0.5420, 0.7700),
    },
    "bank-50": {"EPGPOR": (0.6626, 1.1657), "SSGPOR": (0.6571, 1.0287)},
    "bank-100": {"EPGPOR": (0.6130, 0.9358), "SSGPOR": (0.6091, 0.8756), "TOR": (0.6220, 0.9200)},
    "california-50": {"EPGPOR": (0.5253, 0.6998), "SSGPOR": (0.5141, 0.6649)},
    "california-100": {
        "EPGPOR": (0.4976, 0.6331),
        "SSGPOR": (0.4934, 0.6201),
        "TOR": (0.5200, 0.6750),
    },
    "census-50": {"EPGPOR": (0.5837, 0.9028), "SSGPOR": (0.5823, 0.8566)},
    "census-100": {"EPGPOR": (0.5553, 0.8215), "SSGPOR": (0.5540, 0.7822), "TOR": (0.5700, 0.7900)},
}
# [SSGPOR, Table 3]: t of the paired test at the smallest fraction of labels, zero-one and absolute error
T_STATISTICS = {
    "boston": (1.8331, 2.3141),
    "stocks": (2.9394, 4.0553),
    "abalone": (1.0179, 3.4269),
    "bank": (2.2251, 3.2525),
    "california": (4.4971, 4.8434),
    "census": (2.4149, 2.9454),
}
# [HB2007, Table 5]: mean and standard deviation of the NLRPD
NLRPD = {
    "adult": {"univariate": (-0.237, 0.0048), "snb": (-0.378, 0.03), "nb": (-0.287, 0.029)},
    "boston": {"univariate": (-0.393, 0.128), "snb": (-0.26, 0.26), "nb": (0.849, 0.49)},
}
NLRPD["adult-imputed"] = NLRPD["adult"]
# [HB2007, Table 4]: levels on the first training fold
LEVELS = {
    "adult": {
        "marital_status": 0.0244,
        "relationship": 0.01936,
        "hours_per_week": 0.009682,
        "education": 0.009164,
        "education_num": 0.009016,
        "class": 0.006555,
        "occupation": 0.003556,
        "workclass": 0.002672,
        "capital_gain": 0.002257,
        "sex": 0.0007349,
    },
    "boston": {
        "LSTAT": 0.0945,
        "RM": 0.06378,
        "NOX": 0.04466,
        "INDUS": 0.04350,
        "PTRATIO": 0.03779,
        "CRIM": 0.03451,
        "TAX": 0.03352,
        "AGE": 0.03208,
        "DIS": 0.02929,
        "RAD": 0.01977,
    },
}
# [HB2007, Table 4]: sizes I × J. The paper's columns are in the other order: its I of sex, which has two labels, is 3.
SIZES = {
    "adult": dict(
        zip(
            LEVELS["adult"],
            "6 × 11|5 × 12|6 × 10|9 × 10|9 × 9|2 × 10|7 × 7|5 × 6|18 × 4|2 × 3".split("|"),
            strict=True,
        )
    ),
    "boston": dict(
        zip(
            LEVELS["boston"],
            "5 × 5|5 × 5|5 × 5|5 × 3|4 × 5|5 × 4|5 × 4|3 × 4|3 × 5|2 × 3".split("|"),
            strict=True,
        )
    ),
}
SIZES["adult-imputed"] = SIZES["adult"]
LEVELS["adult-imputed"] = LEVELS["adult"]


def column(method: str) -> str | None:
    """Return the column of the papers' tables that a method reproduces, from however many starts, else None.

    Examples
    --------
    >>> column("ep:loo-starts4"), column("best")
    ('LOO-GPOR', None)
    """
    return COLUMN.get(re.sub(r"-starts\d+$", "", method))


class Published(NamedTuple):
    """Means and standard deviations over partitions."""

    zero_one: float
    zero_one_sd: float
    absolute: float
    absolute_sd: float


def errors(column: str, bins: int) -> dict[str, Published]:
    """Return one column of the papers' tables: errors by data set.

    Examples
    --------
    >>> errors("EP-GPOR", 10)["stocks"].zero_one
    19.44
    """
    rows = _ERRORS[column].get(bins, "").split("|")
    numbers = {row.split()[0]: row.split()[1:] for row in rows if row.strip()}
    return {name: Published(*map(float, values)) for name, values in numbers.items()}


def columns() -> list[str]:
    """Return the names of the published columns."""
    return list(_ERRORS)
