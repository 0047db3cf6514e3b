#!/bin/bash
# Everything that a GPU can say about this version, in one run: builds, runs the device tests, grades the solutions on the GPU, lets a deadlocking
# kernel hang, and writes one report.
#
#   tools/gpu_check.sh OUT_DIR [extra cmake arguments…]
#
# OUT_DIR receives gpu_check.md (GPU, driver, date, every outcome) and the JSON verdicts. Exit status 0: all as it should be.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
out=${1:?usage: tools/gpu_check.sh OUT_DIR [cmake arguments]}
shift
mkdir -p "$out" || exit 2
report=$out/gpu_check.md
build=build/gpu
failed=0
note() { printf '%s\n' "$*" | tee -a "$report"; }
: > "$report"

note "# What a GPU said"
note ""
note "- date: $(date -u +%Y-%m-%d)"
note "- GPU, driver: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
note "- toolkit: $(nvcc --version | grep release | sed 's/.*release //')"
note ""

cmake -S . -B $build -DCMAKE_BUILD_TYPE=Release -DHANDOFF_BENCH=OFF "$@" > "$out/build.log" 2>&1 &&
  cmake --build $build -j "$(nproc)" --target handoff device_test >> "$out/build.log" 2>&1 ||
  { note "the build failed:"; tail -20 "$out/build.log" | tee -a "$report"; exit 1; }

# expect STATUS SECONDS NAME COMMAND…: runs it, checks its exit status and that it took at most SECONDS.
expect() {
  local want=$1 limit=$2 name=$3 begin end status took
  shift 3
  begin=$(date +%s.%N)
  "$@" > "$out/last.log" 2>&1
  status=$?
  end=$(date +%s.%N)
  took=$(printf '%.1f' "$(echo "$end - $begin" | bc -l 2> /dev/null || python3 -c "print($end - $begin)")")
  if [[ $status -eq $want ]] && python3 -c "import sys; sys.exit(0 if $took <= $limit else 1)"; then
    note "- ok: $name ($took s)"
  else
    note "- FAILED: $name: exit status $status, expected $want; $took s, limit $limit s"
    sed 's/^/      /' "$out/last.log" | tail -40 | tee -a "$report"
    failed=1
  fi
}

note "## Device tests"
expect 0 120 "device_test" $build/device_test
grep -E '^\[ +(PASSED|FAILED|SKIPPED) +\]' "$out/last.log" | sed 's/^/      /' | tee -a "$report"

note ""
note "## Exercises"
case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1) in
  10.*) has_tcgen05=1 ;;
  *) has_tcgen05=0 ;;
esac
for id in $($build/handoff list | grep -oE '\b[0-9]{2}[a-z]\b' | sort -u); do
  if [[ $has_tcgen05 -eq 0 ]] && grep -q '^needs = "tcgen05"' exercises/"$id"-*/exercise.toml; then
    expect 2 60 "$id: skipped on this GPU, with the reason" $build/handoff check "$id" --solution --device cuda
    head -2 "$out/last.log" | sed 's/^/      /' | tee -a "$report"
  else
    expect 0 60 "$id: the solution, on the GPU" $build/handoff check "$id" --solution --device cuda --json "$out/$id-cuda.json"
  fi
  expect 0 60 "$id: the solution, on both devices" $build/handoff check "$id" --solution --device auto
  head -3 "$out/last.log" | sed 's/^/      /' | tee -a "$report"
  expect 1 60 "$id: the starter fails" $build/handoff check "$id" --device auto
done

note ""
note "## A kernel that hangs"
for mutant in grader/mutants/01a-first-handoff/count-too-high.cu grader/mutants/04a-two-copies-one-barrier/bytes-too-many.cu; do
  id=$(basename "$(dirname "$mutant")" | cut -c1-3)
  $build/handoff check "$id" --submission "$mutant" --device emulator > /dev/null 2>&1  # so that its compilation is in the cache
  expect 1 10 "$id: $(basename "$mutant") is killed and reported" $build/handoff check "$id" --submission "$mutant" --device cuda
  head -6 "$out/last.log" | sed 's/^/      /' | tee -a "$report"
  expect 0 60 "$id: the next grading runs" $build/handoff check "$id" --solution --device cuda
done
rm -f "$out/last.log"
note ""
if [[ $failed -eq 0 ]]; then note "all as it should be"; else note "NOT all as it should be"; fi
exit $failed
