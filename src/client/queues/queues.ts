/** Queues as an application, a command or an admin page looks at them and changes them: `client.queues`. */
import { type QueueInput, queueOf } from '../../job/queue.ts';
import {
  fieldsOfWord,
  parseSettings,
  type QueueSettingName,
  type QueueSettingOptions,
  settingWords,
} from '../../job/queue-settings.ts';
import { checkNames, hintOf, wholeNumber } from '../../kernel/checks.ts';
import type { Clock } from '../../kernel/clock.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { UnreadQueue } from '../../redis/read/each-queue.ts';
import { stats } from '../../redis/read/inspect.ts';
import { setQueue, unsetQueue } from '../../redis/scripts/queues.ts';
import { lettingGo, type Pause, type PauseReply, pause, resume } from '../../redis/scripts/upkeep.ts';
import type { Calls } from '../calls/calls.ts';
import { createRepeating } from '../calls/retry.ts';
import type { ClientSettings } from '../calls/settings.ts';
import type { Claim } from '../calls/turns.ts';
import { type CloseOptions, type Closing, closeIn, notGated, parseClosing, parseOpening } from '../groups/rules.ts';
import { type At, type Namespaced, refsOfQueue } from './refs.ts';
import { type QueueRemoved, removeQueue } from './remove.ts';
import {
  type ByOption,
  byIn,
  changeSettings,
  overridingOf,
  type QueueSettingsChange,
  type SettingReason,
} from './settings.ts';
import { type QueueCounts, type QueueReport, queueCounts, queueReport } from './stats.ts';
import { type Why, whyNothingMoves } from './why.ts';

export type { ByOption, QueueCounts, QueueRemoved, QueueReport, QueueSettingsChange, SettingReason, Why };

/** Every queue that was ever used. */
export interface QueueList {
  readonly queues: readonly QueueCounts[];
  /** Queues that could not be read: a node does not answer, or a key is damaged. */
  readonly unread: readonly UnreadQueue[];
}

/** What became of a call that closes or opens a queue. */
export interface QueueChange {
  /** `same`: it was so already, or the queue is closed for longer. */
  readonly status: 'changed' | 'same';
}

/** What became of a call that resumes a queue. */
export interface QueueResumed extends QueueChange {
  /** The pause that has ended; undefined: the queue was not paused. */
  readonly pause: Pause | undefined;
}

/** What became of a call that pauses a queue. */
export interface QueuePaused extends QueueChange {
  /** The pause that holds. */
  readonly pause: Pause | undefined;
  /** Jobs that run and go on to their end. */
  readonly running: number;
}

/**
 * The queues of a namespace: `client.queues`. All methods reject with a `DuestreamError`: `bad-input` before anything is sent ·
 * `not-found` for a queue that nobody has used · `unavailable` or `indeterminate` in an outage, when the same call may be
 * repeated · `wrong-schema` for a namespace of another layout. What changes a queue is in the audit, with the user of this process.
 */
