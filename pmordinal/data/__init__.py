"""The user's tables and labels at the border: read once, named, and given back as they came; files."""
