// The package @volsfu/client: rooms of volsfu for programs in browsers, without a display.

import { listRooms as roomsOf, type RoomSummary } from "../signal/rooms";
import { pagesURL } from "./options";

export type { Points } from "../decode/points";
export type { Camera, CameraPose, Distortion, Raster } from "../decode/rgbd/raster";
export type { Arrangement, DepthCoding, DepthMap, Lens, Picture } from "../publish/depth";
export type { QualityState, State as PointState } from "../publish/figures";
export type { Quality } from "../publish/tiling";
export type { RoomKey } from "../sframe/secret";
export type { Box, MuteState, Participant, Placement, Pose, Publication, TileRef, Viewpoint } from "../signal/messages";
export type { RoomSummary } from "../signal/rooms";
export { JoinError, type JoinOptions, type Keys } from "./options";
export type {
  CustomOptions, CustomPublication, DepthOptions, DepthSource, OwnPublication, PictureOptions, PointOptions, PointPublication, SoundOptions, SoundPublication,
} from "./publishing";
export { type DataMessage, type EncryptionState, type Frame, join, type QualityChoice, Room, type RoomEvents, type RoomState, type SoundLine } from "./room";
export type { RoomStatistics, TileStatistics } from "./statistics";

/**
 * Requests the rooms of a server that are visible with a token, or without one. Rejects with a
 * JoinError for a wrong address, with an Error that has the server's reason if the server requires
 * another token, and with a TypeError if the server cannot be reached.
 */
export async function listRooms(server: string | URL, token = ""): Promise<RoomSummary[]> {
  return roomsOf(pagesURL(server), token);
}
