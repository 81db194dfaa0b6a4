"""Checks a reference in Python without running it: signature.py FILE, in the sandbox.

FILE has the reference and the names of the manifest, in JSON. It prints the first mistake with its line in JSON, or an
empty object.
"""
import ast
import builtins
import json
import sys

OF_EXPRESSIONS = ["torch", "F", "math"]


def wrong(text, line=0):
    return {"error": text, "line": line}


def parsed(text, mode):
    """The tree of a text, and what is wrong with it."""
    try:
        return ast.parse(text, mode=mode), None
    except SyntaxError as error:
        return None, wrong(f"is not Python: {error.msg}", 0 if mode == "eval" else error.lineno or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return None, wrong(f"is not Python: {error}")


def expression(text, names):
    """An expression may use the names of the manifest, and those that it binds."""
    tree, fault = parsed(text.strip(), "eval")
    if fault:
        return fault
    used = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    bound = {n.id for n in used if not isinstance(n.ctx, ast.Load)} | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    for n in used:
        if n.id not in bound and n.id not in names and n.id not in OF_EXPRESSIONS and not hasattr(builtins, n.id):
            return wrong(f"uses {n.id}, which the manifest does not have (it has {', '.join(names)})")
    return {}


def function(node, names):
    """Parameters are passed by name."""
    a = node.args
    if a.vararg:
        return wrong(f"takes *{a.vararg.arg}: arguments are passed by name (name them)", node.lineno)
    if a.posonlyargs:
        return wrong(f"takes {a.posonlyargs[0].arg} by its position: arguments are passed by name (remove the / from its parameters)", node.lineno)
    required = a.args[: len(a.args) - len(a.defaults)] + [p for p, d in zip(a.kwonlyargs, a.kw_defaults) if d is None]
    for p in required:
        if p.arg not in names:
            return wrong(f"takes {p.arg}, which the manifest does not have (it has {', '.join(names)})", node.lineno)
    return {}


def defined(tree):
    """What the module binds at its top: functions by their nodes, everything else by None."""
    found = {}
    for top in tree.body:
        if isinstance(top, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[top.name] = top if not top.decorator_list else None  # a decorator may change the parameters
            continue
        for n in ast.walk(top):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                found[n.id] = None
            elif isinstance(n, ast.alias):
                found[n.asname or n.name.split(".")[0]] = None
            elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
                found[n.name] = None
    return found


def module(text, entry, names):
    tree, fault = parsed(text, "exec")
    if fault:
        return fault
    found = defined(tree)
    if entry not in found and "*" not in found:
        functions = sorted(n for n, node in found.items() if node is not None)
        return wrong(f"has no function {entry} (write the entry as one of these, or define it: {', '.join(functions) or 'none'})")
    return function(found[entry], names) if found.get(entry) is not None else {}


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        asked = json.load(f)
    if asked.get("expression"):
        found = expression(asked["text"], asked["names"])
    else:
        found = module(asked["text"], asked["entry"], asked["names"])
    print(json.dumps(found))


main()
