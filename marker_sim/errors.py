"""The five kinds of trouble the kit can report, which are never mixed.

Violation        the system under test broke a guarantee          (judges/violations.py, one subclass each)
inconclusive     a verdict, not an exception                       (judges/)
HarnessError     the kit or its surroundings failed                exit code 4
UsageError       the caller used an option or name that does not exist  exit code 2
AssertionError   a defect of the kit itself
"""

EXIT_HOLDS = 0
EXIT_VIOLATED = 1
EXIT_USAGE = 2
EXIT_INCONCLUSIVE = 3
EXIT_HARNESS = 4
EXIT_INTERRUPTED = 130


class SpokenError(Exception):
    """An error whose message is a sentence for the caller, to whom the frames of the kit say nothing."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows, in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class HarnessError(SpokenError):
    """The kit or something it needs (a JVM, a port, a disk) failed; never blamed on the system under test."""


class UsageError(SpokenError):
    """A wrong request: the message says what was given, what is accepted and what to do instead."""


class Violation(Exception):
    """A guarantee was broken; subclasses, one for each guarantee, live in `marker_sim.judges.violations`."""
