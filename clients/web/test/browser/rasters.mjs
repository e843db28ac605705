// Measures the decoding of rasters: the times of the tiles of each picture, and the frames per second.

import { open, rest, run, tell, until } from "./visit.mjs";

const seconds = Number(rest[0]);

run(async () => {
  const page = await open("/?room=demo&identity=eye", { viewport: { width: 640, height: 360 } });
  await until(page, () => globalThis.volsfu?.conference.meters.total.decoded >= 40);
  const measured = await page.evaluate(async (time) => {
    const { conference } = globalThis.volsfu;
    const { events, meters: { total } } = conference;
    const show = events.frame;
    const pictures = new Map();
    const tiles = [];
    events.frame = (track, frame) => {
      const took = frame.decoded - frame.decodeBegan;
      tiles.push(took);
      const picture = pictures.get(frame.number) ?? { tiles: 0, took: 0 };
      pictures.set(frame.number, { tiles: picture.tiles + 1, took: picture.took + took });
      show.call(events, track, frame);
    };
    const lines = new Set([...conference.tiles()].map((s) => s.mid)).size;
    const before = { ...total };
    await new Promise((resolve) => setTimeout(resolve, 1000 * time));
    events.frame = show;
    const whole = [...pictures.values()].filter((p) => p.tiles === lines).map((p) => p.took);
    return { lines, tiles, whole, decoded: total.decoded - before.decoded, failed: total.failed - before.failed };
  }, seconds);
  tell("measured", measured);
});
