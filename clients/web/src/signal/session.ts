// One participant's session: the websocket with its losses and resumptions, independent of media.

import { nowMicroseconds, ServerClock } from "./clock";
import { Making } from "./making";
import type { ClientMessage, ServerMessage } from "./messages";
import { attemptTime, Refusals, waitOf } from "./refusals";
import { maxMoves, Servers } from "./servers";
import { expectMedia, Silence, silenceInterval } from "./silence";

export type Joined = Extract<ServerMessage, { type: "joined" }>;

export interface SessionOptions {
  /** The address of signalling, as in "ws://host:8080/v1/signal". */
  url: string;
  token?: string;
  room?: string;
  identity?: string;
  /** Frames are requested over data channels. */
  receiveData?: boolean;
  /** STUN and TURN servers in addition to those that the server names. */
  iceServers?: RTCIceServer[];
}

export type SessionState = "connecting" | "joined" | "resuming" | "closed";

export interface SessionEvents {
  /**
   * The client is in the room, with a new peer connection or with the present one. The flag is the
   * value sent in the join, whatever happened to that connection since.
   */
  joined(message: Joined, renewed: boolean): void;
  /**
   * The session is on another server. The connection to the former server stays in use until the
   * listener calls retire, for at most `limit` milliseconds. Without the function, a move interrupts the
   * session.
   */
  moved?(message: Joined, limit: number): void;
  /** A message of the former server: only those about its connection and replies count. */
  former?(message: ServerMessage): void;
  message(message: Exclude<ServerMessage, Joined>): void;
  state(state: SessionState, why: string): void;
  /**
   * Reports whether the peer connection is alive, so that a resumed session can continue with it.
   */
  connected(): boolean;
  /** Returns the number of the last reliable data message. */
  received(): number;
  /** Returns the time when a frame has arrived last, by Date.now, 0 for none. */
  mediaReceived?(): number;
}

/** The delay before a new attempt: initially a quarter of a second, doubled after each attempt. */
const firstRetry = 250;
const longestRetry = 5000;
/** Clock requests: a few at once for a good first result, then one at each interval. */
const quickQuestions = 5;
const questionInterval = 2000;
/**
 * A websocket without any message from the server for this time, although requests are sent
 * continually, is broken.
 */
const longestSilence = 10_000;
/**
 * The server keeps a session from the time when it detects the loss of the websocket, which can be
 * later by the same time again.
 */
const graces = 2;

/** The limit of an attempt if there are several servers is doubled after each round, up to this. */
const longestAttempt = 10_000;
/** The time for a move in milliseconds if the server names none. */
const moveTime = 10_000;

/**
 * Codes with which the server ends a session permanently: a new attempt would end in the same way.
 */
const final = new Set(["unauthorized", "version", "malformed", "too_large", "rate_limited", "forbidden", "replaced", "kicked", "closed", "revoked"]);

export class Session {
  readonly clock = new ServerClock();
  private socket: WebSocket | undefined;
  private state: SessionState = "connecting";
  /** The statement of the present join about the peer connection. */
  private renewing = true;
  private resume: { session: string; secret: string; until: number } | undefined;
  private grace = 0;
  private retry = firstRetry;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private questions = 0;
  /** The time of the last message from the server. */
  private lastReceived = 0;
  private questioner: ReturnType<typeof setInterval> | undefined;
  private readonly silence = new Silence();
  private watcher: ReturnType<typeof setInterval> | undefined;
  /** The session has left a silent server and is not on any server yet. */
  private leftSilent = false;
  private refusals = new Refusals(false);
  /** The refusal of the present attempt, undefined without a reply. */
  private refusal: { code: string; message: string } | undefined;
  /** The least wait before the next join of a page without a session. */
  private wait = 0;
  private closing = "";
  private readonly servers: Servers;
  /** The ticket of the message that has sent the page to the server of the next join. */
  private ticket: string | undefined;
  private moves = 0;
  private patience = attemptTime(0);
  private attempt: ReturnType<typeof setTimeout> | undefined;
  /** The server no longer has the peer connection, whatever its state is. */
  private ended = false;
  /** The attempt to connect to another server beside the present one. */
  private making: Making | undefined;
  /** The websocket has ended during that attempt, whose result decides. */
  private severed = false;
  /** The websocket to the server that the session moves from. */
  private former: WebSocket | undefined;

