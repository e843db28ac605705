// Zstandard frames (RFC 8878). The decoder writes to an array of the size that the caller expects.
// Every loop ends with the bytes of the frame or at the end of that array, which bounds the time
// for a frame by its permitted content.

export class ZstandardError extends Error {}

/** The maximum content of a block, compressed or not (RFC 8878 section 3.1.1.2.4). */
const mostBlockBytes = 131_072;
const magic = 0xfd2fb528;
/** The longest code of a Huffman table, in bits (RFC 8878 section 4.2.1). */
const mostHuffmanBits = 11;
/** The maximum accuracy of the table of Huffman weights (RFC 8878 section 4.2.1.2). */
const weightsAccuracy = 6;

/**
 * A table of finite state entropy (RFC 8878 section 4.1): for each state, the symbol, the number of
 * bits for the next state, and the base of that state.
 */
interface EntropyTable {
  accuracy: number;
  symbols: Uint8Array;
  bits: Uint8Array;
  bases: Uint16Array;
}

/**
 * A table of Huffman codes: for each number of `bits` bits, the symbol with this prefix, and the
 * length of its code.
 */
interface HuffmanTable {
  bits: number;
  symbols: Uint8Array;
  lengths: Uint8Array;
}

/**
 * The codes of one part of a sequence (RFC 8878 section 3.1.1.3.2.1): the base value of each code,
 * its extra bits, and the tables.
 */
interface CodeKind {
  name: string;
  bases: Uint32Array;
  extra: Uint8Array;
  mostAccuracy: number;
  standard: EntropyTable;
}

/**
 * Reads bits from the last byte back to the first. Beyond the first byte, the bits are zeros, and
 * `left` becomes negative.
 */
class BackwardBits {
  left: number;

  constructor(
    private readonly data: Uint8Array,
    private readonly begin: number,
    end: number,
  ) {
    const last = end > begin ? data[end - 1]! : 0;
    if (last === 0) {
      throw new ZstandardError("a bit stream ends without its mark, expected a last byte other than 0");
    }
    this.left = 8 * (end - begin) - Math.clz32(last << 24) - 1;
  }

  /** Returns the next bits, up to 24, without consuming them. */
  peek(count: number): number {
    const at = this.left - count;
    return at >= 0 ? this.at(at, count) : this.left > 0 ? this.at(0, this.left) << -at : 0;
  }

  /** Consumes and returns the next bits, up to 31. */
  read(count: number): number {
    if (count > 24) {
      const high = this.read(count - 16);
      return high * 65_536 + this.read(16);
    }
    const value = this.peek(count);
    this.left -= count;
    return value;
  }

  private at(bit: number, count: number): number {
    const { data } = this;
    const byte = this.begin + (bit >> 3);
    const word = data[byte]! | (data[byte + 1]! << 8) | (data[byte + 2]! << 16) | (data[byte + 3]! << 24);
    return (word >>> (bit & 7)) & ((1 << count) - 1);
  }
}

/**
 * Makes a table from the probabilities of symbols; -1 means "less than one" (RFC 8878 section
 * 4.1.1).
 */
function entropyTable(accuracy: number, probabilities: readonly number[]): EntropyTable {
  const size = 1 << accuracy;
  const table = { accuracy, symbols: new Uint8Array(size), bits: new Uint8Array(size), bases: new Uint16Array(size) };
  const next = new Uint16Array(probabilities.length);
  let high = size;
  probabilities.forEach((p, symbol) => {
    if (p === -1) {
      table.symbols[--high] = symbol;
    }
    next[symbol] = Math.abs(p);
  });
  const step = (size >> 1) + (size >> 3) + 3;
  let at = 0;
  probabilities.forEach((p, symbol) => {
    for (let i = 0; i < p; i++) {
      table.symbols[at] = symbol;
      do {
        at = (at + step) & (size - 1);
      } while (at >= high);
    }
  });
  for (let state = 0; state < size; state++) {
    const x = next[table.symbols[state]!]!++;
    const bits = accuracy - (31 - Math.clz32(x));
    table.bits[state] = bits;
    table.bases[state] = (x << bits) - size;
  }
  return table;
}

