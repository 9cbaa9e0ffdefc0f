"""Tests of posteriors."""
