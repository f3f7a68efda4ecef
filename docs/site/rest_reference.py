"""The REST reference as Markdown, from the OpenAPI document of the program itself."""

from typing import Any

from api.app import Door, all_routes, create_app

Schema = dict[str, Any]


def reference() -> str:
    """Every operation by tag, then every schema that one of them names."""
    document = create_app(None, Door()).openapi()
    roles = {(each.method, each.path): each.role.word for each in all_routes()}
    operations = [
        (method.upper(), path, each)
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    ]
    lines = []
    about = {tag["name"]: f"{tag['description']}.\n" for tag in document["tags"]}
    for tag in dict.fromkeys([*about, *(each["tags"][0] for _, _, each in operations)]):
        lines += [f"\n## {tag.capitalize()}\n", about.get(tag, "")]
        for method, path, operation in operations:
            if operation["tags"][0] == tag:
                lines += _operation(method, path, operation, roles[method, path])
    lines += ["\n## Schemas\n"]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines += [f"\n### {name}\n", *_schema(schema)]
    return "\n".join(lines)


def _operation(method: str, path: str, operation: Schema, role: str) -> list[str]:
    lines = [f"\n### {method} {path}\n", f"{operation['summary']}. Role: {role}.\n"]
    if about := operation.get("description"):
        lines += [f"{_text(about)}\n"]
    if parameters := operation.get("parameters"):
        lines += ["| parameter | in | type | |", "| --- | --- | --- | --- |"]
        lines += [_parameter(each) for each in parameters]
        lines += [""]
    if body := operation.get("requestBody"):
        [content] = body["content"].values()
        lines += [f"Body: {_type(content['schema'])}\n"]
    answers = operation["responses"]
    lines += ["| status | answer |", "| --- | --- |"]
    lines += [_answer(status, each) for status, each in answers.items() if int(status) < 400]
    problems = ", ".join(status for status in answers if int(status) >= 400)
    return [*lines, f"\n[Problems](#problem): {problems}\n"]


def _parameter(given: Schema) -> str:
    schema = given["schema"]
    about = given.get("description") or schema.get("description") or ""
    needed = " (required)" if given.get("required") else ""
    default = f"; default `{schema['default']}`" if schema.get("default") is not None else ""
    return (
        f"| `{given['name']}` | {given['in']} | {_type(schema)}{needed} | {_text(about)}{default} |"
    )


def _answer(status: str, answer: Schema) -> str:
    kinds = [_type(each.get("schema", {})) for each in answer.get("content", {}).values()]
    shown = ", ".join(dict.fromkeys(kind for kind in kinds if kind)) or "no body"
    return f"| {status} | {shown} |"


def _schema(schema: Schema) -> list[str]:
    lines = [f"{_text(schema['description'])}\n"] if schema.get("description") else []
    if "properties" not in schema:
        return [*lines, f"{_type(schema)}\n"]
    needed = set(schema.get("required", ()))
    lines += ["| field | type | |", "| --- | --- | --- |"]
    for name, field in schema["properties"].items():
        mark = " (required)" if name in needed else ""
        lines.append(f"| `{name}` | {_type(field)}{mark} | {_text(field.get('description', ''))} |")
    return [*lines, ""]


def _type(schema: Schema) -> str:
    """A type in a few words, with links to the schemas it names."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for joint in ("anyOf", "oneOf", "allOf"):
        if joint in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[joint]))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'anything'}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_type(schema['additionalProperties']) or 'anything'}"
    form = f" ({schema['format']})" if "format" in schema else ""
    return f"{schema.get('type', '')}{form}"


def _text(words: str) -> str:
    """In one line that a table can hold."""
    return " ".join(words.split()).replace("|", "\\|")
