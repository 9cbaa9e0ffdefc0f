"""Fitting and sampling: point estimates, posterior draws, semi-supervised fits, selection of attributes."""
