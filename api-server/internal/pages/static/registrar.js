// Pages work without this script. With it, times are in the viewer's zone, texts that are needed elsewhere can
// be copied, "/" leads to the search, and what is under way is looked at again by itself.
"use strict";

// Times are written in UTC; the title keeps that. Days have no zone and stay as they are.
const chosen = document.querySelector("main")?.dataset.zone; // undefined: the browser's own
const lang = document.documentElement.lang || "en";
const locale = { en: "en-GB", ar: "ar-u-ca-gregory-nu-arab" }[lang] ?? lang;
const form = { timeZone: chosen, day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const moment = new Intl.DateTimeFormat("en-GB", form);
const zoned = new Intl.DateTimeFormat(locale, { timeZone: chosen, weekday: "long", day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const second = new Intl.DateTimeFormat("en-GB", { ...form, second: "2-digit" });

function localize(within) {
  for (const time of within.querySelectorAll("time[datetime*=T]")) {
    const at = new Date(time.dateTime);
    if ("sentence" in time.dataset) time.textContent = time.dataset.sentence.replace("%s", () => zonedMoment(at));
    else if (!Number.isNaN(at.valueOf())) time.textContent = ("seconds" in time.dataset ? second : moment).format(at).replace("Sept", "Sep");
  }
}

// A time that stands for itself has its day of the week and its zone.
function zonedMoment(at) {
  const p = Object.fromEntries(zoned.formatToParts(at).map((part) => [part.type, part.value]));
  const comma = lang === "ar" ? "،" : ",";
  return `${p.weekday}${comma} ${p.day} ${p.month} ${p.year}${comma} ${p.hour}:${p.minute} (${here()})`;
}

// The viewer's zone, as it was chosen or as the browser has it. Browsers call some by names that nobody uses any more.
function here() {
  const zone = chosen ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const now = { "Asia/Calcutta": "Asia/Kolkata", "Asia/Katmandu": "Asia/Kathmandu", "Asia/Rangoon": "Asia/Yangon", "Asia/Saigon": "Asia/Ho_Chi_Minh", "Europe/Kiev": "Europe/Kyiv" };
  return now[zone] ?? zone;
}

// A form that asks for times takes them in the viewer's zone, and says in which.
function localizeForms() {
  const zone = here();
  if (!zone) return;
  for (const form of document.querySelectorAll("form[data-zoned]")) {
    form.elements.zone.value = zone;
    for (const label of form.querySelectorAll("[data-zone]")) label.textContent = "(" + zone + ")";
  }
}

// Where a page names the viewer's zone.
function nameZone() {
  for (const place of document.querySelectorAll("[data-here]")) {
    if (!("value" in place)) place.textContent = here();
    else if (!place.value) place.value = here();
  }
}

// What is copied often has a button beside it, where the browser lets a page copy.
function offerCopies(within) {
  if (!navigator.clipboard) return;
  for (const text of within.querySelectorAll(".copy, [data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copies";
    button.textContent = "Copy";
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent.trim());
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    text.after(button);
  }
}

// "/" leads to the search, as nothing else on the page takes letters.
function searchByKey() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const field = document.querySelector("[aria-keyshortcuts='/']");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
}

// While the page says that something is under way, its content is fetched again.
async function follow() {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  await new Promise((done) => setTimeout(done, Number(live.dataset.live) || 1500));
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
nameZone();
offerCopies(document);
searchByKey();
follow();
