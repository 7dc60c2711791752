"use strict";
// Everything that a click does on the page. What is shown comes from #data and goes into the page as text, never as markup;
// the two fragments of a live update are made and escaped by the program.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const live = document.body.dataset.live === "yes";
let data = JSON.parse($("data").textContent);
const state = { sort: null, down: false, words: [], cell: null, shown: 200, open: null, off: new Set() };

function make(tag, attributes = {}, ...children) {
  const element = ["svg", "g", "path", "text", "circle", "rect"].includes(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) element.append(child);
  return element;
}

// ---- numbers

const finite = (value) => typeof value === "number";  // "nan" and "inf" come as texts, what is absent as null

function digits(value) {
  if (value === null || value === undefined) return "";
  if (!finite(value)) return String(value);
  if (value !== 0 && Math.abs(value) < 5e-5) return value.toExponential(1);
  return Math.abs(value) >= 1e9 ? value.toExponential(4) : value.toFixed(4);
}

const powers = "⁰¹²³⁴⁵⁶⁷⁸⁹";
function tickText(value) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 1e-3 && size < 1e6) return (size >= 1e4 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(10)))).replace("-", "−");
  const exponent = Math.floor(Math.log10(size) + 1e-12), mantissa = Number((size / 10 ** exponent).toPrecision(3));
  return (value < 0 ? "−" : "") + (mantissa === 1 ? "" : mantissa + "×") + "10" + String(exponent).replace(/./g, (c) => (c === "-" ? "⁻" : powers[c]));
}

// An axis is [kind, low, high]; a place on it is 0 at low and 1 at high.
const place = ([kind, low, high], value) => (kind === "linear" ? (value - low) / (high - low) : Math.log(value / low) / Math.log(high / low));
const valueAt = ([kind, low, high], at) => (kind === "linear" ? low + at * (high - low) : low * (high / low) ** at);

function ticks([kind, low, high], count) {
  if (kind !== "linear" && high / low > 3) {
    const base = kind === "log2" ? 2 : 10, log = (v) => Math.log(v) / Math.log(base), found = [];
    const first = Math.floor(log(low)), last = Math.ceil(log(high)), stride = Math.max(1, Math.ceil((last - first) / count));
    for (let i = first; i <= last; i += stride)
      for (const factor of base === 10 && high < 100 * low ? [1, 2, 5] : [1]) found.push(factor * base ** i);
    const inside = found.filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
    if (inside.length > 1) return inside;
  }
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) found.push(Number((i * step).toPrecision(12)));
  return found;
}

// ---- figures: names toggle, a drag zooms, the nearest mark speaks

function showTip(text, event) {
  const tip = $("tip");
  tip.textContent = text;
  tip.hidden = false;
  const wide = tip.offsetWidth;
  tip.style.left = Math.min(event.clientX + 14, window.innerWidth - wide - 8) + "px";
  tip.style.top = event.clientY + 16 + "px";
}
const hideTip = () => { $("tip").hidden = true; };

function axisGroup(group, box, axis, horizontal, labelled) {
  group.replaceChildren();
  const [x, y, w, h] = box;
  for (const value of ticks(axis, horizontal ? Math.max(2, Math.floor(w / 55)) : Math.max(3, Math.floor(h / 30)))) {
    const at = place(axis, value);
    if (horizontal) {
      const left = x + w * at;
      group.append(make("path", { d: `M${left} ${y + h}v3.5`, stroke: "#444", "stroke-width": ".8" }));
      if (labelled) group.append(make("text", { x: left, y: y + h + 15, "font-size": 10.5, fill: "#444", "text-anchor": "middle" }, tickText(value)));
    } else {
      const top = y + h * (1 - at);
      group.append(make("path", { d: `M${x} ${top}h${w}`, stroke: "#e4e4e4", "stroke-width": ".7" }));
      if (labelled) group.append(make("text", { x: x - 7, y: top + 3.6, "font-size": 10.5, fill: "#444", "text-anchor": "end" }, tickText(value)));
    }
  }
}

