"""Banks of items: their models, how they are read from files, and the checks they must pass."""