/** Makes a table with one symbol, which needs no bits. */
function constantTable(symbol: number): EntropyTable {
  return { accuracy: 0, symbols: Uint8Array.of(symbol), bits: Uint8Array.of(0), bases: Uint16Array.of(0) };
}

function codeKind(name: string, extra: number[], first: number, mostAccuracy: number, accuracy: number, probabilities: number[]): CodeKind {
  let base = first;
  const bases = extra.map((bits) => {
    const here = base;
    base += 2 ** bits;
    return here;
  });
  return { name, bases: Uint32Array.from(bases), extra: Uint8Array.from(extra), mostAccuracy, standard: entropyTable(accuracy, probabilities) };
}

const zeros = (count: number): number[] => new Array<number>(count).fill(0);
const ones = (count: number): number[] => new Array<number>(count).fill(1);
const rare = (count: number): number[] => new Array<number>(count).fill(-1);

/**
 * Codes, and their probabilities in the predefined tables (RFC 8878 sections 3.1.1.3.2.1 and
 * 3.1.1.3.2.2).
 */
const literalLengths = codeKind("literals", [...zeros(16), 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 0, 9, 6, [
  4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, ...rare(4),
]);
const matchLengths = codeKind("matches", [...zeros(32), 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 3, 9, 6, [
  1, 4, 3, 2, 2, 2, 2, 2, 2, ...ones(37), ...rare(7),
]);
/** An offset's code is the number of its extra bits. Decoders must support codes up to 31. */
const offsets = codeKind("offsets", Array.from({ length: 32 }, (_, code) => code), 1, 8, 5, [1, 1, 1, 1, 1, 1, 2, 2, 2, ...ones(15), ...rare(5)]);

/**
 * Decodes one frame that has no dictionary, spans all of the data, and fills the output exactly.
 * Throws a ZstandardError with the cause.
 */
export function decompress(data: Uint8Array, output: Uint8Array): void {
  new Decompression(data, output).run();
}

/**
 * Returns the size of the content in bytes that a frame declares (RFC 8878 section 3.1.1.1). Throws
 * a ZstandardError for a frame that does not declare it in up to four bytes.
 */
export function contentSize(data: Uint8Array): number {
  return readHead(data).size;
}

/**
 * Reads the head of a frame: the size of its content, the position of its blocks, and whether a
 * checksum follows them.
 */
function readHead(data: Uint8Array): { size: number; blocks: number; checksum: boolean } {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.length < 5 || view.getUint32(0, true) !== magic) {
    throw new ZstandardError(`${data.length} bytes, expected a Zstandard frame, which begins with 28 b5 2f fd`);
  }
  const flags = view.getUint8(4);
  const single = (flags >> 5) & 1;
  const sizeBytes = [single, 2, 4, 8][flags >> 6]!;
  if ((flags & 3) !== 0 || (flags & 8) !== 0 || sizeBytes === 0 || sizeBytes === 8) {
    throw new ZstandardError(`the frame's flags are 0x${flags.toString(16)}, expected no dictionary and a content size of 1, 2 or 4 bytes`);
  }
  const at = 6 - single;
  const blocks = at + sizeBytes;
  if (data.length < blocks) {
    throw new ZstandardError(`${data.length} bytes, expected a head of ${blocks}`);
  }
  const size = sizeBytes === 1 ? view.getUint8(at) : sizeBytes === 2 ? view.getUint16(at, true) + 256 : view.getUint32(at, true);
  return { size, blocks, checksum: (flags & 4) !== 0 };
}

/** The decoding of one frame. */
class Decompression {
  /** The positions of the next input byte and of the next output byte. */
  private at = 0;
  private to = 0;
  private literals: Uint8Array = new Uint8Array(0);
  private huffman: HuffmanTable | undefined;
  private tables: (EntropyTable | undefined)[] = [undefined, undefined, undefined];
  /** The most recent offsets (RFC 8878 section 3.1.1.5). */
  private readonly last = Int32Array.of(1, 4, 8);

  constructor(
    private readonly data: Uint8Array,
    private readonly output: Uint8Array,
  ) {}

  run(): void {
    const { data, output } = this;
    const { size, blocks, checksum } = readHead(data);
    if (size !== output.length) {
      throw new ZstandardError(`${size} bytes are compressed, expected ${output.length}`);
    }
    this.at = blocks;
    while (!this.block()) {
      // Continue with the next block.
    }
    if (this.to !== output.length) {
      throw new ZstandardError(`the blocks hold ${this.to} bytes, expected ${output.length}`);
    }
    const expected = this.at + (checksum ? 4 : 0);
    if (data.length !== expected) {
      throw new ZstandardError(`${data.length} bytes, expected ${expected}`);
    }
  }

  private byte(): number {
    if (this.at >= this.data.length) {
      throw new ZstandardError(`the frame ends after ${this.data.length} bytes, expected more`);
    }
    return this.data[this.at++]!;
  }

  /** Skips bytes and returns their position. */
  private skip(bytes: number): number {
    const begin = this.at;
    if (bytes > this.data.length - begin) {
      throw new ZstandardError(`${this.data.length - begin} bytes are left, expected ${bytes}`);
    }
    this.at += bytes;
    return begin;
  }

  /** Checks that there is room for more bytes. */
  private room(bytes: number, end: number): void {
    if (bytes > end - this.to) {
      throw new ZstandardError(`a block has more than its room: ${bytes} bytes follow ${this.to}, expected at most ${end - this.to}`);
    }
  }

  /** Decodes a block and reports whether it is the last one (RFC 8878 section 3.1.1.2). */
  private block(): boolean {
    const head = this.byte() | (this.byte() << 8) | (this.byte() << 16);
    const size = head >> 3;
    if (size > mostBlockBytes) {
      throw new ZstandardError(`a block of ${size} bytes, expected at most ${mostBlockBytes}`);
    }
    switch ((head >> 1) & 3) {
      case 0: {
        this.room(size, this.output.length);
        const from = this.skip(size);
        this.output.set(this.data.subarray(from, from + size), this.to);
        this.to += size;
        break;
      }
      case 1:
        this.room(size, this.output.length);
        this.output.fill(this.byte(), this.to, this.to + size);
        this.to += size;
        break;
      case 2: {
        const end = this.skip(size) + size;
        this.at = end - size;
        this.compressed(end);
        break;
      }
      default:
        throw new ZstandardError("a block of type 3, expected 0 to 2");
    }
    return (head & 1) !== 0;
  }

  private compressed(end: number): void {
    const literals = this.readLiterals(end);
    let sequences = this.byte();
    if (sequences === 255) {
      sequences = (this.byte() | (this.byte() << 8)) + 0x7f00;
    } else if (sequences > 127) {
      sequences = ((sequences - 128) << 8) | this.byte();
    }
    const room = Math.min(this.output.length, this.to + mostBlockBytes);
    let used = 0;
    if (sequences > 0) {
      used = this.readSequences(sequences, literals, end, room);
    } else if (this.at !== end) {
      throw new ZstandardError(`${end - this.at} bytes behind the literals of a block without sequences, expected none`);
    }
    this.at = end;
    const rest = literals.subarray(used);
    this.room(rest.length, room);
    this.output.set(rest, this.to);
    this.to += rest.length;
  }

  /**
   * Reads the literals of a block (RFC 8878 section 3.1.1.3.1), which are valid until the next
   * block.
   */
  private readLiterals(end: number): Uint8Array {
    const first = this.byte();
    const type = first & 3;
    const form = (first >> 2) & 3;
    if (type < 2) {
      const size = (form & 1) === 0 ? first >> 3 : form === 1 ? (first >> 4) | (this.byte() << 4) : (first >> 4) | (this.byte() << 4) | (this.byte() << 12);
      checkLiterals(size);
      if (type === 1) {
        return this.keep(size).fill(this.byte());
      }
      const from = this.skip(size);
      return this.data.subarray(from, from + size);
    }
    const second = this.byte();
    const third = this.byte();
    let size: number;
    let bytes: number;
    if (form < 2) {
      size = (first >> 4) | ((second & 0x3f) << 4);
      bytes = (second >> 6) | (third << 2);
    } else if (form === 2) {
      size = (first >> 4) | (second << 4) | ((third & 3) << 12);
      bytes = (third >> 2) | (this.byte() << 6);
    } else {
      size = (first >> 4) | (second << 4) | ((third & 0x3f) << 12);
      bytes = (third >> 6) | (this.byte() << 2) | (this.byte() << 10);
    }
    checkLiterals(size);
    const stop = this.at + bytes;
    if (stop > end) {
      throw new ZstandardError(`literals of ${bytes} bytes in ${end - this.at}`);
    }
    if (type === 2) {
      this.huffman = this.readHuffman(stop);
    }
    if (!this.huffman) {
      throw new ZstandardError("literals use the Huffman table of a block before, and there is none");
    }
    const literals = this.keep(size);
    this.readHuffmanStreams(this.huffman, literals, stop, form === 0 ? 1 : 4);
    this.at = stop;
    return literals;
  }

  /** Returns memory for literals. */
  private keep(size: number): Uint8Array {
    if (this.literals.length < size) {
      this.literals = new Uint8Array(mostBlockBytes);
    }
    return this.literals.subarray(0, size);
  }

  private readHuffmanStreams(table: HuffmanTable, literals: Uint8Array, stop: number, streams: number): void {
    if (streams === 1) {
      readHuffmanStream(table, this.data, this.at, stop, literals);
      return;
    }
    const jumps = this.skip(6);
    const part = (literals.length + 3) >> 2;
    if (3 * part > literals.length) {
      throw new ZstandardError(`${literals.length} literals in four streams, expected 6 or more`);
    }
    let from = this.at;
    for (let i = 0; i < 4; i++) {
      const bytes = i === 3 ? stop - from : this.data[jumps + 2 * i]! | (this.data[jumps + 2 * i + 1]! << 8);
      if (bytes > stop - from) {
        throw new ZstandardError(`a stream of ${bytes} bytes in ${stop - from}`);
      }
      readHuffmanStream(table, this.data, from, from + bytes, literals.subarray(i * part, i === 3 ? literals.length : (i + 1) * part));
      from += bytes;
    }
  }

  /** Reads the description of a Huffman table (RFC 8878 section 4.2.1). */
  private readHuffman(stop: number): HuffmanTable {
    const first = this.byte();
    const weights: number[] = [];
    if (first < 128) {
      const end = this.at + first;
      if (end > stop) {
        throw new ZstandardError(`a Huffman table of ${first} bytes in ${stop - this.at}`);
      }
      const table = this.readEntropy(end, weightsAccuracy, mostHuffmanBits + 1);
      readWeights(table, new BackwardBits(this.data, this.at, end), weights);
      this.at = end;
    } else {
      for (let i = 0; i < first - 127; i += 2) {
        const pair = this.byte();
        weights.push(pair >> 4, pair & 15);
      }
      weights.length = first - 127;
    }
    return huffmanTable(weights);
  }

  /** Reads the description of a table of finite state entropy (RFC 8878 section 4.1.1). */
  private readEntropy(end: number, mostAccuracy: number, mostSymbols: number): EntropyTable {
    let bit = 8 * this.at;
    const peek = (count: number): number => {
      const byte = bit >> 3;
      const word = this.data[byte]! | (this.data[byte + 1]! << 8) | (this.data[byte + 2]! << 16);
      return (word >> (bit & 7)) & ((1 << count) - 1);
    };
    const accuracy = peek(4) + 5;
    bit += 4;
    if (accuracy > mostAccuracy) {
      throw new ZstandardError(`an entropy table of accuracy ${accuracy}, expected at most ${mostAccuracy}`);
    }
    const probabilities: number[] = [];
    // This is one more than the remaining probability.
    let left = (1 << accuracy) + 1;
    while (left > 1 && probabilities.length < mostSymbols && bit <= 8 * end) {
      // The width is that for numbers from 0 to left; the lowest of them use one bit less.
      const bits = 32 - Math.clz32(left);
      const short = (1 << bits) - 1 - left;
      let value = peek(bits - 1);
      if (value < short) {
        bit += bits - 1;
      } else {
        value = peek(bits);
        value -= value >= 1 << (bits - 1) ? short : 0;
        bit += bits;
      }
      const probability = value - 1;
      probabilities.push(probability);
      left -= Math.abs(probability);
      if (probability === 0) {
        let more: number;
        do {
          more = peek(2);
          bit += 2;
          probabilities.push(...zeros(more));
        } while (more === 3 && bit <= 8 * end);
      }
    }
    if (left !== 1 || probabilities.length > mostSymbols || bit > 8 * end) {
      throw new ZstandardError(`an entropy table of ${probabilities.length} symbols, of whose probabilities ${left - 1} is left over, expected ${mostSymbols} symbols at most, and 0`);
    }
    this.at = (bit + 7) >> 3;
    return entropyTable(accuracy, probabilities);
  }

  /** Reads the table for the codes of a part of the sequences (RFC 8878 section 3.1.1.3.2.1). */
  private readTable(part: number, kind: CodeKind, mode: number, end: number): EntropyTable {
    let table: EntropyTable | undefined;
    if (mode === 0) {
      table = kind.standard;
    } else if (mode === 1) {
      const code = this.byte();
      table = code < kind.bases.length ? constantTable(code) : undefined;
    } else if (mode === 2) {
      table = this.readEntropy(end, kind.mostAccuracy, kind.bases.length);
    } else {
      table = this.tables[part];
    }
    if (!table) {
      throw new ZstandardError(`the codes of ${kind.name} have no table`);
    }
    this.tables[part] = table;
    return table;
  }

  /**
   * Reads and executes sequences (RFC 8878 sections 3.1.1.3.2 and 3.1.1.4). Returns the number of
   * literals used.
   */
  private readSequences(count: number, literals: Uint8Array, end: number, room: number): number {
    const modes = this.byte();
    if ((modes & 3) !== 0) {
      throw new ZstandardError(`modes of sequences are 0x${modes.toString(16)}, expected the lowest two bits to be 0`);
    }
    const literalTable = this.readTable(0, literalLengths, modes >> 6, end);
    const offsetTable = this.readTable(1, offsets, (modes >> 4) & 3, end);
    const matchTable = this.readTable(2, matchLengths, (modes >> 2) & 3, end);
    const bits = new BackwardBits(this.data, this.at, end);
    let literalState = bits.read(literalTable.accuracy);
    let offsetState = bits.read(offsetTable.accuracy);
    let matchState = bits.read(matchTable.accuracy);
    let used = 0;
    for (let i = 0; i < count; i++) {
      const offsetCode = offsetTable.symbols[offsetState]!;
      const matchCode = matchTable.symbols[matchState]!;
      const literalCode = literalTable.symbols[literalState]!;
      const value = 2 ** offsetCode + bits.read(offsetCode);
      const match = matchLengths.bases[matchCode]! + bits.read(matchLengths.extra[matchCode]!);
      const length = literalLengths.bases[literalCode]! + bits.read(literalLengths.extra[literalCode]!);
      if (i < count - 1) {
        literalState = literalTable.bases[literalState]! + bits.read(literalTable.bits[literalState]!);
        matchState = matchTable.bases[matchState]! + bits.read(matchTable.bits[matchState]!);
        offsetState = offsetTable.bases[offsetState]! + bits.read(offsetTable.bits[offsetState]!);
      }
      if (bits.left < 0) {
        throw new ZstandardError(`the bits of ${count} sequences end within sequence ${i}`);
      }
      if (length > literals.length - used) {
        throw new ZstandardError(`sequence ${i} takes ${length} literals of ${literals.length - used}`);
      }
      this.room(length + match, room);
      this.copyLiterals(literals, used, length);
      used += length;
      this.copyMatch(this.offset(value, length), match);
    }
    if (bits.left !== 0) {
      throw new ZstandardError(`${bits.left} bits behind ${count} sequences, expected none`);
    }
    return used;
  }

  /**
   * Returns the distance of a match, and updates the most recent offsets (RFC 8878 section
   * 3.1.1.5).
   */
  private offset(value: number, literals: number): number {
    const { last } = this;
    if (value > 3) {
      last.copyWithin(1, 0, 2);
      return (last[0] = value - 3);
    }
    const which = literals === 0 ? value : value - 1;
    const offset = which === 3 ? last[0]! - 1 : last[which]!;
    if (which > 0) {
      last.copyWithin(1, 0, Math.min(which, 2));
      last[0] = offset;
    }
    return offset;
  }

  private copyLiterals(literals: Uint8Array, from: number, count: number): void {
    const { output, to } = this;
    for (let i = 0; i < count; i++) {
      output[to + i] = literals[from + i]!;
    }
    this.to += count;
  }

  private copyMatch(offset: number, count: number): void {
    const { output, to } = this;
    const from = to - offset;
    if (offset < 1 || from < 0) {
      throw new ZstandardError(`a match ${offset} bytes back at byte ${to}, expected 1 to ${to}`);
    }
    for (let i = 0; i < count; i++) {
      output[to + i] = output[from + i]!;
    }
    this.to += count;
  }
}

function checkLiterals(size: number): void {
  if (size > mostBlockBytes) {
    throw new ZstandardError(`${size} literals in a block, expected at most ${mostBlockBytes}`);
  }
}

/** Reads the weights of Huffman codes, alternately from two states (RFC 8878 section 4.2.1.2). */
function readWeights(table: EntropyTable, bits: BackwardBits, weights: number[]): void {
  const states = [bits.read(table.accuracy), bits.read(table.accuracy)];
  for (let turn = 0; ; turn ^= 1) {
    const state = states[turn]!;
    if (bits.left < 0 || weights.length > 253) {
      throw new ZstandardError("the weights of Huffman codes do not end, expected at most 255");
    }
    weights.push(table.symbols[state]!);
    const needed = table.bits[state]!;
    if (bits.left < needed) {
      weights.push(table.symbols[states[turn ^ 1]!]!);
      return;
    }
    states[turn] = table.bases[state]! + bits.read(needed);
  }
}

/**
 * Makes a table from the weights of all symbols except the last one, whose weight completes the sum
 * (RFC 8878 section 4.2.1.3).
 */
function huffmanTable(weights: readonly number[]): HuffmanTable {
  const sum = weights.reduce((all, weight) => all + (weight > 0 ? 2 ** (weight - 1) : 0), 0);
  const bits = sum > 0 ? 32 - Math.clz32(sum) : 0;
  const rest = 2 ** bits - sum;
  const lastWeight = 32 - Math.clz32(rest);
  if (bits < 1 || bits > mostHuffmanBits || rest !== 2 ** (lastWeight - 1)) {
    throw new ZstandardError(`the weights of Huffman codes sum up to ${sum}, expected a power of two with one more, and at most ${mostHuffmanBits} bits`);
  }
  const all = [...weights, lastWeight];
  const begin = new Uint32Array(bits + 2);
  for (const weight of all) {
    if (weight > 0) {
      begin[weight + 1]! += 2 ** (weight - 1);
    }
  }
  for (let weight = 1; weight <= bits + 1; weight++) {
    begin[weight]! += begin[weight - 1]!;
  }
  const table = { bits, symbols: new Uint8Array(1 << bits), lengths: new Uint8Array(1 << bits) };
  all.forEach((weight, symbol) => {
    if (weight > 0) {
      const from = begin[weight]!;
      const to = (begin[weight] = from + 2 ** (weight - 1));
      table.symbols.fill(symbol, from, to);
      table.lengths.fill(bits + 1 - weight, from, to);
    }
  });
  return table;
}

/** Fills literals from one stream, which must end with them (RFC 8878 section 4.2.2). */
function readHuffmanStream({ bits, symbols, lengths }: HuffmanTable, data: Uint8Array, from: number, to: number, literals: Uint8Array): void {
  const stream = new BackwardBits(data, from, to);
  for (let i = 0; i < literals.length; i++) {
    const code = stream.peek(bits);
    literals[i] = symbols[code]!;
    stream.left -= lengths[code]!;
    if (stream.left < 0) {
      throw new ZstandardError(`a stream of ${to - from} bytes ends within literal ${i} of ${literals.length}`);
    }
  }
  if (stream.left !== 0) {
    throw new ZstandardError(`${stream.left} bits behind ${literals.length} literals, expected none`);
  }
}
