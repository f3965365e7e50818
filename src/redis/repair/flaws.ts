/** What can be wrong with a partition: its kinds, what each means to a person, and what a repair would do. */
import type { Damage, DamageKind } from './damage.ts';

export interface Flaw {
  readonly invariant: string;
  readonly what: DamageKind | StateKind;
  /** The member, entry or key; empty when it is about the partition. */
  readonly name: string;
  readonly means: string;
  /** What a repair would do; undefined when none is provably safe. */
  readonly repair: string | undefined;
  readonly damage: Damage | undefined;
}

type StateKind =
  | 'overdue'
  | 'lease'
  | 'expiring'
  | 'balance'
  | 'immortal'
  | 'shrunk'
  | 'type'
  | 'hollow'
  | 'exhausted'
  | 'unswept'
  | 'misweighed'
  | 'misshared'
  | 'overnoted'
  | 'unmarked'
  | 'unclosed'
  | 'overlent'
  | 'overdrawn'
  | LeftoverKind
  | 'unreadable';
/** What is left of something that is gone, in a key of the namespace or of its schedules. */
export type LeftoverKind = 'ownerless' | 'crowded' | 'lost' | 'endless' | 'gone';
type Kind = Flaw['what'];

/**
 * Who mends a flaw. `parts`, `tags` and `gates`: a script, damage by damage; `bytes`, `closures`, `exhausted` and `hollow`: a call
 * for the whole partition; `namespace`: `removeLeftover`.
 */
export type Mender = 'parts' | 'tags' | 'gates' | 'bytes' | 'closures' | 'exhausted' | 'hollow' | 'namespace';

/** `doctor --keys`, its repair and the repairer of a leader read this table: who mends is named wherever a repair is promised. */
type Row =
  | readonly [invariant: string, means: string]
  | readonly [invariant: string, means: string, repair: string, by: Mender];

