"""The labels that a PyMC model observes now: ``pm.observe`` may have replaced those it was built with."""

from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Constant
from pytensor.graph.traversal import explicit_graph_inputs

from pmordinal.data.labels import Labels
from pmordinal.gram.graph import ONCE


def observed_labels(labels: Labels, codes) -> Labels:
    """Return labels with the class codes that a model observes.

    Parameters
    ----------
    labels : Labels
        The labels that the model was built with: they have the class names and the labelled rows.
    codes : TensorVariable
        The class codes of the labelled rows in the model's log density.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pmordinal.data.labels import encode
    >>> observed_labels(encode([1, 2, None, 3]), pt.constant([2, 2, 0])).codes
    array([ 2,  2, -1,  0])
    """
    if not is_data(codes):
        raise ValueError("the labels must be data, but other variables of the model determine them")
    return labels.with_codes(codes.eval(mode=ONCE))


def is_data(variable) -> bool:
    """Tell whether a variable depends on constants and ``pm.Data`` only."""
    roots = explicit_graph_inputs([variable])
    return all(isinstance(v, Constant | SharedVariable) for v in roots)
