/** The bound of a bulk call, on the model: the first record that does not fit is not read, nor is anything after it. */
import { type Job, jobOf, type Model, tombstoneText } from './model.ts';

export interface Room {
  /** A record did not fit: all that follows is `later`. */
  readonly isFull: () => boolean;
  /** Reads the record of a member, if it fits; the first always does. */
  readonly takes: (member: string) => boolean;
}

export function roomOf(model: Model, bytesMax: number): Room {
  let size = 0;
  let full = false;
  const lengthOf = ({ record }: Job): number => record?.length ?? 0;
  return {
    isFull: () => full,
    takes(member) {
      const length = lengthOf(jobOf(model, member));
      full ||= length > 0 && size > 0 && size + length > bytesMax;
      if (!full) size += length;
      return !full;
    },
  };
}

/** The bound of a start: values are read one, two, four and then eight at a time, fewer where one was large. */
export interface Steps {
  /** How many of so many are read next; 0: another as large as the largest so far would be too much. */
  readonly next: (left: number) => number;
  /** Values that were read, of jobs or of what is left of them. */
  readonly saw: (members: readonly string[]) => void;
}

export function stepsOf(model: Model, bytesMax: number): Steps {
  let [spent, largest, step] = [0, 1, 0.5];
  const sizeOf = ({ record, tombstone }: Job) => (record ?? (tombstone ? tombstoneText(tombstone) : '')).length;
  return {
    next(left) {
      if (left === 0 || (spent > 0 && spent + largest > bytesMax)) return 0;
      step = Math.min(8, step * 2);
      return Math.min(left, step, Math.max(1, Math.floor((bytesMax - spent) / largest)));
    },
    saw(members) {
      for (const size of members.map((member) => sizeOf(jobOf(model, member)))) {
        spent += size;
        largest = Math.max(largest, size);
      }
    },
  };
}