export interface Queues {
  /**
   * Every queue by name, or those that are named: how many jobs it holds in each state, for how long they have waited, who
   * serves it and who leads it.
   *
   * @example
   * for (const { queue, scheduled, dead } of (await client.queues.list()).queues) console.log(queue, scheduled, dead);
   */
  list(options?: { readonly queues?: readonly string[] | undefined }): Promise<QueueList>;
  /**
   * One queue: its counts per state and partition, what happened so far, who leads it, what comes due when, and its settings.
   *
   * @example
   * const { scheduled, running, settings, pause } = await client.queues.get(emails);
   */
  get(queue: QueueInput<unknown>): Promise<QueueReport>;
  /**
   * Changes settings of a queue; what is left out stays, and `false` means no limit. What is said holds until `unset`, whatever
   * definitions say. Limits hold when the call returns; all processes follow the rest within half a minute.
   *
   * @example await client.queues.set('mail', { rate: '10/s', maxPending: 100_000 }, { reason: 'the provider asks for it' });
   */
  set(queue: QueueInput<unknown>, settings: QueueSettingOptions, options?: SettingReason): Promise<QueueSettingsChange>;
  /**
   * Takes settings back that were set by a call, so that what definitions say counts again. `stored`: also what definitions
   * have said is forgotten, until a process says it again.
   *
   * @example await client.queues.unset('mail', ['rate', 'maxPending'], { reason: 'the provider has recovered' });
   */
  unset(
    queue: QueueInput<unknown>,
    setting: QueueSettingName | readonly QueueSettingName[],
    options?: SettingReason & { readonly stored?: boolean | undefined },
  ): Promise<QueueSettingsChange>;
  /**
   * Pauses a queue: no job of it starts until `resume`. Running jobs go on, and what is scheduled meanwhile waits. A second
   * pause keeps the first one's reason.
   *
   * @example
   * const { running } = await client.queues.pause('mail', { reason: 'the mail server moves' });
   */
  pause(queue: QueueInput<unknown>, options?: SettingReason): Promise<QueuePaused>;
  /** Resumes a paused queue at once. */
  resume(queue: QueueInput<unknown>, options?: ByOption): Promise<QueueResumed>;
  /**
   * Lets no job of a queue with limits through for some time. Jobs that were let through before start all the same. The longest
   * closing wins.
   *
   * @throws DuestreamError `bad-input`, also for a queue that is not gated
   * @example await client.queues.close('calls', { for: '10m', reason: 'the provider is down' });
   */
  close(queue: QueueInput<unknown>, options: CloseOptions): Promise<QueueChange>;
  /** The closing ends now. @throws DuestreamError `bad-input`, also for a queue that is not gated */
  open(queue: QueueInput<unknown>, options?: ByOption): Promise<QueueChange>;
  /**
   * Says why jobs of a queue wait, if any do, and what to do about it.
   *
   * @param options.readyMax at how many ready jobs leaders stop to promote: `mover.readyMax` of the daemons. Default 10,000
   * @example
   * for (const { code, text, advice } of (await client.queues.why('mail')).reasons) console.log(code, text, advice);
   */
  why(queue: QueueInput<unknown>, options?: { readonly readyMax?: number | undefined }): Promise<Why>;
  /**
   * Removes a queue with all its keys. One that holds jobs or dead letters, is served by a living worker or has schedules is
   * refused, unless `force` says that these go too. A queue in which jobs or schedules appear meanwhile is kept with those.
   *
   * @throws DuestreamError `failed` for a queue that is in use
   * @example
   * const { isRemoved } = await client.queues.remove('old-mail', { force: true });
   */
  remove(queue: QueueInput<unknown>, options?: { readonly force?: boolean | undefined }): Promise<QueueRemoved>;
}

type Calling = <Ask, T>(
  what: string,
  read: () => Ask,
  work: (at: At, ask: Ask) => Promise<T>,
  claimsOf?: (ask: Ask) => readonly Claim[],
) => Promise<T>;

interface QueuesParts {
  /** Where queues are looked at and changed as wholes. @throws DuestreamError `wrong-schema` */
  readonly place: () => Promise<Namespaced>;
}

export function queuesOver(
  { clock, budgetMs }: ClientSettings,
  { runChecked }: Pick<Calls<QueuesParts>, 'runChecked'>,
): Queues {
  const call: Calling = (what, read, work, claimsOf) =>
    runChecked(
      read,
      async ({ place }, ask) =>
        work({ ...(await place()), clock, steps: createRepeating(what, { clock, budgetMs }) }, ask),
      undefined,
      claimsOf,
    );
  return { ...looksBy(call), ...settingBy(call), ...stoppingBy(call, clock) };
}

