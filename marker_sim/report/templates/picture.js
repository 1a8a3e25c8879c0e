/* Draws the picture of each story from the JSON block of the page: lanes, bars, fault windows, a cursor, and what storage
   held at the cursor. marker_sim/report/pictures/picture.py says what the data means. No framework; without it the page is text. */
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const ROW = 20, TICKS = 12, PAD = 4, AXIS = 34, FOLDED = 20;
const PROVEN = 30, DOT = 18, LEAST = 0.4, ASIDE = 0.12, LETTER = 6.7, FILES = 120, LOST = 4;

function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== false) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function svg(tag, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  return made;
}

function brief(name) { return name.length > 110 ? `${name.slice(0, 70)}…${name.slice(-38)}` : name; }

/* The last moment at or before `moment` decides: how many of the sorted moments that are. */
function upTo(moments, moment) {
  let low = 0, high = moments.length;
  while (low < high) { const at = (low + high) >> 1; if (moments[at] <= moment) low = at + 1; else high = at; }
  return low;
}

class Picture {
  constructor(place, data, number) {
    Object.assign(this, { place, data, number, zoom: 1, timed: false, matches: null });
    this.moments = data.events.map((event) => event.i);
    this.proof = new Map(data.evidence.map((moment, at) => [moment, at + 1]));
    this.harm = new Map(data.harm);
    this.faulty = new Set(data.faults.flatMap((fault) => [fault.from, fault.to]));
    this.lanes = data.lanes.map((lane) => ({ ...lane }));
    const section = place.closest(".story");
    this.home = section.id;
    this.steps = [...section.querySelectorAll(".told [data-proof]")];
    this.cursor = Math.max(0, upTo(this.moments, this.first()) - 1);
    this.build();
    this.redraw();
  }

  /* Where the cursor stands first: where the evidence shows an answered marker that is not stored, else where the harm
     was done, else at the end of the evidence; without evidence where the first fault began. */
  first() {
    const { evidence, names, faults, harm } = this.data, own = names.filter((name) => name.proof);
    const lost = evidence.find((moment) => own.some((name) => this.state(name, moment)?.[2] === "violated"));
    return lost ?? harm[0]?.[0] ?? (evidence.length ? Math.max(...evidence) : faults[0]?.from ?? 0);
  }

  redraw() { this.lay(); this.draw(); this.move(this.cursor, false); }

  /* Where each lane stands; a folded one is a line. */
  lay() {
    let y = AXIS;
    for (const [n, lane] of this.lanes.entries()) {
      Object.assign(lane, { y, height: lane.open ? lane.rows * ROW + TICKS + 2 * PAD : FOLDED });
      y += lane.height;
      this.labels[n].setAttribute("style", `top:${lane.y}px;height:${lane.height}px`);
      this.labels[n].setAttribute("aria-expanded", String(lane.open));
      this.labels[n].textContent = `${lane.open ? "" : "▸ "}${lane.name}`;
    }
    this.height = y + 4;
    this.svg.setAttribute("height", this.height);
    this.column.style.height = `${this.height}px`;
  }

