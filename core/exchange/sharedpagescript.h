// SPDX-License-Identifier: GPL-3.0-or-later
// The page to share without its data (sharedpage.h): what stands before the step's numbers, and what draws them.
#pragma once

#include <string_view>

namespace pipewright {

inline constexpr std::string_view sharedPageHead = R"HTML(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Pipewright</title>
<style>
:root { color-scheme: light dark; }
body { margin: 0; background: var(--ground); color: var(--text); font: 14px/1.45 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: 4px 28px; align-items: baseline; padding: 14px 18px 10px; }
h1 { font-size: 18px; margin: 0; }
.fact { color: var(--dim); }
.fact b { color: var(--text); font-size: 16px; margin-left: 5px; }
.fact b.bad { color: var(--bad); }
main { display: flex; align-items: flex-start; gap: 14px; padding: 0 18px 18px; }
#chart { flex: 1; min-width: 0; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
canvas { display: block; width: 100%; touch-action: pan-y; cursor: grab; border-radius: 8px; outline: none; }
canvas:focus-visible { box-shadow: 0 0 0 2px var(--accent); }
aside { width: 320px; flex: none; background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  padding: 12px 14px; position: sticky; top: 10px; box-sizing: border-box; }
h2 { font-size: 15px; margin: 0 0 6px; }
table { border-collapse: collapse; width: 100%; margin: 6px 0; }
td, th { text-align: left; font-weight: normal; padding: 1px 0; color: var(--dim); }
td { text-align: right; color: var(--text); font-variant-numeric: tabular-nums; }
p { margin: 6px 0; }
button { font: inherit; background: none; color: var(--text); border: 1px solid var(--line); border-radius: 6px;
  padding: 2px 10px; cursor: pointer; }
button[aria-pressed=true] { border-color: var(--accent); color: var(--accent); }
button.link { border: 0; padding: 0; color: var(--accent); text-decoration: underline; }
#keys, #legend { color: var(--dim); padding: 0 18px 14px; }
#legend span { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin: 0 5px 0 14px; }
@media (max-width: 800px) {
  main { flex-direction: column; } aside { width: 100%; position: static; } #chart { width: 100%; }
}
</style>
</head>
<body>
<header id="head"></header>
<main>
<div id="chart"><canvas id="lanes" tabindex="0" role="img"></canvas></div>
<aside id="facts" aria-live="polite"></aside>
</main>
<div id="legend"></div>
<div id="keys">Wheel: zoom. Drag: move. Click a block: why it starts then. Arrow keys: move, and from block to block on
a device with Shift; + and - zoom, 0 shows the whole step.</div>
<script>
'use strict';
{
)HTML";

inline constexpr std::string_view sharedPageScript = R"HTML(
const night = matchMedia('(prefers-color-scheme: dark)');
const canvas = document.getElementById('lanes'), pen = canvas.getContext('2d');
const facts = document.getElementById('facts'), head = document.getElementById('head');
const many = step.devices.length > 24, name = 96, top0 = 26;
const lane = { block: many ? 18 : 28, moved: 7, memory: many ? 0 : 34, gap: 10 };
lane.height = lane.block + lane.moved + 3 + lane.memory + lane.gap;
let shown = 'predicted', colours, from = 0, to = 1, chosen = -1, chain = [];

const make = (tag, text, into, kind) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  if (into) into.append(element);
  return element;
};
const units = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']];
const time = ns => {
  const [size, unit] = units.find(([size]) => Math.abs(ns) >= size) || units[3];
  return (ns / size).toLocaleString('en', { maximumSignificantDigits: 4 }) + ' ' + unit;
};
const bytes = count => {
  let unit = 0;
  while (count >= 1024 && unit < 5) { count /= 1024; ++unit; }
  const words = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  return count.toLocaleString('en', { maximumSignificantDigits: 4 }) + ' ' + words[unit];
};
const share = part => (100 * part).toFixed(1) + ' %';
const line = shown => step[shown];
const now = () => line(shown);
const ran = (t, of = now()) => of.start[t] >= 0;
const whole = () => Math.max(step.predicted.length, step.measured ? step.measured.length : 0, 1);

