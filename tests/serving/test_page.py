"""The page comes with the package, is built from its sources, and asks for nothing from elsewhere."""

import re
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from gatas.serving.app import PAGE
from gatas.serving.loaded_model import LoadedModel
from tests.serving.conftest import ready

ROOT = Path(__file__).parents[2]
FILES = ("index.html", "explorer.js", "explorer.css", "icon.svg", "LICENSES.txt")
TOKEN = "a token of the tests"


def test_the_page_is_built_from_the_sources_that_lie_beside():
    web = ROOT / "web"
    sources = [web / "build.mjs", web / "package-lock.json", *sorted((web / "src").iterdir())]
    digest = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    assert (PAGE / "sources.sha256").read_text().strip() == digest, "build it again: make page"


def test_the_package_holds_every_file_of_the_page():
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["gatas"]
    package = ROOT / "gatas"
    packed = {file for pattern in patterns for file in package.glob(pattern)}
    assert packed >= set(PAGE.iterdir()) >= {PAGE / name for name in FILES}


def test_the_page_is_small_and_names_the_licences_of_what_it_bundles():
    assert sum(file.stat().st_size for file in PAGE.iterdir()) < 300_000
    licences = (PAGE / "LICENSES.txt").read_text()
    assert all(name in licences for name in ("preact", "d3-shape", "d3-path", "Permission"))


def test_nothing_is_inline_or_from_elsewhere():
    page = (PAGE / "index.html").read_text()
    assert not re.search(r"<script>|<style|\son\w+=|\sstyle=", page)
    assert all("//" not in address for address in re.findall(r'(?:src|href)="([^"]*)"', page))
    style = (PAGE / "explorer.css").read_text()
    assert "url(" not in style and "@import" not in style


def test_sources_never_make_html_of_text():
    assert not [
        source
        for source in (ROOT / "web/src").iterdir()
        if re.search("innerHTML|insertAdjacentHTML|eval\\(", source.read_text())
    ]


@pytest.mark.parametrize("name, kind", [("", "text/html"), ("explorer.js", "javascript"), ("explorer.css", "text/css")])
def test_the_server_sends_it_under_a_strict_policy(camp_client, name, kind):
    answer = camp_client.get(f"/{name}")
    assert answer.status_code == 200 and kind in answer.headers["content-type"]
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy


def test_the_page_takes_no_part_of_the_api(camp_client):
    answer = camp_client.request("DELETE", "/v1/embed")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_what_the_page_has_not_is_not_found(camp_client):
    answer = camp_client.get("/%2e%2e/app.py")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_the_page_itself_needs_no_token(camp_predictor):
    with ready(LoadedModel(camp_predictor, "off"), token=TOKEN) as client:
        assert client.get("/").status_code == 200
        assert client.get("/v1/model").status_code == 401
