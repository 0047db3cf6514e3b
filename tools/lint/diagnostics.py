#!/usr/bin/env python3
"""docs.diagnostics: the catalogue of diagnostics is complete and well-formed.

Every id that the emulator's sources can report has a page docs/diagnostics/ID.md, and so has every id that a wrong submission expects. A
page has its heading, a one-line summary, severity and reporter, and the sections below in this order, none of them empty. The
reporter agrees with the sources: "emulator core" if and only if code outside grader/emulator/check reports the id. Before it reads the
project the script checks itself.
"""

import re
import sys

import tree

FOLDER = tree.ROOT / "docs" / "diagnostics"
SECTIONS = ["What happened", "Why the hardware cares", "Wrong", "Right", "See also"]
MAX_LINES = 110
CORE = "emulator core"
CHECKER = "happens-before checker"
LATER = "happens-before checker, which is not part of this version yet"

ID = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
# make_fault("ID", …), report(instruction, "ID", …), diagnostic.id = "ID"; in the checker find("ID", Severity::…, …), or a choice of two.
REPORTED = [re.compile(rf'\bmake_fault\(\s*"({ID})"'), re.compile(rf'\breport\(\s*[^,"();]+(?:\([^()"]*\))?[^,"();]*,\s*"({ID})"'),
            re.compile(rf'\bid\s*=\s*"({ID})"'), re.compile(rf'\bid\s*=\s*[^;"]*\?\s*"({ID})"'), re.compile(rf'\bid\s*=\s*[^;"]*\?\s*"{ID}"\s*:\s*"({ID})"')]
# In the checker also what a function chooses: return … ? "ID" : otherwise.
CHOSEN = re.compile(rf'\breturn\s[^;"]*\?\s*"({ID})"')
FOUND = re.compile(r"\bfind\(([^;]*?),[^;,]*?Severity::")
# In the checker report("ID", instruction, …), or a choice of several.
CHECKED = re.compile(r"\breport\(([^;,]*?),")
LITERAL = re.compile(rf'"({ID})"')
STATUS = re.compile(r"Severity: ([^.\n]+)\. Reported by: ([^.\n]+)\.")
SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n)*)", re.MULTILINE)


def reported_in(text, passed_on=frozenset(), in_checker=False):
    """Ids that a source reports in the forms above; so does a string that is one of `passed_on`, an argument that ends up in one of them."""
    text = re.sub(r"//.*", "", text)
    found = {name for form in REPORTED for name in form.findall(text)}
    found |= {name for call in FOUND.findall(text) for name in LITERAL.findall(call)}
    if in_checker:
        found |= set(CHOSEN.findall(text))
        found |= {name for call in CHECKED.findall(text) for name in LITERAL.findall(call)}
    return found | (set(LITERAL.findall(text)) & passed_on)


def page_problems(name, text, by_core, by_checker):
    """What is wrong with one page."""
    lines = text.splitlines()
    problems = []
    if lines[:1] != [f"# {name}"]:
        problems.append(f"must begin with `# {name}`")
    if len(lines) < 3 or not re.fullmatch(r"\S.*\.", lines[2]):
        problems.append("line 3 must be a summary of one sentence")
    if len(lines) > MAX_LINES:
        problems.append(f"has {len(lines)} lines; at most {MAX_LINES}")
    sections = SECTION.findall(text)
    if [title for title, _ in sections] != SECTIONS:
        problems.append(f"must have the sections {', '.join(SECTIONS)}, in this order")
    for title, body in sections:
        if not body.strip() or (title in ("Wrong", "Right") and not re.search(r"```cuda\n\s*\S(.|\n)*\n```", body.replace("```cuda\n```", ""))):
            problems.append(f"has nothing in its section {title}")
        if title == "Why the hardware cares" and "§" not in body and "Guide" not in body:
            problems.append("names no section of the PTX ISA under Why the hardware cares")
    status = STATUS.search(text)
    if status is None:
        return problems + ["needs a line `Severity: …. Reported by: ….`"]
    if not re.match(r"error|warning|note", status.group(1)):
        problems.append(f"has the severity {status.group(1)}; there are error, warning and note")
    wanted = " and ".join(who for who, is_so in ((CORE, by_core), (CHECKER, by_checker)) if is_so) or LATER
    if status.group(2) != wanted:
        problems.append(f"says that the {status.group(2)} reports it; by the sources it is the {wanted}")
    return problems


