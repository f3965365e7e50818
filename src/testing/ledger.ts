/** Every job there was, as it is now: of those that are over also what Redis does not keep. */
import { decodeRun, decodeTombstone, idOf, isTombstone } from '../job/codec.ts';
import { readRecord } from '../job/compensation.ts';
import type { JobState } from '../job/state.ts';
import { stateOf } from '../redis/read/inspect.ts';
import { dueOf } from '../redis/scripts/scripts.ts';
import { textOf } from './line.ts';
import type { createServer } from './redis/server.mjs';

/** A job that is not over, or how it ended. */
export interface TestJob {
  readonly id: string;
  readonly queue: string;
  readonly state: JobState;
  /** Epoch ms; undefined when it is not scheduled and not in line. */
  readonly dueMs: number | undefined;
  readonly attempts: number;
  readonly failures: number;
  /** With `dead`: the reason, such as `attempts-exhausted`. */
  readonly reason: string | undefined;
}

interface Known {
  readonly queue: string;
  readonly place: string;
  readonly member: string;
  runText: string;
  record: string;
  reason: string | undefined;
  last: JobState;
}

function dataIn(record: string): unknown {
  try {
    return readRecord(textOf(record)).data;
  } catch {
    return undefined;
  }
}

const PLACE = /^(.*:\{(.*):\d+\}):(jobs|runs|dead)$/;

export class Ledger {
  #server: ReturnType<typeof createServer> | undefined;
  readonly #known = new Map<string, Known>();
  /** By the names that a handler knows. */
  readonly #byId = new Map<string, Known>();
  /** Partitions that have, or had, jobs. */
  readonly places = new Set<string>();
  /** Grows with each change of a job. */
  changes = 0;

  watch(server: ReturnType<typeof createServer>): void {
    this.#server = server;
  }

  /** A command that is about to be carried out. */
  note(words: readonly string[]): void {
    const [name = '', key = ''] = words;
    const [, place = '', queue = '', part] = PLACE.exec(key) ?? [];
    const verb = name.toUpperCase();
    if (part === undefined || !/^(H|X|Z)/.test(verb)) return;
    if (part === 'jobs' && verb.startsWith('HSET')) {
      for (let at = 2; at < words.length; at += 2)
        this.#noteRecord({ place, queue }, words[at] ?? '', words[at + 1] ?? '');
    } else if (part === 'runs' && verb === 'HDEL') this.#noteEnds(place, words.slice(2));
    else if (part === 'dead' && verb === 'XADD') this.#noteLetter(place, words.slice(3));
    if (/^(HSET|HSETNX|HDEL|XADD)$/.test(verb)) this.changes += 1;
  }

  /** What a start has left is kept here when Redis forgets it. */
  #noteEnds(place: string, members: readonly string[]): void {
    const runs = this.#server?.db.hash(`${place}:runs`);
    for (const member of members) {
      const known = this.#known.get(`${place} ${member}`);
      const text = runs?.get(member);
      if (known && text !== undefined) known.runText = text;
    }
  }

  #noteLetter(place: string, flat: readonly string[]): void {
    const after = (field: string) => flat[flat.indexOf(field) + 1] ?? '';
    const known = this.#known.get(`${place} ${after('member')}`);
    if (known) Object.assign(known, { reason: textOf(after('reason')), last: 'dead' });
  }

  #noteRecord({ place, queue }: { place: string; queue: string }, member: string, text: string): void {
    if (member.startsWith('\0')) return;
    const known = this.#known.get(`${place} ${member}`);
    if (isTombstone(text)) return;
    if (!known) {
      this.places.add(place);
      const fresh = {
        queue: textOf(queue),
        place,
        member,
        runText: '',
        record: text,
        reason: undefined,
        last: 'scheduled' as const,
      };
      this.#known.set(`${place} ${member}`, fresh);
      this.#byId.set(`${fresh.queue} ${idOf(textOf(member)).id}`, fresh);
      return;
    }
    known.record = text;
    const before = this.#server?.db.hash(`${place}:jobs`)?.get(member);
    // Another life begins.
    if (before === undefined || isTombstone(before)) Object.assign(known, { runText: '', reason: undefined });
  }

  /** Of the last start of a job. */
  lastOf(queue: string, id: string): { readonly data: unknown; readonly attempt: number } {
    const known = this.#byId.get(`${queue} ${id}`);
    if (!known) return { data: undefined, attempt: 1 };
    return { data: dataIn(known.record), attempt: decodeRun(textOf(known.runText))?.attempts ?? 1 };
  }

  all(): readonly TestJob[] {
    return [...this.#known.values()].map((known) => this.#jobOf(known));
  }

  #jobOf(known: Known): TestJob {
    const db = this.#server?.db;
    const { place, member, queue } = known;
    const text = db?.hash(`${place}:jobs`)?.get(member);
    const tombstone = text !== undefined && isTombstone(text) ? decodeTombstone(text) : undefined;
    const due = String(this.#server?.ask(['ZSCORE', `${place}:scheduled`, member]) ?? '');
    const live = db?.hash(`${place}:runs`)?.get(member);
    const run = decodeRun(textOf(live ?? known.runText));
    const state =
      text === undefined && due === ''
        ? known.last
        : stateOf({ tombstone, due, run: tombstone ? undefined : decodeRun(textOf(live ?? '')) });
    known.last = state;
    return {
      id: idOf(textOf(member)).id,
      queue,
      state,
      dueMs: due === '' || tombstone ? undefined : dueOf(due).dueMs,
      attempts: run?.attempts ?? 0,
      failures: run?.failures ?? 0,
      reason: state === 'dead' ? known.reason : undefined,
    };
  }
}
