-- end-many: what is written of jobs that are over, of all of a call at once.
-- GIVES   writeEnds(keys, call, all): call is {now, sum, gate}, sum as weight has it; all has
--         lists: tombstones, members and texts; times, ms and members of done; ends, how many ended
--         in each way; drop, members of which nothing stays; tagged, by member the outcome
--         letter and its tags; over, members
--         that run no more; held, members whose entries stay; gone and left, entries that go, and
--         their members; kept, as past takes them; again, {member, run} of jobs for which newer
--         data came: their records stay; told, {member, outcome, token, cancel} of jobs
--         whose end somebody may wait for
-- NEEDS   end-tags, leaving, past, stale, weight, telling, again, log-lines
-- RULE    Adds come before removals, and ready is left last.
local function writeEnds(keys, call, all)
  local tombstones, times, drop = all.tombstones, all.times, all.drop
  local over, gone = all.over, all.gone
  if #all.kept > 0 then
    --@lazy
    keepPast(keys.past, keys.ended, call.now, all.kept)
  end
  if all.again[1] then
    --@lazy
    for _, job in ipairs(all.again) do
      liveAgain(keys, job.member, job.run)
    end
  end
  for _, member in ipairs(all.held) do
    noteStale(keys.stale, member, call.now)
  end
  if call.sum then
    --@lazy
    unweigh(keys.jobs, keys.meta, call.sum, tombstones, drop)
  end
  if #tombstones > 0 then
    redis.call('HSET', keys.jobs, unpack(tombstones))
  end
  if #times > 0 then
    redis.call('ZADD', keys.done, unpack(times))
  end
  for name, count in pairs(all.ends) do
    if count > 0 then
      redis.call('HINCRBY', keys.meta, 'n.' .. name, count)
    end
  end
  if #drop > 0 then
    dropLines(keys.logs, drop)
    redis.call('HDEL', keys.jobs, unpack(drop))
  end
  for member, text in pairs(all.tagged) do
    endTags(keys, call.now, member, text:sub(2), text:sub(1, 1))
  end
  if #over > 0 then
    redis.call('HDEL', keys.runs, unpack(over))
  end
  if call.gate then
    -- A priority is a tag.
    -- @no-priority
    call.gate.isPlain = redis.call('ZCARD', keys.tags) == 0
  end
  leaveReady(keys, call.gate, gone, all.left, true)
  if all.told[1] then
    --@lazy
    for _, job in ipairs(all.told) do
      tellEnd(keys.meta, job, job.member, job.outcome)
    end
  end
end
