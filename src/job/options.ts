/**
 * Everything that one job can be told beside its data, one row per option. The types that callers see, the checks, the
 * flags of `schedule` and `schedules put`, the keys of `schedule --bulk`, the fields of a schedule, the test kit, the
 * places in the record, and `docs/reference/job-options.md` all follow from here, so that an option is written once.
 *
 * The comment above a row is what users see in their editor. A mapped type keeps it if `keyof typeof jobOptions` stands in
 * the mapping itself: by way of `OptionName` the comments are lost.
 */

import { queueRanges } from '../kernel/checks.ts';
import { type InstantInput, instantMs, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { parseZone } from '../time/zone.ts';
import { costRange } from './cost.ts';
import { parseJobId, parseJobName } from './job.ts';
import {
  GROUP_ALLOWED,
  HEADERS_ALLOWED,
  parseGroup,
  parseHeaders,
  parseSetName,
  parseTags,
  SET_ALLOWED,
  TAGS_ALLOWED,
} from './labels.ts';
import {
  backoff,
  choice,
  count,
  debounce,
  duration,
  type GivenOf,
  instant,
  type JobOption,
  jobTarget,
  pairs,
  priority,
  setName,
  text,
  words,
} from './option-kinds.ts';

/** In the order in which people read them. The order of those in the record is part of the wire format. */
export const jobOptions = {
  /**
   * Wait this long from now: milliseconds, `"5m"`, `"PT1H30M"`; 0 to the producer's horizon. Not together with `at`.
   *
   * @example { delay: '5m' }
   */
  delay: {
    ...duration(),
    doc: 'how long from now: 500ms, 90s, 5m, 1h, 3d, or ISO 8601 such as PT1H30M',
    allowed: '0 to the horizon (10 years); not together with `at`',
    otherwise: 'due now',
    example: '5m',
  },
  /**
   * Run at this instant: a `Date`, an ISO 8601 text with offset or Z, a luxon `DateTime`. A past instant means now.
   *
   * @example { at: '2026-03-01T10:00:00+01:00' }
   */
  at: {
    ...instant(),
    doc: 'the due time: ISO 8601 such as 2026-03-01T10:00:00+01:00; with a zone, a local time such as 2026-03-01T09:00',
    allowed: 'a `Date`, a luxon `DateTime`, or ISO 8601 with `Z` or an offset; from 1973 to the horizon',
    otherwise: 'due now',
    example: '2030-03-01T10:00:00+01:00',
    instead: 'delay',
    zoned: 'zone',
  },
  /**
   * The IANA zone in which an `at` without offset, such as `"2026-03-08T09:00"`, is a local time. If a clock
   * change skips that time, the job is later by the gap; if the time comes twice, the first one counts.
   * Schedules do the same.
   *
   * @example { at: '2026-03-08T09:00', zone: 'Europe/Berlin' }
   */
  zone: {
    ...text((given) => parseZone(given).name, { metavar: '<name>', allowed: '`UTC` or an IANA name with a slash' }),
    doc: 'the zone of a due time without offset: an IANA name such as Europe/Berlin; a date means the beginning of that day',
    otherwise: '`at` has an offset',
    example: 'Europe/Berlin',
    beside: { at: '2030-03-01T09:00' },
    needs: ['at'],
  },
  /**
   * Spreads a herd: the job is due up to this much later than it would be. How much follows from its id, so the same call
   * again says the same.
   *
   * @example { at: '2026-03-01T09:00:00Z', within: '10m' }
   */
  within: {
    ...duration({ min: 0, max: 30 * 86_400_000 }),
    doc: 'spread many jobs: due up to this much later, by a hash of the id',
    otherwise: 'no spread',
    example: '10m',
  },
  /**
   * 1 to 128 printable ASCII characters without space, `{` and `}`. Default: 22 letters and digits that are
   * unique, and sort in the order of the calls of the producer.
   *
   * @example { id: 'welcome:42' }
   */
  id: {
    ...text((given) => parseJobId(given), {
      metavar: '<id>',
      allowed: '1 to 128 printable ASCII characters without space, `{` and `}`',
    }),
    doc: 'an id of your own: if you schedule it twice, there is one job',
    otherwise: '22 letters and digits, which sort in the order of the calls',
    example: 'welcome:42',
  },
  /**
   * Of a gated queue: the tenant, account or lock that the job belongs to, at most 64 characters. Groups come in turns, and
   * `perGroup` of the queue limits each. It becomes a part of the id: `{acme}order-7`.
   *
   * @example { id: 'order-7', group: 'acme' }
   */
  group: {
    ...text((given) => parseGroup(given), { metavar: '<group>', allowed: GROUP_ALLOWED }),
    doc: 'the tenant, account or lock that the job belongs to, in a queue with limits',
    otherwise: 'none, or the one in the id',
    example: 'acme',
  },
  /**
   * Picks the handler: 1 to 64 of `A-Z a-z 0-9 . _ : -`. Default `default`.
   *
   * @example { name: 'welcome' }
   */
  name: {
    ...text(parseJobName, {
      metavar: '<name>',
      allowed: '1 to 64 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit',
    }),
    doc: 'the name of the job, which picks its handler',
    otherwise: '`default`',
    example: 'welcome',
    schedule: 'job',
  },
  /**
   * What to do when a job of this id is scheduled, ready or running: `keep` (default) leaves it, `update` gives a job that waits
   * the data, the time and the options that this call names, as `edit` does, `replace` puts this job in its place unless it
   * runs, `error` throws `exists`. The same call again is no conflict: its status is `already`. A job that is over stays over
   * with `update`; with the others another call makes it anew.
   *
   * @example { id: 'welcome:42', delay: '2d', ifExists: 'update' }
   */
  ifExists: {
    ...choice(['keep', 'update', 'replace', 'error']),
    doc: 'what to do if a job with this id already waits or runs; update makes none that is over',
    otherwise: '`keep`',
    example: 'update',
  },
  /**
   * Many calls with one id become one job, with the data of the last: it is due `wait` after the last call, and at most
   * `max` after the first. While the job runs, calls make its next life. With `id`; not with `delay`, `at`, `within`,
   * `ifExists` or `set`, and not in a queue that delivers at most once. Where `max` is the same as `wait`, it throttles: the job
   * is due `wait` after the first call.
   *
   * @example { id: 'index:42', debounce: { wait: '1s', max: '5s' } }
   */
  debounce: {
    ...debounce(),
    doc: 'many calls with one id become one job: due so long after the last call, at most so long after the first',
    otherwise: 'each call counts by itself',
    example: { wait: '1s', max: '5s' },
    beside: { id: 'index:42' },
    needs: ['id'],
  },
  /**
   * How often handlers may fail before the job is dead, 1 to 1000. Default: the queue's.
   *
   * @example { attempts: 3 }
   */
  attempts: {
    ...count(queueRanges.attempts),
    doc: 'after how many failures the job becomes a dead letter',
    otherwise: "the queue's",
    example: 3,
    schedule: true,
    record: { json: 'a' },
  },
  /**
   * How long a handler may run, 1 ms to 365 d. Default: the queue's.
   *
   * @example { timeout: '30s' }
   */
  timeout: {
    ...duration(queueRanges.timeoutMs),
    doc: 'how long a handler may run',
    otherwise: "the queue's",
    example: '30s',
    schedule: true,
    record: { json: 't' },
  },
  /**
   * `fixed(…)`, `linear(…)`, `exponential(…)` or `ladder(…)`; a function cannot be stored. Default: the queue's.
   *
   * @example { backoff: ladder(['1m', '10m', '1h']) }
   */
  backoff: {
    ...backoff(),
    doc: 'how long to wait after a failure: {"kind":"fixed","delay":"5s"}; or the kind linear, exponential or ladder',
    otherwise: "the queue's",
    example: { kind: 'fixed', delay: '5s' },
    schedule: true,
    record: { json: 'b' },
  },
  /**
   * Of a queue with a target: where the request of this job goes, and how. A path is on the host of the queue; a URL is on one of
   * the `hosts` of its target.
   *
   * @example { target: '/orders/7' }
   */
  target: {
    ...jobTarget(),
    doc: 'where its request goes: a path, or a URL on the hosts of its queue',
    otherwise: "the queue's",
    example: '/orders/7',
    schedule: true,
    record: { json: 'u' },
  },
  /**
   * Of a gated queue: who comes first of those that wait. Of 21 turns `high` has 16, `normal` (default) 4 and `low` 1.
   *
   * @example { priority: 'high' }
   */
  priority: {
    ...priority(),
    doc: 'who comes first of the jobs that wait, in a queue with limits',
    otherwise: '`normal`',
    example: 'high',
    schedule: true,
    record: { header: 't' },
  },
  /**
   * Words by which jobs are found together, to list, count, cancel or change them: at most 10 of 64 characters.
   *
   * @example { tags: ['user:42', 'invoice'] }
   */
  tags: {
    ...words(parseTags, { metavar: '<tag>', allowed: TAGS_ALLOWED }),
    doc: 'a word by which to find the job again; up to 10 of them',
    otherwise: 'none',
    example: ['user:42', 'invoice'],
    schedule: 'jobTags',
    record: { header: 't' },
  },
  /**
   * The set that the job is a member of, which `client.sets.begin` began: when all its members are over, its callback runs. It takes the
   * place of one tag. The id becomes `{set:import-7}row-1`.
   *
   * @example { id: 'row-1', set: 'import-7' }
   */
  set: {
    ...setName(parseSetName, SET_ALLOWED),
    doc: 'the set that the job is a member of: when all are over, the callback of the set runs',
    otherwise: 'none',
    example: 'import-7',
    record: { header: 't' },
  },
  /**
   * The instant after which no handler starts any more; not before the job is due.
   *
   * @example { delay: '5m', expiresAt: new Date(Date.now() + 3_600_000) }
   */
  expiresAt: {
    ...instant(),
    check: expiryOf,
    doc: 'when it is too late to start the job: ISO 8601 with Z or an offset',
    allowed: 'as `at`; not before the job is due',
    otherwise: 'never too late',
    example: '2030-03-01T11:00:00+01:00',
    record: { header: 'e' },
    instead: 'maxLateness',
  },
  /**
   * How long after the due time (after a retry: the due time of the retry) a start is still allowed.
   *
   * @example { maxLateness: '10m' }
   */
  maxLateness: {
    ...duration(),
    doc: 'how late the job may start, counted from its due time',
    otherwise: 'never too late',
    example: '10m',
    schedule: true,
    record: { header: 'l' },
  },
  /**
   * What happens to a job that is too late: `drop` (default) ends it as `expired`, `dead` makes a dead letter with the
   * reason `expired`, `run` starts it anyway. A replayed dead letter does not expire.
   *
   * @example { maxLateness: '10m', onLate: 'dead' }
   */
  onLate: {
    ...choice(['drop', 'dead', 'run'], 'dxr'),
    doc: 'what becomes of a job that is too late',
    otherwise: '`drop`',
    example: 'dead',
    schedule: true,
    record: { header: 'p', fallback: 'drop' },
    beside: { maxLateness: '10m' },
    needs: ['expiresAt', 'maxLateness'],
  },
  /**
   * Of a queue with `costs`: how many turns of the rate a start of the job uses, 1 to 1000. It starts where one turn is free, and
   * who comes next waits until the others are through. Default 1.
   *
   * @example { cost: 20 }
   */
  cost: {
    ...count(costRange),
    doc: 'how many turns of the rate the job uses, in a queue with costs',
    otherwise: '1',
    example: 20,
    schedule: true,
    record: { header: 'c' },
  },
  /**
   * Texts beside the data, such as a `traceparent`: at most 20 and 4096 bytes, by names as HTTP has them, which become
   * lower case. They do not count when calls are compared: the same call with other headers is `already`.
   *
   * @example { headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } }
   */
  headers: {
    ...pairs(parseHeaders, HEADERS_ALLOWED),
    doc: 'a text beside the data, such as a traceparent; up to 20 of them',
    otherwise: 'none',
    example: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    schedule: true,
    record: { header: 'h', apart: true },
  },
} as const satisfies Readonly<Record<string, JobOption>>;

export type OptionName = keyof typeof jobOptions;

/**
 * When a job runs, and how it differs from its queue's other jobs.
 *
 * @example await client.schedule(emails, { to: 'ada@example.org' }, { delay: '5m', attempts: 3 });
 */
export type ScheduleOptions = {
  readonly [Name in keyof typeof jobOptions]?: GivenOf<(typeof jobOptions)[Name]> | undefined;
};

/** What a schedule can say for its jobs, beside their name. */
export type OptionsOfFires = {
  readonly [Name in keyof typeof jobOptions as (typeof jobOptions)[Name] extends { readonly schedule: true }
    ? Name
    : never]?: ScheduleOptions[Name];
};

/** What to do when a job of the same id lives already. */
export type IfExists = GivenOf<typeof jobOptions.ifExists>;

function expiryOf(given: unknown, what: string, dueMs = 0): number {
  const expiresAtMs = instantMs(given as InstantInput, what);
  if (expiresAtMs >= dueMs) return expiresAtMs;
  throw new DuestreamError(
    'bad-input',
    `${what} is ${show(new Date(expiresAtMs))}; allowed: not before the job is due, ${show(new Date(dueMs))}`,
  );
}
