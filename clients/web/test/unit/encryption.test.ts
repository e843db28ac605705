// Encryption of frames as in docs/encryption.md, with the vectors that all implementations share
// (pkg/sframe/testdata).

import { readFile } from "node:fs/promises";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { Cipher } from "../../src/sframe/cipher";
import { KeyRing } from "../../src/sframe/keyring";
import { frameMetadata, type Origin, soundMetadata } from "../../src/sframe/metadata";
import { Lines } from "../../src/sframe/lines";
import { Opener, Rejected } from "../../src/sframe/opener";
import { ReplayWindow } from "../../src/sframe/replay";
import { Sealer } from "../../src/sframe/sealer";
import { baseKey, importSecret, parseKey, passphraseSecret } from "../../src/sframe/secret";
import { noCounts, Tally } from "../../src/sframe/tally";
import type { Counts, EncryptionOrder, EncryptionReport, OpenedFrame } from "../../src/sframe/traffic";

// The time limit on a busy machine for a person.
vi.setConfig({ testTimeout: 60_000 });

const bytes = (hex: string): Uint8Array<ArrayBuffer> => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (data: Uint8Array): string => [...data].map((b) => b.toString(16).padStart(2, "0")).join("");
const secretOf = (digits: string): Promise<CryptoKey> => importSecret(bytes(digits));

interface Vectors {
  passphrases: { passphrase: string; room: string; secret: string }[];
  sealed: {
    name: string; secret: string; identity: string; epoch: number; kid: string; ctr: number; publication: string; tile: number; quality: number; number: number;
    prefix: string | null; metadata: string; plaintext: string; ciphertext: string;
  }[];
}
let vectors: Vectors;

beforeAll(async () => {
  const text = await readFile(new URL("../../../../pkg/sframe/testdata/vectors.json", import.meta.url));
  vectors = (JSON.parse(new TextDecoder().decode(text)) as { volsfu: Vectors }).volsfu;
});

describe("the vectors of all implementations", () => {
  it("have the secrets of passphrases", async () => {
    expect(vectors.passphrases.length).toBeGreaterThan(1);
    for (const { passphrase, room, secret } of vectors.passphrases) {
      // The secret itself cannot be exported: keys derived from both are compared.
      const keys = await Promise.all([passphraseSecret(passphrase, room), secretOf(secret)].map(async (of) => Cipher.derive(await baseKey(await of, 7, "ada"), 7n, "encrypt")));
      const [one, other] = await Promise.all(keys.map((key) => key.seal(1n, new Uint8Array(0), bytes("00"))));
      expect(hex(one!)).toBe(hex(other!));
    }
  });

  it("are encrypted and decrypted", async () => {
    expect(vectors.sealed.length).toBeGreaterThan(3);
    for (const v of vectors.sealed) {
      const origin: Origin = { participant: v.identity, publication: v.publication, tile: v.tile };
      const metadata = v.prefix === null ? soundMetadata(origin) : frameMetadata(origin, v.quality, v.number, bytes(v.prefix));
      expect(hex(metadata), v.name).toBe(v.metadata);
      const keyID = BigInt(`0x${v.kid}`);
      const cipher = await Cipher.derive(await baseKey(await secretOf(v.secret), v.epoch, v.identity), keyID, "encrypt");
      expect(hex(await cipher.seal(BigInt(v.ctr), metadata, bytes(v.plaintext))), v.name).toBe(v.ciphertext);
      const keys = new KeyRing();
      keys.set(v.epoch, await secretOf(v.secret));
      expect(hex(await new Opener(keys).open(origin, metadata, bytes(v.ciphertext))), v.name).toBe(v.plaintext);
    }
  });
});

describe("parseKey", () => {
  it("reads passphrases and secrets", () => {
    expect(parseKey(" two words ")).toEqual({ kind: "passphrase", passphrase: " two words " });
    expect(parseKey("cafe:babe")).toEqual({ kind: "passphrase", passphrase: "cafe:babe" });
    expect(parseKey("3:00112233445566778899aabbCCDDEEFF")).toEqual({ kind: "raw", epoch: 3, secret: bytes("00112233445566778899aabbccddeeff") });
  });

  it.each(["", "3:0011", "65536:00112233445566778899aabbccddeeff", "1:00112233445566778899aabbccddeeff0"])("rejects %j with what is expected", (text) => {
    expect(() => parseKey(text)).toThrow(/Enter|Expected/);
  });
});