class Figure {
  constructor(svg) {
    this.svg = svg;
    const { x, y } = JSON.parse(svg.dataset.chart);
    this.axes = { x, y };
    this.view = [0, 1, 0, 1];  // of the axes: left, right, bottom, top
    this.panels = [...svg.querySelectorAll(".panel")].map((element) => ({
      element, box: element.dataset.box.split(" ").map(Number), marks: element.querySelector(".marks"),
      xaxis: element.querySelector(".xaxis"), yaxis: element.querySelector(".yaxis"),
      original: [element.querySelector(".xaxis").innerHTML, element.querySelector(".yaxis").innerHTML],
      points: [...element.querySelectorAll(".mark, .ring")].map((mark) => {
        const [, left, top] = /translate\(([-\d.]+)[ ,]([-\d.]+)\)/.exec(mark.getAttribute("transform"));
        return { mark, x: Number(left), y: Number(top), tip: takeTitle(mark), series: mark.closest(".series") };
      }) }));
    for (const key of svg.querySelectorAll(".key")) {
      key.addEventListener("click", (event) => { event.stopPropagation(); this.toggle(key.dataset.series); });
      key.addEventListener("mouseenter", () => this.highlight(key.dataset.series));
      key.addEventListener("mouseleave", () => this.highlight(null));
      if (state.off.has(svg.id + " " + key.dataset.series)) this.mark(key.dataset.series, true);
    }
    svg.addEventListener("mousemove", (event) => this.move(event));
    svg.addEventListener("mouseleave", () => { hideTip(); this.highlight(null); });
    svg.addEventListener("mousedown", (event) => this.begin(event));
    svg.addEventListener("dblclick", () => { this.view = [0, 1, 0, 1]; this.draw(); });
  }
  mark(series, off) {
    for (const part of this.svg.querySelectorAll(`[data-series="${series}"]`)) part.classList.toggle("off", off);
  }
  toggle(series) {
    const name = this.svg.id + " " + series;
    state.off.has(name) ? state.off.delete(name) : state.off.add(name);
    this.mark(series, state.off.has(name));
  }
  highlight(series) {
    for (const part of this.svg.querySelectorAll(".series")) part.classList.toggle("dim", series !== null && part.dataset.series !== String(series));
  }
  at(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const panel = this.panels.find(({ box: [x, y, w, h] }) => point.x >= x - 7 && point.x <= x + w + 7 && point.y >= y - 7 && point.y <= y + h + 7);
    return { point, panel };
  }
  scale([x, y, w, h]) {
    const [u0, u1, v0, v1] = this.view, sx = 1 / (u1 - u0), sy = 1 / (v1 - v0);
    return { sx, sy, tx: x - (x + w * u0) * sx, ty: y + h - (y + h - h * v0) * sy };
  }
  move(event) {
    if (this.drag) return this.stretch(event);
    const { point, panel } = this.at(event);
    let best = null, least = 24;
    if (panel) {
      const { sx, sy, tx, ty } = this.scale(panel.box);
      for (const candidate of panel.points) {
        if (!candidate.tip || candidate.series.classList.contains("off")) continue;
        const distance = Math.hypot(candidate.x * sx + tx - point.x, candidate.y * sy + ty - point.y);
        if (distance < least) { least = distance; best = candidate; }
      }
    }
    this.highlight(best ? best.series.dataset.series : null);
    best ? showTip(best.tip, event) : hideTip();
  }
  begin(event) {
    const { point, panel } = this.at(event);
    if (!panel || event.button !== 0) return;
    event.preventDefault();
    this.drag = { panel, from: point, box: this.svg.appendChild(make("rect", { class: "zoombox" })) };
    const end = (last) => { window.removeEventListener("mouseup", end); this.end(last); };
    window.addEventListener("mouseup", end);
  }
  stretch(event) {
    hideTip();
    const { point } = this.at(event), { panel, from, box } = this.drag, [x, y, w, h] = panel.box;
    const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
    const a = [clamp(from.x, x, x + w), clamp(from.y, y, y + h)], b = [clamp(point.x, x, x + w), clamp(point.y, y, y + h)];
    this.drag.area = [Math.min(a[0], b[0]), Math.max(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[1], b[1])];
    const [l, r, t, bottom] = this.drag.area;
    for (const [name, value] of Object.entries({ x: l, y: t, width: r - l, height: bottom - t })) box.setAttribute(name, value);
  }
  end() {
    const { panel, area, box } = this.drag;
    box.remove();
    this.drag = null;
    if (!area || area[1] - area[0] < 6 || area[3] - area[2] < 6) return;
    const [x, y, w, h] = panel.box, [u0, u1, v0, v1] = this.view;
    const u = (left) => u0 + ((left - x) / w) * (u1 - u0), v = (top) => v0 + (1 - (top - y) / h) * (v1 - v0);
    this.view = [u(area[0]), u(area[1]), v(area[3]), v(area[2])];
    this.draw();
  }
  draw() {
    const [u0, u1, v0, v1] = this.view, whole = u0 === 0 && u1 === 1 && v0 === 0 && v1 === 1;
    const part = (axis, from, to) => [axis[0], valueAt(axis, from), valueAt(axis, to)];
    for (const panel of this.panels) {
      const { sx, sy, tx, ty } = this.scale(panel.box);
      panel.marks.setAttribute("transform", `matrix(${sx} 0 0 ${sy} ${tx} ${ty})`);
      for (const { mark, x, y } of panel.points) mark.setAttribute("transform", `translate(${x} ${y}) scale(${1 / sx} ${1 / sy})`);
      for (const label of panel.element.querySelectorAll(".guide-label")) label.style.display = whole ? "" : "none";
      if (whole) {
        [panel.xaxis.innerHTML, panel.yaxis.innerHTML] = panel.original;
      } else {
        axisGroup(panel.xaxis, panel.box, part(this.axes.x, u0, u1), true, panel.original[0].includes("<text"));
        axisGroup(panel.yaxis, panel.box, part(this.axes.y, v0, v1), false, panel.original[1].includes("<text"));
      }
    }
  }
}

