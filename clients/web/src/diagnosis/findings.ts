// The results of the connection test and the advice for each. The functions judge measurements and
// make none.

export type Status = "ok" | "warning" | "failed" | "skipped";

export interface Finding {
  subject: string;
  status: Status;
  result: string;
  /** The next step, if there is something to do. */
  advice?: string;
}

/** One way of media from this browser to the server. */
export type Way = "udp" | "tcp" | "relay";

/** The result of connecting over one way; without one, the connection failed. */
export interface Reached {
  /** The round trip of media in milliseconds, NaN if it is unknown. */
  roundTrip: number;
  /** The time from the join to the connection, in milliseconds. */
  took: number;
  /** The server's candidate of the selected pair, as in "203.0.113.5:7882". */
  address: string;
}

const names: Record<Way, string> = { udp: "Media over UDP", tcp: "Media over TCP", relay: "Media over the relay" };

/** Judges the page's own connection, which has the server's certificate. */
export function pageFinding(secure: boolean, protocol: string, host: string): Finding {
  const subject = "Certificate";
  if (protocol === "https:") {
    return { subject, status: "ok", result: `This browser trusts the certificate of ${host}.` };
  }
  if (secure) {
    return { subject, status: "ok", result: `${host} is this computer, where no certificate is needed.` };
  }
  return {
    subject, status: "failed", result: "The page has no certificate: browsers permit no camera and no microphone.",
    advice: "Open the page with https://. The operator of the server needs a certificate (docs/operations.md, TLS).",
  };
}

/** Judges the join of a test room over the websocket. The reason is that of a failure. */
export function websocketFinding(roundTrip: number, reason: string): Finding {
  const subject = "Websocket";
  if (!reason) {
    return { subject, status: "ok", result: `The server answers after ${roundTrip.toFixed(1)} ms.` };
  }
  return {
    subject, status: "failed", result: `The server cannot be joined: ${reason}.`,
    advice: "A proxy in front of the server has to pass the websocket at /v1/signal. A proxy of this network may forbid websockets: try another network.",
  };
}

/** Judges one way of media. It is undefined if the way was not tried. */
export function wayFinding(way: Way, reached: Reached | undefined, offered: boolean): Finding {
  const subject = names[way];
  if (!offered) {
    return {
      subject, status: "skipped", result: way === "relay" ? "The server names no relay." : `The server has no address for ${way.toUpperCase()}.`,
      ...(way === "relay" ? { advice: "Networks that permit only TLS on port 443 need a relay; the operator of the server can enable one." } : {}),
    };
  }
  if (reached) {
    const trip = Number.isFinite(reached.roundTrip) ? `, round trip ${reached.roundTrip.toFixed(1)} ms` : "";
    return { subject, status: "ok", result: `Connected to ${reached.address} in ${Math.round(reached.took)} ms${trip}.` };
  }
  const advice: Record<Way, string> = {
    udp: "A firewall blocks UDP, or the server announces a wrong address (volsfu doctor shows it). Media over TCP or the relay has more delay.",
    tcp: "A firewall blocks the TCP port of media. That does no harm if UDP or the relay works.",
    relay: "A firewall blocks the relay, or its address or credentials are wrong; the log of the server has its self-test.",
  };
  return { subject, status: way === "udp" ? "warning" : "failed", result: "No connection.", advice: advice[way] };
}

/** The whole: at least one way has to work. */
export function mediaFinding(reached: Partial<Record<Way, Reached>>): Finding {
  const best = (["udp", "tcp", "relay"] as const).find((way) => reached[way]);
  if (!best) {
    return {
      subject: "Media", status: "failed", result: "No media from this network.",
      advice: "Try another network, such as a phone's. The operator of the server can enable a relay on TCP port 443.",
    };
  }
  return { subject: "Media", status: "ok", result: `Media works, over ${best === "relay" ? "the relay" : best.toUpperCase()}.` };
}

/** A reflexive candidate: the public address of one socket as a STUN server saw it. */
export interface Mapping {
  /** The local socket, as far as the browser names it. */
  base: string;
  public: string;
}

/** Judges the NAT in front of this browser (RFC 4787, section 4.1), by the answers of STUN servers. */
export function natFinding(mappings: Mapping[], servers: number): Finding {
  const subject = "NAT";
  if (servers === 0) {
    return { subject, status: "skipped", result: "The server names no STUN server." };
  }
  if (mappings.length === 0) {
    return {
      subject, status: "warning", result: "No STUN server answers, or this computer has a public address.",
      advice: "If media over UDP fails as well, a firewall blocks UDP.",
    };
  }
  const addresses = [...new Set(mappings.map((m) => m.public))];
  const perBase = new Map<string, Set<string>>();
  for (const { base, public: address } of mappings) {
    perBase.set(base, (perBase.get(base) ?? new Set()).add(address));
  }
  if ([...perBase.values()].some((seen) => seen.size > 1)) {
    return {
      subject, status: "ok",
      result: `The NAT maps each destination to another port (symmetric NAT): ${addresses.join(", ")}. The server has a public address, so media works.`,
    };
  }
  const one = servers === 1 ? " Two STUN servers would show whether the port depends on the destination." : "";
  return { subject, status: "ok", result: `The public address is ${addresses.join(", ")}.${one}` };
}

/** The difference of clocks that is reported, in milliseconds. */
const clockNotice = 1000;

/** Judges the clock of this computer: ahead is that of the server, with its bound, in milliseconds. */
export function clockFinding(ahead: number, bound: number): Finding {
  const subject = "Clock";
  if (!Number.isFinite(bound)) {
    return { subject, status: "skipped", result: "The server has not told its time." };
  }
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(3)} s`;
  const result = `The server's clock is ${seconds(Math.abs(ahead))} ${ahead < 0 ? "behind" : "ahead of"} this computer's, ± ${seconds(bound)}.`;
  if (Math.abs(ahead) - bound > clockNotice) {
    return { subject, status: "warning", result, advice: "Let the system set the clock by itself. Media works nevertheless." };
  }
  return { subject, status: "ok", result };
}

/** The protocol of a candidate (RFC 8839, section 5.1), empty if the text is not one. */
export function protocolOf(candidate: string): string {
  return candidate.trim().split(/\s+/)[2]?.toLowerCase() ?? "";
}

/** Returns a description with the candidates of one protocol only. */
export function withOnly(sdp: string, protocol: "udp" | "tcp"): string {
  return sdp
    .split("\r\n")
    .filter((line) => !line.startsWith("a=candidate:") || protocolOf(line) === protocol)
    .join("\r\n");
}

/** Separates the servers of a session into those for STUN and those for a relay. */
export function separated(servers: RTCIceServer[]): { stun: RTCIceServer[]; turn: RTCIceServer[] } {
  const stun: RTCIceServer[] = [];
  const turn: RTCIceServer[] = [];
  for (const server of servers) {
    const urls = [server.urls].flat();
    const relays = urls.filter((url) => /^turns?:/.test(url));
    const others = urls.filter((url) => /^stuns?:/.test(url));
    if (relays.length > 0) {
      turn.push({ ...server, urls: relays });
    }
    if (others.length > 0) {
      stun.push({ urls: others });
    }
  }
  return { stun, turn };
}