const FLAWS: Readonly<Record<Kind, Row>> = {
  orphan: [
    'I2',
    'its record is in no index, so the job would never run',
    'schedule it at its due time, or now if that has passed; a start that still runs is fenced',
    'parts',
  ],
  tombstone: [
    'I2',
    'the job is over, and nothing would ever remove its tombstone',
    'enter the tombstone in done',
    'parts',
  ],
  unrecorded: [
    'I3',
    'it is scheduled without a record, so its data is gone; it becomes a dead letter record-missing when it is due',
  ],
  vanished: ['I4', 'a consumer holds an entry that was removed from ready; its worker, or the next one, lets it go'],
  stuck: [
    'I5',
    'the entry was delivered, nobody holds it and its job is not over: it would never be delivered again',
    'give it back to the worker that runs it, else put it at the end of ready; remove it if its job is over',
    'parts',
  ],
  group: [
    'I6',
    'ready has no consumer group, so no worker can read it',
    'create the group again, from the first entry',
    'parts',
  ],
  shared: ['I1', 'its run names another owner than the consumer that holds its entry; the next start decides'],
  ahead: [
    'I7',
    'no script can have written its run: it is unreadable, has a token from the future, or more failures than starts',
  ],
  shrunk: ['I7', 'somebody put back an older state, from a backup or a replica or by hand: tokens may be given twice'],
  early: ['I8', 'its entry is older than its due time: it was promoted early, or the clock of Redis went back'],
  overdue: [
    'I9',
    'a daemon leads, and yet the first job is more than 5 s late and does not move: look at the log of that daemon',
  ],
  lease: ['I10', 'the lease never ends, or later than it should; the next election takes it over'],
  expiring: ['I10', 'this key will expire, and its content will be lost: PERSIST it at once'],
  immortal: ['I10', 'a heartbeat that stays for hours or for ever; DEL it if the process is gone'],
  balance: ['I11', 'the counters do not add up: somebody else removed or added records'],
  idle: ['I12', 'it is a run without a record', 'remove the run, unless a worker runs the job', 'parts'],
  untagged: [
    'I15',
    'it has tags that are not in the index, so it is not found by them',
    'enter its tags in the index',
    'tags',
  ],
  astray: [
    'I15',
    'an entry of the index of tags whose job is over or has other tags, or whose set is gone; lists leave it out, and it takes memory',
    'remove the entry',
    'tags',
  ],
  unlisted: [
    'I21',
    'no list of sets has this one, so nobody makes its callback if the step that should was cut off',
    'enter it in the index',
    'tags',
  ],
  unheld: [
    'I13',
    'the entry of a group has no hold, so its group may run one job more than it may',
    'write the hold',
    'gates',
  ],
  loose: [
    'I13',
    'a hold without an entry, so its group runs one job less than it may; the leader takes it away within minutes',
    'take the hold away, and open the lanes of its group',
    'gates',
  ],
  unlined: [
    'I14',
    'it waits in line and has no place there, so its turn would never come',
    'put it back to its due time: it is lined up anew',
    'gates',
  ],
  stale: ['I14', 'a place in line in which nobody waits; it goes when its turn comes'],
  shut: ['I14', 'somebody waits in this lane, its group may run more, and it is not open', 'open the lane', 'gates'],
  unused: [
    'I14',
    'nothing is left of the rate and the closing of this group; the leader takes it away',
    'take it away',
    'gates',
  ],
  vacant: [
    'I23',
    'a group is kept in strict order by a job that is over, or by a dead letter that is gone; it keeps nobody, and the leader takes it away within seconds',
    'take it away, and open the lanes of its group',
    'gates',
  ],
  spent: ['I23', 'a due time that was given in a group long ago; the leader takes it away', 'take it away', 'gates'],
  unswept: [
    'I16',
    'the history has records that are in no order of ends, so no sweep would ever remove them; remove both keys of the history',
  ],
  misweighed: [
    'I17',
    'the bytes that the limit of its queue is compared with are far from those of its records, so jobs may be refused or taken that should not',
    'count them anew, as its leader does all the time',
    'bytes',
  ],
  misshared: [
    'I17',
    'its share of the limits of its queue is another one than the registry says; its leader compares them and writes the right one within a minute',
  ],
  overnoted: [
    'I18',
    'there are more notes of old entries than ready has entries, so its limit would let too many jobs in; the next sweep of its leader removes them',
  ],
  ownerless: [
    'I19',
    'the registry has this setting, and its queue is not declared',
    'remove the setting, unless the queue is declared by then',
    'namespace',
  ],
  crowded: [
    'I19',
    'there are more tokens of the HTTP API than there may be, so no more can be made; "duestream tokens revoke" takes some away',
  ],
  lost: [
    'I19',
    'more processes without a heartbeat are listed than anybody needs: they were killed',
    'take them out of the list, but for those that have a heartbeat by then',
    'namespace',
  ],
  endless: [
    'I19',
    'the session of a page, or what is known of an Idempotency-Key, lives for longer than it should, or for ever',
    'give it the time to live of its kind',
    'namespace',
  ],
  gone: [
    'I19',
    'the partition knows how far this schedule was fired, and no such schedule is defined for its queue',
    'forget what it fired, unless it is put again by then',
    'namespace',
  ],
  unmarked: [
    'I20',
    'tags are closed and the partition does not say so, so jobs with these tags would start',
    'say so',
    'closures',
  ],
  unclosed: [
    'I20',
    'this tag is closed in another partition of its queue, and here not, or for less long: jobs with it would start; a call to close or to open it was cut short',
    'close it until the latest end; if it was to be opened, open it again instead',
    'closures',
  ],
  unordered: [
    'I22',
    'its record is debounced and does not say of which call it is, or newer data came for a run whose record is not debounced: somebody else wrote one of them',
  ],
  overlent: [
    'I24',
    'the partition has more places of a limit that queues share than the ledger has lent it, so more jobs may run than the limit says; its leader gives back or asks anew within a second',
  ],
  overdrawn: [
    'I24',
    'a limit that queues share has lent more places than there are, and asks nobody to give any back: somebody else wrote its ledger',
  ],
  unreadable: [
    'key',
    'its entry in the registry cannot be read, so nobody leads or serves this queue; "duestream queues rm <queue> --force" removes it',
  ],
  type: ['key', 'somebody else put another type at our key, and the partition stands still: rename or delete it'],
  hollow: [
    'key',
    'a stream with more nodes than entries: newer versions of Redis refuse to load its dump, so they would not start again',
    'take the empty nodes off',
    'hollow',
  ],
  exhausted: [
    'key',
    'somebody else added an entry with the last id of all, and Redis refuses every later one: no job runs or dies any more',
    'give that entry an id of now',
    'exhausted',
  ],
};

/** Undefined: no repair of it is provably safe. */
export const menderOf = (what: Kind): Mender | undefined => FLAWS[what][3];

/** For people: a member that is no text cannot be shown as it is. */
export function damageFlaw(damage: Damage): Flaw {
  const [name, detail] = [damage.name, damage.detail].map((bytes) => Buffer.from(bytes, 'latin1').toString());
  return { ...flawOf(damage.kind, name, detail === '-' ? '' : detail), damage };
}

export function flawOf(what: Kind, name = '', detail = ''): Flaw {
  const [invariant, means, repair] = FLAWS[what];
  return { invariant, what, name, means: detail === '' ? means : `${means} (${detail})`, repair, damage: undefined };
}