// A title would show a second, slower tip.
function takeTitle(mark) {
  const title = mark.querySelector("title");
  if (!title) return "";
  title.remove();
  mark.setAttribute("aria-label", title.textContent);
  return title.textContent;
}

function saveSvg(figure) {
  const text = new XMLSerializer().serializeToString(figure.querySelector("svg"));
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "image/svg+xml" })), download: `${data.name}-${figure.id}.svg` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function wakeFigures() {
  for (const svg of document.querySelectorAll("figure svg")) {
    if (svg.dataset.chart) {
      new Figure(svg);
    } else {
      for (const mark of svg.querySelectorAll(".mark")) {
        const tip = takeTitle(mark);
        mark.addEventListener("mousemove", (event) => showTip(tip, event));
        mark.addEventListener("mouseleave", hideTip);
      }
    }
  }
  for (const button of document.querySelectorAll("figure .save")) button.addEventListener("click", () => saveSvg(button.closest("figure")));
}

// ---- trials

const labelOf = (trial, axis) => data.axes[axis].labels[trial.a[axis]];
const nameOf = (trial) => data.axes.map((axis, i) => (axis.path ? axis.name + " " : "") + labelOf(trial, i)).join(" / ");
function indexOf(trial, role) {
  return data.axes.reduce((index, axis, i) => (axis.role === role ? index * axis.labels.length + trial.a[i] : index), 0);
}

function columns() {
  const found = data.axes.map((axis, i) => ({
    head: axis.path || axis.name, text: (t) => labelOf(t, i), key: (t) => (axis.numbers ? Number(labelOf(t, i)) : t.a[i]) }));
  found.push({ head: "status", text: (t) => t.s, key: (t) => t.s, mark: (t) => t.s !== "done" && t.s !== "excluded" });
  data.reported.forEach((head, i) => { if (data.columns.includes(i)) found.push({ head, text: (t) => digits(t.r[i]), key: (t) => t.r[i] }); });
  if (data.selected) found.push({ head: data.selected, text: (t) => digits(t.v), key: (t) => t.v });
  found.push({ head: "counts", text: (t) => (t.c ? "reported" : t.s === "excluded" ? "" : "no"), key: (t) => t.c || 0 });
  found.push({ head: "ms/step", text: (t) => (finite(t.t) ? t.t.toFixed(1) : ""), key: (t) => t.t });
  found.push({ head: "parameters", text: (t) => (t.p ? t.p.toLocaleString("en-US") : ""), key: (t) => t.p });
  found.push({ head: "id", text: (t) => t.i.slice(0, 8), key: (t) => t.i });
  return found;
}

// Of a cell; of a whole row where there is no column.
const within = (trial, row, column) => indexOf(trial, "row") === row && (column === null || indexOf(trial, "column") === column);

function matching() {
  return data.trials.filter((t) => {
    if (state.cell && !within(t, state.cell.row, state.cell.column)) return false;
    if (state.cell && state.cell.reported && !t.c) return false;
    if (state.words.length === 0) return true;
    const text = `${nameOf(t)} ${t.s} ${t.m || ""} ${t.i}`.toLowerCase();
    return state.words.every((word) => text.includes(word));
  });
}

