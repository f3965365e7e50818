/** What goes wrong in a simulation. Each fault is a name, how often it comes, and what it does; the seed decides the rest. */

/** @typedef {import('./cast.mjs').Actor} Actor */
/** @typedef {import('./cast.mjs').Role} Role */
/**
 * @typedef {object} Stage
 * @property {import('./time.mjs').Time} time
 * @property {import('./network.mjs').Network} network
 * @property {import('./cast.mjs').Cast} cast
 * @property {import('./journal.mjs').Journal} journal
 * @property {import('./time.mjs').Process} director
 * @property {import('./machine.mjs').Machine} machine
 * @property {() => number} random
 * @property {number} ahead how many ms before they are due jobs are handed to workers
 */
/** @typedef {{ weight: number, act: (stage: Stage) => void }} Fault */

/** @template T @param {readonly T[]} list @param {() => number} random */
const oneOf = (list, random) => list[Math.floor(random() * list.length)];

/** Longer than the lease of a job and the grace of its worker together. */
const LONG_MS = 30_000;

/** Mostly short, seldom as long as it may be. @param {() => number} random @param {number} maxMs */
const spanMs = (random, maxMs) => 20 + random() ** 2 * maxMs;

/** @param {Role[]} roles @param {(actor: Actor, stage: Stage) => void} act @returns {Fault['act']} */
const toOne = (roles, act) => (stage) => {
  const actor = oneOf(roles.flatMap(stage.cast.living), stage.random);
  if (actor) act(actor, stage);
};

/** @type {Role[]} */
const STANDING = ['daemon', 'worker'];
/** @type {Role[]} */
const EVERYBODY = ['daemon', 'worker', 'producer'];

/** @type {Readonly<Record<string, Fault>>} */
export const FAULTS = {
  crash: { weight: 3, act: toOne(STANDING, (actor) => actor.crash()) },
  restart: {
    weight: 2,
    act: toOne(STANDING, (actor, { cast }) => {
      actor.stop();
      cast[actor.role === 'daemon' ? 'daemon' : 'worker']();
    }),
  },
  freeze: {
    weight: 4,
    act: toOne(EVERYBODY, ({ process }, { time, journal, random }) => {
      const ms = spanMs(random, LONG_MS);
      journal.pause(process, ms, 'stands still');
      process.pausedUntilUs = Math.max(process.pausedUntilUs, time.nowUs() + ms * 1000);
    }),
  },
  hold: {
    weight: 4,
    act: toOne(EVERYBODY, ({ process }, { network, journal, random }) => {
      const ms = spanMs(random, LONG_MS);
      journal.pause(process, ms, 'has a line that is held');
      network.hold(process, ms);
    }),
  },
  /** The next command of one connection is carried out, and nobody hears of it. */
  ambush: {
    weight: 8,
    act: toOne(EVERYBODY, ({ process }, { network, journal, random }) => {
      const link = oneOf(network.linksOf(process), random);
      journal.tell(`${process.name} will lose a reply`);
      if (link) link.ambush = true;
    }),
  },
  cut: {
    weight: 4,
    act: toOne(EVERYBODY, ({ process }, { network, journal, random }) => {
      const link = oneOf(network.linksOf(process), random);
      journal.tell(`${process.name} loses a connection`);
      if (link) network.cut(link);
    }),
  },
  /** Commands arrive, replies do not, and the connection looks alive. */
  mute: {
    weight: 4,
    act: toOne(EVERYBODY, ({ process }, { network, journal, random }) => {
      const link = oneOf(network.linksOf(process), random);
      // Until its commands time out, nothing of this process counts on the others.
      journal.pause(process, 12_000, 'hears nothing on a connection');
      if (link) link.mute = true;
    }),
  },
  'cut all': {
    weight: 1,
    act({ network, journal }) {
      journal.tell('all connections are cut');
      for (const link of [...network.links]) network.cut(link);
    },
  },
  'freeze server': {
    weight: 2,
    act: ({ machine, random }) => machine.freeze(spanMs(random, LONG_MS)),
  },
  'restart server': {
    weight: 2,
    act: ({ machine, random }) => machine.restart({ downMs: spanMs(random, 4000), loadMs: spanMs(random, 1500) }),
  },
  'flush scripts': {
    weight: 1,
    act({ machine, journal }) {
      journal.tell('scripts are flushed');
      machine.ask(['SCRIPT', 'FLUSH']);
    },
  },
  'jump clock': {
    weight: 1,
    act({ machine, journal, random, ahead }) {
      // What is held begins when as much time has passed as Redis had said, unless a reply tells of the jump before that.
      journal.look(ahead);
      machine.jump((random() < 0.5 ? -1 : 1) * spanMs(random, 4000));
    },
  },
};

/** @param {Stage} stage @param {readonly string[]} names */
export function strike(stage, names) {
  const known = names.map((name) => FAULTS[name]).filter((fault) => fault !== undefined);
  let left = stage.random() * known.reduce((total, { weight }) => total + weight, 0);
  for (const { weight, act } of known) {
    left -= weight;
    if (left > 0) continue;
    act(stage);
    return;
  }
}
