// The media that this page receives: the content of the lines of the present connection and, while
// the session moves to another server, of the former one. Each frame of a tile is passed on once.

import type { Link } from "../media/link";
import { isPicture } from "../media/picture";
import { type Slot, SlotTable } from "../media/slots";
import type { DecodedFrame } from "../media/traffic";
import type { Encryption } from "../sframe/encryption";
import type { ServerClock } from "../signal/clock";
import type { Assignment, Publication, ServerMessage, SlotQuality, TileRef } from "../signal/messages";
import { Meters } from "./meters";
import { Duplicates, Move, type MoveVerdict, type Progress } from "./move";
import { PictureLines } from "./pictures";
import type { Secrecy } from "./secrecy";

export interface ReceptionEvents {
  /** A tile has a new picture. The frame must be returned with recycle after it was copied. */
  frame(track: TileRef, frame: DecodedFrame): void;
  /** A webcam or a screen is received on this track; undefined when it is no longer received. */
  picture(of: TileRef, track: MediaStreamTrack | undefined): void;
  /** A tile is no longer shown. */
  cleared(track: TileRef): void;
  /** A line with sound exists. */
  audio(line: string, track: MediaStreamTrack): void;
  /** Lines with sound have ended with their connection. */
  silenced(lines: readonly string[]): void;
}

type Drops = Extract<ServerMessage, { type: "delivery" }>["dropped"];

export class Reception {
  private slots = new SlotTable();
  /** The slots of the server that the session moves from. */
  private formerSlots = new SlotTable();
  private move: Move | undefined;
  private readonly duplicates = new Duplicates();
  readonly meters = new Meters();
  readonly pictures: PictureLines;
  /** The time when a frame has arrived last, by Date.now, 0 for none. */
  lastFrame = 0;

  /**
   * @param clock estimates the server's clock and the round trip
   * @param publicationOf returns the publication of a track, undefined if it is not known
   * @param encryption is undefined if the page has no key
   */
  constructor(
    private readonly link: Link,
    private readonly secrecy: Secrecy,
    private readonly clock: Pick<ServerClock, "ahead" | "roundTrip">,
    private readonly publicationOf: (of: TileRef) => Publication | undefined,
    private readonly events: ReceptionEvents,
    private readonly encryption?: Encryption,
  ) {
    this.pictures = new PictureLines((of, track) => events.picture(of, track));
  }

  /** A line with sound exists. */
  listen(line: string, track: MediaStreamTrack): void {
    this.secrecy.listen(line, track);
    this.events.audio(line, track);
  }

  /** A publication has begun, whose numbers of frames begin again. */
  published(participant: string, publication: string): void {
    this.duplicates.restart(keyOf({ participant, publication }));
  }

  /** A publication has ended. */
  unpublished(participant: string, publication: string): void {
    this.duplicates.restart(keyOf({ participant, publication }));
    this.pictures.forget(participant, publication);
  }

  /** Passes a decoded frame on, unless it belongs to another assignment or has come before. */
  decoded(report: DecodedFrame): void {
    this.lastFrame = Date.now();
    const slot = this.slot(report.mid);
    if (!slot?.track || report.received < slot.since) {
      this.link.recycle(report);
      return;
    }
    const tile = keyOf(slot.track, slot.description);
    const former = slot === this.formerSlots.get(report.mid);
    this.move?.arrived(tile, former, this.lastFrame);
    const late = this.duplicates.add(tile, report.number, report.captured);
    if (late === undefined) {
      this.link.recycle(report);
      return;
    }
    const frame = { ...report, skipped: report.skipped + late.length, late: [...report.late, ...late] };
    this.meters.decoded(slot, frame, this.clock.ahead);
    this.events.frame(slot.track, frame);
  }

  /** All lines have ended with their connection. A new one has new lines and generations. */
  renew(): void {
    for (const { mid } of this.slots) {
      this.meters.forget(mid);
      this.carry(mid);
    }
    this.slots = new SlotTable();
    this.duplicates.renewed();
    this.pictures.clear();
    this.silence(() => true);
  }

  /**
   * Begins to receive from two servers.
   * @param deadline is the time at which the former server ends the session
   */
  begin(deadline: number): void {
    this.formerSlots = this.slots;
    this.slots = new SlotTable();
    this.move = new Move(deadline);
  }

  /** Reports whether the page receives from two servers. */
  get moving(): boolean {
    return this.move !== undefined;
  }

  /** Returns what to do about the former connection. */
  step(now: number, progress: Progress): MoveVerdict {
    return this.move?.step(now, progress) ?? "wait";
  }

  /** Ends the lines of the former connection. */
  end(): void {
    this.move = undefined;
    const former = this.formerSlots;
    this.formerSlots = new SlotTable();
    this.play();
    for (const { mid, track } of former) {
      this.meters.forget(mid);
      this.carry(mid);
      this.pictures.end(mid);
      if (track && ![...this.slots].some((slot) => sameTile(slot.track, track) && slot.quality !== -1)) {
        this.events.cleared(track);
      }
    }
    this.silence((line) => this.link.isFormer(line));
  }

