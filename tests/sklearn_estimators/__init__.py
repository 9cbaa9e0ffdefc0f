"""Tests of scikit-learn's estimators."""