function compare(a, b) {
  const none = (v) => v === null || v === undefined || v === "";
  if (none(a) || none(b)) return none(a) - none(b);
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return finite(a) ? -1 : 1;
}

// A long name may go on in another line, after a full stop or before what follows it.
const breakable = (name) => name.split(/(?<=\.)|(?=[_@])/).flatMap((part, i) => (i === 0 ? [part] : [make("wbr"), part]));

function renderTrials() {
  const table = $("trial-table"), heads = columns(), found = matching();
  if (state.sort !== null && heads[state.sort]) {
    const key = heads[state.sort].key;
    found.sort((a, b) => compare(key(a), key(b)) * (state.down ? -1 : 1));
  }
  table.tHead.replaceChildren(make("tr", {}, ...heads.map((column, i) => {
    const cell = make("th", { scope: "col" }, ...breakable(column.head));
    if (state.sort === i) cell.dataset.sort = state.down ? "-1" : "1";
    cell.addEventListener("click", () => { state.down = state.sort === i && !state.down; state.sort = i; renderTrials(); });
    return cell;
  })));
  table.tBodies[0].replaceChildren(...found.slice(0, state.shown).map((trial) => {
    const row = make("tr", { "data-id": trial.i, tabindex: "0" }, ...heads.map((column) => {
      const cell = make("td", column.mark && column.mark(trial) ? { class: "bad", title: trial.m || "" } : {}, column.text(trial));
      return cell;
    }));
    if (state.open === trial.i) row.classList.add("open");
    return row;
  }));
  $("count").textContent = `${found.length.toLocaleString("en-US")} of ${data.trials.length.toLocaleString("en-US")} trials`;
  $("more").hidden = found.length <= state.shown;
  $("more").textContent = `show ${Math.min(1000, found.length - state.shown).toLocaleString("en-US")} more`;
  const chip = $("cell-filter");
  chip.replaceChildren();
  if (!state.cell) return;
  const button = make("button", { class: "chip" }, `${state.cell.name}${state.cell.reported ? ", what is reported" : ", all candidates"} ×`);
  button.addEventListener("click", () => { state.cell = null; renderTrials(); });
  const other = make("button", { class: "chip" }, state.cell.reported ? "show all candidates" : "show what is reported");
  other.addEventListener("click", () => { state.cell.reported = !state.cell.reported; renderTrials(); });
  chip.append(button, other);
}

function showCell(row, column, candidates) {
  const of = (role) => data.trials.find((t) => indexOf(t, role) === (role === "row" ? row : column));
  const label = (trial, role) => data.axes.map((axis, i) => (axis.role === role ? labelOf(trial, i) : null)).filter((text) => text !== null).join(" / ");
  const roles = column === null ? ["row"] : ["row", "column"];
  const name = roles.map((role) => label(of(role), role)).filter((text) => text !== "").join(" on ") || data.name;
  const reported = !candidates && data.trials.some((t) => t.c && within(t, row, column));
  Object.assign(state, { cell: { row, column, name, reported }, words: [], shown: 200 });
  $("filter").value = "";
  renderTrials();
  $("trials").scrollIntoView({ block: "start" });
}

// ---- one trial

