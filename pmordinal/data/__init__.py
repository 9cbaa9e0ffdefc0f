"""Reads users' tables and labels into arrays, decodes predictions, and reads and writes files."""
