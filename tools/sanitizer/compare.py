#!/usr/bin/env python3
"""What a GPU and NVIDIA's compute-sanitizer say about the wrong and the right submissions, beside the checker's own verdicts.

    compare.py run        on a machine with a GPU (sm_90 or newer), nvcc and compute-sanitizer: runs each submission alone and
                          under the sanitizer's tools; goes on where an earlier call stopped. With --runs plain alone only
    compare.py verdicts   on any machine with nvcc: grades all submissions on the emulator
    compare.py table      on any machine: writes the comparison into docs/checker.md
    compare.py outcomes   on any machine: shows how often the wrong submissions ended how, alone, by exercise

All of them share one file of results, docs/results/sanitizer-*.json (--results). Submissions are grader/mutants/*/*.cu (wrong; the head
says which diagnosis and line is expected), solutions/*/kernel.cu and grader/variants/*/*.cu (right).

Runs of each submission:
    plain                the kernel alone: `handoff check --device cuda`, every case of the exercise's harness, three times each; only
                         the outputs count. All exercises that the GPU can run
    racecheck            compute-sanitizer --tool racecheck, as all tools over runner.cu: several cases of the harness in one plain
                         process, random input, poisoned output, exact check. The exercises that runner.cu has
    racecheck+deadlock   the same with --racecheck-deadlock-timeout 2000 --racecheck-continue-on-deadlock no
    synccheck, memcheck  compute-sanitizer --tool …
A run that exceeds its time limit is killed: a hang. Exit status: 0 done, 1 not everything was run (of outcomes: a right submission was not right), 2 could not start (the reason on
one line).
"""

import argparse
import concurrent.futures
import datetime
import functools
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
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADING = "## Beside compute-sanitizer, on an H200"
BEGIN = "<!-- begin: tools/sanitizer/compare.py table -->"
END = "<!-- end: tools/sanitizer/compare.py table -->"

EXPECT = re.compile(r"^// expect: (?P<id>[a-z][a-z0-9-]*) @ (?P<line>[0-9]+)$", re.MULTILINE)
EXPECT_NONE = re.compile(r"^// expect: none$", re.MULTILINE)
ARCH = "sm_90a"
TCGEN05 = ("10.0", "10.3", "11.0")  # compute capabilities with tensor memory
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
        self.tools = self.exercise[:3] in tool_exercises()
        if not self.right:
            text = path.read_text(encoding="utf-8")
            head = EXPECT.search(text)
            if head is None and not EXPECT_NONE.search(text):
                raise Refused(f"{self.name}: no line `// expect: ID @ LINE`")
            self.expected, self.line = (head["id"], int(head["line"])) if head else ("none", 0)

    def needs(self):
        """What the exercise asks of a GPU: mbarrier, tma or tcgen05."""
        return tomllib.loads((ROOT / "exercises" / self.exercise / "exercise.toml").read_text(encoding="utf-8"))["needs"]

    def cubin(self, work):
        return work / "cubin" / (self.name.replace("/", "+") + ".cubin")


@functools.cache
def tool_exercises():
    """The exercises that runner.cu has cases for."""
    return set(re.findall(r'\{"(\d\d[a-z])",', (ROOT / "tools/sanitizer/runner.cu").read_text(encoding="utf-8")))


def submissions(pattern):
    files = [p for glob in ("grader/mutants/*/*.cu", "solutions/*/kernel.cu", "grader/variants/*/*.cu") for p in sorted(ROOT.glob(glob))]
    found = [s for s in map(Submission, files) if re.search(pattern, s.name)]
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


def find_handoff(path):
    """The built program, as text."""
    if not os.access(path, os.X_OK):
        raise Refused(f"{path} is not a program: build it (./handoff list does), or name it with --handoff")
    return str(path.resolve())


def output_of(argv):
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 1, ""
    return done.returncode, done.stdout


def ask_gpu():
    """(name, driver version, compute capability: "9.0")."""
    status, text = output_of(["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"])
    if status != 0 or text.count(",") < 2:
        raise Refused("no GPU: nvidia-smi finds none")
    name, driver, capability = text.splitlines()[0].split(",")[:3]
    return name.strip(), driver.strip(), capability.strip()


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


