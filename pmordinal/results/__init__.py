"""What comes out: fits, draws as ArviZ trees, effects, files."""
