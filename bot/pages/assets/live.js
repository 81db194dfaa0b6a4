// A run that is under way speaks: what the server writes takes the place of what it
// wrote before. When there is a verdict, the page with it takes the place of this one,
// and the reader stays where they are.
"use strict";
const live = document.querySelector("[data-live]");
if (live && window.EventSource) {
  const source = new EventSource(live.dataset.live);
  source.addEventListener("progress", (e) => { live.innerHTML = e.data; });
  source.addEventListener("log", (e) => {
    const log = document.querySelector("#log");
    log.hidden = false;
    log.querySelector("pre").textContent = e.data;
  });
  source.addEventListener("end", () => { source.close(); verdict(); });
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
