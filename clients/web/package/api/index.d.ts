/**
 * The parts of a picture with depth and colour. Without a colour part, the colours are those of the
 * depth part.
 */
export type Arrangement = "depth-left" | "depth-right" | "depth-top" | "depth-bottom" | "depth-only";

export interface Box {
    min: [number, number, number];
    max: [number, number, number];
}

/** A depth camera: a pinhole camera with an optional lens distortion, and its place. */
export interface Camera {
    /** The size of its image in pixels, without a reduction. */
    width: number;
    height: number;
    /** Focal lengths and principal point in pixels; the centre of the first pixel is at 0, 0. */
    fx: number;
    fy: number;
    cx: number;
    cy: number;
    distortion: Distortion | undefined;
    pose: CameraPose;
}

/** The motion from the coordinates of a camera (x right, y up, z back) to those of the publication. */
export interface CameraPose {
    /** A rotation, row by row. */
    rotation: readonly number[];
    /** In metres. */
    translation: readonly number[];
}

interface Codec {
    mime_type: string;
    clock_rate: number;
    channels?: number;
    fmtp?: string;
}

/** The settings of a publication with points of the application. */
export interface CustomOptions extends PointOptions {
    /** The box of all points in metres, y up. Points outside are moved to its sides. */
    box: Box;
}

/** A publication with points of the application. */
export interface CustomPublication extends PointPublication {
    /**
     * Publishes points as the next frame, whose memory is handed over. Of several frames within a
     * frame interval only the last is sent. Throws a RangeError if the arrays are shorter than three
     * values for each point.
     */
    write(points: Points): void;
}

/** A received message of another participant, or of the server's operator. */
export interface DataMessage {
    /** Undefined for a message of the operator. */
    participant?: string;
    topic: string;
    text?: string;
    /** Bytes in base64. */
    binary?: string;
}

/**
 * The coding of depth in a picture: as brightness, with near or far bright, or as a hue that starts
 * and ends at red (near), as in phones' depth videos.
 */
export type DepthCoding = "near-bright" | "far-bright" | "hue";

/** Distances in metres along the view for a grid of pixels, row by row from the top, 0 for none. */
export interface DepthMap {
    width: number;
    height: number;
    depth: Float32Array<ArrayBuffer>;
    /** The distance between neighbouring depths that the camera distinguishes, in metres. */
    unit: number;
    /** Red, green, blue, alpha of the same pixels. */
    colors: Uint8ClampedArray<ArrayBuffer> | Uint8Array<ArrayBuffer>;
    /** The tangents of the angles of view: to the left, right, down and up, the first and third negative. */
    tangents: readonly [left: number, right: number, down: number, up: number];
    /**
     * The pose of the camera: a column-major 4×4 matrix as in WebXR and WebGL; the view is along -z.
     */
    pose: Float32Array<ArrayBuffer> | readonly number[];
}

/** The settings of a publication of a depth camera. */
export interface DepthOptions extends PointOptions {
    /** Depth images ("rgbd", the default), at a quarter of the bitrate of points; or points with Draco. */
    codec?: "draco" | "rgbd";
    /** The form of the picture, and the view of the camera; missing parts have usual values. */
    lens?: Partial<Lens>;
}

/** A depth camera. The entry point "@volsfu/client/devices" opens those of the browser. */
export interface DepthSource {
    /** Returns the next picture; undefined if there is none at present. */
    picture(): Promise<Picture | undefined>;
    /** Width over height of the whole picture; 8:3 if it is unknown, two pictures of 4:3 side by side. */
    readonly aspect?: number;
}

/** A lens distortion. */
export interface Distortion {
    model: "brown-conrady" | "modified-brown-conrady" | "inverse-brown-conrady" | "kannala-brandt4" | "rational";
    /** k1, k2, p1, p2, k3, k4, k5, k6; of kannala-brandt4 the first four are k1 to k4. */
    coefficients: readonly number[];
    /** The largest valid distance from the axis in the image plane at depth 1; 0 if unlimited. */
    radius: number;
}

/** The state of a participant's encryption: decrypted, or the reason why frames are rejected. */
export type EncryptionState = "opened" | "picture" | Reason;

