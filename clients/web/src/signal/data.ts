// Data messages in both directions: the numbers, the order of the two ways, and repetitions after a
// resume, as docs/signalling.md describes ("Data messages").

import type { Data, ServerMessage } from "./messages";

/** The number of messages after the next message of which copies are kept. */
const mostAhead = 64;
/** The longest text of which copies are sent, in bytes. */
const longestCopy = 1100;
/** The time between two copies, in milliseconds. */
const copyDelay = 20;
/** The number of messages without a reply; more are refused. */
const mostPending = 256;
/** The number of unacknowledged bytes of the channel above which no copies are sent. */
const mostBuffered = 64 << 10;
/** The reason for which a message after the end of the session is not sent. */
const left = "the room was left";

/** Takes the first copy of each message, in order. */
export class DataReceiver {
  /** The number of the last delivered reliable message. */
  last = 0;
  private readonly copies = new Map<number, Data>();
  /** The number of the newest lossy message, by participant and topic. */
  private readonly newest = new Map<string, Map<string, number>>();

  /** Takes a reliable message of the channel, in any order, and returns the messages that are next. */
  copied(message: Data): Data[] {
    const seq = message.seq ?? 0;
    if (seq <= this.last || seq > this.last + mostAhead) {
      return [];
    }
    this.copies.set(seq, message);
    return this.next([]);
  }

  /** Takes a reliable message of the websocket, after which no earlier message follows. */
  ordered(message: Data): Data[] {
    const seq = message.seq ?? 0;
    if (seq <= this.last) {
      return [];
    }
    const ready: Data[] = [];
    for (const [number, copy] of [...this.copies].sort(([a], [b]) => a - b)) {
      if (number <= seq) {
        this.copies.delete(number);
        if (number < seq) {
          ready.push(copy);
        }
      }
    }
    this.last = seq;
    return this.next([...ready, message]);
  }

  private next(ready: Data[]): Data[] {
    for (let copy = this.copies.get(this.last + 1); copy; copy = this.copies.get(this.last + 1)) {
      this.copies.delete(++this.last);
      ready.push(copy);
    }
    return ready;
  }

  /** Reports whether a lossy message is newer than all before of its participant and topic. */
  newer({ participant = "", topic = "", seq = 0 }: Data): boolean {
    const topics = this.newest.get(participant) ?? new Map<string, number>();
    this.newest.set(participant, topics);
    if (seq !== 0 && seq <= (topics.get(topic) ?? 0)) {
      return false;
    }
    topics.set(topic, seq);
    return true;
  }

  /** Clears the numbers of a participant who has left. */
  forget(participant: string): void {
    this.newest.delete(participant);
  }

  /** Clears the numbers of all participants. */
  forgetAll(): void {
    this.newest.clear();
  }
}

/** A data channel for copies. */
export type CopyChannel = Pick<RTCDataChannel, "readyState" | "bufferedAmount" | "send">;

interface Pending {
  text: string;
  topic: string;
  done: (refused: string | undefined) => void;
}

export class DataMessages {
  private receiver = new DataReceiver();
  /** The messages without a reply, by number, in order. */
  private pending = new Map<number, Pending>();
  private sent = 0;
  private ended = false;

  /**
   * @param send writes to the websocket
   * @param channel returns the channel for copies, if there is one
   * @param deliver gets each message once
   */
  constructor(
    private readonly send: (message: Data & { type: "data"; id: string }) => boolean,
    private readonly channel: () => CopyChannel | undefined,
    private readonly deliver: (message: Data) => void,
  ) {}

  /** The number of the last received message, for resuming. */
  get received(): number {
    return this.receiver.last;
  }

  /**
   * Sends a reliable message to all other participants. The promise has the reason for which the
   * server refused the message, or for which it was not sent. Without a websocket the message is sent
   * after the resume.
   */
  say(topic: string, text: string): Promise<string | undefined> {
    if (this.ended) {
      return Promise.resolve(left);
    }
    if (this.pending.size >= mostPending) {
      return Promise.resolve("too many messages wait for the server");
    }
    return new Promise((done) => this.add({ topic, text, done }));
  }

  private add(pending: Pending): void {
    this.pending.set(++this.sent, pending);
    this.write(this.sent, pending);
  }

  private write(seq: number, { topic, text }: Pending): void {
    const message = { type: "data" as const, id: `data/${seq}`, seq, topic, text };
    this.send(message);
    const json = JSON.stringify(message);
    if (new TextEncoder().encode(json).length <= longestCopy) {
      this.copy(json);
      setTimeout(() => this.copy(json), copyDelay);
    }
  }

  private copy(json: string): void {
    const channel = this.channel();
    if (channel?.readyState === "open" && channel.bufferedAmount <= mostBuffered) {
      channel.send(json);
    }
  }

  /**
   * The session was interrupted. Participants may have left and returned meanwhile: their lossy messages
   * count from 1 again.
   */
  interrupted(): void {
    this.receiver.forgetAll();
  }

  /** The session was entered. The server has received the messages up to a number. */
  entered(resumed: boolean, received: number): void {
    const before = [...this.pending];
    if (!resumed) {
      this.receiver = new DataReceiver();
      this.pending.clear();
      this.sent = 0;
      before.forEach(([, pending]) => this.add(pending));
      return;
    }
    for (const [seq, pending] of before) {
      if (seq <= received) {
        this.pending.delete(seq);
        pending.done(undefined);
      } else {
        this.write(seq, pending);
      }
    }
  }

  /** The session has ended. Messages without a reply are not sent again. */
  end(): void {
    this.ended = true;
    this.pending.forEach(({ done }) => done(`${left} before the server's reply`));
    this.pending.clear();
  }

  /** Handles a message of the websocket, and reports whether it was about data messages. */
  handle(message: ServerMessage): boolean {
    if (message.type === "data") {
      this.take(message, false);
      return true;
    }
    if (message.type === "participant_left") {
      this.receiver.forget(message.identity);
    }
    if ((message.type !== "ok" && message.type !== "error") || !message.id?.startsWith("data/")) {
      return false;
    }
    const seq = Number(message.id.slice("data/".length));
    this.pending.get(seq)?.done(message.type === "error" ? message.message : undefined);
    this.pending.delete(seq);
    return true;
  }

  /** Handles a text of the channel. */
  copied(json: string): void {
    const message = JSON.parse(json) as ServerMessage;
    if (message.type === "data") {
      this.take(message, true);
    }
  }

  private take(message: Data, copy: boolean): void {
    if (message.lossy) {
      if (this.receiver.newer(message)) {
        this.deliver(message);
      }
      return;
    }
    (copy ? this.receiver.copied(message) : this.receiver.ordered(message)).forEach(this.deliver);
  }
}
