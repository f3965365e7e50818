/**
 * Streams as a dump of Redis has them. A stream is a tree of nodes, and each node is a listpack that begins with the
 * number of its live entries. Newer servers refuse to load a node in which that number is 0, so no stream of ours may
 * have one, in whatever state its partition is. XINFO shows numbers only, so the nodes are read from DUMP.
 */

/** @typedef {{ callBuffer: (command: string, ...args: string[]) => Promise<unknown> }} Dumping */

/**
 * How many nodes of the stream have no live entry. None where there is no such key.
 *
 * @param {Dumping} redis
 * @param {string} key
 */
export async function hollowNodes(redis, key) {
  // The model of Redis has no nodes.
  const dump = await redis.callBuffer('DUMP', key).catch((error) => {
    if (!String(error).includes('unknown command')) throw error;
  });
  return Buffer.isBuffer(dump) ? liveEntries(dump).filter((live) => live === 0).length : 0;
}

/**
 * The live entries of each node, from a payload of DUMP.
 *
 * @param {Buffer} dump
 * @returns {readonly number[]}
 */
export function liveEntries(dump) {
  const reader = { at: 0, dump };
  const type = dump[reader.at++];
  if (type === undefined || !STREAM_TYPES.has(type))
    throw new Error(`this is a dump of type ${type}, and not of a stream`);
  const { value: nodes } = lengthAt(reader);
  return Array.from({ length: nodes }, () => {
    textAt(reader);
    return integerAt(textAt(reader), LISTPACK_HEADER);
  });
}

/** Of Redis 5, 7.0 and 7.2: they differ behind the nodes. */
const STREAM_TYPES = new Set([15, 19, 21]);
/** Its size in bytes, and the number of its elements. */
const LISTPACK_HEADER = 6;

/** @typedef {{ at: number, dump: Buffer }} Reader */

/** @param {Reader} reader @returns {{ value: number, isEncoded: boolean }} */
function lengthAt(reader) {
  const first = reader.dump[reader.at++] ?? 0;
  const rest = first & 0x3f;
  if (first >> 6 === 0) return { value: rest, isEncoded: false };
  if (first >> 6 === 1) return { value: (rest << 8) | (reader.dump[reader.at++] ?? 0), isEncoded: false };
  if (first >> 6 === 3) return { value: rest, isEncoded: true };
  const isLong = first === 0x81;
  const value = isLong ? Number(reader.dump.readBigUInt64BE(reader.at)) : reader.dump.readUInt32BE(reader.at);
  reader.at += isLong ? 8 : 4;
  return { value, isEncoded: false };
}

/** @param {Reader} reader @returns {Buffer} */
function textAt(reader) {
  const { value, isEncoded } = lengthAt(reader);
  if (!isEncoded) return take(reader, value);
  if (value !== 3) throw new Error(`a text of the encoding ${value}: no node of a stream has one`);
  const { value: packed } = lengthAt(reader);
  const { value: length } = lengthAt(reader);
  return unpacked(take(reader, packed), length);
}

/** @param {Reader} reader @param {number} length */
function take(reader, length) {
  reader.at += length;
  return reader.dump.subarray(reader.at - length, reader.at);
}

/**
 * LZF: a byte below 32 is followed by as many bytes and one as they are; any other one tells how far back, and how many.
 *
 * @param {Buffer} packed
 * @param {number} length
 */
function unpacked(packed, length) {
  const out = Buffer.alloc(length);
  let to = 0;
  for (let from = 0; from < packed.length; ) {
    const control = packed[from++] ?? 0;
    if (control < 32) {
      packed.copy(out, to, from, from + control + 1);
      from += control + 1;
      to += control + 1;
      continue;
    }
    let count = control >> 5;
    if (count === 7) count += packed[from++] ?? 0;
    let back = to - ((control & 0x1f) << 8) - (packed[from++] ?? 0) - 1;
    for (let left = count + 2; left > 0; left -= 1) out[to++] = out[back++] ?? 0;
  }
  return out;
}

/** The integer that an element of a listpack is. @param {Buffer} listpack @param {number} at */
function integerAt(listpack, at) {
  const first = listpack[at] ?? 0;
  if (first < 0x80) return first;
  if (first >> 5 === 6) return ((first & 0x1f) << 8) | (listpack[at + 1] ?? 0);
  if (first === 0xf1) return listpack.readInt16LE(at + 1);
  if (first === 0xf2) return listpack.readIntLE(at + 1, 3);
  if (first === 0xf3) return listpack.readInt32LE(at + 1);
  throw new Error(`a node of a stream begins with the byte ${first}`);
}
