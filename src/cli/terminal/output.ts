/**
 * Where answers go: stdout for the answer, stderr for what is said along the way. With `--json` the answer is one line
 * of JSON and nothing else is said.
 */

import { type Invocation, type Paint, paintFor } from './screen.ts';
import { json } from './text.ts';

export interface Output {
  readonly json: boolean;
  readonly paint: Paint;
  /** The answer: the value as JSON, or the lines for people. */
  readonly answer: (value: unknown, lines: () => readonly string[]) => void;
  /** One line to people on stderr; nothing with `--json`. */
  readonly note: (line: string) => void;
}

export function createOutput({ stdout, stderr, env }: Invocation, asJson: boolean): Output {
  return {
    json: asJson,
    paint: paintFor(stdout, env),
    answer(value, lines) {
      for (const text of asJson ? [json(value)] : lines()) stdout.write(`${text}\n`);
    },
    note(line) {
      if (!asJson) stderr.write(`${line}\n`);
    },
  };
}
