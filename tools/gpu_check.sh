#!/bin/bash
# Everything that a GPU can say about this version: builds, runs the device tests, grades solutions and starters, lets deadlocking kernels
# hang, certifies the GPU (20 launches of everything), and records what becomes of every wrong submission there.
#
#   tools/gpu_check.sh OUT_DIR [--seconds N] [--repeats N] [extra cmake arguments…]
#
# OUT_DIR receives
#   gpu_check.md    GPU, driver, date, every outcome
#   certify.json    the report of `handoff certify`: solutions, variants, conformance kernels, timing probes, cuBLASLt, benchmarks
#   mutants.json    what tools/sanitizer/compare.py records of the wrong and right submissions alone, without compute-sanitizer; it begins
#                   with the newest docs/results/sanitizer-*.json if that is of this GPU and driver
#   steps           what is done: a later call with the same OUT_DIR goes on behind it
# After N seconds (default 450) no new step begins. Exit status: 0 all as it should be, 1 not, 2 bad usage, 3 not finished: call again.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
usage="usage: tools/gpu_check.sh OUT_DIR [--seconds N] [--repeats N] [cmake arguments]"
out=${1:?$usage}
shift
seconds=450 repeats=20
while [[ ${1:-} == --seconds || ${1:-} == --repeats ]]; do
  [[ ${2:-} =~ ^[0-9]+$ ]] || { echo "$usage" >&2; exit 2; }
  if [[ $1 == --seconds ]]; then seconds=$2; else repeats=$2; fi
  shift 2
done
mkdir -p "$out" || exit 2
report=$out/gpu_check.md steps=$out/steps
build=build/gpu
touch "$steps" || exit 2

note() { printf '%s\n' "$*" | tee -a "$report"; }
left() { echo $((seconds - SECONDS)); }
is_done() { grep -qxF "$1" "$steps"; }
mark() { printf '%s\n' "$1" >> "$steps"; }
later() { echo "not finished after $SECONDS s: call again with the same folder"; exit 3; }

if [[ ! -s $report ]]; then
  note "# What a GPU said"
  note ""
  note "- date: $(date -u +%Y-%m-%d)"
  note "- GPU, driver: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
  note "- toolkit: $(nvcc --version | grep release | sed 's/.*release //')"
fi

if ! { cmake -S . -B $build -DCMAKE_BUILD_TYPE=Release -DHANDOFF_BENCH=OFF "$@" &&
  cmake --build $build -j "$(nproc)" --target handoff device_test; } > "$out/build.log" 2>&1; then
  echo "the build failed:"
  tail -20 "$out/build.log"
  exit 1
fi
rm -f "$out/build.log"
echo "built after $SECONDS s"

# heading TEXT: of a section, once.
heading() { is_done "heading $1" || { note ""; note "## $1"; mark "heading $1"; }; }

# expect STATUS SECONDS NAME COMMAND…: a step. Runs it, checks its exit status and that it took at most SECONDS. A failure is marked too;
# the last line of the report tells of it.
expect() {
  local want=$1 limit=$2 name=$3 begin end status took
  shift 3
  : > "$out/last.log"
  is_done "$name" && return
  [[ $(left) -gt 0 ]] || later
  begin=$(date +%s.%N)
  "$@" > "$out/last.log" 2>&1
  status=$?
  end=$(date +%s.%N)
  took=$(python3 -c "print(f'{$end - $begin:.1f}')")
  if [[ $status -eq $want ]] && python3 -c "import sys; sys.exit(0 if $took <= $limit else 1)"; then
    note "- ok: $name ($took s)"
  else
    note "- FAILED: $name: exit status $status, expected $want; $took s, limit $limit s"
    sed 's/^/      /' "$out/last.log" | tail -40 | tee -a "$report"
  fi
  mark "$name"
}

# quote LINES: the beginning of what the last step said; nothing where it was done before.
quote() { head -"$1" "$out/last.log" | sed 's/^/      /' | tee -a "$report"; }

