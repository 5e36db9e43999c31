import { copy, say } from "./tell.js";

const SETTING = "kubediff.keys";
const PAGES = new Map([["t", "/"], ["a", "/about"], ["d", "/diff"]]);
const SECOND_KEY_WITHIN = 1000;

/** Starts the keys of the page, and the button that switches them off. */
export function keys() {
  const button = /** @type {HTMLButtonElement | null} */ (document.getElementById("keys-switch"));
  if (button) {
    const tell = () => (button.textContent = enabled() ? "Switch the keys off" : "Switch the keys on");
    button.hidden = false;
    button.addEventListener("click", () => {
      enable(!enabled());
      tell();
      say(enabled() ? "The keys are on." : "The keys are off.");
    });
    tell();
  }
  addEventListener("keydown", press);
}

function enabled() {
  try {
    return localStorage.getItem(SETTING) !== "off";
  } catch {
    return true;
  }
}

/** @param {boolean} on */
function enable(on) {
  try {
    if (on) localStorage.removeItem(SETTING);
    else localStorage.setItem(SETTING, "off");
  } catch {
    say("The browser does not remember settings of this page.");
  }
}

let goes = 0;

/** @param {KeyboardEvent} event */
function press(event) {
  const target = event.target;
  const writes = target instanceof HTMLElement && target.matches("input:not([type=checkbox]), select, textarea");
  if (writes) {
    if (event.key === "Escape" && enabled()) target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !enabled()) return;
  if (act(event.key)) event.preventDefault();
}

/**
 * Does what a key stands for; says whether it stands for anything.
 * @param {string} key
 */
function act(key) {
  const page = Date.now() - goes < SECOND_KEY_WITHIN ? PAGES.get(key) : undefined;
  goes = 0;
  if (page) return go(page);
  switch (key) {
    case "g":
      goes = Date.now();
      return true;
    case "/":
      return focus(document.getElementById("search"));
    case "t":
      return focus(document.querySelector("#field-since, #field-from, #at, #time"));
    case "j":
      return move(1);
    case "k":
      return move(-1);
    case "o":
      return click(document.activeElement?.closest(".row")?.querySelector("a.name"));
    case "y":
      return link();
    case "p":
      print();
      return true;
    case "?":
      return go("/help");
    default:
      return click(document.querySelector(`[data-key="${CSS.escape(key)}"]`));
  }
}

/** @param {string} href */
function go(href) {
  location.assign(href);
  return true;
}

/** @param {Element | null | undefined} element */
function click(element) {
  if (!(element instanceof HTMLElement)) return false;
  element.click();
  return true;
}

/** @param {Element | null} element */
function focus(element) {
  if (!(element instanceof HTMLElement)) return false;
  const folded = element.closest("details");
  if (folded) folded.open = true;
  element.focus();
  if (element instanceof HTMLInputElement) element.select();
  return true;
}

/** @param {number} by */
function move(by) {
  const rows = [...document.querySelectorAll(".row")];
  if (!rows.length) return false;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1);
  const row = /** @type {HTMLElement} */ (rows[next]);
  const target = /** @type {HTMLElement} */ (row.querySelector(".text a") ?? row.querySelector("a") ?? row);
  if (target === row) row.tabIndex = -1;
  target.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  return true;
}

function link() {
  const canonical = /** @type {HTMLLinkElement | null} */ (document.querySelector("link[rel=canonical]"));
  copy(canonical?.href ?? location.href, "The link is copied.");
  return true;
}
