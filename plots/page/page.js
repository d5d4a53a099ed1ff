// Draws the page's charts when they come into view, and lets the arrow keys read their points.
"use strict";
(() => {
  const digits = (value) => {
    if (typeof value !== "number" || Number.isInteger(value)) return String(value);
    return Math.abs(value) >= 1e6 ? value.toExponential(3) : String(Number(value.toPrecision(4)));
  };

  const say = (rows, fields, at) => `${at + 1} of ${rows.length}: ` + fields
    .filter((field) => rows[at][field] !== undefined && rows[at][field] !== null && rows[at][field] !== "")
    .map((field) => `${field.replaceAll("_", " ")} ${digits(rows[at][field])}`).join(", ");

  const walk = (place, rows, fields) => {
    const out = document.getElementById(`${place.dataset.chart}-point`);
    let at = -1;
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    place.addEventListener("keydown", (event) => {
      if (event.target !== place || rows.length === 0) return;
      if (event.key === "Home") at = 0;
      else if (event.key === "End") at = rows.length - 1;
      else if (event.key in steps) at = Math.min(rows.length - 1, Math.max(0, at + steps[event.key]));
      else return;
      event.preventDefault();
      out.textContent = say(rows, fields, at);
    });
  };

  const night = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = document.documentElement.dataset.theme;
  let paper = false;  // while the page is printed
  const isDark = () => !paper && (theme === "dark" || (theme === "auto" && night.matches));
  const NARROW = 600, LEAST = 120, WIDEST = 1100;
  const inks = Object.fromEntries(Object.entries(window.forewarpDark).map(([light, dark]) => [light.toLowerCase(), dark]));

  // A copy of a specification in the colours of the page's ground; its data stay as they are.
  const worn = (value, dark) => {
    if (typeof value === "string") return (dark && inks[value.toLowerCase()]) || value;
    if (Array.isArray(value)) return value.map((item) => worn(item, dark));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === "datasets" ? item : worn(item, dark)]));
  };

  // The parts that have a width, and how many stand side by side.
  const plots = (spec) => {
    if (spec.spec) return plots(spec.spec);
    const parts = spec.hconcat || spec.vconcat;
    if (!parts) return typeof spec.width === "number" ? [[spec], 1] : [[], 1];
    const found = parts.map(plots), side = found.map(([, count]) => count);
    return [found.flatMap(([own]) => own), spec.hconcat ? side.reduce((a, b) => a + b, 0) : Math.max(...side)];
  };

  const embed = async (holder, spec) => {
    const options = { renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false } };
    await window.forewarpEmbed(holder, JSON.parse(JSON.stringify(spec)), options);
    return holder.querySelector("svg").getBoundingClientRect().width;
  };

  // Drawn as wide as there is room: twice, the second time with what the words beside the plots take.
  const render = async (place, holder) => {
    const chart = window.forewarpCharts[place.dataset.chart];
    const style = getComputedStyle(place);
    const room = Math.min(WIDEST, place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
    const wide = chart.spec, small = chart.narrow;
    const spec = worn(room < NARROW ? { ...small, datasets: { ...wide.datasets, ...small.datasets } } : wide, isDark());
    const columns = (spec.usermeta && spec.usermeta.columns) || 1;
    for (let turn = 0; turn < 5; turn += 1) {
      const over = await embed(holder, spec) - room;
      const [parts, side] = plots(spec);
      if (!parts.length || (spec.usermeta && spec.usermeta.fixed) || (over <= 0 && over > -24)) break;
      parts.forEach((part) => { part.width = Math.max(LEAST, part.width - (over + 2) / (side * columns)); });
    }
    const svg = holder.querySelector("svg");
    svg.style.maxWidth = "100%";
    svg.style.height = "auto";
    place.closest("figure").classList.toggle("narrow", room < NARROW);
  };

  const draw = (place) => {
    if (place.dataset.drawn) return place.ready;
    place.dataset.drawn = "begun";
    const chart = window.forewarpCharts[place.dataset.chart];
    const [set, fields] = chart.walk;
    walk(place, chart.spec.datasets[set] || [], fields);
    const holder = document.createElement("div");
    place.appendChild(holder);
    place.ready = render(place, holder).then(() => { place.dataset.drawn = "done"; })
      .catch((error) => { place.dataset.drawn = "failed"; place.textContent = `This chart could not be drawn: ${error}`; console.error(error); });
    return place.ready;
  };

  // Drawn again when the ground or the room changes.
  const again = () => places.filter((place) => place.dataset.drawn === "done").forEach((place) => render(place, place.querySelector("div")));
  let waiting;
  night.addEventListener("change", again);
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (!matchMedia("print").matches) again(); }, 200);
  });

  const places = [...document.querySelectorAll(".chart")];
  const watcher = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach((e) => draw(e.target)),
    { rootMargin: "400px" });
  places.forEach((place) => watcher.observe(place));

  // A link to a launch opens it; paper shows everything.
  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const details = target && target.closest("details");
    if (details) { details.open = true; target.scrollIntoView(); }
  };
  window.addEventListener("hashchange", open);
  open();

  // Paper shows everything, all of it on white. What is drawn before the printer looks needs no timer, so it is in time.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    const night = isDark();
    paper = true;
    closed = [...document.querySelectorAll("details.launch:not([open])")];
    closed.forEach((d) => { d.open = true; });
    if (night) again();
    places.forEach(draw);
  });
  window.addEventListener("afterprint", () => {
    paper = false;
    closed.forEach((d) => { d.open = false; });
    if (isDark()) again();
  });
  window.forewarpDrawAll = () => Promise.all(places.map(draw));
})();
