// The viewer: a lobby, then a room in space.

import "../style.css";
import { byId } from "../dom";
import { transforms, Workers } from "../media/connection";
import { cannotEncrypt } from "../sframe/encryption";
import { parseKey } from "../sframe/secret";
import { claimsOf, identityOf } from "../token";
import type { DetailName } from "../scene/detail";
import { graphicsLost, watchGraphics } from "../scene/graphics";
import { World } from "../scene/world";
import { Embedding } from "./embed";
import { Lobby, type Entry } from "./lobby";
import { Messages } from "./messages";
import { RoomView } from "./room";

/**
 * Parses the parameters of a link to the viewer. The token and the key follow the #, a part that
 * browsers do not send to servers.
 */
function entryOf(location: Location): Entry {
  const query = new URLSearchParams(location.search);
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get("token") ?? "";
  return {
    room: query.get("room") ?? claimsOf(token).room,
    identity: identityOf(query.get("identity") ?? undefined, token),
    token,
    key: fragment.get("key") ?? "",
    decode: query.get("decode") !== "off",
    receiveData: !transforms() || query.get("delivery") === "data",
    show: query.has("publish") ? "at once" : undefined,
  };
}

/** Parses the detail of the picture in a link. */
function detailOf(location: Location): DetailName | undefined {
  const detail = new URLSearchParams(location.search).get("detail");
  return detail === "full" || detail === "light" ? detail : undefined;
}

function start(): void {
  const messages = new Messages(byId("messages"));
  const missing = lacking();
  if (missing) {
    messages.keep(missing);
    return;
  }
  const canvas = byId<HTMLCanvasElement>("stage");
  let room: RoomView | undefined;
  const world = new World(canvas, () => room?.draw(), (now) => room?.drawn(now), detailOf(location));
  watchGraphics(canvas, new AbortController().signal, (lost) => (lost ? messages.keep(graphicsLost) : messages.drop(graphicsLost)));
  const workers = new Workers((report) => {
    if (room) {
      room.conference.report(report);
    } else if (report.type === "failure") {
      // The decoder could not be loaded: without it, no room shows anything.
      messages.keep(report.message);
    }
  }, true);
  const embedding = Embedding.ofPage();
  const entry = entryOf(location);
  const lobby = new Lobby(byId("lobby"), entry, enter);

  function enter(to: Entry): void {
    lobby.hide();
    const wrong = wrongKey(to.key);
    if (wrong !== undefined) {
      lobby.show(wrong);
      return;
    }
    const element = byId("room");
    room = new RoomView(element, world, workers, messages, to, embedding, (why, again) => {
      room = undefined;
      element.hidden = true;
      if (again) {
        enter(again);
      } else {
        lobby.show(why);
      }
    });
    element.hidden = false;
    // This is for tests and for debugging in the browser's console.
    Object.assign(globalThis, { volsfu: room });
  }

  if (entry.room) {
    enter(entry);
  } else {
    lobby.show();
  }
}

/** Returns the reason why a key cannot be used, with advice; undefined if it can, or is empty. */
function wrongKey(key: string): string | undefined {
  if (key === "") {
    return undefined;
  }
  try {
    parseKey(key);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return cannotEncrypt();
}

/** Returns the missing features of this browser with advice; undefined if there are none. */
function lacking(): string | undefined {
  if (typeof RTCPeerConnection !== "function") {
    return "This browser has no WebRTC, or it is switched off. Chromium, Chrome, Edge, Firefox and Safari have it.";
  }
  const context = document.createElement("canvas").getContext("webgl2");
  if (!context) {
    return "This browser has no WebGL 2, or it is switched off. Turn hardware acceleration on, or start Chromium with --use-gl=angle --use-angle=swiftshader.";
  }
  return undefined;
}

start();
