"""Store the tensors of one call of a function, as recorded inputs of a kernel.

    import kernelgate
    with kernelgate.record("inputs/decode.safetensors", of=(F, "scaled_dot_product_attention"), names=["q", "k", "v"]):
        model(tokens)                       # the first call of the function is stored

    @kernelgate.record("inputs/decode.safetensors")
    def attention(q, k, v, scale): ...      # named as the parameters

    kernelgate.record("inputs/decode.safetensors").save(q=q, k=k, v=v)

The names are those of the kernel's arguments in kernel.yaml. The tensors are stored as they are when the call begins, before
anything is written to them. A number becomes metadata, which is compared with the manifest's value. Anything with a shape and
a dtype is a tensor: PyTorch and NumPy arrays work. Only the standard library is used.

The file holds real data. Look at it before you commit it to a repository that others read.
"""

import functools
import hashlib
import inspect
import json
import os
import sys
import tempfile

_FORMATS = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}


def _is_tensor(value):
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _content(name, value):
    """The format, the shape and the bytes of a tensor."""
    if hasattr(value, "detach"):  # PyTorch
        value = value.detach().cpu().contiguous()
    dtype = str(getattr(value.dtype, "name", value.dtype)).split(".")[-1]
    if dtype not in _FORMATS:
        raise TypeError("%s is %s, which is not stored (convert it to one of %s)" % (name, dtype, ", ".join(_FORMATS)))
    shape = [int(n) for n in value.shape]
    if hasattr(value, "tobytes"):  # NumPy
        order = getattr(value.dtype, "byteorder", "=")
        if order == ">" or order == "=" and sys.byteorder == "big":
            value = value.astype(value.dtype.newbyteorder("<"))
        return _FORMATS[dtype], shape, value.tobytes()
    flat = value.reshape(-1)
    return _FORMATS[dtype], shape, flat.view(sys.modules["torch"].uint8).numpy().tobytes() if flat.numel() else b""


def _encode(values):
    tensors, metadata = {}, {}
    for name, value in values.items():
        if value is None:
            continue
        if _is_tensor(value):
            tensors[name] = _content(name, value)
        elif isinstance(value, (bool, int, float)):
            metadata[name] = repr(float(value))
        else:
            raise TypeError("%s is a %s, neither a tensor nor a number (leave it out of names)" % (name, type(value).__name__))
    if not tensors:
        raise ValueError("there is no tensor to store")
    header, body, at = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    for name in sorted(tensors):
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        body.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(body)


def _write(path, data):
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    part, name = tempfile.mkstemp(dir=folder)  # for this user only
    try:
        with os.fdopen(part, "wb") as f:
            f.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class record:
    """Stores the tensors of one call in a safetensors file: see the module's text.

    path    the file
    names   the kernel's argument for each argument of the call, in order; None leaves one out. By default, the names of the
            function's parameters.
    of      an object and the name of its function, which is replaced in the with block
    call    which call is stored: 1 is the first
    """

    def __init__(self, path, names=None, of=None, call=1):
        self.path, self.names, self.of, self.call = path, names, of, call
        self.calls, self.done = 0, False

    def save(self, **values):
        data = _encode(values)
        _write(self.path, data)
        self.done = True
        print("kernelgate: %s has %d bytes, sha256 %s\n  kernelgate record %s --shape NAME prints its lines for kernel.yaml"
              % (self.path, len(data), hashlib.sha256(data).hexdigest(), self.path), file=sys.stderr)

    def __call__(self, function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            self.calls += 1
            if self.calls == self.call:
                self.save(**self._named(function, args, kwargs))
            return function(*args, **kwargs)

        return recorded

    def _named(self, function, args, kwargs):
        if self.names is not None:
            if len(args) > len(self.names):
                raise TypeError("the call has %d arguments, and names has %d" % (len(args), len(self.names)))
            values = {name: value for name, value in zip(self.names, args) if name is not None}
            values.update({name: value for name, value in kwargs.items() if name in self.names})
            return values
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except ValueError:
            raise TypeError("the parameters of %s have no names that can be read (give names)" % function) from None
        return {name: value for name, value in bound.arguments.items() if _is_tensor(value) or isinstance(value, (bool, int, float))}

    def __enter__(self):
        if self.of is not None:
            holder, name = self.of
            self._was = getattr(holder, name)
            setattr(holder, name, self(self._was))
        return self

    def __exit__(self, kind, *_):
        if self.of is not None:
            setattr(self.of[0], self.of[1], self._was)
        if kind is None and not self.done:
            raise RuntimeError("nothing was recorded in %s: call %d did not happen" % (self.path, self.call))
        return False
