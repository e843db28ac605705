// The page /test: checks the path from this browser to the server, and says what to do.

import "../style.css";
import "./diagnosis.css";
import { byId, h } from "../dom";
import { claimsOf } from "../token";
import { clockFinding, mediaFinding, natFinding, pageFinding, wayFinding, websocketFinding } from "./findings";
import type { Finding, Reached, Way } from "./findings";
import { attempt } from "./probe";

const words = { ok: "OK", warning: "Note", failed: "Failed", skipped: "Skipped" } as const;

function row(finding: Finding): HTMLElement {
  return h(
    "li", { class: finding.status },
    h("strong", {}, finding.subject), h("span", { class: "status" }, words[finding.status]), h("p", {}, finding.result),
    finding.advice ? h("p", { class: "advice" }, finding.advice) : undefined,
  );
}

/** Reports whether the server asks for a token, or why it cannot be asked. */
async function tokenNeeded(token: string): Promise<{ needed: boolean; reason: string }> {
  try {
    const response = await fetch(new URL("../v1/rooms", document.baseURI), token ? { headers: { Authorization: `Bearer ${token}` } } : {});
    return { needed: response.status === 401 || response.status === 403, reason: "" };
  } catch (error) {
    return { needed: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

function start(): void {
  let token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  const list = h("ul", { class: "findings", ariaLive: "polite" });
  const state = h("p", { class: "claim", role: "status" });
  const again = h("button", { class: "primary", type: "button", hidden: true }, "Repeat");
  const copy = h("button", { class: "secondary", type: "button", hidden: true }, "Copy the result");
  const input = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: false });
  const form = h("form", { class: "gate", hidden: true }, h("label", {}, "A token for a room", input), h("button", { type: "submit", class: "primary" }, "Continue"));
  let findings: Finding[] = [];
  byId("diagnosis").replaceChildren(h("h1", {}, "Connection test"), state, form, list, h("p", { class: "ways" }, again, copy));
  again.addEventListener("click", () => void run());
  copy.addEventListener("click", () => void navigator.clipboard.writeText(findings.map((f) => `${f.status}\t${f.subject}\t${f.result}`).join("\n")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    token = input.value.trim();
    form.hidden = true;
    void run();
  });
  void run();

  function show(finding: Finding): void {
    findings.push(finding);
    list.append(row(finding));
  }

  async function run(): Promise<void> {
    findings = [];
    list.replaceChildren();
    again.hidden = copy.hidden = true;
    show(pageFinding(isSecureContext, location.protocol, location.host));
    state.textContent = "Asking the server …";
    const { needed, reason } = await tokenNeeded(token);
    if (needed) {
      state.textContent = token ? "The server does not accept this token." : "The server asks for a token to join a test room.";
      form.hidden = false;
      return;
    }
    if (reason) {
      show(websocketFinding(NaN, reason));
    } else {
      await ways();
    }
    state.textContent = findings.some((f) => f.status === "failed") ? "The test found problems." : "The test found no problem.";
    again.hidden = copy.hidden = false;
    document.body.dataset.done = "true";
  }

  async function ways(): Promise<void> {
    const url = new URL("../v1/signal", document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const claims = claimsOf(token);
    const random = crypto.getRandomValues(new Uint32Array(1))[0]!.toString(36);
    const reached: Partial<Record<Way, Reached>> = {};
    for (const way of ["udp", "tcp", "relay"] as const) {
      state.textContent = `Connecting over ${way === "relay" ? "the relay" : way.toUpperCase()} …`;
      const result = await attempt(way, {
        url: url.href, token, room: claims.room || `connection test ${random}`, identity: claims.identity || `visitor ${random} ${way}`,
      });
      if (way === "udp") {
        show(websocketFinding(result.clock.roundTrip, result.refused));
        if (result.refused) {
          return;
        }
        show(clockFinding(result.clock.ahead, result.clock.bound));
        show(natFinding(result.mappings, result.stunServers));
      }
      if (result.reached) {
        reached[way] = result.reached;
      }
      show(wayFinding(way, result.reached, result.offered));
    }
    show(mediaFinding(reached));
  }
}

start();