describe("ReplayWindow", () => {
  it("accepts every counter once, in any order", () => {
    const window = new ReplayWindow();
    const counters = Array.from({ length: 3000 }, (_, i) => BigInt((i * 1009) % 3000));
    expect(counters.every((c) => window.accept(c))).toBe(true);
    expect(counters.some((c) => window.accept(c) || window.fresh(c))).toBe(false);
  });

  it("rejects counters that are too old to be known, and forgets nothing else after a jump", () => {
    const window = new ReplayWindow();
    window.accept(5n);
    expect(window.accept(65_536n + 5n)).toBe(true);
    expect(window.accept(5n)).toBe(false);
    expect(window.accept(6n)).toBe(true);
    expect(window.accept(6n)).toBe(false);
    expect(window.accept(2n ** 63n)).toBe(true);
    expect([2n ** 63n, 2n ** 63n - 65_536n, 7n].map((c) => window.accept(c))).toEqual([false, false, false]);
    expect(window.accept(2n ** 63n - 65_535n)).toBe(true);
  });
});

describe("Opener", () => {
  const secret = "000102030405060708090a0b0c0d0e0f";
  const origin: Origin = { participant: "ada", publication: "body", tile: 2 };
  const plain = bytes("74696c6521");

  async function sender(epoch = 0, digits = secret): Promise<{ sealer: Sealer; keys: KeyRing }> {
    const keys = new KeyRing();
    keys.set(epoch, await secretOf(digits));
    const sealer = new Sealer(keys);
    sealer.enter("ada");
    sealer.use(epoch);
    return { sealer, keys };
  }
  async function receiver(epoch = 0, digits = secret): Promise<{ opener: Opener; keys: KeyRing }> {
    const keys = new KeyRing();
    keys.set(epoch, await secretOf(digits));
    return { opener: new Opener(keys), keys };
  }
  const metadata = frameMetadata(origin, 1, 7, new Uint8Array(12));
  const result = (opening: Promise<Uint8Array>): Promise<string> => opening.then(hex, (error: unknown) => (error as Rejected).reason);

  it("decrypts concurrent frames once each", async () => {
    const [{ sealer }, { opener }] = [await sender(), await receiver()];
    const frames = await Promise.all(Array.from({ length: 20 }, () => sealer.seal(metadata, plain)));
    const both = [...frames, ...frames].map((frame) => result(opener.open(origin, metadata, frame)));
    expect((await Promise.all(both)).sort()).toEqual([...Array(20).fill("74696c6521"), ...Array(20).fill("replay")]);
    expect(await result(opener.open(origin, metadata, frames[3]!))).toBe("replay");
  });

  it("names the reason of a rejection", async () => {
    const { sealer } = await sender();
    const frame = await sealer.seal(metadata, plain);
    const altered = Uint8Array.from(frame);
    altered[frame.length - 1]! ^= 1;
    expect(await result(new Opener(new KeyRing()).open(origin, metadata, frame))).toBe("no_key");
    expect(await result((await receiver(1)).opener.open(origin, metadata, frame))).toBe("unknown_epoch");
    expect(await result((await receiver(0, secret.replace("00", "ff"))).opener.open(origin, metadata, frame))).toBe("wrong_key");
    const { opener } = await receiver();
    expect(await result(opener.open(origin, metadata, bytes("")))).toBe("malformed");
    expect(await result(opener.open(origin, metadata, altered))).toBe("wrong_key");
    expect(await result(opener.open(origin, metadata, frame))).toBe("74696c6521");
    expect(await result(opener.open(origin, metadata, altered))).toBe("replay");
    const next = await sealer.seal(metadata, plain);
    for (const other of [{ ...origin, tile: 3 }, { ...origin, publication: "hand" }]) {
      expect(await result(opener.open(other, frameMetadata(other, 1, 7, new Uint8Array(12)), next))).toBe("altered");
    }
    expect(await result(opener.open({ ...origin, participant: "eve" }, metadata, next))).toBe("wrong_key");
    // A rejected frame uses up nothing.
    expect(await result(opener.open(origin, metadata, next))).toBe("74696c6521");
  });

  it("follows a rotation without loss, after which the previous key is useless", async () => {
    const newer = "101112131415161718191a1b1c1d1e1f";
    const [ada, bob, leaver] = [await sender(), await receiver(), await receiver()];
    expect(await result(bob.opener.open(origin, metadata, await ada.sealer.seal(metadata, plain)))).toBe("74696c6521");
    bob.keys.set(1, await secretOf(newer));
    ada.keys.set(1, await secretOf(newer));
    const late = await ada.sealer.seal(metadata, plain);
    ada.sealer.use(1);
    const first = await ada.sealer.seal(metadata, plain);
    expect(await result(bob.opener.open(origin, metadata, first))).toBe("74696c6521");
    expect(await result(bob.opener.open(origin, metadata, late))).toBe("74696c6521");
    bob.keys.forget(0);
    bob.opener.forget(0);
    ada.sealer.use(0);
    expect(await result(bob.opener.open(origin, metadata, await ada.sealer.seal(metadata, plain)))).toBe("unknown_epoch");
    expect(await result(leaver.opener.open(origin, metadata, first))).toBe("unknown_epoch");
    leaver.keys.set(1, await secretOf(secret));
    expect(await result(leaver.opener.open(origin, metadata, first))).toBe("wrong_key");
  });

  it("prefers the secret of a participant, and derives again after a change", async () => {
    const own = "202122232425262728292a2b2c2d2e2f";
    const { opener, keys } = await receiver();
    const frame = await (await sender(0, own)).sealer.seal(metadata, plain);
    expect(await result(opener.open(origin, metadata, frame))).toBe("wrong_key");
    keys.set(0, await secretOf(own), "ada");
    expect(await result(opener.open(origin, metadata, frame))).toBe("74696c6521");
  });

  it("keeps four sessions of a participant, and refuses retired ones", async () => {
    const { opener } = await receiver();
    const sealers = await Promise.all(Array.from({ length: 5 }, async () => (await sender()).sealer));
    const open = async (sealer: Sealer | undefined): Promise<string> => result(opener.open(origin, metadata, await sealer!.seal(metadata, plain)));
    const [first, second, ...rest] = sealers;
    for (const sealer of [first, second, ...rest.slice(0, 2), first, rest[2]]) {
      expect(await open(sealer)).toBe("74696c6521");
    }
    expect([await open(second), await open(first)]).toEqual(["replay", "74696c6521"]);
  });

  it("has nothing to encrypt with before there is a key", async () => {
    const keys = new KeyRing();
    const sealer = new Sealer(keys);
    sealer.enter("ada");
    await expect(sealer.seal(metadata, plain)).rejects.toThrow("nothing is published");
    keys.set(4, await secretOf(secret));
    sealer.use(4);
    expect((await sealer.seal(metadata, plain)).length).toBe(plain.length + 16 + 8);
  });

  it("only rejects random bytes", async () => {
    const { opener } = await receiver();
    for (let i = 0; i < 500; i++) {
      const noise = crypto.getRandomValues(new Uint8Array(i % 60));
      await expect(opener.open(origin, metadata, noise)).rejects.toBeInstanceOf(Rejected);
    }
  });
});

