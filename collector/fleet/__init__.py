"""What the command line works on, in two forms that answer alike.

`local` is the database and the lake of this machine, `remote` the REST API of a collector somewhere
else. A verb calls the interface and does not know which it is.
"""
