/// <reference lib="webworker" />
// The worker that has the keys of a room. It decrypts the frames of all lines before their decoding
// workers or the browser's sound decoder receive them, and encrypts the frames that the page
// publishes. One worker has all keys, so that repeated frames are detected across lines, and no
// counter is used twice.

import { ChunkAssembler } from "../media/chunks";
import { type Frame, parseFrame } from "../media/frame";
import { readHeader } from "./header";
import { KeyRing } from "./keyring";
import { Lines } from "./lines";
import { frameMetadata, prefixSize, scheme, soundMetadata } from "./metadata";
import { Opener, Rejected } from "./opener";
import { Sealer } from "./sealer";
import { importSecret, passphraseEpoch, passphraseSecret, type RoomKey } from "./secret";
import { Tally } from "./tally";
import type { Assigned, EncryptionOrder, EncryptionReport, EncryptionTransform, OpenedFrame } from "./traffic";

declare const self: DedicatedWorkerGlobalScope & { onrtctransform: ((event: TransformEvent) => void) | null };

interface Encoded {
  data: ArrayBuffer;
}

interface Transformer {
  readable: ReadableStream<Encoded>;
  writable: WritableStream<Encoded>;
  options: EncryptionTransform;
}

interface TransformEvent extends Event {
  transformer: Transformer;
}

/**
 * The milliseconds after an assignment in which frames of the previous one may still arrive. They
 * are not authentic for the new one, and are not counted.
 */
const handover = 1000;
/** The interval of counts in milliseconds. */
const countInterval = 250;
const keys = new KeyRing();
const opener = new Opener(keys);
const sealer = new Sealer(keys);
const tally = new Tally();
const lines = new Lines();
const channels = new Map<number, { assembler: ChunkAssembler; mid: string; port: MessagePort; tail: Promise<void> }>();
/** The newest transformer of each line, since Chromium may collect an unreferenced one. */
const transformers = new Map<string, Transformer>();
/** Resolved when all orders about keys so far have been executed. */
let ready: Promise<void> = Promise.resolve();
/** Encrypted frames are returned in the order of their arrival. */
let sealing: Promise<void> = Promise.resolve();
let room = "";

function now(): number {
  return performance.timeOrigin + performance.now();
}

function report(message: EncryptionReport, transfer: Transferable[] = []): void {
  self.postMessage(message, transfer);
}

function fail(error: unknown): void {
  report({ type: "failure", message: error instanceof Error ? error.message : String(error) });
}

setInterval(() => {
  const participants = tally.take();
  if (participants.length > 0) {
    report({ type: "counts", participants });
  }
}, countInterval);

/** Executes an order about keys after the previous ones. */
function then(act: () => Promise<void> | void): void {
  ready = ready.then(act).catch(fail);
}

async function addKey(key: RoomKey, participant: string | undefined): Promise<void> {
  const [epoch, secret] = key.kind === "raw" ? [key.epoch, await importSecret(key.secret)] : [passphraseEpoch, await passphraseSecret(key.passphrase, room)];
  keys.set(epoch, secret, participant);
  opener.forget(epoch, participant);
  if (sealer.using === undefined) {
    sealer.use(epoch);
  }
  sealer.renew();
}

function forget(epoch: number): void {
  keys.forget(epoch);
  opener.forget(epoch);
  sealer.renew();
}

/** Names a frame among those of its line. */
interface Naming {
  name: string;
  /** The transport of the line may deliver the frame more than once. */
  repeats: boolean;
  /** A duplicate on another line has the data, too. */
  kept: boolean;
}

/**
 * Decrypts data of a line. Returns undefined if it is rejected.
 * @param metadata returns the metadata for the line's assignment; undefined if the data is malformed
 */
async function open(mid: string, sealed: Uint8Array<ArrayBuffer>, { name, repeats, kept }: Naming, metadata: (to: Assigned) => Uint8Array | undefined): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const line = lines.get(mid);
  if (!line) {
    return undefined;
  }
  const { to, since } = line;
  const at = now();
  try {
    await ready;
    if (to.encryption !== scheme) {
      throw new Rejected(to.encryption === undefined ? "not_encrypted" : "unknown_scheme");
    }
    const authenticated = metadata(to);
    if (!authenticated) {
      throw new Rejected("malformed");
    }
    const plain = await opener.open(to, authenticated, sealed);
    tally.count(to.participant, "opened");
    lines.opened(line, name, kept ? plain.slice() : undefined);
    return plain;
  } catch (error) {
    if (!(error instanceof Rejected)) {
      throw error;
    }
    const copy = error.reason === "replay" ? lines.copy(line, name) : undefined;
    if (copy) {
      return copy.data;
    }
    const duplicate = error.reason === "replay" && ((repeats && line.recent.has(name)) || lines.repeated(line, name));
    const previous = at - since < handover && (error.reason === "altered" || error.reason === "wrong_key");
    if (!duplicate && !previous) {
      tally.count(to.participant, error.reason);
    }
    return undefined;
  }
}