  constructor(
    private readonly options: SessionOptions,
    private readonly events: SessionEvents,
  ) {
    this.servers = new Servers(options.url);
  }

  start(): void {
    this.connect();
  }

  /**
   * Sends a message, or drops it without a connection: important state is sent again after
   * resuming.
   */
  send(message: ClientMessage): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) {
      return false;
    }
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Sends a message to the server that the session moves from, or drops it without a connection. */
  sendFormer(message: ClientMessage): void {
    if (this.former?.readyState === WebSocket.OPEN) {
      this.former.send(JSON.stringify(message));
    }
  }

  /** Ends the connection to the server that the session has moved from. */
  retire(): void {
    const { former } = this;
    this.former = undefined;
    former?.close();
  }

  /** Ends the session with a reason: by default that the user left. */
  leave(why = "left"): void {
    this.send({ type: "leave" });
    this.end(why);
  }

  /**
   * Breaks the websocket, so that the session is resumed: with a new peer connection if none is
   * alive.
   */
  reconnect(): void {
    this.socket?.close();
  }

  private connect(): void {
    const socket = this.open(this.servers.target);
    this.socket = socket;
    this.refusal = undefined;
    clearTimeout(this.attempt);
    if (this.servers.several) {
      this.attempt = setTimeout(() => this.abandon("the server cannot be reached"), this.patience);
    }
    socket.onopen = () => this.join();
    this.listen(socket);
  }

  private open(address: string): WebSocket {
    const url = new URL(address);
    if (this.options.token) {
      url.searchParams.set("access_token", this.options.token);
    }
    return new WebSocket(url);
  }

  private listen(socket: WebSocket): void {
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data as string) as ServerMessage;
      if (this.socket === socket) {
        this.take(message);
      } else if (this.former === socket) {
        this.events.former?.(message);
      }
    };
    socket.onclose = ({ reason }) => {
      if (this.socket === socket) {
        this.broke(reason);
      }
    };
  }

  private join(): void {
    this.resume = this.resume && Date.now() < this.resume.until ? this.resume : undefined;
    const { ticket } = this;
    this.ticket = undefined;
    // A server that sends the page elsewhere expects the same question there. The peer connection is
    // that of the present server.
    const elsewhere = !this.servers.atPresent && (ticket === undefined || this.renewing);
    this.renewing = this.ended || elsewhere || !this.events.connected();
    this.send(this.joinWith(ticket, this.renewing));
  }

  /** Returns the join, with the ticket of a message moved if there is one. */
  private joinWith(ticket: string | undefined, renewing: boolean): ClientMessage {
    const { room, identity } = this.options;
    const { resume } = this;
    return {
      type: "join",
      id: "join",
      version: 1,
      receive: true,
      // A later publication uses the same connection, and its line must be in the first offer.
      data_channel: true,
      pauses: true,
      message_channel: true,
      moves: true,
      ...(this.options.receiveData ? { receive_data: true } : {}),
      ...(room ? { room } : {}),
      ...(identity ? { identity } : {}),
      ...(ticket !== undefined && !resume ? { ticket } : {}),
      ...(resume ? { resume: { session: resume.session, secret: ticket ?? resume.secret, new_connection: renewing, data_received: this.events.received() } } : {}),
    };
  }

  private take(message: ServerMessage): void {
    this.lastReceived = Date.now();
    switch (message.type) {
      case "joined":
        if (this.leftSilent && this.servers.atPresent) {
          this.silence.returned();
        }
        clearTimeout(this.attempt);
        this.servers.joined(message.nodes ?? []);
        this.accept(message);
        this.events.joined(withLists(message), this.renewing || !message.resumed);
        this.enter("joined", "");
        this.ask();
        return;
      case "time_reply":
        this.replied(message.t0_us, message.t1_us, message.t2_us);
        if (++this.questions < quickQuestions) {
          this.question();
        }
        return;
      case "error":
        if (message.id === "join") {
          this.refused(message);
          return;
        }
        break;
      case "moved":
        this.moved(message);
        return;
      case "nodes":
        this.servers.set(message.nodes ?? []);
        if (message.secret !== undefined && this.resume) {
          this.resume.secret = message.secret;
        }
        return;
      case "closing":
        if (this.making && message.code === "replaced") {
          // The other server has the session.
          return;
        }
        if (message.grace_ms === undefined) {
          this.ended ||= message.code === "connection";
          this.closing = message.message;
          // Too many joins from one address, as after an outage of a whole site, are a temporary
          // condition.
          if (final.has(message.code) && !(message.code === "rate_limited" && this.state !== "joined")) {
            this.end(message.message);
          }
        }
        break;
    }
    this.events.message(message);
  }

  private replied(t0: number, t1: number, t2: number): void {
    const now = nowMicroseconds();
    this.clock.answered(t0, t1, t2, now);
    this.silence.measured((now - t0 - (t2 - t1)) / 1000);
  }

  /**
   * Handles a rejected join. A session that every server of a round refuses has ended: an expired
   * session is replaced by a new one on the same connection.
   */
  private refused({ code, message, retry_after_ms: retryAfter }: Extract<ServerMessage, { type: "error" }>): void {
    if (this.resume) {
      this.refusal = { code, message };
      const ended = this.refusals.add(code, retryAfter);
      if (ended || (this.servers.last && this.refusals.all && code !== "draining")) {
        this.over(code, message);
        return;
      }
    } else if (code !== "draining" && !retryAfter) {
      this.end(message);
      return;
    }
    // Another server may be available there soon.
    this.wait = this.resume ? 0 : waitOf(retryAfter);
    this.closing = message;
    this.socket?.close();
  }

  /** Ends a session that no server continues. */
  private over(code: string, message: string): void {
    if (code !== "resume") {
      this.end(message);
      return;
    }
    this.resume = undefined;
    this.join();
  }

  /** Stores the state of a session that a server has accepted. */
  private accept(message: Joined): void {
    this.grace = message.resume.grace_ms;
    this.resume = { session: message.session, secret: message.resume.secret, until: Infinity };
    this.retry = firstRetry;
    this.patience = attemptTime(this.silence.rtt);
    this.moves = 0;
    this.leftSilent = false;
    this.ended = false;
  }

  /** Processes the message that sends the page to another server. */
  private moved({ id, url, ticket, make_before_break: beside, deadline_ms: limit = moveTime }: Extract<ServerMessage, { type: "moved" }>): void {
    const answers = id === "join";
    if (answers || !beside || !this.events.moved || this.ended || !this.events.connected()) {
      this.follow(answers, url, ticket);
      return;
    }
    const address = this.servers.address(url);
    if (address === undefined) {
      // The present server serves the page until it ends.
      return;
    }
    this.making?.cancel();
    const began = Date.now();
    this.making = new Making(address, ticket, Math.min(limit, longestAttempt), this.servers, {
      open: (address) => this.open(address),
      join: (ticket) => this.joinWith(ticket, true),
      joined: (socket, address, message) => this.made(socket, address, message, began + limit - Date.now()),
      failed: () => {
        this.making = undefined;
        this.severed = false;
        this.follow(false, url, ticket);
      },
    });
  }

  /** Continues the session on the server that was joined beside the present one. */
  private made(socket: WebSocket, address: string, message: Joined, limit: number): void {
    this.making = undefined;
    this.severed = false;
    const former = this.socket;
    this.socket = socket;
    this.listen(socket);
    this.lastReceived = Date.now();
    this.servers.moved(address, message.nodes ?? []);
    this.accept(message);
    // The listener ends a move before this one.
    this.events.moved?.(withLists(message), limit);
    this.former = former;
    this.ask();
  }

  /** Goes to the server that has the session, or that is to have it. */
  private follow(answers: boolean, url: string, ticket: string): void {
    if (++this.moves > maxMoves || !this.servers.visit(url)) {
      this.socket?.close();
      return;
    }
    this.ticket = ticket;
    const former = this.socket;
    this.socket = undefined;
    if (!answers) {
      this.cancelMaking();
      this.stop();
      this.ended = true;
      this.expire();
      // The other servers follow if that server cannot be reached.
      this.servers.begin(false);
      this.refusals = new Refusals(true);
      this.enter("resuming", "the server sends this page to another server");
    }
    former?.close();
    // The listener may have left.
    if (this.state !== "closed") {
      this.connect();
    }
  }

  /** Begins the time for which a server keeps the session. */
  private expire(): void {
    if (this.resume && this.resume.until === Infinity) {
      this.resume.until = Date.now() + graces * this.grace;
    }
  }

  private broke(reason: string, silent = false): void {
    if (this.making && !silent) {
      // The other server has the session, and its reply is on the way.
      this.severed = true;
      return;
    }
    this.cancelMaking();
    this.stop();
    clearTimeout(this.attempt);
    this.ticket = undefined;
    this.moves = 0;
    if (this.state === "closed") {
      return;
    }
    if (this.state === "connecting" && !this.resume && this.retry > longestRetry) {
      this.end(reason || this.closing || unreachable(this.options.url));
      return;
    }
    this.expire();
    const lost = this.state === "joined";
    if (lost) {
      this.leftSilent = silent;
    } else if (!this.refusal) {
      this.refusals.add();
    }
    const wait = Math.max(this.wait, this.servers.last ? this.refusals.wait : 0);
    this.wait = 0;
    if (lost || this.servers.last) {
      this.refusals = new Refusals(this.servers.several);
    }
    if (this.servers.next(lost, silent)) {
      this.timer = setTimeout(() => this.connect());
    } else {
      this.timer = setTimeout(() => this.connect(), Math.max(this.retry, wait));
      this.retry = Math.min(this.retry * 2, this.resume ? longestRetry : 2 * longestRetry);
      this.patience = Math.min(this.patience * 2, longestAttempt);
    }
    // The listener may leave, which ends the attempts.
    this.enter(this.resume ? "resuming" : "connecting", reason || "the connection to the server broke");
  }

  private ask(): void {
    this.stop();
    this.questions = 0;
    this.watcher = setInterval(() => this.watch(), silenceInterval);
    this.question();
    this.questioner = setInterval(() => (Date.now() - this.lastReceived > longestSilence ? this.abandon("the server does not answer") : this.question()), questionInterval);
  }

  /** Ends the questions to the server. */
  private stop(): void {
    clearInterval(this.questioner);
    clearInterval(this.watcher);
  }

  /** Asks a silent server for a reply, and leaves the server if there is none and there are others. */
  private watch(): void {
    const now = Date.now();
    if (this.severed) {
      return;
    }
    const media = this.events.mediaReceived?.() ?? 0;
    // During a move media comes from either server.
    const expected = now - media < expectMedia && this.events.connected() && !this.former;
    switch (this.silence.step(now, Math.max(this.lastReceived, media), expected, this.servers.several)) {
      case "ask":
        this.question();
        break;
      case "leave":
        this.abandon("the server does not answer");
        break;
      default:
        break;
    }
  }

  private cancelMaking(): void {
    this.making?.cancel();
    this.making = undefined;
    this.severed = false;
  }

  /** Abandons the websocket as broken: a proper close would need the server's reply. */
  private abandon(why: string): void {
    const silent = this.socket;
    this.socket = undefined;
    silent?.close();
    this.broke(why, true);
  }

  private question(): void {
    this.send({ type: "time", id: "time", t0_us: nowMicroseconds() });
  }

  private enter(state: SessionState, why: string): void {
    this.state = state;
    this.events.state(state, why);
  }

  private end(why: string): void {
    if (this.state === "closed") {
      return;
    }
    clearTimeout(this.timer);
    clearTimeout(this.attempt);
    this.stop();
    this.cancelMaking();
    this.enter("closed", why);
    this.retire();
    this.socket?.close();
  }
}

/**
 * Returns the sentence about a server that has not answered. Browsers do not tell pages the reason, which
 * may also be that the server does not accept pages of this origin.
 */
function unreachable(address: string): string {
  const { host } = new URL(address);
  const page = globalThis.location as Location | undefined;
  const foreign = page !== undefined && page.host !== host;
  return `The server ${host} cannot be reached${foreign ? `, or does not accept pages of the origin ${page.origin}: signalling.allowed_origins in its configuration lists the accepted ones` : ""}.`;
}

/** Returns a reply with empty lists for those that a server writes as null. */
function withLists(message: Joined): Joined {
  const participants = (message.participants ?? []).map((p) => ({ ...p, publications: p.publications ?? [] }));
  return { ...message, ice_servers: message.ice_servers ?? [], participants };
}
