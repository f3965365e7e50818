/**
 * Which jobs somebody means, as fields of a query and of a body: the filters of the library. Whether a value is in its range,
 * and goes with the others, the library judges.
 */

import { z } from '@hono/zod-openapi';
import type { JobFilter } from '../../client/client.ts';
import { LIVE_STATES, type LiveState } from '../../job/state.ts';
import { instantMs } from '../../kernel/duration.ts';
import { instant, strict, textOf } from './schemas.ts';

const STATE = LIVE_STATES.join('|');
const STATES = `(${STATE})(,(${STATE})){0,${LIVE_STATES.length - 1}}`;

/** In a query: several, with commas between them. */
export const statesText = textOf(
  new RegExp(`^${STATES}$`),
  `one or several of ${LIVE_STATES.join(', ')}, with commas between them`,
  'scheduled,ready',
);
/** Also those that are over, one at a time. */
export const anyStatesText = textOf(
  new RegExp(`^(${STATES}|done|cancelled|expired|dead)$`),
  `one or several of ${LIVE_STATES.join(', ')}, with commas between them; or one of done, cancelled, expired, dead`,
  'scheduled',
);

const text = (doc: string, example: string) =>
  z
    .string({ error: '1 to 192 characters' })
    .min(1, { error: '1 to 192 characters' })
    .max(192, { error: '1 to 192 characters' })
    .optional()
    .openapi({ description: doc, example });

/** All but the state. */
export const filterFields = {
  tag: text('Jobs that have this tag.', 'user:42'),
  name: text('Jobs of this name.', 'welcome'),
  idPrefix: text('Jobs whose ids begin with this.', 'welcome:'),
  dueFrom: instant
    .optional()
    .openapi({ description: 'Due at this instant or later.', example: '2026-03-01T00:00:00Z' }),
  dueTo: instant.optional().openapi({ description: 'Due before this instant.', example: '2036-03-01T00:00:00Z' }),
};

const state = z.enum(LIVE_STATES, { error: LIVE_STATES.join(', ') });

/** In a body. */
export const filterShape = strict({
  state: z
    .union([state, z.array(state).min(1).max(LIVE_STATES.length)], {
      error: `one of ${LIVE_STATES.join(', ')}, or a list of them`,
    })
    .optional()
    .openapi({
      description: 'Jobs in this state, or in one of these. Default: every state in which the change can be made.',
    }),
  ...filterFields,
}).openapi('JobFilter', { description: 'Jobs for which all of it holds. At least one field is needed.' });

interface Fields {
  readonly state?: LiveState | readonly LiveState[] | undefined;
  readonly tag?: string | undefined;
  readonly name?: string | undefined;
  readonly idPrefix?: string | undefined;
  readonly dueFrom?: string | undefined;
  readonly dueTo?: string | undefined;
}

/** @throws DuestreamError `bad-input` for what is no instant */
export function filterOf({ dueFrom, dueTo, ...plain }: Fields): JobFilter {
  const [from, to] = [dateOf(dueFrom, 'dueFrom'), dateOf(dueTo, 'dueTo')];
  return from === undefined && to === undefined ? plain : { ...plain, due: { from, to } };
}

/** @param states as they stand in a query */
export const statesIn = (states: string): readonly LiveState[] =>
  LIVE_STATES.filter((one) => states.split(',').includes(one));

const dateOf = (given: string | undefined, what: string): Date | undefined =>
  given === undefined ? undefined : new Date(instantMs(given, what));

/** In a few words, for the audit: `state scheduled, tag user:42`. */
export const wordsOf = (filter: Fields): string =>
  Object.entries(filter)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${[value].flat().join('|')}`]))
    .join(', ');
