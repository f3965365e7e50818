-- sweep-past: the history of a queue stays as long and as large as it is to be.
-- GIVES   sweepPast(past, ended, now, keep, most, limit): drops a step of what is too old or too
--         much, and says how many records went and whether more are left
-- RULE    The record goes first, then its place in the order of ends: nothing is left that no sweep
--         finds.
local function sweepPast(past, ended, now, keep, most, limit)
  local old = redis.call('ZCOUNT', ended, '-inf', ('(%.0f'):format(now - keep))
  local count = math.max(old, redis.call('ZCARD', ended) - most)
  local step = math.min(count, limit, 200)
  if step <= 0 then return 0, false end
  local ids = redis.call('ZRANGE', ended, 0, step - 1)
  redis.call('HDEL', past, unpack(ids))
  redis.call('ZREM', ended, unpack(ids))
  return #ids, count > #ids
end
