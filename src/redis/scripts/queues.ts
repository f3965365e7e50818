/**
 * The registry of queues: name → partitions and generation, one hash in the control slot. A queue comes into being by
 * its first use; whoever is first decides the number of partitions, everybody else takes what is there. Whoever reads it
 * reads the schema of the namespace with it, and goes no further if it is another one.
 */
import { type Broadcast, broadcastShare, decodeBroadcast, encodeBroadcast } from '../../job/broadcast.ts';
import {
  checkGateSettings,
  checkGroups,
  decodeGates,
  encodeGates,
  type GateSettings,
  type GroupSettings,
  gateShare,
} from '../../job/gate.ts';
import { decodeHistory, encodeHistory, type History, shareOf } from '../../job/history.ts';
import { parseName } from '../../job/job.ts';
import { decodeLimit, NO_QUOTA, type QuotaSettings, quotaShare } from '../../job/quota.ts';
import { decodeRedact, encodeRedact, type Redaction } from '../../job/redaction.ts';
import { queueRanges } from '../../kernel/checks.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import { controlKeys, type PartitionRef, partitionRef } from '../keys.ts';
import { refuseOther, SCHEMA, SCHEMA_FIELD } from '../schema.ts';
import { inParts } from './bytes.ts';
import { limit } from './gates.ts';
import { allot } from './quotas.ts';
import { list, run, text } from './scripts.ts';

/** With how much it may hold and how much may run at once; 0: no limit, undefined: there never was one. */
export interface QueueLayout extends QuotaSettings, GateSettings {
  readonly queue: string;
  readonly partitions: number;
  readonly layoutGeneration: number;
  /** What it keeps of jobs that are over; undefined: nothing, and it never did. */
  readonly history?: History | undefined;
  /** Fields of data that views do not show; undefined: none. */
  readonly redact?: Redaction | undefined;
  /** Whether its jobs go to every subscriber; undefined: they do not, and never did. */
  readonly broadcast?: Broadcast | undefined;
  /** How long its due jobs may wait for company; undefined: as daemons say. */
  readonly lingerMs?: number | undefined;
  /** What daemons say, for queues that say nothing. */
  readonly lingerDefaultMs?: number | undefined;
}

/** What is stored beside a layout. Undefined: what is stored stays. Of `redact` an empty list: nothing is hidden any more. */
export type QueueSettings = Pick<QueueLayout, (typeof SETTINGS)[number]>;

/** What the definition of a queue says of them. */
export function settingsOf(queue: QueueSettings): QueueSettings {
  return Object.fromEntries(SETTINGS.flatMap((name) => (queue[name] === undefined ? [] : [[name, queue[name]]])));
}

/** The layout of a queue, declaring it with `partitions` when it is new. */
export async function declareQueue(
  redis: Redis,
  {
    namespace,
    queue,
    partitions,
    isRepeated = false,
    ...said
  }: QueueSettings & {
    readonly namespace: string;
    readonly queue: string;
    readonly partitions: number;
    /** What is said counts only if this call declares the queue: what somebody has set since must not be undone. */
    readonly isRepeated?: boolean | undefined;
  },
): Promise<QueueLayout> {
  const { known, schema, ...stored } = await look(redis, namespace, queue);
  const isNew = known === null || schema === null;
  const wanted = isRepeated && !isNew ? {} : encoded(said);
  const settings = SETTINGS.flatMap((name) => {
    const value = wanted[name];
    return value === undefined || value === stored[name] ? [] : [name, value];
  });
  if (gates(wanted) || wanted.broadcast !== undefined) {
    refuseGates(queue, { ...stored, ...wanted }, isNew ? { partitions } : decode(queue, known ?? '', stored));
  }
  const layout = JSON.stringify({ partitions, generation: 0 });
  const isSaid = isNew || settings.length > 0;
  const holds = isSaid ? await declare(redis, namespace, { queue, layout, settings }) : known;
  const declared = decode(queue, holds, { ...stored, ...wanted });
  await shareLimits(redis, namespace, wanted, declared);
  return declared;
}

