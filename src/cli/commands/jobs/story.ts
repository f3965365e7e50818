/** The story of one job as lines: what it is, what happened to it in order of time, and what comes next. */

import { contentOf } from '../../../inspect/dead-letters.ts';
import type { Tombstone } from '../../../job/codec.ts';
import type { Attempted, Deferred } from '../../../job/outcome.ts';
import { isEndOf, type PastJob } from '../../../job/past.ts';
import { digestOf } from '../../../job/record-header.ts';
import type { Redaction } from '../../../job/redaction.ts';
import type { OverState } from '../../../job/state.ts';
import { counted, span } from '../../../kernel/humanize.ts';
import type { DeadLetter, Peek } from '../../../redis/read/inspect.ts';
import { fields, json, line, stackLines } from '../../terminal/text.ts';
import { iso, relative } from '../../terminal/when.ts';
import { earlierLines, resultText, startLines } from './past-story.ts';

type Content = ReturnType<typeof contentOf>;

export interface Story {
  readonly id: string;
  readonly bare: boolean;
  readonly queue: string;
  readonly partition: number;
  readonly peek: Peek;
  /** The dead letter of a dead job, if it is still there. */
  readonly deadLetter: DeadLetter | undefined;
  readonly deadLetterAddress: string | undefined;
  /** How it ended, and earlier lives of its id, the latest first, if the queue keeps a history. */
  readonly past: readonly PastJob[];
  /** Fields of its data that are not shown. */
  readonly redact: Redaction | undefined;
  /** Whether the partition has a leader that promotes. */
  readonly led: boolean;
  readonly paused: boolean;
}

/** What a program needs to know; the same facts as the lines. */
export function storyValue(story: Story): object {
  const { id, bare, queue, partition, peek, deadLetter, deadLetterAddress, past } = story;
  const end = endOf(story);
  const record = peek.record ?? deadLetter?.record;
  const { readable, askedDueMs, name, data, headers, codec, options } = contentOf(record, story.redact);
  const { run, tombstone } = peek;
  return {
    id,
    bare,
    queue,
    partition,
    state: peek.state,
    readable,
    name: name ?? end?.name,
    data,
    headers,
    codec,
    options,
    digest: peek.record === undefined ? undefined : digestOf(peek.record),
    askedDueMs: askedDueMs ?? tombstone?.askedDueMs,
    dueMs: peek.dueMs,
    attempts: run?.attempts ?? deadLetter?.attempts ?? tombstone?.attempts ?? 0,
    failures: run?.failures ?? end?.failures ?? deadLetter?.failures ?? 0,
    crashes: run?.crashes ?? end?.crashes ?? deadLetter?.crashes ?? 0,
    generation: run?.generation ?? deadLetter?.generation ?? 0,
    token: startedToken(run?.token ?? tombstone?.token),
    owner: run?.owner ?? end?.owner,
    entry: run?.entry,
    cancelRequested: run?.cancelRequested ?? false,
    history: run?.history ?? end?.history ?? deadLetter?.history ?? [],
    deferred: (run ?? end ?? deadLetter)?.deferred,
    overMs: peek.overMs ?? deadLetter?.atMs,
    deadLetter: deadLetterAddress,
    reason: deadLetter?.reason,
    past,
    nowMs: peek.nowMs,
  };
}

/** The record of the end that the tombstone tells of. */
export function endOf({ peek: { tombstone }, past: [end] }: Story): PastJob | undefined {
  return tombstone && isEndOf(end, tombstone) ? end : undefined;
}

export function storyLines(story: Story): readonly string[] {
  const { id, bare, queue, partition, peek, deadLetter } = story;
  const record = peek.record ?? deadLetter?.record;
  const content = contentOf(record, story.redact);
  const end = endOf(story);
  return [
    ...jobFields({
      id,
      bare,
      queue,
      partition,
      content: content.readable ? content : remembered(content, end),
      record: peek.tombstone && !deadLetter ? undefined : record,
    }),
    ...fields([
      ['deferred', deferredText((peek.run ?? end ?? deadLetter)?.deferred)],
      ['result', end && resultText(end.result)],
      ['state', stateText(story)],
    ]),
    '',
    ...earlierLines(story.past.slice(end ? 1 : 0)),
    ...timeline(story, content),
  ];
}

/** A tombstone knows neither name nor tags; the record of the same end does. */
function remembered(content: Content, end: PastJob | undefined): Content {
  if (!end) return content;
  return { ...content, ...(end.name !== undefined && { name: end.name }), options: { tags: end.tags } };
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
    ['headers', content.headers && json(content.headers)],
    ...optionTexts(content.options ?? {}),
  ]);
}

type Options = NonNullable<Content['options']>;

