/**
 * The registry of queues: name → partitions and generation, one hash in the control slot. A queue comes into being by
 * its first use; whoever is first decides the number of partitions, everybody else takes what is there. Whoever reads it
 * reads the schema of the namespace with it, and goes no further if it is another one.
 */
import { checkGateSettings, gateShare, unknownToOlder } from '../../job/gate.ts';
import { parseName } from '../../job/job.ts';
import {
  AHEAD_DEFAULT_MS,
  atRest,
  changeOf,
  checkGroups,
  decodeSettings,
  encodeGroup,
  encodeSettings,
  fieldSaid,
  type GroupSettings,
  gateNames,
  type History,
  type QueueSettings,
  queueSettings,
  type SettingName,
  type SettingsChange,
  settingNames,
  settingsOf,
} from '../../job/queue-settings.ts';
import { NO_QUOTA, quotaShare } from '../../job/quota.ts';
import { decodeLimits, encodeLimits, kindOf, type SharedLimit, type SharedLimits } from '../../job/shared-limit.ts';
import { checkTargetOf } from '../../job/target.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { userHere } from '../audit.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import { enterSettings } from '../diary.ts';
import { controlKeys, type PartitionRef, partitionRef } from '../keys.ts';
import { refuseOther, SCHEMA, SCHEMA_FIELD } from '../schema.ts';
import { VERSIONS_FIELD } from '../versions.ts';
import { inParts } from './bytes.ts';
import { limit } from './gates.ts';
import {
  effective,
  fieldsOf,
  keyOfGroup,
  type Layers,
  layersOf,
  type Overriding,
  type Stored,
  settingOfKey,
  toWrite,
} from './overrides.ts';
import { type Identity, presence } from './presence.ts';
import { allot } from './quotas.ts';
import { scripts } from './script-table.ts';
import { list, run, text } from './scripts.ts';

/** With its settings as they hold. */
export interface QueueLayout extends QueueSettings {
  readonly queue: string;
  readonly partitions: number;
  readonly layoutGeneration: number;
  /** What daemons say, for queues that say nothing. */
  readonly lingerDefaultMs?: number | undefined;
  /** The versions of duestream that lived when a daemon looked last, see `versions.ts`. */
  readonly versions?: string | undefined;
  /** The limits that it names, as far as they are defined. */
  readonly sharedLimits?: readonly SharedLimit[] | undefined;
  /** What somebody set by command, above what the definition says; undefined: nothing. */
  readonly layers?: Layers | undefined;
  /** How many partitions the last definition said that said another number than there are. */
  readonly asked?: number | undefined;
}

/** What a definition says of a queue. */
interface Declared extends QueueSettings {
  readonly namespace: string;
  readonly queue: string;
  readonly partitions: number;
  /** The number was said, and is no default: the registry notes one that is not that of the queue. */
  readonly saysPartitions?: true | undefined;
  /** What is said counts only if this call declares the queue: what somebody has set since must not be undone. */
  readonly isRepeated?: boolean | undefined;
  /** How its jobs are acknowledged. It is not stored, as each worker does it by its own definition. */
  readonly delivery?: string | undefined;
}

/** All that a definition says. */
export const declarationOf = (
  namespace: string,
  queue: QueueSettings & { readonly name: string; readonly delivery?: string | undefined } & Partitioned,
): Declared => {
  const { name, partitions, saysPartitions, delivery } = queue;
  return { namespace, queue: name, partitions, saysPartitions, delivery, ...settingsOf(queue) };
};

type Partitioned = Pick<Declared, 'partitions' | 'saysPartitions'>;

/** What is to be told where a definition says another number of partitions than its queue has. */
export const otherPartitions = (
  { queue, partitions: has }: Pick<QueueLayout, 'queue' | 'partitions'>,
  { partitions, saysPartitions }: Partitioned,
): string | undefined =>
  saysPartitions && partitions !== has
    ? `it says ${partitions} partitions, and queue ${queue} has ${has} since its first use; it keeps them`
    : undefined;

