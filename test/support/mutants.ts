/**
 * Plants bugs in the scripts, one at a time: a guard is left out, a write is left out, a comparison is turned, NX is
 * dropped, or one line comes before another that it must follow. What is said of one goes by the mark of its line
 * (test/chaos/marks.mjs), whatever the line says.
 *
 * A bug in a part is planted once, in all scripts that use the part at the same time, as it would be if somebody wrote it
 * there: it is enough that one of them gives it away.
 */
import { assembled, namesIn, partsNamed } from '../../lua/assemble.mjs';
import { marksIn } from '../chaos/marks.mjs';
import { read } from './repository.ts';

export interface Mutant {
  readonly name: string;
  /** The script or part in which it was planted. */
  readonly of: string;
  /** The whole text of every script that has it, by verb. */
  readonly scripts: ReadonlyMap<string, string>;
}

const WRITES = ['ZADD', 'ZREM', 'HSET', 'HDEL', 'HINCRBY', 'XADD', 'XDEL', 'XACK', 'XCLAIM', 'XGROUP'];
WRITES.push('PEXPIRE', 'SET', 'DEL', 'SPUBLISH', 'UNLINK');

/** Ways to break one line. Each returns the broken line once per place where it can be broken. */
const OPERATORS: Readonly<Record<string, (line: string) => readonly string[]>> = {
  'no guard': (line) => (/^\s*(if|elseif) .* then return .*end$/.test(line) ? [''] : []),
  'no write': (line) =>
    eachPlace(line, new RegExp(`redis\\.p?call\\('(?:${WRITES.join('|')})'`, 'g'), (call) =>
      call.replace(/redis\.p?call/, 'tostring'),
    ),
  'no NX': (line) => eachPlace(line, /'NX', /g, () => ''),
  'turned >': (line) => eachPlace(line, / >=? /g, (sign) => (sign === ' > ' ? ' >= ' : ' > ')),
  'turned <': (line) => eachPlace(line, / <=? /g, (sign) => (sign === ' < ' ? ' <= ' : ' < ')),
  'turned ==': (line) => eachPlace(line, / [=~]= /g, (sign) => (sign === ' == ' ? ' ~= ' : ' == ')),
};

/** Lines that must not come before another: `[script or part, the mark of the line that is moved, of the line it is put before]`. */
const MOVES: readonly (readonly [of: string, moved: string, before: string])[] = [
  ['schedule', 'keep-record', 'index-job'],
  ['schedule', 'keep-record', 'enter-tags'],
  ['retry', 'leave-ready', 'first-write'],
  ['defer', 'leave-ready', 'first-write'],
  ['bury', 'forget-run', 'count-end'],
  ['let-go', 'acknowledge', 'delete'],
  ['cancel', 'unschedule', 'index-tombstone'],
  ['replay', 'forget-dead-letter', 'index-job'],
  ['replay', 'keep-record', 'index-job'],
  ['nonsense', 'keep-tombstone', 'index-tombstone'],
  ['reclaim', 'claim-entry', 'count-crash'],
];

