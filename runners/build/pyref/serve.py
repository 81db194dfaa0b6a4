"""Computes expected outputs with a reference in Python: serve.py, in the sandbox.

Requests come on descriptor 3 and replies go to descriptor 4. Both are a length of four bytes and a header in JSON. Arrays
are in memory that descriptor 5 shares with the judge, or in memory of the GPU that comes through the socket on descriptor
6: inputs where the request says, as float32 or float64, and outputs as float64. The first request says which reference is
meant. Standard output and standard error are the reference's own.
"""
import ast
import ctypes
import inspect
import json
import math
import mmap
import os
import socket
import struct
import sys
import types

MOST = 2000  # characters of a message


class End(Exception):
    """Nobody asks any more."""


class Mistake(Exception):
    """What is wrong with the reference, and the line of its file where that is known."""

    def __init__(self, text, line=0):
        super().__init__(text)
        self.line = line


def read(requests, size):
    """Reads exactly so many bytes."""
    data = b""
    while len(data) < size:
        part = requests.read(size - len(data))
        if not part:
            raise End
        data += part
    return data


def receive(requests):
    (size,) = struct.unpack("<I", read(requests, 4))
    return json.loads(read(requests, size))


def send(replies, header):
    text = json.dumps(header).encode()
    replies.write(struct.pack("<I", len(text)) + text)
    replies.flush()


class Memory:
    """What is shared with the judge."""

    def __init__(self):
        self.data = b""

    def room(self, size):
        if size > len(self.data):
            self.data = mmap.mmap(5, size)  # the old one ends with the last array that looks into it
        return self

    def tensor(self, torch, dtype, count, at):
        return torch.frombuffer(self.data, dtype=dtype, count=count, offset=at)


