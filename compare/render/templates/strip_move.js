// The timeline strip, the half that moves: what the pointer, the wheel, keys and buttons do.
const lookAt = (from, to) => {
  const span = Math.min(view.whole, Math.max(to - from, view.whole / LEAST));
  const begin = Math.min(Math.max(0, from + (to - from - span) / 2), view.whole - span);
  view.from = begin;
  view.to = begin + span;
  stage.dataset.from = Math.round(view.from);
  stage.dataset.to = Math.round(view.to);
  redraw();
};
const zoom = (times, share) => {
  const middle = view.from + (view.to - view.from) * share, span = (view.to - view.from) / times;
  lookAt(middle - span * share, middle + span * (1 - share));
};
const pan = share => {
  const by = (view.to - view.from) * share;
  lookAt(view.from + by, view.to + by);
};

const lines = at => {
  if (!at.talk) return [`${at.block.copies ? "waits for a local copy" : "compute"}, ${time(at.block.end - at.block.start)}`, `starts at ${time(at.block.start)}`];
  const [name, kind, axes, scope, payload, verdict, parts] = at.program.collectives[at.talk.of], one = at.talk;
  const rest = one.end - one.start - one.exposed, hidden = rest < at.program.unit_ns / 2 ? 0 : rest; // but for rounding
  const split = VERDICTS.map((word, place) => parts[place] ? `${Math.round(parts[place] * 100)} % ${word}` : "").filter(Boolean);
  return [
    `${kind || "communication"} ${over(axes)}`, name, scope ? `in ${scope}` : "", `${bytes(payload)} payload`,
    `${time(one.end - one.start)}, starts at ${time(one.start)}`,
    `${time(one.exposed)} exposed, ${time(hidden)} hidden`,
    one.wait === null ? "" : `${time(one.wait)} of it waiting for other devices`,
    split.length > 1 ? split.join(", ") : verdict, at.program.lanes[at.number].name,
  ].filter(Boolean);
};

const show = (at, point) => {
  view.at = at;
  redraw();
  tip.hidden = !at;
  if (!at) return;
  tip.replaceChildren(...lines(at).map((words, row) => element(row ? "span" : "b", words)));
  const verdict = at.talk ? at.program.collectives[at.talk.of][5] : "compute";
  tip.dataset.verdict = verdict;
  const frame = stage.getBoundingClientRect(), beside = point.x - frame.left + 14;
  const left = beside + tip.offsetWidth > frame.width ? Math.max(0, beside - tip.offsetWidth - 28) : beside;
  tip.style.left = `${left}px`;
  tip.style.top = `${point.y - frame.top + 16}px`;
};

const under = event => {
  const program = view.programs.find(one => one.canvas === event.target);
  if (!program) return null;
  const place = program.canvas.getBoundingClientRect(), down = event.clientY - place.top - TOP;
  const number = Math.floor(down / size.lane), lane = program.lanes[number];
  if (!lane || down < 0) return null;
  const near = 3 * (view.to - view.from) / program.width; // three pixels
  const now = view.from + (event.clientX - place.left) / program.width * (view.to - view.from);
  const talks = down - number * size.lane >= size.compute, list = talks ? lane.talks : lane.blocks;
  let best = null, least = near;
  for (let at = first(list, now, (talks ? lane.longest : lane.longestBlock) + near); at < list.length; at += 1) {
    if (list[at].start > now + near) break;
    const off = Math.max(list[at].start - now, now - list[at].end, 0);
    if (off <= least) { best = list[at]; least = off; }
  }
  return best && { program, number, [talks ? "talk" : "block"]: best };
};

// From one collective to the next by key, in the lane that was looked at last.
const next = by => {
  const at = view.at && view.at.talk ? view.at : { program: view.programs[0], number: 0, talk: null };
  const list = at.program.lanes[at.number].talks;
  let place = at.talk ? list.indexOf(at.talk) + by : list.findIndex(one => one.end >= view.from);
  place = Math.min(Math.max(place, 0), list.length - 1);
  if (list[place]) point({ ...at, talk: list[place] });
};
const point = at => {
  const span = view.to - view.from, { start, end } = at.talk;
  if (start < view.from || end > view.to) lookAt((start + end - span) / 2, (start + end + span) / 2);
  const frame = at.program.canvas.getBoundingClientRect();
  show(at, { x: frame.left + Math.max(0, x(at.program, start)), y: frame.top + TOP + (at.number + 1) * size.lane - GAP });
  told.textContent = `${at.program.title} ${at.program.cell}: ${lines(at).join("; ")}`;
};

const colours = () => {
  const style = getComputedStyle(document.documentElement);
  for (const name of [...VERDICTS, "unknown", "compute", "copies", "ink", "soft", "edge", "panel"])
    view.colours[name] = style.getPropertyValue(`--${name}`).trim();
};

