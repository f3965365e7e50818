/** The story of one job as lines: what it is, what happened to it in order of time, and what comes next. */
import type { Stub } from '../core/codec.ts';
import type { Attempted } from '../core/outcome.ts';
import type { OverState } from '../core/state.ts';
import type { Letter, Peek } from '../redis/inspect.ts';
import { contentOf } from './letters.ts';
import { fields, json, line } from './text.ts';
import { iso, relative, span } from './when.ts';

type Content = ReturnType<typeof contentOf>;

export interface Story {
  readonly id: string;
  readonly bare: boolean;
  readonly queue: string;
  readonly partition: number;
  readonly peek: Peek;
  /** The dead letter of a dead job, if it is still there. */
  readonly letter: Letter | undefined;
  readonly letterAddress: string | undefined;
  /** Whether the partition has a leader that promotes. */
  readonly led: boolean;
  readonly paused: boolean;
}

/** What a program needs to know; the same facts as the lines. */
export function storyValue({ id, bare, queue, partition, peek, letter, letterAddress }: Story): object {
  const record = peek.record ?? letter?.record;
  const { readable, askedDueMs, name, data } = contentOf(record);
  const { run, stub } = peek;
  return {
    id,
    bare,
    queue,
    partition,
    state: peek.state,
    readable,
    name,
    data,
    askedDueMs: askedDueMs ?? stub?.askedDueMs,
    dueMs: peek.dueMs,
    attempts: run?.attempts ?? letter?.attempts ?? stub?.attempts ?? 0,
    failures: run?.failures ?? 0,
    crashes: run?.crashes ?? 0,
    generation: run?.generation ?? letter?.generation ?? 0,
    token: startedToken(run?.token ?? stub?.token),
    owner: run?.owner,
    entry: run?.entry,
    cancelRequested: run?.cancelRequested ?? false,
    history: run?.history ?? letter?.history ?? [],
    overMs: peek.overMs ?? letter?.atMs,
    letter: letterAddress,
    reason: letter?.reason,
    nowMs: peek.nowMs,
  };
}

export function storyLines(story: Story): readonly string[] {
  const { id, bare, queue, partition, peek, letter } = story;
  const record = peek.record ?? letter?.record;
  const content = contentOf(record);
  return [
    ...jobFields({ id, bare, queue, partition, content, record: peek.stub && !letter ? undefined : record }),
    ...fields([['state', stateText(story)]]),
    '',
    ...timeline(story, content),
  ];
}

/** What a job is, whatever became of it. */
export function jobFields(job: {
  readonly id: string;
  readonly bare: boolean;
  readonly queue: string;
  readonly partition: number;
  readonly content: Content;
  readonly record: string | undefined;
}): readonly string[] {
  const { content, record } = job;
  return fields([
    ['job', job.id + (job.bare ? ' (bare: put by a foreign producer)' : '')],
    ['queue', `${job.queue}, partition ${job.partition}`],
    ['name', content.name],
    ['data', dataText(content, record)],
    ['budget', content.attempts === undefined ? undefined : `${content.attempts} attempts`],
    ['timeout', content.timeoutMs === undefined ? undefined : span(content.timeoutMs)],
  ]);
}

function dataText({ readable, data }: Content, record: string | undefined): string | undefined {
  if (readable) return data === undefined ? undefined : json(data);
  if (record === undefined) return undefined;
  return record === '' ? 'the record is missing' : `unreadable: ${record.slice(0, 200)}`;
}

/** Token 0 stands for "not started yet". */
const startedToken = (token: string | undefined) => (token === '0' ? undefined : token);

/** One line of a history. */
export function attemptLine({ atMs, attempt, kind, message }: Attempted): string {
  const what = { failure: 'failed', timeout: 'timed out', crash: 'lost its worker', refused: 'was refused' }[kind];
  return line`${iso(atMs)}  attempt ${attempt} ${what}: ${message}`;
}

function stateText({ peek: { state, dueMs, run, nowMs } }: Story): string {
  if (state === 'scheduled' && dueMs !== undefined) return `scheduled, due ${relative(dueMs, nowMs)}`;
  if (state === 'running' && run?.cancelRequested) return 'running, asked to stop';
  return state;
}

function timeline(story: Story, content: Content): readonly string[] {
  const { peek, letter } = story;
  const askedDueMs = content.askedDueMs ?? peek.stub?.askedDueMs ?? peek.dueMs;
  const history = peek.run?.history ?? letter?.history ?? [];
  const asked = { atMs: askedDueMs ?? 0, text: line`${iso(askedDueMs ?? 0)}  due, as it was asked for` };
  const attempts = history.map((attempted) => ({ atMs: attempted.atMs, text: attemptLine(attempted) }));
  const events = askedDueMs === undefined ? attempts : [asked, ...attempts];
  events.sort((a, b) => a.atMs - b.atMs);
  const forgotten = (peek.run?.failures ?? 0) + (peek.run?.crashes ?? 0) - (peek.run?.history.length ?? 0);
  return [
    ...(forgotten > 0 ? [line`(${forgotten} earlier failures are not kept)`] : []),
    ...events.map(({ text }) => text),
    ...now(story),
  ];
}

/** What is true at this moment, and what comes next. */
function now(story: Story): readonly string[] {
  const { queue, peek, letter, letterAddress } = story;
  const { state, nowMs, dueMs, run, stub, overMs } = peek;
  const stamp = iso(overMs ?? letter?.atMs ?? nowMs);
  switch (state) {
    case 'scheduled': {
      if (dueMs === undefined) return [];
      const next = line`${iso(dueMs)}  attempt ${(run?.attempts ?? 0) + 1} is due, ${relative(dueMs, nowMs)}`;
      return [next, ...obstacle(story)];
    }
    case 'ready':
      return [line`${NOW}  ready: the next free worker takes it`];
    case 'running':
      return [
        line`${NOW}  attempt ${run?.attempts} runs on worker ${run?.owner}, token ${run?.token}`,
        ...(run?.cancelRequested
          ? [line`${NOW}  a cancel was requested: it will end cancelled and is not retried`]
          : []),
      ];
    case 'dead':
      return letterAddress === undefined
        ? [line`${stamp}  ${ending(state, stub)}; its letter was replayed or has passed its retention`]
        : [
            line`${stamp}  dead: ${letter?.reason}`,
            line`to run it again: duestream dead replay ${queue} ${letterAddress}`,
          ];
    case 'done':
    case 'cancelled':
    case 'expired':
      return [line`${stamp}  ${ending(state, stub)}`];
  }
}

/** As wide as the stamps it stands below. */
const NOW = 'now'.padEnd(24, '.');

function ending(state: OverState, stub: Stub | undefined): string {
  if (stub === undefined) return state;
  return stub.attempts === 0
    ? `${state} before it was ever started`
    : `${state} after attempt ${stub.attempts}, token ${stub.token}`;
}

/** Why a job that is due does not move. */
function obstacle({ peek: { dueMs = 0, nowMs }, led, paused }: Story): readonly string[] {
  if (paused) return ['the queue is paused'];
  if (led || dueMs > nowMs) return [];
  return ['it is overdue and no daemon leads this partition: start one with "duestream start"'];
}
