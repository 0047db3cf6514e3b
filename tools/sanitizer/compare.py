#!/usr/bin/env python3
"""What NVIDIA's compute-sanitizer says about the wrong and the right submissions, beside the checker's own verdicts.

    compare.py run        on a machine with a GPU (sm_90 or newer), nvcc and compute-sanitizer: compiles all submissions and runs
                          each alone and under the sanitizer's tools; goes on where an earlier call stopped
    compare.py verdicts   on any machine with nvcc: grades all submissions on the emulator
    compare.py table      on any machine: writes the comparison into docs/checker.md

All three share one file of results, docs/results/sanitizer-*.json (--results). Submissions are grader/mutants/*/*.cu (wrong; the head
says which diagnosis and line is expected), solutions/*/kernel.cu and grader/variants/*/*.cu (right).

Runs of each submission (runner.cu: several cases of the exercise's harness, random input, poisoned output, exact check):
    plain                the kernel alone
    racecheck            compute-sanitizer --tool racecheck
    racecheck+deadlock   the same with --racecheck-deadlock-timeout 2000 --racecheck-continue-on-deadlock no
    synccheck, memcheck  compute-sanitizer --tool …
A run that exceeds its time limit is killed: a hang. Exit status: 0 done, 1 not everything was run, 2 could not start (the reason on
one line).
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADING = "## Beside compute-sanitizer, on an H200"
BEGIN = "<!-- begin: tools/sanitizer/compare.py table -->"
END = "<!-- end: tools/sanitizer/compare.py table -->"

EXPECT = re.compile(r"^// expect: (?P<id>[a-z][a-z0-9-]*) @ (?P<line>[0-9]+)$", re.MULTILINE)
ARCH = "sm_90a"
TOOLS = {
    "racecheck": ["--tool", "racecheck"],
    "racecheck+deadlock": ["--tool", "racecheck", "--racecheck-deadlock-timeout", "2000", "--racecheck-continue-on-deadlock", "no"],
    "synccheck": ["--tool", "synccheck"],
    "memcheck": ["--tool", "memcheck"],
}
RUNS = ["plain", *TOOLS]
COMMON = ["--print-limit", "20"]


class Refused(Exception):
    """Nothing can be done; the text is the reason, on one line."""


class Submission:
    """One file and what is known about it before anything runs."""

    def __init__(self, path):
        self.path = path
        self.name = path.relative_to(ROOT).as_posix()
        self.exercise = path.parent.name
        self.right = not self.name.startswith("grader/mutants/")
        self.expected, self.line = None, None
        if not self.right:
            head = EXPECT.search(path.read_text(encoding="utf-8"))
            if head is None:
                raise Refused(f"{self.name}: no line `// expect: ID @ LINE`")
            self.expected, self.line = head["id"], int(head["line"])

    def cubin(self, work):
        return work / "cubin" / (self.name.replace("/", "+") + ".cubin")


def submissions(pattern):
    files = [p for glob in ("grader/mutants/*/*.cu", "solutions/*/kernel.cu", "grader/variants/*/*.cu") for p in sorted(ROOT.glob(glob))]
    known = set(re.findall(r'\{"(\d\d[a-z])",', (ROOT / "tools/sanitizer/runner.cu").read_text(encoding="utf-8")))
    found = [Submission(p) for p in files if p.parent.name[:3] in known]
    found = [s for s in found if re.search(pattern, s.name)]
    if not found:
        raise Refused(f"no submission matches {pattern!r}")
    return found


class Results:
    """The file of results: {about: {…}, runs: {file: {run: {…}}}, emulator: {file: {…}}}. Written whole or not at all."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.data = {"about": {}, "runs": {}, "emulator": {}}
        if path.is_file():
            try:
                self.data.update(json.loads(path.read_text(encoding="utf-8")))
            except json.JSONDecodeError as error:
                raise Refused(f"{path}: not a file of results: {error}") from None

    def write(self):
        with self.lock:
            # One submission a line: compact, and a change shows as what it is.
            def block(entries):
                rows = [f"  {json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in sorted(entries.items())]
                return "{\n" + ",\n".join(rows) + "\n }"

            text = "{\n" + ",\n".join(f" {json.dumps(k)}: {block(v)}" for k, v in self.data.items()) + "\n}\n"
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part = self.path.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.replace(self.path)


# --- run: on a GPU -----------------------------------------------------------------------------------------------------


def find_program(name, option):
    """The path of a program of the CUDA Toolkit."""
    if option:
        if not os.access(option, os.X_OK):
            raise Refused(f"{option} is not a program")
        return option
    for candidate in (shutil.which(name), f"/usr/local/cuda/bin/{name}", f"/usr/local/cuda/compute-sanitizer/{name}"):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise Refused(f"no {name}: install the CUDA Toolkit 13.0 or newer, or name it with --{name}")


def output_of(argv):
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 1, ""
    return done.returncode, done.stdout


def ask_gpu():
    """(name, driver version)."""
    status, text = output_of(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    if status != 0 or "," not in text:
        raise Refused("no GPU: nvidia-smi finds none")
    name, driver = text.splitlines()[0].split(",")[:2]
    return name.strip(), driver.strip()


def compile_all(todo, nvcc, work, jobs):
    """Makes the runner and all cubins that are older than their source; raises Refused with the first failure."""
    (work / "cubin").mkdir(parents=True, exist_ok=True)
    tasks = []
    runner, source = work / "runner", ROOT / "tools/sanitizer/runner.cu"
    if not runner.is_file() or runner.stat().st_mtime < source.stat().st_mtime:
        tasks.append([nvcc, "-std=c++20", "-O1", f"-arch={ARCH}", "-o", str(runner), str(source)])
    for s in todo:
        out = s.cubin(work)
        if not out.is_file() or out.stat().st_mtime < s.path.stat().st_mtime:
            tasks.append([nvcc, "-std=c++20", "-lineinfo", f"-arch={ARCH}", "-cubin", "-I", str(ROOT / "exercises/include"), "-o", str(out), str(s.path)])

    def build(argv):
        status, text = output_of(argv)
        return None if status == 0 else f"{argv[-1]} does not compile: {text.strip().splitlines()[0] if text.strip() else 'no message'}"

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for problem in pool.map(build, tasks):
            if problem:
                raise Refused(problem)
    return len(tasks)


def run_limited(argv, limit, log):
    """(exit status or None if it was killed at the limit, seconds, output). The output goes through a file, so that what a killed run
    had said is kept."""
    begin = time.monotonic()
    environment = {**os.environ, "CUDA_MODULE_LOADING": "EAGER"}
    with open(log, "w+", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True, env=environment)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)  # the sanitizer's own children too
        except ProcessLookupError:
            pass
        process.wait()
        out.seek(0)
        return status, time.monotonic() - begin, out.read()


PLACE = re.compile(r"\bin (?:\S*/)?(?P<file>[^/\s:]+):(?P<line>\d+)")
# A template of the header <cuda/ptx>, whose full signature says no more than its name.
WRAPPER = re.compile(r"\b(?:bool|void|unsigned \w+) cuda::ptx::__4::(?P<name>\w+)(?:<.*>)?\(.*\)(?=(?:\+0x[0-9a-f]+)? in )")
# Lines that are no report of their own: headers, sums, consequences, advice after a deadlock.
BOILERPLATE = re.compile(
    r"^(COMPUTE-SANITIZER|(ERROR|RACECHECK|SYNCCHECK|LEAK) SUMMARY|Program hit |No attachable process|Target application returned an error|"
    r"Warning: Detected possible deadlock in synchronization call|Error: (Target application terminated|process didn't terminate)|$)"
)


def read_tool(text, file_name):
    """What a tool said, from its output: {reports: [distinct first lines of its reports, numbers and addresses left out],
    lines: [lines of the submission that they name], trouble: its own failure, if any}."""
    reports, lines, trouble, inside = [], set(), "", False
    for printed in text.splitlines():
        if not printed.startswith("========="):
            continue
        body = printed[len("=========") :]
        said = body.strip()
        if body.startswith(" ") and not body.startswith("  "):
            inside = not BOILERPLATE.match(said)
            if re.search(r"Internal Sanitizer Error|Device not supported|Unable to (launch|find)|unsupported (device|option)", said):
                trouble, inside = said, False
            elif inside:
                plain = WRAPPER.sub(lambda m: f"ptx::{m['name']}", said)
                plain = re.sub(r"\+?0x[0-9a-f]+", "", re.sub(r" starting at \([-\d, ]+\) in block .* at ", " at ", plain))
                plain = PLACE.sub(lambda m: f"in {m['file']}:{m['line']}", plain)[:160]
                if plain not in reports:
                    reports.append(plain)
        if inside:
            lines.update(int(m["line"]) for m in PLACE.finditer(said) if m["file"] == file_name)
    return {"reports": reports[:6], "lines": sorted(lines), "trouble": trouble}


def run_one(s, run, work, args, sanitizer):
    """One run of one submission, as it is recorded."""
    argv = [str(work / "runner"), s.exercise, str(s.cubin(work))]
    if run != "plain":
        argv = [sanitizer, *TOOLS[run], *COMMON, *argv]
    log = work / "log" / f"{s.name.replace('/', '+')}.{run}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    status, seconds, text = run_limited(argv, args.limit_plain if run == "plain" else args.limit_tool, log)
    result = re.search(r"^RESULT (right|wrong|cuda error)(.*)$", text, re.MULTILINE)
    record = {"ended": status is not None, "seconds": round(seconds, 1), "result": result[1] if result else ""}
    if run == "plain":
        record["detail"] = result[2].lstrip(": ")[:120] if result else ""
        if status is not None and not result:
            record["trouble"] = (text.strip().splitlines() or [f"exit status {status}"])[-1][:140]
    else:
        record.update(read_tool(text, s.path.name))
        if status is not None and not result and not record["reports"] and not record["trouble"]:
            record["trouble"] = f"no result, exit status {status}"
    return {k: v for k, v in record.items() if v not in ("", [])}


def command_run(args):
    begin = time.monotonic()
    results = Results(args.results)
    todo = submissions(args.only)
    nvcc = find_program("nvcc", args.nvcc)
    sanitizer = find_program("compute-sanitizer", args.compute_sanitizer)
    name, driver = ask_gpu()
    work = args.work.resolve()
    made = compile_all(todo, nvcc, work, os.cpu_count() or 1)
    print(f"{made} files compiled in {time.monotonic() - begin:.0f} s", flush=True)

    # One right kernel under racecheck first: where the tool cannot work, all of it would be noise.
    probe = next((s for s in todo if s.right), todo[0])
    found = run_one(probe, "racecheck", work, args, sanitizer)
    if found.get("trouble") or "result" not in found:
        raise Refused(f"compute-sanitizer does not work here: {found.get('trouble', 'no answer within the time limit')}")

    version = re.search(r"[Vv]ersion (\S+)", output_of([sanitizer, "--version"])[1])
    toolkit = re.search(r"V(\d+\.\d+\.\d+)", output_of([nvcc, "--version"])[1])
    about = {
        "gpu": name,
        "driver": driver,
        "toolkit": toolkit[1] if toolkit else "unknown",
        "compute_sanitizer": version[1] if version else "unknown",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "seconds_plain": args.limit_plain,
        "seconds_tool": args.limit_tool,
        "jobs": args.jobs,
    }
    for key in ("gpu", "driver", "compute_sanitizer"):
        if results.data["about"].get(key, about[key]) != about[key]:
            raise Refused(f"{args.results} is of another {key} ({results.data['about'][key]}): name a new file with --results")
    results.data["about"] = about

    # A GPU shared with kernels that hang is slow, so the runs that may hang do not come in a row: by run, then by file.
    pending = [(s, run) for run in RUNS for s in todo if run not in results.data["runs"].get(s.name, {})]
    count = {"done": 0, "left": 0}

    def work_on(item):
        s, run = item
        if time.monotonic() - begin > args.budget:
            count["left"] += 1
            return
        record = run_one(s, run, work, args, sanitizer)
        with results.lock:
            results.data["runs"].setdefault(s.name, {})[run] = record
            count["done"] += 1
            every = count["done"] % 50 == 0
        if every:
            print(f"{count['done']} of {len(pending)} runs, {time.monotonic() - begin:.0f} s", flush=True)
            results.write()

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work_on, pending))
    results.write()
    print(f"{count['done']} runs done, {count['left']} left, {time.monotonic() - begin:.0f} s; {args.results}")
    return 1 if count["left"] else 0


