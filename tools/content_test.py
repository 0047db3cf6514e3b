#!/usr/bin/env python3
"""Tests of the course's content: starters, solutions, variants, bypasses, wrong submissions, GPUs they compile for, and the kept PTX.

    content_test.py --handoff BUILD/handoff KIND [EXERCISE] [--out FOLDER]

KIND is one of
    catalog    the points of exercise.toml and the tests of grade.cc name each other; no-hazards has 40 % of them; three hints
    starter    compiles, is graded, and does not get full marks; exit status 1
    solution   gets full marks, exit status 0, and differs from its starter only between `// TODO(n)` and `// end TODO(n)`
    variants   every file of grader/variants/EXERCISE gets full marks
    bypasses   every file of grader/bypasses/EXERCISE is graded and does not get full marks
    mutants    every file of grader/mutants/EXERCISE is caught as its head says; leaves OUT/mutants-EXERCISE.json
    summary    the table over all OUT/mutants-*.json, also written to OUT/mutants.txt (no EXERCISE)
    architectures  the solution, and with tcgen05 each variant, compiles for every GPU that has what the exercise needs, without
               spills and without a stack frame
    resources  the table of registers and memory in docs/gpu.md is what `handoff resources --table` prints today (no EXERCISE); with
               --write it is written
    kept_ptx   what is kept for machines without nvcc is what nvcc makes today (no EXERCISE)
    no_nvcc    without nvcc the kept solutions get full marks, the demo runs, and grading a file is refused in one line (no EXERCISE)

The head of a wrong submission:
    // expect: ID @ LINE     its first diagnostic, on the nominal schedule
    // needs: core           the emulator's core notices it by itself; `needs: checker`: it takes the happens-before checker
    // schedule: any         it shows on some schedule, not always on the nominal one
Whatever the head says of who notices it, that diagnostic must be the first one. Solutions and variants must draw no diagnostic at all.

Submissions are graded on the emulator with `handoff check --json -`. Exit status: 0 all well, 1 not (each reason on a line), 77 there is
no nvcc.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
SKIP = 77

EXPECT = re.compile(r"^// expect: (?P<id>[a-z][a-z0-9-]*) @ (?P<line>[0-9]+)$", re.MULTILINE)
NEEDS = re.compile(r"^// needs: (core|checker)$", re.MULTILINE)
ANY_SCHEDULE = re.compile(r"^// schedule: any$", re.MULTILINE)
TODO = re.compile(r"^\s*// TODO\((\d+)\)")
END_TODO = re.compile(r"^\s*// end TODO\((\d+)\)")
# By `needs` of exercise.toml: (targets, are variants compiled as well?). sm_90a has mbarriers and the copy engine, but no tensor memory.
# Gradings have compiled for sm_100a already, so that this target comes from the cache.
ARCHITECTURES = {"mbarrier": (["90a", "100a", "103a"], False), "tma": (["90a", "100a", "103a"], False),
                 "tcgen05": (["100a", "103a"], True)}
STANDARD_TESTS = ["result", "every-schedule", "no-hazards"]


class NoCompiler(Exception):
    """There is no nvcc; the text says where it was looked for."""


class Graded:
    """What `handoff check` said about one file."""

    def __init__(self, status, verdict, errors):
        self.status = status
        self.errors = errors
        self.verdict = verdict

    @property
    def full(self):
        """Full marks, by exit status and by the report."""
        return self.status == 0 and self.verdict is not None and self.verdict["passed"]

    @property
    def graded(self):
        """It compiled and its kernel ran."""
        return self.status in (0, 1) and self.verdict is not None and self.verdict["graded"] and not self.verdict["problem"]

    @property
    def score(self):
        """Text for tables: points got and to be had."""
        return "not graded" if self.verdict is None else f"{self.verdict['score']} of {self.verdict['max_score']}"

    def reason(self):
        """What stands in the way of full marks, one line."""
        if self.verdict is None:
            return f"exit status {self.status}: {self.errors.strip()}"
        if self.verdict["problem"]:
            return f"{self.verdict['problem']} {self.verdict['problem_detail']}".strip()
        lost = [f"{t['name']} ({t['message']})" for t in self.verdict["tests"] if t["score"] < t["max_score"]]
        return f"{self.score} points; lost: {', '.join(lost)}; diagnostics: {', '.join(self.named()) or 'none'}"

    def named(self, severity=None):
        """Diagnostics as "id @ line", in the order of the report."""
        found = [] if self.verdict is None else self.verdict["diagnostics"]
        return [f"{d['id']} @ {d['line']}" for d in found if severity in (None, d["severity"])]


SCHEDULES = ("nominal", "lazy", "eager", "reverse", "random")


class Program:
    """The handoff program under test; learners' saved scores are left alone."""

    def __init__(self, path):
        self.path = path
        self.state = tempfile.TemporaryDirectory(prefix="handoff-content-")

    def run(self, *arguments, **environment):
        """Runs one command."""
        env = dict(os.environ, XDG_STATE_HOME=self.state.name, **environment)
        return subprocess.run([self.path, *arguments], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)

    def check(self, exercise, file, schedule="all"):
        """Grades one file on the emulator."""
        run = self.run("check", exercise, "--submission", str(file), "--device", "emulator", "--schedule", schedule, "--json", "-")
        if run.returncode == 2 and "nvcc was not found" in run.stderr:
            raise NoCompiler(run.stderr.strip())
        try:
            verdict = json.loads(run.stdout)["exercises"][0]
        except (json.JSONDecodeError, KeyError, IndexError):
            verdict = None
        return Graded(run.returncode, verdict, run.stderr)

    def resources(self, file, kernel, target):
        """(resources of a kernel for a target, problem)."""
        run = self.run("resources", str(file), "--kernel", kernel, "--target", target, "--json")
        if run.returncode == 2 and "nvcc was not found" in run.stderr:
            raise NoCompiler(run.stderr.strip())
        if run.returncode != 0:
            return None, " ".join(run.stderr.split())
        return json.loads(run.stdout), ""

    def check_all(self, exercise, files, schedule="all"):
        """Grades several files, as many at a time as the machine has cores."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return list(zip(files, pool.map(lambda file: self.check(exercise, file, schedule), files)))


def folder_of(parent, exercise):
    """The folder NNx-name below `parent`."""
    found = [p for p in (ROOT / parent).glob(exercise + "-*") if p.is_dir()]
    return found[0] if found else ROOT / parent / exercise


def sources(parent, exercise):
    """The kernels of an exercise below `parent`, sorted."""
    return sorted(folder_of(parent, exercise).glob("*.cu"))


def relative(path):
    """Below the project's root, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def outside_todos(text):
    """(lines outside the TODO blocks, with each block as its number; problems)."""
    lines, numbers, problems, inside = [], [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        begin, end = TODO.match(line), END_TODO.match(line)
        if begin and inside is None:
            inside = begin.group(1)
            numbers.append(int(inside))
            lines.append(f"TODO({inside})")
        elif begin:
            problems.append(f"line {number}: TODO({begin.group(1)}) inside TODO({inside})")
        elif end and end.group(1) == inside:
            inside = None
        elif end:
            problems.append(f"line {number}: `end TODO({end.group(1)})` without its beginning")
        elif inside is None:
            lines.append(line.rstrip())
    if inside is not None:
        problems.append(f"TODO({inside}) does not end")
    if numbers != list(range(1, len(numbers) + 1)):
        problems.append(f"the TODOs are numbered {numbers}, not 1, 2, …")
    return lines, problems


def differences(starter, solution):
    """Where a solution leaves its starter outside the TODO blocks."""
    (ours, first), (theirs, second) = outside_todos(starter), outside_todos(solution)
    problems = [f"starter, {p}" for p in first] + [f"solution, {p}" for p in second]
    if not any(line.startswith("TODO(") for line in ours):
        problems.append("the starter has no `// TODO(1)`")
    for mine, yours in zip(ours, theirs):
        if mine != yours:
            return problems + [f"outside the TODOs the starter has {mine!r} where the solution has {yours!r}"]
    if len(ours) != len(theirs):
        problems.append("outside the TODOs one of starter and solution is longer")
    return problems


def tests_in(grade_cc, exercise):
    """Names of the tests that a grade.cc registers for an exercise."""
    names = re.findall(rf'HANDOFF_TEST\(\s*"{exercise}"\s*,\s*\w+\s*,\s*\w+\s*,\s*"([^"]+)"', grade_cc)
    return (STANDARD_TESTS if re.search(rf'HANDOFF_STANDARD_TESTS\(\s*"{exercise}"', grade_cc) else []) + names


def catalog_problems(info, grade_cc, exercise):
    """What is wrong between exercise.toml and grade.cc."""
    points, tests = info.get("points", {}), tests_in(grade_cc, exercise)
    problems = [f"the test {name} of grade.cc has no points in exercise.toml" for name in tests if name not in points]
    problems += [f"exercise.toml gives points for {name}, and grade.cc has no such test" for name in points if name not in tests]
    if 10 * points.get("no-hazards", 0) < 4 * sum(points.values()) or not points:
        problems.append(f"no-hazards has {points.get('no-hazards', 0)} of {sum(points.values())} points, less than 40 %")
    if len(info.get("hints", [])) < 3:
        problems.append(f"{len(info.get('hints', []))} hints; there must be at least 3")
    return problems


def catalog(program, exercise):
    """exercise.toml, grade.cc, and what the program makes of both."""
    folder = folder_of("exercises", exercise)
    info = tomllib.loads((folder / "exercise.toml").read_text(encoding="utf-8"))
    problems = catalog_problems(info, (folder / "grade.cc").read_text(encoding="utf-8"), exercise)
    verdict = program.check(exercise, folder_of("solutions", exercise) / "kernel.cu").verdict
    if verdict is None:
        return problems + ["the solution cannot be graded"]
    problems += [f"{t['name']}: {t['message']}" for t in verdict["tests"] if t["message"] == "the harness has no such test"]
    if verdict["max_score"] != sum(info["points"].values()):
        problems.append(f"the verdict is out of {verdict['max_score']}, exercise.toml has {sum(info['points'].values())} points")
    return problems


def starter(program, exercise):
    """It compiles and fails."""
    file = folder_of("exercises", exercise) / "kernel.cu"
    graded = program.check(exercise, file)
    if not graded.graded:
        return [f"{relative(file)} is not graded: {graded.reason()}"]
    if graded.status != 1 or graded.full:
        return [f"{relative(file)}: exit status {graded.status}, {graded.score} points; a starter must fail. If it holds your own "
                "solution, put it aside (git stash) to test the project"]
    return []


def solution(program, exercise):
    """Full marks, and no change outside the TODOs."""
    file = folder_of("solutions", exercise) / "kernel.cu"
    given = folder_of("exercises", exercise) / "kernel.cu"
    problems = [f"{relative(file)}: {p}" for p in differences(given.read_text(encoding="utf-8"), file.read_text(encoding="utf-8"))]
    graded = program.check(exercise, file)
    return problems if graded.full else problems + [f"{relative(file)}: {graded.reason()}"]


def variants(program, exercise):
    """Right submissions that look different."""
    files = sources("grader/variants", exercise)
    problems = [] if files else [f"grader/variants has nothing for {exercise}"]
    for file, graded in program.check_all(exercise, files):
        print(f"  {relative(file):<75} {graded.score}")
        if not graded.full:
            problems.append(f"{relative(file)}: {graded.reason()}")
    return problems


def bypasses(program, exercise):
    """Right results without the mechanism."""
    files = sources("grader/bypasses", exercise)
    problems = [] if files else [f"grader/bypasses has nothing for {exercise}"]
    # Mechanisms are asked for on the nominal schedule; a product by CUDA cores on all of them takes a minute.
    for file, graded in program.check_all(exercise, files, "nominal"):
        print(f"  {relative(file):<75} {graded.score}")
        if not graded.graded:
            problems.append(f"{relative(file)} is not graded: {graded.reason()}")
        elif graded.status != 1 or graded.full:
            problems.append(f"{relative(file)} gets full marks without the mechanism")
    return problems


def local_memory_problem(resources):
    """What a kernel keeps in local memory, or an empty text."""
    found = [f"{resources[key]} bytes of {name}" for key, name in
             (("spill_stores", "spill stores"), ("spill_loads", "spill loads"), ("stack", "stack")) if resources[key] > 0]
    return ", ".join(found)


def architectures(program, exercise):
    """Solution (and variants) for the other GPUs."""
    info = tomllib.loads((folder_of("exercises", exercise) / "exercise.toml").read_text(encoding="utf-8"))
    targets, with_variants = ARCHITECTURES[info["needs"]]
    files = [folder_of("solutions", exercise) / "kernel.cu"] + (sources("grader/variants", exercise) if with_variants else [])
    jobs = [(file, target) for file in files for target in targets]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(lambda job: program.resources(job[0], info["kernel"], job[1]), jobs))
    problems = []
    for (file, target), (resources, problem) in zip(jobs, results):
        if resources is not None:
            print(f"  {relative(file):<75} sm_{target}: {resources['registers']} registers")
            problem = local_memory_problem(resources)
        if problem:
            problems.append(f"{relative(file)} for sm_{target}: {problem}")
    return problems