heading "Device tests"
expect 0 120 "device_test" $build/device_test
grep -E '^\[ +(PASSED|FAILED|SKIPPED) +\]' "$out/last.log" | sed 's/^/      /' | tee -a "$report"

heading "Certified"
if ! is_done certify; then
  resume=()
  [[ -e $out/certify.json.part ]] && resume=(--resume)
  [[ $(left) -gt 0 ]] || later
  $build/handoff certify --out "$out/certify.json" --repeats "$repeats" --time-limit "$(left)" "${resume[@]}" | tee "$out/last.log"
  status=${PIPESTATUS[0]}
  [[ $status -eq 2 ]] && exit 1  # it could not begin; the reason is on the screen
  [[ -e $out/certify.json ]] || later
  if [[ $status -eq 0 ]]; then note "- ok: certify, $repeats launches of each input"; else note "- FAILED: certify: exit status $status"; fi
  sed -n '/^$/,$p' "$out/last.log" | sed 's/^/      /' >> "$report"
  mark certify
fi

heading "Exercises"
case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1) in
  10.0 | 10.3 | 11.0) has_tcgen05=1 ;;
  *) has_tcgen05=0 ;;
esac
ids=$($build/handoff list | grep -oE '\b[0-9]{2}[a-z]\b' | sort -u)
# So that their compilations, many at a time, are in the cache.
is_done "starters compiled" || xargs -P "$(nproc)" -I{} $build/handoff check {} --device auto <<< "$ids" > /dev/null 2>&1
mark "starters compiled"
for id in $ids; do
  if [[ $has_tcgen05 -eq 0 ]] && grep -q '^needs = "tcgen05"' exercises/"$id"-*/exercise.toml; then
    expect 2 60 "$id: skipped on this GPU, with the reason" $build/handoff check "$id" --solution --device cuda
    quote 2
  fi
  expect 0 60 "$id: the solution, on both devices" $build/handoff check "$id" --solution --device auto
  quote 3
  expect 1 60 "$id: the starter fails" $build/handoff check "$id" --device auto
done

heading "A kernel that hangs"
for mutant in grader/mutants/01a-first-handoff/count-too-high.cu grader/mutants/04a-two-copies-one-barrier/bytes-too-many.cu; do
  id=$(basename "$(dirname "$mutant")" | cut -c1-3)
  $build/handoff check "$id" --submission "$mutant" --device emulator > /dev/null 2>&1  # so that its compilation is in the cache
  expect 1 10 "$id: $(basename "$mutant") is killed and reported" $build/handoff check "$id" --submission "$mutant" --device cuda
  quote 6
  expect 0 60 "$id: the next grading runs, after $(basename "$mutant")" $build/handoff check "$id" --solution --device cuda
done

heading "Wrong and right submissions, alone"
if ! is_done mutants; then
  [[ $(left) -gt 0 ]] || later
  recorded=$(find docs/results -name 'sanitizer-*.json' | sort | tail -1)
  tools/sanitizer/compare.py run --runs plain --handoff $build/handoff --results "$out/mutants.json" ${recorded:+--start-from "$recorded"} \
    --jobs "$(nproc)" --budget "$(left)" | tee "$out/last.log"
  status=${PIPESTATUS[0]}
  if [[ $status -eq 1 ]]; then later; fi
  if [[ $status -eq 0 ]]; then
    tools/sanitizer/compare.py outcomes --results "$out/mutants.json" > "$out/last.log"
    status=$?
  fi
  if [[ $status -eq 0 ]]; then note "- ok: every submission ran alone"; else note "- FAILED: compare.py: exit status $status"; fi
  quote 40
  mark mutants
fi

rm -f "$out/last.log"
sum="all as it should be" status=0
if grep -q '^- FAILED' "$report"; then sum="NOT all as it should be" status=1; fi
if is_done end; then echo "$sum"; else note ""; note "$sum"; mark end; fi
exit $status
