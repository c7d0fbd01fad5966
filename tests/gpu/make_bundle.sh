#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make_bundle.sh BUILD FOLDER [PART...]: packs what a machine with a GPU needs of
# a finished build into FOLDER; see README.md. Parts: tests, bench (these two
# without any named), python, tune, and pack, for which BUILD-runtime has the
# library without the compiler.
set -eu
build=$1
folder=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
pack() { # file, place: stripped and compressed, unless it is there already
  if [ ! "$folder/$2.xz" -nt "$1" ]; then
    strip -o "$folder/$2" "$1"
    xz -T0 -4 -f "$folder/$2"
  fi
}
package() { # the Python package
  tar -C "$here/../../runtime/python" --exclude __pycache__ -cf "$folder/package.tar" spargejit
}
[ $# -gt 0 ] || set -- tests bench
for part in "$@"; do
  case $part in
  tests) pack "$build/bin/spargejit_gpu_tests" spargejit_gpu_tests ;;
  bench)
    pack "$build/lib/libspargejit.so" libspargejit.so
    cp "$here"/../../bench/gpu/*.py "$folder"
    package
    ;;
  python)
    pack "$build/lib/libspargejit.so" libspargejit.so
    cp "$here"/../python/*.py "$folder"
    package
    ;;
  tune)
    pack "$build/bin/spargejit" spargejit
    cp "$here/../../bench/tuning_report.py" "$folder"
    # What not every machine has.
    for library in $(ldd "$build/bin/spargejit" | sed -n 's/.*=> \(.*\/lib\(png\|z\|zstd\|fmt\)[^ ]*\) .*/\1/p'); do
      pack "$library" "$(basename "$library")"
    done
    ;;
  pack)
    "$build/bin/spargejit" compile all --arch sm_90a --problems wan --backward -o "$folder/pack"
    # Under a name of its own, beside the library with the compiler.
    pack "$build-runtime/lib/libspargejit.so" libspargejit_runtime.so
    mkdir -p "$folder/python"
    cp -r "$here/../../runtime/python/spargejit" "$folder/python"
    cp "$here/check_pack.py" "$folder"
    ;;
  *)
    echo "make_bundle.sh: expected tests, bench, python, tune or pack, got $part" >&2
    exit 2
    ;;
  esac
done
cp "$here/run.sh" "$folder"
du -sh "$folder"
