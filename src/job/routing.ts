/**
 * Which partition a job lives in. Part of the wire format: every producer in every language must come to the same
 * number, so this is CRC16-XMODEM (the checksum of Redis Cluster) of the routing text, modulo the partitions.
 */

/** What decides the partition: the text between the first `{` and the next `}` if both are there, else the whole id. */
export function routingText(id: string): string {
  const open = id.indexOf('{');
  const close = open < 0 ? -1 : id.indexOf('}', open + 1);
  return close > open + 1 ? id.slice(open + 1, close) : id;
}

/** The partition of an id among `partitions`. @example partitionOf('order-1042', 8) */
export function partitionOf(id: string, partitions: number): number {
  return partitions === 1 ? 0 : crc16(Buffer.from(routingText(id), 'utf8')) % partitions;
}

/**
 * CRC16-XMODEM: polynomial 0x1021, start 0, no reflection. crc16("123456789") is 0x31c3.
 *
 * @param before the sum of the bytes in front of these
 */
export function crc16(bytes: Uint8Array, before = 0): number {
  let crc = before;
  for (const byte of bytes) crc = ((crc << 8) ^ (TABLE[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  return crc;
}

const TABLE: readonly number[] = Array.from({ length: 256 }, (_, index) => {
  let crc = index << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  return crc;
});
