/** A herd spread over time: by how much later something is due follows from its name, so a repeated call says the same. */

/**
 * From 0 to `mostMs`, evenly over many texts; the same text has the same place.
 *
 * @example spreadMs('welcome:42', 600_000) // 0 to 600,000, whenever it is asked
 */
export function spreadMs(text: string, mostMs: number): number {
  // FNV-1a, 32 bits.
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % (mostMs + 1);
}
