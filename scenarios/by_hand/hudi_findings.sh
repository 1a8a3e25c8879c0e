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
error_empties_a_file() {
    say "G3: one error while a marker file is opened for a flush empties it for ever, without a kill"
    directory emptied; start 1 50
    create a.parquet.marker.CREATE; create b.parquet.marker.CREATE; show
    echo '$ rm .MARKERS0.crc; mkdir .MARKERS0.crc                     # its opening fails from now on'
    rm "$M/.MARKERS0.crc"; mkdir "$M/.MARKERS0.crc"; create c.parquet.marker.CREATE 8
    echo '$ rmdir .MARKERS0.crc                                       # all is well again'
    rmdir "$M/.MARKERS0.crc"; create d.parquet.marker.CREATE 8; show; all; killed
    start 1 50; all; killed
}
failed_listing_after_a_restart() {
    say "G3: one readdir that fails after a restart, and the files of a directory are written again without their names"
    directory unlisted; start 1 50; create a.parquet.marker.CREATE; create b.parquet.marker.CREATE; show; killed
    cat > "$WORK/eio.c" <<'C'
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>
/* readdir of the directory FAIL_DIR fails with EIO while the file FAIL_WHEN is there. */
struct dirent64 *readdir64(DIR *directory) {
    struct dirent64 *(*real)(DIR *) = dlsym(RTLD_NEXT, "readdir64");
    struct stat one, other;
    int before = errno;
    int fails = !access(getenv("FAIL_WHEN"), F_OK) && !fstat(dirfd(directory), &one) && !stat(getenv("FAIL_DIR"), &other)
        && one.st_ino == other.st_ino;
    errno = fails ? EIO : before;
    if (!fails) return real(directory);
    return 0;
}
struct dirent *readdir(DIR *directory) { return (struct dirent *) readdir64(directory); }
C
    cc -shared -fPIC -o "$WORK/eio.so" "$WORK/eio.c" -ldl
    export FAIL_DIR=$M FAIL_WHEN=$WORK/fail LD_PRELOAD=$WORK/eio.so; start 1 50; unset LD_PRELOAD
    echo '$ touch fail                                                # readdir of the directory fails with EIO'
    touch "$WORK/fail"; create c.parquet.marker.CREATE
    echo '$ rm fail                                                   # all is well again'
    rm "$WORK/fail"; create d.parquet.marker.CREATE; show; all; killed
}
kill_while_type_file_is_written() {
    say "G9: a server that is killed between making MARKERS.type and writing it leaves it empty for ever"
    directory empty-type; mkdir "$M"; mkfifo "$M/.MARKERS.type.crc"; start 1 50
    echo "the checksum file of MARKERS.type is a named pipe that nobody reads: the write of MARKERS.type hangs, as on a slow disk"
    create a.parquet.marker.CREATE 2; killed; rm "$M/.MARKERS.type.crc"; show
    echo "the disk is quick again, and a new server takes over"
    start 1 50; create a.parquet.marker.CREATE; create b.parquet.marker.CREATE; show; all; marker_type; killed
    start 1 50; create c.parquet.marker.CREATE; show; killed
}
disk_full_while_type_file_is_written() {
    say "G9: a full disk while MARKERS.type is written leaves it empty for ever, without a kill"
    directory full-type; start 2 50
    echo '$ prlimit --pid $SERVER --fsize=0:                          # each write fails, as on a full disk'
    prlimit --pid "$PID" --fsize=0:; create a.parquet.marker.CREATE 2
    echo '$ prlimit --pid $SERVER --fsize=unlimited:                 # there is room again'
    prlimit --pid "$PID" --fsize=unlimited:; create b.parquet.marker.CREATE; create c.parquet.marker.CREATE; show; marker_type; killed
}
marker_type() { # what a reader makes of the type file: Hudi's own MarkerUtils.readMarkerType
    cat > "$WORK/Type.java" <<'JAVA'
import org.apache.hudi.common.util.MarkerUtils;
import org.apache.hudi.storage.*;
public class Type {
    public static void main(String[] directory) throws Exception {
        var conf = new org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(new org.apache.hadoop.conf.Configuration());
        System.out.println(MarkerUtils.readMarkerType(HoodieStorageUtils.getStorage("file:" + directory[0], conf), directory[0]));
    }
}
JAVA
    printf '$ MarkerUtils.readMarkerType -> '; java -cp "$BUNDLE:$JARS" "$WORK/Type.java" "$M" 2>/dev/null || echo "not in this version's form"
}
[ $# -gt 0 ] || set -- exists_before_flush second_server_overwrites slow_directory_holds_up_others bytes_that_are_no_text \
    error_empties_a_file failed_listing_after_a_restart kill_while_type_file_is_written disk_full_while_type_file_is_written
for finding in "$@"; do "$finding"; done
