import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Connection, type Workers } from "../../src/media/connection";
import { Encryption } from "../../src/sframe/encryption";
import type { Counts, EncryptionOrder } from "../../src/sframe/traffic";
import { noCounts } from "../../src/sframe/tally";
import type { Choice, Publication } from "../../src/signal/messages";
import { refusalOf, Secrecy, sentenceOf } from "../../src/viewer/secrecy";
import { reasons } from "../../src/sframe/opener";

const publication = (encryption?: string, kind: "video" | "audio" = "video"): Publication => ({
  name: "body", kind, mode: "alternatives", codec: { mime_type: "video/volumetric", clock_rate: 90_000 }, tiles: [], qualities: [], ...(encryption ? { encryption } : {}),
});

class FakeWorker {
  static all: FakeWorker[] = [];
  orders: { order: EncryptionOrder; transfer: Transferable[] }[] = [];
  ended = false;
  onmessage: ((event: { data: unknown }) => void) | undefined;
  constructor() {
    FakeWorker.all.push(this);
  }
  postMessage(order: EncryptionOrder, transfer: Transferable[] = []): void {
    this.orders.push({ order, transfer });
  }
  terminate(): void {
    this.ended = true;
  }
}

beforeEach(() => {
  FakeWorker.all = [];
  vi.stubGlobal("Worker", FakeWorker);
});
afterEach(() => vi.unstubAllGlobals());

const key = { kind: "raw", epoch: 3, secret: new Uint8Array(16) } as const;
const begin = () => {
  const told: string[] = [];
  const encryption = new Encryption(key, { opened: (mid) => told.push(mid), counted: () => told.push("counted"), failure: (m) => told.push(m) });
  return { encryption, worker: FakeWorker.all.at(-1)!, told };
};

describe("refusalOf", () => {
  it.each([
    [undefined, false, undefined], ["sframe", true, undefined], ["sframe", false, "no_key"], [undefined, true, "not_encrypted"], ["mls", true, "unknown_scheme"], ["mls", false, "unknown_scheme"],
  ])("of a publication with the encryption %s, with a key: %s, is %s", (encryption, hasKey, reason) => {
    expect(refusalOf(publication(encryption), hasKey)).toBe(reason);
  });
});

describe("sentenceOf", () => {
  it("has advice for every reason", () => {
    for (const reason of reasons) {
      expect(sentenceOf("ada", reason)).toMatch(/^(Frames of )?ada .*(Press|enter|leave|Reload)/);
    }
  });
});

describe("Secrecy", () => {
  const watch = (encryption?: Encryption) => {
    const choices: Choice[] = [];
    const warnings: string[] = [];
    return { secrecy: new Secrecy(encryption, (c) => choices.push(c), (w) => warnings.push(w)), choices, warnings };
  };

  it("switches publications off that cannot be decrypted, until they end", () => {
    const { secrecy, choices, warnings } = watch();
    secrecy.published("ada", publication());
    expect([choices.length, warnings.length]).toEqual([0, 0]);
    secrecy.published("ada", publication("sframe"));
    expect(choices).toEqual([{ participant: "ada", publication: "body", quality: -1 }]);
    expect(warnings).toEqual([sentenceOf("ada", "no_key")]);
    expect(secrecy.refuses({ participant: "ada", publication: "body" })).toBe(true);
    expect([...secrecy.states()]).toEqual([["ada", "no_key"]]);
    secrecy.unpublished("ada", "body");
    expect(choices.at(-1)).toEqual({ participant: "ada", publication: "body", quality: "auto" });
    expect([...secrecy.states()]).toEqual([]);
  });

  it("mutes encrypted sound without a key", () => {
    const { secrecy, choices } = watch();
    secrecy.published("ada", publication("sframe", "audio"));
    expect(choices).toEqual([]);
    const track = { enabled: true } as MediaStreamTrack;
    secrecy.mute("4", true);
    secrecy.listen("4", track);
    expect(track.enabled).toBe(false);
    secrecy.mute("4", false);
    expect(track.enabled).toBe(true);
  });

  it("says that a browser cannot decrypt sound", () => {
    const { secrecy, warnings } = watch(begin().encryption);
    secrecy.published("ada", publication("sframe", "audio"));
    expect(warnings[0]).toContain("cannot decrypt the sound of ada. Recent versions");
    vi.stubGlobal("RTCRtpScriptTransform", class {});
    secrecy.published("bob", publication("sframe", "audio"));
    expect(warnings).toHaveLength(1);
  });
});

