/** Workers die in the middle of their jobs, and nothing is lost. */
import { describe, expect, test } from 'vitest';
import { judge } from '../support/effects.ts';
import { useProcesses } from '../support/processes.ts';
import { held, idOf, openSiege, running, workerSockets } from '../support/siege.ts';

const processes = useProcesses();

describe('SIGKILL of a worker', () => {
  test('loses none of 5,000 jobs, and only what ran there runs again', { timeout: 60_000 }, async () => {
    const siege = await openSiege(processes);
    const { redis, workers, random } = siege;
    let victim = 0;
    await siege.run({
      aim: () => {
        victim = Math.floor(random() * workers.length);
        return idOf(redis, theWorker());
      },
      async strike(consumer = '') {
        const sockets = await workerSockets(redis);
        await theWorker().end('SIGKILL');
        await expect.poll(() => workerSockets(redis), { timeout: 5000, interval: 2 }).toBe(sockets - 2);
        const started = await running(siege, consumer);
        const entries = await held(siege, consumer);
        workers[victim] = await siege.worker();
        return { running: started, left: { entries, started } };
      },
    });
    const story = await siege.story();
    expect(judge(story)).toEqual([]);

    // The judge sees what is wrong in this very run: an end that is missing, a start that was early.
    const [start] = story.effects;
    const withoutEnd = story.effects.filter(({ id, what }) => !(id === start?.id && what === 'end'));
    expect(judge({ ...story, effects: withoutEnd })).toEqual([`lost: ${start?.id} never ended`]);
    const tooSoon = story.effects.map((effect) => (effect === start ? { ...effect, ms: effect.due - 1 } : effect));
    expect(judge({ ...story, effects: tooSoon })).toEqual([`early: ${start?.id} started 1 ms before its due`]);

    function theWorker() {
      const worker = workers[victim];
      if (worker === undefined) throw new Error(`there is no worker ${victim}`);
      return worker;
    }
  });
});