/** A decoded frame of one tile. Times are milliseconds since 1970 by this host's clock. */
export interface Frame extends TileRef {
    /** The index of the quality in the publication. */
    quality: number;
    /** Counts the captures of a publication: the same for all tiles of one. */
    number: number;
    /** The bytes of the frame as received. */
    bytes: number;
    /** The capture time by the server's clock; NaN if the publisher does not send it. */
    captured: number;
    received: number;
    decoded: number;
    points: Points;
    /** With the option rasters, the image of a depth camera. Then only the count of points is set. */
    raster?: Raster;
    /**
     * Returns the memory of the points or the raster for later frames, and closes the raster's image.
     * They must not be used afterwards. Without the call the memory is garbage.
     */
    release(): void;
}

/** The session could not be entered. The message has the reason for the user. */
export declare class JoinError extends Error {
    readonly name = "JoinError";
}

export interface JoinOptions {
    /**
     * The address of the server: "https://volsfu.example", or that of signalling,
     * "wss://volsfu.example/v1/signal".
     */
    url: string | URL;
    /** The room; optional if the token names a room. */
    room?: string;
    /** The name of this participant, unique in the room; by default that of the token, or "guest-" with a number. */
    identity?: string;
    /** The access token; servers that run with --dev need none. */
    token?: string;
    /**
     * The key for end-to-end encryption: a passphrase, or EPOCH:HEX with 32 hexadecimal digits or
     * more. Without a key, nothing is encrypted, and encrypted publications are not received.
     */
    key?: string;
    /** STUN and TURN servers in addition to those that the server names. */
    iceServers?: RTCIceServer[];
    /**
     * Resumes the session after a loss of the network, by default. If false, the session ends with
     * the first loss.
     */
    reconnect?: boolean;
    /** Receives every publication, by default. If false, only those passed to subscribe. */
    subscribe?: boolean;
    /** Decodes frames, by default. If false, frames are only counted. */
    decode?: boolean;
    /**
     * Delivers frames of depth cameras (codec rgbd) as rasters, for a renderer that draws them; by
     * default as points.
     */
    rasters?: boolean;
    /**
     * The way of frames: media lines, or data channels. By default media lines, if the browser
     * permits scripts to read their frames.
     */
    delivery?: "media" | "data";
    /**
     * The address of the package's folder "assets" on a server of yours. By default workers start
     * from blob: addresses, which a strict content security policy forbids.
     */
    assets?: string | URL;
    /** Listeners of events. They also receive the events of the first state of the room. */
    on?: Listeners<RoomEvents>;
    /** Aborting ends the attempt to join. */
    signal?: AbortSignal;
}

/** The keys of an encrypted room. */
export interface Keys {
    /** Sets a key of all participants, or of one. The first key is also used for sending. */
    setKey(key: RoomKey, participant?: string): void;
    /** Encrypts with the keys of an epoch. */
    use(epoch: number): void;
    /** Removes the keys of an epoch: frames of the epoch are rejected. */
    forget(epoch: number): void;
}

/** The view of a camera. */
export interface Lens {
    coding: DepthCoding;
    arrangement: Arrangement;
    /** The range of depths in metres that corresponds to the coding. */
    near: number;
    far: number;
    /** The horizontal angle of view in degrees. */
    fov: number;
    /** The height of the camera in metres. */
    height: number;
}

/** The listeners of an object by the names of its events. */
type Listeners<E> = {
    [K in keyof E]?: E[K];
};

/** The muting of a publication, which is muted if one of the two is true. */
export interface MuteState {
    publication: string;
    own?: boolean;
    operator?: boolean;
}

/** A publication of this participant. */
export interface OwnPublication {
    readonly name: string;
    /**
     * Resolves when the publication has ended: with the reason if the server rejected it or the device
     * of a track was disconnected, with an empty text if end was called or the room was left.
     */
    readonly ended: Promise<string>;
    end(): void;
}

export interface Participant {
    identity: string;
    publications: Publication[];
    attributes?: Record<string, string>;
    muted?: MuteState[];
}

/** The input from the page: a picture of a camera, a depth map, or points of an application. */
export type Picture = {
    kind: "image";
    image: ImageBitmap;
} | {
    kind: "map";
    map: DepthMap;
} | {
    kind: "points";
    points: Points;
};

