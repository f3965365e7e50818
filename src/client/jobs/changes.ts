/**
 * What a client offers to change jobs: cancel, reschedule, edit, run now. Each takes one id, a list of ids or a filter, and
 * checks what it is given before anything is sent.
 */
import { memberOf } from '../../job/codec.ts';
import { dataJson } from '../../job/data-json.ts';
import { editFields } from '../../job/fields.ts';
import { jobOptions, type OptionsOfFires, type ScheduleOptions } from '../../job/options.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { refuseRedacted } from '../../job/redaction.ts';
import type { InputOf, NameOf } from '../../job/types.ts';
import { checkNames, checkObject } from '../../kernel/checks.ts';
import { type DurationInput, durationMs, shiftMs, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { snapshot } from '../../kernel/snapshot.ts';
import type { Found } from '../../redis/read/look.ts';
import type { Calls } from '../calls/calls.ts';
import { createLevels, type DurabilityOption } from '../calls/durability.ts';
import { etagOfJob, type IfMatchOption, parseIfMatch } from '../calls/etag.ts';
import { dueOf, type PlanLimits } from '../calls/plan.ts';
import { type ClientSettings, parseAnyId } from '../calls/settings.ts';
import { checkList, checkTargetOptions, type TargetKind } from '../calls/target.ts';
import type { Claim, Turn } from '../calls/turns.ts';
import { parseCursor } from '../query/cursor.ts';
import { filterKey, type JobFilter, type ListState } from '../query/filter.ts';
import { type ChangingParts, onIds } from './act.ts';
import {
  type Asked,
  type CancelledJobs,
  type ChangedJobs,
  FILTER_OPTIONS,
  type FilterOptions,
  filterAskOf,
  type JobMove,
  type MovedJobs,
  onFilter,
} from './by-filter.ts';
import { type Cancelled, cancelBare, cancelling, foundToCancel, toCancel } from './cancel.ts';
import { type Change, type Edited, type EditTarget, editing, sealed } from './edit.ts';
import { dueAfter, type Rescheduled, type RescheduleTarget, rescheduling, seenAt } from './reschedule.ts';

/** A job in a list: its id, or with what was seen of it. */
export type JobRef = string | (IfMatchOption & { readonly id: string });

/** Which jobs a change means: one by its id, a list, or all that a filter means. */
export type JobTarget = string | readonly JobRef[] | JobFilter;

/** When a job that waits is to be due instead: `delay` from now, `at`, or a `shift` of its own due time. */
export type NewDue = Pick<ScheduleOptions, 'delay' | 'at' | 'zone'> & {
  /** So much later than it is due now, or earlier: `'1d'`, `'-1h'`, milliseconds. It is due now at the earliest. */
  readonly shift?: DurationInput | undefined;
  /** Only if that is `earlier`, or `later`, than it is due now: else it is `kept`. */
  readonly only?: 'earlier' | 'later' | undefined;
};

/** A job in a list that gets a due time of its own: with `delay`, `at` or `shift`, that of the call does not count for it. */
export type JobDue = NewDue & IfMatchOption & { readonly id: string };

type EditableOptions = OptionsOfFires & Pick<ScheduleOptions, 'expiresAt' | 'tags'>;

/** What is to be different about a job. What is left out stays; `null` takes an option back to what its queue says. */
export type JobChange<Data = unknown> = {
  readonly [Name in keyof EditableOptions]?: EditableOptions[Name] | null;
} & Pick<ScheduleOptions, 'delay' | 'at' | 'zone'> & {
    readonly data?: Data | undefined;
    readonly name?: string | undefined;
  };

/** Of a queue with `jobs`, the name is one of theirs, and the data goes with one of the names. */
export type ChangeIn<Data> = JobChange<InputOf<Data>> & { readonly name?: NameOf<Data> | undefined };

/** Options of an edit of one job. */
export interface IfDigestOption {
  /** Only if the content is still the one that `get` showed with this digest. */
  readonly ifDigest?: string | undefined;
}

/** A job in a list that gets a change of its own beside that of the call. */
export type JobEdit<Data> = ChangeIn<Data> & IfMatchOption & IfDigestOption & { readonly id: string };

/** What became of a request to run a job now. */
export interface RunNow {
  readonly id: string;
  /**
   * `due`: it is due now · `already-due`: it was, and waits for a worker · `running`, `over`, `unknown`: it does not wait,
   * nothing was changed · `changed`: it is not what `ifMatch` says, nothing was changed · `indeterminate`: the reply was
   * lost, and the job has been started, changed or has ended since.
   */
  readonly status: 'due' | 'already-due' | 'running' | 'over' | 'unknown' | 'changed' | 'indeterminate';
  readonly over?: Rescheduled['over'];
}

/** A job that a foreign producer put as a plain zset member. */
interface BareOption {
  readonly bare?: boolean | undefined;
}

type OneOptions = DurabilityOption & IfMatchOption;

/**
 * Changes of jobs. Each takes a target: one id, and has one result; a list of up to a million ids, and has their results in
 * its order; or a filter, and counts: then it goes through all jobs that the filter means, each is changed only if it is
 * still what was read, and with a `cursor` in the result there are more. Safe to start again, all but a `shift`.
 *
 * An option that makes no sense for the kind of target is refused: `ifMatch` with a filter, `dryRun` with an id. An element of
 * a list may be an object with the `id` and an `ifMatch` of its own.
 */
export interface Changes {
  /**
   * Cancels one job. With `ifMatch` it is cancelled only if it is what you have seen, else the status is `changed`.
   * `bare`: one that a foreign producer put as a plain zset member.
   *
   * @example
   * const job = await client.get(reminders, id);
   * const { status } = await client.cancel(reminders, id, { ifMatch: job?.etag });
   * if (status === 'requested') console.log('it runs right now');
   */
  cancel(queue: QueueInput<unknown>, id: string, options?: OneOptions & BareOption): Promise<Cancelled>;
  /** Cancels a list of jobs, results in their order. @example await client.cancel(reminders, ids); */
  cancel(
    queue: QueueInput<unknown>,
    ids: readonly JobRef[],
    options?: DurabilityOption & BareOption,
  ): Promise<readonly Cancelled[]>;
  /**
   * Cancels every job that the filter means, and asks those that run to stop. A job that changes meanwhile is skipped and
   * counted.
   *
   * @throws DuestreamError `bad-input`, also for a filter that says nothing
   * @example
   * const { changed, skipped } = await client.cancel(reminders, { tag: `invoice:${invoice}` });
   */
  cancel(queue: QueueInput<unknown>, filter: JobFilter, options?: FilterOptions): Promise<CancelledJobs>;
  /**
   * Another due time for a job that waits: for its time, for a retry, or for a worker. Id, attempts and history stay. A job
   * that runs, is over or unknown is not changed, and the status says so.
   *
   * A `shift` moves it from the due time that it has, and a call that is made again moves it again: pass the `etag` that you have
   * seen as `ifMatch` where that may happen. A reply that was lost within a call does not shift twice.
   *
   * @throws DuestreamError `bad-input` without `delay`, `at` and `shift`, and as `schedule` does
   * @example
   * const { status } = await client.reschedule(reminders, 'payment:42', { delay: '1d', only: 'later' });
   */
  reschedule(queue: QueueInput<unknown>, id: string, due: NewDue, options?: OneOptions): Promise<Rescheduled>;
  /**
   * One due time for a list of jobs, results in their order; an element may have its own.
   *
   * @example await client.reschedule(mail, ids, { delay: '1h' });
   */
  reschedule(
    queue: QueueInput<unknown>,
    jobs: readonly (string | JobDue)[],
    due: NewDue,
    options?: DurabilityOption,
  ): Promise<readonly Rescheduled[]>;
  /**
   * This due time for every waiting job that the filter means; those that have it already are left out. A `delay` counts
   * from the call that begins: a call that goes on from its `cursor` gives the same due time.
   *
   * A `shift` moves each of them once from the due time that it has, also over calls that go on from a `cursor`. It needs the `tag`
   * or the `set` of a filter, because a walk by due time would meet again what it has moved. It is not safe to start again: a
   * second call shifts a second time, and going on from the cursor of an error shifts again what the page under way had shifted.
   * The `moves` of a dry run are: each says when its job is due and would be, and moves it once, however often it is made.
   *
   * @example
   * await client.reschedule(mail, { tag: 'campaign:7' }, { at: '2026-03-01T09:00:00Z' });
   * const { moves } = await client.reschedule(mail, { tag: 'user:42' }, { shift: '1d' }, { dryRun: true });
   * const jobs = moves.map(({ id, dueMs, etag }) => ({ id, at: new Date(dueMs), ifMatch: etag }));
   * await client.reschedule(mail, jobs, {});
   */
  reschedule(queue: QueueInput<unknown>, filter: JobFilter, due: NewDue, options?: FilterOptions): Promise<MovedJobs>;
  /**
   * Another content for a job that waits: data, name, options, tags; with `delay` or `at` also another due time, in the same step.
   * What is not named stays, and a job that runs or is over is not changed. It is compared and set, so an edit never undoes another
   * one; with `ifMatch` it is refused (`changed`) unless the job is what you have seen, with `ifDigest` unless its content is.
   *
   * @throws DuestreamError `bad-input` for an option that there is not, or one outside its range
   * @example
   * await client.edit(reminders, 'payment:42', { data: { to: 'new@example.org' }, delay: '2d' });
   */
  edit<Data>(
    queue: QueueInput<Data>,
    id: string,
    change: ChangeIn<Data>,
    options?: OneOptions & IfDigestOption,
  ): Promise<Edited>;
  /**
   * One change for a list of jobs, results in their order; an element may have more of its own.
   *
   * @example await client.edit(mail, ids, { attempts: 1 });
   */
  edit<Data>(
    queue: QueueInput<Data>,
    jobs: readonly (string | JobEdit<Data>)[],
    change: ChangeIn<Data>,
    options?: DurabilityOption,
  ): Promise<readonly Edited[]>;
  /**
   * One change for every waiting job that the filter means. New data is checked and encoded for each job: one whose schema
   * does not take it is skipped (`refused`).
   *
   * @throws DuestreamError `bad-input`, also for data that does not fit the `name` of the filter or of the change
   * @example await client.edit(mail, { name: 'digest' }, { attempts: 2 }, { dryRun: true });
   */
  edit<Data>(
    queue: QueueInput<Data>,
    filter: JobFilter,
    change: ChangeIn<Data>,
    options?: FilterOptions,
  ): Promise<ChangedJobs>;
  /**
   * Makes a job that waits due now, also before the end of a backoff.
   *
   * @example await client.runNow(reminders, 'payment:42', { ifMatch: job.etag });
   */
  runNow(queue: QueueInput<unknown>, id: string, options?: OneOptions): Promise<RunNow>;
  /** The same for a list, results in their order. @example await client.runNow(reminders, ids); */
  runNow(queue: QueueInput<unknown>, ids: readonly JobRef[], options?: DurabilityOption): Promise<readonly RunNow[]>;
  /** The same for every scheduled job that the filter means. @example await client.runNow(mail, { tag: 'user:42' }); */
  runNow(queue: QueueInput<unknown>, filter: JobFilter, options?: FilterOptions): Promise<ChangedJobs>;
}

const DUE_NAMES = ['delay', 'at', 'zone', 'shift', 'only'];
const OPTION_NAMES: readonly string[] = editFields.map(({ name }) => name);
const TIMES = ['delay', 'at', 'zone'];
const CHANGE_NAMES = ['data', 'name', ...TIMES, ...OPTION_NAMES];
const DIGEST = /^[0-9a-f]{16}$/;
const WAITING: readonly ListState[] = ['scheduled', 'ready'];

interface Given {
  readonly queue: QueueInput<unknown>;
  readonly target: JobTarget;
  readonly options: FilterOptions & OneOptions & IfDigestOption & BareOption;
}

/** A job that the caller named, with what is for it alone; unchecked. */
interface Named extends IfMatchOption, IfDigestOption {
  readonly id: unknown;
}

/** What a verb does with what it is given. Both check their part first, and return the work that needs a connection. */
interface Calling {
  readonly owner: keyof Changes;
  /** Options of a call for one id, and for a list, beside `durability`. */
  readonly one: readonly string[];
  readonly list?: readonly string[];
  readonly states?: readonly ListState[];
  /** Calls by filter of this verb: whether they go beside each other. */
  readonly kind: Claim['kind'];
  readonly ids: (
    named: readonly Named[],
    to: { readonly queue: Queue; readonly options: Given['options'] },
  ) => (parts: ChangingParts) => Promise<readonly unknown[]>;
  readonly filter: (asked: Asked) => (parts: ChangingParts, turn?: Turn) => Promise<unknown>;
}

/** A call that was read: what it does with a connection, and what it changes. */
interface Work {
  readonly go: (parts: ChangingParts, turn?: Turn) => Promise<unknown>;
  readonly claim: Claim;
}

export function changesOf(settings: ClientSettings, { runChecked }: Pick<Calls<ChangingParts>, 'runChecked'>): Changes {
  const levelIn = createLevels(settings);
  /** The kind of the target is the only witness of the type of the result. */
  const run = (given: Given, verb: Calling) =>
    runChecked(
      () => workOf(given, verb),
      (parts, { go }, turn) => go(parts, turn),
      () => levelIn(given.options),
      ({ claim }) => [claim],
    );
  return {
    cancel: ((queue, target, options = {}) => run({ queue, target, options }, CANCEL)) as Changes['cancel'],
    reschedule: ((queue, target, due, options = {}) =>
      run({ queue, target, options }, dueCalls(snapshot(due), settings.clock.monotonicMs()))) as Changes['reschedule'],
    edit: ((queue, target, change, options = {}) =>
      run({ queue, target, options }, editCalls(change, settings, settings.clock.monotonicMs()))) as Changes['edit'],
    runNow: ((queue, target, options = {}) => run({ queue, target, options }, RUN_NOW)) as Changes['runNow'],
  };
}

/** @throws DuestreamError `bad-input` */
function workOf({ queue: given, target, options }: Given, verb: Calling): Work {
  const { owner, one, list = [], states, kind: alike } = verb;
  const kind = kindOf(target, owner);
  const names = { id: ['durability', ...one], ids: ['durability', ...list], filter: FILTER_OPTIONS };
  checkTargetOptions(options, names, { kind, owner });
  const queue = queueOf(given);
  const lane = queue.name;
  if (typeof target === 'string') {
    const { ifMatch, ifDigest } = options;
    const named = [{ id: target, ifMatch, ifDigest }];
    const work = verb.ids(named, { queue, options });
    return { go: async (parts) => onlyOne(await work(parts)), claim: { lane, ...membersOf(named, options) } };
  }
  if (!isList(target)) {
    const asked = filterAskOf({ queue, filter: target, options }, { owner, ...(states && { states }) });
    return { go: verb.filter(asked), claim: { lane, kind: alike } };
  }
  checkList(target, 'jobs');
  const named = target.map(namedOf);
  return { go: verb.ids(named, { queue, options }), claim: { lane, ...membersOf(named, options) } };
}

const membersOf = (named: readonly Named[], { bare = false }: BareOption): Pick<Claim, 'kind' | 'keys'> => ({
  kind: 'jobs',
  keys: named.map(({ id }) => memberOf(String(id), { bare })),
});

const isList = (target: JobTarget): target is readonly JobRef[] => Array.isArray(target);

function kindOf(target: unknown, owner: string): TargetKind {
  if (typeof target === 'string') return 'id';
  if (Array.isArray(target)) return 'ids';
  if (typeof target === 'object' && target !== null) return 'filter';
  throw new DuestreamError(
    'bad-input',
    `${owner} is given ${show(target)} as its target; allowed: the id of a job, a list of ids, or a filter such as { tag }`,
  );
}

function namedOf(given: JobRef, at: number): Named {
  if (typeof given === 'string') return { id: given };
  if (typeof given === 'object' && given !== null && 'id' in given) return given;
  throw new DuestreamError('bad-input', `jobs[${at}] is ${show(given)}; allowed: an id, or an object with an id`);
}

function onlyOne<T>([result]: readonly T[]): T {
  if (result === undefined) throw new Error('a call for one job was answered with none');
  return result;
}

const CANCEL: Calling = {
  owner: 'cancel',
  kind: 'cancel',
  one: ['ifMatch', 'bare'],
  list: ['bare'],
  ids(named, { queue, options: { bare = false } }) {
    const items = named.map(({ id, ...own }) => {
      checkSaid(own, ['ifMatch'], 'cancel');
      return toCancel(parseAnyId(id, bare), { bare, ifMatch: parseIfMatch(own.ifMatch) });
    });
    return async ({ finding }) => {
      if (!bare) return onIds(finding, { queue, items }, cancelling(finding));
      const results: Cancelled[] = [];
      for (const target of items) results.push(await cancelBare(finding, { queue, target }));
      return results;
    };
  },
  filter:
    (asked) =>
    ({ finding }, turn) =>
      onFilter(finding, { ...asked, turn, act: cancelling(finding), itemOf: foundToCancel, means: 'cancel' }).then(
        ({ moves: _, ...cancelled }): CancelledJobs => cancelled,
      ),
};

const RUN_NOW: Calling = {
  owner: 'runNow',
  kind: 'run-now',
  one: ['ifMatch'],
  states: ['scheduled'],
  ids(named, { queue }) {
    const items = named.map(({ id, ...own }): RescheduleTarget => {
      checkSaid(own, ['ifMatch'], 'runNow');
      return { id: parseAnyId(id, false), dueMs: 0, mode: 'earlier', ifMatch: parseIfMatch(own.ifMatch) };
    });
    return async ({ finding }) => (await onIds(finding, { queue, items }, rescheduling(finding))).map(runNowOf);
  },
  filter:
    (asked) =>
    async ({ finding }, turn) =>
      changedJobs(
        await onFilter(finding, {
          ...asked,
          turn,
          act: rescheduling(finding),
          itemOf: (found): RescheduleTarget => ({ id: found.id, found, dueMs: 0, mode: 'earlier' }),
          means: 'run now',
        }),
      ),
};

/** @param calledMs monotonic: a delay counts from then */
const dueCalls = (due: NewDue, calledMs: number): Calling => ({
  owner: 'reschedule',
  kind: 'alone',
  one: ['ifMatch'],
  states: WAITING,
  ids(named, { queue }) {
    const jobs = named.map(({ id, ifMatch, ifDigest: _, ...own }: Named & NewDue) => {
      const its = snapshot(isDue(own) ? own : { ...due, ...own });
      return { id: parseAnyId(id, false), due: its, mode: modeOf(its), ifMatch: parseIfMatch(ifMatch) };
    });
    return async ({ server, limits, finding }) => {
      await server.settle();
      const within = limits(calledMs);
      const items = jobs.map(({ due: given, ...job }) => ({ ...job, ...timeOf(given, within) }));
      return onIds(finding, { queue, items }, rescheduling(finding));
    };
  },
  filter(asked) {
    const mode = modeOf(due);
    if (due.shift !== undefined && asked.filter.tag === undefined && asked.filter.set === undefined)
      throw shiftByState();
    return (parts, turn) => rescheduleAll(parts, { asked, due, mode, calledMs, turn });
  },
});

const isDue = ({ delay, at, shift }: NewDue): boolean => (delay ?? at ?? shift) !== undefined;

/** What a job is to get. */
function timeOf(
  { shift, ...due }: NewDue,
  limits: Pick<PlanLimits, 'horizonMs' | 'nowMs'>,
): Pick<RescheduleTarget, 'dueMs' | 'shift'> {
  if (shift === undefined) return { dueMs: dueOf(due, limits) };
  return { dueMs: 0, shift: { byMs: shiftMs(shift, 'shift'), nowMs: Math.floor(limits.nowMs) } };
}

const shiftByState = () =>
  new DuestreamError(
    'bad-input',
    'shift is given with a filter that has neither tag nor set; allowed: with one of them, or with an id or a list of ids; a walk by due time would meet again what it has moved',
  );

async function rescheduleAll(
  { finding, server, limits }: ChangingParts,
  {
    asked,
    due,
    mode,
    calledMs,
    turn,
  }: {
    readonly turn: Turn | undefined;
    readonly asked: Asked;
    readonly due: NewDue;
    readonly mode: RescheduleTarget['mode'];
    readonly calledMs: number;
  },
): Promise<MovedJobs> {
  await server.settle();
  const { dueMs: askedMs, shift } = timeOf(due, limits(calledMs));
  const { nowMs } = limits(calledMs);
  if (shift) {
    const itemOf = (found: Found): RescheduleTarget => ({ id: found.id, found, dueMs: 0, mode, shift });
    const moveOf = moveBy(itemOf, nowMs);
    const means = ['shift', shift.byMs];
    return movedJobs(await onFilter(finding, { ...asked, turn, act: rescheduling(finding), itemOf, moveOf, means }));
  }
  // Of a delay the call that began has made an instant.
  const means = ['reschedule', mode, due.delay === undefined ? askedMs : durationMs(due.delay, 'delay'), due.zone];
  const { cursor, filter } = asked;
  const begun = cursor === undefined ? undefined : parseCursor(cursor, filterKey(filter, means)).dueMs;
  const dueMs = begun ?? askedMs;
  const itemOf = (found: Found): RescheduleTarget => ({ id: found.id, found, dueMs, mode });
  const moveOf = moveBy(itemOf, nowMs);
  const isDone = (job: Found) => job.dueMs === dueMs;
  return movedJobs(
    await onFilter(finding, { ...asked, turn, act: rescheduling(finding), itemOf, moveOf, means, dueMs, isDone }),
  );
}

/** Where a job went, or would go. */
const moveBy =
  (itemOf: (found: Found) => RescheduleTarget, nowMs: number) =>
  (found: Found, result: Rescheduled | undefined): JobMove | undefined => {
    const dueMs = result ? result.dueMs : dueAfter(itemOf(found), found, Math.floor(nowMs));
    if (dueMs === undefined) return undefined;
    const { id, state, seen } = found;
    const wasMs = state === 'ready' ? undefined : found.dueMs;
    return { id, wasMs, dueMs, etag: etagOfJob(result ? seenAt(seen, dueMs) : seen) };
  };

const editCalls = (
  change: JobChange,
  { dataBytesMax }: Pick<ClientSettings, 'dataBytesMax'>,
  calledMs: number,
): Calling => ({
  owner: 'edit',
  kind: 'alone',
  one: ['ifMatch', 'ifDigest'],
  states: WAITING,
  ids(named, { queue }) {
    const items = named.map(({ id, ifMatch, ifDigest, ...own }: Named & JobChange) => ({
      id: parseAnyId(id, false),
      change: checkedChange({ ...change, ...own }, { queue, dataBytesMax }),
      due: dueIn(isDue(own) ? own : { ...change, ...own }),
      ifDigest: parseDigest(ifDigest),
      ifMatch: parseIfMatch(ifMatch),
    }));
    return async ({ finding, server, limits }) => {
      if (items.some(({ due }) => due)) await server.settle();
      const within = limits(calledMs);
      const dated = items.map(({ due, ...item }): EditTarget => (due ? { ...item, dueMs: dueOf(due, within) } : item));
      return onIds(finding, { queue, items: dated }, editing(finding, queue));
    };
  },
  filter(asked) {
    const { queue, filter } = asked;
    if (dueIn(change)) throw dueByFilter();
    const checked = checkedChange(change, { queue, dataBytesMax });
    return async ({ finding }, turn) => {
      // Said before anything is read, where all the jobs will have one name.
      const name = checked.name ?? filter.name;
      if (name !== undefined) await sealed(queue, name, checked);
      const done = await onFilter(finding, {
        ...asked,
        turn,
        act: editing(finding, queue),
        itemOf: (found) => ({ id: found.id, found, change: checked }),
        means: ['edit', checked],
      });
      return changedJobs(done);
    };
  },
});

/** The times that a change says; undefined: the due time stays. */
function dueIn({ delay, at, zone }: JobChange): NewDue | undefined {
  if (delay === undefined && at === undefined && zone === undefined) return undefined;
  return snapshot({ delay, at, zone });
}

const dueByFilter = () =>
  new DuestreamError(
    'bad-input',
    'edit is given a due time with a filter; allowed: with an id or a list of ids, or reschedule with the same filter',
  );

/** Only a cancel asks jobs to stop, and only another due time moves them. */
function changedJobs({ requested: _, moves: _moves, ...changed }: CancelledJobs & MovedJobs): ChangedJobs {
  return changed;
}

function movedJobs({ requested: _, ...moved }: CancelledJobs & MovedJobs): MovedJobs {
  return moved;
}

/** An option that is undefined counts as not given. @throws DuestreamError `bad-input` */
function checkSaid(given: object, known: readonly string[], owner: string): void {
  const said = Object.entries(checkObject(given, owner, 'bad-input')).filter(([, value]) => value !== undefined);
  checkNames(Object.fromEntries(said), known, owner, 'bad-input');
}

/** @throws DuestreamError `bad-input` */
function modeOf(due: NewDue): RescheduleTarget['mode'] {
  checkSaid(due, DUE_NAMES, 'reschedule');
  const { only, shift } = due;
  if (!isDue(due)) {
    throw new DuestreamError(
      'bad-input',
      'neither delay nor at is given; allowed: one of them, a shift, or runNow to run it now',
    );
  }
  if (shift !== undefined) {
    shiftMs(shift, 'shift');
    const other = DUE_NAMES.find((name) => name !== 'shift' && Reflect.get(due, name) !== undefined);
    if (other === undefined) return 'any';
    throw new DuestreamError('bad-input', `shift is given together with ${other}; allowed: shift alone`);
  }
  if (only === undefined) return 'any';
  if (only === 'earlier' || only === 'later') return only;
  throw new DuestreamError('bad-input', `only is ${show(only)}; allowed: earlier, later`);
}

/** @throws DuestreamError `bad-input` */
function checkedChange(
  change: JobChange,
  { queue, dataBytesMax }: { readonly queue: Queue; readonly dataBytesMax: number },
): Change {
  checkSaid(change, CHANGE_NAMES, 'edit');
  const { name, data, delay: _, at: __, zone: ___, ...options } = change;
  if (!CHANGE_NAMES.some((one) => Reflect.get(change, one) !== undefined)) {
    const allowed = CHANGE_NAMES.join(', ');
    throw new DuestreamError('bad-input', `nothing is to be different; allowed: at least one of ${allowed}`);
  }
  const hasData = data !== undefined;
  if (queue.jobs && name !== undefined && !hasData) throw nameAlone(name, queue.name);
  const json = hasData ? dataJson(data) : 'null';
  checkBytes(json, dataBytesMax);
  refuseRedacted(data, queue.redact);
  return {
    ...(name === undefined ? {} : { name: jobOptions.name.check(name, 'name') }),
    hasData,
    data: hasData ? JSON.parse(json) : undefined,
    options: snapshot(checkedOptions(options)),
  };
}

/** @throws DuestreamError `bad-input` */
function parseDigest(input: unknown): string | undefined {
  if (input === undefined || (typeof input === 'string' && DIGEST.test(input))) return input;
  throw new DuestreamError('bad-input', `ifDigest is ${show(input)}; allowed: the digest that get shows`);
}

const nameAlone = (name: string, queue: string): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `name is ${show(name)} without data; allowed: both, because queue ${queue} checks the data of each name`,
  );

/** What is wrong with an option is said before anything is read. Only an expiry depends on the due time of the job. */
function checkedOptions(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  for (const { name, option } of editFields) {
    const given = options[name];
    if (given !== undefined && given !== null) option.check(given, name);
  }
  return options;
}

function checkBytes(json: string, max: number): void {
  const bytes = Buffer.byteLength(json);
  if (bytes <= max) return;
  throw new DuestreamError(
    'bad-input',
    `data is ${bytes} bytes of JSON; allowed: ${max} bytes; store it elsewhere and put a reference to it into the job`,
  );
}

function runNowOf({ id, status, over }: Rescheduled): RunNow {
  if (status === 'rescheduled') return { id, status: 'due' };
  if (status === 'ready' || status === 'already' || status === 'kept') return { id, status: 'already-due' };
  return { id, status, ...(over === undefined ? {} : { over }) };
}