const programRow = strip => {
  const program = opened(strip), row = element("div", "", "program"), who = element("p", "", "who");
  who.append(element("b", program.title), " ", element("code", program.cell), ` ${time(program.step_ns)} a step, ${program.label}`);
  const names = element("div", "", "names");
  for (const lane of program.lanes) names.append(element("span", lane.name));
  for (const name of names.children) name.style.height = `${size.lane}px`;
  program.canvas = element("canvas");
  program.canvas.style.height = `${TOP + program.lanes.length * size.lane}px`;
  const rows = element("div", "", "rows");
  rows.append(names, program.canvas);
  row.append(who, rows);
  stage.insertBefore(row, tip);
  return program;
};

const choose = (phase, group) => {
  Object.assign(view, { phase, group, at: null });
  tip.hidden = true;
  told.textContent = "";
  stage.querySelectorAll(".program").forEach(one => one.remove());
  const found = groups(phase), lanes = found[group].programs.reduce((sum, one) => sum + one.lanes.length, 0);
  [size.compute, size.talk] = lanes > 4 ? [12, 24] : [16, 40];
  size.lane = size.compute + size.talk + GAP;
  view.programs = found[group].programs.map(programRow);
  view.whole = Math.max(...view.programs.map(one => one.step_ns), 1);
  box.querySelectorAll("[data-phase]").forEach(one => one.setAttribute("aria-pressed", one.dataset.phase === phase));
  const select = box.querySelector("select");
  select.replaceChildren(...found.map(one => element("option", one.words)));
  select.selectedIndex = group;
  select.parentElement.hidden = found.length < 2;
  lookAt(0, view.whole);
};

// A line of the list of waits shows where the longest of its collectives is.
const find = ({ phase, arm, cell, names }) => {
  const group = groups(phase).findIndex(one => one.programs.some(two => two.arm === arm && two.cell === cell));
  if (group < 0) return;
  choose(phase, group);
  const program = view.programs.find(one => one.arm === arm && one.cell === cell);
  let best = null;
  program.lanes.forEach((lane, number) => lane.talks.forEach(talk => {
    if (names.includes(program.collectives[talk.of][0]) && (!best || talk.exposed > best.talk.exposed)) best = { program, number, talk };
  }));
  if (!best) return;
  const { start, end } = best.talk, around = 4 * (end - start);
  lookAt(start - around, end + around);
  box.scrollIntoView({ block: "nearest" });
  point(best);
};

let drag = null, rested = false; // a page that scrolls by under the pointer does not zoom
stage.addEventListener("pointerdown", event => {
  if (event.button === 0 && event.target.tagName === "CANVAS") drag = { x: event.clientX, from: view.from, to: view.to };
});
stage.addEventListener("pointermove", event => {
  rested = true;
  if (drag) {
    const program = view.programs[0], by = (drag.x - event.clientX) / program.width * (drag.to - drag.from);
    if (Math.abs(drag.x - event.clientX) > 2) { tip.hidden = true; lookAt(drag.from + by, drag.to + by); }
  } else show(under(event), { x: event.clientX, y: event.clientY });
});
window.addEventListener("pointerup", () => { drag = null; });
window.addEventListener("scroll", () => { rested = false; }, { passive: true });
stage.addEventListener("pointerleave", () => { if (!drag) show(null); });
stage.addEventListener("wheel", event => {
  if (event.target.tagName !== "CANVAS" || !(rested || event.ctrlKey)) return;
  if (event.deltaY > 0 && view.to - view.from >= view.whole) return; // nothing left to zoom out of: the page scrolls
  event.preventDefault();
  const place = event.target.getBoundingClientRect();
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / place.width);
  else zoom(1.0015 ** -event.deltaY, (event.clientX - place.left) / place.width);
  show(under(event), { x: event.clientX, y: event.clientY });
}, { passive: false });

const does = {
  in: () => zoom(2, 0.5), out: () => zoom(0.5, 0.5), all: () => lookAt(0, view.whole), left: () => pan(-0.2),
  right: () => pan(0.2), next: () => next(1), back: () => next(-1), leave: () => show(null),
};
const keys = { "+": "in", "=": "in", "-": "out", "0": "all", Home: "all", ArrowLeft: "left", ArrowRight: "right",
               n: "next", p: "back", Escape: "leave" };
stage.addEventListener("keydown", event => {
  const name = keys[event.key];
  if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  does[name]();
});
box.querySelectorAll("[data-do]").forEach(one => one.addEventListener("click", does[one.dataset.do]));
box.querySelectorAll("[data-phase]").forEach(one => one.addEventListener("click", () => choose(one.dataset.phase, 0)));
box.querySelector("select").addEventListener("change", event => choose(view.phase, event.target.selectedIndex));
document.querySelectorAll("[data-show]").forEach(one => {
  one.hidden = false;
  one.addEventListener("click", () => find(JSON.parse(one.dataset.show)));
});
window.addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours(); redraw(); });

box.hidden = false;
colours();
choose(view.phase, 0);
