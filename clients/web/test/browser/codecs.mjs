// Receives frames of several codecs, and reports the decoded points.

import { open, rest, run, tell, until } from "./visit.mjs";

const publishers = Number(rest[0]);

run(async () => {
  const page = await open("/?room=demo&identity=eye", { viewport: { width: 320, height: 240 } });
  // The first frame of each publisher is stored as it was decoded.
  await until(page, () => globalThis.volsfu?.conference);
  await page.evaluate(() => {
    const { events } = volsfu.conference;
    const show = events.frame;
    globalThis.kept = {};
    events.frame = (track, frame) => {
      const { count, positions, colors } = frame.points;
      globalThis.kept[track.participant] ??= { count, positions: [...positions.slice(0, 3 * count)], colors: [...colors.slice(0, 3 * count)] };
      show.call(events, track, frame);
    };
  });
  await until(page, (n) => Object.keys(globalThis.kept).length === n || globalThis.volsfu.conference.meters.total.failed > 0, publishers);
  tell("decoded", {
    failed: await page.evaluate(() => volsfu.conference.meters.total.failed), said: await page.locator("#messages").textContent(),
    kept: await page.evaluate(() => globalThis.kept),
  });
});
