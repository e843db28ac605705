// The console: shows the activity of a server and offers actions.

import "../style.css";
import "./console.css";
import { byId, h } from "../dom";
import { follow, Refused } from "./api";
import { Board } from "./board";

/** The delay before a new request after the stream broke. */
const retryAfter = 2000;

function start(): void {
  const root = byId("console");
  let token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  const notice = h("p", { class: "notice", role: "status" });
  // The result of the last action.
  const result = h("p", { class: "notice", role: "status" });
  const input = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: false });
  const form = h(
    "form", { class: "gate", hidden: true }, h("label", {}, "A token with the admin grant (volsfu token --admin)", input), h("button", { type: "submit", class: "primary" }, "Open"),
  );
  const board = new Board(() => token, (message) => (result.textContent = message));
  root.replaceChildren(notice, result, form, board.element);
  let wake: (() => void) | undefined;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    token = input.value.trim();
    wake?.();
  });
  void run();

  async function run(): Promise<void> {
    for (;;) {
      try {
        await follow(token, new AbortController().signal, (snapshot) => {
          form.hidden = true;
          notice.textContent = "";
          board.show(snapshot);
        });
        notice.textContent = "The server has closed the stream, trying again …";
      } catch (error) {
        if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
          notice.textContent = token ? `The token is not accepted: ${error.message}` : error.message;
          form.hidden = false;
          board.clear();
          await new Promise<void>((resolve) => (wake = resolve));
          continue;
        }
        notice.textContent = `The server cannot be reached, trying again: ${error instanceof Error ? error.message : String(error)}`;
      }
      await new Promise((resolve) => setTimeout(resolve, retryAfter));
    }
  }
}

start();
