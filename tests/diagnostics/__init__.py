"""Tests of judging fits."""
