/**
 * Classes of ours that cross the border between two copies of this package in one process: a monorepo, a plug-in, a
 * command that is installed globally. Each copy has a class of its own, so `instanceof` knows them by a mark that all
 * copies share. It looks at the mark alone and never throws, whatever it is asked about.
 */

/** Called in a static block of the class. Its subclasses by others are known as always. */
export function knownByMark(type: { readonly prototype: object }, name: string): void {
  const mark = Symbol.for(`duestream.${name}`);
  Object.defineProperty(type.prototype, mark, { value: true });
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: unknown, given: unknown): boolean {
      try {
        if (this !== type) return Function.prototype[Symbol.hasInstance].call(this, given);
        return typeof given === 'object' && given !== null && Reflect.get(given, mark) === true;
      } catch {
        return false;
      }
    },
  });
}
