import { describe, expect, test } from 'vitest';
import { createNetworks, isNetwork } from '../../src/kernel/networks.ts';

describe('addresses and networks', () => {
  test.each([
    ['10.0.0.5', '10.0.0.5', true],
    ['10.0.0.5', '10.0.0.6', false],
    ['10.0.0.0/8', '10.255.1.2', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['172.16.0.0/12', '172.31.255.255', true],
    ['172.16.0.0/12', '172.32.0.0', false],
    ['fd00::/8', 'fd12:3456::1', true],
    ['fd00::/8', 'fe80::1', false],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['::1', '::1', true],
    ['::1', '127.0.0.1', false],
    // The same machine, over a socket that speaks both.
    ['10.0.0.5', '::ffff:10.0.0.5', true],
    ['10.0.0.0/8', '::ffff:10.9.9.9', true],
    ['10.0.0.0/8', '::ffff:11.9.9.9', false],
    ['::ffff:10.0.0.5', '10.0.0.5', true],
    ['::ffff:10.0.0.0/104', '10.9.9.9', true],
    ['::ffff:10.0.0.0/104', '11.9.9.9', false],
    ['::ffff:10.0.0.0/104', '::1', false],
    ['::ffff:10.0.0.5', '10.0.0.6', false],
    ['::ffff:10.0.0.0/104', '::FFFF:10.9.9.9', true],
  ])('%s and %s: %s', (network, address, isIn) => {
    expect(isNetwork(network)).toBe(true);
    expect(createNetworks([network])(address)).toBe(isIn);
  });

  test.each([
    '',
    'a',
    'localhost',
    '10.0.0',
    '10.0.0.5/33',
    '10.0.0.5/',
    '10.0.0.0/8/8',
    '::1/129',
    'fd00::/-1',
    '10.0.0.0/a',
  ])('%j is neither', (text) => {
    expect(isNetwork(text)).toBe(false);
    expect(createNetworks([text])('10.0.0.5')).toBe(false);
  });

  test('everybody is no network', () => {
    for (const all of ['0.0.0.0/0', '::/0', '::ffff:0.0.0.0/96']) expect(isNetwork(all), all).toBe(false);
  });

  test('without an address, and without networks, nothing matches', () => {
    expect(createNetworks(['10.0.0.0/8'])(undefined)).toBe(false);
    expect(createNetworks([])('10.0.0.5')).toBe(false);
    expect(createNetworks(['10.0.0.5', 'fd00::/8'])('fd00::1')).toBe(true);
  });
});
