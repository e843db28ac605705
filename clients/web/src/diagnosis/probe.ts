// One attempt to connect media: a join of a test room, over one way.

import { Session } from "../signal/session";
import { protocolOf, withOnly } from "./findings";
import type { Mapping, Reached, Way } from "./findings";
import { separated } from "./findings";

/** The time for one attempt. ICE gives up pairs that fail after several seconds. */
const patience = 12_000;
/** The time for answers to requests for the time, and for the statistics, after connecting. */
const settle = 1500;

export interface Target {
  url: string;
  token: string;
  room: string;
  identity: string;
}

export interface Attempt {
  /** The reason why the room could not be joined, empty if it could. */
  refused: string;
  /** Reports whether the server offers the way. */
  offered: boolean;
  reached: Reached | undefined;
  mappings: Mapping[];
  stunServers: number;
  clock: { ahead: number; bound: number; roundTrip: number };
}

/** Joins, connects over one way and leaves. */
export function attempt(way: Way, target: Target): Promise<Attempt> {
  const began = performance.now();
  const result: Attempt = { refused: "", offered: false, reached: undefined, mappings: [], stunServers: 0, clock: { ahead: 0, bound: NaN, roundTrip: NaN } };
  return new Promise((resolve) => {
    let peer: RTCPeerConnection | undefined;
    let joined = false;
    let ended = false;
    // Candidates follow the offer, which is answered in several steps.
    let tail: Promise<unknown> = Promise.resolve();
    const end = (): void => {
      if (ended) {
        return;
      }
      ended = true;
      clearTimeout(timer);
      result.clock = { ahead: session.clock.ahead, bound: session.clock.bound, roundTrip: session.clock.roundTrip };
      peer?.close();
      session.leave();
      resolve(result);
    };
    const admits = (candidate: string): boolean => way === "relay" || protocolOf(candidate) === way;
    const session = new Session(
      { url: target.url, token: target.token, room: target.room, identity: target.identity },
      {
        received: () => 0,
        connected: () => false,
        state: (state, why) => {
          if (state === "closed" || state === "connecting" || state === "resuming") {
            result.refused ||= joined ? "" : why || "no answer";
            end();
          }
        },
        joined: (message) => {
          joined = true;
          const { stun, turn } = separated(message.ice_servers);
          result.stunServers = stun.flatMap((server) => server.urls).length;
          if (way === "relay") {
            if (turn.length === 0) {
              end();
              return;
            }
            result.offered = true;
          }
          peer = connect(way === "relay" ? turn : stun);
        },
        message: (message) => {
          if (!peer) {
            return;
          }
          const current = peer;
          if (message.type === "offer") {
            const sdp = way === "relay" ? message.sdp : withOnly(message.sdp, way);
            result.offered ||= sdp.includes("a=candidate:");
            tail = tail.then(async () => {
              await current.setRemoteDescription({ type: "offer", sdp });
              await current.setLocalDescription(await current.createAnswer());
              session.send({ type: "answer", offer: message.offer, sdp: current.localDescription!.sdp });
            }).catch(end);
          }
          if (message.type === "candidate" && message.candidate && admits(message.candidate)) {
            result.offered = true;
            const { candidate, mid, line_index } = message;
            tail = tail.then(() => current.addIceCandidate({ candidate, sdpMid: mid ?? null, sdpMLineIndex: line_index ?? 0 })).catch(() => {});
          }
        },
      },
    );

    function connect(iceServers: RTCIceServer[]): RTCPeerConnection {
      const made = new RTCPeerConnection({ iceServers, bundlePolicy: "max-bundle", iceTransportPolicy: way === "relay" ? "relay" : "all" });
      made.onicecandidate = ({ candidate }) => {
        if (candidate?.type === "srflx") {
          result.mappings.push({ base: `${candidate.relatedAddress}:${candidate.relatedPort}`, public: `${candidate.address}:${candidate.port}` });
        }
        session.send({
          type: "candidate", candidate: candidate?.candidate ?? "",
          ...(candidate?.sdpMid ? { mid: candidate.sdpMid } : {}), ...(candidate?.sdpMLineIndex ? { line_index: candidate.sdpMLineIndex } : {}),
        });
      };
      made.onconnectionstatechange = async () => {
        if (made.connectionState === "failed") {
          end();
        }
        if (made.connectionState === "connected" && !result.reached) {
          const took = performance.now() - began;
          result.reached = { took, roundTrip: NaN, address: "the server" };
          await new Promise((wake) => setTimeout(wake, settle));
          result.reached = { took, ...(await selected(made)) };
          end();
        }
      };
      return made;
    }

    const timer = setTimeout(end, patience);
    session.start();
  });
}

/** Returns the round trip and the server's address of the selected pair. */
async function selected(peer: RTCPeerConnection): Promise<{ roundTrip: number; address: string }> {
  const stats = await peer.getStats();
  let pair: { currentRoundTripTime?: number; remoteCandidateId?: string } | undefined;
  stats.forEach((entry: { type: string; selectedCandidatePairId?: string }) => {
    if (entry.type === "transport" && entry.selectedCandidatePairId) {
      pair = stats.get(entry.selectedCandidatePairId) as typeof pair;
    }
  });
  const remote = pair?.remoteCandidateId ? (stats.get(pair.remoteCandidateId) as { address?: string; port?: number } | undefined) : undefined;
  return {
    roundTrip: (pair?.currentRoundTripTime ?? NaN) * 1000,
    address: remote?.address ? `${remote.address.includes(":") ? `[${remote.address}]` : remote.address}:${remote.port}` : "the server",
  };
}
