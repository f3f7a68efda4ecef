"""A stand-in for FXCM: its servers, and the native part of its SDK. Everything above is real."""
