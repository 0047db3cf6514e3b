#!/usr/bin/env python3
"""diagnostics.examples: the examples of the diagnostics catalogue do what their pages say.

    diagnostics_test.py --handoff BUILD/handoff [--write] [ID…]

Each id that this version can report has docs/diagnostics/examples/ID-wrong.cu and ID-right.cu, and ID-wrong-2.cu and ID-right-2.cu where
it has a second form. The head of an example:
    // expect: ID @ LINE     wrong only: its first diagnostic, on the nominal schedule
    // schedule: any         wrong only: the first diagnostic of some schedule, perhaps not the nominal one
    // run: --grid 1 …       how it is launched: arguments of `handoff run-kernel`, besides the file and --schedule
The page's first and second code blocks under Wrong and Right are the lines between `// begin` and `// end` in the files, less the first: `#line 1 "kernel.cu"`
makes lines count from 1 there, as a reader of the page counts them. The page's line in a block `text` is the diagnostic that the wrong
example above it gives. The right example gives none on any schedule. `handoff explain` shows every page without Markdown's marks, and `handoff
run-kernel` answers wrong usage with one line.

With --write the pages are first brought in line with the files and with what the wrong examples give.

Exit status: 0 all well, 1 not (each reason on a line), 77 there is no nvcc.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "diagnostics"
EXAMPLES = FOLDER / "examples"
SKIP = 77

LATER = "which is not part of this version yet"
EXPECT = re.compile(r"^// expect: (?P<id>[a-z][a-z0-9-]*) @ (?P<line>[0-9]+)$", re.MULTILINE)
ANY_SCHEDULE = re.compile(r"^// schedule: any$", re.MULTILINE)
RUN = re.compile(r"^// run: (.+)$", re.MULTILINE)
BODY = re.compile(r'^// begin\n#line 1 "kernel\.cu"\n(.*?)^// end$', re.MULTILINE | re.DOTALL)
MAX_LINES = 40  # of a kernel
MESSAGE = re.compile(r"^```text\n(.+)\n```$", re.MULTILINE)


class NoCompiler(Exception):
    """There is no nvcc; the text says where it was looked for."""


def blocks(page, section):
    """The texts of the code blocks in a section of a page."""
    found = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```cuda\n(.*?)^```$", found.group(1), re.MULTILINE | re.DOTALL) if found else []


def examples(name):
    """The pairs of an id: (number from 0, {"wrong": file, "right": file})."""
    for number, suffix in enumerate(("", "-2")):
        files = {kind: EXAMPLES / f"{name}-{kind}{suffix}.cu" for kind in ("wrong", "right")}
        if number == 0 or any(f.is_file() for f in files.values()):
            yield number, files


def line_of(diagnostic):
    """A diagnostic as a page shows it."""
    return f"{diagnostic['severity']}[{diagnostic['id']}] {diagnostic['file']}:{diagnostic['line']}: {diagnostic['message']}"


def run(handoff, file, arguments):
    """The runs of an example on every schedule, and why there are none."""
    done = subprocess.run([handoff, "run-kernel", str(file), *shlex.split(arguments), "--json", "-"], capture_output=True, text=True, timeout=500,
                          check=False)
    if done.returncode in (0, 1) and done.stdout:
        return json.loads(done.stdout)["runs"], None
    if "nvcc" in done.stderr and "not found" in done.stderr:
        raise NoCompiler(done.stderr.strip())
    return None, done.stderr.strip().replace("\n", "; ") or f"exit status {done.returncode}"


def wrong_problems(name, text, page, runs, number=0):
    """What is not as the head of a wrong example and its page say."""
    expected = EXPECT.findall(text)
    if len(expected) != 1:
        return ["needs one line `// expect: ID @ LINE`"]
    wanted = (name, int(expected[0][1]))
    if expected[0][0] != name:
        return [f"expects {expected[0][0]}, which is not its own id"]
    firsts = [(r["schedule"], r["diagnostics"][0] if r["diagnostics"] else None) for r in runs]
    if not ANY_SCHEDULE.search(text):
        firsts = [f for f in firsts if f[0] == "nominal"]
    hits = [d for _, d in firsts if d and (d["id"], d["line"]) == wanted]
    if not hits:
        seen = "; ".join(sorted({f"{schedule}: {line_of(d) if d else 'nothing'}" for schedule, d in firsts}))
        return [f"expects {wanted[0]} @ {wanted[1]} first, but has {seen}"]
    shown = MESSAGE.findall(page)
    if shown[number:number + 1] != [line_of(hits[0])]:
        return [f"gives `{line_of(hits[0])}`, which is not what its page shows"]
    return []


def right_problems(runs):
    """What was found in a right example."""
    problems = [f"has on {r['schedule']}: {line_of(d)}" for r in runs for d in r["diagnostics"]]
    return problems + [f"ends with {r['status']} on {r['schedule']}" for r in runs if r["status"] != "ok" and not r["diagnostics"]]


def problems_of(handoff, name, page):
    """What is wrong with the two examples of an id."""
    pairs = list(examples(name))
    found = [f"docs/diagnostics/{name}.md has {len(blocks(page, section))} kernels under {section}, and there are {len(pairs)} pairs of examples"
             for section in ("Wrong", "Right") if len(blocks(page, section)) != len(pairs)]
    if len(MESSAGE.findall(page)) != len(pairs):
        found.append(f"docs/diagnostics/{name}.md shows {len(MESSAGE.findall(page))} diagnostics, and there are {len(pairs)} pairs of examples")
    for number, kind in ((n, k) for n, _ in pairs for k in ("wrong", "right")):
        file, section = pairs[number][1][kind], kind.capitalize()
        where = file.relative_to(ROOT)
        if not file.is_file():
            found.append(f"{where} is missing")
            continue
        text = file.read_text(encoding="utf-8")
        launch, body = RUN.search(text), BODY.search(text)
        if launch is None or body is None:
            found.append(f"{where} needs a line `// run: …`, and `// begin`, `#line 1 \"kernel.cu\"`, `// end` around its kernel")
            continue
        if blocks(page, section)[number:number + 1] != [body.group(1)]:
            found.append(f"{where} and the block under {section} in docs/diagnostics/{name}.md differ")
        if body.group(1).count("\n") > MAX_LINES:
            found.append(f"{where} has a kernel of more than {MAX_LINES} lines")
        runs, why = run(handoff, file, launch.group(1))
        problems = [why] if runs is None else wrong_problems(name, text, page, runs, number) if kind == "wrong" else right_problems(runs)
        found += [f"{where} {p}" for p in problems]
    return found


def rewritten(page, wrong, right, message, number=0):
    """A page whose blocks of this number are these bodies and this line; a second block that it lacks is added."""

    def with_block(section, text, pattern):
        def replace(m):
            old = list(re.finditer(pattern, m.group(2), re.MULTILINE | re.DOTALL))
            begin, end = old[number].span() if number < len(old) else (old[-1].end(), old[-1].end()) if old else (0, 0)
            return m.group(1) + m.group(2)[:begin] + ("" if number < len(old) or not old else "\n") + text + m.group(2)[end:]

        return re.sub(rf"^(## {section}\n)(.*?)(?=^## |\Z)", replace, page, flags=re.MULTILINE | re.DOTALL)

    page = with_block("Wrong", f"```cuda\n{wrong}```\n```text\n{message}\n```\n", r"^```cuda\n.*?^```\n(?:```text\n.*?^```\n)?")
    return with_block("Right", f"```cuda\n{right}```\n", r"^```cuda\n.*?^```\n")


def write_page(handoff, name, page):
    """Brings a page in line with its examples, where they give the expected diagnostic; returns it."""
    for number, files in examples(name):
        if not all(f.is_file() for f in files.values()):
            continue
        texts = {kind: f.read_text(encoding="utf-8") for kind, f in files.items()}
        runs, _ = run(handoff, files["wrong"], RUN.search(texts["wrong"]).group(1))
        wanted = EXPECT.findall(texts["wrong"])[0]
        firsts = [r["diagnostics"][0] for r in runs or [] if r["diagnostics"]]
        hits = [d for d in firsts if (d["id"], str(d["line"])) == wanted]
        if hits:
            page = rewritten(page, *(BODY.search(texts[kind]).group(1) for kind in ("wrong", "right")), line_of(hits[0]), number)
            (FOLDER / f"{name}.md").write_text(page, encoding="utf-8")
    return page


def explain_problems(handoff, pages):
    """What is not as it should be in the text of `handoff explain`."""

    def explain(*arguments):
        done = subprocess.run([handoff, "explain", *arguments], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    found = []
    for name, page in pages.items():
        status, text, _ = explain(name)
        if status != 0 or not text.startswith(name + "\n"):
            found.append(f"`handoff explain {name}` does not begin with the id")
        for mark in ("```", "](", "\n#"):
            if mark in text:
                found.append(f"`handoff explain {name}` shows the mark {mark.strip()}")
        for section in ("Wrong", "Right"):
            for line in "".join(blocks(page, section)).splitlines():
                if line and f"      {line}\n" not in text:
                    found.append(f"`handoff explain {name}` lacks the line `{line}`")
    status, text, _ = explain()
    if status != 0 or [line.split()[0] for line in text.split("\n\n")[0].splitlines() if line[0] != " "] != sorted(pages):
        found.append("`handoff explain` does not list all ids")
    for typed, answer in (("stale-partiy", "stale-parity"), ("Error[Data_Rase]", "data-race"), ("zzzzzzzzzzzz", "lists them")):
        status, _, errors = explain(typed)
        if status != 2 or answer not in errors or errors.count("\n") != 1:
            found.append(f"`handoff explain {typed}` answers `{errors.strip()}`, exit status {status}")
    return found


def usage_problems(handoff):
    """What `handoff run-kernel` does not answer with one line and exit status 2. None of these needs nvcc."""
    file = str(EXAMPLES / "trap-right.cu")
    found = []
    for arguments, answer in ((["nothing.cu"], "no such file"), ([str(FOLDER)], "neither a .cu nor a .ptx"),
                              ([file, "--block", "1025"], "from 1 to 1024"),
                              ([file, "--grid", "0"], "--grid"), ([file, "--grid", "3", "--cluster", "2"], "whole clusters"),
                              ([file, "--arg", "in:x"], "in:FLOATS"), ([file, "--arg", "map:8,8,8"], "map:WIDTH"),
                              ([file, "--schedule", "lasy"], "did you mean lazy"),
                              ([file, "--smem", "-1"], "--smem"), ([file, "--seed", "x"], "--seed")):
        done = subprocess.run([handoff, "run-kernel", *arguments], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 2 or answer not in done.stderr or done.stderr.count("\n") != 1 or done.stdout:
            found.append(f"`handoff run-kernel {' '.join(arguments)}` answers `{done.stderr.strip()}`, exit status {done.returncode}")
    return found


def check_self():
    """The rules on planted cases."""
    d = {"severity": "error", "id": "a-b", "file": "a-b-wrong.cu", "line": 3, "message": "m"}
    other = dict(d, line=4)
    nominal = {"schedule": "nominal", "status": "fault", "diagnostics": [d, other]}
    text, page = "// expect: a-b @ 3\n", "## Wrong\n```cuda\nx;\n```\n```text\nerror[a-b] a-b-wrong.cu:3: m\n```\n"
    assert blocks(page, "Wrong") == ["x;\n"] and blocks(page, "Right") == []
    assert not wrong_problems("a-b", text, page, [nominal])
    lazy = {"schedule": "lazy", "status": "ok", "diagnostics": [d]}
    for bad in ([dict(nominal, diagnostics=[other, d])], [dict(nominal, diagnostics=[])], [dict(nominal, diagnostics=[]), lazy]):
        assert wrong_problems("a-b", text, page, bad)
    assert not wrong_problems("a-b", text + "// schedule: any\n", page, [dict(nominal, diagnostics=[]), lazy])
    assert wrong_problems("a-b", text, page.replace(": m", ": n"), [nominal]) and wrong_problems("a-c", text, page, [nominal])
    assert rewritten(page + "## Right\n```cuda\ny;\n```\n", "z;\n", "v;\n", "t") == \
        "## Wrong\n```cuda\nz;\n```\n```text\nt\n```\n## Right\n```cuda\nv;\n```\n"
    two = rewritten(page + "\n## Right\n```cuda\ny;\n```\n\n## See also\n", "z;\n", "v;\n", "t", 1)
    assert blocks(two, "Wrong") == ["x;\n", "z;\n"] and blocks(two, "Right") == ["y;\n", "v;\n"]
    assert MESSAGE.findall(two) == ["error[a-b] a-b-wrong.cu:3: m", "t"] and rewritten(two, "z;\n", "v;\n", "t", 1) == two
    assert wrong_problems("a-b", text, two, [nominal], 1) and not wrong_problems("a-b", text, two, [nominal])
    assert right_problems([lazy]) and right_problems([dict(lazy, status="hang", diagnostics=[])]) and not right_problems([dict(lazy, diagnostics=[])])


def main():
    check_self()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--handoff", required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("ids", nargs="*", metavar="ID")
    arguments = parser.parse_args()
    pages = {p.stem: p.read_text(encoding="utf-8") for p in sorted(FOLDER.glob("*.md")) if p.stem not in ("README", "index")}
    names = [name for name, page in pages.items() if LATER not in page]
    problems = [f"docs/diagnostics/examples/{p.name} belongs to no id that can be reported" for p in sorted(EXAMPLES.glob("*.cu"))
                if re.sub(r"-(wrong|right)(-2)?$", "", p.stem) not in names]
    if not arguments.ids:
        problems += explain_problems(arguments.handoff, pages) + usage_problems(arguments.handoff)
    def check(name):
        page = write_page(arguments.handoff, name, pages[name]) if arguments.write else pages[name]
        return problems_of(arguments.handoff, name, page)

    with concurrent.futures.ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        try:
            problems += [problem for found in pool.map(check, arguments.ids or names) for problem in found]
        except NoCompiler as reason:
            print(f"skipped: {reason}")
            return SKIP
    for problem in problems:
        print(problem)
    print(f"{len(arguments.ids or names)} ids, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
