"""What the verbs do once they run. Imported only then: these modules may import what they need."""
