/**
 * Where answers go: stdout for the answer, stderr for what is said along the way. With `--json` the answer is one line
 * of JSON and nothing else is said.
 */
import { styleText } from 'node:util';
import Table from 'cli-table3';
import { escapeControls, oneLine } from '../../kernel/errors.ts';
import type { UnreadQueue } from '../../redis/read/each-queue.ts';

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

// The process as the command line sees it: its arguments, its environment, its streams, and the colours of its screen.

/** What can be written to: a terminal, a pipe, a file. */
export interface Screen {
  readonly isTTY?: boolean;
  /** The height of a terminal. */
  readonly rows?: number;
  write(text: string): unknown;
}

/** All that the command line sees of its process. It is handed in, so nothing below reads a global. */
export interface Invocation {
  /** Without the names of node and of the script. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Screen;
  readonly stderr: Screen;
}

type Brush = (text: string) => string;

const BRUSHES = ['dim', 'bold', 'green', 'yellow', 'red'] as const;

export type Paint = Readonly<Record<(typeof BRUSHES)[number], Brush>>;

/**
 * Colours for a terminal; no colours elsewhere, or when NO_COLOR is set. The text goes to the given screen, so `styleText`
 * does not look at the streams of the process.
 */
export function paintFor(screen: Screen, env: Invocation['env']): Paint {
  const colours = screen.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  const brush = (style: (typeof BRUSHES)[number]): Brush =>
    colours ? (text) => styleText(style, text, { validateStream: false }) : (text) => text;
  return { dim: brush('dim'), bold: brush('bold'), green: brush('green'), yellow: brush('yellow'), red: brush('red') };
}

// Values → text for a terminal. Ids of foreign producers, errors and payloads are data: whatever stands in a value is
// cleaned here before it is placed, so an escape sequence in an id never reaches the terminal. Every line of output is
// made by `line`, `fields` or `table`, which clean each value they are given.

export type Cell = string | number | undefined;

/** Blocks of fields that follow each other stay in line. */
const FIELD_WIDTH = 9;
const CELL_CHARS_MAX = 200;
const DATA_CHARS_MAX = 100_000;

/** A sentence with cleaned values: line`${id} was cancelled`. A value may be a part of it that begins or ends with a space. */
export function line(parts: TemplateStringsArray, ...values: readonly Cell[]): string {
  return parts.map((part, index) => part + (index < values.length ? spaced(values[index]) : '')).join('');
}

function spaced(value: Cell): string {
  const text = String(value ?? '-');
  return `${text.startsWith(' ') ? ' ' : ''}${clean(text)}${text.trim() !== '' && text.endsWith(' ') ? ' ' : ''}`;
}

/** The frames, and what the causes say: the first line of a stack is the message once more. */
export const stackLines = (stack = ''): readonly string[] =>
  stack
    .split('\n')
    .slice(1)
    .map((text) => line`    ${text.trim()}`);

/** Queues that were left out of an answer, because they did not give theirs. */
export const unreadLines = (unread: readonly UnreadQueue[]): readonly string[] =>
  unread.map(({ queue, why }) => line`queue ${queue} could not be read: ${why}`);

/** `name   value` lines with the names in one column; what is undefined is left out. */
export function fields(pairs: readonly (readonly [name: string, value: Cell])[]): readonly string[] {
  const known = pairs.filter(([, value]) => value !== undefined);
  const width = Math.max(FIELD_WIDTH, ...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${clean(value, DATA_CHARS_MAX)}`.trimEnd());
}

/** Columns without borders, under a dim head. Columns of numbers are aligned at their right. */
export function table(paint: Paint, head: readonly string[], rows: readonly (readonly Cell[])[]): readonly string[] {
  const made = new Table({
    head: head.map(paint.dim),
    chars: BORDERLESS,
    colAligns: head.map((_, at) => (isNumeric(rows, at) ? 'right' : 'left')),
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 0 },
  });
  made.push(...rows.map((row) => row.map((cell) => clean(cell ?? '-', CELL_CHARS_MAX))));
  return made
    .toString()
    .split('\n')
    .map((row) => row.trimEnd());
}

/** A column of numbers, of which some may be missing. */
function isNumeric(rows: readonly (readonly Cell[])[], at: number): boolean {
  const cells = rows.map((row) => row[at]).filter((cell) => cell !== undefined && cell !== '-');
  return cells.length > 0 && cells.every((cell) => typeof cell === 'number');
}

/** JSON on one line, of which no terminal obeys a part. */
export function json(value: unknown): string {
  return escapeControls(JSON.stringify(value) ?? 'null');
}

function clean(value: Cell, charsMax?: number): string {
  return oneLine(String(value ?? '-'), charsMax);
}

const BORDERLESS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};
