// The demo with its page, and a browser in it.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const PROGRAM = process.env.KUBEDIFF ?? "kubediff";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Starts the program, and gives the first match of each pattern in what it says on standard error. */
export async function start(args, patterns) {
  const child = spawn(PROGRAM, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, TZ: "Europe/Berlin" } });
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
  return { found, end: () => new Promise((resolve) => (child.once("exit", resolve), child.kill("SIGINT"))) };
}

/** The demo's shop, its API server's address, and the page on it. */
export async function demo() {
  // The history is there when the watch begins.
  const shop = await start(["demo", "--speed", "8"], [/KUBECONFIG=(\S+)/, /ui --history (\S+)/, /(watching \d+)/]);
  const [kubeconfig, history] = shop.found;
  const server = readFileSync(kubeconfig, "utf8").match(/server:\s*"?([^"\s]+)/)[1];
  const page = await start(["ui", "--history", history], [/(http:\/\/127\S+)/]).catch(async (error) => {
    await shop.end();
    throw error;
  });
  const link = page.found[0];
  return { server, link, origin: new URL(link).origin, end: async () => (await page.end(), await shop.end()) };
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

/** What axe finds on a page. It runs in a world of its own: the page's policy lets no other script in. */
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
