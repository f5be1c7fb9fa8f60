"""Prints the longest chain of imports inside each package of src, or the level of each module.

    python3 tools/import_levels.py                       the longest chain of each package
    python3 tools/import_levels.py com_identification    all its modules by level, with imports

A module that imports none of its package has level 1, any other one more than the highest that it
imports, also within functions and for types alone. __init__.py does not count.
"""

import ast
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"


def find_imports(package: Path) -> dict[str, set[str]]:
    """Lists the modules of a package.

    Args:
        package: Its folder, with __init__.py.

    Returns:
        By module, those of the same package that it imports; names without the package's.
    """
    files = {
        ".".join(path.relative_to(package).with_suffix("").parts): path
        for path in sorted(package.rglob("*.py"))
        if path.name != "__init__.py"
    }
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        found[module] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                base = node.module.removeprefix(package.name).removeprefix(".")
                if not f"{node.module}.".startswith(f"{package.name}."):
                    continue
                for alias in node.names:
                    names = (f"{base}.{alias.name}".lstrip("."), base)
                    found[module] |= {name for name in names[:1] if name in files} or {
                        name for name in names[1:] if name in files
                    }
        found[module].discard(module)
    return found


def chain(
    module: str, imports: dict[str, set[str]], above: tuple[str, ...] = ()
) -> list[str]:
    """Finds the longest chain of imports below a module.

    Args:
        module: Where it begins.
        imports: Of the package, see find_imports().
        above: Modules that lead here, which are not followed again.
    """
    below = [
        chain(name, imports, (*above, module))
        for name in sorted(imports[module])
        if name not in above
    ]
    return [module, *max(below, key=len, default=[])]


def main() -> int:
    """Prints what the arguments ask for."""
    for package in sorted(SOURCES.glob("com_*/com_*")):
        if not (package / "__init__.py").is_file() or sys.argv[1:] not in (
            [],
            [package.name],
        ):
            continue
        imports = find_imports(package)
        chains = {module: chain(module, imports) for module in imports}
        longest = max(chains.values(), key=len)
        print(f"{package.name}: {len(longest)} levels: {' <- '.join(longest)}")
        if sys.argv[1:]:
            for module in sorted(chains, key=lambda name: (len(chains[name]), name)):
                used = ", ".join(sorted(imports[module]))
                print(f"{len(chains[module]):3} {module}: {used or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
