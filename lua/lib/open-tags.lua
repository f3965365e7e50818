-- open-tags: tags are closed no longer.
-- GIVES   openTags(keys, list): opens tags; sweepTags(keys, now, limit): opens a step of those
--         whose end has come, and says whether more may be left
-- RULE    The text of a tag goes first and the mark in meta last, so that a call that is cut off
--         leaves a tag closed and not a text without its tag.
local function openTags(keys, list)
  if #list > 0 then
    redis.call('HDEL', keys.why, unpack(list))
    redis.call('ZREM', keys.closed, unpack(list))
  end
  if redis.call('ZCARD', keys.closed) == 0 then
    redis.call('HDEL', keys.meta, 'closed')
  end
end

local function sweepTags(keys, now, limit)
  local step = math.min(limit, 200)
  local ended = redis.call('ZRANGEBYSCORE', keys.closed, '-inf', ('%.0f'):format(now), 'LIMIT', 0,
    step)
  openTags(keys, ended)
  return #ended == step
end
