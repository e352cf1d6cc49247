"""Public names of a package that load on first use, so that importing the package stays quick."""

import ast
import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def load_on_first_use(
    package: str, homes: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    homes: the submodule that defines each name, an empty string for a public submodule; if omitted, what the package
    imports relatively under TYPE_CHECKING.
    """
    module = sys.modules[package]
    names = _find_type_imports(module) if homes is None else homes

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            # Importing the file `build.py` must not hide the function `build` that the package exports.
            if not (isinstance(value, ModuleType) and names.get(name)):
                super().__setattr__(name, value)

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        home = importlib.import_module(f"{package}.{names[name] or name}")
        value = getattr(home, name) if names[name] else home
        setattr(module, name, value)
        return value

    module.__class__ = Package
    return load, lambda: sorted({*vars(module), *names})


def _find_type_imports(module: ModuleType) -> dict[str, str]:
    source = module.__loader__.get_source(module.__name__)  # type: ignore[union-attr]
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.level == 1]
    return {alias.name: node.module or "" for node in imports for alias in node.names}
