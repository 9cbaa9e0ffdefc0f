"""Benchmark: the papers' experiments, run with every method (``pmordinal bench``)."""
