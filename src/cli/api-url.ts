/** Where the HTTP API of this Redis most likely is: that of `dev`, or what the configuration says. */
import { readDevFile } from './dev/dev-file.ts';
import type { Session } from './session.ts';

export function apiUrl({ config, invocation }: Session): string {
  const dev = readDevFile(invocation.cwd);
  if (dev?.http !== undefined && dev.url === config.redis.url) return dev.http;
  const { host, port } = config.http;
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port === 0 ? '<port>' : port}`;
}
