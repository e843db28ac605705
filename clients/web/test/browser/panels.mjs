// Opens the panels beside people: reports the places of all faces, and the part of the picture that is
// free.

import { open, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open("/?room=demo&identity=eye", { viewport: { width: 1100, height: 600 } });
  await until(page, () => globalThis.volsfu?.conference.room);
  await page.evaluate(() => {
    const { objects } = volsfu.world;
    for (const who of ["ada", "grace", "linus"]) {
      objects.add(who, {
        name: "body", kind: "video", mode: "alternatives", codec: { mime_type: "video/x-points" }, qualities: [{ bitrate_bps: 1 }],
        tiles: [{ box: { min: [-0.3, 0, -0.3], max: [0.3, 1.7, 0.3] } }],
      });
    }
    globalThis.where = () => {
      const { camera, objects } = volsfu.world;
      camera.updateMatrixWorld();
      return {
        faces: [...objects.people()].map((who) => (0.5 + 0.5 * objects.focus(who).project(camera).x) * innerWidth),
        panels: [...document.querySelectorAll(".chat, .self")].map((p) => p.getBoundingClientRect()).filter((p) => p.width > 0).map((p) => p.right),
        width: innerWidth, covered: volsfu.world.covered.left,
      };
    };
  });
  const where = async (panels) => {
    // The first view follows when the page draws.
    await until(page, (n) => where().panels.length === n && (n > 0) === (where().covered > 0) && volsfu.world.atHome && !volsfu.world.objects.moved, panels);
    return page.evaluate(() => where());
  };
  const free = await where(0);
  await page.keyboard.press("c");
  const chat = await where(1);
  await page.keyboard.press("Escape");
  const closed = await where(0);
  await page.keyboard.press("p");
  const self = await where(1);
  tell("placed", { free, chat, closed, self });
});
