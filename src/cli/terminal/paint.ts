/**
 * Colours, if the screen is a terminal that wants them. The screen and the environment are handed in, so `styleText` is
 * told not to look at those of the process: what it would find there is not where the text goes.
 */
import { styleText } from 'node:util';
import type { Invocation, Screen } from './invocation.ts';

type Brush = (text: string) => string;

const BRUSHES = ['dim', 'bold', 'green', 'yellow', 'red'] as const;

export type Paint = Readonly<Record<(typeof BRUSHES)[number], Brush>>;

/** Colour only at a terminal, and never when NO_COLOR is set. Without it texts stay as they are. */
export function paintFor(screen: Screen, env: Invocation['env']): Paint {
  const colours = screen.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  const brush = (style: (typeof BRUSHES)[number]): Brush =>
    colours ? (text) => styleText(style, text, { validateStream: false }) : (text) => text;
  return { dim: brush('dim'), bold: brush('bold'), green: brush('green'), yellow: brush('yellow'), red: brush('red') };
}
