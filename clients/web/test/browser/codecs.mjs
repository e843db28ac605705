// Receives frames of several codecs, and reports the decoded points.

import { open, rest, run, tell, until } from "./visit.mjs";

const publishers = Number(rest[0]);

run(async () => {
  const page = await open("/?room=demo&identity=eye", { viewport: { width: 320, height: 240 } });
  // The first frame of each publisher is stored as it was decoded.
  await until(page, () => globalThis.volsfu?.conference);
  await page.evaluate(() => {
    /** Returns the points of a raster of a camera without distortion, row by row, as the viewer's shader computes them. */
    globalThis.pointsOf = ({ camera: { fx, fy, cx, cy, pose: { rotation: r, translation: t } }, left, top, columns, rows, depths, colors }) => {
      const points = { count: 0, positions: [], colors: [] };
      for (let i = 0; i < columns * rows; i++) {
        const z = depths[i];
        if (z > 0) {
          const at = [((left + (i % columns) - cx) / fx) * z, -((top + Math.floor(i / columns) - cy) / fy) * z, -z];
          points.positions.push(...[0, 1, 2].map((axis) => t[axis] + r[3 * axis] * at[0] + r[3 * axis + 1] * at[1] + r[3 * axis + 2] * at[2]));
          points.colors.push(...colors.subarray(4 * i, 4 * i + 3));
          points.count++;
        }
      }
      return points;
    };
    const { events } = volsfu.conference;
    const show = events.frame;
    globalThis.kept = {};
    events.frame = (track, frame) => {
      const { count, positions, colors } = frame.raster ? globalThis.pointsOf(frame.raster) : frame.points;
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
