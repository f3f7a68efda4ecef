"""From a page of rows to valid bars: pure functions over batches, one step a file."""