/** What of a definition does not hold, each as a sentence for a log. */
export function unheldOf(layout: QueueLayout, definition: QueueSettings & Partitioned): readonly string[] {
  const { queue, layers = { code: {}, set: {} } } = layout;
  const names = Object.keys(settingsOf(definition)) as SettingName[];
  const over = names.filter((name) =>
    Object.entries(layers.set).some(([key, { value }]) => settingOfKey(key) === name && value !== layers.code[name]),
  );
  return [
    ...over.map(
      (name) =>
        `${fieldSaid(name)}: somebody has set another one by command; "duestream queues show ${queue}" says who, "duestream queues set --unset" takes it back`,
    ),
    ...[otherPartitions(layout, definition) ?? []].flat(),
  ];
}

/**
 * The layout of a queue, declaring it with `partitions` when it is new. What is said of a setting that somebody overrides is
 * noted below the override, which holds on.
 */
export async function declareQueue(redis: Redis, of: Declared): Promise<QueueLayout> {
  for (;;) {
    const layout = await declareOnce(redis, of);
    if (layout !== 'changed') return layout;
  }
}

async function declareOnce(
  redis: Redis,
  { namespace, queue, partitions, saysPartitions, isRepeated = false, delivery, ...said }: Declared,
): Promise<QueueLayout | 'changed'> {
  const { known, schema, ...stored } = await look(redis, namespace, queue);
  const isNew = known === null || schema === null;
  const wanted = isRepeated && !isNew ? {} : encodeSettings(said);
  const { code, set } = layersOf(stored);
  const holds = fieldsOf({ code: { ...code, ...wanted }, set });
  const settings = [
    ...(Object.keys(wanted).length === 0 ? [] : toWrite(holds, stored)),
    ...(saysPartitions && !isNew
      ? askedToWrite(decode(queue, known, stored), { partitions, asked: stored.asked })
      : []),
  ];
  if (gates(wanted) || wanted.broadcast !== undefined) {
    refuseGates(queue, holds, isNew ? { partitions } : decode(queue, known ?? '', stored));
    refuseUncounted(queue, holds, delivery);
  }
  await refuseTarget(redis, { namespace, queue, was: effective({ code, set }), is: holds });
  const layout = JSON.stringify({ partitions, generation: 0 });
  const isSaid = isNew || settings.length > 0;
  const found = isSaid ? await declare(redis, namespace, { queue, layout, settings: over(stored, settings) }) : known;
  if (found === 'changed') return found;
  const declared = decode(queue, found, holds);
  await shareLimits(redis, namespace, wanted, declared);
  const was = isNew ? undefined : effective(layersOf(stored));
  await enterIn(redis, namespace, { layout: declared, was, is: holds, by: userHere(), why: 'its definition says so' });
  return declared;
}

/** The number that a definition says, where it is another than that of the queue; it goes when a definition says that one. */
function askedToWrite(
  layout: QueueLayout,
  { partitions, asked }: { readonly partitions: number; readonly asked: string | null | undefined },
): readonly string[] {
  const said = layout.partitions === partitions ? '' : String(partitions);
  return said === (asked ?? '') ? [] : ['asked', said];
}

/** Fields to write over exactly these overrides, if there are any. */
const over = ({ overrides }: Stored, fields: readonly string[]): readonly string[] =>
  overrides ? ['?overrides', overrides, ...fields] : fields;

/** A queue whose settings somebody overrides. */
interface Overridden {
  readonly namespace: string;
  readonly queue: string;
}

/**
 * Overrides settings of a queue, until they are taken back. Every process follows within half a minute; limits hold at once.
 *
 * @throws DuestreamError `not-found` where it is not declared, or not any more · `bad-input` for strict order, two rates, shared limits and
 * costs beside older processes, and for a target beside workers
 */