/** Bugs that no operator makes: `[script or part, what is wrong, words of one line, words in their place]`. */
const SLIPS: readonly (readonly [of: string, wrong: string, words: string, instead: string])[] = [
  ['clock', 'a call that comes late is carried out', 'if last and now > last then', 'if false then'],
  ['completion', 'any token ends a job', 'last ~= token or here ~= entry', 'here ~= entry'],
  ['completion', 'any entry ends a job', 'last ~= token or here ~= entry', 'last ~= token'],
  ['completion', 'a job of a call ends twice', 'if seen[member] or not last', 'if not last'],
  ['completion', 'the mark is not kept', 'tombstoneText(counter:sub(1, 1), mark,', "tombstoneText('d', '0 0',"],
  ['end-mark', 'the mark is trusted when there is none', "mark ~= '' or bar and not isKept", 'true'],
  [
    'end-many',
    'what has ended weighs on',
    'unweigh(keys.jobs, keys.meta, call.sum, tombstones, drop)',
    'tostring(drop)',
  ],
  ['complete', 'what was completed weighs on', 'call.sum = state[1]', 'call.sum = false'],
  ['serve', 'what a turn completes weighs on', 'sum = state[3]', 'sum = false'],
  ['relay', 'what a pass completes weighs on', 'sum = state[5]', 'sum = false'],
  ...['bury', 'put-back', 'turn-away', 'nonsense'].map(
    (of) => [of, 'what has ended weighs on', '-#record, -1', '0, 0'] as const,
  ),
  ['commit', 'what has ended weighs on', 'heavier - #record, more - 1', 'heavier, more'],
  ['expire', 'what is too late weighs on', '-lighter, -count', '0, 0'],
  ['cancel', 'what was cancelled weighs on', '-lighter, -count', '0, 0'],
  ['compensate', 'a compensation job weighs nothing', '#job.record, 1)', '0, 0)'],
  ['replay', 'a replayed job weighs nothing', '#record, 1, state[2]', '0, 0, state[2]'],
  ['adopt', 'a bare member is counted twice', 'reweigh(keys.meta, #record, 0)', 'reweigh(keys.meta, #record, 1)'],
  ['edit', 'a job weighs what it did before its edit', 'reweigh(meta, heavier, 0, state[2])', 'tostring(heavier)'],
  ['weigh', 'a walk changes a sum that all keep by more', 'weight / 16', 'weight / 8'],
  [
    'end-many',
    'tags stay when the mark says them',
    'endTags(keys, call.now, member,',
    'tostring(keys, call.now, member,',
  ],
  ['end-mark', 'tags of a record that is read for its mark stay', 'tags or tagsOf(record)', 'tags'],
  ['cancel', 'what was seen counts for nothing', 'seenText(record, run, waits) ~= seen', 'false'],
  [
    'edit',
    'what was seen counts for nothing',
    'isAll and seenText(current, run, waits) or digestOf(current)',
    'before',
  ],
  ['known', 'the mark of a call with headers is not looked at', ' or firstMark(record)', ''],
  ['tags', 'a tag that stays is taken out', 'local stays = kept and', 'local stays = false and'],
  ['completion', 'a bare job that was put again is over', 'if goesOn then', 'if false then'],
  ['completion', 'all are ok whatever became of them', "areOk and reply == 'ok'", 'areOk'],
  ['start-one', 'who does not hold an entry starts it', "reply = { 'lost' }", 'isPending(keys.ready, entry)'],
  ['mint', 'a token is minted twice', 'call.token, call.isMinted = call.token + 1, true', 'call.isMinted = true'],
  ['mint', 'the last token is not kept', 'call.token + call.count', 'call.token'],
  [
    'start-one',
    'a start is minted again for its own worker',
    "local kind = job.isMine and 'again' or 'run'",
    "local kind = 'run'",
  ],
  ['starting', 'a pause stops no start', 'record and not call.isPaused', 'record'],
  ['starting', 'both entries of a job start', 'and not seen[member] and record', 'and record'],
  ['starting', 'the second entry of a job does not see what the first did', 'if seen[member] then', 'if false then'],
  ['starting', 'what ran before starts for the first time', 'not (known[nth] or again[nth])', 'not again[nth]'],
  ['starting', 'what waits again is started', 'not (known[nth] or again[nth])', 'not known[nth]'],
  ['starting', 'an entry of the future is young', " and to:match('^%d+') - call.now <= 0", ''],
  ['starting', 'an old entry stays old', 'isFirst and isYoung and', 'isFirst and'],
  ['starting', 'a call reads as much as there is', 'call.spent + call.largest <= call.bytes', 'true'],
  ['starting', 'a call of entries forgets what it has read', 'call.spent + size', 'size'],
  ['starting', 'what did not fit is not told', "'later' }", "'dropped' }"],
  ['repeated', 'an acknowledged entry is never let go', 'or not settled or call.isHeld', 'or true'],
  ['serve', 'what is delivered is not started', 'if #delivered > 0 then', 'if false then'],
  ['serve', 'a paused queue is delivered', 'if take > 0 and not call.isPaused then', 'if take > 0 then'],
  ['serve', 'what was given is taken for delivered', 'entries, true)', 'entries)'],
  ['serve', 'one more is delivered', 'deliver(ready, consumer, take)', 'deliver(ready, consumer, take + 1)'],
  ['serve', 'what is over is not completed', '8 + 4 * given, #ARGV', '8 + 4 * given, 0'],
  ['relay', 'what is delivered is not started', 'if #delivered > 0 then', 'if false then'],
  ['relay', 'a paused queue is delivered', ' and not call.isPaused then', ' then'],
  ['relay', 'one more is delivered', 'deliver(ready, consumer, take)', 'deliver(ready, consumer, take + 1)'],
  ['relay', 'what is over is not completed', '12, #ARGV', '12, 0'],
  ['relay', 'what was ready before is taken for new', 'first or gate and gate.first', 'delivered[1]'],
  ...['start', 'serve', 'relay'].map(
    (of) => [of, 'nobody looks for closed tags', '] and closed', '] and false'] as const,
  ),
  ['turn-away', 'a closed tag stops no start', ' or closedBy(keys.closed, record) then', ' then'],
  ['schedule', 'a job with a closed tag is made', 'unlessClosed(closed, record, reply) or reply', 'reply'],
  ['replay', 'a job with a closed tag is replayed', 'tag, last = closedBy(closed, record)', 'tag = nil'],
  ['sweep', 'an end that has come opens nothing', 'isClosed = sweepTags(keys, now, limit)', 'isClosed = false'],
  ['close-tags', 'one more tag is closed than may be', 'room = room - (before and 0 or 1)', 'room = room'],
  ['history', 'what a worker refused counts as a failure', ` and not error:find('"k":"refused"', 1, true)`, ''],
  ['history', 'what counts as a crash counts as a failure', "run.owner ~= '-' and", 'true and'],
  ['history', 'progress counts among the errors', 'withoutProgress(errors or history)', '(errors or history)'],
  ['extend', 'what was said before stays', 'withoutProgress(text)', 'text'],
  ['delivery', 'a missing group fails the call', "redis.pcall('XREADGROUP'", "redis.call('XREADGROUP'"],
];

/** Damage, schedules, the control slot and erased history, which the commands of the model do not touch; their own tests do. */
export const ELSEWHERE = [
  'repair',
  'mend-tags',
  'enrol',
  'watch',
  'beat',
  'forget',
  'tell',
  'declare',
  'undeclare',
  'identify',
  'issue',
  'arm',
  'disarm',
  'fire',
  'define',
  'erase',
  'cast',
  'limit',
  'close',
  'mend-gates',
  'gather',
  'seal',
  'disband',
  'tend',
  // The model has no ledger of claims; `test/redis/hand.test.ts` has, and cuts the script off before each of its writes.
  'hand',
  // The model keeps no diary; `test/redis/diary.test.ts` does, and plants them.
  'observe',
  // Handlers of the model say nothing; `test/redis/log-bugs.test.ts` plants them.
  'log',
  'erase-lines',
  // One queue has no limits that others have as well; `test/redis/lend-bugs.test.ts` plants them.
  'lend',
  'borrow',
  // Nor is there a rate of which they could have used more; `test/support/gates-costs-stories.ts` has one.
  'spend',
];
/** Parts that only `cast` uses. It has a model of its own, in `test/proof/cast.test.ts`. */
export const PARTS_OF_CAST: readonly string[] = ['cast-one', 'cast-entries', 'casting', 'cast-bounds', 'take-back'];
/** Parts that only a gated queue uses. `test/proof/gates.test.ts` walks through one. */
export const PARTS_OF_GATES: readonly string[] = [
  ...['gate', 'line', 'lanes', 'opening', 'turns', 'heads', 'letting-through', 'lining-up', 'leaving', 'giving-up'],
  ...['rates', 'costs', 'charge', 'filling', 'own', 'closing', 'shutting', 'own-limits', 'sooner'],
  // And only one in strict order.
  ...['keeping', 'yielding', 'vacating', 'vacancy', 'ordering', 'regaining', 'pausing', 'marking', 'carrying'],
];
/** Parts and verbs that only members of sets reach. `test/proof/sets.test.ts` has stories of them. */
const PARTS_OF_SETS: readonly string[] = ['sets', 'callback', 'end-tags', 'joining', 'rejoining', 'stray'];
const VERBS_OF_SETS: readonly string[] = ['gather', 'seal', 'disband', 'tend'];
/**
 * Groups of the model have no limit; `test/redis/group-quota.test.ts` has some, and plants bugs of its own. The history of the
 * model is too long to be swept; `test/redis/past.test.ts` sweeps one. Its calls end fewer jobs than
 * `head` asks for; `test/proof/head.test.ts` has streams of its own. Its records have no names; `test/redis/past.test.ts` has.
 */
