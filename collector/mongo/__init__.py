"""MongoDB: the client, the server's clock, the schema's number and an embedded mongod."""
