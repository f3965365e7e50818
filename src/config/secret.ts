/** Secrets are hidden here and only here: whatever shows a value of the configuration passes it through `shown`. */
import { withoutCredentials } from '../kernel/credentials.ts';
import type { Option } from './table.ts';

/** A value as it may be seen. */
export function shown(option: Option | undefined, value: unknown): unknown {
  if (option?.secret === undefined || value === '') return value;
  return option.secret === 'credentials' && typeof value === 'string' ? withoutCredentials(value) : '***';
}
