"use strict";
// Pictures over time. A picture's right edge is now; a step is one sample.

const STEPS = 120;

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// heat is the color of a share from 0 to 1.
function heat(v) {
  const cold = css("--cold").split(",").map(Number);
  if (!(v > 0)) return `rgb(${cold})`;
  const dark = css("--heat") === "2";
  const stops = dark ? [[58, 66, 92], [60, 120, 150], [214, 160, 70], [250, 225, 140]]
                     : [[222, 230, 232], [120, 175, 200], [214, 140, 50], [140, 40, 30]];
  const x = Math.min(v, 1) * (stops.length - 1), i = Math.min(Math.floor(x), stops.length - 2), f = x - i;
  return `rgb(${stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * f))})`;
}

// canvas prepares a canvas for its size on this screen.
function canvas(id) {
  const c = document.getElementById(id), scale = window.devicePixelRatio || 1;
  const h = Number(c.dataset.height || (c.dataset.height = c.getAttribute("height")));
  const w = c.clientWidth;
  if (c.width !== Math.round(w * scale) || c.height !== Math.round(h * scale)) {
    c.width = Math.round(w * scale);
    c.height = Math.round(h * scale);
    c.style.height = h + "px";
  }
  const g = c.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, w, h);
  g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  g.textBaseline = "middle";
  return { g, w, h };
}

const LEFT = 62, BOTTOM = 16;

// axis writes the times below a picture.
function axis(g, w, h, left) {
  g.fillStyle = css("--faint");
  g.textAlign = "center";
  for (const s of [100, 80, 60, 40, 20]) {
    const x = left + (w - left) * (1 - s / STEPS);
    g.fillText(`−${s} s`, x, h - BOTTOM / 2 + 1);
  }
  g.textAlign = "right";
  g.fillText("now", w, h - BOTTOM / 2 + 1);
}

// heatmap draws rows of shares: rows[r][t], the first row at the top.
function heatmap(id, labels, columns) {
  const { g, w, h } = canvas(id), rows = Math.max(labels.length, 1);
  const rowH = (h - BOTTOM) / rows, colW = (w - LEFT) / STEPS;
  g.fillStyle = heat(0);
  g.fillRect(LEFT, 0, w - LEFT, h - BOTTOM);
  columns.slice(-STEPS).forEach((col, i, all) => {
    const x = LEFT + (STEPS - all.length + i) * colW;
    col.forEach((v, r) => {
      if (v > 0) {
        g.fillStyle = heat(v);
        g.fillRect(Math.floor(x), Math.floor(r * rowH), Math.ceil(colW), Math.ceil(rowH) - (rowH > 6 ? 1 : 0));
      }
    });
  });
  g.fillStyle = css("--faint");
  g.textAlign = "right";
  const every = Math.ceil(13 / rowH);
  labels.forEach((l, r) => { if (r % every === 0) g.fillText(l, LEFT - 8, (r + .5) * rowH); });
  axis(g, w, h, LEFT);
}

// lines draws series of numbers, as lines or as areas that stand on each other.
function lines(id, series, options) {
  const { g, w, h } = canvas(id), bottom = h - BOTTOM;
  const n = Math.max(0, ...series.map(s => s.data.length));
  let top = options.top || 0;
  for (let i = 0; i < n; i++) {
    const at = series.map(s => s.data[i] || 0);
    top = Math.max(top, options.stack ? at.reduce((a, b) => a + b, 0) : Math.max(...at));
  }
  top = options.top || nice(top, options.unit === bytes) || 1;
  const x = i => LEFT + (w - LEFT) * (STEPS - n + i + 1) / STEPS, y = v => bottom - Math.min(v / top, 1) * (bottom - 6);
  g.strokeStyle = css("--line");
  g.fillStyle = css("--faint");
  g.textAlign = "right";
  g.lineWidth = 1;
  for (const f of [0, .5, 1]) {
    g.beginPath();
    g.moveTo(LEFT, Math.round(y(top * f)) + .5);
    g.lineTo(w, Math.round(y(top * f)) + .5);
    g.stroke();
    g.fillText(options.unit(top * f), LEFT - 8, y(top * f));
  }
  const base = new Array(n).fill(0);
  series.forEach(s => {
    const color = css(s.color);
    g.beginPath();
    for (let i = 0; i < n; i++) g.lineTo(x(i), y((options.stack ? base[i] : 0) + (s.data[i] || 0)));
    if (options.stack) {
      for (let i = n - 1; i >= 0; i--) g.lineTo(x(i), y(base[i]));
      g.closePath();
      g.fillStyle = color;
      g.globalAlpha = .75;
      g.fill();
      g.globalAlpha = 1;
      for (let i = 0; i < n; i++) base[i] += s.data[i] || 0;
    } else {
      g.strokeStyle = color;
      g.lineWidth = 1.7;
      g.stroke();
    }
  });
  axis(g, w, h, LEFT);
}

// nice rounds up to one, two or five times a power of ten; bytes to a power of two.
function nice(v, binary) {
  if (!(v > 0)) return 0;
  const p = Math.pow(10, Math.floor(Math.log10(v)));
  if (binary) {
    const q = Math.pow(2, 10 * Math.max(0, Math.floor(Math.log2(v) / 10)));
    for (const m of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]) if (m * q >= v) return m * q;
  }
  for (const m of [1, 2, 5, 10]) if (m * p >= v) return m * p;
  return 10 * p;
}

// legend writes what colors mean.
function legend(id, entries) {
  const at = document.getElementById(id);
  at.replaceChildren(...entries.map(e => {
    const span = document.createElement("span"), i = document.createElement("i");
    i.style.background = css(e.color);
    span.append(i, e.text);
    return span;
  }));
}

// scale writes what the heat of a heat map means.
function scale(id, low, high) {
  const at = document.getElementById(id), bar = document.createElement("span");
  bar.className = "scale";
  bar.style.background = `linear-gradient(90deg, ${[0, .25, .5, .75, 1].map(v => heat(v || .001)).join(",")})`;
  at.replaceChildren(low, bar, high);
}
