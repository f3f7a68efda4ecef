"""The collector of this machine: its database and its lake."""
