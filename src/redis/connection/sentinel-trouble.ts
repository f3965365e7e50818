/**
 * Why no sentinel can be asked. The client library says of a sentinel that it cannot reach no more than that the
 * connection is closed. What only a person can repair, such as a certificate that nobody trusts, is found by dialling one
 * of them once more; nothing is sent to it.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { messageOf } from '../../kernel/errors.ts';
import { close } from './closing.ts';
import { connectProblemOf } from './connect-problem.ts';

/** Tells the connection of it, as an error of its own. */
export function explainSentinels(redis: Redis, { sentinels = [], sentinelTLS }: Partial<RedisOptions>): void {
  let isAsking = false;
  redis.on('error', (error) => {
    const [first] = sentinels ?? [];
    if (isAsking || !first || !sentinelTLS || !/^All sentinels.*Connection is closed/s.test(messageOf(error))) return;
    isAsking = true;
    const place = { host: first.host ?? 'localhost', port: first.port ?? 26_379 };
    const silent = { enableReadyCheck: false, disableClientInfo: true, disconnectTimeout: 200 };
    const probe = new Redis({ ...place, ...silent, tls: sentinelTLS, connectTimeout: 1000, retryStrategy: () => null });
    probe.on('error', (why) => {
      if (connectProblemOf(why) && redis.status !== 'end') redis.emit('error', why);
    });
    probe.once('ready', () => close(probe));
    probe.once('end', () => {
      isAsking = false;
    });
  });
}
