/**
 * A small partition in memory: what the design says Redis holds. The verbs in `model-verbs.ts` and `model-worker.ts`
 * say what each call replies and changes, a job at a time and in plain words; `render` says what must then be stored,
 * to the byte. It knows nothing of keys and of the order of writes.
 *
 * Two things only Redis can choose, ids of entries and tokens, are taken from it and checked to grow.
 */
import { createHash } from 'node:crypto';
import { seenText } from '../../src/redis/scripts/edits.ts';
import { type Snapshot, tagEntries } from './invariants.ts';

export interface Entry {
  id?: string;
  readonly member: string;
  readonly due: number;
  delivered: boolean;
  /** Nobody has touched it for longer than any lease. */
  idle?: boolean;
  holder?: string | undefined;
}

export interface DeadLetter {
  id?: string;
  readonly member: string;
  readonly record: string;
  readonly reason: string;
  readonly history: readonly string[];
  readonly token: string;
  readonly attempts: number;
  readonly generation: number;
  readonly failures: number;
  readonly crashes: number;
}

export interface Tombstone {
  readonly outcome: 'd' | 'c' | 'e' | 'x';
  readonly asked: string;
  readonly digest: string;
  readonly token: string;
  readonly attempts: number;
  readonly deadLetter?: DeadLetter | undefined;
}

export interface Run {
  token: string;
  generation: number;
  attempts: number;
  failures: number;
  crashes: number;
  entry?: Entry | undefined;
  owner?: string | undefined;
  next?: number | undefined;
  cancel: boolean;
  /** Newer data of a debounced job came since its start. */
  again?: boolean;
  /** Somebody waits for the end of the job. */
  waited?: boolean;
  history: string[];
  /** How far it is, as the line that Redis keeps; it goes with the next error. */
  progress?: string | undefined;
  /** How often it was put aside, and the last reason. */
  deferred?: { readonly times: number; readonly why: string } | undefined;
}

/** A member has a record or a tombstone or neither; the rest says where it is. */
export interface Job {
  record?: string | undefined;
  tombstone?: Tombstone | undefined;
  due?: number | undefined;
  overMs?: number | undefined;
  run?: Run | undefined;
}

export interface Model {
  nowMs: number;
  readonly jobs: Map<string, Job>;
  entries: Entry[];
  deadLetters: DeadLetter[];
  /** The stream exists, and its group. */
  stream: boolean;
  group: boolean;
  /** Somebody destroyed the group once. */
  regrouped: boolean;
  leader?: { term: string; sane: boolean } | undefined;
  epoch?: number | undefined;
  wake?: number | undefined;
  paused?: string | undefined;
  /** A producer that had read the registry just now has written the generation. */
  declared?: boolean;
  lastToken: number;
  /** A counter is absent until it was counted. */
  readonly counters: Map<string, number>;
  /** Members of which an entry may be left in ready, and when that began. */
  readonly stale: Map<string, number>;
  /** The youngest end that went because of their number, and when. */
  evicted?: { readonly ageMs: number; readonly atMs: number } | undefined;
  /** What its queue may hold, and what was counted of it. */
  quota?: { readonly pending: number; readonly bytes: number } | undefined;
  held?: { readonly weight: number; readonly count: number } | undefined;
  /** Tags that are closed. */
  closed: Map<string, { readonly untilMs: number; readonly text: string }>;
  /** `meta` says that there may be some. */
  isClosing: boolean;
  readonly nudges: string[];
  /** What was told to those who wait for ends. */
  readonly told: string[];
  /** Effects of commits. */
  effects: number;
}

export const MAX_MS = 9_007_199_254_740_991;

export function createModel(nowMs: number): Model {
  const empty = { jobs: new Map(), entries: [], deadLetters: [], counters: new Map(), stale: new Map() };
  return {
    nowMs,
    ...empty,
    nudges: [],
    told: [],
    stream: false,
    group: false,
    regrouped: false,
    lastToken: 0,
    effects: 0,
    closed: new Map(),
    isClosing: false,
  };
}

export function jobOf(model: Model, member: string): Job {
  const job = model.jobs.get(member) ?? {};
  model.jobs.set(member, job);
  return job;
}

export function count(model: Model, name: string, by = 1): void {
  if (by > 0) model.counters.set(name, (model.counters.get(name) ?? 0) + by);
}

