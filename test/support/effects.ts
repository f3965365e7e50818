/**
 * What a run of many jobs under fire must have left behind, judged from the file its handlers wrote and from what Redis
 * still holds. Pure: the same story always gets the same verdict.
 */
import { readFileSync } from 'node:fs';

/** One line of `effects-handlers.mjs`. */
export interface Effect {
  readonly what: 'start' | 'end';
  readonly id: string;
  readonly attempt: number;
  readonly crashes: number;
  readonly token: string;
  readonly pid: number;
  /** Wall clock of the machine, which is Redis's too. */
  readonly ms: number;
  readonly due: number;
}

/** What was seen in Redis right after a kill. */
export interface Kill {
  /** Jobs whose handler may run twice for it. */
  readonly running: number;
  /**
   * Entries that lost their consumer, and those of them that had been started. Undefined where Redis was killed: it
   * comes back with heartbeats that ran out, so living workers may take over from each other what nobody runs.
   */
  readonly left: { readonly entries: number; readonly started: number } | undefined;
}

export interface Story {
  /** Id → due that was asked for. */
  readonly planned: ReadonlyMap<string, number>;
  readonly effects: readonly Effect[];
  readonly kills: readonly Kill[];
  /** What Redis holds after the end. */
  readonly left: {
    /** Id → how it is over; a job that is not over is missing. */
    readonly over: ReadonlyMap<string, string>;
    readonly scheduled: number;
    readonly entries: number;
    readonly pending: number;
    readonly runs: number;
    readonly letters: number;
    readonly crashed: number;
    readonly reclaimed: number;
  };
}

export function readEffects(file: string): readonly Effect[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Effect => JSON.parse(line));
}

/** How often handlers were started beyond once per job. */
export function duplicatesIn(effects: readonly Effect[]): number {
  const starts = effects.filter(({ what }) => what === 'start');
  return starts.length - new Set(starts.map(({ id }) => id)).size;
}

/** Every promise that was broken, one sentence each; empty when all is well. */
export function judge(story: Story): readonly string[] {
  return [...lost(story), ...early(story), ...fenced(story), ...duplicates(story), ...stuck(story), ...crashes(story)];
}

function lost({ planned, effects, left }: Story): readonly string[] {
  const ended = new Set(effects.filter(({ what }) => what === 'end').map(({ id }) => id));
  const ids = [...planned.keys()];
  return [
    ...ids.filter((id) => !ended.has(id)).map((id) => `lost: ${id} never ended`),
    ...ids
      .filter((id) => left.over.get(id) !== 'done')
      .map((id) => `lost: ${id} is ${left.over.get(id) ?? 'not over'} instead of done`),
    ...[...ended].filter((id) => !planned.has(id)).map((id) => `strange: ${id} ran and was never scheduled`),
  ];
}

function early({ planned, effects }: Story): readonly string[] {
  return effects
    .filter(({ what }) => what === 'start')
    .map(({ id, ms, due }) => ({ id, ms, notBefore: Math.max(due, planned.get(id) ?? due) }))
    .filter(({ ms, notBefore }) => ms < notBefore)
    .map(({ id, ms, notBefore }) => `early: ${id} started ${notBefore - ms} ms before its due`);
}

/** The file is in the order of the starts, so the tokens of a job must grow in it. */
function fenced({ effects }: Story): readonly string[] {
  const newest = new Map<string, bigint>();
  const broken: string[] = [];
  for (const { what, id, token } of effects) {
    if (what === 'end') continue;
    const last = newest.get(id) ?? 0n;
    if (BigInt(token) <= last) broken.push(`token: ${id} started with ${token} after ${last}`);
    newest.set(id, BigInt(token));
  }
  return broken;
}

function duplicates({ effects, kills }: Story): readonly string[] {
  const many = duplicatesIn(effects);
  const most = sum(kills.map(({ running }) => running));
  return many > most ? [`duplicates: ${many} starts too many, and ${most} jobs ran when something was killed`] : [];
}

function stuck({ left }: Story): readonly string[] {
  const places = ['scheduled', 'entries', 'pending', 'runs', 'letters'] as const;
  return places.filter((place) => left[place] > 0).map((place) => `stuck: ${left[place]} in ${place}`);
}

function crashes({ effects, kills, left }: Story): readonly string[] {
  const exact = kills.flatMap((kill) => kill.left ?? []);
  if (exact.length < kills.length) return [];
  const seen = new Map<string, number>();
  for (const { id, crashes: count } of effects) seen.set(id, Math.max(count, seen.get(id) ?? 0));
  return [
    ...differs('jobs were running on what was killed', sum(exact.map(({ started }) => started)), left.crashed),
    ...differs('crashes were told to handlers', sum([...seen.values()]), left.crashed),
    ...differs('entries lost their consumer', sum(exact.map(({ entries }) => entries)), left.reclaimed, 'reclaims'),
  ];
}

function differs(what: string, expected: number, counted: number, noun = 'crashes'): readonly string[] {
  return expected === counted ? [] : [`crashes: ${expected} ${what}, and ${counted} ${noun} were counted`];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
