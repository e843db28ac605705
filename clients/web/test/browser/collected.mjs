// Joins while the worker collects garbage and the page is busy, between the time at which the
// worker gets a line's transformer and the time at which the page's thread connects the transformer
// to its line. Chromium itself has only a weak reference to the transformer in between.

import { open, patience, run, tell, until } from "./visit.mjs";

/**
 * Collects all garbage in a worker after each new transformer, and reports whether the transformer
 * is new.
 */
function collect() {
  if (self.collecting || typeof self.gc !== "function" || !self.onrtctransform) {
    return false;
  }
  self.collecting = true;
  const take = self.onrtctransform;
  const later = new MessageChannel();
  // In a separate task, no stack refers to the transformer.
  later.port1.onmessage = () => self.gc({ type: "major", execution: "async" });
  self.onrtctransform = (event) => {
    take.call(self, event);
    later.port2.postMessage(null);
  };
  return true;
}

run(async () => {
  const page = await open("/?room=demo&identity=eye");
  await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 1);
  const pool = await page.evaluateHandle(() => {
    const Workers = globalThis.volsfu.conference.link.workers.constructor;
    return new Workers((report) => globalThis.guest?.report(report));
  });
  // These are the viewer's own workers and as many of the guest, which may not have run their
  // script yet.
  const decoding = await page.evaluate((pool) => 2 * pool.workers.length, pool);
  let collecting = 0;
  for (const end = Date.now() + patience; collecting < decoding && Date.now() < end; await page.waitForTimeout(100)) {
    for (const worker of page.workers()) {
      collecting += Number(await worker.evaluate(collect));
    }
  }
  const tiles = await page.evaluate(async ({ pool, patience }) => {
    const make = RTCPeerConnection.prototype.createAnswer;
    RTCPeerConnection.prototype.createAnswer = function (...options) {
      for (const end = performance.now() + 1500; performance.now() < end; );
      return make.apply(this, options);
    };
    const mine = globalThis.volsfu.conference;
    const Conference = mine.constructor;
    const idle = () => {};
    const seen = new Set();
    await new Promise((resolve, reject) => {
      setTimeout(resolve, patience);
      const events = {
        frame: (track, frame) => {
          globalThis.guest.recycle(frame);
          seen.add(track.tile);
          if (seen.size === 2) {
            resolve();
          }
        },
        cleared: idle, published: idle, unpublished: idle, posed: idle, audio: idle, people: idle, state: idle, trouble: (message) => reject(new Error(message)),
      };
      globalThis.guest = new Conference({ url: mine.session.options.url, room: "demo", identity: "guest" }, pool, events);
      globalThis.guest.start();
    });
    return seen.size;
  }, { pool, patience });
  tell("seen", { collecting, decoding, tiles });
});
