// The element <volsfu-room> as a component of React.

import { createElement, type CSSProperties, type ReactElement, useEffect, useRef } from "react";
import type { RoomElementEvents, VolsfuRoomElement } from "../element/index";

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

/** Shows a room in space. A change of a property of the session leaves the room and enters it again. */
export function VolsfuRoom(props: VolsfuRoomProps): ReactElement {
  const { url, room, identity, token, encryptionKey, publish, assets, className, style } = props;
  const element = useRef<VolsfuRoomElement>(null);
  const present = useRef(props);
  present.current = props;
  useEffect(() => {
    const target = element.current;
    if (!target) {
      return undefined;
    }
    // The element is defined here, since servers that render pages have no elements.
    void import("../element/index");
    const listeners: [keyof RoomElementEvents, (event: Event) => void][] = [
      ["joined", (event) => present.current.onJoined?.(detailOf(event), target)],
      ["left", (event) => present.current.onLeft?.(detailOf(event))],
      ["participant", (event) => present.current.onParticipant?.(detailOf(event))],
      ["error", (event) => present.current.onError?.(detailOf(event))],
      ["statistics", (event) => present.current.onStatistics?.(detailOf(event))],
    ];
    listeners.forEach(([event, listener]) => target.addEventListener(event, listener));
    return () => listeners.forEach(([event, listener]) => target.removeEventListener(event, listener));
  }, []);
  return createElement("volsfu-room", { ref: element, url, room, identity, token, "encryption-key": encryptionKey, publish, assets, class: className, style });
}

function detailOf<T>(event: Event): T {
  return (event as CustomEvent<T>).detail;
}