describe("Lines", () => {
  const to = { participant: "ada", publication: "voice", tile: 0, description: undefined, encryption: "sframe" };
  const data = new Uint8Array([1, 2]);

  it("give one copy of a frame to another line with the same track", () => {
    const lines = new Lines();
    lines.assign("1", to, 0);
    lines.assign("1*", to, 0);
    lines.assign("2", { ...to, tile: 9 }, 0);
    lines.opened(lines.get("1")!, "a", data);
    expect(lines.copy(lines.get("1")!, "a")).toBeUndefined();
    expect(lines.copy(lines.get("2")!, "a")).toBeUndefined();
    expect(lines.copy(lines.get("1*")!, "b")).toBeUndefined();
    expect(lines.copy(lines.get("1*")!, "a")).toEqual({ data });
    // A server that repeats frames gets nothing played again.
    expect(lines.copy(lines.get("1*")!, "a")).toBeUndefined();
    expect(lines.copy(lines.get("1")!, "a")).toEqual({ data: undefined });
  });

  it("remember a bounded number of frames, until the line has another content", () => {
    const lines = new Lines();
    lines.assign("1", to, 0);
    lines.assign("1*", to, 0);
    for (let i = 0; i < 65; i++) {
      lines.opened(lines.get("1")!, String(i), data);
    }
    expect([lines.copy(lines.get("1*")!, "0"), lines.copy(lines.get("1*")!, "1")]).toEqual([undefined, { data }]);
    lines.assign("1", undefined, 1);
    expect([lines.get("1"), lines.copy(lines.get("1*")!, "2")]).toEqual([undefined, undefined]);
  });

  it("know the last frames of a former line with the same content, each once, until there are 64 newer ones", () => {
    const lines = new Lines();
    lines.assign("1", { ...to, description: 1 }, 0);
    const before = lines.get("1")!;
    ["a", "b"].forEach((name) => lines.opened(before, name));
    lines.assign("1", undefined, 1);
    // It was still being decrypted.
    lines.opened(before, "c");
    lines.assign("4", { ...to, description: 0 }, 2);
    lines.assign("5", { ...to, description: 1 }, 2);
    const repeated = (name: string): boolean => lines.repeated(lines.get("5")!, name);
    expect(["c", "c", "d"].map(repeated)).toEqual([true, false, false]);
    expect(lines.repeated(lines.get("4")!, "a")).toBe(false);
    lines.opened(lines.get("5")!, "d");
    expect(["a", "b"].map(repeated)).toEqual([false, true]);
    // A line that ends before its first frame changes nothing.
    lines.assign("5", undefined, 3);
    lines.assign("6", { ...to, description: 1 }, 4);
    lines.assign("6", { ...to, description: 1 }, 5);
    expect(lines.repeated(lines.get("6")!, "d")).toBe(true);
  });
});

