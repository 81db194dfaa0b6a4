// A page of what is under way speaks: a piece that the server writes anew takes the
// place of the one before. When there is a verdict, the page with it takes the place of
// this one, and the reader stays where they are.
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
