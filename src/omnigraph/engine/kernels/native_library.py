"""Loops as machine code: compiled by numba, stored as one object file, loaded without numba.

Importing numba takes ten times as long as loading a finished object with the linker of LLVM, which numba depends on.
A loop is a Python function over pointers and numbers. It allocates nothing and raises nothing, so its machine code
refers to no other library. `error_model="numpy"` omits the test of a division by zero; no option changes the order or
the rounding of floating-point operations.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from omnigraph.engine.kernels.addresses import address_of

_MAGIC = b"omnigraph kernels 1\n"
_DIGEST_BYTES = 32
_BINDING = "llvmlite.binding"
"""The interface of LLVM; it and numba are imported when they are used, because that takes long."""


class Loop(NamedTuple):
    """A loop and the types of its parameters: `int64`, `int64*` for an array, `int64&` for an array it writes to.

    Every loop returns an integer of 64 bits.
    """

    function: Callable[..., int]
    parameters: tuple[str, ...]


class Unusable(RuntimeError):
    """The object file cannot be used in this process."""


class NativeLibrary:
    """The loaded loops."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def pointer(self, name: str, loop: Loop) -> Callable[..., int]:
        """Return a loop that takes addresses and numbers; the interpreter lock is released while it runs."""
        address = self._engine.get_function_address(name)
        if not address:
            raise Unusable(f"the object has no function '{name}'")
        types = [ctypes.c_void_p if kind[-1] in "*&" else getattr(ctypes, _SCALARS[kind]) for kind in loop.parameters]
        native = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(address)
        # The engine owns the memory of the machine code.
        native.engine = self._engine  # type: ignore[attr-defined]
        return native

    def function(self, name: str, loop: Loop) -> Callable[..., int]:
        """Return a loop that takes arrays and numbers."""
        native = self.pointer(name, loop)
        count = len(loop.parameters)
        arrays = [
            (at, np.dtype(kind[:-1]), kind[-1] == "&") for at, kind in enumerate(loop.parameters) if kind[-1] in "*&"
        ]

        def call(*arguments: Any) -> int:
            if len(arguments) != count:
                raise TypeError(f"the loop '{name}' takes {count} arguments, not {len(arguments)}")
            values = [*arguments]
            for at, dtype, written in arrays:
                values[at] = address_of(values[at], dtype, written=written)
            return native(*values)

        return call


_INLINED = (f"{__package__}.heaps", f"{__package__}.packed_bits")
"""Modules whose functions loops call."""
_SCALARS = {"int64": "c_int64", "float64": "c_double"}
_LLVM = {"int64": "i64", "float64": "double"}


def compile_object(loops: Mapping[str, Loop]) -> bytes:
    """Compile loops for the processor of this machine; the result is the content of an object file."""
    binding: Any = import_module(_BINDING)

    texts = [_llvm_text(name, loop) for name, loop in loops.items()]
    _initialize(binding)
    modules = [binding.parse_assembly(text) for text in texts]
    first, *others = modules
    for other in others:
        first.link_in(other)
    first.verify()
    undefined = [one.name for one in first.functions if one.is_declaration and not one.name.startswith("llvm.")]
    if undefined:
        # The linker would end the process.
        raise Unusable(f"the code refers to {', '.join(undefined)}")
    code: bytes = _target_machine(binding, opt=3).emit_object(first)
    body = json.dumps(_host(binding)).encode() + b"\n" + code
    return _MAGIC + hashlib.sha256(body).digest() + body


def _llvm_text(name: str, loop: Loop) -> str:
    """Return the optimised LLVM code of a loop, with its function under a given name."""
    numba: Any = import_module("numba")
    njit, types = numba.njit, numba.types

    scope = dict(loop.function.__globals__)
    for other, value in scope.items():
        if isinstance(value, FunctionType) and value.__module__ in _INLINED:
            scope[other] = njit(nogil=True, error_model="numpy")(value)
    own = FunctionType(loop.function.__code__, scope, name)
    parameters = [
        types.CPointer(getattr(types, kind[:-1])) if kind[-1] in "*&" else getattr(types, kind)
        for kind in loop.parameters
    ]
    # Without wrappers, which refer to the interpreter and to numba.
    options = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = njit(**options)(own)
    dispatcher.compile(types.int64(*parameters))
    (signature,) = dispatcher.signatures
    symbol = dispatcher.overloads[signature].fndesc.llvm_func_name
    text = str(dispatcher.inspect_llvm(signature)).replace(symbol, f"{name}.loop")
    return text + _entry_text(name, loop)


def _entry_text(name: str, loop: Loop) -> str:
    """Return a function with the calling convention of C that calls a loop with that of numba.

    numba adds two parameters, for the result and for an exception, and returns a status. A loop raises nothing.
    """
    kinds = ["ptr" if kind[-1] in "*&" else _LLVM[kind] for kind in loop.parameters]
    parameters = ", ".join(f"{kind} %p{at}" for at, kind in enumerate(kinds))
    return f"""
define i64 @{name}({parameters}) {{
  %result = alloca i64
  %error = alloca ptr
  %status = call i32 @{name}.loop(ptr %result, ptr %error, {parameters})
  %value = load i64, ptr %result
  ret i64 %value
}}
"""


def load_object(data: bytes) -> NativeLibrary:
    """Load an object file; raises `Unusable` if it is damaged or was made for another processor."""
    start = len(_MAGIC) + _DIGEST_BYTES
    body = data[start:]
    if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
        raise Unusable("the object file is damaged")
    binding: Any = import_module(_BINDING)

    head, _, code = body.partition(b"\n")
    _initialize(binding)
    if json.loads(head) != _host(binding):
        raise Unusable("the object file was made for another processor")
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target_machine(binding))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return NativeLibrary(engine)


def _initialize(binding: Any) -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def _target_machine(binding: Any, **options: Any) -> Any:
    target = binding.Target.from_default_triple()
    host = {"cpu": binding.get_host_cpu_name(), "features": binding.get_host_cpu_features().flatten()}
    return target.create_target_machine(**host, reloc="default", codemodel="jitdefault", jit=True, **options)


def _host(binding: Any) -> list[str]:
    """The machine for which code is compiled."""
    features = binding.get_host_cpu_features().flatten()
    return [binding.get_default_triple(), binding.get_host_cpu_name(), features]
