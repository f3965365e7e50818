/** Whether the namespace and its partitions are laid out as this version reads them. What was never used does not say. */

import { show } from '../../kernel/duration.ts';
import { counted } from '../../kernel/humanize.ts';
import { readSchema, remedyFor, SCHEMA } from '../../redis/schema.ts';
import { listQueues, partitionsOf, unreadableQueues } from '../../redis/scripts/queues.ts';
import type { Finding, Subject } from './finding.ts';

const PARTITIONS_MAX = 1024;
const AT_ONCE = 100;

export async function schema({ redis, namespace }: Subject): Promise<Finding> {
  const found = await readSchema(redis, namespace);
  // Not even the registry can be read then, so this is all that can be said.
  if (found !== undefined && found !== SCHEMA) {
    return {
      status: 'fail',
      saw: `namespace ${namespace} has schema ${show(found)}; this version knows ${SCHEMA}, and no part of it works here`,
      advice: remedyFor(found),
    };
  }
  const [unreadable, ...more] = await unreadableQueues(redis, namespace);
  if (unreadable !== undefined) {
    const others = more.length > 0 ? ` and of ${counted(more.length, 'other queue')}` : '';
    return {
      status: 'fail',
      saw: `the registry's entry of queue ${show(unreadable.queue)}${others} cannot be read: ${show(unreadable.text)}`,
      advice: `nobody serves it; "duestream queues rm ${unreadable.queue} --force" removes it with its jobs`,
    };
  }
  const queues = await listQueues(redis, namespace);
  const refs = queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, PARTITIONS_MAX);
  const foreign: { readonly where: string; readonly value: string }[] = [];
  for (let from = 0; from < refs.length; from += AT_ONCE) {
    const some = refs.slice(from, from + AT_ONCE);
    const values = await Promise.all(some.map(({ keys }) => redis.hget(keys.meta, 'schema')));
    for (const [at, value] of values.entries()) {
      if (value === null || value === SCHEMA) continue;
      foreign.push({ where: `${some[at]?.queue} partition ${some[at]?.partition}`, value });
    }
  }
  const [example] = foreign;
  if (example !== undefined) {
    return {
      status: 'fail',
      saw: `${counted(foreign.length, 'partition')} with another schema than ${SCHEMA}: ${example.where} has ${show(example.value)}`,
      advice: `no daemon of this version leads them: ${remedyFor(example.value)}`,
    };
  }
  const unmarked = found === undefined ? '; the namespace does not say, and the first use marks it so' : '';
  return { status: 'ok', saw: `schema ${SCHEMA}, in ${counted(refs.length, 'partition')}${unmarked}` };
}
