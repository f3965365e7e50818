/**
 * Every Lua script with the names of its keys and arguments, so that callers pass names and never positions. The table
 * is compared with the headers in `lua/verbs/` by the house test.
 */
import type { ControlKeys, LimitKeys, PartitionKeys } from '../keys.ts';

/** Keys of a partition, those of the control slot, and those of a limit. */
type KeyName = keyof PartitionKeys | keyof ControlKeys | keyof LimitKeys;

/**
 * What becomes of a call whose bytes come late, when its caller has sent it again, or has given it up, and others have
 * changed what it was about:
 *
 *   refused    it carries the end of the send, and does nothing after it (`connection/call-end.ts`)
 *   fenced     it names a term, or an entry and its token, or its owner, and does nothing for one that is not of now
 *   harmless   what it does is judged at the moment in which it runs, and is right whoever asks: a mark that somebody
 *              waits, a lease, seat or heartbeat that ends by itself, a repair of what is damaged at that moment
 *   reads      it changes nothing
 */
export type Late = 'refused' | 'fenced' | 'harmless' | 'reads';

export interface Script {
  readonly late: Late;
  readonly keys: readonly KeyName[];
  readonly args: readonly string[];
  /** Names of the arguments that repeat for each item of a bulk call. */
  readonly each?: readonly string[];
  /** What it answers, if that is to be checked. `per item`: a list with one reply for each item of the call. */
  readonly reply?: 'text' | 'list' | 'per item';
  /** The call brings keys of its own after the named ones. */
  readonly moreKeys?: boolean;
  /** Its last two keys are those of the history, which only a call for a queue that keeps one names. */
  readonly mayKeep?: boolean;
  /**
   * It is sent by its text and not by its digest. A digest that Redis has forgotten (SCRIPT FLUSH, or one of too many scripts) means a second
   * call, which comes behind calls that were sent after the first.
   */
  readonly byText?: boolean;
}

const define = <const S extends Script>(script: S): S => script;

/** Of a gated queue: who waits, whose turn it is, what each group has and may have, and who has it in strict order. */
const GATE_KEYS = ['line', 'lanes', 'holds', 'groups', 'order'] as const;

