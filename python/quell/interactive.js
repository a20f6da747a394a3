// Draws the chart that the page holds. Names come from processes and files: they are only ever set as text.
"use strict";
const COLOURS = ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const DASHES = ["", "6 3", "6 2 1 2", "2 2", "8 2 2 2", "4 2 1 2 1 2", "10 3"];
const SVG = "http://www.w3.org/2000/svg";
const W = 720, LEFT = 70, RIGHT = 16, TOP = 14, BOTTOM = 44;

function make(name, attributes, parent, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}
function element(name, parent, text) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}
function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) if (Math.abs(ns) >= size) return short(ns / size) + " " + unit;
  return short(ns) + " ns";
}
function short(n) { return String(Number(n.toPrecision(3))); }
function count(n) {
  for (const [unit, size] of [["Mi", 2 ** 20], ["Ki", 1024]]) if (n >= size && n % size === 0) return n / size + unit;
  return short(n);
}
const SHOWN = { time, count, number: short, percent: (n) => short(n) + " %", seconds: (n) => short(n) + " s" };

// A scale from values to pixels, with ticks at round values.
function scale(kind, low, high, from, to) {
  const log = kind === "log" || kind === "log2";
  const base = kind === "log2" ? 2 : 10;
  const f = log ? (v) => Math.log(v) / Math.log(base) : (v) => v;
  const back = log ? (v) => base ** v : (v) => v;
  const [a, b] = [f(low), f(high) === f(low) ? f(low) + 1 : f(high)];
  const at = (v) => from + ((f(v) - a) / (b - a)) * (to - from);
  const ticks = [];
  if (log) {
    const step = Math.max(1, Math.ceil((b - a) / 9));
    for (let e = Math.ceil(a - 1e-9); e <= b + 1e-9; e += step) ticks.push(base ** e);
  } else {
    const raw = (b - a) / 6, size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find((m) => m * size >= raw) * size;
    const first = Math.ceil(a / step) * step;
    // Counted, since a step can be too small to change a number.
    for (let k = 0; k < 20 && first + k * step <= b + step * 1e-9; k++) ticks.push(Number((first + k * step).toPrecision(12)));
  }
  return { at, ticks, value: (pixel) => back(a + ((pixel - from) / (to - from)) * (b - a)) };
}
function range(values, kind, zero) {
  const fit = values.filter((v) => v !== null && Number.isFinite(v) && (kind === "linear" || v > 0));
  if (!fit.length) return [1, 10];
  const low = fit.reduce((m, v) => Math.min(m, v)), high = fit.reduce((m, v) => Math.max(m, v));
  if (kind !== "linear") return [low / 1.1, high * 1.1];
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  return [zero && low >= 0 ? 0 : low - pad, high + pad];
}

