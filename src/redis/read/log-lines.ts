/** What handlers said of one job, as the script `log` keeps it. */
import { decodeLog, type JobLog } from '../../job/log-lines.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';

/** Whose lines: a job's; or those of its dead letter, which was written then. */
interface Whose {
  readonly member: string;
  readonly deadLetter?: { readonly entry: string; readonly atMs: number } | undefined;
}

/** The lines of a dead letter moved there when its job died; a call that was cut off may have left them with the job. */
export async function readLog(
  redis: Redis,
  { keys }: PartitionRef,
  { member, deadLetter }: Whose,
): Promise<JobLog | undefined> {
  const fields = deadLetter === undefined ? [member] : [member, `\0${deadLetter.entry}`];
  const [ofJob, ofLetter] = await naming(redis, [keys], redis.hmget(keys.logs, ...fields));
  return decodeLog(ofLetter) ?? decodeLog(ofJob, { untilMs: deadLetter?.atMs });
}
