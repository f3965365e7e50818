/**
 * Groups and priorities: what jobs of a gated queue wait by. A group is a tenant, an account, a lock. It stands in braces at
 * the beginning of the id, so all of a group live in one partition, and nothing of a job says it twice.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

export const PRIORITIES = ['high', 'normal', 'low'] as const;
/** Between jobs that wait: of 21 turns `high` has 16, `normal` 4 and `low` 1. */
export type Priority = (typeof PRIORITIES)[number];

export const GROUP_ALLOWED =
  '1 to 64 printable ASCII characters without space, braces, comma, semicolon and bar, not beginning with `schedule:`; hash what does not fit';
const GROUP = /^(?!schedule:)[!-+\--:<-z~]{1,64}$/;
const GROUPED = /^(?:j:)?\{((?!schedule:)[!-+\--:<-z~]{1,64})\}(?!(?:abandoned:\d+|then:\d+\.\d+)$)./;

/** @throws DuestreamError `bad-input` */
export function parseGroup(input: unknown): string {
  if (typeof input === 'string' && GROUP.test(input)) return input;
  throw new DuestreamError('bad-input', `group is ${show(input)}; allowed: ${GROUP_ALLOWED.replaceAll('`', '')}`);
}

/** The group of an id or a member; undefined where it has none. `lua/lib/line.lua` says the same. @example groupOf('{acme}order-7') // 'acme' */
export const groupOf = (id: string): string | undefined => GROUPED.exec(id)?.[1];

/** An id in a group. @throws DuestreamError `bad-input` for an id of another group */
export function groupedId(group: string, id: string): string {
  const own = groupOf(id);
  if (own === undefined) return `{${group}}${id}`;
  if (own === group) return id;
  throw new DuestreamError(
    'bad-input',
    `id is ${show(id)}, of group ${show(own)}, and group is ${show(group)}; allowed: an id of this group, or without one`,
  );
}
