/**
 * How many requests to one host are under way from this process, over all its queues: several queues may call one host, and each
 * knows of its own jobs alone.
 */
export interface HostSlots {
  readonly max: number;
  /** @returns what gives the slot back; undefined: as many as may be are under way */
  readonly enter: (host: string) => (() => void) | undefined;
}

export function createHostSlots(max: number): HostSlots {
  const underWay = new Map<string, number>();
  return {
    max,
    enter(host) {
      const before = underWay.get(host) ?? 0;
      if (before >= max) return undefined;
      underWay.set(host, before + 1);
      return () => {
        const rest = (underWay.get(host) ?? 0) - 1;
        if (rest > 0) underWay.set(host, rest);
        else underWay.delete(host);
      };
    },
  };
}
