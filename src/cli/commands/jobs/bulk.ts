/**
 * `schedule --bulk`: one job per line → many calls of bounded size. A line that cannot be a job is told with its number
 * and reason and stops nothing; the others are scheduled. Lines with ids can be sent again without harm.
 */
import type { Client, DurabilityOption, Scheduled, ScheduleOptions } from '../../../client/client.ts';
import { optionNames } from '../../../job/fields.ts';
import { parseExact } from '../../../job/json-text.ts';
import type { Queue } from '../../../job/queue.ts';
import { hintOf } from '../../../kernel/did-you-mean.ts';
import { show } from '../../../kernel/duration.ts';
import { DuestreamError, messageOf } from '../../../kernel/errors.ts';
import type { Exit } from '../../register.ts';
import { type Session, withClient } from '../../session.ts';
import { linesOf, openInput } from '../../terminal/input.ts';
import { line } from '../../terminal/text.ts';

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
  readonly producer: Client;
  readonly queue: Queue;
  readonly chunk: readonly Item[];
  readonly tally: Tally;
  readonly durable: DurabilityOption;
}

export async function scheduleBulk(
  session: Session,
  { queue, file, durable }: { readonly queue: Queue; readonly file: string; readonly durable: DurabilityOption },
): Promise<Exit> {
  const tally: Tally = { counts: new Map(), malformed: [], refused: 0, read: 0 };
  await withClient(session, async (producer) => {
    let chunk: Item[] = [];
    for await (const { number, text } of linesOf(openInput(session.invocation, file), LINE_CHARS_MAX)) {
      const item = readLine(session, tally, number, text);
      if (item !== undefined) chunk.push(item);
      if (chunk.length < CHUNK) continue;
      await send(session, { producer, queue, chunk, tally, durable });
      chunk = [];
    }
    if (chunk.length > 0) await send(session, { producer, queue, chunk, tally, durable });
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

function readLine(session: Session, tally: Tally, number: number, text: string | undefined): Item | undefined {
  if (text?.trim() === '') return undefined;
  tally.read += 1;
  try {
    if (text === undefined) throw new Error(`the line is longer than ${LINE_CHARS_MAX} characters`);
    return { number, job: jobOf(parseExact(text, '')) };
  } catch (error) {
    refuse(session, tally, number, messageOf(error));
    return undefined;
  }
}

/** The calls of one turn share round trips, and each has its own answer: one bad job refuses no other. */
async function send(session: Session, { producer, queue, chunk, tally, durable }: Sending): Promise<void> {
  const replies = await Promise.allSettled(
    chunk.map(({ job: { data, ...options } }) => producer.schedule(queue, data, { ...options, ...durable })),
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
