// This script updates the page of an unfinished run. A piece that the server sends replaces the
// old piece. When there is a verdict, the new page replaces this one, and the reader keeps the
// scroll position.
"use strict";
const live = document.querySelector("[data-live]");
if (live && window.EventSource) {
  const source = new EventSource(live.dataset.live);
  for (const box of live.querySelectorAll("[data-piece]")) {
    source.addEventListener(box.dataset.piece, (e) => {
      const next = document.createElement("template");
      next.innerHTML = e.data;
      if (next.innerHTML.trim() === box.innerHTML.trim()) return;
      const at = box.contains(document.activeElement) && document.activeElement.getAttribute("href");
      box.replaceChildren(next.content);
      if (at) box.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
    });
  }
  source.addEventListener("log", (e) => { tell("", e.data); });
  source.addEventListener("more", (e) => { tell("\n", e.data); });
  source.addEventListener("end", () => { source.close(); verdict(); });
}
function tell(between, lines) {
  const log = document.querySelector("#log"), text = log.querySelector("pre");
  const follows = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
  log.hidden = false;
  text.textContent = between ? text.textContent + between + lines : lines;
  if (follows) text.scrollTop = text.scrollHeight;
}
async function verdict() {
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = page.title;
    document.querySelector("main").replaceWith(page.querySelector("main"));
    document.querySelector("#news").textContent = page.title;
  } catch {
    location.reload();
  }
}

// A reader drags across a history to zoom. The address of the page names the range, so that a link keeps it. Without this script,
// links lead to other ranges.
async function range(url, push) {
  const answer = await fetch(url).catch(() => null);
  if (!answer?.ok) { location.assign(url); return; }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("#history").replaceWith(page.querySelector("#history"));
  document.querySelector("#gained").replaceWith(page.querySelector("#gained"));
  if (push) history.pushState("range", "", url);
  document.querySelector("#news").textContent = page.querySelector(".range")?.textContent ?? "";
}
if (document.querySelector("#history .range")) {
  let drag = null, ended = -1000;
  addEventListener("click", (e) => { // the end of a drag is no click
    if (e.timeStamp - ended < 50) { e.preventDefault(); e.stopPropagation(); }
  }, true);
  addEventListener("popstate", () => range(location.href, false));
  document.addEventListener("click", (e) => {
    const link = e.target.closest?.(".range a");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    range(link.href, true).then(() => document.querySelector(".range a")?.focus({preventScroll: true}));
  });
  document.addEventListener("dragstart", (e) => { if (e.target.closest?.(".trend svg")) e.preventDefault(); });
  document.addEventListener("pointerdown", (e) => {
    const chart = e.button === 0 && e.target.closest?.("#history .trend svg");
    if (chart) drag = {chart, from: e.clientX, box: null};
  });
  document.addEventListener("pointermove", (e) => {
    if (!drag || Math.abs(e.clientX - drag.from) < 8) return;
    if (!drag.box) {
      drag.box = document.createElement("div");
      drag.box.className = "selection";
      document.body.append(drag.box);
    }
    hideCard();
    const at = drag.chart.getBoundingClientRect();
    drag.box.style.left = `${Math.min(drag.from, e.clientX) + scrollX}px`;
    drag.box.style.width = `${Math.abs(e.clientX - drag.from)}px`;
    drag.box.style.top = `${at.top + scrollY}px`;
    drag.box.style.height = `${at.height}px`;
  });
  document.addEventListener("pointercancel", () => { drag?.box?.remove(); drag = null; });
  document.addEventListener("pointerup", (e) => {
    const done = drag;
    drag = null;
    if (!done?.box) return;
    done.box.remove();
    ended = e.timeStamp;
    const low = Math.min(done.from, e.clientX), high = Math.max(done.from, e.clientX);
    const within = [...done.chart.querySelectorAll("a")].map((a) => {
      const box = a.getBoundingClientRect();
      return {x: box.left + box.width / 2, job: a.getAttribute("href").split("/").pop()};
    }).filter((p) => p.x >= low && p.x <= high).sort((a, b) => a.x - b.x);
    if (within.length > 1) range(`?from=${within[0].job}&to=${within.at(-1).job}#history`, true);
  });
}

// A point of a history has a card with the measurement, its change and its author. It appears on
// hover near the point and on keyboard focus.
let card = null;
function hideCard() {
  card?.remove();
  card = null;
}
function showCard(e) {
  const point = e.target.closest?.("[data-card]");
  if (!point) { hideCard(); return; }
  hideCard();
  point.querySelector("title")?.remove(); // the browser would show it over the card
  card = document.createElement("div");
  card.className = "card";
  card.setAttribute("role", "tooltip");
  for (const [i, line] of point.dataset.card.split("\n").entries()) {
    const row = document.createElement(i ? "div" : "strong");
    row.textContent = line;
    card.append(row);
  }
  document.body.append(card);
  const at = (point.querySelector(".dot") ?? point).getBoundingClientRect(), size = card.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left + at.width / 2 - size.width / 2, document.documentElement.clientWidth - size.width - 8));
  const above = at.top - size.height - 8;
  card.style.left = `${left + scrollX}px`;
  card.style.top = `${(above > 0 ? above : at.bottom + 8) + scrollY}px`;
}
document.addEventListener("pointerover", showCard);
document.addEventListener("focusin", showCard);
document.addEventListener("focusout", hideCard);
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") hideCard();
  const search = document.querySelector("input[type=search]");
  if (e.key === "/" && search && !/^(input|select|textarea)$/i.test(e.target.tagName)) {
    e.preventDefault();
    search.focus();
  }
});
