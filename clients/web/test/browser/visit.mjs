// Common parts of all scripts of the browser tests: a browser, pages that report their errors, and
// a protocol with the test that runs them: one JSON object per line on standard output for each
// step, and lines on standard input to continue.

import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [, , executablePath, base, artefacts, ...rest] = process.argv;
export { base, artefacts, rest };

const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--autoplay-policy=no-user-gesture-required", ...(process.env.CHROMIUM_ARGUMENTS ?? "").split(" ").filter(Boolean)],
});

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** The limit of every wait in a page, in ms: a busy machine draws a page some ten times slower than an idle one. */
export const patience = 60_000;

/** Reports a step to the test. */
export function tell(step, facts = {}) {
  process.stdout.write(`${JSON.stringify({ step, ...facts })}\n`);
}

/** Waits for the command to continue, and returns its arguments. */
export async function goOn() {
  return (await lines.next()).value;
}

/** The last lines of the console of each page that was opened, with its errors. */
const consoles = new Map();
const mostLines = 30;

/** Records the console of a page, for a failure. */
function keepConsole(page) {
  const kept = [];
  consoles.set(page, kept);
  const keep = (line) => {
    kept.push(line);
    kept.splice(0, kept.length - mostLines);
  };
  page.on("console", (message) => keep(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => keep(`error: ${error.message}`));
  page.on("crash", () => keep("the page has crashed"));
}

/** The time in ms for the state of one document. */
const stateTime = 10_000;

/**
 * Returns the state of a page of the viewer, of one with the element <volsfu-room> or of one that embeds the viewer, as
 * JSON. It runs in the page.
 */
async function stateOfDocument() {
  const room = globalThis.volsfu;
  const session = document.querySelector("volsfu-room")?.session;
  const conference = room?.conference ?? session?.conference;
  const seen = { visibility: document.visibilityState, ready: document.readyState, since: performance.now(), messages: document.querySelector("#messages")?.textContent, events: globalThis.events };
  if (!conference) {
    return JSON.stringify(seen);
  }
  const counts = [];
  const report = ({ type, timestamp, id, ...figures }) => ["inbound-rtp", "outbound-rtp", "data-channel", "candidate-pair", "transport"].includes(type) && counts.push({ type, ...Object.fromEntries(Object.entries(figures).filter(([, figure]) => figure)) });
  await conference.link.connection?.peer.getStats().then((all) => all.forEach(report));
  const publishing = await session?.publishing;
  const publishers = [room?.panel?.publisher, ...[...(publishing?.current ?? [])].map(({ publisher }) => publisher)];
  const { bandwidth, meters, audience, identity } = conference;
  return JSON.stringify({
    ...seen, identity, state: conference.session.state, connection: conference.link.connection?.state, moving: conference.reception.moving, audience, bandwidth,
    participants: [...conference.participants.values()].map((p) => `${p.identity}: ${p.publications.map(({ name }) => name).join(", ")}`),
    slots: [...conference.lines()].map(({ mid, generation, track, quality, reason, dropped }) => ({ mid, generation, ...track, quality, reason, dropped, ...meters.figures(mid, performance.timeOrigin + performance.now()) })),
    opened: meters.opened, total: meters.total, publishers: publishers.filter((p) => p?.figures).map((p) => ({ ...p.state(), total: p.figures.total })), counts,
  });
}

/** Returns the states of the documents of all open pages. */
function states() {
  const late = () => new Promise((resolve) => setTimeout(resolve, stateTime, "no answer"));
  const stateOf = async (frame) => {
    const state = frame.evaluate(stateOfDocument).then(JSON.parse).catch((error) => String(error));
    return { url: frame.url(), state: await Promise.race([state, late()]) };
  };
  return Promise.all([...consoles].filter(([page]) => !page.isClosed()).map(async ([page, lines]) => ({ console: lines, documents: await Promise.all(page.frames().map(stateOf)) })));
}

/** A page that is not yet loaded, for open. */
export const blank = "";

/** Opens a page. Its errors are reported as separate steps. */
export async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  keepConsole(page);
  page.on("pageerror", (error) => tell("page error", { message: error.message }));
  page.on("console", (message) => {
    // The browser itself reports addresses with an error or without an answer; tests check the
    // reaction of the page.
    if (message.type() === "error" && !/^(Failed to load resource|WebSocket connection to .* failed)/.test(message.text())) {
      tell("console error", { message: message.text() });
    }
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "blob:" && url.host !== new URL(base).host) {
      tell("foreign host", { message: request.url() });
    }
  });
  if (path !== blank) {
    await page.goto(base + path);
  }
  return page;
}

/** Opens a page of another server. Its requests and errors are not reported. */
export async function openForeign(url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 } });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  keepConsole(page);
  await page.goto(url);
  return page;
}

/** Publishes a page's object with the sound of its microphone. */
export async function publishWithSound(page) {
  await until(page, () => globalThis.volsfu?.conference.room);
  await page.keyboard.press("p");
  await page.getByLabel("Use the microphone").focus();
  await page.keyboard.press("Space");
  await page.locator(".self form button").focus();
  await page.keyboard.press("Enter");
  await until(page, () => volsfu.panel.publisher?.state().live);
}

