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
failed_flush_keeps_index() {
    say "G6: a flush that failed once leaves its requests unanswered and its file index busy for ever"
    directory failed; start 1 50
    create a.parquet.marker.CREATE; mv "$M/MARKERS0" "$WORK/kept"; mkdir "$M/MARKERS0"
    echo "\$ mv MARKERS0 kept; mkdir MARKERS0"; create b.parquet.marker.CREATE 15
    rmdir "$M/MARKERS0"; mv "$WORK/kept" "$M/MARKERS0"; echo "\$ rmdir MARKERS0; mv kept MARKERS0   # healed"
    create c.parquet.marker.CREATE 15; create d.parquet.marker.CREATE 15; show
    grep -h -m1 -A2 'Failed to overwrite' "$WORK"/server-*.log | cut -c1-160; killed
}
second_server_overwrites() {
    say "two servers on one directory: each rewrites the file from its own memory"
    directory second; start 1 50; local one=$U; start 1 50; local two=$U
    printf 'first:  '; create a.parquet.marker.CREATE 20 "$one"
    printf 'second: '; create b.parquet.marker.CREATE 20 "$two"
    printf 'first:  '; create c.parquet.marker.CREATE 20 "$one"
    show
}
torn_by_kill() {
    say "G3: a kill while a marker file is rewritten in place loses names answered long ago"
    directory torn
    local long n round answered stored lost=0; long=$(printf 'p%.0s' $(seq 200))
    for round in $(seq 10); do
        rm -rf "$M"; start 1 5
        for n in $(seq 3000); do
            echo "url=\"$U/create?markerdirpath=$M&markername=$long/r$round-$n.parquet.marker.CREATE\""; echo 'request="POST"'
        done > "$WORK/urls"
        curl -s -Z --parallel-max 64 -K "$WORK/urls" > "$WORK/answers" 2>/dev/null & local load=$!
        sleep "1.$((RANDOM % 9))$((RANDOM % 9))"; kill -9 "$PID"; wait "$PID" "$load" 2>/dev/null
        answered=$(grep -o true "$WORK/answers" | wc -l); stored=$(cat "$M"/MARKERS0 2>/dev/null | wc -l)
        echo "round $round: $answered creates were answered true, then kill -9; MARKERS0 holds $stored names"
        [ "$stored" -lt "$answered" ] && { lost=1; break; }
    done
    [ "$lost" = 1 ] || { echo "not seen in 10 kills"; return; }
    ls -l "$M" | grep MARKERS0; echo "the next server reads:"; start 1 50
    curl -s --compressed -G "$U/all" --data-urlencode "markerdirpath=$M" | tr ',' '\n' | grep -c marker; killed
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
failed_flush_takes_others_along() {
    say "G6, G7: creates of one directory that wait in one batch with those of another are never answered when its flush fails"
    two_directories failed; start 1 2000
    # Which directories of a tick come after A depends on the hash of their paths, so there are five that are healthy.
    local n k jobs; M=$A; create a.parquet.marker.CREATE; for k in 1 2 3 4 5; do M=$B-$k; create b.parquet.marker.CREATE; done > /dev/null
    mv "$A/MARKERS0" "$WORK/kept"; mkdir "$A/MARKERS0"; echo "\$ mv A/MARKERS0 kept; mkdir A/MARKERS0               # writing it fails now"
    for n in 1 2 3; do
        (M=$A; create "a$n.parquet.marker.CREATE" 15 > "$WORK/a") & jobs=$!
        for k in 1 2 3 4 5; do (M=$B-$k; create "b$n.parquet.marker.CREATE" 15 > "$WORK/b$k") & jobs="$jobs $!"; done
        wait $jobs; echo "at the same time in A and in B-1 to B-5, which are healthy:"; cat "$WORK/a" "$WORK"/b[1-5]
        grep -q 'no answer' "$WORK"/b[1-5] && break
    done
    rmdir "$A/MARKERS0"; mv "$WORK/kept" "$A/MARKERS0"; echo "\$ rmdir A/MARKERS0; mv kept A/MARKERS0               # healed"
    for k in 1 2 3 4 5; do grep -q 'no answer' "$WORK/b$k" && break; done
    echo "in B-$k:"; M=$B-$k; create c.parquet.marker.CREATE 15; create d.parquet.marker.CREATE 15; show; killed
}
retry_after_failed_flush() {
    say "G2: a create whose flush failed is sent again and told 'exists' (false); it is not stored, then or later"
    directory retried; start 2 50
    create a.parquet.marker.CREATE; local k=0; [ -e "$M/MARKERS0" ] && k=1
    mkdir -p "$M/MARKERS$k"; echo "\$ mkdir MARKERS$k                                      # writing the other file fails"
    local n; for n in $(seq 10); do
        create "x$n.parquet.marker.CREATE" 4 > "$WORK/first"; grep -q 'no answer' "$WORK/first" && break
    done
    cat "$WORK/first"; rmdir "$M/MARKERS$k"; echo "\$ rmdir MARKERS$k                                      # healed"
    create "x$n.parquet.marker.CREATE"; create y.parquet.marker.CREATE; show; killed; start 2 50; all; killed
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
[ $# -gt 0 ] || set -- exists_before_flush failed_flush_keeps_index second_server_overwrites torn_by_kill \
    slow_directory_holds_up_others failed_flush_takes_others_along retry_after_failed_flush bytes_that_are_no_text
for finding in "$@"; do "$finding"; done
