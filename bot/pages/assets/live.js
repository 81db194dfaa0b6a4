// A run that is under way speaks: what the server writes takes the place of what it
// wrote before, and the page is loaded again when there is a verdict.
"use strict";
const live = document.querySelector("[data-live]");
if (live && window.EventSource) {
  const source = new EventSource(live.dataset.live);
  source.addEventListener("progress", (e) => { live.innerHTML = e.data; });
  source.addEventListener("end", () => { source.close(); location.reload(); });
}