  /** Ends the lines with sound that have ended with their connection, those included that carry no track. */
  private silence(ended: (line: string) => boolean): void {
    const silenced = this.secrecy.forget(ended);
    if (silenced.length > 0) {
      this.events.silenced(silenced);
    }
  }

  private table(former: boolean): SlotTable {
    return former ? this.formerSlots : this.slots;
  }

  /** Returns messages about slots with the names of their lines. */
  private named<T extends { mid: string }>(slots: readonly T[], former: boolean): T[] {
    return slots.map((slot) => ({ ...slot, mid: this.link.line(slot.mid, former) }));
  }

  /**
   * Stores assignments of the present server, or of the former one, and returns those that must be
   * acknowledged.
   */
  assigned(assignments: readonly Assignment[], former: boolean): { mid: string; generation: number }[] {
    const table = this.table(former);
    const named = this.named(assignments, former);
    const generations = new Map(named.map(({ mid }) => [mid, table.get(mid)?.generation]));
    // The frames of an assignment follow its acknowledgement. Half of the least round trip is left for a path that has
    // become shorter.
    const guard = this.clock.roundTrip / 2 || 0;
    const news = new Set(table.assign(named, performance.timeOrigin + performance.now(), guard).map(({ mid }) => mid));
    for (const { mid, track, quality, generation } of named) {
      // The server repeats assignments to a client that returns.
      const repeated = generations.get(mid) === generation;
      if (track && news.has(mid)) {
        this.duplicates.assigned(keyOf(track, quality));
      }
      const before = track && [...this.formerSlots].find((slot) => slot.mid !== mid && slot.description === quality && sameTile(slot.track, track));
      if (!repeated) {
        this.meters.continue(mid, before?.mid);
      }
      this.carry(mid, table.get(mid));
    }
    this.play();
    return assignments.filter(({ mid }) => news.has(this.link.line(mid, former))).map(({ mid, generation }) => ({ mid, generation }));
  }

  /** Stores the sent qualities. */
  sending(slots: readonly SlotQuality[], former: boolean): void {
    const named = this.named(slots, former);
    this.table(former).sending(named);
    for (const { mid } of named) {
      const track = this.slot(mid)?.track;
      const lines = [...this.formerSlots, ...this.slots].filter((slot) => track && sameTile(slot.track, track));
      if (track && lines.every((slot) => slot.quality === -1)) {
        this.events.cleared(track);
      }
    }
  }

  /** Counts the frames that the server has dropped. */
  delivery(dropped: Drops, former: boolean): void {
    this.table(former).delivery(this.named(dropped, former));
  }

  /** Returns the slot of a line. */
  slot(line: string): Slot | undefined {
    return this.slots.get(line) ?? this.formerSlots.get(line);
  }

  /** Prepares a line for the frames of a slot, before the assignment is acknowledged. */
  private carry(mid: string, slot?: Slot): void {
    const track = slot?.track;
    this.link.assigned(mid, slot?.since ?? 0);
    this.encryption?.assign(mid, track && { ...track, description: slot?.description, encryption: this.publicationOf(track)?.encryption });
    this.show(mid, track);
  }

  /** Plays the sound and the pictures of a track on a line; undefined ends that. */
  private show(mid: string, track?: TileRef): void {
    const refused = track !== undefined && this.secrecy.refuses(track);
    this.secrecy.mute(mid, refused || this.waits(mid, track));
    const publication = track && this.publicationOf(track);
    this.pictures.carry(mid, publication && isPicture(publication) && !refused && !this.waits(mid, track) ? track : undefined);
  }

  /** Plays the tracks of all lines of the present connection that the former one does not carry. */
  private play(): void {
    for (const { mid, track } of this.slots) {
      this.show(mid, track);
    }
  }

  /**
   * Reports whether a line of the present connection waits: the former connection plays the same sound
   * or picture until the end of the move.
   */
  private waits(mid: string, track: TileRef | undefined): boolean {
    return track !== undefined && this.slots.get(mid) !== undefined && [...this.formerSlots].some((slot) => sameTile(slot.track, track));
  }

  /** Yields the slots in use. During a move, those of the former connection come first. */
  *lines(): Generator<Slot> {
    yield* this.formerSlots;
    for (const slot of this.slots) {
      if (!this.waits(slot.mid, slot.track)) {
        yield slot;
      }
    }
  }

  /** Yields the slots that carry video at present. */
  *tiles(): Generator<Slot & { track: TileRef }> {
    for (const slot of this.lines()) {
      if (slot.track && this.publicationOf(slot.track)?.kind === "video") {
        yield slot as Slot & { track: TileRef };
      }
    }
  }
}

/**
 * Returns the key of a publication, or with a tile that of the tile. Each description of a tile has all frames, and a
 * key of its own. The key of the publication is a prefix of the others.
 */
function keyOf({ participant, publication, tile = "" }: { participant: string; publication: string; tile?: number | "" }, description: number | "" = ""): string {
  return `${participant}\n${publication}\n${tile}${tile === "" ? "" : `/${description}`}`;
}

function sameTile(a: TileRef | undefined, b: TileRef): boolean {
  return a !== undefined && a.participant === b.participant && a.publication === b.publication && a.tile === b.tile;
}
