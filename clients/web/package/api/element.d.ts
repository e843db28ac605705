import type { Room, RoomStatistics } from "./index.js";

/** The details of the events of a shown room, by name. */
export interface RoomElementEvents {
    joined: {
        room: string;
        identity: string;
    };
    /** The room was left, with the reason; empty if the page or the user left it. */
    left: {
        why: string;
    };
    /** A participant has joined, has another name, or has left; this participant included. */
    participant: {
        identity: string;
        name: string;
        present: boolean;
    };
    /** A sentence about a problem. */
    error: {
        message: string;
    };
    /** Every second. */
    statistics: RoomStatistics;
}

/** The element <volsfu-room>. Its attributes are settings of the session, and its events are RoomElementEvents. */
export declare class VolsfuRoomElement extends HTMLElement {
    static readonly observedAttributes: readonly ["url", "room", "identity", "token", "encryption-key", "publish", "assets"];
    private show;
    private changing;
    private readonly message;
    private readonly soundButton;
    private canvas;
    constructor();
    /** The joined room; undefined before and after. */
    get session(): Room | undefined;
    connectedCallback(): void;
    disconnectedCallback(): void;
    /** The other participants need not wait for the grace period when the page is closed. */
    private readonly pageHidden;
    /** Enters the room again when the browser shows a page that it has kept. */
    private readonly pageShown;
    attributeChangedCallback(_name: string, before: string | null, after: string | null): void;
    /** Switches sound on or off, from the direction of the speakers. It must be called from a click or a key. */
    toggleSound(): Promise<boolean>;
    private sounds;
    /** Returns to the viewer's seat. */
    home(): void;
    /** Enters the room of the attributes, after all changes of the present task. */
    private change;
    private open;
    private close;
    private tell;
    private say;
}

export {};

declare global {
    interface HTMLElementTagNameMap {
        "volsfu-room": VolsfuRoomElement;
    }
}
