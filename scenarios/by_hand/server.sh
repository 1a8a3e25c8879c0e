# Sourced by the scripts beside it: start a real Hudi timeline server and talk to it with curl. Needs BUNDLE and JARS.
# Everything listens on loopback and works in a fresh directory; whatever was started is ended.
set -u +m
: "${BUNDLE:?set BUNDLE to the Hudi bundle jar}" "${JARS:?set JARS to the class path of the Spark jars}"
WORK=$(mktemp -d)
PIDS=()
trap 'for p in "${PIDS[@]}"; do kill -9 "$p" 2>/dev/null; done; rm -rf "$WORK"' EXIT

cat > "$WORK/Launcher.java" <<'JAVA'
public class Launcher {
    public static void main(String[] flags) throws Exception {
        org.apache.hudi.timeline.service.TimelineService.main(flags);
        Thread.currentThread().join();
    }
}
JAVA

say() { printf '\n# %s\n' "$*"; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start() { # start THREADS INTERVAL_MS: sets U and PID
    local port; port=$(free_port)
    java -Xmx512m -cp "$BUNDLE:$JARS" "$WORK/Launcher.java" -p "$port" --enable-marker-requests \
        -mbt "$1" -mbi "$2" -mdp 4 -st MEMORY > "$WORK/server-$port.log" 2>&1 &
    PID=$!; PIDS+=("$PID"); U=http://127.0.0.1:$port/v1/hoodie/marker
    for _ in $(seq 120); do
        curl -s -o /dev/null "$U/dir/exists?markerdirpath=$WORK/none" && return 0
        sleep 0.5
    done
    echo "the server did not answer within 60 s"; exit 4
}
create() { # create NAME [SECONDS] [BASE]
    printf '$ create %q -> ' "$1"
    curl -s --compressed --max-time "${2:-20}" -X POST -G "${3:-$U}/create" --data-urlencode "markerdirpath=$M" \
        --data-urlencode "markername=$1" || printf 'no answer in %s s' "${2:-20}"
    echo
}
all() { printf '$ all -> '; curl -s --compressed --max-time 20 -G "${1:-$U}/all" --data-urlencode "markerdirpath=$M"; echo; }
show() { for f in "$M"/MARKERS*; do [ -f "$f" ] && { printf '$ cat -A %s\n' "${f##*/}"; cat -A "$f"; echo; }; done; }
killed() { echo "\$ kill -9 \$SERVER"; kill -9 "$PID"; wait "$PID" 2>/dev/null; return 0; }
directory() { M=$WORK/table/.hoodie/.temp/$1; mkdir -p "$WORK/table/.hoodie/.temp"; }
burst() { # burst NAME COUNT SECONDS: creates at the same time; their HTTP codes, 000 for none, go to $WORK/answers
    local n
    for n in $(seq "$2"); do
        echo "url=\"$U/create?markerdirpath=$M&markername=$1-$n.parquet.marker.CREATE\""
        echo 'request="POST"'; echo "max-time=$3"; echo 'write-out="\n%{http_code} %{url}\n"'
    done > "$WORK/urls"
    curl -s -Z --parallel-max 20 -K "$WORK/urls" > "$WORK/answers" 2>/dev/null
}
delete() { curl -s -o /dev/null -X POST -G "$U/dir/delete" --data-urlencode "markerdirpath=$M"; }
many() { # many PREFIX COUNT: that many creates in $WORK/urls
    local n
    for n in $(seq "$2"); do
        echo "url=\"$U/create?markerdirpath=$M&markername=$1-$n.parquet.marker.CREATE\""; echo 'request="POST"'
    done > "$WORK/urls"
}
listings() { # listings COUNT: while that many creates are under way, each kind of listing again and again; by status
    local kind load n; many p/r "$1"
    curl -s -Z --parallel-max 64 -K "$WORK/urls" > /dev/null 2>&1 & load=$!
    for n in $(seq 400); do
        for kind in all create-and-merge append; do
            curl -s -m 5 -o /dev/null -w "$kind %{http_code}\n" -G "$U/$kind" --data-urlencode "markerdirpath=$M"
        done
        kill -0 "$load" 2>/dev/null || break
    done > "$WORK/codes"
    wait "$load"; sort "$WORK/codes" | uniq -c
}
come_back() { # names that were answered, then a deletion while others are created; what is stored then
    local round load back line late deleted=$WORK/deleted seen_back='' seen_glued=''
    for round in $(seq 40); do
        burst early 20 20
        [ "$(grep -c '^200' "$WORK/answers")" = 20 ] || { M=$M-; K=${K:-}-; continue; }
        burst "late$round" 100 2 & load=$!
        sleep "0.0$((RANDOM % 10))"
        printf '$ POST dir/delete -> ' > "$deleted"
        curl -s --compressed --max-time 20 -X POST -G "$U/dir/delete" --data-urlencode "markerdirpath=$M" >> "$deleted"
        wait "$load"; show > "$WORK/shown"
        back=$(grep -c '^early-[0-9]*.parquet.marker.CREATE\$$' "$WORK/shown")
        if [ -z "$seen_back" ] && [ "$back" -gt 0 ] && grep -q 'true$' "$deleted"; then
            seen_back=1; echo "early-1 to early-20 were answered, then 100 others were asked for, and among them:"
            cat "$deleted"; echo; echo "after the last answer $back of the early names are stored, for example:"
            grep -m2 '^early-[0-9]*.parquet.marker.CREATE\$$' "$WORK/shown"
        fi
        line=$(grep -m1 "CREATElate$round-[0-9]*.parquet.marker.CREATE\\$\$" "$WORK/shown")
        late=$(grep -o "late$round-[0-9]*.parquet.marker.CREATE" <<< "$line" | tail -1)
        if [ -z "$seen_glued" ] && [ -n "$late" ] && grep -q "^200.*=$late" "$WORK/answers"; then
            seen_glued=1; echo "no server was killed; $late was answered, and is stored glued to another:"
            rev <<< "$line" | cut -c1-90 | rev
        fi
        [ -n "$seen_back" ] && [ -n "$seen_glued" ] && { killed; return; }
    done
    echo "that is all in 40 rounds"; killed
}
