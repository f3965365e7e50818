/** Runs lists of commands, each list in a world of its own on one private server, or on another one that is named. */
import { close, openCommands, openSubscriber, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { type Command, resolve } from './model-commands.ts';
import { createWorld, type Heard, make, settleUp, type World } from './model-world.ts';
import { startRedis } from './redis.ts';

export interface Bench {
  readonly redis: Redis;
  /** @throws Disagreement */
  readonly run: (commands: readonly Command[]) => Promise<World>;
  /** A world that was brought there by commands, without the check at the end. */
  readonly reach: (commands: readonly Command[]) => Promise<World>;
  readonly stop: () => Promise<void>;
}

export async function startBench(
  open: () => Promise<{ readonly socketPath: string; readonly stop: () => Promise<void> }> = startRedis,
): Promise<Bench> {
  const server = await open();
  const redis = openCommands({ redis: { path: server.socketPath }, name: 'proof' });
  const subscriber = openSubscriber({ redis: { path: server.socketPath }, name: 'proof-nudges' });
  await Promise.all([whenReady(redis), whenReady(subscriber)]);
  const heard: Heard = { nudges: [], told: [] };
  let arrived: (() => void) | undefined;
  const { wake, over } = createWorld(redis, 't').ref.keys;
  subscriber.on('smessage', (channel: string, message: string) => {
    if (message === 'end') arrived?.();
    else heard[channel === over ? 'told' : 'nudges'].push(message);
  });

  async function reach(commands: readonly Command[]): Promise<World> {
    await redis.flushall();
    const world = createWorld(redis, 't');
    for (const command of commands) {
      const call = resolve(world, command);
      if (call) await make(world, call);
    }
    return world;
  }
  await subscriber.ssubscribe(wake, over);

  /** Messages arrive in order, so after this one all others are here. */
  async function messages(): Promise<Heard> {
    const end = new Promise<void>((done) => {
      arrived = done;
    });
    await redis.spublish(wake, 'end');
    await end;
    return { nudges: heard.nudges.splice(0), told: heard.told.splice(0) };
  }

  return {
    redis,
    reach,
    async run(commands) {
      await messages();
      const world = await reach(commands);
      await settleUp(world, await messages());
      return world;
    },
    async stop() {
      close(subscriber);
      close(redis);
      await server.stop();
    },
  };
}