describe("Encryption", () => {
  it("has its worker do nothing before the names are known", () => {
    const { encryption, worker } = begin();
    encryption.use(3);
    expect(worker.orders).toEqual([]);
    encryption.enter("lab", "ada");
    expect(worker.orders.map(({ order }) => order)).toEqual([{ type: "enter", room: "lab", identity: "ada" }, { type: "key", key, participant: undefined }, { type: "use", epoch: 3 }]);
    encryption.forget(2);
    expect(worker.orders.at(-1)!.order).toEqual({ type: "forget", epoch: 2 });
    expect(() => encryption.use(65_536)).toThrow("expected 0 to 65535");
    expect([encryption.using, [...encryption.epochs]]).toEqual([3, [3]]);
  });

  it("returns encrypted frames by their numbers, and none after its end", async () => {
    const { encryption, worker } = begin();
    const frame = () => ({ publication: "body", tile: 0, quality: 1, number: 5, data: new Uint8Array(3) });
    const [first, second, third] = [encryption.seal(frame()), encryption.seal(frame()), encryption.seal(frame())];
    expect(worker.orders.at(-1)).toMatchObject({ order: { type: "seal", id: 2, number: 5 }, transfer: [{ byteLength: 3 }] });
    worker.onmessage!({ data: { type: "sealed", id: 1, data: new Uint8Array(9) } });
    worker.onmessage!({ data: { type: "sealed", id: 0, data: undefined } });
    encryption.close();
    expect([await first, (await second)?.length, await third, worker.ended]).toEqual([undefined, 9, undefined, true]);
  });

  it("derives the present state from the last counts", () => {
    const { encryption, worker, told } = begin();
    const count = (of: Partial<Counts>): void => worker.onmessage!({ data: { type: "counts", participants: [["ada", { ...noCounts(), ...of }]] } });
    count({ wrong_key: 4 });
    expect(encryption.states.get("ada")).toBe("wrong_key");
    count({ wrong_key: 4, opened: 1 });
    expect(encryption.states.get("ada")).toBe("opened");
    count({ wrong_key: 4, opened: 1, replay: 1, altered: 2 });
    expect(encryption.states.get("ada")).toBe("altered");
    expect(encryption.total).toEqual({ opened: 1, rejected: 7 });
    expect(told).toEqual(["counted", "counted", "counted"]);
    worker.onmessage!({ data: { type: "opened", mid: "7" } });
    expect(told.at(-1)).toBe("7");
  });
});

describe("the lines of a connection with a key", () => {
  it("pass the worker of the key, in both directions", async () => {
    const options: object[] = [];
    vi.stubGlobal("RTCRtpScriptTransform", class {
      constructor(readonly worker: FakeWorker, of: object) {
        options.push(of);
      }
    });
    const transceivers = ["0", "1", "2"].map((mid) => ({ mid, direction: "", receiver: { track: {}, transform: undefined as unknown }, sender: { transform: undefined as unknown, replaceTrack: async () => {} } }));
    class FakePeer {
      connectionState = "new";
      localDescription = { sdp: "answer" };
      setRemoteDescription = async (): Promise<void> => {};
      getTransceivers = (): unknown[] => transceivers;
      createAnswer = async (): Promise<object> => ({});
      setLocalDescription = async (): Promise<void> => {};
      createDataChannel = (): object => ({});
    }
    vi.stubGlobal("RTCPeerConnection", FakePeer);
    const { encryption, worker } = begin();
    const decoder = new FakeWorker();
    const heard: string[] = [];
    const connection = new Connection([], { take: () => decoder as unknown as Worker } as Workers, true, new Map(), { send: () => {}, audio: (mid) => heard.push(mid), video: () => {}, state: () => {}, copied: () => {} }, encryption);
    await connection.offered(1, "offer", [{ mid: "0", role: "publish", publication: "voice" }, { mid: "1", role: "slot" }, { mid: "2", role: "audio" }]);
    expect(options).toMatchObject([{ kind: "voice", publication: "voice" }, { kind: "frames", mid: "1" }, { kind: "sound", mid: "2" }]);
    expect((transceivers[1]!.receiver.transform as { worker: FakeWorker }).worker).toBe(worker);
    expect(decoder.orders.map(({ order }) => order)).toMatchObject([{ type: "line", mid: "1", decode: true }]);
    expect(heard).toEqual(["2"]);
    for (const { order } of decoder.orders as unknown as { order: { port: MessagePort } }[]) {
      order.port.close();
    }
  });
});
