"""What every request passes before a route sees it, outermost first: trace, origin, form_refusal,
authentication, body_limit, head. The dashboard's pages come before authentication."""
