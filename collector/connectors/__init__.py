"""Permission to call an exchange: one connector document each, and the tokens it grants."""
