"""Bars as files that other programs read as their own, one file a program."""
