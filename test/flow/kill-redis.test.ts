/** Redis dies and comes back with what its append-only file holds; everybody else lives on. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { judge } from '../support/effects.ts';
import { useProcesses } from '../support/processes.ts';
import { openSiege, running } from '../support/siege.ts';

const processes = useProcesses();

/** Shorter than what makes a living worker look dead. */
const AWAY_MS_MAX = 800;

describe('SIGKILL of Redis', () => {
  test('loses none of 5,000 jobs when every change was on disk', { timeout: 60_000 }, async () => {
    const siege = await openSiege(processes);
    const { server, random } = siege;
    await siege.run({
      aim: async () => undefined,
      async strike() {
        await server.kill('SIGKILL');
        await sleep(random() * AWAY_MS_MAX);
        await server.restart();
        return { running: await running(siege), left: undefined };
      },
    });
    expect(judge(await siege.story())).toEqual([]);
  });
});