describe("the worker", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("counts no frame as repeated with which a slot begins", async () => {
    const digits = "000102030405060708090a0b0c0d0e0f";
    let count!: () => void;
    const counts: Counts[] = [];
    const passed: number[] = [];
    const worker = { postMessage: (report: EncryptionReport) => report.type === "counts" && counts.push(...report.participants.map(([, c]) => c)) } as {
      onmessage?: (event: { data: EncryptionOrder }) => void;
      onrtctransform?: (event: object) => void;
    };
    vi.stubGlobal("self", worker);
    vi.stubGlobal("setInterval", (tick: () => void) => (count = tick));
    await import("../../src/sframe/worker");
    const order = (data: EncryptionOrder): void => worker.onmessage!({ data });
    const line = (mid: string): ((data: ArrayBuffer) => void) => {
      let push!: (data: ArrayBuffer) => void;
      const readable = new ReadableStream({ start: (controller) => void (push = (data) => controller.enqueue({ data })) });
      const port = { postMessage: ({ frame }: OpenedFrame) => passed.push(frame.number) };
      worker.onrtctransform!({ transformer: { readable, options: { kind: "frames", mid, port } } });
      return push;
    };
    const keys = new KeyRing();
    keys.set(0, await secretOf(digits));
    const sealer = new Sealer(keys);
    sealer.enter("ada");
    sealer.use(0);
    const to = { participant: "ada", publication: "body", tile: 2, description: undefined, encryption: "sframe" };
    const prefix = bytes("6472636f0000000000000000");
    const frames = await Promise.all([1, 2, 3, 4].map(async (number) => {
      const sealed = await sealer.seal(frameMetadata(to, 1, number, prefix), bytes("74696c6521"), prefix.length);
      sealed.set(prefix);
      const whole = new Uint8Array(26 + sealed.length);
      whole.set(bytes("1002009d012a1000100011010000000100000000000000000000"));
      whole.set(sealed, 26);
      new DataView(whole.buffer).setUint32(18, number);
      new DataView(whole.buffer).setUint32(22, sealed.length);
      return whole.buffer;
    }));
    order({ type: "enter", room: "lab", identity: "eye" });
    order({ type: "key", key: { kind: "raw", epoch: 0, secret: bytes(digits) }, participant: undefined });
    order({ type: "assigned", mid: "1", to });
    const [first, second] = [line("1"), line("5")];
    frames.slice(0, 3).forEach((frame) => first(frame.slice(0)));
    await vi.waitFor(() => expect(passed).toEqual([1, 2, 3]), { timeout: 60_000 });
    order({ type: "assigned", mid: "1", to: undefined });
    order({ type: "assigned", mid: "5", to });
    frames.slice(2).forEach((frame) => second(frame.slice(0)));
    await vi.waitFor(() => expect(passed).toEqual([1, 2, 3, 4]), { timeout: 60_000 });
    count();
    expect(counts).toEqual([{ ...noCounts(), opened: 4 }]);
  });
});

describe("Tally", () => {
  it("reports participants with changes once", () => {
    const tally = new Tally();
    tally.count("ada", "opened");
    tally.count("ada", "replay");
    tally.count("bob", "altered");
    expect(tally.take().map(([who, c]) => [who, c.opened, c.replay, c.altered])).toEqual([["ada", 1, 1, 0], ["bob", 0, 0, 1]]);
    tally.count("bob", "opened");
    expect(tally.take().map(([who, c]) => [who, c.opened, c.altered])).toEqual([["bob", 1, 1]]);
    expect(tally.take()).toEqual([]);
  });
});
