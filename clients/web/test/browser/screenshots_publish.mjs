// Makes the documentation's pictures of the publishing panel: during the setup, and while
// publishing.

import { artefacts, hintGone, open, run, tell, until } from "./visit.mjs";

run(async () => {
  for (const [name, options] of [
    ["publish-light", { colorScheme: "light" }],
    ["publish-choose-dark", { colorScheme: "dark" }],
  ]) {
    const page = await open("/?room=demo&identity=Barbara&points=15000&fps=5", options);
    page.setDefaultTimeout(150_000);
    // Frames of both people, who have one tile each.
    await until(page, () => globalThis.volsfu?.conference.meters.byMid.size >= 2 && volsfu.conference.meters.total.decoded >= 12);
    await page.keyboard.press("p");
    await page.locator(".self form").waitFor();
    if (name === "publish-choose-dark") {
      await until(page, () => [...document.querySelectorAll(".self .note")].slice(1).every((n) => n.textContent !== ""));
      await hintGone(page);
      await page.screenshot({ path: `${artefacts}/${name}.png` });
    } else {
      await page.getByRole("button", { name: "Show yourself" }).last().click();
      await until(page, () => volsfu.panel.publisher?.state().qualities.filter((q) => q.fps > 1).length >= 2);
      await page.waitForTimeout(3000);
      await hintGone(page);
      await page.screenshot({ path: `${artefacts}/${name}.png` });
    }
    await page.getByRole("button", { name: "Leave" }).click();
    await page.context().close();
  }
  tell("made");
});
