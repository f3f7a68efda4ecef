"""What every request passes before a route sees it, outermost first:
trace, origin, authentication, body_limit, head."""
