"""One file a mode: from what is known of the fleet to what is shown. Pure."""
