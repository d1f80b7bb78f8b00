// Pages work without this script. With it, times are in the viewer's zone, and what is
// under way is looked at again by itself.
"use strict";

// Times are written in UTC; the title keeps that.
function localize(within) {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.valueOf())) {
      time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    }
  }
}

// A form that asks for times takes them in the viewer's zone, and says in which.
function localizeForms() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone) return;
  for (const form of document.querySelectorAll("form[data-zoned]")) {
    form.elements.zone.value = zone;
    for (const label of form.querySelectorAll("[data-zone]")) label.textContent = "(" + zone + ")";
  }
}

// While the page says that something is under way, its content is fetched again.
async function follow() {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  await new Promise((done) => setTimeout(done, 1500));
  if (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.ok) {
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-live]");
      if (!next) return location.reload(); // it is over
      localize(next);
      live.replaceWith(document.adoptNode(next));
    }
  } catch { /* the network is away: the next look tells */ }
  follow();
}

localize(document);
localizeForms();
follow();
