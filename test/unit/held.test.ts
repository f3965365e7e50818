/** Every state of an entry times everything that can happen to it: what follows, or that it is a bug. */
import { describe, expect, it, test } from 'vitest';
import type { Token } from '../../src/job/job.ts';
import * as happens from '../../src/worker/run/held.ts';

type State = happens.HeldState;

const start = { token: '7' as Token, startedMs: 20, leasedMs: 10 };
const handler = { abort: () => undefined };
const sent: State = { phase: 'starting', leasedMs: 10 };
const suspected: State = { phase: 'suspected' };
const gone: State = { phase: 'gone' };
const started = (acknowledged = false): State => ({ phase: 'started', start, acknowledged });
const settling = (acknowledged = false): State => ({ phase: 'settling', start, acknowledged });

interface Handled {
  readonly acknowledged?: boolean;
  readonly owed?: boolean;
}
const running = ({ acknowledged = false, owed = true }: Handled = {}, extendedMs?: number): State => ({
  phase: 'running',
  start,
  acknowledged,
  owed,
  extendedMs,
  handler,
});
const overtaken = ({ acknowledged = false, owed = true }: Handled = {}, slotLost = false): State => ({
  phase: 'overtaken',
  start,
  acknowledged,
  owed,
  handler,
  slotLost,
});

/** Every state that can be reached. */
const states = {
  read: happens.READ,
  sent,
  suspected,
  started: started(),
  'started, acknowledged': started(true),
  running: running(),
  'running, extended': running({}, 30),
  'running, acknowledged': running({ acknowledged: true }),
  'running, acknowledged and answered': running({ acknowledged: true, owed: false }),
  overtaken: overtaken(),
  'overtaken, answered': overtaken({ owed: false }),
  'overtaken, slot lost': overtaken({}, true),
  'overtaken, slot lost and answered': overtaken({ owed: false }, true),
  'overtaken, acknowledged': overtaken({ acknowledged: true }),
  settling: settling(),
  'settling, acknowledged': settling(true),
  gone,
} satisfies Record<string, State>;
type Name = keyof typeof states;

/** What can happen, and in which states: there it leads to the state beside it. Everywhere else it is a bug. */
const table: Record<string, { readonly happen: (state: State) => State; readonly to: Partial<Record<Name, State>> }> = {
  'start sent': { happen: (state) => happens.startSent(state, 10), to: { read: sent, sent } },
  suspected: { happen: happens.suspected, to: { read: suspected, sent: suspected } },
  'turn came': { happen: happens.turnCame, to: { suspected: happens.READ } },
  forgotten: { happen: happens.forgotten, to: { read: gone, sent: gone, suspected: gone } },
  started: { happen: (state) => happens.started(state, start.token, start.startedMs), to: { sent: started() } },
  acknowledged: { happen: happens.acknowledged, to: { started: started(true) } },
  refused: { happen: happens.refused, to: { started: settling() } },
  'handler began': {
    happen: (state) => happens.handlerBegan(state, handler),
    to: { started: running(), 'started, acknowledged': running({ acknowledged: true }) },
  },
  extended: {
    happen: (state) => happens.extended(state, 40),
    to: {
      running: running({}, 40),
      'running, extended': running({}, 40),
      'running, acknowledged': running({ acknowledged: true }, 40),
      'running, acknowledged and answered': running({ acknowledged: true, owed: false }, 40),
    },
  },
  overtaken: {
    happen: happens.overtaken,
    to: {
      running: overtaken(),
      'running, extended': overtaken(),
      'running, acknowledged': overtaken({ acknowledged: true }),
      'running, acknowledged and answered': overtaken({ acknowledged: true, owed: false }),
    },
  },
  'slot lost': {
    happen: happens.slotLost,
    to: {
      overtaken: overtaken({}, true),
      'overtaken, answered': overtaken({ owed: false }, true),
      'overtaken, acknowledged': overtaken({ acknowledged: true }, true),
    },
  },
  'handler ended': {
    happen: happens.handlerEnded,
    to: {
      running: settling(),
      'running, extended': settling(),
      'running, acknowledged': settling(true),
      'running, acknowledged and answered': gone,
      overtaken: settling(),
      'overtaken, answered': gone,
      'overtaken, slot lost': settling(),
      'overtaken, slot lost and answered': gone,
      'overtaken, acknowledged': settling(true),
    },
  },
  answered: {
    happen: happens.answered,
    to: {
      started: gone,
      'running, acknowledged': running({ acknowledged: true, owed: false }),
      overtaken: overtaken({ owed: false }),
      'overtaken, slot lost': overtaken({ owed: false }, true),
      'overtaken, acknowledged': overtaken({ acknowledged: true, owed: false }),
      settling: gone,
      'settling, acknowledged': gone,
    },
  },
  abandoned: {
    happen: happens.abandoned,
    to: {
      ...Object.fromEntries(
        Object.entries(states).flatMap(([name, { phase }]) =>
          phase === 'gone' || phase === 'overtaken' ? [] : [[name, gone]],
        ),
      ),
      overtaken: overtaken({ owed: false }),
      'overtaken, answered': overtaken({ owed: false }),
      'overtaken, slot lost': overtaken({ owed: false }, true),
      'overtaken, slot lost and answered': overtaken({ owed: false }, true),
      'overtaken, acknowledged': overtaken({ acknowledged: true, owed: false }),
    },
  },
};