RESOURCES = re.compile(r"(?<=<!-- begin: handoff resources --table -->\n\n)(.*?)(?=\n<!-- end: handoff resources --table -->)", re.DOTALL)


def resources(program, file, write):
    """(problems, reason to skip): the table in `file` is what the program prints."""
    run = program.run("resources", "--table")
    if run.returncode == 2 and "nvcc was not found" in run.stderr:
        raise NoCompiler(run.stderr.strip())
    text = file.read_text(encoding="utf-8")
    kept = RESOURCES.search(text)
    if run.returncode != 0 or kept is None:
        return [" ".join(run.stderr.split()) or f"{relative(file)} has no place for the table"], ""
    if write:
        file.write_text(RESOURCES.sub(lambda _: run.stdout, text), encoding="utf-8")
    elif kept[0] != run.stdout:
        made, now = (text.partition("\n")[0] for text in (kept[0], run.stdout))
        if made.startswith("ptxas of ") and made != now:
            return [], f"the table is of another compiler: {made} this is {now}"
        return [f"{relative(file)}: the table is not what ./handoff resources --table prints; with --write this test renews it"], ""
    return [], ""


def head_of(text, ids):
    """({id, line, core, any}, problem) of a wrong submission's head; `ids` are those of the catalogue."""
    expect, needs = EXPECT.findall(text), NEEDS.findall(text)
    if len(expect) != 1 or len(needs) != 1:
        return None, "needs one line `// expect: ID @ LINE` and one line `// needs: core` or `// needs: checker`"
    name, line = expect[0][0], int(expect[0][1])
    lines = text.splitlines()
    if name not in ids:
        return None, f"expects {name}, which has no page under docs/diagnostics"
    if not 1 <= line <= len(lines) or not lines[line - 1].strip():
        return None, f"expects line {line}, where nothing stands"
    return {"id": name, "line": line, "core": needs[0] == "core", "any": bool(ANY_SCHEDULE.search(text))}, ""


