/**
 * How much one command may read. Redis serves nobody else meanwhile, and a record may be of 256 KiB, so work is bounded
 * by bytes and not by counts alone. `docs/reference/measured.md` has what each script takes.
 */

/**
 * Bytes of records that one bulk call reads. What is over is answered `later`. `start` and `serve` hash none, and read up
 * to eight records at a time: where large ones follow small ones, a call of theirs reads eight of them at most.
 */
export const READ_BYTES_MAX = 640 * 1024;
/**
 * Jobs per bulk call: a start of 80 takes 1 ms with records of 200 bytes, 2 ms with 4 KiB. Where a job costs more, or
 * several commands whatever its size, there are fewer, so that a call takes about 1 ms and no more than 2: on a slow
 * machine of two cores its p99.9 then stays below 5 ms (`npm run bench -- stages`, docs/reference/measured.md).
 */
export const READ_JOBS_MAX = 80;
/** `relay` completes, promotes and starts: so many of each, so that it takes no longer than other scripts. */
export const RELAY_JOBS_MAX = 80;
/** `cancel` hashes each record: 8 µs, 21 µs with 4 KiB. */
export const CANCEL_JOBS_MAX = 50;
/** `edit` hashes each record twice, and is sent new ones, of which a call has so many bytes. */
export const EDIT_JOBS_MAX = 25;
export const EDIT_BYTES_MAX = 256 * 1024;
/** `await` reads tombstones and runs: 2 µs, 4 µs where it marks. */
export const AWAIT_JOBS_MAX = 100;
/** `reschedule` reads no record. */
export const RESCHEDULE_JOBS_MAX = 100;
/** `expire` writes dead letters: 30 µs each, 45 µs with records of 4 KiB. */
export const EXPIRE_JOBS_MAX = 40;
/** `reclaim` asks for each entry, reads it, counts the crash and claims it: 25 µs. */
export const RECLAIM_JOBS_MAX = 50;
/** `extend` claims each entry: 9 µs. */
export const EXTEND_JOBS_MAX = 100;
/** `log` keeps lines: so many jobs and bytes of lines a call. */
export const LOG_JOBS_MAX = 50;
export const LOG_BYTES_MAX = 128 * 1024;
/** `fire` places each job: 9 µs, 25 µs with records of 4 KiB, of which a call has so many bytes. */
export const FIRE_JOBS_MAX = 100;
export const FIRE_BYTES_MAX = 256 * 1024;
/** `check-entries` compares each entry with what is held: 5 µs. */
export const ENTRIES_MAX = 300;

/**
 * Arguments of one command, its name included. Some services refuse 4,000 (docs/how-to/managed-redis.md), so no command of
 * ours has more than this. What could grow beyond is sent in parts (`inParts`) or bounded by one of the numbers above;
 * `test/support/arguments.ts` counts those of each command that the tests make the product send.
 */
export const ARGUMENTS_MAX = 3900;

/** Items of one command where each is one argument. */
const PART = 3000;

/** Asks about any number of items, as many as fit into a command at a time. The answers are in the order of the items. */
export async function inParts<Item, Answer>(
  items: readonly Item[],
  ask: (some: readonly Item[]) => Promise<readonly Answer[]>,
  most = PART,
): Promise<readonly Answer[]> {
  if (items.length <= most) return items.length === 0 ? [] : ask(items);
  const answers: Answer[] = [];
  for (let from = 0; from < items.length; from += most) {
    for (const answer of await ask(items.slice(from, from + most))) answers.push(answer);
  }
  return answers;
}

/** How many values a plain command asks for next. */
export interface Step {
  readonly next: () => number;
  /** How large the values were that came. */
  readonly saw: (sizes: readonly number[]) => void;
}

const PAGE_BYTES_MAX = 1024 * 1024;

/**
 * One value first, then up to twice as many each time, and never more than the largest so far lets expect to fit. A plain
 * command cannot stop in its middle: where large values begin after small ones, one page is larger than that.
 */
export function createStep(countMax: number): Step {
  let count = 1;
  let largest = 1;
  return {
    next: () => count,
    saw(sizes) {
      for (const size of sizes) largest = Math.max(largest, size);
      count = Math.max(1, Math.min(count * 2, countMax, Math.floor(PAGE_BYTES_MAX / largest)));
    },
  };
}