export interface PictureOptions {
    /** A webcam or a screen; a webcam by default. A room has at most one of each from one participant. */
    kind?: VideoKind;
    codec?: VideoCodec;
}

/** The position that this receiver assigned to an object without a pose of its own. */
export interface Placement {
    participant: string;
    publication: string;
    position: [number, number, number];
    orientation: [number, number, number, number];
    scale: number;
}

/** The settings of a publication of points. */
export interface PointOptions {
    /** The name of the publication, "body" by default. */
    name?: string;
    /** The most points of a frame, 20,000 by default. */
    points?: number;
    /** Frames per second, 15 by default. */
    fps?: number;
    /** 1, 2, 4 or 9, as volpeer cuts an object; 1 by default. */
    tiles?: number;
    /** The qualities, the lowest first; by default a quarter, a half and all of the points. */
    qualities?: readonly Quality[];
}

/** A publication of points. */
export interface PointPublication extends OwnPublication {
    /** Resolves when the server has accepted the publication; rejects with its reason if not. */
    readonly accepted: Promise<void>;
    /** Returns the present state of encoding and sending. */
    state(): State;
}

/** Points of one tile. The arrays may be longer than necessary. */
export interface Points {
    count: number;
    /** x, y, z in metres for each point. */
    positions: Float32Array<ArrayBuffer>;
    /** red, green, blue for each point. */
    colors: Uint8Array<ArrayBuffer>;
}

export interface Pose {
    participant: string;
    publication: string;
    position: [number, number, number];
    orientation: [number, number, number, number];
    scale?: number;
    boxes?: Box[];
}

export interface Publication {
    name: string;
    kind: "video" | "audio";
    mode: "alternatives" | "descriptions";
    codec: Codec;
    frame_rate?: number;
    tiles: {
        label?: string;
        box: Box;
    }[];
    qualities: {
        name?: string;
        bitrate_bps: number;
        width?: number;
        height?: number;
        frame_rate?: number;
    }[];
    vr2gather?: boolean;
    /** The publication is the picture of a camera or a screen. */
    picture?: {
        source: "camera" | "screen";
    };
    /** The scheme with which frames are encrypted from end to end; absent if they are not. */
    encryption?: string;
}

/**
 * One quality: a share of an object's points, on a grid with the given bits for the longest edge of
 * its box.
 */
export interface Quality {
    name: string;
    share: number;
    bits: number;
}

/** A requested quality: the server's choice, none, an index, or several indices of descriptions. */
export interface QualityChoice {
    participant: string;
    publication: string;
    /** Undefined for all tiles. */
    tile?: number;
    quality: "auto" | "off" | number | number[];
}

/** The state of one quality. */
export interface QualityState {
    name: string;
    /** The number of tiles with a receiver, and the number of encoded ones. */
    wanted: number;
    taken: number;
    fps: number;
    bps: number;
    /** The points of a frame, of all tiles together. */
    points: number;
    /** The encoding time of a capture, of all tiles together. */
    milliseconds: number;
}

/**
 * One tile. The pixel of column x and row y of the rectangle is at
 * u = (left + x + ½) × 2^reduction − ½ of the camera's image, and v likewise. Without a distortion
 * it sees X = (u − cx) / fx, Y = (v − cy) / fy; Rays computes both with a distortion. With depth z,
 * the point is (X z, −Y z, −z) in the coordinates of the camera.
 */
export interface Raster {
    camera: Camera;
    /** Frames of one publication with the same id are of the same camera. */
    id: number;
    /** A pixel combines 2^reduction × 2^reduction pixels of the camera: 0, 1 or 2. */
    reduction: number;
    /** The rectangle in pixels of the reduced image. */
    left: number;
    top: number;
    columns: number;
    rows: number;
    /** The number of pixels with a point, at least 1. */
    points: number;
    /**
     * The depth of each pixel in metres along the view, row by row from the top; 0 for a pixel without
     * a point. The array may be longer than columns × rows, since its memory is reused.
     */
    depths: Float32Array<ArrayBuffer>;
    /** The distance between representable depths: in metres, or in 1/m if steps grow as step × depth². */
    step: number;
    growing: boolean;
    /**
     * Red, green, blue and 255 for each pixel, row by row from the top; undefined if the points are
     * white. Pixels without a depth have any colour. The array may be longer, since its memory is reused.
     */
    colors: Uint8Array<ArrayBuffer> | undefined;
}