const PARTS_ELSEWHERE = [
  ...['group-quota', 'sweep-past', 'head', 'named', ...PARTS_OF_CAST, ...PARTS_OF_GATES, ...PARTS_OF_SETS],
  // No leader of the model ends late jobs: `test/redis/expire.test.ts` does.
  'lapsing',
  // The model does not debounce; `test/redis/debounce-bugs.test.ts` does, and plants its own.
  ...['debounce', 'again'],
  // Nor does it hand anything out ahead; `test/redis/ahead.test.ts` does, and plants them.
  ...['offers', 'offered', 'held'],
  // Nor does it keep a diary; `test/redis/diary.test.ts` does, and plants them.
  'diary',
  // Nor do its handlers say anything; `test/redis/log-bugs.test.ts` plants them.
  ...['log-lines', 'sweep-lines'],
  // Nor does its queue share limits with others; `test/redis/lend-bugs.test.ts` plants them.
  ...['lent', 'ledger'],
];
/** Lines of others that only a job reaches that was handed out ahead. */
export const OF_AHEAD: readonly string[] = [
  'promote @offers: turned ==',
  'start-one @is-void: turned ==',
  ...[1, 2].map((at) => `start-one @own-offer: turned == (${at} of 2)`),
  'start-one @held-until: turned >',
  ...[1, 2, 3, 4].map((at) => `start-one @taken-out: turned == (${at} of 4)`),
  'start-one @out-of-scheduled: no write',
  ...['starting @some-begin: turned >', 'starting @begins: no write', 'starting @until-due: turned >'],
  'starting @is-offer: turned ==',
  ...['waiting', 'known', 'cancel'].map((of) => `${of} @held-first: no guard`),
  ...['no write', 'no NX'].map((how) => `put-back @scheduled-again: ${how}`),
  'put-back @unbound: no write',
];
/** Lines of others that only a debounced job reaches. */
export const OF_DEBOUNCE: readonly string[] = [
  'judging @due-now: turned >',
  'schedule @news: turned ==',
  'completion @lives-on: turned == (1 of 2)',
  'replay @debounced: turned ==',
  'replay @later-mark: no guard',
  'replay @later-mark: turned <',
];
/** Marks of loops that would never end, which is noticed, but not by a test. */
const ENDLESS = /^endless/;
/** How much is read, which the small records of the model cannot tell; `test/redis/bytes.test.ts` counts it. */
const MEASURES = / [<>]=? (?=(?:300|500|8|262144|655360)\b)/g;

/** Lines of others that only a gated queue reaches. */
const OF_GATES: readonly string[] = [
  'edit @back-to-its-due: no write',
  'edit @another-priority: turned ==',
  'promote @some-through: turned >',
  'promote @call-workers: no write',
  'defer @closes: turned ==',
  'defer @closes-group: turned ==',
  'defer @closes-queue: turned == (1 of 2)',
  'defer @closes-queue: turned == (2 of 2)',
  'promotion @long-line: turned >',
  'promotion @ring: turned <',
  'promotion @has-rate: turned >',
  'promotion @is-closed: turned >',
  'promotion @any-lanes: turned >',
  'starting @started-odd: turned ==',
  'start-one @has-begun: turned ==',
  'release @has-begun: turned ==',
  'end-many @no-priority: turned ==',
  'elect @is-older: turned ==',
  'resume @keep-mark: no write',
];

/** Mutants that change nothing that could be told, by name, with the reason. Their lines are marked. */
export const EQUIVALENT: ReadonlyMap<string, string> = new Map([
  ['clock @given: no guard', 'only a shorter way to the same'],
  ['let-go @last-of-head: no write', 'calls of the model end fewer; test/proof/head.test.ts has streams of its own'],
  ['reschedule @reads: turned >', 'what is due at once has no use for the record'],
  ['reschedule @due-later: turned >', 'a job that waits for later has not reached its expiry yet'],
  ...[
    'clock @first: turned ==',
    'known @first-send: no guard',
    'known @first-send: turned ==',
    'known @cancelled-earlier: turned <',
    'known @cancelled-before: turned ==',
    'known @sent-again: no guard',
    'known @sent-again: turned ==',
    'known @asked-to-stop: no guard',
    'known @moved: turned > (1 of 2)',
    'known @moved: turned > (2 of 2)',
    'known @moved: turned ==',
    'known @started: turned ==',
    'known @back-again: turned ==',
    'known @takes-back: turned ==',
    'known @same-call: no guard',
  ].map(
    (name) => [name, 'no call of the model says when it was sent first; test/redis/schedule.test.ts has them'] as const,
  ),
  ['elect @live-lease: turned >', 'a lease in its very last millisecond may as well be void'],
  [
    'elect @live-lease: turned <',
    'seldom two elections of a list fall into one millisecond; test/redis/elect.test.ts has fifty that do',
  ],
  [
    'elect @other-schema: no guard',
    'every partition of the model has our schema; test/redis/schema.test.ts has another',
  ],
  ['past @dash: turned ==', 'no job of the model has the tag -; test/redis/past.test.ts has some'],
  ['sweep @drop-surplus: no write', 'what the model does leaves no surplus; test/redis/sweep.test.ts has one'],
  ['sweep @more: turned >', 'a call more, with nothing left to do'],
  ['commit @named-letter: turned == (2 of 2)', 'the letter is among the newest; test/redis/commit.test.ts has more'],
  ['past @window: turned ==', 'seldom is a bare job put twice for one time; test/redis/past.test.ts has one'],
  ['promotion @room: turned >', 'with no room no member is taken'],
  ...['promotion @plain: turned >', 'promotion @plain: turned <'].map(
    (name) => [name, 'what is not plain is judged in full'] as const,
  ),
  ['stop-order @order: no write', 'the model hears no orders to stop; test/flow/worker/worker-running.test.ts does'],
  ...[
    'cancel @later: no guard',
    'purge @largest: turned ==',
    'reclaim @bytes: turned <',
    'known @spent: turned >',
    'known @later: no guard',
    'edit @later: no guard',
    'reschedule @later: no guard',
  ].map((name) => [name, 'only how much is read: the records of the model are small'] as const),
  [
    'replay @live-again: no write',
    'only after a cut: a member in done that lives again is taken out by the next sweep',
  ],
  ['turn-away @forget-run: no write', 'a run without a record is not left by anything of ours (I12)'],
  ...['reschedule @kept: turned >', 'reschedule @kept: turned <'].map(
    (name) => [name, 'the same due time is answered before'] as const,
  ),
  ['group @at-once: no guard', 'the long way, which asks whether there is a stream, does the same'],
  ['group @no-stream: no guard', 'promote makes the stream first; who only looks has tests of its own'],
  ['tombstone @nothing-there: turned >', 'only one more look, which finds nothing'],
  ...[
    'starting @so-young: turned < (1 of 2)',
    'starting @so-young: turned < (2 of 2)',
    'starting @not-asked: no guard',
  ].map((name) => [name, 'the time of the model is before each entry; test/redis/start.test.ts has others'] as const),
  ['starting @young: turned <', 'a second is neither old nor young'],
  ['starting @apart: turned >', 'one text or two say the same; only what they cost differs'],
  ['quota @no-bytes: turned >', 'without a limit of bytes nothing is noted, so one look more finds nothing'],
  ['quota @unreadable: no guard', 'nothing of ours writes limits that cannot be read'],
  ['weigh @left: turned <', 'ids of entries are of the server, and the time of a note is that of a call'],
  ...[1, 2, 3].map(
    (place) =>
      [
        `commit @next-job: turned == (${place} of 3)`,
        'effects of the model write no job; test/redis/quota-mixes.test.ts has one',
      ] as const,
  ),
  ['serve @nothing-asked: no guard', 'nothing is started and nothing delivered all the same'],
  ['relay @nothing-there: turned >', 'where nothing waits, nothing is delivered all the same'],
  ['start-one @young-again: turned >', 'a second is neither old nor young'],
  ...[1, 2].map(
    (place) =>
      [
        `closed-tags @ten-asked: turned < (${place} of 2)`,
        'records of the model have few tags, and short ones; test/redis/close-tags.test.ts has more',
      ] as const,
  ),
  [
    'closed-tags @no-tags: no guard',
    'records of the model have no priority; test/redis/close-tags.test.ts has one and no other tag',
  ],
  ...['ten-entered', 'ten-taken-out'].flatMap((mark) =>
    [1, 2].map(
      (place) =>
        [
          `tags @${mark}: turned < (${place} of 2)`,
          'records of the model have few tags, and short ones; test/redis/tags.test.ts has more',
        ] as const,
    ),
  ),
  [
    'tags @no-key: no guard',
    'the model names every key; test/golden/wire-v1.json has calls of others that do not name that of tags',
  ],
  [
    'reschedule @expires: turned >',
    'no list moves a job to the very moment of its expiry; test/redis/reschedule.test.ts does',
  ],
  ['edit @same-set: no guard', 'no job of the model is in a set; test/redis/sets.test.ts has one'],
  ['completion @kept-mark: turned >', 'the model keeps a history, so the mark is needed in any case'],
  ['end-mark @known-mark: no guard', 'the record that is read instead says the same'],
  ['past @unreadable: no guard', 'nothing of ours writes a record that cannot be read'],
  ['sweep @drop-tombstones: turned >', 'every member in done has a tombstone, unless a call was cut off'],
  ...OF_AHEAD.map((name) => [name, 'the model hands nothing out ahead; test/redis/ahead.test.ts does'] as const),
  ...OF_DEBOUNCE.map((name) => [name, 'the model does not debounce; test/redis/debounce-bugs.test.ts does'] as const),
  ...OF_GATES.map(
    (name) => [name, 'the model is not gated; test/proof/gates.test.ts walks through a queue that is'] as const,
  ),
]);

