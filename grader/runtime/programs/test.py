#!/usr/bin/env python3
"""run.programs: builds each *.cu beside this file with nvcc, runs it with `handoff run`, and compares what its head comment says.

    // nvcc: FLAGS         more flags; -gencode replaces the usual one, -g comes in place of nothing
    // run: ARGUMENTS      one run for each such line; without one, one run without arguments
    // exit: N             of `handoff run`; without it 0
    // stdout: TEXT        the program's output holds it (\\n: a new line)
    // stderr: TEXT        what `handoff run` says holds it
    // expect: ID @ MARK   exactly these diagnostics, at the lines that end with "// LINE MARK" (0: a line that is not known)
    // related: MARK       some diagnostic names that line, too

Where there is NAME.txt (NAME.ARGUMENTS.txt), the program's output is that file's. `handoff run` otherwise finds nothing. Exit status 77:
there is no nvcc."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
GENCODE = ["-gencode", "arch=compute_100a,code=compute_100a"]
BUILD_LINE = "build it with nvcc -cudart shared -lineinfo -gencode arch=compute_100a,code=compute_100a"
# Other ways to build the same program: (name, flags that replace -cudart shared and -gencode, exit status, what is said).
BUILDS = [
    ("legacy_launch", ["-cudart", "shared", "-Xcompiler", "-D__NV_LEGACY_LAUNCH", *GENCODE], 0, ""),
    ("per_thread_stream", ["-cudart", "shared", "--default-stream", "per-thread", *GENCODE], 0, ""),
    ("not_compressed", ["-cudart", "shared", "--no-compress", *GENCODE], 0, ""),
    ("hopper", ["-cudart", "shared", "-gencode", "arch=compute_90a,code=compute_90a"], 0, ""),
    ("generic", ["-cudart", "shared", "-gencode", "arch=compute_80,code=compute_80"], 0, ""),
    ("several", ["-cudart", "shared", "-gencode", "arch=compute_80,code=[sm_80,compute_80]", *GENCODE], 0, ""),
    ("machine_code", ["-cudart", "shared", "-gencode", "arch=compute_100a,code=sm_100a"], 3, BUILD_LINE),
    ("static_runtime", ["-cudart", "static", *GENCODE], None, "-cudart shared"),
]


def find_nvcc():
    """Path of nvcc, or None."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")


def directives(source):
    """The head comment's lines "// KEY: VALUE" as a list of pairs, and the marks "// LINE MARK" with their line numbers."""
    lines = source.read_text().splitlines()
    head = []
    for line in lines:
        if not line.startswith("//"):
            break
        match = re.match(r"// (nvcc|run|exit|stdout|stderr|expect|related): (.*)", line)
        if match:
            head.append((match.group(1), match.group(2)))
    marks = {m.group(1): i + 1 for i, line in enumerate(lines) if (m := re.search(r"// LINE (\w+)$", line))}
    return head, marks


def execute(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, **options)


