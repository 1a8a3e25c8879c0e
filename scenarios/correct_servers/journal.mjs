// An append-only journal of immutable files: a batch of creates is the next number, made by link(2), which fails when
// another server has it. One thread, no lock and no memory; batches by number, five or what came in 15 ms.
//
//   node journal.mjs PORT ROOT
import { closeSync, linkSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, unlinkSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

const [port, root] = process.argv.slice(2);
const BASE = '/v1/hoodie/marker';
const FULL = 5, WAIT_MS = 15, DIGITS = 9, TRIES = 50;
const MARKER = /[^/]\.marker\.(CREATE|MERGE|APPEND)$/;
const DIRECTORY = /^(\/[^/]+)+\/\.hoodie\/\.temp\/[^/]+$/;
// eslint-disable-next-line no-control-regex
const ODD = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffd]/;
const waiting = new Map();
let made = 0;

class Refused extends Error {}

function plain(path) {
  const parts = path.replace(/^\//, '').split('/');
  return Buffer.byteLength(path) <= 4096 && path.isWellFormed() && !ODD.test(path)
    && parts.every((part) => part !== '' && part !== '.' && part !== '..' && Buffer.byteLength(part) <= 255);
}

function unlessGone(read, otherwise) {
  try {
    return read();
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return otherwise;
    throw error;
  }
}

function journal(dir) {
  const files = unlessGone(() => readdirSync(dir), []).filter((file) => /^e\d{9}$/.test(file)).sort();
  const names = new Set();
  for (const file of files) {
    const text = unlessGone(() => readFileSync(join(dir, file), 'utf8'), '');
    for (const name of text.split('\n')) if (name) names.add(name);
  }
  return { names, last: files.length ? Number(files.at(-1).slice(1)) : 0 };
}

function append(dir, number, text) {
  const beside = join(dir, `.${process.pid}-${made++}.tmp`);
  try {
    const file = openSync(beside, 'wx');
    try {
      const data = Buffer.from(text);
      for (let at = 0; at < data.length;) at += writeSync(file, data, at);
    } finally {
      closeSync(file);
    }
    linkSync(beside, join(dir, `e${String(number).padStart(DIGITS, '0')}`));
  } finally {
    unlessGone(() => unlinkSync(beside));
  }
}

function store(dir, names) {
  for (let tried = 0; ; tried++) {
    const { names: known, last } = journal(dir);
    const fresh = [...new Set(names)].filter((name) => !known.has(name));
    if (fresh.length === 0) return fresh;
    try {
      mkdirSync(dir, { recursive: true });
      append(dir, last + 1, fresh.map((name) => `${name}\n`).join(''));
      return fresh;
    } catch (error) {
      // Another server was faster, or deleted the directory.
      if (!['EEXIST', 'ENOENT'].includes(error.code) || tried === TRIES) throw error;
    }
  }
}

function flush(dir) {
  const batch = waiting.get(dir);
  if (!batch) return;
  waiting.delete(dir);
  clearTimeout(batch.timer);
  try {
    const fresh = new Set(store(dir, batch.asked.map(({ name }) => name)));
    for (const { name, told } of batch.asked) told(200, fresh.delete(name));
  } catch (error) {
    for (const { told } of batch.asked) told(500, String(error));
  }
}

function create(dir, name, told) {
  if (!waiting.has(dir)) waiting.set(dir, { asked: [], timer: setTimeout(() => flush(dir), WAIT_MS) });
  const batch = waiting.get(dir);
  batch.asked.push({ name, told });
  if (batch.asked.length >= FULL) flush(dir);
}

function remove(dir) {
  flush(dir);
  const there = unlessGone(() => readdirSync(dir), null) !== null;
  rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 1 });
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
    case 'GET /dir/exists': return told(200, journal(dir).names.size > 0);
    case 'GET /all': return told(200, [...journal(dir).names]);
    case 'GET /create-and-merge': return told(200, [...journal(dir).names].filter((name) => !append(name)));
    case 'GET /append': return told(200, [...journal(dir).names].filter(append));
  }
  throw new Refused(`there is no ${method} ${url.pathname}`);
}

createServer((request, response) => {
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
}).listen({ port: Number(port), host: '127.0.0.1', backlog: 512 });
