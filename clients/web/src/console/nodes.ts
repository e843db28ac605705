// The table of the nodes of a cluster.

import { bitrate, h, milliseconds } from "../dom";
import type { Failure, NodeState } from "./state";

/** What the states of nodes mean. */
const states: Record<NodeState["state"], string> = {
  alive: "Heartbeats arrive.",
  suspected: "Heartbeats are missing. The node is dead as soon as its trunk is silent, too.",
  dead: "Neither heartbeats nor packets on the trunk arrive. Clients continue on other nodes.",
};

/** Returns the table of the nodes, and the nodes whose participants are missing with the reasons. now is the time of the state. */
export function nodesCard(nodes: readonly NodeState[], failed: readonly Failure[], now: string): HTMLElement {
  const head = ["Node", "Region", "State", "Load", "Rooms", "Participants", "Heartbeat", "Trunk round trip", "Trunk estimate", ""].map((c) => h("th", { scope: "col" }, c));
  const missing = failed.map((f) => h("p", { class: "notice" }, `Participants of node ${f.node} are missing: ${f.error}.`));
  return h(
    "article", { class: "room-board" }, h("header", {}, h("h2", {}, "Nodes")), ...missing,
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...nodes.map((n) => row(n, now))))),
  );
}

function row(n: NodeState, now: string): HTMLElement {
  const drain = h("button", { type: "button", class: "danger", disabled: n.state === "dead" || n.draining === true }, "Drain");
  Object.assign(drain.dataset, { act: "drain", node: n.name });
  const age = Math.max(0, Date.parse(now) - Date.parse(n.beat));
  const numbers = [
    `${(100 * n.load).toFixed(0)} %`, String(n.rooms), String(n.participants), n.self ? "–" : `${(age / 1000).toFixed(1)} s ago`,
    n.trunk ? (n.trunk.silent ? "silent" : milliseconds(n.trunk.rtt_ms)) : "–", n.trunk && n.trunk.estimate_bps > 0 ? bitrate(n.trunk.estimate_bps) : "–",
  ];
  return h(
    "tr", {}, h("td", {}, h("b", {}, n.name), n.self ? h("small", {}, " this node") : undefined), h("td", {}, n.region || "–"),
    h("td", { class: `life ${n.state}`, title: states[n.state] }, n.state + (n.draining ? ", draining" : "")),
    ...numbers.map((text) => h("td", { class: "number" }, text)), h("td", {}, drain),
  );
}
