// The encryption of a room, as the page sees it: the worker that has the keys, and the state of
// every participant.

import type { WorkerOrder } from "../media/traffic";
import { type Reason, reasons } from "./opener";
import { mostEpochs, passphraseEpoch, type RoomKey } from "./secret";
import { noCounts } from "./tally";
import type { Assigned, Counts, EncryptionOrder, EncryptionReport, EncryptionTransform, PlainFrame } from "./traffic";

declare const RTCRtpScriptTransform: new (worker: Worker, options: EncryptionTransform, transfer?: Transferable[]) => object;

export interface EncryptionEvents {
  /** Frames of a line reach the worker. */
  opened(mid: string): void;
  /** The counts have changed. */
  counted(): void;
  failure(message: string): void;
}

/** Returns the reason with advice why this page cannot encrypt; undefined if it can. */
export function cannotEncrypt(): string | undefined {
  return globalThis.isSecureContext ? undefined : "Browsers encrypt only in pages over https and from localhost. Open this page over https.";
}

export class Encryption {
  /** The frames of each participant so far. */
  readonly counts = new Map<string, Counts>();
  /**
   * The present state of each participant: "opened" if any of the last frames were authentic,
   * otherwise the most frequent reason.
   */
  readonly states = new Map<string, "opened" | Reason>();
  /** The epochs with a key. */
  readonly epochs = new Set<number>();
  /** The epoch of the keys for sending; undefined without a key. */
  using: number | undefined;
  private readonly worker: Worker;
  private readonly sealing = new Map<number, (data: Uint8Array<ArrayBuffer> | undefined) => void>();
  private sealed = 0;
  private entered = false;
  /** Orders about keys before the room was entered. */
  private waiting: EncryptionOrder[] = [];

  constructor(
    key: RoomKey | undefined,
    private readonly events: EncryptionEvents,
  ) {
    this.worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }: MessageEvent<EncryptionReport>) => this.report(data);
    this.worker.onerror = ({ message }) => events.failure(message || "The worker for encryption cannot be loaded. Reload the page.");
    if (key) {
      this.setKey(key);
    }
  }

  /** Sets the names that the server has confirmed. Keys depend on them. */
  enter(room: string, identity: string): void {
    this.order({ type: "enter", room, identity });
    this.entered = true;
    this.waiting.splice(0).forEach((order) => this.order(order));
  }

  /** Sets a key of all participants, or of one. The first key is also used for sending. */
  setKey(key: RoomKey, participant?: string): void {
    const epoch = key.kind === "raw" ? key.epoch : passphraseEpoch;
    this.epochs.add(epoch);
    this.using ??= epoch;
    this.keyOrder({ type: "key", key, participant });
  }

  /** Encrypts with the keys of an epoch. */
  use(epoch: number): void {
    this.using = checked(epoch);
    this.keyOrder({ type: "use", epoch });
  }

  /** Removes the keys of an epoch: frames of the epoch are rejected. */
  forget(epoch: number): void {
    this.epochs.delete(checked(epoch));
    this.keyOrder({ type: "forget", epoch });
  }

  private keyOrder(order: EncryptionOrder): void {
    if (this.entered) {
      this.order(order);
    } else {
      this.waiting.push(order);
    }
  }

  private order(order: EncryptionOrder, transfer: Transferable[] = []): void {
    this.worker.postMessage(order, transfer);
  }

  /** Sets the content of a line. */
  assign(mid: string, to: Assigned | undefined): void {
    this.order({ type: "assigned", mid, to });
  }

  /** Returns the transform of a line with frames for a decoding worker. */
  frames(mid: string, decode: boolean, decoder: Worker): object {
    const port = this.connect(mid, decode, decoder);
    return new RTCRtpScriptTransform(this.worker, { kind: "frames", mid, port }, [port]);
  }

  /** Returns the transform of a line with sound. */
  sound(mid: string): object {
    return new RTCRtpScriptTransform(this.worker, { kind: "sound", mid });
  }

  /** Returns the transform of the line of a sound publication of this page. */
  voice(publication: string): object {
    return new RTCRtpScriptTransform(this.worker, { kind: "voice", publication });
  }

  /** Adds a data channel with frames for a decoding worker. */
  channel(channel: number, mid: string, decode: boolean, decoder: Worker): void {
    const port = this.connect(mid, decode, decoder);
    this.order({ type: "channel", channel, mid, port }, [port]);
  }

  chunk(channel: number, data: ArrayBuffer): void {
    this.order({ type: "chunk", channel, data }, [data]);
  }

  closed(channel: number): void {
    this.order({ type: "closed", channel });
  }

  /** Connects a line to its decoding worker, and returns the sending end. */
  private connect(mid: string, decode: boolean, decoder: Worker): MessagePort {
    const { port1, port2 } = new MessageChannel();
    const order: WorkerOrder = { type: "line", mid, decode, port: port1 };
    decoder.postMessage(order, [port1]);
    return port2;
  }

  /**
   * Encrypts a frame, whose memory is handed over. Results are in the order of calls; undefined
   * without a key.
   */
  seal(frame: PlainFrame): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const id = this.sealed++;
    this.order({ type: "seal", id, ...frame }, [frame.data.buffer]);
    return new Promise((resolve) => this.sealing.set(id, resolve));
  }

  private report(report: EncryptionReport): void {
    switch (report.type) {
      case "opened":
        this.events.opened(report.mid);
        break;
      case "sealed":
        this.sealing.get(report.id)?.(report.data);
        this.sealing.delete(report.id);
        break;
      case "counts":
        for (const [who, counts] of report.participants) {
          this.states.set(who, stateOf(this.counts.get(who) ?? noCounts(), counts));
          this.counts.set(who, counts);
        }
        this.events.counted();
        break;
      case "failure":
        this.events.failure(report.message);
        break;
    }
  }

  /** Returns the number of frames of all participants, opened and rejected. */
  get total(): { opened: number; rejected: number } {
    const total = { opened: 0, rejected: 0 };
    for (const counts of this.counts.values()) {
      total.opened += counts.opened;
      total.rejected += reasons.reduce((sum, reason) => sum + counts[reason], 0);
    }
    return total;
  }

  close(): void {
    this.worker.terminate();
    for (const resolve of this.sealing.values()) {
      resolve(undefined);
    }
    this.sealing.clear();
  }
}

/** Returns the state by the frames between two counts, of which there is at least one. */
function stateOf(before: Counts, after: Counts): "opened" | Reason {
  const more = (name: "opened" | Reason): number => after[name] - before[name];
  return more("opened") > 0 ? "opened" : reasons.reduce((most, reason) => (more(reason) > more(most) ? reason : most));
}

function checked(epoch: number): number {
  if (!Number.isInteger(epoch) || epoch < 0 || epoch >= mostEpochs) {
    throw new RangeError(`the epoch ${epoch}, expected 0 to ${mostEpochs - 1}`);
  }
  return epoch;
}
