/**
 * Where answers go: stdout for the answer, stderr for what is said along the way. With `--json` the answer is one line
 * of JSON and nothing else is said. Colour only at a terminal, and never when NO_COLOR is set.
 */

import type { Invocation, Screen } from './invocation.ts';
import { json } from './text.ts';

type Brush = (text: string) => string;

export interface Paint {
  readonly dim: Brush;
  readonly bold: Brush;
  readonly green: Brush;
  readonly yellow: Brush;
  readonly red: Brush;
}

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

/** Colours if the screen is a terminal that wants them; else texts stay as they are. */
export function paintFor(screen: Screen, env: Invocation['env']): Paint {
  const colours = screen.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  const brush = (open: number, close: number): Brush =>
    colours ? (text) => `\u001b[${open}m${text}\u001b[${close}m` : (text) => text;
  return { dim: brush(2, 22), bold: brush(1, 22), green: brush(32, 39), yellow: brush(33, 39), red: brush(31, 39) };
}
