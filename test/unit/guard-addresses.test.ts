import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import { bytesOf, createAddressRules } from '../../src/dispatch/guard/addresses.ts';

/** A machine without addresses of its own, so that no test depends on the one it runs on. */
const rulesWith = (options: Parameters<typeof createAddressRules>[0] = {}) =>
  createAddressRules({ own: () => ['203.0.113.9', '93.184.216.99', '2600::99', 'fd00::9'], ...options });

describe('an address that is refused', () => {
  test.each([
    ['0.0.0.0', 'it is not public'],
    ['0.255.255.255', 'it is not public'],
    ['10.0.0.1', 'it is not public'],
    ['100.64.0.1', 'it is not public'],
    ['100.100.100.200', 'it is not public'],
    ['127.0.0.1', 'it is an address of this machine'],
    ['127.255.255.254', 'it is an address of this machine'],
    ['168.63.129.16', 'it is not public'],
    ['169.254.169.254', 'it is not public'],
    ['172.16.0.1', 'it is not public'],
    ['172.31.255.255', 'it is not public'],
    ['192.0.0.192', 'it is not public'],
    ['192.0.2.1', 'it is not public'],
    ['192.31.196.1', 'it is not public'],
    ['192.52.193.1', 'it is not public'],
    ['192.88.99.1', 'it is not public'],
    ['192.168.1.1', 'it is not public'],
    ['192.175.48.1', 'it is not public'],
    ['198.18.0.1', 'it is not public'],
    ['198.51.100.1', 'it is not public'],
    ['203.0.113.1', 'it is not public'],
    ['224.0.0.1', 'it is not public'],
    ['240.0.0.1', 'it is not public'],
    ['255.255.255.255', 'it is not public'],
    ['93.184.216.99', 'it is an address of this machine'],
    ['::1', 'it is an address of this machine'],
    ['2600::99', 'it is an address of this machine'],
    ['2600:0:0:0:0:0:0:99', 'it is an address of this machine'],
    ['::', 'it is not public'],
    ['::ffff:93.184.216.34', 'it is an IPv4 address, written as IPv6'],
    ['::ffff:7f00:1', 'it is an IPv4 address, written as IPv6'],
    ['::127.0.0.1', 'it is an IPv4 address, written as IPv6'],
    ['::ffff:0:127.0.0.1', 'it is an IPv4 address, written as IPv6'],
    ['64:ff9b::127.0.0.1', 'it is not public'],
    ['64:ff9b::5db8:d822', 'it is not public'],
    ['64:ff9b:1::127.0.0.1', 'it is not public'],
    ['2002:7f00:1::', 'it is not public'],
    ['2002:5db8:d822::1', 'it is not public'],
    ['2001:0:7f00:1::', 'it is not public'],
    ['2001:0:4136:e378:8000:63bf:80ff:fffe', 'it is not public'],
    ['2001:db8::1', 'it is not public'],
    ['2001:470::5efe:7f00:1', 'it leads to 127.0.0.1, which is not public'],
    ['2001:470::200:5efe:a00:1', 'it leads to 10.0.0.1, which is not public'],
    ['100::1', 'it is not public'],
    ['3ffe::1', 'it is not public'],
    ['3fff::1', 'it is not public'],
    ['4000::1', 'it is not public'],
    ['5f00::1', 'it is not public'],
    ['fc00::1', 'it is not public'],
    ['fd00:ec2::254', 'it is not public'],
    ['fe80::1', 'it is not public'],
    ['fe80::5efe:127.0.0.1', 'it is not public'],
    ['fe80::1%eth0', 'it is no address without a zone'],
    ['fec0::1', 'it is not public'],
    ['ff02::1', 'it is not public'],
    ['127.1', 'it is no address without a zone'],
    ['2130706433', 'it is no address without a zone'],
    ['', 'it is no address without a zone'],
  ])('%s: %s', (address, why) => {
    expect(rulesWith().refusalOf(address)).toBe(why);
  });
});

