-- start-one: one entry that a consumer holds becomes a running job, or says why it does not.
-- GIVES   startOne(keys, call, entry, member, due, record, idle, offer): adds what became of it to
--         call.others, as start replies it
-- NEEDS   run, tombstone, mint, pending, turn-away, lateness, stale
-- RULE    The attempt is counted before anything is parsed, so that a record that kills its reader
--         is still counted. An entry that leaves ready gives its turn of a rate back, but not where
--         a worker has started it that is lost since: its handler has run in that turn.
local function leaveEntry(call, job)
  call.gone[#call.gone + 1], call.left[#call.left + 1] = job.entry, job.member
  call.unused[job.entry] = not job.hasBegun
end

local function leaveOffer(call, job)
  if not job.offer then return nil end
  leaveEntry(call, job)
  return { 'dropped' }
end

local function judgeStart(keys, call, job)
  local record, run = job.record, job.run
  -- Newer data came since its start, whose reply was lost: this is another start, of those.
  job.isMine = run.entry == job.entry and run.owner == call.consumer
    and not hasBit(run.cancel, AGAIN)
  -- @has-begun
  job.hasBegun = run.entry == job.entry
  -- @held-until
  local isHeld = job.offer and job.due > call.now
  -- Where its own start came from this very entry, or the job is over, the entry is one as all
  -- others: the job is in scheduled no more.
  -- @own-offer
  if job.offer == 'void' and (run.entry == job.entry or record and isTombstone(record)) then
    job.offer = nil
  end
  -- The job waits in scheduled as all do, or is somewhere else.
  -- @is-void
  local isVoid = job.offer == 'void'
  local reply = (isVoid or job.offer and not record) and { 'dropped' } or turnAway(keys, call, job)
  if reply then
    leaveEntry(call, job)
    if record and reply[1] == 'dropped' then
      dropNote(keys.stale, job.member)
    end
    return reply
  end
  local header = not job.isMine and headerOf(record)
  if header and isLate(header, run.entry, askedOf(record), run.due, job.due, call.now) then
    return leaveOffer(call, job) or { 'late' }
  end
  local isSuspect = call.suspects > 0 and tonumber(run.crashes) >= call.suspects
  if isSuspect and not job.isMine then
    return leaveOffer(call, job) or { 'suspect', run.token }
  end
  -- @young-again
  if job.idle >= 1000 then
    redis.call('XCLAIM', keys.ready, 'workers', call.consumer, 0, job.entry, 'JUSTID')
  end
  local kind = job.isMine and 'again' or 'run'
  if not job.isMine then
    run.token, run.attempts = mint(keys, call), run.attempts + 1
    run.entry, run.owner = job.entry, call.consumer
    run.due = isHeld and ('%.0f'):format(job.due) or '-'
    run.cancel = onlyWaited(run.cancel)
    redis.call('HSET', keys.runs, job.member, runText(run))
  end
  return { kind, run.token, run.attempts, run.failures, run.crashes, run.generation, run.history,
    record }
end

local function startOne(keys, call, entry, member, due, record, idle, offer)
  local reply
  if idle and not (idle[entry] or isPending(keys.ready, entry, call.consumer)) then
    reply = { 'lost' }
  else
    local known = redis.call('HGET', keys.runs, member)
    reply = judgeStart(keys, call, { entry = entry, member = member, record = record,
      due = tonumber(due) or call.now, run = runOf(known or NEVER_RAN), isNew = not known,
      idle = idle and (idle[entry] or math.huge) or 0,
      offer = offer })
  end
  -- @taken-out
  if offer == 'open' and (reply[1] == 'run' or reply[1] == 'again' or reply[1] == 'cancelled') then
    -- @out-of-scheduled
    redis.call('ZREM', keys.scheduled, member)
  end
  call.others[#call.others + 1] = { entry, member, due, unpack(reply) }
end
