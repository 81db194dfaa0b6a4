"""Compiles Triton kernels ahead of time, without a GPU: triton_compile.py REQUEST OUT

It runs inside the sandbox, in one process with the kernel's own Python, so that nothing which it writes is
believed: a cubin is read like any other, and what it says of the launch is held against the machine code.
"""
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import traceback

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def main(request, out):
    with open(request) as f:
        request = json.load(f)
    elsewhere(request["forks"])
    sys.path += request["path"]
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    # Triton's own cache goes with the sandbox: hashing all of Triton for a key to it takes longer than most kernels.
    if hasattr(triton.runtime.cache, "triton_key"):
        triton.runtime.cache.triton_key = lambda: "kernelgate"
    target = GPUTarget("cuda", request["arch"], 32)

    # Which assembler made the cubin, and with which flags, for whoever wants its figures.
    calls = []
    run = subprocess.run

    def watched(args, *rest, **more):
        if isinstance(args, list) and os.path.basename(str(args[0])).startswith("ptxas"):
            calls.append(args)
        return run(args, *rest, **more)

    subprocess.run = watched

    standins = beside("triton_standins")
    standins.install(request["skip_init"], request["stubs"], fail)
    module = load(request, standins)
    if standins.unmet():
        fail(f"skip_init names {standins.unmet()[0]}, and no package of this name was imported from the repository (write its name as the sources import it, and root: with the folder that it lies in)")
    kernels = {kind["entry"]: Kernel(module, kind["entry"]) for kind in request["kinds"]}
    parameters = {name for k in kernels.values() for name in k.fn.arg_names}
    offered = {name for k in kernels.values() for c in k.configs for name in settings(c)}
    for name in (request["kinds"][0].get("configuration") or {}):
        k = next(iter(kernels.values()))
        if not any(k.configs for k in kernels.values()):
            fail(f"{k.entry} has no @triton.autotune, and the manifest chooses a configuration (delete autotune, and write its values under constants, num_warps and num_stages)", k.fn)
        if name not in offered:
            fail(f"no configuration of @triton.autotune has {name} (they have {', '.join(sorted(offered))})", k.fn)
    if request["describe"]:
        write(out, "describe.json", json.dumps(describe(request["kinds"], kernels)).encode())
        return

    compiled = {}
    for number, kind in enumerate(request["kinds"]):
        k = kernels[kind["entry"]]
        if k.heuristics and not kind.get("exact"):
            # What the functions return depends on more than was told: the caller asks again.
            write(out, "exact", b"")
            return
        parts = plan(k, kind, parameters)
        same = repr((kind["entry"], sorted(parts["signature"].items()), sorted((n, repr(v)) for n, v in parts["constants"].items()), sorted(parts["attrs"].items()), sorted(parts["options"].items())))
        if same not in compiled:
            calls.clear()
            try:
                made = triton.compile(
                    ASTSource(fn=k.fn, signature=parts["signature"], constexprs=parts["constants"], attrs=parts["attrs"]),
                    target=target, options=parts["options"],
                )
            except Exception as error:
                if not request["each"]:
                    raise
                # Triton's own tuner passes over a configuration that does not compile.
                file, line, message = located(error, request)
                write(out, f"{number}.refused", (f"{file}:{line}: " * bool(line) + message).encode())
                continue
            compiled[same] = made, [os.path.basename(calls[-1][0])] + [a for a in calls[-1][1:] if a.startswith("-")] if calls else []
        made, assembler = compiled[same]
        data = made.metadata._asdict()
        unmet = [n for n in ("launch_cooperative_grid", "launch_pdl", "launch_cluster") if data.get(n)]
        said = {
            "symbol": data["name"],
            "warps": data["num_warps"],
            "ctas": data["num_ctas"],
            "shared": data["shared"],
            "scratch": [
                {"size": data.get(n + "_scratch_size") or 0, "align": data.get(n + "_scratch_align") or 1}
                for n in ("global", "profile")
            ],
            "passed": parts["passed"],
            "tensors": data.get("tensordesc_meta") or [],
            "flags": descriptor_flags(),
            "unmet": unmet,
            "ptxas": assembler,
            "line": k.fn.starting_line_number,
            "autotune": [in_words(c) for c in k.configs],
            "configuration": parts["configuration"],
        }
        for suffix, content in (("cubin", made.asm["cubin"]), ("ptx", made.asm["ptx"].encode()), ("json", json.dumps(said).encode())):
            write(out, f"{number}.{suffix}", content)


