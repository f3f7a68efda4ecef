"""What can be done with a collector: one file a use case, called by every front end.

REST, the command line, migrations, workers and `collector.datalayer` call these functions and
present the results and errors in their own form. An error names the wrong field in backticks, so
that each front end can write that name its own way.
"""
