-- opening: lanes get their turns.
-- GIVES   addLanes(keys, list): their turn comes last; openLanes(keys, list): the same, but lanes
--         that are open keep their turn
-- NEEDS   lanes
-- RULE    The score of a lane is its class and a number that only grows, so the lanes of a class
--         come in turns.
local function addLanes(keys, list, ...)
  if #list == 0 then return end
  local last, words = redis.call('HINCRBY', keys.meta, 'turn', #list), { ... }
  for nth, lane in ipairs(list) do
    local score = tonumber(lane:sub(1, 1)) * BAND + last - #list + nth
    words[#words + 1], words[#words + 2] = ('%.0f'):format(score), lane
  end
  redis.call('ZADD', keys.lanes, unpack(words))
end

local function openLanes(keys, list)
  addLanes(keys, list, 'NX')
end