/**
 * What a queue keeps from now on, and whom its jobs go to. Every process follows within half a minute.
 *
 * @throws DuestreamError `not-found` where it is not declared, or not any more
 */
export async function setQueue(
  redis: Redis,
  { namespace, queue, ...said }: QueueSettings & { readonly namespace: string; readonly queue: string },
): Promise<void> {
  const wanted = encoded(said);
  const settings = Object.entries(wanted).flat();
  if (gates(wanted) || wanted.broadcast !== undefined) {
    const { known, schema: _, ...stored } = await look(redis, namespace, queue);
    if (known !== null) refuseGates(queue, { ...stored, ...wanted }, decode(queue, known, stored));
  }
  const holds = await declare(redis, namespace, { queue, layout: '', settings });
  if (holds === '')
    throw new DuestreamError('not-found', `queue ${queue} is not declared any more; its settings stay as they were`);
  const layout = limits(wanted) || gates(wanted) ? await findQueue(redis, namespace, queue) : undefined;
  if (layout) await shareLimits(redis, namespace, wanted, layout);
}

/**
 * The limits of one group, or of all whose names begin so; undefined: it has those of all groups again. What somebody else sets
 * of another group meanwhile stays.
 *
 * @returns whether anything is different now
 * @throws DuestreamError `not-found` for a queue that is not declared · `bad-input` where it cannot have these limits
 */
export async function setGroup(
  redis: Redis,
  of: { readonly namespace: string; readonly queue: string; readonly group: string; readonly limits?: GroupSettings },
): Promise<boolean> {
  const { namespace, queue, group, limits: wanted } = of;
  for (;;) {
    const { known, schema: _, ...stored } = await look(redis, namespace, queue);
    if (known === null) throw new DuestreamError('not-found', `queue ${queue} is not declared`);
    const { [group]: before, ...others } = decodeGates(stored).groups ?? {};
    if (!wanted && !before) return false;
    const groups = wanted ? { ...others, [group]: wanted } : others;
    checkGroups(groups);
    const said = encoded({ groups });
    refuseGates(queue, { ...stored, ...said }, decode(queue, known, stored));
    const settings = ['?groups', stored.groups ?? '', 'groups', said.groups ?? ''];
    const holds = await declare(redis, namespace, { queue, layout: '', settings });
    if (holds === 'changed') continue;
    const layout = await findQueue(redis, namespace, queue);
    if (layout) await shareLimits(redis, namespace, said, layout);
    return said.groups !== stored.groups;
  }
}

const limits = ({ maxPending, maxBytes }: Stored): boolean => (maxPending ?? maxBytes) !== undefined;

const gates = (stored: Stored): boolean => GATES.some((name) => stored[name] !== undefined);

/** @throws DuestreamError `bad-input` for limits that the partitions of a queue cannot share */
function refuseGates(queue: string, stored: Stored, layout: Pick<QueueLayout, 'partitions' | 'broadcast'>): void {
  const broadcast = decodeBroadcast(stored.broadcast) ?? layout.broadcast;
  checkGateSettings(queue, decodeGates(stored), {
    partitions: layout.partitions,
    isBroadcast: broadcast?.isOn === true,
  });
}

/**
 * Gives each partition its limits at once, where some were said. Its leader does the same when it reads the registry, so a
 * failure here mends itself.
 */
async function shareLimits(redis: Redis, namespace: string, said: Stored, layout: QueueLayout): Promise<void> {
  const refs = partitionsOf(namespace, layout);
  if (limits(said)) await Promise.all(refs.map((ref) => allot(redis, ref, { quota: ref.quota ?? NO_QUOTA })));
  if (!gates(said)) return;
  await Promise.all(refs.map(async (ref) => ref.gates && limit(redis, ref, { share: ref.gates })));
}

