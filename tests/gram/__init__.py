"""Tests of covariances."""
