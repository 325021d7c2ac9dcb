"""The reference of the HTTP interface, from the OpenAPI description that the server gives itself."""

import json
from typing import Any, NoReturn

from gatas.serving.app import make_app
from gatas.serving.service import ModelService
from gatas.serving.settings import ServerSettings
from website.markdown import code, table

INTRODUCTION = """# HTTP

What a server answers, as its `/openapi.json` describes it. [Serve a model](../serving.md) has examples, limits and access.
"""


def page() -> str:
    """Describe every path with its body and responses, then the objects that these are made of."""
    description = openapi()
    paths = [endpoint(method, path, one) for path, methods in description["paths"].items() for method, one in methods.items()]
    objects = [schema(name, one) for name, one in description["components"]["schemas"].items() if not name.startswith("HTTP")]
    return "\n\n".join([INTRODUCTION, "## Paths", *paths, "## Objects", *objects])


def openapi() -> dict[str, Any]:
    """The description of a server with the usual settings, whose model is never loaded."""

    def load() -> NoReturn:
        raise AssertionError("nothing is asked")

    return make_app(ModelService(ServerSettings(), load)).openapi()


def endpoint(method: str, path: str, about: dict[str, Any]) -> str:
    """One path: what it does, what it takes and what it returns."""
    notes = ["Deprecated."] if about.get("deprecated") else []
    parts = [f"### {method.upper()} {path}", " ".join([*notes, about.get("description", "")])]
    query = [
        (code(one["name"]), kind(one["schema"]), as_default(one["schema"]), one.get("description", ""))
        for one in about.get("parameters", ())
    ]
    parts.append(table(["query", "value", "default", "meaning"], query))
    if "requestBody" in about:
        parts.append(f"**Body:** {content(about['requestBody'])}")
    rows = [(code(status), content(one), one["description"]) for status, one in about["responses"].items()]
    parts.append(table(["status", "body", "when"], sorted(rows)))
    return "\n\n".join(part for part in parts if part)


def content(body: dict[str, Any]) -> str:
    """What a body holds."""
    return ", ".join(kind(one["schema"]) if one.get("schema") else code(name) for name, one in body.get("content", {}).items())


def schema(name: str, about: dict[str, Any]) -> str:
    """One object: its fields, or what it may be."""
    required = about.get("required", ())
    rows = [
        (code(field), kind(one), "must be given" if field in required else as_default(one), one.get("description", ""))
        for field, one in about.get("properties", {}).items()
    ]
    parts = [f"### {name}", about.get("description", ""), table(["field", "value", "default", "meaning"], rows)]
    return "\n\n".join(part for part in parts if part)


def kind(about: dict[str, Any]) -> str:
    """Say what a value is, with links to objects."""
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in about:
        return ", ".join(dict.fromkeys(kind(one) for one in about["anyOf"]))
    if "enum" in about:
        return ", ".join(code(one) for one in about["enum"])
    if "const" in about:
        return code(about["const"])
    if about.get("type") == "array":
        return f"list ({kind(about.get('items', {}))})"
    if about.get("type") == "object" and isinstance(about.get("additionalProperties"), dict):
        return f"object of ({kind(about['additionalProperties'])})"
    return str(about.get("type", "any"))


def as_default(about: dict[str, Any]) -> str:
    """The default of a value, as JSON has it."""
    return code(json.dumps(about["default"], ensure_ascii=False)) if "default" in about else ""
