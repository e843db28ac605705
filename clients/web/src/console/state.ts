// The data of the operators' interface, as described by openapi.yaml.

export interface Traffic {
  packets: number;
  media_bytes: number;
  parity_bytes: number;
  retransmission_bytes: number;
  audio_bytes: number;
  probe_bytes: number;
}

export interface ServerState {
  version: string;
  started: string;
  now: string;
  draining: boolean;
  goroutines: number;
  tracks: number;
  slots: number;
  active_slots: number;
  cache_bytes: number;
  received: Traffic;
  sent: Traffic;
  frames: { forwarded: number; dropped_late: number; dropped_overrun: number; dropped_budget: number };
  switches: number;
  nacks: { received: number; answered: number; requested: number; recovered: number; delayed: number; lost: number };
  residence_p50_ms: number;
  residence_p99_ms: number;
}

export interface Sample {
  /** Seconds since 1970. */
  at: number;
  estimate_bps: number;
  target_bps: number;
  sent_bps: number;
  queue_delay_ms: number;
}

export interface SlotState {
  mid: string;
  participant: string;
  publication: string;
  tile: number;
  quality: number;
  reason: string;
  packets: number;
  frames: number;
  bytes: number;
  retransmissions: number;
  fraction_lost: number;
}

export interface ReceptionState {
  known: boolean;
  estimate_bps: number;
  target_bps: number;
  wanted_bps: number;
  sent_bps: number;
  rtt_ms: number;
  queue_delay_ms: number;
  loss: number;
  parity: number;
  l4s: string;
  ce_share: number;
  viewpoint: boolean;
  slots: SlotState[];
  history?: Sample[];
}

export interface PublicationState {
  name: string;
  kind: string;
  mode: string;
  codec: string;
  tiles: number;
  qualities: string[];
  rates_bps: number[][];
  paused: boolean[][];
}

/** Packets of the last second by ECN codepoint. */
export interface Codepoints {
  not_ect: number;
  ect0: number;
  ect1: number;
  ce: number;
}

export interface ParticipantState {
  identity: string;
  joined: string;
  connected: boolean;
  present: boolean;
  vr2gather?: boolean;
  /** Absent if the participant sent nothing. */
  ecn?: Codepoints;
  publications: PublicationState[];
  reception?: ReceptionState;
  /** The node to which the participant is connected; absent without a cluster. */
  node?: string;
}

export interface RoomState {
  name: string;
  participants: ParticipantState[];
}

/** A node of the cluster, in the view of the node that replies. */
export interface NodeState {
  name: string;
  region?: string;
  self?: boolean;
  state: "alive" | "suspected" | "dead";
  draining?: boolean;
  load: number;
  rooms: number;
  participants: number;
  started: string;
  beat: string;
  trunk?: { lanes: number; rtt_ms: number; estimate_bps: number; silent?: boolean };
}

/** A node whose participants are missing. */
export interface Failure {
  node: string;
  error: string;
}

export interface Snapshot {
  server: ServerState;
  rooms: RoomState[];
  /** Absent without a cluster. */
  nodes?: NodeState[];
  failed?: Failure[];
}

/** The result of moving a room. */
export interface Moved {
  moved: number;
  remaining: number;
  failed?: Failure[];
}

/** Describes the result of moving a room to a node. */
export function movedText(result: Moved, node: string): string {
  const clients = (n: number): string => `${n} ${n === 1 ? "client" : "clients"}`;
  const parts = [`${clients(result.moved)} sent to node ${node}`];
  if (result.remaining > 0) {
    parts.push(`${clients(result.remaining)} cannot be moved`);
  }
  parts.push(...(result.failed ?? []).map((f) => `node ${f.node}: ${f.error}`));
  return `${parts.join("; ")}.`;
}

/** The nodes that can take participants of a room. */
export function takers(nodes: readonly NodeState[]): string[] {
  return nodes.filter((n) => n.state === "alive" && !n.draining).map((n) => n.name);
}

