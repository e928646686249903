#!/usr/bin/env python3
"""What an OpenAPI file says, for tests to compare with the program, and whether real answers are as it says.

    openapi.py table FILE            prints its paths, methods, parameters, keys of bodies and enumerations, as JSON
    openapi.py check FILE ANSWERS    each line of ANSWERS is {"method", "path", "status", "answer"}, and may have "request":
                                     the body that was taken; ends with 1 and says what does not fit

Where a schema names properties, an answer may have no others here: what the file does not name is not documented.
"""
import json
import sys

import jsonschema
import yaml


def resolve(document, node):
    while isinstance(node, dict) and "$ref" in node:
        place = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            place = place[part]
        node = place
    return node


def keys(document, schema, prefix=""):
    """As ControlRoute.keys(of:) has them: those of objects in it behind a dot."""
    schema = resolve(document, schema)
    if "items" in schema:
        return keys(document, schema["items"], prefix)
    found = []
    for name, inner in schema.get("properties", {}).items():
        found += [prefix + name] + keys(document, inner, prefix + name + ".")
    return found


def operations(document):
    for path, item in document["paths"].items():
        for method in ("get", "head", "put", "post", "delete"):
            if method in item:
                yield path, method.upper(), item, item[method]


def body_schema(document, holder):
    content = resolve(document, holder).get("content", {})
    return next((media.get("schema") for media in content.values()), None)


def table(document):
    routes = []
    for path, method, item, operation in operations(document):
        parameters = [resolve(document, p) for p in item.get("parameters", []) + operation.get("parameters", [])]
        body = operation.get("requestBody")
        routes.append({
            "path": path, "method": method,
            "parameters": sorted(p["name"] for p in parameters if p["in"] == "query"),
            "keys": sorted(keys(document, body_schema(document, body))) if body else [],
        })
    schemas = document["components"]["schemas"]
    enums = {name: schema["enum"] for name, schema in schemas.items() if "enum" in schema}
    properties = {}
    for name, schema in schemas.items():
        properties[name] = sorted(schema.get("properties", {}))
        for key, inner in schema.get("properties", {}).items():
            if "enum" in inner:
                enums[f"{name}.{key}"] = inner["enum"]
    return {"routes": routes, "enums": enums, "properties": properties}


def close(node):
    """Objects with properties have no others."""
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            node.setdefault("additionalProperties", False)
        for inner in node.values():
            close(inner)
    elif isinstance(node, list):
        for inner in node:
            close(inner)


def problems(document, schema, value):
    validator = jsonschema.Draft202012Validator({"components": document["components"], **schema})
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(value)]


def check(document, lines):
    known = {(path, method): operation for path, method, _, operation in operations(document)}
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    close(document["components"]["schemas"])
    failures, count = [], 0
    for line in lines:
        exchange = json.loads(line)
        name = f"{exchange['method']} {exchange['path']} {exchange['status']}"
        count += 1
        operation = known.get((exchange["path"], exchange["method"]))
        responses = operation["responses"] if operation else {}
        response = responses.get(str(exchange["status"]))
        if response is None and exchange["status"] >= 400:
            # Also of a method that is not taken.
            response = responses.get("default", {"$ref": "#/components/responses/Failure"})
        schema = body_schema(document, response) if response else None
        if schema is None:
            failures.append(f"{name}: no such answer is described")
            continue
        failures += [f"{name}: {p}" for p in problems(document, schema, exchange["answer"])]
        if "request" in exchange:
            schema = body_schema(document, operation["requestBody"])
            failures += [f"{name}, request: {p}" for p in problems(document, schema, exchange["request"])]
    return failures, count


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        document = yaml.safe_load(file)
    if sys.argv[1] == "table":
        print(json.dumps(table(document)))
        return 0
    with open(sys.argv[3], encoding="utf-8") as file:
        failures, count = check(document, [line for line in file if line.strip()])
    for failure in failures:
        print(failure)
    print(f"{count} answers, {len(failures)} problems")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
