"""Tests of from a model to a result."""
