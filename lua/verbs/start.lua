#!lua flags=allow-oom
-- start: entries a consumer was given become running jobs, each with a token of its own. Lets
-- exactly one of several entries of a member through.
-- USES  clock, log-lines, run, telling, tombstone, stale, tags, weight, mint, head, let-go,
--       digits, line, gate, rates, pausing, own, charge, costs, keeping, lanes, opening, yielding,
--       leaving, lateness, pending, dead-letter, named, past, closed-tags, sets, nudge, callback,
--       end-tags, turn-away, offered, start-one, starting
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 stale  9 tags  10 line
--       11 lanes  12 holds  13 groups  14 order  15 closed  16 logs  17 past  18 ended
-- ARGV  1 now  2 consumer  3 bytes  4 window  5 suspects  then per entry: entry, member, due
--       now ms, '' = server time; bytes of records per call; window ms of tombstones, 0 = keep
--       none; entries ascending; suspects: jobs under which so many workers died are not started, 0
--       = all are
-- RETURN {started, others, now}. Started for the first time, a text each: entry, due, token, member
--       and
--        record, with a space between; a record above 1 KiB follows as a text of its own, and the
--        space before it is not there. Others, a list each: entry, member, due, then what became
--        of it: run, token, attempts, failures, crashes, generation, history, record | again, the
--        same (a repeated call: nothing is counted twice) | later (not looked at: too many bytes,
--        call again) | suspect, token of its last start (a worker died under it: nothing is
--        written, start it alone) | dropped | cancelled (somebody asked for it, or a tag of it is
--        closed) | released (paused) | parked (a record of a later version, back in 4 s) |
--        deadLetter | late (past its expiry: call expire) | lost (not owned by the caller).
--        now: ms, where jobs may be started before they are due, which the caller then holds
-- Most entries are started by serve; this script is for repeated calls and for suspects.
-- A start that never settled loses its entry when its job goes back to scheduled: its late end is
-- then of no effect. An entry that waited for its start is young again, or it could be taken over
-- at once. An entry without a record is dropped in silence if its member is in stale: it had two
-- entries, and the other one ran.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, meta, stale = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local tags, line, lanes, holds, groups = KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local order, closed, logs = KEYS[14], KEYS[15], KEYS[16]
local past, ended = KEYS[17], KEYS[18]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, dead = dead,
  done = done, meta = meta, stale = stale, tags = tags, past = past, ended = ended, line = line,
  lanes = lanes, holds = holds, groups = groups, order = order, closed = closed,
  logs = logs }
local serverMs, micros = clock()
local set, consumer, bytes = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local now = set or serverMs
local window, suspects, entries = tonumber(ARGV[4]), tonumber(ARGV[5]), {}
for at = 6, #ARGV do
  entries[at - 5] = ARGV[at]
end

local state = redis.call('HMGET', meta, 'token', 'paused', 'gates', 'gate', 'closed',
  'ahead', 'logs')
if state[2] then
  --@lazy
  state[2] = pauseIn(state[2], state[3])
end
keys.closed, keys.logs = state[5] and closed, state[7] and logs
local call = callOf(state, now, micros, consumer, bytes, window, suspects, #entries / 3)
call.ahead = state[6]
if state[3] then
  --@lazy
  call.gate = gateOf(state[3], state[4], now, not set and micros)
end
startEntries(keys, call, entries, true)
return { call.started, call.others, call.ahead and now or nil }
