// The pages of examples/web, which are of another origin than the server. The argument is their
// address.

import { artefacts, base, openForeign, rest, run, tell, until } from "./visit.mjs";

const [pages] = rest;

run(async () => {
  const server = `server=${encodeURIComponent(base)}`;
  const plain = await openForeign(`${pages}/index.html?${server}&identity=plain`);
  await until(plain, () => document.querySelector("volsfu-room").session);
  await plain.evaluate(() => {
    globalThis.messages = [];
    document.querySelector("volsfu-room").session.on("data", ({ text }) => globalThis.messages.push(text));
  });
  const renderer = await openForeign(`${pages}/renderer.html?${server}&identity=renderer`);
  const react = await openForeign(`${pages}/react.html?${server}&identity=react`);
  const people = await until(plain, () => {
    const names = document.querySelector("#people").textContent.split(", ").sort();
    return names.length === 2 && names.join(", ");
  });
  // The plain page draws the person of the page with React, and the spiral of the renderer.
  await plain.evaluate(() => {
    globalThis.drawn = new Set();
    document.querySelector("volsfu-room").session.on("frame", ({ participant, publication }) => globalThis.drawn.add(`${participant}/${publication}`));
  });
  await until(plain, () => globalThis.drawn.has("react/body") && globalThis.drawn.has("renderer/spiral") && globalThis.messages.length > 0);
  const points = Number(await until(react, () => document.querySelector("#points").textContent !== "0" && document.querySelector("#points").textContent));
  const drawn = await until(renderer, () => {
    const { width, height } = document.querySelector("#picture");
    const { data } = document.querySelector("#picture").getContext("2d").getImageData(0, 0, width, height);
    return data.filter((v, i) => i % 4 === 3 && v > 0).length / (width * height);
  });
  for (const [name, page] of Object.entries({ plain, react, renderer })) {
    await page.screenshot({ path: `${artefacts}/example-${name}.png` });
  }
  const state = await react.locator("header").textContent();
  tell("met", { people, points, drawn, messages: await plain.evaluate(() => globalThis.messages), react: state.split(" · ")[1] });

  const embedding = await openForeign(`${pages}/embed.html?${server}&identity=eye`);
  tell("embedded", { state: await until(embedding, () => document.querySelector("#state").textContent !== "loading" && document.querySelector("#state").textContent) });
});
