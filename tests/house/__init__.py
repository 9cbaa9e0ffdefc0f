"""The plan of the house: rooms and public names."""
