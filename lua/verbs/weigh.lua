#!lua flags=allow-oom
-- weigh: the bytes of the records of all jobs that wait or run are counted anew, a slice per call.
-- KEYS  1 scheduled  2 jobs  3 ready  4 meta
-- ARGV  1 part  2 cursor  3 limit  4 bytes  5 count  6 mode
--       part and cursor: where to go on; scheduled and 0 = from the beginning; limit: jobs per
--       call; bytes, count: of how many jobs earlier calls have counted them; mode: note = the last
--       call keeps what was counted, look = it does not
-- RETURN {part, cursor, bytes, count} for the next call; {'', '', bytes, count} when all is
--        counted; {'unlimited'} when the partition has no limits
-- No record is read, only its length, and nothing is kept of a walk but what its caller brings
-- along. What comes or goes meanwhile may be counted or not: bytes and count stay a pair. Of two
-- walks at a time each notes a pair that is right.
local scheduled, jobs, ready, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local part, cursor, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local bytes, count, mode = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
if not redis.call('HGET', meta, 'quota') then return { 'unlimited' } end

local function add(member)
  bytes, count = bytes + redis.call('HSTRLEN', jobs, member), count + 1
end

if part == 'scheduled' then
  local page = redis.call('ZSCAN', scheduled, cursor, 'COUNT', limit)
  for at = 1, #page[2], 2 do
    add(page[2][at])
  end
  if page[1] == '0' then return { 'ready', '-', bytes, count } end
  return { part, page[1], bytes, count }
end
local entries = redis.call('XRANGE', ready, cursor, '+', 'COUNT', limit)
for _, entry in ipairs(entries) do
  add(entry[2][2])
end
if #entries == limit then return { part, '(' .. entries[limit][1], bytes, count } end
if mode == 'note' then
  redis.call('HSET', meta, 'held', ('%.0f %.0f'):format(bytes, count))
end
return { '', '', bytes, count }