const notesOf = ({ stale }: Model, member: string): number =>
  [...stale.keys()].filter((name) => name.split('\0')[0] === member).length;
const nameOf = (member: string, nth: number): string => (nth === 1 ? member : `${member}\0${nth}`);

/** An entry of the member stays in ready, and stands for no job any more. */
export function noteStale(model: Model, member: string): void {
  model.stale.set(nameOf(member, notesOf(model, member) + 1), model.nowMs);
  model.stale.set(member, model.nowMs);
}

/** Such an entry leaves ready. */
export const dropNote = (model: Model, member: string): boolean =>
  model.stale.delete(nameOf(member, notesOf(model, member)));

/** A job that is due sooner than the leader will look wakes it. */
export function nudge(model: Model, due: number): void {
  if (model.wake === undefined || due >= model.wake) return;
  model.wake = due;
  model.nudges.push(String(due));
}

/** A job has ended, which its run knows that somebody waits for. */
export function tellEnd(model: Model, job: Job, { outcome, token }: Pick<Tombstone, 'outcome' | 'token'>): void {
  if (!job.run?.waited) return;
  const [member] = [...model.jobs].find(([, one]) => one === job) ?? [];
  model.told.push(`${outcome} ${token} ${member}`);
}

/** All that there is to see of a job, or something else where `wrong` says of which. */
export function seenOf(model: Model, member: string, wrong: 'digest' | 'token' | 'place' | 'nothing'): string {
  const { record, run, due } = jobOf(model, member);
  const place = run?.owner === undefined ? (due === undefined ? 'ready' : String(due)) : 'running';
  return seenText({
    digest: wrong === 'digest' ? '0123456789abcdef' : record === undefined ? '-' : digestOf(record),
    token: wrong === 'token' ? '77' : (run?.token ?? '0'),
    place: wrong === 'place' ? '5' : place,
  }).replace('Infinity', 'inf');
}

export const askedOf = (record: string): string => /^\d(\w+)/.exec(record)?.[1] ?? '0';
export const digestOf = (record: string): string => createHash('sha1').update(record).digest('hex').slice(0, 16);

/** The asked due and the digest of the call that made a job; after an edit they stand in the header. */
export function markOf(record: string): { readonly asked: string; readonly digest: string } {
  const [, asked, digest] = /^1\w+;[^|]*?m=(\w+)\.(\w+)/.exec(record) ?? [];
  return { asked: asked ?? askedOf(record), digest: digest ?? digestOf(record) };
}

export function tombstoneOf(job: Job, outcome: Tombstone['outcome'], deadLetter?: DeadLetter): Tombstone {
  const { run, record = '' } = job;
  return {
    outcome,
    ...markOf(record),
    token: run?.token ?? '0',
    attempts: run?.attempts ?? 0,
    deadLetter,
  };
}

export function isLate(
  { record = '', run }: Pick<Job, 'record' | 'run'>,
  { due, nowMs }: { readonly due: number; readonly nowMs: number },
): boolean {
  const [, asked = '0', header = ''] = /^1(\w+)(;[^|]*)\|/.exec(record) ?? [];
  const value = (letter: string) => Number.parseInt(new RegExp(`;${letter}=(\\w+)`).exec(header)?.[1] ?? '', 36);
  if (header.includes(';p=r')) return false;
  // The due of the job counts, not that of an entry, which may be an older one; a start cut off by a crash was in time.
  const since = run?.next ?? (asked === '0' ? due : Number.parseInt(asked, 36));
  return nowMs > value('e') || (!run?.entry && nowMs - since > value('l'));
}

/** Names what Redis has just named: entries and dead letters stand in the order in which they were added. */
export function bind(model: Model, snapshot: Snapshot): void {
  for (const [at, entry] of model.entries.entries()) entry.id ??= snapshot.ready[at]?.entry ?? '?';
  for (const [at, deadLetter] of model.deadLetters.entries()) deadLetter.id ??= snapshot.dead[at]?.deadLetter ?? '?';
}

/** What is stored, in a form in which model and Redis can be compared. */
export interface Stored {
  readonly [part: string]: unknown;
}

