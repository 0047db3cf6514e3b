#!/usr/bin/env python3
"""lint.clang_tidy: clang-tidy over every host source in compile_commands.json but the unit tests, one process a core. The tests are
half of the text and would take as long again; name one as FILE to read it.

A file that passed is not read again until it, a project header that it reaches, its compile command, .clang-tidy or clang-tidy changes:
the stamps lie in BUILD/clang-tidy/, named by a hash of all of those. Only a clean file leaves a stamp.

    clang_tidy.py --build build/default [--jobs N] [--all] [FILE…]      --all ignores the stamps

HANDOFF_CLANG_TIDY_SHARE=K/N reads one N-th of the files, chosen by their names: a machine that starts without stamps each time and has
little of it (.ci/run) takes another share each day.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time
import zlib

import tree

VERSION = "14"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
# Diagnostics of the analysis itself; "N warnings generated." and the like are noise.
PROBLEM = re.compile(r"^.*(warning|error): .*\[.*\]$|^.*error: ")


def find_tool():
    """(path, version text) of clang-tidy 14, or (None, reason)."""
    seen = []
    for name in (os.environ.get("HANDOFF_CLANG_TIDY"), f"clang-tidy-{VERSION}", "clang-tidy"):
        path = shutil.which(name) if name else None
        if path:
            text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            found = re.search(r"version (\d+)\S*", text)
            if found and found.group(1) == VERSION:
                return path, found.group(0)
            seen.append(f"{path} is {found.group(0) if found else 'of an unknown version'}")
    return None, "; ".join(seen) or f"not found (apt install clang-tidy-{VERSION})"


def reached(path, cache):
    """The file and every project header that it includes, directly or not."""
    todo, seen = [path], set()
    while todo:
        file = todo.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        if file not in cache:
            text = file.read_bytes()
            includes = INCLUDE.findall(text.decode(errors="replace"))
            cache[file] = (hashlib.sha256(text).hexdigest(), [tree.ROOT / t for t in includes])
        todo += cache[file][1]
    return sorted(seen)


# Unit tests, and the second copies of loops that a *_base.cc compiles too.
NOT_READ = ("_test.cc", "_avx2.cc")


def stamp_of(entry, path, common, cache):
    """Name of the stamp that says "this very text passed"."""
    command = entry.get("command") or shlex.join(entry["arguments"])
    lines = [common, command] + [f"{tree.relative(f)} {cache[f][0]}" for f in reached(path, cache)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def check(tool, build, path):
    """Runs clang-tidy on one file: (path, passed, output, seconds)."""
    start = time.monotonic()
    # The compile commands are g++'s: options that clang does not know must not count as findings.
    done = subprocess.run([tool, "-p", str(build), "--quiet", "--extra-arg=-Wno-unknown-warning-option",
                           "--extra-arg=-Wno-ignored-optimization-argument", "--extra-arg=-O0", str(path)],
                          capture_output=True, text=True, cwd=tree.ROOT)
    text = done.stdout.strip()
    if done.returncode and not PROBLEM.search(text):
        text += "\n" + done.stderr.strip()
    return path, done.returncode == 0, text, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--slowest", type=int, default=0, metavar="N")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()

    tool, version = find_tool()
    if not tool:
        print(f"skipped: clang-tidy {VERSION}: {version}")
        return tree.SKIP
    database = args.build / "compile_commands.json"
    if not database.is_file():
        print(f"{database} does not exist: configure first (cmake --preset default)")
        return 1
    wanted = {p.resolve() for p in args.files} or {p for p in tree.host_sources({".cc"}) if not p.name.endswith(NOT_READ)}
    share = os.environ.get("HANDOFF_CLANG_TIDY_SHARE")
    if share and not args.files:
        part, parts = (int(x) for x in share.split("/"))
        wanted = {p for p in wanted if zlib.crc32(tree.relative(p).encode()) % parts == part % parts}
        print(f"share {share} of the files", flush=True)
    entries = {}
    for entry in json.loads(database.read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if path in wanted:
            entries.setdefault(path, entry)

    stamps = args.build / "clang-tidy"
    stamps.mkdir(exist_ok=True)
    common = version + (tree.ROOT / ".clang-tidy").read_text() + (tree.ROOT / "exercises/.clang-tidy").read_text() + pathlib.Path(__file__).read_text()
    cache, todo = {}, {}
    for path, entry in sorted(entries.items()):
        stamp = stamps / stamp_of(entry, path, common, cache)
        if args.all or not stamp.exists():
            todo[path] = stamp

    # Largest first: a long file that starts last would run alone.
    order = sorted(todo, key=lambda p: p.stat().st_size, reverse=True)
    failed, times, seen = 0, [], set()
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, args.jobs)) as pool:
        for done in concurrent.futures.as_completed([pool.submit(check, tool, args.build, p) for p in order]):
            path, passed, text, seconds = done.result()
            times.append((seconds, tree.relative(path)))
            if passed:
                todo[path].touch()
                continue
            failed += 1
            if text not in seen:  # a finding in a header shows in every file that includes it
                seen.add(text)
                print(text, flush=True)
    for seconds, name in sorted(times, reverse=True)[:args.slowest]:
        print(f"{seconds:6.1f} s  {name}")
    print(f"{len(entries)} files: {len(entries) - len(todo)} unchanged since they passed, {len(todo)} read, {failed} with findings")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
