// Opens pages without a token, with a wrong one, and with a right one.

import { open, rest, run, tell, until } from "./visit.mjs";

const [right, operator] = rest;

run(async () => {
  const page = await open("/");
  await page.locator(".rooms .empty").waitFor();
  tell("without", { message: await page.locator(".rooms .empty").textContent() });
  await page.locator("#token").fill("nonsense");
  await page.locator("#token").blur();
  await page.waitForFunction(() => document.querySelector(".rooms .empty")?.textContent?.includes("not accepted"));
  tell("wrong", { message: await page.locator(".rooms .empty").textContent() });
  // A link with a rejected token leads to the lobby with the reason, and so does one without a
  // token.
  for (const [step, fragment] of [["wrong link", "#token=nonsense"], ["link without", ""]]) {
    const refused = await open(`/?room=demo&identity=eye${fragment}`);
    await refused.locator("#lobby .problem").waitFor();
    tell(step, { message: await refused.locator("#lobby .problem").textContent() });
    await refused.context().close();
  }
  const link = await open(`/?room=demo#token=${right}`);
  await until(link, () => globalThis.volsfu?.conference.room === "demo");
  tell("right", { address: new URL(link.url()).search });
  const board = await open(`/console#token=${right}`);
  await board.locator(".gate").waitFor();
  tell("no operator", { message: await board.locator(".notice").first().textContent() });
  await board.locator("#token").fill(operator);
  await board.getByRole("button", { name: "Open" }).click();
  await board.locator(".figures .figure").first().waitFor();
  tell("operator");
});
