"""What every front end shows of a connector, a job and the rest: plain values, one shape for all.

REST describes these shapes in its schemas, the command line prints them, and a command line that
works over REST receives them.
"""