/** Bugs in what a gated queue adds to scripts, that no operator makes; as SLIPS has them. */
const SLIPS_OF_GATES: readonly (typeof SLIPS)[number][] = [
  ...(['cancel', 'schedule', 'edit'] as const).map(
    (of) => [of, 'who leaves the line keeps the place', 'leaveLine(line, member, waits)', 'tostring(line)'] as const,
  ),
  ['reschedule', 'who leaves the line keeps the place', 'leaveLine(line, member, job.waits)', 'tostring(line)'],
  ['reschedule', 'who waits is put forward', 'local isDue = not before or before <= now', 'local isDue = not before'],
  ...(['retry', 'defer', 'bury', 'commit', 'expire', 'release'] as const).map(
    (of) => [of, 'nobody hears of the room', "'gates', 'gate', 'paused'", "'none', 'gate', 'paused'"] as const,
  ),
  ...(['retry', 'defer', 'bury', 'commit', 'expire', 'release'] as const).map(
    (of) => [of, 'a pause lets through', "'gates', 'gate', 'paused'", "'gates', 'gate', 'none'"] as const,
  ),
  ...(['expire', 'release'] as const).map(
    (of) =>
      [of, 'a turn that was not used is lost', 'micros, gone, left, unused, ', 'micros, gone, left, {}, '] as const,
  ),
  ['complete', 'nobody hears of the room', 'call.gate and not state[2]', 'false'],
  ['complete', 'a pause lets through', 'call.gate and not state[2]', 'call.gate'],
  ['complete', 'what is over keeps its hold', 'call.gate = gateOf(', 'local gate = gateOf('],
  ...(['serve', 'relay'] as const).flatMap(
    (of) =>
      [
        [of, 'what is over keeps its hold', ', gate = gate }', ' }'],
        [of, 'a start has no hold', 'call.ahead = gate,', 'call.ahead = nil,'],
        [of, 'nothing is let through', 'waiting = fill(', 'waiting = tostring('],
        [of, 'a pause lets through', 'not (refusal or call.isPaused)', 'not refusal'],
      ] as const,
  ),
  ['serve', 'a call that asks for nothing lets nobody through', 'take + given == 0 and not gate', 'take + given == 0'],
  ['start', 'a start has no hold', 'call.gate = gateOf(', 'local gate = gateOf('],
  ['starting', 'a drop costs a turn', 'refundAll(keys, call.gate, charges or {})', 'tostring(call)'],
  ['starting', 'a start has no hold', 'holdAll(keys.holds, begun, first)', 'tostring(begun)'],
  ['starting', 'a start that is not plain has no hold', "[4] == 'run'", "[4] == 'none'"],
  ['promotion', 'a line has no bound', "gate.lineMax - redis.call('ZCARD', keys.line)", 'gate.lineMax'],
  ['promotion', 'a pause lets through', 'isOpen and not paused and', 'isOpen and'],
  ['promotion', 'nobody looks where a bound ended the call', 'isCut and now or nil', 'nil'],
  [
    'promotion',
    'the next turn of the rate is not looked for',
    'look = look or nextTurnMs(keys.meta, gate)',
    'tostring(look)',
  ],
  ['promotion', 'who waits is the next due', 'not isWaiting(head) and head or nil', 'head'],
  ['promotion', 'who is due soon is forgotten', 'math.min(head or look, look)', 'look'],
  ['promotion', 'more go past than are wanted', 'batch, gate.wanted - backlog - through, gone)', 'batch, 9, gone)'],
  [
    'replay',
    'a job in line is due in 140,000 years',
    "dueText(redis.call('ZSCORE', scheduled, member))",
    "redis.call('ZSCORE', scheduled, member)",
  ],
  ['remove', 'line, lanes and holds stay', 'cast, line, lanes, holds, groups, order,', 'cast,'],
  ['seen', 'a place in line is a due time', 'dueText(waits)', 'waits'],
  ['gate', 'a step of the clock is for ever', 'gate.arrival = latest', 'tostring(latest)'],
  ['gate', 'no time is early', ' + 50000', ' + 0'],
  ['turns', 'low has turns as high has', '{ 1, 4, 16 }', '{ 1, 4, 4 }'],
  ['heads', 'two lanes of a group fill the same place', 'head.free - taken', 'head.free'],
  ['heads', 'a stale place counts', 'tonumber(scores[nth]) ~= WAITS + dues[nth]', 'not scores[nth]'],
  [
    'letting-through',
    'a bound of a call is told to nobody',
    'return given, call.visits >= 200 or call.reads >= 1000',
    'return given',
  ],
  ['lining-up', 'all are of one class', 'tagged[2 * nth - 1] and 0 or tagged[2 * nth] and 2 or 1', '1'],
  ['gate', 'a closed queue is let through', 'not interval or gate.queueClosed > now', 'not interval'],
  ['gate', 'a turn forgets what is closed', 'gate.queueClosed, gate.groupsClosed)', '0, 0)'],
  ['gate', 'a change of a rate forgets what was started', 'ahead / before * gate.interval or ahead', '0 or ahead'],
  ['rates', 'the first rate is not asked', 'math.min(turnsIn(gate), turnsIn(second))', 'turnsIn(second)'],
  ['rates', 'the second rate is not asked', 'second and math.min(turnsIn(gate), turnsIn(second)) or', 'false or'],
  ['rates', 'the second rate is looked for alone', 'isShut and math.max(look, other) or other', 'other'],
  ['rates', 'a turn of the second rate is not used', 'count * second.interval', '0 * second.interval'],
  ['rates', 'the second rate is forgotten', "second.arrival or tonumber(redis.call('HGET', meta, 'gate2') or 0)", '0'],
  ['gate', 'older processes know of two rates', " or share:find(' r%d') ~= nil", ''],
  ['carrying', 'what an older process took away is forgotten', 'arrival = second.arrival', 'arrival = 0'],
  ['carrying', 'the last rate counts', 'math.max(ahead, aheadBy(', 'math.max(0, aheadBy('],
  ['gate', 'older processes know of costs', ' or hasCostsIn(share)', ''],
  ['gate', 'what is owed is cut', 'gate.hasCosts and math.huge or 1', '1'],
  ['rates', 'a clock that was set back keeps what is owed', 'gate.since - gate.micros', '0'],
  ['rates', 'a clock that was set back keeps what is owed of the second rate', ' or 0) - back)', ' or 0))'],
  ['rates', 'nobody knows when turns were used', 'if gate.since then', 'if false then'],
  ['costs', 'each job costs one turn', "tonumber(record:match('^1%w+[^|]-;c=(%w+)') or '', 36) or 1", '1'],
  ['costs', 'a cost has no bound', 'math.min(1000, cost)', 'cost'],
  ['costs', 'who goes past the line finds what others have used', 'costs.sum >= turns or', '#costs >= turns or'],
  [
    'costs',
    'one turn is given back, whatever it cost',
    'rate.arrival - backOf(rate, charge)',
    'rate.arrival - rate.interval',
  ],
  ['costs', 'a group gets one turn back, whatever it cost', 'gate, group), charge)', 'gate, group), { turns = 1 })'],
  ['costs', 'an entry does not say what it has used', "return 'cost', ", "return 'costs', "],
  ['costs', 'what is through is given back', 'math.max(0, rate.micros - placeFrom(rate, charge.at))', '0'],
  ['costs', 'a place that has not come is through', 'placeFrom(rate, charge.at)', 'charge.at'],
  ['charge', 'an entry without costs was added long ago', "entry:match('^%d+') * 1000", '0'],
  ['charge', 'an entry without costs was added just now', "entry:match('^%d+') * 1000", 'math.huge'],
  ['costs', 'what was used of other limits is given back', 'charge.at >= since', 'true'],
  ['limit', 'nobody knows when the limits were set', "'gateSet', (", "'gateUnset', ("],
  ['costs', 'what stays used is given back', '(charge.left or 0)', '0'],
  ['costs', 'what is given back has used one turn', 'gate.hasCosts and redis.call(', 'false and redis.call('],
  ['letting-through', 'a job uses one turn, whatever it costs', 'gate, used)', 'gate, given)'],
  ['letting-through', 'a job uses one turn of its group', 'gate.hasCosts and used or #head.jobs', '#head.jobs'],
  ['letting-through', 'jobs with costs are let through together', 'gate.hasCosts and 1 or 64', '64'],
  ['letting-through', 'what a job left is not asked', 'math.min(room, given + allowed(keys.meta, gate))', 'room'],
  ['lining-up', 'who goes past the line uses one turn', 'costs and costs.sum or #list', '#list'],
  ['lining-up', 'who goes past the line uses one turn of his group', 'useOwn(keys, own, cost)', 'useOwn(keys, own, 1)'],
  ['lining-up', 'who does not go past gives one turn back', 'unused + cost', 'unused + 1'],
  ['own', 'a clock that was set back keeps what a group owes', 'own.since > own.micros', 'false'],
  ['own', 'what a group owes stays owed while the clock was set back', ' and not own.isBack', ''],
  ['spend', 'a call that is made again counts again', 'tonumber(nth) >= job.nth', 'false'],
  ['spend', 'what a start has used by itself is forgotten', 'found and found[2] or {}', '{}'],
  ['spend', 'a takeover has used turns', 'isSame and tonumber(turns) or 0', 'tonumber(turns)'],
  ['spend', 'more is not used', 'useMore(own, more)', 'tostring(own)'],
  ['spend', 'more was used in the past', 'allowed(keys.meta, gate)', 'tostring(gate)'],
  ['spend', 'more of a group was used in the past', 'turnsIn(own)', 'tostring(own)'],
  ['spend', 'less is not given back', 'if more < 0 then', 'if false then'],
  ['spend', 'a group gets nothing back', 'giveOwnBack(keys, own, charge)', 'tostring(own)'],
  ['spend', 'a lane waits for what was given back', 'reopenLanes(keys, lanes)', 'tostring(lanes)'],
  ['spend', 'the leader is not told of what was given back', 'nudge(keys.meta, keys.wake, now)', 'tostring(now)'],
  ['spend', 'another entry may say it', ' or here ~= job.entry', ''],
  ['gate', 'a partition may use a place too early', '50000 + (whole - 0.5)', '50000 + whole'],
  ['own', 'the state of a group has no rate', 'own.pace and text', 'false and text'],
  ['own', 'a closed group is let through', 'own.groupClosed > gate.now and 0 or turnsIn(own)', 'turnsIn(own)'],
  ['own', 'a group uses no turn of its rate', 'own.arrival + count * own.interval', 'own.arrival'],
  ['own', 'the shortest beginning counts', 'for nth = #fields, 2, -1 do', 'for nth = 2, #fields do'],
  ['costs', 'a turn of a group is not given back', 'gate.hasOwn and charges or {}', '{}'],
  ['own', 'a group that is closed longer looks for its turn', 'own.groupClosed, isUsed', '0, isUsed'],
  ['closing', 'what is closed forgets the turns of its group', 'ownText(own)', "'0.00 ' .. untilMs"],
  ['lining-up', 'who goes past the line does not ask his group', ' or own and ownTurns(gate, own) <= 0', ''],
  ['lining-up', 'who goes past the line uses no turn of his group', 'useOwn(keys, own, cost)', 'tostring(own)'],
  ['opening', 'what waits for a time never opens', 'addLanes(keys, redis.call(', 'tostring(keys, redis.call('],
  ['shutting', 'nobody is told when a group has a turn', 'nudge(keys.meta, keys.wake, soonest)', 'tostring(soonest)'],
  ['promotion', 'a closed queue looks for the turn of a group', 'math.max(opens, gate.queueClosed)', 'opens'],
  ['close', 'lanes of a group that is opened stay shut', 'reopenLanes(keys, is', 'tostring(keys, is'],
  ['close', 'a group that is opened is never full', 'isGroupFull(keys, gate, group) and {} or ', ''],
  ['close', 'nobody looks at once for what is opened', 'nudge(meta, wake, now)', 'tostring(now)'],
  ['line', 'a lane has no order', "('0'):rep(9 - #text) .. text", "('0'):rep(9 - #text) .. text:reverse()"],
  ['line', 'what a schedule makes has a group', " or group:find('^schedule:')", ''],
  ['line', 'who leaves the line keeps its other places', 'for priority = 0, 2 do', 'for priority = 0, 1 do'],
  ['limit', 'lanes of groups that have room stay shut', 'reopenLanes(keys, opened)', 'tostring(opened)'],
  ['limit', 'a walk that was left half made is forgotten', 'hadMore == getsMore', 'true'],
  ['opening', 'lanes of groups that have room stay shut', '  openLanes(keys, opened)', '  tostring(opened)'],
  ['lining-up', 'lanes of who comes stay shut', 'openLanes(keys, opened)', 'tostring(opened)'],
  ['lanes', 'a group has one more', 'return most - #redis', 'return most + 1 - #redis'],
  ['letting-through', 'a queue has one more', 'gate.concurrency - redis', 'gate.concurrency + 1 - redis'],
  ['lining-up', 'a queue has one more', 'gate.concurrency - redis', 'gate.concurrency + 1 - redis'],
  ['limit', 'the walk begins again with each call', "isWalking and before:sub(#mine + 1) or ''", "''"],
  ['limit', 'what was taken back keeps its hold', 'dropHolds(keys, nil, entries, members)', 'tostring(members)'],
  ['heads', 'who has a group is not asked', 'if kept[head.group] and room > 0 then', 'if false then'],
  ['heads', 'who has a group has to be in line', 'and not isKeeper then', 'then'],
  [
    'letting-through',
    'who is let through has nothing',
    "redis.call('HSET', keys.order, unpack(kept))",
    'tostring(kept)',
  ],
  ['lining-up', 'who goes past the line passes who has the group', 'has and has.member ~= job.member', 'false'],
  [
    'lining-up',
    'a job of a group has a priority in strict order',
    "gate.isStrict and group ~= '' and 1 or priority",
    'priority',
  ],
  [
    'lining-up',
    'who has a group comes back to lanes that are shut',
    'openSoon(keys.lanes, group, gate.now)',
    'tostring(group)',
  ],
  [
    'shutting',
    'lanes do not wait for who has the group',
    'head.opensAt or whenMore(gate, head.own)',
    'whenMore(gate, head.own)',
  ],
  [
    'gate',
    'a queue in strict order stands still while limits are walked',
    "(share .. ' '):match(' (sh?) ')",
    "share:match(' (sh?)$')",
  ],
  ['end-many', 'a run with newer data keeps its group', 'gone, all.left, true)', "gone, all.left, 'ask')"],
  [
    'starting',
    'a start that is dropped gives the group up',
    "call.gone, call.left, 'ask')",
    'call.gone, call.left, true)',
  ],
  ['release', 'who is handed back gives the group up', "unused, 'ask')", 'unused, true)'],
  ...(['retry', 'defer'] as const).flatMap(
    (of) =>
      [
        [of, 'who goes on gives the group up', '{ member }, {}, isOver)', '{ member }, {}, true)'],
        [of, 'who ends keeps its place in the order', 'isOver = true', 'isOver = false'],
      ] as const,
  ),
  ...(['bury', 'commit'] as const).map(
    (of) => [of, 'who ends keeps its place in the order', '{ member }, {}, true)', '{ member }, {}, false)'] as const,
  ),
  ['bury', 'a dead letter holds nobody', 'holdGroup(keys, state[1], member, deadLetter)', 'tostring(deadLetter)'],
  ['commit', 'a dead letter holds nobody', 'holdGroup(keys, state[1], member, deadLetter)', 'tostring(deadLetter)'],
  ['expire', 'a dead letter holds nobody', 'holdGroup(keys, state[1], run.member, deadLetter)', 'tostring(deadLetter)'],
  ['cancel', 'who is cancelled keeps its group', 'vacate(keys, member, now)', 'tostring(member)'],
  ['ordering', 'who is replaced keeps its group', 'vacate(keys, member, now)', 'tostring(member)'],
  ['ordering', 'jobs of a call are due together', 'last + 1', 'last'],
  ['schedule', 'what was given is forgotten', 'inOrder.note()', 'tostring(inOrder)'],
  ['replay', 'who is replayed has lost its group', "lettersIn(state[4] or '') and regain(", 'tostring('],
  ['close', 'a dead letter holds a group that was opened', 'gate.isStrict and openHeld() or isOpened', 'isOpened'],
  ...(
    [
      ['promote', 'state[2], state[5]'],
      ['start', 'state[2], state[3]'],
      ['serve', 'state[2], state[4]'],
      ['relay', 'state[2], state[6]'],
      ['complete', 'state[2], state[3]'],
    ] as const
  ).map(([of, words]) => [of, 'a mark is a pause', `pauseIn(${words})`, 'state[2]'] as const),
  ['giving-up', 'a mark is a pause', 'pauseIn(state[3], state[1])', 'state[3]'],
  ['limit', 'a mark that is gone is not missed', 'before == share and hasMark(paused, share)', 'before == share'],
  ['elect', 'any term is taken over', 'term == over and versionIn(said[3])', 'versionIn(said[3])'],
  ['elect', 'a partition without a mark is taken over', 'term == over and versionIn(said[3])', 'term == over'],
  ['pause', 'a pause takes the mark away', 'pausedAs(versionIn(paused), said)', 'said'],
  [
    'limit',
    'what was taken back costs its turn',
    'refundAll(keys, gateOf(before, used, now, micros), charges)',
    'tostring(used)',
  ],
];

