/** Every verb there is. */
import { auditVerbs } from './routes/audit.ts';
import { batchVerbs } from './routes/batches.ts';
import { deadVerbs } from './routes/dead.ts';
import { deadWorkVerbs } from './routes/dead-work.ts';
import { eraseVerbs } from './routes/erase.ts';
import { jobListVerbs } from './routes/job-lists.ts';
import { jobVerbs } from './routes/jobs.ts';
import { liveVerbs } from './routes/live.ts';
import { lookVerbs } from './routes/looks.ts';
import { minuteVerbs } from './routes/minutes.ts';
import { queueVerbs } from './routes/queues.ts';
import { scheduleRunVerbs } from './routes/schedule-runs.ts';
import { scheduleVerbs } from './routes/schedules.ts';
import { sessionVerbs } from './routes/session.ts';
import type { AnyVerb } from './verb.ts';

export const verbs: readonly AnyVerb[] = [
  ...queueVerbs,
  ...minuteVerbs,
  ...jobListVerbs,
  ...jobVerbs,
  ...batchVerbs,
  ...deadVerbs,
  ...deadWorkVerbs,
  ...eraseVerbs,
  ...scheduleVerbs,
  ...scheduleRunVerbs,
  ...lookVerbs,
  ...liveVerbs,
  ...auditVerbs,
  ...sessionVerbs,
];
