// Joins and leaves repeatedly: each time, every line's frames must reach the script, and none the
// browser's own decoder.

import { open, rest, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open("/?room=demo&identity=eye");
  await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 1);
  const result = await page.evaluate(async (joins) => {
    const mine = globalThis.volsfu.conference;
    const Conference = mine.constructor;
    let conference;
    const Workers = mine.link.workers.constructor;
    const workers = new Workers((report) => conference?.report(report));
    const idle = () => {};
    let bypassed = 0;
    for (let i = 0; i < joins; i++) {
      const seen = new Set();
      const want = 2;
      await new Promise((resolve, reject) => {
        let state = "";
        const fail = (message) => {
          clearTimeout(late);
          reject(new Error(`join ${i}: ${message}`));
        };
        // This is longer than the server's time limit for a connection, so that the server's reason
        // comes first.
        const late = setTimeout(async () => {
          const peer = conference.link.connection?.peer;
          const lines = [];
          (await peer?.getStats())?.forEach((s) => s.type === "inbound-rtp" && s.kind === "video" && lines.push([s.mid, s.packetsReceived, s.framesReceived, s.framesDecoded]));
          const slots = JSON.stringify(conference.reception.slots, (_, value) => (value instanceof Map ? [...value] : value));
          fail(`frames of ${seen.size} of ${want} tiles came; session ${state}, connection ${peer?.connectionState}, ${conference.meters.opened} lines opened, lines ${JSON.stringify(lines)}, slots ${slots}`);
        }, 40_000);
        const events = {
          frame: (track, frame) => {
            conference.recycle(frame);
            seen.add(track.tile);
            if (seen.size === want) {
              clearTimeout(late);
              resolve();
            }
          },
          cleared: idle, published: idle, unpublished: idle, posed: idle, audio: idle, people: idle, trouble: fail,
          state: (now, why) => {
            state = `${now} ${why ?? ""}`;
            if (now === "closed" && seen.size < want) {
              fail(`the session ended: ${why}`);
            }
          },
        };
        conference = new Conference({ url: mine.session.options.url, room: "demo", identity: `guest-${i}` }, workers, events);
        conference.start();
      });
      (await conference.link.connection.peer.getStats()).forEach((s) => (bypassed += s.type === "inbound-rtp" && s.kind === "video" ? (s.framesDecoded ?? 0) + (s.framesDropped ?? 0) : 0));
      conference.leave();
    }
    return { joins, bypassed };
  }, Number(rest[0]));
  tell("joined", result);
});
