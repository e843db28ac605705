// The judgements of the connection test.

import { expect, test } from "vitest";
import { clockFinding, mediaFinding, natFinding, pageFinding, protocolOf, separated, wayFinding, websocketFinding, withOnly } from "../../src/diagnosis/findings";
import type { Finding } from "../../src/diagnosis/findings";

const reached = { roundTrip: 12.34, took: 480, address: "203.0.113.5:7882" };

function advised(...findings: Finding[]): void {
  for (const f of findings) {
    if (f.status === "failed" || f.status === "warning") {
      expect(f.advice, f.subject + f.result).toBeTruthy();
    }
  }
}

test("a page needs a certificate except on this computer", () => {
  expect(pageFinding(true, "https:", "sfu.example.org").status).toBe("ok");
  expect(pageFinding(true, "http:", "localhost:8080").status).toBe("ok");
  const plain = pageFinding(false, "http:", "sfu.example.org");
  expect(plain.status).toBe("failed");
  advised(plain);
});

test("each way of media has a result and advice", () => {
  expect(wayFinding("udp", reached, true).result).toContain("203.0.113.5:7882 in 480 ms, round trip 12.3 ms");
  expect(wayFinding("tcp", { ...reached, roundTrip: NaN }, true).result).not.toContain("NaN");
  expect(wayFinding("udp", undefined, true).status).toBe("warning");
  expect(wayFinding("relay", undefined, true).status).toBe("failed");
  expect(wayFinding("relay", undefined, false).status).toBe("skipped");
  expect(mediaFinding({ tcp: reached }).result).toContain("TCP");
  expect(mediaFinding({}).status).toBe("failed");
  expect(websocketFinding(3, "").status).toBe("ok");
  expect(websocketFinding(NaN, "no answer").result).toContain("no answer");
  advised(wayFinding("udp", undefined, true), wayFinding("tcp", undefined, true), wayFinding("relay", undefined, true), mediaFinding({}), websocketFinding(NaN, "x"));
});

test("a symmetric NAT maps one socket to several ports", () => {
  const first = { base: "10.0.0.5:5000", public: "203.0.113.5:4000" };
  expect(natFinding([], 0).status).toBe("skipped");
  expect(natFinding([], 2).status).toBe("warning");
  expect(natFinding([first, first], 2).result).toBe("The public address is 203.0.113.5:4000.");
  expect(natFinding([first], 1).result).toContain("Two STUN servers");
  expect(natFinding([first, { ...first, public: "203.0.113.5:4001" }], 2).result).toContain("symmetric");
  expect(natFinding([first, { base: "10.1.0.5:5000", public: "198.51.100.1:4001" }], 2).result).not.toContain("symmetric");
});

test("a clock that differs beyond its error is reported", () => {
  expect(clockFinding(0, NaN).status).toBe("skipped");
  expect(clockFinding(-900, 5).result).toContain("0.900 s behind");
  expect(clockFinding(1400, 500).status).toBe("ok");
  expect(clockFinding(1600, 500).status).toBe("warning");
});

test("candidates of one protocol remain", () => {
  const udp = "a=candidate:1 1 udp 2130706431 203.0.113.5 7882 typ host";
  const tcp = "a=candidate:2 1 TCP 1671430143 203.0.113.5 7882 typ host tcptype passive";
  expect(protocolOf(udp)).toBe("udp");
  expect(protocolOf("")).toBe("");
  expect(withOnly(`v=0\r\n${udp}\r\n${tcp}\r\n`, "tcp")).toBe(`v=0\r\n${tcp}\r\n`);
});

test("STUN servers and relays are separated", () => {
  const { stun, turn } = separated([{ urls: ["stun:a", "turn:a", "turns:a:443"], username: "u", credential: "c" }, { urls: "stun:b" }]);
  expect(stun).toEqual([{ urls: ["stun:a"] }, { urls: ["stun:b"] }]);
  expect(turn).toEqual([{ urls: ["turn:a", "turns:a:443"], username: "u", credential: "c" }]);
});
