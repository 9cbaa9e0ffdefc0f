"""PyMC models: the likelihood as a distribution, priors, Gaussian processes, and factories of whole models."""