def judge(head, full, graded, diagnostics):
    """(outcome, reason): named | wrong. `diagnostics` as in the report."""
    wanted = f"{head['id']} @ {head['line']}"
    eligible = [d for d in diagnostics if head["any"] or d["schedule"] == "nominal"]
    first = f"{eligible[0]['id']} @ {eligible[0]['line']}" if eligible else "nothing"
    if not graded:
        return "wrong", "is not graded"
    # A warning or a note costs no points.
    if full and first == wanted and eligible[0].get("severity", "error") == "error":
        return "wrong", "gets full marks"
    return ("named", "") if first == wanted else ("wrong", f"reported: {first}")


def mutants(program, exercise, out):
    """Wrong submissions; solution and variants beside them, which must stay silent."""
    part = out / f"mutants-{exercise}.json"
    part.unlink(missing_ok=True)
    files = sources("grader/mutants", exercise)
    ids = {p.stem for p in (ROOT / "docs/diagnostics").glob("*.md")}
    problems = [] if files else [f"grader/mutants has nothing for {exercise}"]
    rows, alarms = [], []
    for file, graded in program.check_all(exercise, files):
        head, problem = head_of(file.read_text(encoding="utf-8"), ids)
        if head is None:
            problems.append(f"{relative(file)}: {problem}")
            rows.append({"file": relative(file), "wanted": "?", "outcome": "wrong", "reason": problem})
            continue
        found = graded.verdict["diagnostics"] if graded.verdict else []
        outcome, reason = judge(head, graded.full, graded.graded, found)
        # Which finding comes first may depend on the schedule, and the list names each only once.
        for schedule in SCHEDULES if outcome == "wrong" and head["any"] else ():
            alone = program.check(exercise, file, schedule)
            found = alone.verdict["diagnostics"] if alone.verdict else []
            if judge(head, graded.full, alone.graded, found)[0] == "named":
                outcome, reason = "named", ""
                break
        rows.append({"file": relative(file), "wanted": f"{head['id']} @ {head['line']}", "outcome": outcome, "reason": reason})
        if outcome == "wrong":
            problems.append(f"{relative(file)}: expected {head['id']} @ {head['line']}; {reason}; {graded.reason()}")
    right = sources("solutions", exercise) + sources("grader/variants", exercise)
    for file, graded in program.check_all(exercise, right):
        named = graded.named()
        if named:
            alarms.append({"file": relative(file), "reported": named[0]})
            problems.append(f"{relative(file)} is right, and {named[0]} is reported")
    out.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps({"rows": rows, "alarms": alarms}), encoding="utf-8")
    print(table(rows, alarms))
    return problems


