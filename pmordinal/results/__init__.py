"""Results: fits, posterior draws as ArviZ trees, effects, mixtures of fits, saving and loading."""
