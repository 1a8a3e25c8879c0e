"""Hostile input for the reference timeline server and for everything of the kit that reads files.

    rules.py         what must be accepted and what refused, written a second time and without the kit's own code
    http_inputs.py   strategies over raw bytes and over how a client behaves      known.py  bytes that are tried first
    client.py        a socket that repairs nothing
    ground.py        the tree around the server: what is stored, what must not be touched
    http_fuzz.py     sends inputs, judges each answer and then the server and the tree
    file_inputs.py   strategies over damaged marker directories and timelines
    file_fuzz.py     lets readers, writers and the server loose on them

Hypothesis draws the inputs and shrinks what breaks a property; the seed is the caller's.
"""