def table(rows, alarms):
    """The outcome of wrong submissions, one a line, and the sum as the last line."""
    mark = {"named": "✓", "wrong": "✗"}
    text = [f"  {mark[r['outcome']]} {r['file'].removeprefix('grader/mutants/'):<70} {r['wanted']:<36} {r['reason']}".rstrip() for r in rows]
    text += [f"  ✗ {a['file']:<70} false alarm: {a['reported']}" for a in alarms]
    named = sum(r["outcome"] == "named" for r in rows)
    text.append(f"{named} of {len(rows)} named, {len(alarms)} false alarms")
    return "\n".join(text)


def summary(out):
    """(problems, reason to skip): all exercises' tables in one."""
    rows, alarms, problems = [], [], []
    (out / "mutants.txt").unlink(missing_ok=True)
    if not list(out.glob("mutants-*.json")):
        return [], "no wrong submission was graded (no nvcc?)"
    for folder in sorted(p.parent for p in ROOT.glob("exercises/*/exercise.toml")):
        part = out / f"mutants-{folder.name[:3]}.json"
        if not part.is_file():
            problems.append(f"{part} is missing: the test content.{folder.name[:3]}.mutants leaves it")
            continue
        result = json.loads(part.read_text(encoding="utf-8"))
        rows += result["rows"]
        alarms += result["alarms"]
    text = table(rows, alarms)
    (out / "mutants.txt").write_text(text + "\n", encoding="utf-8")
    print(text)
    return problems, ""


