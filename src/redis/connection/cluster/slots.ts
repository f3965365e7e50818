/** Which node of a cluster has which slot: what CLUSTER SLOTS replies, and what MOVED and ASK say. */
import type { RedisOptions } from 'ioredis';
import { partitionOf } from '../../../job/derived-id.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { hostPort, type Place } from '../address-url.ts';

/** Redis has so many, and no other number. */
const SLOTS = 16_384;

/** Slots in a row with one master. */
export interface Span {
  readonly from: number;
  readonly to: number;
  readonly master: Place;
}

export interface Redirection {
  /** `ask`: this once, because the slot moves; `moved`: from now on. */
  readonly kind: 'ask' | 'moved';
  readonly slot: number;
  readonly place: Place;
}

/** Where the addresses that nodes call themselves are found from here. */
export type NatMap = RedisOptions['natMap'];

/** A partition's tag, and so all its keys, is in one slot: CRC16 of what stands in the braces. */
export const slotOf = (key: string): number => partitionOf(key, SLOTS);

/**
 * The masters that a node knows, in its own words: `[[from, to, [host, port, id], replica, …], …]`. A node that does not
 * know its own name says none; then it is the one that was asked.
 */
export function spansOf(reply: unknown, { asked, natMap }: { readonly asked: Place; readonly natMap: NatMap }) {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((span: unknown): readonly Span[] => {
    const [from, to, master] = Array.isArray(span) ? span : [];
    const [host, port] = Array.isArray(master) ? master : [];
    if (typeof from !== 'number' || typeof to !== 'number' || typeof port !== 'number') return [];
    const named = typeof host === 'string' && host !== '' ? host : asked.host;
    return [{ from, to, master: natOf({ host: named, port }, natMap) }];
  });
}

/** What an error says about where its command belongs; undefined for every other. */
export function redirectionOf(
  error: unknown,
  { asked, natMap }: { readonly asked: Place; readonly natMap: NatMap },
): Redirection | undefined {
  const [, kind, slot, host, port] = /^(MOVED|ASK) (\d+) (.*):(\d+)$/.exec(messageOf(error)) ?? [];
  if (kind === undefined) return undefined;
  const place = natOf({ host: host || asked.host, port: Number(port) }, natMap);
  return { kind: kind === 'ASK' ? 'ask' : 'moved', slot: Number(slot), place };
}

function natOf(place: Place, natMap: NatMap): Place {
  if (!natMap) return place;
  const name = `${place.host}:${place.port}`;
  return (typeof natMap === 'function' ? natMap(name) : (natMap[name] ?? natMap[hostPort(place)])) ?? place;
}
