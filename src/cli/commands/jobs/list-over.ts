/** `ls <queue>` of jobs that are over, the latest end first, in a queue that keeps a history. */
import type { JobView } from '../../../client/client.ts';
import { redactedPast } from '../../../inspect/redacted.ts';
import type { Redaction } from '../../../job/redaction.ts';
import type { OverState } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { durationMs } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { span } from '../../../kernel/humanize.ts';
import { stats } from '../../../redis/read/inspect.ts';
import { type Exit, partitionsOfQueue, type Session, withClient, withRedis } from '../../session.ts';
import { moment } from '../../terminal/instants.ts';
import { line, table } from '../../terminal/output.ts';
import { resultText } from './show.ts';

const OUTCOMES: readonly OverState[] = ['done', 'dead', 'cancelled', 'expired'];

interface Flags {
  readonly state: OverState | 'over';
  readonly name?: string | undefined;
  readonly tag?: string | undefined;
  readonly set?: string | undefined;
  readonly idPrefix?: string | undefined;
  readonly newerThan?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export async function listOver(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const { name, tag, set, idPrefix, newerThan, limit } = flags;
  const state = flags.state === 'over' ? OUTCOMES : flags.state;
  const ageMs = newerThan === undefined ? undefined : durationMs(newerThan, '--newer-than');
  const { redact, nowMs } = await withRedis(session, async (redis) => {
    const [first] = await partitionsOfQueue(session, redis, queue);
    if (first?.history) return { redact: first.redact, nowMs: (await stats(redis, first)).nowMs };
    const how = `switch it on with "duestream queues set ${queue} --history 7d"`;
    throw new DuestreamError('not-found', `${queue} keeps no history; ${how}`);
  });
  // An age counts from the first page.
  const [, beganAt = nowMs, cursor = flags.cursor] = /^(\d{1,16})\.(.*)$/s.exec(flags.cursor ?? '') ?? [];
  const ended = { from: new Date(ageMs === undefined ? 0 : Number(beganAt) - ageMs) };
  const page = await withClient(session, (client) =>
    client.list(queue, { state, name, tag, set, idPrefix, ended, limit, cursor }),
  );
  const told = page.cursor === undefined || ageMs === undefined ? page.cursor : `${beganAt}.${page.cursor}`;
  const jobs = page.jobs.map((job) => rowOf(job, redact));
  session.out.answer({ queue, jobs, scanned: page.scanned, cursor: told }, () => [
    ...linesOf(session, jobs),
    ...(told === undefined ? [] : [line`${page.scanned} checked; there may be more: add --cursor ${told}`]),
  ]);
  return 0;
}

/** What the history has of a job: neither its data nor its options. */
function rowOf(job: JobView, redact: Redaction | undefined) {
  const { id, bare, partition, state, name, tags, askedDueMs, attempts, failures, crashes, generation } = job;
  const { token, owner, startedMs, tookMs, overMs = 0, history, deferred, deadLetter } = job;
  const { result } = redactedPast({ result: job.result ?? { kind: 'none' } }, redact);
  return {
    id,
    bare,
    partition,
    state,
    name,
    tags,
    askedDueMs,
    attempts,
    failures,
    crashes,
    generation,
    token,
    owner,
    startedMs,
    tookMs,
    overMs,
    history,
    deferred,
    result,
    deadLetter,
  };
}

function linesOf(session: Session, jobs: readonly ReturnType<typeof rowOf>[]): readonly string[] {
  if (jobs.length === 0) return ['no job that is over matches'];
  const nowMs = systemClock.wallMs();
  const rows = jobs.map(({ id, bare, state, name, attempts, owner, tookMs, overMs, history, result }) => [
    id + (bare ? ' (bare)' : ''),
    name,
    state,
    attempts,
    tookMs === undefined ? undefined : span(tookMs),
    owner,
    moment(overMs, nowMs),
    history.at(-1)?.message ?? resultText(result),
  ]);
  const heads = ['id', 'name', 'end', 'attempts', 'took', 'worker', 'over', 'last error or result'];
  return table(session.out.paint, heads, rows);
}