export async function setQueue(
  redis: Redis,
  { namespace, queue, by = NOBODY, ...said }: QueueSettings & Overridden & { readonly by?: Overriding | undefined },
): Promise<void> {
  // A rate may be there already, or come.
  const what = unknownToOlder(said) ?? (said.costs ? 'costs' : undefined);
  if (what !== undefined) await refuseBesideOlder(redis, { namespace, queue, what });
  await override(redis, { namespace, queue, by }, ({ code, set }) => {
    // Limits of groups replace those of all groups, by whichever command these were set.
    const kept = said.groups === undefined ? Object.entries(set) : without(set, ['groups']);
    const made = Object.entries(encodeSettings(said)).map(([name, value]) => [name, { value, ...by }]);
    return { code, set: Object.fromEntries([...kept, ...made]) };
  });
}

/** Older processes start nothing in a queue whose limits they do not know, so whoever sets these is told of those that live. */
async function refuseBesideOlder(
  redis: Redis,
  { namespace, queue, what }: { readonly namespace: string; readonly queue: string; readonly what: string },
): Promise<void> {
  const [older] = olderBeside(await presence(redis, namespace), queue);
  if (!older) return;
  throw new DuestreamError(
    'bad-input',
    `queue ${queue} cannot have ${what} while ${older.role} ${older.id} on ${older.host} lives, which has duestream ${older.version ?? 'of before 0.2.0'} and would start none of its jobs; allowed: after all processes were updated. "duestream queues workers" says which version each one has`,
  );
}

/** Those of the living that serve or lead a queue and know no strict order, two rates, shared limits and costs. A daemon leads all queues. */
export const olderBeside = (living: Awaited<ReturnType<typeof presence>>, queue: string): readonly Identity[] =>
  living.flatMap(({ identity }) => {
    if (!identity || identity.keepsOrder === true || identity.role === 'subscriber') return [];
    return identity.role === 'daemon' || identity.queues.includes(queue) ? [identity] : [];
  });

/**
 * A worker would run a job that is to call a URL as one of its own, so the queue has a target only when no worker lives that is no
 * dispatcher. One that starts later is refused by what it reads then.
 *
 * @throws DuestreamError `bad-input`
 */
async function refuseTarget(
  redis: Redis,
  { namespace, queue, was, is }: Overridden & { readonly was: Stored; readonly is: Stored },
): Promise<void> {
  if (was.target === is.target && was.broadcast === is.broadcast) return;
  const { target, broadcast } = decodeSettings(is);
  if (!target) return;
  checkTargetOf(queue, { isBroadcast: broadcast?.isOn === true });
  const [one] = workersBeside(await presence(redis, namespace), queue);
  if (!one) return;
  throw new DuestreamError(
    'bad-input',
    `queue ${queue} cannot have a target while ${one.role} ${one.id} on ${one.host} lives, which would run its jobs and call nothing; stop what serves the queue, and set the target again. "duestream queues workers" lists it`,
  );
}

/** Those of the living that run jobs of a queue and call no URL. */
export const workersBeside = (living: Awaited<ReturnType<typeof presence>>, queue: string): readonly Identity[] =>
  living.flatMap(({ identity }) =>
    identity && identity.role !== 'daemon' && identity.dispatches !== true && identity.queues.includes(queue)
      ? [identity]
      : [],
  );

const NOBODY: Overriding = { by: '', why: '', atMs: 0 };

/** Overrides of other settings than these. */
const without = (set: Layers['set'], names: readonly string[]) =>
  Object.entries(set).filter(([key]) => !names.includes(settingOfKey(key)));

/**
 * Takes overrides back: what definitions say holds again.
 *
 * @param isForgotten also what definitions have said, until a process says it again
 * @throws DuestreamError `not-found` · `bad-input` where the partitions of the queue cannot share what its definition says
 */
export async function unsetQueue(
  redis: Redis,
  {
    settings,
    isForgotten,
    ...at
  }: Overridden & {
    readonly settings: readonly SettingName[];
    readonly isForgotten: boolean;
    readonly by?: Overriding | undefined;
  },
): Promise<void> {
  await override(redis, at, ({ code, set }) => {
    const taken = settings.filter((name) => isForgotten || Object.keys(set).some((key) => settingOfKey(key) === name));
    const left = taken.map((name) => [name, isForgotten ? atRest[name] : (code[name] ?? atRest[name])]);
    return { code: { ...code, ...Object.fromEntries(left) }, set: Object.fromEntries(without(set, settings)) };
  });
}

