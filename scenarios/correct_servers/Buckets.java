// Three files a directory, the name's hash says which; each is replaced by rename under a lock of the host. No batches.
//
//   java Buckets.java PORT ROOT
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import static java.nio.charset.StandardCharsets.UTF_8;

public class Buckets {
    static final String BASE = "/v1/hoodie/marker";
    static final int BUCKETS = 3, THREADS = 32, BACKLOG = 512;
    static final Pattern MARKER = Pattern.compile("(?s).*[^/]\\.marker\\.(CREATE|MERGE|APPEND)");
    static final Pattern DIRECTORY = Pattern.compile("(/[^/]+)+/\\.hoodie/\\.temp/[^/]+");
    static final Pattern ODD = Pattern.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufffd\\ud800-\\udfff]");
    static final Map<String, Object> MINE = new ConcurrentHashMap<>();
    static String root;

    static class Refused extends Exception {
        Refused(String why) {
            super(why);
        }
    }

    static boolean plain(String path) {
        if (path.getBytes(UTF_8).length > 4096 || ODD.matcher(path).find()) {
            return false;
        }
        for (String part : (path.startsWith("/") ? path.substring(1) : path).split("/", -1)) {
            if (part.isEmpty() || part.equals(".") || part.equals("..") || part.getBytes(UTF_8).length > 255) {
                return false;
            }
        }
        return true;
    }

    /** Does what must not meet another thread or server; the file's lock dies with the process. */
    static <T> T locked(String dir, Callable<T> what) throws Exception {
        Path locks = Files.createDirectories(Path.of(root, ".locks"));
        Path file = locks.resolve(dir.replace("%", "%25").replace("/", "%2F"));
        synchronized (MINE.computeIfAbsent(dir, path -> new Object())) {
            try (FileChannel held = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                held.lock();
                return what.call();
            }
        }
    }

    static List<String> read(Path bucket) throws IOException {
        try {
            return new ArrayList<>(Files.readString(bucket, UTF_8).lines().filter(line -> !line.isEmpty()).toList());
        } catch (NoSuchFileException gone) {
            return new ArrayList<>();
        }
    }

    static Path bucket(String dir, int number) {
        return Path.of(dir, "bucket-" + number);
    }

    static boolean create(String dir, String name) throws IOException {
        Path bucket = bucket(dir, Math.floorMod(name.hashCode(), BUCKETS));
        List<String> names = read(bucket);
        if (names.contains(name)) {
            return false;
        }
        names.add(name);
        Files.createDirectories(bucket.getParent());
        Path beside = bucket.resolveSibling("." + bucket.getFileName() + ".tmp");
        try {
            Files.writeString(beside, names.stream().map(one -> one + "\n").collect(Collectors.joining()), UTF_8);
            Files.move(beside, bucket, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException failed) {
            Files.deleteIfExists(beside);
            throw failed;
        }
        return true;
    }

    static boolean delete(String dir) throws IOException {
        Path path = Path.of(dir);
        if (!Files.isDirectory(path)) {
            return false;
        }
        List<Path> below;
        try (var walk = Files.walk(path)) {
            below = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path one : below) {
            Files.deleteIfExists(one);
        }
        return true;
    }

    static List<String> names(String dir) throws IOException {
        List<String> names = new ArrayList<>();
        for (int number = 0; number < BUCKETS; number++) {
            names.addAll(read(bucket(dir, number)));
        }
        return names;
    }

    static Object answer(HttpExchange exchange) throws Exception {
        Map<String, String> query = new HashMap<>();
        String raw = exchange.getRequestURI().getRawQuery();
        for (String part : (raw == null ? "" : raw).split("&")) {
            int at = part.indexOf('=');
            if (at > 0) {
                query.putIfAbsent(URLDecoder.decode(part.substring(0, at), UTF_8), URLDecoder.decode(part.substring(at + 1), UTF_8));
            }
        }
        String dir = query.getOrDefault("markerdirpath", ""), name = query.getOrDefault("markername", "");
        if (!DIRECTORY.matcher(dir).matches() || !plain(dir) || !dir.startsWith(root + "/")
                || dir.split("/\\.hoodie/", -1).length != 2) {
            throw new Refused("no marker directory below " + root);
        }
        String path = exchange.getRequestURI().getPath();
        String what = exchange.getRequestMethod() + " " + (path.startsWith(BASE) ? path.substring(BASE.length()) : path);
        switch (what) {
            case "POST /create":
                if (!MARKER.matcher(name).matches() || !plain(name) || name.startsWith("/") || name.startsWith(".hoodie/")) {
                    throw new Refused("no marker name");
                }
                return locked(dir, () -> create(dir, name));
            case "POST /dir/delete":
                return locked(dir, () -> delete(dir));
            case "GET /dir/exists":
                return !names(dir).isEmpty();
            case "GET /all":
                return names(dir);
            case "GET /create-and-merge":
                return names(dir).stream().filter(one -> !one.endsWith(".APPEND")).toList();
            case "GET /append":
                return names(dir).stream().filter(one -> one.endsWith(".APPEND")).toList();
            default:
                throw new Refused("there is no " + what);
        }
    }

    static String json(Object value) {
        if (value instanceof List<?> list) {
            return list.stream().map(Buckets::json).collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof Boolean) {
            return value.toString();
        }
        StringBuilder text = new StringBuilder("\"");
        for (char one : value.toString().toCharArray()) {
            if (one == '"' || one == '\\' || one < ' ') {
                text.append(String.format("\\u%04x", (int) one));
            } else {
                text.append(one);
            }
        }
        return text.append('"').toString();
    }

    static void serve(HttpExchange exchange) throws IOException {
        int status = 200;
        Object value;
        exchange.getRequestBody().readAllBytes();
        try {
            value = answer(exchange);
        } catch (Refused | IllegalArgumentException refused) {
            status = 400;
            value = String.valueOf(refused.getMessage());
        } catch (Exception failed) {
            status = 500;
            value = failed.toString();
        }
        byte[] body = json(value).getBytes(UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json; charset=utf-8");
        exchange.sendResponseHeaders(status, body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    public static void main(String[] given) throws IOException {
        root = given[1];
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(given[0]));
        HttpServer server = HttpServer.create(address, BACKLOG);
        server.createContext("/", Buckets::serve);
        server.setExecutor(Executors.newFixedThreadPool(THREADS));
        server.start();
    }
}
