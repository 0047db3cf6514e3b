#!/usr/bin/env python3
"""docs.doxygen_no_warnings: builds the documentation site and fails when Doxygen warns.

    doxygen.py DOXYGEN DOXYFILE OUTPUT      the site is OUTPUT/html/index.html, the warnings OUTPUT/warnings.log
"""

import collections
import pathlib
import shutil
import subprocess
import sys

import tree


def main():
    doxygen, doxyfile, output = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    shutil.rmtree(output / "html", ignore_errors=True)  # pages of files that are gone would stay
    output.mkdir(parents=True, exist_ok=True)
    log = output / "warnings.log"
    log.unlink(missing_ok=True)
    done = subprocess.run([doxygen, doxyfile], cwd=tree.ROOT, capture_output=True, text=True)
    warnings = log.read_text().replace(f"{tree.ROOT}/", "").splitlines() if log.is_file() else []
    if done.returncode:
        print(done.stdout[-2000:] + done.stderr[-2000:])
        print(f"doxygen ended with status {done.returncode}")
        return 1
    index = output / "html" / "index.html"
    if not index.is_file():
        print(f"{index} was not written")
        return 1
    print("\n".join(warnings))
    files = collections.Counter(line.split(":")[0] for line in warnings if line[:1].strip() and ":" in line)
    for name, count in files.most_common():
        print(f"{count:5} warnings  {name}")
    print(f"{index}: {len(warnings)} lines of warnings")
    return 1 if warnings else 0


if __name__ == "__main__":
    sys.exit(main())
