-- stale: how many entries of ready stand for no job any more, by their member.
-- GIVES   noteStale(stale, member, now): one more; dropNote(stale, member): one less, as such an
--         entry leaves ready, and whether there was one
-- RULE    An entry is noted in the step in which it loses its job: the job ends, or goes back to
--         scheduled, while the entry stays. The note goes when the entry does. So ready has as many
--         jobs as it has entries without a note, and an entry whose record is gone is no lost job.
--         The first note is the member, with the time of the newest; the others are the member, a
--         zero byte and 2, 3, 4 and so on: the last one is found by halving.
local function notesOf(stale, member)
  local function has(nth)
    return redis.call('ZSCORE', stale, nth == 1 and member or member .. '\0' .. nth)
  end
  local known, beyond = 0, 1
  -- @endless-notes
  while has(beyond) do
    known, beyond = beyond, beyond * 2
  end
  -- @endless-halves
  while beyond - known > 1 do
    local middle = math.floor((known + beyond) / 2)
    known, beyond = has(middle) and middle or known, has(middle) and beyond or middle
  end
  return known
end

local function noteStale(stale, member, now)
  local ms, nth = ('%.0f'):format(now), notesOf(stale, member) + 1
  redis.call('ZADD', stale, ms, member)
  if nth > 1 then
    redis.call('ZADD', stale, ms, member .. '\0' .. nth)
  end
end

local function dropNote(stale, member)
  local nth = notesOf(stale, member)
  if nth == 0 then return false end
  redis.call('ZREM', stale, nth == 1 and member or member .. '\0' .. nth)
  return true
end