  build() {
    const { data } = this, select = (name, all, values) => {
      const options = [html("option", { value: "" }, all), ...values.map((value) => html("option", { value }, value))];
      const made = html("select", { "aria-label": name }, ...options);
      made.addEventListener("change", () => this.filter());
      return made;
    };
    const distinct = (key) => [...new Set(data.events.map((event) => event[key]))].filter(Boolean).sort();
    this.byProcess = select("process", "every process", distinct("process"));
    this.byKind = select("kind of event", "every kind", distinct("kind"));
    this.byInstant = select("instant", "every instant", distinct("instant"));
    this.byPath = select("path", "every path", distinct("path").slice(0, 3 * FILES));
    this.search = html("input", { type: "search", placeholder: "search: name, value, error", "aria-label": "search events" });
    this.search.addEventListener("input", () => this.filter());
    this.search.addEventListener("keydown", (key) => {
      if (key.key === "Enter") this.next((at) => this.matches?.has(at), key.shiftKey ? -1 : 1);
    });
    this.found = html("output", { class: "soft" });
    const button = (label, attributes, act) => {
      const made = html("button", { type: "button", ...attributes }, ...label);
      made.addEventListener("click", act);
      return made;
    };
    const time = html("input", { type: "checkbox" });
    time.addEventListener("change", () => { this.timed = time.checked; this.redraw(); });
    const zooms = html("span", { class: "zooms" }, html("label", {}, time, " by time"),
      button("−", { title: "zoom out (-)" }, () => this.scale(0.5)), button("+", { title: "zoom in (+)" }, () => this.scale(2)));
    const tools = html("div", { class: "tools" }, this.search, this.byProcess, this.byKind, this.byInstant, this.byPath, this.found, zooms);
    this.labels = this.lanes.map((lane) =>
      button([], { title: `${lane.name}: fold or open` }, () => { lane.open = !lane.open; this.redraw(); }));
    const said = `Timeline of ${data.events.length} events in ${this.lanes.length} lanes. Arrow keys move from event to event;`
      + " the events stand in a table below.";
    this.svg = svg("svg", { tabindex: 0, role: "img", "aria-label": said });
    this.scroll = html("div", { class: "strip" }, this.svg);
    this.now = html("p", { class: "now", "aria-live": "polite" });
    this.panel = html("div", { class: "panel" });
    this.tip = html("div", { class: "tip", hidden: "" });
    this.column = html("div", { class: "labels" }, ...this.labels);
    const lanes = html("div", { class: "lanes" }, this.column, this.scroll);
    this.place.append(html("div", { class: "stage" }, lanes, html("div", { class: "side" }, this.now, this.panel)),
      this.legend(), tools, this.table(), this.tip);
    this.svg.addEventListener("click", (click) => this.move(this.nearest(click)));
    this.svg.addEventListener("mousemove", (mouse) => this.hover(mouse));
    this.svg.addEventListener("mouseleave", () => { this.tip.hidden = true; });
  }

  legend() {
    const { gaps, total } = this.data, left = gaps.reduce((sum, gap) => sum + gap.count, 0), swatch = (kind) => html("i", { class: `swatch ${kind}` });
    return html("p", { class: "key" }, swatch("ok"), " ok  ", swatch("fail"), " fail  ", swatch("info"), " unknown or open  ",
      "▲ stored  ▼ deleted  ▪ observed  ", swatch("window"), " fault. ",
      "Keys: ← → event, e evidence, f fault, + − zoom, / search; ↑ ↓ the same lane, after a click here.",
      left ? ` ${left.toLocaleString("en")} of ${total.toLocaleString("en")} events are left out (┊): shown are those around`
        + (this.proof.size ? " the evidence and the faults." : " the faults, and the last ones.") : "");
  }

  event(moment) { const at = upTo(this.moments, moment) - 1; return this.moments[at] === moment ? this.data.events[at] : null; }

  /* Where each shown event stands: evidence and faults have room, the others share the rest; or by time. */
  columns() {
    const { events, gaps } = this.data, room = Math.max(200, this.scroll.clientWidth - 2) * this.zoom - 16;
    const before = new Set(gaps.map((gap) => gap.before));
    const wide = events.map((event) => (this.proof.has(event.i) || (this.faulty.has(event.i) && this.faulty.size < 40) ? 1 : 0));
    const special = wide.reduce((sum, each) => sum + each, 0), even = room / (events.length + gaps.length);
    const weight = (event) => (event.kind === "observe" ? 0.35 : 1) * (this.lanes[event.lane].open ? 1 : ASIDE);
    const shares = events.reduce((sum, event, n) => sum + (wide[n] ? 0 : weight(event)), gaps.length);
    const proven = Math.max(even, DOT, Math.min(PROVEN, room / 3 / Math.max(1, special)));
    const other = Math.max(LEAST * Math.min(1, this.zoom), (room - special * proven) / Math.max(1, shares));
    let x = 8;
    this.at = events.map((event, n) => {
      if (before.has(event.i)) x += other;
      const step = wide[n] ? proven : other * weight(event);
      x += step;
      return x - step / 2;
    });
    this.width = x + 8;
    if (this.timed && events.length) {
      const first = events[0].t, long = Math.max(events[events.length - 1].t - first, 1e-6);
      this.at = events.map((event) => 8 + ((event.t - first) / long) * (this.width - 16));
    }
  }

