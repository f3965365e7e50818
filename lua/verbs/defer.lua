#!lua flags=allow-oom
-- defer: a running job was put aside by its handler (a lock is taken) and goes back to scheduled;
-- no failure is counted.
-- USES  clock, run, history, tombstone, tags, weight, claim, settle, nudge, put-back, group, head,
--       let-go, digits, line, gate, lanes, opening, leaving, turns, heads, letting-through,
--       giving-up, named, past
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 done  6 meta  7 wake  8 tags
--       9 line  10 lanes  11 holds  12 work  13 past  14 ended
-- ARGV  1 now  2 window  3 entry  4 member  5 token  6 delay  7 why  8 note
--       now ms, '' = server time; window ms of tombstones; delay ms; why: one line of JSON,
--       '' = its worker gives it back, which counts nothing; note: see past, which a caller names
--       that keeps a history
-- RETURN {'ok', due} | {'cancelled'} (a cancel was requested) | {'already'} | {'fenced'} | {'gone'}
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local done, meta, wake, tags = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local line, lanes, holds, work = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local past, ended = KEYS[13], KEYS[14]
local keys = { scheduled = scheduled, ready = ready, meta = meta, line = line, lanes = lanes,
  holds = holds, work = work }
local now, micros = clock(ARGV[1])
local window = tonumber(ARGV[2])
local entry, member, token = ARGV[3], ARGV[4], ARGV[5]
local delay, why, note = tonumber(ARGV[6]), ARGV[7], ARGV[8]

local run = runOf(redis.call('HGET', runs, member))
local refusal = refusalOf(run, jobs, entry, member, token)
if refusal then return { refusal } end
local state = redis.call('HMGET', meta, 'gates', 'gate', 'paused', 'wake')

local reply = { 'cancelled' }
-- @first-write
if run.cancel == '1' then
  -- rarely
  if past then
    local mark = markIn(jobs, member)
    local over = { member = member, outcome = 'c', mark = mark, run = run, note = note }
    keepPast(past, ended, now, { over })
  end
  endCancelled(jobs, runs, done, meta, tags, member, run, now, window)
else
  if why ~= '' then
    countDeferral(run, why)
  end
  local due = putBack(scheduled, runs, meta, wake, member, run, now + delay, 'n.deferred',
    state[4])
  reply = { 'ok', due }
end
-- @leave-ready
giveUp(keys, state, now, micros, { entry }, { member })
return reply
