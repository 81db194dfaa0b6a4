"""Compiles a Triton kernel ahead of time, without a GPU: triton_compile.py REQUEST OUT

It runs inside the sandbox, in one process with the kernel's own Python, so that nothing which it writes is
believed: a cubin is read like any other, and what it says of the launch is held against the machine code.
"""
import importlib.util
import json
import os
import subprocess
import sys
import traceback


def main(request, out):
    with open(request) as f:
        request = json.load(f)
    sys.path += request["path"]
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    # Triton's own cache goes with the sandbox: hashing all of Triton for a key to it takes longer than most kernels.
    if hasattr(triton.runtime.cache, "triton_key"):
        triton.runtime.cache.triton_key = lambda: "kernelgate"

    # Which assembler made the cubin, and with which flags, for whoever wants its figures.
    calls = []
    run = subprocess.run

    def watched(args, *rest, **more):
        if isinstance(args, list) and os.path.basename(str(args[0])).startswith("ptxas"):
            calls.append(args)
        return run(args, *rest, **more)

    subprocess.run = watched

    source = os.path.join(os.getcwd(), request["source"])
    sys.path.append(os.path.dirname(source))
    name = os.path.splitext(os.path.basename(source))[0]
    spec = importlib.util.spec_from_file_location(name, source)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fn = getattr(module, request["entry"], None)
    if fn is None:
        kernels = sorted(n for n, v in vars(module).items() if isinstance(unwrapped(v), triton.runtime.JITFunction))
        fail(f"has no kernel {request['entry']}: write the entry as one of these, or define it: {', '.join(kernels) or 'none'}")
    tuning = configurations(fn)
    fn = unwrapped(fn)
    if not isinstance(fn, triton.runtime.JITFunction):
        fail(f"{request['entry']} is no Triton kernel (decorate it with @triton.jit)")

    for number, kind in enumerate(request["kinds"]):
        parts = plan(fn, kind)
        calls.clear()
        made = triton.compile(
            ASTSource(fn=fn, signature=parts["signature"], constexprs=parts["constants"], attrs=parts["attrs"]),
            target=GPUTarget("cuda", request["arch"], 32),
            options={"num_warps": kind["warps"], "num_stages": kind["stages"], "num_ctas": kind["ctas"]},
        )
        data = made.metadata._asdict()
        unmet = [k for k in ("launch_cooperative_grid", "launch_pdl", "launch_cluster") if data.get(k)]
        said = {
            "symbol": data["name"],
            "warps": data["num_warps"],
            "ctas": data["num_ctas"],
            "shared": data["shared"],
            "scratch": [
                {"size": data.get(k + "_scratch_size") or 0, "align": data.get(k + "_scratch_align") or 1}
                for k in ("global", "profile")
            ],
            "passed": parts["passed"],
            "tensors": data.get("tensordesc_meta") or [],
            "flags": descriptor_flags(),
            "unmet": unmet,
            "ptxas": [os.path.basename(calls[-1][0])] + [a for a in calls[-1][1:] if a.startswith("-")] if calls else [],
            "line": fn.starting_line_number,
            "autotune": tuning,
        }
        for suffix, content in (("cubin", made.asm["cubin"]), ("ptx", made.asm["ptx"].encode()), ("json", json.dumps(said).encode())):
            with open(os.path.join(out, f"{number}.{suffix}"), "wb") as f:
                f.write(content)


def configurations(fn):
    """What @triton.autotune would try, each as one line: kernelgate builds what the manifest says, and tells what it leaves aside."""
    found = []
    for _ in range(8):
        for c in getattr(fn, "configs", None) or []:
            words = [f"{k}={v}" for k, v in c.kwargs.items()]
            words += [f"{k}={getattr(c, k)}" for k in ("num_warps", "num_stages", "num_ctas", "maxnreg") if getattr(c, k, None) is not None]
            found.append(", ".join(words))
        if not hasattr(fn, "fn") or hasattr(fn, "starting_line_number"):
            break
        fn = fn.fn
    return found


