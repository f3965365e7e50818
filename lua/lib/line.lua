-- line: the jobs of a gated queue that are due and were not let through yet.
-- GIVES   BAND, TIMED: the scores of lanes, see the part lanes;
--         WAITS, WAITS_END: their scores in scheduled are between, and so much above their due
--         times; isWaiting(score);
--         dueOf(score): the due time that a score stands for; dueText(score): the same as a text;
--         groupIn(member): its group, '' = none; priorityIn(text): of the tags of a header;
--         placeOf(group, priority, due, member): its place in line; waiterAt(place): member and
--         due time; allPlaces(member, score): where it may be, by priority; placesOf(line, member,
--         score): those it has; leaveLine(line, member, score):
--         they go, whatever its priority
-- NEEDS   digits
-- RULE    The line is an index. Who waits is said by scheduled alone, where the score is 2^52 and
--         the due time: a place whose member has another score there is stale and counts nothing.
--         What is above 2^52 and 2^50 is nonsense of others, such as nanoseconds. Ids of schedules,
--         of members of sets, and of the jobs that an ungrouped job leads to begin with braces
--         without being grouped.
local BAND = 1125899906842624
local TIMED = 3377699720527872
local WAITS = 4503599627370496
local WAITS_END = 5629499534213120

local function isWaiting(score)
  local number = tonumber(score or nil) or 0
  -- @waits
  return number >= WAITS and number < WAITS_END
end

local function dueOf(score)
  local number = tonumber(score or nil)
  return isWaiting(number) and number - WAITS or number
end

local function dueText(score)
  return isWaiting(score) and ('%.0f'):format(dueOf(score)) or score
end

local function priorityIn(text)
  return (',' .. (text or '')):match(', (%l+)')
end

local function groupIn(member)
  local first, second = member:byte(1, 2)
  -- The bytes are j and :.
  local from = first == 106 and second == 58 and 3 or 1
  -- Nearly all ids have no group: the byte is {.
  -- @no-brace
  if member:byte(from) ~= 123 then return '' end
  local group, rest = member:match('^{([^%c {},;|\128-\255]+)}()', from)
  if not group or #group > 64 or rest > #member
    or group:find('^schedule:') or group:find('^set:') then
    return ''
  end
  local letter = member:byte(rest)
  -- Neither a nor t, as nearly always.
  -- @no-letter
  if letter ~= 97 and letter ~= 116 then return group end
  local isDerived = member:find('^abandoned:%d+$', rest) or member:find('^then:%d+%.%d+$', rest)
  return isDerived and '' or group
end

-- Jobs of a call are often due at one time.
local LAST_DUE = {}

local function placeOf(group, priority, due, member)
  if LAST_DUE.due ~= due then
    local text = base36(due)
    LAST_DUE.due, LAST_DUE.text = due, ('0'):rep(9 - #text) .. text
  end
  return group .. '\0' .. priority .. LAST_DUE.text .. member
end

local function waiterAt(place)
  local zero = place:find('\0', 1, true) or 0
  return place:sub(zero + 11), tonumber(place:sub(zero + 2, zero + 10), 36) or 0
end

local function allPlaces(member, score)
  local group, places = groupIn(member), {}
  for priority = 0, 2 do
    places[priority + 1] = placeOf(group, priority, dueOf(score), member)
  end
  return places
end

local function placesOf(line, member, score)
  local found = {}
  for _, place in ipairs(allPlaces(member, score)) do
    found[#found + 1] = redis.call('ZSCORE', line, place) and place or nil
  end
  return found
end

local function leaveLine(line, member, score)
  -- A foreign client that does not know of lines leaves a stale place.
  if line and isWaiting(score) then
    redis.call('ZREM', line, unpack(allPlaces(member, score)))
  end
end
