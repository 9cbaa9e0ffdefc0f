"""PyMC models: the ordinal likelihood as a distribution, priors, Gaussian processes, and whole models."""
