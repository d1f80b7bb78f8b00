"use strict";
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

// The key that a reader enters stays in this page's memory: it is not kept, and is sent to this API alone.
const docs = document.getElementById("docs");
SwaggerUIBundle({
  url: docs.dataset.document,
  dom_id: "#docs",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  filter: false,
  persistAuthorization: false,
  queryConfigEnabled: false,
  requestInterceptor: here,
  requestSnippetsEnabled: true,
  supportedSubmitMethods: "calls" in docs.dataset ? ["get", "post", "put", "patch", "delete"] : [],
  tryItOutEnabled: "calls" in docs.dataset,
  validatorUrl: null,
});
