"""What every request passes before a route sees it, outermost first:
trace, origin, form_refusal, (the dashboard's pages,) authentication, body_limit, row_compression."""
