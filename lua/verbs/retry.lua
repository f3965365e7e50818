#!lua flags=allow-oom
-- retry: a running job failed and goes back to scheduled after its backoff; one failure more.
-- USES  clock, log-lines, run, telling, history, tombstone, tags, weight, claim, settle, nudge,
--       again, sets, digits, callback, end-tags, put-back, group, head, let-go, line, gate, rates,
--       lent, pausing, own, charge, costs, keeping, lanes, opening, yielding, leaving, turns,
--       heads, shutting, letting-through, giving-up, named, past
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 wake  8 tags  9 line  10 lanes
--       11 holds  12 groups  13 order  14 work  15 logs  16 past  17 ended
-- ARGV  1 now  2 window  3 entry  4 member  5 token  6 delay  7 error  8 note
--       now ms, '' = server time; window ms of tombstones; delay ms; error: one line of JSON;
--       note: see past, which a caller names that keeps a history
-- RETURN {'ok', due} | {'cancelled'} (a cancel was requested) | {'already'} | {'fenced'} | {'gone'}
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local done, meta, wake, tags = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local line, lanes, holds, groups = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local order, work = KEYS[13], KEYS[14]
local logs, past, ended = KEYS[15], KEYS[16], KEYS[17]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, done = done,
  meta = meta, tags = tags, line = line, lanes = lanes, holds = holds, groups = groups,
  order = order, work = work, wake = wake, logs = logs }
local now, micros = clock(ARGV[1])
local window = tonumber(ARGV[2])
local entry, member, token = ARGV[3], ARGV[4], ARGV[5]
local delay, failure, note = tonumber(ARGV[6]), ARGV[7], ARGV[8]

local run = runOf(redis.call('HGET', runs, member))
local refusal = refusalOf(run, jobs, entry, member, token)
if refusal then return { refusal } end
local state = redis.call('HMGET', meta, 'gates', 'gate', 'paused', 'wake', 'logs')
keys.logs = state[5] and logs

local reply, isOver = { 'cancelled' }, false
-- @first-write
if hasBit(run.cancel, STOP) then
  --@lazy
  isOver = true
  if past then
    local mark = markIn(jobs, member)
    local over = { member = member, outcome = 'c', mark = mark, run = run, note = note }
    keepPast(past, ended, now, { over })
  end
  endCancelled(keys, member, run, now, window)
else
  countFailure(run, failure, not not past)
  local due = putBack(scheduled, runs, meta, wake, member, run, now + delay, 'n.retried',
    state[4])
  reply = { 'ok', due }
end
-- @leave-ready
giveUp(keys, state, now, micros, { entry }, { member }, {}, isOver)
return reply
