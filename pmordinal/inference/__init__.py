"""From a model to a result: point estimates, draws, semi-supervised fits, selection of attributes."""
