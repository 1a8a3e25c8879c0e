"""marker-sim decides, with evidence, whether an implementation of Apache Hudi markers is correct.

A plan determines a run, a run leaves a history, judges turn histories into verdicts. See docs/architecture.md.
"""

__version__ = "0.1.0"
