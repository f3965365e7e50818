-- known: what a call of schedule means for an id under which something is stored already.
-- GIVES   knownAs(keys, call, job): the reply; whether the id is over and gets a new life; and the
--         generation of the run that is replaced, and its tags. `call` is {mode, spent}, of which
--         spent grows and isFull may be set; `job` is {member, record, length of what is stored}.
--         mayRead(call, size): whether the call may read so much more; existsAs(keys, member,
--         current): the reply for a live job that stays as it is
-- NEEDS   run, tombstone, tags, line
-- RULE    A call ends at 640 KiB of what it would read or hash; the first is always read. A record
--         that was edited, or has headers, carries the mark of the call that made it: the same call
--         is known by that, whatever it says now.
local function mayRead(call, size)
  -- @spent
  call.isFull = call.spent > 0 and call.spent + size > 655360
  call.spent = call.spent + size
  return not call.isFull
end

local function endOf(tombstone, record)
  local outcome, mark = tombstone:match('^%.(.)(%w+ %x+)')
  return mark == markOf(record) and 'already ' .. outcome or 'ok', true
end

local function existsAs(keys, member, current)
  local scheduledFor = dueOf(redis.call('ZSCORE', keys.scheduled, member))
  return ('exists %.0f'):format(scheduledFor or tonumber(askedOf(current), 36))
end

local function knownAs(keys, call, job)
  local member, record = job.member, job.record
  -- @later
  if not mayRead(call, math.max(job.length, #record)) then return 'later' end
  local current = redis.call('HGET', keys.jobs, member)
  if isTombstone(current) then return endOf(current, record) end
  if current == record then return 'already live' end
  local isMarked = firstMark(current) or firstMark(record)
  if isMarked and markOf(current) == markOf(record) then return 'already live' end
  if call.mode == 'replace' then
    local run = runOf(redis.call('HGET', keys.runs, member))
    local isRunning = run and run.owner ~= '-'
    if isRunning then return 'running' end
    return 'replaced', false, run and tonumber(run.generation), tagsOf(current)
  end
  return existsAs(keys, member, current)
end
