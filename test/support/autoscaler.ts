/**
 * Plays KEDA and the autoscaler of Kubernetes for one ScaledObject: it asks Prometheus what the triggers say, and decides as they do.
 *
 *  KEDA        a trigger is above its activationThreshold      0 → 1, or minReplicaCount
 *              none has been for cooldownPeriod                → minReplicaCount
 *              a trigger has no answer, so often in a row      → fallback.replicas
 *  autoscaler  while there is one: the most of ceil(value / threshold), from 1 to maxReplicaCount; a tenth beside the target is no reason
 *
 * The window in which the autoscaler waits before it takes workers away is left out. It makes nothing else, only later.
 */
import type { Parsed } from './kubernetes.ts';

interface Asked {
  readonly value: number;
  readonly threshold: number;
  readonly isActive: boolean;
}

const TOLERANCE = 0.1;

export function createAutoscaler({ spec }: Parsed, now: () => number) {
  const { minReplicaCount: min, maxReplicaCount: max, cooldownPeriod, fallback, triggers } = spec;
  let replicas = min;
  let activeMs = Number.NEGATIVE_INFINITY;
  let failures = 0;

  function decide(all: readonly Asked[]): number {
    const isActive = all.some((one) => one.isActive);
    if (isActive) activeMs = now();
    if (replicas === 0) return isActive ? 1 : 0;
    if (!isActive && min === 0) return now() - activeMs > cooldownPeriod * 1000 ? 0 : 1;
    const wanted = Math.max(...all.map((one) => wantedBy(one, replicas)));
    return Math.min(max, Math.max(1, min, wanted));
  }

  return {
    /** How many replicas there shall be now. */
    async poll(): Promise<number> {
      const all = await Promise.all(triggers.map(ask));
      const answered = all.filter((one) => one !== undefined);
      failures = answered.length < all.length ? failures + 1 : 0;
      if (failures === 0) replicas = decide(answered);
      else if (failures >= fallback.failureThreshold) replicas = fallback.replicas;
      return replicas;
    },
  };
}

function wantedBy({ value, threshold }: Asked, replicas: number): number {
  const isNear = Math.abs(value / (threshold * replicas) - 1) <= TOLERANCE;
  return isNear ? replicas : Math.ceil(value / threshold);
}

/** Undefined: Prometheus has no answer. */
async function ask({ metadata }: Parsed): Promise<Asked | undefined> {
  const value = await askPrometheus(metadata.serverAddress, metadata.query);
  if (value === undefined) return undefined;
  return { value, threshold: Number(metadata.threshold), isActive: value > Number(metadata.activationThreshold) };
}

/** What a query comes to that has one value; undefined while it has none. */
export async function askPrometheus(server: string, query: string): Promise<number | undefined> {
  const response = await fetch(`${server}/api/v1/query?${new URLSearchParams({ query })}`).catch(() => undefined);
  if (response === undefined) return undefined;
  const answer: Parsed = JSON.parse(await response.text());
  if (answer.status !== 'success') throw new Error(`${query}: ${answer.error}`);
  const result: readonly Parsed[] = answer.data.result;
  if (result.length > 1) throw new Error(`${query} has ${result.length} values; KEDA takes one`);
  return result[0] && Number(result[0].value[1]);
}