def write(out, name, content):
    with open(os.path.join(out, name), "wb") as f:
        f.write(content)


def elsewhere(forks):
    """Goes on in another process, so that its number differs from one build to the next: code must not depend on it."""
    for _ in range(forks):
        pid = os.fork()
        if pid:
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)


def beside(name):
    """Imports a file of kernelgate's own, which lies next to this one."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(request, standins):
    """Imports the source as a module of its package."""
    source = os.path.realpath(os.path.join(os.getcwd(), request["source"]))
    base = os.path.realpath(request["base"])
    folder, names = os.path.dirname(source), [os.path.splitext(os.path.basename(source))[0]]
    top = None
    while within(folder, base) and os.path.isfile(os.path.join(folder, "__init__.py")):
        top = folder
        names.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    paths = [os.path.realpath(p) for p in request["include"]]
    if top is None:
        paths.append(os.path.dirname(source))
    elif top != base:
        paths.append(folder)
    if request["root"] and top != base:
        paths.append(base)
    sys.path += list(dict.fromkeys(paths))
    if top is None:
        spec = importlib.util.spec_from_file_location(names[0], source)
    else:
        if names[0] in sys.stdlib_module_names or names[0] in sys.modules:
            fail(f"the package {names[0]} has the name of one that Python or Triton imports (rename the folder)")
        # By its file, and not by its name: the runner's Python may have a copy of the same package.
        spec = standins.skipped(names[0], top) or importlib.util.spec_from_file_location(names[0], os.path.join(top, "__init__.py"), submodule_search_locations=[top])
    module = sys.modules[names[0]] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if top is not None:
        module = importlib.import_module(".".join(names))
    for path in dict.fromkeys(paths):
        shadowed(path)
    return module


def within(path, base):
    return path == base or path.startswith(base.rstrip(os.sep) + os.sep)


def shadowed(path):
    """Refuses a file that another checkout would import and this build does not: the runner's Python has the name too."""
    for entry in sorted(os.listdir(path)):
        if not entry.split(".")[0].isidentifier():
            continue
        name, suffix = os.path.splitext(entry)
        file = os.path.join(path, entry)
        if suffix == "" and os.path.isfile(os.path.join(file, "__init__.py")):
            file = os.path.join(file, "__init__.py")
        elif suffix != ".py":
            continue
        module = sys.modules.get(name)
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        if origin is None and len(list(getattr(module, "__path__", []))) == 1:  # an entry file made the package
            origin = os.path.join(list(module.__path__)[0], "__init__.py")
        if name in sys.modules and name != "__main__" and (not origin or os.path.realpath(origin) != os.path.realpath(file)):
            fail(f"{os.path.relpath(file, os.getcwd())} has the name of a module that Python or a package of the runner imports, and which of them "
                 "a checkout imports depends on the path (rename it, or leave its folder out of root and include)")


class Kernel:
    """A kernel behind its decorators, from the outermost to the innermost."""

    def __init__(self, module, entry):
        import triton

        self.entry, self.decorators, self.configs, self.heuristics = entry, [], [], False
        fn = getattr(module, entry, None)
        if fn is None:
            names = sorted(n for n, v in vars(module).items() if isinstance(unwrapped(v), triton.runtime.JITFunction))
            fail(f"has no kernel {entry}: write the entry as one of these, or define it: {', '.join(names) or 'none'}")
        for _ in range(8):
            if hasattr(fn, "starting_line_number") or inner(fn) is None:
                break
            if getattr(fn, "configs", None):
                if self.configs:
                    fail(f"{entry} has @triton.autotune twice (delete one)")
                self.configs = list(fn.configs)
                self.decorators.append(fn)
            elif isinstance(getattr(fn, "values", None), dict):
                self.heuristics = True
                self.decorators.append(fn)
            fn = inner(fn)
        self.fn = fn
        if not isinstance(fn, triton.runtime.JITFunction):
            fail(f"{entry} is no Triton kernel (decorate it with @triton.jit)")


# Decorators of Triton and of libraries on top of it keep what they wrap under one of these names.
INNER = ("fn", "__wrapped__", "jit_function", "kernel", "func")


def inner(fn):
    """What a decorator wraps, or None."""
    own = getattr(fn, "__dict__", {})
    return next((own[name] for name in INNER if own.get(name) is not None), None)


