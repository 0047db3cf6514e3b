#!/usr/bin/env python3
"""lint.includes: includes point one way.

A file may include headers of its own layer and of lower layers, never of a higher one:

    cli > conformance > timing > report > harness > device > runtime > emulator > trace > check > async > machine > ptx

Programs that stand beside them, exercises/*/grade.cc and grader/bench/, may include harness and everything below it; nothing
includes them but themselves. Project headers are included by their path from the root, and each
such header must exist. Before it reads the project the script checks itself on planted violations.
"""

import re
import sys

import tree

# Highest first: (layer, folder).
LAYERS = [
    ("cli", "grader/cli"),
    ("conformance", "grader/conformance"),
    ("timing", "grader/timing"),
    ("report", "grader/report"),
    ("harness", "grader/harness"),
    ("device", "grader/device"),
    ("runtime", "grader/runtime"),
    ("emulator", "grader/emulator"),
    ("trace", "grader/emulator/trace"),
    ("check", "grader/emulator/check"),
    ("async", "grader/emulator/async"),
    ("machine", "grader/emulator/machine"),
    ("ptx", "grader/emulator/ptx"),
]
PROGRAMS = re.compile(r"(exercises/[^/]+|grader/bench)/[^/]+")
RANK = {name: len(LAYERS) - i for i, (name, _) in enumerate(LAYERS)}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


def layer_of(path):
    """Layer of a file by its folder, the longest match; "program" for PROGRAMS; None: no layer."""
    if PROGRAMS.fullmatch(path):
        return "program"
    best = max((f for _, f in LAYERS if path.startswith(f + "/")), key=len, default=None)
    return next((n for n, f in LAYERS if f == best), None)


def violations(path, text, exists):
    """Lines "file:line: reason" for each include of `text` that the rule forbids."""
    own = layer_of(path)
    if own is None:
        return [f"{path}:1: belongs to no layer; tools/lint/includes.py lists them"]
    limit = RANK["harness"] if own == "program" else RANK[own]
    found = []
    for match in INCLUDE.finditer(text):
        target = match.group(1)
        line = text.count("\n", 0, match.start()) + 1
        layer = layer_of(target)
        if not exists(target):
            found.append(f'{path}:{line}: "{target}" does not exist (project headers are included by their path from the root)')
        elif layer == "program":
            if target.rpartition("/")[0] != path.rpartition("/")[0]:
                found.append(f"{path}:{line}: nothing outside its folder may include {target}")
        elif layer is None:
            found.append(f'{path}:{line}: "{target}" belongs to no layer')
        elif RANK[layer] > limit:
            found.append(f"{path}:{line}: {own} may not include {layer} ({target})")
    return found


def self_test():
    """Planted includes: what must be reported and what must not."""
    cases = [
        ("grader/emulator/ptx/a.h", "grader/emulator/machine/b.h", True),
        ("grader/emulator/async/a.cc", "grader/emulator/check/b.h", True),
        ("grader/emulator/check/a.cc", "grader/emulator/trace/b.h", True),
        ("grader/emulator/trace/a.cc", "grader/emulator/b.h", True),
        ("grader/device/a.cc", "grader/harness/b.h", True),
        ("grader/report/a.cc", "grader/cli/b.h", True),
        ("exercises/01a-x/grade.cc", "grader/report/b.h", True),
        ("grader/device/a.cc", "grader/conformance/b.h", True),
        ("grader/bench/a.cc", "grader/cli/b.h", True),
        ("grader/runtime/a.cc", "grader/device/b.h", True),
        ("grader/unknown/a.cc", "grader/emulator/ptx/b.h", True),
        ("grader/emulator/ptx/a.cc", "missing.h", True),
        ("grader/emulator/ptx/a.cc", "grader/emulator/ptx/b.h", False),
        ("grader/emulator/a.cc", "grader/emulator/trace/b.h", False),
        ("grader/cli/a.cc", "grader/report/b.h", False),
        ("grader/cli/a.cc", "grader/runtime/b.h", False),
        ("grader/runtime/a.cc", "grader/emulator/b.h", False),
        ("exercises/01a-x/grade.cc", "grader/harness/b.h", False),
        ("exercises/01a-x/grade.cc", "grader/device/b.h", False),
        ("grader/conformance/a.cc", "grader/conformance/b.h", False),
    ]
    for path, target, bad in cases:
        found = violations(path, f'// text\n#include "{target}"\n', lambda t: t != "missing.h")
        if bool(found) != bad:
            return f"{path} including {target}: got {found}, expected {'a violation' if bad else 'none'}"
    if violations("grader/emulator/ptx/a.h", "#include <vector>\n", lambda t: False):
        return "a system header was taken for a project header"
    return None


def main():
    problem = self_test()
    if problem:
        print(f"self-test failed: {problem}")
        return 1
    files = tree.host_sources({".h", ".cc", ".inc"})
    found = []
    for path in files:
        found += violations(tree.relative(path), path.read_text(), lambda t: (tree.ROOT / t).is_file())
    for line in found:
        print(line)
    print(f"{len(files)} files, {len(found)} violations of the include direction")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
