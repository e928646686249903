#!/bin/sh
# Runs libFuzzer over one format of feeds, from the seeds in Tests/Fixtures/corpus/FORMAT.
#
#   Tests/Tools/fuzz.sh                        the formats
#   Tests/Tools/fuzz.sh FORMAT RUNS [SECONDS]  stops after so many runs or, sooner, seconds
#
# The format `document` is the way of any document: gzip, recognition, parser; `settings` is a file of settings. What is
# found lies in .build-fuzz:
# corpus/FORMAT (kept for the next run) and crashes/FORMAT-*. A crash, a run of over a second or over 256 MiB
# ends the run with status 1: mend it, and add the file to the seeds under a name that says what it was.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
scratch="$root/.build-fuzz"
format=${1:-}
runs=${2:-10000000}
seconds=${3:-0}

toolchain=$(dirname "$(readlink -f "$(command -v swiftc)")")/..
TARN_FUZZ=$(find "$toolchain/lib/clang/" -name 'libclang_rt.fuzzer_no_main-x86_64.a' -o \
  -name 'libclang_rt.fuzzer_no_main-aarch64.a' | head -n 1)
[ -n "$TARN_FUZZ" ] || { echo "fuzz.sh: this toolchain has no libFuzzer" >&2; exit 69; }
export TARN_FUZZ

mkdir -p "$scratch"
swift build -c release --package-path "$root" --scratch-path "$scratch" --product tarn-fuzz \
  > "$scratch/build.log" 2>&1 || { grep error "$scratch/build.log" >&2; exit 70; }
program=$(find "$scratch" -path '*release/tarn-fuzz' -type f | head -n 1)
[ -n "$format" ] || { exec "$program"; }

found="$scratch/corpus/$format"
crashes="$scratch/crashes"
seeds="$root/Tests/Fixtures/corpus/$format"
mkdir -p "$found" "$crashes"
[ -d "$seeds" ] || seeds=
log="$scratch/$format.log"
status=0
# Swift's own report of a crash would take longer than the limit.
SWIFT_BACKTRACE=enable=no TARN_FUZZ_FORMAT="$format" "$program" -runs="$runs" -max_total_time="$seconds" \
  -rss_limit_mb=256 -timeout=1 -print_final_stats=1 -artifact_prefix="$crashes/$format-" \
  "$found" ${seeds:+"$seeds"} > "$log" 2>&1 || status=$?
[ "$status" -ne 64 ] || { echo "fuzz.sh: no format is called $format" >&2; exit 64; }

value() { sed -n "s/^stat::$1: *//p" "$log" | tail -n 1; }
echo "$format: $(value number_of_executed_units) runs, $(value average_exec_per_sec) a second," \
  "$(value peak_rss_mb) MiB, $(find "$found" -type f | wc -l) inputs kept," \
  "$(find "$crashes" -name "$format-*" | wc -l) crashes"
[ "$status" -eq 0 ] || { grep -E 'Fatal error|ERROR|Test unit written' "$log" | cut -c1-400 >&2; exit 1; }
