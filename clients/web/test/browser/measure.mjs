// Measures the properties claimed for the viewer: throughput, delay, cost.

import { base, blank, collector, open, rest, run, tell, until } from "./visit.mjs";

const [what, seconds] = [rest[0], Number(rest[1] ?? 10)];
/** The number of turns of the eye from one person to the other. */
const turns = seconds;

/** The numbers of complete frames and of sent ones, and the medians of the figures of all lines. */
const state = () => {
  const { conference } = globalThis.volsfu;
  const at = performance.timeOrigin + performance.now();
  const figures = [...conference.tiles()].map((s) => conference.meters.figures(s.mid, at)).filter((f) => f && f.fps > 0);
  const middle = (pick) => figures.map(pick).filter(Number.isFinite).sort((a, b) => a - b)[Math.floor(figures.length / 2)] ?? null;
  return {
    ...conference.meters.total, at, lines: figures.length, fps: middle((f) => f.fps), bps: figures.reduce((sum, f) => sum + f.bps, 0),
    network: middle((f) => f.network), wait: middle((f) => f.wait), decode: middle((f) => f.decode), shown: middle((f) => f.shown),
  };
};

/** The number of samples of the page's memory: every ten seconds, and at least six. */
const looks = Math.max(6, Math.round(seconds / 10));

/**
 * Starts counting frames by the milliseconds from their capture until they are drawn, in a
 * histogram with memory allocated in advance. Publishers and page share one clock here, and the
 * server's offset from it is estimated.
 */
const countDelays = () => {
  const { meters } = globalThis.volsfu.conference;
  const counts = (globalThis.delays = new Uint32Array(20_000));
  const shown = meters.shown.bind(meters);
  meters.shown = (mid, after) => {
    shown(mid, after);
    const last = meters.byMid.get(mid)?.samples.at(-1);
    const delay = last ? last.network + last.wait + last.decode + last.shown : NaN;
    if (Number.isFinite(delay)) {
      counts[Math.min(Math.max(Math.round(delay), 0), counts.length - 1)]++;
    }
  };
};

