/** Every verb there is. */
import { auditVerbs } from './routes/audit.ts';
import { batchVerbs } from './routes/batches.ts';
import { deadVerbs } from './routes/dead.ts';
import { eraseVerbs } from './routes/erase.ts';
import { jobVerbs } from './routes/jobs.ts';
import { lookVerbs } from './routes/looks.ts';
import { queueVerbs } from './routes/queues.ts';
import { scheduleRunVerbs } from './routes/schedule-runs.ts';
import { scheduleVerbs } from './routes/schedules.ts';
import { sessionVerbs } from './routes/session.ts';
import type { AnyVerb } from './verb.ts';

export const verbs: readonly AnyVerb[] = [
  ...queueVerbs,
  ...jobVerbs,
  ...batchVerbs,
  ...deadVerbs,
  ...eraseVerbs,
  ...scheduleVerbs,
  ...scheduleRunVerbs,
  ...lookVerbs,
  ...auditVerbs,
  ...sessionVerbs,
];
