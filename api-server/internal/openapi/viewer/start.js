"use strict";
const docs = document.getElementById("docs");
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
follow();
dark.addEventListener("change", follow);

// The document names the API's public address. This page may be open at another one, and calls the API beside it.
function here(request) {
  const to = new URL(request.url, location.href);
  request.url = location.origin + to.pathname + to.search;
  return request;
}

// Swagger UI puts an operation's link into the button that shows the operation, where no link can be.
const unnested = {
  wrapComponents: {
    DeepLink: (Link, { React }) => (props) => React.createElement(Link, { ...props, enabled: props.enabled && !props.path.includes("/") }),
  },
};

// What Swagger UI leaves out: levels of headings that follow each other, parts of the page, names of fields and buttons, and
// a way for the keyboard into what scrolls. It is added to everything that is shown, also later on.
const parameter = (field) => field.closest("[data-param-name]").dataset.paramName;
const answers = (table) => {
  const call = table.closest(".opblock");
  return `Responses of ${call.querySelector(".opblock-summary-method").textContent} ${call.querySelector("[data-path]").dataset.path}`;
};
const missing = [
  ["h3, .models > h4", "aria-level", () => 2],
  ["h4:not(.models > h4)", "aria-level", () => 3],
  ["h5, h6", "aria-level", () => 4],
  [".information-container, .scheme-container", "role", () => "region"],
  [".information-container", "aria-label", () => "About the API"],
  [".scheme-container", "aria-label", () => "Server and key"],
  [".responses-table[role]", "aria-label", answers],
  [".modal-ux", "role", () => "dialog"],
  [".modal-ux", "aria-label", () => "Available authorizations"],
  [".close-modal", "aria-label", () => "Close"],
  [".auth-btn-wrapper .btn", "aria-label", (button) => button.textContent],
  ["#servers", "aria-label", () => "Server"],
  ["[data-param-name] :is(input, select, textarea)", "aria-label", parameter],
  [".body-param__text", "aria-label", () => "Request body"],
  [".examples-select-element", "aria-label", () => "Example"],
  ["pre", "tabindex", () => 0],
];
function complete() {
  for (const [selector, attribute, value] of missing) {
    for (const element of docs.querySelectorAll(selector)) element.setAttribute(attribute, value(element));
  }
}

// The key that a reader enters stays in this page's memory: it is not kept, and is sent to this API alone.
SwaggerUIBundle({
  url: docs.dataset.document,
  dom_id: "#docs",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  filter: false,
  persistAuthorization: false,
  plugins: [unnested],
  queryConfigEnabled: false,
  requestInterceptor: here,
  requestSnippetsEnabled: true,
  supportedSubmitMethods: "calls" in docs.dataset ? ["get", "post", "put", "patch", "delete"] : [],
  syntaxHighlight: { theme: "tomorrow-night" }, // whose contrast is enough
  tryItOutEnabled: "calls" in docs.dataset,
  validatorUrl: null,
});
new MutationObserver(complete).observe(docs, { childList: true, subtree: true });
