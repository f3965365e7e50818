-- leaving: entries leave ready for good, and in a gated queue their groups have room again.
-- GIVES   leaveReady(keys, gate, entries, members, isOver): members are those of the entries;
--         isOver: in strict order they have their groups no longer, see yieldAll;
--         holdAll(holds, begun, first): entries and members in turns, which have their holds then;
--         first: from that entry on they have them, as this very call has let them through
-- NEEDS   line, opening, let-go, yielding
-- RULE    The hold of a start is written again, as a call that was cut off may have let its job
--         through without one.
local function leaveReady(keys, gate, entries, members, isOver)
  if #entries == 0 then return end
  letGo(keys.ready, unpack(entries))
  if gate and gate.isStrict and isOver then
    --@lazy
    yieldAll(keys, members, isOver)
  end
  if gate then
    --@lazy
    dropHolds(keys, gate, entries, members)
  end
end

local function holdAll(holds, begun, first)
  local words = {}
  for at = 1, #begun, 2 do
    if begun[at] == first then
      break
    end
    local group = groupIn(begun[at + 1])
    if group ~= '' then
      words[#words + 1], words[#words + 2] = 0, group .. '\0' .. begun[at]
    end
  end
  if #words > 0 then
    -- @hold-begun
    redis.call('ZADD', holds, unpack(words))
  end
end
