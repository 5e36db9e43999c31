let timer = 0;

/**
 * Shows a sentence for some seconds.
 * @param {string} text
 */
export function say(text) {
  const toast = document.getElementById("toast");
  if (!toast) return;
  clearTimeout(timer);
  toast.textContent = text;
  timer = setTimeout(() => (toast.textContent = ""), 5000);
}

/**
 * Copies a text. Browsers offer `clipboard` only to pages of https or of this machine.
 * @param {string} text
 * @param {string} done
 */
export async function copy(text, done) {
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  say(copied || copySelected(text) ? done : "The browser does not let this page copy.");
}

/** @param {string} text */
function copySelected(text) {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.className = "unseen";
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}
