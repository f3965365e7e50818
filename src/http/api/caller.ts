/** Who asks, and what they may: the scopes of their token, and the queues that it is for. */
import type { Scope } from '../../access/tokens.ts';
import { Problem } from './problem.ts';

export interface Caller {
  /** The name of the token, or `anonymous` on this machine. */
  readonly name: string;
  /** Tells callers apart for the limit of requests. */
  readonly key: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Undefined: all queues. */
  readonly queues: readonly string[] | undefined;
  /** `page`: by the cookie of a session. */
  readonly way: 'api' | 'page';
}

/** What a request carries from gate to gate. */
export interface ApiEnv {
  readonly Variables: { readonly caller: Caller; readonly ifMatch: string | undefined };
}

/** @throws Problem `forbidden` */
export function checkScope({ scopes, name }: Caller, scope: Scope): void {
  if (scopes.has(scope)) return;
  throw new Problem('forbidden', {
    detail: `token ${name} has the scopes ${[...scopes].join(', ') || 'none'}; allowed: one with ${scope}`,
  });
}

export const mayUse = ({ queues }: Pick<Caller, 'queues'>, queue: string): boolean =>
  queues === undefined || queues.includes(queue);

/** @throws Problem `forbidden` */
export function checkQueue(caller: Caller, queue: string): void {
  if (mayUse(caller, queue)) return;
  throw new Problem('forbidden', {
    detail: `token ${caller.name} is not for this queue; allowed: ${caller.queues?.join(', ')}`,
  });
}

/** @throws Problem `forbidden` for a token of some queues */
export function checkEverywhere(caller: Caller): void {
  if (caller.queues === undefined) return;
  throw new Problem('forbidden', {
    detail: `token ${caller.name} is for the queues ${caller.queues.join(', ')}; allowed: one of them, or a token of all queues`,
  });
}
