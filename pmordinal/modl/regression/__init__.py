"""Predictors of the target's rank, made of grids."""
