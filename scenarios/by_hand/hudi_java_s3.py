"""A rollback on S3 that cannot list its markers completes and deletes nothing, with Java, S3A and moto's server alone.

    export CLIENT=.../hudi-java-client-1.2.0.jar BUNDLE=.../hudi-spark3.5-bundle_2.12-1.2.0.jar
    export JARS='.../pyspark/jars/*' S3A=.../hadoop-aws-3.3.4.jar:.../aws-java-sdk-bundle-1.12.262.jar
    python hudi_java_s3.py [head|list]

A forwarder of 40 lines is between S3A and moto. It kills the second writer when its last data file is stored, and
answers 500 to one request of the third writer, whose rollback looks for the marker directory (`head`) or lists it
(`list`). S3A repeats nothing (`RETRIES`, 0), as at the end of its patience. Exit codes: 1 violated, 0 held, 3 a step
could not be done. It needs Java 17, and moto with its server (`pip install 'moto[s3,server]'`).
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WRITER = """
import java.util.*;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.client.HoodieJavaWriteClient;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.common.engine.EngineType;
import org.apache.hudi.common.model.*;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

public class Write {
    public static void main(String[] told) throws Exception {
        String table = "s3a://lake/t";
        String text = "{'type':'record','name':'row','fields':[{'name':'key','type':'string'},"
            + "{'name':'part','type':'string'},{'name':'ts','type':'long'}]}";
        text = text.replace((char) 39, (char) 34);
        Configuration conf = new Configuration();
        for (String setting : told[1].split(" ")) {
            conf.set("fs.s3a." + setting.split("=")[0], setting.split("=")[1]);
        }
        HadoopStorageConfiguration storage = new HadoopStorageConfiguration(conf);
        if (told[0].equals("1")) {
            HoodieTableMetaClient.newTableBuilder().setTableName("t").setTableType("COPY_ON_WRITE")
                .setRecordKeyFields("key").setPartitionFields("part").setOrderingFields("ts")
                .setPayloadClass(HoodieAvroPayload.class).initTable(storage, table);
        }
        Properties options = new Properties();
        for (String each : List.of("table.name=t", "metadata.enable=false", "write.markers.type=DIRECT",
                "embed.timeline.server=false", "clean.automatic=false", "datasource.write.recordkey.field=key",
                "datasource.write.partitionpath.field=part", "datasource.write.precombine.field=ts")) {
            options.setProperty("hoodie." + each.split("=")[0], each.split("=")[1]);
        }
        HoodieWriteConfig config = HoodieWriteConfig.newBuilder().withEngineType(EngineType.JAVA).withPath(table)
            .withSchema(text).withProps(options).build();
        List<HoodieRecord<HoodieAvroPayload>> rows = new ArrayList<>();
        for (int n = 0; n < 4; n++) {
            GenericRecord row = new GenericData.Record(new Schema.Parser().parse(text));
            row.put("key", "k" + n);
            row.put("part", "p" + n);
            row.put("ts", Long.parseLong(told[0]));
            rows.add(new HoodieAvroRecord<>(new HoodieKey("k" + n, "p" + n), new HoodieAvroPayload(Option.of(row))));
        }
        try (var client = new HoodieJavaWriteClient<HoodieAvroPayload>(new HoodieJavaEngineContext(storage), config)) {
            String instant = client.startCommit();
            client.commit(instant, client.upsert(rows, instant), Option.empty());
        }
        System.out.println("wrote");
        Runtime.getRuntime().halt(0);
    }
}
"""
FILES = 4
WANTED = {"head": ("HEAD", r"/lake/t/\.hoodie/\.temp/\d+$"), "list": ("GET", r"prefix=t%2F\.hoodie%2F\.temp%2F\d+%2F&")}


class Forwarder(BaseHTTPRequestHandler):
    """Forwards to moto; what it does besides is in the attributes of its class."""

    protocol_version = "HTTP/1.1"
    moto = ""
    refuses: tuple[str, str] | None = None
    dies: subprocess.Popen[str] | None = None
    put = 0

    def forward(self) -> None:
        """One request."""
        mine = Forwarder
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if mine.refuses and self.command == mine.refuses[0] and re.search(mine.refuses[1], self.path):
            mine.refuses = None
            print(f"    500: {self.command} {self.path.split('&start')[0]}")
            self.answer(500, {}, b"")
            return
        kept = {name: value for name, value in self.headers.items() if name != "Host"}
        asked = urllib.request.Request(mine.moto + self.path, body or None, kept, method=self.command)
        try:
            with urllib.request.urlopen(asked) as got:
                found = got.status, dict(got.headers), got.read()
        except urllib.error.HTTPError as got:
            found = got.code, dict(got.headers), got.read()
        if mine.dies and self.command == "PUT" and self.path.endswith(".parquet"):
            mine.put += 1
            if mine.put == FILES:
                print(f"    SIGKILL after PUT {self.path}")
                mine.dies.kill()
        self.answer(*found)

    def answer(self, code: int, headers: dict[str, str], body: bytes) -> None:
        """A reply; a HEAD has the length of what it does not send."""
        self.send_response(code)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "server", "date", "transfer-encoding"):
                self.send_header(name, value)
        length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class Front(ThreadingHTTPServer):
    """Forwarders, of whose callers one is killed."""

    def handle_error(self, *_: Any) -> None:
        """Nothing."""


def stored(moto: str) -> list[str]:
    """The keys in the bucket."""
    with urllib.request.urlopen(f"{moto}/lake?list-type=2&max-keys=1000") as got:
        return re.findall("<Key>([^<]*)</Key>", got.read().decode())


def moto_server(port: int) -> subprocess.Popen[bytes]:
    """Moto's server with a bucket."""
    words = [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)]
    store = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/lake", method="PUT")).close()
            break
        except OSError:
            time.sleep(0.2)
    return store