def run_tool(s, run, work, args, sanitizer):
    """One run of one submission under a tool, as it is recorded."""
    argv = [sanitizer, *TOOLS[run], *COMMON, str(work / "runner"), s.exercise, str(s.cubin(work))]
    log = work / "log" / f"{s.name.replace('/', '+')}.{run}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    status, seconds, text = run_limited(argv, args.limit_tool, log)
    result = re.search(r"^RESULT (right|wrong|cuda error)", text, re.MULTILINE)
    record = {"ended": status is not None, "seconds": round(seconds, 1), "result": result[1] if result else ""}
    record.update(read_tool(text, s.path.name))
    if status is not None and not result and not record["reports"] and not record["trouble"]:
        record["trouble"] = f"no result, exit status {status}"
    return {k: v for k, v in record.items() if v not in ("", [])}


def judge_plain(graded):
    """What the harness's test `result` says of a run on the GPU: {ended, result: right | wrong | cuda error, detail, trouble}."""
    found = [t for t in graded["tests"] if t["name"] == "result" and t["device"] == "cuda" and t["run"]]
    if not found:
        return {"ended": True, "trouble": (graded["problem"] or "the harness ran nothing")[:140]}
    message = found[0]["message"][:160]
    if found[0]["passed"]:
        return {"ended": True, "result": "right"}
    if "the launch hangs" in message:
        return {"ended": False, "detail": message}
    wrong = re.search(r"\d+ of \d+ elements wrong|changed its input", message)
    return {"ended": True, "result": "wrong" if wrong else "cuda error", "detail": message}


def run_plain(s, handoff):
    """The product's own grading on the GPU, as it is recorded. A kernel that hangs is killed by the product."""
    begin = time.monotonic()
    argv = [handoff, "check", s.exercise[:3], "--submission", str(s.path), "--device", "cuda", "--json", "-"]
    try:
        done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False)
        record = judge_plain(json.loads(done.stdout)["exercises"][0])
    except subprocess.TimeoutExpired:
        record = {"ended": True, "trouble": "handoff check gave no verdict within 180 s"}
    except (json.JSONDecodeError, KeyError, IndexError):
        record = {"ended": True, "trouble": ("handoff check gave no verdict: " + " ".join(done.stderr.split()))[:140]}
    return {**record, "seconds": round(time.monotonic() - begin, 1)}


def prepare_tools(todo, args):
    """Compiles what runner.cu needs and sees that the sanitizer works; (its path, its version)."""
    nvcc = find_program("nvcc", args.nvcc)
    sanitizer = find_program("compute-sanitizer", args.compute_sanitizer)
    begin = time.monotonic()
    made = compile_all(todo, nvcc, args.work, os.cpu_count() or 1)
    print(f"{made} files compiled in {time.monotonic() - begin:.0f} s", flush=True)
    # One right kernel under racecheck first: where the tool cannot work, all of it would be noise.
    probe = next((s for s in todo if s.right), todo[0])
    found = run_tool(probe, "racecheck", args.work, args, sanitizer)
    if found.get("trouble") or "result" not in found:
        raise Refused(f"compute-sanitizer does not work here: {found.get('trouble', 'no answer within the time limit')}")
    version = re.search(r"[Vv]ersion (\S+)", output_of([sanitizer, "--version"])[1])
    return sanitizer, version[1] if version else "unknown"


def take_up(results, args):
    """Takes over what --start-from has, where it is of this GPU and driver and there are no results yet."""
    name, driver, _ = ask_gpu()
    if args.start_from is None or args.results.is_file():
        return
    earlier = Results(args.start_from)
    if (earlier.data["about"].get("gpu"), earlier.data["about"].get("driver")) == (name, driver):
        results.data = earlier.data
    else:
        print(f"{args.start_from} is of another GPU or driver: begun anew")


