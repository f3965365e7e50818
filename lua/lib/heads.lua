-- heads: who is first in each lane that has a turn, and may be let through.
-- GIVES   headsOf(keys, gate, call, turns): of each lane of `turns` one, by the lane and in a list:
--         {lane, group, free, wanted, places, most, jobs}; call is {visits, reads, stale, gone};
--         judgeHeads(keys, gate, call, heads): fills their jobs, and gives how many these are
-- NEEDS   line, lanes, turns
-- RULE    A place is stale if its member does not wait with its due time: it goes and takes no
--         turn, and the next round reads a hundred of its lane. What another lane of the group may
--         take in this round is left to it; if it does not take that, the next round sees it.
--         Nothing is written here but the clocks of the gate.
local function headsOf(keys, gate, call, turns)
  local heads, granted = {}, {}
  for _, lane in ipairs(turns) do
    if not heads[lane] then
      local head = { lane = lane, group = lane:sub(2), turns = 0, places = {}, jobs = {} }
      head.free = freeIn(keys.holds, gate, head.group)
      heads[lane], heads[#heads + 1] = head, head
    end
    heads[lane].turns = heads[lane].turns + 1
  end
  call.visits = call.visits + #heads
  for _, head in ipairs(heads) do
    local taken, class = granted[head.group] or 0, head.lane:sub(1, 1)
    head.wanted = math.max(0, math.min(head.turns, head.free - taken))
    head.prefix = head.group .. '\0' .. class
    head.most = call.stale[head.lane] and 100 or head.wanted + 1
    if head.wanted > 0 then
      local to = '(' .. head.group .. '\0' .. (tonumber(class) + 1)
      head.places = redis.call('ZRANGE', keys.line, '[' .. head.prefix, to, 'BYLEX', 'LIMIT', 0,
        head.most)
      granted[head.group] = taken + math.min(head.wanted, #head.places)
    end
  end
  return heads
end

local function judgeHeads(keys, gate, call, heads)
  local members, given, nth = {}, 0, 0
  for _, head in ipairs(heads) do
    for _, place in ipairs(head.places) do
      members[#members + 1] = waiterAt(place)
    end
  end
  local scores = #members > 0 and redis.call('ZMSCORE', keys.scheduled, unpack(members)) or {}
  for _, head in ipairs(heads) do
    for _, place in ipairs(head.places) do
      nth = nth + 1
      local _, due = waiterAt(place)
      if tonumber(scores[nth]) ~= WAITS + due then
        call.gone[#call.gone + 1], call.stale[head.lane] = place, true
      elseif #head.jobs < head.wanted then
        head.jobs[#head.jobs + 1] = { place = place, member = members[nth], due = due }
      else
        head.hasMore = true
      end
    end
    local class = tonumber(head.lane:sub(1, 1)) + 1
    gate.clocks[class] = gate.clocks[class] + #head.jobs * STEPS[class]
    given = given + #head.jobs
  end
  call.reads = call.reads + #members
  return given
end
