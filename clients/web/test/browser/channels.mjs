// A browser without script access to frames of media lines: they arrive over data channels, and
// everything else is unchanged.

import { appears, blank, base, goOn, open, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open(blank);
  await page.addInitScript(() => delete globalThis.RTCRtpScriptTransform);
  await page.goto(`${base}/?room=demo&identity=eye`);
  await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 40 && volsfu.conference.participants.size === 2);
  await until(page, () => [...volsfu.conference.tiles()].length === 4 && [...volsfu.conference.tiles()].every((s) => (s.quality ?? -1) >= 0));
  const before = await appears(page, 0.03);
  const facts = await page.evaluate(async () => {
    const video = [];
    (await volsfu.conference.link.connection.peer.getStats()).forEach((s) => s.type === "inbound-rtp" && s.kind === "video" && video.push(s.mid));
    const { failed, decoded } = volsfu.conference.meters.total;
    return { video: video.length, mids: [...volsfu.conference.tiles()].map((s) => s.mid), failed, decoded };
  });
  tell("seen", { shown: before.shown, ...facts });
  // A choice takes effect.
  await page.evaluate(() => volsfu.conference.choose({ participant: "ada", publication: [...volsfu.conference.tiles()].find((s) => s.track.participant === "ada").track.publication, quality: 0 }));
  await until(page, () => {
    const mine = [...volsfu.conference.tiles()].filter((s) => s.track.participant === "ada");
    const at = performance.timeOrigin + performance.now();
    return mine.every((s) => s.quality === 0 && volsfu.conference.meters.figures(s.mid, at)?.quality === 0);
  });
  tell("chosen");
  await goOn();
  // Another participant joins: frames arrive without another offer, on existing channels.
  await until(page, () => [...volsfu.conference.tiles()].some((s) => s.track.participant === "linus" && volsfu.conference.meters.figures(s.mid, performance.timeOrigin + performance.now())?.fps > 0));
  tell("joined by another");
});