/**
 * The limits of one group, or of all whose names begin so; undefined: it has what the definition says of it, or those of all
 * groups again. What somebody else sets of another group meanwhile stays.
 *
 * @returns what is different now; undefined: nothing
 * @throws DuestreamError `not-found` for a queue that is not declared · `bad-input` where it cannot have these limits
 */
export async function setGroup(
  redis: Redis,
  {
    group,
    limits: wanted,
    by = NOBODY,
    ...queue
  }: Overridden & {
    readonly group: string;
    readonly limits?: GroupSettings;
    readonly by?: Overriding | undefined;
  },
): Promise<SettingsChange | undefined> {
  const key = keyOfGroup(group);
  return override(redis, { ...queue, by }, ({ code, set }) => {
    const { [key]: _, ...others } = set;
    if (wanted) return { code, set: { ...others, [key]: { value: encodeGroup(wanted), ...by } } };
    const isLast = set[key] && Object.keys(others).every((one) => settingOfKey(one) !== 'groups');
    return { code: isLast ? { ...code, groups: code.groups ?? atRest.groups } : code, set: others };
  });
}

/** Into the diary of the queue, as somebody asks later what was set when. @returns what is different now */
async function enterIn(
  redis: Redis,
  namespace: string,
  {
    layout,
    was,
    is,
    by,
    why,
  }: {
    readonly layout: QueueLayout | undefined;
    readonly was: Stored | undefined;
    readonly is: Stored;
  } & Pick<Overriding, 'by' | 'why'>,
): Promise<SettingsChange | undefined> {
  const change = was && changeOf(decodeSettings(was), decodeSettings(is));
  const [first] = layout && change ? partitionsOf(namespace, layout) : [];
  if (first && change) await enterSettings(redis, first, { ...change, by, why });
  return change;
}

/** Changes the overrides of a queue, once more where somebody else has changed them meanwhile. @returns what else holds now */
async function override(
  redis: Redis,
  { namespace, queue, by = NOBODY }: Overridden & { readonly by?: Overriding | undefined },
  changing: (layers: Layers) => Layers,
): Promise<SettingsChange | undefined> {
  for (;;) {
    const { known, schema: _, ...stored } = await look(redis, namespace, queue);
    if (known === null) throw new DuestreamError('not-found', `queue ${queue} is not declared`);
    const layers = changing(layersOf(stored));
    const fields = toWrite(fieldsOf(layers), stored);
    const [before, after] = [effective(layersOf(stored)), effective(layers)];
    const changed = Object.fromEntries(
      settingNames.flatMap((name) => (before[name] === after[name] ? [] : [[name, after[name] ?? '']])),
    );
    if (gates(changed) || changed.broadcast !== undefined) {
      checkGroups(decodeSettings(after).groups ?? {});
      refuseGates(queue, after, decode(queue, known, stored));
    }
    await refuseTarget(redis, { namespace, queue, was: before, is: after });
    const settings = ['?overrides', stored.overrides ?? '', ...fields];
    const holds = await declare(redis, namespace, { queue, layout: '', settings });
    if (holds === 'changed') continue;
    if (holds === '')
      throw new DuestreamError('not-found', `queue ${queue} is not declared any more; its settings stay as they were`);
    const layout = await findQueue(redis, namespace, queue);
    // Also what is so already: the call before may have died between the registry and the partitions.
    if (layout) await shareLimits(redis, namespace, after, layout);
    return enterIn(redis, namespace, { layout, was: before, is: after, ...by });
  }
}

const limits = ({ maxPending, maxBytes }: Stored): boolean => (maxPending ?? maxBytes) !== undefined;

const gates = (stored: Stored): boolean => gateNames.some((name) => stored[name] !== undefined);

