import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URL;
import java.net.URLConnection;
import java.net.URLDecoder;
import java.net.URLStreamHandler;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Condition;
import java.util.function.BiConsumer;
import java.util.regex.Pattern;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.Syncable;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hudi.client.HoodieJavaWriteClient;
import org.apache.hudi.client.WriteStatus;
import org.apache.hudi.client.heartbeat.HoodieHeartbeatClient;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.engine.EngineType;
import org.apache.hudi.common.engine.HoodieReaderContext;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.common.model.DefaultHoodieRecordPayload;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.HoodieTableVersion;
import org.apache.hudi.common.table.TableSchemaResolver;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.read.HoodieFileGroupReader;
import org.apache.hudi.common.table.view.FileSystemViewManager;
import org.apache.hudi.common.table.view.FileSystemViewStorageConfig;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.io.hfile.CachingHFileReaderImpl;
import org.apache.hudi.metadata.HoodieBackedTableMetadata;
import org.apache.hudi.metadata.HoodieTableMetadataUtil;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;
import org.apache.hudi.timeline.service.handlers.MarkerHandler;
import org.apache.hudi.timeline.service.handlers.marker.AsyncTimelineServerBasedDetectionStrategy;
import org.apache.hudi.timeline.service.handlers.marker.MarkerBasedEarlyConflictDetectionRunnable;

/**
 * Writes and reads a table by Hudi's Java client as the kit asks, one JSON line a question and one an answer.
 *
 * <pre>
 * {"do": "open", "table": URI, "options": {...}, "conf": {...}}     {"ok": true}    a new life
 * {"do": "write", "rows": [[key, part, value, ts], ...],           no value: it is deleted
 *  "extra": {...}, "faults": [...], "limit_ms": N}                 {"ok": true} | {"error": ...} | {"died": true}
 *                                                                  | {"hangs": true}, and "calls", "struck"
 * {"do": "service", "service": "clean" | "archive" | "compact" | "cluster" | "savepoint" | "restore"
 *  | "drop-savepoint" | "drop-metadata",
 *  "settings": {...}, "faults": [...], "limit_ms": N}               as a write, which may have "settings" as well
 * {"do": "race", "writers": [{"name": NAME, "job": "write" | "roll", "rows": ..., "extra": ...}, ...],
 *  "faults": [{..., "writer": NAME}, ...], "expire": bool, "limit_ms": N}
 *                                                                  {"told": [...], "calls": [...], "struck": [...]}
 * {"do": "read", "metadata": bool}                                 {"rows": [[key, value], ...]} | {"error": ...}
 * {"do": "files"}                                                  {"files": [path, ...]} by the metadata table
 * {"do": "end"}                                                    none; a write that is going on has died
 * </pre>
 *
 * Many lives, one JVM: the file system of a life that died refuses all its later calls, whichever thread makes them; of
 * a table that is not on local files the storage does, which stops its calls as well. "conf" has Hadoop's settings for it.
 * A call is named as the door names the system call that it is: open (for writing), write, close, rename, delete,
 * rmdir (a folder with all in it), mkdir, get (open for reading), list. Two are no system calls: status (getFileStatus),
 * and request, of the writer to its own timeline server about markers, which passes the program (Requests).
 */
