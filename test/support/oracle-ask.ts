/** croniter's instants: all questions go to one Python process as JSON, all answers come back as JSON. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { DstPolicy } from '../../src/time/zone.ts';
import type { Span } from './oracle-table.ts';
import { findCroniter } from './python.ts';
import { root } from './repository.ts';

export interface Question extends Span, DstPolicy {
  readonly zone: string;
  readonly cron: string;
}

export interface Answers {
  readonly python: string;
  /** The version of its time zone database. */
  readonly tz: string;
  /** Per question about a zone: every change of its offset, and the offset from then on; seconds. */
  readonly changes: readonly (readonly (readonly [at: number, offset: number])[])[];
  /** Per question: the instants in seconds. */
  readonly fires: readonly (readonly number[])[];
}

export async function askCroniter(asked: {
  readonly cases: readonly Question[];
  readonly changes: readonly (Span & { readonly zone: string })[];
}): Promise<Answers> {
  const python = await findCroniter();
  const child = spawn(python.path, [join(root, 'test/support/oracle-croniter.py')], {
    env: python.env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const answer = text(child.stdout);
  child.stdin.end(JSON.stringify({ cases: asked.cases.map(inSeconds), changes: asked.changes.map(inSeconds) }));
  return JSON.parse(await answer) as Answers;
}

function inSeconds<T extends Span>({ fromMs, toMs, ...rest }: T) {
  return { ...rest, from: fromMs / 1000, to: toMs / 1000 };
}
