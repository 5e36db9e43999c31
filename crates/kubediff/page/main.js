import { live } from "./live.js";
import { keys } from "./keys.js";
import { copy, say } from "./tell.js";

for (const code of document.querySelectorAll("code.command")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${code.textContent}`);
  button.addEventListener("click", () => copy(code.textContent ?? "", "The command is copied."));
  code.after(button);
}

const markdown = /** @type {HTMLAnchorElement | null} */ (document.querySelector("a[data-markdown]"));
if (markdown) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy as Markdown";
  button.dataset.key = "m";
  button.addEventListener("click", async () => {
    try {
      const answer = await fetch(markdown.href);
      if (!answer.ok) throw new Error(`${answer.status}`);
      await copy(await answer.text(), "The story is copied as Markdown.");
    } catch (error) {
      say(`The server did not send the Markdown: ${error instanceof Error ? error.message : error}`);
    }
  });
  markdown.after(button);
}

/** @type {HTMLDetailsElement[]} */
let unfolded = [];
addEventListener("beforeprint", () => {
  const address = document.getElementById("address");
  if (address) address.textContent = location.href;
  unfolded = [...document.querySelectorAll("details")].filter((details) => !details.open);
  for (const details of unfolded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of unfolded) details.open = false;
});

live();
keys();
