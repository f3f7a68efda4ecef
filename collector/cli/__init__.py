"""The command line. Verbs import what they need when they run: `--help` must be quick."""
