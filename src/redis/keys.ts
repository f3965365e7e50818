/**
 * Every key name, and nobody else builds one. `K` is `<namespace>:v1:{<queue>:<partition>}`: the version is in the key
 * so that two wire versions can live side by side; the braces are one Redis Cluster hash tag per partition.
 *
 *  key          type     content
 *  K:scheduled  zset     member → due ms
 *  K:jobs       hash     member → record (pending, running) or tombstone (over)
 *  K:runs       hash     member → packed state; only jobs that were started have a field
 *  K:ready      stream   entries {member, due}, group `workers`; acked and deleted together, never trimmed
 *  K:dead       stream   one dead letter per entry
 *  K:done       zset     member → ms when it was over; the expiry index of tombstones
 *  K:leader     string   <process>:<epoch>:<leaseMs>, with a TTL
 *  K:meta       hash     schema, generation, token, epoch, paused, wake, watch, durable counters n.*
 *  K:wake       channel  nudges to the leader
 *  K:fires      zset     schedule → ms when the leader looks at it next; 0 = at once
 *  K:fired      hash     schedule → how far it was fired: reached runs skipped waiting last armed
 *  K:stale      zset     member → ms when it left ready for a new life and an entry of it stayed there
 *
 *  C is `<namespace>:v1:{control}`:
 *  C:queues     hash     queue → JSON of its partitions and generation
 *  C:alive      set      ids of processes that sent a heartbeat
 *  C:beat:<id>  string   one heartbeat with a TTL; its value says who it is
 *  C:schedules  hash     schedule → JSON of its definition
 *  C:id         string   random, made once: tells these data from those of another Redis
 *  C:wake       channel  a queue was declared, a process came or left
 */

/** What `elect` writes as the schema of a partition: how keys and values of wire version 1 are laid out. */
export const SCHEMA = '1';

/** The consumer group of every ready stream. */
export const GROUP = 'workers';

export interface PartitionKeys {
  readonly scheduled: string;
  readonly jobs: string;
  readonly runs: string;
  readonly ready: string;
  readonly dead: string;
  readonly done: string;
  readonly leader: string;
  readonly meta: string;
  readonly wake: string;
  readonly fires: string;
  readonly fired: string;
  readonly stale: string;
}

export interface ControlKeys {
  readonly queues: string;
  readonly schedules: string;
  readonly alive: string;
  readonly id: string;
  readonly wake: string;
  readonly beat: (processId: string) => string;
}

/** One partition of one queue. */
export interface PartitionRef {
  readonly queue: string;
  readonly partition: number;
  readonly generation: number;
  readonly keys: PartitionKeys;
}

export function partitionKeys(place: {
  readonly namespace: string;
  readonly queue: string;
  readonly partition: number;
}): PartitionKeys {
  const k = `${place.namespace}:v1:{${place.queue}:${place.partition}}`;
  return Object.freeze({
    scheduled: `${k}:scheduled`,
    jobs: `${k}:jobs`,
    runs: `${k}:runs`,
    ready: `${k}:ready`,
    dead: `${k}:dead`,
    done: `${k}:done`,
    leader: `${k}:leader`,
    meta: `${k}:meta`,
    wake: `${k}:wake`,
    fires: `${k}:fires`,
    fired: `${k}:fired`,
    stale: `${k}:stale`,
  });
}

export function controlKeys(namespace: string): ControlKeys {
  const c = `${namespace}:v1:{control}`;
  return Object.freeze({
    queues: `${c}:queues`,
    schedules: `${c}:schedules`,
    alive: `${c}:alive`,
    id: `${c}:id`,
    wake: `${c}:wake`,
    beat: (processId: string) => `${c}:beat:${processId}`,
  });
}

/** A partition of a queue whose partition count and generation are known. */
export function partitionRef(
  namespace: string,
  place: { readonly queue: string; readonly partition: number; readonly generation: number },
): PartitionRef {
  return Object.freeze({ ...place, keys: partitionKeys({ namespace, ...place }) });
}
