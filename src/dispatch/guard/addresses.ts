/**
 * Which addresses a request may go to: the public internet, and what an operator allows beside it.
 *
 * The tables are those of IANA's registries of special-purpose addresses (IPv4: RFC 6890 and its updates; IPv6: only 2000::/3 is given
 * out, less the special ranges in it). A range that the registry calls globally reachable, such as that of AS112, is refused too: no
 * endpoint of anybody lies there. What an address of IPv6 leads to behind a translator is judged as the IPv4 address in it.
 */
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

export interface AddressOptions {
  /** Networks beyond the public internet: `10.20.0.0/16`, `fd00:1::/32`. */
  readonly allow?: readonly string[] | undefined;
  /** Networks that are refused whatever else is said. */
  readonly deny?: readonly string[] | undefined;
  /** Prefixes of 96 bits by which this network reaches IPv4: `64:ff9b::/96`. */
  readonly nat64?: readonly string[] | undefined;
  /** The addresses of this machine. Default: those of its interfaces, asked at each look, because they change. */
  readonly own?: (() => Iterable<string>) | undefined;
  /**
   * The addresses of Redis, to which no request may ever go: `10.20.0.5`, or `10.20.0.5:6379`, `[fd00::5]:6379`. On this machine a
   * port that is said is refused alone, as other things that listen here may be called.
   */
  readonly redis?: (() => Iterable<string>) | undefined;
}

/** Says why a request may not go to an address; undefined if it may. `isAllowed`: whether `allow` names it. */
export interface AddressRules {
  readonly refusalOf: (address: string, port?: number) => string | undefined;
  readonly isAllowed: (address: string) => boolean;
  /** Whether `nat64` names the translator that the address is behind. */
  readonly isTranslated: (address: string) => boolean;
}

/** Each with what it is for. */
const SPECIAL_IPV4: readonly string[] = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'],
  // Protocol assignments; documentation; AS112, AMT and 6to4 relays; benchmarks.
  ...['192.0.0.0/24', '192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24', '192.31.196.0/24', '192.52.193.0/24'],
  ...['192.88.99.0/24', '192.175.48.0/24', '198.18.0.0/15'],
  // Multicast, reserved, broadcast.
  ...['224.0.0.0/4', '240.0.0.0/4'],
  // Azure answers each machine here: a public address that leads to the platform.
  '168.63.129.16/32',
];
const GIVEN_OUT_IPV6: readonly string[] = ['2000::/3'];
/** Protocol assignments with Teredo; documentation; 6to4; AS112; 6bone, which was given back. */
const SPECIAL_IPV6: readonly string[] = [
  ...['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3ffe::/16', '3fff::/20'],
];

const special = listOf([...SPECIAL_IPV4, ...SPECIAL_IPV6]);
const givenOut = listOf(GIVEN_OUT_IPV6);

export function createAddressRules(options: AddressOptions = {}): AddressRules {
  const { own = interfaces, redis = () => [] } = options;
  const { allow = [], deny = [], nat64 = [] } = options;
  const [allowed, denied, translated] = [listOf(allow), listOf(deny), listOf(nat64)];
  // A whole network in `allow` does not mean this machine, which may be in it.
  const named = allow.map((text) => text.replace(/\/(32|128)$/, ''));
  const isAllowed = (address: string) => allowed.check(address, kindOf(address));
  const isHere = (address: string) => isLoopback(address) || has(own(), address);
  const isRedis = (address: string, port: number | undefined): boolean => {
    const places = [...redis()].map(placeOf).filter((place) => has([place.address], address));
    return places.some((place) => place.port === undefined || !isHere(address) || place.port === port);
  };
  const forbidden = (address: string, port: number | undefined): string | undefined => {
    if (denied.check(address, kindOf(address))) return 'deny has it';
    return isRedis(address, port) ? 'Redis is there' : undefined;
  };
  const refusalOf = (address: string, port?: number): string | undefined => {
    const why = oddForm(address) ?? forbidden(address, port);
    if (why !== undefined) return why;
    if (isHere(address)) return has(named, address) ? undefined : 'it is an address of this machine';
    return isAllowed(address) ? undefined : notPublic(address, translated);
  };
  return { refusalOf, isAllowed, isTranslated: (address) => translated.check(address, kindOf(address)) };
}

/** An address, with a port or without: of IPv6 one with a port has brackets. */
function placeOf(text: string): { readonly address: string; readonly port: number | undefined } {
  const [, bracketed, plain = text, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text) ?? [];
  return { address: bracketed ?? plain, port: port === undefined ? undefined : Number(port) };
}

