import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Markers in Java for `--sut command` (docs/command.md): one empty object a marker, put if absent, in both modes; the
 * parts of a write are in Writes.java.
 *
 * <p>One thread and callbacks: an operation is printed, and what is to be done with its outcome is kept under its id.
 * So any number of calls are under way at once. `--answers-first` is the faulty variant: it answers a create when the
 * put was sent, and not when it is done.
 */
public final class Markers {
  static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
  static final Map<Long, Consumer<Map<String, Object>>> WAITING = new HashMap<>();
  static long operations;
  static boolean answersFirst;

  public static void main(String[] args) throws Exception {
    answersFirst = List.of(args).contains("--answers-first");
    Writes.fileFirst = List.of(args).contains("--file-first");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Map<String, Object> message = new Json(line).object();
      switch ((String) message.get("event")) {
        case "hello" -> say("do", "hello", "protocol", 1, "name", "java-markers", "version", "1",
            "modes", List.of("direct", "timeline"), "reset", true,
            "write", List.of("attempt", "finalize", "commit", "rollback"));
        case "start" -> { // A new process begins, and nothing of an earlier one may be left.
          WAITING.clear();
          operations = 0;
          Writes.storage = message;
        }
        case "call" -> serve(message);
        case "done" -> WAITING.remove((Long) message.get("id")).accept(message);
        default -> throw new IllegalStateException(line);
      }
      say("do", "wait");
      OUT.flush();
    }
  }

  static void serve(Map<String, Object> call) {
    String prefix = call.get("directory") + "/";
    switch ((String) call.get("operation")) {
      case "create" -> {
        String name = (String) call.get("name");
        if (!isMarkerName(name)) {
          fail(call, Map.of("error", "rejected", "message", "this is no marker name"));
        } else {
          if (answersFirst) {
            say("do", "answer", "call", call.get("call"), "result", true);
          }
          create(call, prefix + name);
        }
      }
      case "list" -> ask("list", done -> {
        if (!fail(call, done)) {
          List<String> names = new ArrayList<>();
          for (String path : paths(done)) {
            String name = path.substring(prefix.length());
            if (isMarkerName(name)) { // Other tools leave keys that end in "/", and killed writers temporary files.
              names.add(name);
            }
          }
          say("do", "answer", "call", call.get("call"), "names", names);
        }
      }, "prefix", prefix);
      case "exists" -> ask("list", done -> {
        if (!fail(call, done)) {
          say("do", "answer", "call", call.get("call"), "result", !paths(done).isEmpty());
        }
      }, "prefix", prefix);
      case "delete" -> ask("list", done -> {
        if (!fail(call, done)) {
          delete(call, paths(done), 0);
        }
      }, "prefix", prefix);
      default -> Writes.serve(call);
    }
  }

  static void create(Map<String, Object> call, String path) {
    ask("put", done -> {
      Object error = done.get("error");
      if ("conflicted".equals(error)) { // Nothing was done, and it says nothing of what is there: ask again.
        ask("sleep", slept -> create(call, path), "ms", 5);
      } else if (!answersFirst && (error == null || "precondition-failed".equals(error))) {
        say("do", "answer", "call", call.get("call"), "result", error == null);
      } else if (!answersFirst) {
        fail(call, done);
      }
    }, "path", path, "data", "", "if_absent", true);
  }

  static void delete(Map<String, Object> call, List<String> paths, int at) {
    if (at == paths.size()) {
      say("do", "answer", "call", call.get("call"), "result", !paths.isEmpty());
      return;
    }
    ask("delete", done -> {
      if (!fail(call, done)) {
        delete(call, paths, at + 1);
      }
    }, "path", paths.get(at));
  }

  /** Ask for an operation of storage or time; `then` gets its outcome. */
  static void ask(String operation, Consumer<Map<String, Object>> then, Object... fields) {
    operations++;
    WAITING.put(operations, then);
    Object[] all = new Object[fields.length + 4];
    System.arraycopy(new Object[] {"do", operation, "id", operations}, 0, all, 0, 4);
    System.arraycopy(fields, 0, all, 4, fields.length);
    say(all);
  }

  /** Answer a call with the error of an outcome, if it has one. */
  static boolean fail(Map<String, Object> call, Map<String, Object> outcome) {
    Object error = outcome.get("error");
    if (error != null) {
      say("do", "answer", "call", call.get("call"), "error", error, "message", outcome.get("message"));
    }
    return error != null;
  }

  @SuppressWarnings("unchecked")
  static List<String> paths(Map<String, Object> done) {
    return (List<String>) done.get("paths");
  }

  static boolean isMarkerName(String name) {
    String[] parts = name.split("/", -1);
    for (String part : parts) {
      int size = part.getBytes(StandardCharsets.UTF_8).length;
      if (part.isEmpty() || part.equals(".") || part.equals("..") || size > 255) {
        return false;
      }
    }
    boolean control = name.chars().anyMatch(c -> c < 32 || (c >= 127 && c < 160) || c == 0x2028 || c == 0x2029);
    return !control && !parts[0].equals(".hoodie") && name.getBytes(StandardCharsets.UTF_8).length <= 4096
        && parts[parts.length - 1].matches("(?s).+\\.marker\\.(CREATE|MERGE|APPEND)");
  }

  /** Print a line: names and values in turn. */
  static void say(Object... fields) {
    StringBuilder line = new StringBuilder("{");
    for (int at = 0; at < fields.length; at += 2) {
      line.append(at == 0 ? "" : ",");
      write(line, fields[at]);
      line.append(':');
      write(line, fields[at + 1]);
    }
    OUT.println(line.append('}'));
  }

  static void write(StringBuilder line, Object value) {
    if (value instanceof List<?> list) {
      line.append('[');
      for (int at = 0; at < list.size(); at++) {
        line.append(at == 0 ? "" : ",");
        write(line, list.get(at));
      }
      line.append(']');
    } else if (value instanceof String text) {
      line.append('"');
      for (char c : text.toCharArray()) {
        line.append(c == '"' || c == '\\' ? "\\" + c : c < 32 ? String.format("\\u%04x", (int) c) : String.valueOf(c));
      }
      line.append('"');
    } else {
      line.append(value);
    }
  }

  /** Reads what the kit sends: one flat object of strings, whole numbers, true, false and arrays of strings. */
  static final class Json {
    private final String text;
    private int at;

    Json(String text) {
      this.text = text;
    }

    Map<String, Object> object() {
      Map<String, Object> found = new HashMap<>();
      at++;
      while (next() != '}') {
        String key = string();
        next();
        found.put(key, value());
      }
      return found;
    }

    private char next() { // The next character that says something; commas and colons do not.
      while (" ,:".indexOf(text.charAt(at)) >= 0) {
        at++;
      }
      return text.charAt(at);
    }

    private Object value() {
      if (text.charAt(at) == '"') {
        return string();
      }
      if (text.charAt(at) == '[') {
        List<String> found = new ArrayList<>();
        for (at++; next() != ']'; ) {
          found.add(string());
        }
        at++;
        return found;
      }
      int begin = at;
      while (",} ".indexOf(text.charAt(at)) < 0) {
        at++;
      }
      String word = text.substring(begin, at);
      return word.equals("true") || word.equals("false") ? (Object) word.equals("true") : (Object) Long.valueOf(word);
    }

    private String string() {
      StringBuilder found = new StringBuilder();
      for (at++; text.charAt(at) != '"'; at++) {
        char c = text.charAt(at);
        if (c == '\\') {
          c = text.charAt(++at);
          if (c == 'u') {
            c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
            at += 4;
          } else if ("nrtbf".indexOf(c) >= 0) {
            c = "\n\r\t\b\f".charAt("nrtbf".indexOf(c));
          }
        }
        found.append(c);
      }
      at++;
      return found.toString();
    }
  }
}
