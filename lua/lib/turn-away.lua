-- turn-away: entries of ready that do not become a start: their job is gone, over, cancelled,
-- closed by a tag, paused, of a later version, runs elsewhere or was put again.
-- GIVES   turnAway(keys, call, job): the reply if the entry has to leave ready, else nothing.
--         `call` is {now, window, isPaused}, `job` {entry, member, due, record, run, isNew, isMine,
--         offer: see offered}
-- NEEDS   run, tombstone, tags, end-tags, closed-tags, pending, dead-letter, past, stale, weight,
--       telling, log-lines
-- RULE    Of several entries of a member exactly one gets through. What its own start has begun
--         goes on: a cancel, a closed tag and a pause come too late for it.
local function lost(keys, call, job)
  if dropNote(keys.stale, job.member) then return { 'dropped' } end
  local there = redis.call('XRANGE', keys.ready, job.entry, job.entry)[1]
  local member = there and there[2][2] or job.member
  addDeadLetter(keys.dead, call.now, { member = member, record = '', reason = 'record-missing' })
  redis.call('HINCRBY', keys.meta, 'n.refused', 1)
  -- @forget-run
  redis.call('HDEL', keys.runs, job.member)
  return { 'deadLetter' }
end

local function endInReady(keys, call, job)
  if not job.isNew then
    redis.call('HDEL', keys.runs, job.member)
  end
  if call.window > 0 then
    redis.call('ZADD', keys.done, 'NX', call.now, job.member)
  else
    redis.call('ZREM', keys.done, job.member)
    dropLines(keys.logs, { job.member })
    redis.call('HDEL', keys.jobs, job.member)
  end
end

local function turnAway(keys, call, job)
  local record, run = job.record, job.run
  if not record then return lost(keys, call, job) end
  if isTombstone(record) then
    endInReady(keys, call, job)
    return { 'dropped' }
  end
  if not job.offer and redis.call('ZSCORE', keys.scheduled, job.member) then
    if run.entry == job.entry then
      run.cancel = onlyWaited(run.cancel)
      redis.call('HSET', keys.runs, job.member, unboundText(run, '-'))
    end
    return { 'dropped' }
  end
  local isElsewhere = run.entry ~= job.entry and run.entry ~= '-'
  if isElsewhere and isPending(keys.ready, run.entry) then return { 'dropped' } end
  if job.isMine then return nil end
  -- A cancel that came before newer data is not of them.
  local isCancelled = hasBit(run.cancel, STOP) and not hasBit(run.cancel, AGAIN)
  if isCancelled or closedBy(keys.closed, record) then
    --@lazy
    local mark = markOf(record)
    local tombstone = tombstoneText('c', mark, run.token, run.attempts)
    if keys.past then
      local over = { member = job.member, outcome = 'c', mark = mark, run = run, record = record,
        window = call.window }
      keepPast(keys.past, keys.ended, call.now, { over })
    end
    redis.call('HSET', keys.jobs, job.member, tombstone)
    redis.call('HINCRBY', keys.meta, 'n.cancelled', 1)
    reweigh(keys.meta, -#record, -1)
    endTags(keys, call.now, job.member, tagsOf(record), 'c')
    endInReady(keys, call, job)
    tellEnd(keys.meta, run, job.member, 'c')
    return { 'cancelled' }
  end
  -- @later-version
  local isLater = record:find('^[2-9]%w+[;|]')
  if not (call.isPaused or isLater) then return nil end
  local due = call.isPaused and job.due or ('%.0f'):format(call.now + 4000)
  redis.call('ZADD', keys.scheduled, due, job.member)
  if not job.isNew then
    redis.call('HSET', keys.runs, job.member, unboundText(run, due))
  end
  return { call.isPaused and 'released' or 'parked' }
end
