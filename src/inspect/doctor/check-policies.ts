/**
 * Whether the daemons that serve workers over HTTP judge a queue alike: attempts, crashes, backoff, time-out and delivery. Any of them
 * answers any call, so of two policies now one holds and now the other. They say them in their heartbeats.
 */
import { processesOf } from '../../client/queues/processes.ts';
import { differencesOf, policyIn, type QueuePolicies } from '../../job/queue-policy.ts';
import { durationText, show } from '../../kernel/duration.ts';
import { counted } from '../../kernel/humanize.ts';
import { EXAMPLES_MAX, type Finding, type Subject } from './check.ts';

interface Saying {
  /** Host and pid. */
  readonly who: string;
  readonly policies: QueuePolicies;
}

export async function policies({ redis, namespace }: Subject): Promise<Finding> {
  const all = await processesOf(redis, namespace);
  const saying = [...all.values()].flatMap((one): readonly Saying[] =>
    one?.policies === undefined ? [] : [{ who: `${one.host} ${one.pid}`, policies: one.policies }],
  );
  if (saying.length === 0) return { status: 'ok', saw: 'no daemon serves workers over HTTP' };
  const daemons = `${counted(saying.length, 'daemon')} with http.work`;
  const named = [...new Set(saying.flatMap((one) => Object.keys(one.policies.named)))].sort();
  const texts = named.flatMap((queue) => differing(show(queue), saying, (one) => policyIn(one, queue)));
  texts.push(...differing('all other queues', saying, ({ others }) => others));
  if (texts.length === 0) return { status: 'ok', saw: saying.length === 1 ? daemons : `${daemons} judge alike` };
  const more = texts.length > EXAMPLES_MAX ? [`and ${texts.length - EXAMPLES_MAX} more`] : [];
  return {
    status: 'warn',
    saw: [daemons, ...texts.slice(0, EXAMPLES_MAX), ...more].join('; '),
    advice: 'give queues.* and worker.timeout of these daemons the same values: any of them judges any run',
  };
}

function differing(
  what: string,
  saying: readonly Saying[],
  policyFor: (policies: QueuePolicies) => ReturnType<typeof policyIn>,
): readonly string[] {
  return differencesOf(saying.map(({ policies: own }) => policyFor(own))).map(({ field, values }) => {
    const textOf = (value: string | number) => (field === 'timeoutMs' ? durationText(Number(value)) : String(value));
    // One daemon for each value is enough to find them all.
    const examples = [...new Set(values)].map((value) => `${textOf(value)} on ${saying[values.indexOf(value)]?.who}`);
    return `${what}: ${field === 'timeoutMs' ? 'timeout' : field} ${examples.join(', ')}`;
  });
}
