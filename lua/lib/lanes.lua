-- lanes: of each group and class one, for those who are in line: their turns, and what a group
-- holds of its limit.
-- GIVES   BAND; freeIn(holds, gate, group): how many entries more its group may have in ready;
--         isGroupFull(holds, gate, group): none; lanesOf(line, group, isPlain): its lanes with
--         somebody in line; isPlain: nobody there has a priority
-- RULE    A lane is open while somebody may be in it and its group is not full. One that is open
--         for nothing costs a visit, one that is shut for nothing would stay so: who makes room
--         opens lanes before it does.
local BAND = 1125899906842624

local function freeIn(holds, gate, group)
  if group == '' or gate.perGroup == 0 then return math.huge end
  local from, to, most = '[' .. group .. '\0', '(' .. group .. '\1', gate.perGroup
  return most - #redis.call('ZRANGE', holds, from, to, 'BYLEX', 'LIMIT', 0, most)
end

local function isGroupFull(holds, gate, group)
  return freeIn(holds, gate, group) <= 0
end

local function lanesOf(line, group, isPlain)
  local lanes, to, from = {}, '(' .. group .. '\1', '[' .. group .. '\0'
  repeat
    local place = redis.call('ZRANGE', line, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    if place then
      local class = place:sub(#group + 2, #group + 2)
      lanes[#lanes + 1] = class .. group
      from = '[' .. group .. '\0' .. (tonumber(class) + 1)
    end
  until not place or isPlain
  return lanes
end
