/** The accounts of the starts of this process, summed by queue and minute until the timekeeper adds them in Redis. */
import {
  accountOf,
  type Cause,
  EARLIEST_MS,
  entryMs,
  mainCause,
  type StartAccount,
  type StartFacts,
  tokenMs,
} from '../../job/account.ts';
import { groupOf } from '../../job/labels.ts';
import { MINUTE_MS } from '../../job/minutes.ts';
import { isPlain } from '../../job/record-header.ts';
import { inTurns, type Steps } from '../../kernel/steps.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type CauseSums, longest } from '../../redis/read/causes.ts';
import { startFacts } from '../../redis/scripts/ready.ts';
import type { Started } from '../../redis/scripts/replies.ts';
import type { InFlightEntry } from './in-flight.ts';
import type { LineWatch } from './line-watch.ts';

/** Groups of jobs that were late by so much are told by name. */
const LATE_MS = 1000;
/** Of a minute so many groups are remembered; where there are more, the half with the least is forgotten. */
const GROUPS_MAX = 100;

/** So many starts of a minute wait until it is known what held them in line; others are told without that. */
const WAITS_MAX = 2000;

interface Sums extends CauseSums {
  starts: number;
  late: number;
  readonly ms: Map<Cause, number>;
  readonly lateBy: Map<Cause, number>;
  groups: Map<string, number>;
  /** Starts of jobs that were late in a line. */
  readonly waits: Start[];
}

/** What its account is made of, and nothing else: a start is kept for up to a minute, and its record may be large. */
interface Start {
  readonly ref: PartitionRef;
  readonly facts: StartFacts;
}

export class CauseBook {
  readonly #byQueue = new Map<string, Map<number, Sums>>();
  readonly lines: LineWatch;

  constructor(lines: LineWatch) {
    this.lines = lines;
  }

  /** A job was started. One whose lateness the clock of Redis has made is left out. */
  started({ ref, delivery }: InFlightEntry, started: Started, { isClockSet }: { readonly isClockSet: boolean }): void {
    if (isClockSet) return;
    const { record, token, crashes } = started;
    const isFlat = crashes === 0 && ref.gates === undefined && isPlain(record);
    const startedMs = tokenMs(token);
    const sums = this.#sumsOf(ref.queue, Math.floor(startedMs / MINUTE_MS));
    const { dueMs } = delivery;
    const lateMs = dueMs < EARLIEST_MS ? 0 : Math.max(0, startedMs - dueMs);
    sums.starts += 1;
    const withinMs = ref.lateness?.withinMs;
    if (isFlat && lateMs > 0) addFlat(sums, { dueMs, throughMs: entryMs(delivery.entry), startedMs, withinMs });
    else if (lateMs > 0) {
      const facts = startFacts({ ref, delivery, run: started, record, isClockSet });
      this.#addParts(sums, { ref, facts }, lateMs);
    }
    if (lateMs < LATE_MS) return;
    sums.late += 1;
    const group = groupOf(delivery.member);
    if (group !== undefined) addGroup(sums, group, lateMs);
  }

  /** What was summed of a queue, and is to be added; it begins anew. */
  async take(queue: string, nowMs: number): Promise<ReadonlyMap<number, CauseSums>> {
    const minutes = this.#byQueue.get(queue) ?? new Map<number, Sums>();
    this.#byQueue.delete(queue);
    const refs = new Set([...minutes.values()].flatMap(({ waits }) => waits.map(({ ref }) => ref)));
    for (const ref of refs) await this.lines.read(ref, nowMs);
    await inTurns(this.#addWaits(minutes.values()));
    return minutes;
  }

  /** The account of a job that was late for long goes through much that was seen of its line. */
  *#addWaits(all: Iterable<Sums>): Steps<void> {
    for (const sums of all) {
      for (const start of sums.waits) {
        this.#addAccount(sums, start);
        yield;
      }
    }
  }

  #addParts(sums: Sums, start: Start, lateMs: number): void {
    const isWait = lateMs >= LATE_MS && start.facts.isGated === true && sums.waits.length < WAITS_MAX;
    if (isWait) sums.waits.push(start);
    else this.#addAccount(sums, start);
  }

  #addAccount(sums: Sums, { ref, facts }: Start): void {
    const account = accountOf({ ...facts, looks: this.lines.looksOf(ref) });
    if (account) addParts(sums, account, ref.lateness?.withinMs);
  }

  #sumsOf(queue: string, minute: number): Sums {
    const minutes = this.#byQueue.get(queue) ?? new Map<number, Sums>();
    const sums = minutes.get(minute) ?? noSums();
    minutes.set(minute, sums);
    this.#byQueue.set(queue, minutes);
    return sums;
  }
}

const noSums = (): Sums => ({
  starts: 0,
  late: 0,
  ms: new Map(),
  lateBy: new Map(),
  groups: new Map(),
  waits: [],
});

/** Nearly every start: it was promoted, and a worker took it. Nothing is made for it. */
function addFlat(
  sums: Sums,
  {
    dueMs,
    throughMs,
    startedMs,
    withinMs = Number.POSITIVE_INFINITY,
  }: {
    readonly dueMs: number;
    readonly throughMs: number;
    readonly startedMs: number;
    readonly withinMs: number | undefined;
  },
): void {
  const through = Math.min(startedMs, Math.max(dueMs, throughMs));
  const [promotion, worker] = [through - dueMs, startedMs - through];
  add(sums.ms, 'promotion', promotion);
  add(sums.ms, 'worker', worker);
  if (promotion + worker > withinMs) add(sums.lateBy, promotion >= worker ? 'promotion' : 'worker', 1);
}

function addParts(sums: Sums, account: StartAccount, withinMs = Number.POSITIVE_INFINITY): void {
  for (const { cause, ms } of account.parts) add(sums.ms, cause, ms);
  const held = account.lateMs > withinMs ? mainCause(account) : undefined;
  if (held !== undefined) add(sums.lateBy, held, 1);
}

function add(all: Map<Cause, number>, cause: Cause, sum: number): void {
  if (sum > 0) all.set(cause, (all.get(cause) ?? 0) + sum);
}

function addGroup(sums: Sums, group: string, ms: number): void {
  sums.groups.set(group, (sums.groups.get(group) ?? 0) + ms);
  if (sums.groups.size > GROUPS_MAX) sums.groups = new Map(longest(sums.groups, GROUPS_MAX / 2));
}
