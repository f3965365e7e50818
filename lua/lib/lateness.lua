-- lateness: whether a job is too late to start, by the header of its record.
-- GIVES   headerOf(record): the fields before the bar, or nil; isLate(header, entry, asked,
--        nextDue, due, now); expiryOf(record): the instant after which it does not start, or nil
-- RULE    Late is judged by the due time of the job, not of its entry, which may be an older one. A
--         start that a crash cut off was in time, so only its expiry counts. `expiryIn` in
--         `src/job/record-header.ts` reads it alike.
local function headerOf(record)
  return record and record:match('^1%w+(;[^|]*)|')
end

local function expiryOf(record)
  local header = headerOf(record)
  if not header or header:find(';p=r', 1, true) then return nil end
  return tonumber(header:match(';e=(%w+)') or '', 36)
end

local function isLate(header, entry, asked, nextDue, due, now)
  if header:find(';p=r', 1, true) then return false end
  local expiry = tonumber(header:match(';e=(%w+)') or '', 36)
  if expiry and now > expiry then return true end
  local most = entry == '-' and tonumber(header:match(';l=(%w+)') or '', 36)
  if not most then return false end
  local since = tonumber(nextDue) or asked ~= '0' and tonumber(asked, 36) or due
  return now - since > most
end
