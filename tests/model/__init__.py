"""Tests of PyMC models."""