/** The same of gates as MOVES has of others. */
const MOVES_OF_GATES: typeof MOVES = [['lining-up', 'scheduled-last', 'line-first']];

/** Verbs that only a gated queue calls. */
const VERBS_OF_GATES = ['limit', 'close', 'check-gates', 'mend-gates', 'spend'];

/** Planted in what only a gated queue reaches: its parts and verbs, and lines of other scripts. */
export function mutantsOfGates(): readonly Mutant[] {
  const among = namesIn('verbs');
  const own = [...PARTS_OF_GATES, ...VERBS_OF_GATES].flatMap((of) => mutantsOf(of, among));
  const marked = [...new Set(OF_GATES.map((name) => name.split(' @')[0] ?? ''))]
    .flatMap((of) => mutantsOf(of, among))
    .filter(({ name }) => OF_GATES.includes(name));
  const movedOnes = MOVES_OF_GATES.map((move) => moved(move, among));
  const repaired = mutantsOf('repair', among).filter(({ name }) => name.includes('tenant'));
  return [...own, ...marked, ...repaired, ...movedOnes, ...SLIPS_OF_GATES.map((slip) => slipped(slip, among))];
}

/** The same of gates: what changes nothing that could be told. */
export const EQUIVALENT_OF_GATES: ReadonlyMap<string, string> = new Map([
  ['gate @without-rate: no guard', 'without an interval the division is infinite as well'],
  ['gate @too-far-ahead: turned >', 'nothing is ahead by that very microsecond'],
  ...[1, 2].map(
    (at) =>
      [`costs @something-back: turned > (${at} of 2)`, 'nothing is given back, and what is there is written'] as const,
  ),
  ...['>', '<'].map(
    (sign) =>
      [`line @waits: turned ${sign}`, 'no job is due in that very millisecond, of 1970 or of the year 37649'] as const,
  ),
  ['line @no-brace: no guard', 'the pattern finds no group as well'],
  ['line @no-letter: no guard', 'the patterns find nothing that is derived as well'],
  ['heads @one-more: turned <', 'one place more is read, and not judged'],
  ['heads @wanted: turned >', 'one place more is read, and not wanted'],
  ['letting-through @some-given: turned >', 'what is there is written again'],
  ...[1, 2].map(
    (at) =>
      [
        `letting-through @bounds: turned > (${at} of 2)`,
        'a call never ends at the very bound of a thousand places',
      ] as const,
  ),
  ['lining-up @any-tags: turned >', 'one look more, which finds nothing'],
  ...[
    'lining-up @turns-past: turned >',
    'lining-up @nobody-waits: turned >',
    'lining-up @room-past: turned > (1 of 2)',
    'lining-up @room-past: turned > (2 of 2)',
    'lining-up @lent-past: turned >',
  ].map((name) => [name, 'who does not go past the line is lined up, and let through in the same call'] as const),
  ['lining-up @rate-past: turned >', 'what is there is written'],
  ['filling @open-lanes: turned >', 'where no lane is open nobody is let through'],
  ['filling @some-missing: turned >', 'no more than one entry is unread where somebody waits'],
  ['filling @some-delivered: turned > (1 of 2)', 'nothing is delivered where nothing is there'],
  ['opening @was-full: turned ==', 'a lane that is open stays so'],
  ['turns @read-in-part: turned <', 'what is there whole is read again'],
  ['promotion @ring: turned <', 'none is wanted, and none is let through'],
  ['promotion @long-line: turned >', 'no line of the stories has a hundred thousand jobs'],
  ['promotion @any-lanes: turned >', 'of no lanes none waits for a time'],
  ['gate @has-own: turned >', 'one look more in that very millisecond: the group is open'],
  ...['opening @waits-for-time: turned >', 'opening @any-open: turned <'].map(
    (name) => [name, 'no lane waits for the first millisecond of 1970'] as const,
  ),
  ['turns @turns-left: turned <', 'one turn more is known, and not taken'],
  ['own @used: turned >', 'of no turns nothing is written'],
  ['own @is-used: turned >', 'without a rate there are turns without end'],
  ['own @back-with-clock: turned >', 'what is there is written'],
  ['rates @clock-went-back: turned >', 'what is there is written'],
  ['costs @finds-a-turn: turned > (2 of 2)', 'no records end at that very byte'],
  ['costs @nothing-back: no guard', 'what is there is written'],
  ['costs @without-charges: no guard', 'without a rate nothing is given back'],
  ['costs @own-rate: turned >', 'without a rate nothing is written'],
  ['spend @known-call: turned >', 'the same number again changes nothing'],
  ['spend @more-of-all: turned >', 'what is there is written'],
  ['spend @more-of-them: turned >', 'what is there is written'],
  ['spend @fewer: turned <', 'what is there is written, and a leader that wakes up finds nobody'],
  ['spend @some-over: turned <', 'one more is kept, or one less'],
  ['closing @some-closed: turned >', 'what is there is written again'],
  ['shutting @one-turn-each: no guard', 'the order of last turns is that of the turns'],
  ['shutting @in-its-round: turned >', 'the turn that the lane has is written again'],
  ['shutting @soonest: turned <', 'nobody wakes up sooner for what never comes'],
  ['own-limits @gone-limits: turned >', 'what is not there is taken out'],
  ['lining-up @timed-lane: turned >', 'no lane waits for the first millisecond of 1970'],
  ['lining-up @has-room: turned >', 'who has no room is lined up, whoever has the group'],
]);

