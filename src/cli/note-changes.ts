/** What a command has changed, in the audit: who did what to how many, by the command line. */
import { reasonOf } from '../kernel/reason.ts';
import { audit, userHere } from '../redis/audit.ts';
import { type Session, withRedis } from './session.ts';

/** The changes are made already, so a failure to write the audit is reported and does not change the exit status. */
export async function noteChanges(session: Session): Promise<void> {
  const changes = session.changes.filter(({ count, isWhole }) => count > 0 || isWhole);
  if (changes.length === 0) return;
  const { namespace } = session.config;
  const who = userHere();
  try {
    await withRedis(session, async (redis) => {
      for (const { isWhole: _, ...change } of changes)
        await audit({ redis, namespace }, { ...change, who, way: 'cli' });
    });
  } catch (error) {
    session.out.note(`this change is not in the audit: ${reasonOf(error)}`);
  }
}