/** @throws DuestreamError `bad-input` for limits that the partitions of a queue cannot share */
function refuseGates(queue: string, stored: Stored, layout: Pick<QueueLayout, 'partitions' | 'broadcast'>): void {
  const { broadcast = layout.broadcast, ...settings } = decodeSettings(stored);
  const defined = decodeLimits(stored.sharedLimits).all;
  const unknown = settings.limits?.find((name) => defined.every((limit) => limit.name !== name));
  if (unknown !== undefined) {
    throw new DuestreamError(
      'bad-input',
      `queue ${queue} names limit ${unknown}, which is not defined; ${defined.length === 0 ? 'no limit is' : `these are: ${defined.map(({ name }) => name).join(', ')}`}. Define it first: duestream limits set ${unknown} --rate 10/s`,
    );
  }
  checkGateSettings(queue, settings, { partitions: layout.partitions, isBroadcast: broadcast?.isOn === true });
}

/**
 * A command cannot be refused for it: the registry does not know how workers acknowledge. Such a limit then holds no handler.
 *
 * @throws DuestreamError `bad-input` for a concurrency that a queue shares whose jobs are over before their handlers
 */
function refuseUncounted(queue: string, stored: Stored, delivery: string | undefined): void {
  if (delivery !== 'at-most-once') return;
  const { limits: named = [] } = decodeSettings(stored);
  const { all } = decodeLimits(stored.sharedLimits);
  const counted = all.find((limit) => named.includes(limit.name) && kindOf(limit) === 'concurrency');
  if (!counted) return;
  throw new DuestreamError(
    'bad-input',
    `queue ${queue} is at-most-once and names limit ${counted.name}, which is a concurrency: its jobs are over before their handlers, so nobody can count what runs; allowed for it: limits that are a rate`,
  );
}

/**
 * Gives each partition its limits at once, where some were said. Its leader does the same when it reads the registry, so a
 * failure here mends itself. Of two that set limits at once, the one that is late here finds those of the other in the registry.
 */
async function shareLimits(redis: Redis, namespace: string, said: Stored, layout: QueueLayout): Promise<void> {
  if (!limits(said) && !gates(said)) return;
  let shared: QueueLayout | undefined = layout;
  for (let tries = 0; shared && tries < SHARES_MAX; tries += 1) {
    const refs = partitionsOf(namespace, shared);
    if (limits(said)) await Promise.all(refs.map((ref) => allot(redis, ref, { quota: ref.quota ?? NO_QUOTA })));
    if (gates(said)) await Promise.all(refs.map(async (ref) => ref.gates && limit(redis, ref, { share: ref.gates })));
    const found = await findQueue(redis, namespace, layout.queue);
    shared = found && sharesOf(namespace, found) !== sharesOf(namespace, shared) ? found : undefined;
  }
}

/**
 * Gives a partition what the registry says at that moment, and once more where that changes meanwhile: what its leader read
 * some time ago may be older than what somebody has set.
 *
 * @param of.ref what holds where the registry does not know the queue, or does not answer
 */
export async function giveShare<T>(
  redis: Redis,
  { namespace, ref }: { readonly namespace: string; readonly ref: PartitionRef },
  give: (ref: PartitionRef) => Promise<T>,
): Promise<T> {
  const read = async () => {
    const layout = await findQueue(redis, namespace, ref.queue).catch(() => undefined);
    return layout && partitionsOf(namespace, layout)[ref.partition];
  };
  for (let now = (await read()) ?? ref, tries = 1; ; tries += 1) {
    const given = await give(now);
    const next = tries < SHARES_MAX ? await read() : undefined;
    if (!next || shareText(next) === shareText(now)) return given;
    now = next;
  }
}

/** How often a share is given anew because limits changed meanwhile. After that the leader gives it, within a minute. */
const SHARES_MAX = 20;

const shareText = ({ gates: share, quota }: PartitionRef): string => JSON.stringify([share, quota]);

const sharesOf = (namespace: string, layout: QueueLayout): string =>
  partitionsOf(namespace, layout).map(shareText).join();

