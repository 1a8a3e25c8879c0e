"""What tests of the door share."""

from properties.real.door.behind import root

__all__ = ["root"]
