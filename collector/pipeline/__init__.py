"""From a page of rows to bars one can trust: pure functions over batches, one step a file."""
