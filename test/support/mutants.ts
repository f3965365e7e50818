/**
 * Plants bugs in the scripts, one at a time: a guard is left out, a write is left out, a comparison is turned, NX is
 * dropped, or one line comes before another that it must follow. What is said of one goes by the mark of its line
 * (test/chaos/marks.mjs), whatever the line says.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { marksIn } from '../chaos/marks.mjs';
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

/** Lines that must not come before another: `[verb, the mark of the line that is moved, of the line it is put before]`. */
const MOVES: readonly (readonly [verb: string, moved: string, before: string])[] = [
  ['schedule', 'keep-record', 'index-job'],
  ['retry', 'delete-entry', 'first-write'],
  ['defer', 'delete-entry', 'first-write'],
  ['bury', 'forget-run', 'count-end'],
  ['bury', 'ack-entry', 'delete-entry'],
  ['retry', 'ack-entry', 'delete-entry'],
  ['commit', 'ack-entry', 'delete-entry'],
  ['complete', 'ack-entries', 'delete-entries'],
  ['cancel', 'unschedule', 'index-tombstone'],
  ['replay', 'forget-letter', 'index-job'],
  ['replay', 'keep-record', 'index-job'],
  ['promote', 'keep-tombstone', 'index-tombstone'],
  ['reclaim', 'claim-entry', 'count-crash'],
];

/** Damage, schedules and the control slot, which the commands of the model do not touch; their own tests do. */
const ELSEWHERE = ['repair', 'enrol', 'watch', 'beat', 'declare', 'identify', 'arm', 'disarm', 'fire', 'define'];
/** Marks of loops that would never end, which is noticed, but not by a test. */
const ENDLESS = /^endless/;
/** How much is read, which the small records of the model cannot tell; `test/redis/bytes.test.ts` counts it. */
const MEASURES = / [<>]=? (?=(?:300|8|262144|655360)\b)/g;

/** Mutants that change nothing that could be told, by name, with the reason. Their lines are marked. */
export const EQUIVALENT: ReadonlyMap<string, string> = new Map([
  ['elect @live-lease: turned >', 'a lease in its very last millisecond may as well be void'],
  ['promote @room: turned >', 'with no room Redis is asked for no member'],
  ['start @not-read: turned >', 'an entry without a record becomes a dead letter by this call or by the next'],
  ['expire @not-read: turned >', 'an entry without a record is kept by this call or by the next'],
  ...[
    'cancel @fits: turned ==',
    'cancel @not-read: turned >',
    'cancel @later: no guard',
    'purge @largest: turned ==',
    'reclaim @bytes: turned >',
    'schedule @spent: turned >',
    'schedule @alike: turned ==',
    'schedule @later: no guard',
    'schedule @exists-later: no guard',
    'schedule @exists-later: turned ==',
    'schedule @exists-read: turned ==',
  ].map((name) => [name, 'only how much is read: the records of the model are small'] as const),
  [
    'replay @live-again: no write',
    'only after a cut: a member in done that lives again is taken out by the next sweep',
  ],
  ['start @forget-run: no write', 'a run without a record is not left by anything of ours (I12)'],
  ['start @young-again: turned >', 'a second is neither old nor young'],
  ['sweep @drop-tombstones: turned >', 'every member in done has a tombstone, unless a call was cut off'],
]);

/** What the tests of this file go by: `verb @mark`. */
export const marksUsed: readonly string[] = [
  ...MOVES.flatMap(([verb, moved, before]) => [`${verb} @${moved}`, `${verb} @${before}`]),
  ...[...EQUIVALENT.keys()].map((name) => name.split(':')[0] ?? ''),
];

export function mutants(): readonly Mutant[] {
  const verbs = walk('lua').map((path) => path.slice('lua/'.length, -'.lua'.length));
  const broken = verbs.filter((verb) => !ELSEWHERE.includes(verb)).flatMap((verb) => mutantsOf(verb, sourceOf(verb)));
  return [...broken, ...MOVES.map(moved)];
}

const sourceOf = (verb: string) => readFileSync(join(root, `lua/${verb}.lua`), 'utf8');

function mutantsOf(verb: string, lua: string): readonly Mutant[] {
  const lines = lua.split('\n');
  if (lines[0]?.includes('no-writes')) return [];
  const marks = new Map([...marksIn(lines)].map(([mark, at]) => [at, mark]));
  return lines.flatMap((line, at) => {
    const mark = marks.get(at);
    if (/^\s*(--|#!|$)/.test(line) || (mark !== undefined && ENDLESS.test(mark))) return [];
    return Object.entries(OPERATORS).flatMap(([operator, breakLine]) =>
      breakLine(line)
        .filter((brokenLine) => !isMeasure(line, brokenLine))
        .map((brokenLine, place, { length }): Mutant => {
          const where = length === 1 ? '' : ` (${place + 1} of ${length})`;
          // Only a marked line has a name that stays; nothing goes by the others, and they tell a person where to look.
          const name =
            mark === undefined
              ? `${verb}, line ${at + 1}: ${operator}${where}: ${line.trim()}`
              : `${verb} @${mark}: ${operator}${where}`;
          return { verb, name, lua: lines.with(at, brokenLine).join('\n') };
        }),
    );
  });
}

/** Whether nothing but how much is read was turned. */
const isMeasure = (line: string, brokenLine: string): boolean =>
  line.replace(MEASURES, ' ') === brokenLine.replace(MEASURES, ' ');

function moved([verb, mark, before]: readonly [string, string, string]): Mutant {
  const lines = sourceOf(verb).split('\n');
  const marks = marksIn(lines);
  const [from, to] = [marks.get(mark), marks.get(before)];
  if (from === undefined || to === undefined || from < to) {
    throw new Error(`${verb} has no line @${mark} after a line @${before}`);
  }
  const lua = lines
    .toSpliced(from, 1)
    .toSpliced(to, 0, lines[from] ?? '')
    .join('\n');
  return { verb, lua, name: `${verb}: @${mark} before @${before}` };
}

function eachPlace(line: string, pattern: RegExp, change: (found: string) => string): readonly string[] {
  return [...line.matchAll(pattern)].map(
    ({ 0: found, index }) => line.slice(0, index) + change(found) + line.slice(index + found.length),
  );
}
