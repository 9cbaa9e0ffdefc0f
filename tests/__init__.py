"""Tests, in the rooms of the package."""
