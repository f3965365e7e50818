/** What can be told of what a handler threw, which may be anything. */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { messageOf, oneLine } from '../kernel/errors.ts';
import { reasonOf, type Told } from '../kernel/reason.ts';
import { type Attempted, Defer, Retry, Unrecoverable } from './outcome.ts';

/** Longest stack that is kept. */
export const STACK_CHARS = 2000;
const HEAD_CHARS = 200;
/** A stack is cut to this before it is looked at: a message may be long, and stands in it. */
const FRAMES_CHARS = 20_000;

/** As it is kept: its message, its causes, and where it was thrown. @param told what may be told of each text */
export function whyOf(thrown: unknown, told: Told): Pick<Attempted, 'message' | 'stack'> {
  const stack = stackOf(thrown, told);
  return { message: reasonOf(thrown, told), ...(stack && { stack }) };
}

/**
 * Where it was thrown, and where its causes were: frames of users only, none of ours and none of Node. Undefined where
 * there is none. Anything can be thrown, also an object that throws when it is looked at.
 *
 * @param told what may be told of it; the stack begins with the message
 */
export function stackOf(thrown: unknown, told: Told): string | undefined {
  const lines: string[] = [];
  const seen = new Set<unknown>();
  try {
    for (
      let error = thrown;
      error instanceof Error && seen.size < CAUSES_MAX && !seen.has(error);
      error = error.cause
    ) {
      seen.add(error);
      const frames = framesOf(error).filter((frame) => !lines.includes(frame));
      if (frames.length === 0) continue;
      const head = oneLine(told(`${error.name}: ${messageOf(error)}`), HEAD_CHARS);
      lines.push(seen.size === 1 ? head : `Caused by: ${head}`, ...told(frames.join('\n')).split('\n'));
    }
  } catch {
    // What was read before is told.
  }
  return lines.length === 0 ? undefined : wholeLines(lines);
}

const CAUSES_MAX = 5;

/** The message comes first in a stack, and may look like frames. */
function framesOf(error: Error): readonly string[] {
  const { stack } = error;
  if (typeof stack !== 'string') return [];
  const message = String(error.message);
  const at = message === '' ? -1 : stack.indexOf(message);
  const behind = stack.slice(at < 0 ? 0 : at + message.length).slice(0, FRAMES_CHARS);
  return behind.split('\n').filter((line) => /^ +at /.test(line) && !isInternal(line));
}

/** Of Node, or of this package, wherever it is installed. Bundled with an application, its frames are the application's. */
const isInternal = (frame: string): boolean =>
  /[ (]node:/.test(frame) || OURS.some((folder) => frame.includes(folder)) || !/[:/\\]/.test(frame);

/**
 * The folder of this file in a checkout, or that of the package, whose code lies in few files. A stack tells it, for tools that
 * make CommonJS of a package know no `import.meta`.
 */
const [, FOLDER] =
  /((?:file:\/\/)?\/[^\n()]*\/)(?:job\/thrown\.[jt]s|(?<=\/duestream\/dist\/)[\w/.-]+):\d+/.exec(
    new Error('here').stack ?? '',
  ) ?? [];
const OURS: readonly string[] = FOLDER === undefined ? [] : bothForms(FOLDER);

/** As a path and as a URL. */
function bothForms(folder: string): readonly string[] {
  const path = folder.startsWith('file:') ? fileURLToPath(folder) : folder;
  return [path, pathToFileURL(path).href];
}

/** As many lines as fit. */
function wholeLines(lines: readonly string[]): string {
  let text = '';
  for (const line of lines) {
    const longer = text === '' ? line : `${text}\n${line}`;
    if (longer.length > STACK_CHARS) break;
    text = longer;
  }
  return text;
}

/** What the handler asked for. Anything can be thrown, also an object that throws when it is looked at. */
export function wishOf(thrown: unknown): Defer | Retry | Unrecoverable | undefined {
  try {
    return thrown instanceof Defer || thrown instanceof Retry || thrown instanceof Unrecoverable ? thrown : undefined;
  } catch {
    return undefined;
  }
}
