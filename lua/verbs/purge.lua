#!lua flags=allow-oom
-- purge: dead letters of an age and a reason are removed, or only counted, a bounded batch per
-- call, oldest first; or those that are named.
-- USES  clock, log-lines
-- KEYS  1 dead  2 meta  3 logs
-- ARGV  1 now  2 age  3 reason  4 after  5 last  6 limit  7 mode  then per name: deadLetter
--       now ms, '' = server time; age ms, the least, '' = any; reason '' = any; after: the dead
--       letter looked at last, '' = from the oldest; last: the dead letter that is the end, '' =
--       the newest; limit: dead letters looked at, the most; mode count | remove | named: no age
--       and no reason, only the dead letters that are named
-- RETURN {matched, looked at, the dead letter looked at last or '' when no more are old enough}
-- A dead letter may be of 256 KiB and Redis does nothing else meanwhile, so a call ends when it has
-- read that much, and reads as few at a time as the largest so far lets expect.
-- Dead letters are matched here, so that no payload travels and none is removed that was not looked
-- at. A tombstone that names a removed dead letter stays until its window ends.
local dead, meta, logs = KEYS[1], KEYS[2], KEYS[3]
local keys = { logs = logs }
local now, age, reason = clock(ARGV[1]), tonumber(ARGV[2]) or -math.huge, ARGV[3]
local after, final, limit, mode = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local found, looked, last, bytes, largest, more = {}, 0, after, 0, 262144, mode ~= 'named'
for at = 8, #ARGV do
  found[#found + 1] = ARGV[at]
end

local function look(deadLetter)
  local size, fields = 0, deadLetter[2]
  for at = 1, #fields, 2 do
    local field, value = fields[at], fields[at + 1]
    size = size + #value
    if field == 'reason' and (reason == '' or value == reason) then
      found[#found + 1] = deadLetter[1]
    end
  end
  -- @largest
  largest = math.max(looked == 0 and 1 or largest, size)
  looked, last, bytes = looked + 1, deadLetter[1], bytes + size
end

-- @endless
while more and looked < limit and bytes < 262144 do
  local room = math.floor((262144 - bytes) / largest)
  local step = math.min(limit - looked, 16, math.max(1, room))
  local from = last == '' and '-' or '(' .. last
  local deadLetters = redis.call('XRANGE', dead, from, final == '' and '+' or final, 'COUNT', step)
  local isOld = true
  for _, deadLetter in ipairs(deadLetters) do
    isOld = isOld and tonumber(deadLetter[1]:match('^%d+')) <= now - age
    if isOld then
      look(deadLetter)
    end
  end
  -- @endless-too
  more = #deadLetters == step and isOld
end
local matched = #found
if mode ~= 'count' and matched > 0 then
  keys.logs = redis.call('HGET', meta, 'logs') and logs
  dropDeadLines(keys.logs, found)
  matched = redis.call('XDEL', dead, unpack(found))
  redis.call('HINCRBY', meta, 'n.forgotten', matched)
end
return { matched, looked, more and last or '' }
