# Sourced by hudi_s3.sh after server.sh: moto's own server as the S3, and curl to look at it. Needs S3A and moto_server.
# The lake is at $S in bucket lake; a second store, at $SLOW in bucket slow, is for what must hang alone.
: "${S3A:?set S3A to the class path of hadoop-aws and aws-java-sdk-bundle, as HADOOP_AWS.jar:SDK.jar}"
export AWS_ACCESS_KEY_ID=by-hand AWS_SECRET_ACCESS_KEY=by-hand
SIGN=(--aws-sigv4 aws:amz:us-east-1:s3 --user by-hand:by-hand)

store() { # store PORT BUCKET: moto's server, with an empty bucket; sets STORE to its process
    moto_server -H 127.0.0.1 -p "$1" >> "$WORK/store-$2.log" 2>&1 & STORE=$!; PIDS+=("$STORE")
    for _ in $(seq 300); do curl -s -o /dev/null "http://127.0.0.1:$1/" && break; sleep 0.2; done
    curl -s -o /dev/null -X PUT "http://127.0.0.1:$1/$2" || { echo "moto_server does not answer"; exit 4; }
}
settings() { # settings RETRIES: what S3A is told; everything else is Hadoop's default
    mkdir -p "$WORK/conf"
    { echo '<configuration>'
      while read -r name value; do echo "<property><name>fs.s3a.$name</name><value>$value</value></property>"; done <<END
endpoint $S
bucket.slow.endpoint $SLOW
endpoint.region us-east-1
path.style.access true
connection.ssl.enabled false
aws.credentials.provider com.amazonaws.auth.EnvironmentVariableCredentialsProvider
attempts.maximum $1
retry.limit $1
retry.throttle.limit $1
connection.timeout 20000
END
      echo '</configuration>'; } > "$WORK/conf/core-site.xml"
}
directory() { M=s3a://lake/table/.hoodie/.temp/$1; K=lake/table/.hoodie/.temp/$1; }
keys() { # keys: the marker files of the directory
    curl -s "${SIGN[@]}" "$S/lake?list-type=2&prefix=${K#lake/}/MARKERS" | grep -o '<Key>[^<]*' | sed 's/<Key>//'
}
show() {
    local key
    for key in $(keys); do
        [ "${key##*/}" = MARKERS.type ] && continue
        printf '$ curl %s | cat -A\n' "${key##*/}"; curl -s "${SIGN[@]}" "$S/lake/$key" | cat -A; echo
    done
}
put() { curl -s -o /dev/null "${SIGN[@]}" -X PUT --data-binary "@-" -H 'Content-Type: text/plain' "$S/$1"; }
deny_after() { # deny_after COUNT: so many requests are still allowed, every later one is refused with 403
    curl -s -o /dev/null -X POST -H 'Content-Type: text/plain' -d "$1" "$S/moto-api/reset-auth"
}
heal() { deny_after 1000000000; }
refused() { # refused PATTERN: the PUTs of such objects that were refused, as moto's log has them
    grep -o "PUT /lake/[^ ]*${1#lake/}[^ ]* [^ ]* 403" "$WORK/store-lake.log" | cut -d' ' -f1,2,4
}

case $BUNDLE in *-0.15.0.jar) # Its server has one storage for all paths, and its main takes the local one.
cat > "$WORK/Launcher.java" <<'JAVA'
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.timeline.service.TimelineService;
public class Launcher {
    public static void main(String[] flags) throws Exception {
        var config = new TimelineService.Config();
        new org.apache.hudi.com.beust.jcommander.JCommander(config, null, flags);
        var storage = HadoopFSUtils.getStorageConf(HadoopFSUtils.prepareHadoopConf(new Configuration()));
        new TimelineService(new org.apache.hudi.common.engine.HoodieLocalEngineContext(storage), new Configuration(),
            config, org.apache.hudi.storage.HoodieStorageUtils.getStorage("s3a://lake/", storage),
            TimelineService.buildFileSystemViewManager(config, storage)).run();
        Thread.currentThread().join();
    }
}
JAVA
esac
S=http://127.0.0.1:$(free_port); SLOW=http://127.0.0.1:$(free_port)
settings "${RETRIES:-0}"
store "${S##*:}" lake; LAKE=$STORE
JARS="$WORK/conf:$S3A:$JARS"
