"""FXCM: its SDK runs in a sidecar process, and this is the way to it."""
