#!/usr/bin/env python3
"""lint.clang_format: host C++ is formatted as .clang-format says. `clang_format.py --fix` rewrites the files.

Tables (*.inc) keep the layout their columns need. Version 14 decides, since versions differ: $HANDOFF_CLANG_FORMAT, clang-format-14,
or clang-format where that is version 14.
"""

import os
import re
import shutil
import subprocess
import sys

import tree

VERSION = "14"


def find_tool():
    """Path of clang-format 14, or None and the reason."""
    seen = []
    for name in (os.environ.get("HANDOFF_CLANG_FORMAT"), f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name) if name else None
        if path:
            text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            found = re.search(r"version (\d+)", text)
            if found and found.group(1) == VERSION:
                return path, None
            seen.append(f"{path} is version {found.group(1) if found else '?'}")
    return None, "; ".join(seen) or f"not found (apt install clang-format-{VERSION})"


def main():
    tool, why = find_tool()
    if not tool:
        print(f"skipped: clang-format {VERSION}: {why}")
        return tree.SKIP
    files = [str(p) for p in tree.host_sources({".h", ".cc"})]
    if "--fix" in sys.argv[1:]:
        return subprocess.run([tool, "--style=file", "-i", *files]).returncode
    done = subprocess.run([tool, "--style=file", "--dry-run", "--Werror", *files], capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(.*?):\d+:\d+: error: ", done.stderr, re.MULTILINE)))
    if done.returncode:
        print(done.stderr[:4000])
        print("\n".join(f"not formatted: {os.path.relpath(p, tree.ROOT)}" for p in wrong))
        print("cure: python3 tools/lint/clang_format.py --fix")
    print(f"{len(files)} files, {len(wrong)} not formatted")
    return 1 if done.returncode or not files else 0


if __name__ == "__main__":
    sys.exit(main())
