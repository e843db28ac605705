import type { RoomElementEvents, VolsfuRoomElement } from "./element.js";

import type { CSSProperties, ReactElement } from "react";

/** Shows a room in space. A change of a property of the session leaves the room and enters it again. */
export declare function VolsfuRoom(props: VolsfuRoomProps): ReactElement;

/** The properties of VolsfuRoom: the attributes of the element, and functions for its events. */
export interface VolsfuRoomProps {
    /** The address of the server. */
    url: string;
    room?: string | undefined;
    identity?: string | undefined;
    token?: string | undefined;
    /** A passphrase, or EPOCH:HEX. */
    encryptionKey?: string | undefined;
    /** Publishes an animated person. */
    publish?: "figure" | undefined;
    /** The address of the package's folder "assets". */
    assets?: string | undefined;
    className?: string | undefined;
    style?: CSSProperties | undefined;
    onJoined?: ((detail: RoomElementEvents["joined"], element: VolsfuRoomElement) => void) | undefined;
    onLeft?: ((detail: RoomElementEvents["left"]) => void) | undefined;
    onParticipant?: ((detail: RoomElementEvents["participant"]) => void) | undefined;
    onError?: ((detail: RoomElementEvents["error"]) => void) | undefined;
    onStatistics?: ((detail: RoomElementEvents["statistics"]) => void) | undefined;
}

export {};
