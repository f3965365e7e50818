/** An outbox in a database, a Redis for its calls, and relays between them. */
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type Client, createClient } from '../../src/client/client.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import {
  createOutbox,
  createRelay,
  type Outbox,
  outboxTable,
  type Relay,
  type RelayOptions,
} from '../../src/sql/index.ts';
import type { databases, TestDatabase } from './databases.ts';
import { startRedis, type TestRedis } from './redis.ts';

/** A stop need not wait long for the statement of a relay that was killed in its middle. */
const hasty = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 500), signal),
};

/** Registers the hooks of a group of tests. */
export function useOutbox({ dialect, open }: (typeof databases)[number]) {
  let the: { readonly db: TestDatabase; readonly server: TestRedis; readonly redis: Redis; readonly client: Client };
  const relays: Relay[] = [];
  beforeAll(async () => {
    const db = await open();
    await db.script(outboxTable(dialect));
    const server = await startRedis();
    const redis = openCommands({ redis: server.url, name: 'test' });
    await whenReady(redis);
    the = { db, server, redis, client: createClient({ redis: server.url }) };
  });
  beforeEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await the.redis.flushall();
    await the.db.run('DELETE FROM duestream_outbox', []);
  });
  afterAll(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await the.client.close();
    close(the.redis);
    await the.server.stop();
    await the.db.close();
  });
  return {
    outbox: createOutbox({ dialect }),
    db: () => the.db,
    redis: () => the.redis,
    client: () => the.client,
    server: () => the.server,
    relay(options: Partial<RelayOptions> = {}): Relay {
      const relay = createRelay({ dialect, run: the.db.run, redis: the.server.url, clock: hasty, ...options });
      relays.push(relay);
      return relay;
    },
    /** The time of all claims is up, and of all rows that were put off. */
    expireClaims: async () => void (await the.db.run('UPDATE duestream_outbox SET claimed_until = 0', [])),
    rows: (outbox: Outbox) => outbox.list(the.db.run),
  };
}
