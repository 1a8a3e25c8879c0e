#!/usr/bin/env bash
# More findings of docs/findings.md with nothing but java, curl, kill and cat: deletions that meet creates.
#
#   BUNDLE=hudi-spark3.5-bundle_2.12-1.0.2.jar JARS='.../pyspark/jars/*' bash hudi_deletions.sh [FINDING ...]
. "$(dirname "$0")/server.sh"

slow_directory() { # slow_directory ROUND: a create in directory A hangs; SLOW is its pipe, and A its path
    A=$WORK/ta/.hoodie/.temp/1
    local used; M=$A; create "a$1.parquet.marker.CREATE" > /dev/null
    used=$(grep -l "^a$1.parquet" "$A"/MARKERS[01] | tail -1); SLOW=$A/MARKERS1
    [ "${used##*/}" = MARKERS1 ] && SLOW=$A/MARKERS0
    rm -f "$SLOW"; mkfifo "$SLOW"
    (M=$A; create "slow$1.parquet.marker.CREATE" 30 > "$WORK/slow") & HANGING=$!
}
deletion() { # deletion NEW...: creates that wait behind a slow directory, then their directory is deleted
    start 2 1000
    local round old; rm -rf "$WORK/ta" "$WORK/tb"; mkdir -p "$WORK/tb/.hoodie/.temp"
    for round in $(seq 12); do
        slow_directory "$round"; M=$WORK/tb/.hoodie/.temp/$round
        (create old.parquet.marker.CREATE 30 > "$WORK/old") & old=$!
        sleep 2.2
        if kill -0 "$old" 2>/dev/null && kill -0 "$HANGING" 2>/dev/null; then
            echo "directory A is slow (a named pipe nobody reads); the create of old in B waits behind it"
            printf '$ POST dir/delete B -> '
            curl -s --compressed -X POST -G "$U/dir/delete" --data-urlencode "markerdirpath=$M"; echo
            "$1"; return
        fi
        timeout 3 cat "$SLOW" > /dev/null; wait "$HANGING" "$old"; rm -f "$SLOW"
    done
    echo "not met in 12 rounds"; killed
}
quick_again() { echo '$ cat the pipe   # A is quick again'; timeout 5 cat "$SLOW" > /dev/null; wait "$HANGING"; sleep 1; cat "$WORK/old"; show; }
overwrites() { create new.parquet.marker.CREATE; show; quick_again; all; killed; }
joins() { quick_again; create new1.parquet.marker.CREATE; create new2.parquet.marker.CREATE; show; all; killed; }

deleted_state_overwrites_new() {
    say "G3, without a crash: the state of a deleted directory writes on, over a marker answered after the deletion"
    deletion overwrites
}
deletion_alone_joins_names() {
    say "G3, G4, G10, without a crash: what is flushed after a deletion is read again and glued together"
    deletion joins
}
[ $# -gt 0 ] || set -- deleted_state_overwrites_new deletion_alone_joins_names
for finding in "$@"; do "$finding"; done
