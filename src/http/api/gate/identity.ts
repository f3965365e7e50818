/** Who asks, and whether they may: before a verb begins, and again while one goes on. */
import type { Context } from 'hono';
import type { Caller } from '../caller.ts';
import { checkMay } from '../carry-out.ts';
import { Problem } from '../problem.ts';
import type { AnyVerb } from '../verb.ts';
import { type CallerParts, callerOf, remoteOf, unauthorized } from './callers.ts';
import type { Rates } from './rates.ts';

export interface Identity {
  /** Counts the request of whoever asks. @throws Problem `unauthorized`, `forbidden`, `too-many` */
  readonly identified: (verb: AnyVerb, c: Context) => Promise<Caller>;
  /** Whether the same caller may still ask it; yes while Redis does not say. */
  readonly stillMay: (verb: AnyVerb, caller: Caller, c: Context) => Promise<boolean>;
}

const nobody: Caller = { name: 'nobody', key: 'nobody', scopes: new Set(), queues: undefined, way: 'api' };

export function createIdentity(parts: CallerParts, rates: Rates): Identity {
  return {
    async identified(verb, c) {
      if (verb.scope === 'none') {
        rates.take(remoteOf(c));
        return nobody;
      }
      const caller = await callerOf(parts, c);
      if (!caller)
        throw unauthorized('send a token as Authorization: Bearer <token>; "duestream tokens create" makes one');
      rates.take(caller.key);
      return caller;
    },
    async stillMay(verb, { key }, c) {
      try {
        const caller = await callerOf(parts, c);
        if (caller?.key !== key) return false;
        checkMay(verb, caller, c);
        return true;
      } catch (error) {
        return !(error instanceof Problem);
      }
    },
  };
}
