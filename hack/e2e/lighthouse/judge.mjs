// Reads {"chromium", "people": [{"cookie", "pages": [url]}]} and writes what Lighthouse says of each page, a line of JSON a page.
// Each of the people has a browser of their own.
import { launch } from "chrome-launcher";
import lighthouse from "lighthouse";
import { readFileSync } from "node:fs";

const { chromium, people } = JSON.parse(readFileSync(0, "utf8"));
for (const { cookie, pages } of people) {
  const chrome = await launch({
    chromePath: chromium,
    chromeFlags: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
  });
  try {
    for (const url of pages) console.log(JSON.stringify(await judge(chrome.port, url, cookie)));
  } finally {
    chrome.kill();
  }
}

async function judge(port, url, cookie) {
  const look = () => lighthouse(url, {
    port,
    onlyCategories: ["accessibility", "best-practices", "performance"],
    extraHeaders: { Cookie: cookie },
    disableFullPageScreenshot: true,
  });
  let { lhr } = await look();
  if (lhr.runtimeError) ({ lhr } = await look()); // of its own, such as a page that a busy machine painted too late
  const scores = {}, below = [];
  for (const category of Object.values(lhr.categories)) {
    scores[category.id] = category.score;
    for (const { id, weight } of category.auditRefs) {
      const audit = lhr.audits[id];
      if (weight > 0 && audit.score !== null && audit.score < 1) below.push(`${audit.title} (${id}: ${audit.displayValue ?? audit.score})`);
    }
  }
  return { url: lhr.finalDisplayedUrl, error: lhr.runtimeError?.message, scores, below, bytes: lhr.audits["total-byte-weight"]?.numericValue };
}
