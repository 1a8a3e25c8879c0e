// A worker thread does all that touches storage; a claim with the holder's process id keeps a second server away.
// node claimed.mjs PORT ROOT
import http from 'node:http'
import fs from 'node:fs'
import { mkdir, open, readFile, readdir, rename, rmdir, unlink, stat } from 'node:fs/promises'
import { Worker, isMainThread, parentPort } from 'node:worker_threads'

const [, file, port, storage] = process.argv
const missing = error => { if (error.code !== 'ENOENT') throw error }

function began(pid) {
  try { return fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().split(' ')[19] } catch { return '' }
}

// Claims first and looks then: of two that begin at once at least one sees the other.
function claim() {
  const claims = `${storage}/.locks`, mine = `${process.pid}-${began(process.pid)}`
  for (let tries = 0; ; tries++) {
    try {
      fs.mkdirSync(claims, { recursive: true })
      fs.closeSync(fs.openSync(`${claims}/${mine}`, 'w'))
      for (const other of fs.readdirSync(claims)) {
        const [pid, since] = other.split('-')
        if (other === mine) continue
        if (began(pid) === since) {
          fs.rmSync(`${claims}/${mine}`)
          console.error(`process ${pid} has this storage`)
          process.exit(3)
        }
        fs.rmSync(`${claims}/${other}`, { force: true })
      }
      return
    } catch (error) {
      if (tries > 200) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 25)
    }
  }
}

function main() {
  claim()
  const worker = new Worker(file), open = new Map()
  let last = 0
  worker.on('message', ({ id, status, value }) => { open.get(id)(status, value); open.delete(id) })
  const server = http.createServer((request, response) => {
    request.resume()
    const reply = (status, value) => {
      const body = JSON.stringify(value)
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
      response.end(body)
    }
    request.on('end', () => {
      try {
        open.set(++last, reply)
        worker.postMessage({ id: last, ...understood(request) })
      } catch (error) {
        open.delete(last)
        reply(400, error.message)
      }
    })
  })
  server.listen({ port: +port, host: '127.0.0.1', backlog: 1024 })
}

function understood(request) {
  const [path, query = ''] = request.url.split(/\?(.*)/s)
  const asked = Object.fromEntries(query.split('&').map(p => p.split(/=(.*)/s).concat('').slice(0, 2).map(s => decodeURIComponent(s.replaceAll('+', ' ')))))
  const route = `${request.method} ${path.replace('/v1/hoodie/marker', '')}`
  const parts = (asked.markerdirpath ?? '').split('/').filter(Boolean)
  const [hoodie, temp] = parts.slice(-3)
  if (parts.length < 4 || hoodie !== '.hoodie' || temp !== '.temp' || parts.some(p => p === '.' || p === '..')) throw Error('no marker directory')
  const name = asked.markername ?? ''
  if (route === 'POST /create' && (name.split('/').some(p => ['', '.', '..'].includes(p)) || /[\x00-\x1f\x7f-\x9f]/.test(name) || Buffer.byteLength(name) > 4096)) throw Error('no marker name')
  return { route, where: `/${parts.join('/')}`, name }
}

// --- the worker
const waiting = new Map()

async function lines(path) {
  try { return (await readFile(path, 'utf8')).split('\n').slice(0, -1) } catch (error) { missing(error); return [] }
}

let number = 0
async function replace(path, text) {
  const fresh = `${path.replace(/([^/]*)$/, '.$1')}.${process.pid}.${Date.now()}.${++number}`
  const handle = await open(fresh, 'w')
  try { await handle.writeFile(text) } finally { await handle.close() }
  await rename(fresh, path)
}

async function add(where, names) {
  for (let tries = 0; ; tries++) {
    try {
      await mkdir(where, { recursive: true })
      if (await readFile(`${where}/MARKERS.type`, 'utf8').catch(missing) !== 'TIMELINE_SERVER_BASED') await replace(`${where}/MARKERS.type`, 'TIMELINE_SERVER_BASED')
      const known = new Set(await lines(`${where}/MARKERS0`)), fresh = []
      const created = names.map(name => !known.has(name) && Boolean(fresh.push(name)) && Boolean(known.add(name)))
      if (!fresh.length) return created
      await replace(`${where}/MARKERS0`, [...known].map(name => `${name}\n`).join(''))
      await stat(`${where}/MARKERS.type`)
      if ((await lines(`${where}/MARKERS0`)).at(-1) === fresh.at(-1)) return created
    } catch (error) { if (tries > 20) throw error; missing(error) }
  }
}

async function remove(where) {
  const there = await readdir(where).catch(missing)
  if (!there) return false
  there.sort((a, b) => (a === 'MARKERS.type') - (b === 'MARKERS.type'))
  for (const one of there) await unlink(`${where}/${one}`).catch(missing)
  await rmdir(where).catch(missing)
  return true
}

async function work(where) {
  for (let queue; (queue = waiting.get(where)).length;) {
    const first = queue[0].route
    const batch = first === 'POST /create' ? queue.filter(one => one.route === first) : [queue[0]]
    waiting.set(where, queue.filter(one => !batch.includes(one)))
    let values, status = 200
    try {
      if (first === 'POST /create') values = await add(where, batch.map(one => one.name))
      else values = [await remove(where)]
    } catch (error) { status = 500; values = batch.map(() => error.message) }
    batch.forEach(({ id }, i) => parentPort.postMessage({ id, status, value: values[i] }))
  }
  waiting.delete(where)
}

async function read({ id, route, where }) {
  try {
    const names = await lines(`${where}/MARKERS0`), appends = n => n.endsWith('.marker.APPEND')
    const value = { 'GET /all': names, 'GET /append': names.filter(appends), 'GET /create-and-merge': names.filter(n => !appends(n)), 'GET /dir/exists': names.length > 0 }[route]
    parentPort.postMessage(value === undefined ? { id, status: 404, value: 'no such thing' } : { id, status: 200, value })
  } catch (error) { parentPort.postMessage({ id, status: 500, value: error.message }) }
}

if (isMainThread) main()
else parentPort.on('message', asked => {
  if (!['POST /create', 'POST /dir/delete'].includes(asked.route)) return void read(asked)
  if (waiting.has(asked.where)) return void waiting.get(asked.where).push(asked)
  waiting.set(asked.where, [asked])
  setTimeout(work, 4, asked.where)
})
