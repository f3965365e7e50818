-- nonsense: members of scheduled that can never be a job, because whoever put them there used a due
-- time or a name that is none.
-- GIVES   faultIn(member, score): the reason, or nothing; buryNonsense(keys, now, job): makes a
--         dead letter of {member, record or false, reason}, and gives the bytes of what it wrote
-- NEEDS   run, tombstone, tags, end-tags, dead-letter, stale, weight, telling
-- RULE    Nothing is thrown away in silence. A record that lives under the member ends with a
--         tombstone, in done before it is written: a call that was cut off finds the record again.
local function faultIn(member, score)
  if score ~= 0 and score < 1e11 then return 'bad-due' end
  local most = member:sub(1, 2) == 'j:' and 200 or 130
  local isReadable = #member > 0 and #member <= most and not member:find('[^!-~]')
  return not isReadable and 'bad-member'
end

local function buryNonsense(keys, now, job)
  local member, record = job.member, job.record
  local isLive = record and not isTombstone(record)
  job.record = isLive and record or ''
  local id = addDeadLetter(keys.dead, now, job)
  redis.call('HINCRBY', keys.meta, isLive and 'n.dead' or 'n.refused', 1)
  if not isLive then return 0 end
  local tombstone = tombstoneText('x', markOf(record), 0, 0, id)
  local run = runOf(redis.call('HGET', keys.runs, member))
  noteStale(keys.stale, member, now)
  -- @index-tombstone
  redis.call('ZADD', keys.done, now, member)
  redis.call('HDEL', keys.runs, member)
  -- @keep-tombstone
  redis.call('HSET', keys.jobs, member, tombstone)
  reweigh(keys.meta, -#record, -1)
  endTags(keys, now, member, tagsOf(record), 'x')
  tellEnd(keys.meta, run, member, 'x', '0')
  return #record
end
