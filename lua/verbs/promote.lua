#!lua flags=allow-oom
-- promote: due jobs move from scheduled to ready; bare members get a record; nonsense becomes dead
-- letters.
-- USES  clock, run, telling, tombstone, stale, tags, weight, group, digits, line, gate, rates,
--       lent, pausing, nudge, own, charge, costs, keeping, lanes, opening, turns, heads, shutting,
--       letting-through, sooner, lining-up, dead-letter, sets, callback, end-tags, nonsense, adopt,
--       odd-member, advertise, promotion, offers
-- KEYS  1 leader  2 scheduled  3 ready  4 jobs  5 runs  6 dead  7 done  8 meta  9 stale  10 tags
--       11 line  12 lanes  13 holds  14 groups  15 order  16 work  17 wake
-- ARGV  1 now  2 term  3 lease  4 limit  5 cap  6 lineMax  7 ahead
--       now ms, '' = server time; term: the leader's value; lease ms, '' = it was renewed lately;
--       limit: members per pass; cap: undelivered entries; lineMax: members in line, the most;
--       ahead: what is due within so many ms is offered, see the part offers; '' = nothing is
-- RETURN {state, now, next, backlog, dead letters, moved, through, waiting, then pairs: lateness
--        ms, count}
--        state moved | paused | capped; next: next due time, ms, '' = none; through and waiting: of
--        a gated queue, how many went into ready and how many are in line; next may be the next
--        turn of its rate. A lateness may come twice; -1: offered ahead. {'fenced'} when the term
--        is not the leader's.
-- Payloads of managed jobs are never touched, so a pass of 500 costs the same for 10 bytes and for
-- 256 KiB.
local leader, scheduled, ready, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[8]
local keys = { scheduled = scheduled, ready = ready, jobs = KEYS[4], runs = KEYS[5],
  dead = KEYS[6], done = KEYS[7], meta = meta, stale = KEYS[9], tags = KEYS[10], line = KEYS[11],
  lanes = KEYS[12], holds = KEYS[13], groups = KEYS[14], order = KEYS[15],
  work = KEYS[16], wake = KEYS[17] }
local now, micros = clock(ARGV[1])
local term, lease = ARGV[2], ARGV[3]
local limit, cap, lineMax = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local ahead = tonumber(ARGV[7])
-- @fence
if redis.call('GET', leader) ~= term then return { 'fenced' } end
if lease ~= '' then
  redis.call('PEXPIRE', leader, lease)
end

local state = redis.call('HMGET', meta, 'token', 'paused', 'wake', 'n.promoted', 'gates', 'gate',
  'ahead')
if state[2] then
  --@lazy
  state[2] = pauseIn(state[2], state[5])
end
local gate
if state[5] then
  --@lazy
  gate = gateOf(state[5], state[6], now, micros)
  gate.wanted, gate.lineMax = 1, lineMax
end
local reply = promoteDue(keys, state, now, limit, cap, gate)
-- @offers
if ahead and not gate and reply[1] == 'moved' then
  --@lazy
  offerSoon(keys, reply, now, ahead, tonumber(state[7]) or 0, math.min(limit, 100))
end
-- @some-through
if reply[7] > 0 then
  -- @call-workers
  redis.pcall('SPUBLISH', keys.work, '1')
end
return reply
