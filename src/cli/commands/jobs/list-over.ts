/** `ls <queue>` of jobs that are over, the latest end first: from the history of the queue, or what is remembered within the done window. */
import type { JobView } from '../../../client/client.ts';
import { redactedPast } from '../../../inspect/redacted.ts';
import type { Redaction } from '../../../job/redaction.ts';
import type { OverState } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { durationMs } from '../../../kernel/duration.ts';
import { span } from '../../../kernel/humanize.ts';
import { stats } from '../../../redis/read/inspect.ts';
import { type Exit, partitionsOfQueue, type Session, withClient, withRedis } from '../../session.ts';
import { relative } from '../../terminal/instants.ts';
import { type Cell, line, table } from '../../terminal/output.ts';
import { resultText } from './show.ts';

const OUTCOMES: readonly OverState[] = ['done', 'dead', 'cancelled', 'expired'];

interface Flags {
  readonly state: OverState | 'over';
  readonly name?: string | undefined;
  readonly tag?: string | undefined;
  readonly set?: string | undefined;
  readonly idPrefix?: string | undefined;
  readonly failed?: boolean | undefined;
  readonly newerThan?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export async function listOver(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const { name, tag, set, idPrefix, failed, newerThan, limit } = flags;
  const state = flags.state === 'over' ? OUTCOMES : flags.state;
  const ageMs = newerThan === undefined ? undefined : durationMs(newerThan, '--newer-than');
  const { redact, nowMs, isKept } = await withRedis(session, async (redis) => {
    const [first] = await partitionsOfQueue(session, redis, queue);
    const isTimed = first !== undefined && ageMs !== undefined;
    const nowMs = isTimed ? (await stats(redis, first)).nowMs : 0;
    return { redact: first?.redact, nowMs, isKept: first?.history !== undefined };
  });
  // An age counts from the first page.
  const [, beganAt = nowMs, cursor = flags.cursor] = /^(\d{1,16})\.(.*)$/s.exec(flags.cursor ?? '') ?? [];
  // With a bound the list is of the history, also of one that was switched off.
  const ended = isKept || ageMs !== undefined ? { from: new Date(ageMs ? Number(beganAt) - ageMs : 0) } : undefined;
  const page = await withClient(session, (client) =>
    client.list(queue, { state, name, tag, set, idPrefix, failed, ended, limit, cursor }),
  );
  const told = page.cursor === undefined || ageMs === undefined ? page.cursor : `${beganAt}.${page.cursor}`;
  const jobs = page.jobs.map((job) => rowOf(job, redact));
  const states = typeof state === 'string' ? [state] : state;
  session.out.answer({ queue, states, jobs, scanned: page.scanned, cursor: told }, () => [
    ...linesOf(session, jobs),
    ...(told === undefined ? [] : [line`${page.scanned} looked at; there may be more; go on with`, `--cursor ${told}`]),
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
  const columns: readonly (readonly [string, (job: (typeof jobs)[number]) => Cell])[] = [
    ['id', ({ id, bare }) => id + (bare ? ' (bare)' : '')],
    ['name', ({ name }) => name],
    ['end', ({ state }) => state],
    ['attempts', ({ attempts }) => attempts],
    ['took', ({ tookMs }) => (tookMs === undefined ? undefined : span(tookMs))],
    ['worker', ({ owner }) => owner],
    ['over', ({ overMs }) => relative(overMs, nowMs)],
    ['last error or result', ({ history, result }) => history.at(-1)?.message ?? resultText(result)],
  ];
  // Without a history little is known of a job.
  const shown = columns.filter(([, cell]) => jobs.some((job) => cell(job) !== undefined));
  const heads = shown.map(([head]) => head);
  return table(
    session.out.paint,
    heads,
    jobs.map((job) => shown.map(([, cell]) => cell(job))),
  );
}
