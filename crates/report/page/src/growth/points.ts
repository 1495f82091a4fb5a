// The points of one routine, decoded from its block of the points section. `columns.rs` documents the layout.

const RECURSIVE = 1;
const INDUCED = 2;

/** Columns with one entry per input size, ascending. */
export interface Points {
  readonly length: number;
  readonly n: Float64Array;
  readonly calls: Float64Array;
  readonly sum: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly selfSum: Float64Array;
  readonly selfMin: Float64Array;
  readonly selfMax: Float64Array;
  /** Cost of outermost activations; equal to `sum` unless the routine recurses. */
  readonly realSum: Float64Array;
  readonly recursive: boolean;
  /** `null` when no input was induced. */
  readonly threadInduced: Float64Array | null;
  readonly external: Float64Array | null;
  readonly variance: Float64Array;
  readonly selfVariance: Float64Array;
}

class Reader {
  constructor(
    private readonly bytes: Uint8Array,
    private at: number,
  ) {}

  byte(): number {
    return this.bytes[this.at++] ?? 0;
  }

  column(length: number): Float64Array {
    const out = new Float64Array(length);
    for (let i = 0; i < length; i++) out[i] = this.leb128();
    return out;
  }

  /** Numbers past 2^53 are rounded: doubles are what plots are drawn with. */
  private leb128(): number {
    let byte = this.byte();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 128;
    do {
      byte = this.byte();
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte >= 0x80);
    return value;
  }

  floats(length: number): Float64Array {
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset);
    const out = new Float64Array(length);
    for (let i = 0; i < length; i++, this.at += 4) out[i] = view.getFloat32(this.at, true);
    return out;
  }
}

export function decode(bytes: Uint8Array, offset: number, length: number): Points {
  const reader = new Reader(bytes, offset);
  const flags = reader.byte();
  const n = reader.column(length);
  for (let i = 1; i < length; i++) n[i] = n[i]! + n[i - 1]!;
  const calls = reader.column(length);
  const sum = reader.column(length);
  const min = reader.column(length);
  const max = reader.column(length).map((d, i) => d + min[i]!);
  const selfSum = reader.column(length);
  const selfMin = reader.column(length);
  const selfMax = reader.column(length).map((d, i) => d + selfMin[i]!);
  const recursive = (flags & RECURSIVE) !== 0;
  const realSum = recursive ? reader.column(length) : sum;
  const induced = (flags & INDUCED) !== 0;
  const threadInduced = induced ? reader.column(length) : null;
  const external = induced ? reader.column(length) : null;
  const variance = reader.floats(length);
  const selfVariance = reader.floats(length);
  return {
    length, n, calls, sum, min, max, selfSum, selfMin, selfMax, realSum, recursive, threadInduced, external, variance,
    selfVariance,
  };
}

/** The sizes and mean costs alone, for thumbnails: a fraction of the work. */
export function decodeMeans(bytes: Uint8Array, offset: number, length: number): { n: Float64Array; mean: Float64Array } {
  const reader = new Reader(bytes, offset);
  reader.byte();
  const n = reader.column(length);
  for (let i = 1; i < length; i++) n[i] = n[i]! + n[i - 1]!;
  const calls = reader.column(length);
  const mean = reader.column(length).map((sum, i) => sum / Math.max(calls[i]!, 1));
  return { n, mean };
}

/** Mean costs. */
export function means(points: Points, self: boolean): Float64Array {
  return (self ? points.selfSum : points.sum).map((sum, i) => sum / Math.max(points.calls[i]!, 1));
}
