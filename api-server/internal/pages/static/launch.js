// Has the LMS keep a value for the launch, or give it back: within another site's page a browser may keep no cookies of ours. The
// messages are those of "LTI postMessage Storage"; they go to the LMS's own origin alone, and come from it alone.
"use strict";

const launch = document.querySelector("form[data-frame]");
// In milliseconds: without an answer to the first question it goes on, as a cookie may do; without one to the second it is over.
const patience = { "lti.put_data": 3000, "lti.get_data": 15000 };

function frame(name) {
  const outer = window.parent !== window ? window.parent : window.opener;
  if (!outer) return null;
  if (name === "_parent") return outer;
  try {
    return outer.frames[name] || outer;
  } catch {
    return outer; // it is of another site, and says nothing of its frames
  }
}

function ask(message) {
  return new Promise((resolve) => {
    const to = frame(launch.dataset.frame);
    const id = crypto.randomUUID();
    const end = (value) => { window.removeEventListener("message", receive); resolve(value); };
    const receive = (event) => {
      const said = event.data;
      if (event.origin !== launch.dataset.origin || !said || typeof said !== "object" || said.message_id !== id || said.subject !== message.subject + ".response") return;
      end(said.error ? undefined : said.value);
    };
    if (!to) return resolve(undefined);
    window.addEventListener("message", receive);
    setTimeout(end, patience[message.subject]);
    to.postMessage({ ...message, message_id: id }, launch.dataset.origin);
  });
}

async function run() {
  const key = launch.dataset.key;
  if (launch.dataset.to) {
    await ask({ subject: "lti.put_data", key, value: launch.dataset.value });
    window.location.replace(launch.dataset.to);
    return;
  }
  const value = await ask({ subject: "lti.get_data", key });
  launch.querySelector("[name=registrar_browser]").value = typeof value === "string" ? value : "";
  launch.submit();
}

run();