type Reason = (typeof reasons)[number];

export declare class Room {
    private readonly options;
    private readonly url;
    private readonly encryption;
    private readonly emitter;
    private readonly workers;
    /** The lines with sound, by id. */
    private readonly lines;
    private reportedAudience;
    /** The participants as reported to the application, by identity. */
    private readonly reported;
    /** The publications that subscribe has requested, if not everything is received. */
    private readonly subscribed;
    private readonly problems;
    private current;
    private settle;
    private publishing;
    /** The name of the room. */
    get name(): string;
    /** The name of this participant. */
    get identity(): string;
    get state(): RoomState;
    /**
     * The number of participants who are in the room and not in participants: in a room with a large
     * audience, those who may not publish are not announced.
     */
    get audience(): number;
    /** The participants in the room with their publications, this one included. */
    get participants(): ReadonlyMap<string, Participant>;
    /** Returns the name to show for a participant: the attribute "name", or the identity. */
    displayName(identity: string): string;
    /** The lines with sound at present. */
    get soundLines(): readonly SoundLine[];
    /** Adds a listener of an event, and returns the function that removes it. */
    on<K extends keyof RoomEvents>(event: K, listener: RoomEvents[K]): () => void;
    /** Leaves the room. All publications of this participant end. */
    leave(): void;
    /** Requests a quality, which otherwise the server chooses by the view and the capacity of the link. */
    choose({ participant, publication, tile, quality }: QualityChoice): void;
    /** Receives a publication, if subscribe is false in the options or after unsubscribe. */
    subscribe(participant: string, publication: string): void;
    /** Receives nothing of a publication. */
    unsubscribe(participant: string, publication: string): void;
    /**
     * Tells the server the position and the view of the eye, by which it chooses qualities. Thirty
     * messages per second are enough.
     */
    look(viewpoint: Viewpoint): void;
    /**
     * Tells the server where this participant sees the objects that have no pose of their own. Reports
     * whether the message was sent, which needs a connection.
     */
    arrange(objects: readonly Placement[]): boolean;
    /**
     * Sends a message to all other participants, in order and without loss. Rejects if the server
     * refuses the message, or if the room is left before the server's reply.
     */
    say(topic: string, text: string): Promise<void>;
    /** Returns the figures of the last two seconds, and the totals since the room was entered. */
    statistics(): Promise<RoomStatistics>;
    /** The keys of the room; undefined without the option key. */
    get keys(): Keys | undefined;
    /** The state of the encryption of each participant whose state is known. */
    get encryptionStates(): ReadonlyMap<string, EncryptionState>;
    /** Publishes an animated person, another one for each identity. No camera is needed. */
    publishFigure(options?: PointOptions): Promise<PointPublication>;
    /** Publishes the points of a depth camera. */
    publishDepth(source: DepthSource, options?: DepthOptions): Promise<PointPublication>;
    /** Publishes points that the application writes. */
    publishPoints(options: CustomOptions): Promise<CustomPublication>;
    /**
     * Publishes sound. The track stops with the publication. Rejects if the room has a key and the
     * browser cannot encrypt sound.
     */
    publishSound(track: MediaStreamTrack, options?: SoundOptions): Promise<SoundPublication>;
    /**
     * Publishes a webcam or a screen. The track stops with the publication. Rejects if the room has a
     * key: webcams and screens cannot be encrypted.
     */
    publishPicture(track: MediaStreamTrack, options?: PictureOptions): Promise<OwnPublication>;
    private publisher;
    private frame;
    private published;
    private sounds;
    private silenced;
    /** Reports the participants that have joined, changed or left. */
    private people;
    private entered;
    /** Ends the session if the list of rooms rejects the token: browsers do not report why a websocket was rejected. */
    private inquire;
    private close;
}

