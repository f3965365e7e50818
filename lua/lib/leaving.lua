-- leaving: entries leave ready for good, and in a gated queue their groups have room again.
-- GIVES   leaveReady(keys, gate, entries, members): members are those of the entries;
--         holdAll(holds, begun): entries and members in turns, which have their holds then
-- NEEDS   line, opening, let-go
-- RULE    The hold of a start is written again, as a call that was cut off may have let its job
--         through without one.
local function leaveReady(keys, gate, entries, members)
  if #entries == 0 then return end
  letGo(keys.ready, unpack(entries))
  if gate then
    -- rarely
    dropHolds(keys, entries, members)
  end
end

local function holdAll(holds, begun)
  local words = {}
  for at = 1, #begun, 2 do
    local group = groupIn(begun[at + 1])
    if group ~= '' then
      words[#words + 1], words[#words + 2] = 0, group .. '\0' .. begun[at]
    end
  end
  if #words > 0 then
    redis.call('ZADD', holds, unpack(words))
  end
end
