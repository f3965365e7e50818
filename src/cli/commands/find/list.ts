/** The part of `ls` that finds jobs by a filter: a page with a cursor, in the order of its index. */
import type { JobView } from '../../../client/client.ts';
import { systemClock } from '../../../kernel/clock.ts';
import type { Exit } from '../../register.ts';
import { partitionsOfQueue, type Session, withClient, withRedis } from '../../session.ts';
import { line, table } from '../../terminal/text.ts';
import { second } from '../../terminal/when.ts';
import { type FilterFlags, readWalk } from './filter-flags.ts';

export async function listByFilter(
  session: Session,
  queue: string,
  { limit, cursor: given, ...flags }: FilterFlags & { readonly limit: number; readonly cursor: string | undefined },
): Promise<Exit> {
  const { filter, cursor, told } = readWalk(flags, { cursor: given });
  await withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
  const page = await withClient(session, (producer) => producer.list(queue, { ...filter, limit, cursor }));
  const answer = { queue, jobs: page.jobs.map(listed), scanned: page.scanned, cursor: told(page.cursor) };
  session.out.answer(answer, () => {
    const nowMs = systemClock.wallMs();
    const row = ({ id, bare, state, name, dueMs }: JobView) => [
      id + (bare ? ' (bare)' : ''),
      state,
      name,
      dueMs === undefined ? undefined : second(dueMs, nowMs),
    ];
    const head = ['id', 'state', 'name', 'due'];
    return [
      ...(page.jobs.length === 0
        ? [line`no such jobs among ${page.scanned} looked at`]
        : table(session.out.paint, head, page.jobs.map(row))),
      ...(page.cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${told(page.cursor)}`]),
    ];
  });
  return 0;
}

/** As `ls` has it, with the tags. */
const listed = ({ id, bare, partition, state, name, dueMs, attempts, owner, options }: JobView) => ({
  id,
  bare,
  partition,
  state,
  name,
  dueMs,
  attempts,
  owner,
  tags: options.tags ?? [],
});
