"""Hostile input for the reference timeline server and for everything of the kit that reads files.

    rules.py         what must be accepted and what refused, written a second time and without the kit's own code
    http_inputs.py   strategies over raw bytes and over how a client behaves      odd.py  odd parts, as data
    known.py         inputs that broke something once
    client.py        a socket that repairs nothing
    ground.py        the tree around the server: what is stored, what must not be touched
    file_inputs.py   strategies over damaged marker directories and timelines
    file_fuzz.py     lets readers, writers and the server loose on them
    still.py         the runtime of readers and writers      plain.py  what a damaged directory holds
    faulty.py        the server with one defect

Hypothesis draws the inputs and shrinks what breaks a property (scenarios/test_fuzz_http.py, test_fuzz_files.py).
"""
