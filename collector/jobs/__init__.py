"""Jobs: what is to be done, who may do it, and until when."""
