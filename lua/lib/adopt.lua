-- adopt: a bare member, which a foreign producer put by ZADD alone, gets a record of its own.
-- GIVES   adopt(keys, now, member, run, due): 1 when it had none, else 0
-- NEEDS   digits, run, tombstone, stale, weight
-- RULE    The record says what no producer said: the due time in base 36, and that it is bare. A
--         tombstone of an earlier life gives way to it. A member that was put again while it was
--         ready gets a second entry, and `stale` notes the member. It is known by its due time:
--         a retry would have the one in `runs`, which is forgotten when the retry is due.
local function adopt(keys, now, member, run, due)
  local tombstone, length = tombstoneOf(keys.jobs, member)
  local isLive = length > 0 and not tombstone
  local wasReady = isLive and tonumber(run.due) ~= due
  if wasReady then
    noteStale(keys.stale, member, now)
  end
  if isLive and not wasReady then
    redis.call('HSET', keys.runs, member, unboundText(run, '-'))
  end
  if isLive then return 0 end
  local record = '1' .. base36(due) .. ';b=1|{}'
  redis.call('HSET', keys.jobs, member, record)
  -- It was a job before, of 0 bytes.
  reweigh(keys.meta, #record, 0)
  redis.call('ZREM', keys.done, member)
  return 1
end