function curve(title, kind, lines, more) {
  const points = lines.flatMap((line) => line.points).filter(([, y]) => finite(y) && (kind === "linear" || y > 0));
  if (points.length < 2) return null;
  const ys = points.map((p) => p[1]), xs = points.map((p) => p[0]);
  const y = more ? ["linear", 0, 1] : [kind, Math.min(...ys), Math.max(...ys)];
  if (y[1] === y[2]) { y[1] *= 0.9; y[2] = y[2] * 1.1 || 1; }
  const x = ["linear", 0, Math.max(...xs)], box = [52, 26, lines.length > 1 ? 420 : 505, 150], [left, top, w, h] = box;
  const svg = make("svg", { viewBox: "0 0 570 218", "font-family": "Helvetica, Arial, sans-serif", class: "trial-curve" });
  svg.append(make("text", { x: left, y: 12, "font-size": 11, "font-weight": 600, fill: "#222" }, title));
  const axes = [make("g"), make("g")];
  axisGroup(axes[0], box, y, false, true);
  axisGroup(axes[1], box, x, true, true);
  svg.append(...axes, make("path", { d: `M${left} ${top + h}h${w}`, stroke: "#444", "stroke-width": ".8" }));
  svg.append(make("text", { x: left + w / 2, y: top + h + 32, "font-size": 11, fill: "#222", "text-anchor": "middle" }, "step"));
  const colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444"];
  let free = -1e9;
  const ends = [];
  lines.forEach((line, i) => {
    let path = "", broken = true, last = null;
    for (const [px, py] of line.points) {
      const good = finite(py) && (y[0] === "linear" || py > 0);
      if (good) { last = [left + w * place(x, px), top + h * (1 - place(y, py))]; path += (broken ? "M" : "L") + last.map((v) => v.toFixed(1)).join(" "); }
      broken = !good;
    }
    svg.append(make("path", { d: path, fill: "none", stroke: colours[i % 7], "stroke-width": 1.4, "stroke-linejoin": "round" }));
    if (last) ends.push({ at: last[1], name: line.name, colour: colours[i % 7] });
  });
  if (lines.length > 1) for (const end of ends.sort((a, b) => a.at - b.at)) {
    const at = Math.max(end.at, free + 12.5);
    free = at;
    svg.append(make("path", { d: `M${left + w + 4} ${end.at}L${left + w + 13} ${at}`, stroke: end.colour, fill: "none" }));
    svg.append(make("text", { x: left + w + 16, y: at + 3.6, "font-size": 10.5, fill: "#222" }, end.name));
  }
  return svg;
}

function evalCurves(trial) {
  const groups = new Map();
  for (const [series, grid, values] of trial.x || []) {
    const name = data.series[series], metric = name.split("@")[0], slice = name.split("@")[1] || "all";
    if (values.length < 2) continue;
    if (!groups.has(metric)) groups.set(metric, []);
    groups.get(metric).push({ name: slice === "all" ? "all" : "at " + slice, points: values.map((v, i) => [data.grids[grid][i], v]) });
  }
  return [...groups].map(([metric, lines]) => {
    const more = metric.endsWith("accuracy");
    return curve(metric + (lines.length === 1 && lines[0].name !== "all" ? " " + lines[0].name : ""), more ? "linear" : "log10", lines, more);
  }).filter(Boolean);
}

function pairs(entries) {
  return make("table", {}, make("tbody", {}, ...entries.map(([name, value, own]) => make("tr", own ? { class: "own" } : {}, make("td", {}, name), make("td", {}, value)))));
}

// What most trials have in common, with what is this one's own in its place.
function merged(common, own) {
  const all = { ...common, ...own };
  return Object.keys(all).sort().filter((key) => all[key] !== null || !(key in (own || {}))).map((key) => [key, all[key], own && key in own]);
}

function nested(trial) {
  const spec = {};
  for (const [path, text] of merged(data.spec, trial.d)) {
    const keys = path.split("."), last = keys.pop();
    let at = spec;
    for (const key of keys) at = at[key] ??= {};
    at[last] = JSON.parse(text);
  }
  return spec;
}

