/** The bound of a bulk call, on the model: the first record that does not fit is not read, nor is anything after it. */
import { type Job, jobOf, type Model } from './model.ts';

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