/** No queue can have a name with a colon, so such a field is never taken for a queue. */
const fieldOf = (queue: string, setting: string): string => `${queue}:${setting}`;
/** What stands beside a queue in the registry, and goes with it. */
const BESIDE = [...settingNames, 'overrides', 'asked'] as const;
const fieldsBeside = (queue: string): readonly string[] => BESIDE.map((setting) => fieldOf(queue, setting));

/** The limits that queues share, as JSON. */
const LIMITS_FIELD = ':limits';

/** The limits that queues share, as the registry has them. */
export const sharedLimitsIn = async (redis: Redis, namespace: string): Promise<SharedLimits> =>
  decodeLimits(await redis.hget(controlKeys(namespace).queues, LIMITS_FIELD));

/** Changes them, once more where somebody else has changed them meanwhile. @returns what is there now */
export async function changeSharedLimits(
  redis: Redis,
  namespace: string,
  changing: (before: SharedLimits) => SharedLimits,
): Promise<SharedLimits> {
  for (;;) {
    const before = (await redis.hget(controlKeys(namespace).queues, LIMITS_FIELD)) ?? '';
    const after = changing(decodeLimits(before));
    const text = encodeLimits(after);
    if (text === before) return after;
    const settings = ['?limits', before, 'limits', text];
    if ((await declare(redis, namespace, { queue: '', layout: '', settings })) !== 'changed') return after;
  }
}

/** What daemons say of queues that say nothing: the field of a setting without a queue. */
const LINGER_DEFAULT_FIELD = ':lingerMs';

/**
 * The namespace says from now on which schema it has, unless it does already, and for how long due jobs linger where their
 * queue says nothing.
 *
 * @throws DuestreamError `wrong-schema`
 */
export async function claimNamespace(redis: Redis, namespace: string, lingerMs: number): Promise<void> {
  const { schema, lingerDefaultMs } = await look(redis, namespace, '');
  const said = String(lingerMs);
  const settings = said === (lingerDefaultMs ?? '0') ? [] : ['lingerMs', said];
  if (schema === null || settings.length > 0) await declare(redis, namespace, { queue: '', layout: '', settings });
}

/** Writes down which versions of duestream live here. */
export async function noteVersions(redis: Redis, namespace: string, versions: string): Promise<void> {
  await declare(redis, namespace, { queue: '', layout: '', settings: ['versions', versions] });
}

/** Takes a queue out of the registry and tells the movers, which let its partitions go. */
export async function undeclareQueue(redis: Redis, namespace: string, queue: string): Promise<void> {
  await run(redis, scripts.undeclare, { keys: controlKeys(namespace), args: { queue, mode: 'queue' }, each: BESIDE });
}

/** How many settings the registry has, and those whose queue is not declared. */
export async function settingsWithoutQueue(
  redis: Redis,
  namespace: string,
): Promise<{
  readonly all: number;
  readonly without: readonly { readonly queue: string; readonly setting: string }[];
}> {
  const fields = await redis.hgetall(controlKeys(namespace).queues);
  const settings = Object.keys(fields).flatMap((field) => {
    const at = field.indexOf(':');
    return at > 0 ? [{ queue: field.slice(0, at), setting: field.slice(at + 1) }] : [];
  });
  return { all: settings.length, without: settings.filter(({ queue }) => fields[queue] === undefined) };
}

/** Removes a setting whose queue is not declared. @returns whether it went */
export async function dropSetting(
  redis: Redis,
  namespace: string,
  { queue, setting }: { readonly queue: string; readonly setting: string },
): Promise<boolean> {
  const args = { queue, mode: 'settings' };
  return (await run(redis, scripts.undeclare, { keys: controlKeys(namespace), args, each: [setting] })) === 1;
}

/** All declared queues, by name. An entry that nobody can read is left out: it must not stop the others. */
export const listQueues = async (redis: Redis, namespace: string): Promise<readonly QueueLayout[]> =>
  (await allQueues(redis, namespace)).queues;