class Tests:
    """What is built, run and compared; every problem is a line in `problems`."""

    def __init__(self, nvcc, handoff, out):
        self.nvcc, self.handoff, self.out = nvcc, handoff, out
        self.problems = []
        self.runs = 0

    def build(self, source, program, flags):
        """True if nvcc made `program`; a program that is newer than its sources is kept."""
        sources = [source, HERE / "check.h", HERE.parent / "cuda_abi.h", pathlib.Path(__file__)]
        if program.exists() and all(program.stat().st_mtime > s.stat().st_mtime for s in sources):
            return True
        done = execute([self.nvcc, "-std=c++17", "-lineinfo", *flags, str(source), "-o", str(program)])
        if done.returncode != 0:
            self.problems.append(f"{program.name}: nvcc failed:\n{done.stdout}{done.stderr}")
        return done.returncode == 0

    def run(self, program, arguments=()):
        """Runs it; (exit status, standard output, standard error, the JSON report)."""
        self.runs += 1
        report = self.out / f"{program.name}{''.join('.' + a for a in arguments)}.json"
        done = execute([self.handoff, "run", "--json", str(report), "--", str(program), *arguments])
        return done.returncode, done.stdout, done.stderr, json.loads(report.read_text())

    def check(self, source):
        """One program as its head says."""
        head, marks = directives(source)

        def values(key):
            return [v for k, v in head if k == key]

        more = [f for v in values("nvcc") for f in v.split()]
        flags = ["-cudart", "shared", *more] + ([] if "-gencode" in more else GENCODE)
        program = self.out / source.stem
        if not self.build(source, program, flags):
            return
        for line in values("run") or [""]:
            arguments = line.split()
            name = f"{source.name} {line}".strip()
            status, stdout, stderr, report = self.run(program, arguments)

            def expect(holds, what):
                if not holds:
                    self.problems.append(f"{name}: {what}\n--- stdout\n{stdout}--- stderr\n{stderr}")

            wanted = int((values("exit") or ["0"])[0])
            expect(status == wanted == report["exit_status"], f"exit status {status}, expected {wanted}")
            for key, text in (("stdout", stdout), ("stderr", stderr)):
                for value in values(key):
                    # Diagnostics are wrapped at the terminal's width.
                    unwrapped = " ".join(text.split()) if key == "stderr" else text
                    expect(value.replace("\\n", "\n") in unwrapped, f"{key} does not hold: {value}")
            found = [(d["id"], d["line"]) for d in report["diagnostics"]]
            if wanted == 0:
                expect(not found, f"it found {found}")
            if values("expect"):
                listed = [tuple(v.split(" @ ")) for v in values("expect")]
                expect(found == [(i, marks.get(m, 0)) for i, m in listed], f"it found {found}, expected {listed}")
            related = {r["line"] for d in report["diagnostics"] for r in d["related"]}
            for mark in values("related"):
                expect(marks[mark] in related, f"no diagnostic names line {marks[mark]}, {mark}; some name {sorted(related)}")
            answers = source.with_suffix("".join("." + a for a in arguments) + ".txt")
            if answers.exists():
                expect(stdout == answers.read_text(), f"the output is not that of {answers.name}")

    def builds(self):
        """vector_add.cu, built in other ways."""
        for name, flags, wanted, said in BUILDS:
            program = self.out / f"vector_add_{name}"
            if not self.build(HERE / "vector_add.cu", program, flags):
                continue
            status, stdout, stderr, _ = self.run(program)
            ok = (status != 0 if wanted is None else status == wanted) and said in stderr
            ok = ok and (wanted != 0 or "sums are right" in stdout)
            if not ok:
                self.problems.append(f"{program.name}: exit status {status}, expected {wanted} and {said!r}\n{stdout}{stderr}")

    def exports(self):
        """Every call of the toolkit's libraries is there, and nothing else is."""

        def names(library):
            listed = execute(["nm", "-D", "--defined-only", str(library)], check=True).stdout.split("\n")
            return {line.split()[-1].split("@")[0] for line in listed if line and line.split()[-2] in "TWti"}

        toolkit = pathlib.Path(self.nvcc).resolve().parent.parent
        theirs = set()
        for library in (toolkit / "lib64/libcudart.so.13", toolkit / "lib64/stubs/libcuda.so"):
            theirs |= {n for n in names(library) if re.match(r"(__cuda|cuda|cu[A-Z])", n)} if library.exists() else set()
        ours = names(pathlib.Path(self.handoff).resolve().parent / "cuda/libcudart.so.13")
        strange = [n for n in ours if not re.match(r"(__cuda|cuda|cu[A-Z])", n)]
        if strange:
            self.problems.append(f"the library exports names that are not of the CUDA API: {strange}")
        # A later toolkit may have more.
        if "V13.0" in execute([self.nvcc, "--version"]).stdout and not theirs <= ours:
            self.problems.append(f"the library does not export {sorted(theirs - ours)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--handoff", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", help="programs whose name holds this")
    options = parser.parse_args()
    nvcc = find_nvcc()
    if nvcc is None:
        print("skipped: nvcc was not found")
        return 77
    options.out.mkdir(parents=True, exist_ok=True)
    tests = Tests(nvcc, options.handoff, options.out)
    sources = [s for s in sorted(HERE.glob("*.cu")) if options.only in s.name]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(tests.check, s) for s in sources]
        if not options.only:
            jobs += [pool.submit(tests.builds), pool.submit(tests.exports)]
        for job in jobs:
            job.result()
    for problem in tests.problems:
        print(problem)
    print(f"{len(sources)} programs, {tests.runs} runs, {len(tests.problems)} problems")
    return 1 if tests.problems or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
