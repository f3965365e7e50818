/** Whether the partitions are laid out as this version reads them. A partition that was never led does not say. */
import { show } from '../../core/duration.ts';
import { SCHEMA } from '../../redis/keys.ts';
import { listQueues, partitionsOf } from '../../redis/transitions/queues.ts';
import { counted } from '../terminal/text.ts';
import type { Finding, Subject } from './finding.ts';

const PARTITIONS_MAX = 1024;
const AT_ONCE = 100;

export async function schema({ redis, namespace }: Subject): Promise<Finding> {
  const queues = await listQueues(redis, namespace);
  const refs = queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, PARTITIONS_MAX);
  const foreign: string[] = [];
  for (let from = 0; from < refs.length; from += AT_ONCE) {
    const some = refs.slice(from, from + AT_ONCE);
    const found = await Promise.all(some.map(({ keys }) => redis.hget(keys.meta, 'schema')));
    for (const [at, value] of found.entries()) {
      if (value === null || value === SCHEMA) continue;
      foreign.push(`${some[at]?.queue} partition ${some[at]?.partition} has ${show(value)}`);
    }
  }
  const [example] = foreign;
  if (example === undefined) return { status: 'ok', saw: `schema ${SCHEMA}, in ${counted(refs.length, 'partition')}` };
  return {
    status: 'fail',
    saw: `${counted(foreign.length, 'partition')} with another schema than ${SCHEMA}: ${example}`,
    advice: 'use the version of duestream that wrote it, or another namespace: this version would misread its jobs',
  };
}
