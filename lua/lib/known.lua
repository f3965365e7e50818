-- known: what a call of schedule means for an id under which something is stored already.
-- GIVES   knownAs(keys, call, job): the reply; whether the id is over and gets a new life; and the
--         generation of the run that is replaced, and its tags. `call` is {mode, now, first,
--         spent}, of which spent grows and isFull may be set; first: see the part clock; `job` is
--         {member, record, due, length of what is stored}.
--         mayRead(call, size): whether the call may read so much more; existsAs(keys, member,
--         current): the reply for a live job that stays as it is
-- NEEDS   run, tombstone, tags, line, held
-- RULE    A call ends at 640 KiB of what it would read or hash; the first is always read. A record
--         that was edited, or has headers, carries the mark of the call that made it: the same call
--         is known by that, whatever it says now. A cancel ends what was scheduled before it: a
--         call that was sent for the first time after it is another one, whatever it says, and so
--         is one with mode replace that finds the job due at another time or with other data. When
--         a job that was ready was cancelled is noted in stale, until its entry is dropped. Mode
--         update knows no call: what is over stays over, and what lives is the caller's to edit.
local function mayRead(call, size)
  -- @spent
  call.isFull = call.spent > 0 and call.spent + size > 655360
  call.spent = call.spent + size
  return not call.isFull
end

local function wasCancelledBefore(keys, member, first)
  -- @first-send
  if first == '' then return true end
  local over = redis.call('ZSCORE', keys.done, member) or redis.call('ZSCORE', keys.stale, member)
  -- @cancelled-earlier
  return tonumber(over or 0) < tonumber(first)
end

local function endOf(keys, call, member, tombstone, record)
  local outcome, mark = tombstone:match('^%.(.)(%w+ %x+)')
  if outcome and call.mode == 'update' then return 'already ' .. outcome end
  if mark ~= markOf(record) then return 'ok', true end
  -- @cancelled-before
  local isOther = outcome == 'c' and call.first and wasCancelledBefore(keys, member, call.first)
  return isOther and 'ok' or 'already ' .. outcome, true
end

local function existsAs(keys, member, current)
  local scheduledFor = dueOf(redis.call('ZSCORE', keys.scheduled, member))
  return ('exists %.0f'):format(scheduledFor or tonumber(askedOf(current), 36))
end

local function sameAs(keys, call, job, current, run)
  local due = dueOf(redis.call('ZSCORE', keys.scheduled, job.member))
  local reply = due and ('already live %.0f'):format(due) or 'already live'
  -- @sent-again
  if call.first ~= '' then return reply end
  -- @asked-to-stop
  if run and hasBit(run.cancel, STOP) then return nil end
  -- @moved
  local isMoved = due and due ~= job.due and (job.due > 0 or due > call.now)
  -- @started
  local isStarted = run and run.attempts ~= '0'
  -- @back-again
  local isOther = current ~= job.record or isMoved and not isStarted
  -- @takes-back
  return not (call.mode == 'replace' and isOther) and reply or nil
end

local function knownAs(keys, call, job)
  local member, record = job.member, job.record
  -- @later
  if not mayRead(call, math.max(job.length, #record)) then return 'later' end
  local current = redis.call('HGET', keys.jobs, member)
  if isTombstone(current) then return endOf(keys, call, member, current, record) end
  if call.mode == 'update' then return existsAs(keys, member, current) end
  local isMarked = firstMark(current) or firstMark(record)
  local isSame = current == record or isMarked and markOf(current) == markOf(record)
  if isSame and not call.first then return 'already live' end
  local run = (isSame or call.mode == 'replace') and runOf(redis.call('HGET', keys.runs, member))
  if isSame then
    --@lazy
    local reply = sameAs(keys, call, job, current, run)
    -- @same-call
    if reply then return reply end
  end
  if call.mode == 'replace' then
    -- @held-first
    if isAhead(keys.meta, run, call.now) then return 'held' end
    local isRunning = run and run.owner ~= '-'
    if isRunning then return 'running' end
    return 'replaced', false, run and tonumber(run.generation), tagsOf(current)
  end
  return existsAs(keys, member, current)
end
