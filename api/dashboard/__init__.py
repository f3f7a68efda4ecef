"""The dashboard: static pages that use the REST API and nothing else. docs/dashboard.md."""
