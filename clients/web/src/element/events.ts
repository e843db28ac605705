// The events of a shown room for the page around it.

import type { RoomStatistics } from "../client/statistics";

/** The details of the events of a shown room, by name. */
export interface RoomElementEvents {
  joined: { room: string; identity: string };
  /** The room was left, with the reason; empty if the page or the user left it. */
  left: { why: string };
  /** A participant has joined, has another name, or has left; this participant included. */
  participant: { identity: string; name: string; present: boolean };
  /** A sentence about a problem. */
  error: { message: string };
  /** Every second. */
  statistics: RoomStatistics;
}

/** The interval of statistics in milliseconds. */
export const statisticsInterval = 1000;
