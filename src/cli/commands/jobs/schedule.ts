/** `schedule <queue>`: one job from flags, or many from a file with `--bulk`. */
import type { Command } from 'commander';
import type {
  Client,
  DurabilityOption,
  JobPreview,
  PreviewRefusal,
  Scheduled,
  ScheduleOptions,
} from '../../../client/client.ts';
import { queueOptions } from '../../../config/load.ts';
import { allOptions, optionNames } from '../../../job/fields.ts';
import { newJobId } from '../../../job/job-id.ts';
import { parseExact } from '../../../job/json-text.ts';
import { type Queue, queueFrom } from '../../../job/queue.ts';
import { hintOf } from '../../../kernel/checks.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { show } from '../../../kernel/duration.ts';
import { DuestreamError, messageOf } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import { type Exit, newQueueHint, type Register, type Session, withClient, withExamples } from '../../session.ts';
import { type Line, linesOf, openInput, readData } from '../../terminal/input.ts';
import { iso, moment } from '../../terminal/instants.ts';
import {
  DURABILITY_FLAG,
  dashed,
  type JobFlags,
  readDurability,
  readFlags,
  withFlags,
} from '../../terminal/job-flags.ts';
import { fields, line } from '../../terminal/output.ts';

interface Flags extends JobFlags {
  readonly data?: string;
  readonly bulk?: string;
  readonly durability?: string;
  readonly dryRun?: boolean;
}

export const schedule: Register = (parent, runner) => {
  const command = parent
    .command('schedule <queue>')
    .description('schedule a job; without --delay or --at it is due now')
    .option('--data <json>', 'the data of the job: JSON, @file, or - for stdin');
  withFlags(command, allOptions)
    .option(
      '--bulk <file>',
      'a file of many jobs: one JSON object per line, with data and these options in camelCase; - for stdin',
    )
    .option(
      '--dry-run',
      'write nothing; say when it would be due, what is due beside it, its retries, and what would refuse it',
    )
    .option(...DURABILITY_FLAG)
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    `duestream schedule emails --data '{"to":"a@b.c"}' --delay 3s`,
    'duestream schedule emails --id welcome:42 --data @welcome.json --at 2026-03-01T10:00:00+01:00',
    'duestream schedule emails --at 2026-03-01T09:00 --zone Europe/Berlin',
    `duestream schedule emails --delay 1h --max-lateness 10m --on-late dead --backoff '{"kind":"fixed","delay":"5s"}'`,
    'duestream schedule emails --bulk jobs.ndjson',
  ]);
};

async function run(session: Session, name: string, { data, bulk, durability, dryRun, ...flags }: Flags): Promise<Exit> {
  // A queue that is new takes its partitions from the configuration.
  const durable = readDurability(durability);
  const queue = queueFrom(name, queueOptions(session.config, name));
  if (bulk !== undefined) {
    const single = Object.keys({ ...flags, ...(data === undefined ? {} : { data }) });
    if (single.length > 0) {
      throw new DuestreamError('usage', `--bulk and --${dashed(single[0] ?? '')} are both given; say it in each line`);
    }
    if (dryRun) throw new DuestreamError('usage', '--dry-run goes with one job; --bulk is given');
    return scheduleBulk(session, { queue, file: bulk, durable });
  }
  const content = await readData(session.invocation, data);
  if (dryRun) return preview(session, { queue, content, options: readFlags(flags, allOptions) });
  // Made here and not by the producer, so that the person can repeat the call when its reply is lost. Calls that are one job
  // need an id of theirs: the client says so.
  const isOneOfMany = flags.debounce !== undefined;
  const id = flags.id ?? (isOneOfMany ? undefined : newJobId());
  const options = { ...readFlags(flags, allOptions), ...durable, id };
  const hint = await newQueueHint(session, name);
  const scheduled = await withClient(session, (producer) => producer.schedule(queue, content, options));
  if (hint !== '') session.out.note(line`queue ${name} is new${hint}`);
  const isUpdate = options.ifExists === 'update';
  session.out.answer(scheduled, () => [sentence(scheduled, isUpdate)]);
  return scheduled.status === 'running' || (scheduled.status === 'exists' && isUpdate) ? 1 : 0;
}

