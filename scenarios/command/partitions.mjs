// An object for each partition path, for `--sut command` (docs/command.md): promises, and one thread for all calls. In
// timeline mode the creates that come while an object is being replaced are its next batch; in direct mode each replaces
// it by itself. Attempts and commits are its own too. `--believes-failures` is the faulty variant: a batch that storage
// refused is taken for stored.
//
//   node partitions.mjs [--believes-failures]
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';

const believes = process.argv.includes('--believes-failures');
const MARKER = /[^/]\.marker\.(CREATE|MERGE|APPEND)$/s;
const ODD = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const OBJECT = /^p[0-9a-f]{40}$/;
const AGAIN_MS = 5, TRIES = 6;
let life, ids = 0, waiting, batches, made;

class Failed extends Error {
  constructor(error, message) {
    super(message);
    this.error = error;
  }
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** What became of an operation; Failed if it did not do what was asked for. */
function ask(operation, fields) {
  const id = ++ids;
  say({ do: operation, id, ...fields });
  return new Promise((told, refuse) => waiting.set(id, (done) => {
    if (done.error) refuse(new Failed(done.error, done.message));
    else told(done);
  }));
}

const decoded = (data) => Buffer.from(data, 'base64').toString();
const encoded = (text) => Buffer.from(text).toString('base64');

async function orNothing(operation) {
  try {
    return await operation;
  } catch (failed) {
    if (failed.error === 'not-found') return null;
    throw failed;
  }
}

async function locked(path, body) {
  if (!life.host_lock) return body();
  await ask('lock', { name: path });
  try {
    return await body();
  } finally {
    await ask('unlock', { name: path });
  }
}

function checked(name) {
  const parts = name.split('/');
  const sized = Buffer.byteLength(name) <= 4096 && parts.every((part) => part && Buffer.byteLength(part) <= 255);
  if (!sized || ODD.test(name) || !MARKER.test(name) || parts[0] === '.hoodie' || parts.includes('.') || parts.includes('..')) {
    throw new Failed('rejected', 'that is no marker name');
  }
  return name;
}

function objectOf(directory, name) {
  const partition = name.slice(0, name.lastIndexOf('/') + 1);
  return `${directory}/p${createHash('sha1').update(partition).digest('hex')}`;
}

/** Those of the names that are new; all are stored then. No two contents are equal, so no two versions are. */
async function add(path, names) {
  for (;;) {
    try {
      return await locked(path, async () => {
        const there = await orNothing(ask('get', { path }));
        const known = there ? JSON.parse(decoded(there.data)).names : [];
        const fresh = names.filter((name) => !known.includes(name));
        if (fresh.length === 0) return fresh;
        const data = encoded(JSON.stringify({ by: `${life.process} ${++made}`, names: [...known, ...fresh] }));
        const condition = !there ? { if_absent: true } : life.host_lock ? {} : { if_version: there.version };
        await ask('put', { path, data, ...condition });
        return fresh;
      });
    } catch (failed) {
      // Another was faster, and did not do less for it: look again.
      if (!['precondition-failed', 'conflicted'].includes(failed.error)) throw failed;
      await ask('sleep', { ms: AGAIN_MS });
    }
  }
}

async function flush(path, asked) {
  while (asked.length > 0) {
    const batch = asked.splice(0);
    try {
      const fresh = new Set(await add(path, [...new Set(batch.map(({ name }) => name))]));
      for (const { name, told } of batch) told(fresh.delete(name));
    } catch (failed) {
      for (const { told, refuse } of batch) (believes ? told(true) : refuse(failed));
    }
  }
  batches.delete(path);
}

async function create({ directory, name }) {
  const path = objectOf(directory, checked(name));
  if (life.mode === 'direct') return (await add(path, [name])).length > 0;
  return new Promise((told, refuse) => {
    const asked = batches.get(path);
    if (asked) {
      asked.push({ name, told, refuse });
    } else {
      batches.set(path, [{ name, told, refuse }]);
      flush(path, batches.get(path));
    }
  });
}

async function list({ directory }) {
  const { paths } = await ask('list', { prefix: `${directory}/` });
  const objects = paths.filter((path) => OBJECT.test(path.slice(directory.length + 1)));
  const read = await Promise.all(objects.map((path) => orNothing(ask('get', { path }))));
  return read.flatMap((there) => (there ? JSON.parse(decoded(there.data)).names : []));
}

async function remove({ directory }) {
  const { paths } = await ask('list', { prefix: `${directory}/` });
  const ends = await Promise.allSettled(paths.map((path) => locked(path, () => ask('delete', { path }))));
  for (const { reason } of ends) if (reason) throw reason;
  return paths.length > 0;
}

/** An operation of a call's own thread, again while storage fails. */
async function steadily(operation, call, fields) {
  for (let tried = 0; ; tried++) {
    try {
      return await ask(operation, { call, ...fields });
    } catch (failed) {
      if (!['timeout', 'throttled', 'failed', 'conflicted'].includes(failed.error) || tried === TRIES) throw failed;
      await ask('sleep', { call, ms: failed.error === 'timeout' ? life.late_effect_ms : 10 << tried });
    }
  }
}

async function attempt({ call, name, path, data }) {
  await ask('marker', { call, name });
  await steadily(life.host_lock ? 'overwrite' : 'put', call, { path, data });
  return true;
}

async function commit({ call, path, data }) {
  try {
    await steadily('put', call, { path, data, ...(life.put_if_absent ? { if_absent: true } : {}) });
  } catch (failed) {
    if (failed.error !== 'precondition-failed') throw failed;
    if ((await steadily('get', call, { path })).data !== data) throw new Failed('failed', `${path} says something else`);
  }
  return true;
}

async function exists({ directory }) {
  return (await ask('list', { prefix: `${directory}/` })).paths.length > 0;
}

const CALLS = { create, list, exists, delete: remove, attempt, commit };

async function serve(line) {
  const mine = life;
  try {
    const result = await CALLS[line.operation](line);
    if (mine === life) say({ do: 'answer', call: line.call, ...(line.operation === 'list' ? { names: result } : { result }) });
  } catch (failed) {
    if (!(failed instanceof Failed)) throw failed;
    if (mine === life) say({ do: 'answer', call: line.call, error: failed.error, message: failed.message });
  }
}

function begin(line) {
  life = line;
  [waiting, batches, made] = [new Map(), new Map(), 0];
}

const EVENTS = {
  hello: () => say({
    do: 'hello', protocol: 1, name: 'partitions', modes: ['direct', 'timeline'], reset: true, write: ['attempt', 'commit'],
  }),
  start: begin,
  call: serve,
  done: (line) => {
    const told = waiting.get(line.id);
    waiting.delete(line.id);
    told?.(line);
  },
};

for await (const text of createInterface({ input: process.stdin })) {
  const line = JSON.parse(text);
  EVENTS[line.event](line);
  // Everything that follows from the line has been said when the event loop turns.
  await new Promise(setImmediate);
  say({ do: 'wait' });
}