function openTrial(id) {
  const trial = data.trials.find((t) => t.i === id && id !== "");
  if (!trial) return;
  state.open = id;
  const drawer = $("drawer"), close = make("button", { class: "close", "aria-label": "close" }, "×");
  close.addEventListener("click", closeTrial);
  const parts = [close, make("h2", {}, nameOf(trial)), make("p", { class: "hash" }, trial.i)];
  const ended = make("p", {}, make("b", trial.s === "done" ? {} : { class: "bad" }, trial.s), trial.m ? ": " + trial.m : "",
    trial.c ? "; its number is in the table" : trial.s === "done" ? "; its number is not in the table" : "", trial.f ? "; a fresh one of the confirmation" : "");
  parts.push(ended);
  if (trial.l) {
    const steps = trial.l[0].reduce((all, d) => [...all, (all.at(-1) || 0) + d], []);
    parts.push(curve("training loss (nats per token)", "log10", [{ name: "loss", points: steps.map((step, i) => [step, trial.l[1][i]]) }], false));
    if (trial.l[2]) parts.push(make("p", { class: "small" }, `${steps.length} of ${trial.l[2].toLocaleString("en-US")} logged steps: the lowest and the highest of each span`));
  }
  parts.push(...evalCurves(trial));
  const numbers = data.reported.map((name, i) => [name, digits(trial.r[i])]).filter(([, value]) => value !== "");
  if (data.selected && trial.v !== null) numbers.unshift([data.selected + ", it was judged by", digits(trial.v)]);
  data.summary.forEach((name, i) => { if (trial.u && trial.u[i] !== null) numbers.push([name, finite(trial.u[i]) ? String(Number(trial.u[i].toPrecision(6))) : String(trial.u[i])]); });
  if (numbers.length) parts.push(make("h3", {}, "numbers"), pairs(numbers));
  if (trial.g) {
    const last = trial.g.map(([series, value]) => [data.series[series], digits(value)]);
    parts.push(make("details", {}, make("summary", {}, "every evaluation at the last step"), pairs(last)));
  }
  const place = data.folder + "/" + trial.i;
  parts.push(make("h3", {}, "rerun"), make("pre", {}, `phasor run ${place}.json --out ${data.folder} --force\nphasor logs ${data.folder} ${trial.i.slice(0, 8)}`));
  if (trial.o) {
    parts.push(make("h3", {}, "log"));
    const href = live ? "logs/" + trial.i : trial.o[0];
    if (href) parts.push(make("p", {}, make("a", { href, target: "_blank", rel: "noopener" }, trial.o[0])));
    if (trial.o[1]) parts.push(make("pre", {}, trial.o[1]));
  }
  if (trial.d) {
    parts.push(make("h3", {}, "spec; bold: not as in most trials"), pairs(merged(data.spec, trial.d)));
    const copy = make("button", { class: "as-link" }, "save as JSON, to run it from this report alone");
    copy.addEventListener("click", () => {
      const link = make("a", { href: URL.createObjectURL(new Blob([JSON.stringify(nested(trial), null, 2) + "\n"], { type: "application/json" })), download: trial.i + ".json" });
      link.click();
    });
    parts.push(copy);
    parts.push(make("h3", {}, "provenance"), pairs(merged(data.facts, trial.e).map(([name, value, own]) => [name, value.replaceAll("{id}", trial.i), own])));
  }
  drawer.replaceChildren(...parts.filter(Boolean));
  drawer.hidden = false;
  drawer.scrollTop = 0;
  for (const row of document.querySelectorAll("#trial-table tr[data-id]")) row.classList.toggle("open", row.dataset.id === id);
  history.replaceState(null, "", "#trial=" + id);
}

function closeTrial() {
  state.open = null;
  $("drawer").hidden = true;
  for (const row of document.querySelectorAll("#trial-table tr.open")) row.classList.remove("open");
  history.replaceState(null, "", location.pathname + location.search);
}

// ---- the page

function wake() {
  wakeFigures();
  for (const button of document.querySelectorAll("button[data-cell]")) {
    const [row, column] = button.dataset.cell.split(",").map((place) => (place === "*" ? null : Number(place)));
    button.addEventListener("click", () => showCell(row, column, "candidates" in button.dataset));
  }
  for (const button of document.querySelectorAll("button[data-trial]")) button.addEventListener("click", () => openTrial(button.dataset.trial));
  renderTrials();
}

$("trial-table").addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-id]");
  if (row) openTrial(row.dataset.id);
});
$("trial-table").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.dataset.id) openTrial(event.target.dataset.id);
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("drawer").hidden) closeTrial(); });
$("filter").addEventListener("input", (event) => {
  state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  state.shown = 200;
  renderTrials();
});
$("more").addEventListener("click", () => { state.shown += 1000; renderTrials(); });

async function poll() {
  try {
    const answer = await fetch("data.json", { headers: { "If-None-Match": data.version }, cache: "no-store" });
    if (answer.status === 200) {
      const found = await answer.json();
      data = found.data;
      $("top").innerHTML = found.top;
      $("bottom").innerHTML = found.bottom;
      wake();
      if (state.open) openTrial(state.open);
    }
    const clock = $("live-state");
    if (clock) clock.textContent = answer.ok || answer.status === 304 ? "live" : "the server answered " + answer.status;
  } catch (error) {
    const clock = $("live-state");
    if (clock) clock.textContent = "no answer from phasor serve; what is shown is what it last sent";
  }
  setTimeout(poll, 2000);
}

wake();
const wanted = /^#trial=([0-9a-f-]+)$/.exec(location.hash);
if (wanted) openTrial(wanted[1]);
if (live) setTimeout(poll, 1000);