public class HudiJavaWriter {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String SCHEMA = "{\"type\":\"record\",\"name\":\"row\",\"fields\":[{\"name\":\"key\",\"type\":\"string\"},"
        + "{\"name\":\"part\",\"type\":\"string\"},{\"name\":\"value\",\"type\":\"string\"},{\"name\":\"ts\",\"type\":\"long\"}]}";
    static final String NEWEST = String.valueOf(HoodieTableVersion.current().versionCode());
    static final int CAUSES_MAX = 8;
    static final int READ_BYTES = 64 * 1024;  // At a time; for log files Hudi asks for 16 MB, longer to clear than to read.
    static final ClassLoader DEFAULTS = new Defaults();
    static final int POLL_MS = 20, ENDING_MS = 2_000;
    static volatile Life life;
    static BufferedReader lines;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        System.setOut(System.err);
        System.setProperty("sun.net.httpserver.nodelay", "true");  // Else each answer of Requests waits for 40 ms.
        System.setProperty("java.util.concurrent.ForkJoinPool.common.threadFactory", Workers.class.getName());
        Thread.currentThread().setContextClassLoader(DEFAULTS);
        lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        answers.println("{\"ready\": true}");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            if (asked.get("do").asText().equals("end")) {
                life.end();
            } else {
                answers.println(JSON.writeValueAsString(answer(asked)));
            }
        }
        Runtime.getRuntime().halt(0);  // Threads of earlier lives may be anywhere.
    }

    static ObjectNode answer(JsonNode asked) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            switch (asked.get("do").asText()) {
                case "open":
                    if (life != null) {
                        life.end();
                        life.join();
                    }
                    FileSystem.closeAll();  // Hudi keeps file systems for ever, and each belongs to one life.
                    life = new Life(asked);
                    return answer.put("ok", true);
                case "write":
                case "service":
                    return life.write(asked, answer);
                case "race":
                    return life.race(asked, answer);
                case "files":
                    ArrayNode files = answer.putArray("files");
                    life.files().forEach(files::add);
                    return answer;
                default:
                    ArrayNode rows = answer.putArray("rows");
                    life.read(asked).forEach((key, value) -> rows.addArray().add(key).add(value));
                    return answer;
            }
        } catch (Throwable error) {
            return answer.put("error", causes(error));
        }
    }

    static String causes(Throwable error) {
        List<String> said = new ArrayList<>();
        for (Throwable each = error; each != null && said.size() < CAUSES_MAX; each = each.getCause()) {
            String text = each.toString().split("\n", 2)[0];
            said.add(text.substring(0, Math.min(300, text.length())));
        }
        return String.join(" <- ", said);
    }

    /**
     * Hadoop's settings, from memory and without descriptions: each reader of a Parquet file reads them again, which
     * opens their jar and looks into all others for those of a site, and took a third of the time of a write. Those of
     * MapReduce, YARN and HDFS are left out: nothing here reads them, and they are most of what each copy copies.
     */
    static class Defaults extends ClassLoader {
        private final Map<String, Option<URL>> known = new ConcurrentHashMap<>();

        Defaults() {
            super(HudiJavaWriter.class.getClassLoader());
        }

        @Override
        public URL getResource(String name) {
            if (!name.endsWith("-default.xml") && !name.endsWith("-site.xml")) {
                return super.getResource(name);
            }
            return name.startsWith("core-") ? known.computeIfAbsent(name, each -> held(super.getResource(each))).orElse(null) : null;
        }

        private static Option<URL> held(URL found) {
            if (found == null) {
                return Option.empty();
            }
            try (InputStream in = found.openStream()) {
                String whole = new String(in.readAllBytes(), StandardCharsets.UTF_8);
                byte[] bare = whole.replaceAll("(?s)<description>.*?</description>|<!--.*?-->", "").getBytes(StandardCharsets.UTF_8);
                return Option.of(new URL(null, found.toString(), new URLStreamHandler() {
                    @Override
                    protected URLConnection openConnection(URL url) {
                        return new URLConnection(url) {
                            @Override
                            public void connect() {
                            }

                            @Override
                            public InputStream getInputStream() {
                                return new ByteArrayInputStream(bare);
                            }
                        };
                    }
                }));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    /** The threads of parallel streams, which read the same settings as all others. */
    public static class Workers implements ForkJoinPool.ForkJoinWorkerThreadFactory {
        @Override
        public ForkJoinWorkerThread newThread(ForkJoinPool pool) {
            ForkJoinWorkerThread made = ForkJoinPool.defaultForkJoinWorkerThreadFactory.newThread(pool);
            made.setContextClassLoader(DEFAULTS);
            return made;
        }
    }

    /** What the calls of a dead life get. */
    static class Death extends Error {
        Death() {
            super("this life is over");
        }
    }

    /** From the n-th call that fits on, so many calls meet it. */
    static class Fault {
        final Pattern pattern;
        final List<String> operations = new ArrayList<>();
        final String effect, writer;
        final int n, calls;
        int seen, fired;

        Fault(JsonNode told) {
            pattern = Pattern.compile(told.get("pattern").asText());
            told.get("operations").forEach(each -> operations.add(each.asText()));
            effect = told.get("effect").asText();
            writer = told.has("writer") ? told.get("writer").asText() : "";
            n = told.get("n").asInt();
            calls = told.get("calls").asInt();
        }
    }

    interface Act<T> {
        T run() throws IOException;
    }

    /** One writer of one table, from its first call until it dies or the next one begins. */
    static class Life {
        final String root, table;
        final Map<String, String> options = new HashMap<>();
        final Configuration conf = new Configuration();
        List<Fault> faults = new ArrayList<>();
        ArrayNode calls = JSON.createArrayNode();
        Thread writing;
        boolean dead, done;
        String error;
        volatile Race race;

        Life(JsonNode asked) throws IOException {
            table = asked.get("table").asText();
            root = new File(table).getParent() + "/";
            asked.get("options").fields().forEachRemaining(each -> options.put(each.getKey(), each.getValue().asText()));
            asked.get("conf").fields().forEachRemaining(each -> conf.set(each.getKey(), each.getValue().asText()));
            if (asked.get("conf").isEmpty()) {
                conf.set("fs.file.impl", WatchedFileSystem.class.getName());
            }
        }

        synchronized void end() {
            dead = true;
        }

        /** Waits a little until its last write and all tasks of it have failed: one that asks for a file system later
         * shares it with the next life. */
        void join() throws InterruptedException {
            if (writing != null) {
                writing.join(ENDING_MS);
            }
            ForkJoinPool.commonPool().awaitQuiescence(ENDING_MS, TimeUnit.MILLISECONDS);
        }

        ObjectNode write(JsonNode asked, ObjectNode answer) throws Exception {
            synchronized (this) {
                calls = JSON.createArrayNode();
                faults = new ArrayList<>();
                asked.get("faults").forEach(each -> faults.add(new Fault(each)));
                done = false;
                error = null;
            }
            Thread thread = new Thread(() -> {
                String failed = null;
                try {
                    if (asked.get("do").asText().equals("service")) {
                        serve(asked);
                    } else {
                        upsert(asked, null);
                    }
                } catch (Throwable thrown) {
                    failed = causes(thrown);
                }
                synchronized (this) {
                    done = true;
                    error = failed;
                    notifyAll();
                }
            }, "write");
            thread.setDaemon(true);
            writing = thread;
            thread.start();
            long until = System.nanoTime() + asked.get("limit_ms").asLong() * 1_000_000;
            synchronized (this) {
                while (!done && !dead && System.nanoTime() < until) {
                    wait(POLL_MS);
                    dead |= lines.ready();  // It was ended.
                }
                ArrayNode struck = answer.putArray("struck");
                faults.forEach(fault -> struck.add(fault.fired));
                faults = new ArrayList<>();
                answer.set("calls", calls);
                calls = JSON.createArrayNode();
                if (dead || !done) {
                    answer.put(dead ? "died" : "hangs", true);
                    dead = true;
                    thread.interrupt();
                } else if (error != null) {
                    answer.put("error", error);
                } else {
                    answer.put("ok", true);
                }
            }
            return answer;
        }

        /** Lets several writers run on the table, of which one is at work at a time. */
        ObjectNode race(JsonNode asked, ObjectNode answer) throws Exception {
            synchronized (this) {
                calls = JSON.createArrayNode();
                faults = new ArrayList<>();
            }
            if (asked.get("expire").asBoolean()) {
                for (File each : Race.files(new File(table + "/.hoodie/.heartbeat"))) {
                    Race.age(each);
                }
            }
            List<Fault> all = new ArrayList<>(), pauses = new ArrayList<>(), others = new ArrayList<>();
            asked.get("faults").forEach(each -> all.add(new Fault(each)));
            all.forEach(each -> (each.effect.startsWith("pause") ? pauses : others).add(each));
            faults = others;
            race = new Race(this, asked.get("writers"), pauses);
            try {
                race.play(asked.get("limit_ms").asLong(), answer);
            } finally {
                race = null;
            }
            synchronized (this) {
                ArrayNode struck = answer.putArray("struck");
                all.forEach(fault -> struck.add(fault.fired));
                answer.set("calls", calls);
                calls = JSON.createArrayNode();
                faults = new ArrayList<>();
            }
            return answer;
        }

        void upsert(JsonNode asked, Writer writer) throws Exception {
            HadoopStorageConfiguration storage = new HadoopStorageConfiguration(conf);
            Path properties = new Path(table, ".hoodie/hoodie.properties");
            if (!properties.getFileSystem(conf).exists(properties)) {
                HoodieTableMetaClient.newTableBuilder()
                    .setTableName("t")
                    .setTableType(options.get("hoodie.datasource.write.table.type"))
                    .setRecordKeyFields("key")
                    .setPartitionFields("part")
                    .setOrderingFields("ts")
                    .setPayloadClass(DefaultHoodieRecordPayload.class)
                    .setTableVersion(Integer.parseInt(options.getOrDefault("hoodie.write.table.version", NEWEST)))
                    .initTable(storage, table);
            }
            HoodieWriteConfig config = config(asked);
            Schema schema = new Schema.Parser().parse(SCHEMA);
            List<HoodieRecord<DefaultHoodieRecordPayload>> records = new ArrayList<>();
            for (JsonNode row : asked.get("rows")) {
                HoodieKey key = new HoodieKey(row.get(0).asText(), row.get(1).asText());
                if (row.get(2).asText().isEmpty()) {
                    records.add(new HoodieAvroRecord<>(key, new DefaultHoodieRecordPayload(null, row.get(3).asLong())));
                    continue;
                }
                GenericRecord record = new GenericData.Record(schema);
                record.put("key", row.get(0).asText());
                record.put("part", row.get(1).asText());
                record.put("value", row.get(2).asText());
                record.put("ts", row.get(3).asLong());
                records.add(new HoodieAvroRecord<>(key, new DefaultHoodieRecordPayload(record, row.get(3).asLong())));
            }
            Map<String, String> extra = new HashMap<>();
            asked.get("extra").fields().forEachRemaining(each -> extra.put(each.getKey(), each.getValue().asText()));
            HoodieJavaEngineContext context = new HoodieJavaEngineContext(storage);
            try (HoodieJavaWriteClient<DefaultHoodieRecordPayload> client = new HoodieJavaWriteClient<>(context, config);
                    Requests passed = writer == null && config.isEmbeddedTimelineServerEnabled() ? new Requests(this, client) : null) {
                if (writer != null) {
                    writer.client = client;
                    if (writer.job.equals("roll")) {
                        client.rollbackFailedWrites(HoodieTableMetaClient.builder().setConf(storage).setBasePath(table).build());
                        return;
                    }
                }
                String instant = client.startCommit();
                if (writer != null) {
                    writer.instant = instant;
                }
                List<WriteStatus> statuses = client.upsert(records, instant);
                for (WriteStatus status : statuses) {
                    if (status.hasErrors()) {
                        Throwable first = status.getGlobalError();
                        throw new IOException("records were not written", first != null ? first
                            : status.getErrors().values().stream().findFirst().orElse(null));
                    }
                }
                if (!client.commit(instant, statuses, Option.of(extra))) {
                    throw new IOException("the commit answered false");
                }
            }
        }

        /** What a write or a service is told: what its life was, and its own settings over that. */
        HoodieWriteConfig config(JsonNode asked) {
            Map<String, String> all = new HashMap<>(options);
            if (asked.has("settings")) {
                asked.get("settings").fields().forEachRemaining(each -> all.put(each.getKey(), each.getValue().asText()));
                if (asked.get("settings").has("hoodie.write.auto.upgrade")) {
                    all.remove("hoodie.write.table.version");  // To the newest.
                }
            }
            return HoodieWriteConfig.newBuilder()
                .withEngineType(EngineType.JAVA).withPath(table).withSchema(SCHEMA).withProps(all).build();
        }

        /** Runs a table service: what is pending, then planned and done at once, so that nothing is pending when it is over. */
        void serve(JsonNode asked) throws Exception {
            HadoopStorageConfiguration storage = new HadoopStorageConfiguration(conf);
            HoodieJavaEngineContext context = new HoodieJavaEngineContext(storage);
            try (HoodieJavaWriteClient<DefaultHoodieRecordPayload> client = new HoodieJavaWriteClient<>(context, config(asked))) {
                switch (asked.get("service").asText()) {
                    case "clean":
                        client.clean();
                        break;
                    case "archive":
                        client.archive();
                        break;
                    case "compact":
                        if (!options.get("hoodie.datasource.write.table.type").equals("MERGE_ON_READ")) {
                            break;
                        }
                        client.runAnyPendingCompactions();
                        Option<String> compaction = client.scheduleCompaction(Option.empty());
                        if (compaction.isPresent()) {
                            client.compact(compaction.get(), true);
                        }
                        break;
                    case "cluster":
                        for (HoodieInstant each : HoodieTableMetaClient.builder().setConf(storage).setBasePath(table).build()
                                .getActiveTimeline().filterPendingReplaceOrClusteringTimeline().getInstants()) {
                            client.cluster(each.requestedTime(), true);
                        }
                        Option<String> planned = client.scheduleClustering(Option.empty());
                        if (planned.isPresent()) {
                            client.cluster(planned.get(), true);
                        }
                        break;
                    case "savepoint":
                        client.savepoint("marker-sim", "");
                        break;
                    case "restore":
                        client.restoreToSavepoint();
                        break;
                    case "drop-savepoint":
                        client.deleteSavepoint();
                        break;
                    case "drop-metadata":
                        HoodieTableMetaClient meta = HoodieTableMetaClient.builder().setConf(storage).setBasePath(table).build();
                        HoodieTableMetadataUtil.deleteMetadataTable(meta, context, false);
                        break;
                    default:
                        throw new IllegalArgumentException("no service is called " + asked.get("service"));
                }
            } finally {
                CachingHFileReaderImpl.resetGlobalCache();  // By path and size: a table built anew may have the same.
            }
        }

        /** The data files of the table as its metadata table lists them, by path below the table. */
        List<String> files() throws Exception {
            HadoopStorageConfiguration storage = new HadoopStorageConfiguration(conf);
            HoodieTableMetaClient meta = HoodieTableMetaClient.builder().setConf(storage).setBasePath(table).build();
            HoodieMetadataConfig config = HoodieMetadataConfig.newBuilder().enable(true).build();
            List<String> found = new ArrayList<>();
            try (var listed = new HoodieBackedTableMetadata(new HoodieJavaEngineContext(storage), meta.getStorage(), config, table)) {
                for (String partition : listed.getAllPartitionPaths()) {
                    StoragePath folder = partition.isEmpty() ? new StoragePath(table) : new StoragePath(table, partition);
                    listed.getAllFilesInPartition(folder).forEach(each ->
                        found.add(each.getPath().toUri().getPath().substring(table.length() + 1)));
                }
            }
            return found;
        }

        Map<String, String> read(JsonNode asked) throws Exception {
            HadoopStorageConfiguration storage = new HadoopStorageConfiguration(conf);
            HoodieJavaEngineContext context = new HoodieJavaEngineContext(storage);
            HoodieTableMetaClient meta = HoodieTableMetaClient.builder().setConf(storage).setBasePath(table).build();
            boolean listed = asked.has("metadata") ? asked.get("metadata").asBoolean()
                : Boolean.parseBoolean(options.get("hoodie.metadata.enable"));
            HoodieMetadataConfig config = HoodieMetadataConfig.newBuilder().enable(listed).build();
            var timeline = meta.getActiveTimeline().filterCompletedAndCompactionInstants();
            String last = timeline.lastInstant().get().requestedTime();
            Object schema = schemaOf(new TableSchemaResolver(meta));
            Map<String, String> rows = new java.util.TreeMap<>();
            // Of completed instants alone a view does not have what was written since a compaction that is pending.
            var view = FileSystemViewManager.createInMemoryFileSystemViewWithTimeline(context, meta, config, timeline);
            for (String partition : FSUtils.getAllPartitionPaths(context, meta, config)) {
                for (var slice : view.getLatestMergedFileSlicesBeforeOrOn(partition, last)
                        .collect(java.util.stream.Collectors.toList())) {
                    HoodieReaderContext<IndexedRecord> reading =
                        (HoodieReaderContext<IndexedRecord>) context.<IndexedRecord>getReaderContextFactory(meta).getContext();
                    var builder = HoodieFileGroupReader.<IndexedRecord>newBuilder().withReaderContext(reading)
                        .withHoodieTableMetaClient(meta).withLatestCommitTime(last).withFileSlice(slice)
                        .withProps(new org.apache.hudi.common.config.TypedProperties());
                    with(builder, "withDataSchema", schema);
                    with(builder, "withRequestedSchema", schema);
                    try (var found = builder.build().getClosableIterator()) {
                        while (found.hasNext()) {
                            GenericRecord row = (GenericRecord) found.next();
                            rows.merge(row.get("key").toString(), row.get("value").toString(), (a, b) -> a + "|twice|" + b);
                        }
                    }
                }
            }
            return rows;
        }

        /** The schema of the table; its class, and the name of the method, differ between 1.1 and 1.2. */
        static Object schemaOf(TableSchemaResolver resolver) throws Exception {
            for (String name : List.of("getTableSchema", "getTableAvroSchema")) {
                for (Method method : TableSchemaResolver.class.getMethods()) {
                    if (method.getName().equals(name) && method.getParameterCount() == 0) {
                        return method.invoke(resolver);
                    }
                }
            }
            throw new IllegalStateException("TableSchemaResolver has neither getTableSchema nor getTableAvroSchema");
        }

        static void with(Object builder, String name, Object schema) throws Exception {
            for (Method method : builder.getClass().getMethods()) {
                if (method.getName().equals(name)) {
                    method.invoke(builder, schema);
                }
            }
        }

        boolean below(Path path) {
            return path.toUri().getPath().startsWith(table + "/") || path.toUri().getPath().equals(table);
        }

        String relative(Path path) {
            return path.toUri().getPath().substring(root.length());
        }

        /** Does a call, or what a fault makes of it. half: does a half of it, null where there is none. */
        <T> T call(String operation, Path path, Path from, Act<T> act, Act<T> half) throws IOException {
            if (!below(path)) {
                return act.run();
            }
            String name = relative(path);
            Race now = race;
            Writer writer = now == null ? null : now.arrive(operation, name);
            synchronized (this) {
                if (dead) {
                    throw new Death();
                }
                Fault due = strike(faults, writer, operation, name);
                String effect = due == null ? "" : due.effect;
                List<String> gone = effects(operation, path, from);
                File file = new File(path.toUri().getPath());
                long before = operation.equals("open") ? file.length() : 0;
                boolean halved = half != null && (effect.equals("torn") || effect.equals("full-within") && due.fired == 1);
                boolean does = effect.isEmpty() || effect.equals("die-after") || effect.equals("applied") || halved;
                T result = null;
                ObjectNode seen = calls.addObject().put("op", operation).put("path", name);
                if (writer != null) {
                    seen.put("writer", writer.name);
                }
                try {
                    result = does ? (halved ? half : act).run() : null;
                } catch (IOException | RuntimeException thrown) {
                    seen.put("result", thrown.toString());
                    throw thrown;
                }
                seen.put("result", effect.isEmpty() ? "ok" : effect);
                if (does) {
                    ArrayNode lost = seen.putArray("gone");
                    if (file.length() < before) {
                        seen.put("cut", true);  // It held something.
                    }
                    gone.stream().filter(each -> !new File(root + each).exists()).forEach(lost::add);
                    if (operation.equals("mkdir") && Boolean.TRUE.equals(result)) {
                        seen.put("made", true);  // Else it was there.
                    }
                    put(seen, operation, path);
                }
                if (effect.startsWith("die") || effect.equals("torn")) {
                    if (writer != null) {
                        writer.dead = true;
                        throw new Death();
                    }
                    dead = true;
                    notifyAll();
                    throw new Death();
                }
                if (!effect.isEmpty()) {
                    String why = effect.startsWith("full") ? "No space left on device" : "Input/output error";
                    throw new IOException(operation + " " + name + ": " + why);
                }
                return result;
            }
        }

        /** Notes a request of the writer to its timeline server, and returns what a fault makes of it, "" for nothing. */
        synchronized String request(String name) {
            if (dead) {
                throw new Death();
            }
            Fault due = strike(faults, null, "request", name);
            String effect = due == null ? "" : due.effect;
            calls.addObject().put("op", "request").put("path", name).put("result", effect.isEmpty() ? "ok" : effect);
            return effect;
        }

        static Fault strike(List<Fault> faults, Writer writer, String operation, String name) {
            Fault due = null;
            for (Fault fault : faults) {
                if (writer != null && !fault.writer.equals(writer.name)) {
                    continue;
                }
                if (!fault.operations.contains(operation) || !fault.pattern.matcher(name).find()) {
                    continue;
                }
                boolean turn = fault.n <= fault.seen + 1 && fault.seen + 1 < fault.n + fault.calls;
                if (turn && due != null) {
                    continue;
                }
                fault.seen++;
                due = turn ? fault : due;
            }
            if (due != null) {
                due.fired++;
            }
            return due;
        }

        /** The files that a call may remove. */
        List<String> effects(String operation, Path path, Path from) throws IOException {
            List<String> gone = new ArrayList<>();
            if (operation.equals("rename")) {
                gone.add(relative(from));
            } else if (operation.equals("delete")) {
                gone.add(relative(path));
            } else if (operation.equals("rmdir")) {
                try (var all = Files.walk(new File(path.toUri().getPath()).toPath())) {
                    all.filter(Files::isRegularFile).forEach(each -> gone.add(each.toString().substring(root.length())));
                }
            }
            return gone;
        }

        /** The file that a call put, with its content if it is in a marker directory. */
        void put(ObjectNode seen, String operation, Path path) throws IOException {
            File file = new File(path.toUri().getPath());
            boolean puts = List.of("open", "write", "close", "rename").contains(operation) && file.isFile();
            boolean marker = file.getPath().contains("/.hoodie/.temp/") || file.getPath().endsWith(".rollback.requested");
            if (puts && (marker || !operation.equals("write"))) {
                byte[] held = marker ? Files.readAllBytes(file.toPath()) : new byte[0];
                seen.put("puts", new String(held, StandardCharsets.ISO_8859_1));
            }
        }
    }

    /**
     * Passes the requests of a writer on to its timeline server. One about markers is a call on the marker, or on the
     * marker directory and what it asks for, and may be lost, answered with nothing, or answered false and not passed on.
     */
    static class Requests implements AutoCloseable {
        static final String MARKERS = "/v1/hoodie/marker/";
        static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        private final Life mine;
        private final String place;
        private final HttpServer server;
        private final ExecutorService threads = Executors.newCachedThreadPool(act -> {
            Thread made = new Thread(act, "requests");
            made.setDaemon(true);
            return made;
        });

        Requests(Life mine, HoodieJavaWriteClient<?> client) throws IOException {
            this.mine = mine;
            FileSystemViewStorageConfig told = client.getConfig().getViewStorageConfig();
            place = "http://" + told.getRemoteViewServerHost() + ":" + told.getRemoteViewServerPort();
            server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
            server.createContext("/", this::pass);
            server.setExecutor(threads);
            server.start();
            told.setValue("hoodie.filesystem.view.remote.host", "127.0.0.1");
            told.setValue("hoodie.filesystem.view.remote.port", String.valueOf(server.getAddress().getPort()));
        }

        private void pass(HttpExchange asked) throws IOException {
            try {
                String what = asked.getRequestURI().getPath();
                String effect = what.startsWith(MARKERS) ? mine.request(named(asked.getRequestURI(), what.substring(MARKERS.length()))) : "";
                if (effect.equals("false")) {
                    answer(asked, 200, effect.getBytes(StandardCharsets.UTF_8));
                } else if (effect.isEmpty() || effect.equals("applied")) {
                    HttpRequest.Builder passed = HttpRequest.newBuilder(URI.create(place + asked.getRequestURI()))
                        .method(asked.getRequestMethod(), HttpRequest.BodyPublishers.ofByteArray(asked.getRequestBody().readAllBytes()));
                    copy("Accept-Encoding", asked.getRequestHeaders().getFirst("Accept-Encoding"), passed::header);
                    HttpResponse<byte[]> told = CLIENT.send(passed.build(), HttpResponse.BodyHandlers.ofByteArray());
                    if (effect.isEmpty()) {
                        copy("Content-Encoding", told.headers().firstValue("Content-Encoding").orElse(null), asked.getResponseHeaders()::set);
                        answer(asked, told.statusCode(), told.body());
                    }
                }
            } catch (InterruptedException over) {
                Thread.currentThread().interrupt();
            } finally {
                asked.close();  // Where nothing was answered, the connection.
            }
        }

        private static void copy(String name, String value, BiConsumer<String, String> to) {
            if (value != null) {
                to.accept(name, value);
            }
        }

        private static void answer(HttpExchange asked, int status, byte[] body) throws IOException {
            asked.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
            asked.getResponseBody().write(body);
        }

        private String named(URI asked, String what) {
            Map<String, String> told = new HashMap<>();
            for (String each : Objects.requireNonNullElse(asked.getRawQuery(), "").split("&")) {
                told.put(each.split("=", 2)[0], URLDecoder.decode(each.substring(each.indexOf('=') + 1), StandardCharsets.UTF_8));
            }
            String folder = mine.relative(new Path(told.getOrDefault("markerdirpath", mine.table)));
            return folder + (what.equals("create") ? "/" + told.get("markername") : "?" + what);
        }

        @Override
        public void close() {
            server.stop(0);
            threads.shutdownNow();
        }
    }

    /** One of several writers. Its threads inherit it; parallel streams stay in its own pool of one thread. */
    static class Writer {
        static final InheritableThreadLocal<Writer> MINE = new InheritableThreadLocal<>();
        final String name, job;
        final List<File> heartbeats = new ArrayList<>();
        volatile HoodieJavaWriteClient<?> client;
        volatile String instant = "";
        volatile Thread thread;
        volatile boolean dead;
        boolean over;
        String waits;  // For the lock of this place, null for none.

        Writer(JsonNode asked) {
            name = asked.get("name").asText();
            job = asked.get("job").asText();
        }
    }

    /**
     * Writers of one table, of which one has the turn: it runs until it is paused, waits for the lock or is over; then
     * the next one in order that can run has it. Each of its storage calls, and each taking and release of the lock, is a
     * step before which it may be paused. A long pause outlasts its heartbeats: their files look old until it goes on,
     * when its timer renews them, as the timer of a real process does.
     */
    static class Race {
        static final long OLD_MS = 3_600_000, STUCK_MS = 10_000, BLOCKED_MS = 300;
        static final String MONITOR = "lock";  // On which all file locks of one JVM synchronize: literals are one object.
        static final int MONITOR_MS = 2;
        final Life life;
        final List<Writer> writers = new ArrayList<>();
        final List<JsonNode> asked = new ArrayList<>();
        final List<Fault> pauses;
        final Map<String, Map<Writer, Integer>> holds = new LinkedHashMap<>();  // By place.
        Writer turn;
        final String place;  // Of the lock's calls.
        boolean over;
        long moved = System.nanoTime();

        Race(Life life, JsonNode asked, List<Fault> pauses) {
            this.life = life;
            this.pauses = pauses;
            place = life.relative(new Path(life.table)) + "/";
            asked.forEach(each -> {
                writers.add(new Writer(each));
                this.asked.add(each);
            });
            turn = writers.get(0);
        }

        void play(long limitMs, ObjectNode answer) throws InterruptedException {
            List<ForkJoinPool> pools = new ArrayList<>();
            for (int i = 0; i < writers.size(); i++) {
                Writer writer = writers.get(i);
                JsonNode job = asked.get(i);
                ForkJoinPool pool = new ForkJoinPool(1, new Workers(), null, false);
                pools.add(pool);
                pool.execute(() -> run(writer, job));
            }
            long until = System.nanoTime() + limitMs * 1_000_000;
            boolean hangs;
            synchronized (this) {
                while (writers.stream().anyMatch(each -> !each.over) && System.nanoTime() < until) {
                    wait(POLL_MS);
                    boolean blocked = turn.thread != null && turn.thread.getState() == Thread.State.BLOCKED;  // By another one.
                    if (System.nanoTime() - moved > (blocked ? BLOCKED_MS : STUCK_MS) * 1_000_000) {
                        note("stuck", turn, "");
                        pass(turn);
                    }
                }
                hangs = writers.stream().anyMatch(each -> !each.over);
                over = true;
                notifyAll();
            }
            if (hangs) {
                answer.put("hangs", true);
            }
            for (ForkJoinPool pool : pools) {
                pool.shutdownNow();
                pool.awaitTermination(ENDING_MS, TimeUnit.MILLISECONDS);
            }
        }

        private void run(Writer mine, JsonNode job) {
            Writer.MINE.set(mine);
            mine.thread = Thread.currentThread();
            String failed = null;
            try {
                await(mine);
                note("begin", mine, "");
                life.upsert(job, mine);
            } catch (Throwable thrown) {
                failed = causes(thrown);
            }
            synchronized (this) {
                if (!over) {
                    if (mine.dead) {
                        age(mine);
                    }
                    synchronized (life) {
                        ObjectNode told = life.calls.addObject().put("op", mine.dead ? "died" : "told").put("path", "")
                            .put("writer", mine.name).put("instant", mine.instant).put("result", "ok");
                        if (failed != null) {
                            told.put("error", failed);
                        }
                    }
                }
                mine.over = true;
                holds.values().forEach(each -> each.remove(mine));  // The lock of a process that is gone is free.
                pass(mine);
            }
        }

        /** The caller's writer, once it has the turn; its calls wait here. */
        Writer arrive(String operation, String name) {
            Writer mine = caller();
            await(mine);
            Fault due;
            synchronized (this) {
                due = Life.strike(pauses, mine, operation, name);
                if (operation.equals("open") && name.contains("/.hoodie/.heartbeat/")) {
                    mine.heartbeats.add(new File(life.root + name));
                }
            }
            if (due != null) {
                pause(mine, due.effect.equals("pause-long"));
            }
            if (List.of("stat", "lock", "unlock").contains(operation)) {  // Others die in their call.
                synchronized (life) {
                    if (Life.strike(life.faults, mine, operation, name) != null) {
                        life.calls.addObject().put("op", operation).put("path", name).put("writer", mine.name).put("result", "die-before");
                        mine.dead = true;
                        throw new Death();
                    }
                }
            }
            return mine;
        }

        private Writer caller() {
            Writer mine = Writer.MINE.get();
            return mine != null ? mine : turn;
        }

        /** A step that has no effect of its own on storage. */
        Writer step(String operation, String name) {
            Writer mine = arrive(operation, name);
            note(operation, mine, name);
            return mine;
        }

        /** The caller found a lock of files taken: it waits, and others go on. */
        void polls() {
            Writer mine = caller();
            pass(mine);
            await(mine);
        }

        /** The caller has taken or released a lock of files. */
        void holds(String operation) {
            note(operation, caller(), "");
        }

        private void pause(Writer mine, boolean expires) {
            note("pause", mine, "");
            if (expires) {
                age(mine);
            }
            pass(mine);
            await(mine);
            note("resume", mine, "");
            if (expires && mine.client != null) {
                renew(mine);
            }
        }

        private void renew(Writer mine) {
            try {
                HoodieHeartbeatClient beats = mine.client.getHeartbeatClient();
                Object beat = beats.getHeartbeat(mine.instant);
                if (beat == null || (Boolean) opened(beat.getClass().getMethod("isHeartbeatStopped")).invoke(beat)) {
                    return;
                }
                opened(HoodieHeartbeatClient.class.getDeclaredMethod("updateHeartbeat", String.class)).invoke(beats, mine.instant);
            } catch (ReflectiveOperationException refused) {
                note("not-renewed", mine, causes(refused));
            }
        }

        private static Method opened(Method found) {
            found.setAccessible(true);
            return found;
        }

        private void age(Writer mine) {
            mine.heartbeats.stream().filter(File::isFile).forEach(each -> {
                age(each);
                note("expired", mine, each.getName());
            });
        }

        static void age(File each) {
            try {
                Files.setLastModifiedTime(each.toPath(), FileTime.fromMillis(System.currentTimeMillis() - OLD_MS));
            } catch (IOException gone) {
                throw new UncheckedIOException(gone);
            }
        }

        static List<File> files(File folder) {
            File[] found = folder.listFiles(File::isFile);
            return found == null ? List.of() : List.of(found);
        }

        private void note(String operation, Writer writer, String path) {
            synchronized (life) {
                life.calls.addObject().put("op", operation).put("path", path).put("writer", writer.name)
                    .put("instant", writer.instant).put("result", "ok");
            }
        }

        /** Waits for the turn, without the monitor of Hudi's file lock: other processes would not wait for it. */
        private void await(Writer mine) {
            try {
                while (true) {
                    synchronized (this) {
                        if (over || mine.dead) {
                            throw new Death();
                        }
                        if (turn == mine) {
                            moved = System.nanoTime();
                            return;
                        }
                        if (!Thread.holdsLock(MONITOR)) {
                            wait(POLL_MS);
                            continue;
                        }
                    }
                    MONITOR.wait(MONITOR_MS);
                }
            } catch (InterruptedException interrupted) {
                throw new Death();
            }
        }

        private synchronized void pass(Writer mine) {
            int from = writers.indexOf(mine);
            for (int i = 1; i <= writers.size(); i++) {
                Writer next = writers.get((from + i) % writers.size());
                if (!next.over && !held(next)) {
                    turn = next;
                    break;
                }
            }
            moved = System.nanoTime();
            notifyAll();
        }

        private boolean held(Writer mine) {
            return holds.getOrDefault(mine.waits, Map.of()).keySet().stream().anyMatch(each -> each != mine);
        }

        synchronized void lock(String key) {
            Writer mine = arrive("lock", place + key);
            mine.waits = place + key;
            while (held(mine)) {
                pass(mine);
                await(mine);
            }
            mine.waits = null;
            if (holds.computeIfAbsent(place + key, each -> new LinkedHashMap<>()).merge(mine, 1, Integer::sum) == 1) {
                note("lock", mine, place + key);
            }
        }

        synchronized void unlock(String key) {
            Writer mine = arrive("unlock", place + key);
            Map<Writer, Integer> held = holds.getOrDefault(place + key, Map.of());
            if (held.containsKey(mine) && held.computeIfPresent(mine, (each, times) -> times > 1 ? times - 1 : null) == null) {
                note("unlock", mine, place + key);
            }
        }
    }

    /**
     * The locks of the gate, correct by construction: one writer holds each, and that of a dead one is free. A key with a
     * folder is that of a file group, any other that of the table.
     */
    public static class GateLock implements LockProvider<String> {
        private final String key;

        public GateLock(LockConfiguration lock, StorageConfiguration<?> storage) {
            String told = lock.getConfig().getString(LockConfiguration.ZK_LOCK_KEY_PROP_KEY, "");
            key = told.contains("/") ? told : "";
        }

        @Override
        public boolean tryLock(long time, TimeUnit unit) {
            Race now = life.race;
            if (now != null) {
                now.lock(key);
            }
            return true;
        }

        @Override
        public void unlock() {
            Race now = life.race;
            if (now != null) {
                now.unlock(key);
            }
        }

        @Override
        public String getLock() {
            return "gate";
        }

        @Override
        public Condition newCondition() {
            throw new UnsupportedOperationException("a lock of the gate has no condition");
        }
    }

    /** Hudi's lock of files, whose closing is a step: it deletes the file once more, after `unlock` has. */
    public static class FileLock extends FileSystemBasedLockProvider {
        public FileLock(LockConfiguration lock, StorageConfiguration<?> storage) {
            super(lock, storage);
        }

        @Override
        public boolean tryLock(long time, TimeUnit unit) {
            boolean taken = super.tryLock(time, unit);
            Race now = life.race;
            if (now != null && taken) {
                now.holds("lock");
            } else if (now != null) {
                now.polls();
            }
            return taken;
        }

        @Override
        public void unlock() {
            super.unlock();
            Race now = life.race;
            if (now != null) {
                now.holds("unlock");
            }
        }

        @Override
        public void close() {
            Race now = life.race;
            if (now != null) {
                now.step("close", life.relative(new Path(getLock())));
            }
            super.close();
        }
    }

    /**
     * Hudi's detector of conflicts between markers of timeline servers, which looks each time that a marker is asked for:
     * its period is over then. Its own thread would look every few seconds of real time, that is never or at any call.
     */
    public static class SteppedDetector extends AsyncTimelineServerBasedDetectionStrategy {
        private final AtomicBoolean found = new AtomicBoolean();
        private Runnable detector;

        public SteppedDetector(String table, String folder, String marker, Boolean commits) {
            super(table, folder, marker, commits);
        }

        @Override
        public void startAsyncDetection(Long delayMs, Long periodMs, String folder, String table, Long heartbeatMs,
                HoodieStorage storage, Object handler, Set<HoodieInstant> completed) {
            found.set(false);
            detector = new MarkerBasedEarlyConflictDetectionRunnable(found, (MarkerHandler) handler, folder, table, storage,
                heartbeatMs, completed, checkCommitConflict);
        }

        @Override
        public synchronized boolean hasMarkerConflict() {
            try {
                detector.run();
            } catch (RuntimeException failed) {
                detector = () -> { };  // A task that failed is not scheduled again.
            }
            return found.get();
        }
    }

    /** The local file system of one life. Sums are not kept, so a file is one file. */
    public static class WatchedFileSystem extends RawLocalFileSystem {
        private final Life mine = life;

        @Override
        public String getScheme() {
            return "file";
        }

        @Override
        public void initialize(URI uri, Configuration conf) throws IOException {
            super.initialize(uri, conf);
        }

        /** The same without a process for each, which Hadoop starts where it has no native library. */
        @Override
        public void setPermission(Path path, FsPermission mode) throws IOException {
            Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(mode.toString()));
        }

        /** A step of several writers: what another one does between this look and the next call is what they race for. */
        @Override
        public boolean exists(Path path) throws IOException {
            Race now = mine.race;
            if (now == null && !Thread.holdsLock(mine)) {  // Of other file systems it is a getFileStatus.
                return mine.call("status", path, null, () -> super.exists(path), null);
            }
            if (now != null && mine.below(path)) {
                now.step("stat", mine.relative(path));
            }
            return super.exists(path);
        }

        /** Of several writers no step: it goes with the one before it. Looks that are part of another call are no calls. */
        @Override
        public FileStatus getFileStatus(Path path) throws IOException {
            Race now = mine.race;
            if (now == null && !Thread.holdsLock(mine)) {
                return mine.call("status", path, null, () -> super.getFileStatus(path), null);
            }
            if (now != null && mine.below(path) && Writer.MINE.get() != null) {
                now.note("peek", Writer.MINE.get(), mine.relative(path));
            }
            return super.getFileStatus(path);
        }

        @Override
        public FSDataInputStream open(Path path, int size) throws IOException {
            if (!pathToFile(path).exists()) {
                return super.open(path, size);
            }
            return mine.call("get", path, null, () -> super.open(path, Math.min(size, READ_BYTES)), null);
        }

        @Override
        protected OutputStream createOutputStream(Path path, boolean append) throws IOException {
            return mine.call("open", path, null, () -> watched(path, super.createOutputStream(path, append)), null);
        }

        @Override
        protected OutputStream createOutputStreamWithMode(Path path, boolean append, FsPermission mode) throws IOException {
            return mine.call("open", path, null, () -> watched(path, super.createOutputStreamWithMode(path, append, mode)), null);
        }

        @Override
        public boolean rename(Path from, Path to) throws IOException {
            return mine.call("rename", to, from, () -> super.rename(from, to), null);
        }

        @Override
        public boolean delete(Path path, boolean recursive) throws IOException {
            File file = pathToFile(path);
            if (!file.exists()) {
                return super.delete(path, recursive);
            }
            return mine.call(file.isFile() ? "delete" : "rmdir", path, null, () -> super.delete(path, recursive), null);
        }

        @Override
        protected boolean mkOneDirWithMode(Path path, File file, FsPermission mode) throws IOException {
            return mine.call("mkdir", path, null, () -> super.mkOneDirWithMode(path, file, mode), null);
        }

        @Override
        public FileStatus[] listStatus(Path path) throws IOException {
            if (!pathToFile(path).isDirectory()) {
                return super.listStatus(path);
            }
            FileStatus[] found = mine.call("list", path, null, () -> super.listStatus(path), null);
            for (int i = 0; i < found.length; i++) {
                found[i] = whole(found[i]);
            }
            return found;
        }

        /** With its permission, for which Hadoop starts a process where it has no native library. */
        private FileStatus whole(FileStatus found) throws IOException {
            try {
                PosixFileAttributes read = Files.readAttributes(pathToFile(found.getPath()).toPath(), PosixFileAttributes.class);
                FsPermission mode = FsPermission.valueOf((found.isDirectory() ? "d" : "-") + PosixFilePermissions.toString(read.permissions()));
                return new FileStatus(found.getLen(), found.isDirectory(), found.getReplication(), found.getBlockSize(),
                    found.getModificationTime(), found.getAccessTime(), mode, read.owner().getName(), read.group().getName(), found.getPath());
            } catch (NoSuchFileException gone) {
                return found;
            }
        }

        private OutputStream watched(Path path, OutputStream out) {
            return mine.below(path) ? new WatchedStream(mine, path, out) : out;
        }
    }

    /** A file that is written, below all buffers. */
    static class WatchedStream extends OutputStream implements Syncable {
        private final Life mine;
        private final Path path;
        private final OutputStream out;
        private boolean closed;

        WatchedStream(Life mine, Path path, OutputStream out) {
            this.mine = mine;
            this.path = path;
            this.out = out;
        }

        @Override
        public void write(int one) throws IOException {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public void write(byte[] data, int offset, int length) throws IOException {
            mine.call("write", path, null, () -> write(data, offset, length, length), () -> write(data, offset, length, length / 2));
        }

        private Void write(byte[] data, int offset, int length, int part) throws IOException {
            out.write(data, offset, part);
            return null;
        }

        @Override
        public void hflush() {
        }

        @Override
        public void hsync() throws IOException {
            if (out instanceof Syncable) {
                ((Syncable) out).hsync();
            }
        }

        @Override
        public void close() throws IOException {
            if (!closed) {
                closed = true;
                try {
                    mine.call("close", path, null, () -> null, null);
                } finally {
                    out.close();
                }
            }
        }
    }
}
