"""The section on leave-one-out: scores beside a baseline, and which labels surprise."""

import numpy as np
import pandas as pd

from pmordinal.diagnostics.scoring import pointwise_means
from pmordinal.report.page import Section, columns, heading, table, text
from pmordinal.report.training_table import repeated
from pmordinal.results.fit import OrdinalFit

LEAST_EXPECTED = 8  # number of the most surprising labels that are shown
LONGEST_HEAD = 8  # letters of a class over a column of the confusion matrix
SCORES = {
    "zero_one": "wrong class",
    "absolute": "mean absolute error, in classes",
    "macro_absolute": "the same, averaged over classes",
    "nlp": "negative log probability",
    "rps": "ranked probability score",
    "kappa": "quadratic-weighted kappa",
    "calibration": "calibration error",
}


def left_out_section(fit: OrdinalFit, score, target: str) -> Section:
    """Return scores beside those of the class shares, the confusion matrix and the least expected labels."""
    P = fit.posterior.left_out_probabilities()
    y, names = fit.posterior.y, fit.labels.class_names
    guess = P.argmax(1)
    again = repeated(fit)
    shares = np.bincount(y[again], minlength=len(names)) / again.size
    both = {fit.engine: P[again], "class shares alone": np.tile(shares, (again.size, 1))}
    means = {name: pointwise_means(probs, y[again]) for name, probs in both.items()}
    judged = (
        pd.DataFrame(
            {name: {SCORES[key]: value[key] for key in SCORES} for name, value in means.items()}
        )
        .round(3)
        .rename_axis("score of the left-out rows")
    )
    crossed = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(crossed, (y[again], guess[again]), 1)
    heads, rows = list(names), list(names)
    if max(map(len, names)) > LONGEST_HEAD:  # else the matrix is wider than the page
        heads = [str(k) for k in range(1, len(names) + 1)]
        rows = [f"{k} · {name}" for k, name in zip(heads, names, strict=True)]
    confusion = pd.DataFrame(
        crossed, index=pd.Index(rows, name=f"{target} ↓ predicted →"), columns=heads
    )
    worst = np.argsort(fit.posterior.leave_one_out.value)[:LEAST_EXPECTED]
    surprising = pd.DataFrame(
        {
            "label": [names[k] for k in y[worst]],
            "its probability": P[worst, y[worst]].round(3),
            "predicted": [names[k] for k in guess[worst]],
            "with probability": P[worst, guess[worst]].round(3),
        },
        index=pd.Index(fit.index[worst], name="row"),
    ).set_axis([target, "its probability", "predicted", "with probability"], axis=1)
    held = "at the fitted hyperparameters" if fit.integral is None else "hyperparameters integrated"
    parts = (
        text(
            f"Each label is predicted from all others, {held}. Beside each score is that of a "
            "forecast that knows no attribute: the shares of the classes. Kappa is better when it is larger, all "
            f"other scores when they are smaller. The log score of all rows is {score.elpd:,.1f} ± {score.se:.1f}, the "
            f"effective number of parameters {score.p:.1f}."
        ),
        columns(
            [table(judged)],
            [heading("Labels and what the others predict"), table(confusion, shades=True)],
        ),
        heading("The least expected labels"),
        table(surprising),
    )
    return Section("loo", "Leave-one-out", parts)
