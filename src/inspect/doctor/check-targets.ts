/**
 * The check of `doctor` that looks at the secrets of `targets`: one that no queue names is forgotten, or its name is misspelt. Only
 * names are read here.
 */
import { show } from '../../kernel/duration.ts';
import { counted } from '../../kernel/humanize.ts';
import { listQueues } from '../../redis/scripts/queues.ts';
import type { Finding, Subject } from './check.ts';

export async function targetSecrets({ redis, namespace, secrets = [] }: Subject): Promise<Finding> {
  if (secrets.length === 0) return { status: 'ok', saw: 'this configuration has no secrets of targets' };
  const layouts = await listQueues(redis, namespace);
  const named = new Set(
    layouts.flatMap(({ target }) => (target && target.secret !== undefined ? [target.secret] : [])),
  );
  const unused = secrets.filter((name) => !named.has(name));
  if (unused.length === 0) return { status: 'ok', saw: `${counted(secrets.length, 'secret')}, and queues name each` };
  const missing = [...named].filter((name) => !secrets.includes(name));
  const others = missing.length === 0 ? '' : `; targets name ${missing.map(show).join(', ')}, which is not there`;
  return {
    status: 'warn',
    saw: `no target of a queue names ${unused.map(show).join(', ')} of targets.secrets${others}`,
    advice: 'name it in the target of its queue, or take it out of targets.secrets',
  };
}
