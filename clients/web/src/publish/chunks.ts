// Outgoing frames: with the prefix of payload v1, in chunks over a data channel (docs/payload.md,
// "Browsers").

const headerSize = 22;
/**
 * The number of frame bytes in every chunk except the last. With its header, a chunk has 1,160
 * bytes and fills a packet of Chromium's SCTP: 1,191 bytes, of which 28 are headers. In the rest of
 * a packet SCTP would begin the next message, and the loss of the packet would cost two.
 */
export const chunkSize = 1160 - headerSize;
/** The version of numbered chunks. */
const chunkVersion = 2;
const prefixed = 1;
const prefixSize = 12;

/** The codecs for publishing from pages: Draco, and the images of depth cameras. */
export const fourCC = "drco";
export const rasterFourCC = "rgbd";

/** Seconds from 1900, the start of NTP's first era, to 1970. */
const ntpToUnix = 2_208_988_800;
/** RTP timestamps use a clock of 90 kHz. */
const ticksPerMillisecond = 90;

/** One encoded tile at one quality at one capture instant. */
export interface OutgoingFrame {
  tile: number;
  quality: number;
  /** Counts capture instants: the same for all tiles and qualities of one. */
  number: number;
  /** The same for all tiles and qualities of one capture instant. */
  timestamp: number;
  /** The frame's data, prefix included. */
  data: Uint8Array<ArrayBuffer>;
}

/**
 * Adds the prefix to a codec's data: four characters of the codec's name, and the capture time in
 * milliseconds since 1970 by the server's clock.
 */
export function withPrefix(codec: string, captured: number, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(prefixSize + data.length);
  for (let i = 0; i < 4; i++) {
    whole[i] = codec.charCodeAt(i);
  }
  const view = new DataView(whole.buffer);
  const seconds = Math.floor(captured / 1000);
  view.setUint32(4, (seconds + ntpToUnix) % 2 ** 32);
  view.setUint32(8, Math.floor(((captured - 1000 * seconds) / 1000) * 2 ** 32));
  whole.set(data, prefixSize);
  return whole;
}

/** Returns the RTP timestamp of an instant in milliseconds, from the publication's random start. */
export function timestampOf(milliseconds: number, beginning: number): number {
  return (Math.round(milliseconds * ticksPerMillisecond) + beginning) % 2 ** 32;
}

/** Returns the number of chunks of a frame. */
export function chunksOf(length: number): number {
  return Math.max(1, Math.ceil(length / chunkSize));
}

/**
 * Returns one chunk of a frame, as a separate message. sequence is the number of the message on its
 * channel, modulo 65,536.
 */
export function chunkOf(frame: OutgoingFrame, index: number, sequence: number): Uint8Array<ArrayBuffer> {
  const part = frame.data.subarray(index * chunkSize, (index + 1) * chunkSize);
  const message = new Uint8Array(headerSize + part.length);
  const view = new DataView(message.buffer);
  view.setUint8(0, chunkVersion);
  view.setUint8(1, prefixed);
  view.setUint16(2, frame.tile);
  view.setUint8(4, frame.quality);
  view.setUint16(6, index);
  view.setUint32(8, frame.number);
  view.setUint32(12, frame.data.length);
  view.setUint32(16, frame.timestamp);
  view.setUint16(20, sequence);
  message.set(part, headerSize);
  return message;
}
