-- heads: who is first in each lane that has a turn, and may be let through.
-- GIVES   headsOf(keys, gate, call, turns): of each lane of `turns` one, by the lane and in a list:
--         {lane, group, free, own, isTimed: free is for the lack of a turn of its own, wanted,
--         most, places, jobs, hasMore, keeps: the place of who has its group, opensAt: ms until
--         which nobody of it comes}; call is {visits, reads, stale, gone, places, members,
--         dues}; judgeHeads(keys, gate, call, heads): fills their jobs, which are numbers in the
--         lists of call, and gives how many these are
-- NEEDS   line, own, keeping, lanes, turns
-- RULE    A place is stale if its member does not wait with its due time: it goes and takes no
--         turn, and the next round reads a hundred of its lane. One place more than is wanted is
--         read, and not judged, where the lane stays open if there is one. What another lane of the
--         group may take in this round is left to it; if it does not take that, the next round sees
--         it. Who has its group in strict order is the head of each of its lanes, in line or not.
--         Nothing is written here but the clocks of the gate.
local function groupsIn(turns)
  local names = {}
  for nth, lane in ipairs(turns) do
    names[nth] = lane:sub(2)
  end
  return names
end

local function headsOf(keys, gate, call, turns)
  local heads, granted, kept, keep = {}, {}, {}, nil
  if gate.isStrict then
    --@lazy
    kept, keep = keptIn(keys, groupsIn(turns)), keepHead
  end
  for _, lane in ipairs(turns) do
    local head = heads[lane]
    if not head then
      head = { lane = lane, group = lane:sub(2), turns = 0, places = {}, jobs = {} }
      local room, own = freeIn(keys, gate, head.group)
      head.free, head.own = own and math.min(room, ownTurns(gate, own)) or room, own
      head.isTimed = head.free < room
      if kept[head.group] and room > 0 then
        keep(keys, gate, head, kept[head.group])
      end
      heads[lane], heads[#heads + 1] = head, head
    end
    head.turns = head.turns + 1
  end
  call.visits = call.visits + #heads
  for _, head in ipairs(heads) do
    local taken, priority = granted[head.group] or 0, head.lane:sub(1, 1)
    head.wanted = math.max(0, math.min(head.turns, head.free - taken))
    -- @one-more
    head.most = call.stale[head.lane] and 100 or head.wanted < head.free and head.wanted + 1
      or head.wanted
    -- @wanted
    if head.wanted > 0 then
      local from = '[' .. head.group .. '\0'
      local to = '(' .. head.group .. '\0' .. (priority + 1)
      head.places = head.keeps and { head.keeps } or redis.call('ZRANGE', keys.line,
        from .. priority, to, 'BYLEX', 'LIMIT', 0, head.most)
      granted[head.group] = taken + math.min(head.wanted, #head.places)
    end
  end
  return heads
end

local function judgeHeads(keys, gate, call, heads)
  local places, members, dues, given, nth = {}, {}, {}, 0, 0
  for _, head in ipairs(heads) do
    head.judged = call.stale[head.lane] and #head.places or math.min(#head.places, head.wanted)
    for at = 1, head.judged do
      nth = nth + 1
      places[nth], members[nth], dues[nth] = head.places[at], waiterAt(head.places[at])
    end
  end
  local scores = nth > 0 and redis.call('ZMSCORE', keys.scheduled, unpack(members)) or {}
  call.places, call.members, call.dues, call.reads = places, members, dues, call.reads + nth
  nth = 0
  for _, head in ipairs(heads) do
    local jobs = head.jobs
    head.hasMore = #head.places > head.judged
    for _ = 1, head.judged do
      nth = nth + 1
      local isKeeper = head.keeps and tonumber(scores[nth]) == dues[nth]
      if tonumber(scores[nth]) ~= WAITS + dues[nth] and not isKeeper then
        call.gone[#call.gone + 1], call.stale[head.lane] = places[nth], true
      elseif #jobs < head.wanted then
        jobs[#jobs + 1] = nth
      else
        head.hasMore = true
      end
    end
    local priority = tonumber(head.lane:sub(1, 1)) + 1
    gate.clocks[priority] = gate.clocks[priority] + #jobs * STEPS[priority]
    given = given + #jobs
  end
  return given
end
