"""Systems under test: what `--sut` accepts, and one module for each kind of it."""

# The first three are Python and run in the simulated world too.
NAMES = ("reference", "mutant:NAME", "package.module:factory", "http", "hudi:VERSION", "hudi-spark:VERSION")
PYTHON = NAMES[:3]
