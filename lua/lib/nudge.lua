-- nudge: the leader of a partition wakes up sooner than it meant to.
-- GIVES   nudge(meta, wake, due, before): tells it of a due time; `before` is when it means to wake
--         up, if the caller has read it already, false where there is none
-- RULE    `wake` of K:meta only ever gets smaller here, and a burst of jobs publishes once. While
--         nobody leads there is no such field, and nobody to nudge. A message that Redis refuses,
--         here and in other scripts, is passed over: a look finds what it would have told of.
local function nudge(meta, wake, due, before)
  if before == nil then
    before = redis.call('HGET', meta, 'wake')
  end
  if due >= (tonumber(before or -1) or -1) then return end
  local text = ('%.0f'):format(due)
  redis.call('HSET', meta, 'wake', text)
  redis.pcall('SPUBLISH', wake, text)
end
