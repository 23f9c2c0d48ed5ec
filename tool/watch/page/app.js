"use strict";
// What the machine tells is text: it is put where text goes (textContent), never as markup.

const $ = id => document.getElementById(id);
const samples = [];
let chosen = ""; // the call whose latency is shown

const bytes = v => {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (v >= size) return (v / size).toFixed(v / size < 10 ? 1 : 0) + " " + unit;
  return Math.round(v) + " B";
};
const count = v => v >= 1e6 ? (v / 1e6).toFixed(1) + " M" : v >= 1e4 ? (v / 1e3).toFixed(0) + " k" : v >= 10 || Number.isInteger(v) ? v.toFixed(0) : v.toFixed(1);
const time = ns => ns >= 1e9 ? (ns / 1e9).toFixed(1) + " s" : ns >= 1e6 ? (ns / 1e6).toFixed(ns < 1e7 ? 1 : 0) + " ms" : ns >= 1e3 ? (ns / 1e3).toFixed(ns < 1e4 ? 1 : 0) + " µs" : Math.round(ns) + " ns";
const percent = v => (100 * v).toFixed(v < .1 ? 1 : 0) + " %";

function tiles(p) {
  const busy = p.cpus.reduce((a, b) => a + b, 0) / Math.max(p.cpus.length, 1);
  const calls = p.calls.reduce((a, c) => a + c.rate, 0);
  const net = p.networks.filter(n => n.name !== "lo").reduce((a, n) => a + n.packets, 0);
  const list = [["processors", percent(busy)], ["system calls a second", count(calls)], ["context switches a second", count(p.switches)],
    ["memory used", bytes(p.memory.used)], ["processes", count(p.processes.length)],
    ["open connections", count(p.connections.filter(c => c.state === "established").length)],
    ["packets a second", count(net)], ["collections", count(p.gc.cycles)], ["emulator on the host", percent(p.hostCPU)]];
  $("tiles").replaceChildren(...list.map(([what, value]) => {
    const tile = document.createElement("div"), b = document.createElement("b"), span = document.createElement("span");
    tile.className = "tile";
    b.textContent = value;
    span.textContent = what;
    tile.append(b, span);
    return tile;
  }));
}

function rows(id, list, make) {
  $(id).tBodies[0].replaceChildren(...list.map(make));
}

function cells(...values) {
  const tr = document.createElement("tr");
  for (const v of values) {
    const td = document.createElement("td");
    if (v instanceof Node) td.append(v), td.className = "bar";
    else if (Array.isArray(v)) td.textContent = v[0], td.className = "n";
    else td.textContent = td.title = v;
    tr.append(td);
  }
  return tr;
}

function latencyMap() {
  const columns = samples.map(p => {
    const c = chosen ? p.calls.find(c => c.name === chosen) : p;
    return c ? c.latencies : [];
  });
  const low = 7, high = 27; // 128 ns to 128 ms
  const bounds = [];
  for (let i = high; i >= low; i--) bounds.push(2 ** i);
  let most = 1;
  for (const col of columns) for (const b of col) most = Math.max(most, b.calls);
  const shares = columns.map(col => {
    const at = new Array(bounds.length).fill(0);
    for (const b of col) {
      const i = Math.min(Math.max(Math.round(Math.log2(b.below)), low), high);
      at[high - i] += b.calls;
    }
    return at.map(n => n > 0 ? .08 + .92 * Math.log(1 + n) / Math.log(1 + most) : 0);
  });
  heatmap("latency", bounds.map(b => "< " + time(b)), shares);
  scale("latency-legend", "1", count(most) + " measured calls a second (logarithmic)");
  $("latency-of").textContent = (chosen || "all calls") + ", waiting left out";
  $("latency-all").hidden = !chosen;
}

