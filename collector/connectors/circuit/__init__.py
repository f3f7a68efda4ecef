"""The circuit gate: no requests to an exchange that fails too often."""
