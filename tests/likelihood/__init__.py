"""Tests of the likelihood."""
