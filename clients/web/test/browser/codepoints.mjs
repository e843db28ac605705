// Receives frames on media lines and publishes sound, and reports the browser's counts of ECN codepoints and what was
// negotiated, whenever it is told to continue.

import { goOn, open, publishWithSound, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open("/?room=demo&identity=page&points=1000&fps=5&tiles=1&qualities=low", { viewport: { width: 320, height: 240 } });
  await publishWithSound(page);
  await until(page, () => volsfu.conference.meters.total.decoded >= 20);
  for (let line = "live"; line !== "end"; line = await goOn()) {
    tell("counted", await page.evaluate(async () => {
      const { peer } = volsfu.conference.link.connection;
      const received = { packets: 0, ect1: 0, ce: 0 };
      (await peer.getStats()).forEach((s) => {
        if (s.type === "inbound-rtp") {
          received.packets += s.packetsReceived ?? 0;
          received.ect1 += s.packetsReceivedWithEct1 ?? 0;
          received.ce += s.packetsReceivedWithCe ?? 0;
        }
      });
      return { received, offer: peer.remoteDescription.sdp, answer: peer.localDescription.sdp };
    }));
  }
});
