"""The papers' experiments, and every method on them: ``pmordinal bench``."""