/** What this one job was told. The compiler asks for the words of an option that is new. */
function optionTexts(options: Options): readonly (readonly [string, string | undefined])[] {
  const { attempts, timeoutMs, backoff, expiresAtMs, maxLatenessMs, onLate, tags } = options;
  const ending = { drop: 'it is dropped', dead: 'it becomes a dead letter', run: 'it runs anyway' }[onLate ?? 'drop'];
  const texts: Readonly<Record<keyof Options, readonly [string, string | undefined]>> = {
    tags: ['tags', tags?.length ? tags.join(', ') : undefined],
    attempts: ['budget', attempts === undefined ? undefined : `${attempts} attempts`],
    timeoutMs: ['timeout', timeoutMs === undefined ? undefined : span(timeoutMs)],
    backoff: ['backoff', backoff === undefined ? undefined : json(backoff)],
    expiresAtMs: ['expires', expiresAtMs === undefined ? undefined : `${iso(expiresAtMs)}, then ${ending}`],
    maxLatenessMs: [
      'lateness',
      maxLatenessMs === undefined ? undefined : `at most ${span(maxLatenessMs)}, then ${ending}`,
    ],
    // Said with the two above.
    onLate: ['late', undefined],
  };
  return Object.values(texts);
}

function dataText({ readable, data, codec, isHidden }: Content, record: string | undefined): string | undefined {
  if (readable && codec !== undefined) return `${json(data)}, encoded by ${json(codec)}`;
  if (readable) return data === undefined ? undefined : json(data);
  if (record === undefined) return undefined;
  if (isHidden) return 'unreadable, and not shown because its queue redacts data';
  return record === '' ? 'the record is missing' : `unreadable: ${record.slice(0, 200)}`;
}

/** Token 0 stands for "not started yet". */
const startedToken = (token: string | undefined) => (token === '0' ? undefined : token);

/** How often a handler put its job aside. */
export const deferredText = (deferred: Deferred | undefined): string | undefined =>
  deferred &&
  `put aside ${counted(deferred.times, 'time')}, last because: ${deferred.reason} (${iso(deferred.lastMs)})`;

/** One error of a history, and below it where it was thrown. */
export function attemptLines({ atMs, attempt, kind, message, stack, worker, tookMs }: Attempted): readonly string[] {
  const what = { failure: 'failed', timeout: 'timed out', crash: 'lost its worker', refused: 'was refused' }[kind];
  const ran = worker === undefined || tookMs === undefined ? '' : ` after ${span(tookMs)} on worker ${worker}`;
  return [line`${iso(atMs)}  attempt ${attempt} ${what}${ran}: ${message}`, ...stackLines(stack)];
}

function stateText({ peek: { state, dueMs, run, nowMs } }: Story): string {
  if (state === 'scheduled' && dueMs !== undefined) return `scheduled, due ${relative(dueMs, nowMs)}`;
  if (state === 'running' && run?.cancelRequested) return 'running, asked to stop';
  return state;
}

function timeline(story: Story, content: Content): readonly string[] {
  const { peek, deadLetter } = story;
  const askedDueMs = content.askedDueMs ?? peek.tombstone?.askedDueMs ?? peek.dueMs;
  const end = endOf(story);
  const history = peek.run?.history ?? end?.history ?? deadLetter?.history ?? [];
  const asked = { atMs: askedDueMs ?? 0, text: line`${iso(askedDueMs ?? 0)}  the due time that was asked for` };
  const attempts = history.flatMap((one) => attemptLines(one).map((text) => ({ atMs: one.atMs, text })));
  const started = end ? startLines(end) : [];
  const events = askedDueMs === undefined ? [...attempts, ...started] : [asked, ...attempts, ...started];
  events.sort((a, b) => a.atMs - b.atMs);
  const known = peek.run ?? end ?? deadLetter;
  const forgotten = (known?.failures ?? 0) + (known?.crashes ?? 0) - (known?.history.length ?? 0);
  return [
    ...(forgotten > 0 ? [line`(${forgotten} earlier failures are not kept)`] : []),
    ...events.map(({ text }) => text),
    ...now(story),
  ];
}

/** What is true at this moment, and what comes next. */
function now(story: Story): readonly string[] {
  const { queue, peek, deadLetter, deadLetterAddress } = story;
  const { state, nowMs, dueMs, run, tombstone, overMs } = peek;
  const stamp = iso(overMs ?? deadLetter?.atMs ?? nowMs);
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
      return deadLetterAddress === undefined
        ? [line`${stamp}  ${ending(state, tombstone)}; its dead letter was replayed or has passed its retention`]
        : [
            line`${stamp}  dead: ${deadLetter?.reason}`,
            line`to run it again: duestream dead replay ${queue} ${deadLetterAddress}`,
          ];
    case 'done':
    case 'cancelled':
    case 'expired':
      return [line`${stamp}  ${ending(state, tombstone)}`];
  }
}

/** As wide as the stamps it stands below. */
const NOW = 'now'.padEnd(24, '.');

function ending(state: OverState, tombstone: Tombstone | undefined): string {
  if (tombstone === undefined) return state;
  return tombstone.attempts === 0
    ? `${state} before it was ever started`
    : `${state} after attempt ${tombstone.attempts}, token ${tombstone.token}`;
}

/** Why a job that is due does not move. */
function obstacle({ peek: { dueMs = 0, nowMs }, led, paused }: Story): readonly string[] {
  if (paused) return ['the queue is paused'];
  if (led || dueMs > nowMs) return [];
  return ['it is overdue and no daemon leads this partition: start one with "duestream start"'];
}
