"""`collector watch`: the live terminal viewer. View models are pure; app.py alone knows Textual."""
