/**
 * Where a request may go, asked before each one:
 *
 *     text ──form──▶ scheme, name ──resolve once──▶ addresses ──each judged──▶ the addresses that may be dialled
 *
 * One address that may not be dialled refuses its name: a name that has both leads inside at the next look. The caller dials an
 * address and never the name (`dial.ts`).
 */
import { isIP } from 'node:net';
import { isNamed, readTargetUrl, type TargetUrl } from '../../job/target-url.ts';
import { DuestreamError, messageOf } from '../../kernel/errors.ts';
import { isNetwork } from '../../kernel/networks.ts';
import { type AddressOptions, createAddressRules } from './addresses.ts';
import { type Resolve, resolveAsMachine, resolveByDns, translatedAddresses } from './names.ts';

export interface GuardOptions extends AddressOptions {
  /** Names that may be local, such as `hook.svc.cluster.local` or `*.svc.cluster.local`: their addresses must be in `allow` all the same. */
  readonly names?: readonly string[] | undefined;
  readonly resolve?: Resolve | undefined;
  readonly resolveLocal?: Resolve | undefined;
  /** A proxy gets names and judges where they lead, so they are not looked up here. Plain `http:` is refused then. */
  readonly proxyResolves?: boolean | undefined;
  /** By which addresses the network says that it translates IPv6 to IPv4. Default: its name servers are asked, once. */
  readonly translation?: (() => Promise<readonly string[]>) | undefined;
}

/** `no-address`: DNS has no answer now, so it may be tried again. */
export type Admission =
  | {
      readonly kind: 'admitted';
      readonly url: TargetUrl;
      readonly addresses: readonly string[];
      readonly isAllowed: boolean;
    }
  | { readonly kind: 'no-address'; readonly why: string }
  | { readonly kind: 'refused'; readonly why: string };

export interface Guard {
  readonly admit: (text: string) => Promise<Admission>;
  /** Why a socket may not stay, by the address that it says it is connected to. */
  readonly refusalOfPeer: (address: string, port: number) => string | undefined;
}

const ADDRESSES_MAX = 32;

/** Names of networks that end in themselves, and those that stand for no network. */
const LOCAL_ENDS: readonly string[] = [
  ...['localhost', 'local', 'internal', 'intranet', 'lan', 'home', 'corp', 'private', 'localdomain', 'home.arpa'],
  ...['onion', 'invalid', 'test', 'example', 'alt', 'svc', 'cluster', 'arpa'],
];

export function createGuard(options: GuardOptions = {}): Guard {
  const { names = [], resolve = resolveByDns, resolveLocal = resolveAsMachine, proxyResolves = false } = options;
  checkNetworks(options);
  const rules = createAddressRules(options);

  // Asked when an address of IPv6 is to be dialled for the first time: behind a prefix that nobody told lies every address inside.
  let asked: Promise<string | undefined> | undefined;
  const untold = (): Promise<string | undefined> =>
    (asked ??= (options.translation ?? translatedAddresses)().then((all) =>
      all.find((one) => !rules.isTranslated(one)),
    ));

  /** Why one of the addresses refuses all of them. */
  async function flawOf(addresses: readonly string[], port: number): Promise<string | undefined> {
    for (const address of addresses) {
      const why = rules.refusalOf(address, port);
      if (why !== undefined) return `${address}: ${why}`;
    }
    const isPublicIpv6 = (one: string) => isIP(one) === 6 && !rules.isAllowed(one) && !rules.isTranslated(one);
    const prefix = addresses.some(isPublicIpv6) ? await untold() : undefined;
    return prefix && `this network translates IPv6 to IPv4 by the prefix of ${prefix}, which nat64 does not have`;
  }

  const addressesOf = async ({ host, version }: TargetUrl): Promise<readonly string[]> =>
    version === 0 ? (isNamed(host, names) ? resolveLocal : resolve)(host) : [host];

  /** One look at a name, and each of its addresses judged. */
  async function looked(url: TargetUrl): Promise<Admission> {
    const addresses = await addressesOf(url);
    if (addresses.length === 0) return { kind: 'no-address', why: `${url.host} has no address` };
    if (addresses.length > ADDRESSES_MAX) return refused(`${url.host} has more than ${ADDRESSES_MAX} addresses`);
    const flaw = await flawOf(addresses, url.port);
    if (flaw !== undefined) return refused(url.version === 0 ? `${url.host} is ${flaw}` : flaw);
    const isAllowed = addresses.every(rules.isAllowed);
    if (url.isTls || isAllowed) return { kind: 'admitted', url, addresses, isAllowed };
    return refused('http:// is for networks of allow; elsewhere use https://');
  }

  return {
    refusalOfPeer: rules.refusalOf,
    async admit(text) {
      const url = readOrWhy(text);
      if (typeof url === 'string') return refused(url);
      if (url.version === 0 && isLocal(url.host) && !isNamed(url.host, names)) {
        return refused(`${url.host} is a name of a local network; names has the ones that may be called`);
      }
      return proxyResolves && url.version === 0 ? leftToProxy(url) : looked(url);
    },
  };
}

const leftToProxy = (url: TargetUrl): Admission =>
  url.isTls
    ? { kind: 'admitted', url, addresses: [url.host], isAllowed: false }
    : refused('http:// does not go through a proxy that looks names up; use https://');

const refused = (why: string): Admission => ({ kind: 'refused', why });

function readOrWhy(text: string): TargetUrl | string {
  try {
    return readTargetUrl(text, 'the URL');
  } catch (error) {
    return messageOf(error);
  }
}

const isLocal = (host: string): boolean =>
  !host.includes('.') || LOCAL_ENDS.some((end) => host === end || host.endsWith(`.${end}`));

function checkNetworks({ allow = [], deny = [], nat64 = [] }: AddressOptions): void {
  for (const [name, all] of Object.entries({ allow, deny, nat64 })) {
    const bad = all.find((text) => !isNetwork(text) || (name === 'nat64' && !text.endsWith('/96')));
    if (bad === undefined) continue;
    const allowed =
      name === 'nat64' ? 'prefixes of 96 bits such as 64:ff9b::/96' : 'networks such as 10.20.0.0/16, fd00:1::/32';
    throw new DuestreamError('bad-config', `${name} has ${JSON.stringify(bad)}; allowed: ${allowed}`);
  }
}
