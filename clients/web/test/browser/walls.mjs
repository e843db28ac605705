// Draws rasters of walls that fill the picture. First a wall whose left half has the full size and whose
// right half a quarter of it, from several sides: reports the pixels that are not the wall's. Then a wall
// whose colour changes from one frame to the next: reports the colour between the frames.

import { open, run, tell, until } from "./visit.mjs";

run(async () => {
  const page = await open("/?room=demo&identity=eye&detail=full", { viewport: { width: 480, height: 240 } });
  await until(page, () => globalThis.volsfu?.conference.room);
  await page.evaluate(prepare);
  const views = [];
  for (const light of [false, true]) {
    for (const degrees of [0, 20, -20, 40]) {
      views.push({ light, degrees, ...await page.evaluate(look, { light, degrees }) });
    }
  }
  tell("seams", { views });
  tell("frames", { colors: await page.evaluate(change) });
});

/** Defines functions for the others, in the page. */
function prepare() {
  const { world } = volsfu;
  const { objects, camera } = world;
  world.renderer.setAnimationLoop(null);
  world.ground.object.visible = false;
  const [width, height, focal] = [128, 64, 100];
  const lens = {
    width, height, fx: focal, fy: focal, cx: (width - 1) / 2, cy: (height - 1) / 2, distortion: undefined,
    pose: { rotation: [1, 0, 0, 0, 1, 0, 0, 0, 1], translation: [0, 0, 0] },
  };
  /** Shows a part of the wall of one colour, of which there are as many as tiles. */
  const show = (tile, tiles, reduction, color, depth = 1) => {
    const columns = width / tiles / 2 ** reduction;
    const rows = height / 2 ** reduction;
    const points = columns * rows;
    objects.show({ participant: "who", publication: "body", tile }, { count: points, positions: new Float32Array(0), colors: new Uint8Array(0) }, 0, {
      camera: lens, id: 0, reduction, left: tile * columns, top: 0, columns, rows, points, step: 0.001, growing: false,
      depths: new Float32Array(points).fill(depth), colors: new Uint8Array(4 * points).map((_, i) => color[i % 4]),
    });
  };
  const begin = (tiles) => {
    objects.remove("who", "body");
    objects.add("who", {
      name: "body", kind: "video", mode: "alternatives", codec: { mime_type: "video/x-points" }, frame_rate: 25, qualities: [{ bitrate_bps: 1 }],
      tiles: Array.from({ length: tiles }, () => ({ box: { min: [-1, -1, -1.1], max: [1, 1, -0.9] } })),
    });
    objects.pose({ participant: "who", publication: "body", position: [0, 0, 0], orientation: [0, 0, 0, 1] });
  };
  /** Returns the pixels of a view from a distance of a metre. */
  const pixels = (degrees) => {
    for (const { shadow } of objects.placed.values()) {
      shadow.visible = false;
    }
    for (const plate of objects.labels.values()) {
      plate.object.visible = false;
    }
    // The picture is 0.6 m wide and 0.3 m high on the wall, which is 1.28 m wide and 0.64 m high.
    camera.fov = (360 / Math.PI) * Math.atan(0.15);
    camera.clearViewOffset();
    camera.updateProjectionMatrix();
    const turn = (degrees * Math.PI) / 180;
    camera.position.set(Math.sin(turn), 0, -1 + Math.cos(turn));
    camera.lookAt(0, 0, -1);
    camera.updateMatrixWorld();
    world.render();
    const gl = world.renderer.getContext();
    const { drawingBufferWidth: w, drawingBufferHeight: h } = gl;
    const all = new Uint8Array(4 * w * h);
    gl.readPixels(0, 0, w, h, gl.RGBA, gl.UNSIGNED_BYTE, all);
    return all;
  };
  globalThis.walls = { show, begin, pixels };
}

/** Draws the wall of two sizes, in the page, and counts pixels of another colour. */
function look({ light, degrees }) {
  const color = [210, 60, 40, 255];
  walls.begin(2);
  walls.show(0, 2, 0, color);
  walls.show(1, 2, 2, color);
  volsfu.world.detail.light = light;
  const pixels = walls.pixels(degrees);
  let other = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    const away = Math.max(...[0, 1, 2].map((c) => Math.abs(pixels[i + c] - color[c])));
    other += away > 12 ? 1 : 0;
  }
  return { pixels: pixels.length / 4, other };
}

/** Shows two frames of a wall, and a third that is much nearer, and returns the red of the middle at every step. */
function change() {
  const { objects, camera } = volsfu.world;
  volsfu.world.detail.light = false;
  const red = () => {
    const pixels = walls.pixels(0);
    return pixels[4 * Math.floor(pixels.length / 8 + 120)];
  };
  const step = () => objects.step(0.02, camera.position);
  walls.begin(1);
  walls.show(0, 1, 0, [200, 0, 0, 255]);
  const colors = [red()];
  walls.show(0, 1, 0, [100, 0, 0, 255]);
  for (let i = 0; i < 3; i++) {
    colors.push(red());
    step();
  }
  walls.show(0, 1, 0, [40, 0, 0, 255], 0.9);
  colors.push(red());
  return colors;
}