// Per device the blocks, and what moves beside them, in the order of their starts.
const ordered = of => step.devices.map((_, d) => [0, 1].map(beside => {
  const tasks = [];
  for (let t = 0; t < of.start.length; ++t)
    if (step.device[t] === d && step.beside[t] === beside && of.start[t] >= 0) tasks.push(t);
  return tasks.sort((a, b) => of.start[a] - of.start[b] || a - b);
}));
const order = { predicted: ordered(step.predicted) };
if (step.measured) order.measured = ordered(step.measured);

const across = at => name + (at - from) / (to - from) * (canvas.clientWidth - name - 8);
const timeAt = x => from + (x - name) / (canvas.clientWidth - name - 8) * (to - from);
const top = d => top0 + d * lane.height;

function drawTasks(of, tasks, y, height, hollow) {
  let first = 0;
  for (let low = 0, high = tasks.length; low < high;) {
    const middle = low + high >> 1;
    if (of.end[tasks[middle]] < from) { low = middle + 1; first = low; } else high = middle;
  }
  let filled = -1;
  for (let i = Math.max(0, first - 2); i < tasks.length; ++i) {
    const t = tasks[i];
    if (of.start[t] > to) break;
    const left = Math.max(name, across(of.start[t])), right = Math.min(canvas.clientWidth - 8, across(of.end[t]));
    if (right < name || right < filled) continue; // before the left edge, or within a pixel that is painted
    const width = Math.max(right - left, 0.8);
    filled = right - left < 0.8 ? left + 0.8 : -1;
    if (hollow) {
      pen.strokeStyle = colours.text;
      pen.setLineDash([3, 2]);
      pen.strokeRect(left + 0.5, y + 0.5, Math.max(width - 1, 0.5), height - 1);
      pen.setLineDash([]);
      continue;
    }
    pen.fillStyle = colours.ops[step.op[t]];
    pen.fillRect(left, y, width > 3 ? width - 0.7 : width, height);
    if (height > 14 && width > 6 * step.label[t].length) {
      pen.fillStyle = colours.ink;
      pen.fillText(step.label[t], left + width / 2, y + height / 2 + 0.5);
    }
  }
}

function drawMemory(of, d, y) {
  const curve = of.devices[d].memory, limit = step.devices[d].limit;
  if (!lane.memory || curve.length === 0) return;
  const most = Math.max(of.devices[d].peak, limit) || 1, base = y + lane.memory;
  const height = count => count / most * (lane.memory - 3);
  pen.fillStyle = colours.held;
  pen.beginPath();
  pen.moveTo(name, base);
  let before = 0;
  for (let i = 0; i < curve.length; i += 2) {
    const x = Math.min(Math.max(across(curve[i]), name), canvas.clientWidth - 8);
    pen.lineTo(x, base - height(before));
    pen.lineTo(x, base - height(before = curve[i + 1]));
  }
  pen.lineTo(Math.min(across(whole()), canvas.clientWidth - 8), base - height(before));
  pen.lineTo(Math.min(across(whole()), canvas.clientWidth - 8), base);
  pen.fill();
  if (limit > 0) {
    pen.strokeStyle = of.devices[d].peak > limit ? colours.bad : colours.dim;
    pen.setLineDash([5, 3]);
    pen.beginPath();
    pen.moveTo(name, base - height(limit) + 0.5);
    pen.lineTo(canvas.clientWidth - 8, base - height(limit) + 0.5);
    pen.stroke();
    pen.setLineDash([]);
  }
}

function drawAxis(bottom) {
  const raw = (to - from) / Math.max(2, (canvas.clientWidth - name) / 110), size = 10 ** Math.floor(Math.log10(raw));
  const between = [1, 2, 5, 10].map(of => of * size).find(of => of >= raw) || raw;
  for (let at = Math.ceil(from / between) * between; at <= to; at += between) {
    const x = across(at);
    if (x < name - 0.5) continue;
    pen.fillStyle = colours.line;
    pen.fillRect(Math.round(x), top0 - 4, 1, bottom - top0);
    pen.fillStyle = colours.dim;
    pen.fillText(time(Math.round(at) || 0), x, 12);
  }
}

