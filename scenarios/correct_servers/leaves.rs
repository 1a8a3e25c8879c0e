// Sorted files, as the leaves of a tree: each MARKERS<n> has a range of names, and one that is too long gives its upper
// half to a new file before it loses it, so that a name is in two files for a moment and in none never. No batches, no
// memory, a thread a connection; a lock of the host for each directory, which lies beside the tables.
//
//   leaves PORT ROOT FILES
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

const BASE: &str = "/v1/hoodie/marker";
const TYPE: &str = "TIMELINE_SERVER_BASED";
const LONG: usize = 6;
const HEAD_MAX: u64 = 65536;

enum Failed {
    Refused(String),
    Storage(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Storage(error)
    }
}

struct Server {
    root: String,
    files: usize,
}

type Leaves = BTreeMap<usize, Vec<String>>;

/// One directory, and all to itself until it is dropped.
struct Held {
    dir: PathBuf,
    files: usize,
    _lock: File,
}

fn unless_gone<T>(done: io::Result<T>, otherwise: T) -> io::Result<T> {
    match done {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(otherwise),
        other => other,
    }
}

impl Held {
    fn entries(&self) -> io::Result<Vec<String>> {
        let Some(found) = unless_gone(fs::read_dir(&self.dir).map(Some), None)? else {
            return Ok(Vec::new());
        };
        found.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn leaves(&self) -> io::Result<Leaves> {
        let mut leaves = Leaves::new();
        for entry in self.entries()? {
            let number = entry.strip_prefix("MARKERS").and_then(|digits| digits.parse().ok());
            let path = self.dir.join(&entry);
            if let (Some(number), true) = (number, path.is_file()) {
                let text = fs::read_to_string(path)?;
                let whole = text.rfind('\n').map_or("", |at| &text[..at]);
                leaves.insert(number, whole.split('\n').filter(|name| !name.is_empty()).map(String::from).collect());
            }
        }
        Ok(leaves)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = self.leaves()?.into_values().flatten().collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn put(&self, file: &str, text: &str) -> io::Result<()> {
        let beside = self.dir.join(format!(".{file}.tmp"));
        fs::write(&beside, text)?;
        fs::rename(beside, self.dir.join(file))
    }

    fn put_leaf(&self, number: usize, names: &[String]) -> io::Result<()> {
        self.put(&format!("MARKERS{number}"), &names.iter().map(|name| format!("{name}\n")).collect::<String>())
    }

    fn create(&self, name: &str) -> io::Result<bool> {
        let leaves = self.leaves()?;
        if leaves.values().flatten().any(|known| known == name) {
            return Ok(false);
        }
        fs::create_dir_all(&self.dir)?;
        if unless_gone(fs::read(self.dir.join("MARKERS.type")), Vec::new())? != TYPE.as_bytes() {
            self.put("MARKERS.type", TYPE)?;
        }
        let unused = || (0..self.files).find(|number| fs::symlink_metadata(self.dir.join(format!("MARKERS{number}"))).is_err());
        // The leaf whose range it is: the last that begins before it, or else the first of all.
        let by_beginning = |one: &(&usize, &Vec<String>)| (one.1.first().cloned(), *one.0);
        let before = leaves.iter().filter(|one| one.1.first().is_some_and(|first| first.as_str() < name));
        let leaf = before.max_by_key(by_beginning).or_else(|| leaves.iter().min_by_key(by_beginning));
        let Some((&number, known)) = leaf else {
            let number = unused().ok_or_else(|| io::Error::other("no file is free"))?;
            return self.put_leaf(number, &[name.to_string()]).map(|()| true);
        };
        let mut names = known.clone();
        names.insert(names.partition_point(|known| known.as_str() < name), name.to_string());
        let room = leaves.len() < self.files && names.len() > LONG;
        if let Some(fresh) = unused().filter(|_| room) {
            let upper = names.split_off(names.len() / 2);
            self.put_leaf(fresh, &upper)?;
        }
        self.put_leaf(number, &names)?;
        Ok(true)
    }

    fn delete(&self) -> io::Result<bool> {
        let there = self.dir.exists();
        for entry in self.entries()?.iter().filter(|entry| *entry != "MARKERS.type") {
            let path = self.dir.join(entry);
            unless_gone(if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }, ())?;
        }
        unless_gone(fs::remove_dir_all(&self.dir), ())?;
        Ok(there)
    }
}

fn refused<T>(why: &str, what: &str) -> Result<T, Failed> {
    Err(Failed::Refused(format!("{why}: {what:?}")))
}

fn plain(path: &str) -> bool {
    let odd = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    let segment = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= 255;
    path.len() <= 4096 && !path.contains(odd) && path.split('/').all(segment)
}

fn is_marker(name: &str) -> bool {
    let ends = |kind: &&str| name.strip_suffix(*kind).is_some_and(|rest| !rest.is_empty() && !rest.ends_with('/'));
    plain(name) && !name.starts_with(".hoodie/") && [".marker.CREATE", ".marker.MERGE", ".marker.APPEND"].iter().any(|kind| ends(&kind))
}

impl Server {
    /// Waits for whoever has the directory, in this process or another.
    fn hold(&self, asked: &str) -> Result<Held, Failed> {
        let parts: Vec<&str> = asked.split('/').filter(|part| !part.is_empty()).collect();
        let dir = format!("/{}", parts.join("/"));
        let at = parts.len().saturating_sub(3);
        let shape = parts.len() > 3 && parts[at..at + 2] == [".hoodie", ".temp"] && !parts[..at].contains(&".hoodie");
        if !asked.starts_with('/') || !shape || !plain(&dir[1..]) || !dir.starts_with(&format!("{}/", self.root)) {
            return refused("no marker directory of this server", asked);
        }
        let hash = dir.bytes().fold(0xcbf29ce484222325u64, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x100000001b3));
        let locks = Path::new(&self.root).join(".locks");
        fs::create_dir_all(&locks)?;
        let lock = File::options().create(true).append(true).open(locks.join(format!("{hash:016x}")))?;
        lock.lock()?;
        Ok(Held { dir: PathBuf::from(dir), files: self.files, _lock: lock })
    }