def made_by(ptx):
    """The line of a PTX file that names the compiler's release."""
    return next((line for line in ptx.splitlines() if "Cuda compilation tools" in line), "an unknown compiler")


def kept_ptx(program):
    """(problems, reason to skip): `handoff keep-ptx` in a copy of the project gives the files that are kept."""
    with tempfile.TemporaryDirectory(prefix="handoff-kept-") as name:
        copy = pathlib.Path(name)
        for folder in ("exercises", "solutions"):
            shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("*.ptx"))
        run = program.run("keep-ptx", HANDOFF_ROOT=str(copy))
        if run.returncode == 2 and "nvcc was not found" in run.stderr:
            raise NoCompiler(run.stderr.strip())
        if run.returncode != 0:
            return [run.stderr.strip()], ""
        made = {p.relative_to(copy): p.read_text(encoding="utf-8") for p in copy.rglob("*.ptx")}
    kept = {p.relative_to(ROOT): p for folder in ("exercises", "solutions") for p in (ROOT / folder).rglob("*.ptx")}
    cure = "run ./handoff keep-ptx"
    problems = [f"{p} is not kept: {cure}" for p in sorted(made.keys() - kept.keys())]
    problems += [f"{p} is kept, and there is no kernel that it comes from" for p in sorted(kept.keys() - made.keys())]
    for path in sorted(made.keys() & kept.keys()):
        text = kept[path].read_text(encoding="utf-8")
        if made_by(text) != made_by(made[path]):
            return problems, f"kept by {made_by(text)}, this is {made_by(made[path])}"
        if text != made[path]:
            problems.append(f"{path} is not what nvcc makes of its kernel: {cure}")
    return problems, ""


def no_nvcc(program):
    """What works on a machine without the CUDA toolkit; HANDOFF_NVCC names a compiler that is not there."""
    missing = {"HANDOFF_NVCC": "/nonexistent/nvcc"}
    problems = []
    for folder in sorted(p.parent for p in ROOT.glob("exercises/*/exercise.toml")):
        run = program.run("check", folder.name[:3], "--solution", "--device", "emulator", **missing)
        if run.returncode != 0:
            problems.append(f"{folder.name}: the kept solution: exit status {run.returncode}: {(run.stderr or run.stdout).strip()}")
    demo = program.run("demo", **missing)
    if demo.returncode != 0:
        problems.append(f"demo: exit status {demo.returncode}: {(demo.stderr or demo.stdout).strip()}")
    own = program.run("check", "01a", **missing)
    if own.returncode != 2 or own.stderr.count("\n") != 1 or "nvcc was not found" not in own.stderr:
        problems.append(f"check 01a: exit status {own.returncode}, expected 2 and one line about nvcc: {own.stderr.strip()}")
    return problems


