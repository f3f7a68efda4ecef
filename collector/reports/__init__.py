"""What is in the lake, whether it can be trusted, and what it lacks."""