def check_self():
    """The rules on planted cases."""
    forms = 'throw make_fault(\n "a-b", x); launch.report(i, "c-d", y); w.cta->launch->report(*f.inst, "e", z); d.id = "f"; d.id = k ? "j" : "l"; return k ? "m" : o; g(w, "h-i");'
    assert reported_in(forms) == {"a-b", "c-d", "e", "f", "j", "l"}
    assert reported_in(forms, in_checker=True) == reported_in(forms) | {"m"} and "h-i" in reported_in(forms, {"h-i"})
    assert reported_in('find(x ? "a-b" : "c-d", Severity::Error, "e-f"); if (d.id == "g") s.find("i", Severity::Note, y); // "j"') == {"a-b", "c-d", "i"}
    assert reported_in('report(x ? "a-b" : y ? "c-d" : "e", b.inst, "f-g");', in_checker=True) == {"a-b", "c-d", "e"}
    assert reported_in('find(x ? "a-b" : "c-d", x ? Severity::Error : Severity::Note, "e-f");') == {"a-b", "c-d"}
    code = "```cuda\nx;\n```\n"
    good = ("# a-b\n\nIt is so.\n\nSeverity: error. Reported by: emulator core.\n\n## What happened\nx\n\n## Why the hardware cares\n§9.7\n\n"
            f"## Wrong\n{code}\n## Right\n{code}\n## See also\nx.\n")
    assert not page_problems("a-b", good, True, False)
    for bad in (good.replace("# a-b", "# a-c"), good.replace("It is so.", ""), good.replace("error", "grave"), good.replace("## Right\n", ""),
                good.replace("x;", ""), good.replace("§", ""), good + "x\n" * MAX_LINES, good.replace("What happened\nx", "What happened\n")):
        assert page_problems("a-b", bad, True, False), bad
    assert page_problems("a-b", good, False, False) and page_problems("a-b", good, True, True)


def main():
    check_self()
    pages = {p.stem: p for p in sorted(FOLDER.glob("*.md")) if p.stem not in ("README", "index")}
    core, checker = {}, {}
    for source in tree.host_sources({".cc", ".h", ".inc"}):
        path = tree.relative(source)
        if not path.startswith(("grader/emulator/", "grader/device/")) or re.search(r"_(test|fuzz)\.cc$", path):
            continue
        in_checker = path.startswith("grader/emulator/check/")
        for name in reported_in(source.read_text(encoding="utf-8"), frozenset() if in_checker else frozenset(pages), in_checker):
            (checker if in_checker else core).setdefault(name, path)
    problems = [f"docs/diagnostics/{name}.md is missing: {path} reports {name}" for name, path in sorted({**checker, **core}.items()) if name not in pages]
    for mutant in sorted((tree.ROOT / "grader" / "mutants").rglob("*.cu")):
        for name in re.findall(r"^// expect: (\S+)", mutant.read_text(encoding="utf-8"), re.MULTILINE):
            if name not in pages:
                problems.append(f"docs/diagnostics/{name}.md is missing: {tree.relative(mutant)} expects {name}")
    for name, page in pages.items():
        problems += [f"docs/diagnostics/{name}.md {p}" for p in page_problems(name, page.read_text(encoding="utf-8"), name in core, name in checker)]
    if not core:
        problems.append("no source under grader/emulator reports anything: the patterns of this script are out of date")
    for problem in problems:
        print(problem)
    print(f"{len(pages)} pages; {len(core)} ids reported by the emulator core, {len(checker)} by the checker")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
