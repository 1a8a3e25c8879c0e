"""The names of the package that tests use, by room: a room can be changed without its tests."""
