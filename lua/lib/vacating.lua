-- vacating: a job that waits and has its group gives it up, as it is over or another one takes its
-- place.
-- GIVES   vacate(keys, member, now): its group is free, if it was the keeper
-- NEEDS   line, nudge, sooner
-- RULE    Lanes first: a call that is cut off then leaves a keeper that does not live, or lanes
--         that are open for nothing.
local function vacate(keys, member, now)
  local group = groupIn(member)
  if group == '' or redis.call('HGET', keys.order, group) ~= member then return end
  openSoon(keys.lanes, group, now)
  redis.call('HDEL', keys.order, group)
  nudge(keys.meta, keys.wake, now)
end
