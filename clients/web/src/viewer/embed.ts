// The page that embeds the viewer in a frame receives events of the room as messages.

import { statisticsOf } from "../client/statistics";
import { type RoomElementEvents, statisticsInterval } from "../element/events";
import type { Conference } from "./conference";

/** A message to the embedding page. */
export type EmbeddedMessage<K extends keyof RoomElementEvents = keyof RoomElementEvents> = { source: "volsfu"; event: K } & RoomElementEvents[K];

/** The used part of a window. */
export type Recipient = Pick<Window, "postMessage">;

/**
 * Reads the origins that may receive events: ?embed=https://shop.example,https://www.shop.example.
 * Anything else than an origin of a web page is left out.
 */
export function originsOf(query: URLSearchParams): string[] {
  return (query.get("embed") ?? "").split(",").filter((text) => /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text);
}

export class Embedding {
  /** The names of the participants that the page knows, by identity. */
  private readonly people = new Map<string, string>();
  private timer: ReturnType<typeof setInterval> | undefined;

  /** @param recipient is the embedding window, of unknown origin: the browser drops messages unless the origin is in the list */
  constructor(
    private readonly recipient: Recipient,
    private readonly origins: readonly string[],
  ) {}

  /** Returns the embedding of this page; without a frame or origins nothing is sent. */
  static ofPage(): Embedding {
    return new Embedding(parent, parent === window ? [] : originsOf(new URLSearchParams(location.search)));
  }

  private tell<K extends keyof RoomElementEvents>(event: K, detail: RoomElementEvents[K]): void {
    const message: EmbeddedMessage<K> = { source: "volsfu", event, ...detail };
    for (const origin of this.origins) {
      this.recipient.postMessage(message, origin);
    }
  }

  /** The room was entered, for the first time or again after a loss of the network. */
  joined(conference: Conference): void {
    if (this.timer !== undefined || this.origins.length === 0) {
      return;
    }
    this.tell("joined", { room: conference.room, identity: conference.identity });
    this.timer = setInterval(() => void statisticsOf(conference).then((statistics) => this.timer !== undefined && this.tell("statistics", statistics)), statisticsInterval);
    this.present(conference);
  }

  /** Reports the participants that have joined, changed or left. */
  present(conference: Conference): void {
    if (this.timer === undefined) {
      return;
    }
    for (const [identity, name] of this.people) {
      if (!conference.participants.has(identity)) {
        this.people.delete(identity);
        this.tell("participant", { identity, name, present: false });
      }
    }
    for (const identity of conference.participants.keys()) {
      const name = conference.name(identity);
      if (this.people.get(identity) !== name) {
        this.people.set(identity, name);
        this.tell("participant", { identity, name, present: true });
      }
    }
  }

  error(message: string): void {
    this.tell("error", { message });
  }

  /** The room was left, or could not be entered. */
  left(why: string): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.people.clear();
    this.tell("left", { why });
  }
}
