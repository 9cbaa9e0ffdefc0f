"""Tests of MODL."""
