-- take-back: what is ready and was read by nobody is scheduled again.
-- GIVES   takeBack(keys, now, limit): the entries that are gone, and their members
-- NEEDS   group, stale
-- RULE    What was read is left to who read it. A member that is scheduled already keeps its due
--         time there; what became of it meanwhile is judged when it is cast.
local function takeBack(keys, now, limit)
  local entries, members = {}, {}
  -- @nothing-ready
  if redis.call('XLEN', keys.ready) == 0 then return entries, members end
  local group = groupOf(keys.ready)
  local from = group and '(' .. group.delivered or '-'
  for _, entry in ipairs(redis.call('XRANGE', keys.ready, from, '+', 'COUNT', limit)) do
    local due = ('%.0f'):format(tonumber(entry[2][4]) or now)
    -- @is-back
    local isBack = redis.call('ZADD', keys.scheduled, 'NX', due, entry[2][2]) == 1
    redis.call('XDEL', keys.ready, entry[1])
    entries[#entries + 1], members[#members + 1] = entry[1], entry[2][2]
    if not isBack then
      dropNote(keys.stale, entry[2][2])
    end
  end
  return entries, members
end
