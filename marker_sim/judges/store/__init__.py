"""Judges of a marker store.

durability.py          G1, G2, G3, G23: what an answer promises about storage
exactness.py           G4, G5: names
serving.py             G6, G7: answers in time; silence.py: why, and whom a server answered meanwhile
layout.py              G8, G9, G22: files of a marker directory
listing.py             G10, G11: deletion, and lists during writes; directory_presence.py: `exists`
hostile.py             G12: malformed and hostile input
"""
