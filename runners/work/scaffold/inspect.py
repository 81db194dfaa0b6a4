"""Describes a Python file without importing it: inspect.py FILE, in the sandbox. It prints JSON."""
import ast
import json
import sys


def dotted(node):
    """The name of a function or a decorator, such as triton.jit."""
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Attribute):
        return dotted(node.value) + "." + node.attr
    return node.id if isinstance(node, ast.Name) else ""


def literal(node):
    """The value of a constant expression, or None."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, (int, float, str, bool)) else None


def literals(node):
    if not isinstance(node, ast.Dict):
        return {}
    pairs = ((literal(k), literal(v)) for k, v in zip(node.keys, node.values) if k is not None)
    return {k: v for k, v in pairs if isinstance(k, str) and v is not None}


def within(node, top, depth=3):
    """The nodes of an expression, and of what its names stand for at the top of the module."""
    for n in ast.walk(node):
        yield n
        if isinstance(n, ast.Name) and n.id in top and depth:
            yield from within(top[n.id], {k: v for k, v in top.items() if k != n.id}, depth - 1)


def keys(node):
    if not isinstance(node, ast.Dict):
        return []
    return [name for name in map(literal, filter(None, node.keys)) if isinstance(name, str)]


def configurations(decorator, top):
    """What @triton.autotune offers, as far as the file says it."""
    found = []
    for node in within(decorator, top):
        if isinstance(node, ast.Call) and dotted(node).split(".")[-1] == "Config" and node.args:
            options = {k.arg: literal(k.value) for k in node.keywords if k.arg in ("num_warps", "num_stages", "num_ctas")}
            one = {"constants": literals(node.args[0]), "names": keys(node.args[0]), **{k: v for k, v in options.items() if isinstance(v, int)}}
            if one not in found:
                found.append(one)
    return found


def decorated(node, word):
    return [d for d in node.decorator_list if dotted(d).split(".")[-1] == word]


def accesses(function, names):
    """Which parameters are loaded from and stored to, through variables that are computed from them."""
    reach = {name: {name} for name in names}

    def of(node):
        used = set()
        for n in ast.walk(node):
            if isinstance(n, ast.Name):
                used |= reach.get(n.id, set())
        return used

    def pointers(node):
        # In `x_ptr + row * stride` the pointer is the leftmost name; a call makes one of its first argument.
        while isinstance(node, (ast.BinOp, ast.Call)):
            if isinstance(node, ast.BinOp):
                node = node.left
                continue
            base = [k.value for k in node.keywords if k.arg == "base"]
            if isinstance(node.func, ast.Attribute) and dotted(node.func.value) not in ("tl", "triton.language", "tl.math"):
                node = node.func.value
            elif node.args or base:
                node = (node.args or base)[0]
            else:
                return set()
        return of(node)

    loads, stores = set(), set()
    for _ in range(2):  # loops carry pointers backwards
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        reach[target.id] = reach.get(target.id, set()) | pointers(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("load", "store") and dotted(node.func.value) not in ("tl", "triton.language"):
                (loads if node.func.attr == "load" else stores).update(of(node.func.value))  # a descriptor's own method
            elif isinstance(node, ast.Call) and node.args:
                what = dotted(node).split(".")[-1]
                if what == "load":
                    loads |= pointers(node.args[0])
                elif what == "store":
                    stores |= pointers(node.args[0])
                elif what.startswith("atomic_"):
                    loads |= pointers(node.args[0])
                    stores |= pointers(node.args[0])
    order = list(names)
    return [n for n in order if n in loads], [n for n in order if n in stores]


def sizes(function, names):
    """Parameters that bound an index, a loop or a grid."""
    found = set()

    def add(node):
        found.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))

    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops):
            for side in [node.left] + node.comparators:
                if isinstance(side, ast.Name):
                    found.add(side.id)
        elif isinstance(node, ast.Call) and dotted(node).split(".")[-1] in ("range", "cdiv", "static_range"):
            for a in node.args:
                add(a)
    return [n for n in names if n in found]


def function(node, top):
    args = node.args
    every = args.posonlyargs + args.args + args.kwonlyargs
    defaults = dict(zip([a.arg for a in (args.posonlyargs + args.args)[::-1]], [literal(d) for d in args.defaults[::-1]]))
    names = [a.arg for a in every]
    loads, stores = accesses(node, names)
    return {
        "name": node.name, "line": node.lineno, "decorators": [dotted(d) for d in node.decorator_list],
        "parameters": [{"name": a.arg, "annotation": dotted(a.annotation) if a.annotation else "", "default": defaults.get(a.arg)} for a in every],
        "autotuned": bool(decorated(node, "autotune")), "configurations": [c for d in decorated(node, "autotune") for c in configurations(d, top)],
        "heuristics": [k for d in decorated(node, "heuristics") for n in within(d, top) for k in keys(n)], "loads": loads, "stores": stores, "sizes": sizes(node, names),
    }


def main(file):
    try:
        with open(file, encoding="utf-8") as f:
            tree = ast.parse(f.read())
    except SyntaxError as error:
        print(json.dumps({"error": error.msg, "line": error.lineno or 1}))
        return
    found = {"functions": [], "classes": [], "values": [], "imports": []}
    top = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name)}
    top.update((n.name, n) for n in tree.body if isinstance(n, ast.FunctionDef))
    jitted = {}  # f = triton.jit(f), as some files write the decorator
    for node in tree.body:
        call = node.value if isinstance(node, ast.Assign) else None
        if isinstance(call, ast.Call) and dotted(call).split(".")[-1] == "jit" and call.args and isinstance(call.args[0], ast.Name):
            jitted[call.args[0].id] = "triton.jit"
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            one = function(node, top)
            one["decorators"] += [jitted[node.name]] if node.name in jitted else []
            found["functions"].append(one)
        elif isinstance(node, ast.ClassDef):
            found["classes"].append(node.name)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = literal(node.value)
            found["values"].append({"name": node.targets[0].id, "value": value if isinstance(value, int) and not isinstance(value, bool) else None})
        elif isinstance(node, ast.Import):
            found["imports"] += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            found["imports"].append(node.module or "")
    print(json.dumps(found))


main(sys.argv[1])
