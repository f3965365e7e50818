/**
 * What running handlers said of their jobs, on its way to Redis:
 *
 *   context.log ──▶ book of the run ──▶ `log`, in the pipeline of the next `extend` or settle of its job, before it
 *
 * It is a command more and no round trip more: nobody waits for its reply, and the call that follows it on the same connection is
 * sent in the same turn. It is sent by its text (3 KB; a tenth more time of Redis than by its digest, 9 µs): a digest that Redis has
 * forgotten would bring the lines behind the end of their job. Without a line nothing is sent. Lines have numbers, so that the script knows those that it has kept: a
 * call without a reply is made again with the next trip. What a full Redis refuses is dropped and counted, for a line must never
 * hold up a job. What was not sent when the process dies is lost.
 */
import type { Emitter } from '../../job/events.ts';
import { LINES_BYTES_MAX, LINES_MAX, type SaidLines } from '../../job/log-lines.ts';
import { outageOf } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { LOG_BYTES_MAX, LOG_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Claim } from '../../redis/scripts/replies.ts';

/** The lines of one start that Redis does not know yet: as many as it would keep. */
export class LogBook {
  /** As a note of the history has them. */
  readonly #tags: string;
  #texts: string[] = [];
  #bytes = 0;
  /** The number of the last line. */
  #last = 0;

  constructor(tags: string) {
    this.#tags = tags;
  }

  add(text: string): void {
    this.#texts.push(text);
    this.#last += 1;
    this.#bytes += sizeOf(text);
    while (this.#texts.length > LINES_MAX || this.#bytes > LINES_BYTES_MAX) this.#shift();
  }

  /** Undefined: there is nothing to tell. */
  get unsent(): SaidLines | undefined {
    if (this.#texts.length === 0) return undefined;
    return { last: this.#last, tags: this.#tags, texts: [...this.#texts] };
  }

  /** Nobody has to be told of the lines up to this number any more. Returns how many these are. */
  over(last: number): number {
    const count = Math.max(0, this.#texts.length - (this.#last - last));
    for (let left = count; left > 0; left -= 1) this.#shift();
    return count;
  }

  #shift(): void {
    this.#bytes -= sizeOf(this.#texts.shift() ?? '');
  }
}

/** In Redis, with its line break. */
const sizeOf = (text: string): number => Buffer.byteLength(text) + 1;

/** A start whose handler may have said something. */
export interface Speaker {
  readonly claim: Claim;
  readonly book: LogBook | undefined;
}

type Speaking = Claim & { readonly lines: SaidLines; readonly book: LogBook };

/** Sends what is unsent, before it returns. The call that it is to come before must go out on the same connection, next. */
export function sendLines(
  { jobs, events }: { readonly jobs: Pick<Jobs, 'log'>; readonly events: Emitter },
  ref: PartitionRef,
  speakers: readonly Speaker[],
): void {
  const speaking = speakers.flatMap(({ claim, book }): readonly Speaking[] => {
    const lines = book?.unsent;
    return book && lines ? [{ ...claim, lines, book }] : [];
  });
  for (const some of callsOf(speaking)) {
    // Lost, or not answered: the lines are in the book, and go with the next trip.
    jobs.log(ref, some).then(
      () => noteOver(some),
      (error: unknown) => {
        if (outageOf(error) === 'full') events.emit('log.refused', { queue: ref.queue, lines: noteOver(some) });
      },
    );
  }
}

/** Whatever Redis answers: lines of a start that is over or another's are nobody's. */
const noteOver = (some: readonly Speaking[]): number =>
  some.reduce((sum, { book, lines }) => sum + book.over(lines.last), 0);

/** As many as one call takes. */
function callsOf(speaking: readonly Speaking[]): readonly (readonly Speaking[])[] {
  const calls: Speaking[][] = [];
  let bytes = 0;
  for (const one of speaking) {
    const size = one.lines.texts.reduce((sum, text) => sum + sizeOf(text), 0);
    const last = calls.at(-1);
    if (last && last.length < LOG_JOBS_MAX && bytes + size <= LOG_BYTES_MAX) {
      last.push(one);
      bytes += size;
    } else {
      calls.push([one]);
      bytes = size;
    }
  }
  return calls;
}