function outline(t, of, colour, thick) {
  if (!ran(t, of)) return;
  const beside = step.beside[t], y = top(step.device[t]) + (beside ? lane.block + 2 : 0);
  const height = beside ? lane.moved : lane.block;
  const left = Math.max(name, across(of.start[t])), right = Math.min(canvas.clientWidth - 8, across(of.end[t]));
  if (right < left) return;
  pen.strokeStyle = colour;
  pen.lineWidth = thick;
  pen.strokeRect(left, y, Math.max(right - left, 1), height);
  pen.lineWidth = 1;
}

function draw() {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = top0 + step.devices.length * lane.height;
  canvas.style.height = height + 'px';
  canvas.width = width * scale;
  canvas.height = height * scale;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  pen.textAlign = 'center';
  drawAxis(height);
  const both = shown === 'both', of = line(both ? 'measured' : shown);
  step.devices.forEach((device, d) => {
    const y = top(d);
    for (const beside of [0, 1]) {
      const place = beside ? y + lane.block + 2 : y, tall = beside ? lane.moved : lane.block;
      drawTasks(of, order[both ? 'measured' : shown][d][beside], place, tall, false);
      if (both && !beside) drawTasks(step.predicted, order.predicted[d][0], place, tall, true);
    }
    drawMemory(of, d, y + lane.block + lane.moved + 4);
    pen.textAlign = 'left';
    pen.fillStyle = colours.text;
    pen.fillText(device.name, 10, y + lane.block / 2);
    if (lane.memory && of.devices[d].peak > 0) {
      pen.fillStyle = device.limit > 0 && of.devices[d].peak > device.limit ? colours.bad : colours.dim;
      pen.fillText(bytes(of.devices[d].peak), 10, y + lane.block + lane.moved + lane.memory / 2);
    }
    pen.textAlign = 'center';
  });
  for (const t of chain) outline(t, of, colours.text, 1.5);
  if (chosen >= 0) outline(chosen, of, colours.accent, 2.5);
}

// --- words

const current = () => shown === 'both' ? step.measured : now();
const on = t => step.beside[t] ? step.label[t] : step.label[t] + ' on ' + step.devices[step.device[t]].name;
/// The block whose result a task waits for; of what moves, the one that made it.
function source(t, of) {
  let from = of.after[t];
  while (from >= 0 && step.beside[from] && of.after[from] >= 0) from = of.after[from];
  return from;
}
/// What decided when the block starts: the end before it on its device, or a result.
function cause(t, of) {
  const before = step.before[t], free = before >= 0 && ran(before, of) ? of.end[before] : 0, after = of.after[t];
  const ready = after >= 0 && ran(after, of) ? of.end[after] : 0;
  const idle = of.start[t] - free, from = source(t, of);
  return ready > free ? { by: from, result: true, idle, way: ran(from, of) ? ready - of.end[from] : 0 }
                      : { by: before, result: false, idle, way: 0 };
}
function link(t, into) {
  const button = make('button', step.label[t], into, 'link');
  button.onclick = () => choose(t, true);
}
function row(table, what, value) {
  const line = make('tr', undefined, table);
  make('th', what, line);
  make('td', value, line);
}

