"""What is right and wrong with an installation, one file an area. `examination.py` looks at all."""
