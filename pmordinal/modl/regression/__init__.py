"""Models that predict the target's rank, built from grids."""