function drawXY(spec, root, tip) {
  const H = spec.height || 380;
  const hidden = new Set();
  let zoom = null;
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": spec.title }, root);
  function draw() {
    svg.replaceChildren();
    const series = spec.series.filter((one) => !hidden.has(one.name));
    const xs = series.flatMap((one) => one.x), shown = (one) => one.x.map((x) => !zoom || (x >= zoom[0] && x <= zoom[1]));
    const ys = series.flatMap((one) => { const keep = shown(one); return [one.y, one.low || [], one.high || []].flatMap((v) => v.filter((_, i) => keep[i])); });
    const x = scale(spec.xscale, ...(zoom || range(xs, spec.xscale)), LEFT, W - RIGHT);
    const y = scale(spec.yscale, ...range(ys, spec.yscale, spec.zero), H - BOTTOM, TOP);
    axes(svg, spec, x, y, H);
    const clip = make("clipPath", { id: "inside" }, svg);
    make("rect", { x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM }, clip);
    const plot = make("g", { "clip-path": "url(#inside)" }, svg);
    const marks = [];
    for (const one of series) {
      const number = spec.series.indexOf(one) % COLOURS.length, colour = COLOURS[number];
      const fits = one.x.map((v, i) => one.y[i] !== null && (spec.yscale === "linear" || one.y[i] > 0));
      if (one.low) {
        const places = one.x.map((_, i) => i).filter((i) => one.low[i] !== null);
        const up = places.map((i) => `${x.at(one.x[i])},${y.at(one.high[i])}`), down = places.map((i) => `${x.at(one.x[i])},${y.at(one.low[i])}`).reverse();
        make("polygon", { points: [...up, ...down].join(" "), fill: colour, opacity: 0.13 }, plot);
      }
      if (!one.dots) {
        let path = "", pen = false;
        one.x.forEach((v, i) => { if (fits[i]) { path += `${pen ? "L" : "M"}${x.at(v).toFixed(2)},${y.at(one.y[i]).toFixed(2)}`; pen = true; } else pen = false; });
        make("path", { d: path, fill: "none", stroke: colour, "stroke-width": 1.8, "stroke-dasharray": DASHES[number] }, plot);
      }
      one.x.forEach((v, i) => {
        if (!fits[i] || (one.steps && !one.dots)) return;
        const hollow = one.supported && !one.supported[i];
        if (one.dots || one.x.length <= 200) make("circle", { cx: x.at(v).toFixed(2), cy: y.at(one.y[i]).toFixed(2), r: one.dots ? 1.8 : 3.4, fill: hollow ? "#fff" : colour, stroke: colour, opacity: one.dots ? 0.55 : 1 }, plot);
      });
      one.x.forEach((v, i) => { if (fits[i]) marks.push({ px: x.at(v), py: y.at(one.y[i]), one, i }); });
    }
    hover(svg, marks, spec, tip, x);
  }
  function hover(svg, marks, spec, tip, x) {
    const ring = make("circle", { r: 6, fill: "none", stroke: "#000", visibility: "hidden" }, svg);
    const band = make("rect", { y: TOP, height: H - TOP - BOTTOM, fill: "#0072B2", opacity: 0.15, visibility: "hidden" }, svg);
    const over = make("rect", { x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM, fill: "transparent" }, svg);
    let from = null;
    const place = (event) => { const box = svg.getBoundingClientRect(); return [((event.clientX - box.left) * W) / box.width, ((event.clientY - box.top) * H) / box.height]; };
    over.onpointermove = (event) => {
      const [px, py] = place(event);
      if (from !== null) {
        band.setAttribute("x", Math.min(from, px)); band.setAttribute("width", Math.abs(px - from)); band.setAttribute("visibility", "visible");
        return;
      }
      let near = null, best = 900;
      for (const mark of marks) { const d = (mark.px - px) ** 2 + (mark.py - py) ** 2; if (d < best) { best = d; near = mark; } }
      ring.setAttribute("visibility", near ? "visible" : "hidden");
      tip.hidden = !near;
      if (!near) return;
      ring.setAttribute("cx", near.px); ring.setAttribute("cy", near.py);
      const { one, i } = near, X = SHOWN[spec.xshown], Y = SHOWN[spec.yshown];
      const interval = one.low && one.low[i] !== null ? ` (95 %: ${Y(one.low[i])} to ${Y(one.high[i])})` : "";
      const beyond = one.supported && !one.supported[i] ? ", beyond the trace" : "";
      show(tip, event, `${one.name}: ${spec.xlabel} ${X(one.x[i])}, ${spec.ylabel} ${Y(one.y[i])}${interval}${beyond}`);
    };
    over.onpointerleave = () => { tip.hidden = true; ring.setAttribute("visibility", "hidden"); };
    over.onpointerdown = (event) => { from = place(event)[0]; over.setPointerCapture(event.pointerId); };
    over.onpointerup = (event) => {
      const to = place(event)[0];
      if (from !== null && Math.abs(to - from) > 8) { zoom = [x.value(Math.min(from, to)), x.value(Math.max(from, to))]; from = null; draw(); }
      from = null;
    };
    over.ondblclick = () => { zoom = null; draw(); };
  }
  draw();
  legend(spec, root, hidden, draw);
  if (spec.switches) switches(spec, root, draw);
  element("p", root, "Drag to zoom in, double-click to zoom out; the names switch their lines.").className = "hint";
}

