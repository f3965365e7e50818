/** The connections to a cluster, of which none may be opened for nothing. No servers: what they would say is played. */
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Place } from '../../src/redis/connection/address.ts';
import { createNodes } from '../../src/redis/connection/cluster/nodes.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';

const MASTER = { host: '127.0.0.1', port: 7001 };
const REPLICA = { host: '127.0.0.1', port: 7002 };
const SLOTS = [[0, 16383, [MASTER.host, MASTER.port, 'id-1'], [REPLICA.host, REPLICA.port, 'id-2']]];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A connection that is up at once. The one to the master is a subscriber's: it may not ask. */
function played(place: Place): Redis {
  const redis = Object.assign(new EventEmitter(), {
    status: 'connecting',
    options: place,
    call: () =>
      place.port === MASTER.port ? Promise.reject(new Error('ERR only (P|S)SUBSCRIBE')) : Promise.resolve(SLOTS),
    sendCommand: () => undefined,
    quit: () => Promise.resolve('OK'),
    disconnect() {
      redis.status = 'end';
      redis.emit('close');
      redis.emit('end');
    },
  });
  setTimeout(() => {
    redis.status = 'ready';
    redis.emit('ready');
  }, 1);
  return redis as unknown as Redis;
}

test('a replica that draws the map for subscribers is left, and not opened again', async () => {
  const opened: number[] = [];
  const nodes = createNodes({
    seeds: [MASTER, REPLICA],
    natMap: undefined,
    subscribes: false,
    open(place) {
      opened.push(place.port);
      return played(place);
    },
    onChange: () => undefined,
    onTrouble: () => undefined,
  });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(nodes.isMapped()).toBe(true);
  expect(opened).toEqual([MASTER.port, REPLICA.port]);
  nodes.close();
});
