/** Leaders die while jobs fall due and run; others promote on. No handler runs twice for it. */
import { describe, expect, test } from 'vitest';
import { judge } from '../support/effects.ts';
import { useProcesses } from '../support/processes.ts';
import { leaderAmong, openSiege } from '../support/siege.ts';

const processes = useProcesses();

describe('SIGKILL of the leader', () => {
  test('loses none of 5,000 jobs and runs none of them twice', { timeout: 60_000 }, async () => {
    const siege = await openSiege(processes);
    const { daemons } = siege;
    await siege.run({
      aim: async () => undefined,
      async strike() {
        const leader = await leaderAmong(siege, daemons);
        await leader.end('SIGKILL');
        daemons[daemons.indexOf(leader)] = await siege.daemon();
        return { running: 0, left: { entries: 0, started: 0 } };
      },
    });
    expect(judge(await siege.story())).toEqual([]);
  });
});