def unwrapped(fn):
    for _ in range(8):
        if hasattr(fn, "starting_line_number") or inner(fn) is None:
            break
        fn = inner(fn)
    return fn


def settings(config):
    """The values of a configuration: parameters of the kernel, and options of its launch."""
    return {**config.kwargs, **{n: getattr(config, n) for n in OPTIONS if getattr(config, n, None) is not None}}


def in_words(config):
    words = [f"{n}={v}" for n, v in settings(config).items()]
    if getattr(config, "pre_hook", None) is not None:
        words.append("its pre_hook is not called")
    return ", ".join(words)


def describe(kinds, kernels):
    """The configurations that each kernel offers, and which of them its own pruning leaves at each size."""
    found = {}
    for entry, k in kernels.items():
        found[entry] = {"configurations": [{n: literal(v, n, k.fn) for n, v in settings(c).items()} for c in k.configs], "kept": []}
    for kind in kinds:
        k = kernels[kind["entry"]]
        found[kind["entry"]]["kept"].append(pruned(k, kind) if k.configs else [])
    return found


def pruned(k, kind):
    tuner = next(d for d in k.decorators if getattr(d, "configs", None))
    kept = list(range(len(k.configs)))
    if getattr(tuner, "perf_model", None):
        fail(f"{k.entry}: prune_configs_by has a perf_model, which a build without a GPU does not ask (take it out, or choose a configuration under autotune)", k.fn)
    prune = getattr(tuner, "early_config_prune", None)
    if prune is None:
        return kept
    arguments, constants = named(k.fn, kind)
    try:
        left = prune(list(k.configs), arguments, **{**{n: v for n, v in constants.items()}})
    except Exception as error:
        fail(f"{k.entry}: early_config_prune of prune_configs_by fails without a GPU: {type(error).__name__}: {error} (choose a configuration under autotune)", k.fn)
    return [i for i in kept if any(k.configs[i] is c for c in left)]


def literal(value, name, fn):
    import triton.language as tl

    if value is None:
        return {"kind": "none"}
    if isinstance(value, bool):
        return {"kind": "bool", "text": "true" if value else "false"}
    if isinstance(value, (int, float)):
        return {"kind": "number", "number": value}
    if isinstance(value, str):
        return {"kind": "text", "text": value}
    if isinstance(value, tl.dtype):
        return {"kind": "dtype", "text": next((n for n in dir(tl) if getattr(tl, n) is value or getattr(tl, n) == value), str(value))}
    fail(f"{fn.__name__}: {name} of a configuration is {type(value).__name__}, which cannot be written in a manifest (write numbers, texts, booleans, None and dtypes)", fn)


def value_of(l):
    import triton.language as tl

    kind = l["kind"]
    if kind == "none":
        return None
    if kind == "bool":
        return l["text"] == "true"
    if kind == "text":
        return l.get("text", "")
    if kind == "dtype":
        return getattr(tl, l["text"])
    return number(l.get("number", 0))


def chosen(k, kind):
    """The one configuration that has the values that the manifest asks for."""
    if not k.configs:
        return None
    wanted = {n: value_of(l) for n, l in (kind.get("configuration") or {}).items()}
    offered = f"it offers {len(k.configs)}: {'; '.join(in_words(c) for c in k.configs[:8])}{'; …' if len(k.configs) > 8 else ''}"
    if not wanted:
        fail(f"{k.entry} has @triton.autotune, and the manifest chooses no configuration: write autotune: "
             "{" + ", ".join(f"{n}: {v}" for n, v in list(settings(k.configs[0]).items())[:4]) + "}" + f" or autotune: all ({offered})", k.fn)
    names = {n for c in k.configs for n in settings(c)}
    asked = {n: v for n, v in wanted.items() if n in names}
    all_of = [c for c in k.configs if same(settings(c), asked)]
    whole = [c for c in all_of if set(settings(c)) == set(asked)]
    if not all_of:
        fail(f"@triton.autotune of {k.entry} offers no configuration with {spelled(asked or wanted)} ({offered})", k.fn)
    first = (whole or all_of)[0]
    other = next((c for c in all_of if settings(c) != settings(first)), None) if not whole else None
    if other is not None:
        differs = [n for n in settings(first) if settings(other).get(n) != settings(first)[n]]
        fail(f"autotune {spelled(asked)} means {len(all_of)} configurations of {k.entry}: write {', '.join(differs)} too ({offered})", k.fn)
    return first


def spelled(values):
    return "{" + ", ".join(f"{n}: {v}" for n, v in values.items()) + "}"


