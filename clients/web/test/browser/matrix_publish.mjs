// Publishes from a page until the input ends: the figure, or the picture of a depth camera as rgbd.

import { goOn, open, rest, run, tell, until } from "./visit.mjs";

const [room, source, points, key] = rest;

run(async () => {
  const lens = source === "camera" ? "&codec=rgbd&arrangement=depth-left&coding=near-bright&near=1&far=3&fov=60&height=1.2" : "";
  const page = await open(`/?room=${room}&identity=publisher&publish=${source}${lens}&points=${points}&fps=10&tiles=1&qualities=high${key ? `#key=${encodeURIComponent(key)}` : ""}`, { viewport: { width: 320, height: 240 } });
  await until(page, () => globalThis.volsfu?.panel?.publisher?.state().live);
  tell("live");
  await goOn();
});
