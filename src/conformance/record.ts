/**
 * What happened in one trial, in its order: calls that the program made, what it read of their answers, and what it printed. Judges
 * read it, and know nothing else.
 */
import { systemClock } from '../kernel/clock.ts';

/** One request of the program. */
export interface Call {
  /** Its place among all that happened. */
  readonly nth: number;
  readonly atMs: number;
  /** Which of the daemons was asked. */
  readonly daemon: number;
  readonly verb: string;
  readonly body: Fields;
  /** Undefined: there is none yet, or it was lost. */
  answer: Answer | undefined;
  /** Nobody will answer this request: the connection was closed. */
  isLost: boolean;
}

/** What the program could read. */
interface Answer {
  readonly nth: number;
  readonly atMs: number;
  readonly status: number;
  readonly body: Fields;
  /** In seconds, as the header says it. */
  readonly retryAfter: number;
}

/** One line that a program printed. */
interface Line {
  readonly nth: number;
  readonly program: number;
  readonly words: readonly string[];
}

export type Fields = Readonly<Record<string, unknown>>;

/** What the proxy tells of an answer. */
export type Answered = Pick<Answer, 'status' | 'body' | 'retryAfter'>;

export class Happenings {
  readonly calls: Call[] = [];
  readonly lines: Line[] = [];
  #last = 0;

  asked(of: Pick<Call, 'daemon' | 'verb' | 'body'>): Call {
    const call = { ...of, nth: this.#next(), atMs: systemClock.monotonicMs(), answer: undefined, isLost: false };
    this.calls.push(call);
    return call;
  }

  answered(call: Call, answered: Answered): void {
    call.answer = { ...answered, nth: this.#next(), atMs: systemClock.monotonicMs() };
  }

  printed(program: number, text: string): void {
    this.lines.push({ nth: this.#next(), program, words: text.trim().split(/\s+/) });
  }

  /** Lines of this kind, of this job if it is named. */
  said(word: string, id?: string): readonly Line[] {
    return this.lines.filter(({ words }) => words[0] === word && (id === undefined || words[1] === id));
  }

  #next(): number {
    this.#last += 1;
    return this.#last;
  }
}

export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);

/** The jobs that the program was handed with this answer. */
export const jobsIn = ({ verb, answer }: Call): readonly Fields[] =>
  verb === 'claim' && answer?.status === 200 ? listOf(answer.body.jobs) : [];

/** Verbs that name one run, for a shell, and what they say in the words of the calls for many. */
const OF_ONE: Readonly<Record<string, 'settle' | 'beat'>> = {
  complete: 'settle',
  fail: 'settle',
  defer: 'settle',
  begin: 'settle',
  extend: 'beat',
  progress: 'beat',
};

/** What a call says of runs, with the word that each has got. */
export function runsIn(
  call: Call,
): readonly { readonly run: string; readonly kind: 'settle' | 'beat'; readonly end: string; readonly word: string }[] {
  const { verb, body, answer } = call;
  const one = OF_ONE[verb];
  if (one !== undefined) {
    const end = one === 'settle' ? verb : '';
    return [{ run: String(body.run), kind: one, end, word: String(answer?.body.result ?? '') }];
  }
  const [runs, words] = verb === 'claim' ? [body.ends, answer?.body.ended] : [body.runs, answer?.body.results];
  const all: readonly unknown[] = Array.isArray(words) ? words : [];
  const kind = verb === 'beat' ? 'beat' : 'settle';
  return listOf(runs).map((run, at) => ({
    run: String(run.run),
    kind,
    end: String(run.end ?? ''),
    word: String(all[at] ?? ''),
  }));
}

/** The runs under which a job was handed out. */
export const runsOf = ({ calls }: Happenings, id: string): ReadonlySet<string> =>
  new Set(calls.flatMap(jobsIn).flatMap((job) => (job.id === id ? [String(job.run)] : [])));

/** The run under which a job was handed out last; undefined: it never was. */
export function runOf({ calls }: Happenings, id: string): string | undefined {
  const job = calls.flatMap(jobsIn).findLast((one) => one.id === id);
  return job === undefined ? undefined : String(job.run);
}
