#!/usr/bin/env python3
"""lint.docs: links between documents lead somewhere.

Every relative link or image of a Markdown file must name a file or folder of the project, and a #fragment a heading of the file that it
points into. Text in code spans and code blocks is not read. Before it reads the project the script checks itself.
"""

import pathlib
import re
import sys

import tree

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?:(?!\1).)+?\1", re.DOTALL)
HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*(?:\{#([\w-]+)\})?[ \t]*#*$", re.MULTILINE)


def blank(match):
    """The same lines with nothing in them, so that line numbers stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def anchors(text):
    """Fragments that the headings of a document give: GitHub's rule, and explicit {#id}."""
    found = set()
    for title, explicit in HEADING.findall(FENCE.sub(blank, text)):
        slug = re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-")
        found |= {slug, explicit}
    return found


def broken_links(path, text, read):
    """Lines "file:line: reason". `read(path)` gives a document's text, "" for another file or folder, None where nothing is there."""
    prose = CODE.sub(blank, FENCE.sub(blank, text))
    found = []
    for match in LINK.finditer(prose):
        target = match.group(1)
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        place = f"{path}:{prose.count(chr(10), 0, match.start()) + 1}"
        file, _, fragment = target.partition("#")
        other = text if not file else read((pathlib.PurePosixPath(path).parent / file).as_posix())
        if other is None:
            found.append(f"{place}: {target}: no such file")
        elif fragment and fragment not in anchors(other):
            found.append(f"{place}: {target}: no such heading")
    return found


def self_test():
    """A small set of documents with known faults."""
    there = {"docs/b.md": "# One thing\n## `x` and y {#why}\n", "docs/dir": ""}
    text = "[a](b.md) [b](b.md#one-thing) [c](b.md#why) ![d](dir) [e](https://x.test/a#b) `[f](no.md)`\n```\n[g](no.md)\n```\n"
    if broken_links("docs/a.md", text, there.get):
        return "a good link was reported"
    for bad in ("[a](c.md)", "[a](b.md#two)", "[a](#here)", "![p](p.svg)", '[a](c.md "title")'):
        if len(broken_links("docs/a.md", "\n" + bad, there.get)) != 1:
            return f"{bad} was not reported"
    return None


def read(path):
    """Text of a document of the project, "" for what is not Markdown, None for what is not there."""
    file = tree.ROOT / path
    if not file.exists():
        return None
    return file.read_text() if file.suffix == ".md" else ""


def main():
    problem = self_test()
    if problem:
        print(f"self-test failed: {problem}")
        return 1
    files = tree.documents()
    found = []
    for path in files:
        found += broken_links(tree.relative(path), path.read_text(), read)
    for line in found:
        print(line)
    print(f"{len(files)} documents, {len(found)} broken links")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
