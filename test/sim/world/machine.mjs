/** The machine of the simulated Redis: its process, its clock, and its ends and beginnings. */
import { createServer } from '../../../src/testing/redis/server.mjs';

/** @typedef {ReturnType<typeof createMachine>} Machine */

/**
 * @param {object} world
 * @param {import('./time.mjs').Time} world.time
 * @param {import('./time.mjs').Process} world.host
 * @param {import('./time.mjs').Process} world.director
 * @param {import('./network.mjs').Network} world.network
 * @param {number} world.epochMs
 * @param {import('./journal.mjs').Journal} world.journal
 * @param {NonNullable<import('../../../src/testing/redis/server.mjs').Around['ran']>} world.ran
 */
export function createMachine({ time, host, director, network, epochMs, journal, ran }) {
  let offsetUs = 0;
  let steps = 0;
  const nowUs = () => epochMs * 1000 + time.nowUs() + offsetUs;
  const server = createServer({
    nowUs,
    ran,
    timer(ms, act) {
      const event = time.schedule(host, ms * 1000, act);
      return () => {
        event.act = undefined;
      };
    },
  });
  network.serve(server.accept);

  return {
    db: server.db,
    ask: server.ask,
    nowMs: () => Math.floor(nowUs() / 1000),
    /** @param {number} ms */
    freeze(ms) {
      journal.stall(ms, `stands still for ${Math.round(ms)} ms`);
      // A shorter one within a longer one ends nothing: what came later would overtake what was held up on its line.
      host.pausedUntilUs = Math.max(host.pausedUntilUs, time.nowUs() + ms * 1000);
    },
    /** It ends with a crash, is away, loads, and is back with all it had: an AOF that is always synced. @param {{ downMs: number, loadMs: number }} away */
    restart({ downMs, loadMs }) {
      journal.stall(downMs + loadMs, `is away for ${Math.round(downMs)} ms and loads for ${Math.round(loadMs)} ms`);
      server.crash();
      network.refuse(true);
      host.pausedUntilUs = 0;
      time.schedule(director, downMs * 1000, () => {
        network.refuse(false);
        server.setLoading(true);
      });
      time.schedule(director, (downMs + loadMs) * 1000, () => server.setLoading(false));
    },
    /** How often its clock was changed. */
    steps: () => steps,
    /** @param {number} ms */
    jump(ms) {
      journal.tell(`the clock of the server jumps by ${Math.round(ms)} ms`);
      offsetUs += Math.round(ms * 1000);
      steps += 1;
    },
  };
}
