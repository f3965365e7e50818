#!lua flags=allow-oom
-- relay: a pass of a leader in whose process the only worker lives: what the worker has done is
-- completed, due jobs move from scheduled to ready, and entries of ready are delivered to it and
-- started, all in one call.
-- USES  clock, log-lines, run, telling, tombstone, stale, tags, weight, end-mark, group, mint,
--       head, let-go, digits, line, gate, rates, lent, pausing, nudge, again, own, charge, costs,
--       keeping, lanes, opening, yielding, leaving, turns, heads, shutting, letting-through,
--       sooner, lining-up, lateness, pending, dead-letter, named, past, sets, callback, end-tags,
--       nonsense, adopt, odd-member, advertise, promotion, closed-tags, turn-away, offered,
--       start-one, repeated, starting, end-many, completion, delivery, filling
-- KEYS  1 leader  2 scheduled  3 ready  4 jobs  5 runs  6 dead  7 done  8 meta  9 stale  10 tags
--       11 line  12 lanes  13 holds  14 groups  15 order  16 work  17 wake  18 closed  19 logs
--       20 past  21 ended
-- ARGV  1 now  2 term  3 lease  4 limit  5 cap  6 lineMax  7 consumer  8 bytes  9 window
--       10 suspects  11 take
--       then per job: entry, member, token, mark
--       now, term, lease, limit, cap and lineMax as promote has them, the rest as serve has it
-- RETURN {promoted, completed, started, others, delivered, waiting, now}: promoted as promote
--       replies,
--        the others as serve does. When the term is not the leader's, the jobs are completed all
--        the same, and nothing else happens.
-- The same as complete, promote and serve, one after the other. Redis answers a blocked read of the
-- same group when the script has ended: it finds what is left. So a job that comes alone costs one
-- call on its way to its worker, and no wake-up of the reader.
local leader, scheduled, ready, jobs, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, done, meta, stale = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local tags, line, lanes, holds = KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local groups, order, work, wake = KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local closed, logs, past, ended = KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local keys = { scheduled = scheduled, ready = ready, jobs = jobs, runs = runs, dead = dead,
  done = done, meta = meta, stale = stale, tags = tags, past = past, ended = ended, line = line,
  lanes = lanes, holds = holds, groups = groups, order = order, work = work, wake = wake,
  closed = closed, logs = logs }
local serverMs, micros = clock()
local set, term, lease = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local now = set or serverMs
local limit, cap, lineMax = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local consumer, bytes, window = ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9])
local suspects, take = tonumber(ARGV[10]), tonumber(ARGV[11])

local state = redis.call('HMGET', meta, 'token', 'paused', 'wake', 'n.promoted', 'held', 'gates',
  'gate', 'closed', 'ahead', 'logs')
if state[2] then
  --@lazy
  state[2] = pauseIn(state[2], state[6])
end
keys.closed, keys.logs = state[8] and closed, state[10] and logs
local gate
if state[6] then
  --@lazy
  gate = gateOf(state[6], state[7], now, not set and micros)
  gate.wanted, gate.lineMax = take, lineMax
end
local ends = { now = now, window = window, consumer = consumer, sum = state[5], gate = gate }
local replies, areOk = completeAll(keys, ends, ARGV, 12, #ARGV)
local completed = areOk and '' or replies
if redis.call('GET', leader) ~= term then return { { 'fenced' }, completed, {}, {}, 0, -1 } end
if lease ~= '' then
  redis.call('PEXPIRE', leader, lease)
end

local call = callOf(state, now, micros, consumer, bytes, window, suspects, take)
call.gate, call.ahead = gate, state[9]
local promoted, first = promoteDue(keys, state, now, limit, cap, gate, 'token',
  lastToken(call))
call.isMinted = promoted[6] > 0
local delivered, refusal, waiting = {}, nil, -1
-- @nothing-there
if promoted[4] > 0 and not call.isPaused then
  delivered, refusal = deliver(ready, consumer, take)
end
if gate and not (refusal or call.isPaused) then
  --@lazy
  waiting = fill(keys, gate, consumer, delivered, take)
end
if #delivered > 0 then
  startEntries(keys, call, delivered, nil, first or gate and gate.first)
end
return { promoted, completed, call.started, call.others, refusal or #delivered / 3,
  waiting, call.ahead and now or nil }