/** As they stand in the registry, each in a field of its own. */
type Stored = { readonly [Name in (typeof SETTINGS)[number] | 'lingerDefaultMs']?: string | null | undefined };

const GATES = ['rate', 'concurrency', 'perGroup', 'groupRate', 'groupPending', 'groups', 'fair'] as const;
const SETTINGS = ['history', 'redact', 'broadcast', 'maxPending', 'maxBytes', 'lingerMs', ...GATES] as const;

const encoded = ({
  history,
  redact,
  broadcast,
  maxPending,
  maxBytes,
  lingerMs,
  ...gates
}: QueueSettings): { [Name in (typeof SETTINGS)[number]]?: string } => ({
  ...(history && { history: encodeHistory(history) }),
  ...(redact && { redact: encodeRedact(redact) }),
  ...(broadcast && { broadcast: encodeBroadcast(broadcast) }),
  ...(maxPending !== undefined && { maxPending: String(maxPending) }),
  ...(maxBytes !== undefined && { maxBytes: String(maxBytes) }),
  ...(lingerMs !== undefined && { lingerMs: String(lingerMs) }),
  ...encodeGates(gates),
});

/** No queue can have a name with a colon, so such a field is never taken for a queue. */
const fieldOf = (queue: string, setting: string): string => `${queue}:${setting}`;
const fieldsOf = (queue: string): readonly string[] => SETTINGS.map((setting) => fieldOf(queue, setting));

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

/** Takes a queue out of the registry and tells the movers, which let its partitions go. */
export async function undeclareQueue(redis: Redis, namespace: string, queue: string): Promise<void> {
  await run(redis, 'undeclare', { keys: controlKeys(namespace), args: { queue, mode: 'queue' }, each: SETTINGS });
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
  return (await run(redis, 'undeclare', { keys: controlKeys(namespace), args, each: [setting] })) === 1;
}

/** All declared queues, by name. An entry that nobody can read is left out: it must not stop the others. */
export async function listQueues(redis: Redis, namespace: string): Promise<readonly QueueLayout[]> {
  const keys = controlKeys(namespace);
  const {
    [SCHEMA_FIELD]: schema,
    [LINGER_DEFAULT_FIELD]: lingerDefaultMs,
    ...all
  } = await naming(redis, [keys], redis.hgetall(keys.queues));
  refuseOther(`namespace ${namespace}`, schema);
  const storedOf = (queue: string): Stored => ({
    ...Object.fromEntries(SETTINGS.map((setting) => [setting, all[fieldOf(queue, setting)]])),
    lingerDefaultMs,
  });
  return Object.entries(all)
    .flatMap(([queue, value]) => (queue.includes(':') ? [] : (readable(queue, value, storedOf(queue)) ?? [])))
    .sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

/** Entries that nobody can read, as somebody else wrote them. Their queues are led and served by nobody. */
export async function unreadableQueues(
  redis: Redis,
  namespace: string,
): Promise<readonly { readonly queue: string; readonly text: string }[]> {
  const readable = new Set((await listQueues(redis, namespace)).map(({ queue }) => queue));
  const all = Object.entries(await redis.hgetall(controlKeys(namespace).queues));
  const isQueue = (name: string) => !name.includes(':') && !readable.has(name);
  return all.flatMap(([queue, text]) => (isQueue(queue) ? [{ queue, text: text.slice(0, 80) }] : []));
}

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
  return decodeHistory(await redis.hget(controlKeys(namespace).queues, `${queue}:history`));
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
  const shareOfGates = (partition: number) => {
    const gates = gateShare(layout, { partition, partitions });
    return gates === undefined ? {} : { gates };
  };
  const settings = {
    ...(layout.history && { history: shareOf(layout.history, partitions) }),
    ...(layout.redact && { redact: layout.redact }),
    ...(layout.broadcast && { broadcast: broadcastShare(layout.broadcast, partitions) }),
    ...(quota && { quota }),
    ...(lingerMs > 0 && { lingerMs }),
  };
  return Array.from({ length: partitions }, (_, partition) =>
    partitionRef(namespace, { queue, partition, layoutGeneration, ...settings, ...shareOfGates(partition) }),
  );
}

