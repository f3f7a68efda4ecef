"""A collector somewhere else, by its REST API."""
