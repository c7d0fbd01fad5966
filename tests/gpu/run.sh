#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh test|sanitize|bench|block|python|tune|pack [OPTIONS], in a folder made by make_bundle.sh, on a
# machine with a GPU. Logs go to $OUT.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$PWD}
what=${1:-test}
[ $# -eq 0 ] || shift
unpacked=${TMPDIR:-/tmp}/spargejit-gpu
mkdir -p "$unpacked"
for file in "$folder"/*.xz; do
  name=$(basename "$file" .xz)
  # libspargejit.so is loaded by its version's name as well.
  [ "$unpacked/$name" -nt "$file" ] || xz -dc "$file" > "$unpacked/$name"
done
for program in spargejit_gpu_tests spargejit; do
  [ ! -f "$unpacked/$program" ] || chmod +x "$unpacked/$program"
done
export SPARGEJIT_REQUIRE_GPU=1
tests=$unpacked/spargejit_gpu_tests

# Runs the tests that match; the log in $out/LOG.txt, a summary on the screen.
run_tests() { # log, filter, command before the program
  log=$out/$1.txt
  filter=$2
  shift 2
  status=0
  "$@" "$tests" --gtest_filter="$filter" > "$log" 2>&1 || status=$?
  grep -E '^\[  (FAILED|SKIPPED) |median|near-ties|cold|^seed|ERROR SUMMARY|driver CUDA|log of code|RACECHECK SUMMARY' "$log" | sort | uniq -c | sort -rn | head -60 || true
  echo "$log: status $status, $(grep -c '^\[       OK' "$log" || true) passed"
  return $status
}

# The Python package, in a folder of its own beside the program of its name, and its
# library.
use_package() {
  mkdir -p "$unpacked/python"
  tar -C "$unpacked/python" -xf "$folder/package.tar"
  export PYTHONPATH="$unpacked/python:$folder" SPARGEJIT_LIBRARY="$unpacked/libspargejit.so" PYTHONDONTWRITEBYTECODE=1
}

failed=0
case $what in
test)
  run_tests gpu_driver 'DriverPath.*' || failed=1
  run_tests gpu_calls 'AttentionCall.*:CapturedSelection.*:GradientCall.*:Agreement.*' || failed=1
  run_tests gpu_custom 'CustomSelect.*:CustomMethod.*' || failed=1
  # Tables that compile on every core: the driver takes a quarter of a second a kernel
  # on however many, so a ptxas program where there is one.
  if [ -z "${SPARGEJIT_PTXAS:-}" ]; then
    SPARGEJIT_PTXAS=$(PATH=$PATH:/usr/local/cuda/bin command -v ptxas || true) && export SPARGEJIT_PTXAS
  fi
  run_tests gpu_numerics '*/Cuda*' || failed=1
  ;;
sanitize)
  # Kernels that a few small cases make: short, since each access is checked.
  cases='*AttentionLists.RowsWithoutBlocksAreZero/Cuda*:*AttentionLists.PartialLastBlockAnywhereInTheList/Cuda*:*AttentionCausal.ListsMayHoldHiddenBlocks/Cuda*:*AttentionExtremes.EqualScoresGiveTheMean/Cuda*:*AttentionViews.UnevenRowStrides/Cuda*:AttentionCall.WorksOnSeveralRowsACta'
  cases="$cases:*GradientScenarios.KeysThatNoRowSelectsGetExactlyZero/Cuda*:*GradientScenarios.RowsWithoutKeysGetExactlyZero/Cuda*"
  cases="$cases:*DistillationLoss.EveryShape/Cuda*:*DistillationLoss.EveryLayoutAndTypeOfTheGradient/Cuda_bfloat16"
  export SPARGEJIT_TEST_REDUCED=1
  for tool in memcheck racecheck; do
    # The runtime asks the driver for one parameter too many, to be refused.
    [ $tool = racecheck ] && export SPARGEJIT_RACECHECK=on
    run_tests gpu_$tool "$cases" compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9 || failed=1
  done
  ;;
bench)
  use_package
  python3 "$folder/run_gpu_bench.py" --library "$unpacked" --output "$out/gpu_bench.json" "$@" || failed=1
  ;;
block)
  use_package
  python3 "$folder/run_block_bench.py" --output "$out/block_bench.json" "$@" || failed=1
  ;;
python)
  use_package
  for name in torch_cuda torch; do
    status=0
    timeout "${PYTHON_SECONDS:-120}" python3 "$folder/${name}_test.py" > "$out/python_$name.txt" 2>&1 || status=$?
    [ $status -eq 0 ] || failed=1
    grep -E '^(ERROR|FAIL|Ran|OK|FAILED|skipped|seed)|^  ' "$out/python_$name.txt" | head -60 || true
    echo "$out/python_$name.txt: status $status"
  done
  ;;
tune)
  # Records of an earlier run, beside this file, are gone on with.
  records=$out/records.jsonl
  [ ! -f "$folder/records.jsonl" ] || cp "$folder/records.jsonl" "$records"
  if [ -z "${SPARGEJIT_PTXAS:-}" ]; then
    SPARGEJIT_PTXAS=$(PATH=$PATH:/usr/local/cuda/bin command -v ptxas) && export SPARGEJIT_PTXAS
  fi
  export SPARGEJIT_CACHE_DIR="$unpacked/cache" LD_LIBRARY_PATH="$unpacked"
  "$unpacked/spargejit" info > "$out/info.txt"
  # Ended as by Ctrl-C when its time is over: what was measured is in the file.
  [ $# -gt 0 ] || set -- --problems wan
  timeout -s INT "${TUNE_SECONDS:-480}" "$unpacked/spargejit" tune --device cuda \
    --records "$records" "$@" > "$out/tune.txt" 2> "$out/tune.log" || failed=1
  cat "$out/tune.txt"
  tail -n 3 "$out/tune.log"
  "$unpacked/spargejit" records best "$records" > "$out/best.txt" || failed=1
  # The picture needs matplotlib.
  python3 "$folder/tuning_report.py" "$records" -o "$out" > "$out/report.txt" 2>&1 || tail -n 1 "$out/report.txt"
  ;;
pack)
  # The second process finds everything in the system's file cache.
  for turn in first second; do
    SPARGEJIT_LIBRARY="$unpacked/libspargejit_runtime.so" SPARGEJIT_PACK="$folder/pack" PYTHONPATH="$folder/python" \
      python3 "$folder/check_pack.py" > "$out/pack_$turn.txt" 2>&1 || failed=1
    cat "$out/pack_$turn.txt"
  done
  ;;
*)
  echo "usage: run.sh test|sanitize|bench|block|python|tune|pack [OPTIONS]" >&2
  exit 2
  ;;
esac
exit $failed