const scripts = {
  // Two people for some time: completeness, rate and delay of frames, and samples of the page's
  // memory.
  async watch() {
    const page = await open("/?room=demo&identity=eye");
    await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 200);
    await page.waitForTimeout(5000);
    await page.evaluate(countDelays);
    const collect = await collector(page);
    const before = await page.evaluate(state);
    for (let i = 0; i <= looks; i++) {
      await page.waitForTimeout(Math.max(0, before.at + (i * seconds * 1000) / looks - (performance.timeOrigin + performance.now())));
      const at = (await page.evaluate(() => performance.timeOrigin + performance.now())) - before.at;
      tell("looked", { at, heap: await collect() });
    }
    tell("watched", { before, after: await page.evaluate(state), delays: await page.evaluate(() => [...globalThis.delays]) });
  },

  // Prepared frames without decoding: the throughput of the transfer to the page.
  async carry() {
    const page = await open(`/?room=demo&identity=eye&decode=off&delivery=${rest[2]}`);
    await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 20);
    await page.waitForTimeout(3000);
    const before = await page.evaluate(state);
    await page.waitForTimeout(seconds * 1000);
    tell("carried", { before, after: await page.evaluate(state) });
  },

  // Looks at one of two people, then at the other one behind, and back again: the received data of
  // both, and the delay from the turn to the first complete frame of the visible person at the
  // highest quality. The time between turns is long enough for the publisher of the invisible
  // person to pause unused tracks.
  async turn() {
    const page = await open("/?room=demo&identity=eye", { viewport: { width: 640, height: 360 } });
    await until(page, () => [...(globalThis.volsfu?.conference.participants.keys() ?? [])].length === 2 && volsfu.conference.meters.total.decoded >= 100);
    const now = () => page.evaluate(() => performance.timeOrigin + performance.now());
    /** The eye is in the middle between the two, and looks at one of them. */
    const face = (who) => page.evaluate((name) => {
      const [a, b] = ["ada", "grace"].map((n) => volsfu.world.objects.focus(n));
      volsfu.world.camera.position.set((a.x + b.x) / 2, 1.3, (a.z + b.z) / 2);
      const at = name === "ada" ? a : b;
      volsfu.world.navigation.look(volsfu.world.camera.position.clone().set(at.x, 1.1, at.z));
      return performance.timeOrigin + performance.now();
    }, who);
    /** The rate received from each person in the last second, in bit/s. */
    const bits = () => page.evaluate(() => {
      const by = {};
      for (const s of volsfu.conference.tiles()) {
        by[s.track.participant] = (by[s.track.participant] ?? 0) + volsfu.conference.meters.arrived(s.mid, 1000, performance.timeOrigin + performance.now()) * 8;
      }
      return by;
    });
    const whole = (who, since) => until(page, ([name, from]) => {
      const first = [...volsfu.conference.tiles()].filter((s) => s.track.participant === name).map((s) => volsfu.conference.meters.first(s.mid, from, 2));
      return first.length > 0 && first.every((v) => v !== undefined) ? Math.max(...first) : undefined;
    }, [who, since], 10);
    const [ada, grace] = ["ada", "grace"];
    await whole(ada, await face(ada));
    await page.waitForTimeout(5000);
    for (let turn = 0; turn < turns; turn++) {
      const [to, from] = turn % 2 === 0 ? [grace, ada] : [ada, grace];
      const before = await bits();
      const turned = await face(to);
      const back = (await whole(to, turned)) - turned;
      await page.waitForTimeout(Math.max(0, turned + 2000 - (await now())));
      const after = await bits();
      tell("turned", { back, seen: before[from], unseen: after[from] });
      await page.waitForTimeout(4000);
    }
  },

  // Lobby, room and console: every request, the violations of the policy, and inline content.
  async ask() {
    let [requests, foreign, violations, inline] = [0, 0, 0, 0];
    const policies = [];
    for (const path of ["/", "/console"]) {
      const page = await open(blank);
      await page.exposeFunction("violated", () => violations++);
      await page.addInitScript(() => document.addEventListener("securitypolicyviolation", () => globalThis.violated()));
      page.on("request", (request) => {
        const url = new URL(request.url());
        requests++;
        foreign += url.protocol !== "blob:" && url.host !== new URL(base).host ? 1 : 0;
      });
      page.on("websocket", (socket) => {
        requests++;
        foreign += new URL(socket.url()).host !== new URL(base).host ? 1 : 0;
      });
      const response = await page.goto(base + path, { waitUntil: "load" });
      policies.push((await response.allHeaders())["content-security-policy"] ?? "");
      const source = await response.text();
      inline += (source.match(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=/gi) ?? []).length;
      if (path === "/") {
        await page.locator(".room-card").first().click();
        await until(page, () => globalThis.volsfu?.firstPoint.at);
      } else {
        await page.locator("text=demo").first().waitFor();
      }
      await page.waitForTimeout(3000);
    }
    tell("asked", { requests, foreign, violations, inline, policies });
  },

  // From a click in the lobby of a page that was never loaded to the first point on the screen, and
  // the files loaded for it.
  async load() {
    const page = await open(blank);
    // A separate context has an empty cache. Requests of workers count, too.
    const addresses = [];
    page.context().on("request", (request) => request.url().startsWith(base) && addresses.push(request.url()));
    await page.goto(`${base}/`, { waitUntil: "networkidle" });
    await page.locator(".room-card").first().waitFor();
    // These are the steps of joining: end of the join in signalling, connection of media, first
    // decoded frame.
    await page.evaluate(() => {
      globalThis.joining = {};
      // The page records the time of the click, since the driver of the browser needs a while to
      // deliver it.
      addEventListener("click", () => (globalThis.joining.clicked ??= performance.timeOrigin + performance.now()), true);
      const look = () => {
        const conference = globalThis.volsfu?.conference;
        const now = performance.timeOrigin + performance.now();
        if (conference) {
          globalThis.joining.joined ??= conference.room ? now : undefined;
          globalThis.joining.connected ??= conference.link.connection?.state === "connected" ? now : undefined;
          globalThis.joining.decoded ??= conference.meters.total.decoded > 0 ? now : undefined;
        }
        if (!globalThis.joining.decoded) {
          setTimeout(look, 5);
        }
      };
      look();
    });
    await page.locator(".room-card").first().click();
    const shown = await until(page, () => globalThis.volsfu?.firstPoint.at);
    const joining = await page.evaluate(() => globalThis.joining);
    const after = (at) => at - joining.clicked;
    tell("loaded", { addresses, milliseconds: after(shown), joined: after(joining.joined), connected: after(joining.connected), decoded: after(joining.decoded) });
  },
};

run(scripts[what]);
