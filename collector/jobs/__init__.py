"""Jobs: the work to be done, which worker may do it, and until when."""
