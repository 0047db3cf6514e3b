#!/usr/bin/env python3
"""What the observer hooks cost where nobody watches: the benchmarks with them against the same program without.

    hooks_cost.py [--build FOLDER] [--rounds N] [--limit RATIO] [--filter REGEX]

Builds handoff_bench and handoff_bench_bare (HANDOFF_NO_HOOKS: every call of an observer compiled out) in FOLDER, which must be
configured. A round is one short run of one benchmark in each program, one right behind the other, so that whatever else the machine does
disturbs both alike; the order changes from round to round. Where a process's pages lie decides a few per cent of what copying costs, so
many short runs say more than a few long ones. Prints for each benchmark the least processor time of each program, their ratio, the median
of the ratios of the rounds, and, where valgrind is installed, the ratio of the instructions that the programs execute for one iteration.
The median decides, and the instructions: a single round on a faster clock decides the ratio of the least times.
Exit status: 0, 1 if a deciding ratio is above RATIO, 2 if something could not run.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ("handoff_bench", "handoff_bench_bare")
BENCHMARKS = r"^(arithmetic/warps:8|shared/warps:8|shared/warps:32|bulk_copy|tensor_copy|two_copies/tiles:256)$"


def names_of(program, pattern):
    """Names of the benchmarks that match."""
    command = [program, f"--benchmark_filter={pattern}", "--benchmark_list_tests=true"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def measure(program, name, seconds):
    """Processor time of one iteration of a benchmark, in nanoseconds."""
    command = [program, f"--benchmark_filter=^{name}$", f"--benchmark_min_time={seconds}", "--benchmark_format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program} ended with status {done.returncode}: {done.stderr.strip()}")
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    (benchmark,) = json.loads(done.stdout)["benchmarks"]
    return benchmark["cpu_time"] * scale[benchmark["time_unit"]]


def instructions(program, name):
    """Instructions of the whole program when it runs one iteration of one benchmark."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, f"--benchmark_filter=^{name}$",
               "--benchmark_min_time=0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with status {done.returncode}")
    return int(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "default")
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--min-time", type=float, default=0.1, help="seconds a benchmark runs in a round")
    parser.add_argument("--limit", type=float, default=1.02)
    parser.add_argument("--filter", default=BENCHMARKS, help="benchmarks to run, as Google Benchmark's own filter")
    options = parser.parse_args()
    try:
        subprocess.run(["cmake", "--build", options.build, "--target", *PROGRAMS], check=True, stdout=subprocess.DEVNULL)
        names = names_of(options.build / PROGRAMS[0], options.filter)
        times = {}  # by benchmark: of each program, the rounds
        for at, name in enumerate(names):
            times[name] = [[], []]
            for number in range(options.rounds):
                if sys.stderr.isatty():
                    print(f"\r{at + 1} of {len(names)}: {name}, round {number + 1} of {options.rounds}\033[K", end="", file=sys.stderr)
                for which in ((0, 1) if number % 2 == 0 else (1, 0)):
                    times[name][which].append(measure(options.build / PROGRAMS[which], name, options.min_time))
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        counts = {}
        if shutil.which("valgrind"):
            counts = {n: [instructions(options.build / p, n) for p in PROGRAMS] for n in names}
    except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
        print(f"hooks_cost.py: {error}", file=sys.stderr)
        return 2
    if not names:
        print(f"hooks_cost.py: no benchmark matches {options.filter}", file=sys.stderr)
        return 2
    print(f"{'benchmark':<24} {'hooks, µs':>12} {'none, µs':>12} {'ratio':>7} {'median':>7} {'instructions':>13}")
    worst = 0.0
    for name in names:
        hooks, none = times[name]
        median = statistics.median(a / b for a, b in zip(hooks, none))
        executed = counts[name][0] / counts[name][1] if counts else None
        worst = max(worst, median, executed or median)
        print(f"{name:<24} {min(hooks) / 1e3:>12.1f} {min(none) / 1e3:>12.1f} {min(hooks) / min(none):>7.3f} {median:>7.3f} "
              + (f"{executed:>13.4f}" if executed else f"{'no valgrind':>13}"))
    return 0 if worst <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
