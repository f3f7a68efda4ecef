"""What can be done: one handler for each type of job, and the registry that knows them."""
