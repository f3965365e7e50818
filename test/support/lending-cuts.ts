/** A leader brings places of a limit that several queues share, and jobs are let through with them: see `gates-cuts.ts`. */
import { borrow } from '../../src/redis/scripts/lending.ts';
import type { GateCut } from './gates-cuts.ts';
import type { Desk } from './gates-desk.ts';

/** Who is in line when the places come. */
const LINES = {
  'with more behind the next': ['{a}1', '{a}2', 'x', 'y'],
  'with nobody behind the next': ['{a}1', '{b}1'],
  'with nobody but its group': ['{a}1', '{a}2'],
} as const;

const give = (desk: Desk, seq: number): Promise<unknown> => {
  const gift = { name: 'places', kind: 'concurrency', turns: 0, endsMs: 0, share: 9 } as const;
  return borrow(desk.redis, desk.ref, { term: desk.term, gifts: [{ ...gift, seq }], nowMs: desk.nowMs });
};

async function line(desk: Desk, words: readonly string[]): Promise<void> {
  await desk.begin('0 1 0 1 lplaces');
  await desk.line(...words);
}

export const lendingCuts: readonly GateCut[] = [
  ...Object.entries(LINES).map(
    ([state, words]): GateCut => ({
      title: `borrow ${state}`,
      verb: 'borrow',
      most: [0, 1],
      reach: (desk) => line(desk, words),
      call: (desk) => give(desk, 1),
    }),
  ),
  {
    title: 'borrow when the time of a closed group has come',
    verb: 'borrow',
    most: [0, 1],
    async reach(desk) {
      await line(desk, ['{a}1', '{a}2']);
      await desk.close('a', 100);
      await give(desk, 1);
      desk.nowMs += 200;
    },
    call: (desk) => give(desk, 2),
  },
];
