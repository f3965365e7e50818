/**
 * A file of schedules: `schedules:` and below it each by its name, with the fields that a call takes. It is judged as a
 * whole before anything is done with it: one wrong field, and nothing of it counts.
 */
import { isAbsolute, join } from 'node:path';
import { show } from '../kernel/duration.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import type { ScheduleInput } from '../schedule/input.ts';
import { defineSchedule } from '../schedule/text.ts';
import { parseYaml, readText } from './file.ts';

export type ScheduleFile = ReadonlyMap<string, ScheduleInput>;

const FILE_BYTES_MAX = 8 * 1024 * 1024;

/**
 * The schedules of the file that the configuration names.
 *
 * @throws DuestreamError `bad-config` that names file, schedule and field
 */
export function loadScheduleFile(
  file: string,
  { cwd = process.cwd(), nowMs }: { readonly cwd?: string; readonly nowMs: number },
): ScheduleFile {
  const path = isAbsolute(file) ? file : join(cwd, file);
  return schedulesIn(readText(path, 'schedules.file', FILE_BYTES_MAX), { file, nowMs });
}

/** @throws DuestreamError `bad-config` */
export function schedulesIn(
  text: string,
  { file, nowMs }: { readonly file: string; readonly nowMs: number },
): ScheduleFile {
  const found = schedulesOf(parseYaml(text, file), file);
  const wrong: string[] = [];
  for (const [name, input] of found) {
    try {
      defineSchedule(name, input, { sinceMs: nowMs, source: 'file' });
    } catch (error) {
      wrong.push(messageOf(error));
    }
  }
  if (wrong.length === 0) return found;
  const more = wrong.length === 1 ? '' : `; and ${wrong.length - 1} more that cannot be read`;
  throw new DuestreamError('bad-config', `${file}: ${wrong[0]}${more}`);
}

/**
 * One definition: what the file holds, or what it holds under the name.
 *
 * @throws DuestreamError `bad-input`
 */
export function definitionIn(
  text: string,
  { name, file }: { readonly name: string; readonly file: string },
): ScheduleInput {
  const tree = parseYaml(text, file, 'bad-input');
  if (!isMapping(tree)) throw bad(`${file} holds ${show(tree)}; allowed: the fields of a schedule`);
  if (!('schedules' in tree)) return tree;
  const found = isMapping(tree.schedules)
    ? Object.entries(tree.schedules).find(([key]) => key === name)?.[1]
    : undefined;
  if (isMapping(found)) return found;
  throw bad(`${file} has no schedule ${show(name)}; allowed: one of those below its "schedules:"`);
}

/** A file that is cut off or of another kind must not read as one without schedules. */
function schedulesOf(tree: unknown, file: string): ScheduleFile {
  const named = isMapping(tree) && Object.hasOwn(tree, 'schedules');
  const others = isMapping(tree) ? Object.keys(tree).filter((key) => key !== 'schedules') : [];
  if (!named || others.length > 0) {
    const holds = others[0] === undefined ? show(tree) : show(others[0]);
    throw new DuestreamError(
      'bad-config',
      `${file} holds ${holds}; allowed: "schedules:" and below it each by its name`,
    );
  }
  const below = 'schedules' in tree ? (tree.schedules ?? {}) : {};
  if (!isMapping(below)) {
    throw new DuestreamError(
      'bad-config',
      `schedules in ${file} is ${show(below)}; allowed: schedules, each by its name`,
    );
  }
  return new Map(
    Object.entries(below).map(([name, input]) => {
      if (isMapping(input)) return [name, input];
      throw new DuestreamError('bad-config', `${file}: schedule ${name} is ${show(input)}; allowed: its fields`);
    }),
  );
}

/** What its fields hold is judged where definitions are. */
const isMapping = (value: unknown): value is ScheduleInput =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const bad = (message: string) => new DuestreamError('bad-input', message);