  /* Where a moment stands; one that is not shown stands at the edge of its gap. */
  x(moment, end = false) {
    if (moment === null) return this.width;
    const at = upTo(this.moments, moment);
    if (at && this.moments[at - 1] === moment) return this.at[at - 1];
    if (at === 0) return 0;
    if (at >= this.at.length) return this.width;
    return end ? this.at[at] - 2 : this.at[at - 1] + 2;
  }

  draw() {
    this.columns();
    const { data, lanes } = this, parts = [], add = (...made) => parts.push(svg(...made));
    const hatch = svg("pattern", { id: `hatch-${this.number}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    hatch.append(svg("rect", { width: 2.5, height: 6, class: "hatch" }));
    lanes.forEach((lane, n) => add("rect", { class: n % 2 ? "lane odd" : "lane", x: 0, y: lane.y, width: this.width, height: lane.height }));
    for (const life of data.lives) {
      const y = lanes[life.lane].y + lanes[life.lane].height - TICKS / 2;
      add("line", { class: "life", x1: this.x(life.from), x2: this.x(life.to, true), y1: y, y2: y });
    }
    this.named = new Map();
    for (const fault of data.faults) this.fault(fault, parts);
    for (const gap of data.gaps) {
      const x = gap.before > this.moments[this.moments.length - 1] ? this.width - 3 : this.x(gap.before) - 2;
      const line = svg("line", { class: "gap", x1: x, x2: x, y1: AXIS - 8, y2: this.height });
      line.append(svg("desc", {}, `${gap.count.toLocaleString("en")} events left out: ${gap.told}`));
      parts.push(line);
    }
    let dotted = -DOT;
    for (const [moment, n] of this.proof) {
      const x = this.x(moment), kind = this.harm.has(moment) ? " harm" : "";
      add("line", { class: `proof-line${kind}`, x1: x, x2: x, y1: 14, y2: this.height });
      if (x - dotted < DOT - 2) continue; // By time, events of one moment share the dot of the first.
      dotted = x;
      add("circle", { class: `proof-dot${kind}`, cx: x, cy: 9, r: 8 });
      add("text", { class: "proof-number", x, y: 13 }, String(n));
    }
    data.bars.forEach((bar) => this.bar(bar, parts));
    data.events.forEach((event, n) => this.tick(event, n, parts));
    this.times(parts);
    this.line = svg("line", { class: "cursor", y1: 18, y2: this.height });
    parts.push(this.line);
    this.svg.replaceChildren(svg("defs"), ...parts);
    this.svg.firstChild.append(hatch);
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.dim();
  }

  fault(fault, parts) {
    const lane = fault.lane === null ? { y: AXIS, height: this.height - AXIS } : this.lanes[fault.lane];
    const from = this.x(fault.from), to = Math.max(from + 3, this.x(fault.to, true));
    const group = svg("g", { class: "fault", "data-from": fault.from });
    group.append(svg("rect", { x: from - 1.5, y: lane.y, width: to - from, height: lane.height, fill: `url(#hatch-${this.number})` }),
      svg("line", { x1: from, x2: from, y1: lane.y, y2: lane.y + lane.height }), svg("desc", {}, `${fault.kind} ${fault.path} ${fault.settings}`));
    parts.push(group);
    if (this.data.faults.length >= 30 && this.zoom <= 2) return;
    if (fault.lane !== null && !this.lanes[fault.lane].open) return;
    // The names of a lane stand side by side; one that would stand far from its fault is left to the pointer.
    const wide = 7 * (fault.kind.length + 2), x = Math.max(Math.min(from + 4, this.width - wide), this.named.get(lane.y) ?? 0);
    if (x > from + 90) return;
    this.named.set(lane.y, x + wide);
    this.named.set(`at ${lane.y}`, [...(this.named.get(`at ${lane.y}`) ?? []), [x, x + wide]]);
    parts.push(svg("text", { class: "fault-name", x, y: lane.y + lane.height - 3 }, `⚡${fault.kind}`));
  }

  bar(bar, parts) {
    const lane = this.lanes[bar.lane], from = this.x(bar.from), to = Math.max(from + 3, this.x(bar.to, true));
    const y = lane.y + (lane.open ? PAD + bar.row * ROW : 2);
    const group = svg("g", { class: `bar ${bar.outcome}`, "data-from": bar.from, "data-to": bar.to ?? "" });
    const sign = { ok: "", fail: "✕ ", info: "? ", open: "? " }[bar.outcome];
    group.append(svg("rect", { x: from, y: y + 1, width: to - from, height: lane.open ? ROW - 3 : 6, rx: lane.open ? 3 : 1 }),
      svg("desc", {}, `${bar.operation} ${bar.name}: ${bar.to === null ? "never answered" : `${bar.outcome} ${bar.answer}, ${bar.ms} ms`}`));
    const most = Math.floor((to - from - 6) / 6.1), label = `${sign}${bar.operation} ${bar.name.split("/").pop()}`;
    const short = label.length > most ? label.slice(0, Math.max(1, most - 1)) + (most > 3 ? "…" : "") : label;
    if (lane.open && (most >= 3 || (most >= 1 && sign))) group.append(svg("text", { x: from + 4, y: y + 13 }, short));
    parts.push(group);
  }

  tick(event, n, parts) {
    if (event.kind !== "effect" && event.kind !== "observe") return;
    const lane = this.lanes[event.lane], x = this.at[n], y = lane.y + lane.height - TICKS / 2 - (lane.open ? PAD : 0);
    const shape = event.kind === "observe" ? "M-1.5-1.5h3v3h-3z" : event.operation === "delete" ? "M-4-4h8l-4 8z" : "M-4 4h8l-4-8z";
    const harm = this.harm.has(event.i), size = harm ? " scale(1.5)" : "";
    parts.push(svg("path", { class: `tick ${event.kind}${harm ? " harm" : ""}`, "data-from": event.i, d: shape, transform: `translate(${x} ${y})${size}` }));
    if (!harm) return;
    const said = `✗ ${this.harm.get(event.i)}`, wide = said.length * LETTER;
    const before = x + 7 + wide > this.width, left = before ? x - 7 - wide : x + 7;
    if (left < (this.named.get(`harm ${lane.y}`) ?? 0)) return; // The step has the same in words.
    this.named.set(`harm ${lane.y}`, left + wide);
    const [line, room] = lane.open ? this.free(event, left, left + wide, y + 4) : [lane.y + 15, wide];
    const short = room < wide ? `${said.slice(0, Math.floor(room / LETTER) - 2)}…` : said;
    if (short.length > 7) parts.push(svg("text", { class: "harm-name", x: before ? x - 7 : left, y: line, "text-anchor": before ? "end" : "start" }, short));
  }

  /* The lowest line of a lane on which a text covers nothing, with the room for it: that of signs (y), a row of bars, else that of signs until the next one. */
  free(event, left, right, y) {
    const lane = this.lanes[event.lane], meets = (from, to) => to > left && from < right;
    const others = this.data.events.filter((other) => other !== event && other.lane === event.lane && ["effect", "observe"].includes(other.kind));
    const signs = [...others.map((other) => this.x(other.i)).map((x) => [x - 5, x + 5]), ...(this.named.get(`at ${lane.y}`) ?? [])].filter((span) => meets(...span));
    if (!signs.length) return [y, right - left];
    const bars = this.data.bars.filter((bar) => bar.lane === event.lane);
    const taken = new Set(bars.filter((bar) => meets(this.x(bar.from), Math.max(this.x(bar.from) + 3, this.x(bar.to, true)))).map((bar) => bar.row));
    const row = [...new Set([0, ...bars.map((bar) => bar.row)])].sort((one, other) => other - one).find((each) => !taken.has(each));
    return row === undefined ? [y, Math.min(...signs.map(([from]) => from)) - left] : [lane.y + 15 + ROW * row, right - left];
  }

  times(parts) {
    const { events } = this.data, seconds = events[events.length - 1]?.t >= 10000;
    let free = 0;
    events.forEach((event, n) => {
      const said = seconds ? `${(event.t / 1000).toFixed(2)} s` : `${event.t.toFixed(1)} ms`, half = said.length * LETTER / 2;
      const x = Math.max(this.at[n], half + 2);
      if (x - half < free || x + half > this.width) return;
      free = x + half + 12;
      parts.push(svg("text", { class: "time", x, y: AXIS - 6 }, said));
    });
  }

  nearest(mouse) {
    const x = mouse.clientX - this.svg.getBoundingClientRect().left;
    return this.at.reduce((best, each, n) => (Math.abs(each - x) < Math.abs(this.at[best] - x) ? n : best), 0);
  }

  hover(mouse) {
    const what = mouse.target.closest?.("g, line"), title = what?.querySelector("desc"), event = this.data.events[this.nearest(mouse)];
    if (!event) return;
    this.tip.textContent = (title ? `${title.textContent}${this.came(Number(what.dataset.to))}\n` : "") + event.text;
    this.tip.hidden = false;
    this.tip.style.left = `${Math.max(4, Math.min(mouse.clientX + 14, innerWidth - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${mouse.clientY + 18}px`;
  }

  /* Of an answer: whether storage held its marker at that moment. */
  came(moment) {
    const name = moment && this.data.names.find((each) => each.answers.some(([at]) => at === moment));
    const [sign, said] = (name && this.state(name, moment)) || [];
    return sign ? `; then ${sign} ${said}` : "";
  }

  /* The next event in a direction that fits. */
  next(fits, step = 1) {
    const { length } = this.moments;
    for (let at = this.cursor + step, tried = 0; tried < length; at += step, tried += 1) {
      const turned = (at + length) % length;
      if (fits(turned)) { this.move(turned); return; }
    }
  }

  key(key) {
    if (key.ctrlKey || key.metaKey || key.altKey || key.target.closest?.("input, select, textarea")) return;
    const { events } = this.data, last = events.length - 1, back = key.shiftKey ? -1 : 1, lane = events[this.cursor]?.lane;
    const acts = {
      ArrowLeft: () => this.move(Math.max(0, this.cursor - 1)), ArrowRight: () => this.move(Math.min(last, this.cursor + 1)),
      "/": () => this.search.focus(), "+": () => this.scale(2), "-": () => this.scale(0.5),
      e: () => this.next((at) => this.proof.has(events[at].i), back), E: () => this.next((at) => this.proof.has(events[at].i), -1),
      f: () => this.next((at) => this.faulty.has(events[at].i), back), F: () => this.next((at) => this.faulty.has(events[at].i), -1),
    };
    // These scroll the page until something of the story was chosen.
    if (key.target.closest?.(".picture, .proofs")) Object.assign(acts, {
      ArrowUp: () => this.next((at) => events[at].lane === lane, -1), ArrowDown: () => this.next((at) => events[at].lane === lane),
      Home: () => this.move(0), End: () => this.move(last),
    });
    if (acts[key.key]) { key.preventDefault(); acts[key.key](); }
  }

  scale(factor) { this.zoom = Math.min(64, Math.max(1, this.zoom * factor)); this.redraw(); }

  /* Put the cursor on a shown event and say what storage held then. follow: the address does, too. */
  move(at, follow = true) {
    const event = this.data.events[at];
    if (!event) return;
    this.cursor = at;
    const x = this.at[at], { scrollLeft, clientWidth } = this.scroll;
    for (const end of ["x1", "x2"]) this.line.setAttribute(end, x);
    if (x < scrollLeft + 20 || x > scrollLeft + clientWidth - 20) this.scroll.scrollLeft = x - clientWidth / 2;
    const proof = this.proof.has(event.i) ? html("span", { class: "violated" }, ` evidence ${this.proof.get(event.i)}`) : "";
    this.now.replaceChildren(html("b", {}, `At event ${event.i}`), proof, ` ${event.text}`);
    const moment = String(event.i);
    for (const each of this.steps) each.setAttribute("aria-current", String(each.dataset.proof === moment));
    if (follow) history.replaceState(null, "", `#${this.home}@${moment}`);
    for (const { dataset, classList } of this.svg.querySelectorAll(".bar")) classList.toggle("now", [dataset.from, dataset.to].includes(moment));
    this.panel.replaceChildren(...this.answered(event.i), ...this.stored(event.i));
  }

  /* What a name was answered up to a moment, and whether it was stored then; null before its first answer. */
  state(name, moment) {
    const given = name.answers.filter((answer) => answer[0] <= moment).pop();
    if (!given) return null;
    const gone = name.deleted.find((each) => each > given[0] && each <= moment) !== undefined;
    const reads = this.data.reads ? name.seen[upTo(name.seen, moment) - 1] : moment;
    const held = reads !== undefined && upTo(name.stored, reads) % 2 === 1;
    const [sign, said, style] = reads === undefined || (this.data.reads && reads < given[0] && !held) ? ["?", "storage was not read since", "inconclusive"]
      : held ? ["✓", "stored", "holds"] : gone ? ["–", "its directory was deleted", "soft"] : ["✗", "NOT stored", "violated"];
    return [sign, said, style, `${given[1]} at ${given[0]}; ${said}`];
  }

  /* Those of the evidence first, then what is not stored; the others are folded. */
  answered(moment) {
    const first = [], lost = [], others = [];
    for (const name of this.data.names) {
      const [sign, , style, said] = this.state(name, moment) ?? [];
      if (!sign) continue;
      const row = html("li", { class: style }, html("b", {}, sign), " ", html(name.proof ? "mark" : "span", { title: name.name }, brief(name.name)), " ", html("small", {}, said));
      (name.proof ? first : style === "violated" ? lost : others).push(row);
    }
    const list = (items) => html("ul", { class: "answered" }, ...items);
    const folded = (items, said) => (items.length ? [html("details", {}, html("summary", {}, `and ${items.length} ${said}`), list(items))] : []);
    const rest = others.length > 3 ? folded(others, "that are stored, deleted or unknown") : [list(others)];
    const all = [list([...first, ...lost.slice(0, LOST)]), ...folded(lost.slice(LOST), "more that are NOT stored"), ...rest];
    return [html("h4", {}, "Answered until then"), ...(first.length + lost.length + others.length ? all : [html("p", { class: "soft" }, "no marker")])];
  }

  stored(moment) {
    const { files } = this.data, state = new Map();
    for (const [when, path, content] of files.states) if (when <= moment) state.set(path, [content, when]);
    const out = [html("h4", {}, this.data.reads ? "Storage, as it was read last" : "Storage")];
    for (const [group, title] of [["marker", "Marker files"], ["timeline", "Timeline"], ["data", "Data files"]]) {
      const held = [...state].filter(([path, [content, when]]) => files.groups[path] === group && (content || when === moment));
      if (!held.length) continue;
      held.sort(([one], [other]) => (files.paths[one] < files.paths[other] ? -1 : 1));
      const items = held.slice(0, FILES).map(([path, [content, when]]) => this.file(files.paths[path], content, when === moment));
      if (held.length > FILES) items.push(html("li", { class: "soft" }, `and ${held.length - FILES} more`));
      out.push(html("h5", {}, title), html("ul", { class: "files" }, ...items));
    }
    const others = files.others.filter((each) => each[0] <= moment).pop();
    if (others && others[1]) out.push(html("p", { class: "soft" }, `and ${others[1].toLocaleString("en")} files that no shown event changes`));
    if (out.length === 1) out.push(html("p", { class: "soft" }, "nothing"));
    return out;
  }

  file(path, content, changed) {
    const [size, names, many, writing] = content ?? [null, null, 0, false];
    const said = content ? `${size === null ? "" : ` ${size} B`}${writing ? ", being written" : ""}` : " deleted now";
    const item = html("li", { class: changed ? "changed" : "", title: path }, brief(path), html("small", {}, said));
    if (!names?.length) return item;
    const listed = names.map((name) => html("li", {}, brief(this.data.files.names[name])));
    if (many > names.length) listed.push(html("li", { class: "soft" }, `and ${many - names.length} more`));
    item.append(html("ul", {}, ...listed));
    return item;
  }

  filter() {
    const text = this.search.value.toLowerCase(), { events } = this.data;
    const chosen = { process: this.byProcess.value, kind: this.byKind.value, instant: this.byInstant.value, path: this.byPath.value };
    const wanted = Object.entries(chosen).filter(([, value]) => value);
    const fits = (event) => wanted.every(([key, value]) => event[key] === value) && event.text.toLowerCase().includes(text);
    this.matches = !text && !wanted.length ? null : new Set([...events.keys()].filter((at) => fits(events[at])));
    this.found.textContent = this.matches ? `${this.matches.size} of ${events.length} events` : "";
    this.dim();
  }

  /* What does not match the filter is faint in the picture and hidden in the table. */
  dim() {
    const kept = this.matches && new Set([...this.matches].map((at) => String(this.moments[at])));
    for (const { dataset, classList } of this.svg.querySelectorAll("[data-from]")) {
      classList.toggle("faint", kept !== null && !kept.has(dataset.from) && !kept.has(dataset.to));
    }
    for (const row of this.place.querySelectorAll("tr[data-at]")) row.hidden = kept !== null && !this.matches.has(Number(row.dataset.at));
  }

  /* The events as a table, made when it is opened. */
  table() {
    const { events, gaps } = this.data, made = html("details", { class: "events" }, html("summary", {}, `All ${events.length} shown events as a table`));
    made.addEventListener("toggle", () => {
      if (made.children.length > 1) return;
      const left = new Map(gaps.map((gap) => [gap.before, gap]));
      const rows = events.map((event, at) => {
        const before = left.has(event.i) ? `(${left.get(event.i).count} events left out before) ` : "";
        const cells = [event.i, `${event.t} ms`, event.process, event.kind, before + event.text].map((text) => html("td", {}, String(text)));
        const row = html("tr", { "data-at": at, class: this.proof.has(event.i) ? "proof" : "" }, ...cells);
        row.addEventListener("click", () => this.move(at));
        return row;
      });
      const heads = ["event", "time", "process", "kind", "all of it"].map((name) => html("th", { scope: "col" }, name));
      const table = html("table", {}, html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows));
      made.append(html("div", { class: "scroll" }, table));
      this.dim();
    });
    return made;
  }
}

/* One story at a time, by the fragment of the address: #story-2, or #story-2@17 with the cursor at event 17. */
const pictures = new Map(), sections = [...document.querySelectorAll(".story")];

let current;

function open_story() {
  const row = document.getElementById(location.hash.slice(1));  // Of a guarantee: the story that is shown stays.
  if (row instanceof HTMLDetailsElement) { row.open = true; if (current) return; }
  const [wanted, moment] = location.hash.slice(1).split("@"), chosen = sections.find((each) => each.id === wanted) ?? sections[0];
  for (const section of sections) section.hidden = section !== chosen;
  for (const card of document.querySelectorAll(".card")) card.setAttribute("aria-current", String(card.getAttribute("href") === `#${chosen?.id}`));
  current = chosen && shown(chosen);
  if (current && moment) current.move(Math.max(0, upTo(current.moments, Number(moment)) - 1), false);
}

function shown(section) {
  const place = section.querySelector(".picture"), number = Number(place?.dataset.picture);
  if (place && !pictures.has(place)) pictures.set(place, new Picture(place, DATA[number], number));
  return pictures.get(place);
}

function again() { for (const [place, picture] of pictures) if (place.offsetParent) picture.redraw(); }

addEventListener("keydown", (key) => current?.key(key));
addEventListener("hashchange", () => {
  open_story();
  if (document.activeElement === document.body) current?.svg.focus({ preventScroll: true });
});
addEventListener("resize", again);
addEventListener("beforeprint", () => {
  for (const section of sections) { section.hidden = false; shown(section); }
  for (const each of document.querySelectorAll("details:not(.events)")) each.open = true;
  again();
});
open_story();
