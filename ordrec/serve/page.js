// Search titles, rate a few, see the list change. The ratings live here, in `rated`, and are sent
// whole with every question: the server remembers nothing.
"use strict";

const WAIT = 120; // milliseconds after the last change before the server is asked
const SHOWN = 6; // titles found
const PAGE = 10, MOST = 50; // length of the list
const REASONS = 4;
const JUST = 4; // ratings before this place were given just now: the newest has place 1
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const $ = (id) => document.getElementById(id);
const SOURCES = {
  "all ratings": "the mean of all ratings",
  "this item": "what others think of this title",
  "you": "how you rate in general",
  "taste": "your taste as a whole",
  "others": "from more of your ratings",
};

let about; // of the model
let steps; // the values that can be given, lowest first
const rated = new Map(); // item -> {item, title, step}
let user = ""; // id of a user of the model whose list is shown in place of one's own
let length = PAGE;
let asked = 0; // number of the last question for a list

// ---- the server ---------------------------------------------------------------------------

async function ask(path, body) {
  const options = body && {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer: is ordrec serve still running?");
  }
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

function say(error) {
  $("problem").textContent = error ? error.message : "";
  $("problem").hidden = !error;
}

function later(step) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(() => step().catch(say), WAIT); };
}

// ---- elements -----------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "line", "text", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

const number = (value) => String(Math.round(value * 100) / 100);
// A probability that is not 0 or 1 is never written as if it were.
const percent = (p) => p > 0 && p < 0.01 ? "under 1 %" : p > 0.99 ? "over 99 %"
  : `${Math.round(100 * p)} %`;

// A rating as steps to click, with a slider inside for the keyboard and for screen readers.
function rateControl(item, title) {
  const slider = make("input", {
    type: "range", min: 0, max: steps.length, step: 1, "aria-label": `Your rating of ${title}`,
  });
  const bars = steps.map((_, k) => {
    const bar = make("span");
    bar.style.height = `${35 + 65 * (k + 1) / steps.length}%`;
    return bar;
  });
  const box = make("div", { class: steps.length > 12 ? "steps fine" : "steps" }, ...bars, slider);
  const output = make("output");
  const control = make("div", { class: "rate" }, box, output);
  const given = () => rated.get(item)?.step ?? 0;
  const show = (step) => {
    bars.forEach((bar, k) => bar.classList.toggle("on", k < step));
    output.textContent = step ? number(steps[step - 1]) : "";
    slider.setAttribute("aria-valuetext", step ? number(steps[step - 1]) : "not rated");
  };
  const stepAt = (event) => {
    const { left, width } = box.getBoundingClientRect();
    const step = Math.ceil(steps.length * (event.clientX - left) / width);
    return Math.min(steps.length, Math.max(1, step));
  };
  box.addEventListener("pointermove", (event) => show(stepAt(event)));
  box.addEventListener("pointerleave", () => show(given()));
  box.addEventListener("click", (event) => {
    if (event.target !== slider) rate(item, title, stepAt(event));
  });
  slider.addEventListener("input", () => rate(item, title, Number(slider.value), control));
  control.refresh = () => { slider.value = given(); show(given()); };
  control.focusSlider = () => slider.focus({ preventScroll: true });
  control.refresh();
  return control;
}

// Bars of a distribution; those of liked ratings are dark.
function chart(distribution) {
  const width = 120, height = 30, gap = distribution.length > 20 ? 0 : 1.5;
  const step = width / distribution.length, top = Math.max(...distribution, 1e-9);
  const words = about.scale.map((value, k) => `${number(value)}: ${percent(distribution[k])}`);
  const picture = make("svg", {
    class: "chart", viewBox: `0 0 ${width} ${height + 12}`, role: "img",
    "aria-label": `Probabilities of the ratings. ${words.reverse().join(", ")}`,
  });
  distribution.forEach((p, k) => {
    const tall = Math.max(0.6, height * p / top);
    const bar = make("rect", {
      x: k * step + gap / 2, y: height - tall, width: step - gap, height: tall, rx: 0.8,
      class: about.scale[k] >= about.like ? "liked" : "",
    }, make("title", {}, `${number(about.scale[k])}: ${percent(p)}`));
    picture.append(bar);
  });
  picture.append(
    make("line", { x1: 0, x2: width, y1: height + 0.5, y2: height + 0.5 }),
    make("text", { x: 0, y: height + 11 }, number(about.low)),
    make("text", { x: width, y: height + 11, "text-anchor": "end" }, number(about.high)),
  );
  return picture;
}

