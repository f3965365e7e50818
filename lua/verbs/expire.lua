#!lua flags=allow-oom
-- expire: jobs that are past their expiry are over without a start: dropped, or dead letters. Many
-- per call.
-- USES  clock, log-lines, run, telling, tombstone, tags, sets, digits, weight, nudge, callback,
--       end-tags, budget, lateness, pending, dead-letter, compensate, settle, group, head, let-go,
--       line, gate, rates, lent, pausing, own, charge, costs, keeping, lanes, opening, yielding,
--       leaving, turns, heads, shutting, letting-through, giving-up, lapsing, named, past
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 tags  9 line  10 lanes
--       11 holds  12 groups  13 order  14 work  15 wake  16 logs  17 past  18 ended
-- ARGV  1 now  2 consumer  3 window  4 bytes
--       then per entry: entry, member, due, compensation, compensationRecord
--       now ms, '' = server time; consumer: '' = the leader, which names jobs that no worker has;
--       entry: '' = the job is in scheduled; window ms of tombstones, 0 = keep none; bytes of
--       records per call; due ms; compensation: member of a job that is to take half-done effects
--       of earlier starts back, '' = none; compensationRecord: its record
-- RETURN one text per entry: expired | dead | kept (not late, runs anyway, in scheduled again, or
--        named by the leader after a start) | over expired, over dead (the job has expired already,
--        and its entry is gone) | lost (not owned by the caller, or by a worker) | later (not
--        looked at: too many bytes, call again)
-- Judges again: between the start that said late and this call the job may have become another one.
-- No attempt is used. The compensation job is due at once; no nudge is sent, so the leader sees it
-- within its safety tick. A call that was cut off finds its dead letter again, and takes out of
-- scheduled what is over. A caller that names past keeps a history.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, meta, tags = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local line, lanes, holds, groups = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local order, work, wake = KEYS[13], KEYS[14], KEYS[15]
local logs, past, ended = KEYS[16], KEYS[17], KEYS[18]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, done = done,
  meta = meta, tags = tags, line = line, lanes = lanes, holds = holds, groups = groups,
  order = order, work = work, wake = wake }
local now, micros = clock(ARGV[1])
local consumer = ARGV[2]
local window, bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
local replies, gone, left, unused = {}, {}, {}, {}
local spent, newest, lighter, count = 0, nil, 0, 0
local state = redis.call('HMGET', meta, 'gates', 'gate', 'paused', 'held', 'logs')
keys.logs = state[5] and logs
-- What is there of the field held, as far as this call knows.
local sum = state[4]

local function deadLetterId(run)
  newest = newest or newestDeadLetters(dead)
  for _, found in ipairs(newest) do
    local fields = found[2]
    local isSame = fields[2] == run.member and fields[4] == run.record
    if isSame and fields[6] == 'expired' then return found[1] end
  end
  run.reason = 'expired'
  return addDeadLetter(dead, now, run)
end

local function expire(run, header)
  local isDead = header:find(';p=x', 1, true)
  local outcome, deadLetter = isDead and 'x' or 'e', isDead and deadLetterId(run) or '-'
  local mark = markOf(run.record)
  local tombstone = tombstoneText(outcome, mark, run.token, run.attempts, deadLetter)
  if past then
    local over = { member = run.member, outcome = outcome, mark = mark, run = run }
    over.record, over.deadLetter, over.window = run.record, deadLetter, window
    keepPast(past, ended, now, { over })
  end
  if isDead and state[1] then
    --@lazy
    holdGroup(keys, state[1], run.member, deadLetter)
  end
  linesToDead(keys.logs, run.member, deadLetter)
  settle(jobs, done, keys.logs, run.member, tombstone, now, window)
  lighter, count = lighter + #run.record, count + 1
  local tagged = tagsOf(run.record)
  endTags(keys, now, run.member, tagged, outcome)
  if sum and tagged and tagged:find(' set:', 1, true) then
    sum = nil
  end
  redis.call('HINCRBY', meta, isDead and 'n.dead' or 'n.expired', 1)
  redis.call('HDEL', runs, run.member)
  tellEnd(meta, run, run.member, outcome)
  return isDead and 'dead' or 'expired'
end

local function whatIsLeft(member)
  local tombstone = tombstoneOf(jobs, member) or ''
  if tombstone:byte(2) == 101 then return 'over expired' end
  local found = tombstone:byte(2) == 120 and deadLetterIn(dead, tombstone)
  return found and found[2][6] == 'expired' and 'over dead' or 'lost'
end

local function judge(entry, member, due, compensation)
  local byLeader, waits = consumer == '', redis.call('ZSCORE', scheduled, member)
  local isTheirs = not byLeader and isPending(ready, entry, consumer)
    or byLeader and mayLapse(ready, entry, waits, now)
  if not isTheirs then return whatIsLeft(member) end
  local record
  spent, record = readWithin(jobs, member, bytes, spent)
  if not spent then return 'later' end
  if isLeftThere(member, entry, record) then
    finishEnd(keys, member, waits, now)
    return whatIsLeft(member)
  end
  local header = headerOf(record)
  local run = runOf(redis.call('HGET', runs, member) or NEVER_RAN) or {}
  local isBegun = run.owner ~= '-' or byLeader and hasStarted(run)
  local isAgain = waits and entry ~= ''
  if not header or isBegun or isAgain then return 'kept' end
  due = entry ~= '' and due or dueOf(waits)
  if not isLate(header, run.entry, askedOf(record), run.due, due, now) then return 'kept' end
  if compensate(scheduled, jobs, meta, compensation) and sum then
    sum = nil
  end
  run.member, run.record = member, record
  local reply = expire(run, header)
  if entry == '' then
    leaveScheduled(keys, member, waits)
  else
    gone[#gone + 1], left[#left + 1], unused[entry] = entry, member, true
  end
  return reply
end

for at = 5, #ARGV, 5 do
  local entry, member, due = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]) or now
  local compensation = { member = ARGV[at + 3], record = ARGV[at + 4], due = now }
  replies[#replies + 1] = spent and judge(entry, member, due, compensation) or 'later'
end
reweigh(meta, -lighter, -count, sum)
giveUp(keys, state, now, micros, gone, left, unused, true)
return replies
