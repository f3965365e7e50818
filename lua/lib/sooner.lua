-- sooner: lanes of a group that wait for a time wait no longer.
-- GIVES   openSoon(lanes, group, now): they open with the next look
-- NEEDS   line
-- RULE    A lane that is open keeps its turn, and one that is shut stays so: whoever shut it is
--         told when its group has room.
local function openSoon(lanes, group, now)
  local at = ('%.0f'):format(TIMED + now)
  redis.call('ZADD', lanes, 'XX', 'LT', at, '0' .. group, at, '1' .. group, at, '2' .. group)
end
