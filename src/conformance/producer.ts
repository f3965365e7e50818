/**
 * `duestream conformance --producer`: asks a program the questions of the golden vectors, a line of JSON each, and compares what it
 * says. The program answers each line with one line, in their order: `{"says": …}`, or `{"knows": false}` for what it does not do.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { counted } from '../kernel/humanize.ts';
import { type Ask, producerAsks } from './producer-asks.ts';
import { fieldsOf } from './record.ts';

export interface AskRow {
  readonly ask: string;
  readonly status: 'held' | 'failed' | 'not tried';
  readonly saw: string;
}

export interface ProducerConformance {
  readonly ok: boolean;
  readonly command: string;
  readonly tookMs: number;
  readonly rows: readonly AskRow[];
}

interface ProducerInput {
  readonly command: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly withinMs: number;
  readonly signal: AbortSignal;
}

const VECTORS = new URL('../../test/golden/wire-v1.json', import.meta.url);
const WORDS_MAX = 2000;

/** @throws DuestreamError `failed` when the program ends, or says what is no JSON */
export async function conformProducer({ command, env, withinMs, signal }: ProducerInput): Promise<ProducerConformance> {
  const startedMs = systemClock.monotonicMs();
  const vectors = fieldsOf(JSON.parse(await readFile(VECTORS, 'utf8')));
  const asks = Object.entries(producerAsks).flatMap(([ask, { of }]) => of(vectors).map((one) => ({ ask, ...one })));
  const program = spawn(command, { shell: true, detached: true, env: { ...env } });
  const callOff = systemClock.timer(withinMs, () => kill(program));
  const stop = () => kill(program);
  signal.addEventListener('abort', stop, { once: true });
  try {
    const answers = await answersOf(program, asks);
    const rows = Object.keys(producerAsks).map((ask) => askRow(ask, asks, answers));
    const ok = rows.every(({ status }) => status !== 'failed');
    return { ok, command, tookMs: Math.round(systemClock.monotonicMs() - startedMs), rows };
  } finally {
    callOff();
    signal.removeEventListener('abort', stop);
    kill(program);
  }
}

function kill({ pid, exitCode }: ChildProcessWithoutNullStreams): void {
  if (pid === undefined || exitCode !== null) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The whole group is gone.
  }
}

async function answersOf(program: ChildProcessWithoutNullStreams, asks: readonly Ask[]): Promise<readonly unknown[]> {
  let words = '';
  const closed = new Promise<void>((resolve) => program.once('close', () => resolve()));
  program.once('error', (error) => {
    words = error.message;
  });
  program.stderr.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(-WORDS_MAX);
  });
  // A program that ends early is told by how many answers there are.
  program.stdin.on('error', () => undefined);
  program.stdin.end(asks.map(({ ask, given }) => `${JSON.stringify({ ask, given })}\n`).join(''));
  const answers: unknown[] = [];
  for await (const text of createInterface({ input: program.stdout })) {
    if (text.trim() !== '') answers.push(parsed(text));
    if (answers.length === asks.length) return answers;
  }
  // Its last words may come after its last answer.
  await closed;
  const why = words.trim() || 'it said nothing';
  throw new DuestreamError(
    'failed',
    `the program answered ${answers.length} of ${asks.length} questions, then it ended: ${why}`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `the program answered ${text.slice(0, 200)}; allowed: one line of JSON, such as {"says": "j:a"}`;
    throw new DuestreamError('failed', message, { cause: error });
  }
}

/** The first answer that differs is shown. */
export function askRow(name: string, asks: readonly Ask[], answers: readonly unknown[]): AskRow {
  const own = asks.map((ask, at) => ({ ...ask, said: fieldsOf(answers[at]) })).filter(({ ask }) => ask === name);
  const known = own.filter(({ said }) => said.knows !== false);
  if (known.length === 0) return { ask: name, status: 'not tried', saw: 'the program says that it does not do this' };
  const wrong = known.find(({ said, wanted }) => !isDeepStrictEqual(said.says, wanted));
  if (wrong === undefined)
    return { ask: name, status: 'held', saw: `${counted(known.length, 'answer')} as the vectors say` };
  const [given, got, wanted] = [wrong.given, wrong.said.says, wrong.wanted].map((value) => JSON.stringify(value));
  return { ask: name, status: 'failed', saw: `given ${given}: got ${got ?? 'nothing'}, the vectors say ${wanted}` };
}
