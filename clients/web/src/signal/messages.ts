// The messages of signalling v1 as described in docs/signalling.md: only those that this client
// reads and writes.

export interface Box {
  min: [number, number, number];
  max: [number, number, number];
}

export interface Codec {
  mime_type: string;
  clock_rate: number;
  channels?: number;
  fmtp?: string;
}

export interface Publication {
  name: string;
  kind: "video" | "audio";
  mode: "alternatives" | "descriptions";
  codec: Codec;
  frame_rate?: number;
  tiles: { label?: string; box: Box }[];
  qualities: { name?: string; bitrate_bps: number; width?: number; height?: number; frame_rate?: number }[];
  vr2gather?: boolean;
  /** The publication is the picture of a camera or a screen. */
  picture?: { source: "camera" | "screen" };
  /** The scheme with which frames are encrypted from end to end; absent if they are not. */
  encryption?: string;
}

/** The muting of a publication, which is muted if one of the two is true. */
export interface MuteState {
  publication: string;
  own?: boolean;
  operator?: boolean;
}

export interface Participant {
  identity: string;
  publications: Publication[];
  attributes?: Record<string, string>;
  muted?: MuteState[];
}

/** A data message. The sender is absent in a message of the server's operator. */
export interface Data {
  seq?: number;
  participant?: string;
  topic?: string;
  lossy?: boolean;
  text?: string;
  binary?: string;
}

export interface TileRef {
  participant: string;
  publication: string;
  tile: number;
}

export interface Assignment {
  mid: string;
  generation: number;
  track?: TileRef;
  /** The only quality of the slot, in mode descriptions. */
  quality?: number;
}

export type Reason = "choice" | "auto" | "budget" | "unseen";

export interface SlotQuality {
  mid: string;
  generation: number;
  quality: number;
  reason: Reason;
}

export interface Pose {
  participant: string;
  publication: string;
  position: [number, number, number];
  orientation: [number, number, number, number];
  scale?: number;
  boxes?: Box[];
}

export interface Media {
  mid: string;
  role: "publish" | "slot" | "audio";
  publication?: string;
  tile?: number;
  quality?: number;
}

export interface Viewpoint {
  at_us?: number;
  position: [number, number, number];
  orientation: [number, number, number, number];
  fov: number;
  aspect: number;
}

/** The position that this receiver assigned to an object without a pose of its own. */
export interface Placement {
  participant: string;
  publication: string;
  position: [number, number, number];
  orientation: [number, number, number, number];
  scale: number;
}

export interface Choice {
  participant: string;
  publication: string;
  tile?: number;
  quality: "auto" | number | number[];
}

/** The conversion of a host's times to the server's, in nanoseconds. */
export interface HostClock {
  source: "estimated" | "system" | "ptp";
  offset_ns: number;
  bound_ns: number;
  uncertainty_ns: number;
}

/**
 * Stamps of frames from a publisher, the server, or the servers before it, in the order of the host;
 * docs/signalling.md, "Times of frames", defines them.
 */
export interface FrameTimes {
  host: "sender" | "server" | "relay";
  clock: HostClock;
  tracks: { participant: string; publication: string; tile: number; quality: number; frames: number[][] }[];
}

/** A server on which a session may be resumed. */
export interface NodeAddress {
  url: string;
  region?: string;
}

export type ServerMessage =
  | {
      type: "joined";
      id?: string;
      room: string;
      identity: string;
      session: string;
      resumed?: boolean;
      resume: { secret: string; grace_ms: number };
      ice_servers: RTCIceServer[];
      participants: Participant[];
      limits: { frame_bytes: number };
      recorded?: boolean;
      data_received?: number;
      restored?: boolean;
      nodes?: NodeAddress[];
    }
  | { type: "participant_joined"; participant: Participant }
  | { type: "participant_left"; identity: string; reason: string }
  | { type: "published"; participant: string; publication: Publication }
  | { type: "unpublished"; participant: string; publication: string }
  | { type: "recording"; active: boolean }
  | { type: "audience"; count: number }
  | { type: "offer"; offer: number; sdp: string; media: Media[] }
  | { type: "candidate"; candidate: string; mid?: string; line_index?: number }
  | { type: "assignments"; assignments: Assignment[] }
  | { type: "sending"; slots: SlotQuality[] }
  | { type: "delivery"; dropped: { mid: string; generation: number; frames: number }[] }
  | ({ type: "pose" } & Pose)
  | { type: "wanted"; publications: { publication: string; tiles: number[][]; lowest_taken?: boolean[] }[] }
  | { type: "bandwidth"; estimate_bps: number; allocated_bps: number; wanted_bps: number; l4s?: string }
  | ({ type: "frame_times" } & FrameTimes)
  | ({ type: "data"; id?: string } & Data)
  | { type: "attributes"; participant: string; attributes: Record<string, string> }
  | ({ type: "muted"; participant: string } & MuteState)
  | { type: "time_reply"; id?: string; t0_us: number; t1_us: number; t2_us: number }
  | { type: "ok"; id?: string }
  | { type: "error"; id?: string; code: string; message: string; retry_after_ms?: number }
  | { type: "closing"; code: string; message: string; grace_ms?: number }
  | { type: "moved"; id?: string; url: string; ticket: string; deadline_ms?: number; make_before_break?: boolean }
  | { type: "nodes"; nodes: NodeAddress[]; secret?: string };

export type ClientMessage =
  | {
      type: "join";
      id: string;
      version: 1;
      room?: string;
      identity?: string;
      publications?: Publication[];
      receive: boolean;
      receive_data?: boolean;
      data_channel: boolean;
      pauses: boolean;
      message_channel: boolean;
      moves: boolean;
      ticket?: string;
      resume?: { session: string; secret: string; new_connection?: boolean; data_received?: number };
    }
  | { type: "publish"; id: string; publication: Publication }
  | { type: "unpublish"; id?: string; publication: string }
  | { type: "uplink"; estimate_bps: number; gave_up: { publication: string; tile: number; quality: number }[] }
  | { type: "answer"; offer: number; sdp: string }
  | { type: "candidate"; candidate: string; mid?: string; line_index?: number }
  | { type: "acknowledge"; slots: { mid: string; generation: number }[] }
  | { type: "set_quality"; choices: Choice[] }
  | ({ type: "viewpoint" } & Viewpoint)
  | { type: "arrange"; objects: Placement[] }
  | { type: "trace"; frame_times: boolean }
  | ({ type: "data"; id: string } & Data)
  | { type: "mute"; publication: string; muted: boolean }
  | { type: "limits"; max_bps?: number; min_bps?: number; start_bps?: number }
  | { type: "time"; id: string; t0_us: number }
  | { type: "leave" };
