/** What happened in a simulation, in the words of the chaos harness's judge, and what is wrong besides. */

/** @typedef {import('../../chaos/stage/history.mjs').Event} Event */
/** @typedef {import('../../chaos/judge/checker.mjs').Anomaly} Anomaly */
/** @typedef {import('./time.mjs').Process} Process */
/** @typedef {ReturnType<typeof createJournal>} Journal */

/**
 * @param {object} by
 * @param {() => number} by.nowUs
 * @param {() => number} by.serverMs
 * @param {(line: string) => void} [by.print]
 */
export function createJournal({ nowUs, serverMs, print }) {
  /** @type {Event[]} */
  const calls = [];
  /** @type {Event[]} */
  const effects = [];
  /** @type {{ pid: number, us: number, signal: string }[]} */
  const exits = [];
  /** @type {{ pid: number, fromUs: number, toUs: number }[]} */
  const pauses = [];
  /** @type {{ fromUs: number, toUs: number }[]} */
  const stalls = [];
  /** @type {{ partition: number, epoch: number }[]} */
  const passes = [];
  /** @type {Anomaly[]} */
  const complaints = [];
  /** The clock of the server as far as it ever got: what was due once stays due when it is put back. */
  let latestMs = 0;

  /** @param {string} line */
  const tell = (line) => print?.(`${(nowUs() / 1e6).toFixed(6)} ${line}`);

  return {
    calls,
    effects,
    exits,
    pauses,
    stalls,
    passes,
    complaints,
    tell,
    /** Looks at the clock of the server: before it is changed, and whenever something happens. @param {number} [moreMs] it would have come so far */
    look(moreMs = 0) {
      latestMs = Math.max(latestMs, serverMs() + moreMs);
    },
    /** @param {Process} process @param {string} ev @param {object} more */
    note({ name, pid }, ev, more) {
      this.look();
      const event = { ev, us: nowUs(), ms: latestMs, actor: name, pid, ...more };
      (ev.startsWith('enq.') ? calls : effects).push(event);
      tell(`${name} ${ev} ${JSON.stringify(more)}`);
    },
    /** @param {Process} process @param {string} how */
    exit({ name, pid }, how) {
      tell(`${name} ends: ${how}`);
      if (name.startsWith('daemon')) return;
      exits.push({ pid, us: nowUs(), signal: how === 'crash' ? 'SIGKILL' : '' });
    },
    /** It stands still, or hears nothing, from now on. @param {Process} process @param {number} ms @param {string} why */
    pause({ name, pid }, ms, why) {
      pauses.push({ pid, fromUs: nowUs(), toUs: nowUs() + ms * 1000 });
      tell(`${name} ${why} for ${Math.round(ms)} ms`);
    },
    /** The server answers nobody from now on. @param {number} ms @param {string} why */
    stall(ms, why) {
      stalls.push({ fromUs: nowUs(), toUs: nowUs() + ms * 1000 });
      tell(`the server ${why}`);
    },
    /** @param {string} kind @param {string} id @param {string} detail */
    complain(kind, id, detail) {
      complaints.push({ kind, id, detail });
      tell(`${kind} ${id} ${detail}`);
    },
    /** Forgets what is over. */
    turn() {
      for (const list of [calls, effects, passes]) list.length = 0;
    },
  };
}
