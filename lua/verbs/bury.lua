#!lua flags=allow-oom
-- bury: a running job ran out of budget, cannot succeed or cannot be read: it becomes a dead
-- letter.
-- USES  clock, log-lines, run, telling, history, tombstone, tags, sets, digits, weight, nudge,
--       callback, end-tags, claim, dead-letter, compensate, settle, again, group, head, let-go,
--       line, gate, rates, lent, pausing, own, charge, costs, keeping, lanes, opening, yielding,
--       leaving, turns, heads, shutting, letting-through, giving-up, named, past
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 wake  9 tags  10 line
--       11 lanes  12 holds  13 groups  14 order  15 work  16 logs  17 past  18 ended
-- ARGV  1 now  2 window  3 entry  4 member  5 token  6 reason  7 error  8 compensation
--       9 compensationRecord  10 note
--       now ms, '' = server time; window ms of tombstones; reason: one word or sentence; error: one
--       line of JSON, '' = none; compensation: member of a job that is to take half-done effects
--       back, '' = none; compensationRecord: its record; note: see past, which a caller names that
--       keeps a history
-- RETURN {'ok', dead letter id} | {'cancelled'} (a cancel was requested) | {'already'} | {'fenced'}
--        | {'gone'}
-- The dead letter is added first; a call that was cut off after that finds it again instead of
-- adding a second one, and without a tombstone it shows that this call was carried out. The
-- tombstone names its dead letter, so that a replay removes that tombstone and no other. The
-- compensation job is due at once. A job for which newer data came leaves no dead letter; the reply
-- has - for it.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, meta, wake = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local tags, line, lanes, holds = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local groups, order, work = KEYS[13], KEYS[14], KEYS[15]
local logs, past, ended, note = KEYS[16], KEYS[17], KEYS[18], ARGV[10]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, meta = meta,
  tags = tags, line = line, lanes = lanes, holds = holds, groups = groups, order = order,
  work = work, wake = wake, logs = logs }
local now, micros = clock(ARGV[1])
local window, reason, failure = tonumber(ARGV[2]), ARGV[6], ARGV[7]
local entry, member, token = ARGV[3], ARGV[4], ARGV[5]
local compensation = { member = ARGV[8], record = ARGV[9], due = now }

local run = runOf(redis.call('HGET', runs, member))
local refusal = refusalOf(run, jobs, entry, member, token)
if refusal == 'gone' and deadLetterOf(dead, member, token) then return { 'already' } end
if refusal then return { refusal } end

local isCancelled, livesOn, deadLetter = hasBit(run.cancel, STOP), hasNews(run), '-'
if not isCancelled and failure ~= '' then
  countFailure(run, failure, not not past)
end

local function deadLetterId()
  local found = deadLetterOf(dead, member, token)
  if found then return found[1] end
  run.member, run.record, run.reason = member, redis.call('HGET', jobs, member) or '', reason
  return addDeadLetter(dead, now, run)
end

if not isCancelled then
  deadLetter = livesOn and '-' or deadLetterId()
  if compensate(scheduled, jobs, meta, compensation) then
    nudge(meta, wake, now)
  end
end
local state = redis.call('HMGET', meta, 'gates', 'gate', 'paused', 'held', 'logs')
keys.logs = state[5] and logs
linesToDead(keys.logs, member, deadLetter)
if state[1] then
  --@lazy
  holdGroup(keys, state[1], member, deadLetter)
end
-- @count-end
redis.call('HINCRBY', meta, isCancelled and 'n.cancelled' or 'n.dead', 1)
if not livesOn and redis.call('ZSCORE', scheduled, member) then
  redis.call('HINCRBY', meta, 'n.adopted', 1)
else
  local outcome = isCancelled and 'c' or 'x'
  local record, mark = run.record, nil
  if not record then
    mark, record = markIn(jobs, member)
  end
  mark = mark or markOf(record)
  local tombstone = tombstoneText(outcome, mark, token, run.attempts, deadLetter)
  if past then
    --@lazy
    local over = { member = member, outcome = outcome, mark = mark, run = run, note = note }
    over.deadLetter = deadLetter
    keepPast(past, ended, now, { over })
  end
  if livesOn then
    --@lazy
    liveAgain(keys, member, run)
  else
    settle(jobs, done, keys.logs, member, tombstone, now, window)
    reweigh(meta, -#record, -1, state[4])
    endTags(keys, now, member, tagsOf(record), outcome)
    tellEnd(meta, run, member, outcome)
  end
end
if not livesOn then
  -- @forget-run
  redis.call('HDEL', runs, member)
end
giveUp(keys, state, now, micros, { entry }, { member }, {}, true)
return isCancelled and { 'cancelled' } or { 'ok', deadLetter }
