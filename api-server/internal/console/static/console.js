// Rewrites times from UTC to the viewer's zone; the title keeps UTC.
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (!Number.isNaN(at.valueOf())) {
    time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
}