function axes(svg, spec, x, y, H) {
  for (const v of y.ticks) {
    make("line", { x1: LEFT, x2: W - RIGHT, y1: y.at(v), y2: y.at(v), stroke: "#ddd" }, svg);
    make("text", { x: LEFT - 6, y: y.at(v) + 4, "text-anchor": "end" }, svg, SHOWN[spec.yshown](v));
  }
  for (const v of x.ticks) {
    make("line", { x1: x.at(v), x2: x.at(v), y1: H - BOTTOM, y2: H - BOTTOM + 4, stroke: "#555" }, svg);
    make("text", { x: x.at(v), y: H - BOTTOM + 17, "text-anchor": "middle" }, svg, SHOWN[spec.xshown](v));
  }
  make("line", { x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM, stroke: "#555" }, svg);
  make("text", { x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" }, svg, spec.xlabel);
  make("text", { transform: `translate(14 ${(TOP + H - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, svg, spec.ylabel);
}

function legend(spec, root, hidden, draw) {
  if (spec.series.length < 2) return;
  const list = element("div", root);
  list.className = "legend";
  spec.series.forEach((one, number) => {
    const button = element("button", list, one.name);
    button.style.borderBottom = `3px ${DASHES[number % DASHES.length] ? "dashed" : "solid"} ${COLOURS[number % COLOURS.length]}`;
    button.setAttribute("aria-pressed", "true");
    button.onclick = () => {
      if (!hidden.delete(one.name)) hidden.add(one.name);
      button.setAttribute("aria-pressed", String(!hidden.has(one.name)));
      draw();
    };
  });
}

// Sources that can be taken away: bit i of a combination's number is set where source i is gone.
function switches(spec, root, draw) {
  const list = element("fieldset", root);
  element("legend", list, "Without");
  const boxes = spec.switches.sources.map((name) => {
    const label = element("label", list), box = document.createElement("input");
    box.type = "checkbox";
    label.append(box, document.createTextNode(" " + name));
    return box;
  });
  list.onchange = () => {
    const gone = boxes.reduce((bits, box, i) => bits | (box.checked ? 1 << i : 0), 0);
    spec.series[spec.series.length - 1].y = spec.switches.slowdown_percent[gone];
    draw();
  };
}

function drawBars(spec, root, tip) {
  const name = 190, row = 24, H = TOP + row * spec.bars.length + BOTTOM;
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": spec.title }, root);
  const ends = spec.bars.flatMap((bar) => [bar.value, bar.low ?? bar.value, bar.high ?? bar.value]);
  const x = scale("linear", ...range([0, ...ends], "linear", true), name, W - RIGHT);
  const kinds = [...new Set(spec.bars.map((bar) => bar.kind))];
  for (const v of x.ticks) {
    make("line", { x1: x.at(v), x2: x.at(v), y1: TOP, y2: H - BOTTOM, stroke: "#ddd" }, svg);
    make("text", { x: x.at(v), y: H - BOTTOM + 17, "text-anchor": "middle" }, svg, SHOWN[spec.xshown](v));
  }
  make("text", { x: (name + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" }, svg, spec.xlabel);
  spec.bars.forEach((bar, i) => {
    const top = TOP + i * row + 4, zero = x.at(0), end = x.at(bar.value);
    const label = bar.name.length > 26 ? bar.name.slice(0, 25) + "…" : bar.name;
    make("text", { x: name - 8, y: top + 12, "text-anchor": "end" }, svg, label);
    const colour = COLOURS[1 + (kinds.indexOf(bar.kind) % (COLOURS.length - 1))];
    const drawn = make("rect", { x: Math.min(zero, end), y: top, width: Math.abs(end - zero), height: row - 8, fill: colour }, svg);
    if (bar.low !== undefined && bar.low !== null) make("line", { x1: x.at(bar.low), x2: x.at(bar.high), y1: top + 8, y2: top + 8, stroke: "#000", "stroke-width": 1.5 }, svg);
    drawn.onpointermove = (event) => show(tip, event, `${bar.name}${bar.kind ? ` (${bar.kind})` : ""}: ${SHOWN[spec.xshown](bar.value)}${bar.said ? "; " + bar.said : ""}`);
    drawn.onpointerleave = () => { tip.hidden = true; };
  });
}

function show(tip, event, text) {
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = Math.min(event.pageX + 12, document.documentElement.clientWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = event.pageY + 14 + "px";
}

const spec = JSON.parse(document.getElementById("spec").textContent);
const root = document.getElementById("chart"), tip = document.getElementById("tip");
element("h1", root, spec.title);
(spec.bars ? drawBars : drawXY)(spec, root, tip);