/** One row per file in `lua/verbs/`, in the order a job meets them: `closeTags` is `close-tags.lua`. */
export const scripts = named({
  schedule: define({
    late: 'refused',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'done', 'meta', 'wake', 'stale', 'tags', 'ready', 'line', 'groups', 'closed'],
      ...['order', 'lanes', 'logs'],
    ] as const,
    args: ['now', 'generation', 'mode', 'horizon', 'bytes'],
    reply: 'per item',
    each: ['member', 'record', 'due'],
  }),
  promote: define({
    late: 'fenced',
    keys: [
      ...['leader', 'scheduled', 'ready', 'jobs', 'runs', 'dead', 'done', 'meta', 'stale', 'tags'],
      ...GATE_KEYS,
      'work',
      'wake',
    ] as const,
    args: ['now', 'term', 'lease', 'limit', 'cap', 'lineMax', 'ahead'],
    reply: 'list',
  }),
  cast: define({
    late: 'fenced',
    keys: [
      ...['leader', 'scheduled', 'ready', 'jobs', 'runs', 'dead', 'done', 'meta', 'stale', 'tags', 'cast', 'work'],
      ...['closed', 'past', 'ended'],
    ] as const,
    args: ['now', 'term', 'lease', 'limit', 'window', 'entries', 'bytes', 'age'],
    reply: 'list',
    mayKeep: true,
  }),
  start: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta', 'stale', 'tags', ...GATE_KEYS],
      ...['closed', 'logs', 'past', 'ended'],
    ] as const,
    args: ['now', 'consumer', 'bytes', 'window', 'suspects'],
    reply: 'list',
    each: ['entry', 'member', 'due'],
    mayKeep: true,
  }),
  expire: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta', 'tags', ...GATE_KEYS, 'work', 'wake'],
      ...['logs', 'past', 'ended'],
    ] as const,
    args: ['now', 'consumer', 'window', 'bytes'],
    reply: 'per item',
    each: ['entry', 'member', 'due', 'compensation', 'compensationRecord'],
    mayKeep: true,
  }),
  release: define({
    late: 'fenced',
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'wake', 'stale', ...GATE_KEYS, 'work'],
    args: ['now', 'consumer'],
    reply: 'per item',
    each: ['entry', 'member', 'due'],
  }),
  extend: define({
    late: 'fenced',
    keys: ['runs', 'ready'],
    args: ['consumer'],
    reply: 'per item',
    each: ['entry', 'member', 'token', 'progress'],
  }),
  log: define({
    late: 'fenced',
    keys: ['runs', 'meta', 'logs'],
    args: ['most', 'bytes'],
    reply: 'per item',
    each: ['entry', 'member', 'token', 'last', 'tags', 'lines'],
    byText: true,
  }),
  spend: define({
    late: 'fenced',
    keys: ['runs', 'ready', 'jobs', 'meta', 'wake', 'line', 'lanes', 'holds', 'groups', 'spends'],
    args: ['now'],
    reply: 'per item',
    each: ['entry', 'member', 'token', 'nth', 'turns'],
  }),
  complete: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'stale', 'tags', ...GATE_KEYS, 'work', 'wake'],
      ...['logs', 'past', 'ended'],
    ] as const,
    args: ['now', 'window', 'hold', 'consumer'],
    reply: 'per item',
    each: ['entry', 'member', 'token', 'mark'],
    mayKeep: true,
  }),
  serve: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta', 'stale', 'tags', ...GATE_KEYS],
      ...['work', 'wake', 'closed', 'logs', 'past', 'ended'],
    ] as const,
    args: ['now', 'consumer', 'bytes', 'window', 'suspects', 'take', 'given'],
    reply: 'list',
    each: ['entry', 'member', 'token', 'mark'],
    mayKeep: true,
  }),
  hand: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta', 'stale', 'tags', ...GATE_KEYS],
      ...['work', 'wake', 'closed', 'logs', 'claims', 'past', 'ended'],
    ] as const,
    args: ['now', 'consumer', 'bytes', 'window', 'suspects', 'take', 'given', 'lane', 'seq'],
    reply: 'list',
    each: ['entry', 'member', 'token', 'mark'],
    mayKeep: true,
  }),
  relay: define({
    late: 'fenced',
    keys: [
      ...['leader', 'scheduled', 'ready', 'jobs', 'runs', 'dead', 'done', 'meta', 'stale', 'tags'],
      ...GATE_KEYS,
      'work',
      'wake',
      'closed',
      'logs',
      'past',
      'ended',
    ] as const,
    args: ['now', 'term', 'lease', 'limit', 'cap', 'lineMax', 'consumer', 'bytes', 'window', 'suspects', 'take'],
    reply: 'list',
    each: ['entry', 'member', 'token', 'mark'],
    mayKeep: true,
  }),
  commit: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta', 'tags', ...GATE_KEYS, 'work', 'wake'],
      ...['logs', 'past', 'ended'],
    ] as const,
    args: ['now', 'window', 'entry', 'member', 'token', 'note'],
    each: ['size', 'name', 'words'],
    reply: 'text',
    moreKeys: true,
  }),
  retry: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'wake', 'tags', ...GATE_KEYS, 'work'],
      ...['logs', 'past', 'ended'],
    ] as const,
    args: ['now', 'window', 'entry', 'member', 'token', 'delay', 'error', 'note'],
    reply: 'list',
    mayKeep: true,
  }),
  defer: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'wake', 'tags', ...GATE_KEYS, 'work', 'diary'],
      ...['logs', 'past', 'ended'],
    ] as const,
    args: [
      ...['now', 'window', 'entry', 'member', 'token', 'delay', 'why', 'note', 'close', 'closeMs', 'reason', 'held'],
    ] as const,
    reply: 'list',
    mayKeep: true,
  }),
  bury: define({
    late: 'fenced',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta', 'wake', 'tags', ...GATE_KEYS],
      ...['work', 'logs', 'past', 'ended'],
    ] as const,
    args: [
      'now',
      'window',
      'entry',
      'member',
      'token',
      'reason',
      'error',
      'compensation',
      'compensationRecord',
      'note',
    ],
    reply: 'list',
    mayKeep: true,
  }),
  cancel: define({
    late: 'refused',
    keys: [
      ...['scheduled', 'jobs', 'runs', 'done', 'meta', 'stale', 'tags', 'line', 'order', 'lanes', 'wake'],
      ...['past', 'ended'],
    ] as const,
    args: ['now', 'generation', 'window'],
    reply: 'per item',
    each: ['member'],
    mayKeep: true,
  }),
  await: define({
    late: 'harmless',
    keys: ['scheduled', 'jobs', 'runs', 'meta'],
    args: ['generation'],
    reply: 'per item',
    each: ['member'],
  }),
  reschedule: define({
    late: 'refused',
    keys: ['scheduled', 'jobs', 'runs', 'meta', 'wake', 'stale', 'line'],
    args: ['now', 'generation', 'horizon'],
    reply: 'per item',
    each: ['member', 'due', 'mode', 'seen'],
  }),
  edit: define({
    late: 'refused',
    keys: ['scheduled', 'jobs', 'runs', 'meta', 'tags', 'line', 'wake', 'stale'],
    args: ['now', 'generation', 'bytes'],
    reply: 'per item',
    each: ['member', 'before', 'record'],
  }),
  closeTags: define({
    late: 'refused',
    keys: ['meta', 'closed', 'why'],
    args: ['now', 'generation', 'mode', 'until', 'text', 'most'],
    reply: 'per item',
    each: ['tag'],
  }),
  replay: define({
    late: 'refused',
    keys: ['scheduled', 'jobs', 'runs', 'dead', 'done', 'meta', 'wake', 'tags', 'closed', 'order', 'logs'],
    args: ['now', 'generation', 'deadLetter', 'due'],
    reply: 'list',
  }),
  gather: define({ late: 'refused', keys: ['jobs', 'meta', 'tags'], args: ['now', 'generation', 'set', 'callback'] }),
  seal: define({
    late: 'refused',
    keys: ['scheduled', 'jobs', 'meta', 'tags'],
    args: ['now', 'generation', 'set', 'member'],
  }),
  disband: define({ late: 'refused', keys: ['jobs', 'meta', 'tags'], args: ['now', 'generation', 'set'] }),
  tend: define({
    late: 'fenced',
    keys: ['leader', 'scheduled', 'jobs', 'meta', 'tags'],
    args: ['now', 'term', 'after', 'limit'],
    reply: 'list',
  }),
  arm: define({ late: 'refused', keys: ['fires', 'fired', 'meta', 'wake'], args: ['now', 'generation', 'name'] }),
  disarm: define({ late: 'refused', keys: ['fires', 'fired'], args: ['now', 'name', 'state'] }),
  fire: define({
    late: 'fenced',
    keys: ['leader', 'fires', 'fired', 'scheduled', 'jobs', 'meta', 'wake', 'tags'],
    args: ['now', 'term'],
    each: ['name', 'state', 'reached', 'look', 'overlap', 'most', 'missed', 'count'],
    reply: 'list',
  }),
  elect: define({
    late: 'harmless',
    keys: ['leader', 'meta', 'diary'],
    args: ['now', 'process', 'lease', 'schema', 'silent', 'over'],
    reply: 'list',
  }),
  resign: define({ late: 'fenced', keys: ['leader', 'wake', 'diary'], args: ['term'], reply: 'text' }),
  observe: define({
    late: 'fenced',
    keys: ['leader', 'meta', 'diary'],
    args: ['now', 'term', 'state', 'ago'],
    reply: 'text',
  }),
  reclaim: define({
    late: 'fenced',
    keys: ['ready', 'runs', 'meta'],
    args: ['now', 'owner', 'consumer', 'idle'],
    reply: 'list',
    each: ['entry'],
  }),
  enrol: define({ late: 'harmless', keys: ['ready'], args: ['consumer'] }),
  retire: define({ late: 'harmless', keys: ['ready'], args: ['consumer'], reply: 'text' }),
  watch: define({
    late: 'harmless',
    keys: ['meta'],
    args: ['now', 'consumer', 'wish', 'seats', 'term'],
    reply: 'text',
  }),
  beat: define({ late: 'harmless', keys: ['beat', 'alive', 'wake'], args: ['process', 'identity', 'ttl'] }),
  declare: define({
    late: 'refused',
    keys: ['queues', 'wake'],
    args: ['now', 'queue', 'layout', 'schema'],
    each: ['setting', 'value'],
    reply: 'list',
  }),
  undeclare: define({ late: 'refused', keys: ['queues', 'wake'], args: ['now', 'queue', 'mode'], each: ['setting'] }),
  identify: define({ late: 'harmless', keys: ['id'], args: ['candidate'], reply: 'text' }),
  forget: define({ late: 'harmless', keys: ['alive', 'beat'], args: ['process'], reply: 'text' }),
  tell: define({ late: 'refused', keys: ['beat', 'wake'], args: ['now', 'process', 'before', 'after'], reply: 'text' }),
  issue: define({
    late: 'refused',
    keys: ['tokens'],
    args: ['now', 'id', 'token', 'most'],
    each: ['known', 'expires'],
    reply: 'text',
  }),
  define: define({ late: 'refused', keys: ['schedules'], args: ['now', 'name', 'before', 'after'] }),
  sweep: define({
    late: 'fenced',
    keys: ['leader', 'jobs', 'done', 'dead', 'meta', 'ready', 'stale', 'closed', 'why', 'logs', 'past', 'ended'],
    args: ['now', 'term', 'limit', 'window', 'tombstones', 'floor', 'retention', 'deadLetters', 'keep', 'most'],
    reply: 'list',
    mayKeep: true,
  }),
  checkMembers: define({
    late: 'reads',
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'tags'],
    args: ['part', 'cursor', 'limit'],
  }),
  checkTags: define({ late: 'reads', keys: ['jobs', 'tags'], args: ['limit'], each: ['after'], reply: 'list' }),
  mendTags: define({
    late: 'harmless',
    keys: ['jobs', 'tags'],
    args: ['bytes'],
    each: ['kind', 'name'],
    reply: 'per item',
  }),
  checkEntries: define({ late: 'reads', keys: ['ready'], args: ['part', 'after', 'limit'] }),
  repair: define({
    late: 'harmless',
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'wake', 'holds'],
    args: ['now', 'seen', 'bytes'],
    reply: 'per item',
    each: ['kind', 'name'],
  }),
  allot: define({
    late: 'refused',
    keys: ['leader', 'meta'],
    args: ['now', 'term', 'pending', 'bytes'],
    reply: 'text',
  }),
  limit: define({
    late: 'refused',
    keys: ['leader', 'scheduled', 'ready', 'meta', 'wake', 'stale', ...GATE_KEYS, 'jobs', 'done'],
    args: ['now', 'term', 'share', 'limit'],
    each: ['group', 'limits'],
    reply: 'text',
  }),
  lend: define({
    late: 'refused',
    keys: ['ledger'],
    args: ['now', 'row', 'epoch', 'seq', 'over', 'revision', 'kind', 'pace', 'most', 'want', 'need', 'back'],
    reply: 'list',
  }),
  borrow: define({
    late: 'fenced',
    keys: ['leader', 'scheduled', 'ready', 'meta', ...GATE_KEYS, 'work', 'wake', 'jobs'],
    args: ['now', 'term'],
    each: ['name', 'kind', 'seq', 'turns', 'ends', 'share'],
    reply: 'list',
  }),
  close: define({
    late: 'refused',
    keys: ['meta', 'wake', ...GATE_KEYS, 'diary'],
    args: ['now', 'group', 'until', 'why', 'by'],
    reply: 'text',
  }),
  checkGates: define({
    late: 'reads',
    keys: ['scheduled', 'ready', 'meta', ...GATE_KEYS, 'jobs', 'dead'],
    args: ['part', 'cursor', 'limit'],
    reply: 'list',
  }),
  mendGates: define({
    late: 'harmless',
    keys: ['scheduled', 'ready', 'meta', 'wake', ...GATE_KEYS, 'jobs', 'dead'],
    args: ['now'],
    reply: 'per item',
    each: ['kind', 'name'],
  }),
  weigh: define({
    late: 'harmless',
    keys: ['scheduled', 'jobs', 'ready', 'meta', 'stale'],
    args: ['part', 'cursor', 'limit', 'bytes', 'count', 'mode'],
    reply: 'list',
  }),
  pause: define({ late: 'refused', keys: ['meta', 'diary'], args: ['now', 'reason', 'by'] }),
  resume: define({ late: 'refused', keys: ['meta', 'wake', 'diary'], args: ['now', 'by'] }),
  purge: define({
    late: 'refused',
    keys: ['dead', 'meta', 'logs'],
    args: ['now', 'age', 'reason', 'after', 'last', 'limit', 'mode'],
    each: ['deadLetter'],
  }),
  erase: define({
    late: 'refused',
    keys: ['past', 'ended'],
    args: ['now', 'tag', 'mode', 'score', 'limit'],
    each: ['id'],
    reply: 'list',
  }),
  eraseLines: define({
    late: 'refused',
    keys: ['logs'],
    args: ['now', 'tag', 'mode', 'cursor', 'limit'],
    reply: 'list',
  }),
  remove: define({
    late: 'refused',
    keys: [
      'scheduled',
      'jobs',
      'runs',
      'ready',
      'dead',
      'done',
      'leader',
      'meta',
      'fires',
      'fired',
      'stale',
      'tags',
      'past',
      'ended',
      'minutes',
      'cast',
      ...GATE_KEYS,
      'closed',
      'why',
      'diary',
      'hours',
      'days',
      'causes',
      'looks',
      'logs',
      'claims',
      'spends',
    ],
    args: ['now', 'force'],
  }),
  peek: define({ late: 'reads', keys: ['scheduled', 'jobs', 'runs', 'done', 'meta'], args: ['generation', 'member'] }),
  page: define({
    late: 'reads',
    keys: ['scheduled', 'meta'],
    args: ['generation', 'from', 'to', 'score', 'limit'],
    reply: 'list',
    each: ['member'],
  }),
  count: define({
    late: 'reads',
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'meta', 'stale'],
    args: ['generation', 'from', 'to', 'after', 'last', 'limit', 'mode'],
    reply: 'list',
  }),
  stats: define({
    late: 'reads',
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'leader', 'meta', 'stale', 'tags'],
    args: [],
  }),
  lapsed: define({
    late: 'reads',
    keys: ['scheduled', 'jobs', 'runs', 'ready'],
    args: ['now', 'cursor', 'limit', 'bytes'],
    reply: 'list',
  }),
  oldest: define({
    late: 'reads',
    keys: ['scheduled', 'jobs', 'runs', 'ready'],
    args: ['after', 'limit'],
    reply: 'list',
  }),
  groups: define({
    late: 'reads',
    keys: ['meta', 'line', 'lanes', 'holds', 'groups', 'tags'],
    args: ['generation', 'after', 'limit'],
    reply: 'list',
    each: ['group'],
  }),
});

/** A row of the table, and the name of its file. */
export type NamedScript = Script & { readonly verb: string };

function named<const T extends Readonly<Record<string, Script>>>(
  table: T,
): { readonly [Name in keyof T]: T[Name] & { readonly verb: string } } {
  const verbOf = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const rows = Object.entries(table).map(([name, script]) => [name, { ...script, verb: verbOf(name) }]);
  return Object.fromEntries(rows);
}

/** The rows by the names of their files. */
export const scriptsByVerb: ReadonlyMap<string, NamedScript> = new Map(
  Object.values<NamedScript>(scripts).map((script) => [script.verb, script]),
);
