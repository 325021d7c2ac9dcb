"""Fetch the package indexes of two releases of Debian with `apt-get update`, under a configuration of its own in a folder.

Nothing of the system's apt is changed: lists, cache and sources are in the folder. The mirror is that of the system's sources;
signatures are checked with the keys of the package debian-archive-keyring (Debian 12's has those of both releases).
"""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

RELEASES = ("bookworm", "trixie")
"""Debian 12, and Debian 13, which came after it."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SYSTEM = Path("/etc/apt")
ONE_LINE = re.compile(r"deb\s+(?:\[[^]]*\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.+)")


@dataclass(frozen=True)
class Index:
    """The two files of a release, and its version and date where they are known."""

    packages: Path
    sources: Path
    about: dict[str, str] = field(default_factory=dict)


def fetch(folder: Path, mirror: str | None = None) -> dict[str, Index]:
    """Fetch, or bring up to date, the indexes of both releases into a folder."""
    update(folder, RELEASES, ("deb", "deb-src"), mirror)
    found = {}
    for name in RELEASES:
        packages, sources = (_file(folder, name, kind) for kind in ("Packages", "Sources"))
        found[name] = Index(packages, sources, about_release(folder / "state/lists", name))
    return found


def update(folder: Path, releases: Iterable[str], kinds: Iterable[str] = ("deb",), mirror: str | None = None) -> None:
    """Give a folder an apt configuration of its own, with these releases alone, and fetch their indexes."""
    mirror = mirror or system_mirror(SYSTEM)
    if not KEYRING.exists():
        raise OSError(f"{KEYRING} is not there, by which indexes are checked. Install the package debian-archive-keyring.")
    for name in ("state/lists/partial", "cache/archives/partial", "etc"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    lines = [f"{kind} [arch=amd64 signed-by={KEYRING}] {mirror} {name} main\n" for name in releases for kind in kinds]
    (folder / "etc/sources.list").write_text("".join(lines), encoding="utf-8")
    apt_get(folder, "update")


def unpack(folder: Path, packages: Iterable[str]) -> Path:
    """Download packages that a folder's apt knows, and unpack them below it; nothing is installed."""
    archives, root = folder.absolute() / "archives", folder.absolute() / "root"
    archives.mkdir(exist_ok=True)
    apt_get(folder, "download", *packages, inside=archives)
    for archive in sorted(archives.glob("*.deb")):
        done = subprocess.run(["dpkg-deb", "-x", archive, root], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{archive.name} cannot be unpacked ({done.stderr.strip()}). Delete {folder} and try again.")
    return root


def apt_get(folder: Path, *words: str, inside: Path | None = None) -> str:
    """Run apt-get with the folder's own configuration, from `inside` a folder; return what it prints."""
    root = folder.absolute()
    settings = {
        "Dir::State": root / "state",
        "Dir::State::status": root / "status",
        "Dir::Cache": root / "cache",
        "Dir::Etc::sourcelist": root / "etc/sources.list",
        "Dir::Etc::sourceparts": "-",
        "Acquire::Languages": "none",
        "Acquire::GzipIndexes": "false",
        "APT::Architecture": "amd64",
        "APT::Update::Error-Mode": "any",
    }
    options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    done = subprocess.run(["apt-get", *options, *words], capture_output=True, text=True, check=False, cwd=inside)
    if done.returncode:
        raise OSError(f"apt-get {words[0]} failed: {' '.join(done.stderr.split())}")
    return done.stdout


def _file(folder: Path, release: str, kind: str) -> Path:
    """The file that apt keeps an index in."""
    shown = apt_get(folder, "indextargets", "--format", "$(FILENAME)", f"Created-By: {kind}", f"Codename: {release}")
    found = [Path(line) for line in shown.splitlines() if line]
    if len(found) != 1 or not found[0].exists():
        raise OSError(f"apt has {len(found)} files of {kind} of {release}, not 1. Delete {folder} and try again.")
    return found[0]


def about_release(lists: Path, release: str) -> dict[str, str]:
    """Version and date of a release, as its signed file says them."""
    path = next(iter(sorted(lists.glob(f"*_dists_{release}_InRelease"))), None)
    if path is None:
        return {}
    text = path.read_text(encoding="utf-8")
    return {name.lower(): found[1] for name in ("Version", "Date") if (found := re.search(rf"^{name}: (.+)$", text, re.M))}


def system_mirror(root: Path) -> str:
    """The first mirror in the system's apt sources that has a release of Debian's component main, and is not for security."""
    stanzas = [text for path in sorted(root.glob("sources.list.d/*.sources")) for text in _paragraphs(path)]
    lines = [line for path in (root / "sources.list", *sorted(root.glob("sources.list.d/*.list"))) for line in _lines(path)]
    found = [
        (one["URIs"].split()[0], one.get("Suites", ""), one.get("Components", ""))
        for one in stanzas
        if "URIs" in one and "deb" in one.get("Types", "").split() and one.get("Enabled", "yes") != "no"
    ]
    found += [(match["uri"], match["suite"], match["components"]) for line in lines if (match := ONE_LINE.match(line))]
    for uri, suites, components in found:
        if "main" in components.split() and "security" not in suites + uri:
            return uri
    raise OSError(f"no mirror of Debian is in {root}/sources.list or {root}/sources.list.d. Name one: --mirror URL.")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _paragraphs(path: Path) -> list[dict[str, str]]:
    """Paragraphs of a file of sources, without comments."""
    texts = re.split(r"\n\s*\n", "\n".join(line for line in _lines(path) if not line.startswith("#")))
    return [
        {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())} for text in texts
    ]