export interface RoomEvents {
    /** The state of the session has changed, with the reason of a loss or of the end. */
    state(state: RoomState, why: string): void;
    /** The session continues on another server, without an interruption. */
    moved(): void;
    /** A participant has joined, or its attributes or its muting have changed. */
    participant(participant: Participant): void;
    /** A participant has left. */
    left(identity: string): void;
    /** The number of participants who are in the room and not in Room.participants has changed. */
    audience(count: number): void;
    published(participant: string, publication: Publication): void;
    unpublished(participant: string, publication: string): void;
    /** A tile has a new frame. With several listeners, none may call release. */
    frame(frame: Frame): void;
    /** A tile is not sent at present. */
    cleared(tile: TileRef): void;
    /** A webcam or a screen is received on a track; undefined when it is not received. */
    picture(of: TileRef, track: MediaStreamTrack | undefined): void;
    /** A line with sound exists. */
    sound(line: SoundLine): void;
    /** A line with sound has ended: after a move to another server, or with a connection that is replaced. */
    soundEnded(id: string): void;
    pose(pose: Pose): void;
    data(message: DataMessage): void;
    /** A sentence about a problem for the user, once for each problem. */
    problem(message: string): void;
}

/** The key of a room as a person enters it. */
export type RoomKey = {
    kind: "passphrase";
    passphrase: string;
} | {
    kind: "raw";
    epoch: number;
    secret: Uint8Array<ArrayBuffer>;
};

export type RoomState = SessionState;

export interface RoomStatistics {
    /** The server's estimate of this participant's downlink, and the used and the wanted rate, in bit/s. */
    bandwidth: {
        estimate: number;
        allocated: number;
        wanted: number;
    };
    /** The browser's estimate of the uplink in bit/s, if there is one. */
    uplink: number | undefined;
    /** The round trip to the server in milliseconds; NaN before the first reply. */
    roundTrip: number;
    /** The offset of the server's clock from this host's, in milliseconds. */
    clockAhead: number;
    /** Frames since the room was entered. */
    frames: {
        decoded: number;
        skipped: number;
        failed: number;
        missing: number;
        bytes: number;
    };
    tiles: TileStatistics[];
}

export interface RoomSummary {
    name: string;
    participants: number;
    publications: number;
}

type SessionState = "connecting" | "joined" | "resuming" | "closed";

/** A line of the connection with sound. The speaker changes when the server assigns the line to another. */
export interface SoundLine {
    /** The name of the line. A line of a later connection may have the name of a line that has ended. */
    readonly id: string;
    readonly track: MediaStreamTrack;
    /** The present speaker; undefined while the line is unused. */
    readonly participant: string | undefined;
    readonly publication: string | undefined;
}

export interface SoundOptions {
    /** The name of the publication, "voice" by default. */
    name?: string;
    /** The rate in bit/s, 64,000 by default. */
    bitrate?: number;
}

/** A publication of sound. */
export interface SoundPublication extends OwnPublication {
    muted: boolean;
}

interface State {
    /** Whether there are points yet. */
    ready: boolean;
    /** Whether the server has the publication and its channel is open. */
    live: boolean;
    qualities: QualityState[];
    /**
     * The captures per second that were made, and those that were skipped because the encoders were
     * busy.
     */
    fps: number;
    skipped: number;
    bps: number;
    /** Frames replaced by newer ones, per second. */
    dropped: number;
    /** The qualities that exceed the uplink, and the remaining share of points of the others. */
    givenUp: string[];
    share: number;
    /**
     * The measured capacity of the uplink in bit/s, from times when it limited the output; 0 if it
     * never did.
     */
    carried: number;
}

export interface TileRef {
    participant: string;
    publication: string;
    tile: number;
}

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

type VideoCodec = "VP8" | "H264";

type VideoKind = "webcam" | "screen";

export interface Viewpoint {
    at_us?: number;
    position: [number, number, number];
    orientation: [number, number, number, number];
    fov: number;
    aspect: number;
}

/** Enters a room. Rejects with a JoinError that has the reason, or with the reason of the signal. */
export declare function join(options: JoinOptions): Promise<Room>;

/**
 * Requests the rooms of a server that are visible with a token, or without one. Rejects with a
 * JoinError for a wrong address, with an Error that has the server's reason if the server requires
 * another token, and with a TypeError if the server cannot be reached.
 */
export declare function listRooms(server: string | URL, token?: string): Promise<RoomSummary[]>;

/** The reasons for which frames are rejected (docs/encryption.md). */
declare const reasons: readonly ["no_key", "unknown_epoch", "wrong_key", "altered", "replay", "malformed", "not_encrypted", "unknown_scheme"];

export { State as PointState };