def same(have, wanted):
    return all(n in have and type(have[n] == v) is bool and have[n] == v for n, v in wanted.items())


class Array:
    """Stands for an array where a function of @triton.heuristics or prune_configs_by asks for one."""

    def __init__(self, name, dtype, shape):
        self._name, self.dtype, self.shape, self.ndim = name, dtype, tuple(shape), len(shape)

    def stride(self, axis=None):
        strides, step = [], 1
        for n in reversed(self.shape):
            strides.insert(0, step)
            step *= n
        return tuple(strides) if axis is None else strides[axis]

    def size(self, axis=None):
        return self.shape if axis is None else self.shape[axis]

    def numel(self):
        count = 1
        for n in self.shape:
            count *= n
        return count

    def element_size(self):
        return max(1, self.dtype.primitive_bitwidth // 8)

    def dim(self):
        return self.ndim

    def data_ptr(self):
        return 0

    def __getattr__(self, name):
        raise RuntimeError(f"{name} of {self._name}: a build has no arrays (it knows dtype, shape and strides)")


def dtype_of(name):
    import triton.language as tl

    return {"fp8e4nv": tl.float8e4nv, "fp8e5": tl.float8e5, "fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64, "i1": tl.int1, "u1": tl.int1}.get(name) \
        or getattr(tl, name.replace("u", "uint").replace("i", "int") if name[0] == "i" else name.replace("u", "uint"))


def named(fn, kind):
    """The arguments of a launch by their names, and its constants."""
    constants = given(fn, kind)
    arguments, left = {}, list(kind["arguments"])
    for p in fn.params:
        if p.name in constants or p.is_constexpr or not left:
            continue
        a = left.pop(0)
        if a["type"] == "none":
            arguments[p.name] = None
        elif "value" in a:
            arguments[p.name] = bool(a["value"]) if a["type"] == "u1" else number(a["value"]) if a["type"][0] in "iu" else float(a["value"])
        else:
            element = a["type"].split("<")[-1].split("[")[0].lstrip("*")
            arguments[p.name] = Array(p.name, dtype_of(element), a.get("shape") or [])
    return arguments, constants


def given(fn, kind):
    constants = {name: number(v) for name, v in kind["constants"].items()}
    constants.update({name: value_of(l) for name, l in (kind.get("literals") or {}).items()})
    constants.update({name: v for name, v in (kind.get("toggles") or {}).items() if name in fn.arg_names})
    return constants


def descriptor_flags():
    """How many flags Triton's launcher passes with a descriptor's address: one for each thing that it is told beside the array."""
    try:
        from triton.tools.tensor_descriptor import TensorDescriptor
    except ImportError:
        return 0
    return len(TensorDescriptor.__dataclass_fields__) - len(("base", "shape", "strides", "block_shape"))


def resolved(k, kind):
    """The constants and options of a launch, as the decorators have them, from the outermost to the innermost."""
    arguments, constants = named(k.fn, kind)
    options = {"num_warps": kind["warps"], "num_stages": kind["stages"], "num_ctas": kind["ctas"]}
    config = chosen(k, kind)
    for d in k.decorators:
        if getattr(d, "configs", None):
            for name in config.kwargs:
                if name in kind["constants"] or name in (kind.get("literals") or {}):
                    fail(f"{name} is under constants, and the configurations of @triton.autotune have it too (delete it there)", k.fn)
            constants.update(settings(config))
            continue
        for name, function in d.values.items():
            try:
                constants[name] = function({**arguments, **constants})
            except Exception as error:
                fail(f"the function of @triton.heuristics for {name} fails at {sizes(arguments)}: {type(error).__name__}: {error} "
                     "(a build knows the arguments by name, and of arrays the dtype, shape and strides)", k.fn)
    for name in OPTIONS:
        if name in constants and name not in k.fn.arg_names:
            options[name] = constants.pop(name)
        elif name in constants and config is not None and name in settings(config):
            options[name] = constants[name]
    return constants, options, in_words(config) if config is not None else ""


def sizes(arguments):
    return ", ".join(f"{n}={v}" for n, v in arguments.items() if isinstance(v, (int, float)))


def plan(k, kind, parameters):
    """How a kernel of this kind is compiled, as Triton's own just-in-time compiler would."""
    fn = k.fn
    signature, constants, attrs, passed = {}, {}, {}, []
    values, options, configuration = resolved(k, kind)
    for name in kind.get("toggles") or {}:
        if name not in parameters and name not in (kind.get("spoken") or []):
            fail(f"{fn.__name__} has no parameter {name}, and nothing in the manifest uses the toggle (add one, or delete it)", fn)
    for name in list(values):
        if name not in fn.arg_names:
            if name not in parameters:
                fail(f"{fn.__name__} has no parameter {name} (its parameters are {', '.join(fn.arg_names)})", fn)
            del values[name]  # another kernel of the launch has it
    arguments = list(enumerate(kind["arguments"]))
    for position, p in enumerate(fn.params):
        if p.name in values or p.is_constexpr or not arguments:
            if p.name not in values and not p.has_default:
                fail(f"{fn.__name__} needs a value for {p.name}: write it under constants" if p.is_constexpr else
                     f"{fn.__name__} has the parameter {p.name}, and the manifest has only {len(kind['arguments'])} arguments", fn)
            signature[p.name], constants[p.name] = "constexpr", values.get(p.name, p.default)
            continue
        index, a = arguments.pop(0)
        typ, hint = a["type"], a.get("hint", "")
        if typ == "none":
            signature[p.name], constants[p.name] = "constexpr", None
            continue
        if p.annotation_type:
            typ = p.annotation_type
            if hint == "1" or typ == "u1" or typ[:2] in ("fp", "bf"):
                hint = ""
        elif p.is_const and typ.startswith("*"):
            typ = "*k" + typ[1:]
        if p.do_not_specialize or hint == "16" and p.do_not_specialize_on_alignment:
            hint = ""
        if hint == "1":
            signature[p.name], constants[p.name] = "constexpr", 1
            continue
        signature[p.name] = typ
        if hint == "16":
            attrs[(position,)] = [["tt.divisibility", 16]]
        passed.append({"argument": index, "type": typ})
    if arguments:
        fail(f"{fn.__name__} takes no argument {arguments[0][1]['name']}: the manifest has {len(kind['arguments'])} arguments, "
             f"and its parameters are {', '.join(fn.arg_names)}", fn)
    return {"signature": signature, "constants": constants, "attrs": attrs, "passed": passed, "options": options, "configuration": configuration}


def number(v):
    return int(v) if v == int(v) else v


class Refusal(Exception):
    pass


def fail(message, fn=None):
    raise Refusal(message, fn.starting_line_number if fn else 1, getattr(sys.modules.get(fn.__module__), "__file__", None) if fn else None)


def tell(error, request):
    """One line for the report, in a compiler's form, and all of it behind."""
    try:
        with open(request) as f:
            file, line, message = located(error, json.load(f))
        if line:  # otherwise nobody knows yet whether the source is to blame
            print(f"{file}:{line}: error: {message}", file=sys.stderr)
    except Exception:
        pass
    traceback.print_exception(error)


def located(error, request):
    """The file and line that an error is about, and what it says in one line; no line where it is not known."""
    source = request["source"]
    given = {os.path.realpath(d) + os.sep for d in [os.getcwd(), request["base"]] + request["include"]}
    line, file = 0, source
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, Refusal):
        message, line, at = error.args
        file = at or source
    elif isinstance(error, SyntaxError) and error.filename:
        line, file = error.lineno or 1, error.filename
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            if any(os.path.realpath(frame.filename).startswith(d) for d in given):
                line, file = frame.lineno, os.path.realpath(frame.filename)
        # Triton's own errors know the line within the function.
        seen = error
        while seen is not None:
            node, src = getattr(seen, "node", None), getattr(seen, "src", None)
            if getattr(node, "lineno", 0) and isinstance(src, str):
                name, start = start_of(src, source, given)
                line, file, message = node.lineno + start, name, getattr(seen, "error_message", None) or message
            seen = seen.__cause__
    return file, line, " ".join(str(message).split())[:900]


def start_of(src, source, given):
    """The file that has a function's text, without its decorators, and where the text begins in it."""
    files = [source] + [m.__file__ for m in list(sys.modules.values()) if any(str(getattr(m, "__file__", "")).startswith(d) for d in given)]
    for file in files:
        try:
            with open(file) as f:
                whole = f.read()
        except OSError:
            continue
        at = whole.find(src[:200])
        if at > 0:
            return file, whole[:at].count("\n")
    return source, 0


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2])
    except BaseException as error:  # SystemExit of the kernel's own is no success
        tell(error, sys.argv[1])
        sys.stdout.flush()
        os._exit(1)
