// Makes the pictures of a film. The film has a time of its own: a picture is drawn as soon as the page
// has the frames for it, and time then advances by the interval of pictures, however long that took.
// The arguments are the rate and the number of the pictures; each line of input has the numbers of the
// frames of each person that have the next content, in JSON.

import { goOn, open, rest, run, tell, until } from "./visit.mjs";

const [rate, count] = rest.map(Number);
/** The eye moves on an arc to both sides of the seat, in radians, and so much nearer, as a share of the distance. */
const aside = 0.42;
const nearer = 0.12;
const quality = 0.72;
/** A frame that has not arrived after this time is published again, in milliseconds. */
const dropped = 4000;

run(async () => {
  const page = await open("/?room=demo&identity=eye&detail=full", { viewport: { width: 720, height: 405 }, colorScheme: "light" });
  const { people } = JSON.parse(await goOn());
  // People are measured and framed while the page draws by itself.
  await until(page, (n) => {
    const objects = globalThis.volsfu?.world.objects;
    return objects && [...objects.placed.values()].filter((o) => o.measured).length === n && volsfu.world.atHome;
  }, people);
  await page.evaluate(() => volsfu.world.renderer.setAnimationLoop(null));
  tell("ready");
  for (let i = 0; i < count; i++) {
    while (!(await arrived(page, JSON.parse(await goOn())))) {
      tell("again");
    }
    tell("picture", { picture: await page.evaluate(draw, { i, count, rate, aside, nearer, quality }) });
  }
});

/** Waits until the page has a frame of each tile; returns false if that takes too long, as if the server dropped one. */
function arrived(page, numbers) {
  const complete = (wanted) => Object.entries(wanted).every(([who, { first, last, tiles }]) =>
    [...volsfu.fresh.values()].filter(({ track, frame }) => track.participant === who && frame.number >= first && frame.number <= last).length === tiles);
  return page.waitForFunction(complete, numbers, { polling: 20, timeout: dropped }).then(() => true, () => false);
}

/** Draws one picture, in the page, and returns it as WebP in Base64. */
function draw({ i, count, rate, aside, nearer, quality }) {
  const { world } = volsfu;
  const { eye, target } = world.seat;
  const turn = (2 * Math.PI * i) / count;
  const from = eye.clone().sub(target).applyAxisAngle(world.camera.up, aside * Math.sin(turn)).multiplyScalar(1 - 0.5 * nearer * (1 - Math.cos(turn))).add(target);
  world.navigation.go(from, target);
  world.draw(world.last + 1000 / rate);
  return world.renderer.domElement.toDataURL("image/webp", quality).split(",")[1];
}