test.each(['93.184.216.34', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450::1', '2001:4860::1'])(
  '%s may be called',
  (address) => {
    expect(rulesWith().refusalOf(address)).toBeUndefined();
    expect(rulesWith().isAllowed(address)).toBe(false);
  },
);

describe('what an operator allows', () => {
  test('are networks, in every spelling of their addresses but that of the other family', () => {
    const rules = rulesWith({ allow: ['10.20.0.0/16', 'fd00:1::/32'] });
    for (const address of ['10.20.0.1', '10.20.255.255', 'fd00:1::5', 'FD00:1:0::5']) {
      expect(rules.refusalOf(address), address).toBeUndefined();
      expect(rules.isAllowed(address), address).toBe(true);
    }
    for (const address of ['10.21.0.1', 'fd00:2::5', '::ffff:10.20.0.1', '::10.20.0.1', '64:ff9b::10.20.0.1']) {
      expect(rules.refusalOf(address), address).toBeDefined();
    }
  });

  test('are the addresses of this machine only where they are named one by one', () => {
    const wide = rulesWith({ allow: ['127.0.0.0/8', 'fd00::/8', '::1/64'] });
    for (const address of ['127.0.0.1', 'fd00::9', '::1']) {
      expect(wide.refusalOf(address), address).toBe('it is an address of this machine');
    }
    expect(wide.refusalOf('fd00::8')).toBeUndefined();
    const exact = rulesWith({ allow: ['127.0.0.1', '::1/128', 'fd00:0::9'] });
    for (const address of ['127.0.0.1', '::1', 'fd00::9']) expect(exact.refusalOf(address), address).toBeUndefined();
    expect(exact.refusalOf('127.0.0.2')).toBe('it is an address of this machine');
  });

  test('is never where Redis is, nor what is denied', () => {
    const rules = rulesWith({
      allow: ['10.20.0.0/16', '10.20.0.5', 'fd00:1::/32'],
      deny: ['10.20.9.0/24', '93.184.216.0/24'],
      redis: () => ['10.20.0.5', '::ffff:10.20.0.6', 'fd00:1:0::7'],
    });
    for (const address of ['10.20.0.5', '10.20.0.6', 'fd00:1::7']) {
      expect(rules.refusalOf(address), address).toBe('Redis is there');
    }
    for (const address of ['10.20.9.1', '93.184.216.34']) expect(rules.refusalOf(address)).toBe('deny has it');
    expect(rules.refusalOf('10.20.0.7')).toBeUndefined();
  });

  test('is not the port of Redis on this machine, where others may be called, and elsewhere not its machine at all', () => {
    const redis = () => ['127.0.0.1:6390', '10.20.0.5:6379', '[fd00:1::7]:6379'];
    const rules = rulesWith({ allow: ['127.0.0.1', '10.20.0.0/16', 'fd00:1::/32'], redis });
    expect(rules.refusalOf('127.0.0.1', 6390)).toBe('Redis is there');
    expect(rules.refusalOf('127.0.0.1', 8080)).toBeUndefined();
    for (const address of ['10.20.0.5', 'fd00:1::7']) expect(rules.refusalOf(address, 8080)).toBe('Redis is there');
    expect(rules.refusalOf('10.20.0.6', 6379)).toBeUndefined();
  });

  test('is IPv4 behind a translator of its network, judged by the IPv4 address', () => {
    const rules = rulesWith({ nat64: ['64:ff9b::/96', '2600:64::/96'] });
    for (const address of ['64:ff9b::93.184.216.34', '2600:64::5db8:d822']) {
      expect(rules.refusalOf(address), address).toBeUndefined();
    }
    for (const [address, inner] of [
      ['64:ff9b::a9fe:a9fe', '169.254.169.254'],
      ['2600:64::7f00:1', '127.0.0.1'],
    ] as const) {
      expect(rules.refusalOf(address)).toBe(`it leads to ${inner}, which is not public`);
    }
  });

  test('counts for the addresses that this machine has now', () => {
    const own = ['93.184.216.1'];
    const rules = createAddressRules({ own: () => own });
    expect(rules.refusalOf('93.184.216.2')).toBeUndefined();
    own.push('93.184.216.2');
    expect(rules.refusalOf('93.184.216.2')).toBe('it is an address of this machine');
  });

  test('and by default no interface of the machine that runs this is public', () => {
    expect(createAddressRules().refusalOf('127.0.0.1')).toBe('it is an address of this machine');
  });
});

// A second implementation, by another hand and another way: the library of whole numbers and ranges that Express uses. Its words for
// ranges are mapped to ours; where it knows less (its tables are shorter), the row says so.

const NOT_PUBLIC_BY_OUR_TABLE_ALONE = ['168.63.129.16/32', '192.31.196.0/24', '192.52.193.0/24', '192.175.48.0/24'].map(
  (text) => ipaddr.parseCIDR(text),
);
const IPV6_BY_OUR_TABLE_ALONE = ['2001::/23', '3ffe::/16', '3fff::/20', '2620:4f:8000::/48'].map((text) =>
  ipaddr.parseCIDR(text),
);
const within = (address: ipaddr.IPv4 | ipaddr.IPv6, ranges: readonly ReturnType<typeof ipaddr.parseCIDR>[]) =>
  ranges.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));

