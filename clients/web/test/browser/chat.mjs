// Chats on a large and on a small page: names, unread messages, and text that looks like HTML.

import { artefacts, goOn, open, run, tell, until } from "./visit.mjs";

run(async () => {
  const large = await open("/?room=demo&identity=eye", { colorScheme: "light" });
  const small = await open("/?room=demo&identity=phone", { colorScheme: "dark", viewport: { width: 390, height: 780 }, deviceScaleFactor: 2 });
  for (const page of [large, small]) {
    await until(page, () => globalThis.volsfu?.conference.participants.size >= 2 && volsfu.conference.link.messages?.readyState === "open");
  }
  tell("entered");
  await goOn();
  const unread = await until(large, () => [...document.querySelectorAll(".toolbar button.unread")].find((b) => b.textContent === "Chat (2)")?.textContent);
  await until(large, () => document.querySelector(".people .muted"));
  await large.keyboard.press("c");
  await large.locator(".chat .lines li").nth(1).waitFor();
  tell("read", {
    unread,
    after: await large.locator(".toolbar button", { hasText: "Chat" }).textContent(),
    lines: await large.locator(".chat .lines li").evaluateAll((all) => all.map((l) => [...l.children].map((c) => c.textContent).join("|"))),
    elements: await large.locator(".chat .lines img, .chat .lines script").count(),
    muted: await large.locator(".people li", { has: large.locator(".muted") }).locator("button").allTextContents(),
    overflow: await large.evaluate(() => document.querySelector(".chat .lines").scrollWidth > document.querySelector(".chat .lines").clientWidth),
  });
  await small.getByRole("button", { name: /^Chat/ }).click();
  await small.getByPlaceholder("Message to everyone").fill("Hello from a phone");
  await small.keyboard.press("Enter");
  await until(small, () => document.querySelector(".chat .own") && !document.querySelector(".chat .waits"));
  await until(large, () => document.querySelectorAll(".chat .lines li").length === 3);
  await large.getByPlaceholder("Message to everyone").fill("A letter c in the field is text");
  await large.keyboard.press("c");
  await large.keyboard.press("Enter");
  await until(small, () => document.querySelectorAll(".chat .lines li").length === 4);
  await large.screenshot({ path: `${artefacts}/chat-light.png` });
  await small.screenshot({ path: `${artefacts}/chat-phone.png` });
  tell("sent", { open: await large.locator(".chat").isVisible(), last: await small.locator(".chat .lines li span").last().textContent() });
  await large.keyboard.press("Escape");
  await until(large, () => document.querySelector(".chat").hidden && document.activeElement?.id === "stage");
  tell("closed");
});
