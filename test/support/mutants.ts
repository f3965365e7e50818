/**
 * Plants bugs in the scripts, one at a time: a guard is left out, a write is left out, a comparison is turned, NX is
 * dropped, or one line comes before another that it must follow. Each has a name that stays the same while its line does.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, walk } from './repository.ts';

export interface Mutant {
  readonly name: string;
  readonly verb: string;
  readonly lua: string;
}

const WRITES = ['ZADD', 'ZREM', 'HSET', 'HDEL', 'HINCRBY', 'XADD', 'XDEL', 'XACK', 'XCLAIM', 'XGROUP'];
WRITES.push('PEXPIRE', 'SET', 'DEL', 'SPUBLISH', 'UNLINK');

/** Ways to break one line. Each returns the broken line once per place where it can be broken. */
const OPERATORS: Readonly<Record<string, (line: string) => readonly string[]>> = {
  'no guard': (line) => (/^\s*(if|elseif) .* then return .*end$/.test(line) ? [''] : []),
  'no write': (line) =>
    eachPlace(line, new RegExp(`redis\\.call\\('(?:${WRITES.join('|')})'`, 'g'), (call) =>
      call.replace('redis.call', 'tostring'),
    ),
  'no NX': (line) => eachPlace(line, /'NX', /g, () => ''),
  'turned >': (line) => eachPlace(line, / >=? /g, (sign) => (sign === ' > ' ? ' >= ' : ' > ')),
  'turned <': (line) => eachPlace(line, / <=? /g, (sign) => (sign === ' < ' ? ' <= ' : ' < ')),
  'turned ==': (line) => eachPlace(line, / [=~]= /g, (sign) => (sign === ' == ' ? ' ~= ' : ' == ')),
};

/** Lines that must not come before another: `[verb, the line that is moved, the line it is put before]`. */
const MOVES: readonly (readonly [verb: string, moved: string, before: string])[] = [
  ['schedule', "redis.call('HSET', jobs, member, record)", "redis.call('ZADD', scheduled"],
  ['retry', "redis.call('XDEL', ready, entry)", 'local reply, due'],
  ['defer', "redis.call('XDEL', ready, entry)", 'local reply, due'],
  ['bury', "redis.call('HDEL', runs, member)", "redis.call('HINCRBY', meta, cancel"],
  ['bury', "redis.call('XACK', ready, 'workers', entry)", "redis.call('XDEL', ready, entry)"],
  ['retry', "redis.call('XACK', ready, 'workers', entry)", "redis.call('XDEL', ready, entry)"],
  ['commit', "redis.call('XACK', ready, 'workers', entry)", "redis.call('XDEL', ready, entry)"],
  ['complete', "redis.call('XACK', ready, 'workers', unpack(gone))", "redis.call('XDEL', ready, unpack(gone))"],
  ['cancel', "redis.call('ZREM', scheduled, member)", "if waiting and window > 0 then redis.call('ZADD', done"],
  ['replay', "redis.call('XDEL', dead, letter)", "redis.call('ZADD', scheduled, due, member)"],
  ['replay', "redis.call('HSET', jobs, member, record)", "redis.call('ZADD', scheduled, due, member)"],
  ['promote', "redis.call('HSET', jobs, member, ('.x", "redis.call('ZADD', done, now, member)"],
  ['reclaim', "redis.call('XCLAIM', ready", 'countCrash(entry'],
];

/** Damage, schedules and the control slot, which the commands of the model do not touch; their own tests do. */
const ELSEWHERE = ['mend', 'enrol', 'beat', 'declare', 'arm', 'disarm', 'fire', 'define'];
/** Loops that would never end, which is noticed, but not by a test. */
const ENDLESS = /while (rest|more)|more = #/;
/** How much is read, which the small records of the model cannot tell; `test/redis/bytes.test.ts` counts it. */
const MEASURES = / [<>]=? (?=(?:300|8|262144|655360)\b)/g;

