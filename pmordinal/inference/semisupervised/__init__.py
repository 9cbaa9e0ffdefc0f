"""Learning from rows without a label, by matching their class proportions."""
