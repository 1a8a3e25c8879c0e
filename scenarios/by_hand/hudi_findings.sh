#!/usr/bin/env bash
# Findings of docs/findings.md that no generated script shows (scenarios/findings), with java, curl, kill and cat alone.
#
#   BUNDLE=hudi-spark3.5-bundle_2.12-1.0.2.jar JARS='.../pyspark/jars/*' bash hudi_findings.sh [FINDING ...]
#
# BUNDLE is Hudi's Spark bundle, JARS the class path of PySpark's own jars.
. "$(dirname "$0")/server.sh"

exists_before_flush() {
    say "G2: a second request is told 'exists' (false) while the first one's flush has not written anything"
    directory inflight; start 2 50
    create a.parquet.marker.CREATE
    local k n; for k in 0 1; do [ -e "$M/MARKERS$k" ] || { mkfifo "$M/MARKERS$k"; echo "\$ mkfifo MARKERS$k"; }; done
    echo "the other file is now a named pipe that nobody reads: a flush to it hangs, as on a slow disk"
    for n in $(seq 30); do
        (create "x$n.parquet.marker.CREATE" 6 > "$WORK/first") & local first=$!
        sleep 0.6
        kill -0 "$first" 2>/dev/null || { cat "$WORK/first"; wait "$first"; continue; }
        echo "x$n is not answered, its flush hangs; a second request for it:"; create "x$n.parquet.marker.CREATE"
        echo "what is stored at that moment:"; show
        wait "$first"; echo "the first request:"; cat "$WORK/first"; break
    done
    killed
}
second_server_overwrites() {
    say "two servers on one directory: each rewrites the file from its own memory"
    directory second; start 1 50; local one=$U; start 1 50; local two=$U
    printf 'first:  '; create a.parquet.marker.CREATE 20 "$one"
    printf 'second: '; create b.parquet.marker.CREATE 20 "$two"
    printf 'first:  '; create c.parquet.marker.CREATE 20 "$one"
    show
}
two_directories() { A=$WORK/ta/.hoodie/.temp/$1; B=$WORK/tb/.hoodie/.temp/$1; mkdir -p "$WORK/ta/.hoodie/.temp" "$WORK/tb/.hoodie/.temp"; }
slow_directory_holds_up_others() {
    say "G7: while the only flush of a slow directory hangs, no other directory is served"
    two_directories slow; start 1 50
    M=$A; create a.parquet.marker.CREATE; M=$B; create b.parquet.marker.CREATE
    rm "$A/MARKERS0"; mkfifo "$A/MARKERS0"; echo "\$ mkfifo A/MARKERS0                                   # a flush to it hangs, as on a slow disk"
    (M=$A; create slow.parquet.marker.CREATE 60 > "$WORK/slow") & local slow=$!
    sleep 1; echo "in B, which is healthy:"; M=$B; create c.parquet.marker.CREATE 15; create d.parquet.marker.CREATE 15
    echo '$ cat A/MARKERS0 > /dev/null                            # A is quick again'
    timeout 5 cat "$A/MARKERS0" > /dev/null; wait "$slow"; create e.parquet.marker.CREATE 15; show; killed
}
bytes_that_are_no_text() {
    say "G4: bytes that are no UTF-8 become U+FFFD, so that two names are one"
    directory bytes; start 1 50
    local bytes
    for bytes in %FF %FE %C0 %EF%BF%BD; do
        printf '$ POST create?markername=a%sb.parquet.marker.CREATE -> ' "$bytes"
        curl -s --compressed --max-time 20 -X POST "$U/create?markerdirpath=$M&markername=a${bytes}b.parquet.marker.CREATE"; echo
    done
    all; show; killed
}
[ $# -gt 0 ] || set -- exists_before_flush second_server_overwrites slow_directory_holds_up_others bytes_that_are_no_text
for finding in "$@"; do "$finding"; done
