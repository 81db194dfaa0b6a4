"""Modules that a manifest replaces while a kernel's file is imported.

skip_init names packages of the repository whose __init__.py is not run. stubs names modules that are imported and not used:
each is a stand-in whose attributes are stand-ins too. A stand-in may be called, subclassed and used as a decorator, because
modules do that at their import. It has no value: whoever asks for one gets an error that names it.
"""
import importlib.machinery
import importlib.util
import os
import sys
import types


def install(skip, stubs, fail):
    if skip:
        sys.meta_path.insert(0, SkipInit(skip, fail))
    if stubs:
        sys.meta_path.insert(0, Stubs(stubs))


class SkipInit:
    """Finds the packages as others do, and leaves out their __init__.py."""

    def __init__(self, names, fail):
        self.names, self.fail, self.found = names, fail, set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.names:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or not spec.submodule_search_locations:
            return None
        return self.without(name, spec.origin, list(spec.submodule_search_locations))

    def without(self, name, origin, places):
        self.found.add(name)
        spec = importlib.machinery.ModuleSpec(name, Nothing(), origin=origin, is_package=True)
        spec.submodule_search_locations = places
        return spec


class Nothing:
    """Runs no code in a new module."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        pass


def skipped(name, folder):
    """The spec of a package of the source, if its __init__.py is to be skipped."""
    for finder in sys.meta_path:
        if isinstance(finder, SkipInit) and name in finder.names:
            return finder.without(name, os.path.join(folder, "__init__.py"), [folder])
    return None


def unmet():
    """The packages of skip_init that nobody imported."""
    return [n for f in sys.meta_path if isinstance(f, SkipInit) for n in f.names if n not in f.found]


class Stubs:
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if any(name == n or name.startswith(n + ".") for n in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return StubModule(spec.name)

    def exec_module(self, module):
        pass


class StubModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__name__}.{name}")

    def __deepcopy__(self, memo):  # Triton copies the globals that a kernel names
        return self


class Stub:
    """Something of a stubbed module."""

    def __init__(self, path):
        self.__dict__["_path"] = path

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Stub(f"{self._path}.{name}")

    def __setattr__(self, name, value):
        pass

    def __deepcopy__(self, memo):
        return self

    def __call__(self, *arguments, **named):
        # A decorator leaves what it decorates as it is.
        if len(arguments) == 1 and not named and callable(arguments[0]) and not isinstance(arguments[0], Stub):
            return arguments[0]
        return Stub(f"{self._path}()")

    def __mro_entries__(self, bases):
        return ()

    def __getitem__(self, key):
        return self

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def __repr__(self):
        return f"<stub {self._path}>"


def valueless(operation):
    def refuse(self, *_):
        raise TypeError(f"{self._path} is a stub of the manifest and has no value, which {operation} asks for "
                        "(take its module out of stubs, and install it on the runner or write an entry file that gives the value)")
    return refuse


for names, operation in ((("bool",), "a condition"), (("lt", "le", "gt", "ge", "contains"), "a comparison"), (("iter", "len", "next"), "a loop"),
                         (("int", "float", "index", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "neg"), "arithmetic")):
    for name in names:
        setattr(Stub, f"__{name}__", valueless(operation))