/** What would become of the job. */
async function preview(
  session: Session,
  of: { readonly queue: Queue; readonly content: unknown; readonly options: ScheduleOptions },
): Promise<Exit> {
  const seen = await withClient(session, (client) => client.preview(of.queue, of.content, of.options));
  session.out.answer(seen, () => previewLines(seen));
  return seen.refusal ? 1 : 0;
}

function previewLines({ dueMs, there, refusal, retries, beside }: JobPreview): readonly string[] {
  const nowMs = systemClock.wallMs();
  const [own = 0, most] = [beside.counts[30], Math.max(...beside.counts)];
  return fields([
    ['due', moment(dueMs, nowMs)],
    ['beside it', `${counted(own, 'job')} in its minute, at most ${most} in a minute of the hour around it`],
    ['there', there && `a job of its id is ${there.state}`],
    ['refused', refusal && refusalText(refusal)],
    ...retries.map(({ attempt, fromMs, toMs }): [string, string] => [
      `try ${attempt}`,
      toMs === fromMs ? moment(fromMs, nowMs) : `${iso(fromMs)} to ${iso(toMs)}`,
    ]),
  ]);
}

function refusalText(refusal: PreviewRefusal): string {
  switch (refusal.kind) {
    case 'queue-full':
      return `the queue is full: ${refusal.pending} of ${refusal.limit}`;
    case 'closed':
      return `tag ${refusal.tag} is closed until ${iso(refusal.untilMs)}`;
    case 'unfit':
      return refusal.why;
  }
}

function sentence({ id, status, dueMs, over, closed }: Scheduled, isUpdate: boolean): string {
  const due = moment(dueMs, systemClock.wallMs());
  switch (status) {
    case 'scheduled':
      return line`${id}  scheduled  due ${due}`;
    case 'updated':
      return line`${id}  updated  due ${due}`;
    case 'replaced':
      return line`${id}  replaced  now due ${due}`;
    case 'exists':
      if (isUpdate)
        return line`${id}  exists  not updated: others changed the job at each look, or its record cannot be read`;
      return line`${id}  exists  a job of this id is live, due ${due}; --if-exists update changes it`;
    case 'already':
      if (over !== undefined && isUpdate) return line`${id}  already ${over}  it is not made again`;
      if (over !== undefined) return line`${id}  already ${over}  this same call was made before`;
      return isUpdate
        ? line`${id}  already as this call says  due ${due}`
        : line`${id}  already scheduled by the same call  due ${due}`;
    case 'closed':
      return line`${id}  closed  not scheduled: tag ${closed?.tag ?? ''} is closed until ${moment(closed?.untilMs ?? 0, systemClock.wallMs())}`;
    case 'merged':
      return line`${id}  merged  the job that waits has this data, now due ${due}`;
    case 'kept':
      return line`${id}  kept  the job has this data when it starts; it stays due ${due}`;
    case 'behind':
      return line`${id}  behind  the job runs; it runs again with this data when it has ended, not before ${due}`;
    case 'overtaken':
      return line`${id}  overtaken  a newer call has come; nothing was changed`;
    case 'running':
      return line`${id}  running  not changed; try again when it has ended`;
  }
}

/*
 * `schedule --bulk`: a file with one job per line becomes many calls of bounded size. A line that cannot be a job is
 * reported with its number and reason, and the other lines are scheduled. Lines with ids can be sent again without harm.
 */

const LINE_CHARS_MAX = 20 * 1024 * 1024;
const CHUNK = 500;
const PROGRESS_EVERY = 5000;
/** Of this many bad lines the reasons are kept for the answer; all of them are counted. */
const REASONS_MAX = 1000;

interface Item {
  readonly number: number;
  readonly job: ScheduleOptions & { readonly data: unknown };
}

