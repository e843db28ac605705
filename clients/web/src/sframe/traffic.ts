// Messages between the page and the worker that encrypts and decrypts, and from that worker to
// decoding workers.

import type { Frame } from "../media/frame";
import type { Origin } from "./metadata";
import type { Reason } from "./opener";
import type { RoomKey } from "./secret";

/** The content of a line, by the server's assignment. */
export interface Assigned extends Origin {
  /** The only quality of the line, in mode descriptions. */
  description: number | undefined;
  /** The scheme of the publication's encryption, undefined without encryption. */
  encryption: string | undefined;
}

/** One frame to encrypt. Its data begins with the prefix, which stays readable. */
export interface PlainFrame {
  publication: string;
  tile: number;
  quality: number;
  number: number;
  data: Uint8Array<ArrayBuffer>;
}

/** Messages to the worker. */
export type EncryptionOrder =
  /** The names that the server has confirmed; before all other orders. */
  | { type: "enter"; room: string; identity: string }
  /** A key of all participants, or of one. The first one is also used for sending. */
  | { type: "key"; key: RoomKey; participant: string | undefined }
  | { type: "use"; epoch: number }
  | { type: "forget"; epoch: number }
  | { type: "assigned"; mid: string; to: Assigned | undefined }
  /** A data channel with frames for a decoding worker. */
  | { type: "channel"; channel: number; mid: string; port: MessagePort }
  | { type: "chunk"; channel: number; data: ArrayBuffer }
  | { type: "closed"; channel: number }
  | ({ type: "seal"; id: number } & PlainFrame);

/** The options of a transform, by the direction and the kind of its line. */
export type EncryptionTransform =
  | { kind: "frames"; mid: string; port: MessagePort }
  | { kind: "sound"; mid: string }
  | { kind: "voice"; publication: string };

/** The frames of a participant so far: those that were authentic, and the rejected ones. */
export type Counts = { opened: number } & Record<Reason, number>;

/** Messages from the worker. */
export type EncryptionReport =
  | { type: "opened"; mid: string }
  | { type: "sealed"; id: number; data: Uint8Array<ArrayBuffer> | undefined }
  /** Counts of the participants with changes. */
  | { type: "counts"; participants: [string, Counts][] }
  | { type: "failure"; message: string };

/** The message with a decrypted frame to its decoding worker. */
export interface OpenedFrame {
  frame: Frame;
  /** When the encrypted frame arrived, in milliseconds since 1970 by this host's clock. */
  received: number;
}
