"""Grids of one predictor and the target: their cost, and the search for the cheapest."""
