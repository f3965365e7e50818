#!lua flags=allow-oom
-- complete: running jobs are over; a tombstone is left for the done window. Many jobs per call.
-- USES  clock, log-lines, run, telling, tombstone, stale, tags, weight, end-mark, group, head,
--       let-go, digits, line, gate, rates, lent, pausing, nudge, again, own, charge, costs,
--       keeping, lanes, opening, yielding, leaving, turns, heads, shutting, letting-through,
--       repeated, named, past, sets, callback, end-tags, end-many, completion
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 stale  8 tags  9 line  10 lanes
--       11 holds  12 groups  13 order  14 work  15 wake  16 logs  17 past  18 ended
-- ARGV  1 now  2 window  3 hold  4 consumer  then per job: entry, member, token, mark
--       now ms, '' = server time; window ms of tombstones, 0 = keep none; hold 1 = leave the entry
--       with its consumer; consumer: who started it; mark: what the tombstone keeps of the record,
--       its asked due time (base 36), space, its digest; then a bar and its tags, if it has any; or
--       a bar alone, without a window and tags; or '': the record is read for them. A caller that
--       names past keeps a history: behind all that a line break and its note, see past
-- RETURN one text per job: ok | cancelled (a cancel was requested, it ends cancelled) | already |
--        fenced | gone
-- Most jobs are completed by serve; this script is for repeated calls and for at most once.
-- Held, an entry is the proof of an acknowledgement at most once: its tombstone is not in done, so
-- no sweep can take it, and whoever asks again is answered `already` however late. The same call
-- without hold lets the entry go. If nobody makes it, the entry is reclaimed, and start drops it
-- with its tombstone.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local done, meta, stale, tags = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local line, lanes, holds, groups = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local order, work, wake = KEYS[13], KEYS[14], KEYS[15]
local logs, past, ended = KEYS[16], KEYS[17], KEYS[18]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, done = done,
  meta = meta, stale = stale, tags = tags, past = past, ended = ended, line = line,
  lanes = lanes, holds = holds, groups = groups, order = order, work = work, wake = wake,
  logs = logs }
local now, micros = clock(ARGV[1])
local window, hold, consumer = tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]

local call = { now = now, window = window, isHeld = hold, consumer = consumer }
local state = redis.call('HMGET', meta, 'held', 'paused', 'gates', 'gate', 'logs')
call.sum = state[1]
keys.logs = state[5] and logs
if state[2] then
  --@lazy
  state[2] = pauseIn(state[2], state[3])
end
if state[3] then
  --@lazy
  call.gate = gateOf(state[3], state[4], now, micros)
end
local replies = completeAll(keys, call, ARGV, 5, #ARGV)
if call.gate and not state[2] then
  --@lazy
  ringBell(keys, call.gate)
end
return replies