function isPublicBySecond(text: string): boolean {
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv4) {
    return address.range() === 'unicast' && !within(address, NOT_PUBLIC_BY_OUR_TABLE_ALONE);
  }
  if (address.range() !== 'unicast' || !address.match(ipaddr.IPv6.parse('2000::'), 3)) return false;
  if (within(address, IPV6_BY_OUR_TABLE_ALONE)) return false;
  const [, , , , fifth = 0, sixth, high = 0, low = 0] = address.parts;
  const isIsatap = (fifth === 0 || fifth === 0x200) && sixth === 0x5efe;
  return !isIsatap || isPublicBySecond([high >> 8, high & 255, low >> 8, low & 255].join('.'));
}

const byte = fc.integer({ min: 0, max: 255 });
/** Any address, and more often one near the borders of the tables. */
const ipv4 = fc
  .oneof(
    fc.tuple(byte, byte, byte, byte),
    fc.tuple(
      fc.constantFrom(0, 10, 100, 127, 168, 169, 172, 192, 198, 203, 223, 224, 239, 240, 255),
      fc.constantFrom(0, 15, 16, 18, 19, 20, 31, 32, 51, 52, 63, 64, 88, 127, 128, 168, 175, 254, 255),
      fc.constantFrom(0, 1, 2, 48, 99, 100, 113, 129, 193, 196, 255),
      byte,
    ),
  )
  .map((bytes) => bytes.join('.'));
const word = fc.integer({ min: 0, max: 0xffff });
const ipv6 = fc
  .tuple(
    fc.oneof(
      word,
      fc.constantFrom(
        0,
        0x64,
        0x100,
        0x2000,
        0x2001,
        0x2002,
        0x2620,
        0x3ffe,
        0x3fff,
        0x4000,
        0x5f00,
        0xfc00,
        0xfe80,
        0xff02,
      ),
    ),
    fc.oneof(word, fc.constantFrom(0, 0x1ff, 0x200, 0xdb8, 0xff9b, 0x4f, 0xfff, 0x1000)),
    fc.array(fc.oneof(word, fc.constantFrom(0, 0x200, 0x5efe, 0xffff, 0x8000)), { minLength: 6, maxLength: 6 }),
  )
  .map(([first, second, rest]) => [first, second, ...rest].map((one) => one.toString(16)).join(':'));

test('10,000 addresses are judged as a second implementation judges them', () => {
  const rules = createAddressRules({ own: () => [] });
  fc.assert(
    fc.property(fc.oneof(ipv4, ipv6), (address) => {
      expect(rules.refusalOf(address) === undefined, address).toBe(isPublicBySecond(address));
    }),
    { numRuns: 10_000 },
  );
});

test('the bytes of an address are those that a second implementation reads', () => {
  fc.assert(
    fc.property(ipv6, (text) => {
      const address = ipaddr.IPv6.parse(text);
      for (const form of [text, address.toString(), address.toRFC5952String()]) {
        expect(bytesOf(form), form).toEqual(address.toByteArray());
      }
    }),
    { numRuns: 2000 },
  );
  expect(bytesOf('::ffff:1.2.3.4')).toEqual(ipaddr.IPv6.parse('::ffff:1.2.3.4').toByteArray());
});
