// Opens the connection test, without a token and then with it.

import { open, rest, run, tell } from "./visit.mjs";

const [token] = rest;

run(async () => {
  const page = await open("/test");
  await page.locator(".gate").waitFor();
  tell("token needed", { message: await page.locator("[role=status]").textContent() });
  await page.locator("#token").fill(token);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.locator("body[data-done]").waitFor();
  const findings = await page.locator(".findings li").evaluateAll((rows) => rows.map((row) => ({
    status: row.className, subject: row.querySelector("strong").textContent, result: row.querySelector("p").textContent,
  })));
  tell("done", { message: await page.locator("[role=status]").textContent(), findings });
});
