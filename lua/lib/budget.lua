-- budget: a call reads records up to a number of bytes, because Redis does nothing else meanwhile:
-- the SHA-1 of a record alone takes 1 ms per 256 KiB.
-- GIVES   readWithin(jobs, member, bytes, spent): spent so far, the value or false; spent is nil
--         when the record does not fit
-- NEEDS   tombstone
-- RULE    The first record is always read, so every call gets on. What is too large is not read,
--         nor is anything after it. A value of up to 300 bytes may be a tombstone: it costs
--         nothing.
local function readWithin(jobs, member, bytes, spent)
  local length = redis.call('HSTRLEN', jobs, member)
  local fits = spent == 0 or spent + length <= bytes
  local value = (fits or length <= 300) and redis.call('HGET', jobs, member)
  if isTombstone(value) or length == 0 then return spent, value end
  if not fits then return nil, false end
  return spent + length, value
end
