"""Programs of others, each in an environment of its own, and what is run inside it."""
