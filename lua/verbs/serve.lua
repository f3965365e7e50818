#!lua flags=allow-oom
-- serve: what a worker has done is completed, what it was given is started, and new entries are
-- delivered to it and started, all in one call.
-- USES  clock, log-lines, run, telling, tombstone, stale, tags, weight, end-mark, mint, group,
--       head, let-go, digits, line, gate, rates, lent, pausing, nudge, again, own, charge, costs,
--       keeping, lanes, opening, yielding, leaving, turns, heads, shutting, letting-through,
--       lateness, pending, dead-letter, named, past, closed-tags, sets, callback, end-tags,
--       turn-away, offered, start-one, repeated, starting, end-many, completion, delivery, filling
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 stale  9 tags  10 line
--       11 lanes  12 holds  13 groups  14 order  15 work  16 wake  17 closed  18 logs  19 past
--       20 ended
-- ARGV  1 now  2 consumer  3 bytes  4 window  5 suspects  6 take  7 given
--       then per job: entry, member, token, mark
--       now ms, '' = server time; bytes of records per call; window ms of tombstones, 0 = keep
--       none; suspects: see start; take: so many new entries are wanted; given: so many of the
--       jobs, the first, were delivered to it before: ascending, with their due in the place of the
--       token and no mark. The others are over, see complete
-- RETURN {completed, started, others, delivered, waiting, now}: completed '' when all are ok, else
--       the
--        replies of complete; started and others as start has them, of given and of new entries;
--        delivered: how many new ones there were, or the error with which Redis refused to deliver
--        them; waiting: how many are in line, -1 where the queue is not gated;
--        now: as start has it
-- The same as complete, start and XREADGROUP with start, one after the other. Of a call without a
-- reply the first two can be sent again by themselves. What it delivered stays with its consumer,
-- as after a lost reply of XREADGROUP. While the queue is paused nothing is delivered.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, meta, stale = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local tags, line, lanes, holds = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local groups, order, work, wake = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local closed, logs, past, ended = KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, dead = dead,
  done = done, meta = meta, stale = stale, tags = tags, past = past, ended = ended, line = line,
  lanes = lanes, holds = holds, groups = groups, order = order, work = work, wake = wake,
  closed = closed, logs = logs }
local serverMs, micros = clock()
local set, consumer, bytes = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local now = set or serverMs
local window, suspects = tonumber(ARGV[4]), tonumber(ARGV[5])
local take, given = tonumber(ARGV[6]), tonumber(ARGV[7])

local state = redis.call('HMGET', meta, 'token', 'paused', 'held', 'gates', 'gate', 'closed',
  'ahead', 'logs')
if state[2] then
  --@lazy
  state[2] = pauseIn(state[2], state[4])
end
keys.closed, keys.logs = state[6] and closed, state[8] and logs
local gate
if state[4] then
  --@lazy
  gate = gateOf(state[4], state[5], now, not set and micros)
end
local ends = { now = now, window = window, consumer = consumer, sum = state[3], gate = gate }
local replies, areOk = completeAll(keys, ends, ARGV, 8 + 4 * given, #ARGV)
local completed = areOk and '' or replies
-- @nothing-asked
if take + given == 0 and not gate then return { completed, {}, {}, 0, -1 } end

local call = callOf(state, now, micros, consumer, bytes, window, suspects, take + given)
call.gate, call.ahead = gate, state[7]
local entries = {}
for at = 8, 7 + 4 * given, 4 do
  local size = #entries
  entries[size + 1], entries[size + 2], entries[size + 3] = ARGV[at], ARGV[at + 1], ARGV[at + 2]
end
if given > 0 then
  startEntries(keys, call, entries, true)
end

local delivered, refusal, waiting = {}, nil, -1
if take > 0 and not call.isPaused then
  delivered, refusal = deliver(ready, consumer, take)
end
if gate and not (refusal or call.isPaused) then
  --@lazy
  waiting = fill(keys, gate, consumer, delivered, take)
end
if #delivered > 0 then
  startEntries(keys, call, delivered, nil, gate and gate.first)
end
return { completed, call.started, call.others, refusal or #delivered / 3, waiting,
  call.ahead and now or nil }