// ---- your ratings -------------------------------------------------------------------------

function titleRow(item, title) {
  const row = make("li", {}, make("span", { class: "title" }, title), rateControl(item, title));
  row.dataset.item = item;
  return row;
}

function rate(item, title, step, control) {
  user = $("user").value = ""; // whoever rates wants their own list
  rated.delete(item); // what is rated again becomes the newest
  if (step) rated.set(item, { item, title, step });
  const row = [...$("found").children, ...$("rated").children]
    .find((each) => each.dataset.item === String(item)) ?? titleRow(item, title);
  if (step && row.parentNode !== $("rated")) $("rated").prepend(row);
  if (!step) row.remove();
  row.lastChild.refresh();
  control?.refresh();
  control?.focusSlider(); // a moved element loses the focus
  if (!control?.isConnected && control) $("search").focus();
  $("forget").hidden = rated.size === 0;
  $("found").children.length < SHOWN && search();
  list();
}

const search = later(async () => {
  const text = $("search").value.trim();
  const n = Math.min(100, SHOWN + rated.size);
  const answer = await ask(`api/items?${new URLSearchParams({ q: text, n })}`);
  if (text !== $("search").value.trim()) return;
  const fresh = answer.items.filter(({ item }) => !rated.has(item)).slice(0, SHOWN);
  $("found").replaceChildren(...fresh.map(({ item, title }) => titleRow(item, title)));
  $("hint").textContent = !text ? "Well known, to begin with"
    : fresh.length ? "Found" : answer.items.length ? "You have rated all that was found"
      : "Nothing found: try fewer words";
});

// ---- the list -----------------------------------------------------------------------------

// The list comes first, since it is quick; the reasons follow.
const list = later(async () => {
  const own = ++asked;
  const ratings = [...rated.values()].map(({ item, step }) => ({ item, rating: steps[step - 1] }));
  const mine = { ratings, ordered: true };
  $("listed").setAttribute("aria-busy", "true");
  try {
    const answer = user ? await ask("api/recommend", { user, n: length })
      : await ask("api/fold-in", { ...mine, n: length });
    if (own !== asked) return; // a later question is on its way
    const { items, ordered_by: order } = answer;
    say(user && !answer.known_user
      ? new Error(`The model does not know ${user}: this is the list of somebody new.`) : null);
    show(items, order);
    if (!about.can.explain || !items.length) return;
    const ids = items.map(({ item }) => item);
    const explained = user ? await ask("api/recommend", { user, n: length, reasons: REASONS })
      : await ask("api/fold-in", { ...mine, items: ids, reasons: REASONS });
    if (own !== asked) return;
    items.forEach((row, place) => {
      row.reasons = explained.items[place].reasons;
      fill($("listed").children[place], row);
    });
  } finally {
    if (own === asked) $("listed").setAttribute("aria-busy", "false");
  }
});

function show(items, order) {
  const before = new Map([...$("listed").children].map((row, place) => [row.dataset.item, {
    place, top: row.getBoundingClientRect().top, open: row.firstChild.open,
  }]));
  const rows = items.map((row, place) => listRow(row, place, before));
  $("listed").replaceChildren(...rows);
  $("listed").setAttribute("aria-busy", "false");
  if (before.size && !calm.matches) rows.forEach((row) => slide(row, before.get(row.dataset.item)));
  $("list-title").textContent = user ? `For ${user}` : rated.size ? "For you" : "For anybody";
  const by = order === "expected" ? "Ordered by the expected rating alone. " : "";
  $("order").textContent = by + (user ? "A user of the model. Open a title to see why." : rated.size
    ? `From ${rated.size} rating${rated.size > 1 ? "s" : ""}. Open a title to see why.`
    : "Rate a few titles, and this list becomes yours.");
  $("more").hidden = items.length < length || length >= MOST;
  $("status").textContent = items.length ? `List changed. First: ${items[0].title}` : "Empty list";
}

function slide(row, old) {
  const from = old ? old.top - row.getBoundingClientRect().top : 0;
  const start = old ? { transform: `translateY(${from}px)` } : { opacity: 0 };
  if (!old || from) row.animate([start, { transform: "none", opacity: 1 }],
    { duration: 260, easing: "ease-out" });
}

