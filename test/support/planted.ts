/** A bug that stands in a script or part, in all scripts that have it, until it is taken out again. */
import { assembled, namesIn, partsNamed } from '../../lua/assemble.mjs';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { read } from './repository.ts';

export const pathOf = (of: string): string => `lua/${namesIn('verbs').includes(of) ? 'verbs' : 'lib'}/${of}.lua`;

/** Words of a script or part are others. Throws where it has not these words. */
export function slipped({
  of,
  words,
  instead,
}: {
  readonly of: string;
  readonly words: string;
  readonly instead: string;
}): string {
  const own = read(pathOf(of));
  if (!own.includes(words)) throw new Error(`${of} has no ${words}`);
  return own.replace(words, () => instead);
}

/** Calls of these scripts over this connection are of the other text, until the function that is returned is called. */
export function planted(redis: Redis, { of, lua }: { readonly of: string; readonly lua: string }): () => void {
  const scripts = namesIn('verbs')
    .filter((verb) => verb === of || partsNamed(read(`lua/verbs/${verb}.lua`)).includes(of))
    .map((verb) => {
      const own = verb === of ? lua : read(`lua/verbs/${verb}.lua`);
      const text = assembled(own, (part) => (part === of ? lua : read(`lua/lib/${part}.lua`)));
      return [`duestream_${verb}`, text] as const;
    });
  const whole = scripts.map(([script]) => [script, Reflect.get(redis, script) as unknown] as const);
  for (const [script, text] of scripts) {
    const keys = scriptOptions()[script]?.numberOfKeys;
    const fixed = keys === undefined ? [] : [keys];
    Reflect.set(redis, script, (...words: (string | number)[]) => redis.call('EVAL', text, ...fixed, ...words));
  }
  return () => {
    for (const [script, call] of whole) Reflect.set(redis, script, call);
  };
}
