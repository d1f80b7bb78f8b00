// Pages work without this script, but for the search, the choice of colours and the buttons that copy, which
// appear with it.
"use strict";

// What a reader has chosen is kept in the browser, where that is allowed.
const kept = {
  get(name) { try { return localStorage.getItem("docs-" + name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem("docs-" + name, value); } catch { /* it holds for this page alone */ } },
};

// Colours are chosen before anything is shown.
const system = matchMedia("(prefers-color-scheme: dark)");
const theme = () => document.documentElement.dataset.theme || (system.matches ? "dark" : "light");
if (kept.get("theme")) document.documentElement.dataset.theme = kept.get("theme");

function offerThemes() {
  const button = document.getElementById("_theme");
  const label = () => { button.textContent = theme() === "dark" ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    const other = theme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = other;
    kept.set("theme", other);
    label();
  });
  system.addEventListener("change", label);
  label();
  button.hidden = false;
}

function offerCopies() {
  for (const block of document.querySelectorAll(".code")) {
    const code = block.querySelector("code");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await copy(code);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }
}

async function copy(code) {
  if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent);
  getSelection().selectAllChildren(code); // a site without https has no clipboard
  document.execCommand("copy");
}

// The language that was chosen once is shown everywhere.
function followLanguage() {
  const show = (language) => {
    for (const tab of document.querySelectorAll(".tabs input")) if (tab.value === language) tab.checked = true;
  };
  show(kept.get("language"));
  document.addEventListener("change", (event) => {
    if (!event.target.matches(".tabs input")) return;
    kept.set("language", event.target.value);
    show(event.target.value);
  });
}

function load(address) {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
}

// The index is loaded when somebody begins to search, and searched in the browser.
function offerSearch() {
  const form = document.getElementById("_search");
  const field = form.querySelector("input"), list = form.querySelector("ol"), status = form.querySelector("[role=status]");
  let engine;
  async function prepare() {
    await Promise.all([load(form.dataset.engine), load(form.dataset.index)]);
    const search = new MiniSearch({
      fields: ["title", "heading", "text"],
      storeFields: ["page", "title", "anchor", "heading", "text"],
      searchOptions: { boost: { title: 2, heading: 4 }, prefix: true, fuzzy: (term) => (term.length > 4 ? 0.2 : 0), combineWith: "AND" },
    });
    search.addAll(globalThis.sections.map((section, id) => ({ id, ...section })));
    return search;
  }
  async function search() {
    engine ??= prepare();
    const found = (await engine).search(field.value).slice(0, 12);
    list.replaceChildren(...found.map(row));
    if (found.length === 0) list.append(nothing());
    list.hidden = field.value.trim() === "";
    status.textContent = list.hidden ? "" : `${found.length} found`;
  }
  function row({ page, title, anchor, heading, text, terms }) {
    const item = document.createElement("li"), link = document.createElement("a");
    const name = document.createElement("strong"), part = document.createElement("span");
    link.href = form.dataset.root + page + "#" + anchor;
    name.textContent = heading === title ? title : `${title}: ${heading}`;
    const at = Math.max(0, ...terms.map((term) => text.toLowerCase().indexOf(term)));
    part.textContent = (at > 40 ? "… " : "") + text.slice(at > 40 ? text.indexOf(" ", at - 40) + 1 : 0).slice(0, 160);
    link.append(name, part);
    item.append(link);
    return item;
  }
  function nothing() {
    const item = document.createElement("li"), text = document.createElement("p");
    text.textContent = "Nothing was found.";
    item.append(text);
    return item;
  }
  const close = () => { list.hidden = true; };
  field.addEventListener("input", search);
  field.addEventListener("focus", () => { engine ??= prepare(); if (field.value) list.hidden = false; });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  list.addEventListener("click", close); // the target may be on this page
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) close(); });
  document.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")];
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape") {
      close();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && form.contains(document.activeElement) && links.length > 0) {
      event.preventDefault();
      const at = links.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      (links[Math.min(at, links.length - 1)] ?? field).focus();
    }
  });
  form.hidden = false;
}

document.addEventListener("DOMContentLoaded", () => {
  offerThemes();
  offerCopies();
  followLanguage();
  offerSearch();
});
