import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Connection, Workers } from "../../src/media/connection";
import { Link } from "../../src/media/link";
import type { WorkerReport } from "../../src/media/traffic";
import type { ClientMessage, Media } from "../../src/signal/messages";

/** A peer connection that refuses the steps chosen by a test. */
class FakePeer {
  static all: FakePeer[] = [];
  connectionState: RTCPeerConnectionState = "new";
  localDescription: { sdp: string } | undefined;
  onconnectionstatechange: (() => void) | undefined;
  candidates: unknown[] = [];
  private described = false;

  constructor() {
    FakePeer.all.push(this);
  }

  setRemoteDescription = async ({ sdp }: { sdp: string }): Promise<void> => {
    if (sdp === "refused") {
      throw new Error("no such line");
    }
    this.described = true;
  };
  transceivers: unknown[] = [];
  getTransceivers = (): unknown[] => this.transceivers;
  createAnswer = async (): Promise<object> => ({});
  setLocalDescription = async (): Promise<void> => void (this.localDescription = { sdp: "answer" });
  addIceCandidate = async (candidate: unknown): Promise<void> => {
    if (!this.described) {
      throw new Error("no remote description");
    }
    this.candidates.push(candidate);
  };
  createDataChannel = (): object => ({});
  close = (): void => void (this.connectionState = "closed");

  be(state: RTCPeerConnectionState): void {
    this.connectionState = state;
    this.onconnectionstatechange?.();
  }
}

class FakeWorker {
  static all: FakeWorker[] = [];
  onmessage: ((event: { data: unknown }) => void) | undefined;
  onerror: ((event: { message?: string }) => void) | undefined;
  constructor() {
    FakeWorker.all.push(this);
  }
}

let reports: WorkerReport[];
const workers = (): Workers => new Workers((report) => reports.push(report));

beforeEach(() => {
  vi.useFakeTimers();
  FakePeer.all = [];
  FakeWorker.all = [];
  reports = [];
  vi.stubGlobal("RTCPeerConnection", FakePeer);
  vi.stubGlobal("navigator", { hardwareConcurrency: 2 });
  vi.stubGlobal("Worker", FakeWorker);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe("Connection", () => {
  it("answers what comes after an offer that the browser refused", async () => {
    const sent: ClientMessage[] = [];
    const connection = new Connection([], workers(), true, new Map(), { send: (m) => sent.push(m), audio: () => {}, video: () => {}, state: () => {}, copied: () => {} });
    await expect(connection.offered(1, "refused", [])).rejects.toThrow("no such line");
    await connection.offered(2, "good", []);
    expect(sent).toEqual([{ type: "answer", offer: 2, sdp: "answer" }]);
    await connection.candidate("candidate:1", "0", 0);
    expect(FakePeer.all[0]!.candidates.length).toBe(1);
  });

  it("keeps candidates that precede the first offer", async () => {
    const connection = new Connection([], workers(), true, new Map(), { send: () => {}, audio: () => {}, video: () => {}, state: () => {}, copied: () => {} });
    const added = connection.candidate("candidate:1", "0", 0);
    await vi.advanceTimersByTimeAsync(1);
    const { candidates } = FakePeer.all[0]!;
    expect(candidates.length).toBe(0);
    await connection.offered(1, "good", []);
    await added;
    expect(candidates.length).toBe(1);
  });
});

describe("Lines", () => {
  it("have their transforms before a sender is given its track", async () => {
    const done: string[] = [];
    vi.stubGlobal("RTCRtpScriptTransform", class {});
    const receiver = {
      set transform(_: unknown) {
        done.push("transform");
      },
    };
    const sender = { replaceTrack: async () => void done.push("track") };
    const connection = new Connection([], workers(), true, new Map(), { send: () => {}, audio: () => {}, video: () => {}, state: () => {}, copied: () => {} });
    FakePeer.all[0]!.transceivers = [{ mid: "0", sender }, { mid: "1", receiver }];
    await connection.offered(1, "good", [
      { mid: "0", role: "publish", publication: "voice" },
      { mid: "1", role: "slot" },
    ] satisfies Media[]);
    expect(done).toEqual(["transform", "track"]);
  });
});

describe("Workers", () => {
  it("report one that cannot be loaded", () => {
    workers();
    FakeWorker.all[0]!.onerror!({});
    expect(reports).toEqual([{ type: "failure", mid: "", message: "The decoder of frames cannot be loaded. Reload the page." }]);
  });
});

describe("Link", () => {
  const begin = (): { link: Link; lost: () => number; troubles: string[] } => {
    const troubles: string[] = [];
    let lost = 0;
    const link = new Link(workers(), true, new Map(), {
      send: () => {}, sendFormer: () => {}, audio: () => {}, video: () => {}, trouble: (m) => troubles.push(m), copied: () => {}, connected: () => {}, lost: () => lost++,
    });
    link.renew([]);
    return { link, lost: () => lost, troubles };
  };
  const refused = { type: "offer", offer: 1, sdp: "refused", media: [] } as const;
  const offer = (link: Link): void => link.offered({ ...refused, media: [] });

  it("gives a connection up on which an offer could not be answered: at once, and the next one after a while", async () => {
    const { link, lost, troubles } = begin();
    offer(link);
    await vi.advanceTimersByTimeAsync(1);
    expect(FakePeer.all[0]!.connectionState).toBe("closed");
    expect([lost(), link.live]).toEqual([1, false]);
    expect(troubles[0]).toContain("no such line");
    link.renew([]);
    offer(link);
    await vi.advanceTimersByTimeAsync(3000);
    expect(lost()).toBe(1);
    await vi.advanceTimersByTimeAsync(2000);
    expect(lost()).toBe(2);
    // A connection that was established does not count as such a failure.
    link.renew([]);
    FakePeer.all.at(-1)!.be("connected");
    offer(link);
    await vi.advanceTimersByTimeAsync(1);
    expect(lost()).toBe(3);
  });

  it("says nothing of a connection that was closed meanwhile", async () => {
    const { link, lost, troubles } = begin();
    offer(link);
    link.close();
    await vi.advanceTimersByTimeAsync(10_000);
    expect([lost(), troubles.length, link.begun]).toEqual([0, 0, false]);
  });

  it("waits a while for one that failed, and gives up only that one", async () => {
    const { link, lost } = begin();
    FakePeer.all[0]!.be("failed");
    await vi.advanceTimersByTimeAsync(1000);
    FakePeer.all[0]!.be("connected");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(lost()).toBe(0);
    FakePeer.all[0]!.be("failed");
    await vi.advanceTimersByTimeAsync(5000);
    expect(lost()).toBe(1);
    FakePeer.all[0]!.be("failed");
    link.renew([]);
    await vi.advanceTimersByTimeAsync(5000);
    expect(lost()).toBe(1);
  });
});