/** Returns the share of marked packets if any is marked, otherwise the most frequent codepoint. */
export function uplinkECN(c: Codepoints): string {
  const capable = c.ect0 + c.ect1 + c.ce;
  if (c.ce > 0) {
    return `CE ${((100 * c.ce) / capable).toFixed(1)} %`;
  }
  if (c.not_ect >= capable) {
    return "Not-ECT";
  }
  return c.ect1 >= c.ect0 ? "ECT(1)" : "ECT(0)";
}

/** The bit rates of a room: everything that participants publish, and everything for its receivers. */
export interface Totals {
  published: number;
  target: number;
  sent: number;
}

/** Adds up the bit rates of a room. */
export function totalsOf({ participants }: RoomState): Totals {
  const sum = (values: readonly number[]): number => values.reduce((total, v) => total + v, 0);
  return {
    published: sum(participants.flatMap((p) => p.publications.map(publishedBps))),
    target: sum(participants.map((p) => p.reception?.target_bps ?? 0)),
    sent: sum(participants.map((p) => p.reception?.sent_bps ?? 0)),
  };
}

/** Returns the bit rate of all tiles and qualities of a publication. */
export function publishedBps({ rates_bps }: PublicationState): number {
  return rates_bps.flat().reduce((sum, r) => sum + r, 0);
}

const keptSamples = 300;

/** The history of every receiver: the server's initial history and all later snapshots. */
export class Histories {
  private readonly byReceiver = new Map<string, Sample[]>();

  take(snapshot: Snapshot): void {
    const at = Math.floor(Date.parse(snapshot.server.now) / 1000);
    const present = new Set<string>();
    for (const room of snapshot.rooms) {
      for (const { identity, reception } of room.participants) {
        if (!reception) {
          continue;
        }
        const key = `${room.name}\n${identity}`;
        present.add(key);
        const samples = reception.history ?? this.byReceiver.get(key) ?? [];
        this.byReceiver.set(key, samples);
        if (reception.known && samples.at(-1)?.at !== at) {
          const { estimate_bps, target_bps, sent_bps, queue_delay_ms } = reception;
          samples.push({ at, estimate_bps, target_bps, sent_bps, queue_delay_ms });
          samples.splice(0, Math.max(0, samples.length - keptSamples));
        }
      }
    }
    for (const key of [...this.byReceiver.keys()]) {
      if (!present.has(key)) {
        this.byReceiver.delete(key);
      }
    }
  }

  of(room: string, identity: string): readonly Sample[] {
    return this.byReceiver.get(`${room}\n${identity}`) ?? [];
  }
}

/** The changes in the second between two snapshots. */
export class Rates {
  private before: ServerState | undefined;
  receivedBps = 0;
  sentBps = 0;
  framesPerSecond = 0;
  droppedPerSecond = 0;
  nacksPerSecond = 0;
  switchesPerSecond = 0;
  parityShare = 0;

  take(now: ServerState): void {
    const before = this.before;
    this.before = now;
    if (!before || before.started !== now.started) {
      return;
    }
    const seconds = Math.max((Date.parse(now.now) - Date.parse(before.now)) / 1000, 0.001);
    const bytes = (t: Traffic): number => t.media_bytes + t.parity_bytes + t.retransmission_bytes + t.audio_bytes + t.probe_bytes;
    const dropped = (s: ServerState): number => s.frames.dropped_late + s.frames.dropped_overrun + s.frames.dropped_budget;
    const sent = bytes(now.sent) - bytes(before.sent);
    this.receivedBps = ((bytes(now.received) - bytes(before.received)) * 8) / seconds;
    this.sentBps = (sent * 8) / seconds;
    this.framesPerSecond = (now.frames.forwarded - before.frames.forwarded) / seconds;
    this.droppedPerSecond = (dropped(now) - dropped(before)) / seconds;
    this.nacksPerSecond = (now.nacks.received - before.nacks.received) / seconds;
    this.switchesPerSecond = (now.switches - before.switches) / seconds;
    this.parityShare = sent > 0 ? (now.sent.parity_bytes - before.sent.parity_bytes) / sent : 0;
  }
}