def check_self():
    """The rules of this file on small planted cases."""
    good = "a\n// TODO(1): x\n// end TODO(1)\nb\n"
    assert not differences(good, good.replace("// end", "c();\n// end"))
    assert differences(good, good.replace("b", "c")) and differences(good, good + "c\n")
    assert differences("a\n", "a\n") and differences(good.replace("// end TODO(1)\n", ""), good)
    assert tests_in('HANDOFF_STANDARD_TESTS("01a", F)\nHANDOFF_TEST("01a", F, u_m, "u-m") {', "01a") == STANDARD_TESTS + ["u-m"]
    points = {"result": 3, "every-schedule": 3, "no-hazards": 4}
    grade_cc, hints = 'HANDOFF_STANDARD_TESTS("01a", F)', ["", "", ""]
    assert not catalog_problems({"points": points, "hints": hints}, grade_cc, "01a")
    assert len(catalog_problems({"points": dict(points, result=4), "hints": hints[1:]}, grade_cc, "01a")) == 2
    assert len(catalog_problems({"points": dict(points, more=0), "hints": hints}, grade_cc + ' HANDOFF_TEST("01a", F, x, "x")', "01a")) == 2
    head, problem = head_of("// expect: deadlock @ 2\n// needs: core\n", {"deadlock"})
    assert head == {"id": "deadlock", "line": 2, "core": True, "any": False} and not problem
    assert head_of("// expect: deadlock @ 9\n// needs: core\n", {"deadlock"})[0] is None
    assert head_of("// expect: deadlocks @ 1\n// needs: core\n", {"deadlock"})[0] is None
    dead = {"id": "deadlock", "line": 2, "schedule": "nominal"}
    assert judge(head, False, True, [dead])[0] == "named"
    assert judge(head, False, True, [dict(dead, line=3), dead])[0] == "wrong"
    assert judge(head, False, True, [dict(dead, schedule="lazy")])[0] == "wrong"
    assert judge(dict(head, any=True), False, True, [dict(dead, schedule="lazy")])[0] == "named"
    assert judge(head, True, True, [dict(dead, severity="warning")])[0] == "named"
    assert judge(head, True, True, [dead])[0] == "wrong" and judge(head, False, True, [])[0] == "wrong"
    clean = {"registers": 32, "spill_stores": 0, "spill_loads": 0, "stack": 0}
    assert local_memory_problem(clean) == "" and local_memory_problem(dict(clean, stack=8)) == "8 bytes of stack"
    assert local_memory_problem(dict(clean, spill_stores=4, spill_loads=4)) == "4 bytes of spill stores, 4 bytes of spill loads"
    assert table([{"file": "f", "wanted": "w", "outcome": "wrong", "reason": ""}], []).endswith("0 of 1 named, 0 false alarms")


def main():
    parser = argparse.ArgumentParser(description="Tests of the course's content.")
    parser.add_argument("--handoff", required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("kind", choices=["catalog", "starter", "solution", "variants", "bypasses", "mutants", "architectures",
                                         "summary", "resources", "kept_ptx", "no_nvcc"])
    parser.add_argument("exercise", nargs="?", default="")
    parser.add_argument("--write", action="store_true", help="resources: write docs/gpu.md anew instead of comparing")
    arguments = parser.parse_args()
    check_self()
    program, skip = Program(arguments.handoff), ""
    try:
        if arguments.kind == "summary":
            problems, skip = summary(arguments.out)
        elif arguments.kind == "resources":
            problems, skip = resources(program, ROOT / "docs/gpu.md", arguments.write)
        elif arguments.kind == "kept_ptx":
            problems, skip = kept_ptx(program)
        elif arguments.kind == "no_nvcc":
            problems = no_nvcc(program)
        elif arguments.kind == "mutants":
            problems = mutants(program, arguments.exercise, arguments.out)
        else:
            kinds = {"catalog": catalog, "starter": starter, "solution": solution, "variants": variants, "bypasses": bypasses,
                     "architectures": architectures}
            problems = kinds[arguments.kind](program, arguments.exercise)
    except NoCompiler as missing:
        problems, skip = [], str(missing)
    for problem in problems:
        print(problem)
    if skip and not problems:
        print(f"skipped: {skip}")
        return SKIP
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
