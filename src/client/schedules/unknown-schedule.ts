/** What is said of a schedule that is not there: its name was misspelt more often than it was removed. */

import { hintOf } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Definitions } from './schedule-places.ts';

/** Of so many the names are compared: a guess is worth no more. */
const NAMES_MAX = 5000;

export async function unknownSchedule(definitions: Definitions, name: string): Promise<DuestreamError> {
  const known: string[] = [];
  for await (const page of definitions()) {
    for (const [one] of page) known.push(one);
    if (known.length >= NAMES_MAX) break;
  }
  const hint = hintOf(name, known) || ';';
  return new DuestreamError(
    'not-found',
    `there is no schedule ${show(name)}${hint} "duestream schedules ls" lists those that are`,
  );
}