def unwrapped(fn):
    """The kernel behind @triton.autotune and @triton.heuristics: what they would choose, the manifest says."""
    for _ in range(8):
        if not hasattr(fn, "fn") or hasattr(fn, "starting_line_number"):
            break
        fn = fn.fn
    return fn


def descriptor_flags():
    """How many flags Triton's launcher passes with a descriptor's address: one for each thing that it is told beside the array."""
    try:
        from triton.tools.tensor_descriptor import TensorDescriptor
    except ImportError:
        return 0
    return len(TensorDescriptor.__dataclass_fields__) - len(("base", "shape", "strides", "block_shape"))


def plan(fn, kind):
    """How a kernel of this kind is compiled, as Triton's own just-in-time compiler would."""
    signature, constants, attrs, passed = {}, {}, {}, []
    given = {name: number(v) for name, v in kind["constants"].items()}
    for name, value in (kind.get("toggles") or {}).items():
        if name in fn.arg_names:
            given[name] = value
        elif name not in (kind.get("spoken") or []):
            fail(f"{fn.__name__} has no parameter {name}, and nothing in the manifest uses the toggle (add one, or delete it)", fn)
    for name in given:
        if name not in fn.arg_names:
            fail(f"{fn.__name__} has no parameter {name} (its parameters are {', '.join(fn.arg_names)})", fn)
    arguments = list(enumerate(kind["arguments"]))
    for position, p in enumerate(fn.params):
        if p.name in given or p.is_constexpr or not arguments:
            if p.name not in given and not p.has_default:
                fail(f"{fn.__name__} needs a value for {p.name}: write it under constants" if p.is_constexpr else
                     f"{fn.__name__} has the parameter {p.name}, and the manifest has only {len(kind['arguments'])} arguments", fn)
            signature[p.name], constants[p.name] = "constexpr", given.get(p.name, p.default)
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
    return {"signature": signature, "constants": constants, "attrs": attrs, "passed": passed}


def number(v):
    return int(v) if v == int(v) else v


class Refusal(Exception):
    pass


def fail(message, fn=None):
    raise Refusal(message, fn.starting_line_number if fn else 1)


def tell(error, request):
    """One line for the report, in a compiler's form, and all of it behind."""
    try:
        with open(request) as f:
            source = json.load(f)["source"]
        here = os.path.realpath(os.getcwd()) + os.sep
        line, file = 0, source
        message = f"{type(error).__name__}: {error}"
        if isinstance(error, Refusal):
            message, line = error.args
        elif isinstance(error, SyntaxError) and error.filename:
            line, file = error.lineno or 1, os.path.basename(error.filename)
        else:
            for frame in traceback.extract_tb(error.__traceback__):
                if os.path.realpath(frame.filename).startswith(here):
                    line, file = frame.lineno, os.path.realpath(frame.filename)[len(here):]
            # Triton's own errors know the line within the function.
            seen = error
            while seen is not None:
                node, src = getattr(seen, "node", None), getattr(seen, "src", None)
                if getattr(node, "lineno", 0) and isinstance(src, str):
                    line, message = node.lineno + start_of(src, source), getattr(seen, "error_message", None) or message
                seen = seen.__cause__
        if line:  # otherwise nobody knows yet whether the source is to blame
            print(f"{file}:{line}: error: {' '.join(str(message).split())[:600]}", file=sys.stderr)
    except Exception:
        pass
    traceback.print_exception(error)


def start_of(src, source):
    """Where a function's text, without its decorators, begins in the file."""
    with open(source) as f:
        whole = f.read()
    at = whole.find(src[:200])
    return whole[:at].count("\n") if at > 0 else 0


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2])
    except BaseException as error:  # SystemExit of the kernel's own is no success
        tell(error, sys.argv[1])
        sys.stdout.flush()
        os._exit(1)
