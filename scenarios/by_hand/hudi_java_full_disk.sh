#!/usr/bin/env bash
# A disk that is full when Hudi writes a commit: the commit is renamed to its name all the same, and nothing reads or
# writes the table again. No error is injected: the disk is a tmpfs, made just too small for the commit.
#
#   export CLIENT=.../hudi-java-client-1.2.0.jar BUNDLE=.../hudi-spark3.5-bundle_2.12-1.2.0.jar JARS='.../pyspark/jars/*'
#   bash hudi_java_full_disk.sh
#
# It needs Java 17, bash and Linux, where it may mount a tmpfs (as root, or in a user namespace: unshare). The table has
# 40 partitions, so that Avro's block of the commit is larger than the buffers and goes to the disk at once: then nothing
# is left that closing the file would write, and fail at. Exit codes: 1 violated, 0 held, 3 a step could not be done.
set -u
if [ "${INSIDE:-}" = "" ]; then
    [ -e "${CLIENT:-}" ] && [ -e "${BUNDLE:-}" ] && [ -n "${JARS:-}" ] || { echo "set CLIENT, BUNDLE and JARS"; exit 3; }
    INSIDE=1 exec unshare -rm bash "$0" "$@"
fi
WORK=$(mktemp -d) && cd "$WORK" || exit 3
trap 'cd /; umount "$WORK/disk" "$WORK/trial" 2>/dev/null; rm -rf "$WORK"' EXIT
mkdir disk trial
mount -t tmpfs -o size=64m none disk && mount -t tmpfs -o size=64m none trial ||
    { echo "no tmpfs can be mounted"; exit 3; }
cat > Write.java <<'END'
import java.util.*;
import java.util.stream.*;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.client.HoodieJavaWriteClient;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.common.engine.EngineType;
import org.apache.hudi.common.model.*;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

public class Write {
    /** Hadoop's local files without files of sums, with the name that Hudi asks for. */
    public static class Local extends org.apache.hadoop.fs.RawLocalFileSystem {
        public String getScheme() {
            return "file";
        }
    }

    public static void main(String[] words) throws Exception {
        var schema = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"row\",\"fields\":["
            + "{\"name\":\"key\",\"type\":\"string\"},{\"name\":\"part\",\"type\":\"string\"},{\"name\":\"ts\",\"type\":\"long\"}]}");
        Configuration conf = new Configuration();
        conf.setClassLoader(Write.class.getClassLoader());
        conf.set("fs.file.impl", Local.class.getName());
        var storage = new HadoopStorageConfiguration(conf);
        String table = words[0];
        if (!new java.io.File(table, ".hoodie").exists()) {
            HoodieTableMetaClient.newTableBuilder().setTableName("t").setTableType("COPY_ON_WRITE").setRecordKeyFields("key")
                .setPartitionFields("part").setOrderingFields("ts").setPayloadClass(HoodieAvroPayload.class).initTable(storage, table);
        }
        Properties more = new Properties();
        for (String each : List.of("metadata.enable", "embed.timeline.server", "clean.automatic", "archive.automatic")) {
            more.setProperty("hoodie." + each, "false");
        }
        more.setProperty("hoodie.write.markers.type", "DIRECT");
        more.setProperty("hoodie.index.bloom.num_entries", "100");
        more.setProperty("hoodie.bloom.index.filter.type", "SIMPLE");
        var config = HoodieWriteConfig.newBuilder().withEngineType(EngineType.JAVA).withPath(table).withSchema(schema.toString())
            .withProps(more).build();
        List<HoodieRecord<HoodieAvroPayload>> rows = IntStream.range(0, 40).mapToObj(n -> {
            GenericRecord row = new GenericRecordBuilder(schema).set("key", "k" + n).set("part", "p" + n).set("ts", Long.parseLong(words[1])).build();
            return (HoodieRecord<HoodieAvroPayload>) new HoodieAvroRecord<>(new HoodieKey("k" + n, "p" + n), new HoodieAvroPayload(Option.of(row)));
        }).collect(Collectors.toList());
        try (var client = new HoodieJavaWriteClient<HoodieAvroPayload>(new HoodieJavaEngineContext(storage), config)) {
            String instant = client.startCommit();
            client.commit(instant, client.upsert(rows, instant));
            System.out.println("write " + words[1] + ": ok");
        } catch (Throwable error) {
            System.out.println("write " + words[1] + " failed:");
            for (Throwable each = error; each != null; each = each.getCause()) {
                System.out.println("    " + each.toString().split("\n")[0]);
            }
        }
        Runtime.getRuntime().halt(0);
    }
}
END
write() { java -Djol.skipDynamicAttach=true -Djol.skipHotspotSAAttach=true -cp "$CLIENT:$BUNDLE:$JARS" Write.java "$@" 2>> log; }
used() { df --output=used -B4096 "$1" | tail -1; }
commits() { find "$1" -path '*/timeline/*' -name '*.commit' | sort; }

write "$PWD/disk/t" 1
echo "# the same write on a copy, to see how much room it takes"
cp -a disk/t trial/t && write "$PWD/trial/t" 2
[ "$(commits trial | wc -l)" = 2 ] || { tail -5 log; exit 3; }
commit=$(commits trial | tail -1)
pages=$(($(used trial) - ($(stat -c %s "$commit") + 4095) / 4096 + 1))
echo "\$ mount -o remount,size=$((pages * 4))k disk    # room for all of it but the end of its commit"
mount -o remount,size=$((pages * 4096)) disk
write "$PWD/disk/t" 2
df -h --output=size,used,avail disk
echo "\$ mount -o remount,size=64m disk    # there is room again"
mount -o remount,size=64m disk
left=$(commits disk | tail -1)
(cd disk && find t/.hoodie/timeline -type f -printf '%6s bytes  %p\n' | sort -k3)
after=$(write "$PWD/disk/t" 3)
echo "$after"
if [ "$(commits disk | wc -l)" = 2 ] && [ "$(stat -c %s "$left")" -lt "$(stat -c %s "$commit")" ] && [[ $after == *failed* ]]; then
    echo "VIOLATED: a commit of which $(stat -c %s "$left") of $(stat -c %s "$commit") bytes were written is completed, and no write succeeds any more"
    exit 1
fi
echo "held: the write that failed is no commit"