function draw() {
  const p = samples[samples.length - 1];
  if (!p) return;
  tiles(p);
  heatmap("cpus", p.cpus.map((_, i) => "cpu " + i), samples.map(s => s.cpus));
  scale("cpus-legend", "idle", "busy: " + p.cpus.map(percent).slice(0, 16).join(", "));
  latencyMap();
  const most = Math.max(1, ...p.calls.map(c => c.rate));
  rows("calls", p.calls, c => {
    const bar = document.createElement("i");
    bar.style.width = 100 * c.rate / most + "%";
    const tr = cells(c.name, [count(c.rate)], [c.mean > 0 ? time(c.mean) : "–"], bar);
    tr.className = c.name === chosen ? "chosen" : "";
    tr.onclick = () => { chosen = c.name; draw(); };
    return tr;
  });
  const series = (key, color, text) => ({ data: samples.map(s => s.memory[key]), color, text: `${text} ${bytes(p.memory[key])}` });
  const parts = [series("kernel", "--b", "kernel"), series("programs", "--a", "programs"), series("cache", "--c", "files")];
  lines("memory", parts, { stack: true, top: p.memory.total, unit: bytes });
  legend("memory-legend", [...parts, { color: "--line", text: `of ${bytes(p.memory.total)}, ${bytes(p.memory.dirty)} to be written` }]);
  const heap = [series("heap", "--a", "objects"), series("heapNext", "--d", "collected at")];
  lines("heap", heap, { unit: bytes });
  legend("heap-legend", [...heap, { color: "--line", text: `collector ${percent(p.gc.share)} of the processors` }]);
  const sum = (list, key) => list.reduce((a, n) => a + n[key], 0);
  const outside = s => s.networks.filter(n => n.name !== "lo");
  const net = [{ data: samples.map(s => sum(outside(s), "in")), color: "--a", text: "in " + bytes(sum(outside(p), "in")) },
    { data: samples.map(s => sum(outside(s), "out")), color: "--b", text: "out " + bytes(sum(outside(p), "out")) }];
  lines("network", net, { unit: bytes });
  legend("network-legend", [...net, ...p.networks.map(n => ({ color: "--line", text: `${n.name}: ${count(n.packets)} packets` }))]);
  const disk = [{ data: samples.map(s => sum(s.disks, "read")), color: "--a", text: "read " + bytes(sum(p.disks, "read")) },
    { data: samples.map(s => sum(s.disks, "written")), color: "--b", text: "written " + bytes(sum(p.disks, "written")) }];
  lines("disks", disk, { unit: bytes });
  legend("disks-legend", p.disks.length ? [...disk, ...p.disks.map(d => ({ color: "--line", text: `${d.name}: ${count(d.operations)} operations, busy ${percent(d.busy)}` }))]
    : [{ color: "--line", text: "the machine has no disks" }]);
  rows("processes", p.processes, q => cells([q.pid], q.name, q.state, [q.threads], [percent(q.cpu)], [q.seconds.toFixed(1) + " s"], [bytes(q.memory)], [q.uid]));
  $("processes-n").textContent = p.processes.length;
  rows("connections", p.connections, c => cells(c.protocol, c.local, c.remote, c.state, [c.in], [c.out]));
  $("connections-n").textContent = p.connections.length;
}

// The flame graph: a row for each depth, a box as wide as the function's share.
let flame = null;
function drawFlame(root) {
  const at = $("flame"), all = [], width = at.clientWidth;
  let depth = 0;
  const put = (f, x, w, d) => {
    if (w * width < 1.5) return;
    depth = Math.max(depth, d);
    const div = document.createElement("div");
    div.textContent = w * width > 24 ? f.name : "";
    div.style.left = 100 * x + "%";
    div.style.width = 100 * w + "%";
    div.style.top = d * 18 + "px";
    let hash = 0;
    for (const c of f.name.split(/[.(]/)[0]) hash = (hash * 31 + c.charCodeAt(0)) % 997;
    div.style.background = `hsl(${18 + hash % 40}, ${62 + hash % 20}%, ${66 + hash % 11}%)`;
    div.onmouseenter = () => { $("flame-tip").textContent = `${f.name}: ${time(f.time)}, ${percent(f.time / (flame.time || 1))}`; };
    div.onclick = () => drawFlame(f);
    all.push(div);
    for (const k of (f.kids || []).slice().sort((a, b) => a.name < b.name ? -1 : 1)) {
      const share = root.time ? k.time / root.time : 0;
      put(k, x, share, d + 1);
      x += share;
    }
  };
  put(root, 0, 1, 0);
  at.replaceChildren(...all);
  at.style.height = (depth + 1) * 18 + "px";
  $("flame-up").hidden = root === flame;
}

$("flame-up").onclick = () => drawFlame(flame);
$("latency-all").onclick = () => { chosen = ""; draw(); };
$("flame-go").onclick = async () => {
  $("flame-go").disabled = true;
  $("flame-note").textContent = "looking …";
  try {
    const answer = await fetch("flame?seconds=3");
    if (!answer.ok) throw new Error(await answer.text());
    flame = await answer.json();
    $("flame-note").textContent = `${time(flame.time)} of kernel time in 3 seconds`;
    drawFlame(flame);
  } catch (e) {
    $("flame-note").textContent = String(e.message || e);
  }
  $("flame-go").disabled = false;
};

const state = (text, kind) => { $("state").textContent = text; $("state").className = "state " + kind; };
const events = new EventSource("events");
events.addEventListener("machine", e => {
  const name = JSON.parse(e.data).name;
  $("name").textContent = name;
  document.title = name + " · Hardtack";
  samples.length = 0;
});
events.addEventListener("sample", e => {
  const p = JSON.parse(e.data);
  state(!p.up ? "ended" : p.answers ? "running" : "does not answer", p.answers ? "up" : "down");
  if (!p.answers) return;
  samples.push(p);
  if (samples.length > STEPS) samples.shift();
  draw();
});
events.onerror = () => state("no connection", "down");
addEventListener("resize", () => { draw(); if (flame) drawFlame(flame); });
