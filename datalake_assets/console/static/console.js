// Everything works without this file: it adds copy buttons and the key "/".
for (const box of document.querySelectorAll("[data-copy]")) {
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
for (const field of document.querySelectorAll("[data-submit]")) {
  field.addEventListener("change", () => field.form.requestSubmit());
}
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