/** The same of sets. */
export const EQUIVALENT_OF_SETS: ReadonlyMap<string, string> = new Map([
  ['joining @no-tags-key: no guard', 'the stories name every key; test/redis/sets.test.ts has a call that does not'],
  ['tend @many-strays: turned >', 'one entry more goes in a call'],
  ['stray @any-text: turned >', 'what is not there has no text'],
]);

/** The same of `cast` and its own parts. */
export const EQUIVALENT_OF_CAST: ReadonlyMap<string, string> = new Map([
  ['cast-one @forget-run: no write', 'a run without a record is not left by anything of ours'],
  ['casting @room-left: turned > (2 of 2)', 'only how much is read: the records of the model are small'],
  ['casting @room-left: turned > (1 of 2)', 'only how much is read: the records of the model are small'],
  ['cast-bounds @enough-dropped: no guard', 'test/redis/cast.test.ts has more entries'],
  ['cast-bounds @too-old: turned <', 'ids are of the server: test/redis/cast.test.ts has the very millisecond'],
  ['cast-bounds @too-much: turned > (2 of 2)', 'test/redis/cast.test.ts has the very byte'],
  ['take-back @nothing-ready: no guard', 'of a stream without entries none is read'],
  ['take-back @is-back: turned ==', 'only which notes go, which test/redis/cast.test.ts looks at'],
]);

