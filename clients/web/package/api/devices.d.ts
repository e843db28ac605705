import type { DepthSource, Room } from "./index.js";

/** An error with a message for the user and advice. */
declare class Lacking extends Error {
}

/** An opened depth camera. */
export interface OpenedCamera extends DepthSource {
    /** Sets the function that is called if the camera is disconnected. */
    ended: () => void;
    close(): void;
}

/** Returns the cameras. Their names are empty until the user has permitted one. */
export declare function listDepthCameras(): Promise<MediaDeviceInfo[]>;

/**
 * Opens a camera whose picture has depth, alone or beside colour. It rejects with a DeviceError with
 * a message for the user.
 */
export declare function openDepthCamera({ deviceId, fps }?: {
    deviceId?: string;
    fps?: number;
}): Promise<OpenedCamera>;

/** Opens the microphone. It throws errors with a message for the user. */
export declare function openMicrophone(): Promise<MediaStreamTrack>;

/**
 * Asks the user for a screen, right after a click, and returns its tracks: the picture, and the
 * sound if the browser gives it. It rejects with a DeviceError.
 */
export declare function openScreen({ signal }?: {
    signal?: AbortSignal;
}): Promise<{
    picture: MediaStreamTrack;
    sound?: MediaStreamTrack;
}>;

/** Opens a webcam with about the given number of lines. It rejects with a DeviceError. */
export declare function openWebcam({ deviceId, lines, signal }?: {
    deviceId?: string;
    lines?: number;
    signal?: AbortSignal;
}): Promise<MediaStreamTrack>;

/**
 * Plays the sound of a room, without directions. Browsers play nothing before the first click or
 * key. Returns the function that ends the playback.
 */
export declare function playSound(room: Room): () => void;

export { Lacking as DeviceError };