/** An entry that nobody can read, as somebody else wrote it. Its queue is led and served by nobody. */
interface UnreadableEntry {
  readonly queue: string;
  readonly text: string;
}

/** The declared queues by name, and the entries that nobody can read. */
export async function allQueues(
  redis: Redis,
  namespace: string,
): Promise<{
  readonly queues: readonly QueueLayout[];
  readonly unreadable: readonly UnreadableEntry[];
  /** See `QueueLayout`. */
  readonly versions: string | undefined;
}> {
  const keys = controlKeys(namespace);
  const {
    [SCHEMA_FIELD]: schema,
    [LINGER_DEFAULT_FIELD]: lingerDefaultMs,
    [VERSIONS_FIELD]: versions,
    [LIMITS_FIELD]: sharedLimits,
    ...all
  } = await naming(redis, [keys], redis.hgetall(keys.queues));
  refuseOther(`namespace ${namespace}`, schema);
  const storedOf = (queue: string): Stored => ({
    ...Object.fromEntries(BESIDE.map((setting) => [setting, all[fieldOf(queue, setting)]])),
    lingerDefaultMs,
    sharedLimits,
  });
  const queues: QueueLayout[] = [];
  const unreadable: UnreadableEntry[] = [];
  for (const [queue, value] of Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (queue.includes(':')) continue;
    const layout = readable(queue, value, storedOf(queue));
    if (layout) queues.push(layout);
    else unreadable.push({ queue, text: value.slice(0, 80) });
  }
  return { queues, unreadable, versions };
}

/** What to tell of such an entry. */
export const entryUnreadable = (queue: string, text: string): string =>
  `the registry's entry of queue ${queue} cannot be read: ${JSON.stringify(text)}; allowed: ${LAYOUT}. "duestream queues rm ${queue} --force" removes it`;

/** The partitions of a queue whose entry nobody can read: those that have keys. */
export async function partitionsFound(
  redis: Redis,
  namespace: string,
  queue: string,
): Promise<readonly PartitionRef[]> {
  const all = partitionsOf(namespace, { queue, partitions: PARTITIONS_MAX, layoutGeneration: 0 });
  const found = await Promise.all(all.map(({ keys }) => redis.exists(keys.meta, keys.scheduled, keys.jobs, keys.dead)));
  return all.filter((_, at) => found[at] !== 0);
}

/** What a queue keeps of jobs that are over, as it is set now. Undefined: nobody ever set that. */
export async function historyOf(redis: Redis, namespace: string, queue: string): Promise<History | undefined> {
  const fields = [fieldOf(queue, 'history'), fieldOf(queue, 'overrides')];
  const [history, overrides] = await redis.hmget(controlKeys(namespace).queues, ...fields);
  return decodeSettings(effective(layersOf({ history, overrides }))).history;
}

/** Which of these queues are declared. */
export async function declaredAmong(redis: Redis, namespace: string, names: readonly string[]) {
  const found = await inParts(names, (some) => redis.hmget(controlKeys(namespace).queues, ...some));
  return new Set(names.filter((_, at) => found[at] !== null));
}

/** The layout of a queue if it was declared. */
export async function findQueue(redis: Redis, namespace: string, queue: string): Promise<QueueLayout | undefined> {
  const { known, schema: _, ...stored } = await look(redis, namespace, queue);
  return known === null ? undefined : decode(queue, known, stored);
}

export function partitionsOf(namespace: string, layout: QueueLayout): readonly PartitionRef[] {
  const { queue, partitions, layoutGeneration } = layout;
  const quota = quotaShare(layout, partitions);
  const lingerMs = layout.lingerMs ?? layout.lingerDefaultMs ?? 0;
  const aheadMs = layout.aheadMs ?? AHEAD_DEFAULT_MS;
  const shareOfGates = (partition: number) => {
    const gates = gateShare(layout, { partition, partitions });
    return gates === undefined ? {} : { gates };
  };
  const settings = {
    ...(layout.history && { history: queueSettings.history.share(layout.history, partitions) }),
    ...(layout.redact && { redact: layout.redact }),
    ...(layout.broadcast && { broadcast: queueSettings.broadcast.share(layout.broadcast, partitions) }),
    ...(layout.target && { target: layout.target }),
    ...(quota && { quota }),
    ...(lingerMs > 0 && { lingerMs }),
    ...(lingerMs === 0 && aheadMs > 0 && { aheadMs }),
    ...(layout.lateness?.isOn && { lateness: layout.lateness }),
    ...(layout.sharedLimits && { shared: layout.sharedLimits }),
  };
  return Array.from({ length: partitions }, (_, partition) =>
    partitionRef(namespace, { queue, partition, layoutGeneration, ...settings, ...shareOfGates(partition) }),
  );
}