class DeviceMemory:
    """Memory of the GPU that the judge has handed over."""

    def __init__(self, size):
        cuda, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64
        with socket.socket(fileno=os.dup(6)) as near:
            files = socket.recv_fds(near, 1, 1)[1]
        handle, at = number(), number()
        access = (ctypes.c_int * 3)(1, 0, 3)  # on device 0, for reading and writing
        self.size, self.cuda = number(size), cuda
        self.do("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(files[0]), 1)
        os.close(files[0])
        self.do("cuMemAddressReserve", ctypes.byref(at), self.size, number(0), number(0), number(0))
        self.do("cuMemMap", at, self.size, number(0), handle, number(0))
        self.do("cuMemSetAccess", at, self.size, ctypes.byref(access), number(1))
        self.do("cuMemRelease", handle)  # it lives as long as it is mapped
        self.at = at

    def do(self, name, *args):
        code = getattr(self.cuda, name)(*args)
        if code:
            raise Mistake(f"cannot be given memory of the GPU: {name} returns {code}")

    def close(self):
        self.do("cuMemUnmap", self.at, self.size)
        self.do("cuMemAddressFree", self.at, self.size)

    def tensor(self, torch, dtype, count, at):
        kinds = {torch.float32: "<f4", torch.float64: "<f8"}
        view = types.SimpleNamespace(__cuda_array_interface__={"shape": (count,), "typestr": kinds[dtype], "data": (self.at.value + at, False), "version": 3})
        return torch.as_tensor(view, device="cuda")


class Shared:
    """Both kinds of memory."""

    def __init__(self):
        self.host, self.device = Memory(), None

    def of(self, request):
        if not request.get("gpu"):
            return self.host.room(request["memory"])
        if request.get("new"):
            if self.device:
                self.device.close()
            self.device = DeviceMemory(request["gpu"])
        return self.device


class Numpy:
    """Arrays of NumPy."""

    name = "numpy"
    device = "cpu"
    exhausted = ()

    def __init__(self, setup):
        import numpy

        self.module = numpy
        self.float = getattr(numpy, setup["dtype"])

    def version(self):
        return self.module.__version__

    def make(self, memory, a):
        elements = math.prod(a["shape"])
        if a["access"] == "out" or not elements:
            values = self.module.zeros(a["shape"])
        else:
            values = self.module.frombuffer(memory.data, {"f32": "<f4", "f64": "<f8"}[a["format"]], elements, a["input"]).reshape(a["shape"])
        if a["kind"] == "float":
            return values.astype(self.float)
        return values.astype({"int": self.module.int64, "uint": self.module.uint64, "bool": self.module.bool_}[a["kind"]])

    def known(self, value):
        return isinstance(value, (self.module.ndarray, self.module.generic)) or isinstance(value, (int, float))

    def shape(self, value):
        return list(self.module.shape(value))

    def put(self, value, memory, at):
        value = self.module.asarray(value)
        if value.dtype.kind not in "fiub":
            raise Mistake(f"returns an array of {value.dtype} (return real numbers)")
        if value.size:
            to = self.module.frombuffer(memory.data, "<f8", value.size, at)
            self.module.copyto(to, value.reshape(-1), casting="unsafe")
            return bool(self.module.isnan(to).any())

    def release(self):
        pass


class Torch:
    """Tensors of PyTorch."""

    name = "torch"
    exhausted = ()  # what is raised if the GPU's memory does not suffice and the CPU's may be used

    def __init__(self, setup):
        import torch

        self.module = torch
        self.float = getattr(torch, setup["dtype"])
        self.device = setup["device"]
        if self.device == "any":
            self.device = "cuda" if torch.cuda.is_available() else "cpu"
            self.exhausted = torch.cuda.OutOfMemoryError
        elif self.device == "cuda" and not torch.cuda.is_available():
            raise Mistake("is for device: cuda, and PyTorch sees no GPU (install a PyTorch for CUDA, or delete device)")
        if self.device == "cuda":
            torch.backends.cudnn.allow_tf32 = False
            torch.zeros(1, device="cuda")  # makes the context while nobody waits for it

    def version(self):
        return self.module.__version__

    def make(self, memory, a):
        torch, elements = self.module, math.prod(a["shape"])
        kind = {"float": self.float, "int": torch.int64, "uint": torch.int64, "bool": torch.bool}[a["kind"]]
        if a["access"] == "out" or not elements:
            return torch.zeros(a["shape"], dtype=kind, device=self.device)
        format = {"f32": torch.float32, "f64": torch.float64}[a["format"]]
        values = memory.tensor(torch, format, elements, a["input"]).reshape(a["shape"])
        return values.to(device=self.device, dtype=kind, copy=True)

    def known(self, value):
        return isinstance(value, (self.module.Tensor, int, float))

    def shape(self, value):
        return list(getattr(value, "shape", []))

    def put(self, value, memory, at):
        if not isinstance(value, self.module.Tensor):
            value = self.module.tensor(value)
        if value.is_complex():
            raise Mistake(f"returns an array of {value.dtype} (return real numbers)")
        if value.numel():
            to = memory.tensor(self.module, self.module.float64, value.numel(), at)
            to.copy_(value.detach().reshape(-1))
            return bool(self.module.isnan(to).any())  # and waits for the GPU

    def release(self):
        """Gives memory of the GPU back that the kernels may need."""
        cuda = self.module.cuda
        if self.device == "cuda" and cuda.memory_reserved() > cuda.get_device_properties(0).total_memory / 8:
            cuda.empty_cache()


def needs_torch(tree):
    """Tells whether a module imports PyTorch."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if any(name.split(".")[0] == "torch" for name in names):
            return True
    return False


def load(setup):
    """Returns the arrays' library, and a function from names and values to the outputs."""
    if setup.get("torch"):
        arrays = Torch(setup)
        code = compile(setup["torch"].strip(), setup["name"], "eval")
        known = {"torch": arrays.module, "F": arrays.module.nn.functional, "math": math}
        return arrays, lambda values: eval(code, {**known, **values["all"]}), None
    with open(setup["source"], encoding="utf-8") as f:
        text = f.read()
    tree = ast.parse(text, setup["name"])
    arrays = (Torch if needs_torch(tree) else Numpy)(setup)
    module = types.ModuleType("reference")
    module.__file__ = setup["source"]
    sys.modules["reference"] = module
    exec(compile(tree, setup["name"], "exec"), module.__dict__)
    function = getattr(module, setup["entry"], None)
    if not callable(function):
        names = sorted(n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == "reference")
        raise Mistake(f"has no function {setup['entry']} (write the entry as one of these, or define it: {', '.join(names) or 'none'})")
    return arrays, function, inspect.signature(function)


def arguments(signature, values, line):
    """Picks what the function asks for, by the names of its parameters."""
    every, picked = values["all"], {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            for other, value in every.items():
                if other not in picked and other not in values["outputs"]:
                    picked[other] = value
        elif parameter.kind is parameter.VAR_POSITIONAL:
            raise Mistake(f"takes *{name}: arguments are passed by name (name them)", line)
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            raise Mistake(f"takes {name} by its position: arguments are passed by name (remove the / from its parameters)", line)
        elif name in every:
            picked[name] = every[name]
        elif parameter.default is parameter.empty:
            raise Mistake(f"takes {name}, which the manifest does not have (it has {', '.join(every)})", line)
    return picked


def outputs(arrays, returned, picked, wanted, values, line, memory):
    """Puts the outputs into the memory: those that were returned, or else those that were written. Returns the reply."""
    names = [w["name"] for w in wanted]
    if returned is None:
        missing = [n for n in names if n not in picked]
        if missing:
            raise Mistake(f"returns nothing and has no parameter {missing[0]} to write to (return {', '.join(names)}, or take it as a parameter)", line)
        found = [values["all"][n] for n in names]
    elif isinstance(returned, dict):
        missing = [n for n in names if n not in returned]
        extra = [str(n) for n in returned if n not in names]
        if missing or extra:
            raise Mistake(f"returns {', '.join(map(str, returned)) or 'nothing'} (return {', '.join(names)})", line)
        found = [returned[n] for n in names]
    elif isinstance(returned, (tuple, list)) and not (len(names) == 1 and len(returned) != 1):
        if len(returned) != len(names):
            raise Mistake(f"returns {len(returned)} arrays, and the manifest has {len(names)} outputs (return {', '.join(names)})", line)
        found = list(returned)
    elif len(names) != 1:
        raise Mistake(f"returns one {type(returned).__name__}, and the manifest has {len(names)} outputs (return {', '.join(names)})", line)
    else:
        found = [returned]
    nan = []
    for i, (want, value) in enumerate(zip(wanted, found)):
        if not arrays.known(value):
            raise Mistake(f"returns a {type(value).__name__} for {want['name']} (return an array of {arrays.name})", line)
        if arrays.shape(value) != want["shape"]:
            raise Mistake(f"returns {want['name']} of shape {arrays.shape(value)}, and the manifest's is {want['shape']}", line)
        if arrays.put(value, memory, want["output"]):
            nan.append(i)
    return {"computed": len(found), "nan": nan}


def compute(arrays, function, signature, request, memory):
    every, wanted = {}, []
    for a in request["arguments"]:
        if a["kind"] in ("integer", "number", "truth"):
            every[a["name"]] = {"integer": int, "number": float, "truth": lambda v: v != "0"}[a["kind"]](a["value"])
            continue
        every[a["name"]] = arrays.make(memory, a)
        if a["access"] != "in":
            wanted.append(a)
    for name, value in request["dims"].items():
        every.setdefault(name, value)
    written = {w["name"] for w in wanted if w["access"] == "out"}
    values = {"all": every, "outputs": written}
    if signature is None:
        values["all"] = {n: v for n, v in every.items() if n not in written}
        return outputs(arrays, function(values), {}, wanted, values, 0, memory)
    code = getattr(inspect.unwrap(function), "__code__", None)
    line = code.co_firstlineno if code else 0
    picked = arguments(signature, values, line)
    return outputs(arrays, function(**picked), picked, wanted, values, line, memory)


def computed(arrays, *rest):
    """Computes, on the CPU if the GPU's memory does not suffice. Returns the reply."""
    try:
        return compute(arrays, *rest)
    except arrays.exhausted:
        pass
    finally:
        arrays.release()
    arrays.device = "cpu"
    return compute(arrays, *rest)


def told(error, setup):
    """Says what an exception means, with the last line of the reference's own file that it went through."""
    if isinstance(error, Mistake):
        return {"error": str(error)[:MOST], "line": error.line}
    if isinstance(error, SyntaxError) and error.filename == setup.get("name"):
        return {"error": f"is not Python: {error.msg}"[:MOST], "line": error.lineno or 0}
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == setup.get("name"):
            line = trace.tb_lineno
        trace = trace.tb_next
    text = f"raised {type(error).__name__}: {error}".strip()
    if isinstance(error, ModuleNotFoundError):
        text += f" (a reference sees the packages of {sys.executable} and no other file of the repository)"
    return {"error": text[:MOST], "line": line, "missing": error.name or "" if isinstance(error, ModuleNotFoundError) else ""}


def main():
    requests, replies = os.fdopen(3, "rb", buffering=0), os.fdopen(4, "wb", buffering=1 << 20)
    setup, loaded, memory = {}, None, Shared()
    try:
        setup = receive(requests)
        sys.path += setup["path"]  # behind the installation's own
        loaded = load(setup)
        send(replies, {"ready": True, "arrays": loaded[0].name, "version": loaded[0].version(), "device": loaded[0].device})
    except End:
        return
    except BaseException as error:
        send(replies, told(error, setup))
        return
    while True:
        try:
            request = receive(requests)
            send(replies, computed(*loaded, request, memory.of(request)))
        except End:
            return
        except BaseException as error:
            send(replies, told(error, setup))
            return


if __name__ == "__main__":
    main()
