-- turns: which lanes let a job through next, and how many each.
-- GIVES   openLanesIn(lanes, count): the open lanes of each class in their turns, count at the most
--         of each; nothing where none is open; turnsOf(found, clocks, count): so many turns, a lane
--         for each, a lane alone in its class several times; STEPS: what a turn takes the clock on;
--         drawAlong(found, clocks): the clocks of classes that have nobody
-- NEEDS   lanes
-- RULE    Each class has a clock, which a turn takes on by 1, 4 or 16: the class whose clock is
--         behind comes next, so they come in turns of 16 : 4 : 1 while they have somebody. A class
--         that has nobody is drawn along, or it would have all turns when somebody comes.
local STEPS = { 1, 4, 16 }

local function openLanesIn(lanes, count)
  local found, isAny = {}, false
  for class = 0, 2 do
    local from, to = ('%.0f'):format(class * BAND), ('(%.0f'):format((class + 1) * BAND)
    found[class + 1] = redis.call('ZRANGEBYSCORE', lanes, from, to, 'LIMIT', 0, count)
    isAny = isAny or #found[class + 1] > 0
  end
  return isAny and found or nil
end

local function turnsOf(found, clocks, count)
  local ahead, turns, at = { unpack(clocks) }, {}, { 0, 0, 0 }
  for nth = 1, count do
    local best
    for class = 1, 3 do
      local isLess = #found[class] > 0 and (not best or ahead[class] < ahead[best])
      best = isLess and class or best
    end
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
