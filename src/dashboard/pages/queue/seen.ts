/** What the page of a queue is told by the API. */
import type { Schemas } from '../../api-types.ts';

export type Why = Schemas['WhyNothingMoves'];
/** Of the last hour. */
export type Minutes = Schemas['QueueMinutes'];
