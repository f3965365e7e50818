/**
 * Who may ask: a loopback address needs no token, every other address must have one, and a token is compared without
 * telling by the time it takes how much of it was right.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether only this machine can reach the address. Of names only `localhost` is trusted to stay here. */
export function isLoopback(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, version === 6 ? 'ipv6' : 'ipv4');
}

/**
 * Whether an `Authorization` header carries the token. Both sides are hashed first, because the comparison needs equal
 * lengths. The framework's own check is not used: it refuses tokens with characters that ours may have.
 */
export function carriesToken(header: string | undefined, token: string): boolean {
  const given = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
