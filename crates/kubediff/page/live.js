/**
 * Rows that the server sends while the page is open. They wait behind a button, so that nothing moves under the reader.
 *
 * @typedef {{ html: string, count: number, newest: number, gone: string[] }} Rows
 * @typedef {{ createHTML: (html: string) => string }} Policy
 */

const MOST_HELD = 500;
const LONGEST_PAUSE = 60_000;

/** @type {{ createPolicy: (name: string, rules: Policy) => Policy } | undefined} */
const trustedTypes = /** @type {any} */ (window).trustedTypes;
/** @type {Policy} */
const rules = { createHTML: (html) => html };
const policy = trustedTypes ? trustedTypes.createPolicy("kubediff", rules) : rules;

/** Follows the server on a page whose list of rows says where. */
export function live() {
  const list = /** @type {HTMLOListElement | null} */ (document.querySelector("ol[data-live]"));
  const place = document.getElementById("live");
  if (list && place) new Live(list, place);
}

class Live {
  /** @type {EventSource | null} */
  #source = null;
  #on = true;
  #pause = 0;
  #timer = 0;
  /** The fragments that wait, the newest first. @type {string[]} */
  #held = [];
  #count = 0;
  /** The rows that are a part of a story by now. @type {Set<string>} */
  #gone = new Set();

  /**
   * @param {HTMLOListElement} list
   * @param {HTMLElement} place
   */
  constructor(list, place) {
    this.list = list;
    this.after = list.dataset.after ?? "0";

    this.toggle = document.createElement("button");
    this.toggle.type = "button";
    this.toggle.className = "live";
    this.toggle.textContent = "Live";
    this.toggle.dataset.key = "l";
    this.toggle.addEventListener("click", () => {
      this.#on = !this.#on;
      this.#follow();
    });
    this.state = document.createElement("span");
    this.state.className = "note";
    this.state.setAttribute("role", "status");
    place.append(this.toggle, this.state);

    this.pill = document.createElement("button");
    this.pill.type = "button";
    this.pill.className = "pill";
    this.pill.hidden = true;
    this.pill.addEventListener("click", () => this.#show());
    const status = document.createElement("div");
    status.className = "pills";
    status.setAttribute("aria-live", "polite");
    status.append(this.pill);
    list.before(status);

    document.addEventListener("visibilitychange", () => this.#follow());
    // A page that comes back out of the browser's cache has a closed source.
    addEventListener("pageshow", (event) => event.persisted && this.#follow());
    this.#follow();
  }

  #follow() {
    this.#source?.close();
    this.#source = null;
    clearTimeout(this.#timer);
    this.#tell(this.#on ? "" : "paused");
    if (!this.#on || document.hidden) return;

    const url = new URL(this.list.dataset.live ?? "", location.href);
    url.searchParams.set("after", this.after);
    const source = (this.#source = new EventSource(url));
    source.addEventListener("open", () => {
      this.#pause = 0;
      this.#tell("");
    });
    source.addEventListener("rows", (event) => this.#keep(JSON.parse(event.data)));
    // Too many have come to send them.
    source.addEventListener("lag", (event) => {
      const { to, count } = JSON.parse(event.data);
      this.#keep({ html: "", count: Math.max(count, MOST_HELD + 1), newest: to, gone: [] });
    });
    // The browser would ask again from where this source began.
    source.addEventListener("error", () => {
      source.close();
      this.#pause = Math.min(Math.max(this.#pause * 2, 1000), LONGEST_PAUSE);
      this.#tell("offline");
      this.#timer = setTimeout(() => this.#follow(), this.#pause * (0.75 + Math.random() / 2));
    });
  }

  /** @param {string} text */
  #tell(text) {
    this.state.textContent = text;
    this.toggle.setAttribute("aria-pressed", `${this.#on}`);
  }

  /** @param {Rows} rows */
  #keep(rows) {
    this.after = `${rows.newest}`;
    this.#count += rows.count;
    for (const key of rows.gone) this.#gone.add(key);
    if (this.#count <= MOST_HELD) this.#held.unshift(rows.html);
    else this.#held = [];
    this.pill.textContent = this.#held.length ? `↑ ${this.#count} new` : `${this.#count} new: load the page again`;
    this.pill.hidden = this.#count === 0;
  }

  #show() {
    if (!this.#held.length) return location.reload();
    const template = document.createElement("template");
    template.innerHTML = policy.createHTML(this.#held.join(""));
    this.#held = [];
    this.#count = 0;
    this.pill.hidden = true;

    const seen = new Set();
    for (const item of template.content.querySelectorAll("li")) {
      const row = item.querySelector("[data-row]");
      const key = row?.getAttribute("data-row") ?? "";
      const shown = key.endsWith("/0") ? null : this.list.querySelector(`[data-row="${CSS.escape(key)}"]`);
      if (seen.has(key)) item.remove();
      else if (row && shown) {
        shown.replaceWith(row);
        row.classList.add("fresh");
        item.remove();
      } else row?.classList.add("fresh");
      if (!key.endsWith("/0")) seen.add(key);
    }
    this.list.prepend(template.content);
    for (const key of this.#gone) {
      const item = this.list.querySelector(`[data-row="${CSS.escape(key)}"]`)?.closest("li");
      const day = item?.querySelector(".day");
      if (day) item?.nextElementSibling?.prepend(day);
      item?.remove();
    }
    this.#gone.clear();
    for (const empty of document.querySelectorAll("section.empty")) empty.remove();
    this.#days();
    /** @type {HTMLElement | null} */ (this.list.querySelector(".row a[href]"))?.focus({ preventScroll: true });
  }

  /** Leaves one heading for each day, above its first row. */
  #days() {
    const headings = [...this.list.querySelectorAll(".day")];
    if (headings[0] && !this.list.firstElementChild?.contains(headings[0])) {
      this.list.firstElementChild?.prepend(headings[0]);
    }
    headings.forEach((heading, at) => {
      if (at > 0 && heading.textContent === headings[at - 1].textContent) heading.remove();
    });
  }
}
