#!/usr/bin/env bash
# Findings of docs/findings.md on S3 that no generated script shows, with java, curl, kill and cat; moto's own server is the S3.
#
#   BUNDLE=hudi-spark3.5-bundle_2.12-1.0.2.jar JARS='.../pyspark/jars/*' \
#   S3A=hadoop-aws-3.3.4.jar:aws-java-sdk-bundle-1.12.262.jar bash hudi_s3.sh [FINDING ...]
#
# RETRIES (0): how often S3A and its SDK repeat what failed; Hadoop's own are 7 and 20, and take minutes.
. "$(dirname "$0")/server.sh"
. "$(dirname "$0")/store.sh"

refused_put_is_answered_created() {
    say "G1, G2, G3: a PUT that S3 refuses is answered 'created'; asked again, the server says 'exists'"
    directory refused; start 1 50
    create a.parquet.marker.CREATE; show
    echo "from now on S3 allows one more request, the look before the PUT, and refuses the others"; deny_after 1
    create b.parquet.marker.CREATE; refused "$K"; heal
    echo "S3 is well again"; create b.parquet.marker.CREATE; show
    killed; start 1 50; all; killed
}
type_file_is_missing() {
    say "G9: a type file that S3 refuses is taken for written, and the marker files stay without one"
    local allowed; start 3 50
    for allowed in $(seq 4 16); do
        directory "type-$allowed"; deny_after "$allowed"; create a.parquet.marker.CREATE 2 > "$WORK/first"; heal
        create b.parquet.marker.CREATE 5 > "$WORK/second"; create c.parquet.marker.CREATE 5 > "$WORK/third"
        keys | grep -q 'MARKERS[0-9]' && ! keys | grep -q 'MARKERS.type' || continue
        echo "a fresh directory; S3 allows $allowed requests and refuses the later ones, then it is well again"
        cat "$WORK/first"; refused "type-$allowed/MARKERS"
        cat "$WORK/second" "$WORK/third"; echo "the marker files there are:"; keys | sed 's/.*\///'
        killed; return
    done
    echo "not met"; killed
}
read_fails_at_first_use() {
    say "G3: reading fails when a directory is first used after a restart"
    local allowed got; start 3 50
    for allowed in $(seq 0 9); do
        directory "read-$allowed"; printf 'TIMELINE_SERVER_BASED' | put "$K/MARKERS.type"
        printf 'a.parquet.marker.CREATE\nb.parquet.marker.CREATE\n' | put "$K/MARKERS0"
        deny_after "$allowed"; create c.parquet.marker.CREATE 2 > "$WORK/first"; heal
        create d.parquet.marker.CREATE 5 > "$WORK/second"
        got=$(for key in $(keys); do curl -s "${SIGN[@]}" "$S/lake/$key"; echo; done | grep -c '[ab].parquet')
        echo "$allowed requests allowed: $(tr '\n' ' ' < "$WORK/first")| healed: $(tr '\n' ' ' < "$WORK/second")| lines that show a or b: $got"
    done
    killed
}
failed_flush_keeps_index() {
    say "G6: a flush that failed once leaves its requests unanswered and its file index busy for ever"
    directory failed; start 1 50
    create a.parquet.marker.CREATE
    for key in $(keys); do curl -s "${SIGN[@]}" "$S/lake/$key" > "$WORK/kept-${key##*/}"; done
    echo "\$ kill -9 \$STORE"; kill -9 "$LAKE"; wait "$LAKE" 2>/dev/null
    create b.parquet.marker.CREATE 15
    store "${S##*:}" lake; LAKE=$STORE
    for key in MARKERS0 MARKERS.type; do put "$K/$key" < "$WORK/kept-$key"; done
    echo "S3 is started again and has what it had"; show
    create c.parquet.marker.CREATE 15; create d.parquet.marker.CREATE 15; show
    grep -h -m1 -A2 'Failed to overwrite' "$(ls -t "$WORK"/server-*.log | head -1)" | cut -c1-160; killed
}
second_server_overwrites() {
    say "two servers on one directory: each rewrites the file from its own memory"
    directory second; start 1 50; local one=$U first=$PID; start 1 50; local two=$U
    printf 'first:  '; create a.parquet.marker.CREATE 20 "$one"
    printf 'second: '; create b.parquet.marker.CREATE 20 "$two"
    printf 'first:  '; create c.parquet.marker.CREATE 20 "$one"
    show; kill -9 "$first"; wait "$first" 2>/dev/null; killed
}
creates_meet_deletions() {
    say "G6: without any fault, creates that are queued when their directory is deleted are never answered"
    directory meet; start 2 25
    local round n
    for round in 1 2 3; do
        burst "r$round" 60 12 & local load=$!
        for n in 1 2 3; do sleep 0.$((RANDOM % 4))$((RANDOM % 9)); delete; done
        wait "$load"
        echo "round $round: 60 creates and 3 deletions, $(grep -c '^000' "$WORK/answers") creates not answered within 12 s"
    done
    killed
}
deletion() { # deletion THEN: creates that wait behind a slow directory, then their directory is deleted
    store "${SLOW##*:}" slow; SLOWLY=$STORE; start 2 1000
    local round old
    for round in $(seq 8); do
        A=s3a://slow/table/.hoodie/.temp/$round
        M=$A; create "a.parquet.marker.CREATE" > /dev/null
        kill -STOP "$SLOWLY"
        (M=$A; create slow.parquet.marker.CREATE 30 > "$WORK/slow") & HANGING=$!
        directory "deleted-$round"; (create old.parquet.marker.CREATE 30 > "$WORK/old") & old=$!
        sleep 2.2
        if kill -0 "$old" 2>/dev/null && kill -0 "$HANGING" 2>/dev/null; then
            echo "\$ kill -STOP \$STORE_OF_A   # directory A is slow; the create of old in B waits behind it"
            printf '$ POST dir/delete B -> '
            curl -s --compressed -X POST -G "$U/dir/delete" --data-urlencode "markerdirpath=$M"; echo
            "$1"; kill -9 "$SLOWLY"; wait "$SLOWLY" "$old" 2>/dev/null; return
        fi
        kill -CONT "$SLOWLY"; wait "$HANGING" "$old"
    done
    echo "not met in 8 rounds"; kill -9 "$SLOWLY"; killed
}
quick_again() { echo '$ kill -CONT $STORE_OF_A   # A is quick again'; kill -CONT "$SLOWLY"; wait "$HANGING"; sleep 1.5; cat "$WORK/old"; show; }
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
deleted_names_come_back() {
    say "G10, without any fault: names that were answered before a deletion are stored again after it"
    directory back; start 2 10; come_back
}
listing_fails_during_creates() {
    say "G11: a listing during creates fails with 500"
    directory listing; start 1 5; listings 2000; killed
}
kill_while_writing() {
    say "G3: kills while a marker file is written again and again; on S3 a PUT replaces the whole file or nothing"
    local long round answered stored; long=$(printf 'p%.0s' $(seq 200))
    for round in $(seq 6); do
        directory "killed-$round"; start 1 5; many "$long/r$round" 3000
        curl -s -Z --parallel-max 64 -K "$WORK/urls" > "$WORK/answers" 2>/dev/null & local load=$!
        for _ in $(seq 300); do [ "$(grep -o true "$WORK/answers" | wc -l)" -ge 100 ] && break; sleep 0.1; done
        sleep "0.$((RANDOM % 9))$((RANDOM % 9))"; kill -9 "$PID"; wait "$PID" "$load" 2>/dev/null
        answered=$(grep -o true "$WORK/answers" | wc -l)
        stored=$(curl -s "${SIGN[@]}" "$S/$K/MARKERS0" | grep -c 'marker.CREATE$')
        echo "round $round: $answered creates were answered true, then kill -9; MARKERS0 holds $stored names"
    done
}
[ $# -gt 0 ] || set -- refused_put_is_answered_created type_file_is_missing read_fails_at_first_use \
    failed_flush_keeps_index creates_meet_deletions deleted_state_overwrites_new deletion_alone_joins_names \
    deleted_names_come_back listing_fails_during_creates second_server_overwrites kill_while_writing
for finding in "$@"; do "$finding"; done
