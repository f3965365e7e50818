-- place: which members of a sorted set come behind another of the same score.
-- GIVES   isBehind(other, member); firstBehind(scheduled, score, member): the rank of the first one
--         behind them
-- RULE    A walk remembers a score and a member and no rank: what leaves the front meanwhile shifts
--         nothing, whether or not the member is still there. Among the members of one score the
--         first one behind it is looked for by halving, and compared byte by byte, because Lua
--         compares texts by the locale of the server.
local function isBehind(other, member)
  for at = 1, math.min(#other, #member) do
    local one, two = other:byte(at), member:byte(at)
    if one ~= two then return one > two end
  end
  return #other > #member
end

local function firstBehind(scheduled, score, member)
  local low = redis.call('ZCOUNT', scheduled, '-inf', '(' .. score)
  local high = redis.call('ZCOUNT', scheduled, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local isIt = isBehind(redis.call('ZRANGE', scheduled, middle, middle)[1], member)
    low, high = isIt and low or middle + 1, isIt and middle or high
  end
  return low
end
