-- cast-one: a due member of a broadcast queue: to be cast, over already, too late, or not yet.
-- GIVES   judgeCast(keys, call, member, score): what becomes of it: waits (it stays in scheduled),
--         gone (to be taken out of it), or ends, and then the job: {member, due, record, run,
--         outcome, deadLetter}, outcome d when it is to be cast, c when a tag of it is
--         closed, e or x when it is too late. Adds
--         to call.letters and call.adopted
-- NEEDS   run, tombstone, lateness, dead-letter, odd-member, stale, closed-tags
-- RULE    The same judgement as that of a start, which these jobs never have. A record of a later
--         version waits for a leader that can read its header.
local function withoutRecord(keys, call, member)
  if not dropNote(keys.stale, member) then
    addDeadLetter(keys.dead, call.now, { member = member, record = '', reason = 'record-missing' })
    redis.call('HINCRBY', keys.meta, 'n.refused', 1)
    call.letters = call.letters + 1
  end
  -- @forget-run
  redis.call('HDEL', keys.runs, member)
  return 'gone'
end

local function overBefore(keys, call, member)
  dropNote(keys.stale, member)
  if call.window > 0 then
    redis.call('ZADD', keys.done, 'NX', ('%.0f'):format(call.now), member)
  else
    redis.call('HDEL', keys.jobs, member)
    redis.call('ZREM', keys.done, member)
  end
  return 'gone'
end

local function judgeCast(keys, call, member, score)
  local fate, due = settleOdd(keys, call.now, member, score)
  if fate == 'waits' then return 'waits' end
  if fate == 'buried' then
    call.letters = call.letters + 1
    return 'gone'
  end
  call.adopted = call.adopted + (fate == 'adopted' and 1 or 0)
  local record = redis.call('HGET', keys.jobs, member)
  if not record then return withoutRecord(keys, call, member) end
  if isTombstone(record) then return overBefore(keys, call, member) end
  if record:find('^[2-9]%w+[;|]') then
    redis.call('ZADD', keys.scheduled, 'XX', ('%.0f'):format(call.now + 4000), member)
    return 'waits'
  end
  local run = runOf(redis.call('HGET', keys.runs, member) or NEVER_RAN) or runOf(NEVER_RAN)
  local job = { member = member, due = due, record = record, run = run, outcome = 'd' }
  local header = headerOf(record)
  if closedBy(keys.closed, record) then
    job.outcome = 'c'
  elseif header and isLate(header, run.entry, askedOf(record), run.due, due, call.now) then
    job.outcome = header:find(';p=x', 1, true) and 'x' or 'e'
  end
  if job.outcome == 'x' then
    job.deadLetter = addDeadLetter(keys.dead, call.now, { member = member, record = record,
      reason = 'expired', history = run.history, token = run.token, attempts = run.attempts,
      generation = run.generation })
    call.letters = call.letters + 1
  end
  return 'ends', job
end
