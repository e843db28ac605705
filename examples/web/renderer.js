// A page without three.js: it draws points on a canvas, and publishes points that it computes.
// /renderer.html?server=http://127.0.0.1:8080&identity=ada

import { join } from "@volsfu/client";

const query = new URLSearchParams(location.search);
const state = document.querySelector("#state");
const context = document.querySelector("#picture").getContext("2d");
const { width, height } = context.canvas;

/** The newest frame of each tile. */
const tiles = new Map();

const room = await join({
  url: query.get("server") ?? "http://127.0.0.1:8080",
  room: "demo",
  identity: query.get("identity") ?? "renderer",
  on: {
    frame(frame) {
      const key = `${frame.participant}/${frame.publication}/${frame.tile}`;
      tiles.get(key)?.release();
      tiles.set(key, frame);
    },
    cleared: ({ participant, publication, tile }) => tiles.delete(`${participant}/${publication}/${tile}`),
    unpublished(participant, publication) {
      for (const [key, frame] of tiles) {
        if (frame.participant === participant && frame.publication === publication) {
          tiles.delete(key);
        }
      }
    },
    state: (now, why) => (state.textContent = why ? `${now}: ${why}` : now),
    problem: (message) => console.warn(message),
  },
});

/** Draws all points side by side, seen from the front. */
function draw() {
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const participants = [...new Set([...tiles.values()].map((frame) => frame.participant))].sort();
  for (const { participant, points } of tiles.values()) {
    const middle = ((participants.indexOf(participant) + 0.5) * width) / participants.length;
    for (let i = 0; i < points.count; i++) {
      const x = Math.round(middle + 200 * points.positions[3 * i]);
      const y = Math.round(height - 40 - 200 * points.positions[3 * i + 1]);
      if (x >= 0 && x < width && y >= 0 && y < height) {
        pixels[y * width + x] = 0xff000000 | (points.colors[3 * i + 2] << 16) | (points.colors[3 * i + 1] << 8) | points.colors[3 * i];
      }
    }
  }
  context.putImageData(image, 0, 0);
  requestAnimationFrame(draw);
}
draw();

// A spiral that turns, within a box of one metre by two.
const count = 6000;
const box = { min: [-0.5, 0, -0.5], max: [0.5, 2, 0.5] };
const spiral = await room.publishPoints({ name: "spiral", box, points: count, fps: 15, qualities: [{ name: "all", share: 1, bits: 10 }] });
setInterval(() => {
  const turn = performance.now() / 1000;
  const positions = new Float32Array(3 * count);
  const colors = new Uint8Array(3 * count);
  for (let i = 0; i < count; i++) {
    const share = i / count;
    const angle = 40 * share + turn;
    positions.set([0.45 * Math.cos(angle), 2 * share, 0.45 * Math.sin(angle)], 3 * i);
    colors.set([255 * share, 160, 255 * (1 - share)], 3 * i);
  }
  spiral.write({ count, positions, colors });
}, 1000 / 15);

// The server chooses qualities by the view: here the eye stands two metres before the scene.
setInterval(() => room.look({ position: [0, 1.5, 2], orientation: [0, 0, 0, 1], fov: 55, aspect: width / height }), 1000);
await room.say("hello", `${room.identity} draws by itself`);
