-- turns: which lanes let a job through next, and how many each.
-- GIVES   openLanesIn(lanes, count): the open lanes of each priority in their turns, count at the
--         most of each; nothing where none is open; turnsOf(found, clocks, count): so many turns, a
--         lane for each, a lane alone in its priority several times; STEPS: what a turn takes the
--         clock on; drawAlong(found, clocks): the clocks of priorities that have nobody;
--         byWeight(keys, gate, found, count): the same lists, each lane as often as it has turns
--         left in its round; and by lane how many it has had, of how many
-- NEEDS   line, own
-- RULE    Each priority has a clock, which a turn takes on by 1, 4 or 16: the priority whose clock
--         is behind comes next, so they come in turns of 16 : 4 : 1 while they have somebody. One
--         that has nobody is drawn along, or it would have all turns when somebody comes. A lane of
--         a group with a weight has so many turns, one after the other, before it goes to the end.
local STEPS = { 1, 4, 16 }

local function openLanesIn(lanes, count)
  local found, last = { {}, {}, {} }, nil
  local function read(from, to)
    local least, above = ('%d'):format(from * BAND), ('(%d'):format(to * BAND)
    return redis.call('ZRANGEBYSCORE', lanes, least, above, 'LIMIT', 0, count)
  end
  local some = read(0, 3)
  if #some == 0 then return nil end
  for _, lane in ipairs(some) do
    local priority = tonumber(lane:sub(1, 1))
    local list = found[priority + 1]
    last, list[#list + 1] = priority, lane
  end
  -- There are more than these: the last priority of them, and those behind it, may be read in part.
  for priority = #some < count and 3 or last, 2 do
    -- @read-in-part
    if #found[priority + 1] < count then
      found[priority + 1] = read(priority, priority + 1)
    end
  end
  return found
end

local function turnsOf(found, clocks, count)
  local ahead, turns, at = {}, {}, { 0, 0, 0 }
  for priority = 1, 3 do
    ahead[priority] = #found[priority] > 0 and clocks[priority] or math.huge
  end
  for nth = 1, count do
    local best = ahead[2] < ahead[1] and 2 or 1
    best = ahead[3] < ahead[best] and 3 or best
    at[best] = at[best] % #found[best] + 1
    ahead[best] = ahead[best] + STEPS[best]
    turns[nth] = found[best][at[best]]
  end
  return turns
end

local function drawAlong(found, clocks)
  local least = math.huge
  for priority = 1, 3 do
    least = #found[priority] > 0 and math.min(least, clocks[priority]) or least
  end
  for priority = 1, 3 do
    local own = clocks[priority]
    clocks[priority] = #found[priority] > 0 and own or math.max(own, least)
  end
end

local function byWeight(keys, gate, found, count)
  local lists, had = {}, {}
  for priority, lanes in ipairs(found) do
    local list = {}
    local scores = #lanes > 0 and redis.call('ZMSCORE', keys.lanes, unpack(lanes)) or {}
    for nth, lane in ipairs(lanes) do
      local group, score = lane:sub(2), tonumber(scores[nth])
      local weight = group == '' and 1 or ownOf(keys, gate, group).weight
      had[lane] = { turns = score % 128, of = weight, score = score }
      for _ = math.min(score % 128, weight - 1) + 1, weight do
        -- @turns-left
        list[#list + 1] = #list < count and lane or nil
      end
    end
    lists[priority] = list
  end
  return lists, had
end
