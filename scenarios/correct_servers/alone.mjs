// Refuses to live beside another server on the same storage: it holds an abstract socket named after it, which dies with
// the process. So it may remember what it wrote, reads a directory again only when its MARKERS0 is not the one that it
// knows (another program may have removed it), and keeps all names of it in this one file, which is replaced by rename
// for whatever the event loop has gathered in one turn.
//
//   node alone.mjs PORT ROOT
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createLock } from 'node:net';
import { join } from 'node:path';

const [port, root] = process.argv.slice(2);
const BASE = '/v1/hoodie/marker';
const TYPE = 'TIMELINE_SERVER_BASED';
const MARKER = /[^/]\.marker\.(CREATE|MERGE|APPEND)$/;
const DIRECTORY = /^(\/[^/]+)+\/\.hoodie\/\.temp\/[^/]+$/;
// eslint-disable-next-line no-control-regex
const ODD = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffd]/;
const known = new Map();
const waiting = new Map();

class Refused extends Error {}

function plain(path) {
  const parts = path.replace(/^\//, '').split('/');
  return Buffer.byteLength(path) <= 4096 && path.isWellFormed() && !ODD.test(path)
    && parts.every((part) => part !== '' && part !== '.' && part !== '..' && Buffer.byteLength(part) <= 255);
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return '';
    throw error;
  }
}

function now(dir) {
  const found = statSync(join(dir, 'MARKERS0'), { bigint: true, throwIfNoEntry: false });
  return found ? `${found.ino} ${found.mtimeNs} ${found.size}` : 'none';
}

function names(dir) {
  const seen = now(dir);
  if (known.get(dir)?.seen !== seen) {
    known.set(dir, { seen, all: new Set(read(join(dir, 'MARKERS0')).split('\n').filter((name) => name)) });
  }
  return known.get(dir).all;
}

function replace(path, text) {
  try {
    writeFileSync(`${path}.tmp`, text);
    renameSync(`${path}.tmp`, path);
  } catch (error) {
    rmSync(`${path}.tmp`, { force: true });
    throw error;
  }
}

function flush(dir) {
  const asked = waiting.get(dir);
  waiting.delete(dir);
  try {
    const all = names(dir), fresh = new Set(asked.map(({ name }) => name).filter((name) => !all.has(name)));
    if (fresh.size > 0) {
      mkdirSync(dir, { recursive: true });
      if (read(join(dir, 'MARKERS.type')) !== TYPE) replace(join(dir, 'MARKERS.type'), TYPE);
      replace(join(dir, 'MARKERS0'), [...all, ...fresh].map((name) => `${name}\n`).join(''));
      for (const name of fresh) all.add(name);
      known.set(dir, { seen: now(dir), all });
    }
    for (const { name, told } of asked) told(200, fresh.delete(name));
  } catch (error) {
    for (const { told } of asked) told(500, String(error));
  }
}

function create(dir, name, told) {
  if (!waiting.has(dir)) {
    waiting.set(dir, []);
    setImmediate(() => flush(dir));
  }
  waiting.get(dir).push({ name, told });
}

function remove(dir) {
  if (waiting.has(dir)) waiting.get(dir).splice(0).forEach(({ told }) => told(409, 'the directory is being deleted'));
  known.delete(dir);
  let there = true;
  try {
    readdirSync(dir);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    there = false;
  }
  rmSync(join(dir, 'MARKERS0'), { force: true });
  rmSync(dir, { recursive: true, force: true });
  return there;
}

function answer(method, url, told) {
  const dir = url.searchParams.get('markerdirpath') ?? '', name = url.searchParams.get('markername') ?? '';
  if (!DIRECTORY.test(dir) || !plain(dir) || !dir.startsWith(`${root}/`) || dir.split('/.hoodie/').length !== 2) {
    throw new Refused(`${JSON.stringify(dir)} is no marker directory below ${root}`);
  }
  const append = (name) => name.endsWith('.APPEND');
  switch (`${method} ${url.pathname.slice(BASE.length)}`) {
    case 'POST /create':
      if (!MARKER.test(name) || !plain(name) || name.startsWith('/') || name.startsWith('.hoodie/')) {
        throw new Refused(`${JSON.stringify(name)} is no marker name`);
      }
      return create(dir, name, told);
    case 'POST /dir/delete': return told(200, remove(dir));
    case 'GET /dir/exists': return told(200, names(dir).size > 0);
    case 'GET /all': return told(200, [...names(dir)]);
    case 'GET /create-and-merge': return told(200, [...names(dir)].filter((name) => !append(name)));
    case 'GET /append': return told(200, [...names(dir)].filter(append));
  }
  throw new Refused(`there is no ${method} ${url.pathname}`);
}

const server = createServer((request, response) => {
  request.resume();
  const told = (status, value) => {
    response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' });
    response.end(JSON.stringify(value));
  };
  try {
    answer(request.method, new URL(request.url, 'http://127.0.0.1'), told);
  } catch (error) {
    told(error instanceof Refused ? 400 : 500, String(error));
  }
});
const lock = createLock();
lock.on('error', () => {
  console.error(`another server lives on ${root}`);
  process.exit(1);
});
lock.listen(`\0markers-${createHash('sha256').update(root).digest('hex')}`, () => {
  server.listen({ port: Number(port), host: '127.0.0.1', backlog: 512 });
});
