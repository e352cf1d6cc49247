"""Public names of a package that load on first use, so that importing the package stays quick."""

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def load_on_first_use(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    homes: the submodule that defines each name; an empty string for a submodule that is itself public.
    """
    module = sys.modules[package]

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            # Importing the file `build.py` must not hide the function `build` that the package exports.
            if not (isinstance(value, ModuleType) and homes.get(name)):
                super().__setattr__(name, value)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        home = importlib.import_module(f"{package}.{homes[name] or name}")
        value = getattr(home, name) if homes[name] else home
        setattr(module, name, value)
        return value

    module.__class__ = Package
    return load, lambda: sorted({*vars(module), *homes})
