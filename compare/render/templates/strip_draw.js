// The timeline strip: one step of each program on one scale, from the JSON beside it.  This half draws.
"use strict";
const VERDICTS = ["inherent", "inflated", "induced"];
const TOP = 18, GAP = 12; // pixels above and between lanes
const NARROW = 2, COLUMN = 4; // pixels below which pieces are added up, and of the columns in which they are
const HIDDEN = 0.35; // how pale what is hidden is
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

const first = (list, time, longest) => { // the first that may reach that time
  let low = 0, high = list.length;
  while (low < high) { const mid = (low + high) >> 1; if (list[mid].start < time - longest) low = mid + 1; else high = mid; }
  return low;
};

// A communication, cut where the device begins and ends to compute: what is exposed, and what is hidden.
const cut = (talk, blocks) => {
  const pieces = [];
  let now = talk.start;
  const add = (end, hidden) => { if (end > now) pieces.push({ start: now, end, of: talk.of, hidden }); now = Math.max(now, end); };
  for (let at = Math.max(0, first(blocks, talk.start, 0) - 1); at < blocks.length && blocks[at].start < talk.end; at += 1) {
    add(Math.min(blocks[at].start, talk.end), false);
    add(Math.min(blocks[at].end, talk.end), true);
  }
  add(talk.end, false);
  return pieces;
};

// Starts are told from the one before; from here on everything is in ns.
const opened = strip => {
  const unit = strip.unit_ns;
  const lanes = strip.lanes.map(lane => {
    const blocks = [], talks = [], { of, start, length, exposed, wait } = lane.talk;
    for (const [list, copies] of [[lane.compute, false], [lane.copies || [], true]])
      for (let at = 0, now = 0; at < list.length; at += 2) {
        now += list[at];
        blocks.push({ start: now * unit, end: (now + list[at + 1]) * unit, copies });
      }
    blocks.sort((one, two) => one.start - two.start);
    for (let at = 0, now = 0; at < of.length; at += 1) {
      now += start[at];
      talks.push({ start: now * unit, end: (now + length[at]) * unit, exposed: exposed[at] * unit, of: of[at],
                   wait: wait && wait[at] * unit });
    }
    const pieces = talks.flatMap(talk => cut(talk, blocks));
    const longest = list => list.reduce((most, one) => Math.max(most, one.end - one.start), 0);
    return { name: lane.name, blocks, talks, pieces, longest: longest(talks), longestBlock: longest(blocks) };
  });
  const parts = strip.collectives.map(one => one[6].some(Boolean) ? one[6].map((part, at) => [at, part]) : [[3, 1]]);
  return { ...strip, lanes, parts: parts.map(one => one.filter(([, part]) => part)) };
};

// What can be looked at together: never what is modelled beside what is measured.
const groups = phase => {
  const found = [], all = data[phase], modelled = all.filter(one => one.source === "modelled");
  const add = (words, programs) => programs.length && found.push({ words, programs });
  add("modelled: the default programs", modelled.filter(one => one.default));
  if (modelled.some(one => !one.default)) add("modelled: with the controls", modelled);
  const measured = all.filter(one => one.source !== "modelled");
  add(measured.every(one => one.on_cpu) ? "measured on CPU devices" : "measured", measured);
  return found;
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

// Pieces of a lane: each as high as its parts; those too narrow to see are added up, column by column, and are as
// high as the part of that time that they take.  A lane grows up or down from the line between compute and talk.
const paint = (program, pen, pieces, looks, partsOf, line, tall) => {
  const columns = Math.ceil(program.width / COLUMN), sums = new Float64Array(columns * looks.length);
  const fill = (look, left, from, wide, high) => {
    pen.globalAlpha = look.alpha;
    pen.fillStyle = look.colour;
    pen.fillRect(left, from, wide, high);
  };
  for (const piece of pieces) {
    const left = x(program, piece.start), right = x(program, piece.end);
    let from = line;
    for (const [look, part] of partsOf(piece)) {
      if (right - left >= NARROW) {
        fill(looks[look], left, from, right - left, tall * part);
        from += tall * part;
      } else for (let at = Math.max(0, Math.floor(left / COLUMN)); at < columns && at * COLUMN < right; at += 1)
        sums[at * looks.length + look] += (Math.min(right / COLUMN, at + 1) - Math.max(left / COLUMN, at)) * part;
    }
  }
  for (let at = 0; at < columns; at += 1) {
    const own = sums.subarray(at * looks.length, (at + 1) * looks.length);
    const most = Math.max(1, own.reduce((sum, one) => sum + one, 0));
    let from = line;
    own.forEach((one, look) => {
      const high = Math.sign(tall) * Math.max(1, Math.abs(tall) * one / most);
      if (one) fill(looks[look], at * COLUMN, from, COLUMN, high);
      if (one) from += high;
    });
  }
  pen.globalAlpha = 1;
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
  const verdicts = [...VERDICTS, "unknown"].map(name => colours[name]);
  const looks = [1, HIDDEN].flatMap(alpha => verdicts.map(colour => ({ colour, alpha })));
  lanes.forEach((lane, number) => {
    const low = TOP + number * size.lane + size.compute;
    pen.fillStyle = colours.panel;
    pen.fillRect(begins, low, ends - begins, size.talk);
    const seen = list => list.filter(one => one.end >= view.from && one.start <= view.to);
    const partsOf = piece => program.parts[piece.of].map(([look, part]) => [look + (piece.hidden ? 4 : 0), part]);
    paint(program, pen, seen(lane.pieces), looks, partsOf, low, size.talk);
    paint(program, pen, seen(lane.blocks), [{ colour: colours.compute, alpha: 1 }, { colour: colours.copies, alpha: 1 }],
          block => [[block.copies ? 1 : 0, 1]], low, -size.compute);
    const talks = seen(lane.talks);
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