/** Names a packet of sound, which has no number of its own, by the header of its encryption. */
function nameOfSound(sealed: Uint8Array): string {
  try {
    const { keyID, counter } = readHeader(sealed);
    return `${keyID}/${counter}`;
  } catch {
    return "";
  }
}

/**
 * Decrypts a frame, and passes it to its decoding worker.
 * @param repeats reports whether the transport may deliver the frame more than once
 */
async function pass(mid: string, frame: Frame, port: MessagePort, repeats: boolean): Promise<void> {
  const received = now();
  const { quality, number, length } = frame;
  const sealed = frame.data as Uint8Array<ArrayBuffer>;
  const prefixed = length - sealed.length === prefixSize;
  const prefix = prefixed ? new Uint8Array(sealed.buffer, sealed.byteOffset - prefixSize, prefixSize) : undefined;
  const data = await open(mid, sealed, { name: `${quality}/${number}`, repeats, kept: false }, (to) => prefix && frameMetadata(to, quality, number, prefix));
  if (data) {
    const opened: OpenedFrame = { frame: { ...frame, data }, received };
    port.postMessage(opened, [data.buffer]);
  }
}

async function read(reader: ReadableStreamDefaultReader<Encoded>, mid: string, port: MessagePort): Promise<void> {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    try {
      await pass(mid, parseFrame(value.data), port, true);
    } catch (error) {
      fail(error);
    }
  }
}

/** Replaces the data of each packet of sound by a result, and drops packets without one. */
function replace({ readable, writable }: Transformer, result: (data: Uint8Array<ArrayBuffer>) => Promise<Uint8Array<ArrayBuffer> | undefined>): void {
  const stream = new TransformStream<Encoded, Encoded>({
    transform: async (packet, controller) => {
      try {
        const data = await result(new Uint8Array(packet.data));
        if (data) {
          packet.data = data.buffer;
          controller.enqueue(packet);
        }
      } catch (error) {
        fail(error);
      }
    },
  });
  // The streams end with the connection.
  readable.pipeThrough(stream).pipeTo(writable).catch(() => {});
}

self.onrtctransform = ({ transformer }) => {
  const { options } = transformer;
  switch (options.kind) {
    case "frames":
      transformers.set(options.mid, transformer);
      report({ type: "opened", mid: options.mid });
      void read(transformer.readable.getReader(), options.mid, options.port);
      break;
    case "sound":
      transformers.set(options.mid, transformer);
      // Chromium passes a packet of padding as an empty packet.
      replace(transformer, async (sealed) => (sealed.length > 0 ? open(options.mid, sealed, { name: nameOfSound(sealed), repeats: false, kept: true }, soundMetadata) : undefined));
      break;
    case "voice":
      transformers.set(`voice/${options.publication}`, transformer);
      replace(transformer, async (plain) => {
        await ready;
        return sealer.seal(soundMetadata({ participant: "", publication: options.publication, tile: 0 }), plain);
      });
      break;
  }
};

function chunk(number: number, message: ArrayBuffer): void {
  const channel = channels.get(number);
  try {
    const frame = channel?.assembler.take(message);
    if (channel && frame) {
      channel.tail = channel.tail.then(() => pass(channel.mid, frame, channel.port, false)).catch(fail);
    }
  } catch (error) {
    fail(error);
  }
}

function seal({ id, publication, tile, quality, number, data }: EncryptionOrder & { type: "seal" }): void {
  const prefix = data.subarray(0, prefixSize);
  const metadata = frameMetadata({ participant: "", publication, tile }, quality, number, prefix);
  const sealed = ready.then(() => sealer.seal(metadata, data.subarray(prefixSize), prefixSize));
  sealing = sealing.then(async () => {
    try {
      const whole = await sealed;
      whole.set(prefix);
      report({ type: "sealed", id, data: whole }, [whole.buffer]);
    } catch (error) {
      report({ type: "sealed", id, data: undefined });
      fail(error);
    }
  });
}

self.onmessage = ({ data: order }: MessageEvent<EncryptionOrder>) => {
  switch (order.type) {
    case "enter":
      then(() => {
        room = order.room;
        sealer.enter(order.identity);
      });
      break;
    case "key":
      then(() => addKey(order.key, order.participant));
      break;
    case "use":
      then(() => sealer.use(order.epoch));
      break;
    case "forget":
      then(() => forget(order.epoch));
      break;
    case "assigned":
      lines.assign(order.mid, order.to, now());
      break;
    case "channel":
      channels.set(order.channel, { assembler: new ChunkAssembler(), mid: order.mid, port: order.port, tail: Promise.resolve() });
      break;
    case "chunk":
      chunk(order.channel, order.data);
      break;
    case "closed":
      channels.delete(order.channel);
      break;
    case "seal":
      seal(order);
      break;
  }
};