def command_run(args):
    begin = time.monotonic()
    runs = args.runs.split(",")
    if not set(runs) <= set(RUNS):
        raise Refused(f"--runs takes some of {','.join(RUNS)}, got {args.runs!r}")
    results = Results(args.results)
    take_up(results, args)
    todo = submissions(args.only)
    name, driver, capability = ask_gpu()
    handoff = find_handoff(args.handoff) if "plain" in runs else ""
    args.work = args.work.resolve()
    toolkit = re.search(r"V(\d+\.\d+\.\d+)", output_of([find_program("nvcc", args.nvcc), "--version"])[1])
    about = {
        "gpu": name,
        "driver": driver,
        "toolkit": toolkit[1] if toolkit else "unknown",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "jobs": args.jobs,
    }

    def pending_of(run):
        able = [s for s in todo if (s.needs() != "tcgen05" or capability in TCGEN05 if run == "plain" else s.tools)]
        return [(s, run) for s in able if run not in results.data["runs"].get(s.name, {})]

    # A GPU shared with kernels that hang is slow, so the runs that may hang do not come in a row: by run, then by file.
    pending = [item for run in runs for item in pending_of(run)]
    tools = [s for s, run in pending if run != "plain"]
    sanitizer = ""
    if tools:
        sanitizer, about["compute_sanitizer"] = prepare_tools(list(dict.fromkeys(tools)), args)
        about["seconds_tool"] = args.limit_tool
    for key in ("gpu", "driver", "compute_sanitizer"):
        if results.data["about"].get(key, about.get(key)) != about.get(key, results.data["about"].get(key)):
            raise Refused(f"{args.results} is of another {key} ({results.data['about'][key]}): name a new file with --results")
    results.data["about"] = {**results.data["about"], **about}
    count = {"done": 0, "left": 0}

    def work_on(item):
        s, run = item
        if time.monotonic() - begin > args.budget:
            count["left"] += 1
            return
        record = run_plain(s, handoff) if run == "plain" else run_tool(s, run, args.work, args, sanitizer)
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
    handoff = find_handoff(args.handoff)
    # Those that the comparison is about; before there is one, all.
    todo = [s for s in submissions(args.only) if not results.data["runs"] or s.name in results.data["runs"]]
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


def outcomes(results):
    """(table of the plain runs by exercise, right submissions that did not give the right result)."""
    words = ["right", "wrong", "cuda error", "hangs", "failed"]
    ran = [s for s in submissions("") if "plain" in results.data["runs"].get(s.name, {})]
    text = [row("exercise", "wrong submissions", *(w + " result" if w in ("right", "wrong") else w for w in words)), "|" + "---|" * (len(words) + 2)]
    for exercise in sorted({s.exercise for s in ran}):
        found = [plain_word(results.data["runs"][s.name]) for s in ran if s.exercise == exercise and not s.right]
        text.append(row(exercise[:3], len(found), *(found.count(w) for w in words)))
    bad = [f"{s.name}: {plain_word(results.data['runs'][s.name])}" for s in ran if s.right and plain_word(results.data["runs"][s.name]) != "right"]
    return "\n".join(text), bad


