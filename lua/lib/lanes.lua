-- lanes: of each group and priority one, for those who are in line: their turns, and what a group
-- holds of its limit. The first byte of a lane is its priority, 0 = high, 1 = normal, 2 = low.
-- GIVES   freeIn(keys, gate, group): how many entries more its group may have in ready, and its own
--         limits if it has some; isGroupFull(keys, gate, group): none; lanesOf(line, group,
--         isPlain): its lanes with somebody in line; isPlain: nobody there has a priority
-- NEEDS   own
-- RULE    A lane is open while somebody may be in it and its group is not full. One that is open
--         for nothing costs a visit, one that is shut for nothing would stay so: who makes room
--         opens lanes before it does. From TIMED on are those that wait for a time, a turn of the
--         rate of their group, the end of its closing or the due time of who has it: TIMED and ms.
--         Whether a group is full its holds say, and not who has it: a lane that is shut for that
--         would be opened by nobody.
local function freeIn(keys, gate, group)
  if group == '' then return math.huge end
  local own = gate.hasOwn and ownOf(keys, gate, group)
  local most = own and own.most or gate.perGroup
  if most == 0 then return math.huge, own end
  local from, to = '[' .. group .. '\0', '(' .. group .. '\1'
  return most - #redis.call('ZRANGE', keys.holds, from, to, 'BYLEX', 'LIMIT', 0, most), own
end

local function isGroupFull(keys, gate, group)
  return (freeIn(keys, gate, group)) <= 0
end

local function lanesOf(line, group, isPlain)
  local lanes, to, from = {}, '(' .. group .. '\1', '[' .. group .. '\0'
  repeat
    local place = redis.call('ZRANGE', line, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
    if place then
      local priority = place:sub(#group + 2, #group + 2)
      lanes[#lanes + 1] = priority .. group
      from = '[' .. group .. '\0' .. (tonumber(priority) + 1)
    end
  until not place or isPlain
  return lanes
end