async function look(redis: Redis, namespace: string, queue: string) {
  const keys = controlKeys(namespace);
  const asked = redis.hmget(keys.queues, queue, SCHEMA_FIELD, LINGER_DEFAULT_FIELD, ...fieldsOf(queue));
  const [known = null, schema = null, lingerDefaultMs, ...values] = await naming(redis, [keys], asked);
  refuseOther(`namespace ${namespace}`, schema);
  const settings = Object.fromEntries(SETTINGS.map((setting, at) => [setting, values[at] ?? null]));
  const stored: Stored = { ...settings, lingerDefaultMs };
  return { known, schema, ...stored };
}

/** @returns the layout that holds */
async function declare(
  redis: Redis,
  namespace: string,
  { settings, ...what }: { readonly queue: string; readonly layout: string; readonly settings: readonly string[] },
): Promise<string> {
  const args = { ...what, schema: SCHEMA };
  const [holds, schema] = list(await run(redis, 'declare', { keys: controlKeys(namespace), args, each: settings }));
  refuseOther(`namespace ${namespace}`, text(schema));
  if (text(holds) === 'bad')
    throw new DuestreamError('bad-input', `queue ${what.queue} cannot have ${what.layout}; allowed: ${LAYOUT}`);
  return text(holds);
}

function decode(queue: string, value: string, stored: Stored): QueueLayout {
  const layout = readable(queue, value, stored);
  if (layout) return layout;
  throw new DuestreamError(
    'refused',
    `the registry's entry of queue ${queue} cannot be read: ${JSON.stringify(value.slice(0, 80))}; allowed: ${LAYOUT}. "duestream queues rm ${queue} --force" removes it`,
  );
}

function readable(queue: string, value: string, stored: Stored): QueueLayout | undefined {
  try {
    const { partitions, generation } = JSON.parse(value) as { partitions: unknown; generation: unknown };
    const history = decodeHistory(stored.history);
    const redact = decodeRedact(stored.redact);
    const broadcast = decodeBroadcast(stored.broadcast);
    const [maxPending, maxBytes] = [decodeLimit(stored.maxPending), decodeLimit(stored.maxBytes)];
    const [lingerMs, lingerDefaultMs] = [decodeLinger(stored.lingerMs), decodeLinger(stored.lingerDefaultMs)];
    const layout = {
      queue: parseName(queue, 'queue'),
      partitions: Number(partitions),
      layoutGeneration: Number(generation),
      ...(history && { history }),
      ...(redact && { redact }),
      ...(broadcast && { broadcast }),
      ...(maxPending !== undefined && { maxPending }),
      ...(maxBytes !== undefined && { maxBytes }),
      ...(lingerMs !== undefined && { lingerMs }),
      ...(lingerDefaultMs !== undefined && { lingerDefaultMs }),
      ...decodeGates(stored),
    };
    const sane = Number.isInteger(partitions) && layout.partitions >= 1 && layout.partitions <= PARTITIONS_MAX;
    return sane && Number.isInteger(generation) && layout.layoutGeneration >= 0 ? layout : undefined;
  } catch {
    return undefined;
  }
}

/** What cannot be read, or is out of range, was written by somebody else, and says nothing. */
function decodeLinger(text: string | null | undefined): number | undefined {
  const ms = decodeLimit(text);
  return ms !== undefined && ms <= queueRanges.lingerMs.max ? ms : undefined;
}

const PARTITIONS_MAX = 1024;
const LAYOUT = `{"partitions":1 to ${PARTITIONS_MAX},"generation":0 or more}`;
