"""What a server must have stored, by what it answered; judged against storage without the kit's own code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from scenarios.fuzz.rules import Asked, Due, name_due


class Broken(Exception):
    """A property of hostile input does not hold."""


@dataclass(slots=True)
class Account:
    """One marker directory. maybe: names whose request got no answer. unsure: a deletion got none."""

    answered: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)
    unsure: bool = False


class Ledger:
    """The answers of one trial, by marker directory."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self._one_of: list[tuple[frozenset[str], frozenset[str]]] = []

    def unanswered(self, asked: Asked) -> None:
        """A request that may have been done."""
        for directory in asked.directories:
            account = self._account(directory)
            if asked.route == "/dir/delete":
                account.unsure = True
            elif asked.route == "/create":
                account.maybe |= asked.names

    def done(self, asked: Asked, value: object) -> None:
        """A request that was answered 200 with this value."""
        if not asked.directories:
            raise Broken(f"{asked.route} was answered {value!r} for a directory that is no text")
        if asked.route == "/create":
            self._created(asked, value)
        elif asked.route == "/dir/delete":
            for directory in asked.directories:
                account = self._account(directory)
                account.unsure = account.unsure or len(asked.directories) > 1
                account.answered.clear()
            self._one_of = [entry for entry in self._one_of if not entry[0] & asked.directories]
        elif len(asked.directories) == 1:
            self._looked(asked, value, self._account(min(asked.directories)))

    def check(self, stored: dict[str, Counter[str]]) -> None:
        """Compare with what storage holds; Broken says the first difference."""
        for directory, names in sorted(stored.items()):
            account = self._account(directory)
            for name, count in sorted(names.items()):
                if name not in account.answered | account.maybe:
                    raise Broken(f"{name!r} is stored in {directory!r} and nobody was told so")
                if count > 1:
                    raise Broken(f"{name!r} is stored {count} times in {directory!r}")
                if name_due(name) is not Due.ACCEPT:
                    raise Broken(f"{name!r} is stored in {directory!r} against the rules of names")
        for directory, account in sorted(self.accounts.items()):
            missing = account.answered - set(stored.get(directory, ()))
            if missing and not account.unsure:
                raise Broken(f"{sorted(missing)[0]!r} was answered and is not stored in {directory!r}")
        for places, choice in self._one_of:
            if not any(name in stored.get(place, ()) for place in places for name in choice):
                raise Broken(f"one of {sorted(choice)} was answered and none is stored in {sorted(places)}")

    def _created(self, asked: Asked, value: object) -> None:
        if not isinstance(value, bool):
            raise Broken(f"a create was answered {value!r}")
        if not asked.names:
            raise Broken(f"a create was answered {value!r} for a name that is no text")
        if len(asked.names) == len(asked.directories) == 1:
            account, name = self._account(min(asked.directories)), min(asked.names)
            if value and name in account.answered and not account.unsure:
                raise Broken(f"two creates of {name!r} were answered true")
            if not value and name not in account.answered | account.maybe and not account.unsure:
                raise Broken(f"a create of {name!r} was answered false before there was one")
            account.answered.add(name)
            return
        self._one_of.append((asked.directories, asked.names))
        for directory in asked.directories:
            self._account(directory).maybe |= asked.names

    def _looked(self, asked: Asked, value: object, account: Account) -> None:
        if asked.route == "/dir/exists":
            if account.answered and not account.unsure and value is not True:
                raise Broken(f"{asked.directories} has markers and is said not to exist: {value!r}")
            return
        if not isinstance(value, list):
            raise Broken(f"{asked.route} was answered {value!r}")
        due = {name for name in account.answered if asked.route == "/all" or _is_of(asked.route, name)}
        if due - set(value) and not account.unsure:
            raise Broken(f"{asked.route} lacks {sorted(due - set(value))}")
        ghosts = set(value) - account.answered - account.maybe
        if ghosts and not account.unsure:
            raise Broken(f"{asked.route} names {sorted(ghosts)}, which nobody asked for")

    def _account(self, directory: str) -> Account:
        return self.accounts.setdefault(directory, Account())


def _is_of(route: str, name: str) -> bool:
    return name.endswith(".APPEND") == (route == "/append")
