-- progress: how far a schedule was fired, as a table and as text, and when to look at it again.
-- GIVES   progressOf(text): {before, runs, skipped, waiting, last, armed}, nil for a text that
--         nobody can read; progressText(reached, one); nextLook(now, one, look): nil = never again;
--         `one` has also most, and look is what the caller wants
-- RULE    The look may have been at a definition that is being replaced, by a call that dies before
--         it arms again: within a minute of armed no look is the last one, and the next is a minute
--         after it at the latest.
local function progressOf(text)
  local pattern = '^(%d+) (%d+) (%d+) ([!-~]+) ([!-~]+) (%d+)$'
  local before, runs, skipped, waiting, last, armed = tostring(text):match(pattern)
  if not before then return nil end
  local one = { before = tonumber(before), runs = tonumber(runs), skipped = tonumber(skipped) }
  one.waiting, one.last, one.armed = waiting, last, tonumber(armed)
  return one
end

local function progressText(reached, one)
  local counts = ('%s %d %d'):format(reached, one.runs, one.skipped)
  return ('%s %s %s %.0f'):format(counts, one.waiting, one.last, one.armed)
end

local function nextLook(now, one, look)
  if math.abs(now - one.armed) < 60000 then
    return math.min(look or math.huge, one.armed + 60000)
  end
  local isOver = one.waiting == '-' and one.most > 0 and one.runs >= one.most
  return not isOver and look or nil
end
