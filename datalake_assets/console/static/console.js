// Everything works without this file. It adds values on hover, copy buttons, filters, keys, and
// follows what runs.
const all = (selector, root = document) => root.querySelectorAll(selector);

function prepare(root) {
  for (const box of all("[data-copy]", root)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(box.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(button);
  }
  for (const field of all("[data-submit]", root)) {
    field.addEventListener("change", () => field.form.requestSubmit());
  }
  for (const button of all("[data-confirm]", root)) {
    button.addEventListener("click", (event) => {
      if (!confirm(button.dataset.confirm)) event.preventDefault();
    });
  }
  for (const field of all("[data-filter]", root)) {
    const rows = all(`${field.dataset.filter} tbody tr`, root);
    field.form.addEventListener("submit", (event) => event.preventDefault());
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
  // What scrolls to the side can be scrolled by the keyboard.
  for (const box of all(".scroll", root)) {
    if (box.scrollWidth <= box.clientWidth || box.tabIndex === 0) continue;
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", box.querySelector("caption, h3")?.textContent ?? "Scrolls to the side");
  }
  // The value of the mark under the pointer or finger, at once; the title remains for others.
  for (const mark of all(".chart .bar, .heat .bar, .balance .bar", root)) {
    const title = mark.querySelector("title");
    mark.dataset.tip = title.textContent;
    title.remove();
  }
}
prepare(document);

const tip = document.querySelector("#tip");
function point(event) {
  const mark = event.target.closest?.("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const width = tip.offsetWidth;
  tip.style.left = `${Math.max(8, Math.min(event.clientX - width / 2, innerWidth - width - 8))}px`;
  tip.style.top = `${Math.max(4, event.clientY - 40)}px`;
}
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);

// What runs is fetched again, as long as nothing on the page is in use.
async function follow() {
  const live = document.querySelector("#live[data-live]");
  if (!live) return;
  await new Promise((done) => setTimeout(done, live.dataset.live * 1000));
  if (!document.hidden && !live.contains(document.activeElement)) {
    const answer = await fetch(location.href).catch(() => null);
    if (answer?.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("#live");
      if (fresh) {
        prepare(fresh);
        live.replaceWith(fresh);
      }
    }
  }
  follow();
}
follow();

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    document.querySelector("#find")?.focus();
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    document.activeElement.form?.requestSubmit();
  }
});