function listRow(row, place, before) {
  const old = before.get(String(row.item));
  const moved = !before.size ? "" : !old ? "new" : old.place > place ? `▲${old.place - place}`
    : old.place < place ? `▼${place - old.place}` : "";
  const details = make("details", {}, make("summary", {},
    make("span", { class: "place" }, String(place + 1), make("span", { class: "moved" }, moved)),
    make("span", { class: "what" }, make("span", { class: "title" }, row.title),
      make("span", { class: "why" })),
    row.distribution ? chart(row.distribution) : make("span"),
    make("span", { class: "expected", title: "expected rating" },
      row.expected === null ? "" : row.expected.toFixed(1))));
  details.open = old?.open ?? false;
  details.append(make("div", { class: "details" }));
  const element = make("li", {}, details);
  element.dataset.item = row.item;
  fill(element, row);
  return element;
}

function fill(element, row) {
  element.querySelector(".why").textContent = shortReason(row.reasons);
  element.querySelector(".details").replaceChildren(...longReasons(row));
}

function shortReason(reasons) {
  if (!reasons) return ""; // they are on their way, or the model has none
  const taste = reasons.filter(({ why, source }) =>
    why === "like" && ["own rating", "taste", "others"].includes(source));
  if (taste.length && taste.reduce((sum, { contribution }) => sum + contribution, 0) <= 0) {
    return "why"; // their ratings speak against it: it is listed for other reasons
  }
  const own = reasons.filter((each) => each.source === "own rating" && each.contribution > 0);
  const [pick, like] = ["pick", "like"].map((kind) => own.filter(({ why }) => why === kind));
  const telling = pick.length ? pick : like;
  const liked = telling.filter(({ rating }) => rating >= about.like);
  const named = (liked.length ? liked : telling).slice(0, 2);
  if (!named.length) return "why";
  const just = named.every(({ place }) => place && place < JUST);
  const verb = just ? "just rated" : liked.length ? "liked" : "rated";
  return `because you ${verb} ${named.map(({ title }) => title).join(" and ")}`;
}

function longReasons(row) {
  const words = [];
  if (row.distribution) {
    const likely = row.distribution.reduce(
      (sum, p, k) => about.scale[k] >= about.like ? sum + p : sum, 0);
    words.push(`${percent(likely)} likely to get ${number(about.like)} or more from you.`);
  }
  if (row.p_pick !== null) words.push(`${percent(row.p_pick)} likely to be among your next picks.`);
  const parts = [make("p", {}, words.join(" "))];
  const sum = (row.reasons ?? []).filter(({ why }) => why === "like");
  if (sum.length) {
    const lines = sum.map(({ source, title, rating, contribution }) => make("tr", {},
      make("td", {}, signed(contribution, source)),
      make("td", {}, source === "own rating" ? `because you gave ${number(rating)} to ${title}`
        : SOURCES[source] ?? source)));
    lines.push(make("tr", { class: "sum" }, make("td", {}, row.expected.toFixed(2)),
      make("td", {}, "expected rating")));
    parts.push(make("table", {}, make("tbody", {}, ...lines)));
  }
  const control = rateControl(row.item, row.title);
  control.prepend(make("span", {}, "You know it?"));
  parts.push(control);
  return parts;
}

function signed(value, source) {
  const text = Math.abs(value).toFixed(2);
  return source === "all ratings" ? text : (value < 0 ? "−" : "+") + text;
}

// ---- beginning ----------------------------------------------------------------------------

async function begin() {
  about = await ask("api/model");
  steps = about.binned
    ? Array.from({ length: 21 }, (_, k) => about.low + k * (about.high - about.low) / 20)
    : about.scale;
  $("name").textContent = document.title = about.name;
  $("about").textContent = `${about.model} · learnt from ${about.n_users.toLocaleString("en")} people, ` +
    `${about.n_items.toLocaleString("en")} titles`;
  if (!about.can.fold_in) {
    throw new Error(`A ${about.model} cannot take in new people, so there is nothing to rate here: ` +
      "serve a recommender, or use the API.");
  }
  $("search").addEventListener("input", search);
  $("somebody").addEventListener("submit", (event) => {
    event.preventDefault(); // nothing is sent but the question below
    user = $("user").value.trim();
    length = PAGE;
    list();
  });
  $("more").addEventListener("click", () => { length = Math.min(MOST, length + PAGE); list(); });
  $("forget").addEventListener("click", () => {
    rated.clear();
    user = $("user").value = "";
    length = PAGE;
    $("rated").replaceChildren();
    $("forget").hidden = true;
    $("search").value = "";
    $("search").focus();
    search();
    list();
  });
  search();
  list();
}

begin().catch(say);
