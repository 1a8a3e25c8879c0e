import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The parts of a write in Java, for `--sut command` (docs/command.md): the marker before its file, files before the
 * timeline. `--file-first` is the faulty variant: it asks for the marker when the file is there already.
 */
final class Writes {
  static final Pattern BASE = Pattern.compile("(?s)(.+)_([0-9]+)-([0-9]+)-([0-9]+)_([^_]+)\\.parquet");
  static final Pattern LOG = Pattern.compile("(?s)\\..+_([^_]+)\\.log\\.[0-9]+_[0-9]+-[0-9]+-[0-9]+");
  static final Pattern COMMIT = Pattern.compile("([^./]+)\\.(delta)?commit");
  static final int TRIES = 6;
  static Map<String, Object> storage; // What `start` said of it.
  static boolean fileFirst;

  static void serve(Map<String, Object> call) {
    switch ((String) call.get("operation")) {
      case "attempt" -> attempt(call);
      case "finalize" -> deleteFiles(call, Set.copyOf(strings(call, "files")), () -> answer(call));
      case "commit" -> put(call, (Boolean) storage.get("put_if_absent"), done -> {
        if (!"precondition-failed".equals(done.get("error"))) {
          end(call, done);
          return;
        }
        steadily("get", 0, there -> { // An earlier try of ours, or somebody else's commit.
          boolean ours = call.get("data").equals(there.get("data"));
          end(call, ours ? Map.of() : Map.of("error", "failed", "message", call.get("path") + " says something else"));
        }, "path", call.get("path"));
      });
      case "rollback" -> deleteFiles(call, Set.of(),
          () -> deleteAll(call, strings(call, "entries"), 0, () -> answer(call)));
      default -> Markers.fail(call, Map.of("error", "rejected", "message", "no such part"));
    }
  }

  static void attempt(Map<String, Object> call) {
    Consumer<Consumer<Map<String, Object>>> marker =
        then -> Markers.ask("marker", then, "call", call.get("call"), "name", call.get("name"));
    Consumer<Consumer<Map<String, Object>>> file = then -> put(call, false, then);
    (fileFirst ? file : marker).accept(first -> {
      if (!Markers.fail(call, first)) {
        (fileFirst ? marker : file).accept(second -> end(call, second));
      }
    });
  }

  /** Put the content of a call: a data file of a local file system in place, as writers of files do. */
  static void put(Map<String, Object> call, boolean ifAbsent, Consumer<Map<String, Object>> then) {
    Object path = call.get("path");
    if (ifAbsent) {
      steadily("put", 0, then, "path", path, "data", call.get("data"), "if_absent", true);
    } else {
      boolean inPlace = call.get("operation").equals("attempt") && (Boolean) storage.get("host_lock");
      steadily(inPlace ? "overwrite" : "put", 0, then, "path", path, "data", call.get("data"));
    }
  }

  /** Delete what the markers name, but for the files that stay and those that this instant cannot have written. */
  static void deleteFiles(Map<String, Object> call, Set<String> stay, Runnable then) {
    Markers.ask("markers", done -> {
      if (Markers.fail(call, done)) {
        return;
      }
      List<String> paths = new ArrayList<>();
      List<String> logs = new ArrayList<>();
      for (String name : strings(done, "names")) {
        String file = name.substring(0, name.lastIndexOf(".marker."));
        Matcher base = BASE.matcher(file.substring(file.lastIndexOf('/') + 1));
        boolean another = base.matches() && !base.group(5).equals(call.get("instant"));
        String path = call.get("table") + "/" + file;
        if (!another && !file.startsWith(".hoodie/") && !stay.contains(path)) {
          (LOG.matcher(name(file)).matches() ? logs : paths).add(path);
        }
      }
      if (logs.isEmpty()) {
        deleteAll(call, paths, 0, then);
        return;
      }
      commits(call, committed -> {
        for (String path : logs) {
          Matcher log = LOG.matcher(name(path));
          boolean own = log.matches() && (log.group(1).equals(call.get("instant")) || committed.containsKey(log.group(1)));
          if (own && committed.values().stream().noneMatch(commit -> commit.contains(name(path)))) {
            paths.add(path);
          }
        }
        deleteAll(call, paths, 0, then);
      });
    }, "call", call.get("call"));
  }

  static String name(String path) {
    return path.substring(path.lastIndexOf('/') + 1);
  }

  /** The completed commits of the table, by instant: the name of a log file does not say which write made it. */
  static void commits(Map<String, Object> call, Consumer<Map<String, String>> then) {
    String prefix = call.get("table") + "/.hoodie/";
    steadily("list", 0, done -> {
      if (!Markers.fail(call, done)) {
        List<String> entries = new ArrayList<>();
        for (String path : Markers.paths(done)) {
          if (COMMIT.matcher(path.substring(prefix.length())).matches()) {
            entries.add(path);
          }
        }
        read(call, entries, 0, new HashMap<>(), then);
      }
    }, "prefix", prefix);
  }

  static void read(Map<String, Object> call, List<String> entries, int at, Map<String, String> found,
      Consumer<Map<String, String>> then) {
    if (at == entries.size()) {
      then.accept(found);
      return;
    }
    steadily("get", 0, done -> {
      if (!Markers.fail(call, done)) {
        byte[] content = Base64.getDecoder().decode((String) done.get("data"));
        String entry = name(entries.get(at));
        found.put(entry.substring(0, entry.indexOf('.')), new String(content, StandardCharsets.UTF_8));
        read(call, entries, at + 1, found, then);
      }
    }, "path", entries.get(at));
  }

  static void deleteAll(Map<String, Object> call, List<String> paths, int at, Runnable then) {
    if (at == paths.size()) {
      then.run();
      return;
    }
    steadily("delete", 0, done -> {
      if (!Markers.fail(call, done)) {
        deleteAll(call, paths, at + 1, then);
      }
    }, "path", paths.get(at));
  }

  /** An operation, again while storage fails; after a time-out not before nothing of ours is on its way any more. */
  static void steadily(String operation, int tried, Consumer<Map<String, Object>> then, Object... fields) {
    Markers.ask(operation, done -> {
      Object error = done.get("error");
      boolean again = error != null && Set.of("timeout", "throttled", "failed", "conflicted").contains(error);
      if (!again || tried == TRIES) {
        then.accept(done);
        return;
      }
      long pause = error.equals("timeout") ? (Long) storage.get("late_effect_ms") : 10L << tried;
      Markers.ask("sleep", slept -> steadily(operation, tried + 1, then, fields), "ms", pause);
    }, fields);
  }

  /** Answer a call with what its last operation came to. */
  static void end(Map<String, Object> call, Map<String, Object> done) {
    if (!Markers.fail(call, done)) {
      answer(call);
    }
  }

  static void answer(Map<String, Object> call) {
    Markers.say("do", "answer", "call", call.get("call"), "result", true);
  }

  @SuppressWarnings("unchecked")
  static List<String> strings(Map<String, Object> from, String field) {
    return (List<String>) from.get(field);
  }
}
