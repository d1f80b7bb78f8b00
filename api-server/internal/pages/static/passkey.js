// Asks the browser for a passkey, or to make one, and posts its answer. Where that cannot be, the page says so.
"use strict";

for (const form of document.querySelectorAll("form[data-passkey]")) {
  const button = form.querySelector("button");
  const trouble = form.querySelector("[data-trouble]");
  const say = (text) => { trouble.textContent = text; trouble.hidden = false; };
  const supported = window.PublicKeyCredential && PublicKeyCredential.parseRequestOptionsFromJSON && PublicKeyCredential.parseCreationOptionsFromJSON;
  if (!supported) {
    button.disabled = true;
    say(form.dataset.unsupported);
    continue;
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    trouble.hidden = true;
    button.disabled = true;
    try {
      const options = JSON.parse(form.dataset.passkey);
      const answer = form.dataset.make !== undefined
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
      form.querySelector("[data-answer]").value = JSON.stringify(answer.toJSON());
      form.submit();
    } catch (error) {
      button.disabled = false;
      say(error.name === "InvalidStateError" ? form.dataset.exists : form.dataset.unused);
    }
  });
}
