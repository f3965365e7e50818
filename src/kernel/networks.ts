/**
 * Addresses and networks as an operator writes them: `10.0.0.5`, `10.0.0.0/8`, `fd00::/8`. An IPv4 address that came over
 * IPv6, such as `::ffff:10.0.0.5`, is the same machine, whichever side writes it so.
 */
import { BlockList, isIP } from 'node:net';

interface Network {
  readonly address: string;
  readonly bits: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** Whether a text is an address, or a network of at least one bit: `/0` is everybody. */
export const isNetwork = (text: string): boolean => networkOf(text) !== undefined;

/**
 * @param texts addresses and networks; what is neither counts for nothing
 * @returns whether an address is one of them
 * @example createNetworks(['10.0.0.0/8'])('::ffff:10.1.2.3') // true
 */
export function createNetworks(texts: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList();
  for (const text of texts) {
    const network = networkOf(text);
    if (network) list.addSubnet(network.address, network.bits, network.family);
  }
  return (address = '') => {
    // Of a link-local address the operating system names the interface.
    const asked = networkOf(address.replace(/%.*$/, ''));
    return asked !== undefined && list.check(asked.address, asked.family);
  };
}

const FORM = /^([^/]+?)(?:\/(\d{1,3}))?$/;
const MAPPED = /^::ffff:([\d.]+)$/i;
const MAPPED_BITS = 96;

function networkOf(text: string): Network | undefined {
  const [, given = '', length] = FORM.exec(text) ?? [];
  const mapped = MAPPED.exec(given)?.[1];
  const address = mapped ?? given;
  const version = isIP(address);
  if (version === 0) return undefined;
  const width = version === 4 ? 32 : 128;
  const bits = length === undefined ? width : Number(length) - (mapped === undefined ? 0 : MAPPED_BITS);
  if (bits < 1 || bits > width) return undefined;
  return { address, bits, family: version === 4 ? 'ipv4' : 'ipv6' };
}
