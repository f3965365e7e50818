/** The partitions at which a worker has its turns: what is over there and waits for one, and whether more is to be had. */
import type { PartitionRef } from '../../redis/keys.ts';
import type { Completion } from '../run/acknowledgement.ts';

export interface Line {
  readonly ref: PartitionRef;
  over: Completion[];
  /** New entries may wait there. */
  hasMore: boolean;
  /** Calls off the turn that what is over waits for. */
  callOff: (() => void) | undefined;
}

/** By partition, the one whose turn is next first. */
export type Lines = Map<PartitionRef, Line>;

export function lineOf(lines: Lines, ref: PartitionRef): Line {
  let line = lines.get(ref);
  if (!line) {
    line = { ref, over: [], hasMore: false, callOff: undefined };
    lines.set(ref, line);
  }
  return line;
}

export const linesWithMore = (lines: Lines): readonly Line[] => [...lines.values()].filter(({ hasMore }) => hasMore);
