-- leaving: entries leave ready for good, and in a gated queue their groups have room again.
-- GIVES   leaveReady(keys, gate, entries, members): members are those of the entries
-- NEEDS   line, lanes, opening, let-go
-- RULE    The lanes of their groups are opened first, and the holds go last: a call that is cut off
--         leaves a lane open for nothing or a hold without an entry, which the leader sees, and
--         never an entry without its hold.
local function leaveReady(keys, gate, entries, members)
  if #entries == 0 then return end
  local holds = {}
  if gate then
    -- rarely
    local seen, opened = {}, {}
    for nth, member in ipairs(members) do
      local group = groupIn(member)
      if group ~= '' then
        holds[#holds + 1] = group .. '\0' .. entries[nth]
        for _, lane in ipairs(not seen[group] and lanesOf(keys.line, group) or {}) do
          opened[#opened + 1] = lane
        end
        seen[group] = true
      end
    end
    openLanes(keys, opened)
  end
  letGo(keys.ready, unpack(entries))
  if #holds > 0 then
    redis.call('ZREM', keys.holds, unpack(holds))
  end
end
