"""Grids of one predictor and the target: the cost of a grid, and the search for the cheapest one."""
