-- head: whether entries are all that ready holds up to the last of them.
-- GIVES   headOf(ready, entries): the last of them if they are, so that everything up to it can be
--         trimmed; else nothing
-- RULE    Up to the last, what is held is one of these; and nothing in ready is neither held nor
--         still to be delivered, as what was held by a consumer that somebody deleted. Where the
--         group's pointer was set back, or Redis does not know how many wait, the answer is no.

-- Ids have 13 digits of milliseconds until the year 2286.
local function comesAfter(entry, other)
  if #entry == #other then return entry > other end
  local ms, otherMs = entry:sub(1, 13), other:sub(1, 13)
  if ms == otherMs then return #entry > #other end
  return ms > otherMs
end

local function headOf(ready, entries)
  local last, ours = entries[1], {}
  for _, entry in ipairs(entries) do
    ours[entry] = true
    last = comesAfter(entry, last) and entry or last
  end
  local held = redis.call('XPENDING', ready, 'workers', '-', last, #entries + 1)
  for _, one in ipairs(held) do
    if not ours[one[1]] then return nil end
  end
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', ready)) do
    -- Each behind its name: name, consumers, pending, last-delivered-id, entries-read, lag.
    local name, pending, delivered, waiting = group[2], group[6], group[8], group[12]
    if name == 'workers' and waiting and not comesAfter(last, delivered) then
      return redis.call('XLEN', ready) == pending + waiting and last or nil
    end
  end
  return nil
end
