"""Which files of the project the lint tests read. Walks the folders, so that an unpacked archive is checked like a clone."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77  # exit status of a test whose tool is not installed (ctest SKIP_RETURN_CODE)


def relative(path):
    """The path of a file below ROOT, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


def host_sources(suffixes):
    """Host C++ files with one of the suffixes, sorted: grader/ without kernels, and exercises/*/grade.cc."""
    found = [p for p in (ROOT / "grader").rglob("*") if p.suffix in suffixes]
    found += [p for p in ROOT.glob("exercises/*/*") if p.suffix in suffixes]
    return sorted(p for p in found if p.is_file())


def documents():
    """Markdown files, sorted."""
    found = list(ROOT.glob("*.md"))
    for folder in ("docs", "chapters", "exercises", "solutions", "grader"):
        found += (ROOT / folder).rglob("*.md")
    return sorted(found)