function oddForm(address: string): string | undefined {
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return 'it is no address without a zone';
  return version === 6 && isDisguised(bytesOf(address)) ? 'it is an IPv4 address, written as IPv6' : undefined;
}

function notPublic(address: string, translated: BlockList): string | undefined {
  if (isIP(address) === 4) return special.check(address, 'ipv4') ? NOT_PUBLIC : undefined;
  const bytes = bytesOf(address);
  if (translated.check(address, 'ipv6')) return leadingTo([dotted(bytes, 12)]);
  if (!givenOut.check(address, 'ipv6') || special.check(address, 'ipv6')) return NOT_PUBLIC;
  return leadingTo(isatapOf(bytes));
}

const NOT_PUBLIC = 'it is not public';

const leadingTo = (inner: readonly string[]): string | undefined => {
  const bad = inner.find((one) => special.check(one, 'ipv4'));
  return bad === undefined ? undefined : `it leads to ${bad}, which is not public`;
};

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of networks) {
    const [address = '', bits = isIP(text) === 6 ? '128' : '32'] = text.split('/');
    list.addSubnet(address, Number(bits), kindOf(address));
  }
  return list;
}

function kindOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

// A machine in a cloud may have a public address of its own: what listens there is behind no loopback.

function* interfaces(): Iterable<string> {
  for (const all of Object.values(networkInterfaces())) {
    for (const { address } of all ?? []) yield address.replace(/%.*$/, '');
  }
}

const isLoopback = (address: string): boolean =>
  isIP(address) === 4 ? address.startsWith('127.') : bytesOf(address).every((byte, at) => byte === (at === 15 ? 1 : 0));

/** Compared by their bytes: an address of IPv6 can be written in many ways. */
function has(all: Iterable<string>, address: string): boolean {
  const wanted = canonical(address);
  for (const one of all) if (canonical(one) === wanted) return true;
  return false;
}

function canonical(address: string): string {
  if (isIP(address) !== 6) return address;
  const bytes = bytesOf(address);
  return isMapped(bytes) ? dotted(bytes, 12) : bytes.join('.');
}

// What an address of IPv6 has in it, by its 16 bytes.

/** @param address of IPv6, as `isIP` accepts it, without a zone */
export function bytesOf(address: string): readonly number[] {
  const [head = '', tail] = withoutDots(address.replace(/%.*$/, '')).split('::');
  const front = wordsOf(head);
  const back = wordsOf(tail ?? '');
  const gap = tail === undefined ? 0 : 8 - front.length - back.length;
  return [...front, ...Array.from({ length: gap }, () => 0), ...back].flatMap((word) => [word >> 8, word & 255]);
}

/** `::ffff:1.2.3.4` as `::ffff:102:304`. */
function withoutDots(text: string): string {
  const [, before, a, b, c, d] = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? [];
  if (before === undefined) return text;
  const [high, low] = [[a, b] as const, [c, d] as const].map(([one, two]) =>
    ((Number(one) << 8) | Number(two)).toString(16),
  );
  return `${before}${high}:${low}`;
}

const wordsOf = (text: string): readonly number[] =>
  text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16));

const dotted = (bytes: readonly number[], at: number): string => bytes.slice(at, at + 4).join('.');

const zeros = (bytes: readonly number[], count: number): boolean => bytes.slice(0, count).every((byte) => byte === 0);

/** `::ffff:a.b.c.d`. */
const isMapped = (bytes: readonly number[]): boolean => zeros(bytes, 10) && bytes[10] === 255 && bytes[11] === 255;

/** Mapped, compatible (`::a.b.c.d`) or translated (`::ffff:0:a.b.c.d`); `::` and `::1` are not, and refused as what they are. */
function isDisguised(bytes: readonly number[]): boolean {
  if (isMapped(bytes)) return true;
  const isTranslated = zeros(bytes, 8) && bytes[8] === 255 && bytes[9] === 255 && bytes[10] === 0 && bytes[11] === 0;
  return isTranslated || (zeros(bytes, 12) && bytes.slice(12, 15).some((byte) => byte !== 0));
}

/** The IPv4 address of a tunnel between sites: `…:0:5efe:a.b.c.d`, `…:200:5efe:a.b.c.d`. */
const isatapOf = (bytes: readonly number[]): readonly string[] => {
  const [first = -1, second, third, fourth] = bytes.slice(8);
  return (first & 0xfd) === 0 && second === 0 && third === 0x5e && fourth === 0xfe ? [dotted(bytes, 12)] : [];
};