export function render(model: Model): Stored {
  const each = <T>(pick: (job: Job) => T | undefined) =>
    sorted([...model.jobs].flatMap(([member, job]) => pairOf(member, pick(job))));
  const meta = [...model.counters].map(([name, value]) => [`n.${name}`, String(value)] as const);
  return {
    scheduled: each((job) => job.due),
    jobs: each((job) => job.record ?? (job.tombstone && tombstoneText(job.tombstone))),
    runs: each((job) => job.run && runText(job.run)),
    done: each((job) => job.overMs),
    stale: sorted([...model.stale]),
    tags: tagEntries([...model.jobs].flatMap(([member, { record }]) => (record ? [[member, record]] : []))).toSorted(),
    closed: sorted([...model.closed].map(([tag, { untilMs }]) => [tag, untilMs] as const)),
    why: sorted([...model.closed].map(([tag, { text }]) => [tag, text] as const)),
    ready: model.entries.map(({ id, member, due, holder = '' }) => [id, member, due, holder]),
    dead: model.deadLetters.map(deadLetterFields),
    group: model.group,
    leader: model.leader?.term ?? '',
    meta: sorted([
      ...meta,
      ...(model.declared ? ([['generation', '0']] as const) : []),
      ...pairOf('wake', model.wake?.toFixed(0)),
      ...pairOf('paused', model.paused),
      ...pairOf('closed', model.isClosing ? '1' : undefined),
      ...pairOf('quota', model.quota && `${model.quota.pending} ${model.quota.bytes}`),
      ...pairOf('held', model.held && `${model.held.weight} ${model.held.count}`),
      ...pairOf('evicted', model.evicted && `${model.evicted.ageMs} ${model.evicted.atMs}`),
      ...pairOf('epoch', model.epoch?.toFixed(0)),
      ...pairOf('schema', model.epoch && '1'),
    ]),
  };
}

export function stored(snapshot: Snapshot): Stored {
  return {
    scheduled: sorted([...snapshot.scheduled]),
    jobs: sorted([...snapshot.jobs]),
    runs: sorted([...snapshot.runs]),
    done: sorted([...snapshot.done]),
    stale: sorted([...snapshot.stale]),
    tags: snapshot.tags.toSorted(),
    closed: sorted([...snapshot.closed]),
    why: sorted([...snapshot.why]),
    ready: snapshot.ready.map(({ entry, member, due }) => [entry, member, due, snapshot.pending.get(entry) ?? '']),
    dead: snapshot.dead.map(({ deadLetter, fields }) => [deadLetter, ...LETTER.map((name) => fields.get(name) ?? '')]),
    group: snapshot.delivered !== undefined,
    leader: snapshot.leader,
    // The last token is checked to grow and to cover all that were given: I7.
    meta: sorted([...snapshot.meta].filter(([name]) => name !== 'token')),
  };
}

const LETTER = ['member', 'record', 'reason', 'history', 'token', 'attempts', 'generation', 'failures', 'crashes'];

function deadLetterFields({
  id,
  member,
  record,
  reason,
  history,
  token,
  attempts,
  generation,
  failures,
  crashes,
}: DeadLetter): readonly unknown[] {
  const counts = [attempts, generation, failures, crashes].map(String);
  return [id, member, record, reason, history.join('\n'), token, ...counts];
}

export function tombstoneText({ outcome, asked, digest, token, attempts, deadLetter }: Tombstone): string {
  return `.${outcome}${asked} ${digest} ${token} ${attempts} ${deadLetter?.id ?? '-'}`;
}

export function runText(run: Run): string {
  const { token, generation, attempts, failures, crashes, entry, owner = '-', next = '-', cancel, again, waited } = run;
  const bits = (cancel ? 1 : 0) + (again ? 2 : 0) + (waited ? 4 : 0);
  const head = [token, generation, attempts, failures, crashes, entry?.id ?? '-', owner, next, bits];
  return [head.join(' '), ...linesOf(run)].join('\n');
}

/** The history of a run, with what comes before its errors and behind them. */
export const linesOf = ({
  deferred,
  history,
  progress,
}: Pick<Run, 'deferred' | 'history' | 'progress'>): readonly string[] => [
  ...(deferred ? [`~${deferred.times} ${deferred.why}`] : []),
  ...history,
  ...(progress === undefined ? [] : [progress]),
];

function pairOf<T>(name: string, value: T | undefined): readonly (readonly [string, T])[] {
  return value === undefined ? [] : [[name, value]];
}

function sorted<T>(pairs: readonly (readonly [string, T])[]): readonly (readonly [string, T])[] {
  return [...pairs].sort(([one], [other]) => (one < other ? -1 : 1));
}
