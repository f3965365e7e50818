#!lua flags=allow-oom
-- sweep: stubs that left the done window and dead letters past their retention are removed, a bounded batch per call.
-- KEYS  1 leader  2 jobs  3 done  4 dead  5 meta
-- ARGV  1 now  2 term  3 limit  4 window  5 stubs  6 retention  7 letters
--       now ms, '' = server time; term: the leader's; limit per call; window ms and count of stubs; retention ms and
--       count of letters
-- RETURN {stubs removed, letters removed}; {-1, 0} when the term is not the leader's
-- Letters are read one by one, 256 KiB of them per call, and the first young one ends it. Only stubs are deleted: a
-- member whose field is a record again (a new life) only leaves the index.
local leader, jobs, done, dead, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, limit, window, stubs = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
if redis.call('GET', leader) ~= ARGV[2] then return { -1, 0 } end
local surplus = math.min(limit, redis.call('ZCARD', done) - stubs)
local old = surplus > 0 and redis.call('ZRANGE', done, 0, surplus - 1)
  or redis.call('ZRANGEBYSCORE', done, '-inf', ('(%.0f'):format(now - window), 'LIMIT', 0, limit)
if #old > 0 then
  local over = {}
  for index, value in ipairs(redis.call('HMGET', jobs, unpack(old))) do
    if value and value:byte() == 46 then over[#over + 1] = old[index] end
  end
  -- @drop-stubs
  if #over > 0 then redis.call('HDEL', jobs, unpack(over)) end
  redis.call('ZREM', done, unpack(old))
end
local letters, from, bytes = {}, '-', 0
local excess = redis.call('XLEN', dead) - tonumber(ARGV[7])
while #letters < math.min(limit, 100) do
  -- @batch-bytes
  if bytes >= 262144 then break end
  local letter = redis.call('XRANGE', dead, from, '+', 'COUNT', 1)[1]
  if not letter then break end
  local ms = tonumber(letter[1]:match('^%d+'))
  if #letters + 1 > excess and ms >= now - tonumber(ARGV[6]) then break end
  letters[#letters + 1] = letter[1]
  from, bytes = '(' .. letter[1], bytes + #letter[2][4]
end
if #letters > 0 then
  redis.call('XDEL', dead, unpack(letters))
  redis.call('HINCRBY', meta, 'n.forgotten', #letters)
end
return { #old, #letters }