# --- verdicts: on the emulator ----------------------------------------------------------------------------------------


def verdict(handoff, s):
    """The checker's word: {first: ID @ LINE, also: [ID @ LINE of the other errors and warnings], full: all points}."""
    done = subprocess.run([handoff, "check", s.exercise[:3], "--submission", str(s.path), "--device", "emulator", "--json", "-"], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    try:
        graded = json.loads(done.stdout)["exercises"][0]
    except (json.JSONDecodeError, KeyError, IndexError):
        raise Refused(f"{s.name}: handoff check gave no verdict: {(done.stderr.strip().splitlines() or ['no message'])[0]}") from None
    if not graded["graded"]:
        raise Refused(f"{s.name}: not graded: {graded['problem']}")
    named = list(dict.fromkeys(f"{d['id']} @ {d['line']}" for d in graded["diagnostics"] if d["severity"] != "note"))
    record = {"full": graded["passed"]}
    if named:
        record.update({"first": named[0], "also": named[1:8]})
    return {k: v for k, v in record.items() if v != []}


def command_verdicts(args):
    results = Results(args.results)
    handoff = str(args.handoff.resolve())
    if not os.access(handoff, os.X_OK):
        raise Refused(f"{args.handoff} is not a program: build it (./handoff list does), or name it with --handoff")
    todo = submissions(args.only)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for s, record in zip(todo, pool.map(lambda s: verdict(handoff, s), todo)):
            results.data["emulator"][s.name] = record
    results.write()
    print(f"{len(todo)} verdicts; {args.results}")
    return 0


# --- table ------------------------------------------------------------------------------------------------------------


def kind_of(report):
    """A report's first line in one or two words."""
    text = report.lower()
    barrier = re.match(r"barrier error detected\. (.*?)\.?$", text)
    if barrier:
        return barrier[1]
    for pattern, kind in (
        (r"deadlock", "deadlock"),
        (r"race|hazard", "race"),
        (r"invalid .*(read|write|access)|out of bounds|out-of-bounds", "invalid access"),
        (r"misaligned", "misaligned"),
        (r"barrier", "barrier error"),
        (r"divergent", "divergence"),
    ):
        if re.search(pattern, text):
            return kind
    return "other"


def state(record):
    """reported | hang | failed | cuda error | silent. memcheck's "Unknown Error" is the launch failure that CUDA returns, with a place."""
    if any(report != "Unknown Error" for report in record.get("reports", [])):
        return "reported"
    if not record["ended"]:
        return "hang"
    if record.get("trouble"):
        return "failed"
    return "cuda error" if record.get("result") == "cuda error" or "reports" in record else "silent"


def best(runs, line):
    """The tools' most useful answer: (state, text, does it name the expected line)."""
    order = {"reported": 1, "cuda error": 2, "hang": 3, "silent": 4, "failed": 5}
    candidates = []
    for tool in TOOLS:
        record = runs.get(tool)
        if record is None:
            continue
        hit = state(record) == "reported" and line in record.get("lines", [])
        candidates.append((0 if hit else order[state(record)], len(candidates), tool, record, hit))
    if not candidates:
        return "not run", "not run", False
    _, _, tool, record, hit = min(candidates)
    now = state(record)
    if now != "reported":
        return now, {"hang": "hangs"}.get(now, now), False
    kinds = list(dict.fromkeys(kind_of(r) for r in record["reports"]))[:2]
    where = f", line {line}" if hit else ", line " + ", ".join(map(str, record["lines"][:3])) if record.get("lines") else ", no line"
    return now, f"{' and '.join(kinds)}{where} ({tool})", hit


def plain_word(runs):
    record = runs.get("plain")
    if record is None:
        return "not run"
    return record.get("result", "failed") if record["ended"] else "hangs"


def ours(record, expected):
    if record is None:
        return "not graded", False, False
    if "first" not in record:
        return "loses points, unnamed" if not record["full"] else "silent", False, False
    named = [record["first"], *record.get("also", [])]
    return record["first"], True, expected in named


def row(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def paragraph(text):
    return textwrap.fill(text, 150, break_long_words=False, break_on_hyphens=False)


def shown(path):
    path = path.resolve()
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name


def table(results):
    """The section's text from recorded results alone."""
    about, runs, emulator = results.data["about"], results.data["runs"], results.data["emulator"]
    if not runs:
        raise Refused(f"{results.path} has no runs: `compare.py run` on a machine with a GPU records them")
    mutants = [s for s in submissions("") if not s.right and s.name in runs]
    right = [s for s in submissions("") if s.right and s.name in runs]

    text = [HEADING, "", BEGIN, ""]
    text += [
        paragraph(
            f"{len(mutants)} wrong and {len(right)} right submissions, each compiled for {ARCH} and run on an {about['gpu']} over several cases of its "
            f"exercise's harness, alone (at most {about['seconds_plain']:g} s) and under each tool (at most {about['seconds_tool']:g} s), "
            f"{about['jobs']} runs at a time; and graded by the emulator. Driver {about['driver']}, "
            f"CUDA Toolkit {about['toolkit']}, compute-sanitizer {about['compute_sanitizer']}, {about['date']}. "
            f"`tools/sanitizer/compare.py` makes the record, `{shown(results.path)}` (`run` on a GPU, `verdicts` on the emulator), and writes this "
            "section from it (`table`)."
        ),
        "",
        paragraph(
            "How it is counted: any report on a wrong submission counts for the tool, whatever it says. Its line is right if any place that it names is "
            "the line where the checker is expected to report; a tool may follow another convention, and racecheck's deadlocks name a line of the "
            "toolkit's headers only. A launch that fails with no more than CUDA's own error counts apart. Faults that show by timing can come out "
            "otherwise in another run. The wrong "
            "submissions are those that the checker is developed against, and the sanitizer is not."
        ),
        "",
        "| wrong submissions | reported | expected line named | hang, no reason | CUDA error only | silent | tool failed |",
        "|---|---|---|---|---|---|---|",
    ]

    def share(count):
        return f"{count} of {len(mutants)}"

    plain = [plain_word(runs[s.name]) for s in mutants]
    hangs, errors, failed = (plain.count(word) for word in ("hangs", "cuda error", "failed"))
    text.append(row("the kernel alone", f"wrong result: {plain.count('wrong')}", "–", hangs, errors, f"right result: {plain.count('right')}", failed))
    others = ["hang", "cuda error", "silent", "failed"]
    for tool in TOOLS:
        records = [(s, runs[s.name][tool]) for s in mutants if tool in runs[s.name]]
        states = [state(r) for _, r in records]
        lines = sum(state(r) == "reported" and s.line in r.get("lines", []) for s, r in records)
        text.append(row(tool, f"{states.count('reported')} of {len(records)}", lines, *(states.count(w) for w in others)))
    answers = [best(runs[s.name], s.line) for s in mutants]
    states = [a[0] for a in answers]
    named = sum(a[2] for a in answers)
    text.append(row("the best of these tools", share(states.count("reported")), named, *(states.count(w) for w in others)))
    own = [ours(emulator.get(s.name), f"{s.expected} @ {s.line}") for s in mutants]
    named, unnamed = sum(o[2] for o in own), sum(not o[1] for o in own)
    text.append(row("Handoff's checker", share(sum(o[1] for o in own)), f"{named}, with the expected id", "–", "–", unnamed, "–"))

    passed = [(a, o) for p, a, o in zip(plain, answers, own) if p == "right"]
    text += [
        "",
        paragraph(
            f"{len(passed)} wrong submissions give the right result on this GPU all the same. Of these the tools report "
            f"{sum(a[0] == 'reported' for a, _ in passed)}, the checker {sum(o[1] for _, o in passed)}."
        ),
        "",
    ]

    text += ["| expected | wrong submissions | reported by a tool | with the line | by the checker, with id and line |", "|---|---|---|---|---|"]
    for expected in sorted({s.expected for s in mutants}):
        rows = [(a, o) for s, a, o in zip(mutants, answers, own) if s.expected == expected]
        reported, lines, own_named = (sum(x) for x in zip(*((a[0] == "reported", a[2], o[2]) for a, o in rows)))
        text.append(row(expected, len(rows), reported, lines, own_named))
    text.append("")

    text += ["| right submissions | false alarms | hang | result wrong or CUDA error | failed |", "|---|---|---|---|---|"]
    plain = [plain_word(runs[s.name]) for s in right]
    text.append(row("the kernel alone", "–", plain.count("hangs"), plain.count("wrong") + plain.count("cuda error"), plain.count("failed")))
    alarms = {}
    for tool in TOOLS:
        records = [(s, runs[s.name][tool]) for s in right if tool in runs[s.name]]
        states = [state(r) for _, r in records]
        for s, r in records:
            if state(r) == "reported":
                alarms.setdefault(s, {}).setdefault(r["reports"][0], []).append(tool)
        bad = sum(state(r) != "reported" and r.get("result") in ("wrong", "cuda error") for _, r in records)
        text.append(row(tool, f"{states.count('reported')} of {len(records)}", states.count("hang"), bad, states.count("failed")))
    text.append(f"| any of these tools | {len(alarms)} of {len(right)} | | | |")
    named = [s for s in right if "first" in emulator.get(s.name, {})]
    graded = [s for s in right if s.name in emulator]
    less = sum(not emulator[s.name]["full"] for s in graded)
    text.append(row("Handoff's checker", f"{len(named)} of {len(graded)}", "–", f"{less} without full marks", "–"))
    if alarms:
        text += ["", "The sanitizer's alarms on right submissions:", ""]
        for s, said in alarms.items():
            text.append(f"* `{s.name}`: " + "; ".join(f"{report.removeprefix('Error: ')} ({', '.join(tools)})" for report, tools in said.items()))

    text += [
        "",
        paragraph(
            "Each wrong submission: what is expected, its result on the GPU alone, the tools' best answer (one that names the expected line, else any "
            "report), and the checker's first diagnosis. ✓: the expected line there, the expected id and line here."
        ),
        "",
        "| submission | expected | alone | compute-sanitizer | checker |",
        "|---|---|---|---|---|",
    ]
    for s, answer, own_answer in zip(mutants, answers, own):
        name = f"{s.exercise[:3]} {s.path.stem}"
        said, diagnosed = ("✓ " * answer[2] + answer[1], "✓ " * own_answer[2] + own_answer[0])
        text.append(row(name, f"{s.expected} @ {s.line}", plain_word(runs[s.name]), said, diagnosed))
    return "\n".join([*text, "", END])


def command_table(args):
    section = table(Results(args.results))
    old = args.docs.read_text(encoding="utf-8") if args.docs.is_file() else "# The checker\n"
    begin, end = old.find(HEADING), old.find(END)
    if begin >= 0 and end > begin:
        new = old[:begin] + section + old[end + len(END) :]
    elif begin >= 0:
        raise Refused(f"{args.docs}: under {HEADING!r} the line {END!r} is missing")
    else:
        new = old.rstrip("\n") + "\n\n" + section + "\n"
    args.docs.write_text(new, encoding="utf-8")
    print(args.docs)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="run | verdicts | table")
    recorded = sorted(ROOT.glob("docs/results/sanitizer-*.json"))

    def add(name, function, text):
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        sub.add_argument("--results", type=pathlib.Path, default=recorded[-1] if recorded else ROOT / "build/sanitizer/results.json",
                         help="file of results, read and written (default: the newest docs/results/sanitizer-*.json, else build/sanitizer/results.json)")
        return sub

    sub = add("run", command_run, "compile all submissions and run them on the GPU, alone and under compute-sanitizer")
    sub.add_argument("--work", type=pathlib.Path, default=ROOT / "build/sanitizer", help="folder for cubins and the tools' output")
    sub.add_argument("--jobs", type=int, default=8, help="runs at the same time (default 8)")
    sub.add_argument("--budget", type=float, default=3600, help="seconds after which no new run starts; a later call goes on (default 3600)")
    sub.add_argument("--limit-plain", type=float, default=6, help="seconds a run without a tool may take (default 6)")
    sub.add_argument("--limit-tool", type=float, default=15, help="seconds a run under a tool may take (default 15)")
    sub.add_argument("--only", default="", metavar="REGEX", help="only submissions whose path matches")
    sub.add_argument("--nvcc", help="nvcc's path")
    sub.add_argument("--compute-sanitizer", help="compute-sanitizer's path")
    sub = add("verdicts", command_verdicts, "grade all submissions on the emulator")
    sub.add_argument("--handoff", type=pathlib.Path, default=ROOT / "build/default/handoff", help="the program (default build/default/handoff)")
    sub.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="gradings at the same time")
    sub.add_argument("--only", default="", metavar="REGEX", help="only submissions whose path matches")
    sub = add("table", command_table, "write the comparison into docs/checker.md")
    sub.add_argument("--docs", type=pathlib.Path, default=ROOT / "docs/checker.md", help="file to write (default docs/checker.md)")
    args = parser.parse_args()
    try:
        return args.function(args)
    except Refused as reason:
        print(f"compare.py: {reason}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
