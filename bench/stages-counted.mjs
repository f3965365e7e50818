/** The calls that are measured, told apart from those that prepare them. */
import { createHash } from 'node:crypto';

/**
 * Redis counts EVAL apart from EVALSHA: what is called outside a measurement goes by EVAL, so that the figures of EVALSHA
 * are those of the measured calls alone, however often jobs are prepared in between.
 *
 * @param {import('ioredis').Redis} redis
 * @param {Readonly<Record<string, { lua: string }>>} scripts
 */
export function countedAlone(redis, scripts) {
  const texts = new Map(Object.values(scripts).map(({ lua }) => [createHash('sha1').update(lua).digest('hex'), lua]));
  const send = redis.sendCommand.bind(redis);
  let isMeasured = false;
  redis.sendCommand = (command, stream) => {
    const lua = texts.get(String(command.args[0]));
    if (command.name === 'evalsha' && lua !== undefined && !isMeasured) {
      command.name = 'eval';
      command.args[0] = lua;
      // A script's own would make EVALSHA of it again.
      command.toWritable = Object.getPrototypeOf(Object.getPrototypeOf(command)).toWritable;
    }
    return send(command, stream);
  };
  /** @param {() => Promise<void>} act */
  return async (act) => {
    isMeasured = true;
    try {
      await act();
    } finally {
      isMeasured = false;
    }
  };
}
