/** The process as the command line sees it: its arguments, its environment, its streams, and the colours of its screen. */
import { styleText } from 'node:util';

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