function explain(t) {
  const of = current();
  facts.replaceChildren();
  make('h2', on(t), facts);
  const table = make('table', undefined, facts);
  for (const [words, each] of [['predicted', step.predicted], ['measured', step.measured]]) {
    if (!each) continue;
    if (!ran(t, each)) { row(table, words, 'no record'); continue; }
    row(table, 'starts, ' + words, time(each.start[t]));
    row(table, 'takes, ' + words, time(each.end[t] - each.start[t]));
  }
  if (!ran(t, of)) return;
  const why = cause(t, of), words = make('p', undefined, facts);
  if (step.beside[t]) {
    if (why.by < 0) { words.append('It waits for no block.'); return; }
    words.append('It begins after the end of ');
    link(why.by, words);
    words.append(' on ' + step.devices[step.device[why.by]].name + '.');
  } else if (why.by < 0) {
    words.append(why.idle > 0 ? 'It begins after ' + time(why.idle) + ' of idle time, and waits for no other block.'
                              : 'It is the first of its device.');
  } else if (!why.result) {
    words.append(why.idle > 0 ? 'Its inputs were there. It begins ' + time(why.idle) + ' after '
                              : 'It follows at once ');
    link(why.by, words);
    words.append(' of the same device.');
  } else {
    words.append(why.idle > 0 ? 'Its device is idle for ' + time(why.idle) + ', until the result of '
                              : 'Just then arrives the result of ');
    link(why.by, words);
    words.append(' on ' + step.devices[step.device[why.by]].name + ' is there'
                 + (why.way > 0 ? ', ' + time(why.way) + ' of it on its way.' : '.'));
  }
  if (chain.length > 1) {
    const before = make('p', 'Before that: ', facts);
    chain.slice(1, 9).forEach((each, i) => {
      if (i > 0) before.append(', ');
      link(each, before);
    });
    before.append(chain.length > 9 ? ', \u2026' : '.');
  }
}

function tellDevice(d) {
  const of = current();
  facts.replaceChildren();
  make('h2', step.devices[d].name, facts);
  const table = make('table', undefined, facts);
  row(table, 'busy', time(of.devices[d].busy) + ', ' + share(of.devices[d].busy / of.length));
  if (of.devices[d].peak > 0) row(table, 'peak memory', bytes(of.devices[d].peak));
  if (step.devices[d].limit > 0) row(table, 'its memory', bytes(step.devices[d].limit));
  if (step.devices[d].held > 0) row(table, 'held all the time', bytes(step.devices[d].held));
  make('p', 'Idle', facts);
  const idle = make('table', undefined, facts);
  for (const [words, each] of of.devices[d].causes)
    if (each > 0) row(idle, words, time(each) + ', ' + share(each / of.length));
}

function tellStep() {
  facts.replaceChildren();
  make('h2', 'The step', facts);
  make('p', 'Click a block to read what it waits for, or a device\u2019s name for its memory and idle time.', facts);
  make('p', 'Predicted by: ' + step.costs, facts);
}

function showHead() {
  head.replaceChildren();
  make('h1', step.name, head);
  for (const [words, of] of [['predicted', step.predicted], ['measured', step.measured]]) {
    if (!of) continue;
    make('b', time(of.length), make('span', 'step, ' + words, head, 'fact'));
    make('b', share(of.idle), make('span', 'bubble', head, 'fact'));
  }
  const peaks = current().devices.map(each => each.peak), most = peaks.indexOf(Math.max(...peaks));
  if (peaks[most] > 0) {
    const limit = step.devices[most].limit, fact = make('span', 'peak', head, 'fact');
    const isOver = limit > 0 && peaks[most] > limit;
    make('b', bytes(peaks[most]) + (limit > 0 ? ' of ' + bytes(limit) : ''), fact, isOver ? 'bad' : '');
  }
  if (!step.measured) return;
  const choices = make('span', undefined, head);
  for (const [which, words] of [['predicted', 'Predicted'], ['measured', 'Measured'], ['both', 'Both']]) {
    const button = make('button', words, choices);
    button.setAttribute('aria-pressed', shown === which);
    button.onclick = () => { shown = which; choose(chosen, false); };
  }
}

// --- acts