/** What the tests of this file go by: `script or part @mark`. */
export const marksUsed: readonly string[] = [
  ...[...MOVES, ...MOVES_OF_GATES].flatMap(([of, moved, before]) => [`${of} @${moved}`, `${of} @${before}`]),
  ...[
    ...EQUIVALENT.keys(),
    ...EQUIVALENT_OF_CAST.keys(),
    ...EQUIVALENT_OF_GATES.keys(),
    ...EQUIVALENT_OF_SETS.keys(),
  ].map((name) => name.split(':')[0] ?? ''),
];

export function mutants(): readonly Mutant[] {
  const parts = namesIn('lib').filter((part) => !PARTS_ELSEWHERE.includes(part));
  return [
    ...[...verbs, ...parts].flatMap((of) => mutantsOf(of)),
    ...MOVES.map((move) => moved(move)),
    ...SLIPS.map((slip) => slipped(slip)),
  ];
}

/** Those of `cast` and its own parts. */
export function mutantsOfCast(): readonly Mutant[] {
  return ['cast', ...PARTS_OF_CAST].flatMap((of) => mutantsOf(of, ['cast']));
}

/** Those of parts and verbs that only members of sets reach. */
export function mutantsOfSets(): readonly Mutant[] {
  const among = namesIn('verbs');
  return [...PARTS_OF_SETS, ...VERBS_OF_SETS].flatMap((of) => mutantsOf(of, among));
}

