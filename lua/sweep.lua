#!lua flags=allow-oom
-- sweep: stubs that left the done window, dead letters past their retention and old notes go, a bounded batch per call.
-- KEYS  1 leader  2 jobs  3 done  4 dead  5 meta  6 ready  7 stale
-- ARGV  1 now  2 term  3 limit  4 window  5 stubs  6 floor  7 retention  8 letters
--       now ms, '' = server time; term: the leader's; limit per call; window ms and count of stubs; floor ms: no stub
--       younger than this goes because of the count; retention ms and count of letters
-- RETURN {stubs removed, letters removed, 1 = a bound ended the call and there may be more, else 0};
--        {-1, 0, 0} when the term is not the leader's
-- The floor is the time within which a call may be repeated: a stub that went sooner would let the same call run twice.
-- What goes by the count is told in meta: `evicted` is the age of the youngest, in ms, and when that was; it is forgotten
-- after a window. Only stubs are deleted: a member whose field is a record again (a new life) only leaves the index.
-- A value of more than 300 bytes is no stub and is not read. Members and letters are read in steps, 256 KiB per call, the
-- first of each whatever its size; the first young letter ends it. Notes of stale entries go when ready is empty, so that
-- none can be left, and after 30 days.
local leader, jobs, done, dead, meta, ready, stale = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now, limit, window, stubs = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if not now then local t = redis.call('TIME') now = t[1] * 1000 + math.floor(t[2] / 1000) end
if redis.call('GET', leader) ~= ARGV[2] then return { -1, 0, 0 } end
local surplus, aged = redis.call('ZCARD', done) - stubs, now - window
local before = ('(%.0f'):format(math.max(aged, now - tonumber(ARGV[6])))
local old, over, bytes, more, youngest, step = {}, {}, 0, 0, nil, nil
repeat
  step = redis.call('ZRANGEBYSCORE', done, '-inf', before, 'WITHSCORES', 'LIMIT', #old, 100)
  for at = 1, #step, 2 do
    local member, young = step[at], tonumber(step[at + 1]) >= aged
    if young and #old >= surplus then step = {} break end
    if #old >= limit or bytes >= 262144 then more, step = 1, {} break end
    if young then youngest = now - tonumber(step[at + 1]) end
    old[#old + 1], bytes = member, bytes + #member
    if redis.call('HSTRLEN', jobs, member) <= 300 then over[#over + 1] = member end
  end
until #step < 200
local age, told = (redis.call('HGET', meta, 'evicted') or ''):match('^(%d+) (%d+)$')
local fresh = told and tonumber(told) >= aged
if stubs > 0 and youngest and not (fresh and tonumber(age) <= youngest) then
  redis.call('HSET', meta, 'evicted', ('%.0f %.0f'):format(youngest, now))
elseif told and not fresh then redis.call('HDEL', meta, 'evicted') end
if #old > 0 then
  local dropped = {}
  for index, value in ipairs(#over > 0 and redis.call('HMGET', jobs, unpack(over)) or {}) do
    if value and value:byte() == 46 then dropped[#dropped + 1] = over[index] end
  end
  if #dropped > 0 then redis.call('HDEL', jobs, unpack(dropped)) end
  redis.call('ZREM', done, unpack(old))
end
local letters, from, read, open = {}, '-', 0, true
local excess = redis.call('XLEN', dead) - tonumber(ARGV[8])
while open and #letters < math.min(limit, 100) and read < 262144 do
  local letter = redis.call('XRANGE', dead, from, '+', 'COUNT', 1)[1]
  open = letter and (#letters < excess or tonumber(letter[1]:match('^%d+')) < now - tonumber(ARGV[7]))
  if open then
    letters[#letters + 1], from = letter[1], '(' .. letter[1]
    for _, text in ipairs(letter[2]) do read = read + #text end
  end
end
if open then more = 1 end
if #letters > 0 then
  redis.call('XDEL', dead, unpack(letters))
  redis.call('HINCRBY', meta, 'n.forgotten', #letters)
end
local newest = redis.call('XLEN', ready) == 0 and '+inf' or ('%.0f'):format(now - 2592000000)
local notes = redis.call('ZRANGEBYSCORE', stale, '-inf', newest, 'LIMIT', 0, limit)
if #notes > 0 then redis.call('ZREM', stale, unpack(notes)) end
if #notes >= limit then more = 1 end
return { #old, #letters, more }
