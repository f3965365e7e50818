/**
 * A line to a test's Redis that loses replies: what was sent arrives, what comes back does not, and the connection is
 * gone. For a client that is a call of which nobody knows whether it was carried out. It can also hold a call, whose bytes
 * then arrive when everybody has forgotten it.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { TestRedis } from './redis.ts';

let lines = 0;
/** A digest is the longest. */
const MARK_MAX = 39;

export async function openLossyLine(server: TestRedis) {
  lines += 1;
  const path = join(server.dir, `line${lines}.sock`);
  const sockets = new Set<Socket>();
  let repliesLeft = Number.POSITIVE_INFINITY;
  let closedFor = 0;
  let isShut = false;
  let lost = 0;
  let unanswered: readonly string[] = [];
  let toHold: readonly string[] = [];
  let releases: (() => void)[] = [];
  const line = createServer((client) => {
    if (isShut || closedFor > 0) {
      closedFor -= isShut ? 0 : 1;
      client.destroy();
      return;
    }
    const upstream = connect(server.socketPath);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        if (held === undefined) upstream.destroy();
      });
    }
    let held: Buffer[] | undefined;
    let doomed = false;
    // A client that gives up before the reply is there has lost it as well.
    client.once('close', () => {
      if (doomed) lost += 1;
    });
    let before = Buffer.alloc(0);
    client.on('data', (request) => {
      // A mark may begin in one piece and end in the next.
      const both = Buffer.concat([before, request]);
      const from = (mark: string) => Math.max(0, before.length - mark.length + 1);
      const isOneOf = (marks: readonly string[]) => marks.some((mark) => both.includes(mark, from(mark)));
      if (isOneOf(toHold)) {
        const bytes: Buffer[] = [];
        [held, toHold] = [bytes, []];
        releases.push(() => {
          for (const part of bytes) upstream.write(part);
        });
      }
      if (held !== undefined) {
        held.push(request);
        return;
      }
      const isMarked = isOneOf(unanswered);
      before = both.subarray(-MARK_MAX);
      if (isMarked) {
        doomed = true;
        unanswered = [];
        before = Buffer.alloc(0);
      }
      upstream.write(request);
    });
    upstream.on('data', (reply) => {
      if (!doomed && repliesLeft > 0) {
        repliesLeft -= 1;
        client.write(reply);
        return;
      }
      repliesLeft = Number.POSITIVE_INFINITY;
      doomed = true;
      client.destroy();
    });
  });
  line.listen(path);
  await once(line, 'listening');
  return {
    url: `unix://${path}`,
    /** The reply after the next `after` is lost with its connection; then `refusals` connections fail. */
    lose({ after = 0, refusals = 0 } = {}) {
      repliesLeft = after;
      closedFor = refusals;
    },
    /** The reply that `lose` named has come, and is lost. */
    hasLost: () => repliesLeft === Number.POSITIVE_INFINITY,
    /** The reply to the next call of this script is lost, whether it is called by its text or by its digest. */
    loseReplyTo(verb: string) {
      if (verb === 'XREADGROUP') {
        unanswered = [verb];
        return;
      }
      unanswered = marksOf(verb);
    },
    /** The bytes of the next call of this script stay here until `letGo`, also when its client has closed the connection. */
    hold(verb: string) {
      toHold = marksOf(verb);
    },
    /** How many calls are held. */
    held: () => releases.length,
    letGo() {
      for (const release of releases) release();
      releases = [];
    },
    /** The call has passed whose reply is to be lost. */
    hasPassed: () => unanswered.length === 0,
    lost: () => lost,
    /** While it is shut, connections that are open stay, and new ones fail. */
    shut(next: boolean) {
      isShut = next;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      line.close();
      await once(line, 'close');
    },
  };
}

function marksOf(verb: string): readonly string[] {
  const lua = readFileSync(new URL(`../../lua/${verb}.lua`, import.meta.url), 'utf8');
  return [createHash('sha1').update(lua).digest('hex'), `-- ${verb}: `];
}

/**
 * Drops the connections over which workers send commands, with whatever is on the way. Those that wait for entries stay:
 * what a lost read strands comes back only by adoption, which takes seconds and has tests of its own.
 */
export async function cutCommands(redis: Redis): Promise<void> {
  const clients = String(await redis.call('CLIENT', 'LIST'));
  for (const [, id] of clients.matchAll(/^id=(\d+) .* name=duestream:worker:/gm)) {
    await redis.call('CLIENT', 'KILL', 'ID', id ?? '').catch(() => undefined);
  }
}
