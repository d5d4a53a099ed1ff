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

  const draw = (place) => {
    if (place.dataset.drawn) return place.ready;
    place.dataset.drawn = "begun";
    const chart = window.forewarpCharts[place.dataset.chart];
    const [set, fields] = chart.walk;
    walk(place, chart.spec.datasets[set] || [], fields);
    const options = { renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false } };
    const holder = document.createElement("div");
    place.appendChild(holder);
    place.ready = window.forewarpEmbed(holder, chart.spec, options).then(() => { place.dataset.drawn = "done"; })
      .catch((error) => { place.dataset.drawn = "failed"; place.textContent = `This chart could not be drawn: ${error}`; console.error(error); });
    return place.ready;
  };

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
  window.addEventListener("beforeprint", () => document.querySelectorAll("details.launch").forEach((d) => { d.open = true; }));
  window.forewarpDrawAll = () => Promise.all(places.map(draw));
})();