async function look(redis: Redis, namespace: string, queue: string) {
  const keys = controlKeys(namespace);
  const fields = [SCHEMA_FIELD, LINGER_DEFAULT_FIELD, VERSIONS_FIELD, LIMITS_FIELD, ...fieldsBeside(queue)];
  const asked = redis.hmget(keys.queues, queue, ...fields);
  const [known = null, schema = null, lingerDefaultMs, versions, sharedLimits, ...values] = await naming(
    redis,
    [keys],
    asked,
  );
  refuseOther(`namespace ${namespace}`, schema);
  const settings = Object.fromEntries(BESIDE.map((setting, at) => [setting, values[at] ?? null]));
  const stored: Stored = { ...settings, lingerDefaultMs, versions, sharedLimits };
  return { known, schema, ...stored };
}

/** @returns the layout that holds */
async function declare(
  redis: Redis,
  namespace: string,
  { settings, ...what }: { readonly queue: string; readonly layout: string; readonly settings: readonly string[] },
): Promise<string> {
  const args = { ...what, schema: SCHEMA };
  const [holds, schema] = list(
    await run(redis, scripts.declare, { keys: controlKeys(namespace), args, each: settings }),
  );
  refuseOther(`namespace ${namespace}`, text(schema));
  if (text(holds) === 'bad')
    throw new DuestreamError('bad-input', `queue ${what.queue} cannot have ${what.layout}; allowed: ${LAYOUT}`);
  return text(holds);
}

function decode(queue: string, value: string, stored: Stored): QueueLayout {
  const layout = readable(queue, value, stored);
  if (layout) return layout;
  throw new DuestreamError('refused', entryUnreadable(queue, value.slice(0, 80)));
}

function readable(queue: string, value: string, fields: Stored): QueueLayout | undefined {
  try {
    const { partitions, generation } = JSON.parse(value) as { partitions: unknown; generation: unknown };
    const layers = layersOf(fields);
    const stored = effective(layers);
    const lingerDefaultMs = decodeSettings({ lingerMs: stored.lingerDefaultMs }).lingerMs;
    const layout = {
      queue: parseName(queue, 'queue'),
      partitions: Number(partitions),
      layoutGeneration: Number(generation),
      ...decodeSettings(stored),
      ...(lingerDefaultMs !== undefined && { lingerDefaultMs }),
      ...(fields.versions && { versions: fields.versions }),
      ...namedIn(decodeSettings(stored), fields),
      ...(Object.keys(layers.set).length > 0 && { layers }),
      ...(fields.asked && { asked: Number(fields.asked) }),
    };
    const sane = Number.isInteger(partitions) && layout.partitions >= 1 && layout.partitions <= PARTITIONS_MAX;
    return sane && Number.isInteger(generation) && layout.layoutGeneration >= 0 ? layout : undefined;
  } catch {
    return undefined;
  }
}

/** The limits that a queue names and that are defined. */
function namedIn({ limits: named = [] }: QueueSettings, { sharedLimits }: Stored): Pick<QueueLayout, 'sharedLimits'> {
  if (named.length === 0) return {};
  return { sharedLimits: decodeLimits(sharedLimits).all.filter(({ name }) => named.includes(name)) };
}

const PARTITIONS_MAX = 1024;
const LAYOUT = `{"partitions":1 to ${PARTITIONS_MAX},"generation":0 or more}`;