def write(source: Path, front: str, number: int, how: str) -> bool:
    """Whether a writer wrote; the second is killed, a request of the third is refused."""
    retries = os.environ.get("RETRIES", "0")
    settings = (
        f"endpoint={front}", "endpoint.region=us-east-1", "access.key=a", "secret.key=b", "path.style.access=true",
        "connection.ssl.enabled=false", f"attempts.maximum={retries}", f"retry.limit={retries}",
    )  # fmt: skip
    jars = ":".join(os.environ[name] for name in ("CLIENT", "BUNDLE", "S3A", "JARS"))
    words = ["java", "-Xmx1g", "-cp", jars, str(source), str(number), " ".join(settings)]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    Forwarder.dies = program if number == 2 else None
    Forwarder.refuses = WANTED[how] if number == 3 else None
    out, said = program.communicate(timeout=300)
    done = "wrote" in out
    print(f"writer {number}: {'wrote' if done else f'ended with {program.returncode}'}")
    if not done and number != 2:
        print(said[-600:])
    return done


def judged(moto: str, front: str, source: Path, how: str) -> int:
    """The steps; the exit code."""
    if not write(source, front, 1, how) or write(source, front, 2, how):
        return 3
    (dead,) = {key.split("/")[3] for key in stored(moto) if re.match(r"t/\.hoodie/\.temp/\d+/p", key)}
    if not write(source, front, 3, how) or Forwarder.refuses or not write(source, front, 4, how):
        return 3
    keys = stored(moto)
    left = [key for key in keys if key.endswith(f"_{dead}.parquet")]
    completed = [key for key in keys if re.search(r"/\d+_\d+\.rollback$", key)]
    print("\n".join(f"    {key}" for key in (*completed, *left)))
    if left and completed:
        print(f"VIOLATED: the rollback of {dead} is completed, and {len(left)} of its data files are there")
        return 1
    print("held")
    return 0


def main(how: str) -> int:
    """Both servers, and the exit code."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = moto_server(port)
    try:
        Forwarder.moto, front = f"http://127.0.0.1:{port}", Front(("127.0.0.1", 0), Forwarder)
        threading.Thread(target=front.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory() as work:
            source = Path(work) / "Write.java"
            source.write_text(WRITER)
            return judged(Forwarder.moto, f"http://127.0.0.1:{front.server_port}", source, how)
    finally:
        store.kill()


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["list"])))