interface Tally {
  readonly counts: Map<Scheduled['status'], number>;
  readonly malformed: { readonly line: number; readonly reason: string }[];
  refused: number;
  read: number;
}

interface Sending {
  readonly client: Client;
  readonly queue: Queue;
  readonly chunk: readonly Item[];
  readonly tally: Tally;
  readonly durable: DurabilityOption;
}

async function scheduleBulk(
  session: Session,
  { queue, file, durable }: { readonly queue: Queue; readonly file: string; readonly durable: DurabilityOption },
): Promise<Exit> {
  const tally: Tally = { counts: new Map(), malformed: [], refused: 0, read: 0 };
  await withClient(session, async (client) => {
    let chunk: Item[] = [];
    for await (const line of linesOf(openInput(session.invocation, file), LINE_CHARS_MAX)) {
      const item = readLine(session, tally, line);
      if (item !== undefined) chunk.push(item);
      if (chunk.length < CHUNK) continue;
      await send(session, { client, queue, chunk, tally, durable });
      chunk = [];
    }
    if (chunk.length > 0) await send(session, { client, queue, chunk, tally, durable });
  });
  const counts = Object.fromEntries(tally.counts);
  session.out.answer(
    { queue: queue.name, read: tally.read, ...counts, refused: tally.refused, malformed: tally.malformed },
    () => [
      [line`${tally.read} lines`, ...[...tally.counts].map(([status, count]) => line`${count} ${status}`)]
        .concat(tally.refused === 0 ? [] : [line`${tally.refused} refused`])
        .join(', '),
    ],
  );
  return tally.refused > 0 || tally.counts.has('running') ? 1 : 0;
}

function readLine(session: Session, tally: Tally, { number, text }: Line): Item | undefined {
  if (typeof text === 'string' && text.trim() === '') return undefined;
  tally.read += 1;
  try {
    if (typeof text !== 'string') throw new Error(text.flaw);
    return { number, job: jobOf(parseExact(text, '')) };
  } catch (error) {
    refuse(session, tally, number, messageOf(error));
    return undefined;
  }
}

/** The calls of one chunk share round trips, and each has its own answer: one bad job refuses no other. */
async function send(session: Session, { client, queue, chunk, tally, durable }: Sending): Promise<void> {
  const replies = await Promise.allSettled(
    chunk.map(({ job: { data, ...options } }) => client.schedule(queue, data, { ...options, ...durable })),
  );
  for (const [index, reply] of replies.entries()) {
    if (reply.status === 'fulfilled') count(session, tally, reply.value.status);
    else if (isAboutOneJob(reply.reason)) refuse(session, tally, chunk[index]?.number ?? 0, messageOf(reply.reason));
    else throw reply.reason;
  }
}

function count(session: Session, tally: Tally, status: Scheduled['status']): void {
  tally.counts.set(status, (tally.counts.get(status) ?? 0) + 1);
  const done = [...tally.counts.values()].reduce((sum, value) => sum + value, 0);
  if (done % PROGRESS_EVERY === 0) session.out.note(line`${done} jobs sent`);
}

function refuse(session: Session, tally: Tally, number: number, reason: string): void {
  tally.refused += 1;
  if (tally.malformed.length < REASONS_MAX) tally.malformed.push({ line: number, reason });
  session.out.note(line`line ${number}: ${reason}`);
}

const isAboutOneJob = (error: unknown): boolean =>
  error instanceof DuestreamError && (error.code === 'bad-input' || error.code === 'exists');

const KEYS: readonly string[] = ['data', ...optionNames];

function jobOf(value: unknown): Item['job'] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new DuestreamError('bad-input', `the line is ${show(value)}; allowed: a JSON object with ${KEYS.join(', ')}`);
  }
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) {
    throw new DuestreamError(
      'bad-input',
      `${show(unknown)} is no option${hintOf(unknown, KEYS) || ';'} allowed: ${KEYS.join(', ')}`,
    );
  }
  return { ...value, data: 'data' in value ? value.data : undefined };
}