def command_outcomes(args):
    text, bad = outcomes(Results(args.results))
    print(text)
    for line in bad:
        print(f"a right submission: {line}")
    return 1 if bad else 0


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
    tooled = [s for s in mutants if any(tool in runs[s.name] for tool in TOOLS)]
    limit = f"at most {about['seconds_plain']:g} s" if "seconds_plain" in about else "at most 6 s a launch"
    under = f" and under each tool (at most {about['seconds_tool']:g} s)" if tooled else ""
    if tooled and len(tooled) < len(mutants):
        left = [s.exercise[:3] for s in mutants if s not in tooled]
        under += f", those of {', '.join(sorted(set(left)))} alone only"
    version = f", compute-sanitizer {about['compute_sanitizer']}" if tooled else ""

    text = [HEADING, "", BEGIN, ""]
    text += [
        paragraph(
            f"{len(mutants)} wrong and {len(right)} right submissions, each compiled for {ARCH} and run on an {about['gpu']} over several cases of its "
            f"exercise's harness, alone ({limit}){under}, "
            f"{about['jobs']} runs at a time; and graded by the emulator. Driver {about['driver']}, "
            f"CUDA Toolkit {about['toolkit']}{version}, {about['date']}. "
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

    def share(count, among):
        return f"{count} of {len(among)}"

    plain = [plain_word(runs[s.name]) for s in mutants]
    hangs, errors, failed = (plain.count(word) for word in ("hangs", "cuda error", "failed"))
    text.append(row("the kernel alone", f"wrong result: {plain.count('wrong')}", "–", hangs, errors, f"right result: {plain.count('right')}", failed))
    others = ["hang", "cuda error", "silent", "failed"]
    for tool in TOOLS if tooled else ():
        records = [(s, runs[s.name][tool]) for s in mutants if tool in runs[s.name]]
        states = [state(r) for _, r in records]
        lines = sum(state(r) == "reported" and s.line in r.get("lines", []) for s, r in records)
        text.append(row(tool, f"{states.count('reported')} of {len(records)}", lines, *(states.count(w) for w in others)))
    answers = [best(runs[s.name], s.line) for s in mutants]
    states = [a[0] for a in answers]
    named = sum(a[2] for a in answers)
    if tooled:
        text.append(row("the best of these tools", share(states.count("reported"), tooled), named, *(states.count(w) for w in others)))
    own = [ours(emulator.get(s.name), f"{s.expected} @ {s.line}") for s in mutants]
    named, unnamed = sum(o[2] for o in own), sum(not o[1] for o in own)
    text.append(row("Handoff's checker", share(sum(o[1] for o in own), mutants), f"{named}, with the expected id", "–", "–", unnamed, "–"))

    passed = [(a, o) for p, a, o in zip(plain, answers, own) if p == "right"]
    ran = [a for a, _ in passed if a[0] != "not run"]
    by_tools = f"the tools report {sum(a[0] == 'reported' for a in ran)}" + (f" (of {len(ran)} that ran under them)" if len(ran) < len(passed) else "")
    text += [
        "",
        paragraph(
            f"{len(passed)} wrong submissions give the right result on this GPU all the same. Of these {by_tools}, "
            f"the checker {sum(o[1] for _, o in passed)}."
        ),
        "",
    ]

    text += ["| expected | wrong submissions | reported by a tool | with the line | by the checker, with id and line |", "|---|---|---|---|---|"]
    for expected in sorted({s.expected for s in mutants}):
        rows = [(a, o) for s, a, o in zip(mutants, answers, own) if s.expected == expected]
        reported, lines, own_named = (sum(x) for x in zip(*((a[0] == "reported", a[2], o[2]) for a, o in rows)))
        under_tools = sum(a[0] != "not run" for a, _ in rows)
        text.append(row(expected, len(rows), reported if under_tools == len(rows) else f"{reported} of {under_tools}", lines, own_named))
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


def check_self():
    """The judgement of plain runs on small planted verdicts."""

    def judged(passed, message, ran=True):
        test = {"name": "result", "device": "cuda", "run": ran, "passed": passed, "message": message}
        return judge_plain({"problem": "does not compile", "tests": [{**test, "device": "emulator"}, test]})

    assert judged(True, "") == {"ended": True, "result": "right"}
    assert judged(False, "GPU, n = 1: 5 of 9 elements wrong, first at out[0]")["result"] == "wrong"
    assert judged(False, "GPU, n = 1: the kernel changed its input `in`")["result"] == "wrong"
    assert judged(False, "GPU: the kernel was stopped by an error: CUDA_ERROR_ILLEGAL_ADDRESS")["result"] == "cuda error"
    hang = judged(False, "GPU, n = 1: the launch hangs: the kernel did not finish within 6.0 s and was killed")
    assert not hang["ended"] and plain_word({"plain": hang}) == "hangs"
    failed = judged(True, "", ran=False)
    assert failed == {"ended": True, "trouble": "does not compile"} and plain_word({"plain": failed}) == "failed"


def main():
    check_self()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="run | verdicts | table | outcomes")
    recorded = sorted(ROOT.glob("docs/results/sanitizer-*.json"))

    def add(name, function, text):
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        sub.add_argument("--results", type=pathlib.Path, default=recorded[-1] if recorded else ROOT / "build/sanitizer/results.json",
                         help="file of results, read and written (default: the newest docs/results/sanitizer-*.json, else build/sanitizer/results.json)")
        return sub

    sub = add("run", command_run, "run all submissions on the GPU, alone and under compute-sanitizer")
    sub.add_argument("--runs", default=",".join(RUNS), help=f"which runs, of {','.join(RUNS)} (default all)")
    sub.add_argument("--handoff", type=pathlib.Path, default=ROOT / "build/default/handoff", help="the program, for plain runs (default build/default/handoff)")
    sub.add_argument("--start-from", type=pathlib.Path, metavar="FILE", help="results of this GPU and driver to add to, where --results is not there yet")
    sub.add_argument("--work", type=pathlib.Path, default=ROOT / "build/sanitizer", help="folder for cubins and the tools' output")
    sub.add_argument("--jobs", type=int, default=8, help="runs at the same time (default 8)")
    sub.add_argument("--budget", type=float, default=3600, help="seconds after which no new run starts; a later call goes on (default 3600)")
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
    add("outcomes", command_outcomes, "show how the wrong submissions ended on the GPU, by exercise")
    args = parser.parse_args()
    try:
        return args.function(args)
    except Refused as reason:
        print(f"compare.py: {reason}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
