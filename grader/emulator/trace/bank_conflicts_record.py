#!/usr/bin/env python3
"""Asks a GPU how many wavefronts accesses of shared memory take: bank_conflicts_record.py RECORD [PROBE]

Runs bank_conflicts_probe.cu (compiled with nvcc, or the program PROBE) under Nsight Compute and writes RECORD: a line a
launch with the operation, its active lanes, wavefronts and bank conflicts of one access, and the byte offset of each
lane. bank_conflicts_test.cc compares the emulator's count with it. Needs a GPU, nvcc or PROBE, and ncu with the
permission to read counters.
"""
import csv
import datetime
import pathlib
import re
import subprocess
import sys
import tempfile

ACCESSES = 1024  # of each launch, as in the probe
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    record = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 2:
            probe = sys.argv[2]
        else:
            probe = f"{folder}/probe"
            source = pathlib.Path(__file__).with_name("bank_conflicts_probe.cu")
            output_of("nvcc", "-O2", "-std=c++20", "-arch=native", "-o", probe, str(source))
        launches = f"{folder}/launches"
        text = output_of("ncu", "--csv", "--page", "raw", "--metrics", f"{WAVEFRONTS},{CONFLICTS}", probe, launches)
        rows = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
        lines = pathlib.Path(launches).read_text().splitlines()
    columns = [rows[0].index(metric) for metric in (WAVEFRONTS, CONFLICTS)]
    counters = [[float(row[column].replace(",", "")) for column in columns] for row in rows[2:]]  # [1]: units
    if len(counters) != len(lines):
        sys.exit(f"{len(lines)} launches, but counters of {len(counters)}")
    gpu = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()[0]
    ncu = re.search(r"Version ([0-9.]+)", output_of("ncu", "--version")).group(1)
    with record.open("w") as out:
        print(f"# {gpu}, ncu {ncu}, {datetime.date.today()}", file=out)
        print("# operation, lanes, wavefronts, bank conflicts, offsets", file=out)
        for line, both in zip(lines, counters):
            operation, lanes, offsets = line.split(" ", 2)
            # A launch has a few wavefronts of its own.
            wavefronts, conflicts = (int(count / ACCESSES + 0.25) for count in both)
            print(operation, lanes, wavefronts, conflicts, offsets, file=out)


main()