function choose(t, follow) {
  chosen = t;
  chain = [];
  const of = current();
  for (let at = t; at >= 0 && ran(at, of) && chain.length < 60;) {
    at = cause(at, of).by;
    if (at >= 0) chain.push(at);
  }
  if (t >= 0 && follow && ran(t, of) && (of.start[t] < from || of.end[t] > to)) {
    const span = to - from;
    [from, to] = [Math.max(0, of.start[t] - span / 2), Math.max(0, of.start[t] - span / 2) + span];
  }
  showHead();
  if (t >= 0) explain(t); else tellStep();
  draw();
}
function zoom(by, at) {
  const span = Math.min(Math.max((to - from) * by, 20), whole() * 1.02), share = (at - from) / (to - from);
  from = Math.max(-0.01 * whole(), at - share * span);
  to = from + span;
  draw();
}
function move(by) {
  const span = to - from;
  from = Math.min(Math.max(from + by, -0.01 * whole()), whole() - span / 2);
  to = from + span;
  draw();
}
function taskAt(x, y) {
  const d = Math.floor((y - top0) / lane.height);
  if (d < 0 || d >= step.devices.length || x < name) return -1;
  const within = y - top(d), beside = within > lane.block ? 1 : 0, of = current(), at = timeAt(x);
  if (within > lane.block + lane.moved + 3) return -1;
  const slack = (to - from) / (canvas.clientWidth - name) * 2;
  let found = -1;
  for (const t of order[shown === 'both' ? 'measured' : shown][d][beside])
    if (of.start[t] - slack <= at && at <= of.end[t] + slack && (found < 0 || of.start[t] <= at)) found = t;
  return found;
}
let held = null;
canvas.onpointerdown = event => {
  held = { x: event.clientX, moved: 0 };
  canvas.setPointerCapture(event.pointerId);
};
canvas.onpointermove = event => {
  if (held) {
    move((held.x - event.clientX) / (canvas.clientWidth - name - 8) * (to - from));
    held.moved += Math.abs(held.x - event.clientX);
    held.x = event.clientX;
    return;
  }
  const box = canvas.getBoundingClientRect(), t = taskAt(event.clientX - box.left, event.clientY - box.top);
  canvas.title = t < 0 ? '' : on(t) + ', ' + time(current().end[t] - current().start[t]);
  canvas.style.cursor = t < 0 ? 'grab' : 'pointer';
};
canvas.onpointerup = event => {
  const clicked = held && held.moved < 4;
  held = null;
  if (!clicked) return;
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const d = Math.floor((y - top0) / lane.height);
  if (x < name && d >= 0 && d < step.devices.length) { choose(-1, false); tellDevice(d); return; }
  choose(taskAt(x, y), false);
};
canvas.addEventListener('wheel', event => {
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
    move((event.deltaX || event.deltaY) / 600 * (to - from));
  else
    zoom(Math.exp(event.deltaY / 500), timeAt(event.clientX - box.left));
}, { passive: false });
document.onkeydown = event => {
  const keys = { '+': () => zoom(0.7, (from + to) / 2), '-': () => zoom(1.4, (from + to) / 2), '0': fit,
    ArrowLeft: () => go(-1, event.shiftKey), ArrowRight: () => go(1, event.shiftKey),
    Escape: () => choose(-1, false) };
  if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
};
function go(by, toBlock) {
  if (!toBlock) { move(by * (to - from) / 8); return; }
  const lanes = order[shown === 'both' ? 'measured' : shown];
  if (chosen < 0) { if (lanes[0][0].length) choose(lanes[0][0][0], true); return; }
  const list = lanes[step.device[chosen]][step.beside[chosen]], next = list[list.indexOf(chosen) + by];
  if (next !== undefined) choose(next, true);
}
function fit() { from = -0.005 * whole(); to = 1.01 * whole(); draw(); }
function paint() {
  colours = night.matches ? step.dark : step.light;
  for (const key of ['ground', 'panel', 'line', 'text', 'dim', 'accent', 'bad'])
    document.documentElement.style.setProperty('--' + key, colours[key]);
  const legend = document.getElementById('legend'), used = new Set(step.op);
  legend.replaceChildren();
  const words = { F: 'forward', B: 'backward', I: 'input gradient', W: 'weight gradient', R: 'recomputation',
    U: 'update' };
  step.ops.forEach((op, i) => {
    if (!used.has(i)) return;
    make('span', undefined, legend).style.background = colours.ops[i];
    legend.append(words[op] ? op + ' ' + words[op] : op);
  });
  if (from < to) draw();
}
document.title = step.name + ' \u2013 Pipewright';
canvas.setAttribute('aria-label',
  'Timeline of ' + step.name + ': ' + step.devices.length + ' devices, step ' + time(step.predicted.length));
if (step.measured) shown = 'measured';
paint();
fit();
choose(-1, false);
night.addEventListener('change', paint);
addEventListener('resize', draw);
}
</script>
</body>
</html>
)HTML";

} // namespace pipewright
