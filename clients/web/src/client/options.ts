// The settings of a session as an application writes them.

import type { RoomKey } from "../sframe/secret";
import type { RoomEvents } from "./room";
import type { Listeners } from "./events";

export interface JoinOptions {
  /**
   * The address of the server: "https://volsfu.example", or that of signalling,
   * "wss://volsfu.example/v1/signal".
   */
  url: string | URL;
  /** The room; optional if the token names a room. */
  room?: string;
  /** The name of this participant, unique in the room; by default that of the token, or "guest-" with a number. */
  identity?: string;
  /** The access token; servers that run with --dev need none. */
  token?: string;
  /**
   * The key for end-to-end encryption: a passphrase, or EPOCH:HEX with 32 hexadecimal digits or
   * more. Without a key, nothing is encrypted, and encrypted publications are not received.
   */
  key?: string;
  /** STUN and TURN servers in addition to those that the server names. */
  iceServers?: RTCIceServer[];
  /**
   * Resumes the session after a loss of the network, by default. If false, the session ends with
   * the first loss.
   */
  reconnect?: boolean;
  /** Receives every publication, by default. If false, only those passed to subscribe. */
  subscribe?: boolean;
  /** Decodes frames, by default. If false, frames are only counted. */
  decode?: boolean;
  /**
   * Delivers frames of depth cameras (codec rgbd) as rasters, for a renderer that draws them; by
   * default as points.
   */
  rasters?: boolean;
  /**
   * The way of frames: media lines, or data channels. By default media lines, if the browser
   * permits scripts to read their frames.
   */
  delivery?: "media" | "data";
  /**
   * The address of the package's folder "assets" on a server of yours. By default workers start
   * from blob: addresses, which a strict content security policy forbids.
   */
  assets?: string | URL;
  /** Listeners of events. They also receive the events of the first state of the room. */
  on?: Listeners<RoomEvents>;
  /** Aborting ends the attempt to join. */
  signal?: AbortSignal;
}

/** The session could not be entered. The message has the reason for the user. */
export class JoinError extends Error {
  override readonly name = "JoinError";
}

const path = "v1/signal";

/** Returns the address of signalling of a server. Throws a JoinError with the expected form. */
export function signallingURL(server: string | URL): string {
  let url: URL;
  try {
    url = new URL(server);
  } catch {
    throw new JoinError(`The address of the server is ${JSON.stringify(String(server))}. Expected an address such as "https://volsfu.example".`);
  }
  const scheme = { "http:": "ws:", "ws:": "ws:", "https:": "wss:", "wss:": "wss:" }[url.protocol];
  if (scheme === undefined) {
    throw new JoinError(`The address of the server begins with ${url.protocol} Expected https, http, wss or ws.`);
  }
  url.protocol = scheme;
  url.hash = "";
  if (!url.pathname.endsWith(path)) {
    url.pathname = `${url.pathname.replace(/\/$/, "")}/${path}`;
  }
  return url.href;
}

/** Returns the address of the server's pages and its HTTP interfaces, with a slash at the end. */
export function pagesURL(server: string | URL): string {
  const url = new URL(signallingURL(server));
  url.protocol = url.protocol === "wss:" ? "https:" : "http:";
  url.pathname = url.pathname.slice(0, -path.length);
  url.search = "";
  return url.href;
}

/** The keys of an encrypted room. */
export interface Keys {
  /** Sets a key of all participants, or of one. The first key is also used for sending. */
  setKey(key: RoomKey, participant?: string): void;
  /** Encrypts with the keys of an epoch. */
  use(epoch: number): void;
  /** Removes the keys of an epoch: frames of the epoch are rejected. */
  forget(epoch: number): void;
}
