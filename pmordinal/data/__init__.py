"""Reads users' tables and labels into arrays, and gives results their names and types back; files."""
