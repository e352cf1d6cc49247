"""Public names of a package that load on first use, so that importing the package stays quick."""

import ast
import importlib
import importlib.abc
import importlib.machinery
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


def load_after(trigger: str, module: str) -> None:
    """Import a module as soon as another one is imported: now, if it is already."""
    if trigger in sys.modules:
        importlib.import_module(module)
    else:
        sys.meta_path.insert(0, _FollowUp(trigger, module))


class _FollowUp(importlib.abc.MetaPathFinder):
    """Finds one module as Python does, and imports another one when it is complete."""

    def __init__(self, trigger: str, module: str) -> None:
        self.trigger, self.module = trigger, module

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Find the trigger, and extend its loader by the other import."""
        if fullname != self.trigger:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_follow(loaded: ModuleType) -> None:
                execute(loaded)
                # Not when it is found: who asks whether a package is there, as transformers does, does not import it.
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                importlib.import_module(self.module)

            vars(spec.loader)["exec_module"] = execute_and_follow
        return spec
