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
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
GENCODE = ["-gencode", "arch=compute_100a,code=compute_100a"]
BUILD_LINE = "build it with nvcc -cudart shared -lineinfo -gencode arch=compute_100a,code=compute_100a"
# Other ways to build the same program: (name, flags that replace -cudart shared and -gencode, exit status, what is said).
BUILDS = [
    ("legacy_launch", ["-cudart", "shared", "-Xcompiler", "-D__NV_LEGACY_LAUNCH", *GENCODE], 0, ""),
    ("per_thread_stream", ["-cudart", "shared", "--default-stream", "per-thread", *GENCODE], 0, ""),
    ("not_compressed", ["-cudart", "shared", "--no-compress", *GENCODE], 0, ""),
    ("hopper", ["-cudart", "shared", "-gencode", "arch=compute_90a,code=compute_90a"], 0, ""),
    ("generic", ["-cudart", "shared", "-gencode", "arch=compute_80,code=compute_80"], 0, "compiled for sm_80"),
    ("several", ["-cudart", "shared", "-gencode", "arch=compute_80,code=[sm_80,compute_80]", *GENCODE], 0, ""),
    ("machine_code", ["-cudart", "shared", "-gencode", "arch=compute_100a,code=sm_100a"], 2, BUILD_LINE),
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

    def run(self, program, arguments=(), options=()):
        """Runs it; (exit status, standard output, standard error, the JSON report)."""
        self.runs += 1
        report = self.out / f"{program.name}{''.join('.' + a.replace('/', '_') for a in (*options, *arguments))}.json"
        done = execute([self.handoff, "run", "--json", str(report), *options, "--", str(program), *arguments])
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

    def refusals(self):
        """What cannot run: one line that says what was meant, if it can be guessed."""
        program = self.out / "vector_add_refusals"
        if not self.build(HERE / "vector_add.cu", program, ["-cudart", "shared", *GENCODE]):
            return
        for arguments, said in (
            (["--chek", "all", "--", f"./{program.name}"], "no option '--chek' of run; did you mean --check?"),
            (["--json=x", "--sed", "1", "--", f"./{program.name}"], "no option '--sed' of run; did you mean --seed?"),
            (["-q", f"./{program.name}"], "no option '-q' of run; ./handoff run --help shows them"),
            (["--", program.name], f"cannot run {program.name}: No such file or directory; did you mean ./{program.name}?"),
            (["--", f"./{program.name}x"], f"cannot run ./{program.name}x: No such file or directory; did you mean ./{program.name}?"),
            (["--", str(HERE / "vector_add.cu")], "vector_add.cu: Permission denied; it is source: build it first, see docs/run.md"),
        ):
            done = execute([self.handoff, "run", *arguments], cwd=self.out)
            self.runs += 1
            ok = done.returncode == 2 and done.stdout == "" and done.stderr.rstrip("\n").endswith(said) and done.stderr.count("\n") == 1
            self.need(ok, f"handoff run {' '.join(arguments)}: {done.returncode}, expected one line that ends with {said!r}\n{done.stdout}{done.stderr}")

    def no_lines(self):
        """A program without -lineinfo: what is found is told, and how its line would be."""
        program = self.out / "no_lines"
        done = execute([self.nvcc, "-std=c++17", "-cudart", "shared", *GENCODE, str(HERE / "data_race.cu"), "-o", str(program)])
        self.need(done.returncode == 0, f"{program.name} does not build:\n{done.stderr}")
        _, _, stderr, report = self.run(program)
        found = report["diagnostics"]
        self.need(found and all(d["line"] == 0 and d["id"] == "data-race" for d in found), f"no_lines: {found}")
        self.need("at an unknown line" in stderr and ":0" not in stderr, f"no_lines: a line 0 is told\n{stderr}")
        self.need(stderr.count("nvcc -lineinfo") == 1, f"no_lines: nothing about -lineinfo\n{stderr}")

    def need(self, holds, what):
        if not holds:
            self.problems.append(what)

    def schedules(self):
        """--schedule all with early_read.cu, which is right on one schedule only, and --trace with it."""
        program = self.out / "early_read_all"
        if not self.build(HERE / "early_read.cu", program, ["-cudart", "shared", *GENCODE]):
            return
        trace = self.out / "early_read.trace"
        status, stdout, stderr, report = self.run(program, options=["--schedule", "all", "--trace", str(trace)])
        self.need(status == 9 and stdout == "a copy\nelement 1: -1\n", f"--schedule all: exit status {status}, output {stdout!r}")
        differs = "schedule eager differs from nominal: exit status 0, was exit status 3; line 2 of the output is 'element 1: 1', was 'element 1: -1'"
        self.need(stderr.count(" differs from ") == 1 and differs in stderr, f"--schedule all does not tell what differs:\n{stderr}")
        names = ["nominal", "lazy", "eager", "reverse", "random (seed 0)"]
        self.need([(r["schedule"], r["exit_status"]) for r in report["runs"]] == [(n, 0 if n == "eager" else 3) for n in names], str(report["runs"]))
        shown = {d["id"]: d["schedules"] for d in report["diagnostics"]}
        wanted = {"async-read-before-complete": names, "copy-in-flight-at-exit": [n for n in names if n != "eager"]}
        self.need(shown == wanted, f"--schedule all: {shown}, expected {wanted}")
        self.need(all(stderr.count(f"error[{i}]  ") == 1 for i in wanted), f"a finding is not told once:\n{stderr}")
        spans = [e for e in json.loads(trace.read_text()) if e["ph"] == "X" and "launch" in e.get("args", {})]
        self.need([e["args"]["schedule"] for e in spans] == names and len({e["pid"] for e in spans}) == 5, f"the trace has the launches {spans}")

    def trace(self):
        """--trace of several launches: they lie behind each other, and as long as the report says."""
        program = self.out / "cluster_traced"
        if not self.build(HERE / "cluster.cu", program, ["-cudart", "shared", *GENCODE]):
            return
        trace = self.out / "cluster.trace"
        _, _, stderr, report = self.run(program, options=["--trace", str(trace)])
        spans = [e for e in json.loads(trace.read_text()) if e["ph"] == "X" and "launch" in e.get("args", {})]
        launches = [la for la in report["launches"] if la["status"] != "refused"]
        self.need(len(launches) > 1 and [e["args"]["launch"] for e in spans] == [la["number"] for la in launches], f"--trace: {spans}\n{stderr}")
        begin = 0
        for e, la in zip(spans, launches):
            self.need(round(e["ts"] * 1000) == begin and round(e["dur"] * 1000) == la["modeled_cycles"], f"--trace: {e} begins at {begin}: {la}")
            begin += la["modeled_cycles"]

    def signals(self):
        """A signal in the middle of a launch: what was found is told, and neither files nor processes are left."""
        program = self.out / "interrupted_endless"
        if not self.build(HERE / "interrupted.cu", program, ["-cudart", "shared", *GENCODE]):
            return
        for name, number, whom in (("Ctrl-C", signal.SIGINT, os.killpg), ("SIGTERM", signal.SIGTERM, os.kill), ("SIGKILL", signal.SIGKILL, os.kill)):
            folder = self.out / f"tmp-{name}"
            folder.mkdir(exist_ok=True)
            report = folder.with_suffix(".json")
            command = [self.handoff, "run", "--json", str(report), "--schedule", "all" if name == "Ctrl-C" else "nominal", "--", str(program)]
            handoff = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       start_new_session=True, env=os.environ | {"TMPDIR": str(folder)},
                                       # A shell starts what it runs behind its back with SIGINT ignored.
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            self.runs += 1
            child = int(handoff.stdout.readline().split()[1])
            whom(handoff.pid, number)
            _, stderr = handoff.communicate(timeout=120)
            for _ in range(200):
                if not pathlib.Path(f"/proc/{child}").exists():
                    break
                time.sleep(0.05)
            self.need(not pathlib.Path(f"/proc/{child}").exists(), f"{name}: the program outlives handoff")
            self.need(not list(folder.iterdir()), f"{name}: files are left behind: {list(folder.iterdir())}")
            self.need("data-race" in stderr, f"{name}: what was found is not told:\n{stderr}")
            if number != signal.SIGKILL:
                self.need(handoff.returncode == 9 and f"ended with signal {number.value}" in stderr, f"{name}: {handoff.returncode}\n{stderr}")
                launches = json.loads(report.read_text())["launches"]
                self.need([la["status"] for la in launches] == ["interrupted"], f"{name}: {launches}")

    def guide(self):
        """The examples of docs/run.md: each block of C++ is the program that the text before it names, each command gives what is shown."""
        folder = self.out / "guide"
        folder.mkdir(exist_ok=True)
        text = (HERE.parents[2] / "docs" / "run.md").read_text()
        commands = 0
        for before, kind, block in re.findall(r"((?:(?!```).)*?)```(\w*)\n(.*?)```", text, re.S):
            if kind == "cpp":
                name = re.findall(r"`(\w+)\.cu`", before)[-1]
                source = folder / f"{name}.cu"
                source.write_text(block)
                built = execute([self.nvcc, "-std=c++17", "-lineinfo", "-g", "-cudart", "shared", *GENCODE, f"{name}.cu", "-o", name], cwd=folder)
                self.need(built.returncode == 0, f"docs/run.md: {name}.cu does not compile:\n{built.stderr}")
            if not block.startswith("$ "):
                continue
            status = 0
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
                words = command.split()
                if words[0] == "cat":
                    (folder / words[1]).write_text(shown)
                elif command == "echo $?":
                    self.need(shown == f"{status}\n", f"docs/run.md: exit status {status}, the text has {shown}")
                else:
                    done = execute([self.handoff if words[0] == "./handoff" else words[0], *words[1:]], cwd=folder)
                    status, commands = done.returncode, commands + 1
                    self.need(done.stdout + done.stderr == shown, f"docs/run.md: {command} gives\n{done.stdout}{done.stderr}\nthe text has\n{shown}")
        self.need(commands >= 3, f"docs/run.md has {commands} commands")
        self.runs += commands
        (folder / "wrong.txt").write_text("data-race\ndata-race race.cu:5\n")
        wrong = execute([self.handoff, "run", "--suppress", "wrong.txt", "--", "./race"], cwd=folder)
        said = "wrong.txt:2: expected '@ FILE:LINE' or 'in KERNEL' after 'data-race', got 'race.cu:5'"
        self.need(wrong.returncode == 2 and said in wrong.stderr and wrong.stdout == "", f"--suppress with a wrong line: {wrong}")

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
            more = [tests.builds, tests.exports, tests.schedules, tests.trace, tests.signals, tests.guide, tests.refusals, tests.no_lines]
            jobs += [pool.submit(test) for test in more]
        for job in jobs:
            job.result()
    for problem in tests.problems:
        print(problem)
    print(f"{len(sources)} programs, {tests.runs} runs, {len(tests.problems)} problems")
    return 1 if tests.problems or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
