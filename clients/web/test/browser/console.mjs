// Uses the console as an operator: the figures are right, a participant is removed, the room is
// closed and the server drained.

import { artefacts, goOn, open, run, tell } from "./visit.mjs";

run(async () => {
  const page = await open("/console");
  const figure = async (name) => page.locator(".figure", { has: page.getByRole("heading", { name, exact: true }) }).locator("strong").textContent();
  await page.locator(".room-board").first().waitFor();
  await page.locator(".name", { hasText: "eye" }).click();
  await page.locator(".slots .chip").first().waitFor();
  await page.locator(".plot polyline").first().waitFor({ state: "attached" });
  await page.waitForFunction(() => Number(document.querySelectorAll(".plot polyline")[0]?.getAttribute("points")?.split(" ").length) >= 3);
  tell("shown", {
    participants: await figure("Participants"), rooms: await page.locator(".room-board h2").allTextContents(),
    names: (await page.locator(".name").allTextContents()).sort(), chips: await page.locator(".slots .chip").allTextContents(),
  });
  await page.screenshot({ path: `${artefacts}/console.png` });
  await goOn();

  const row = page.locator("tr", { has: page.locator(".name", { hasText: "grace" }) });
  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "No", exact: true }).click();
  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Yes", exact: true }).click();
  await page.waitForFunction(() => ![...document.querySelectorAll(".name")].some((n) => n.textContent === "grace"));
  tell("removed");
  await page.getByRole("button", { name: "Close room" }).click();
  await page.getByRole("button", { name: "Yes", exact: true }).click();
  await page.getByText("No room is open.").waitFor();
  tell("closed");
  await page.getByRole("button", { name: "Drain server" }).click();
  await page.getByRole("button", { name: "Yes", exact: true }).click();
  tell("asked to drain");
  await page.locator(".version", { hasText: "draining" }).waitFor();
  tell("draining");
});
