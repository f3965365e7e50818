-- opening: lanes get their turns, and groups have room again.
-- GIVES   addLanes(keys, list): their turn comes last; openLanes(keys, list): the same, but lanes
--         that are open keep their turn; dropHolds(keys, gate, entries, members): those of entries
--         that are no longer in ready, with the members of each; the gate is nil where any lane may
--         be shut
-- NEEDS   line, lanes
-- RULE    The score of a lane is its class and a number that only grows, so the lanes of a class
--         come in turns. Entries go first, then the lanes of their groups are opened, and the holds
--         go last: a call that is cut off leaves a hold without an entry, which the leader sees,
--         and never an entry without its hold. Only a group that was full has lanes that are shut.
local function addLanes(keys, list, ...)
  if #list == 0 then return end
  local last, words = redis.call('HINCRBY', keys.meta, 'turn', #list), { ... }
  for nth, lane in ipairs(list) do
    local score = tonumber(lane:sub(1, 1)) * BAND + last - #list + nth
    words[#words + 1], words[#words + 2] = ('%d'):format(score), lane
  end
  redis.call('ZADD', keys.lanes, unpack(words))
end

local function openLanes(keys, list)
  addLanes(keys, list, 'NX')
end

local function dropHolds(keys, gate, entries, members)
  local holds, seen, opened = {}, {}, {}
  for nth, member in ipairs(members) do
    local group = groupIn(member)
    if group ~= '' then
      holds[#holds + 1] = group .. '\0' .. entries[nth]
      local isNew = not seen[group]
      seen[group] = true
      if isNew and (not gate or gate.perGroup == 1 or isGroupFull(keys.holds, gate, group)) then
        for _, lane in ipairs(lanesOf(keys.line, group, gate and gate.isPlain)) do
          opened[#opened + 1] = lane
        end
      end
    end
  end
  openLanes(keys, opened)
  if #holds > 0 then
    redis.call('ZREM', keys.holds, unpack(holds))
  end
end
