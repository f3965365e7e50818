/** `show <queue> <id>`: the story of one job in every state, also after it was over. */

import type { Command } from 'commander';
import { addressOf } from '../../../inspect/dead-letters.ts';
import { redactedPast } from '../../../inspect/redacted.ts';
import { memberOf } from '../../../job/codec.ts';
import type { Token } from '../../../job/job.ts';
import { partitionOf } from '../../../job/routing.ts';
import { show as quoted } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { span } from '../../../kernel/humanize.ts';
import type { Redis } from '../../../redis/connection/connect.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { type DeadLetter, deadLetter, type Peek, peek, stats } from '../../../redis/read/inspect.ts';
import { everyDeadLetter } from '../../../redis/read/pages.ts';
import { pastOf } from '../../../redis/read/past.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { type Story, storyLines, storyValue } from './story.ts';

/** How far back dead letters are searched for an id whose end is no longer remembered. */
const DEAD_LETTERS_SEARCHED_MAX = 1000;

export const show: Register = (parent, runner) => {
  const command = parent
    .command('show <queue> <id>')
    .description('show what happened to one job: due time, attempts, errors, worker, end')
    .option('--bare', 'the id is a bare member: a foreign producer put it with ZADD')
    .action((queue: string, id: string, { bare = false }: { readonly bare?: boolean }, command: Command) =>
      runner.run(command, (session) => run(session, { queue, id, bare })),
    );
  withExamples(command, ['duestream show emails welcome:42', 'duestream show emails order-1042 --bare']);
};

interface Asked {
  readonly queue: string;
  readonly id: string;
  readonly bare: boolean;
}

async function run(session: Session, asked: Asked): Promise<Exit> {
  const story = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, asked.queue);
    const found = await find(redis, refs, asked);
    return found === undefined ? explain(session, { redis, refs, asked }) : storyOf(redis, { refs, asked, ...found });
  });
  session.out.answer(storyValue(story), () => storyLines(story));
  return 0;
}

interface Found {
  readonly ref: PartitionRef;
  readonly peek: Peek;
}

/** Ours are where their id belongs; a bare job may have been put anywhere. */
async function find(redis: Redis, refs: readonly PartitionRef[], { id, bare }: Asked): Promise<Found | undefined> {
  const home = refs.filter(({ partition }) => bare || partition === partitionOf(id, refs.length));
  for (const ref of home) {
    const seen = (await peek(redis, ref, memberOf(id, { bare }))) ?? (await remembered(redis, ref, { id, bare }));
    if (seen === undefined) continue;
    if ('kind' in seen) throw new DuestreamError('moved', `queue ${quoted(ref.queue)} was resized while it was read`);
    return { ref, peek: seen };
  }
  return undefined;
}

const ENDS_MAX = 5;

/** Asked for only where a history is or was kept. */
async function pastIn(redis: Redis, ref: PartitionRef, { id, bare }: Pick<Asked, 'id' | 'bare'>) {
  const past = ref.history ? await pastOf(redis, ref, { member: memberOf(id, { bare }), max: ENDS_MAX }) : [];
  return past.map((end) => redactedPast(end, ref.redact));
}

/** A job whose tombstone is gone, as the history knows it. */
async function remembered(redis: Redis, ref: PartitionRef, of: Pick<Asked, 'id' | 'bare'>): Promise<Peek | undefined> {
  const [end] = await pastIn(redis, ref, of);
  if (!end) return undefined;
  const { outcome, askedDueMs, attempts, deadLetter, overMs, token = '0' } = end;
  const tombstone = { outcome, askedDueMs, digest: '', token: token as Token, attempts, deadLetter };
  const { nowMs } = await stats(redis, ref);
  const member = memberOf(of.id, of);
  return {
    nowMs,
    state: outcome,
    member,
    record: undefined,
    tombstone,
    dueMs: undefined,
    run: undefined,
    overMs,
    seen: undefined,
  };
}

async function storyOf(
  redis: Redis,
  { refs, asked, ref, peek: seen }: Found & { readonly refs: readonly PartitionRef[]; readonly asked: Asked },
): Promise<Story> {
  const entry = seen.tombstone?.deadLetter;
  const found: DeadLetter | undefined = entry === undefined ? undefined : await deadLetter(redis, ref, entry);
  const { leaseTtlMs, paused } = await stats(redis, ref);
  return {
    ...asked,
    partition: ref.partition,
    peek: seen,
    deadLetter: found,
    deadLetterAddress: found === undefined ? undefined : addressOf({ ref, deadLetter: found }, refs.length),
    past: await pastIn(redis, ref, asked),
    redact: ref.redact,
    led: leaseTtlMs > 0,
    paused,
  };
}

/** Nothing is known of the id: says what that can mean, and looks in the places where it may be after all. */
async function explain(
  session: Session,
  { redis, refs, asked }: { redis: Redis; refs: readonly PartitionRef[]; asked: Asked },
): Promise<never> {
  const { queue, id, bare } = asked;
  const job = `${queue} has no ${bare ? 'bare ' : ''}job ${quoted(id)}`;
  const twin = await find(redis, refs, { ...asked, bare: !bare });
  if (twin !== undefined) {
    throw new DuestreamError(
      'not-found',
      `${job}, but a ${bare ? 'managed' : 'bare'} one: ${bare ? 'leave out' : 'add'} --bare`,
    );
  }
  for (const ref of refs) {
    for await (const found of everyDeadLetter(redis, ref, DEAD_LETTERS_SEARCHED_MAX)) {
      if (found.id !== id) continue;
      const address = addressOf({ ref, deadLetter: found }, refs.length);
      throw new DuestreamError('not-found', `${job} any more; it is dead: "duestream dead show ${queue} ${address}"`);
    }
  }
  const window = session.config.done.windowMs;
  throw new DuestreamError(
    'not-found',
    `${job}: it never existed, it was over more than ${span(window)} ago, or it is in another queue or namespace (this is ${session.config.namespace})`,
  );
}