    fn answer(&self, method: &str, target: &str) -> Result<String, Failed> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (mut dir, mut name) = (String::new(), String::new());
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match decoded(key)?.as_str() {
                "markerdirpath" => dir = decoded(value)?,
                "markername" => name = decoded(value)?,
                _ => {}
            }
        }
        let log = |name: &String| name.ends_with(".APPEND");
        Ok(match (method, path.strip_prefix(BASE).unwrap_or("")) {
            ("POST", "/create") if !is_marker(&name) => return refused("no marker name", &name),
            ("POST", "/create") => self.hold(&dir)?.create(&name)?.to_string(),
            ("POST", "/dir/delete") => self.hold(&dir)?.delete()?.to_string(),
            ("GET", "/dir/exists") => (!self.hold(&dir)?.entries()?.is_empty()).to_string(),
            ("GET", "/all") => array(self.hold(&dir)?.names()?),
            ("GET", "/create-and-merge") => array(self.hold(&dir)?.names()?.into_iter().filter(|name| !log(name)).collect()),
            ("GET", "/append") => array(self.hold(&dir)?.names()?.into_iter().filter(log).collect()),
            _ => return refused("no such request", path),
        })
    }

    fn serve(&self, connection: TcpStream) -> io::Result<()> {
        connection.set_nodelay(true)?;
        let mut reader = BufReader::new(connection.try_clone()?);
        loop {
            let Some(head) = head(&mut reader)? else { return Ok(()) };
            let header = |name: &str| {
                let found = head[1..].iter().filter_map(|line| line.split_once(':'));
                found.filter(|pair| pair.0.eq_ignore_ascii_case(name)).map(|pair| pair.1.trim().to_lowercase()).next()
            };
            let words: Vec<&str> = head[0].split(' ').collect();
            let length: Option<u64> = header("content-length").map_or(Some(0), |text| text.parse().ok());
            let (status, body) = match (&words[..], length) {
                (_, None) | (_, Some(HEAD_MAX..)) => ("400 Bad Request", quoted("a body that is too long")),
                _ if header("transfer-encoding").is_some() => ("411 Length Required", quoted("no chunks, please")),
                ([method, target, "HTTP/1.1" | "HTTP/1.0"], Some(length)) => {
                    io::copy(&mut (&mut reader).take(length), &mut io::sink())?;
                    match self.answer(method, target) {
                        Ok(body) => ("200 OK", body),
                        Err(Failed::Refused(why)) => ("400 Bad Request", quoted(&why)),
                        Err(Failed::Storage(error)) => ("500 Internal Server Error", quoted(&error.to_string())),
                    }
                }
                _ => ("400 Bad Request", quoted("this is no request")),
            };
            let asked_to = header("connection").is_some_and(|said| said.split(',').any(|word| word.trim() == "close"));
            let unread = status.starts_with("411") || length.is_none_or(|length| length >= HEAD_MAX) || words.len() != 3;
            let close = asked_to || unread || words.get(2) == Some(&"HTTP/1.0");
            let end = if close { "close" } else { "keep-alive" };
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: {end}\r\n\r\n", body.len());
            (&connection).write_all(format!("{head}{body}").as_bytes())?;
            if close {
                return Ok(());
            }
        }
    }
}

/// The lines before the empty one; None when nobody asks any more.
fn head(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<String>>> {
    let mut lines = Vec::new();
    let mut rest = reader.take(HEAD_MAX);
    loop {
        let mut line = Vec::new();
        if rest.read_until(b'\n', &mut line)? == 0 || line.last() != Some(&b'\n') {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_string();
        match (text.is_empty(), lines.is_empty()) {
            (true, true) => {}
            (true, false) => return Ok(Some(lines)),
            _ => lines.push(text),
        }
    }
}

fn decoded(text: &str) -> Result<String, Failed> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| (byte as char).to_digit(16));
                let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
                    return refused("a percent sign without two digits", text);
                };
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).or_else(|_| refused("no UTF-8", text))
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|letter| match letter {
        '"' | '\\' => format!("\\{letter}"),
        '\0'..='\u{1f}' => format!("\\u{:04x}", letter as u32),
        _ => letter.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn array(names: Vec<String>) -> String {
    format!("[{}]", names.iter().map(|name| quoted(name)).collect::<Vec<String>>().join(","))
}

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, root, files] = &words[..] else { panic!("PORT ROOT FILES") };
    let files = files.parse().expect("a number of files");
    let server: &'static Server = Box::leak(Box::new(Server { root: root.trim_end_matches('/').to_string(), files }));
    let listener = TcpListener::bind(("127.0.0.1", port.parse().expect("a port")))?;
    for connection in listener.incoming().flatten() {
        // Who hangs up, or finds no room for a thread, loses its own connection only.
        let _ = thread::Builder::new().stack_size(1 << 19).spawn(move || server.serve(connection));
    }
    Ok(())
}
