"""How a campaign against foreign processes ends early, and what then becomes of what it had found."""

from __future__ import annotations

from collections.abc import Callable, Sized

from marker_sim.errors import HarnessError


def drive(play: Callable[[], object], failures: Sized) -> tuple[bool, str]:
    """Play every round; whether Ctrl-C ended it, and what trouble of the kit did.

    failures: the violations found so far, which count whatever ended it. Without any, trouble is raised: HarnessError.
    """
    try:
        play()
    except KeyboardInterrupt:
        return True, ""
    except OSError as error:
        raise HarnessError(f"the kit's own files failed: {error.strerror or error} ({error.filename})") from error
    except HarnessError as error:
        if not failures:
            raise
        return False, str(error)
    return False, ""
