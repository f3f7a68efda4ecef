"""What several suites of tests need. Suites import from here and never from each other."""
