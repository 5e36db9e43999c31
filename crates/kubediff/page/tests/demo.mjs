// The demo with its page, and a browser in it.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

const PROGRAM = process.env.KUBEDIFF ?? "kubediff";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Starts the program, and gives the first match of each pattern in what it says on standard error. */
export async function start(args, patterns, zone = "Europe/Berlin") {
  const child = spawn(PROGRAM, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, TZ: zone } });
  const found = patterns.map(() => undefined);
  const lines = createInterface({ input: child.stderr });
  await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`${args[0]} ended with ${code}`)));
    lines.on("line", (line) => {
      patterns.forEach((pattern, at) => (found[at] ??= line.match(pattern)?.[1]));
      if (found.every((text) => text !== undefined)) resolve(undefined);
    });
  });
  child.removeAllListeners("exit");
  const end = (signal = "SIGINT") => new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve(undefined);
    child.once("exit", resolve);
    child.kill(signal);
  });
  return { found, end };
}

/** The page on a history, by a clock of this time zone. */
export async function ui(history, zone) {
  const page = await start(["ui", "--history", history], [/(http:\/\/127\S+)/], zone);
  const link = page.found[0];
  return { link, origin: new URL(link).origin, end: page.end };
}

/** The demo's shop, its API server's address, and the page on it. */
export async function demo() {
  // The history is there when the watch begins.
  const shop = await start(["demo", "--speed", "8"], [/KUBECONFIG=(\S+)/, /ui --history (\S+)/, /(watching \d+)/]);
  const [kubeconfig, history] = shop.found;
  const server = readFileSync(kubeconfig, "utf8").match(/server:\s*"?([^"\s]+)/)[1];
  const page = await ui(history).catch(async (error) => {
    await shop.end();
    throw error;
  });
  return { ...page, server, kubeconfig, history, end: async () => (await page.end(), await shop.end()) };
}

/** Starts the demo and browsers in its page before the tests of a file, and ends them afterwards. */
export function stage(take) {
  let shop, browsers;
  before(async () => {
    shop = await demo();
    browsers = await Browsers.open(shop.link);
    await take(shop, browsers);
  });
  after(async () => {
    await browsers?.end();
    await shop?.end();
  });
}

/** Asks until there is an answer. */
export async function until(what, ask) {
  for (let tries = 0; tries < 240; tries++) {
    const answer = await ask();
    if (answer) return answer;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`there is no ${what}`);
}

/** Browsers that have entered the page. Whatever goes wrong in them is noted. */
export class Browsers {
  faults = [];

  static async open(link) {
    const browsers = new Browsers();
    browsers.chromium = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
    const first = await browsers.chromium.newContext();
    await (await first.newPage()).goto(link);
    browsers.cookies = await first.cookies();
    await first.close();
    return browsers;
  }

  /** The answer of `/v1` at an address. */
  async json(address) {
    const context = await this.chromium.newContext();
    await context.addCookies(this.cookies);
    const answer = await (await context.request.get(address)).json();
    await context.close();
    return answer;
  }

  /** A story of a rollout that has come to its end, when there is one. */
  rollout(origin) {
    return until("rollout", async () => {
      const { items } = await this.json(`${origin}/v1/changes?fold=1&kind=deploy&limit=50`);
      const stories = items.map((item) => item.story).filter(Boolean);
      return stories.find((story) => story.kind === "rollout" && story.verdict === "complete");
    });
  }

  /** The faults. A refusal is none of the page. */
  unexpected() {
    return this.faults.filter((fault) => !/40[0134] \(/.test(fault));
  }

  /** A window with these options. */
  async window(options = {}) {
    const context = await this.chromium.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    await context.addCookies(this.cookies);
    const page = await context.newPage();
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.faults.push(`${page.url()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.faults.push(`${page.url()}: ${error.message}`));
    page.on("dialog", (dialog) => (this.faults.push(`${page.url()}: ${dialog.message()}`), dialog.dismiss()));
    return page;
  }

  end() {
    return this.chromium.close();
  }
}

/** The windows in which each screen is looked at. */
export const WINDOWS = [{ colorScheme: "light" }, { colorScheme: "dark" }, { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true }];

/** An address of each screen. */
export function screens(story) {
  const object = `/o/deployments.apps/shop/${story.object.name}`;
  return ["/", "/?events=1&fold=0", `/story/${story.id}`, `/change/${story.id}`, object, `${object}?tab=changes`, `${object}?tab=diff`,
    `${object}?tab=events`, `${object}?tab=related`, "/at", "/at?kind=pods", "/diff", "/diff?from=-1h", "/about", "/help"];
}

/** How much wider the content is than the window. */
export const excess = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** The findings of axe on a page. It runs in a world of its own: the page's policy lets no other script in. */
export async function axe(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const world = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const run = async (expression) => {
    const options = { expression, contextId: world.executionContextId, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", options);
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails).slice(0, 500));
    return result.value;
  };
  await run(`${AXE};0`);
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const found = await run(`axe.run(document, { runOnly: ${JSON.stringify(tags)} })
    .then((all) => all.violations.map((it) => it.id + ": " + it.nodes.map((node) => node.html.slice(0, 120)).join(" ")))`);
  await session.detach();
  return found;
}
