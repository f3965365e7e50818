-- turns: which lanes let a job through next, and how many each.
-- GIVES   openLanesIn(lanes, count): the open lanes of each class in their turns, count at the most
--         of each; nothing where none is open; turnsOf(found, clocks, count): so many turns, a lane
--         for each, a lane alone in its class several times; STEPS: what a turn takes the clock on;
--         drawAlong(found, clocks): the clocks of classes that have nobody;
--         byWeight(keys, gate, found, count): the same lists, each lane as often as it has turns
--         left in its round; and by lane how many it has had, of how many
-- NEEDS   own, lanes
-- RULE    Each class has a clock, which a turn takes on by 1, 4 or 16: the class whose clock is
--         behind comes next, so they come in turns of 16 : 4 : 1 while they have somebody. A class
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
    local class = tonumber(lane:sub(1, 1))
    local list = found[class + 1]
    last, list[#list + 1] = class, lane
  end
  -- There are more than these: the last class of them, and those behind it, may be read in part.
  for class = #some < count and 3 or last, 2 do
    -- @read-in-part
    if #found[class + 1] < count then
      found[class + 1] = read(class, class + 1)
    end
  end
  return found
end

local function turnsOf(found, clocks, count)
  local ahead, turns, at = {}, {}, { 0, 0, 0 }
  for class = 1, 3 do
    ahead[class] = #found[class] > 0 and clocks[class] or math.huge
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
  for class = 1, 3 do
    least = #found[class] > 0 and math.min(least, clocks[class]) or least
  end
  for class = 1, 3 do
    clocks[class] = #found[class] > 0 and clocks[class] or math.max(clocks[class], least)
  end
end

local function byWeight(keys, gate, found, count)
  local lists, had = {}, {}
  for class, lanes in ipairs(found) do
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
    lists[class] = list
  end
  return lists, had
end
