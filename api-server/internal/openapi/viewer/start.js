"use strict";
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
follow();
dark.addEventListener("change", follow);

// The key that a reader enters stays in this page's memory: it is not kept, and is sent to this API alone.
SwaggerUIBundle({
  url: document.getElementById("docs").dataset.document,
  dom_id: "#docs",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  docExpansion: "list",
  filter: false,
  persistAuthorization: false,
  queryConfigEnabled: false,
  requestSnippetsEnabled: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
