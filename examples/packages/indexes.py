"""Debian's package indexes: what they say of packages and sources, and which package or virtual package a relation means.

Packages and Sources are paragraphs of fields (deb822). Relations such as `Depends: a (>= 2) | b:any, c [amd64] <!nocheck>`
are read by the rules of Debian's policy, chapter 7, as they hold for one architecture and a build without profiles.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ARCHITECTURE = "amd64"
RELATION = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9+.-]*)(?::[\w-]+)?\s*"  # a:any
    r"(?:\((?P<relation>[<>=]+)\s*(?P<version>[^)\s]+)\s*\))?\s*"  # (>= 2)
    r"(?:\[(?P<architectures>[^]]*)\])?\s*"  # [amd64], [!hurd-any]
    r"(?P<profiles>(?:<[^>]*>\s*)*)"  # <!nocheck> <cross>
)


@dataclass(frozen=True, slots=True)
class Relation:
    """A package by its name, and whether a version of it was asked for."""

    name: str
    versioned: bool


@dataclass(frozen=True)
class Release:
    """The packages and sources of one release by name, and by each name that is provided the packages that provide it."""

    packages: dict[str, dict[str, str]]
    sources: dict[str, dict[str, str]]
    providers: dict[str, dict[str, bool]] = field(default_factory=dict)  # name -> {package: whether it says a version}

    def node(self, wanted: Relation) -> str | None:
        """The package that is meant: of this name, or the only one that provides it; if several do, the virtual package."""
        if wanted.name in self.packages:
            return f"package:{wanted.name}"
        found = [name for name, versioned in self.providers.get(wanted.name, {}).items() if versioned or not wanted.versioned]
        if len(found) > 1:
            return f"virtual:{wanted.name}"
        return f"package:{found[0]}" if found else None


def read_release(packages: Path, sources: Path) -> Release:
    """Read the two indexes of a release."""
    of_packages = {one["Package"]: one for one in paragraphs(packages)}
    of_sources = {one["Package"]: one for one in paragraphs(sources) if one.get("Extra-Source-Only") != "yes"}
    providers: dict[str, dict[str, bool]] = {}
    for name, about in of_packages.items():
        for provided in alternatives(about.get("Provides", "")):
            for one in provided:
                providers.setdefault(one.name, {})[name] = one.versioned
    return Release(of_packages, of_sources, providers)


def paragraphs(path: Path) -> Iterator[dict[str, str]]:
    """The paragraphs of an index, each as its fields; lines that continue a field are joined by blanks."""
    fields: dict[str, str] = {}
    name = ""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                if fields:
                    yield fields
                fields = {}
            elif line[0] in " \t":
                fields[name] = f"{fields[name]} {line.strip()}".strip()
            else:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
    if fields:
        yield fields


def alternatives(relations: str) -> list[list[Relation]]:
    """What a field asks for, each by its alternatives in their order, without what holds for other architectures or builds."""
    found = []
    for group in relations.split(","):
        parsed = [one for part in group.split("|") if (one := parse_relation(part.strip())) is not None]
        if parsed:
            found.append(parsed)
    return found


def parse_relation(text: str) -> Relation | None:
    """A relation such as `a (>= 2) [amd64] <!nocheck>`; None where it does not hold here."""
    match = RELATION.fullmatch(text)
    if match is None:
        if text and not text.startswith("${"):
            raise ValueError(f"the relation {text!r} cannot be read; expected such as 'a (>= 2) [amd64] <!nocheck>'.")
        return None
    if not _holds_on(ARCHITECTURE, (match["architectures"] or "").split()):
        return None
    profiles = [group.split() for group in re.findall(r"<([^>]*)>", match["profiles"])]
    if profiles and not any(all(term.startswith("!") for term in group) for group in profiles):
        return None
    return Relation(match["name"], match["relation"] is not None)


def _holds_on(architecture: str, listed: list[str]) -> bool:
    """Whether a list of architectures has one: `amd64 linux-any`, or all but some: `!i386 !hurd-any`."""
    names = {architecture, f"any-{architecture}", "linux-any", "any"}
    if not listed:
        return True
    if listed[0].startswith("!"):
        return not any(one.removeprefix("!") in names for one in listed)
    return any(one in names for one in listed)


def listed(about: dict[str, str], fields: Iterable[str]) -> list[Relation]:
    """All relations of some fields, alternatives among them, each once and in their order."""
    found = [one for name in fields for group in alternatives(about.get(name, "")) for one in group]
    return list(dict.fromkeys(found))