/**
 * Switches the sound of a page on, and measures the output at the position of the participant
 * "page": the last eighth of a second and more. Returns functions that wait for sound and for
 * silence. Sound is louder than a thousandth of full scale, which encoded silence never is; silence
 * is quieter than a tenth of that for twenty samples, longer than pauses between syllables.
 */
export async function listen(ear) {
  await until(ear, () => globalThis.volsfu?.conference.room);
  await ear.keyboard.press("m");
  await until(ear, () => {
    const mid = [...volsfu.speakers()].find((s) => s.participant === "page")?.mid;
    const voice = mid !== undefined && volsfu.sound.voices.get(mid);
    if (!volsfu.sound.on || !voice) {
      return undefined;
    }
    const analyser = new AnalyserNode(volsfu.sound.context, { fftSize: 8192 });
    voice.panner.connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    globalThis.loudness = () => {
      analyser.getFloatTimeDomainData(samples);
      return Math.sqrt(samples.reduce((sum, v) => sum + v * v, 0) / samples.length);
    };
    return true;
  });
  const sounds = () => until(ear, () => (globalThis.loudness() > 1e-3 ? globalThis.loudness() : undefined));
  const silent = async () => {
    await ear.evaluate(() => (globalThis.quiet = 0));
    await until(ear, () => (globalThis.quiet = globalThis.loudness() < 1e-4 ? globalThis.quiet + 1 : 0) >= 20);
  };
  return { sounds, silent };
}

/** Waits until the hint about the controls of a room has faded. */
export function hintGone(page) {
  return until(page, () => {
    const { display, opacity } = getComputedStyle(document.querySelector(".hint"));
    return display === "none" || opacity === "0";
  });
}

/** Waits until a function of the page returns a true value, and returns it. */
export async function until(page, what, argument, polling = 100) {
  const handle = await page.waitForFunction(what, argument, { polling });
  return handle.jsonValue();
}

/**
 * Collects the garbage of a page and of its workers, and returns the remaining size of the page's
 * heap in bytes.
 */
export async function collector(page) {
  const session = await page.context().newCDPSession(page);
  const workers = new Set();
  const waiting = new Map();
  session.on("Target.attachedToTarget", ({ sessionId }) => workers.add(sessionId));
  session.on("Target.detachedFromTarget", ({ sessionId }) => workers.delete(sessionId));
  session.on("Target.receivedMessageFromTarget", ({ message }) => waiting.get(JSON.parse(message).id)?.(JSON.parse(message)));
  await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
  let asked = 0;
  const method = "HeapProfiler.collectGarbage";
  const collect = (sessionId) => new Promise((resolve, reject) => {
    const id = ++asked;
    waiting.set(id, ({ error }) => (waiting.delete(id), error ? reject(new Error(`a worker's garbage: ${error.message}`)) : resolve()));
    session.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify({ id, method }) }).catch(reject);
  });
  return async () => {
    await session.send(method);
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    await Promise.all([...workers].map(collect));
    return usedSize;
  };
}

/**
 * Looks until people are on a share of the picture, and the picture differs from a former one if
 * that is given. Returns the last look if that takes longer than the patience.
 */
export async function appears(page, share, former) {
  const end = Date.now() + patience;
  let now = await look(page);
  while ((now.shown < share || now.sum === former?.sum) && Date.now() < end) {
    await page.waitForTimeout(200);
    now = await look(page);
  }
  return now;
}

/**
 * Draws the space once with people and once without, and returns the share of pixels that differ, and
 * a checksum of the picture with people.
 */
export function look(page) {
  return page.evaluate(() => {
    const { world } = globalThis.volsfu;
    const gl = world.renderer.getContext();
    const { drawingBufferWidth: width, drawingBufferHeight: height } = gl;
    const draw = (people) => {
      world.objects.root.visible = people;
      world.render();
      const pixels = new Uint8Array(4 * width * height);
      gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
      return pixels;
    };
    const empty = draw(false);
    const pixels = draw(true);
    let shown = 0;
    let sum = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const away = Math.abs(pixels[i] - empty[i]) + Math.abs(pixels[i + 1] - empty[i + 1]) + Math.abs(pixels[i + 2] - empty[i + 2]);
      shown += away > 60 ? 1 : 0;
      sum = (Math.imul(sum, 31) + pixels[i] + 256 * pixels[i + 1] + 65536 * pixels[i + 2]) | 0;
    }
    return { shown: shown / (width * height), sum };
  });
}

/** Runs a script and ends the browser afterwards. */
export async function run(script) {
  try {
    await script();
    tell("done");
  } catch (error) {
    tell("failed", { message: String(error?.stack ?? error), pages: await states() });
  } finally {
    await browser.close();
    // Data in a pipe is lost when the process exits.
    await new Promise((written) => process.stdout.write("", written));
    process.exit(0);
  }
}
