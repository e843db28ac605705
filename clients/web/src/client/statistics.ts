// The statistics of a room for an application.

import type { TileRef } from "../signal/messages";
import type { Conference } from "../viewer/conference";

/** The figures of one tile, as medians of the last two seconds. Times are in milliseconds, NaN if unknown. */
export interface TileStatistics extends TileRef {
  /** The quality that the server sends; -1 is none, undefined before the first message about it. */
  quality: number | undefined;
  points: number;
  fps: number;
  /** Bits per second. */
  rate: number;
  /** From the capture until the whole frame has arrived. */
  network: number;
  /** Waiting for the decoder, and decoding. */
  wait: number;
  decode: number;
  /** The packets of the line, received and lost, since it exists. */
  packets: number;
  lost: number;
}

export interface RoomStatistics {
  /** The server's estimate of this participant's downlink, and the used and the wanted rate, in bit/s. */
  bandwidth: { estimate: number; allocated: number; wanted: number };
  /** The browser's estimate of the uplink in bit/s, if there is one. */
  uplink: number | undefined;
  /** The round trip to the server in milliseconds; NaN before the first reply. */
  roundTrip: number;
  /** The offset of the server's clock from this host's, in milliseconds. */
  clockAhead: number;
  /** Frames since the room was entered. */
  frames: { decoded: number; skipped: number; failed: number; missing: number; bytes: number };
  tiles: TileStatistics[];
}

export async function statisticsOf(conference: Conference): Promise<RoomStatistics> {
  const [lines, uplink] = await Promise.all([conference.statistics(), conference.uplink()]);
  const { bandwidth, session, meters } = conference;
  const now = performance.timeOrigin + performance.now();
  const tiles = [...conference.tiles()].map(({ mid, track, quality }): TileStatistics => {
    const figures = meters.figures(mid, now);
    const line = lines.get(mid);
    return {
      ...track, quality, points: figures?.points ?? 0, fps: figures?.fps ?? 0, rate: figures?.bps ?? 0, network: figures?.network ?? NaN, wait: figures?.wait ?? NaN, decode: figures?.decode ?? NaN,
      packets: line?.packets ?? 0, lost: line?.lost ?? 0,
    };
  });
  return {
    bandwidth: { estimate: bandwidth.estimate_bps, allocated: bandwidth.allocated_bps, wanted: bandwidth.wanted_bps },
    uplink: uplink?.available, roundTrip: session.clock.roundTrip, clockAhead: session.clock.ahead, frames: { ...meters.total }, tiles,
  };
}