const looksBy = (call: Calling): Pick<Queues, 'list' | 'get' | 'why'> => ({
  list: (options = {}) =>
    call(
      'list queues',
      () => wantedIn(options),
      (at, isWanted) => at.steps.read(() => queueCounts(at, isWanted)),
    ),
  get: (queue) =>
    call(
      'get',
      () => nameOf(queue),
      (at, name) => at.steps.read(() => queueReport(at, name)),
    ),
  why: (given, options = {}) =>
    call(
      'why',
      () => {
        checkNames(options, ['readyMax'], 'queues.why', 'bad-input');
        return { queue: nameOf(given), readyMax: wholeNumber(options.readyMax ?? READY_MAX, READY_RANGE) };
      },
      (at, { queue, readyMax }) => at.steps.read(() => whyNothingMoves(at, queue, readyMax)),
    ),
});

const settingBy = (call: Calling): Pick<Queues, 'set' | 'unset' | 'remove'> => ({
  set: (given, settings, options = {}) =>
    call(
      'set',
      () => ({ queue: nameOf(given), wanted: settingsIn(settings), by: overridingOf(options, 'queues.set') }),
      (at, { queue, wanted, by }) =>
        changeSettings(at, queue, () => setQueue(at.redis, { ...of(at, queue), by, ...wanted })),
    ),
  unset: (given, setting, options = {}) =>
    call(
      'unset',
      () => ({ queue: nameOf(given), ...unsetAskOf(setting, options) }),
      (at, { queue, ...ask }) => changeSettings(at, queue, () => unsetQueue(at.redis, { ...of(at, queue), ...ask })),
    ),
  remove: (given, options = {}) =>
    call(
      'rm',
      () => ({ queue: nameOf(given), force: flagIn(options, 'force', 'queues.remove') }),
      (at, { queue, force }) => removeQueue(at, queue, force),
      ({ queue }) => [{ lane: queue, kind: 'alone' }],
    ),
});

const stoppingBy = (call: Calling, clock: Clock): Pick<Queues, 'pause' | 'resume' | 'close' | 'open'> => ({
  pause: (given, options = {}) =>
    call(
      'pause',
      () => {
        const { by, why } = overridingOf(options, 'queues.pause');
        return { queue: nameOf(given), by, reason: why };
      },
      (at, { queue, ...said }) => pauseQueue(at, queue, said),
    ),
  resume: (given, options = {}) =>
    call(
      'resume',
      () => {
        checkNames(options, ['by'], 'queues.resume', 'bad-input');
        return { queue: nameOf(given), by: byIn(options) };
      },
      (at, { queue, by }) => inEach(at, queue, (ref) => resume(at.redis, ref, by)),
    ),
  close: (given, options) =>
    call(
      'close',
      () => ({ queue: nameOf(given), closing: parseClosing(options, clock) }),
      (at, { queue, closing }) => closeQueue(at, queue, closing),
    ),
  open: (given, options) =>
    call(
      'open',
      () => ({ queue: nameOf(given), opening: parseOpening(options) }),
      (at, { queue, opening }) => closeQueue(at, queue, opening),
    ),
});

const nameOf = (queue: QueueInput<unknown>): string => queueOf(queue).name;
const of = ({ namespace }: Namespaced, queue: string) => ({ namespace, queue });
/** What `mover.readyMax` is by default. */
const READY_MAX = 10_000;
const READY_RANGE = { what: 'readyMax', min: 1, max: 1_000_000 };

/** @throws DuestreamError `bad-input` */
function wantedIn(options: Parameters<Queues['list']>[0] = {}): (queue: string) => boolean {
  checkNames(options, ['queues'], 'queues.list', 'bad-input');
  const { queues } = options;
  if (queues === undefined) return () => true;
  if (!Array.isArray(queues)) {
    throw new DuestreamError('bad-input', `queues is ${show(queues)}; allowed: a list of names`);
  }
  const wanted = new Set(queues.map((name) => nameOf(name)));
  return (queue) => wanted.has(queue);
}

