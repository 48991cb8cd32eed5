// The timeline strip: one step of each program on one scale, from the JSON beside it.  This half draws.
"use strict";
const VERDICTS = ["inherent", "inflated", "induced"];
const TOP = 18, GAP = 12; // above and between lanes
const LEAST = 20000; // the whole step over the shortest view
const box = document.getElementById("strips");
const data = JSON.parse(document.getElementById("strip-data").textContent);
const stage = box.querySelector(".stage"), tip = box.querySelector(".tip"), told = box.querySelector(".told");
const phases = Object.keys(data);
const size = { compute: 12, talk: 24, lane: 48 };
const view = { phase: phases[0], group: 0, from: 0, to: 1, whole: 1, programs: [], at: null, colours: {} };

// Numbers as the rest of the page has them.
const digits = value => value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
const scaled = (value, units) => {
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit || (value && value < 1) ? digits(value) : value.toFixed(0)} ${units[unit]}`;
};
const time = ns => ns ? scaled(ns, ["ns", "µs", "ms", "s"]) : "0 s";
const bytes = count => count === null ? "–" : scaled(count, ["B", "kB", "MB", "GB", "TB", "PB"]);
const over = axes => axes === "" || axes === "?" ? "over unknown axes" : `over ${axes.split(",").join(" and ")}`;
const element = (name, words, style) => {
  const made = document.createElement(name);
  made.textContent = words || "";
  if (style) made.className = style;
  return made;
};

// Starts are told from the one before; from here on everything is in ns.
const opened = strip => {
  const unit = strip.unit_ns;
  const lanes = strip.lanes.map(lane => {
    const blocks = [], talks = [], { of, start, length, exposed, wait } = lane.talk;
    for (let at = 0, now = 0; at < lane.compute.length; at += 2) {
      now += lane.compute[at];
      blocks.push({ start: now * unit, end: (now + lane.compute[at + 1]) * unit });
    }
    for (let at = 0, now = 0; at < of.length; at += 1) {
      now += start[at];
      talks.push({ start: now * unit, end: (now + length[at]) * unit, exposed: exposed[at] * unit, of: of[at],
                   wait: wait && wait[at] * unit });
    }
    const longest = list => list.reduce((most, one) => Math.max(most, one.end - one.start), 0);
    return { name: lane.name, blocks, talks, longest: longest(talks), longestBlock: longest(blocks) };
  });
  return { ...strip, lanes };
};

// What can be looked at together: never what is modelled beside what is measured.
const groups = phase => {
  const found = [], all = data[phase], modelled = all.filter(one => one.source === "modelled");
  const add = (words, programs) => programs.length && found.push({ words, programs });
  add("modelled: the default programs", modelled.filter(one => one.default));
  if (modelled.some(one => !one.default)) add("modelled: with the controls", modelled);
  add("measured", all.filter(one => one.source !== "modelled"));
  return found;
};

const first = (list, time, longest) => { // the first that may reach that time
  let low = 0, high = list.length;
  while (low < high) { const mid = (low + high) >> 1; if (list[mid].start < time - longest) low = mid + 1; else high = mid; }
  return low;
};
const x = (program, time) => (time - view.from) / (view.to - view.from) * program.width;

const axis = (program, pen, height) => {
  const span = view.to - view.from, rough = span / Math.max(2, program.width / 110);
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(times => times * ten).find(one => one >= rough);
  const unit = view.to >= 1e6 ? [1e6, "ms"] : view.to >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const places = Math.max(0, -Math.floor(Math.log10(step / unit[0]) + 1e-9));
  pen.font = "12px system-ui, sans-serif";
  for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
    const left = Math.round(x(program, tick)) + 0.5;
    pen.fillStyle = view.colours.edge;
    pen.fillRect(left - 0.5, TOP - 4, 1, height);
    pen.fillStyle = view.colours.soft;
    pen.fillText(`${(tick / unit[0]).toFixed(places)} ${unit[1]}`, left + 3, TOP - 6);
  }
};

const bar = (program, pen, one, top, height, least) => {
  const left = x(program, one.start);
  pen.fillRect(left, top, Math.max(x(program, one.end) - left, least), height);
};

const draw = program => {
  const { canvas, lanes } = program, ratio = window.devicePixelRatio || 1, colours = view.colours;
  const width = canvas.clientWidth, height = TOP + lanes.length * size.lane;
  program.width = width;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.clearRect(0, 0, width, height);
  axis(program, pen, height);
  const ends = x(program, program.step_ns), begins = x(program, 0);
  lanes.forEach((lane, number) => {
    const top = TOP + number * size.lane, low = top + size.compute;
    pen.fillStyle = colours.panel;
    pen.fillRect(begins, low, ends - begins, size.talk);
    const seen = list => list.filter(one => one.end >= view.from && one.start <= view.to);
    const talks = seen(lane.talks), blocks = seen(lane.blocks);
    // What is too short to see is drawn at least as a line, unless there is so much that lines would fill the lane.
    const least = talks.length < width / 2 ? 1 : 0;
    for (const one of talks) {
      const found = program.collectives[one.of];
      let from = low;
      VERDICTS.forEach((verdict, place) => {
        const tall = size.talk * found[6][place];
        pen.fillStyle = colours[verdict];
        if (tall) bar(program, pen, one, from, tall, least);
        from += tall;
      });
      pen.fillStyle = colours.unknown;
      if (from === low) bar(program, pen, one, low, size.talk, least);
    }
    pen.fillStyle = colours.veil; // behind compute: hidden
    for (const one of blocks) bar(program, pen, one, low, size.talk, 0);
    pen.fillStyle = colours.compute;
    for (const one of blocks) bar(program, pen, one, top, size.compute, 0);
    for (const one of talks) named(program, pen, one, low);
    marked(program, lane, number, talks, pen, low);
  });
  pen.fillStyle = colours.ink;
  pen.fillRect(ends, TOP - 4, 1.5, height - TOP - GAP + 4);
};

// What it is, where there is room to say it.
const named = (program, pen, one, low) => {
  const left = Math.max(0, x(program, one.start)), right = Math.min(program.width, x(program, one.end));
  const [, kind, axes, , , verdict] = program.collectives[one.of], words = `${kind} ${axes}`;
  if (right - left < 46 || right - left < pen.measureText(words).width + 8) return;
  pen.fillStyle = verdict === "inflated" ? "#1c2128" : "#ffffff";
  pen.fillText(words, left + 4, low + size.talk / 2 + 2);
};

// The collective that is pointed at, in every place where it runs; and the one place.
const marked = (program, lane, number, talks, pen, low) => {
  const at = view.at;
  if (!at || at.program !== program || !at.talk) return;
  pen.fillStyle = view.colours.ink;
  for (const one of talks) if (one.of === at.talk.of) bar(program, pen, one, low + size.talk + 1, 3, 1);
  if (at.number !== number) return;
  const left = x(program, at.talk.start), right = Math.max(x(program, at.talk.end), left + 2);
  pen.strokeStyle = view.colours.ink;
  pen.lineWidth = 2;
  pen.strokeRect(left - 1, low - 1, right - left + 2, size.talk + 2);
};

let asked = 0;
const redraw = () => {
  if (asked) return;
  asked = requestAnimationFrame(() => { asked = 0; view.programs.forEach(draw); });
};
