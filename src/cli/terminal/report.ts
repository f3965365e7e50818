/**
 * Anything thrown → what the shell and the person get: a code of the catalogue, its exit status, one line that says
 * what is wrong and one that says what to do next.
 */

import { codeOf } from '../../inspect/failure.ts';
import { type ErrorCode, errorCatalogue, oneLine } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { Unreachable } from '../../redis/connection/connect-problem.ts';
import { createOutput } from './output.ts';
import type { Invocation } from './screen.ts';
import { paintFor } from './screen.ts';
import { json } from './text.ts';

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly exit: number;
}

const NEXT: Readonly<Record<string, string>> = {
  unavailable: 'start one with "duestream dev", or name one with --redis or DUESTREAM_REDIS_URL',
  indeterminate: 'repeat the same command with the same --id; it is safe',
  refused: 'run "duestream doctor": it says what this Redis lacks',
  'out-of-memory': 'raise maxmemory, or let jobs finish; "duestream doctor" shows the limit',
  'bad-config': 'correct it there, then run "duestream config print": it shows every value',
  'wrong-schema': 'run "duestream doctor" with the same flags: it says what is there and what to do',
  moved: 'repeat the command',
};

const PORT_TAKEN = 'name another port with --http-port, or 0 for any free one';

/** Says on stderr what went wrong, and returns the exit status. `next` replaces the usual next step. */
export function report(
  invocation: Invocation,
  error: unknown,
  how: { readonly json: boolean; readonly next?: string },
): number {
  const { code, message, exit } = failureOf(error);
  if (how.json) {
    invocation.stderr.write(`${json({ error: { code, message } })}\n`);
    return exit;
  }
  const { red, dim } = paintFor(invocation.stderr, invocation.env);
  const next = how.next ?? remedyOf(error) ?? NEXT[code];
  invocation.stderr.write(`${red('duestream:')} ${message}\n`);
  if (next !== undefined) createOutput(invocation, false).note(`${dim('next:')} ${oneLine(next)}`);
  return exit;
}

function failureOf(error: unknown): Failure {
  if (error instanceof Unreachable) return failure(error.code, error.saw);
  if (isEmbedded(error)) {
    // The list of remedies has a line for each system; it is our own text.
    const lines = error.message.split('\n').map((text) => text.trimEnd());
    return { code: error.code, message: lines.map((text) => cleanIndented(text)).join('\n'), exit: error.exitCode };
  }
  return failure(codeOf(error), error);
}

function failure(code: ErrorCode, error: unknown): Failure {
  return { code, message: reasonOf(error), exit: errorCatalogue[code].exit };
}

function remedyOf(error: unknown): string | undefined {
  if (error instanceof Unreachable) return error.remedy;
  return isPortTaken(error) ? PORT_TAKEN : undefined;
}

/** Also when the system's error is only the cause. */
function isPortTaken(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && error.code === 'EADDRINUSE') || isPortTaken(error.cause);
}

interface EmbeddedError extends Error {
  readonly code: string;
  readonly exitCode: number;
}

/** The error of `src/embedded`, which is known by its shape because only `dev` may import that folder. */
function isEmbedded(error: unknown): error is EmbeddedError {
  return error instanceof Error && error.name === 'EmbeddedRedisError';
}

function cleanIndented(text: string): string {
  const indent = text.length - text.trimStart().length;
  return ' '.repeat(indent) + oneLine(text);
}
