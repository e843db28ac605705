// Measures what the viewer claims: how much arrives, how soon, what it costs.

import { goOn, open, rest, run, tell, until } from "./visit.mjs";

const [what, seconds] = [rest[0], Number(rest[1] ?? 10)];

/** Frames that came whole, of those that were sent, and the middle of the figures of all lines. */
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

/** The page's heap after a collection, in bytes. */
async function heap(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}

const scripts = {
  // Two people for some time: what comes whole, how often, how late; the page's memory at the beginning and at the end.
  async watch() {
    const page = await open("/?room=demo&identity=eye");
    await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 200);
    await page.waitForTimeout(5000);
    const before = await page.evaluate(state);
    tell("begun", { heap: await heap(page) });
    await goOn();
    await page.waitForTimeout(seconds * 1000);
    tell("watched", { before, after: await page.evaluate(state), heap: await heap(page) });
  },

  // Prepared frames that nobody decodes: what the way to the page carries.
  async carry() {
    const page = await open("/?room=demo&identity=eye&decode=off");
    await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 100);
    await page.waitForTimeout(3000);
    const before = await page.evaluate(state);
    await page.waitForTimeout(seconds * 1000);
    tell("carried", { before, after: await page.evaluate(state) });
  },

  // Looks at one of two people, on a link that does not carry both, then turns to the other.
  async turn() {
    const page = await open("/?room=demo&identity=eye");
    await until(page, () => [...(globalThis.volsfu?.conference.participants.keys() ?? [])].length === 2 && volsfu.conference.meters.total.decoded >= 100);
    await page.evaluate((max_bps) => volsfu.conference.session.send({ type: "limits", max_bps }), Number(rest[2]));
    const facing = async (who) => {
      await page.evaluate((name) => {
        const at = volsfu.world.objects.focus(name).position;
        // From close by, with a narrow view, the other one is out of sight.
        volsfu.world.camera.position.set(at.x * 0.2, 1.3, at.z * 0.2);
        volsfu.world.navigation.look(volsfu.world.camera.position.clone().set(at.x, 1.1, at.z));
      }, who);
    };
    const bits = () => page.evaluate(() => {
      const by = {};
      for (const s of volsfu.conference.tiles()) {
        by[s.track.participant] = (by[s.track.participant] ?? 0) + (volsfu.conference.meters.arrived(s.mid, 1000, performance.timeOrigin + performance.now()) * 8);
      }
      return by;
    });
    await facing("ada");
    await page.waitForTimeout(4000);
    const both = await bits();
    tell("facing ada", both);
    await facing("grace");
    const turned = await page.evaluate(() => performance.timeOrigin + performance.now());
    // The first frame of the one turned to that is of its highest quality again.
    const back = await until(page, (since) => {
      const slots = [...volsfu.conference.tiles()].filter((s) => s.track.participant === "grace");
      const first = slots.map((s) => volsfu.conference.meters.first(s.mid, since, 2));
      return first.every((v) => v !== undefined) ? Math.max(...first) : undefined;
    }, turned);
    await page.waitForTimeout(2000);
    tell("facing grace", { back: back - turned, ...(await bits()) });
  },

  // From a click in the lobby of a page that was never loaded to the first point on the screen, and what was loaded for it.
  async load() {
    const page = await open("/");
    let bytes = 0;
    const session = await page.context().newCDPSession(page);
    await session.send("Network.enable");
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
    await page.reload({ waitUntil: "networkidle" });
    await page.locator(".room-card").first().waitFor();
    const clicked = await page.evaluate(() => performance.timeOrigin + performance.now());
    await page.locator(".room-card").first().click();
    const shown = await until(page, () => globalThis.volsfu?.firstPoint.at);
    tell("loaded", { bytes, milliseconds: shown - clicked });
  },
};

run(scripts[what]);
