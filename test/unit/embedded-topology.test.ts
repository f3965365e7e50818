/** What several embedded servers share: ports that nobody else has, and an end without traces when a start fails. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startCluster } from '../../src/embedded/cluster.mjs';
import { BUS_OFFSET, portSource } from '../../src/embedded/port.mjs';
import { startNode } from '../../src/embedded/topology.mjs';
import { testBinary } from '../support/redis-binary.ts';

let dir = '';
let cleanUp: (() => unknown)[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'due-'));
  cleanUp = [];
});

afterEach(async () => {
  for (const act of cleanUp.reverse()) await act();
  rmSync(dir, { recursive: true, force: true });
});

/** Listens on a port until the end of the test. */
async function occupy(port: number): Promise<void> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  cleanUp.push(() => server.close());
}

test('no port is given twice, and none whose bus port somebody has', async () => {
  const first = await portSource()();
  await occupy(first + BUS_OFFSET);
  const next = portSource(first);
  const given = await Promise.all([next(), next(), next()]);
  expect(Math.min(...given)).toBeGreaterThan(first);
  expect(new Set(given).size).toBe(3);
});

test('a server takes the next port when somebody was quicker with the first', async () => {
  const next = portSource();
  const [taken, free] = [await next(), await next()];
  await occupy(taken);
  const ports = [taken, free];
  const node = await startNode({
    binary: await testBinary(),
    dir,
    name: 'one',
    nextPort: async () => ports.shift() ?? expect.fail('a third port was asked for'),
    settings: (port) => ({ port: String(port), bind: '127.0.0.1' }),
  });
  cleanUp.push(() => node.kill());
  expect(node.port).toBe(free);
  expect(await node.ask('PING')).toBe('PONG');
});

test('a cluster whose servers do not start says what they said and leaves nothing', async () => {
  const binary = join(dir, 'no-server');
  writeFileSync(binary, '#!/bin/sh\necho no such luck >&2\nexit 1\n', { mode: 0o755 });
  const temporary = join(dir, 't');
  vi.stubEnv('TMPDIR', temporary);
  cleanUp.push(() => vi.unstubAllEnvs());
  mkdirSync(temporary);
  await expect(startCluster({ binary })).rejects.toMatchObject({
    exitCode: 69,
    message: expect.stringContaining('no such luck'),
  });
  expect(readdirSync(temporary)).toEqual([]);
});
