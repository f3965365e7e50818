#!lua flags=allow-oom
-- watch: a few workers of a queue at a time look for dead ones; all of them do while one of the few
-- misses anybody.
-- USES  clock
-- KEYS  1 meta
-- ARGV  1 now  2 consumer  3 wish  4 seats  5 term
--       now ms, '' = server time; wish: watch (a seat, if one is free or the caller has one) | rest
--       (no seat) | alarm (everybody is to look); seats: how many there are; term ms: how long a
--       seat and an alarm hold
-- RETURN 'seat' (the caller has one) | 'alarm' (it has none, and everybody is to look) | 'rest'
-- So many workers ask that this must cost next to nothing: one field of the first partition, which
-- is written for those who sit only. A seat or an alarm that would hold for longer than a minute,
-- or a term, is void: the clock went back. Whoever dies in his seat leaves it after a term, which
-- is shorter than his heartbeat lives.
local meta = KEYS[1]
local now, consumer, wish = clock(ARGV[1]), ARGV[2], ARGV[3]
local seats, term = tonumber(ARGV[4]), tonumber(ARGV[5])

local function holds(untilMs)
  local ms = tonumber(untilMs)
  return ms and ms > now and ms <= now + math.max(term, 60000)
end

local before = redis.call('HGET', meta, 'watch') or '0'
local alarm, rest = before:match('^(%d+)(.*)$')
local kept, taken, sits = '', 0, false
while rest and rest ~= '' do
  local untilMs, name, more = rest:match('^ (%d+) (%S+)(.*)$')
  if name and holds(untilMs) and name ~= consumer then
    kept, taken = ('%s %s %s'):format(kept, untilMs, name), taken + 1
  end
  sits = sits or name == consumer
  rest = more
end
sits = wish ~= 'rest' and (sits or taken < seats)
if sits then
  kept = ('%s %.0f %s'):format(kept, now + term, consumer)
end
if wish == 'alarm' then
  alarm = ('%.0f'):format(now + term)
elseif not holds(alarm) then
  alarm = '0'
end
if alarm .. kept ~= before then
  redis.call('HSET', meta, 'watch', alarm .. kept)
end
return sits and 'seat' or alarm ~= '0' and 'alarm' or 'rest'