/** Mutants that change nothing that could be told, by name, with the reason. */
export const EQUIVALENT: ReadonlyMap<string, string> = new Map([
  [
    'elect: turned >: if lease and ttl >= 0 and ttl <= tonumber(lease) then',
    'a lease in its very last millisecond may as well be void',
  ],
  ['promote: turned >: 0, 0, 0, 1, 0.5, room > 0', 'with no room Redis is asked for no member'],
  [
    'start: turned >: nd not stub and length > 0',
    'an entry without a record becomes a letter by this call or by the next',
  ],
  ['expire: turned >: nd not stub and length > 0', 'an entry without a record is kept by this call or by the next'],
  ...[
    'cancel: turned ==: local fits = size == 0 or size + length <= 655360',
    'cancel: turned >: nd not stub and length > 0',
    "cancel: no guard: if full then return 'later' end",
    'purge: turned ==: , looked, last = looked == 0 and 1 or largest, looked + 1, lette',
    'reclaim: turned >: if bytes > 1048576 then break end',
    'schedule: turned >: full = spent > 0 and spent + size > 655360',
    'schedule: turned ==: local alike = length == #record',
    'schedule: no guard: if (alike or length <= 300) and not fi',
    "schedule: no guard: if not score and current == '' and not",
    "schedule: turned ==: f not score and current == '' and not fits(length) then return '",
    "schedule: turned ==: f not score and current == '' then current = redis.call('HGET',",
  ].map((name) => [name, 'only how much is read: the records of the model are small'] as const),
  [
    "replay: no write: redis.call('ZREM', done, member)",
    'only after a cut: a member in done that lives again is taken out by the next sweep',
  ],
  [
    "start: no write: , meta, 'n.refused', 1) redis.call('HDEL', runs, member)",
    'a run without a record is not left by anything of ours (I12)',
  ],
  [
    "start: turned >: d[entry] or math.huge) >= 1000 then redis.call('XCLAIM', ready,",
    'a second is neither old nor young',
  ],
  [
    "sweep: turned >: if #over > 0 then redis.call('HDEL', jobs, unpack(",
    'every member in done has a stub, unless a call was cut off',
  ],
]);

export function mutants(): readonly Mutant[] {
  const verbs = walk('lua').map((path) => path.slice('lua/'.length, -'.lua'.length));
  const broken = verbs.filter((verb) => !ELSEWHERE.includes(verb)).flatMap((verb) => mutantsOf(verb, sourceOf(verb)));
  return [...broken, ...MOVES.map(moved)];
}

const sourceOf = (verb: string) => readFileSync(join(root, `lua/${verb}.lua`), 'utf8');

function mutantsOf(verb: string, lua: string): readonly Mutant[] {
  const lines = lua.split('\n');
  if (lines[0]?.includes('no-writes')) return [];
  const names = new Map<string, number>();
  return lines.flatMap((line, at) => {
    if (/^\s*(--|#!|$)/.test(line) || ENDLESS.test(line)) return [];
    return Object.entries(OPERATORS).flatMap(([operator, breakLine]) =>
      breakLine(line)
        .filter((brokenLine) => !isMeasure(line, brokenLine))
        .map((brokenLine): Mutant => {
          const plain = `${verb}: ${operator}: ${excerpt(line, brokenLine)}`;
          const times = (names.get(plain) ?? 0) + 1;
          names.set(plain, times);
          return {
            verb,
            name: times === 1 ? plain : `${plain} (${times})`,
            lua: lines.with(at, brokenLine).join('\n'),
          };
        }),
    );
  });
}

/** Whether nothing but how much is read was turned. */
const isMeasure = (line: string, brokenLine: string): boolean =>
  line.replace(MEASURES, ' ') === brokenLine.replace(MEASURES, ' ');

function moved([verb, line, before]: readonly [string, string, string]): Mutant {
  const lines = sourceOf(verb).split('\n');
  const to = lines.findIndex((one) => one.trim().startsWith(before));
  const from = lines.findIndex((one, at) => at > to && one.trim().startsWith(line));
  const mover = lines[from];
  if (to === -1 || mover === undefined) throw new Error(`${verb} has no line ${line} after ${before}`);
  const lua = lines.toSpliced(from, 1).toSpliced(to, 0, mover).join('\n');
  return { verb, lua, name: `${verb}: moved: ${line} before ${before}` };
}

function eachPlace(line: string, pattern: RegExp, change: (found: string) => string): readonly string[] {
  return [...line.matchAll(pattern)].map(
    ({ 0: found, index }) => line.slice(0, index) + change(found) + line.slice(index + found.length),
  );
}

/** What was there, from a little before the first difference. */
function excerpt(line: string, brokenLine: string): string {
  const differs = [...line].findIndex((letter, at) => letter !== brokenLine[at]);
  return line.slice(Math.max(0, differs - 24), differs + 40).trim();
}
