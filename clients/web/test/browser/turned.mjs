// Draws captured people from given views, with nothing else in the space, and stores the pictures. The
// argument is a folder with scene.json (see package lab/raster).

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { open, rest, run, tell, until } from "./visit.mjs";

const folder = rest[0];
const { width, height, fov, views, shots } = JSON.parse(await readFile(join(folder, "scene.json"), "utf8"));

run(async () => {
  const page = await open("/?room=demo&identity=eye&detail=full", { viewport: { width, height } });
  await until(page, () => globalThis.volsfu?.conference.room);
  await page.evaluate(() => {
    const { world } = volsfu;
    world.renderer.setAnimationLoop(null);
    world.ground.object.visible = false;
  });
  for (const shot of shots) {
    const pictures = await page.evaluate(draw, { shot, views, fov });
    for (const [i, picture] of pictures.entries()) {
      await writeFile(join(folder, `${shot.name}-${views[i].name}.png`), Buffer.from(picture, "base64"));
    }
  }
  tell("drawn", { pictures: shots.length * views.length });
});

/** Draws a shot from all views, in the page. */
function draw({ shot, views, fov }) {
  const { world } = volsfu;
  const { objects, camera } = world;
  const array = (Type, text) => new Type(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  objects.remove("who", "body");
  objects.add("who", {
    name: "body", kind: "video", mode: "alternatives", codec: { mime_type: "video/x-points" }, qualities: [{ bitrate_bps: 1 }],
    tiles: shot.tiles.map(() => ({ box: { min: [-1, 0, -1], max: [1, 2, 1] } })),
  });
  for (const [tile, { raster, positions, colors }] of shot.tiles.entries()) {
    const to = { participant: "who", publication: "body", tile };
    if (raster) {
      const depths = array(Float32Array, raster.depths);
      const points = { count: depths.filter((d) => d > 0).length, positions: new Float32Array(0), colors: new Uint8Array(0) };
      objects.show(to, points, 0, { ...raster, points: points.count, depths, colors: array(Uint8Array, raster.colors), id: 0, step: 0.001, growing: false });
    } else {
      const places = array(Float32Array, positions);
      objects.show(to, { count: places.length / 3, positions: places, colors: array(Uint8Array, colors) }, 0);
    }
  }
  // The coordinates of the space are those of the capture, and the person does not fade towards the floor.
  const [object] = objects.placed.values();
  object.group.position.set(0, 0, 0);
  object.group.quaternion.identity();
  object.group.scale.setScalar(1);
  object.shadow.visible = false;
  for (const tile of object.tiles.values()) {
    tile.fade([-1e4, -1e3]);
  }
  for (const plate of objects.labels.values()) {
    plate.object.visible = false;
  }
  world.detail.light = shot.light;
  camera.fov = fov;
  camera.clearViewOffset();
  camera.updateProjectionMatrix();
  return views.map(({ position, target }) => {
    camera.position.set(...position);
    camera.lookAt(...target);
    camera.updateMatrixWorld();
    world.render();
    return world.renderer.domElement.toDataURL("image/png").split(",")[1];
  });
}
