"""What the honesty probe found of an object store, and what follows: whether anything may be judged on it, the words of
a header, and the environment in which S3 clients find the store.
"""

from __future__ import annotations

from marker_sim.errors import HarnessError
from marker_sim.worlds.s3_front import ProbedCapabilities

REGION = "us-east-1"
SECRET = "marker-sim-secret"
DOES_NOT_KNOW = "does not know the condition"


def environment(endpoint: str, access_key: str, secret_key: str = SECRET) -> dict[str, str]:
    """The environment variables of S3 clients in most languages; AWS_DEFAULT_REGION is Python's name for AWS_REGION."""
    return {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret_key,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }


def honest(found: ProbedCapabilities, store: str) -> ProbedCapabilities:
    """The capabilities found; HarnessError when a server could be blamed for a promise that its store breaks.

    A store that answers that it does not know a condition does not lie: the history's capabilities say so.
    """
    for promise in ("put_if_absent", "put_if_unchanged", "list_after_put", "read_after_delete"):
        seen = found.seen[promise]
        if not getattr(found, promise) and DOES_NOT_KNOW not in seen:
            raise HarnessError(
                f"{store} does not keep {promise.replace('_', '-')} ({seen}), so nothing can be judged on it; give"
                " another endpoint, or leave --s3-endpoint out to use the kit's own"
            )
    return found


def name_of(found: ProbedCapabilities) -> str:
    """The storage in a header, as the simulated world calls its models."""
    return "s3" if found.put_if_absent and found.put_if_unchanged else "s3-unconditional"


def capabilities(found: ProbedCapabilities) -> dict[str, bool]:
    """The capabilities of the store, for a history's header."""
    return {
        "put_if_absent": found.put_if_absent,
        "put_if_unchanged": found.put_if_unchanged,
        "atomic_replace": True,
    }