describe.each(Object.entries(table))('%s', (what, { happen, to }) => {
  const legal = Object.entries(to);
  const illegal = Object.entries(states).filter(([name]) => !Object.hasOwn(to, name));

  it.each(legal)('%s: leads on', (name, next) => {
    expect(happen(states[name as Name])).toEqual(next);
  });

  it.each(illegal)('%s: is a bug', (_, state) => {
    expect(() => happen(state)).toThrow(
      `bug: "${what}" cannot happen to an entry in the state {"phase":"${state.phase}"`,
    );
  });
});

test('everything that can happen has its row', () => {
  const named = Object.keys(table).map((what) => what.replace(/ (.)/g, (_, letter: string) => letter.toUpperCase()));
  const functions = Object.entries(happens).filter(([, value]) => typeof value === 'function');
  expect(named.toSorted()).toEqual(functions.map(([name]) => name).toSorted());
});

test('the union is closed: no way leads out of the phases that are listed here', () => {
  const known = (state: State): string => {
    // Without a default: a phase more does not compile.
    switch (state.phase) {
      case 'starting':
      case 'suspected':
      case 'started':
      case 'running':
      case 'overtaken':
      case 'settling':
      case 'gone':
        return state.phase;
    }
  };
  const reached = new Set(Object.values(table).flatMap(({ to }) => Object.values(to).map(known)));
  expect([...reached].toSorted()).toEqual([...new Set(Object.values(states).map(known))].toSorted());
});

test('everything that is read can be got rid of, whatever happened, and nothing leaves what is gone', () => {
  const ways = (state: State) =>
    Object.values(table).flatMap(({ happen, to }) =>
      Object.keys(to).some((name) => states[name as Name].phase === state.phase) ? attempt(happen, state) : [],
    );
  const seen = new Map<string, State>([[JSON.stringify(happens.READ), happens.READ]]);
  for (const state of seen.values()) for (const next of ways(state)) seen.set(JSON.stringify(next), next);
  const ends = [...seen.values()].filter((state) => ways(state).length === 0);
  expect(ends).toEqual([gone]);
  expect(Object.values(states).filter((state) => !seen.has(JSON.stringify(state)))).toEqual([
    states['running, extended'],
  ]);
});

/** What follows, if it can happen. */
function attempt(happen: (state: State) => State, state: State): readonly State[] {
  try {
    return [happen(state)];
  } catch {
    return [];
  }
}
