"""Tests of tables and labels at the border."""
