/** Secrets are hidden here and only here: whatever shows a value of the configuration passes it through `shown`. */
import type { Option } from './table.ts';

/** A value as it may be seen. */
export function shown(option: Option | undefined, value: unknown): unknown {
  if (option?.secret === undefined || value === '') return value;
  return option.secret === 'credentials' && typeof value === 'string' ? withoutCredentials(value) : '***';
}

/** `redis://user:secret@host` → `redis://***@host`. The last @ counts: a password may contain one, and a slash. */
export function withoutCredentials(url: string): string {
  return url.replace(/^([a-z+]+:\/\/)?.*@/is, '$1***@').replace(/([?&](?:password|username)=)[^&]*/gi, '$1***');
}
