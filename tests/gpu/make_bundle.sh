#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make_bundle.sh BUILD FOLDER: packs what a machine with a GPU needs to run the
# GPU tests and the benchmark of a finished build into FOLDER; see README.md.
set -eu
build=$1
folder=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
pack() { # file, place: stripped and compressed, unless it is there already
  if [ ! "$folder/$2.xz" -nt "$1" ]; then
    strip -o "$folder/$2" "$1"
    xz -T0 -4 -f "$folder/$2"
  fi
}
pack "$build/bin/spargejit_gpu_tests" spargejit_gpu_tests
pack "$build/lib/libspargejit.so" libspargejit.so
pack "$build/lib/libspargejit_gpu_bench.so" libspargejit_gpu_bench.so
cp "$here/run.sh" "$here/../../bench/gpu/run_gpu_bench.py" "$here/../../bench/gpu/library.py" "$folder"
du -sh "$folder"
