-- known: what a call of schedule means for an id under which something is stored already.
-- GIVES   knownAs(keys, call, job): the reply; whether the id is over and gets a new life; and the
--         generation of the run that is replaced, and its tags. `call` is {mode, spent, isTagged:
--         there may be tags to replace}, of which spent grows and isFull may be set; `job` is
--         {member, record, length of what is stored}
-- USED BY  schedule
-- NEEDS   run, tombstone, tags
-- RULE    What is stored is read only where its length can decide nothing, and a call ends at
--         640 KiB of what it would read or hash; the first is always read. A value of more than
--         300 bytes is no tombstone.
local function mayRead(call, size)
  -- @spent
  call.isFull = call.spent > 0 and call.spent + size > 655360
  call.spent = call.spent + size
  return not call.isFull
end

local function endOf(tombstone, record)
  local outcome, asked, digest = tombstone:match('^%.(.)(%w+) (%x+)')
  local isSame = asked == record:match('^1(%w+)') and digest == digestOf(record)
  return isSame and 'already ' .. outcome or 'ok', true
end

local function knownAs(keys, call, job)
  local member, record, length = job.member, job.record, job.length
  -- @alike
  local isRead = length == #record or length <= 300
  -- @later
  if isRead and not mayRead(call, #record) then return 'later' end
  local current = isRead and redis.call('HGET', keys.jobs, member)
  if isTombstone(current) then return endOf(current, record) end
  if current == record then return 'already live' end
  local run = runOf(redis.call('HGET', keys.runs, member))
  -- What was edited has a run record, and any length.
  -- @edited-later
  if run and not current and not mayRead(call, length) then return 'later' end
  current = current or run and redis.call('HGET', keys.jobs, member)
  local first = run and current and firstMark(current)
  if first and first == markOf(record) then return 'already live' end
  if call.mode == 'replace' then
    local isRunning = run and run.owner ~= '-'
    if isRunning then return 'running' end
    local isUnread = call.isTagged and not current
    -- @tagged-later
    if isUnread and not mayRead(call, length) then return 'later' end
    current = isUnread and redis.call('HGET', keys.jobs, member) or current
    return 'replaced', false, run and tonumber(run.generation), tagsOf(current)
  end
  local scheduledFor = tonumber(redis.call('ZSCORE', keys.scheduled, member))
  local isUnknown = not scheduledFor and not current
  -- @exists-later
  if isUnknown and not mayRead(call, length) then return 'later' end
  current = isUnknown and redis.call('HGET', keys.jobs, member) or current
  return ('exists %.0f'):format(scheduledFor or tonumber(askedOf(current), 36))
end