/** Scripts that write, and whose states the model reaches. */
const verbs = namesIn('verbs').filter(
  (verb) => !ELSEWHERE.includes(verb) && !read(`lua/verbs/${verb}.lua`).startsWith('#!lua flags=no-writes\n'),
);

/** A script as the repository keeps it, or a part. */
const sourceOf = (of: string) => read(`lua/${namesIn('verbs').includes(of) ? 'verbs' : 'lib'}/${of}.lua`);

/** The scripts that have a changed text, which is that of one script or of a part. */
function scriptsWith(of: string, lua: string, among: readonly string[] = verbs): ReadonlyMap<string, string> {
  const textOf = (name: string) => (name === of ? lua : sourceOf(name));
  const changed = among.filter((verb) => verb === of || partsNamed(sourceOf(verb)).includes(of));
  return new Map(changed.map((verb) => [verb, assembled(textOf(verb), textOf)]));
}

function mutantsOf(of: string, among: readonly string[] = verbs): readonly Mutant[] {
  if (scriptsWith(of, sourceOf(of), among).size === 0) return [];
  return brokenTexts(of).map(({ name, lua }) => ({ of, name, scripts: scriptsWith(of, lua, among) }));
}

/** A script or a part as it is kept, broken at one place each. */
export function brokenTexts(of: string): readonly { readonly name: string; readonly lua: string }[] {
  const lines = sourceOf(of).split('\n');
  const marks = new Map([...marksIn(lines)].map(([mark, at]) => [at, mark]));
  return lines.flatMap((line, at) => {
    const mark = marks.get(at);
    if (/^\s*(--|#!|$)/.test(line) || (mark !== undefined && ENDLESS.test(mark))) return [];
    return Object.entries(OPERATORS).flatMap(([operator, breakLine]) =>
      breakLine(line)
        .filter((brokenLine) => !isMeasure(line, brokenLine))
        .map((brokenLine, place, { length }) => {
          const where = length === 1 ? '' : ` (${place + 1} of ${length})`;
          // Only a marked line has a name that stays; nothing goes by the others, and they tell a person where to look.
          const name =
            mark === undefined
              ? `${of}, line ${at + 1}: ${operator}${where}: ${line.trim()}`
              : `${of} @${mark}: ${operator}${where}`;
          return { name, lua: lines.with(at, brokenLine).join('\n') };
        }),
    );
  });
}

/** Whether nothing but how much is read was turned. */
const isMeasure = (line: string, brokenLine: string): boolean =>
  line.replace(MEASURES, ' ') === brokenLine.replace(MEASURES, ' ');

function moved([of, mark, before]: readonly [string, string, string], among?: readonly string[]): Mutant {
  const lines = sourceOf(of).split('\n');
  const marks = marksIn(lines);
  const [from, to] = [marks.get(mark), marks.get(before)];
  if (from === undefined || to === undefined || from < to) {
    throw new Error(`${of} has no line @${mark} after a line @${before}`);
  }
  const lua = lines
    .toSpliced(from, 1)
    .toSpliced(to, 0, lines[from] ?? '')
    .join('\n');
  return { of, name: `${of}: @${mark} before @${before}`, scripts: scriptsWith(of, lua, among) };
}

function slipped([of, wrong, words, instead]: (typeof SLIPS)[number], among?: readonly string[]): Mutant {
  const [before = '', after, ...more] = sourceOf(of).split(words);
  if (after === undefined || more.length > 0) throw new Error(`${of} has not once: ${words}`);
  return { of, name: `${of}: ${wrong}`, scripts: scriptsWith(of, before + instead + after, among) };
}

function eachPlace(line: string, pattern: RegExp, change: (found: string) => string): readonly string[] {
  return [...line.matchAll(pattern)].map(
    ({ 0: found, index }) => line.slice(0, index) + change(found) + line.slice(index + found.length),
  );
}
