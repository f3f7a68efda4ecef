"""Worker processes: lease jobs, run their handlers, write down what came of it."""