/** @throws DuestreamError `bad-input` */
function settingsIn(given: QueueSettingOptions) {
  checkNames(given, settingWords, 'queues.set', 'bad-input');
  const wanted = parseSettings(given);
  if (Object.keys(wanted).length > 0) return wanted;
  const allowed = `allowed: one or more of ${settingWords.join(', ')}`;
  throw new DuestreamError('bad-input', `nothing is to be changed; ${allowed}`);
}

/** @throws DuestreamError `bad-input` */
function unsetAskOf(setting: Parameters<Queues['unset']>[1], options: NonNullable<Parameters<Queues['unset']>[2]>) {
  const { stored, ...said } = options;
  const by = overridingOf(said, 'queues.unset');
  const words = typeof setting === 'string' ? [setting] : setting;
  const settings = words.flatMap((word) => {
    if (settingWords.includes(word)) return fieldsOfWord(word);
    const hint = hintOf(String(word), settingWords) || ';';
    throw new DuestreamError('bad-input', `setting is ${show(word)}${hint} allowed: ${settingWords.join(', ')}`);
  });
  return { settings, isForgotten: flagIn({ stored }, 'stored', 'queues.unset'), by };
}

/** @throws DuestreamError `bad-input` */
function flagIn<Name extends string>(
  options: { readonly [N in Name]?: boolean | undefined },
  name: Name,
  owner: string,
): boolean {
  checkNames(options, [name], owner, 'bad-input');
  const given: unknown = options[name] ?? false;
  if (typeof given === 'boolean') return given;
  throw new DuestreamError('bad-input', `${name} is ${show(given)}; allowed: true, false`);
}

// A queue rests and goes on: nothing is promoted and nothing is started until it resumes. What runs goes on; what is
// scheduled meanwhile waits. All partitions are paused, one after the other; a pause that was cut short is completed by
// the next, because partitions that are paused already stay as they are.

async function pauseQueue(
  at: At,
  queue: string,
  said: { readonly reason: string; readonly by: string },
): Promise<QueuePaused> {
  const done = await inEach(at, queue, (ref) => pause(at.redis, ref, said));
  await letHeldGo(at, queue);
  const read = async () => Promise.all((await refsOfQueue(at, queue)).map((ref) => stats(at.redis, ref)));
  const all = await at.steps.read(read);
  return { ...done, running: all.reduce((total, { running }) => total + running, 0) };
}

/** Workers let go what they hold until it is due. What one has begun meanwhile was running when the pause came. */
async function letHeldGo(at: At, queue: string): Promise<void> {
  const look = async () => Promise.all((await refsOfQueue(at, queue)).map((ref) => lettingGo(at.redis, ref)));
  const leftMs = Math.max(0, ...(await at.steps.read(look)));
  if (leftMs > 0) await at.clock.sleep(leftMs);
}

async function inEach(at: At, queue: string, act: (ref: PartitionRef) => Promise<PauseReply>): Promise<QueueResumed> {
  const replies: PauseReply[] = [];
  for (const ref of await at.steps.read(() => refsOfQueue(at, queue))) {
    // What is so already after a lost reply is so by the call before.
    const call = async (mayHaveRun: boolean): Promise<PauseReply> => {
      const reply = await act(ref);
      return mayHaveRun ? { ...reply, kind: 'ok' } : reply;
    };
    replies.push(await at.steps.write(call));
  }
  return {
    status: replies.some(({ kind }) => kind === 'ok') ? 'changed' : 'same',
    pause: replies.find(({ pause: found }) => found !== undefined)?.pause,
  };
}

/** @throws DuestreamError `bad-input` for a queue that is not gated */
async function closeQueue(at: At, name: string, closing: Omit<Closing, 'group'>): Promise<QueueChange> {
  const refs = await at.steps.read(() => refsOfQueue(at, name));
  const reply = await at.steps.repeated((_, policy) => closeIn(at.redis, refs, { group: '', ...closing }, policy));
  if (reply === 'ungated') throw notGated({ name });
  return { status: reply === 'ok' ? 'changed' : 'same' };
}
