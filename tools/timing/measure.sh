#!/bin/bash
# Measures on a GPU what the timing model is made of, in one run: builds `handoff`, runs the probes of grader/timing, keeps their figures.
#
#   tools/timing/measure.sh OUT_DIR [extra cmake arguments…]
#
# OUT_DIR receives timing-GPU-DATE.json (the record: copy it to docs/results/), timing.md (the tables of three runs, GPU, driver, clocks)
# and, where the toolkit has cuobjdump, sass/*.txt, the machine code of the probes. Exit status 0: every probe ran.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
out=${1:?usage: tools/timing/measure.sh OUT_DIR [cmake arguments]}
shift
mkdir -p "$out" || exit 2
build=build/gpu
report=$out/timing.md
PATH=$PATH:/usr/local/cuda/bin

cmake -S . -B $build -DCMAKE_BUILD_TYPE=Release -DHANDOFF_BENCH=OFF "$@" > "$out/build.log" 2>&1 &&
  cmake --build $build -j "$(nproc)" --target handoff >> "$out/build.log" 2>&1 ||
  { echo "the build failed:"; tail -20 "$out/build.log"; exit 1; }

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
record=$out/timing-$(echo "${gpu##* }" | tr '[:upper:]' '[:lower:]')-$(date -u +%Y-%m-%d).json
{
  echo "# The timing model on $gpu"
  echo
  echo "- GPU, driver, SM clock, its maximum: $(nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm --format=csv,noheader | head -1)"
  echo "- toolkit: $(nvcc --version | grep release | sed 's/.*release //')"
} > "$report"
failed=0
for run in 1 2 3; do
  { echo; echo "## Run $run"; echo; } >> "$report"
  if [[ $run -eq 1 ]]; then keep=(--record "$record"); else keep=(); fi
  $build/handoff timing --device cuda "${keep[@]}" >> "$report" 2>&1 || failed=1
done
if command -v cuobjdump > /dev/null; then
  mkdir -p "$out/sass"
  for kernel in grader/timing/kernels/*.cu; do
    name=$(basename "$kernel" .cu)
    nvcc -cubin -arch=sm_90a -lineinfo "$kernel" -o "$out/sass/$name.cubin" && cuobjdump -sass "$out/sass/$name.cubin" |
      grep -E 'Function|/\*[0-9a-f]{4}\*/' | sed -E 's/ *\/\* 0x[0-9a-f]+ \*\///' > "$out/sass/$name.txt"
    rm -f "$out/sass/$name.cubin"
  done
fi
cat "$report"
exit $failed
